"""How far to go along a direction of descent."""

from __future__ import annotations

import math
from collections.abc import Callable


def line_search(
    merit: Callable[[float], tuple[float, float]], value: float, slope: float, limit: int = 20
) -> tuple[float, float]:
    """Length of a step, and the merit there: regula falsi on the derivative from t = 1.

    `merit` gives value and slope at t; `value` and `slope` are those at 0. Returns length 0
    where nothing lower is found.
    """
    slope = min(slope, -1e-300)
    t, low, low_slope = 1.0, 0.0, slope
    high, high_slope = math.inf, 0.0
    best_t, best = 0.0, value
    for count in range(limit):
        there, steepness = merit(t)
        if there < best:
            best_t, best = t, there
        if abs(steepness) <= 0.25 * abs(slope) and there <= value + 1e-13 * abs(value):
            return t, there
        if count >= 5 and best_t > 0:
            break
        if steepness > 0 or there > value:
            high, high_slope = t, max(steepness, 0.0)
        elif math.isinf(high):
            break
        else:
            low, low_slope = t, steepness
        share = -low_slope / (high_slope - low_slope) if high_slope > 0 else 0.5
        if best_t == 0:  # beyond a kink slopes tell little: the parabola through the values, too
            share = min(share, -0.5 * slope * t / max(there - value - slope * t, 1e-300))
        t = low + (high - low) * min(max(share, 0.1), 0.9)
    return best_t, best
