"""Logistic rewards, P(r = 1) = σ(θ): the Laplace step, and ways to judge an uncertain θ.

Li, Chu, Langford, Moon & Wang (2012): posterior by eqs. 6-7 (which as printed lack the ½ in the
Gaussian's exponent), posterior means M0-M3, upper bounds U0-U3.
"""

from __future__ import annotations

import math

from skbandit.utils._compiled import compiled_exactly


@compiled_exactly
def sigmoid(z: float) -> float:
    """σ(z) without overflow."""
    return _sigmoids(z)[1]


@compiled_exactly
def _sigmoids(z: float) -> tuple[float, float]:
    """σ(-z) and σ(z)."""
    e = math.exp(-abs(z))
    small, large = e / (1.0 + e), 1.0 / (1.0 + e)
    return (small, large) if z >= 0 else (large, small)


@compiled_exactly
def log_sigmoid(z: float) -> float:
    """Logarithm of σ(z), exact where σ(z) is 0 or 1 in floating point."""
    return min(z, 0.0) - math.log1p(math.exp(-abs(z)))


@compiled_exactly
def logistic_step(m: float, v: float, r: float) -> tuple[float, float]:
    """(g, h) of the Laplace approximation; a fraction r is r successes and 1 - r failures.

    The mode solves θ - m = v (r - σ(θ)), whose left side less its right increases in θ.
    Newton's method from m diverges for some (m, v), so it is kept within a bracket.
    """
    sign = 1.0
    up, down = _sigmoids(m)
    if r * up < (1.0 - r) * down:  # the mode is below m: the mirror image
        sign, m, r = -1.0, -m, 1.0 - r
        up = down
    low = m
    # θ - m <= v r σ(-θ): by σ(-θ) <= σ(-m), and by σ(-θ) <= exp(-θ)
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


@compiled_exactly
def logistic_index(m: float, v: float, mean: int) -> float:
    """The linear predictor whose σ is the mean reward M0, M1 or M2, or whose exp is M3."""
    if mean == 0:
        return m
    if mean == 1:
        return m / math.sqrt(1.0 + math.pi * v / 8.0)
    return m + 0.5 * v


@compiled_exactly
def logistic_upper(m: float, v: float, alpha: float, ucb: int, mean: int) -> float:
    """An increasing function of the upper bound U0 (its linear predictor), U2 (its log), U1, U3."""
    if ucb == 0:
        return m + alpha * math.sqrt(v)
    if ucb == 1:
        spread = math.sqrt(max(0.0, _variance(m, v)))
        return sigmoid(m + alpha * math.sqrt(v)) + alpha * spread
    if ucb == 2:
        index = logistic_index(m, v, mean)
        log_mean = index if mean == 3 else log_sigmoid(index)
        if alpha == 0.0 or v == 0.0:
            return log_mean
        # log(1 + α √(eᵛ - 1)), where eᵛ may overflow
        log_spread = math.log(alpha) + 0.5 * (v + math.log(-math.expm1(-v)))
        return log_mean + max(log_spread, 0.0) + math.log1p(math.exp(-abs(log_spread)))
    return sigmoid(m) + alpha * math.sqrt(v)


@compiled_exactly
def _variance(m: float, v: float) -> float:
    """Var σ(θ) as U1 approximates it, good to ±.004 only: at small v it may be negative."""
    z = (math.pi * m / math.sqrt(8.0) - 1.0) / math.sqrt(math.pi - 1.0 + math.pi**2 * v / 8.0)
    return 0.5 * math.erfc(-z / math.sqrt(2.0)) - sigmoid(logistic_index(m, v, 1)) ** 2
