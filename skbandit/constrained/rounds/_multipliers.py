"""Multipliers of constraints: the dual of choosing among rules, one problem after the other.

To minimize N0/D0 under S pi <= rhs over all the rules pi that a learner can find, and all
mixtures of them, is a linear program with a column per rule (Agarwal et al. 2018 state it as a
game, Charnes and Cooper 1962 give the form for ratios): with weights y >= 0,

    minimize sum_j y_j N0_j   subject to   sum_j y_j D0_j = 1,   sum_j y_j (S pi_j - rhs) <= 0.

Its dual has a multiplier t for the first constraint, which is the value of the best mixture, and a
multiplier lambda_k >= 0 for each of the others. Few rules are known at first. A rule is worth
adding if its reduced cost N0 - t D0 + lambda @ (S pi - rhs) is negative, and for given multipliers
that is a sum over rows: each row has a cost of being predicted positive, and finding the rule is
one weighted classification (column generation, Dantzig and Wolfe 1960). At the end nothing has a
negative reduced cost, and the rule found at these multipliers is optimal among all mixtures.

Here every threshold on a score is a rule, so one fit adds many, and the mixtures only set
multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.rules._curve import Curve, curves_of_groups, evenly, sums_by_curve
from skbandit.measure import RATE_TOL, LinearFractionalForms, ScoreLimits, numbers_of_goals
from skbandit.prices._dual import gains_without

MOST = 10.0
"""Highest multiplier, in units of the largest change of the objective over that of a constraint.

Multipliers end there if no mixture meets the constraints.
"""

RAISE_MOST = 10.0
"""Factor of `MOST` each time that no fit at the highest multipliers meets the constraints."""

MAX_THRESHOLDS = 400
"""Most thresholds of one score, evenly spaced over the rows, that become rules.

More change multipliers by less than sampling error does.
"""

FEW_THRESHOLDS = 40
"""Thresholds tried per score, if there are many scores at once."""

ACCURACY = 1e-6
"""Rounding errors of the linear program, relative to the largest objective."""

REDUCED_TOL = 1e-9
"""Rules with a reduced cost below -REDUCED_TOL, in the same unit, are added to the program."""

ADDED_RULES = 100
"""Rules that enter the linear program together: its time grows faster than their number."""

FIRST_STEP = 0.25
"""First step to the multipliers of the best mixture, as a share of the whole way.

Mixtures of thresholds on one score cost much more of the objective than training for a constraint
does, so that their multipliers are several times too high.
"""

STEP_BACK = 0.75
"""Factor of the step after one that did not raise the Lagrangian."""

PROGRAMS = 40
"""Linear programs at most until no combination of thresholds has a negative reduced cost."""

ENOUGH = 1e-4
"""Reduced costs below this, relative to the largest objective, change multipliers by less than
sampling error does."""


def row_costs(goals: MeasuredGoals, multipliers: Multipliers) -> np.ndarray:
    """Cost, of shape (N,), of predicting each row positive rather than negative."""
    above = goals.objective.numerator.T @ multipliers.groups
    below = goals.objective.denominator[[0]].toarray().ravel()
    return above - multipliers.value * below + goals.linear[0].T @ multipliers.constraints


def highest_multipliers(goals: MeasuredGoals, raised: int = 0) -> np.ndarray:
    """Return each constraint's multiplier that stands for any higher one, shape (K,)."""
    reach = _reach(goals.linear[0])
    most = MOST * RAISE_MOST**raised * _reach(goals.objective.numerator).max()
    return most / np.where(reach > 0, reach, 1.0)


