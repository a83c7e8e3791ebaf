"""Step lengths along a descent direction, and the damping of the next one."""

from __future__ import annotations

import math
from collections.abc import Callable


def interpolate(low: float, high: float, share: float) -> float:
    """Return the point a share of the way from low to high, at least a tenth from either end."""
    return low + (high - low) * min(max(share, 0.1), 0.9)


def root_share(low_slope: float, high_slope: float) -> float:
    """Position in [0, 1] of the root of a derivative, linear from low_slope < 0 to high_slope > 0.

    The regula falsi step that both line searches of this package share. They differ around
    it: `line_search` below serves a merit function with kinks, where values must confirm the
    slopes; the augmented Lagrangian is smooth, and each of its trials costs a maximisation
    over the multipliers, so it starts with a safe step, doubles it, and tries less often.
    """
    return -low_slope / (high_slope - low_slope)


def adapted_damping(
    damping: float, length: float, *, short: float, least: float, most: float = math.inf
) -> float:
    """Raise the damping after a step shorter than `short`, lower it after a long one.

    It is 0, or between `least` and `most`.
    """
    if length < short:
        return min(max(10 * damping, least), most)
    if length > 0.5:
        return damping / 10 if damping > least else 0.0
    return damping


def line_search(
    merit: Callable[[float], tuple[float, float]], value: float, slope: float, max_trials: int = 20
) -> tuple[float, float]:
    """Search along a direction from t = 1 for a point with a small slope and a lower merit.

    Parameters
    ----------
    merit : callable
        Returns the value and the slope of the merit at t.
    value, slope : float
        Those at t = 0.
    max_trials : int
        Maximum number of calls of `merit`.

    Returns
    -------
    t, value : float
        Step length and the merit there; t is 0 if nothing lower is found.
    """
    slope = min(slope, -1e-300)
    t, low, low_slope = 1.0, 0.0, slope
    high, high_slope = math.inf, 0.0
    best_t, best = 0.0, value
    for trial in range(max_trials):
        value_t, slope_t = merit(t)
        if value_t < best:
            best_t, best = t, value_t
        if abs(slope_t) <= 0.25 * abs(slope) and value_t <= value + 1e-13 * abs(value):
            return t, value_t
        if trial >= 5 and best_t > 0:
            break
        if slope_t > 0 or value_t > value:
            high, high_slope = t, max(slope_t, 0.0)
        elif math.isinf(high):
            break
        else:
            low, low_slope = t, slope_t
        share = root_share(low_slope, high_slope) if high_slope > 0 else 0.5
        if best_t == 0:  # beyond a kink slopes mislead: use the parabola through the values, too
            share = min(share, -0.5 * slope * t / max(value_t - value - slope * t, 1e-300))
        t = interpolate(low, high, share)
    return best_t, best
