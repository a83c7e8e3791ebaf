"""The dual of decisions that have costs of their own and use resources: budgets, shares, parity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from skbandit.prices._dual import Prices, without_prices


@dataclass(frozen=True)
class Use:
    """What decisions use of a resource: row i uses ``rate[i] * has[i] * amount[j]`` for decision j.

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
        """What amounts are multiplied by in each row, shape (N,)."""
        return self.rate if self.has is None else self.rate * self.has

    def add_to(self, table: np.ndarray, coefficient: float) -> None:
        """Add uses to those of a table (N, D)."""
        times = coefficient * self.times
        if self.amount.ndim == 2:
            table += times[:, None] * self.amount
            return
        for j in np.flatnonzero(self.amount):
            table[:, j] += times * self.amount[j]

    def taken(self, share: np.ndarray) -> np.ndarray:
        """Amounts that rows use at shares of decisions (N, D), shape (N,)."""
        if self.amount.ndim == 2:
            return np.einsum("ij,ij->i", self.amount, share)
        at = np.flatnonzero(self.amount)
        amounts = share[:, at] @ self.amount[at]
        return amounts if self.has is None else amounts * self.has

    def rows(self, kept: np.ndarray) -> Use:
        """Some of the rows."""
        amount = self.amount if self.amount.ndim == 1 else self.amount[kept]
        return Use(self.rate[kept], amount, None if self.has is None else self.has[kept])


Sum = tuple[tuple[float, Use], ...]
"""A weighted sum of uses."""


@dataclass(frozen=True)
class Uses:
    """What m goals are on, in N rows; shared by problems that differ in costs and bounds only."""

    sums: tuple[Sum, ...]
    shape: tuple[int, int]

    def __iter__(self) -> Iterator[Sum]:
        return iter(self.sums)

    def __len__(self) -> int:
        return len(self.sums)

    def table(self, goal: Sum) -> np.ndarray:
        """What each decision uses, shape (N, D)."""
        uses = np.zeros(self.shape)
        for coefficient, use in goal:
            use.add_to(uses, coefficient)
        return uses

    @cached_property
    def by_stratum(self) -> tuple[np.ndarray, np.ndarray]:
        """Uses whose amounts are the same in all rows but for a factor, however many.

        The R distinct factors have shape (N, R), and what the goals use of each (m, R, D).
        """
        fixed = [
            (k, coefficient, use)
            for k, goal in enumerate(self)
            for coefficient, use in goal
            if use.amount.ndim == 1
        ]
        places: dict[bytes, int] = {}
        of_use = [places.setdefault(_digest(use.times), len(places)) for _, _, use in fixed]
        rates = np.zeros((self.shape[0], len(places)))
        amounts = np.zeros((len(self), len(places), self.shape[1]))
        for (k, coefficient, use), r in zip(fixed, of_use, strict=True):
            rates[:, r] = use.times
            amounts[k, r] += coefficient * use.amount
        return rates, amounts

    @cached_property
    def by_row(self) -> list[tuple[int, float, Use]]:
        """Uses whose amounts depend on the row, with the number of their goal."""
        return [
            (k, coefficient, use)
            for k, goal in enumerate(self)
            for coefficient, use in goal
            if use.amount.ndim == 2
        ]

    @cached_property
    def reach(self) -> np.ndarray:
        """The mean spread of a row's uses, among rows that count, shape (m,)."""
        spreads = np.zeros(len(self))
        for k, goal in enumerate(self):
            spread = np.ptp(self.table(goal), axis=1)
            spreads[k] = spread[spread > 0].mean() if (spread > 0).any() else 0.0
        return spreads

    def rows(self, kept: np.ndarray) -> Uses:
        """In some of the rows."""
        sums = tuple(tuple((c, use.rows(kept)) for c, use in goal) for goal in self)
        return Uses(sums, (len(kept), self.shape[1]))

    def subset(self, kept: np.ndarray) -> Uses:
        """Some of the goals."""
        return replace(
            self, sums=tuple(goal for goal, keep in zip(self, kept, strict=True) if keep)
        )


