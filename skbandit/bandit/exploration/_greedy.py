"""Greedy choices, and ties of all."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._random import EXPLORE, TIE, uniform
from skbandit.bandit.exploration._sets import SetRule, choose_best, include_best
from skbandit.utils._compiled import called_exactly, inlined_exactly

SETS = SetRule(include_best, choose_best)


@called_exactly
def wins_tie(
    t: int, key: int, other_key: int, order: int, other_order: int, rule: ChoiceRule
) -> bool:
    """Return whether an arm wins a tie: by a draw if exploring, else by order."""
    if t >= 0:
        mine, other = uniform(rule.seed, t, key, TIE), uniform(rule.seed, t, other_key, TIE)
        if mine != other:
            return mine > other
    return order < other_order


@called_exactly
def uniform_score(t: int, key: int, rule: ChoiceRule) -> float:
    """Return score whose maximum over arms is a uniform draw among them."""
    return uniform(rule.seed, t, key, EXPLORE)


@inlined_exactly
def count_best(score: float, pool: np.ndarray, scores: np.ndarray) -> int:
    """Return number of arms of the pool that have this score."""
    n = 0
    for k in pool:
        n += scores[k] == score
    return n
