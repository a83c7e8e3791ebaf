"""The best rule on given scores, one threshold or one per group, and the best of several models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained._tolerances import RATE_TOL
from skbandit.constrained.thresholds._candidates import ThresholdSearch, best_threshold
from skbandit.constrained.thresholds._groups import best_group_thresholds
from skbandit.constrained.thresholds._limits import Limits, SeparateLimits, SharedRisk


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
