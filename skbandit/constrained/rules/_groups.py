"""The best rule on given scores under constraints on hard rates: thresholds, one per group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.rules._candidates import Rule, ThresholdSearch, slacks
from skbandit.constrained.rules._curve import Curve, curves_of_groups, sums_by_curve
from skbandit.constrained.rules._limits import Limits
from skbandit.constrained.rules._multiple_choice import (
    Combination,
    MultipleChoice,
    Options,
    minimize,
)
from skbandit.measure import RATE_TOL, BoundConstraints, LinearFractionalForms
from skbandit.utils._validation import ROUNDING

STRICTER, TIGHTENED, FIRST_GROWTH = 1.15, 12, 4
"""Bounds are tightened by distances of limits from rates times the first to a power from 0 to the
second, as several binding constraints share the allowed error and take more; and by how much the
power grows at first.
"""

TIGHT_BOXES = 1
"""Boxes of each search under tightened bounds, which need not be exact: the last step moves one
threshold."""

SWEEPS = 10
"""Rounds at most of moving one threshold after the other."""

_Sums = tuple[list[np.ndarray], list[np.ndarray]]


@dataclass(frozen=True)
class GroupSearch:
    """All combinations of one threshold per group: what each adds to every sum at each of its own.

    Every sum over rows is a sum of one term per group, which depends on its threshold alone: see
    `minimize`. Limits are not such sums. For them, bounds are tightened by the distances of limits
    from rates, as little as brings the limits inside; then one threshold at a time is moved to
    where the objective is best.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows that the expressions are over.
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    goals : BoundConstraints
        The constraints.
    preferred : float
        Threshold nearest to which ties are broken, one group after the other.
    curves : tuple of G Curve
        The thresholds of each group.
    """

    scores: np.ndarray
    objective: LinearFractionalForms
    goals: BoundConstraints
    preferred: float
    curves: tuple[Curve, ...]

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        group: np.ndarray,
        objective: LinearFractionalForms,
        goals: BoundConstraints,
        preferred: float,
    ) -> GroupSearch:
        """Sort a score in each group, from 0 to G - 1; each has rows."""
        return cls(scores, objective, goals, preferred, curves_of_groups(scores, group))

    @cached_property
    def tables(self) -> tuple[_Sums, _Sums]:
        """Sums of numerators and denominators of the objective, and of the constraints."""
        first, second = (
            (
                sums_by_curve(forms.numerator, self.curves),
                sums_by_curve(forms.denominator, self.curves),
            )
            for forms in (self.objective, self.goals.forms)
        )
        return first, second

    def problem(self, bound: np.ndarray) -> MultipleChoice:
        """Return the choice of one threshold per group, with the goals' bounds at `bound`."""
        forms, objective, sign = self.goals.forms, self.objective, self.goals.sign
        (numerators, denominators), (above, below) = self.tables
        bound = bound + sign * RATE_TOL
        rooms = [sign * (bound * forms.denominator_constant - forms.numerator_constant)]
        quotients = []  # defined where their divisors are positive
        for form in (forms, objective):
            quotients.append(np.flatnonzero(np.diff(form.denominator.indptr)))
            rooms.append(form.denominator_constant[quotients[-1]] - 3.0 * ROUNDING)
        sets = []
        for g in range(len(self.curves)):
            signed = sign[:, None] * (above[g] - bound[:, None] * below[g])
            divisors = -below[g][quotients[0]], -denominators[g][quotients[1]]
            uses = np.concatenate([signed, *divisors])
            rows = np.flatnonzero(uses.any(axis=1))
            sets.append(Options(numerators[g][0], denominators[g][0], rows, uses[rows]))
        constants = float(objective.numerator_constant[0]), float(objective.denominator_constant[0])
        return MultipleChoice(tuple(sets), *constants, np.concatenate(rooms))

    @cached_property
    def by_rates(self) -> tuple[MultipleChoice, Combination]:
        """The problem without limits, and its best choice."""
        problem = self.problem(self.goals.bound)
        return problem, minimize(problem, self.at_threshold(self.single().value))

    def single(self, limits: Limits | None = None) -> Rule:
        """Return the best single threshold."""
        goals = MeasuredGoals(self.objective, self.goals, np.arange(len(self.scores)))
        counted = None if limits is None else limits.rows
        return ThresholdSearch.of(self.scores, goals, counted).best(limits, self.preferred)

    def best(self, limits: Limits | None = None) -> Rule:
        """Return the best combination that meets the constraints.

        Parameters
        ----------
        limits : Limits or None
            Confidence limits that must be inside the bounds too.

        Returns
        -------
        Rule
            At least as good as the best single threshold. If no thresholds meet the constraints,
            those with the smallest miss, of a quotient N/D in units of N - tD.
        """
        problem, combination = self.by_rates
        if limits is None or combination.excess > ROUNDING:
            return self.result(self.nearest(problem, combination.options), combination.lowest)
        return _within_limits(self, combination, limits)

    def at_threshold(self, threshold: float) -> np.ndarray:
        """Give every group one threshold."""
        options = []
        for curve in self.curves:
            above = int(np.sum(self.scores[curve.order] > threshold))
            options.append(int(np.searchsorted(curve.n_positive, above)))
        return np.array(options)

    def positive(self, options: np.ndarray) -> np.ndarray:
        """Predictions 0.0 and 1.0 of shape (n,)."""
        positive = np.zeros(len(self.scores))
        for curve, j in zip(self.curves, options, strict=True):
            positive[curve.order[: curve.n_positive[j]]] = 1.0
        return positive

    def result(self, options: np.ndarray, lowest: float, limits: Limits | None = None) -> Rule:
        """Measure a choice; `lowest` is the smallest objective that any other may have."""
        goals = self.goals
        positive = self.positive(options)
        value = float(self.objective.values(positive)[0])
        value = np.inf if np.isnan(value) else value
        values = goals.forms.values(positive)[:, None]
        slack = float(slacks(goals, values).min(initial=np.inf))
        if limits is not None and slack >= -RATE_TOL:
            slack = float(limits.slack((limits.rows @ positive)[:, None])[0])
        thresholds = np.array(
            [curve.thresholds[j] for curve, j in zip(self.curves, options, strict=True)]
        )
        if slack < -RATE_TOL:
            gap = np.inf if lowest == np.inf else np.nan
        else:
            gap = value - lowest
            gap = 0.0 if gap <= 2.0 * RATE_TOL else gap
        return Rule(thresholds, value, slack, float(gap), positive)

    def nearest(self, problem: MultipleChoice, options: np.ndarray) -> np.ndarray:
        """Among choices as good, move one threshold after the other toward the preferred one."""
        options = options.copy()
        worst = max(problem.excess(options), 0.0) + ROUNDING
        best = problem.value(options) + RATE_TOL
        for g, group_options in enumerate(problem.sets):
            others = problem.used(options)
            others[group_options.rows] -= group_options.uses[:, options[g]]
            room = (others - problem.bound)[group_options.rows]
            over = (group_options.uses + room[:, None]).max(axis=0, initial=-np.inf)
            above, below = np.array(problem.numerator), np.array(problem.denominator)
            for h, other in enumerate(problem.sets):
                at = slice(None) if h == g else slice(options[h], options[h] + 1)
                above, below = above + other.numerator[at], below + other.denominator[at]
            with np.errstate(divide="ignore", invalid="ignore"):
                value = np.where(below > ROUNDING, above / below, np.inf)
            equal = np.flatnonzero((over <= worst) & (value <= best))
            if len(equal):
                away = np.abs(self.curves[g].thresholds[equal] - self.preferred)
                options[g] = equal[np.argmin(away)]
        return options