@dataclass(frozen=True)
class Rules:
    """Objective and constraints of J rules.

    Attributes
    ----------
    above : ndarray of shape (G, J)
        N0 of each expression of the objective.
    below : ndarray of shape (J,)
        D0.
    missed : ndarray of shape (K, J)
        ``rows @ pi - rhs``.
    divisor : ndarray of shape (K, J)
        D of each constraint's value N / D, which is undefined where D is 0.
    """

    above: np.ndarray
    below: np.ndarray
    missed: np.ndarray
    divisor: np.ndarray

    @classmethod
    def joined(cls, several: Sequence[Rules]) -> Rules:
        """All the rules of several collections."""
        return cls(
            np.concatenate([rules.above for rules in several], axis=1),
            np.concatenate([rules.below for rules in several]),
            np.concatenate([rules.missed for rules in several], axis=1),
            np.concatenate([rules.divisor for rules in several], axis=1),
        )

    def subset(self, kept: np.ndarray) -> Rules:
        """Select some of the rules."""
        parts = self.above, self.missed, self.divisor
        above, missed, divisor = (part[:, kept] for part in parts)
        return Rules(above, self.below[kept], missed, divisor)

    def best_value(self, kept: np.ndarray | None = None) -> float:
        """Return the lowest objective of rules that meet constraints; inf if none does."""
        kept = np.ones(len(self.missed), dtype=bool) if kept is None else kept
        met = (self.missed[kept] <= RATE_TOL).all(axis=0) & (self.below > 0)
        met &= (self.divisor[kept] > 0).all(axis=0)
        return float((self.above.max(axis=0)[met] / self.below[met]).min(initial=np.inf))

    def free_value(self) -> float:
        """Return the lowest objective without any constraint."""
        return self.best_value(np.zeros(len(self.missed), dtype=bool))

    def reduced(self, multipliers: Multipliers) -> np.ndarray:
        """Return reduced costs mu @ N0 - t D0 + lambda @ missed, of shape (J,)."""
        return self._priced(multipliers) - multipliers.value * self.below

    def _priced(self, multipliers: Multipliers) -> np.ndarray:
        return multipliers.groups @ self.above + multipliers.constraints @ self.missed

    def lagrangian(self, multipliers: Multipliers) -> float:
        """Return the lowest (mu @ N0 + lambda @ missed) / D0.

        No mixture of these rules that meets the constraints has a lower objective.
        """
        above = self._priced(multipliers)
        rounding = ACCURACY * np.abs(self.above).max()
        if (above[self.below <= 0] < -rounding).any():
            return -np.inf
        defined = self.below > 0
        return float((above[defined] / self.below[defined]).min(initial=np.inf))


@dataclass(frozen=True)
class Multipliers:
    """Dual multipliers.

    Attributes
    ----------
    value : float
        The multiplier t of the objective's denominator.
    constraints : ndarray of shape (K,)
        Multipliers lambda >= 0 of the constraints.
    groups : ndarray of shape (G,)
        Weights mu >= 0 of the objective's expressions, of sum 1.
    """

    value: float
    constraints: np.ndarray
    groups: np.ndarray

    @classmethod
    def nothing(cls, goals: MeasuredGoals) -> Multipliers:
        """Multipliers at which constraints cost nothing, and all groups weigh the same."""
        n_groups, n_constraints = goals.objective.numerator.shape[0], len(goals.constraints.bound)
        return cls(0.0, np.zeros(n_constraints), np.full(n_groups, 1 / n_groups))


@dataclass(frozen=True)
class NextMultipliers:
    """Multipliers to try next, and how much better than the known rules theirs can be.

    Attributes
    ----------
    multipliers : Multipliers
        The multipliers at which rows have their costs.
    of_mixture : Multipliers
        Those of the best mixture of rules, toward which the step was taken.
    value : float
        The objective of the best rule that meets the constraints; inf if none does.
    gap : float
        `value` is above the highest Lagrangian by so much. If the learner has found the best
        rule at each of the multipliers tried, then no rule and no mixture is better by more.
    """

    multipliers: Multipliers
    of_mixture: Multipliers
    value: float
    gap: float


