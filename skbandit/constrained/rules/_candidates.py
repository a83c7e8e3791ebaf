"""The exact best threshold under constraints on hard rates, or on their limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from skbandit.constrained.rules._curve import Curve
from skbandit.measure import (
    RATE_TOL,
    BoundConstraints,
    LinearFractionalForms,
    MeasuredShares,
    ScoreLimits,
    reached_quantiles,
)

if TYPE_CHECKING:
    from skbandit.constrained._goals import MeasuredGoals
    from skbandit.constrained.rules._limits import Limits

KEPT = 2_000_000
"""Numbers of a table of limits at all thresholds, beyond which it is not kept for other bounds."""

COARSE = 256
"""Thresholds at which limits are evaluated first where there are more than twice as many.

The best of them excludes most others.
"""


@dataclass(frozen=True)
class Threshold:
    """A threshold between scores: those above `value` are positive.

    Parameters
    ----------
    value : float
        Midway between neighboring scores, 1/2 beyond the outermost.
    objective : float
        The hard objective there, lower is better; inf if undefined.
    slack : float
        The smallest slack of a hard rate: negative if a bound is missed, -inf if a rate is
        undefined, inf without constraints. If confidence limits are given, their smallest
        slack where all rates are inside their bounds, else -inf.
    """

    value: float
    objective: float
    slack: float

    @property
    def feasible(self) -> bool:
        """True if every constraint holds."""
        return self.slack >= -RATE_TOL


def best_threshold(
    scores: np.ndarray,
    objective: LinearFractionalForms,
    goals: BoundConstraints,
    preferred: float,
    limits: Limits | None = None,
) -> Threshold:
    """Search all thresholds for the best one that meets the constraints.

    If no threshold meets all constraints, the one with the smallest worst violation is returned.
    Ties go to the threshold nearest to `preferred`.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the rows that the expressions are over.
    objective : LinearFractionalForms
        One expression, or several of which the largest counts; lower is better.
    goals : BoundConstraints
        The constraints.
    preferred : float
        Ties are broken in favor of the threshold nearest to this.
    limits : Limits or None
        If confidence limits must be inside the bounds too.

    Returns
    -------
    Threshold
    """
    curve = Curve.of(scores)
    values = curve.values(objective).max(axis=0)
    goal = np.where(np.isnan(values), np.inf, values)
    slack = least_slack(goals, curve.values(goals.forms))
    inside = np.flatnonzero(slack >= -RATE_TOL)
    if limits is not None and len(inside):  # a limit is inside its bound only if the rate is
        of_limits = limits.slack(curve.sums(limits.rows)[:, inside])
        slack = np.full(len(slack), -np.inf)
        slack[inside] = of_limits
    if (slack >= -RATE_TOL).any():
        candidates = np.flatnonzero(slack >= -RATE_TOL)
        lowest = goal[candidates].min()
        candidates = candidates[goal[candidates] <= lowest + RATE_TOL]
    else:
        candidates = np.flatnonzero(slack >= slack.max() - RATE_TOL)
        candidates = candidates[goal[candidates] <= goal[candidates].min() + RATE_TOL]
    best = candidates[np.argmin(np.abs(curve.thresholds[candidates] - preferred))]
    return Threshold(float(curve.thresholds[best]), float(goal[best]), float(slack[best]))


def slacks(goals: BoundConstraints, values: np.ndarray) -> np.ndarray:
    """Return the slack of K values in each of C columns, -inf where undefined; shape (K, C)."""
    slack = goals.sign[:, None] * (goals.bound[:, None] - values)
    return np.where(np.isnan(slack), -np.inf, slack)


def least_slack(goals: BoundConstraints, values: np.ndarray) -> np.ndarray:
    """Return the smallest of `slacks` in each column."""
    return slacks(goals, values).min(axis=0, initial=np.inf)


@dataclass(frozen=True)
class ThresholdSearch:
    """Hard rates at every threshold of a score, by one sort and running sums.

    Parameters
    ----------
    goals : MeasuredGoals
        Objective and constraints over n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    scores : ndarray of shape (n,)
        One score per row.
    curve : Curve
        Its thresholds.
    measured : dict of float to MeasuredShares
        Rates and limits at all thresholds by normal quantile, as far as they have been needed;
        one for all bounds.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    scores: np.ndarray
    curve: Curve
    measured: dict[float, MeasuredShares] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        goals: MeasuredGoals,
        limits: ScoreLimits,
        thresholds: np.ndarray | None = None,
    ) -> ThresholdSearch:
        """Sort a score; its thresholds are between all its values unless `thresholds` are given."""
        curve = Curve.of(scores) if thresholds is None else Curve.at(scores, thresholds)
        return cls(goals, limits, scores, curve)

    def under(self, goals: MeasuredGoals, limits: ScoreLimits) -> ThresholdSearch:
        """Put the thresholds under other constraints over equal rows; nothing is sorted anew.

        The objective must be the same: its values are kept.
        """
        if goals is self.goals and limits is self.limits:
            return self
        same = limits.can_reuse(self.limits)
        measured = self.measured if same else {}
        other = replace(self, goals=goals, limits=limits, measured=measured)
        attributes = vars(other)  # where cached_property looks
        attributes["objective"] = self.objective
        if limits.rows is self.limits.rows:
            attributes["_sums"] = self._sums
        return other

    @cached_property
    def objective(self) -> np.ndarray:
        """The objective at every threshold, lower is better; inf where undefined."""
        values = self.curve.values(self.goals.objective).max(axis=0)
        return np.where(np.isnan(values), np.inf, values)

    @cached_property
    def _sums(self) -> np.ndarray:
        return self.curve.sums(self.limits.rows)

    def slacks(self) -> np.ndarray:
        """Return the slack of every rate at every threshold, shape (K, C)."""
        return self.slacks_at(0.0)

    def slacks_at(self, z: float, at: np.ndarray | None = None) -> np.ndarray:
        """Slacks of limits at a normal quantile, shape (K, C).

        Parameters
        ----------
        z : float
            Normal quantile; 0 is for the rates.
        at : ndarray of int or None
            Indices of the thresholds; None is for all.
        """
        limits = self.limits
        if z not in self.measured and len(limits.shares) * len(self.curve.thresholds) <= KEPT:
            self.measured[z] = limits.measure(self._sums, z)
        if z in self.measured:
            values = self.measured[z] if at is None else self.measured[z].take(at)
        else:
            values = limits.measure(self._sums if at is None else self._sums[:, at], z)
        return limits.slack_of(values)

    def quantiles(self, z: float, at: np.ndarray) -> np.ndarray:
        """Return the quantiles at which limits meet their bounds at thresholds, shape (K, C)."""
        return reached_quantiles(self.slacks_at(0.0, at), self.slacks_at(z, at), z)

    @cached_property
    def slack(self) -> np.ndarray:
        """The smallest slack of a rate at every threshold; inf without constraints."""
        return self.slacks().min(axis=0, initial=np.inf)

    @cached_property
    def lowest(self) -> float:
        """The lowest objective at a threshold whose rates are inside; inf if none is."""
        return float(self.objective[self.slack >= -RATE_TOL].min(initial=np.inf))

    def best(self, z: float, preferred: float = 0.0) -> Threshold:
        """Return the threshold with the lowest objective among those inside.

        Parameters
        ----------
        z : float
            The risk of missing a bound must not exceed the tail of this normal quantile; with
            0, the rates themselves must be inside.
        preferred : float
            Threshold to which ties go.

        Returns
        -------
        Threshold
            Its `slack` is that of the rates, -inf where these are inside and the risk is too
            large everywhere. Then it is the threshold with the least risk; where no rate is
            inside, the one that misses by least.
        """
        threshold = self.best_below(np.inf, z, preferred)
        if threshold is not None:
            return threshold
        inside = np.flatnonzero(self.slack >= -RATE_TOL)
        if not len(inside):
            least_missed = np.flatnonzero(self.slack >= self.slack.max() - RATE_TOL)
            return self._nearest(least_missed, preferred)
        risk = self.limits.risk_of(self.quantiles(z, inside))
        threshold = self._nearest(inside[risk <= risk.min() + RATE_TOL], preferred)
        return Threshold(threshold.value, threshold.objective, -np.inf)

    def best_below(self, most: float, z: float, preferred: float = 0.0) -> Threshold | None:
        """Return the best threshold; None if none is inside with an objective of `most` at most."""
        inside = np.flatnonzero((self.slack >= -RATE_TOL) & (self.objective <= most))
        if z > 0 and len(self.limits.offset) and len(inside):
            if len(inside) > 2 * COARSE:
                sample = inside[:: len(inside) // COARSE]
                sample = sample[self.small_risk(sample, z)]
                enough = self.objective[sample].min(initial=np.inf)
                inside = inside[self.objective[inside] <= enough + RATE_TOL]
            inside = inside[self.small_risk(inside, z)]
        return self._nearest(inside, preferred) if len(inside) else None

    def small_risk(self, at: np.ndarray, z: float) -> np.ndarray:
        """Return whether the risk at some thresholds, by number, is at most the tail of z.

        It is at least that of each constraint, which excludes most thresholds without a logarithm.
        """
        quantiles, most = self.quantiles(z, at), float(ndtr(-z)) + RATE_TOL
        small = quantiles.min(axis=0, initial=np.inf) >= -ndtri(most)
        small[small] = self.limits.risk_of(quantiles[:, small]) <= most
        return small

    def _nearest(self, candidates: np.ndarray, preferred: float) -> Threshold:
        """Return the best of some thresholds, among equals the one nearest to `preferred`."""
        goal = self.objective[candidates]
        candidates = candidates[goal <= goal.min() + RATE_TOL]
        best = candidates[np.argmin(np.abs(self.curve.thresholds[candidates] - preferred))]
        return Threshold(
            float(self.curve.thresholds[best]), float(self.objective[best]), float(self.slack[best])
        )
