"""Scores that exist already, as the responses of a classifier: its features are they."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from skbandit.utils._sklearn_compat import available_if
from skbandit.utils._validation import warn

SUM_TOLERANCE = 1e-3
"""Largest difference from 1 of the sum of a row's probabilities."""

NEEDED = (
    "estimator=None takes scores for X: one column for two classes, high for the positive one, or "
    "a DataFrame with a column of probabilities per class, named by its label"
)


def given_scores(X: Any, y: np.ndarray, method: str, pos_label: Any) -> GivenScores:
    """Return a classifier that responds by the scores in X; raise where they are none.

    Parameters
    ----------
    X : {array-like, DataFrame} of n rows
    y : ndarray of shape (n,)
        Labels.
    method : {"auto", "predict_proba", "decision_function"}
        Which scores; "auto" is for probabilities if all are from 0 to 1.
    pos_label : label or None
        The class that one column favors; None is for the last one.
    """
    labels, values = np.unique(y), _numbers(X)
    names = X.columns.tolist() if isinstance(X, pd.DataFrame) else []
    named = len(names) > 1 and {*labels.tolist()} <= {*names}
    if named and values is not None and _add_up(values):  # y may lack a class
        labels = np.unique(np.array(names, dtype=labels.dtype))
    elif named:
        values = _numbers(X[labels.tolist()])
    elif np.ndim(X) == 2 and np.shape(X)[1] != 1:
        what = f"columns {names}" if names else f"{np.shape(X)[1]} columns"
        raise ValueError(f"{NEEDED}. X has {what}, and the labels are {labels.tolist()}.")
    elif len(labels) > 2:
        raise ValueError(f"{NEEDED}. X has one column, and the labels are {labels.tolist()}.")
    if values is None or not np.isfinite(values).all():
        raise ValueError(f"{NEEDED}. Some entries of X are missing or no numbers: drop them.")
    if method == "auto":
        inside = named or ((values >= 0) & (values <= 1)).all()
        method = "predict_proba" if inside else "decision_function"
    positive = labels[-1] if pos_label is None else pos_label
    if not named and (values[:, 0] - values.mean()) @ (y == positive) < 0:
        warn(f"Scores are lower for {positive} than for others: pass 1 - X, or -X.", UserWarning)
    given = GivenScores(labels, positive, named, method)
    given.columns = [] if named else names
    if method == "decision_function" and not named and values.min() * values.max() >= 0:
        # on a scale without a zero, such as marks: as many positives as there are
        given.usual_threshold = float(np.quantile(values, np.mean(y != positive), method="lower"))
    given.scores(X)
    if len(values) > 1 and np.ptp(values, axis=0).max(initial=0.0) == 0:
        raise ValueError(f"X is constant: all scores are {values[0].tolist()}. {NEEDED}.")
    return given


def _responds_by(method: str) -> Callable[[GivenScores], bool]:
    return lambda given: given.method == method


class GivenScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its responses.

    Parameters
    ----------
    labels : ndarray
        Class labels, sorted.
    positive : label
        The class that a single column favors.
    named : bool
        Whether there is a column per class.
    method : {"predict_proba", "decision_function"}
        What the scores are.
    """

    usual_threshold: float
    """Threshold without goals, where the scores have one of their own."""

    columns: Sequence[Any] = ()
    """Name of the only column in the fit, if it had one."""

    def __init__(self, labels: np.ndarray, positive: Any, named: bool, method: str) -> None:
        self.labels = labels
        self.positive = positive
        self.named = named
        self.method = method
        self.classes_ = labels
        self.n_features_in_ = len(labels) if named else 1

    def fit(self, X: Any, y: Any) -> GivenScores:
        """Learn nothing."""
        return self

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores in X, of shape (n, 1) or (n, n_classes)."""
        labels = self.labels.tolist()
        if self.named and not {*labels} <= {*getattr(X, "columns", ())}:
            raise ValueError(f"X needs the columns {labels}, a probability per class.")
        names = list(getattr(X, "columns", self.columns))
        if self.columns and names != self.columns:
            raise ValueError(f"X has the columns {names}, and the fit had {self.columns}: pass it.")
        values = _numbers(X[labels] if self.named else X)
        if values is None or values.shape[1] != self.n_features_in_:
            raise ValueError(f"{NEEDED}.")
        if self.method == "decision_function":
            return values
        outside = (values < 0) | (values > 1)
        if outside.any():
            raise ValueError(
                f"X contains {values[outside][0]:.4g}, and probabilities are from 0 to 1: pass "
                "response_method='decision_function' for other scores of two classes."
            )
        if self.named and not _add_up(values):
            row = int(np.abs(values.sum(axis=1) - 1.0).argmax())
            raise ValueError(
                f"The probabilities of row {row} of X add up to {values[row].sum():.4g}, not 1: "
                "divide each row by its sum."
            )
        return values

    @available_if(_responds_by("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities by class, of shape (n, n_classes)."""
        values = self.scores(X)
        if not self.named:
            values = np.column_stack([1.0 - values, values])
            values = values if self.positive == self.labels[-1] else values[:, ::-1]
        return values

    @available_if(_responds_by("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores that favor the last class, of shape (n,)."""
        values = self.scores(X)
        if self.named:
            return np.asarray(values[:, -1] - values[:, 0])
        return values[:, 0] if self.positive == self.labels[-1] else -values[:, 0]


def _numbers(X: Any) -> np.ndarray | None:
    """Values as floats of two dimensions; None if some are no numbers."""
    try:
        values = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        return None
    return values.reshape(-1, 1) if values.ndim == 1 else values


def _add_up(values: np.ndarray) -> bool:
    """Return whether probabilities of each row add up to 1."""
    return bool((np.abs(values.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all())