def _within_limits(search: GroupSearch, best: Combination, limits: Limits) -> Rule:
    """Return the best choice found whose confidence limits are inside the bounds.

    The stricter the bounds, the nearer are the limits to theirs, until no choice is left. The power
    grows by a step, which is halved where it is too large, from the choice that was outside last.
    """
    goals, options = search.goals, best.options
    choices = [options, search.at_threshold(search.single(limits).value)]
    power, step = -1, FIRST_GROWTH
    while step and power < TIGHTENED:
        margin = limits.margins(search.positive(options), STRICTER ** (power + step))
        margin = np.where(np.isfinite(margin), np.maximum(margin, 0.0), 0.0)
        choice = minimize(search.problem(goals.bound - goals.sign * margin), options, TIGHT_BOXES)
        choices.append(choice.options)
        result = search.result(choice.options, best.lowest, limits)
        if result.feasible or result.slack == -np.inf or choice.excess > ROUNDING:
            step //= 2
        else:
            power, options = power + step, choice.options
    results = [search.result(chosen, best.lowest, limits) for chosen in choices]
    inside = [place for place, rule in enumerate(results) if rule.feasible]
    if not inside:
        least = max(range(len(results)), key=lambda place: results[place].slack)
        return replace(results[least], gap=np.nan)
    first = min(inside, key=lambda place: results[place].objective)
    return search.result(_polished(search, choices[first], limits), best.lowest, limits)


