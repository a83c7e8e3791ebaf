"""How likely each arm is to be chosen, where the choice is random."""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._kernels import context
from skbandit.bandit._posterior import moments
from skbandit.bandit._scores import score
from skbandit.bandit._state import Beliefs, Choices, Rule
from skbandit.utils._compiled import compiled_exactly


@compiled_exactly
def choice_probabilities(
    X: np.ndarray,
    choices: Choices,
    quantiles: np.ndarray,
    alpha: float,
    beliefs: Beliefs,
    rule: Rule,
) -> np.ndarray:
    """Probability of each arm on each row, of shape (n_rows, n_arms).

    Equal scores share; ε-greedy adds its share for all. Thompson sampling: arm k comes first with
    probability E Π_j Φ((θ_k - m_j)/√v_j), θ_k ~ N(m_k, v_k), taken over the q given
    `quantiles` of N(0, 1), at (i + ½)/q. The product increases in θ_k, so that this is within
    1/(2q) of it.
    """
    mean, spread = beliefs.mean, beliefs.spread
    x = context(X, rule)
    out = np.zeros((len(X), len(mean)))
    m, s = np.empty(len(mean)), np.empty(len(mean))
    for row in range(len(X)):
        x[: X.shape[1]] = X[row]
        pool = choices.arms[
            choices.start[choices.of_event[row]] : choices.start[choices.of_event[row] + 1]
        ]
        for k in pool:
            m[k], v = moments(x, mean, spread, k)
            if rule.exploration == 2:
                s[k] = math.sqrt(v)
            else:
                m[k] = score(m[k], v, alpha, 0, 0, rule)
                s[k] = 0.0
        _share_first_place(pool, m, s, quantiles, out[row])
        if rule.exploration == 1:
            for k in pool:
                out[row, k] = (1.0 - rule.epsilon) * out[row, k] + rule.epsilon / len(pool)
    return out


@compiled_exactly
def _share_first_place(
    pool: np.ndarray, m: np.ndarray, s: np.ndarray, quantiles: np.ndarray, out: np.ndarray
) -> None:
    """Probability of each of the pool that its draw from N(m, s²) is the largest."""
    total = 0.0
    for k in pool:
        for z in quantiles:
            first = 1.0
            equals = 1.0
            for j in pool:
                ahead = m[k] + s[k] * z - m[j]
                if j == k or ahead > 6.0 * s[j]:  # Φ(6) is 1 to nine digits
                    continue
                if s[j] > 0.0:
                    first *= 0.5 * math.erfc(-ahead / (s[j] * math.sqrt(2.0)))
                elif ahead == 0.0:
                    equals += 1.0
                else:
                    first = 0.0
                if first < 1e-12:
                    first = 0.0
                    break
            out[k] += first / equals
        total += out[k]
    for k in pool:
        out[k] /= total
