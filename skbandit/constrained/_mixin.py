"""What the classifiers with declared goals share: a signed score, a threshold, the reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained._declared import Classes
from skbandit.constrained._extra_rows import Extra, read_extra, read_labels, read_rows, stack_rows
from skbandit.constrained._report import add_intervals, report_table
from skbandit.rates import Constraint
from skbandit.rates._binding import BoundConstraints, Data, bind_constraints
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class ConstrainedClassifierMixin(ClassifierMixin):
    """Answers ``classes_[1]`` where a score plus `_shift` is positive, and reports on it.

    Subclasses set `classes_`, `_positive` (the positive one) and `_constraints` (one-sided,
    groups filled in), and define `_scores` and `_shift`; those with a randomised rule also
    `_expected` and `multipliers_`.
    """

    # Rows that travel with X: users need no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
        "X_extra": True,
        "y_extra": True,
        "attributes_extra": True,
        "sample_weight_extra": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sample_weight": True}

    classes_: np.ndarray
    _positive: Any
    _constraints: tuple[Constraint, ...]

    def _scores(self, X: Any) -> np.ndarray:
        """Scores as yet without a threshold; higher speaks for ``classes_[1]``."""
        raise NotImplementedError

    @property
    def _shift(self) -> float:
        """What makes of a score one whose threshold is 0."""
        raise NotImplementedError

    def _expected(self, scores: np.ndarray) -> np.ndarray | None:
        """Probabilities of a positive answer by the randomised rule, if there is one."""
        return None

    @property
    def _classes(self) -> Classes:
        return Classes(self.classes_, self._positive)

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores: positive speaks for ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive exactly where `predict` says so.
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
        X_extra : like X, default=None
            Rows for rates with ``on="extra"`` or ``"all"``.
        y_extra : array-like, default=None
            Their labels.
        attributes_extra : DataFrame or dict of arrays, default=None
            Their attributes.
        sample_weight_extra : array-like, default=None
            Their weights.
        confidence_level : float, default=0.95
            Of each interval: Clopper-Pearson for a single rate, combined conservatively for
            expressions of several; approximate where weights are unequal.

        Returns
        -------
        DataFrame
            The columns of `constraint_report_`, then `ci_low` and `ci_high` for `value`.
            What this data cannot measure has ``n_rows`` 0, with a warning. Rows of unequal
            weights, such as 1/propensity, say less than their number: `effective_n` is
            (Σw)²/Σw² (Kish 1965) over the rows in the denominator of `value`, or of its
            rates the smallest; the interval rests on it.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        extra = Extra(X_extra, y_extra, attributes_extra, sample_weight_extra)
        scores, data = self._read(X, y, sample_weight, attributes, extra, self._scores)
        goals = bind_constraints(self._constraints, data, allow_empty=True)
        table = self._report(scores, data, goals)
        return add_intervals(table, goals, data, self._answers(scores), confidence_level)

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: Extra,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, Data]:
        """What `read_X` makes of X and, below it, of X_extra; and what goals are bound to."""
        classes, made = self._classes, read_X(X)
        label = read_labels(y, made.shape[0], classes.positive, classes.labels, "y")
        rows = read_rows(X, label, sample_weight, attributes)
        named = hasattr(self, "feature_names_in_")
        made_extra, extra_rows = read_extra(
            extra, classes.positive, classes.labels, X_is_named=named, read_X=read_X
        )
        data = Data(rows, extra_rows, classes.positive, classes.labels.tolist())
        return stack_rows(made, made_extra), data

    def _report(self, scores: np.ndarray, data: Data, goals: BoundConstraints) -> pd.DataFrame:
        expected = self._expected(scores)
        multipliers = getattr(self, "multipliers_", None)
        return report_table(goals, data, self._answers(scores), expected, multipliers)

    def _answers(self, scores: np.ndarray) -> np.ndarray:
        """1.0 where the deterministic rule answers the positive class."""
        second = scores + self._shift > 0
        return (second == (self._classes.orientation > 0)).astype(float)
