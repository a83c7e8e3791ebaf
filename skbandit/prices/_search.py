"""Rules of least cost, searched where their goals are measured.

A rule decides ``argmin_j (phi_i L)_j`` for row i, by its probabilities phi_i of strata and costs
``L = sum_p theta_p B_p`` of strata and decisions. The tables B are those of the objectives, of the
goals, whose coefficients may not be negative, and free ones: the divisor of a ratio, and a constant
cost of each decision. Rows whose outcomes are known tell what decisions d attain:

    S_q(d) = c_q + sum_i w_i A_q[kind_i, d_i],                                                 (1)

where rows of one kind count alike. The objective v(S) and the excess e_k(S) of each goal over its
bound are any functions of these sums; probabilities may be wrong without misleading them.

**Exact lines.** Along theta + s delta the cost of each decision is linear in s, and that of the
best one the lower envelope of D lines. Between its breakpoints nothing changes, so that with those
of all rows sorted, S(s) is a running sum, and any function of S is minimized exactly over the line.
A long line is evaluated at evenly spaced breakpoints first, then at all those around the best one.

**Merit.** Descent by goals first ends in corners where two goals bind. Lines therefore minimize the
augmented Lagrangian of what is measured (Hestenes 1969; Powell 1969),

    M(theta) = v + rho/2 sum_k max(0, mu_k/rho + e_k)^2,                                       (2)

one coefficient after the other, and once per round along minus its gradient, for which decisions
are softened; then mu_k becomes max(0, mu_k + rho e_k). Sums of decisions are not convex in theta,
so rounds begin at several rules, and from random changes of the best one its coefficients are
searched again. Every line also reports its best point by goals, then objective.

**All tables.** Where probabilities mislead, no prices may meet the goals, and other tables of costs
do. `every_table` gives each entry a coefficient of its own: more rules than prices have, so more
that suit these rows alone. They are for goals that are missed otherwise, and not for ratios, which
are best where a class is named for a few lucky rows.

**What holds.** The result is never worse, on these rows, than any rule that was looked at: all
starts, every constant decision, and each point of each line. It need not be the best of all rules.
That no decisions whatever meet the goals is proven by `prove_conflict`, or not said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from skbandit.utils._validation import ROUNDING

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Takes sums (S, C) of C rules; returns their objectives (C,) and excesses (m, C)."""

Evaluated = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Steps of points of a line, their objectives and their excesses."""

SOFTENED = (0.3, 0.1, 0.03)
"""Shares of rows whose two lowest costs are nearer than the softening, one per round in turn."""

PENALTY, PENALTY_GROWTH, RESTARTS = 3.0, 1.5, (4.0, 0.3, 1.0)
"""rho in units of the objective's costs, its growth per round while goals are missed, and factors
of it at which the search starts again from the best rule."""

FIRST_ROUNDS, MORE_ROUNDS, LAST_ROUNDS, LAST_STARTS = 2, 4, 3, 2
"""Rounds from each start, from the best of them, and on all rows from so many of the best."""

EXTRA_TURNS = 3
"""Turns of as many rounds on all rows while goals are missed."""

MUCH_MISSED = 0.1
"""Sum of excesses on few rows above which the rule is searched no further on all rows."""

PERTURBED, SPREADS, FEWEST_MOST_RESTARTS, RESTART_WORK = 0.4, (0.3, 1.0), (3, 18), 3e5
"""Share of the best rule's coefficients that are changed at random, and by how much, before each is
searched again; how often at least and at most, and coefficients of rows for which this is."""

RESTART_TURNS, WORTHWHILE = 3, 1e-3
"""Factor of restarts while changes gain this part of a row's cost, or of the violation."""

LINES, FEWEST_LINES = 0.34, 4
"""Share of the coefficients that a round moves alone, those of the largest gradient, and fewest."""

MOST_ROWS, FEWEST_ROWS, MOST_COSTS = 2000, 1000, 30_000
"""Rows that represent all while the search begins, of several decisions fewer, but not below."""

MOST_SUMS = 3e7
"""Numbers of running sums on all rows beyond which rules are compared there, not moved."""

LARGE_TABLE = 200_000
"""Numbers that rows add to sums from which on the best rule alone is moved on all rows."""

EVALUATED_AT_ONCE = 2048
"""Points of a line that are evaluated at once: their sums stay in the processor's cache."""