def rules_of_curve(
    curve: Curve, goals: MeasuredGoals, limits: ScoreLimits | None = None, z: float = 0.0
) -> Rules:
    """Make the rules of a curve's thresholds.

    Parameters
    ----------
    curve : Curve
        Of a score of the N rows of the goals.
    goals : MeasuredGoals
    limits : ScoreLimits or None
        Of the constraints: not rates but their confidence limits are then to be inside the bounds.
    z : float
        Normal quantile of the limits' level.

    Returns
    -------
    Rules
    """
    limits = limits if z > 0 else None  # else their sums are not needed
    return rules_of_sums(curve.sums(summed_rows(goals, limits)), goals, limits, z)


def summed_rows(goals: MeasuredGoals, limits: ScoreLimits | None) -> csr_array:
    """Return the forms whose sums over positive rows determine a rule: see `rules_of_sums`."""
    objective = goals.objective
    divisor = objective.denominator[[0]]
    rows = [objective.numerator, divisor, goals.linear[0], goals.constraints.forms.denominator]
    return csr_array(vstack(rows if limits is None else [*rows, limits.rows]))


def rules_of_sums(
    sums: np.ndarray, goals: MeasuredGoals, limits: ScoreLimits | None, z: float
) -> Rules:
    """Return the rules whose sums these are.

    Parameters
    ----------
    sums : ndarray of shape (S, J)
        Sums of `summed_rows` over the rows that each rule predicts positive.
    goals : MeasuredGoals
    limits : ScoreLimits or None
    z : float
        As in `rules_of_curve`.

    Returns
    -------
    Rules
    """
    objective, forms, rhs = goals.objective, goals.constraints.forms, goals.linear[1]
    above, below, used, divisors, counted = np.split(
        sums, np.cumsum([objective.numerator.shape[0], 1, len(rhs), len(rhs)])
    )
    above = above + objective.numerator_constant[:, None]
    below = below[0] + objective.denominator_constant[0]
    missed = used - rhs[:, None]
    divisors = divisors + forms.denominator_constant[:, None]
    if limits is not None and z > 0:
        with np.errstate(invalid="ignore"):
            margins = limits.slack(counted, 0.0) - limits.slack(counted, z)
        missed = missed + np.where(np.isfinite(margins), margins, 0.0) * divisors
    return Rules(above, below, missed, divisors)


def best_multipliers(rules: Rules, most: np.ndarray) -> Multipliers:
    """Dual multipliers of the best mixture of rules.

    maximize t  subject to  mu @ N0_j - t D0_j + lambda @ missed_j >= 0 for every rule,
    0 <= lambda <= most, mu >= 0 of sum 1.

    A mixture may miss a constraint at the multiplier `most`, so that multipliers exist in any case.
    Few of the rules bind: the program begins with some, and those that it violates most are added
    until there are none.

    Parameters
    ----------
    rules : Rules
        With D0 > 0 for one of them at least.
    most : ndarray of shape (K,)
        Highest multiplier of each constraint.

    Returns
    -------
    Multipliers
    """
    scale = np.abs(rules.missed).max(axis=1, initial=0.0)
    units = np.where(scale > 0, scale, 1.0), np.abs(rules.above).max() or 1.0
    used = np.zeros(len(rules.below), dtype=bool)
    used[evenly(len(used), ADDED_RULES + 2)] = True
    used[np.argmax(rules.below)] = True  # bounds the value
    while True:
        multipliers = _multipliers_of_few(rules.subset(used), most, *units)
        reduced = np.where(used, np.inf, rules.reduced(multipliers))
        added = np.argsort(reduced, kind="stable")[:ADDED_RULES]
        added = added[reduced[added] < -REDUCED_TOL * units[1]]
        if not len(added):
            return multipliers
        used[added] = True


