"""The best rule on given scores under constraints on hard rates: thresholds, one per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained._tolerances import RATE_TOL
from skbandit.constrained.thresholds._candidates import (
    ThresholdSearch,
    best_threshold,
    descending_in_groups,
    least_slack,
    sums_of_first,
    sums_of_first_in_groups,
    thresholds_between,
)
from skbandit.constrained.thresholds._limits import Limits, SeparateLimits, SharedRisk
from skbandit.constrained.thresholds._multiple_choice import (
    ROUNDING,
    Choice,
    MultipleChoice,
    Options,
    minimize,
)
from skbandit.rates._forms import BoundConstraints, LinearFractionalForms, weight_rows

TIGHTENED, STRICTER = 12, 1.15
"""Rounds of tightening bounds until all limits are inside, and the factor of each on the last.

The first tightens by the distances of limits from rates; several binding constraints share the
allowed error and take more.
"""

TIGHT_BOXES = 20
"""Boxes of each of these rounds, which need not be exact: the last step moves one threshold."""

SWEEPS = 10
"""Rounds at most of moving one threshold after the other."""


@dataclass(frozen=True)
class GroupThresholds:
    """One threshold per group: scores above it are positive.

    Attributes
    ----------
    thresholds : ndarray of shape (G,)
        Midway between neighboring scores of the group, 1/2 beyond the outermost.
    objective : float
        The hard objective there, lower is better; inf if undefined.
    slack : float
        The smallest slack of a hard rate; where limits are given and the rates are inside, the
        slack of the limits, in their unit.
    gap : float
        No thresholds that meet the constraints have an objective lower than ``objective - gap``: 0
        if these are proven to be the best. nan if no thresholds that meet the constraints were
        found although there may be some; inf if there are none.
    """

    thresholds: np.ndarray
    objective: float
    slack: float
    gap: float

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return self.slack >= -RATE_TOL


def best_group_thresholds(
    scores: np.ndarray,
    group: np.ndarray,
    objective: LinearFractionalForms,
    goals: BoundConstraints,
    preferred: float,
    limits: Limits | None = None,
) -> GroupThresholds:
    """Search all combinations of one threshold per group for the best that meets the constraints.

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
        Threshold nearest to which ties are broken, one group after the other.
    limits : Limits or None
        Confidence limits that must be inside the bounds too.

    Returns
    -------
    GroupThresholds
        At least as good as the best single threshold. If no thresholds meet the constraints, those
        with the smallest miss, of a quotient N/D in units of N - tD.

    Notes
    -----
    Every sum over rows is a sum of one term per group, which depends on its threshold alone: see
    `_branch_and_bound`. Limits are not such sums. For them, bounds are tightened by the distances
    of limits from rates, until the limits at the best thresholds are inside; then one threshold at
    a time is moved to where the objective is best.
    """
    curves = _Curves.read(scores, group, objective, goals)
    problem = curves.problem(goals.bound)
    single = best_threshold(scores, objective, goals, preferred)
    found = minimize(problem, curves.at_threshold(single.value))
    if limits is None or found.excess > ROUNDING:
        options = _nearest(curves, problem, found.options, preferred)
        return curves.result(options, goals, found.lowest)
    return _within_limits(curves, found, goals, limits, preferred)


@dataclass(frozen=True)
class _Curves:
    """The contribution of each group to every sum at each of its thresholds."""

    scores: np.ndarray
    group: np.ndarray
    objective: LinearFractionalForms
    goals: BoundConstraints
    orders: tuple[np.ndarray, ...]
    thresholds: tuple[np.ndarray, ...]
    n_positive: tuple[np.ndarray, ...]

    @classmethod
    def read(
        cls,
        scores: np.ndarray,
        group: np.ndarray,
        objective: LinearFractionalForms,
        goals: BoundConstraints,
    ) -> _Curves:
        orders = descending_in_groups(scores, group)
        thresholds, n_positive = zip(
            *(thresholds_between(scores[order]) for order in orders), strict=True
        )
        return cls(scores, group, objective, goals, tuple(orders), thresholds, n_positive)

    def sums(self, rows: csr_array) -> list[np.ndarray]:
        """Sums of each row's coefficients above each threshold of each group."""
        return sums_of_first_in_groups(rows, self.orders, self.n_positive)

    def problem(self, bound: np.ndarray) -> MultipleChoice:
        """The choice of one threshold per group, with the goals' bounds at `bound`."""
        forms, objective, sign = self.goals.forms, self.objective, self.goals.sign
        signed, room = weight_rows(forms, bound + sign * RATE_TOL, sign)
        rows, rooms = [signed], [room]
        for some in (forms, objective):  # a quotient is defined where its divisor is positive
            quotients = np.flatnonzero(np.diff(some.denominator.indptr))
            rows.append(-some.denominator[quotients])
            rooms.append(some.denominator_constant[quotients] - 3.0 * ROUNDING)
        every = csr_array(vstack(rows))
        numerators, denominators = self.sums(objective.numerator), self.sums(objective.denominator)
        touched = np.array(
            [np.bincount(self.group[every[[k]].indices], minlength=len(self.thresholds))
             for k in range(every.shape[0])]
        ).reshape(every.shape[0], len(self.thresholds))  # fmt: skip
        sets = []
        for g, uses in enumerate(self.sums(every)):
            own = np.flatnonzero(touched[:, g])
            sets.append(Options(numerators[g][0], denominators[g][0], own, uses[own]))
        constants = float(objective.numerator_constant[0]), float(objective.denominator_constant[0])
        return MultipleChoice(tuple(sets), *constants, np.concatenate(rooms))

    def at_threshold(self, threshold: float) -> np.ndarray:
        """The same threshold for every group."""
        options = []
        for order, n_positive in zip(self.orders, self.n_positive, strict=True):
            above = int(np.sum(self.scores[order] > threshold))
            options.append(int(np.searchsorted(n_positive, above)))
        return np.array(options)

    def positive(self, options: np.ndarray) -> np.ndarray:
        """Predictions 0.0 and 1.0 of shape (n,)."""
        found = np.zeros(len(self.scores))
        for order, n_positive, j in zip(self.orders, self.n_positive, options, strict=True):
            found[order[: n_positive[j]]] = 1.0
        return found

    def result(
        self,
        options: np.ndarray,
        goals: BoundConstraints,
        lowest: float,
        limits: Limits | None = None,
    ) -> GroupThresholds:
        """Measure a choice; `lowest` is the smallest objective that any other may have."""
        positive = self.positive(options)
        value = float(self.objective.values(positive)[0])
        value = np.inf if np.isnan(value) else value
        slack = float(least_slack(goals, goals.forms.values(positive)[:, None])[0])
        if limits is not None and slack >= -RATE_TOL:
            slack = float(limits.slack((limits.rows @ positive)[:, None])[0])
        thresholds = np.array([at[j] for at, j in zip(self.thresholds, options, strict=True)])
        if slack < -RATE_TOL:
            gap = np.inf if lowest == np.inf else np.nan
        else:
            gap = value - lowest
            gap = 0.0 if gap <= 2.0 * RATE_TOL else gap
        return GroupThresholds(thresholds, value, slack, float(gap))


