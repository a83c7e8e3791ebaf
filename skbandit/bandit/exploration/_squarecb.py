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
from typing import Any

import numpy as np

from skbandit.bandit._state import ChoiceRule
from skbandit.bandit.exploration._random import COIN, NO_ARM, uniform
from skbandit.bandit.exploration._sets import SetRule, best, best_inclusion
from skbandit.bandit.links import mean_reward
from skbandit.utils._compiled import called_exactly, inlined_exactly

# Halvings of an interval: beyond what floats tell apart.
_MULTIPLIER_HALVINGS = 80


COMPARES = True


@inlined_exactly
def alpha_scale(sigma: float) -> float:
    """Return factor of α, whose square is in the unit of the reward."""
    return math.sqrt(sigma)


@inlined_exactly
def proposes(t: int, rule: ChoiceRule) -> bool:
    """Return whether choice t proposes an arm."""
    return True


@inlined_exactly
def acceptance(gap: float, n_arms: int, n_events: int, alpha: float) -> float:
    """Return K / (K + γ gap) with γ = √(K n) / α²; 0 for α = 0 or an infinite gap."""
    if gap < 0.0:  # by rounding
        gap = 0.0
    width = alpha * alpha * math.sqrt(n_arms)
    total = width + math.sqrt(n_events) * gap
    # false also if the gap is nan, as for two rewards of M3 that overflow
    return width / total if 0.0 < total < math.inf else 0.0


@called_exactly
def accepts(
    best: float, proposed: float, n_arms: int, n_events: int, alpha: float, t: int, rule: ChoiceRule
) -> bool:
    """Return whether choice t plays the proposed arm, given the mean indices of both."""
    gap = mean_reward(best, rule) - mean_reward(proposed, rule)
    return uniform(rule.seed, t, NO_ARM, COIN) < acceptance(gap, n_arms, n_events, alpha)


@called_exactly
def probability(
    share: float, pool: np.ndarray, rule: ChoiceRule, k: int, best: float, scores: np.ndarray,
    alpha: float, n_events: int,
) -> float:  # fmt: skip
    """p_a of an arm that is not the best, of share 0; the best take the rest, each its share."""
    reward, total = mean_reward(best, rule), 0.0
    if share == 0.0:
        gap = reward - mean_reward(scores[k], rule)
        return acceptance(gap, len(pool), n_events, alpha) / len(pool)
    for j in pool:
        if scores[j] < best:
            gap = reward - mean_reward(scores[j], rule)
            total += acceptance(gap, len(pool), n_events, alpha)
    return share * (1.0 - total / len(pool))