def _multipliers_of_few(
    rules: Rules, most: np.ndarray, scale: np.ndarray, size: float
) -> Multipliers:
    """Solve the linear program of `best_multipliers`, in units of the missed and the objective.

    The weight of the first group, or of the only expression, is 1 minus those of the others.
    """
    first, others = rules.above[0] / size, rules.above[1:] / size
    columns = np.column_stack([rules.below, -(rules.missed / scale[:, None]).T, (first - others).T])
    bounds = [(None, None), *((0.0, float(b)) for b in most * scale / size)]
    bounds += [(0.0, 1.0)] * len(others)
    if len(others):
        total = np.repeat([0.0, 1.0], [1 + len(most), len(others)])
        columns, first = np.vstack([columns, total]), np.append(first, 1.0)
    gain = np.zeros(columns.shape[1])
    gain[0] = -1.0
    solution = linprog(gain, A_ub=columns, b_ub=first, bounds=bounds, method="highs")
    if solution.x is None:
        raise ArithmeticError(f"The linear program of {columns.shape[0]} rules: {solution.message}")
    value, constraints, groups = np.split(solution.x, [1, 1 + len(most)])
    groups = np.append(max(1.0 - groups.sum(), 0.0), groups)
    return Multipliers(float(value[0] * size), constraints * size / scale, groups)


def next_multipliers(
    rules: Rules, tried: Sequence[Multipliers], most: np.ndarray, value: float | None = None
) -> NextMultipliers:
    """Multipliers between the best of those tried and those of the best mixture.

    The latter alone are wild at first (a mixture of few rules is dear, so its multipliers are too
    high) and later jump from side to side. A shorter step toward them, from the tried multipliers
    with the highest Lagrangian, is a known remedy (Wentges, ITOR 1997); full steps are taken while
    they raise the Lagrangian.

    Parameters
    ----------
    rules : Rules
        All rules known, among them those found at the multipliers tried.
    tried : sequence of Multipliers
        Those at which rules have been looked for, one at least, the last ones last.
    most : ndarray of shape (K,)
        Highest multiplier of each constraint.
    value : float or None
        The objective of the best rule known that meets the constraints, inf if there is none;
        None is for the best one of `rules`.

    Returns
    -------
    NextMultipliers
    """
    lower = [rules.lagrangian(multipliers) for multipliers in tried]
    best, last = int(np.argmax(lower)), len(tried) - 1
    step = FIRST_STEP if last == 0 else 1.0 if best == last else STEP_BACK
    at, to = tried[best], best_multipliers(rules, most)
    between = Multipliers(
        np.nan,
        (1.0 - step) * at.constraints + step * to.constraints,
        (1.0 - step) * at.groups + step * to.groups,
    )
    nearer, full = (
        replace(multipliers, value=rules.lagrangian(multipliers)) for multipliers in (between, to)
    )
    value = rules.best_value() if value is None else value
    return NextMultipliers(nearer, full, value, value - lower[best])


def multipliers_per_bound(
    multipliers: np.ndarray,
    objective: LinearFractionalForms,
    forms: LinearFractionalForms,
    positive: np.ndarray,
) -> np.ndarray:
    """Multipliers of N - tD as multipliers of the bound t itself, at given positive predictions.

    The objective N0/D0 changes by the multiplier times D/D0 for each unit of t; nan if it is 0/0.
    """
    denominator = objective.fractions(positive)[1][0]
    return multipliers * forms.fractions(positive)[1] / (denominator or np.nan)


def shadow_prices(rules: Rules, goals: MeasuredGoals, positive: np.ndarray) -> np.ndarray:
    """Shadow prices of the declared bounds in the best mixture of rules.

    Parameters
    ----------
    rules : Rules
        The rules that may be mixed.
    goals : MeasuredGoals
    positive : ndarray of shape (N,)
        Predictions of the chosen rule, 0 and 1, at which multipliers are converted to the bounds'
        units.

    Returns
    -------
    ndarray of shape (K,)
        Improvement of the objective, at least 0, per unit by which each bound is relaxed; 0 if
        it does not bind.
    """
    multipliers = best_multipliers(rules, highest_multipliers(goals)).constraints
    return multipliers_per_bound(multipliers, goals.objective, goals.constraints.forms, positive)


