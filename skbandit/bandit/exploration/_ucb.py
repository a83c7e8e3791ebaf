"""Upper confidence bounds: play the arm whose mean reward may be the largest."""

from __future__ import annotations

from skbandit.bandit._state import Rule
from skbandit.bandit.links import upper_index
from skbandit.utils._compiled import inlined_exactly


@inlined_exactly
def score(m: float, v: float, alpha: float, rule: Rule) -> float:
    """Increasing function of the upper bound of the mean reward."""
    return upper_index(m, v, alpha, rule)
