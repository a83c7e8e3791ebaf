"""Reward models, one file per link, and the switch between them.

A link file defines, for a linear predictor θ ~ N(m, v):

- `step(m, v, r)`: (g, h) such that the posterior of θ given the reward r has mean m + v g and
  variance v - v² h. This form does not divide by v, and no differences cancel.
- `log_predictive(m, v, r)`: log likelihood of the reward before it is learned.
- `index(m, v)`: an increasing function of the mean reward, which greedy choices compare.
- `upper(m, v, alpha)`: an increasing function of the upper confidence bound.
- `mean_reward(index)` and `mean_rewards(index)`: the mean reward itself, on the reward's scale, of
  a number in compiled code and of an array.
- `REWARD_RANGE`: the smallest and the largest reward that the model accepts.

Indices rather than rewards are compared because they neither overflow nor round to ties.

The functions below are the only ones that compare codes of links. They import numba, so this
module is imported inside functions.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._state import LINKS, ChoiceRule
from skbandit.bandit.links import _linear as linear
from skbandit.bandit.links import _logistic as logistic
from skbandit.bandit.links import _probit as probit
from skbandit.utils._compiled import called_exactly, inlined_exactly

__all__: list[str] = []

LINEAR, LOGISTIC, PROBIT = range(len(LINKS))


@inlined_exactly
def step(m: float, v: float, r: float, link: int, noise_variance: float) -> tuple[float, float]:
    """(g, h) of the posterior of θ ~ N(m, v) given the reward r."""
    if link == LINEAR:
        g, h = linear.step(m, v, r, noise_variance)
    elif link == LOGISTIC:
        g, h = logistic.step(m, v, r)
    else:
        g, h = probit.step(m, v, r)
    return g, h


@called_exactly
def log_evidence(
    m: float, v: float, r: float, weight: float, link: int, noise_variance: float
) -> float:
    """Log likelihood of `weight` rewards r where θ ~ N(m, v), but for what m and v do not change.

    Exact for linear rewards; for others, as if all but the first were seen right after it.
    """
    if link == LINEAR:
        return linear.log_predictive(m, v, r, noise_variance / weight)
    evidence, left = 0.0, weight
    if weight > 1.0:
        evidence, left = _log_predictive(m, v, r, link), weight - 1.0
        g, h = step(m, v, r, link, noise_variance)
        m, v = m + v * g, v - v * v * h
    return evidence + left * _log_predictive(m, v, r, link)


@called_exactly
def _log_predictive(m: float, v: float, r: float, link: int) -> float:
    return logistic.log_predictive(m, v, r) if link == LOGISTIC else probit.log_predictive(m, v, r)


@called_exactly
def mean_index(m: float, v: float, rule: ChoiceRule) -> float:
    """Increasing function of the posterior mean reward where θ ~ N(m, v)."""
    if rule.link == LINEAR:
        return linear.index(m, v)
    if rule.link == LOGISTIC:
        return logistic.index(m, v, rule.mean)
    return probit.index(m, v)


@inlined_exactly
def mean_of_certain(theta: float, v: float, link: int) -> float:
    """Mean of θ of variance v with the mean reward that a certain θ has, by the default `mean`."""
    return theta * math.sqrt(1.0 + v) if link == PROBIT else theta


@inlined_exactly
def upper_index(m: float, v: float, alpha: float, rule: ChoiceRule) -> float:
    """Increasing function of the upper confidence bound of the reward where θ ~ N(m, v)."""
    if rule.link == LINEAR:
        upper = linear.upper(m, v, alpha)
    elif rule.link == LOGISTIC:
        upper = logistic.upper(m, v, alpha, rule.ucb, rule.mean)
    else:
        upper = probit.upper(m, v, alpha)
    return upper


@called_exactly
def mean_reward(index: float, rule: ChoiceRule) -> float:
    """Mean reward of an arm with this `mean_index`."""
    if rule.link == LINEAR:
        return linear.mean_reward(index)
    if rule.link == LOGISTIC:
        return logistic.mean_reward(index, rule.mean)
    return probit.mean_reward(index)


def mean_rewards(index: np.ndarray, rule: ChoiceRule) -> np.ndarray:
    """Mean rewards of an array of indices, by scipy."""
    if rule.link == LINEAR:
        return linear.mean_rewards(index)
    if rule.link == LOGISTIC:
        return logistic.mean_rewards(index, rule.mean)
    return probit.mean_rewards(index)


def check_rewards(link: str, reward: np.ndarray) -> None:
    """Require rewards within the range of the link."""
    low, high = (linear, logistic, probit)[LINKS.index(link)].REWARD_RANGE
    wrong = np.flatnonzero((reward < low) | (reward > high))
    if len(wrong):
        raise ValueError(
            f"reward is {reward[int(wrong[0])]:g} on row {wrong[0]}, but link={link!r} requires "
            f"rewards from {low:g} to {high:g}: rescale them, or use link='linear'."
        )
