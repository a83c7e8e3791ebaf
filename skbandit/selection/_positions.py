"""Positions of unequal worth: the cost of an ordered choice.

Ads are shown in positions of weights w_1 >= ... >= w_m >= 0, such as probabilities to be looked at,
and ad a in position k costs w_k f(a). With S_k the cost of the first k ads, w_{m+1} = 0,

    sum_k w_k f(a_k) = sum_k (w_k - w_{k+1}) S_k,

a sum with weights that are not negative. The k cheapest ads minimise S_k, so that the m cheapest,
cheapest first, are best for all such weights at once, whatever the signs of costs; and the regret
of an ordered choice is the sum of (w_k - w_{k+1}) times the regret of its first k ads as a set. If
the k-th ad costs at most q_k more than the k-th cheapest, as in masked rounds, it is at most
sum_k w_k q_k.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def read_position_weights(weights: Any, n_select: int) -> np.ndarray:
    """Weights of the first n_select positions; ones if None.

    Parameters
    ----------
    weights : array-like or None
        Weights of at least n_select positions, the best first.
    n_select : int
        Number of positions that are filled.

    Returns
    -------
    ndarray of shape (n_select,)
    """
    if weights is None:
        return np.ones(n_select)
    found = np.asarray(weights, dtype=float)
    if found.ndim != 1 or len(found) < n_select:
        raise ValueError(
            f"position_weights has shape {found.shape}, but n_select={n_select} positions need a "
            "weight each: pass a list of as many numbers, or more."
        )
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(wrong):
        raise ValueError(
            f"position_weights[{wrong[0]}] is {found[wrong[0]]:g}, but weights are finite and not "
            "negative."
        )
    rises = np.flatnonzero(np.diff(found) > 0)
    if len(rises):
        k = rises[0]
        raise ValueError(
            f"position_weights rise from {found[k]:g} to {found[k + 1]:g} (positions {k} and "
            f"{k + 1}), but ads are chosen best first: sort the weights in descending order, and "
            "show the k-th ad in the position of the k-th largest weight."
        )
    if found[0] == 0:
        raise ValueError("position_weights are all 0: no choice would cost anything.")
    return found[:n_select]
