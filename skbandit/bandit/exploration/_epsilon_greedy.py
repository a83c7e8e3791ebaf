"""ε-greedy: any arm with probability ε, else the arm of the largest posterior mean reward."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._random import COIN, uniform
from skbandit.bandit._state import Rule
from skbandit.bandit.exploration._ties import share_best
from skbandit.bandit.links import mean_index
from skbandit.utils._compiled import compiled_exactly


@compiled_exactly
def proposes(t: int, rule: Rule) -> bool:
    """Whether choice t plays an arm drawn uniformly."""
    return uniform(rule.seed, t, 0, COIN) < rule.epsilon


@compiled_exactly
def probabilities(
    pool: np.ndarray, m: np.ndarray, v: np.ndarray, rule: Rule, out: np.ndarray
) -> None:
    """ε/K for each of the K arms, and the remaining 1 - ε for the best."""
    scores = np.empty(len(m))
    for k in pool:
        scores[k] = mean_index(m[k], v[k], rule)
    share_best(pool, scores, out)
    for k in pool:
        out[k] = (1.0 - rule.epsilon) * out[k] + rule.epsilon / len(pool)
