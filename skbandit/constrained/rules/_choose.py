"""The choice among scores: the best exact threshold whose limits are inside, out of fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.rules._candidates import Threshold, ThresholdSearch
from skbandit.constrained.rules._groups import Rule
from skbandit.measure import RATE_TOL, ScoreLimits
from skbandit.prices._levels import LEVELS, best_quantile, level_of, quantile_of

NOISE = 0.5
"""Paired standard errors of the objective by which a threshold may be worse than the best one."""

AT_ONCE = 256
"""Thresholds whose risk is evaluated together, the nearest first."""


def objective_scale(goals: MeasuredGoals) -> float:
    """Sum the objective's absolute costs, on average over groups; 1 for a single rate."""
    numerator = goals.objective.numerator
    return round(float(np.abs(numerator.data).sum()) / numerator.shape[0], 12) or 1.0


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
    def level(self) -> float:
        """The confidence level of `quantile`; nan if the thresholds are not inside."""
        return level_of(self.quantile) if self.feasible else np.nan


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
        Out-of-fold scores by name; or, sorted before, for the same objective and thresholds.
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
    searches = {name: _searched(s, goals, limits, thresholds) for name, s in candidates.items()}
    highest = quantile_of(levels[0])

    @cache
    def at(z: float) -> Choice | None:
        return _best(searches, z, preferred)

    without_margin = at(0.0)
    if without_margin is None:
        return _closest_candidate(searches, highest, preferred)

    def attempt(z: float) -> tuple[float, float]:
        choice = at(z)
        objective = np.inf if choice is None else choice.rule.objective
        return objective, without_margin.rule.objective

    choice = at(best_quantile(attempt, levels, objective_scale(goals)))
    if choice is None:
        return _closest_candidate(searches, highest, preferred)
    return choice


def _searched(
    candidate: np.ndarray | ThresholdSearch,
    goals: MeasuredGoals,
    limits: ScoreLimits,
    thresholds: np.ndarray | None = None,
) -> ThresholdSearch:
    """Return the thresholds of a candidate, sorted unless they are already."""
    if isinstance(candidate, ThresholdSearch):
        return candidate.under(goals, limits)
    return ThresholdSearch.of(candidate, goals, limits, thresholds)


def _best(searches: Mapping[Any, ThresholdSearch], z: float, preferred: float) -> Choice | None:
    """Return the best candidate at one quantile; None if none is inside.

    No threshold has a lower objective than the lowest with rates inside, so that a candidate
    whose lowest is above the best one so far need not be searched.
    """
    thresholds: dict[Any, Threshold] = {}
    least = np.inf
    for name in sorted(searches, key=lambda key: searches[key].lowest):
        if searches[name].lowest > least:
            break
        threshold = searches[name].best_below(least, z, preferred)
        if threshold is not None:
            thresholds[name] = threshold
            least = min(least, threshold.objective)
    if not thresholds:
        return None
    inside = [name for name in searches if name in thresholds]
    best = min(inside, key=lambda name: thresholds[name].objective)
    return Choice(best, Rule.of(thresholds[best], searches[best].scores), z)


def _closest_candidate(
    searches: Mapping[Any, ThresholdSearch], z: float, preferred: float
) -> Choice:
    """Return the candidate that misses by least: in its rates, else in its risk."""
    thresholds = {name: search.best(z, preferred) for name, search in searches.items()}
    rates = {name: search.best(0.0, preferred) for name, search in searches.items()}
    inside = [name for name in searches if rates[name].feasible]
    if inside:  # the rates are inside somewhere, the limits nowhere
        risks = {name: _least_risk(searches[name], thresholds[name].value, z) for name in inside}
        name = min(inside, key=lambda key: risks[key])
        at = thresholds[name]
    else:
        name = max(searches, key=lambda key: rates[key].slack)
        at = rates[name]
    return Choice(name, Rule.of(at, searches[name].scores), z)


def _least_risk(search: ThresholdSearch, threshold: float, z: float) -> float:
    sums = search.limits.rows @ (search.scores > threshold)
    return float(search.limits.risk(sums[:, None], z)[0])


# The threshold nearest to the usual one among those that are as good, but for noise.
#
# The best threshold of n out-of-fold scores is the best of many noisy ones: on few rows it is the
# wrong one by more than it gains. Its advantage over another one stems from the rows between the
# two, and so does the standard error of the advantage.


def nearest_to_default(
    choice: Choice,
    scores: np.ndarray,
    goals: MeasuredGoals,
    limits: ScoreLimits,
    usual: float,
    weight: np.ndarray | None = None,
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
    weight : ndarray of shape (n,) or None
        How many rows each one stands for, in its errors; None is for one.

    Returns
    -------
    Choice
        With a threshold that is inside at the same quantile, and whose objective is worse by at
        most `NOISE` paired standard errors.
    """
    if not np.isfinite(choice.rule.objective):  # 0/0: there is no noise to compare with
        return choice
    search = ThresholdSearch.of(scores, goals, limits)
    # the usual one itself, not only its neighbors
    thresholds = np.append(search.curve.thresholds, usual)
    search = ThresholdSearch.of(scores, goals, limits, thresholds)
    error = _standard_errors(search, choice, weight)
    near = search.objective <= choice.rule.objective + NOISE * error + RATE_TOL
    near &= (search.slack >= -RATE_TOL) & np.isfinite(search.objective)
    near &= np.abs(thresholds - usual) <= abs(choice.rule.thresholds[0] - usual)
    candidates = np.flatnonzero(near)
    candidates = candidates[np.argsort(np.abs(thresholds[candidates] - usual), kind="stable")]
    for first in range(0, len(candidates), AT_ONCE):
        batch = candidates[first : first + AT_ONCE]
        if choice.quantile > 0 and len(limits.offset):
            sums = limits.rows @ (scores[:, None] > thresholds[batch]).astype(float)
            batch = batch[limits.risk(sums, choice.quantile) <= ndtr(-choice.quantile) + RATE_TOL]
        if len(batch):
            k = batch[0]
            threshold = Threshold(
                float(thresholds[k]), float(search.objective[k]), float(search.slack[k])
            )
            return replace(choice, rule=Rule.of(threshold, scores))
    return choice


def _standard_errors(
    search: ThresholdSearch, choice: Choice, weight: np.ndarray | None
) -> np.ndarray:
    """Estimate the standard error, at every threshold, of its difference from the chosen one."""
    positive = choice.rule.decided
    forms = search.goals.objective.worst_at(positive)
    costs = forms.numerator[[0]].toarray().ravel()
    rho, below = (
        float(forms.values(choice.rule.decided)[0]),
        forms.fractions(choice.rule.decided)[1][0],
    )
    costs = costs - rho * forms.denominator[[0]].toarray().ravel()
    squares = costs**2
    if weight is not None:
        squares = np.divide(squares, weight, out=np.zeros(len(costs)), where=weight > 0)
    squares = np.append(0.0, np.cumsum(squares[search.curve.order]))
    chosen = int(positive.sum())
    return np.sqrt(np.abs(squares[search.curve.n_positive] - squares[chosen])) / below
