"""BaseRampClassifier: linear scores, shared by both ramp classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained.fits._fit_rows import (
    Classes,
    Extra,
    class_factors,
    read_extra,
    read_rows,
    refuse_missing_labels,
    with_dependent,
)
from skbandit.constrained.fits._weighted_fits import stacked
from skbandit.rates import Rate
from skbandit.utils._fitted_rows import fitted_rows
from skbandit.utils._fitting import report_progress
from skbandit.utils._sklearn_compat import CallbackSupportMixin, StrOptions
from skbandit.utils._validation import (
    check_squares,
    explained_entries,
    refuse_lazy,
    warn_of_wild_row,
)


class BaseRampClassifier(ConstrainedClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Linear classifiers under constraints.

    Subclasses define `fit`, which sets `coef_`, `intercept_` and the report.
    """

    _plain: tuple[np.ndarray, float] | None = None
    """Weights and intercept of the classifier without constraints, if there is one."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "objective": "no_validation",
        "constraints": "no_validation",
        "fit_intercept": ["boolean"],
        "solver_options": [dict, None],
        "pos_label": "no_validation",
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "verbose": ["verbose"],
    }

    objective: Rate | None
    constraints: Any
    pos_label: Any
    class_weight: Any
    verbose: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def _read_training(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        attributes: Any = None,
        extra: tuple[Any, ...] = (None, None, None, None),
        dependent: tuple[Any, Any] = (None, None),
    ) -> tuple[Any, Goals]:
        """Validate the arguments of `fit`; return all rows, and the goals bound to them."""
        refuse_lazy(
            {"X": X, "y": y, "sample_weight": sample_weight, "attributes": attributes},
            "; rate_report_blocks then reports rates of all rows",
        )
        declared = Declared.read(self.objective, self.constraints)
        given, y_given, given_extra = X, y, Extra.read(*extra)
        refuse_missing_labels(y)
        with explained_entries(X, type(self).__name__, numbers=True):
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_squares(X)
        warn_of_wild_row(X, getattr(self, "feature_names_in_", None))
        classes = Classes.read(y, self.pos_label)
        classes.require_two(type(self).__name__)
        self.classes_, self._positive = classes.labels, classes.positive
        label = (y == classes.positive).astype(np.int8)
        train_rows = read_rows(given, label, sample_weight, attributes, y=y_given)
        self._fitted_rows = fitted_rows(given, label)
        named = hasattr(self, "feature_names_in_")
        X_extra, extra_rows = read_extra(
            given_extra, classes, X_is_named=named, read_X=self._validated
        )
        data = classes.data(train_rows, extra_rows)
        data = with_dependent(data, dependent[0], (given, y_given), dependent[1], extra[0])
        declared.require_pos_label(classes, self.pos_label, data)
        factors = class_factors(self.class_weight, classes.labels, y, train_rows.weight)
        return stacked(X, X_extra), declared.bind(data, factors)

    def _reporter(self, step_done: Callable[[str], None]) -> Callable[[Any], None]:
        """Report each MM step to callbacks and, if verbose, in one line."""

        def report(step: Any) -> None:
            self._tell(str(step))
            step_done("MM step")

        return report

    def _tell(self, line: str) -> None:
        if self.verbose:
            report_progress(f"[{type(self).__name__}] {line}")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Scores clipped to [0, 1]; not calibrated probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`; `predict` returns the one above 1/2.
        """
        positive = np.clip(self.decision_function(X) + 0.5, 0.0, 1.0)
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`; -inf where that is 0.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._linear(self._validated(X))

    def _both_scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = self._validated(X)
        scores = self._linear(rows)
        if self._plain is None:
            return np.column_stack([scores, np.full(len(scores), np.nan)])
        coef, intercept = self._plain
        plain = np.asarray(safe_sparse_dot(rows, coef, dense_output=True)).ravel()
        return np.column_stack([scores, plain + intercept])

    @property
    def _shift(self) -> float:
        return float(self.intercept_[0])

    def _validated(self, X: Any) -> Any:
        with explained_entries(X, type(self).__name__, numbers=True):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _linear(self, X: Any) -> np.ndarray:
        return np.asarray(safe_sparse_dot(X, self.coef_[0], dense_output=True)).ravel()
