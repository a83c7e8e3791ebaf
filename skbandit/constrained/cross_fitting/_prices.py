"""Prices of bounds out of fold: what the best threshold gains where one bound gives way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from skbandit.constrained._tolerances import MET
from skbandit.constrained.cross_fitting._choose import Choice
from skbandit.constrained.cross_fitting._cut_search import CutSearch, small_risk
from skbandit.rates._binding import ScoreLimits, reached_quantiles

STEP = 2.0
"""Standard errors of a rate by which its bound is relaxed.

Rates are counts, so their best objective is a step function of the bound; smaller differences
measure its noise.
"""


def prices_out_of_fold(
    searches: Mapping[str, CutSearch], limits: ScoreLimits, choice: Choice
) -> np.ndarray:
    """Gain of the objective per unit by which each bound alone is relaxed, at the chosen risk.

    The best candidate and its best threshold are found anew; candidates are not trained anew.

    Parameters
    ----------
    searches : mapping of str to CutSearch
        The thresholds of all candidates.
    limits : ScoreLimits
        Of the K constraints, over the same rows.
    choice : Choice
        The choice among them.

    Returns
    -------
    ndarray of shape (K,)
        At least 0; 0 where a bound does not bind, nan where no threshold is inside or the rate
        has no standard error.
    """
    z, prices = choice.quantile, np.full(len(limits.offset), np.nan)
    under = [one.under(one.goals, limits) for one in searches.values()]
    lowest = _lowest(under, z)
    if not np.isfinite(lowest):
        return prices
    steps = STEP * (limits.at(choice.positive, 0.0) - limits.at(choice.positive, 1.0))
    better = [_Better.of(one, lowest, z) for one in under]
    for k in np.flatnonzero(np.isfinite(steps) & (steps > 0)):
        relaxed = limits.relaxed(int(k), float(steps[k]))
        prices[k] = (lowest - min(one.lowest(relaxed, int(k), z) for one in better)) / steps[k]
    return prices


@dataclass(frozen=True)
class _Better:
    """Thresholds with a lower objective than the lowest inside: some limit is beyond its bound.

    Attributes
    ----------
    search : CutSearch
    at : ndarray of int
        Their numbers, shape (B,).
    slacks, quantiles : ndarray of shape (K, B)
        Slacks of the rates there, and the quantiles at which limits meet their bounds; without a
        quantile the latter are those of no risk.
    beyond : ndarray of bool, shape (K, B)
        Whether each limit is beyond its bound.
    least : float
        The lowest objective inside, of all candidates.
    """

    search: CutSearch
    at: np.ndarray
    slacks: np.ndarray
    quantiles: np.ndarray
    beyond: np.ndarray
    least: float

    @classmethod
    def of(cls, search: CutSearch, lowest: float, z: float) -> _Better:
        at = np.flatnonzero(search.objective < lowest)
        slacks = search.slacks_at(0.0, at)
        quantiles = search.quantiles(z, at) if z > 0 else np.full_like(slacks, np.inf)
        beyond = (slacks < -MET) | (quantiles < -ndtri(ndtr(-z) + MET))
        return cls(search, at, slacks, quantiles, beyond, lowest)

    def lowest(self, relaxed: ScoreLimits, k: int, z: float) -> float:
        """The lowest objective inside where the bound of constraint k is relaxed."""
        only, number = np.array([k]), self.beyond.sum(axis=0)
        kept = np.flatnonzero((number == 0) | ((number == 1) & self.beyond[k]))
        if not len(kept):
            return self.least
        slacks, quantiles, at = self.slacks[:, kept], self.quantiles[:, kept], self.at[kept]
        slacks[k] = self.search.slacks_at(0.0, at, relaxed, only)[0]
        inside = slacks.min(axis=0) >= -MET
        if z > 0:
            at_limits = self.search.slacks_at(z, at, relaxed, only)
            quantiles[k] = reached_quantiles(slacks[only], at_limits, z)[0]
            inside &= small_risk(quantiles, z)
        return float(self.search.objective[at[inside]].min(initial=self.least))


def _lowest(searches: Iterable[CutSearch], z: float) -> float:
    """The lowest objective of a candidate's threshold that is inside; inf if none is."""
    lowest = np.inf
    for one in sorted(searches, key=lambda search: search.lowest):
        if one.lowest >= lowest:
            break
        best = one.best_below(lowest, z)
        lowest = lowest if best is None else best.objective
    return lowest
