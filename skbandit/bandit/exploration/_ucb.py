"""Upper confidence bounds: play the arm of the largest one."""

from __future__ import annotations

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._sets import SetRule, choose_best, include_best
from skbandit.bandit.links import upper_index
from skbandit.utils._compiled import inlined_exactly

SETS = SetRule(include_best, choose_best)


@inlined_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    """Return increasing function of the upper bound."""
    return upper_index(m, v, alpha, rule)
