"""MovedThresholdMixin: the fit of any classifier's thresholds, and predictions by them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._fit_rows import (
    Classes,
    Extra,
    FitRows,
    Grouping,
    labels_of,
    prefix_error_with_extra,
    refuse_keywords,
    with_weights,
)
from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained._report import (
    add_intervals,
    cross_fitted_report,
    plain_columns,
    with_margins,
)
from skbandit.constrained._weighted_fits import (
    USUAL,
    Folds,
    Learner,
    OutOfFold,
    Prefit,
    metadata_for,
    response_of,
    stacked,
)
from skbandit.constrained.cross_fitting._choose import Choice
from skbandit.constrained.cross_fitting._rounds import Criterion, KnownRules
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Rate
from skbandit.rates._columns import Columns, Data
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._folds import read_units, rows_tested, splits_of_classes
from skbandit.utils._sklearn_compat import count_rows, fit_context
from skbandit.utils._validation import warn_if_reordered

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


FEATURES = ("n_features_in_", "feature_names_in_")
"""Attributes that are those of the fitted classifier, if it has them."""

OF_ONE_FIT = (*FEATURES, "threshold_", "_group_thresholds")
"""Attributes that a fit sets only in some cases, and the next one forgets."""


class MovedThresholdMixin(ConstrainedClassifierMixin, MetaEstimatorMixin):
    """Predicts by a response of other classifiers, above one threshold or that of a row's group.

    Subclasses have the parameters of `Declared.read`, `estimator`, `cv`, `by`, `unseen` and
    `n_jobs`, and define `_splitter`, `_choose`, `_why_not` and `_scores`.
    """

    # The group of a row travels with it: users need no set_predict_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
    }

    estimator: Any
    objective: Rate | None
    constraints: Any
    pos_label: Any
    cv: Any
    by: str | Sequence[str] | None
    unseen: str
    n_jobs: int | None
    threshold_: float
    response_method_: str
    _grouping: Grouping | None
    _group_thresholds: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
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
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit `estimator` and choose the threshold, under the declared constraints.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, in a form that `estimator` accepts.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, in the objective, in every constraint, and in the training of
            `estimator` if its `fit` accepts them.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name and the model need not see. Columns of X, if it is
            a DataFrame, can be named too. Cross-validation slices a DataFrame.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            A second dataset, with the same features, that counts only in rates with
            ``on="extra"`` or ``"all"``; `y_extra` None or missing entries are unlabeled. In a
            Pipeline pass ``transform_input=["X_extra"]``; under cross-validation wrap each in a
            tuple of one, as in ``(X_extra,)``, which is never sliced.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together, such as those of one person: passed to the splitter `cv`
            or, if that is None or a number, kept in the same fold. None means that only equal
            rows are.
        **fit_params : dict
            For the `fit` of `estimator` or, with metadata routing, for those who request
            them. `estimator` also receives the parameters above that it requests or, without
            metadata routing, that its `fit` names.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleConstraintsError
            If no threshold meets the constraints; the closest one is in its `closest_`, and this
            estimator is left as it was.

        Warns
        -----
        ConstrainedFitWarning
            If the constraints cost much of the objective, or hold with less confidence than 0.6.
        UserWarning
            If 1 % of the rows or more are copies of others, unless the splitter is passed.
        """
        metadata = {
            "sample_weight": sample_weight,
            "attributes": attributes,
            "X_extra": X_extra,
            "y_extra": y_extra,
            "attributes_extra": attributes_extra,
            "sample_weight_extra": sample_weight_extra,
            "groups": groups,
        }
        if not has_fit_parameter(self.estimator, "sensitive_features"):
            refuse_keywords(self, fit_params.keys() & {"sensitive_features"})
        with atomic_fit(self) as draft:
            draft._fit(X, y, metadata, fit_params)
        return self

    def _fit(self, X: Any, y: Any, metadata: dict[str, Any], fit_params: dict[str, Any]) -> None:
        """Read the rows, score them out of fold, and choose the thresholds."""
        weight_name = self._weight_name()
        rows = self._read_rows(X, y, metadata, partial(labels_of, pos_label=self.pos_label))
        rows.require_both_classes()
        params, split_params = metadata_for(self, metadata, fit_params, weight_name)
        with prefix_error_with_extra():
            X_all = stacked(rows.X, rows.X_extra)
        X, y, data, n = rows.X, rows.y, rows.data, len(rows.y)
        unit = read_units(self.cv, X_all, y, data.train.weight, metadata["groups"])
        splits = splits_of_classes(self._splitter(unit[:n]), X, y, unit[:n], split_params)
        tested = with_weights(data, rows_tested(splits, n).astype(float))
        # bind first: report constraints the data cannot support before training anything
        goals, group = self._declared().bind(tested), self._find_groups(tested)
        learner = Learner(self._seeded(), rows.classes, params, weight_name or "sample_weight")
        weight = np.concatenate([part.weight for part, _ in data.parts("all")])
        folds, method = Folds.of(splits, unit, data.extra), self._response_method(self.estimator)
        fits = OutOfFold(learner, X_all, y, folds, method, weight, self.n_jobs)
        self._choose(fits, goals, data, group)

    def _weight_name(self) -> str | None:
        """The parameter of `fit` that weights are passed to even if `fit` does not name it."""
        return None

    def _splitter(self, unit: np.ndarray) -> Any:
        """The splitter `cv` or, if that is None, the default one for rows of these units."""
        raise NotImplementedError

    def _seeded(self) -> Any:
        """The classifier to clone for each fit."""
        return self.estimator

    def _choose(
        self, fits: OutOfFold | Prefit, goals: Goals, data: Data, group: np.ndarray | None
    ) -> None:
        """Choose fits and thresholds, and conclude.

        `goals` are bound to the rows that are tested, `data` has all; `group` is of all rows.
        """
        raise NotImplementedError

    def _conclude(
        self,
        choice: Choice,
        scores: tuple[np.ndarray, np.ndarray],
        own: np.ndarray | None,
        goals: Goals,
        data: Data,
        group: np.ndarray | None,
        criterion: Criterion,
        known: KnownRules,
    ) -> None:
        """Set what follows from the choice; raise if it is not feasible, warn if it is weak.

        Parameters
        ----------
        choice : Choice
        scores : tuple of two ndarray of shape (N,)
            What everything was chosen by, and the same of the fit without constraints.
        own : ndarray of shape (N,) or None
            Scores by the final classifier, if these are others.
        goals : Goals
        data : Data
            Of all rows, tested or not.
        group : ndarray of int, shape (N,), or None
        criterion : Criterion
        known : KnownRules
        """
        rows, orientation = goals.measured.rows, self._classes.orientation
        self._set_thresholds(choice, criterion, orientation * scores[0][rows])
        self.confidence_level_ = choice.level
        self._take_constraints(goals)
        self._set_multipliers(goals, criterion.multipliers(known, choice))
        shifts, limits = self._shifts(group), criterion.promised
        positive = self._predicted_positive(scores[0] + shifts)
        plain = self._positive_where(self._usual_decisions(scores[1]) > 0)
        report = self._report(scores[0] + shifts, goals.data, goals.constraints, plain)
        margins = None if limits is None else limits.margins(choice.rule.positive)
        if own is not None:
            report = self._cross_fitted(report, positive, goals, own + shifts, data, margins)
        elif margins is not None:
            report = with_margins(report, goals.is_measured, margins)
        self._report_columns = plain_columns(report)
        self.feasible_ = choice.feasible
        if not self.feasible_:
            why = self._why_not(report, goals, criterion, choice)
            raise InfeasibleConstraintsError(
                f"{why} The closest classifier is in the error's closest_.", self
            )
        free = choice.level if limits is None else None
        self._warn_of_weak_fit(goals, positive, plain, free)

    def _why_not(
        self, report: pd.DataFrame, goals: Goals, criterion: Criterion, choice: Choice
    ) -> str:
        """Why no thresholds are good enough."""
        raise NotImplementedError

    def _declared(self) -> Declared:
        return Declared.read(self.objective, self.constraints, self.by)

    def _read_rows(
        self,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        classify: Callable[[np.ndarray], tuple[Classes, np.ndarray]],
    ) -> FitRows:
        """Check the declared constraints and the arguments of `fit`, and set the classes."""
        declared = self._declared()
        self._forget()
        rows = FitRows.read(X, y, metadata, classify)
        declared.require_pos_label(rows.classes, self.pos_label, rows.data)
        self.classes_, self._positive = rows.classes.labels, rows.classes.positive
        return rows

    @property
    def thresholds_(self) -> pd.Series:
        """The threshold of each group, with `by`."""
        if "_group_thresholds" not in vars(self) or self._grouping is None:
            raise AttributeError(
                f"{type(self).__name__} has thresholds_ if fitted with by=...; without, one "
                "threshold_."
            )
        return pd.Series(self._group_thresholds, index=self._grouping.index(), name="threshold")

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
        return scores + self._shifts(self._codes(columns))

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
        """Delete attributes of the last fit that this one may not set."""
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
        parts = [rows for rows, _ in counted.parts("all")]
        return np.concatenate([self._grouping.codes(rows.columns) for rows in parts])

    @property
    def _n_groups(self) -> int:
        return 1 if self._grouping is None else len(self._grouping.groups)

    def _set_thresholds(self, choice: Choice, criterion: Criterion, scores: np.ndarray) -> None:
        """Set the chosen thresholds, and one for groups unseen in `fit` if that is wanted."""
        if self.by is not None:
            self._group_thresholds = choice.rule.thresholds
            if self.unseen == "error":
                return
            choice = replace(criterion, group=None, n_groups=1).best_rule(scores)
        self.threshold_ = float(choice.rule.thresholds[0])

    def _cross_fitted(
        self,
        report: pd.DataFrame,
        positive: np.ndarray,
        goals: Goals,
        own: np.ndarray,
        data: Data,
        margins: np.ndarray | None,
    ) -> pd.DataFrame:
        """The out-of-fold report, with the values of the final rule on its training rows."""
        n = len(data.train)
        data = with_weights(data, (~np.isnan(own[:n])).astype(float))  # not of unknown groups
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report out of fold has warned
            table = self._report(own, data, goals.constraints)
        held_out = add_intervals(report, goals.constraints, goals.data, positive)
        return cross_fitted_report(table, held_out, margins)

    @property
    def _shift(self) -> float:
        return 0.0  # `_read` has added the shift of each row's group to its score

    def _codes(self, columns: Columns) -> np.ndarray:
        """Index of the group of each row; if it is unseen, UNKNOWN or an error."""
        assert self._grouping is not None
        grouping = self._grouping
        if self.unseen == "error":
            return grouping.known_codes(columns)
        return grouping.codes_or_overall(columns)

    def _shifts(self, codes: np.ndarray | None) -> Any:
        """What turns scores into decisions: nan for rows of an unknown group in training."""
        fallback = vars(self).get("threshold_", np.nan)
        thresholds = (
            fallback if codes is None else np.append(self._group_thresholds, fallback)[codes]
        )  # UNKNOWN: -1
        return -self._classes.orientation * thresholds

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: Extra | None,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, Data]:
        both, data = super()._read(X, y, sample_weight, attributes, extra, read_X)
        codes = None
        if self._grouping is not None:
            parts = [rows for rows in (data.train, data.extra) if rows is not None]
            codes = np.concatenate([self._codes(rows.columns) for rows in parts])
        both[:, 0] += self._shifts(codes)
        return both, data

    def _both_scores(self, X: Any) -> np.ndarray:
        scores = self._scores(X)
        return np.column_stack([scores, self._usual_decisions(scores)])

    def _response_method(self, fitted: Any) -> str:
        """Set and return the response that thresholds apply to."""
        self.response_method_ = response_of(fitted, getattr(self, "response_method", "auto"))
        return self.response_method_

    def _usual_decisions(self, scores: np.ndarray) -> np.ndarray:
        """Decisions by scores and a classifier's own threshold."""
        return scores - self._classes.orientation * USUAL[self.response_method_]
