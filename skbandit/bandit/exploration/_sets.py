"""Exploration rules for arrays: m of K arms per row, by what a model predicts of them.

Rules are given `models`, of which each uses some: `available`, a mask of shape (n_rows, n_arms)
with at least m arms per row; `n_events`, `alpha` and `epsilon`; `scores(seed, t)` of choices t,
t + 1, ...; mean `rewards()`, and those of `replicates()`; `moments()`, the means and the standard
deviations of Thompson sampling's draws; and `uniforms(seed, t)`, one number per arm for ties, and
others followed by a coin. Scores, means and rewards are -inf for arms that are not available.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from skbandit.bandit._state import EXPLORATIONS


class SetRule(NamedTuple):
    """An exploration rule, as `SETS` of its file."""

    inclusion: Callable[[Any, int], np.ndarray]
    """Probability of each arm to be among the m chosen."""
    choose: Any = None
    """Columns of the m arms of choices t, t + 1, ..., best first, given a seed, too."""
    probabilities: Callable[[Any], np.ndarray] | None = None
    """Probability of each arm if one is chosen; None is `inclusion` for m = 1."""


def set_rule(name: str) -> SetRule:
    """Return the rule of a name of `EXPLORATIONS`, for arrays."""
    assert name in EXPLORATIONS
    return import_module(f"skbandit.bandit.exploration._{name}").SETS


def arm_probabilities(name: str, models: Any) -> np.ndarray:
    """Return probability of each arm to be the one chosen."""
    rule = set_rule(name)
    return rule.inclusion(models, 1) if rule.probabilities is None else rule.probabilities(models)


def draw_arms(probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return column drawn in each row, by uniform numbers u from [0, 1)."""
    cumulated = np.cumsum(probabilities, axis=1)
    drawn = (cumulated <= (u * cumulated[:, -1])[:, None]).sum(axis=1)
    last = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
    return np.minimum(drawn, last)  # if u times the total rounds up to it


def best(scores: np.ndarray, m: int, u: np.ndarray | None) -> np.ndarray:
    """Return columns of the m largest scores per row, best first.

    Ties go to the larger u, an array of the shape of the scores, else to the first column.
    """
    ties = np.broadcast_to(-np.arange(scores.shape[1]), scores.shape) if u is None else u
    return np.lexsort((-ties, -scores), axis=1)[:, :m]


def best_inclusion(scores: np.ndarray, m: int) -> np.ndarray:
    """Probability of each arm to be one of the m largest scores, if ties are broken at random."""
    threshold = -np.partition(-scores, m - 1, axis=1)[:, m - 1 : m]
    above, equal = scores > threshold, scores == threshold
    places = m - above.sum(axis=1, keepdims=True)
    return above + equal * places / equal.sum(axis=1, keepdims=True)


def choose_best(models: Any, m: int, seed: int, t: int) -> np.ndarray:
    """Choose the m largest scores."""
    ties, _ = models.uniforms(seed, t)
    return best(models.scores(seed, t), m, ties)


def include_best(models: Any, m: int) -> np.ndarray:
    """Return probability of each arm to be one of the m largest scores."""
    return best_inclusion(models.scores(0, 0), m)