MOST_EVALUATED, SPREAD_POINTS = 200_000, 256
"""Number of sums at all points of a line above which it is evaluated in two passes, and number of
points of the first pass, which are evenly spaced."""

UNDEFINED, HIGHEST = 1e3, 1e3
"""Excess where a value is undefined, and objective that stands for any higher one."""

DENSE, LEAST_ZEROS = 1_000_000, 0.5
"""Entries of tables up to which those that are 0 are kept, too, and their share from which on they
are left out of larger ones."""

MOST_SHARES = 50_000
"""Shares of kinds and decisions in the linear program of `prove_conflict`."""

SHORT_OF_END = 1e-9
"""Part of a line before a coefficient becomes 0 that is left out: if it is the only one, decisions
are all equal at the end, and change just before it by rounding."""


@dataclass(frozen=True)
class SparseTables:
    """Tables (Q, F, D) of which few entries are not 0, as the rows of a matrix."""

    flat: csr_array
    shape: tuple[int, int, int]


Tables = np.ndarray | SparseTables
"""Q tables of shape (F, D)."""


def stacked_tables(tables: Iterable[np.ndarray]) -> Tables:
    """Put tables (F, D) above each other, made one after the other if most entries are 0."""
    rows, shape = list[csr_array](), (0, 0)
    for table in tables:
        rows.append(csr_array(table.reshape(1, -1)))
        shape = table.shape
    flat, dense = vstack(rows, format="csr"), (len(rows), *shape)
    if np.prod(dense) <= DENSE or flat.nnz > (1.0 - LEAST_ZEROS) * np.prod(dense):
        return np.asarray(flat.toarray().reshape(dense))
    return SparseTables(flat, dense)


def _flat(tables: Tables) -> np.ndarray | csr_array:
    """Matrix with a table in each row."""
    return tables.reshape(len(tables), -1) if isinstance(tables, np.ndarray) else tables.flat


