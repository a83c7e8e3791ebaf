"""What confidence limits ask of thresholds, for their reports and errors."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skbandit.constrained._declared import Goals
from skbandit.constrained._limits import Limits, SharedRisk


def margins_of(goals: Goals, limits: Limits, positive: np.ndarray) -> np.ndarray:
    """The slack that the level takes, for each constraint that was not skipped."""
    return limits.margins(positive[goals.measured.rows], 1.0)


def level_reached(limits: SharedRisk, positive: np.ndarray) -> str:
    """The level that predictions reach, and the rows that the asked one takes, in words.

    Widths of limits shrink with the square root of the number of rows.
    """
    sums = (limits.rows @ positive)[:, None]
    rates = limits.limits.slack(sums, 0.0).min(initial=np.inf)
    if rates <= 0 or limits.quantile == 0:
        return f". On these rows the rates leave no room for confidence_level={limits.level:g}"

    def left(z: float) -> float:
        return float(ndtr(-z) - limits.limits.risk(sums, z)[0])

    low = 1e-3
    if left(low) < 0 or left(limits.quantile) >= 0:
        reached, times = 0.5, np.inf
    else:
        z = brentq(left, low, limits.quantile)
        reached, times = float(ndtr(z)), (limits.quantile / z) ** 2
    text = f". These rows support a level of {reached:.2g}, not confidence_level={limits.level:g}"
    return text if np.isinf(times) else f"{text}, which takes about {times:.2g} times as many"
