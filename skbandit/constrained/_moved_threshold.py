"""Base of the classifiers that move thresholds on the responses of others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained._base_models import named_models
from skbandit.constrained._declared import Goals
from skbandit.constrained._extra_rows import ExtraData
from skbandit.constrained._grouping import Grouping
from skbandit.constrained._mixin import ConstrainedClassifierMixin
from skbandit.constrained._out_of_fold import USUAL
from skbandit.constrained._report import add_intervals, cross_fitted_report
from skbandit.constrained._rules import Rule
from skbandit.rates._binding import Columns, Data
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import warn_if_reordered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FEATURES = ("n_features_in_", "feature_names_in_")
"""Attributes that are those of the fitted classifier, if it has them."""

OF_ONE_FIT = (*FEATURES, "threshold_", "chosen_", "_cuts")
"""Attributes that a fit sets only in some cases, and the next one forgets."""


class MovedThresholdMixin(ConstrainedClassifierMixin, MetaEstimatorMixin):
    """Predicts by a response of other classifiers, above one threshold or that of a row's group.

    Subclasses have the parameters `estimator`, `cv` and `by`. Their fits call `_forget`,
    `_find_groups`, `_set_thresholds` and `_take_features`.
    """

    # The group of a row travels with it: users need no set_predict_request.
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
    }

    estimator: Any
    cv: Any
    by: str | Sequence[str] | None
    threshold_: float
    response_method_: str
    _grouping: Grouping | None
    _cuts: np.ndarray

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"by": None, "_grouping": None} | state)  # pickles without groups

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(model).input_tags for _, model in named_models(self.estimator)]
        tags.input_tags.sparse = all(one.sparse for one in inner)
        tags.input_tags.allow_nan = all(one.allow_nan for one in inner)
        tags.classifier_tags.multi_class = False
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the requests of this estimator, of the inner `fit` and of the splitter.

        Returns
        -------
        MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        for name, model in named_models(self.estimator):
            router.add(**{name: model}, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    @property
    def thresholds_(self) -> pd.Series:
        """The threshold of each group, with `by`."""
        if "_cuts" not in vars(self) or self._grouping is None:
            raise AttributeError(
                f"{type(self).__name__} has thresholds_ if fitted with by=...; without, one "
                "threshold_."
            )
        return pd.Series(self._cuts, index=self._grouping.index(), name="threshold")

    def decision_function(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Signed scores; positive for ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive exactly where `predict` returns ``classes_[1]``.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        if self._grouping is None:
            return scores + self._shifts(None)
        warn_if_reordered({"X": X, "attributes": attributes})
        columns = Columns.read(attributes, X, count_rows(X))
        return scores + self._shifts(self._grouping.known_codes(columns))

    def predict(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        second = self.decision_function(X, attributes=attributes) > 0
        return self.classes_[second.astype(int)]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        attributes: Any = None,
    ) -> float:
        """Share of rows predicted correctly.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        float
        """
        predicted = self.predict(X, attributes=attributes)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _forget(self) -> None:
        """Delete what the last fit has set and this one may not."""
        for name in OF_ONE_FIT:
            if name in vars(self):
                delattr(self, name)

    def _take_features(self, fitted: Any) -> None:
        """The features are those of a fitted classifier."""
        for name in FEATURES:
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _find_groups(self, counted: Data) -> np.ndarray | None:
        """Find the groups; the code of each row, or None without `by`."""
        self._grouping = None
        if self.by is None:
            return None
        self._grouping = Grouping.find(self.by, counted)
        parts = [("", counted.train), (" of X_extra", counted.extra)]
        for name, rows in parts:
            if rows is not None:
                self._grouping.check_present(rows.columns, rows.weight > 0, name)
        return np.concatenate(
            [self._grouping.codes(rows.columns) for _, rows in parts if rows is not None]
        )

    @property
    def _n_groups(self) -> int:
        return 1 if self._grouping is None else len(self._grouping.groups)

    def _set_thresholds(self, rule: Rule) -> None:
        if self.by is None:
            self.threshold_ = float(rule.cuts[0])
        else:
            self._cuts = rule.cuts

    def _cross_fitted(
        self,
        report: pd.DataFrame,
        positive: np.ndarray,
        goals: Goals,
        own: np.ndarray,
        data: Data,
        margins: np.ndarray | None,
    ) -> pd.DataFrame:
        """The report out of fold, of positive predictions, beside that of own decisions on data."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report out of fold has warned
            table = self._report(own, data, goals.constraints)
        held_out = add_intervals(report, goals.constraints, goals.data, positive)
        return cross_fitted_report(table, held_out, margins)

    @property
    def _shift(self) -> float:
        return 0.0  # what reports call scores are decisions here: see `_read`

    def _shifts(self, codes: np.ndarray | None) -> Any:
        """What turns scores into decisions: nan for rows of an unknown group."""
        # UNKNOWN is -1, the last
        cuts = self.threshold_ if codes is None else np.append(self._cuts, np.nan)[codes]
        return -self._classes.orientation * cuts

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: ExtraData | None,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, Data]:
        both, data = super()._read(X, y, sample_weight, attributes, extra, read_X)
        codes = None
        if self._grouping is not None:
            parts = [rows for rows in (data.train, data.extra) if rows is not None]
            codes = np.concatenate([self._grouping.known_codes(rows.columns) for rows in parts])
        both[:, 0] += self._shifts(codes)
        return both, data

    def _usual_decisions(self, scores: np.ndarray) -> np.ndarray:
        """Decisions by scores and a classifier's own threshold."""
        return scores - self._classes.orientation * USUAL[self.response_method_]
