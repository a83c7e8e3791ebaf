"""All thresholds of one score: the best one whose risk of missing a bound is small enough."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skbandit.constrained._declared import MeasuredGoals
from skbandit.constrained._threshold import Threshold, cuts_between, head_sums
from skbandit.constrained._tolerances import MET
from skbandit.rates._binding import MeasuredShares, ScoreLimits, reached_quantiles, risk_of

KEPT = 2_000_000
"""Numbers of a table of limits at all thresholds, beyond which it is not kept for other bounds."""

COARSE = 256
"""Thresholds at which limits are evaluated first where there are more than twice as many.

The best of them excludes most others.
"""


@dataclass(frozen=True)
class CutSearch:
    """Hard rates at every threshold of a score, by one sort and running sums.

    Parameters
    ----------
    goals : MeasuredGoals
        Objective and constraints over n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    scores : ndarray of shape (n,)
        One score per row.
    cuts : ndarray of shape (C,)
        The thresholds.
    order : ndarray of shape (n,)
        Rows by descending score.
    heads : ndarray of shape (C,)
        Number of rows above each threshold.
    measured : dict of float to MeasuredShares
        Rates and limits at all thresholds by normal quantile, as far as they have been needed;
        one for all bounds.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    scores: np.ndarray
    cuts: np.ndarray
    order: np.ndarray
    heads: np.ndarray
    measured: dict[float, MeasuredShares] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        goals: MeasuredGoals,
        limits: ScoreLimits,
        cuts: np.ndarray | None = None,
    ) -> CutSearch:
        """Sort a score; its thresholds are between all its values unless `cuts` are given."""
        order = np.argsort(-scores, kind="stable")
        descending = scores[order]
        if cuts is None:
            cuts, heads = cuts_between(descending)
        else:
            heads = np.searchsorted(-descending, -cuts, side="left")
        return cls(goals, limits, scores, cuts, order, heads)

    def under(self, goals: MeasuredGoals, limits: ScoreLimits) -> CutSearch:
        """The same thresholds under other constraints over the same rows; nothing is sorted anew.

        The objective must be the same: its values are kept.
        """
        if goals is self.goals and limits is self.limits:
            return self
        same = limits.shares_measured_by(self.limits)
        measured = self.measured if same else {}
        other = replace(self, goals=goals, limits=limits, measured=measured)
        known = vars(other)  # where cached_property looks
        known["objective"] = self.objective
        if limits.rows is self.limits.rows:
            known["_sums"] = self._sums
        return other

    @cached_property
    def objective(self) -> np.ndarray:
        """The objective at every threshold, lower is better; inf where undefined."""
        forms = self.goals.objective
        above = self._sums_of(forms.numerator) + forms.numerator_constant[:, None]
        below = self._sums_of(forms.denominator) + forms.denominator_constant[:, None]
        values = forms.quotients(above, below)[0]
        return np.where(np.isnan(values), np.inf, values)

    @cached_property
    def _sums(self) -> np.ndarray:
        return self._sums_of(self.limits.rows)

    def slacks(self) -> np.ndarray:
        """The slack of every rate at every threshold, shape (K, C)."""
        return self.slacks_at(0.0)

    def slacks_at(
        self,
        z: float,
        at: np.ndarray | None = None,
        limits: ScoreLimits | None = None,
        which: np.ndarray | None = None,
    ) -> np.ndarray:
        """Slacks of limits at a normal quantile, shape (K, C).

        Parameters
        ----------
        z : float
            Normal quantile; 0 is for the rates.
        at : ndarray of int or None
            Numbers of the thresholds; None is for all.
        limits : ScoreLimits or None
            Those of other bounds on the same constraints; None is for `limits`.
        which : ndarray of int or None
            Numbers of the constraints; None is for all.
        """
        limits = self.limits if limits is None else limits
        if z not in self.measured and len(limits.shares) * len(self.cuts) <= KEPT:
            self.measured[z] = limits.measure(self._sums, z)
        if z in self.measured:
            found = self.measured[z] if at is None else self.measured[z].take(at)
        else:
            found = limits.measure(self._sums if at is None else self._sums[:, at], z)
        return limits.slack_of(found, which)

    def quantiles(self, z: float, at: np.ndarray) -> np.ndarray:
        """Normal quantiles at which limits meet their bounds at some thresholds, shape (K, C)."""
        return reached_quantiles(self.slacks_at(0.0, at), self.slacks_at(z, at), z)

    @cached_property
    def slack(self) -> np.ndarray:
        """The smallest slack of a rate at every threshold; inf without constraints."""
        return self.slacks().min(axis=0, initial=np.inf)

    @cached_property
    def lowest(self) -> float:
        """The lowest objective at a threshold whose rates are inside; inf if none is."""
        return float(self.objective[self.slack >= -MET].min(initial=np.inf))

    def best(self, z: float, preferred: float = 0.0, within: np.ndarray | None = None) -> Threshold:
        """The threshold with the lowest objective among those inside.

        Parameters
        ----------
        z : float
            The risk of missing a bound must not exceed the tail of this normal quantile; with
            0, the rates themselves must be inside.
        preferred : float
            Threshold to which ties go.
        within : ndarray of bool, shape (C,), or None
            Thresholds that may be chosen, one at least; None is for all.

        Returns
        -------
        Threshold
            Its `slack` is that of the rates, -inf where these are inside and the risk is too
            large everywhere. Then it is the threshold with the least risk; where no rate is
            inside, the one that misses by least.
        """
        found = self.best_below(np.inf, z, preferred, within)
        if found is not None:
            return found
        kept = np.arange(len(self.cuts)) if within is None else np.flatnonzero(within)
        inside = kept[self.slack[kept] >= -MET]
        if not len(inside):
            least_missed = kept[self.slack[kept] >= self.slack[kept].max() - MET]
            return self._nearest(least_missed, preferred)
        risk = risk_of(self.quantiles(z, inside))
        found = self._nearest(inside[risk <= risk.min() + MET], preferred)
        return Threshold(found.cut, found.objective, -np.inf)

    def best_below(
        self, most: float, z: float, preferred: float = 0.0, within: np.ndarray | None = None
    ) -> Threshold | None:
        """As `best`; None if no threshold is inside with an objective of `most` at most."""
        allowed = (self.slack >= -MET) & (self.objective <= most)
        inside = np.flatnonzero(allowed if within is None else allowed & within)
        if z > 0 and len(self.limits.offset) and len(inside):
            if len(inside) > 2 * COARSE:
                sample = inside[:: len(inside) // COARSE]
                sample = sample[small_risk(self.quantiles(z, sample), z)]
                enough = self.objective[sample].min(initial=np.inf)
                inside = inside[self.objective[inside] <= enough + MET]
            inside = inside[small_risk(self.quantiles(z, inside), z)]
        return self._nearest(inside, preferred) if len(inside) else None

    def positive(self, cut: float) -> np.ndarray:
        """1.0 where the score is above a threshold."""
        return (self.scores > cut).astype(float)

    def _nearest(self, candidates: np.ndarray, preferred: float) -> Threshold:
        """The best of some thresholds, among equals the one nearest to `preferred`."""
        goal = self.objective[candidates]
        candidates = candidates[goal <= goal.min() + MET]
        best = candidates[np.argmin(np.abs(self.cuts[candidates] - preferred))]
        return Threshold(
            float(self.cuts[best]), float(self.objective[best]), float(self.slack[best])
        )

    def _sums_of(self, rows: csr_array) -> np.ndarray:
        return head_sums(rows, self.order, self.heads)


def small_risk(quantiles: np.ndarray, z: float) -> np.ndarray:
    """Whether the risk at C thresholds is at most the tail of z, from their quantiles (K, C).

    It is at least that of each constraint, which excludes most thresholds without a logarithm.
    """
    most = float(ndtr(-z)) + MET
    small = quantiles.min(axis=0, initial=np.inf) >= -ndtri(most)
    small[small] = risk_of(quantiles[:, small]) <= most
    return small
