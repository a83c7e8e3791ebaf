"""Upper confidence bounds: play the arm whose mean reward may be the largest."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import Rule
from skbandit.bandit.exploration._ties import share_best
from skbandit.bandit.links import upper_index
from skbandit.utils._compiled import compiled_exactly, inlined_exactly


@inlined_exactly
def score(m: float, v: float, alpha: float, rule: Rule) -> float:
    """Increasing function of the upper bound of the mean reward."""
    return upper_index(m, v, alpha, rule)


@compiled_exactly
def probabilities(
    pool: np.ndarray, m: np.ndarray, v: np.ndarray, alpha: float, rule: Rule, out: np.ndarray
) -> None:
    """Probability 1 for the largest upper bound."""
    scores = np.empty(len(m))
    for k in pool:
        scores[k] = score(m[k], v[k], alpha, rule)
    share_best(pool, scores, out)
