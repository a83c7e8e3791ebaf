"""Prices of bounds out of fold: what the best threshold gains where one bound gives way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skbandit.constrained.cross_fitting._choose import Choice
from skbandit.constrained.cross_fitting._cut_search import CutSearch
from skbandit.rates._binding import ScoreLimits

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
    lowest = _lowest(searches, limits, z)
    if not np.isfinite(lowest):
        return prices
    steps = STEP * (limits.at(choice.positive, 0.0) - limits.at(choice.positive, 1.0))
    for k in np.flatnonzero(np.isfinite(steps) & (steps > 0)):
        relaxed = _lowest(searches, limits.relaxed(int(k), float(steps[k])), z)
        prices[k] = max(lowest - relaxed, 0.0) / steps[k]
    return prices


def _lowest(searches: Mapping[str, CutSearch], limits: ScoreLimits, z: float) -> float:
    """The lowest objective of a candidate's threshold that is inside; inf if none is."""
    under = [one.under(one.goals, limits) for one in searches.values()]
    lowest = np.inf
    for one in sorted(under, key=lambda search: search.lowest):
        if one.lowest >= lowest:
            break
        best = one.best(z)
        lowest = min(lowest, best.objective) if best.feasible else lowest
    return lowest