@dataclass(frozen=True)
class ActionProblem:
    """Costs of decisions for N rows, and goals on what decisions use: a `Problem`.

    Goal k is ``sum_i w_i sum of coefficient * use <= bound``.

    Attributes
    ----------
    base : ndarray of shape (N, D)
        Cost of each decision; inf if it is not available.
    weight : ndarray of shape (N,)
        Of sum 1.
    goals : Uses
    bound : ndarray of shape (m,)
    n_select : int
        Number of decisions per row.
    exact : ndarray of bool, shape (m,), or None
        Goals that allow a row no more than its least use: other decisions are barred.
    """

    base: np.ndarray
    weight: np.ndarray
    goals: Uses
    bound: np.ndarray
    n_select: int = 1
    exact: np.ndarray | None = None

    @property
    def constant(self) -> np.ndarray:
        """None."""
        return np.zeros(1)

    @cached_property
    def unit(self) -> float:
        """The mean spread of a row's costs."""
        finite = np.isfinite(self.base)
        costs = np.where(finite, self.base, np.nan)
        with np.errstate(invalid="ignore"):
            spread = np.nanmax(costs, axis=1) - np.nanmin(costs, axis=1)
        return float(self.weight @ spread)

    @property
    def reach(self) -> np.ndarray:
        """The mean spread of a row's uses, among rows that count, shape (m,)."""
        return self.goals.reach

    @property
    def is_ratio(self) -> np.ndarray:
        """No goal is."""
        return np.zeros(len(self.bound), dtype=bool)

    @property
    def range_of_largest(self) -> np.ndarray:
        """Not needed for one objective."""
        return np.zeros(2)

    def mean_uses(self, goal: Sum) -> np.ndarray:
        """What each decision would use of a goal if all rows took it, in size, shape (D,)."""
        return np.asarray(self.weight @ np.abs(self.goals.table(goal)))

    def row_costs(self, prices: Prices) -> np.ndarray:
        """Cost of each decision with multipliers for what it uses, shape (N, D)."""
        rates, amounts = self.goals.by_stratum
        costs = self.base + rates @ np.tensordot(prices.goals, amounts, 1)
        for k, coefficient, use in self.goals.by_row:
            if prices.goals[k] != 0:
                costs += (prices.goals[k] * coefficient * use.rate)[:, None] * use.amount
        return costs

    def sums(self, share: np.ndarray) -> np.ndarray:
        """The objective and the m goals at shares of decisions (N, D)."""
        costs = np.where(np.isfinite(self.base), self.base, 0.0)
        return np.append(self.weight @ (costs * share).sum(axis=1), self.used(share))

    def used(self, share: np.ndarray) -> np.ndarray:
        """The m goals at shares of decisions (N, D)."""
        rates, amounts = self.goals.by_stratum
        weighted = share * self.weight[:, None]
        totals = np.tensordot(amounts, rates.T @ weighted, 2)
        for k, coefficient, use in self.goals.by_row:
            totals[k] += coefficient * (use.rate @ use.taken(weighted))
        return totals

    def decision_costs(self, prices: Prices) -> np.ndarray:
        """The same, beyond all others for barred decisions, which are a row's last resort."""
        costs = self.row_costs(prices)
        if self.exact is None or not self.exact.any():
            return costs
        barred = np.zeros(costs.shape, dtype=bool)
        for k in np.flatnonzero(self.exact):
            uses = self.goals.table(self.goals.sums[k])
            barred |= uses > uses.min(axis=1, keepdims=True)
        finite = costs[np.isfinite(costs)]
        return costs + np.where(barred, 1.0 + np.ptp(finite), 0.0)

    def decide(self, prices: Prices) -> np.ndarray:
        """Which decisions have the lowest costs, bool of shape (N, D)."""
        return lowest_entries(self.decision_costs(prices), self.n_select)

    def unconstrained(self) -> np.ndarray:
        """Decisions without goals."""
        return lowest_entries(self.row_costs(without_prices(self)), self.n_select)

    def costs(self, prices: Prices) -> np.ndarray:
        """The multipliers."""
        return prices.goals

    def excess(self, decided: np.ndarray) -> np.ndarray:
        """Excess of each goal over its bound."""
        return self.used(decided) - self.bound

    def tightened(self, by: np.ndarray) -> ActionProblem:
        """The bounds moved inwards."""
        return replace(self, bound=self.bound - by)

    def rows(self, kept: np.ndarray) -> ActionProblem:
        """Some of the rows stand for all."""
        weight = self.weight[kept]
        goals = self.goals.rows(kept)
        return replace(self, base=self.base[kept], weight=weight / weight.sum(), goals=goals)

    def with_objective(self, tables: np.ndarray, constant: np.ndarray) -> ActionProblem:
        """The same goals with other costs."""
        return replace(self, base=tables)

    def with_goals(self, kept: np.ndarray) -> ActionProblem:
        """Some of the goals."""
        exact = None if self.exact is None else self.exact[kept]
        return replace(self, goals=self.goals.subset(kept), bound=self.bound[kept], exact=exact)

    def free(self) -> ActionProblem:
        """The same goals without costs."""
        return replace(self, base=np.where(np.isfinite(self.base), 0.0, np.inf))

    def minimizing(self, k: int) -> ActionProblem:
        """Goal k in the place of the costs, under the others."""
        base = np.where(np.isfinite(self.base), self.goals.table(self.goals.sums[k]), np.inf)
        return replace(self.with_goals(np.arange(len(self.bound)) != k), base=base)


def _digest(values: np.ndarray) -> bytes:
    """The same for equal values only."""
    return blake2b(np.ascontiguousarray(values).data).digest()


def lowest_entries(cost: np.ndarray, n_select: int) -> np.ndarray:
    """Which entries are the lowest of each row, the first among equals; bool."""
    chosen = np.zeros(cost.shape, dtype=bool)
    at = (
        np.argsort(cost, axis=1, kind="stable")[:, :n_select]
        if n_select > 1
        else (cost.argmin(axis=1)[:, None])
    )
    np.put_along_axis(chosen, at, True, axis=1)
    return chosen


def stacked(first: ActionProblem, others: ActionProblem) -> ActionProblem:
    """Other rows below the first, which alone have weight."""

    def wide(use: Use) -> np.ndarray:
        return np.broadcast_to(use.amount, (len(use.rate), use.amount.shape[-1]))

    def both(use: Use, other: Use) -> Use:
        amount = use.amount
        if use.amount.ndim > 1 or other.amount.ndim > 1:
            amount = np.concatenate([wide(use), wide(other)])
        has = None
        if use.has is not None and other.has is not None:
            has = np.append(use.has, other.has)
        return Use(np.append(use.rate, other.rate), amount, has)

    sums = tuple(
        tuple((c, both(use, other)) for (c, use), (_, other) in zip(mine, theirs, strict=True))
        for mine, theirs in zip(first.goals, others.goals, strict=True)
    )
    base = np.concatenate([first.base, others.base])
    weight = np.append(first.weight, np.zeros(len(others.weight)))
    return replace(first, base=base, weight=weight, goals=Uses(sums, base.shape))
