"""Compiled loops over the rows of a smoothed convex problem.

Each hinge max(0, u) of u = 1/2 + f or 1/2 - f is replaced by

    h(u; a) = max over 0 <= s <= 1 of s u - eps (s - a)^2,

whose maximiser s = clip(a + u / 2 eps, 0, 1) is its derivative and, at the optimum, the dual
variable of the hinge as a share of its upper bound. It is at most eps max(a, 1 - a)^2 below the
hinge, and equal to it where s = a: the proximal point method on the dual moves the centres a to s.

All loops run over ``ConvexProblem.by_row``: row j of the data has the entries (k, cost), where
cost > 0 is that of a positive prediction in row k of the problem, and cost < 0 minus that of a
negative one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbandit.utils._compiled import compiled


class CostEntries(NamedTuple):
    """The entries of `ConvexProblem.by_row`."""

    indptr: np.ndarray
    k: np.ndarray
    cost: np.ndarray


class Centres(NamedTuple):
    """Slopes in [0, 1] at which the smoothing of each row's two hinges is exact."""

    up: np.ndarray
    down: np.ndarray


@compiled
def _smoothed_hinge(u: float, a: float, eps: float) -> tuple[float, float]:
    """Smoothed hinge h(u; a) and its derivative."""
    s = min(max(a + u / (2 * eps), 0.0), 1.0)
    return s * u - eps * (s - a) * (s - a), s


@compiled
def rows_along(
    costs: CostEntries,
    centres: Centres,
    z: np.ndarray,
    dz: np.ndarray,
    t: float,
    eps: float,
    lift: float,
    values: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Fill the values of the problem's rows at the scores z + t dz, and their slopes in t.

    `lift` is added to every smoothed hinge.
    """
    values[:] = 0.0
    slopes[:] = 0.0
    for j in range(len(z)):
        first, last = costs.indptr[j], costs.indptr[j + 1]
        if first == last:
            continue
        f = z[j] + t * dz[j]
        h_up, s_up = _smoothed_hinge(0.5 + f, centres.up[j], eps)
        h_down, s_down = _smoothed_hinge(0.5 - f, centres.down[j], eps)
        for e in range(first, last):
            cost, k = costs.cost[e], costs.k[e]
            p, q = max(cost, 0.0), max(-cost, 0.0)  # no branches: labels are unpredictable
            values[k] += p * (h_up + lift) + q * (h_down + lift)
            slopes[k] += (p * s_up - q * s_down) * dz[j]


@compiled
def differentiate(
    costs: CostEntries,
    centres: Centres,
    z: np.ndarray,
    eps: float,
    v: np.ndarray,
    widen: float,
    slopes: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """Fill the slope in the score of each entry, and the curvature of each row of the data.

    Curvatures are of the Lagrangian, in which row k of the problem has weight v[k]. A hinge is
    curved where 0 < s < 1, and by `widen` beyond either end.
    """
    for j in range(len(z)):
        first, last = costs.indptr[j], costs.indptr[j + 1]
        curvature[j] = 0.0
        if first == last:
            continue
        up = centres.up[j] + (0.5 + z[j]) / (2 * eps)
        down = centres.down[j] + (0.5 - z[j]) / (2 * eps)
        up_curved = -widen < up < 1 + widen
        down_curved = -widen < down < 1 + widen
        up, down = min(max(up, 0.0), 1.0), min(max(down, 0.0), 1.0)
        total = 0.0
        for e in range(first, last):
            cost = costs.cost[e]
            if cost > 0:
                slopes[e] = cost * up
                if up_curved:
                    total += v[costs.k[e]] * cost
            else:
                slopes[e] = cost * down
                if down_curved:
                    total -= v[costs.k[e]] * cost
        curvature[j] = total / (2 * eps)


@compiled
def hinge_shares(
    centres: Centres, z: np.ndarray, eps: float, up: np.ndarray, down: np.ndarray
) -> None:
    """Fill the maximisers s of both hinges of each row."""
    for j in range(len(z)):
        up[j] = min(max(centres.up[j] + (0.5 + z[j]) / (2 * eps), 0.0), 1.0)
        down[j] = min(max(centres.down[j] + (0.5 - z[j]) / (2 * eps), 0.0), 1.0)


@compiled
def add_gram(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    curvature: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add [X 1]' diag(curvature) [X 1] to the lower half of H; indices of a row are sorted."""
    d = H.shape[0] - 1
    for j in range(len(curvature)):
        c = curvature[j]
        if c > 0:
            first, last = indptr[j], indptr[j + 1]
            for a in range(first, last):
                row = indices[a]
                cx = c * data[a]
                for b in range(first, a + 1):
                    H[row, indices[b]] += cx * data[b]
                H[d, row] += cx
            H[d, d] += c


@compiled
def accumulate_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    costs: CostEntries,
    slopes: np.ndarray,
    slopes_in_J: np.ndarray,
    curvature: np.ndarray,
    J: np.ndarray,
    H: np.ndarray,
) -> None:
    """Update J = [X 1]' slopes, and add [X 1]' diag(curvature) [X 1] to the lower half of H.

    `slopes_in_J` are the slopes that J was computed from: only rows with others are visited.
    """
    d = J.shape[0] - 1
    for j in range(len(curvature)):
        first, last = indptr[j], indptr[j + 1]
        changed = False
        for e in range(costs.indptr[j], costs.indptr[j + 1]):
            if slopes[e] != slopes_in_J[e]:
                changed = True
        if changed:
            for e in range(costs.indptr[j], costs.indptr[j + 1]):
                k = costs.k[e]
                step = slopes[e] - slopes_in_J[e]
                slopes_in_J[e] = slopes[e]
                for a in range(first, last):
                    J[indices[a], k] += step * data[a]
                J[d, k] += step
    add_gram(indptr, indices, data, curvature, H)
