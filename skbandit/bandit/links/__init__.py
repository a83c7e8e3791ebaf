"""Reward models, one file per link, and the switches between them.

A link file defines, for a linear predictor θ ~ N(m, v):

- `step(m, v, r)`: (g, h) such that the posterior of θ given the reward r has mean m + v g and
  variance v - v² h. This form does not divide by v, and no differences cancel.
- `log_predictive(m, v, r)`: log likelihood of the reward before it is learned.
- `index(m, v)`: an increasing function of the mean reward, which greedy choices compare.
- `upper(m, v, alpha)`: an increasing function of the upper confidence bound.
- `mean_reward(index)` and `mean_rewards(index)`: the mean reward itself, on the reward's scale, of
  a number in compiled code and of an array.

Indices rather than rewards are compared because they neither overflow nor round to ties.

- `log_evidence(m, v, r, weight, noise_variance)`, if rewards of a weight differ from repeated ones.
- `deviation(mean, noise_variance)`, unless rewards are shares.
- `certain(theta, v)`: the mean of a θ of variance v whose mean reward is that of a certain `theta`,
  by the default `mean`, if it is another one.

Functions may take more: the noise variance, or the positions of `ucb` and `mean`. A new link is a
file here, and a row of `skbandit.bandit._state.LINKS`. Files import numba, so this module is
imported inside functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skbandit.bandit._state import LINKS, ChoiceRule
from skbandit.utils._compiled import called_exactly, inlined_exactly
from skbandit.utils._switch import files_of, switch

__all__: list[str] = []

FILES = files_of(__name__, LINKS)

step = switch(FILES, "step")
"""(g, h) of the posterior of θ ~ N(m, v) given the reward r: of the link, m, v, r and the noise."""


def _as_seen_in_turn(log_predictive: Any, one_step: Any) -> Any:
    """Return the evidence of equal rewards, as if all but the first were seen right after it."""

    def log_evidence(m: float, v: float, r: float, weight: float) -> float:
        evidence, left = 0.0, weight
        if weight > 1.0:
            evidence, left = log_predictive(m, v, r), weight - 1.0
            g, h = one_step(m, v, r)
            m, v = m + v * g, v - v * v * h
        return evidence + left * log_predictive(m, v, r)

    return called_exactly(log_evidence)


for _file in FILES:
    if not hasattr(_file, "log_evidence"):
        _file.log_evidence = _as_seen_in_turn(_file.log_predictive, _file.step)

log_evidence = switch(FILES, "log_evidence")
"""Log likelihood of `weight` rewards r where θ ~ N(m, v), but for what m and v do not change."""


@inlined_exactly
def _certain(theta: float, v: float) -> float:
    return theta


@called_exactly
def _of_shares(mean: float) -> float:
    share = min(max(mean, 0.01), 0.99)
    return math.sqrt(share * (1.0 - share))


deviation = switch(FILES, "deviation", _of_shares)
"""Standard deviation of rewards of a mean: of the link, the mean and the noise variance."""
mean_of_certain = switch(FILES, "certain", _certain)
_index, _upper, _mean = (switch(FILES, name) for name in ("index", "upper", "mean_reward"))


@called_exactly
def mean_index(m: float, v: float, rule: ChoiceRule) -> float:
    """Return increasing function of the posterior mean reward where θ ~ N(m, v)."""
    return _index(rule.link, m, v, rule.mean)


@inlined_exactly
def upper_index(m: float, v: float, alpha: float, rule: ChoiceRule) -> float:
    """Return increasing function of the upper confidence bound of the reward where θ ~ N(m, v)."""
    return _upper(rule.link, m, v, alpha, rule.ucb, rule.mean)


@called_exactly
def mean_reward(index: float, rule: ChoiceRule) -> float:
    """Return mean reward of an arm with this `mean_index`."""
    return _mean(rule.link, index, rule.mean)


def mean_rewards(index: np.ndarray, rule: ChoiceRule) -> np.ndarray:
    """Return mean rewards of an array of indices, by scipy."""
    return FILES[rule.link].mean_rewards(index, rule.mean)