def _polished(search: GroupSearch, options: np.ndarray, limits: Limits) -> np.ndarray:
    """Move one threshold at a time to its best place, given the others, limits included."""
    options = options.copy()
    goals = search.goals
    forms = [search.objective, goals.forms]
    counted = sums_by_curve(limits.rows, search.curves)

    def along(parts: list[np.ndarray], g: int) -> np.ndarray:
        """Return sums with group g at each of its thresholds and the others at theirs."""
        total = parts[g].copy()
        for h, (part, j) in enumerate(zip(parts, options, strict=True)):
            if h != g:
                total += part[:, [j]]
        return total

    for _ in range(SWEEPS):
        before = options.copy()
        for g, curve in enumerate(search.curves):
            values = []
            for form, (above, below) in zip(forms, search.tables, strict=True):
                n = along(above, g) + form.numerator_constant[:, None]
                d = along(below, g) + form.denominator_constant[:, None]
                values.append(form.quotients(n, d))
            objective = np.where(np.isnan(values[0][0]), np.inf, values[0][0])
            inside = np.flatnonzero((slacks(goals, values[1]) >= -RATE_TOL).all(axis=0))
            inside = inside[limits.slack(along(counted, g)[:, inside]) >= -RATE_TOL]
            if not len(inside):
                continue
            equal = inside[objective[inside] <= objective[inside].min() + RATE_TOL]
            if objective[equal].min() < objective[options[g]] - RATE_TOL:
                options[g] = equal[np.argmin(np.abs(curve.thresholds[equal] - search.preferred))]
        if (options == before).all():
            break
    return options


def rules_by_group(
    scores: np.ndarray, goals: MeasuredGoals, preferred: float, group: np.ndarray, n_groups: int
) -> Callable[[Limits | None], Rule]:
    """Return what finds the best thresholds by group; limits, if passed to it, must be inside.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows measured, higher for the positive class.
    goals : MeasuredGoals
        Objective and constraints over these rows.
    preferred : float
        Threshold to which ties go; that of groups without rows here.
    group : ndarray of int, shape (n,)
        Group of each row.
    n_groups : int
        Number of groups.
    """
    present, codes = np.unique(group, return_inverse=True)
    search = GroupSearch.of(scores, codes, goals.objective, goals.constraints, preferred)

    def best(limits: Limits | None) -> Rule:
        rule, thresholds = search.best(limits), np.full(n_groups, preferred)
        thresholds[present] = rule.thresholds
        return replace(rule, thresholds=thresholds)

    return best
