"""Base classes of the constrained classifiers: signed scores, thresholds, reports."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._fit_rows import (
    Classes,
    Extra,
    FitRows,
    Grouping,
    read_extra,
    read_labels,
    read_rows,
    refuse_keywords,
    stack_rows,
)
from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._report import (
    add_intervals,
    cost_of_constraints,
    cross_fitted_report,
    rarely_predicted,
    report_of,
    report_table,
)
from skbandit.constrained._weighted_fits import USUAL
from skbandit.constrained.cross_fitting._rounds import Criterion
from skbandit.constrained.thresholds._groups import Rule
from skbandit.exceptions import ConstrainedFitWarning
from skbandit.rates import Constraint, Rate
from skbandit.rates._bind import bind_constraints
from skbandit.rates._columns import Columns, Data
from skbandit.rates._forms import BoundConstraints
from skbandit.rates._metric import parts_of_goals, verdicts, worst_pairs
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._sklearn_compat import count_rows, fit_context
from skbandit.utils._validation import check_level, warn, warn_if_reordered

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


WEAK_LEVEL = 0.6
"""`fit` warns if confidence_level=None chooses a lower level."""


class ConstrainedClassifierMixin(ClassifierMixin):
    """Predicts ``classes_[1]`` where a score plus `_shift` is positive, and reports on it.

    Subclasses set `classes_`, `_positive` (the positive class), `_constraints` (one-sided, groups
    filled in) and `_every` (with all pairs of groups), and define `_scores`, `_both_scores` and
    `_shift`; those with a randomized rule also `_expected` and `multipliers_`.
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
    _every: tuple[Constraint, ...]
    _report_columns: dict[str, Any]  # of constraint_report_
    multipliers_: np.ndarray

    def _scores(self, X: Any) -> np.ndarray:
        """Scores before the threshold is applied; higher favors ``classes_[1]``."""
        raise NotImplementedError

    def _both_scores(self, X: Any) -> np.ndarray:
        """The scores, and those of the classifier without constraints, of shape (n, 2).

        The latter are positive where it predicts ``classes_[1]``, and nan if there is none.
        """
        raise NotImplementedError

    @property
    def _shift(self) -> float:
        """Offset added to scores so that the decision threshold is 0."""
        raise NotImplementedError

    def _expected(self, scores: np.ndarray) -> np.ndarray | None:
        """Probabilities of a positive prediction by the randomized rule; None without one."""
        return None

    @property
    def constraint_report_(self) -> pd.DataFrame:
        """One row per constraint, on the training data; a new DataFrame each time."""
        columns = vars(self).get("_report_columns")
        if columns is None:
            raise AttributeError(
                f"{type(self).__name__} has no constraint_report_ before it is fitted."
            )
        report = report_of(columns)
        report.attrs["goals"] = parts_of_goals(self._constraints)
        return report

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
            Labels; None or missing entries are unlabeled.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            As in `fit`.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            Rows for rates with ``on="extra"`` or ``"all"``, as in `fit`.
        confidence_level : float, default=0.95
            Level of each interval: Clopper-Pearson for a single rate, MOVER for anything else.
            Only the first never falls below its level; all are approximate if weights are
            unequal.

        Returns
        -------
        DataFrame
            The columns of `constraint_report_`, then `ci_low` and `ci_high` for `value`, and
            `verdict`: "met" or "violated" if the whole interval is, else "undecided". `on` is
            "given" for the rows of X, and `unconstrained` is the rate of the classifier without
            constraints on these rows. A constraint that they cannot measure has ``n_rows`` 0, with
            a warning. Of a `ratio` or `difference` of more than six groups, the 30 pairs with the
            least slack. Rows with unequal weights, such as 1/propensity, carry less information
            than their number suggests: intervals are based on `effective_n`, (Σw)²/Σw² (Kish 1965)
            over the rows in the denominator of `value`, the smallest if it combines several rates.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        extra = Extra.read(X_extra, y_extra, attributes_extra, sample_weight_extra)
        both, data = self._read(X, y, sample_weight, attributes, extra, self._both_scores)
        scores, plain = both.T
        positive = self._predicted_positive(scores)
        goals = bind_constraints(self._deciding(data, positive), data, allow_empty=True)
        plain_positive = None if np.isnan(plain).all() else self._positive_where(plain > 0)
        table = self._report(scores, data, goals, plain_positive)
        table["on"] = [on.replace("train", "given") for on in table["on"]]
        table = add_intervals(table, goals, data, positive, confidence_level)
        ends, bound = table[["ci_low", "ci_high"]].to_numpy(), table["bound"].to_numpy()
        return table.assign(verdict=verdicts(ends, bound, goals.sign))

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: Extra | None,
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

    def _report(
        self,
        scores: np.ndarray,
        data: Data,
        goals: BoundConstraints,
        unconstrained: np.ndarray | None = None,
    ) -> pd.DataFrame:
        """Report on the constraints of the fit, bound to data."""
        positive, expected = self._predicted_positive(scores), self._expected(scores)
        multipliers = getattr(self, "multipliers_", None)
        if multipliers is not None and len(self._all_pairs) > len(self._constraints):
            names = [(one.label, one.text) for one in self._constraints]  # labels may be alike
            known = dict(zip(names, multipliers, strict=True))
            # 0 for pairs of groups that training did not need
            multipliers = np.array(
                [known.get((one.label, one.text), 0.0) for one in goals.constraints]
            )
        return report_table(goals, data, positive, expected, multipliers, unconstrained)

    def _take_constraints(self, goals: Goals) -> None:
        """Keep the constraints of a fit, for reports."""
        self._constraints, self._every = goals.constraints.constraints, goals.every

    def _set_multipliers(self, goals: Goals, measured: np.ndarray) -> None:
        """Set `multipliers_`, nan for constraints that were skipped."""
        self.multipliers_ = np.full(len(goals.is_measured), np.nan)
        self.multipliers_[goals.is_measured] = measured

    def _deciding(self, data: Data, positive: np.ndarray) -> list[Constraint]:
        """The constraints, with the pairs of groups that are the worst at predictions."""
        every = self._all_pairs
        return [every[k] for k in worst_pairs(every, data, positive)]

    @property
    def _all_pairs(self) -> tuple[Constraint, ...]:
        return self._every

    def _predicted_positive(self, scores: np.ndarray) -> np.ndarray:
        """1.0 where the deterministic rule predicts the positive class."""
        return self._positive_where(scores + self._shift > 0)

    def _positive_where(self, second: np.ndarray) -> np.ndarray:
        """1.0 where the positive class is predicted, given where ``classes_[1]`` is."""
        return (second == (self._classes.orientation > 0)).astype(float)

    def _warn_of_weak_fit(
        self,
        objective: Rate,
        goals: Goals,
        positive: np.ndarray,
        plain: np.ndarray,
        level: float | None,
    ) -> None:
        """Warn of an objective without a value, high costs, and a level below `WEAK_LEVEL`.

        Parameters
        ----------
        objective : Rate
            As declared.
        goals : Goals
            Bound to n rows.
        positive, plain : ndarray of shape (n,)
            Predictions, 0 and 1, with and without constraints.
        level : float or None
            The level reached, if it was free to fall.
        """
        if not goals.constraints.constraints:
            return
        forms, maximize = goals.objective, goals.maximize
        sentences = [cost_of_constraints(repr(objective), forms, maximize, positive, plain)]
        if np.isnan(forms.values(positive)).any():
            sentences.append(
                f"{objective!r} is 0/0 for the chosen rule: no rule was found that meets the "
                "constraints and has a value of it. Relax the bounds, or choose another objective."
            )
        train, n = goals.data.train, len(goals.data.train)
        for label in self.classes_.tolist():
            as_declared = float(label == self._positive)
            shares = [
                np.average(here == as_declared, weights=train.weight)
                for here in (train.label, positive[:n], plain[:n])
            ]
            sentences.append(rarely_predicted(label, *shares))
        if level is not None and level < WEAK_LEVEL:
            sentences.append(
                f"confidence_level_ is {level:.2g}. A higher one is out of reach or too costly on "
                "these rows: pass more rows, relax the bounds, or set confidence_level."
            )
        if any(sentences):
            warn(" ".join(filter(None, sentences)), ConstrainedFitWarning)


