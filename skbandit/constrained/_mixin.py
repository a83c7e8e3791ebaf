"""Base of the classifiers with declared goals: signed scores, a threshold, reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained._classes import Classes
from skbandit.constrained._extra_rows import (
    ExtraData,
    join_extra,
    read_extra,
    read_labels,
    read_rows,
    stack_rows,
)
from skbandit.constrained._report import add_intervals, report_of, report_table
from skbandit.rates import Constraint
from skbandit.rates._binding import BoundConstraints, Data, bind_constraints
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class ConstrainedClassifierMixin(ClassifierMixin):
    """Predicts ``classes_[1]`` where a score plus `_shift` is positive, and reports on it.

    Subclasses set `classes_`, `_positive` (the positive class) and `_constraints` (one-sided,
    groups filled in), and define `_scores` and `_shift`; those with a randomised rule also
    `_expected` and `multipliers_`.
    """

    # Rows that travel with X: users need no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
        "extra": True,
        "X_extra": True,
        "y_extra": True,
        "attributes_extra": True,
        "sample_weight_extra": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sample_weight": True}

    classes_: np.ndarray
    _positive: Any
    _constraints: tuple[Constraint, ...]
    _report_columns: dict[str, Any]  # of constraint_report_

    def _scores(self, X: Any) -> np.ndarray:
        """Scores before the threshold is applied; higher favours ``classes_[1]``."""
        raise NotImplementedError

    @property
    def _shift(self) -> float:
        """Offset added to scores so that the decision threshold is 0."""
        raise NotImplementedError

    def _expected(self, scores: np.ndarray) -> np.ndarray | None:
        """Probabilities of a positive prediction by the randomised rule; None without one."""
        return None

    @property
    def constraint_report_(self) -> pd.DataFrame:
        """One row per constraint, on the training data; a new DataFrame each time."""
        columns = vars(self).get("_report_columns")
        if columns is None:
            raise AttributeError(
                f"{type(self).__name__} has no constraint_report_ before it is fitted."
            )
        return report_of(columns)

    @property
    def _classes(self) -> Classes:
        return Classes(self.classes_, self._positive)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores; positive for ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive exactly where `predict` returns ``classes_[1]``.
        """
        check_is_fitted(self)
        return self._scores(X) + self._shift

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels by the deterministic rule.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def constraint_report(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Report on the constraints on any data, with confidence intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries are unlabelled.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            As in `fit`.
        extra : ExtraData, default=None
            Rows for rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one.
        confidence_level : float, default=0.95
            Level of each interval: Clopper-Pearson for a single rate, MOVER for anything else.
            Only the first never falls below its level; all are approximate if weights are
            unequal.

        Returns
        -------
        DataFrame
            The columns of `constraint_report_`, then `ci_low` and `ci_high` for `value`.
            A constraint that these rows cannot measure has ``n_rows`` 0, with a warning. Rows
            with unequal weights, such as 1/propensity, carry less information than their
            number suggests: intervals are based on `effective_n`, (Σw)²/Σw² (Kish 1965) over
            the rows in the denominator of `value`, the smallest if it combines several rates.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        extra = join_extra(extra, X_extra, y_extra, attributes_extra, sample_weight_extra)
        scores, data = self._read(X, y, sample_weight, attributes, extra, self._scores)
        goals = bind_constraints(self._constraints, data, allow_empty=True)
        table = self._report(scores, data, goals)
        positive = self._predicted_positive(scores)
        return add_intervals(table, goals, data, positive, confidence_level)

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: ExtraData | None,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, Data]:
        """Return ``read_X(X)``, stacked on that of the extra rows, and the data of all rows."""
        classes, values = self._classes, read_X(X)
        label = read_labels(y, values.shape[0], classes.positive, classes.labels, "y")
        rows = read_rows(X, label, sample_weight, attributes, y=y)
        named = hasattr(self, "feature_names_in_")
        values_extra, extra_rows = read_extra(
            extra, classes.positive, classes.labels, X_is_named=named, read_X=read_X
        )
        data = Data(rows, extra_rows, classes.positive, classes.labels.tolist())
        return stack_rows(values, values_extra), data

    def _report(self, scores: np.ndarray, data: Data, goals: BoundConstraints) -> pd.DataFrame:
        """Report on the constraints of the fit, bound to data."""
        positive, expected = self._predicted_positive(scores), self._expected(scores)
        multipliers = getattr(self, "multipliers_", None)
        return report_table(goals, data, positive, expected, multipliers)

    def _predicted_positive(self, scores: np.ndarray) -> np.ndarray:
        """1.0 where the deterministic rule predicts the positive class."""
        second = scores + self._shift > 0
        return (second == (self._classes.orientation > 0)).astype(float)
