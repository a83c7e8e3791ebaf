"""Estimates of the costs of chosen ads that were observed in some rows only.

With g the means of ads plus the effects of rows, and o_a the share of weight in which the cost of
ad a was observed, of that in which it was available, the estimate is
g_ia + 1[observed] (f_ia - g_ia) / o_a, as in doubly robust estimation. Whatever g is, its mean over
rows is unbiased if costs are missing at random given the ad. Neither g nor o depends on the
selector, so that none gains by choosing what is unknown.
"""

from __future__ import annotations

import numpy as np

from skbandit.selection._fill_costs import ad_means, row_effects


def estimated_costs(
    costs: np.ndarray, s: np.ndarray, available: np.ndarray | None = None
) -> np.ndarray:
    """Estimated costs (n, K); nan in the column of an ad that was never observed.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        nan where not observed.
    s : ndarray of shape (n,)
        Row weights, not negative.
    available : ndarray of bool, shape (n, K), or None
        Which ads could be chosen; shares are over these rows. None means all.
    """
    seen = ~np.isnan(costs)
    means = ad_means(costs, s)
    guess = means + row_effects(costs - means)[:, None]
    there = s @ (np.ones_like(seen) if available is None else available | seen)
    share = np.divide(s @ seen, there, out=np.zeros(len(there)), where=there > 0)
    correction = np.where(seen, costs - guess, 0.0)
    found = guess + np.divide(
        correction,
        share,
        out=np.zeros_like(correction),
        where=np.broadcast_to(share > 0, seen.shape),
    )
    found[:, share == 0] = np.nan
    return found