def inverse_gap(rewards: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Return p_a of all arms, of shape (n_rows, n_arms), with one γ per row; infinity is greedy.

    Rewards are -inf for arms that are not available. The best arms share their probability.
    """
    top = rewards.max(axis=1, keepdims=True)
    n_arms = (rewards > -np.inf).sum(axis=1, keepdims=True)
    behind = (rewards > -np.inf) & (rewards < top)
    gap = np.where(behind, top - rewards, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.where(behind, 1 / (n_arms + np.where(behind, gamma[:, None] * gap, 0.0)), 0.0)
    rest = 1 - p.sum(axis=1, keepdims=True)
    return p + rest * best_inclusion(rewards, 1)


# Inverse gap weighting of single arms, for slates of m.
#
# For the mean rewards y of K arms, the inclusion probabilities π are those that maximize
#
#     Σ π_a y_a + (1/γ) Σ log π_a      over 0 < π_a ≤ 1, Σ π_a = m,
#
# which is π_a = min(1, 1/(γ (λ - y_a))) for the λ at which they sum to m. For m = 1 this is the
# log-barrier form of SquareCB (Foster, Gentile, Mohri & Zimmert, 2020, "Adapting to
# misspecification in contextual bandits"), in which all probabilities, the best arm's too, are
# inverse to a gap.
#
# For true mean rewards f and the slate S of the m best, optimality of π gives ⟨1_S - π, y⟩ ≤ (K -
# Σ_S 1/π_a)/γ, and for d = f - y, d_a ≤ 1/(γ π_a) + (γ/4) π_a d_a². Together
#
#     Σ_S f_a - Σ π_a f_a ≤ (K + m)/γ + (γ/2) Σ π_a (f_a - y_a)²,
#
# so that over T slates, each of whose rewards is seen, γ = √(K T/R) bounds the regret by a
# multiple of √(K T R), where R is the sum of the squared errors on the arms shown.


def inverse_gap_inclusion(rewards: np.ndarray, m: int, gamma: np.ndarray) -> np.ndarray:
    """Inclusion probabilities π of shape (n_rows, n_arms), with one γ per row; infinity is greedy.

    Rewards are -inf for arms that are not available. Under γ = inf, ties share their probability.
    """
    available = rewards > -np.inf
    top = -np.partition(-rewards, m - 1, axis=1)[:, m - 1 : m]
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(available, gamma[:, None] * (rewards - top), -np.inf)
    excess[np.isnan(excess)] = 0.0  # inf times 0
    # the m-th best arm has 0, so that l = γ (λ - top) is between 1 and the number K - m + 1 of
    # arms that are not better, which then share one place
    low, high = np.ones(len(rewards)), available.sum(axis=1) - m + 1.0
    for _ in range(_MULTIPLIER_HALVINGS):
        middle = (low + high) / 2
        enough = _capped(middle, excess).sum(axis=1) > m
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return _capped((low + high) / 2, excess)


def _capped(level: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Return min(1, 1/(l - e)), and 1 where l - e is not above 1."""
    return 1.0 / np.maximum(level[:, None] - excess, 1.0)


def systematic_sample(inclusion: np.ndarray, m: int, u: np.ndarray) -> np.ndarray:
    """Draw m different columns per row, each with its inclusion probability.

    Arms are laid end to end in random order, each as long as its probability, and every one that
    holds a point of v, v + 1, ..., v + m - 1 is taken (Madow, 1949).

    Parameters
    ----------
    inclusion : ndarray of shape (n_rows, n_arms)
        At most 1, with rows that sum to m.
    m : int
        Number of columns to draw.
    u : ndarray of shape (n_rows, n_arms + 1)
        Uniform numbers from [0, 1): one per arm for the order, and v.

    Returns
    -------
    ndarray of shape (n_rows, m)
        In no particular order.
    """
    order = np.argsort(u[:, :-1], axis=1)
    length = np.take_along_axis(inclusion, order, axis=1)
    end = np.cumsum(length, axis=1)
    end *= m / end[:, -1:]
    # number of points before the end of each arm; rounding must not lose the last
    points = np.ceil(end - u[:, -1:]).clip(0, m)
    points[:, -1] = m
    points = np.maximum.accumulate(points, axis=1)
    taken = np.diff(points, axis=1, prepend=0.0) > 0
    short = np.flatnonzero(taken.sum(axis=1) != m)
    for row in short:  # an arm of length 1 that rounding made hold two points
        missing = m - taken[row].sum()
        spare = np.flatnonzero(~taken[row])
        taken[row, spare[np.argsort(-length[row, spare], kind="stable")[:missing]]] = True
    places = np.nonzero(taken)[1].reshape(len(inclusion), m)
    return np.take_along_axis(order, places, axis=1)


def _gammas(models: Any, m: int) -> np.ndarray:
    """Return γ = √(K n/m)/α² of each row; infinity for α = 0."""
    n_arms = models.available.sum(axis=1)
    scale = np.sqrt(n_arms * models.n_events / m)
    return scale / models.alpha**2 if models.alpha else np.full(len(n_arms), np.inf)


def _choose(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    ties, others = models.uniforms(seed, t)
    rewards = models.rewards()
    drawn = systematic_sample(inverse_gap_inclusion(rewards, m, _gammas(models, m)), m, others)
    shown = np.full(rewards.shape, -np.inf)
    np.put_along_axis(shown, drawn, np.take_along_axis(rewards, drawn, axis=1), axis=1)
    return best(shown, m, ties)


SETS = SetRule(
    lambda models, m: inverse_gap_inclusion(models.rewards(), m, _gammas(models, m)),
    _choose,
    lambda models: inverse_gap(models.rewards(), _gammas(models, 1)),
)
