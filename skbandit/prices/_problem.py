"""Decisions of rows that cost, and goals on sums of them: of class labels, and of actions.

Row i decides j at the cost ``base[i, j] + (phi_i T_0)_j``, and adds ``(phi_i T_k)_j`` to goal k, by
unit of its weight. Of classes, phi[i, f] is the probability that row i is of a stratum f, such as a
label, and tables T say what deciding j for it counts. Of actions, the rows have costs of their own,
and phi holds what the row multiplies the amounts of a resource by.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
from scipy.sparse import csr_array


@dataclass(frozen=True)
class Prices:
    """Multipliers: mu of the objectives, of sum 1, and lambda of the goals."""

    objectives: np.ndarray
    goals: np.ndarray


@dataclass(frozen=True)
class Use:
    """Use of a resource: row i uses ``rate[i] * has[i] * amount[j]`` for decision j.

    Attributes
    ----------
    rate : ndarray of shape (N,)
        0 for rows that do not count.
    amount : ndarray of shape (D,) or (N, D)
    has : ndarray of shape (N,), or None
        What a row multiplies the amounts by; None is 1.
    """

    rate: np.ndarray
    amount: np.ndarray
    has: np.ndarray | None = None

    @property
    def times(self) -> np.ndarray:
        """Factor of amounts in each row, shape (N,)."""
        return self.rate if self.has is None else self.rate * self.has

    def add_to(self, table: np.ndarray, coefficient: float) -> None:
        """Add uses to those of a table (N, D)."""
        times = coefficient * self.times
        if self.amount.ndim == 2:
            table += times[:, None] * self.amount
            return
        for j in np.flatnonzero(self.amount):
            table[:, j] += times * self.amount[j]

    def of(self, row: np.ndarray, decision: np.ndarray) -> np.ndarray:
        """Return what one decision of each of some rows uses."""
        amounts = self.amount[decision] if self.amount.ndim == 1 else self.amount[row, decision]
        return amounts if self.has is None else amounts * self.has[row]

    def rows(self, kept: np.ndarray | slice) -> Use:
        """Take some of the rows."""
        amount = self.amount if self.amount.ndim == 1 else self.amount[kept]
        return Use(self.rate[kept], amount, None if self.has is None else self.has[kept])


Sum = tuple[tuple[float, Use], ...]
"""A weighted sum of uses."""


@dataclass(frozen=True)
class Problem:
    """Costs of decisions in N rows, and goals on sums over the rows.

    Attributes
    ----------
    weight : ndarray of shape (N,)
        Nonnegative, of sum 1.
    strata : ndarray or csr_array of shape (N, F)
        phi: probability that a row is of each stratum, or what it multiplies a table by.
    objective : ndarray of shape (G, F, D)
        T_0 of each expression, of which the largest counts.
    constant : ndarray of shape (G,)
        Added to these.
    goals : ndarray of shape (m, F, D)
        T_k.
    bound : ndarray of shape (m,)
        b.
    divisors : ndarray of shape (m, F, D), optional
        Tables of what each goal's value is a ratio to; None is for sums.
    divisor_constant : ndarray of shape (m,), optional
        Added to these; 1 without divisors.
    base : ndarray of shape (N, D)
        What decisions cost beside the tables, inf if one is not available; empty without.
    uses : tuple of Sum
        What tables and amounts by row are made of, if the goals are on uses.
    n_select : int
        Number of decisions per row.
    exact : ndarray of bool, shape (m,), or None
        Goals that allow a row no more than its least use: other decisions are barred.
    """

    weight: np.ndarray
    strata: np.ndarray | csr_array
    objective: np.ndarray
    constant: np.ndarray
    goals: np.ndarray
    bound: np.ndarray
    divisors: np.ndarray | None = None
    divisor_constant: np.ndarray | None = None
    base: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    uses: tuple[Sum, ...] = ()
    n_select: int = 1
    exact: np.ndarray | None = None

    @classmethod
    def of_uses(
        cls,
        base: np.ndarray,
        weight: np.ndarray,
        uses: tuple[Sum, ...],
        bound: np.ndarray,
        n_select: int = 1,
        exact: np.ndarray | None = None,
    ) -> Problem:
        """Goals on what decisions use; uses that differ by a factor of the row are tables."""
        N, D = base.shape
        places: dict[bytes, int] = {}
        fixed = [(k, c, use) for k, goal in enumerate(uses) for c, use in goal]
        fixed = [entry for entry in fixed if entry[2].amount.ndim == 1]
        of_use = [
            places.setdefault(blake2b(np.ascontiguousarray(use.times).data).digest(), len(places))
            for _, _, use in fixed
        ]
        strata, goals = np.zeros((N, len(places))), np.zeros((len(uses), len(places), D))
        for (k, c, use), r in zip(fixed, of_use, strict=True):
            strata[:, r] = use.times
            goals[k, r] += c * use.amount
        objective, constant = np.zeros((1, len(places), D)), np.zeros(1)
        parts = strata, objective, constant, goals, bound, None, None, base, uses, n_select, exact
        return cls(weight, *parts)

    @cached_property
    def by_row(self) -> list[tuple[int, float, Use]]:
        """Uses whose amounts depend on the row, with the number of their goal."""
        every = [(k, c, use) for k, goal in enumerate(self.uses) for c, use in goal]
        return [entry for entry in every if entry[2].amount.ndim == 2]

    def table(self, k: int) -> np.ndarray:
        """Return the amounts that each decision adds to goal k in each row, shape (N, D)."""
        table = np.asarray(self.strata @ self.goals[k])
        for goal, c, use in self.by_row:
            if goal == k:
                use.add_to(table, c)
        return table

    @cached_property
    def reach(self) -> np.ndarray:
        """A large cost of a row in each goal, shape (m,): of uses, the mean among those that do."""
        if not self.base.size:
            return _largest(self.goals)
        spreads = [np.ptp(self.table(k), axis=1) for k in range(len(self.bound))]
        means = [spread[spread > 0].mean() if (spread > 0).any() else 0.0 for spread in spreads]
        return np.array(means)

    @cached_property
    def unit(self) -> float:
        """A large cost of a row in the objective; 0 if there is none."""
        if not self.base.size:
            return float(_largest(self.objective).max())
        costs = np.where(np.isfinite(self.base), self.base, np.nan)
        with np.errstate(invalid="ignore"):
            return float(self.weight @ (np.nanmax(costs, axis=1) - np.nanmin(costs, axis=1)))

    @property
    def is_ratio(self) -> np.ndarray:
        """True if the value of each goal is a ratio, shape (m,)."""
        if self.divisors is None:
            return np.zeros(len(self.bound), dtype=bool)
        return np.asarray(self.divisors.reshape(len(self.bound), -1).any(axis=1))

    @property
    def range_of_largest(self) -> np.ndarray:
        """Ends of the range of the largest objective, shape (2,)."""
        of_stratum = np.asarray(self.strata.T @ self.weight).ravel()
        low = self.objective.min(axis=2) @ of_stratum + self.constant
        high = self.objective.max(axis=2) @ of_stratum + self.constant
        return np.array([low.max(), high.max()])

    def costs(self, prices: Prices) -> np.ndarray:
        """L of (1), shape (F, D)."""
        objective = np.tensordot(prices.objectives, self.objective, 1)
        return objective + np.tensordot(prices.goals, self.goals, 1)

    def row_costs(self, prices: Prices) -> np.ndarray:
        """Cost of each decision per unit of weight of each row, shape (N, D)."""
        costs = np.asarray(self.strata @ self.costs(prices))
        costs = costs + self.base if self.base.size else costs
        for k, c, use in self.by_row:
            if prices.goals[k] != 0:
                use.add_to(costs, prices.goals[k] * c)
        return costs

    def decision_costs(self, prices: Prices) -> np.ndarray:
        """Put barred decisions, which are a row's last resort, beyond all others."""
        costs = self.row_costs(prices)
        if self.exact is None or not self.exact.any():
            return costs
        tables = [self.table(int(k)) for k in np.flatnonzero(self.exact)]
        barred = np.any([uses > uses.min(axis=1, keepdims=True) for uses in tables], axis=0)
        return costs + np.where(barred, 1.0 + np.ptp(costs[np.isfinite(costs)]), 0.0)

    def decide(self, prices: Prices) -> np.ndarray:
        """Which decisions have the lowest costs, bool of shape (N, D)."""
        return lowest_entries(self.decision_costs(prices), self.n_select)

    def unconstrained(self) -> np.ndarray:
        """Decisions without goals."""
        return lowest_entries(self.row_costs(without_prices(self)), self.n_select)

    def sums(self, share: np.ndarray) -> np.ndarray:
        """Sum the G objectives and the m goals, without constants, at shares (N, D)."""
        tables = np.concatenate([self.objective, self.goals])
        weighted = share * self.weight[:, None]
        totals = np.tensordot(tables, np.asarray(self.strata.T @ weighted), 2)
        if self.base.size:
            totals[0] += (np.where(np.isfinite(self.base), self.base, 0.0) * weighted).sum()
        for k, c, use in self.by_row:
            totals[len(self.constant) + k] += c * use.times @ (use.amount * weighted).sum(axis=1)
        return totals

    def used(self, share: np.ndarray) -> np.ndarray:
        """Return the m goals at shares of decisions (N, D)."""
        return self.sums(share)[len(self.constant) :]

    def excess(self, decided: np.ndarray) -> np.ndarray:
        """Return expected excess of each goal's value over its bound, nan where a divisor is 0."""
        above = self.used(decided) - self.bound
        if self.divisors is None or self.divisor_constant is None:
            return above
        B = np.asarray(self.strata.T @ (decided * self.weight[:, None]))
        below = np.tensordot(self.divisors, B, 2) + self.divisor_constant
        return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)

    def tightened(self, by: np.ndarray) -> Problem:
        """Return the bounds moved inwards, in units of the goals' values.

        N/D <= t - s is N - tD <= -sD: of a ratio the table changes, not the bound. So a stricter
        bound on a precision is met by fewer decisions, whatever the probabilities.
        """
        if self.divisors is None or self.divisor_constant is None:
            moved = replace(self, bound=self.bound - by)
            kept = vars(self).keys() & {"by_row", "reach", "unit"}  # which bounds do not change
            vars(moved).update({name: vars(self)[name] for name in kept})
            return moved
        goals = self.goals + by[:, None, None] * self.divisors
        return replace(self, goals=goals, bound=self.bound - by * self.divisor_constant)

    def rows(self, kept: np.ndarray) -> Problem:
        """Let some of the rows stand for all."""
        weight = self.weight[kept]
        uses = tuple(tuple((c, use.rows(kept)) for c, use in goal) for goal in self.uses)
        base = self.base[kept] if self.base.size else self.base
        parts = {"strata": self.strata[kept], "base": base, "uses": uses}
        return replace(self, weight=weight / weight.sum(), **parts)

    def with_goals(self, kept: np.ndarray) -> Problem:
        """Keep some of the goals, by mask."""
        parts = {
            name: part[kept]
            for name in ("goals", "bound", "divisors", "divisor_constant", "exact")
            if (part := getattr(self, name)) is not None
        }
        uses = tuple(goal for goal, keep in zip(self.uses, kept, strict=False) if keep)
        return replace(self, uses=uses, **parts)

    def with_objective(self, tables: np.ndarray, constant: np.ndarray) -> Problem:
        """Exchange the tables of the objective."""
        return replace(self, objective=tables, constant=constant)

    def free(self) -> Problem:
        """Drop the objective, and keep the goals."""
        base = np.where(np.isfinite(self.base), 0.0, np.inf)
        tables = np.zeros((1, *self.goals.shape[1:]))
        return replace(self, objective=tables, constant=np.zeros(1), base=base)

    def minimizing(self, k: int) -> Problem:
        """Goal k as the objective, without its bound, under the others."""
        others = self.with_goals(np.arange(len(self.bound)) != k).free()
        if not self.base.size:
            return replace(others, objective=self.goals[[k]])
        return replace(others, base=others.base + self.table(k))


