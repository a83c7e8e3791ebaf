"""The offset tree: the filter tree on what a log of single actions shows.

Beygelzimer & Langford (2009), "The offset tree for learning with partial labels". A logged event
(x, a, f, p) is an example for the match between ads l and r only where it shows one of them; the
example weighs |f - offset| / p and speaks for a if f lies below the offset, else for its opponent,
with the offset half-way between the lowest and the highest cost (for rewards in [0, 1]: 1/2, where
the variance is least in the worst case). A filter tree does just that on the cost vectors

    c(a) = (f - offset) / p,    c(a') = 0 for every other ad,

as |c_l - c_r| is 0 in matches without a. Their expectation is f*(a') - offset for every ad: the
true costs, but for a constant that all share. In rounds, an event whose ad is chosen already is
ignored, as it is out of the tournament.
"""

from __future__ import annotations

import numpy as np


def offset_costs(cost: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """(f - offset) / p of logged events, both of shape (n,), the offset the costs' midrange."""
    offset = (cost.min() + cost.max()) / 2
    return (cost - offset) / propensity