def dropped_prices_of_rules(rules: Rules, goals: MeasuredGoals, objective: float) -> np.ndarray:
    """`gains_without` each declared constraint among rules, from the chosen one's objective."""
    declared = numbers_of_goals(goals.constraints.constraints)
    every = np.fmin(rules.best_value(), objective)  # the chosen one is good, not quite the best
    return gains_without(rules.best_value, declared, declared >= 0, every)


def _reach(rows: csr_array) -> np.ndarray:
    """Return the largest change of each linear form, in either direction."""
    up = np.asarray(rows.maximum(0).sum(axis=1)).ravel()
    return np.maximum(up, np.asarray((-rows).maximum(0).sum(axis=1)).ravel())


# Rules with one threshold per group of rows, as columns of the linear program of multipliers.
#
# With G groups and C thresholds in each, a score makes C^G rules: too many to list. But the
# reduced cost of a rule, N0 - t D0 + lambda @ (S pi - rhs), is a sum over rows, so over groups,
# and what a group adds depends on its own threshold alone. The combination of least reduced cost
# is found group by group, in G C steps, and becomes a column; when none has a negative reduced
# cost, the multipliers are those of the best mixture of all C^G rules (column generation, as in
# `best_multipliers`).


@dataclass(frozen=True)
class GroupCurves:
    """Sums over the rows of each group above each threshold of a score.

    Attributes
    ----------
    goals : MeasuredGoals
    limits : ScoreLimits or None
        Over the same rows.
    sums : tuple of ndarray of shape (S, C_g)
        Of `summed_rows`, for each group.
    """

    goals: MeasuredGoals
    limits: ScoreLimits | None
    sums: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        group: np.ndarray,
        goals: MeasuredGoals,
        limits: ScoreLimits | None = None,
        most: int = MAX_THRESHOLDS,
    ) -> GroupCurves:
        """Sort a score in each group.

        Parameters
        ----------
        scores : ndarray of shape (n,)
        group : ndarray of int, shape (n,)
            Group of each row, 0 to G - 1.
        goals : MeasuredGoals
            Over these rows.
        limits : ScoreLimits or None
        most : int
            Number of thresholds of a group at most, besides the outermost two: evenly spaced.
        """
        curves = [curve.spread(most) for curve in curves_of_groups(scores, group)]
        return cls(goals, limits, tuple(sums_by_curve(summed_rows(goals, limits), curves)))

    def cheapest(self, multipliers: Multipliers, z: float = 0.0) -> Rules:
        """Return the combination of least reduced cost, one rule.

        What constraints miss is counted by limits at the normal quantile z afterwards, and by
        rates in the search: limits are no sums over groups.
        """
        # no multipliers for the divisors and for the sums of limits
        of_sums = np.concatenate(
            [multipliers.groups, [-multipliers.value], multipliers.constraints]
        )
        best = [part[:, [np.argmin(of_sums @ part[: len(of_sums)])]] for part in self.sums]
        return rules_of_sums(np.sum(best, axis=0), self.goals, self.limits, z)


def with_group_thresholds(
    rules: Rules, several: Sequence[GroupCurves], most: np.ndarray, z: float = 0.0
) -> Rules:
    """Add combinations of thresholds that the best mixture of rules lacks.

    Parameters
    ----------
    rules : Rules
        Known ones, with D0 > 0 for one of them at least.
    several : sequence of GroupCurves
        One per score.
    most : ndarray of shape (K,)
        Highest multiplier of each constraint.
    z : float
        Normal quantile of the limits' level.

    Returns
    -------
    Rules
        Those known first, then the added ones.
    """
    for _ in range(PROGRAMS):
        multipliers = best_multipliers(rules, most)
        added = Rules.joined([curves.cheapest(multipliers, z) for curves in several])
        useful = added.reduced(multipliers) < -ENOUGH * np.abs(rules.above).max()
        if not useful.any():
            break
        rules = Rules.joined([rules, added.subset(useful)])
    return rules
