"""SquareCB: probabilities inversely proportional to the gap in mean reward.

Foster & Rakhlin (2020), Beyond UCB: Optimal and efficient contextual bandits with regression
oracles, Algorithm 1 (there for losses). With K arms of mean rewards y, the best of them b,

    p_a = 1 / (K + γ (y_b - y_a))   for a != b,        p_b = 1 - Σ_{a != b} p_a.

Their Theorem 1 sets γ = √(K T / R) for T rounds, with R a bound on the oracle's regret in squared
loss. Here γ = √(K n) / α² after n events, so that no horizon is needed and α⁴ takes the place of R.
Exploring costs up to 2 α² √(K / n) of reward per round: with 20 arms and α = .2, about .005 over
5,000 rounds.

An equivalent draw, which needs no order of the arms: propose an arm a uniformly, and play it with
probability K p_a = K / (K + γ (y_b - y_a)), else play b.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._random import COIN, NO_ARM, uniform
from skbandit.bandit._state import Rule
from skbandit.bandit.links import mean_reward
from skbandit.utils._compiled import called_exactly


@called_exactly
def acceptance(gap: float, n_arms: int, n_events: int, alpha: float) -> float:
    """K / (K + γ gap) with γ = √(K n) / α²; 0 for α = 0 or an infinite gap."""
    if gap < 0.0:  # by rounding
        gap = 0.0
    width = alpha * alpha * math.sqrt(n_arms)
    total = width + math.sqrt(n_events) * gap
    # false also if the gap is nan, as for two rewards of M3 that overflow
    return width / total if 0.0 < total < math.inf else 0.0


@called_exactly
def accepts(
    best: float, proposed: float, n_arms: int, n_events: int, alpha: float, t: int, rule: Rule
) -> bool:
    """Whether choice t plays the proposed arm rather than the best, given their mean indices."""
    gap = mean_reward(best, rule) - mean_reward(proposed, rule)
    return uniform(rule.seed, t, NO_ARM, COIN) < acceptance(gap, n_arms, n_events, alpha)


@called_exactly
def probabilities(
    pool: np.ndarray,
    scores: np.ndarray,
    alpha: float,
    n_events: int,
    rule: Rule,
    out: np.ndarray,
) -> None:
    """p_a for all arms but the best; the best takes the rest, in the shares that `out` has."""
    best = -math.inf
    for k in pool:
        best = max(best, scores[k])
    rest = 1.0
    for k in pool:
        if scores[k] < best:
            gap = mean_reward(best, rule) - mean_reward(scores[k], rule)
            out[k] = acceptance(gap, len(pool), n_events, alpha) / len(pool)
            rest -= out[k]
    for k in pool:
        if scores[k] == best:
            out[k] *= rest
