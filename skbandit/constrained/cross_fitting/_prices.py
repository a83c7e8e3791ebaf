"""Prices of bounds out of fold: what the best threshold gains where one bound gives way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skbandit.constrained._tolerances import MET
from skbandit.constrained.cross_fitting._choose import Choice
from skbandit.constrained.cross_fitting._cut_search import CutSearch
from skbandit.rates._binding import ScoreLimits, reached_quantiles, risk_of

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
        gains = [one.gain(relaxed, int(k), lowest, z) for one in better]
        prices[k] = max(gains) / steps[k]
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
    """

    search: CutSearch
    at: np.ndarray
    slacks: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def of(cls, search: CutSearch, lowest: float, z: float) -> _Better:
        at = np.flatnonzero(search.objective < lowest)
        slacks = search.slacks_at(0.0, at)
        quantiles = search.quantiles(z, at) if z > 0 else np.full_like(slacks, np.inf)
        return cls(search, at, slacks, quantiles)

    def gain(self, relaxed: ScoreLimits, k: int, lowest: float, z: float) -> float:
        """How far below the lowest one gets where constraint k is relaxed; 0 at least."""
        only, search = np.array([k]), self.search
        slacks, quantiles = self.slacks.copy(), self.quantiles.copy()
        slacks[k] = search.slacks_at(0.0, self.at, relaxed, only)[0]
        if z > 0:
            at_limits = search.slacks_at(z, self.at, relaxed, only)
            quantiles[k] = reached_quantiles(slacks[only], at_limits, z)[0]
        inside = np.flatnonzero(slacks.min(axis=0) >= -MET)
        inside = inside[risk_of(quantiles[:, inside]) <= ndtr(-z) + MET]
        return float(lowest - search.objective[self.at[inside]].min(initial=lowest))


def _lowest(searches: Iterable[CutSearch], z: float) -> float:
    """The lowest objective of a candidate's threshold that is inside; inf if none is."""
    lowest = np.inf
    for one in sorted(searches, key=lambda search: search.lowest):
        if one.lowest >= lowest:
            break
        best = one.best(z)
        lowest = min(lowest, best.objective) if best.feasible else lowest
    return lowest
