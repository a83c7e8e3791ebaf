"""What makes a policy prefer one arm to another: numbers to compare, larger is better.

Only increasing functions of the rewards that the paper compares, such as the linear predictor for
its σ, so that nothing overflows or is rounded to a tie.
"""

from __future__ import annotations

import math

from skbandit.bandit._random import COIN, EXPLORE, TIE, standard_normal, uniform
from skbandit.bandit._state import Rule
from skbandit.bandit.links._logistic import logistic_index, logistic_upper
from skbandit.bandit.links._probit import probit_index
from skbandit.utils._compiled import compiled_exactly, inlined_exactly


@compiled_exactly
def greedy_score(m: float, v: float, rule: Rule) -> float:
    """The linear predictor of the posterior mean reward."""
    if rule.link == 0:
        return m
    if rule.link == 1:
        return logistic_index(m, v, rule.mean)
    return probit_index(m, v)


@inlined_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: Rule) -> float:
    """What choice t compares of the arm with this key, where θ ~ N(m, v)."""
    if t >= 0 and rule.exploration == 0 and (rule.link != 1 or rule.ucb == 0):
        result = m + alpha * math.sqrt(v)  # the usual case, without a call
    else:
        result = _special_score(m, v, alpha, t, key, rule)
    return result


@compiled_exactly
def _special_score(m: float, v: float, alpha: float, t: int, key: int, rule: Rule) -> float:
    if t < 0 or rule.exploration == 1:
        return greedy_score(m, v, rule)
    if rule.exploration == 2:
        return m + math.sqrt(v) * standard_normal(rule.seed, t, key)
    return logistic_upper(m, v, alpha, rule.ucb, rule.mean)


@compiled_exactly
def blind_score(t: int, key: int, rule: Rule) -> float:
    """What a choice compares that ignores what is believed: each arm is as likely to come first."""
    return uniform(rule.seed, t, key, EXPLORE)


@compiled_exactly
def explores(t: int, rule: Rule) -> bool:
    """Whether choice t ignores what is believed."""
    return t >= 0 and rule.exploration == 1 and uniform(rule.seed, t, 0, COIN) < rule.epsilon


@compiled_exactly
def wins_tie(t: int, key: int, other_key: int, rank: int, other_rank: int, rule: Rule) -> bool:
    """Whether an arm comes before another of equal score: at random, or by rank if greedy."""
    if t >= 0:
        mine, its = uniform(rule.seed, t, key, TIE), uniform(rule.seed, t, other_key, TIE)
        if mine != its:
            return mine > its
    return rank < other_rank
