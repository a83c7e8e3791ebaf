"""The best thresholds under constraints on hard rates, one for each group of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from skbandit.constrained._multiple_choice import ROUNDING, MultipleChoice, Options, minimise
from skbandit.constrained._threshold import best_threshold, cuts_between, head_sums, least_slack
from skbandit.constrained._tolerances import MET
from skbandit.rates._binding import (
    BoundConstraints,
    ConfidenceLimit,
    LinearFractionalForms,
    weight_rows,
)

TIGHTENED = 12
"""Rounds in which bounds are tightened until all confidence limits are inside them."""


@dataclass(frozen=True)
class GroupThresholds:
    """One cut per group: scores above it are positive.

    Attributes
    ----------
    cuts : ndarray of shape (G,)
        Midway between neighbouring scores of the group, 1/2 beyond the outermost.
    objective : float
        The hard objective there, lower is better; inf if undefined.
    slack : float
        The smallest slack of a hard rate, or of a confidence limit if these are given.
    gap : float
        No cuts that meet the constraints have an objective lower than ``objective - gap``: 0 if
        these are proven to be the best. nan if no cuts that meet the constraints were found
        although there may be some; inf if there are none.
    """

    cuts: np.ndarray
    objective: float
    slack: float
    gap: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return self.slack >= -MET


def best_group_thresholds(
    scores: np.ndarray,
    group: np.ndarray,
    objective: LinearFractionalForms,
    goals: BoundConstraints,
    preferred: float,
    limits: Sequence[ConfidenceLimit] = (),
) -> GroupThresholds:
    """Search all combinations of one cut per group for the best that meets the constraints.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows that the expressions are over.
    group : ndarray of int, shape (n,)
        Group of each row, from 0 to G - 1; each has rows.
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    goals : BoundConstraints
        The constraints.
    preferred : float
        Cut to which ties go, one group after the other.
    limits : sequence of ConfidenceLimit, default=()
        One per constraint, if confidence limits must be inside the bounds too.

    Returns
    -------
    GroupThresholds
        At least as good as the best single cut. If no cuts meet the constraints, those with the
        smallest miss, of a quotient N/D in units of N - tD.

    Notes
    -----
    Every sum over rows is a sum of one term per group, which depends on its cut alone: see
    `_multiple_choice`. Limits are not such sums. For them, bounds are tightened by the distances
    of limits from rates, until the limits at the best cuts are inside; then one cut at a time is
    moved to where the objective is best.
    """
    single = best_threshold(scores, objective, goals, preferred, limits)
    curves = _Curves.read(scores, group, objective, goals)
    start = curves.at_cut(single.cut)
    problem = curves.problem(goals.bound)
    if limits:
        return _within_limits(curves, problem, start, goals, limits, preferred)
    found = minimise(problem, start)
    options = _nearest(curves, problem, found.options, preferred)
    return curves.result(options, goals, found.lowest)


@dataclass(frozen=True)
class _Curves:
    """What each group contributes to every sum at each of its cuts."""

    scores: np.ndarray
    group: np.ndarray
    objective: LinearFractionalForms
    goals: BoundConstraints
    orders: tuple[np.ndarray, ...]
    cuts: tuple[np.ndarray, ...]
    heads: tuple[np.ndarray, ...]

    @classmethod
    def read(
        cls,
        scores: np.ndarray,
        group: np.ndarray,
        objective: LinearFractionalForms,
        goals: BoundConstraints,
    ) -> _Curves:
        orders, cuts, heads = [], [], []
        by_group = np.lexsort((-scores, group))
        starts = np.searchsorted(group[by_group], np.arange(group.max() + 2))
        for first, last in zip(starts[:-1], starts[1:], strict=True):
            order = by_group[first:last]
            at, above = cuts_between(scores[order])
            orders.append(order)
            cuts.append(at)
            heads.append(above)
        return cls(scores, group, objective, goals, tuple(orders), tuple(cuts), tuple(heads))

    def sums(self, rows: csr_array) -> list[np.ndarray]:
        """Sums of each row's coefficients above each cut of each group."""
        columns = csc_array(rows)
        return [
            head_sums(csr_array(columns[:, order]), np.arange(len(order)), heads)
            for order, heads in zip(self.orders, self.heads, strict=True)
        ]

    def problem(self, bound: np.ndarray) -> MultipleChoice:
        """The choice of one cut per group, with the goals' bounds at `bound`."""
        forms, objective, sign = self.goals.forms, self.objective, self.goals.sign
        signed, room = weight_rows(forms, bound + sign * MET, sign)
        rows, rooms = [signed], [room]
        for some in (forms, objective):  # a quotient is defined where its divisor is positive
            quotients = np.flatnonzero(np.diff(some.denominator.indptr))
            rows.append(-some.denominator[quotients])
            rooms.append(some.denominator_constant[quotients] - 3.0 * ROUNDING)
        every = csr_array(vstack(rows))
        numerators, denominators = self.sums(objective.numerator), self.sums(objective.denominator)
        touched = np.array(
            [np.bincount(self.group[every[[k]].indices], minlength=len(self.cuts))
             for k in range(every.shape[0])]
        ).reshape(every.shape[0], len(self.cuts))  # fmt: skip
        sets = []
        for g, uses in enumerate(self.sums(every)):
            own = np.flatnonzero(touched[:, g])
            sets.append(Options(numerators[g][0], denominators[g][0], own, uses[own]))
        constants = float(objective.numerator_constant[0]), float(objective.denominator_constant[0])
        return MultipleChoice(tuple(sets), *constants, np.concatenate(rooms))

    def at_cut(self, cut: float) -> np.ndarray:
        """The same cut for every group."""
        options = []
        for order, heads in zip(self.orders, self.heads, strict=True):
            above = int(np.sum(self.scores[order] > cut))
            options.append(int(np.searchsorted(heads, above)))
        return np.array(options)

    def positive(self, options: np.ndarray) -> np.ndarray:
        """Predictions 0.0 and 1.0 of shape (n,)."""
        found = np.zeros(len(self.scores))
        for order, heads, j in zip(self.orders, self.heads, options, strict=True):
            found[order[: heads[j]]] = 1.0
        return found

    def result(
        self,
        options: np.ndarray,
        goals: BoundConstraints,
        lowest: float,
        limits: Sequence[ConfidenceLimit] = (),
    ) -> GroupThresholds:
        """Measure a choice; `lowest` is the smallest objective that any other may have."""
        positive = self.positive(options)
        value = float(self.objective.values(positive)[0])
        value = np.inf if np.isnan(value) else value
        slack = float(least_slack(goals, goals.forms.values(positive)[:, None])[0])
        if limits and slack >= -MET:
            at = np.array([limit.at(positive) for limit in limits])
            slack = float(least_slack(goals, at[:, None])[0])
        cuts = np.array([at[j] for at, j in zip(self.cuts, options, strict=True)])
        if slack < -MET:
            gap = np.inf if lowest == np.inf else np.nan
        else:
            gap = value - lowest
            gap = 0.0 if gap <= 2.0 * MET else gap
        return GroupThresholds(cuts, value, slack, float(gap))