FEATURES = ("n_features_in_", "feature_names_in_")
"""Attributes that are those of the fitted classifier, if it has them."""

OF_ONE_FIT = (*FEATURES, "threshold_", "_group_thresholds")
"""Attributes that a fit sets only in some cases, and the next one forgets."""


class MovedThresholdMixin(ConstrainedClassifierMixin, MetaEstimatorMixin):
    """Predicts by a response of other classifiers, above one threshold or that of a row's group.

    Subclasses have the parameters of `Declared.read`, `estimator`, `cv`, `by` and `unseen`. They
    define `_fit`, which calls `_read_rows`, `_find_groups`, `_set_thresholds` and `_take_features`.
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
        raise NotImplementedError

    def _read_rows(
        self,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        classify: Callable[[np.ndarray], tuple[Classes, np.ndarray]],
    ) -> tuple[Declared, FitRows]:
        """Check the declared constraints and the arguments of `fit`, and set the classes."""
        declared = Declared.read(self.objective, self.constraints, self.by)
        self._forget()
        rows = FitRows.read(X, y, metadata, classify)
        declared.require_pos_label(rows.classes, self.pos_label, rows.data)
        self.classes_, self._positive = rows.classes.labels, rows.classes.positive
        return declared, rows

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

    def _set_thresholds(self, rule: Rule, criterion: Criterion, scores: np.ndarray) -> None:
        """Set the thresholds of a rule, and one for groups unseen in `fit` if that is wanted."""
        if self.by is not None:
            self._group_thresholds = rule.thresholds
            if self.unseen == "error":
                return
            rule, _ = replace(criterion, group=None, n_groups=1).best_rule(scores)
        self.threshold_ = float(rule.thresholds[0])

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

    def _usual_decisions(self, scores: np.ndarray) -> np.ndarray:
        """Decisions by scores and a classifier's own threshold."""
        return scores - self._classes.orientation * USUAL[self.response_method_]
