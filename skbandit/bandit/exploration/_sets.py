"""Exploration rules for arrays: m of K arms per row, by what a model predicts of them.

Rules are given `models`, of which each uses some: `available`, a mask of shape (n_rows, n_arms)
with at least m arms per row; `n_events`, `alpha` and `epsilon`; `scores(seed, t)` of choices t,
t + 1, ...; mean `rewards()`, and those of `replicates()`; `moments()`, the means and the standard
deviations of Thompson sampling's draws; and `uniforms(seed, t)`, one number per arm for ties, and
others followed by a coin. Scores, means and rewards are -inf for arms that are not available.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skbandit.bandit.exploration._greedy import best, best_inclusion, epsilon_inclusion
from skbandit.bandit.exploration._squarecb import (
    gammas,
    inverse_gap,
    inverse_gap_inclusion,
    systematic_sample,
)
from skbandit.bandit.exploration._thompson import largest_draws_inclusion


class SetRule(NamedTuple):
    """An exploration rule."""

    inclusion: Callable[[Any, int], np.ndarray]
    """Probability of each arm to be among the m chosen."""
    choose: Any = None
    """Columns of the m arms of choices t, t + 1, ..., best first, given a seed, too."""
    probabilities: Callable[[Any], np.ndarray] | None = None
    """Probability of each arm if one is chosen; None is `inclusion` for m = 1."""


def arm_probabilities(rule: str, models: Any) -> np.ndarray:
    """Probability of each arm to be the one chosen."""
    single = RULES[rule].probabilities
    return RULES[rule].inclusion(models, 1) if single is None else single(models)


def draw_arms(probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Column drawn in each row, by uniform numbers u from [0, 1)."""
    cumulated = np.cumsum(probabilities, axis=1)
    drawn = (cumulated <= (u * cumulated[:, -1])[:, None]).sum(axis=1)
    last = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
    return np.minimum(drawn, last)  # if u times the total rounds up to it


def _choose_best(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    ties, _ = models.uniforms(seed, t)
    return best(models.scores(seed, t), m, ties)


def _choose_draws(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    if not models.alpha:
        return _choose_best(models, m, seed, t)
    return best(models.scores(seed, t), m, None)  # draws have no ties


def _choose_uniform(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    _, others = models.uniforms(seed, t)
    uniform = np.where(models.available, others[:, :-1], -np.inf)
    coin = others[:, -1:] < models.epsilon
    return np.where(coin, best(uniform, m, None), _choose_best(models, m, seed, t))


def _gammas(models: Any, m: int) -> np.ndarray:
    return gammas(models.alpha, models.n_events, models.available.sum(axis=1), m)


def _choose_by_gap(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    ties, others = models.uniforms(seed, t)
    rewards = models.rewards()
    drawn = systematic_sample(inverse_gap_inclusion(rewards, m, _gammas(models, m)), m, others)
    shown = np.full(rewards.shape, -np.inf)
    np.put_along_axis(shown, drawn, np.take_along_axis(rewards, drawn, axis=1), axis=1)
    return best(shown, m, ties)


def _include_replicates(models: Any, m: int) -> np.ndarray:
    """Share of the replicates in which an arm is among the best.

    Playing the best arm of a replicate drawn at random approximates Thompson sampling
    (Eckles & Kaptein, 2014; Osband & Van Roy, 2015).
    """
    return np.mean([best_inclusion(rewards, m) for rewards in models.replicates()], axis=0)


RULES = {
    "ucb": SetRule(lambda models, m: best_inclusion(models.scores(0, 0), m), _choose_best),
    "greedy": SetRule(lambda models, m: best_inclusion(models.scores(0, 0), m), _choose_best),
    "thompson": SetRule(
        lambda models, m: largest_draws_inclusion(models.moments(), m), _choose_draws
    ),
    "epsilon_greedy": SetRule(
        lambda models, m: epsilon_inclusion(models.scores(0, 0), m, models.epsilon), _choose_uniform
    ),
    "squarecb": SetRule(
        lambda models, m: inverse_gap_inclusion(models.rewards(), m, _gammas(models, m)),
        _choose_by_gap,
        lambda models: inverse_gap(models.rewards(), _gammas(models, 1)),
    ),
    "bootstrap": SetRule(_include_replicates),
}
"""Rules by the names of `skbandit.bandit._state.EXPLORATIONS`."""
