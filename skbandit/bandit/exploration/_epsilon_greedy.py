"""ε-greedy: an arm drawn uniformly with probability ε, else the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._random import COIN, NO_ARM, uniform
from skbandit.bandit.exploration._sets import SetRule, best, best_inclusion, choose_best
from skbandit.utils._compiled import called_exactly, inlined_exactly


@called_exactly
def proposes(t: int, rule: ChoiceRule) -> bool:
    """Return whether choice t plays an arm drawn uniformly."""
    return uniform(rule.seed, t, NO_ARM, COIN) < rule.epsilon


@inlined_exactly
def probability(share: float, pool: np.ndarray, rule: ChoiceRule) -> float:
    """ε/K for each of the K arms; the best take the remaining 1 - ε, each its share of them."""
    return (1.0 - rule.epsilon) * share + rule.epsilon / len(pool)


def epsilon_inclusion(scores: np.ndarray, m: int, epsilon: float) -> np.ndarray:
    """Return inclusion of a slate that is uniform with probability ε, else the m best."""
    available = scores > -np.inf
    uniform = available * m / available.sum(axis=1, keepdims=True)
    return (1 - epsilon) * best_inclusion(scores, m) + epsilon * uniform


def _choose(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    _, others = models.uniforms(seed, t)
    uniform = np.where(models.available, others[:, :-1], -np.inf)
    coin = others[:, -1:] < models.epsilon
    return np.where(coin, best(uniform, m, None), choose_best(models, m, seed, t))


SETS = SetRule(lambda models, m: epsilon_inclusion(models.scores(0, 0), m, models.epsilon), _choose)
