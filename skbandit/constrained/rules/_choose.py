"""The choice among scores: the best exact threshold whose limits are inside, out of fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.rules._candidates import Rule, ThresholdSearch
from skbandit.constrained.rules._curve import Curve
from skbandit.constrained.rules._limits import Limits, limits_at_quantile
from skbandit.measure import RATE_TOL, ScoreLimits
from skbandit.prices._dual import ShadowPrices
from skbandit.prices._levels import LEVELS, VIOLATION_COST, at_best_level, level_of

NOISE = 0.5
"""Paired standard errors of the objective by which a threshold may be worse than the best one."""


@dataclass(frozen=True)
class Choice:
    """A candidate and its thresholds.

    Parameters
    ----------
    name : hashable
        Of the candidate.
    rule : Rule or PricedRule
        Its thresholds, and out-of-fold objective, slack and predictions there. Feasible if the
        rates are inside and, where no relaxation was allowed, their limits too.
    quantile : float
        The normal quantile z at which the risk was small enough; 0 if only the rates were
        looked at.
    """

    name: Any
    rule: Any
    quantile: float

    @property
    def feasible(self) -> bool:
        """True if the thresholds are inside."""
        return bool(self.rule.feasible)

    @property
    def objective(self) -> float:
        """The objective of the rule, lower is better."""
        return float(self.rule.objective)

    @property
    def level(self) -> float:
        """The confidence level of `quantile`; nan if the thresholds are not inside."""
        return level_of(self.quantile) if self.feasible else np.nan


@dataclass(frozen=True)
class Chosen:
    """A choice, and what it was chosen by and from.

    Attributes
    ----------
    chooser : Criterion or CostCriterion
    choice : Choice
    prices : callable
        Returns the shadow prices of the measured constraints at a choice.
    rounds : tuple
        Of a reduction: they have their scores.
    scores : ndarray of shape (n, ...)
        Of the rows that count; none with rounds.
    """

    chooser: Any
    choice: Choice
    prices: Callable[[Choice], ShadowPrices]
    rounds: tuple[Any, ...] = ()
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))


def loss(chooser: Any, choice: Choice) -> float:
    """Return the objective and, where the level is free, the expected cost of violations.

    Lower is better; inf if the constraints do not hold.
    """
    if not choice.feasible:
        return np.inf
    risk = 1.0 - choice.level if len(chooser.levels) > 1 else 0.0
    return float(choice.objective + VIOLATION_COST * chooser.goals.scale * risk)


C = TypeVar("C", bound=Any)


def best_on_path(proposed: C, tighter: Sequence[C] | None) -> C:
    """Return the best of a choice and those under tighter bounds, which meet looser ones too.

    Parameters
    ----------
    proposed : Chosen or CrossFitted
    tighter : sequence of the same
        On the same rows; what the objective is, and how rows are scored, is the same.
    """

    def loss_of(chosen: C) -> float:
        return loss(proposed.chooser, chosen.choice)

    best = min([proposed, *(tighter or ())], key=loss_of)
    if not loss_of(best) < loss_of(proposed) - RATE_TOL:
        return proposed
    chooser, choice, mine = proposed.chooser, best.choice, proposed.choice.rule
    if isinstance(mine, Rule):
        lowest, factors = mine.objective - mine.gap, best.chooser.limits.clustered
        choice = replace(choice, rule=replace(choice.rule, gap=choice.objective - lowest))
        chooser = chooser if factors is None else chooser.widened(factors)
    else:
        choice = replace(choice, rule=replace(choice.rule, prices=mine.prices, moved=mine.moved))
    return replace(best, chooser=chooser, choice=choice, prices=proposed.prices)


def choose(
    candidates: Mapping[Any, np.ndarray | ThresholdSearch],
    goals: MeasuredGoals,
    limits: ScoreLimits,
    *,
    levels: Sequence[float] = LEVELS,
    thresholds: np.ndarray | None = None,
    preferred: float = 0.0,
) -> Choice:
    """Choose the candidate and the threshold with the lowest objective among those inside.

    Parameters
    ----------
    candidates : mapping of names to ndarray of shape (n,) or ThresholdSearch
        Out-of-fold scores by name; or, sorted before, for the same goals and thresholds.
    goals : MeasuredGoals
        Objective and constraints over the n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    levels : sequence of float
        Probabilities that all constraints hold in the population, in descending order: see
        `best_quantile`.
    thresholds : ndarray or None
        The thresholds that may be chosen; None is for all.
    preferred : float
        Threshold to which ties go.

    Returns
    -------
    Choice
        If nothing is inside, the candidate with the least risk, or that misses by least.
    """
    searches = {
        name: scores
        if isinstance(scores, ThresholdSearch)
        else ThresholdSearch.of(scores, goals, limits.rows, thresholds)
        for name, scores in candidates.items()
    }

    def rule_at(z: float) -> Choice:
        return _best(searches, limits_at_quantile(limits, z), preferred)

    choice, z = at_best_level(rule_at, levels, goals.scale)
    return replace(choice, quantile=z)


def _best(
    searches: Mapping[Any, ThresholdSearch], limits: Limits | None, preferred: float
) -> Choice:
    """Return the best candidate or, if none is inside, the one that misses by least."""
    rules = {name: search.best(limits, preferred) for name, search in searches.items()}
    best = min(rules, key=lambda name: rules[name].rank)
    return Choice(best, rules[best], 0.0)


# The threshold nearest to the usual one among those that are as good, but for noise.
#
# The best threshold of n out-of-fold scores is the best of many noisy ones: on few rows it is the
# wrong one by more than it gains. Its advantage over another one stems from the rows between the
# two, and so does the standard error of the advantage.


def nearest_to_default(
    choice: Choice, scores: np.ndarray, goals: MeasuredGoals, limits: ScoreLimits, usual: float
) -> Choice:
    """Move a chosen threshold toward the usual one as far as noise explains its advantage.

    Parameters
    ----------
    choice : Choice
        A feasible choice.
    scores : ndarray of shape (n,)
        Out-of-fold scores of its candidate.
    goals : MeasuredGoals
        Objective and constraints over the n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    usual : float
        The threshold that the classifier itself uses.

    Returns
    -------
    Choice
        With a threshold that is inside at the same quantile, and whose objective is worse by at
        most `NOISE` paired standard errors.
    """
    if not np.isfinite(choice.rule.objective):  # 0/0: there is no noise to compare with
        return choice
    # the usual one itself, not only its neighbors
    thresholds = np.append(Curve.of(scores).thresholds, usual)
    search = ThresholdSearch.of(scores, goals, limits.rows, thresholds)
    away = np.abs(thresholds - usual)
    near = search.objective <= choice.objective + NOISE * _errors(search, choice) + RATE_TOL
    near &= (search.slack >= -RATE_TOL) & np.isfinite(search.objective)
    near &= away <= abs(choice.rule.value - usual)
    candidates = np.flatnonzero(near)
    if (at_level := limits_at_quantile(limits, choice.quantile)) is not None:
        candidates = candidates[at_level.passed(search.sums[:, candidates])]
    if not len(candidates):
        return choice
    nearest = candidates[[np.argmin(away[candidates])]]
    return replace(choice, rule=search.rule(nearest, usual))


def _errors(search: ThresholdSearch, choice: Choice) -> np.ndarray:
    """Estimate the standard error, at every threshold, of its difference from the chosen one."""
    positive = choice.rule.decided
    forms = search.goals.objective.worst_at(positive)
    costs = forms.numerator[[0]].toarray().ravel()
    rho, below = float(forms.values(positive)[0]), forms.fractions(positive)[1][0]
    costs = costs - rho * forms.denominator[[0]].toarray().ravel()
    squares = np.append(0.0, np.cumsum(costs[search.curve.order] ** 2))
    chosen = int(positive.sum())
    return np.sqrt(np.abs(squares[search.curve.n_positive] - squares[chosen])) / below
