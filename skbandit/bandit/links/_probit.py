"""Probit rewards, P(r = 1) = Φ(θ): the assumed-density-filtering step.

Li, Chu, Langford, Moon & Wang (2012), eqs. 10-11; δ in eq. 11 is printed with 1/√(1 + v) in place
of 1/(1 + v), which would make variances negative.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from skbandit.utils._compiled import called_exactly, inlined_exactly


@called_exactly
def step(m: float, v: float, r: float) -> tuple[float, float]:
    """(g, h) that match the posterior moments; a fraction r is r successes and 1 - r failures."""
    total = 1.0 + v
    scale = math.sqrt(total)
    up, up_bend = _hazard(m / scale)
    down, down_bend = _hazard(-m / scale)
    g = (r * up - (1.0 - r) * down) / scale
    return g, (r * up_bend + (1.0 - r) * down_bend) / total


@called_exactly
def log_predictive(m: float, v: float, r: float) -> float:
    """Log likelihood of r successes and 1 - r failures, exactly the Gaussian mean of Φ(θ)."""
    z = index(m, v)
    return r * _log_ndtr(z) + (1.0 - r) * _log_ndtr(-z)


@called_exactly
def index(m: float, v: float) -> float:
    """Return linear predictor whose Φ is the mean reward."""
    return m / math.sqrt(1.0 + v)


@inlined_exactly
def certain(theta: float, v: float) -> float:
    """Return mean of θ of variance v with the mean reward that a certain θ has."""
    return theta * math.sqrt(1.0 + v)


@inlined_exactly
def upper(m: float, v: float, alpha: float) -> float:
    """Return linear predictor whose Φ is the upper bound."""
    return m + alpha * math.sqrt(v)


@called_exactly
def mean_reward(index: float) -> float:
    """Return mean reward of an index."""
    return 0.5 * math.erfc(-index / math.sqrt(2.0))


def mean_rewards(index: np.ndarray, mean: int = 0) -> np.ndarray:
    """Return mean rewards of an array of indices."""
    return ndtr(index)


@called_exactly
def _log_ndtr(z: float) -> float:
    """Return Log Φ(z), by φ(z)/ρ(z) in the far tail."""
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z / math.sqrt(2.0)))
    if z > -5.0:
        return math.log(0.5 * math.erfc(-z / math.sqrt(2.0)))
    return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - math.log(_hazard(z)[0])


@called_exactly
def _hazard(z: float) -> tuple[float, float]:
    """Return ρ = φ(z)/Φ(z), and ρ (ρ + z), which lies in [0, 1], accurately for any z."""
    if z > -5.0:
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        rho = density / (0.5 * math.erfc(-z / math.sqrt(2.0)))
        return rho, min(max(rho * (rho + z), 0.0), 1.0)
    # Laplace's continued fraction ρ = x + 1/(x + 2/(x + 3/...)), x = -z, yields ρ + z without
    # subtracting two large numbers. At x = 5, 60 terms are more than enough.
    x = -z
    tail = x
    for k in range(60, 1, -1):
        tail = x + k / tail
    beyond = 1.0 / tail
    return x + beyond, min((x + beyond) * beyond, 1.0)
