"""The exact best threshold under constraints on hard rates, or on their limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from skbandit.constrained.rules._curve import Curve
from skbandit.measure import RATE_TOL, BoundConstraints

if TYPE_CHECKING:
    from skbandit.constrained._goals import MeasuredGoals
    from skbandit.constrained.rules._limits import Limits

COARSE = 256
"""Thresholds at which limits are evaluated first where there are more than twice as many.

The best of them excludes most others.
"""


@dataclass(frozen=True)
class Rule:
    """Thresholds on one score, one or one per group: rows above are positive.

    Attributes
    ----------
    thresholds : ndarray of shape (G,)
        Midway between neighboring scores, 1/2 beyond the outermost; a single one without groups.
    objective : float
        The hard objective there, lower is better; inf if undefined.
    slack : float
        The smallest slack of a hard rate: negative if a bound is missed, -inf if a rate is
        undefined, inf without constraints. Where limits are given and the rates are inside, the
        slack of the limits, in their unit, if it is negative.
    gap : float
        No thresholds that meet the constraints have an objective lower than ``objective - gap``: 0
        if these are proven to be the best. nan if no thresholds that meet the constraints were
        found although there may be some; inf if there are none.
    decided : ndarray of shape (n,)
        Predictions, 1 for positive and else 0, on the rows measured.
    """

    thresholds: np.ndarray
    objective: float
    slack: float
    gap: float
    decided: np.ndarray

    @property
    def value(self) -> float:
        """The only threshold."""
        return float(self.thresholds[0])

    @property
    def feasible(self) -> bool:
        """True if every constraint holds, with its limit if there are limits."""
        return self.slack >= -RATE_TOL

    @property
    def rank(self) -> tuple[bool, float]:
        """The lowest is the best or, where none is feasible, misses by least."""
        return not self.feasible, self.objective if self.feasible else -self.slack


def slacks(goals: BoundConstraints, values: np.ndarray) -> np.ndarray:
    """Return the slack of K values in each of C columns, -inf where undefined; shape (K, C)."""
    slack = goals.sign[:, None] * (goals.bound[:, None] - values)
    return np.where(np.isnan(slack), -np.inf, slack)


@dataclass(frozen=True)
class ThresholdSearch:
    """Hard rates at every threshold of a score, by one sort and running sums.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        One score per row.
    goals : MeasuredGoals
        Objective and constraints over these rows.
    counted : csr_array or None
        The rows whose sums limits are computed from; None without limits.
    curve : Curve
        Its thresholds.
    """

    scores: np.ndarray
    goals: MeasuredGoals
    counted: csr_array | None
    curve: Curve

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        goals: MeasuredGoals,
        counted: csr_array | None = None,
        thresholds: np.ndarray | None = None,
    ) -> ThresholdSearch:
        """Sort a score; its thresholds are between all its values unless `thresholds` are given."""
        curve = Curve.of(scores) if thresholds is None else Curve.at(scores, thresholds)
        return cls(scores, goals, counted, curve)

    @cached_property
    def objective(self) -> np.ndarray:
        """The objective at every threshold, lower is better; inf where undefined."""
        values = self.curve.values(self.goals.objective).max(axis=0)
        return np.where(np.isnan(values), np.inf, values)

    @cached_property
    def sums(self) -> np.ndarray:
        """Sums that limits are computed from, at every threshold."""
        assert self.counted is not None
        return self.curve.sums(self.counted)

    @cached_property
    def slack(self) -> np.ndarray:
        """The smallest slack of a rate at every threshold; inf without constraints."""
        goals = self.goals.constraints
        return slacks(goals, self.curve.values(goals.forms)).min(axis=0, initial=np.inf)

    def best(self, limits: Limits | None = None, preferred: float = 0.0) -> Rule:
        """Return the threshold with the lowest objective among those inside.

        Parameters
        ----------
        limits : Limits or None
            What must be inside besides the rates.
        preferred : float
            Ties go to the threshold nearest to this.

        Returns
        -------
        Rule
            Where no rate is inside, the one that misses by least, and where limits are outside
            everywhere, the one whose limits miss by least.
        """
        inside = np.flatnonzero(self.slack >= -RATE_TOL)
        if not len(inside):
            return self.rule(np.flatnonzero(self.slack >= self.slack.max() - RATE_TOL), preferred)
        if limits is None:
            return self.rule(inside, preferred)
        passed = inside
        if len(inside) > 2 * COARSE:
            sample = inside[:: len(inside) // COARSE]
            sample = sample[limits.passed(self.sums[:, sample])]
            enough = self.objective[sample].min(initial=np.inf)
            passed = inside[self.objective[inside] <= enough + RATE_TOL]
        passed = passed[limits.passed(self.sums[:, passed])]
        if len(passed):
            return self.rule(passed, preferred)
        slack = limits.slack(self.sums[:, inside])
        least = float(slack.max())
        return self.rule(inside[slack >= least - RATE_TOL], preferred, least)

    def rule(self, candidates: np.ndarray, preferred: float, slack: float = np.inf) -> Rule:
        """Return the best of some thresholds, among equals the one nearest to `preferred`."""
        goal, thresholds = self.objective[candidates], self.curve.thresholds
        candidates = candidates[goal <= goal.min() + RATE_TOL]
        best = candidates[np.argmin(np.abs(thresholds[candidates] - preferred))]
        slack = min(slack, float(self.slack[best]))
        decided = (self.scores > thresholds[best]).astype(float)
        return Rule(thresholds[[best]], float(self.objective[best]), slack, 0.0, decided)
