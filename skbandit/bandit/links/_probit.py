"""Probit rewards, P(r = 1) = Φ(θ): the assumed-density-filtering step.

Li, Chu, Langford, Moon & Wang (2012), eqs. 10-11, where as printed δ has 1/√(1 + v) for 1/(1 + v),
which makes variances negative.
"""

from __future__ import annotations

import math

from skbandit.utils._compiled import compiled_exactly


@compiled_exactly
def probit_step(m: float, v: float, r: float) -> tuple[float, float]:
    """(g, h) of the moments given r; a fraction is that share of a success and of a failure."""
    total = 1.0 + v
    scale = math.sqrt(total)
    up, up_bend = _hazard(m / scale)
    down, down_bend = _hazard(-m / scale)
    g = (r * up - (1.0 - r) * down) / scale
    return g, (r * up_bend + (1.0 - r) * down_bend) / total


@compiled_exactly
def probit_index(m: float, v: float) -> float:
    """The linear predictor whose Φ is the mean reward."""
    return m / math.sqrt(1.0 + v)


@compiled_exactly
def _hazard(z: float) -> tuple[float, float]:
    """ρ = φ(z)/Φ(z) and ρ (ρ + z), which is within [0, 1], for any z."""
    if z > -5.0:
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        rho = density / (0.5 * math.erfc(-z / math.sqrt(2.0)))
        return rho, min(max(rho * (rho + z), 0.0), 1.0)
    # Laplace's continued fraction, ρ = x + 1/(x + 2/(x + 3/...)) with x = -z: so ρ + z is had
    # without the difference of two large numbers. At x = 5, 60 terms are more than enough.
    x = -z
    tail = x
    for k in range(60, 1, -1):
        tail = x + k / tail
    beyond = 1.0 / tail
    return x + beyond, min((x + beyond) * beyond, 1.0)
