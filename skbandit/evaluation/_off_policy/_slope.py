"""SLOPE: the choice among estimates of one quantity that trade bias for variance.

Su, Srinath & Krishnamurthy (2020), "Adaptive estimator selection for off-policy evaluation". The
estimates θ_1, θ_2, ... are in order of increasing bias and decreasing confidence width c. An
estimate is admissible if it agrees with all less biased ones up to their widths, |θ_k - θ_j| ≤
c_k + (√6 - 1) c_j for j < k. The last estimate before the first inadmissible one is chosen. Its
error is then at most a constant times the smallest sum of bias and width, without any knowledge of
the bias.
"""

from __future__ import annotations

import numpy as np

_FACTOR = np.sqrt(6) - 1

WIDTH = 1.0
"""Confidence width of an estimate, in standard errors. The larger, the more bias passes as noise:
with the paper's 2, estimates that differ by five standard errors may agree, and in simulations the
mean prediction was chosen nearly always."""


def slope(values: np.ndarray, errors: np.ndarray) -> int:
    """Index of the chosen estimate, given values and standard errors of shape (n_estimates,).

    The first estimate is the least biased one. Errors are made nonincreasing, as the order of the
    estimates promises.
    """
    width = WIDTH * np.minimum.accumulate(errors)
    for k in range(1, len(values)):
        if (np.abs(values[k] - values[:k]) > width[k] + _FACTOR * width[:k]).any():
            return k - 1
    return len(values) - 1