def decisions(decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and numbers of decisions (N, D)."""
    return np.divmod(np.flatnonzero(decided), decided.shape[1])


def lowest_entries(cost: np.ndarray, n_select: int) -> np.ndarray:
    """Which entries are the lowest of each row, the first among equals; bool."""
    chosen = np.zeros(cost.shape, dtype=bool)
    at = cost.argmin(axis=1)[:, None]
    if n_select > 1:
        at = np.argsort(cost, axis=1, kind="stable")[:, :n_select]
    np.put_along_axis(chosen, at, True, axis=1)
    return chosen


def stacked(first: Problem, others: Problem) -> Problem:
    """Other rows below the first, which alone have weight; of goals on uses."""

    def both(use: Use, other: Use) -> Use:
        amount = use.amount
        if use.amount.ndim > 1 or other.amount.ndim > 1:
            shape = amount.shape[-1:]
            wide = (np.broadcast_to(x.amount, (len(x.rate), *shape)) for x in (use, other))
            amount = np.concatenate([*wide])
        has = None
        if use.has is not None and other.has is not None:
            has = np.append(use.has, other.has)
        return Use(np.append(use.rate, other.rate), amount, has)

    uses = tuple(
        tuple((c, both(use, other)) for (c, use), (_, other) in zip(mine, theirs, strict=True))
        for mine, theirs in zip(first.uses, others.uses, strict=True)
    )
    base, weight = np.concatenate([first.base, others.base]), np.zeros(len(others.weight))
    settings = first.bound, first.n_select, first.exact
    return Problem.of_uses(base, np.append(first.weight, weight), uses, *settings)


def without_prices(problem: Problem) -> Prices:
    """Prices at which goals cost nothing, and all objectives weigh the same."""
    n_objectives = len(problem.constant)
    return Prices(np.full(n_objectives, 1 / n_objectives), np.zeros(len(problem.bound)))


def _largest(tables: np.ndarray) -> np.ndarray:
    """Return the largest difference of two decisions' costs in some stratum, per table."""
    if not tables.size:
        return np.zeros(len(tables))
    return np.ptp(tables, axis=2).max(axis=1)
