"""Linear rewards, r = θ + Gaussian noise: Bayes' rule is exact."""

from __future__ import annotations

import math

import numpy as np

from skbandit.utils._compiled import called_exactly, inlined_exactly


@called_exactly
def step(m: float, v: float, r: float, noise_variance: float) -> tuple[float, float]:
    """Return (g, h) of the Gaussian posterior."""
    total = v + noise_variance
    return (r - m) / total, 1.0 / total


@called_exactly
def log_predictive(m: float, v: float, r: float, noise_variance: float) -> float:
    """Return Log density of N(m, v + noise) at r."""
    total = v + noise_variance
    return -0.5 * (math.log(2.0 * math.pi * total) + (r - m) * (r - m) / total)


@called_exactly
def log_evidence(m: float, v: float, r: float, weight: float, noise_variance: float) -> float:
    """Return Log density of the mean of `weight` rewards at r, exactly."""
    return log_predictive(m, v, r, noise_variance / weight)


@inlined_exactly
def deviation(mean: float, noise_variance: float) -> float:
    """Return standard deviation of the noise."""
    return math.sqrt(noise_variance)


@inlined_exactly
def index(m: float, v: float) -> float:
    """Return the mean reward itself."""
    return m


@inlined_exactly
def upper(m: float, v: float, alpha: float) -> float:
    """Return the upper bound itself."""
    return m + alpha * math.sqrt(v)


@inlined_exactly
def mean_reward(index: float) -> float:
    """Return the index is the mean reward."""
    return index


def mean_rewards(index: np.ndarray, mean: int = 0) -> np.ndarray:
    """Return the indices are the mean rewards."""
    return index