def _nearest(
    curves: _Curves, problem: MultipleChoice, options: np.ndarray, preferred: float
) -> np.ndarray:
    """Among choices as good, move one cut after the other towards `preferred`."""
    options = options.copy()
    worst = max(problem.excess(options), 0.0) + ROUNDING
    best = problem.value(options) + MET
    for g, one in enumerate(problem.sets):
        others = problem.used(options)
        others[one.rows] -= one.uses[:, options[g]]
        over = (one.uses + (others - problem.bound)[one.rows][:, None]).max(axis=0, initial=-np.inf)
        above, below = problem.numerator, problem.denominator
        for h, other in enumerate(problem.sets):
            at = slice(None) if h == g else slice(options[h], options[h] + 1)
            above, below = above + other.numerator[at], below + other.denominator[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(below > ROUNDING, above / below, np.inf)
        equal = np.flatnonzero((over <= worst) & (value <= best))
        if len(equal):
            options[g] = equal[np.argmin(np.abs(curves.cuts[g][equal] - preferred))]
    return options


def _within_limits(
    curves: _Curves,
    problem: MultipleChoice,
    start: np.ndarray,
    goals: BoundConstraints,
    limits: Sequence[ConfidenceLimit],
    preferred: float,
) -> GroupThresholds:
    """The best choice found whose confidence limits are inside the bounds."""
    first = minimise(problem, start)
    found = [start, first.options]
    margin = np.zeros(len(goals.bound))
    for _ in range(TIGHTENED):
        positive = curves.positive(found[-1])
        at = np.array([limit.at(positive) for limit in limits])
        measured = goals.sign * (at - goals.forms.values(positive))
        if least_slack(goals, at[:, None])[0] >= -MET:
            break
        margin = np.maximum(margin, np.where(np.isfinite(measured), measured, margin))
        tight = curves.problem(goals.bound - goals.sign * margin)
        found.append(minimise(tight, start).options)
    results = [curves.result(options, goals, first.lowest, limits) for options in found]
    inside = [place for place, one in enumerate(results) if one.feasible]
    if not inside:
        least = max(range(len(results)), key=lambda place: results[place].slack)
        return replace(results[least], gap=np.inf if first.lowest == np.inf else np.nan)
    best = min(inside, key=lambda place: (results[place].objective, -place))
    options = _polished(curves, found[best], goals, limits, preferred)
    return curves.result(options, goals, first.lowest, limits)


def _polished(
    curves: _Curves,
    options: np.ndarray,
    goals: BoundConstraints,
    limits: Sequence[ConfidenceLimit],
    preferred: float,
) -> np.ndarray:
    """Move one cut at a time to its best place, given the others, limits included."""
    options = options.copy()
    forms = [curves.objective, goals.forms]
    tables = [(curves.sums(some.numerator), curves.sums(some.denominator)) for some in forms]
    counted = [curves.sums(limit.rows) for limit in limits]

    def along(parts: list[np.ndarray], g: int) -> np.ndarray:
        """Sums with group g at each of its cuts and the others at theirs."""
        others = [part[:, [j]] for part, j in zip(parts, options, strict=True)]
        return sum(other for h, other in enumerate(others) if h != g) + parts[g]

    for _ in range(10):
        before = options.copy()
        for g, cuts in enumerate(curves.cuts):
            values = []
            for some, (above, below) in zip(forms, tables, strict=True):
                n = along(above, g) + some.numerator_constant[:, None]
                d = along(below, g) + some.denominator_constant[:, None]
                values.append(some.quotients(n, d))
            objective = np.where(np.isnan(values[0][0]), np.inf, values[0][0])
            inside = np.flatnonzero(least_slack(goals, values[1]) >= -MET)
            ends = [
                limit.of_sums(along(parts, g)[:, inside])
                for limit, parts in zip(limits, counted, strict=True)
            ]
            inside = inside[least_slack(goals, np.stack(ends)) >= -MET]
            if not len(inside):
                continue
            equal = inside[objective[inside] <= objective[inside].min() + MET]
            if objective[equal].min() < objective[options[g]] - MET:
                options[g] = equal[np.argmin(np.abs(cuts[equal] - preferred))]
        if (options == before).all():
            break
    return options
