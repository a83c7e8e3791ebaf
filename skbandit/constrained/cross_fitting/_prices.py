"""Prices of bounds out of fold: what the best threshold gains where one bound gives way."""

from __future__ import annotations

import numpy as np

from skbandit.constrained.cross_fitting._choose import Choice
from skbandit.constrained.cross_fitting._cut_search import CutSearch
from skbandit.rates._binding import ScoreLimits

STEP = 2.0
"""Standard errors of a rate by which its bound is relaxed.

Rates are counts, so their best objective is a step function of the bound; smaller differences
measure its noise.
"""


def prices_out_of_fold(search: CutSearch, limits: ScoreLimits, choice: Choice) -> np.ndarray:
    """Gain of the objective per unit by which each bound alone is relaxed, at the chosen risk.

    The direction stays and the threshold follows. Where directions are chosen as the best of a
    family, a change of the bound changes the best objective of the family, to first order, by as
    much as that of the chosen one.

    Parameters
    ----------
    search : CutSearch
        The thresholds of the chosen candidate.
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
    z, n_constraints = choice.quantile, len(limits.offset)
    best = search.under(search.goals, limits).best(z)
    if not best.feasible:
        return np.full(n_constraints, np.nan)
    positive = search.positive(best.cut)
    steps = STEP * (limits.at(positive, 0.0) - limits.at(positive, 1.0))
    prices = np.full(n_constraints, np.nan)
    for k in np.flatnonzero(np.isfinite(steps) & (steps > 0)):
        relaxed = search.under(search.goals, limits.relaxed(int(k), float(steps[k]))).best(z)
        prices[k] = max(best.objective - relaxed.objective, 0.0) / steps[k]
    return prices
