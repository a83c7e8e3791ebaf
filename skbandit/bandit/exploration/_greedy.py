"""Greedy choices and their ties, and ε-greedy: arms drawn uniformly.

Arrays of scores have the shape (n_rows, n_arms); arms whose score is -inf are not available.
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._random import COIN, EXPLORE, NO_ARM, TIE, uniform
from skbandit.utils._compiled import called_exactly, inlined_exactly


@called_exactly
def wins_tie(
    t: int, key: int, other_key: int, order: int, other_order: int, rule: ChoiceRule
) -> bool:
    """Whether an arm precedes another of equal score: by a draw if exploring, else by order."""
    if t >= 0:
        mine, other = uniform(rule.seed, t, key, TIE), uniform(rule.seed, t, other_key, TIE)
        if mine != other:
            return mine > other
    return order < other_order


@called_exactly
def uniform_score(t: int, key: int, rule: ChoiceRule) -> float:
    """Score whose maximum over arms is a uniform draw among them."""
    return uniform(rule.seed, t, key, EXPLORE)


@inlined_exactly
def count_best(score: float, pool: np.ndarray, scores: np.ndarray) -> int:
    """Number of arms of the pool that have this score."""
    n = 0
    for k in pool:
        n += scores[k] == score
    return n


@called_exactly
def proposes(t: int, rule: ChoiceRule) -> bool:
    """Whether choice t plays an arm drawn uniformly."""
    return uniform(rule.seed, t, NO_ARM, COIN) < rule.epsilon


@inlined_exactly
def probability(share: float, n_arms: int, rule: ChoiceRule) -> float:
    """ε/K for each of the K arms; the best take the remaining 1 - ε, each its share of them."""
    return (1.0 - rule.epsilon) * share + rule.epsilon / n_arms


def best(scores: np.ndarray, m: int, u: np.ndarray | None) -> np.ndarray:
    """Columns of the m largest scores per row, best first.

    Ties go to the larger u, an array of the shape of the scores, else to the first column.
    """
    ties = np.broadcast_to(-np.arange(scores.shape[1]), scores.shape) if u is None else u
    return np.lexsort((-ties, -scores), axis=1)[:, :m]


def best_inclusion(scores: np.ndarray, m: int) -> np.ndarray:
    """Probability of each arm to be one of the m largest scores, if ties are broken at random."""
    threshold = -np.partition(-scores, m - 1, axis=1)[:, m - 1 : m]
    above, equal = scores > threshold, scores == threshold
    places = m - above.sum(axis=1, keepdims=True)
    return above + equal * places / equal.sum(axis=1, keepdims=True)


def epsilon_inclusion(scores: np.ndarray, m: int, epsilon: float) -> np.ndarray:
    """Inclusion of a slate that is uniform with probability ε, else the m best."""
    available = scores > -np.inf
    uniform = available * m / available.sum(axis=1, keepdims=True)
    return (1 - epsilon) * best_inclusion(scores, m) + epsilon * uniform
