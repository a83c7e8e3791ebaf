"""ε-greedy: any arm with probability ε, else the arm of the largest posterior mean reward."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._random import COIN, NO_ARM, uniform
from skbandit.bandit._state import Rule
from skbandit.utils._compiled import called_exactly


@called_exactly
def proposes(t: int, rule: Rule) -> bool:
    """Whether choice t plays an arm drawn uniformly."""
    return uniform(rule.seed, t, NO_ARM, COIN) < rule.epsilon


@called_exactly
def probabilities(pool: np.ndarray, rule: Rule, out: np.ndarray) -> None:
    """ε/K for each of the K arms, and the remaining 1 - ε for the best, whose shares `out` has."""
    for k in pool:
        out[k] = (1.0 - rule.epsilon) * out[k] + rule.epsilon / len(pool)