def _nearest(
    curves: _Curves, problem: MultipleChoice, options: np.ndarray, preferred: float
) -> np.ndarray:
    """Among choices as good, move one threshold after the other toward `preferred`."""
    options = options.copy()
    worst = max(problem.excess(options), 0.0) + ROUNDING
    best = problem.value(options) + RATE_TOL
    for g, one in enumerate(problem.sets):
        others = problem.used(options)
        others[one.rows] -= one.uses[:, options[g]]
        over = (one.uses + (others - problem.bound)[one.rows][:, None]).max(axis=0, initial=-np.inf)
        above, below = np.array(problem.numerator), np.array(problem.denominator)
        for h, other in enumerate(problem.sets):
            at = slice(None) if h == g else slice(options[h], options[h] + 1)
            above, below = above + other.numerator[at], below + other.denominator[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(below > ROUNDING, above / below, np.inf)
        equal = np.flatnonzero((over <= worst) & (value <= best))
        if len(equal):
            options[g] = equal[np.argmin(np.abs(curves.thresholds[g][equal] - preferred))]
    return options


def _within_limits(
    curves: _Curves, best: Choice, goals: BoundConstraints, limits: Limits, preferred: float
) -> GroupThresholds:
    """The best choice found whose confidence limits are inside the bounds."""
    found = [best.options, curves.at_threshold(_single_within(curves, goals, limits))]
    factor, options = 1.0, best.options
    for _ in range(TIGHTENED):
        margin = limits.margins(curves.positive(options), factor)
        margin = np.where(np.isfinite(margin), np.maximum(margin, 0.0), 0.0)
        tight = curves.problem(goals.bound - goals.sign * margin)
        options = minimize(tight, options, TIGHT_BOXES).options
        found.append(options)
        if curves.result(options, goals, best.lowest, limits).feasible:
            break
        factor *= STRICTER
    results = [curves.result(one, goals, best.lowest, limits) for one in found]
    inside = [place for place, one in enumerate(results) if one.feasible]
    if not inside:
        least = max(range(len(results)), key=lambda place: results[place].slack)
        return replace(results[least], gap=np.nan)
    first = min(inside, key=lambda place: results[place].objective)
    options = _polished(curves, found[first], goals, limits, preferred)
    return curves.result(options, goals, best.lowest, limits)


def _single_within(curves: _Curves, goals: BoundConstraints, limits: Limits) -> float:
    """The best threshold for all groups whose limits are inside, or whose limits miss by least."""
    order = np.argsort(-curves.scores, kind="stable")
    thresholds, n_positive = thresholds_between(curves.scores[order])
    forms = curves.objective
    above = sums_of_first(forms.numerator, order, n_positive) + forms.numerator_constant[:, None]
    below = (
        sums_of_first(forms.denominator, order, n_positive) + forms.denominator_constant[:, None]
    )
    values = forms.quotients(above, below)[0]
    slack = limits.slack(sums_of_first(limits.rows, order, n_positive))
    inside = np.flatnonzero(slack >= min(-RATE_TOL, float(slack.max())))
    return float(thresholds[inside[np.argmin(np.where(np.isnan(values), np.inf, values)[inside])]])


def _polished(
    curves: _Curves,
    options: np.ndarray,
    goals: BoundConstraints,
    limits: Limits,
    preferred: float,
) -> np.ndarray:
    """Move one threshold at a time to its best place, given the others, limits included."""
    options = options.copy()
    forms = [curves.objective, goals.forms]
    tables = [(curves.sums(some.numerator), curves.sums(some.denominator)) for some in forms]
    counted = curves.sums(limits.rows)

    def along(parts: list[np.ndarray], g: int) -> np.ndarray:
        """Sums with group g at each of its thresholds and the others at theirs."""
        total = parts[g].copy()
        for h, (part, j) in enumerate(zip(parts, options, strict=True)):
            if h != g:
                total += part[:, [j]]
        return total

    for _ in range(SWEEPS):
        before = options.copy()
        for g, thresholds in enumerate(curves.thresholds):
            values = []
            for some, (above, below) in zip(forms, tables, strict=True):
                n = along(above, g) + some.numerator_constant[:, None]
                d = along(below, g) + some.denominator_constant[:, None]
                values.append(some.quotients(n, d))
            objective = np.where(np.isnan(values[0][0]), np.inf, values[0][0])
            inside = np.flatnonzero(least_slack(goals, values[1]) >= -RATE_TOL)
            inside = inside[limits.slack(along(counted, g)[:, inside]) >= -RATE_TOL]
            if not len(inside):
                continue
            equal = inside[objective[inside] <= objective[inside].min() + RATE_TOL]
            if objective[equal].min() < objective[options[g]] - RATE_TOL:
                options[g] = equal[np.argmin(np.abs(thresholds[equal] - preferred))]
        if (options == before).all():
            break
    return options


@dataclass(frozen=True)
class Rule:
    """Thresholds on one model's scores.

    Attributes
    ----------
    thresholds : ndarray of shape (G,)
        One per group; a single one without groups.
    objective, slack : float
        As in `GroupThresholds`.
    gap : float
        As in `GroupThresholds`; 0 for a single threshold.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1, on the rows measured.
    """

    thresholds: np.ndarray
    objective: float
    slack: float
    gap: float
    positive: np.ndarray

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds, with its limit if there are limits."""
        return self.slack >= -RATE_TOL


def best_rule(
    scores: np.ndarray,
    goals: MeasuredGoals,
    preferred: float,
    limits: Limits | None,
    group: np.ndarray | None = None,
    n_groups: int = 1,
) -> Rule:
    """Find the best rule on scores.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows measured, higher for the positive class.
    goals : MeasuredGoals
        Objective and constraints over these rows.
    preferred : float
        Threshold to which ties go; that of groups without rows here.
    limits : SeparateLimits, SharedRisk or None
        Confidence limits that must be inside.
    group : ndarray of int, shape (n,), or None
        Group of each row; None is for one threshold on all.
    n_groups : int
        Number of groups.
    """
    if group is None:
        if isinstance(limits, SharedRisk):
            search = ThresholdSearch.of(scores, goals, limits.limits)
            found = search.best(limits.quantile, preferred)
        else:
            separate = limits.limits if isinstance(limits, SeparateLimits) else ()
            found = best_threshold(
                scores, goals.objective, goals.constraints, preferred, limits=separate
            )
        positive = (scores > found.value).astype(float)
        return Rule(np.array([found.value]), found.objective, found.slack, 0.0, positive)
    present, codes = np.unique(group, return_inverse=True)
    best = best_group_thresholds(
        scores, codes, goals.objective, goals.constraints, preferred, limits
    )
    thresholds = np.full(n_groups, preferred)
    thresholds[present] = best.thresholds
    positive = (scores > thresholds[group]).astype(float)
    return Rule(thresholds, best.objective, best.slack, best.gap, positive)


def best_model(rules: Sequence[Rule]) -> int:
    """Number of the first rule with the lowest objective among those that meet the constraints.

    If none does, that of the one that misses by least.
    """
    inside = [place for place, rule in enumerate(rules) if rule.feasible]
    if not inside:
        return max(range(len(rules)), key=lambda place: rules[place].slack)
    return min(inside, key=lambda place: rules[place].objective)
