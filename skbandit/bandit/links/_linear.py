"""Linear rewards: r = θ + noise, which Bayes' rule updates exactly."""

from __future__ import annotations

from skbandit.utils._compiled import compiled_exactly


@compiled_exactly
def linear_step(m: float, v: float, r: float, noise_variance: float) -> tuple[float, float]:
    """(g, h) of the Gaussian posterior given a reward with Gaussian noise."""
    total = v + noise_variance
    return (r - m) / total, 1.0 / total
