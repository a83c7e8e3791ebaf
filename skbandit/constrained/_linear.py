"""BaseRampClassifier: linear scores, shared by both ramp classifiers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained.fits._fit_rows import FitRows, class_factors, labels_of
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
        metadata: dict[str, Any],
    ) -> tuple[Any, Goals, pd.Series | None]:
        """Validate the arguments of `fit`; return all rows, goals on them, and their groups."""
        refuse_lazy(
            {"X": X, "y": y, **metadata}, "; rate_report_blocks then reports rates of all rows"
        )
        declared = Declared.read(self.objective, self.constraints)
        with explained_entries(X, type(self).__name__, numbers=True):
            design = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        check_squares(design)
        warn_of_wild_row(design, getattr(self, "feature_names_in_", None))
        classify = partial(labels_of, pos_label=self.pos_label, others=())
        rows = FitRows.read(X, y, metadata, classify, self._validated)
        classes, data = rows.classes, rows.data
        classes.require_two(type(self).__name__)
        self.classes_, self._positive = classes.labels, classes.positive
        self._fitted_rows = fitted_rows(X, data.train.label)
        declared.require_pos_label(classes, self.pos_label, data)
        factors = class_factors(self.class_weight, classes.labels, rows.y, data.train.weight)
        return stacked(design, rows.X_extra), declared.bind(data, factors), rows.groups

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
