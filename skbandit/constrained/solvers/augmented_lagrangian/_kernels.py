"""Compiled passes over the rows of X for the augmented Lagrangian.

All loops run over ``ConvexProblem.by_row``: row j of the data has the entries (k, cost), where
cost > 0 is that of a positive prediction in row k of the problem, and cost < 0 minus that of
a negative one. Under the weights v = (1, v_1, ..., v_m) row j costs
p max(0, 1/2 + f) + q max(0, 1/2 - f), p and q being sums of its weighted entries.
"""

from __future__ import annotations

import numpy as np

from skbandit.utils._compiled import compiled

BELOW, LOW_KINK, BETWEEN, HIGH_KINK, ABOVE = 0, 1, 2, 3, 4
"""Places of a proximal point from left to right: off or on the kinks f = -1/2 and f = 1/2."""


@compiled
def prox(
    z: np.ndarray,
    theta: np.ndarray,
    sigma: float,
    v: np.ndarray,
    indptr: np.ndarray,
    k: np.ndarray,
    cost: np.ndarray,
    f: np.ndarray,
    place: np.ndarray,
    rows: np.ndarray,
) -> float:
    """Minimise the cost at f plus sigma/2 (y - f)^2, for each row of the data.

    Here y = z + theta/sigma. Fills `f`, `place` and the costs `rows` of rows 0..m of the problem
    at f; returns |y - f|^2.
    """
    rows[:] = 0.0
    squares = 0.0
    for j in range(len(z)):
        p = q = 0.0
        for a in range(indptr[j], indptr[j + 1]):
            weighted = v[k[a]] * cost[a]
            if weighted > 0:
                p += weighted
            else:
                q -= weighted
        p, q = p / sigma, q / sigma
        y = z[j] + theta[j] / sigma
        if y < -0.5 - q:
            at, here = y + q, BELOW
        elif y <= -0.5 + p - q:
            at, here = -0.5, LOW_KINK
        elif y < 0.5 + p - q:
            at, here = y - p + q, BETWEEN
        elif y <= 0.5 + p:
            at, here = 0.5, HIGH_KINK
        else:
            at, here = y - p, ABOVE
        f[j], place[j] = at, here
        squares += (y - at) * (y - at)
        above, below = max(0.0, 0.5 + at), max(0.0, 0.5 - at)
        for a in range(indptr[j], indptr[j + 1]):
            rows[k[a]] += cost[a] * above if cost[a] > 0 else -cost[a] * below
    return squares


@compiled
def slopes(place: np.ndarray, indptr: np.ndarray, cost: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the derivative in f of each entry at the proximal points; 0 on kinks."""
    for j in range(len(place)):
        here = place[j]
        kinked = here == LOW_KINK or here == HIGH_KINK
        for a in range(indptr[j], indptr[j + 1]):
            flat = kinked or here == (BELOW if cost[a] > 0 else ABOVE)
            out[a] = 0.0 if flat else cost[a]


@compiled
def curvature(
    slope: np.ndarray, indptr: np.ndarray, k: np.ndarray, position: np.ndarray, out: np.ndarray
) -> None:
    """Fill `out` with the Gram matrix over the data of the slopes of some rows of the problem.

    `position[k]` is the index of row k of the problem in `out`, or -1.
    """
    out[:] = 0.0
    at, value = np.empty(2 * len(position), np.int64), np.empty(2 * len(position))
    for j in range(len(indptr) - 1):
        found = 0
        for a in range(indptr[j], indptr[j + 1]):
            if slope[a] != 0.0 and position[k[a]] >= 0:
                at[found], value[found] = position[k[a]], slope[a]
                found += 1
        for i in range(found):
            for c in range(found):
                out[at[i], at[c]] += value[i] * value[c]
