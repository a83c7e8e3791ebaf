"""Compiled search along b over all points where the penalized ramp objective can be lowest."""

from __future__ import annotations

import numpy as np

from skbandit.utils._compiled import compiled


@compiled
def penalized(values: np.ndarray, penalty: float) -> float:
    """`Iterate.penalized` of form values: the ratio plus penalized violations.

    Infinite where the denominator is empty.
    """
    total = values[0] / values[1] if values[1] > 1e-15 else np.inf
    for k in range(2, len(values)):
        total += penalty * max(values[k], 0.0)
    return total


@compiled
def minimize_along_b(
    indptr: np.ndarray,
    indices: np.ndarray,
    costs: np.ndarray,
    constant: np.ndarray,
    z: np.ndarray,
    scale: float,
    penalty: float,
    enough: float,
) -> tuple[float, float]:
    """Return the lowest penalized objective along b and its b.

    The forms are linear in the predictions pi: form 0 is the objective's numerator, form 1 its
    denominator, form 2 + k constraint k minus its bound. `constant` holds them at pi = 0, and row
    j adds cost * pi_j to form k for each of its entries (k, cost), k in `indices`.
    Stops at the first b whose value is `enough` or lower. Rows come in descending order of z,
    so that memory is read from front to back. All forms are linear in b between the kinks at
    -1/2 - scale z_j, where row j's ramp starts to rise, and 1/2 - scale z_j, where it stops;
    a violation adds a kink where it begins.
    """
    n = len(z)
    values, at_kink = constant.copy(), constant.copy()
    slopes = np.zeros_like(values)
    rising, falling = 0, 0
    b = -0.5 - scale * z[0]
    lowest, best_b = penalized(values, penalty), b
    while falling < n and lowest > enough:
        stop = 0.5 - scale * z[falling]
        rises = rising < n and -0.5 - scale * z[rising] <= stop
        j = rising if rises else falling
        nearest = (-0.5 if rises else 0.5) - scale * z[j]
        step = max(nearest - b, 0.0)
        for k in range(2, len(values)):
            ahead = values[k] + step * slopes[k]
            if values[k] * ahead < 0:
                part = step * values[k] / (values[k] - ahead)
                for i in range(len(values)):
                    at_kink[i] = values[i] + part * slopes[i]
                value = penalized(at_kink, penalty)
                if value < lowest:
                    lowest, best_b = value, b + part
        for k in range(len(values)):
            values[k] += step * slopes[k]
        b = nearest
        value = penalized(values, penalty)
        if value < lowest:
            lowest, best_b = value, b
        sign = 1.0 if rises else -1.0
        for e in range(indptr[j], indptr[j + 1]):
            slopes[indices[e]] += sign * costs[e]
        if rises:
            rising += 1
        else:
            falling += 1
    return lowest, best_b
