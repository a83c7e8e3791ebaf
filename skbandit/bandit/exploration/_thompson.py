"""Thompson sampling: draw θ of every arm from its posterior, and play the largest.

The posterior N(m, v) is widened or narrowed to N(m, α²v): α = 1 draws from the posterior itself
(Thompson, 1933), less explores less, as published choices of α below 1 do in practice (Chapelle &
Li, 2011).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from skbandit.bandit._random import standard_normal
from skbandit.bandit._state import Rule
from skbandit.utils._compiled import called_exactly

# Nodes of the integral over a draw from N(0, 1): q quantiles, at (i + ½)/q. The integrand is
# monotone, so the error is at most 1/(2q) = .002.
QUANTILES = ndtri((np.arange(250) + 0.5) / 250)


@called_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: Rule) -> float:
    """Draw from N(m, α²v)."""
    return m + alpha * math.sqrt(v) * standard_normal(rule.seed, t, key)


@called_exactly
def probabilities(
    pool: np.ndarray, m: np.ndarray, v: np.ndarray, alpha: float, s: np.ndarray, out: np.ndarray
) -> None:
    """E Π_j Φ((θ_k - m_j)/√v_j), θ_k ~ N(m_k, v_k): that arm k has the largest draw.

    Fills the buffer `s` with standard deviations. `out` is 0 before.
    """
    for k in pool:
        s[k] = alpha * math.sqrt(v[k])
    total = 0.0
    for k in pool:
        for z in QUANTILES:
            first = 1.0
            n_equal = 1.0
            for j in pool:
                lead = m[k] + s[k] * z - m[j]
                if j == k or lead > 6.0 * s[j]:  # Φ(6) is 1 to nine digits
                    continue
                if s[j] > 0.0:
                    first *= 0.5 * math.erfc(-lead / (s[j] * math.sqrt(2.0)))
                elif lead == 0.0:
                    n_equal += 1.0
                else:
                    first = 0.0
                if first < 1e-12:
                    first = 0.0
                    break
            out[k] += first / n_equal
        total += out[k]
    for k in pool:
        out[k] /= total
