"""Weighted binary problems, also those with nothing to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skbandit.selection._weights import weight_params


@dataclass(frozen=True)
class Constant:
    """Answers alike for all rows: stands where a learner had nothing to tell apart."""

    value: float

    def predict(self, X: Any) -> np.ndarray:
        """The value, for each row."""
        return np.full(X.shape[0], self.value)


def fit_binary(learner: Any, X: Any, label: np.ndarray, weight: np.ndarray) -> Any:
    """Learn labels 0 and 1; the one label there is, or 1 if there is no row, needs no learner."""
    if not len(label):
        return Constant(1.0)
    if label.min() == label.max():
        return Constant(float(label[0]))
    return clone(learner).fit(X, label, **weight_params(learner, weight))


def learn_preference(learner: Any, X: Any, gain: np.ndarray, weight: np.ndarray) -> Any:
    """Learn where the first of two ads is the better one: 1 there, 0 where the second is.

    `gain` (n,) is what choosing the first saves: the other's cost less its own. Rows count as
    much as there is at stake, |gain|; those with none, or an unknown one (nan), not at all.
    Stakes are divided by their mean, so that a learner's own settings (how much it regularises)
    mean the same in whatever unit costs are.
    """
    stake = np.abs(np.nan_to_num(gain))
    rows = np.flatnonzero(stake)
    stake, weight = stake[rows], weight[rows]
    if len(rows) and stake.min() < stake.max():
        weight = weight * stake / np.average(stake, weights=weight)
    return fit_binary(learner, X[rows], (gain[rows] > 0).astype(int), weight)


def says_first(fitted: Any, X: Any) -> np.ndarray:
    """Where what `learn_preference` returned prefers the first ad."""
    return np.asarray(fitted.predict(X)) == 1
