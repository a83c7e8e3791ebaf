"""Logistic rewards, P(r = 1) = σ(θ): Laplace step, posterior means M0-M3, upper bounds U0-U3.

Li, Chu, Langford, Moon & Wang (2012), eqs. 3 and 6-7; eq. 6 as printed lacks the ½ in the exponent
of the Gaussian.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from skbandit.bandit._state import MEANS, UCBS
from skbandit.utils._compiled import called_exactly, inlined_exactly

U0, U1, U2, U3 = range(len(UCBS))
M0, M1, M2, M3 = range(len(MEANS))


@called_exactly
def sigmoid(z: float) -> float:
    """Return σ(z) without overflow."""
    return _sigmoids(z)[1]


@called_exactly
def _sigmoids(z: float) -> tuple[float, float]:
    """Return σ(-z) and σ(z)."""
    e = math.exp(-abs(z))
    small, large = e / (1.0 + e), 1.0 / (1.0 + e)
    return (small, large) if z >= 0 else (large, small)


@called_exactly
def log_sigmoid(z: float) -> float:
    """Return Logarithm of σ(z), accurate even where σ(z) rounds to 0 or 1."""
    return min(z, 0.0) - math.log1p(math.exp(-abs(z)))


@called_exactly
def step(m: float, v: float, r: float) -> tuple[float, float]:
    """Return (g, h) of the Laplace approximation; a fraction r is r successes and 1 - r failures.

    The mode is the root of θ - m - v (r - σ(θ)), which increases in θ. Newton's method started
    at m diverges for some (m, v), so it is safeguarded by a bracket.
    """
    sign = 1.0
    up, down = _sigmoids(m)
    if r * up < (1.0 - r) * down:  # the mode is below m: solve the mirror image
        sign, m, r = -1.0, -m, 1.0 - r
        up = down
    low = m
    # θ - m <= v r σ(-θ), where σ(-θ) <= σ(-m) and σ(-θ) <= exp(-θ)
    high = max(low, min(m + v * r * up, max(m, 0.0) + math.log1p(v * r)))
    theta = low
    for _ in range(100):
        up, down = _sigmoids(theta)
        excess = theta - m - v * (r * up - (1.0 - r) * down)
        if excess < 0:
            low = theta
        else:
            high = theta
        newton = theta - excess / (1.0 + v * up * down)
        if abs(newton - theta) <= 1e-14 * max(1.0, abs(newton)):
            theta = newton
            break
        theta = newton if low < newton < high else 0.5 * (low + high)
    up, down = _sigmoids(theta)
    curvature = up * down
    return sign * (r * up - (1.0 - r) * down), curvature / (1.0 + v * curvature)


@called_exactly
def log_predictive(m: float, v: float, r: float) -> float:
    """Return Log likelihood of r successes and 1 - r failures under the mean reward M1."""
    z = _shrunk(m, v)
    if r == 1.0:
        return log_sigmoid(z)
    if r == 0.0:
        return log_sigmoid(-z)
    return r * log_sigmoid(z) + (1.0 - r) * log_sigmoid(-z)


@called_exactly
def index(m: float, v: float, mean: int) -> float:
    """Return linear predictor whose σ is the mean reward M0, M1 or M2, or whose exp is M3."""
    if mean == M0:
        return m
    if mean == M1:
        return _shrunk(m, v)
    return m + 0.5 * v


@called_exactly
def _shrunk(m: float, v: float) -> float:
    """Return linear predictor of M1, MacKay's approximation of the mean of σ(θ)."""
    return m / math.sqrt(1.0 + math.pi * v / 8.0)


@inlined_exactly
def upper(m: float, v: float, alpha: float, ucb: int, mean: int) -> float:
    """Increasing function of the upper bound: U0's linear predictor, log U2, or U1 or U3 itself."""
    if ucb == U0:  # the default, without a call
        bound = m + alpha * math.sqrt(v)
    else:
        bound = _other_upper(m, v, alpha, ucb, mean)
    return bound


@called_exactly
def _other_upper(m: float, v: float, alpha: float, ucb: int, mean: int) -> float:
    """Return upper bounds other than U0."""
    if ucb == U1:
        # the variance of σ(θ) is accurate to ±.004 only: it may be negative for small v
        z = (math.pi * m / math.sqrt(8.0) - 1.0) / math.sqrt(math.pi - 1.0 + math.pi**2 * v / 8.0)
        variance = 0.5 * math.erfc(-z / math.sqrt(2.0)) - sigmoid(_shrunk(m, v)) ** 2
        deviation = math.sqrt(max(0.0, variance))
        return sigmoid(m + alpha * math.sqrt(v)) + alpha * deviation
    if ucb == U2:
        predictor = index(m, v, mean)
        log_mean = predictor if mean == M3 else log_sigmoid(predictor)
        if alpha == 0.0 or v == 0.0:
            return log_mean
        # log(1 + α √(eᵛ - 1)), where eᵛ may overflow
        log_spread = math.log(alpha) + 0.5 * (v + math.log(-math.expm1(-v)))
        return log_mean + max(log_spread, 0.0) + math.log1p(math.exp(-abs(log_spread)))
    return sigmoid(m) + alpha * math.sqrt(v)


@called_exactly
def mean_reward(index: float, mean: int) -> float:
    """Return mean reward of an index; M3 may exceed 1."""
    return math.exp(index) if mean == M3 else sigmoid(index)


def mean_rewards(index: np.ndarray, mean: int) -> np.ndarray:
    """Return mean rewards of an array of indices; M3 may exceed 1."""
    return np.exp(index) if mean == M3 else expit(index)