@dataclass(frozen=True)
class Outcomes:
    """What decisions attain on N rows: (1), and what follows from the sums.

    Attributes
    ----------
    kind : ndarray of int, shape (N,)
    table : Tables of shape (S, K, D)
        A: per unit of weight of rows of each kind.
    weight : ndarray of shape (N,)
    constant : ndarray of shape (S,)
    evaluate : Evaluate
    """

    kind: np.ndarray
    table: Tables
    weight: np.ndarray
    constant: np.ndarray
    evaluate: Evaluate

    def sums(self, decided: np.ndarray) -> np.ndarray:
        """S of decisions (N,), or of several per row (N, n_select)."""
        _, K, D = self.table.shape
        places = ((self.kind * D).reshape(-1, 1) + decided.reshape(len(decided), -1)).ravel()
        weight = np.repeat(self.weight, len(places) // max(len(decided), 1))
        places = np.bincount(places, weight, K * D)
        return np.asarray(_flat(self.table) @ places + self.constant)

    def rows(self, kept: np.ndarray, weight: np.ndarray) -> Outcomes:
        """Take some rows, with the weights of those that they represent."""
        return replace(self, kind=self.kind[kept], weight=weight)


@dataclass(frozen=True)
class Family:
    """The rules of tables B: see the module.

    Attributes
    ----------
    strata : ndarray or csr_array of shape (N, F)
        phi.
    tables : Tables of shape (P, F, D)
        B.
    free : ndarray of bool, shape (P,)
        Coefficients that may be negative.
    n_select : int
        Number of decisions per row, those of the lowest costs.
    """

    strata: np.ndarray | csr_array
    tables: Tables
    free: np.ndarray
    n_select: int = 1

    def costs(self, theta: np.ndarray) -> np.ndarray:
        """L, shape (F, D)."""
        return np.asarray(theta @ _flat(self.tables)).reshape(self.tables.shape[1:])

    @property
    def size(self) -> int:
        """Number of costs in a table."""
        return self.tables.shape[1] * self.tables.shape[2]

    def spread(self) -> np.ndarray:
        """Largest difference of costs of each table, by stratum, shape (P, F)."""
        if isinstance(self.tables, np.ndarray):
            return np.ptp(self.tables, axis=2)
        shape = self.tables.shape[1:]
        rows = (self.tables.flat[[p]].toarray().reshape(shape) for p in range(len(self.free)))
        return np.array([np.ptp(row, axis=1) for row in rows])

    def row_costs(self, theta: np.ndarray) -> np.ndarray:
        """Cost of each decision for each row, shape (N, D)."""
        return np.asarray(self.strata @ self.costs(theta))

    def decide(self, cost: np.ndarray) -> np.ndarray:
        """Return the decisions of the lowest costs, (N, n_select), or (N,) of one."""
        if self.n_select == 1:
            return np.asarray(cost.argmin(axis=1))
        return np.argsort(cost, axis=1, kind="stable")[:, : self.n_select]

    def rows(self, kept: np.ndarray) -> Family:
        """Return the rules of some rows."""
        return replace(self, strata=self.strata[kept])


@dataclass(frozen=True)
class Candidate:
    """A rule by its coefficients, and what it attains.

    Attributes
    ----------
    theta : ndarray of shape (P,)
    objective : float
    excess : ndarray of shape (m,)
    missed : float
        The sum of the excesses above 0.
    """

    theta: np.ndarray
    objective: float
    excess: np.ndarray
    missed: float

    @classmethod
    def of(cls, theta: np.ndarray, objective: np.ndarray, excess: np.ndarray, k: int) -> Candidate:
        """Take one of several points that were evaluated at once."""
        missed = float(np.maximum(excess[:, k] - ROUNDING, 0.0).sum())
        return cls(theta, float(objective[k]), excess[:, k], missed)

    def better_than(self, other: Candidate | None) -> bool:
        """Return whether goals are missed by less, or by the same at a lower objective."""
        if other is None or self.missed < other.missed - ROUNDING:
            return True
        return (
            self.missed <= other.missed + ROUNDING and self.objective < other.objective - ROUNDING
        )


@dataclass(frozen=True)
class Segment:
    """Points of a line, between which decisions change.

    Attributes
    ----------
    steps : ndarray of shape (C,)
    start : ndarray of shape (S,)
        Sums before any change.
    made : ndarray of int, shape (C,)
        How many of the M changes are made at each point.
    was, to : ndarray of int, shape (M,)
        Kind and decision of the row that changes, before and after, as one number.
    weight : ndarray of shape (M,)
    """

    steps: np.ndarray
    start: np.ndarray
    made: np.ndarray
    was: np.ndarray
    to: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Merit:
    """(2), of objectives (C,) and excesses (m, C)."""

    multipliers: np.ndarray
    rho: float
    inside: float

    def __call__(self, objective: np.ndarray, excess: np.ndarray) -> np.ndarray:
        """Lower is better; goals are pushed inside by what one row may move them."""
        over = self.multipliers[:, None] / self.rho + excess + self.inside
        over = np.clip(over, 0.0, 100.0)
        return np.minimum(objective, HIGHEST) + 0.5 * self.rho * (over**2).sum(axis=0)

    def of(self, point: Candidate) -> float:
        """Return the merit of one rule."""
        return float(self(np.array([point.objective]), point.excess[:, None])[0])

    def raised(self, point: Candidate) -> Merit:
        """Return the merit of the next round."""
        step = self.rho * np.clip(point.excess + self.inside, -1.0, 1.0)
        rho = self.rho * (PENALTY_GROWTH if point.missed > 0 else 1.0)
        return replace(self, multipliers=np.maximum(0.0, self.multipliers + step), rho=rho)


def _best(objective: np.ndarray, excess: np.ndarray) -> int:
    """Find the point that misses goals by least, of those alike the lowest objective."""
    missed = np.maximum(excess - ROUNDING, 0.0).sum(axis=0)
    least = np.flatnonzero(missed <= missed.min() + ROUNDING)
    return int(least[_first_lowest(objective[least])])


def _first_lowest(values: np.ndarray) -> int:
    """Find the first of the lowest values; equal ones differ by rounding."""
    return int(np.argmax(values <= values.min() + ROUNDING))


def with_objective(outcomes: Outcomes, objective: Callable[[np.ndarray], np.ndarray]) -> Outcomes:
    """Put the goals under another objective, a function of the sums (S, C)."""

    def evaluate(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return objective(sums), outcomes.evaluate(sums)[1]

    return replace(outcomes, evaluate=evaluate)


def minimizing(outcomes: Outcomes, members: np.ndarray, unit: np.ndarray) -> Outcomes:
    """Minimize the largest excess of some goals, in their units, under the others."""

    def evaluate(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        excess = outcomes.evaluate(sums)[1]
        largest = (excess[members] * unit[:, None]).max(axis=0)
        return largest, np.delete(excess, members, axis=0)

    return replace(outcomes, evaluate=evaluate)


class Search:
    """Lines and rounds over the rules of a family; `best` is the best rule of any of them."""

    def __init__(self, family: Family, outcomes: Outcomes) -> None:
        self.family, self.outcomes = family, outcomes
        self.best: Candidate | None = None
        size = np.asarray(family.strata @ family.spread().T).T @ outcomes.weight
        self.unit = 1.0 / np.where(size > 0, size, 1.0)  # a coefficient as large as B_p is 1
        added = _flat(outcomes.table)
        self._live = np.flatnonzero(np.asarray((added != 0).sum(axis=1)))
        live = added[self._live]
        self._changing = live.tocsc() if isinstance(live, csr_array) else np.ascontiguousarray(live)
        self._ranked: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def at(self, theta: np.ndarray) -> Candidate:
        """Return the rule of some coefficients."""
        decided = self.family.decide(self.family.row_costs(theta))
        evaluated = self.outcomes.evaluate(self.outcomes.sums(decided)[:, None])
        point = Candidate.of(theta, *evaluated, 0)
        if point.better_than(self.best):
            self.best = point
        return point

    def line(
        self, theta: np.ndarray, delta: np.ndarray, cost: np.ndarray, merit: Merit | None = None
    ) -> Candidate | None:
        """Return the best rule along a direction, by a merit, or else by goals, then objective.

        Parameters
        ----------
        theta, delta : ndarray of shape (P,)
        cost : ndarray of shape (N, D)
            Those of theta.
        merit : Merit or None

        Returns
        -------
        Candidate or None
            None if no decision changes along the line.
        """
        family, bounded = self.family, ~self.family.free
        with np.errstate(over="ignore"):  # inf is far enough
            ends = [
                (1.0 - SHORT_OF_END) * np.min(theta[falls] / np.abs(delta[falls]), initial=np.inf)
                for falls in (bounded & (delta > 0), bounded & (delta < 0))
            ]  # how far backward and forward no coefficient changes its sign
        move = family.costs(delta)
        columns = np.flatnonzero(np.abs(move).max(axis=0) > 0)
        if len(columns) == family.n_select == 1:
            slope = np.asarray(family.strata @ move[:, columns[0]])
            parts = self._one_decision(cost, int(columns[0]), slope, -ends[0], ends[1])
        else:
            slope = np.asarray(family.strata @ move)
            parts = self._all_decisions(cost, slope, -ends[0], ends[1])
        if not parts:
            return None
        seen = [points for part in parts for points in self._evaluated(part, merit)]
        steps, objective = (np.concatenate([points[k] for points in seen]) for k in (0, 1))
        excess = np.hstack([points[2] for points in seen])

        def point(k: int) -> Candidate:
            moved = theta + steps[k] * delta
            moved[bounded] = np.maximum(moved[bounded], 0.0)
            # where costs nearly cancel, decisions there may be others by rounding
            claimed = Candidate.of(moved, objective, excess, k)
            return self.at(moved) if claimed.better_than(self.best) else claimed

        first = point(_best(objective, excess))
        return first if merit is None else point(_first_lowest(merit(objective, excess)))

    def _evaluated(self, part: Segment, merit: Merit | None) -> list[Evaluated]:
        """All points; of a long line, evenly spaced points and those around the best of these."""
        n = len(part.steps)
        running = np.zeros((len(self._live), len(part.to) + 1))
        moved = running[:, 1:]
        if isinstance(self._changing, np.ndarray):
            moved[:] = self._changing.take(part.to, axis=1)
            moved -= self._changing.take(part.was, axis=1)
        else:
            moved[:] = (self._changing[:, part.to] - self._changing[:, part.was]).toarray()
        moved *= part.weight
        np.cumsum(moved, axis=1, out=moved)
        if n * len(self._live) <= MOST_EVALUATED:
            return self._evaluated_at(part, running, np.arange(n))
        spread = np.unique(np.linspace(0, n - 1, SPREAD_POINTS).astype(int))
        (evaluated,) = self._evaluated_at(part, running, spread)
        best = {_best(*evaluated[1:])} | (
            set() if merit is None else {_first_lowest(merit(*evaluated[1:]))}
        )
        near = [np.arange(spread[max(k - 1, 0)], spread[min(k + 1, len(spread) - 1)]) for k in best]
        return [
            evaluated,
            *(seen for points in near for seen in self._evaluated_at(part, running, points)),
        ]

    def _evaluated_at(
        self, part: Segment, running: np.ndarray, points: np.ndarray
    ) -> list[Evaluated]:
        """Evaluate some points, by what live sums have changed by after each change."""
        seen = []
        for first in range(0, len(points), EVALUATED_AT_ONCE):
            few = points[first : first + EVALUATED_AT_ONCE]
            sums = np.repeat(part.start[:, None], len(few), axis=1)
            sums[self._live] += running[:, part.made[few]]
            seen.append((part.steps[few], *self.outcomes.evaluate(sums)))
        return seen

    def _segment(
        self,
        start: np.ndarray,
        s: np.ndarray,
        rows: np.ndarray,
        was: np.ndarray,
        to: np.ndarray,
        end: float,
    ) -> Segment:
        """Points between breakpoints s of rows."""
        outcomes, D = self.outcomes, self.outcomes.table.shape[2]
        order = np.argsort(s, kind="stable")
        s, rows, base = s[order], rows[order], outcomes.kind[rows[order]] * D
        # rows with equal breakpoints move together
        last = np.append(s[1:] > s[:-1] + 1e-9 * (1.0 + np.abs(s[:-1])), True)
        made = np.flatnonzero(last) + 1
        s = s[last]
        after = np.append(s[1:], min(end, s[-1] + abs(s[-1]) + 1.0))
        steps, weight = 0.5 * (s + after), outcomes.weight[rows]
        return Segment(steps, start, made, base + was[order], base + to[order], weight)

    def _others(self, cost: np.ndarray, j: int) -> np.ndarray:
        """Return the decision of least cost besides j, of each row."""
        if self._ranked is None or self._ranked[0] is not cost:
            first, r = cost.argmin(axis=1), np.arange(len(cost))
            least = cost[r, first]
            cost[r, first] = np.inf
            self._ranked = cost, first, cost.argmin(axis=1)
            cost[r, first] = least
        _, first, second = self._ranked
        return np.where(first == j, second, first)

    def _one_decision(
        self, cost: np.ndarray, j: int, slope: np.ndarray, low: float, high: float
    ) -> list[Segment]:
        """Points in (low, high), where the cost of decision j alone moves."""
        other = self._others(cost, j)
        gap = cost[np.arange(len(cost)), other] - cost[:, j]
        moving = np.abs(slope) > ROUNDING
        place = np.divide(gap, slope, out=np.zeros_like(gap), where=moving)
        before = np.where(slope > 0, place > low, place <= low)  # decided as j at low
        tie = (gap == 0) & (j < other)
        decided = np.where(np.where(moving, before, (gap > 0) | tie), j, other)
        rows = np.flatnonzero(moving & (place > low) & (place < high))
        if not len(rows):
            return []
        place, falls = place[rows], slope[rows] < 0
        was, to = np.where(falls, other[rows], j), np.where(falls, j, other[rows])
        part = self._segment(self.outcomes.sums(decided), place, rows, was, to, high)
        first = float(place.min())
        before_first = 0.5 * (first + max(low, first - abs(first) - 1.0))
        steps, made = np.append(before_first, part.steps), np.append(0, part.made)
        return [replace(part, steps=steps, made=made)]

    def _all_decisions(
        self, cost: np.ndarray, slope: np.ndarray, low: float, high: float
    ) -> list[Segment]:
        """Points in (low, high): the lower envelopes, forward and backward."""
        start = self.outcomes.sums(self.family.decide(cost))
        rays = []
        for sign, end in ((1.0, high), (-1.0, -low)):
            ray = self._ray(start, cost, sign * slope, end) if end > 0 else None
            rays += [] if ray is None else [replace(ray, steps=sign * ray.steps)]
        return rays

    def _ray(
        self, start: np.ndarray, cost: np.ndarray, slope: np.ndarray, end: float
    ) -> Segment | None:
        """Points in (0, end), None if nothing changes there.

        The next change of a row is where a decision that is not taken becomes as cheap as one that
        is.
        """
        taken = self.family.decide(cost).reshape(len(cost), self.family.n_select)
        falls = np.take_along_axis(slope, taken, 1).max(axis=1) - slope.min(axis=1) > ROUNDING
        rows = np.flatnonzero(falls)
        c, slope, taken = cost[rows], slope[rows], taken[rows]
        parts = []
        while len(rows):
            r = np.arange(len(rows))
            s, place, to = _next_changes(c, slope, taken)
            was = taken[r, place]
            going = s < end
            parts.append((s[going], rows[going], was[going], to[going]))
            taken[r, place] = to
            rows, taken, c, slope = rows[going], taken[going], c[going], slope[going]
        if not sum(len(s) for s, *_ in parts):
            return None
        s, rows, was, to = (np.concatenate(part) for part in zip(*parts, strict=True))
        return self._segment(start, s, rows, was, to, end)

    def steepest(self, theta: np.ndarray, merit: Merit, share: float) -> np.ndarray:
        """Minus the merit's gradient in units of the coefficients, with softened decisions.

        Parameters
        ----------
        theta : ndarray of shape (P,)
        merit : Merit
        share : float
            See `SOFTENED`.
        """
        family, outcomes = self.family, self.outcomes
        cost = family.row_costs(theta)
        sums = outcomes.sums(cost.argmin(axis=1))
        # how the merit changes with each sum, by differences
        scale = 1e-6 * np.maximum(np.abs(sums), np.abs(outcomes.constant) + 1e-2)
        merits = merit(*outcomes.evaluate(np.column_stack([sums, sums[:, None] + np.diag(scale)])))
        per_sum = (merits[1:] - merits[0]) / scale
        value = (per_sum @ _flat(outcomes.table)).reshape(outcomes.table.shape[1:])  # (K, D)
        cost = cost - cost.min(axis=1, keepdims=True)
        gap = self._gap(cost)
        tau = max(float(np.quantile(gap, share)), 1e-9 * (1.0 + float(gap.max())))
        near = np.flatnonzero(gap < 6.0 * tau)
        pi = self._softened(cost[near], tau)
        gain = value[outcomes.kind[near]]
        gain = pi * (gain - (pi * gain).sum(axis=1, keepdims=True) / pi.sum(axis=1, keepdims=True))
        gain *= outcomes.weight[near, None]
        by_table = np.asarray(family.strata[near].T @ gain) / tau  # minus the gradient by L
        toward = np.asarray(_flat(family.tables) @ by_table.ravel())
        toward *= np.maximum(tau * self.unit, 0.3 * np.abs(theta)) ** 2
        toward[~family.free & (theta <= 0) & (toward < 0)] = 0.0
        return toward

    def _gap(self, cost: np.ndarray) -> np.ndarray:
        """How much cheaper the last decision taken is than the first that is not."""
        n = self.family.n_select
        ends = np.partition(cost, (n - 1, n), axis=1)
        return np.asarray(ends[:, n] - ends[:, n - 1])

    def _softened(self, cost: np.ndarray, tau: float) -> np.ndarray:
        """Shares of decisions near the margin; of one, those of a softmin of the costs."""
        n = self.family.n_select
        if n == 1:
            pi = np.exp(-cost / tau)
            return pi / pi.sum(axis=1, keepdims=True)
        ends = np.partition(cost, (n - 1, n), axis=1)
        from_margin = np.abs(cost - 0.5 * (ends[:, [n - 1]] + ends[:, [n]]))
        return 1.0 / (2.0 + 2.0 * np.cosh(np.minimum(from_margin / tau, 500.0)))

    def descend(self, point: Candidate, merit: Merit, rounds: int) -> tuple[Candidate, Merit]:
        """Minimize the merit for some rounds; its multipliers follow what is missed."""
        for r in range(rounds):
            before = point
            least, cost = merit.of(point), self.family.row_costs(point.theta)
            toward = self.steepest(point.theta, merit, SOFTENED[r % len(SOFTENED)])
            size = np.abs(toward / self.unit)
            size /= size.max() or 1.0
            promising = np.argsort(-np.round(size, 6), kind="stable")
            n_single = max(FEWEST_LINES, round(LINES * len(toward)))
            single = np.diag(self.unit)[promising[:n_single]]
            for delta in [toward, *single]:
                if not delta.any():
                    continue
                moved = self.line(point.theta, delta, cost, merit)
                if moved is not None and (now := merit.of(moved)) < least - 1e-9:
                    point, least, cost = moved, now, self.family.row_costs(moved.theta)
            merit = merit.raised(point)
            if point is before and point.missed == 0:
                break
        return point, merit

    def search_coordinates(self, point: Candidate) -> None:
        """Move each coefficient of a rule alone to the best point of its line."""
        cost = self.family.row_costs(point.theta)
        for delta in np.diag(self.unit):
            moved = self.line(point.theta, delta, cost)
            if moved is not None and moved.better_than(point):
                point, cost = moved, self.family.row_costs(moved.theta)

    def restart(self, worth: float) -> None:
        """Search from random changes of the best rule: lines end where single moves gain nothing.

        Parameters
        ----------
        worth : float
            What is to be gained for further changes.
        """
        assert self.best is not None
        random, free, unit = np.random.default_rng(0), self.family.free, self.unit
        fewest, most = FEWEST_MOST_RESTARTS
        count = int(RESTART_WORK / (len(self.outcomes.kind) * len(unit)))
        count = min(max(count, fewest), most)
        k, last = 0, count
        while k < min(last, RESTART_TURNS * count):
            before = self.best
            size = SPREADS[k % len(SPREADS)]
            noise = size * random.normal(size=len(unit)) * (random.random(len(unit)) < PERTURBED)
            scaled = np.maximum(before.theta, 0.02 * unit * (noise != 0)) * np.exp(noise)
            self.search_coordinates(
                self.at(np.where(free, before.theta + 0.1 * noise * unit, scaled))
            )
            less_missed = before.missed - self.best.missed
            if less_missed > WORTHWHILE or before.objective - self.best.objective > worth:
                last = k + 1 + count
            k += 1


def best_rule(
    family: Family, outcomes: Outcomes, starts: Sequence[np.ndarray], cost: float
) -> tuple[Candidate, np.ndarray]:
    """Find the best rule on the rows: the lowest objective among those that meet the goals.

    Parameters
    ----------
    family : Family
    outcomes : Outcomes
    starts : sequence of ndarray of shape (P,)
        Coefficients to begin at.
    cost : float
        A large cost of a row in the objective.

    Returns
    -------
    tuple of (Candidate, ndarray of shape (m,))
        The rule, and the multipliers of the measured goals; where none meets them, the rule that
        misses them by least.
    """
    family, outcomes = merged(family, outcomes)
    N, D = len(outcomes.kind), outcomes.table.shape[2]
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_COSTS // D))
    every = Search(family, outcomes)
    few = every
    if N > most:
        kept, weight = representatives(outcomes.kind, outcomes.weight, most)
        few = Search(family.rows(kept), outcomes.rows(kept, weight))
    m = len(outcomes.evaluate(outcomes.constant[:, None])[1])
    first = Merit(np.zeros(m), PENALTY * max(cost, ROUNDING), 0.5 / len(few.outcomes.kind))

    def rank(begun: tuple[Candidate, Merit]) -> float:
        return round(begun[0].missed * first.rho + min(begun[0].objective, HIGHEST), 9)

    begun = [few.descend(few.at(theta), first, FIRST_ROUNDS) for theta in starts]
    begun = sorted(begun, key=rank)
    # where goals are met, random changes of one rule gain more than others' rounds
    n_begun = max(len(begun) // 2, 2) if begun[0][0].missed > 0 else 1
    begun = sorted((few.descend(*pair, MORE_ROUNDS) for pair in begun[:n_begun]), key=rank)
    merit = begun[0][1]
    for factor in RESTARTS:
        before = few.best
        assert before is not None
        merit = few.descend(before, replace(merit, rho=factor * first.rho), MORE_ROUNDS)[1]
        few.search_coordinates(few.best or before)
        if few.best is before:
            break
    few.restart(WORTHWHILE * cost)
    assert few.best is not None
    if few is not every:
        is_far = few.best.missed > MUCH_MISSED
        merit = replace(merit, inside=0.5 / N)
        points = [every.at(theta) for theta in (few.best.theta, *starts)]
        if N * len(outcomes.constant) <= MOST_SUMS:
            n_starts = LAST_STARTS if np.prod(outcomes.table.shape) < LARGE_TABLE else 1
            for point in sorted(points, key=merit.of)[: 0 if is_far else n_starts]:
                merit = every.descend(point, merit, LAST_ROUNDS)[1]
            for turn in range(1 if is_far else 1 + EXTRA_TURNS):
                assert every.best is not None
                if turn and every.best.missed == 0:
                    break
                if turn:
                    merit = every.descend(every.best, merit, LAST_ROUNDS)[1]
                every.search_coordinates(every.best)
    for theta in -np.eye(len(family.free))[-D:][family.free[-D:]]:  # all rows are decided alike
        every.at(theta)
    assert every.best is not None
    return every.best, merit.multipliers


def _next_changes(
    cost: np.ndarray, slope: np.ndarray, taken: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the steps (n,) to the next change of each row, which decision leaves, and what comes.

    Costs and slopes are of shape (n, D), decisions that are taken of shape (n, k).
    """
    (n, D), k = cost.shape, taken.shape[1]
    r = np.arange(n)
    if k == 1:
        at = r * D + taken[:, 0]
        fall = slope.take(at)[:, None] - slope
        gap = cost - cost.take(at)[:, None]
    else:
        fall = np.take_along_axis(slope, taken, 1)[:, :, None] - slope[:, None, :]
        gap = cost[:, None, :] - np.take_along_axis(cost, taken, 1)[:, :, None]
        fall[r[:, None, None], np.arange(k)[:, None], taken[:, None, :]] = 0.0
    s = np.full(fall.shape, np.inf)
    np.divide(gap, fall, out=s, where=fall > ROUNDING)
    s = s.reshape(n, k * D)
    pair = s.argmin(axis=1)
    return s.take(r * (k * D) + pair), pair // D, pair % D


def every_table(family: Family) -> Family:
    """All tables of costs as a family: each entry has a coefficient, before those of the family."""
    assert isinstance(family.tables, np.ndarray)
    F, D = family.tables.shape[1:]
    tables = np.concatenate([np.eye(F * D).reshape(-1, F, D), family.tables])
    free = np.concatenate([np.ones(F * D, dtype=bool), family.free])
    return replace(family, tables=tables, free=free)


def merged(family: Family, outcomes: Outcomes) -> tuple[Family, Outcomes]:
    """Equal rows as one, with the sum of their weights; rows without weight left out."""
    F = family.strata.shape[1]
    marks = np.asarray(family.strata @ np.random.default_rng(0).random((F, 2)))
    marks = np.column_stack([outcomes.kind, marks])[outcomes.weight > 0]
    _, first, number = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(number.ravel(), outcomes.weight[outcomes.weight > 0])
    kept = np.flatnonzero(outcomes.weight > 0)[first]
    return family.rows(kept), outcomes.rows(kept, weight)


def representatives(
    kind: np.ndarray, weight: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """About `most` rows and their weights: of each kind at most so many, evenly, with its weight.

    Rare kinds are complete.
    """
    counts = np.bincount(kind)
    if (counts > 0).sum() > most:  # each row is of its own kind
        kept = np.linspace(0, len(kind) - 1, most).astype(int)
        return kept, weight[kept] * (weight.sum() / weight[kept].sum())
    low, high = 1, len(kind)
    while high - low > 1:
        middle = (low + high) // 2
        few = np.minimum(counts, middle).sum() <= most
        low, high = (middle, high) if few else (low, middle)
    order = np.argsort(kind, kind="stable")
    chosen, weights = [], []
    for rows in np.split(order, np.cumsum(counts)[:-1]):
        if len(rows):
            kept = rows[np.linspace(0, len(rows) - 1, min(len(rows), low)).astype(int)]
            total = weight[kept].sum()
            chosen.append(kept)
            weights.append(weight[kept] * (weight[rows].sum() / total if total > 0 else 0.0))
    kept, weights_kept = np.concatenate(chosen), np.concatenate(weights)
    order = np.argsort(kept)
    return kept[order], weights_kept[order]


def prove_conflict(
    kind: np.ndarray, weight: np.ndarray, table: np.ndarray, limit: np.ndarray
) -> bool:
    """Return whether no decisions whatever meet linear goals, even if every outcome were known.

    Parameters
    ----------
    kind : ndarray of int, shape (N,)
    weight : ndarray of shape (N,)
    table : ndarray of shape (m, K, D)
        What a row of each kind adds to each goal, per unit of weight.
    limit : ndarray of shape (m,)
        What the sums may be at most.

    Returns
    -------
    bool
        True is a proof: rows of a kind count alike, so that all decisions, randomized ones too, are
        shares of decisions by kind. False says nothing.
    """
    m, K, D = table.shape
    if not m or K * D > MOST_SHARES:
        return False
    total = np.bincount(kind, weight, K)
    rows = np.repeat(np.arange(K), D)
    of_kind = csr_array((np.ones(K * D), (rows, np.arange(K * D))), shape=(K, K * D))
    scale = np.maximum(np.abs(table * total[:, None]).reshape(m, -1).sum(axis=1), ROUNDING)
    amounts = (table * total[:, None]).reshape(m, -1) / scale[:, None]
    slack = limit / scale + 1e-9
    result = linprog(np.zeros(K * D), amounts, slack, of_kind, np.ones(K), method="highs")
    return bool(result.status == 2)
