"""MovedDecisionsMixin: any classifier's decisions moved by thresholds, or by tables of costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._goals import Declared, Goals
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained._report import check_final_rule, unstable_fit, warn_of_weak_fit
from skbandit.constrained._unknown_groups import UnknownGroups
from skbandit.constrained.fits._fit_rows import (
    OF_ROWS,
    FitRows,
    Grouping,
    labels_of,
    prefix_error_with_extra,
    refuse_keywords,
    with_weights,
)
from skbandit.constrained.fits._weighted_fits import (
    USUAL,
    Learner,
    OutOfFold,
    Prefit,
    folds_of_all,
    learns_costs,
    metadata_for,
    response_of,
    responses,
    stacked,
)
from skbandit.constrained.rounds._rounds import Criterion
from skbandit.constrained.rules._advice import cost_of_level, explain
from skbandit.constrained.rules._choose import Choice, Chosen, best_on_path
from skbandit.constrained.rules._cost_tables import CostCriterion
from skbandit.constrained.rules._decide import CostTables, DecisionRule, Thresholds, scaled_costs
from skbandit.constrained.rules._recalibrate import NamedRecalibration, Recalibration
from skbandit.exceptions import ConstrainedFitWarning
from skbandit.measure import Columns, Data
from skbandit.rates import Rate
from skbandit.utils._fitted_rows import fitted_rows
from skbandit.utils._fitting import atomic_fit, seed_for, seeded
from skbandit.utils._folds import (
    FEW_FOLDS,
    FOLDS,
    SEED,
    default_folds,
    read_units,
    rows_tested,
    splits_of_classes,
)
from skbandit.utils._sklearn_compat import (
    Interval,
    StrOptions,
    available_if,
    count_rows,
    fit_context,
    weight_parameter,
)
from skbandit.utils._validation import refuse_lazy, warn, warn_if_reordered, without_unit

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike


FEATURES = ("n_features_in_", "feature_names_in_")
"""Attributes that are those of the fitted classifier, if it has them."""

PARAMETERS: dict[str, Any] = {
    "objective": "no_validation",
    "constraints": "no_validation",
    "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
    "pos_label": "no_validation",
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "by": [str, "array-like", None],
    "unseen": [StrOptions({"error", "overall"})],
    "other_decisions": "no_validation",
}
"""Constraints of the parameters that all have, as scikit-learn validates them."""

OF_ONE_FIT = (
    *FEATURES,
    "threshold_",
    "_group_thresholds",
    "_costs",
    "_overall_costs",
    "_recalibration",
    "_unknown_groups",
    "group_estimator_",
)
"""Attributes that a fit sets only in some cases, and the next one forgets."""


def _has_scores(self: MovedDecisionsMixin) -> bool:
    if len(self.other_decisions):
        what = f"{type(self).__name__} with other_decisions has no decision_function"
        raise AttributeError(f"{what}: use expected_costs.")
    return True


class MovedDecisionsMixin(ConstrainedClassifierMixin, MetaEstimatorMixin):
    """Decides by a response of other classifiers and a rule, or the rule of a row's group.

    With two classes the rule is a threshold. With more decisions it is a table of costs: the
    decision is the one of least expected cost.

    Subclasses have the parameters of `Declared.read`, `estimator`, `cv`, `by`, `unseen`,
    `other_decisions` and `n_jobs`, and define `_choose` and `_scores`.
    """

    # The group of a row travels with it: users need no set_predict_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "groups_extra": True}
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
    other_decisions: Sequence[Any]
    n_jobs: int | None
    random_state: Any
    confidence_level: float | None
    group_estimator_: Any
    threshold_: float
    response_method_: str
    _grouping: Grouping | None
    _group_thresholds: np.ndarray
    _costs: np.ndarray
    _overall_costs: np.ndarray
    _fold_seed: Any = SEED
    _rows_for_few_folds: float = np.inf  # from which on the default is few, as rounds fit in each
    _trains_on_weights: bool = False  # even if `fit` of the estimator does not name them
    _of_fits: str = ""  # for errors, if there are several
    _unknown_groups: UnknownGroups | None = None
    _recalibration: Recalibration | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            return tags
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        takes_several = hasattr(self.estimator, "predict_proba") or learns_costs(self.estimator)
        tags.classifier_tags.multi_class = takes_several
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
        if self.estimator is not None:
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
        groups_extra: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit `estimator` and choose the thresholds or costs, under the declared constraints.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, in a form that `estimator` accepts.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, in the objective, in every constraint, and in the training of
            `estimator` if its `fit` accepts them. Whole numbers are numbers of equal rows, but for
            a common divisor. Other weights have any unit: their mean counts as one row.
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
            or, if that is None or a number, kept in the same fold. Margins and intervals count
            them as dependent. None means that only equal rows are kept together, and that rows
            are independent.
        groups_extra : array-like of shape (n_extra,), default=None
            The same of the extra rows, where a value of `groups` is the same group.
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
            If no rule meets the constraints; the closest one is in its `closest_`, and this
            estimator is left as it was.

        Warns
        -----
        ConstrainedFitWarning
            If the constraints cost much of the objective, or hold with less confidence than 0.6.
        UserWarning
            If 1 % of the rows or more are copies of others, unless the splitter is passed.
        """
        extra = X_extra, y_extra, attributes_extra, sample_weight_extra
        given = sample_weight, attributes, *extra, groups, groups_extra
        metadata = dict(zip(OF_ROWS, given, strict=True))
        if self.estimator is None or not has_fit_parameter(self.estimator, "sensitive_features"):
            refuse_keywords(self, fit_params.keys() & {"sensitive_features"})
        with atomic_fit(self) as draft:
            draft._fit(X, y, metadata, fit_params)
        return self

    def _fit(self, X: Any, y: Any, metadata: dict[str, Any], fit_params: dict[str, Any]) -> None:
        """Read the rows, score them out of fold, and choose the thresholds."""
        weight_name, estimator = None, self.estimator
        if self._trains_on_weights:
            weight_name = weight_parameter(estimator)
            estimator = seeded(estimator, seed_for("reduction", self.random_state) % 2**31)
        classify = partial(labels_of, pos_label=self.pos_label, others=self.other_decisions)
        rows = self._read_rows(X, y, metadata, classify)
        train = rows.data.train
        if len(np.unique(train.label[train.weight > 0])) < 2:
            raise ValueError("Two classes are needed: all rows of one class have weight 0.")
        metadata["groups"] = rows.groups
        if metadata["sample_weight"] is not None:
            metadata["sample_weight"] = without_unit(rows.data.train.weight)
        params, split_params = metadata_for(self, metadata, fit_params, weight_name)
        with prefix_error_with_extra():
            X_all = stacked(rows.X, rows.X_extra)
        X, y, data, n = rows.X, rows.y, rows.data, len(rows.y)
        unit = read_units(self.cv, X_all, y, data.train.weight, metadata["groups"])
        n_folds = FOLDS if n < self._rows_for_few_folds else FEW_FOLDS
        cv = default_folds(n_folds, unit[:n]) if self.cv is None else self.cv
        splits = splits_of_classes(cv, X, y, unit[:n], split_params, self._fold_seed)
        tested = with_weights(data, rows_tested(splits, n).astype(float))
        # bind first: report constraints the data cannot support before training anything
        goals, group = self._declared().bind(tested), self._find_groups(tested)
        learner = Learner(estimator, rows.classes, params, weight_name or "sample_weight")
        folds, method = (
            folds_of_all(splits, unit, data.extra),
            self._response_method(self.estimator),
        )
        fits = OutOfFold(learner, X_all, y, folds, method, data.weight, self.n_jobs)
        self._choose(fits, goals, data, group)

    def _best_chosen(self, goals: Goals, choose: Callable[[Goals], Chosen]) -> tuple[Goals, Chosen]:
        """Choose under all pairs of groups, or as well as under the tighter bounds of a path."""

        def best(goals: Goals) -> Chosen:
            chosen = choose(goals)
            # fits of one bound may differ from those of another, if nothing seeds them
            path = self._tighter or ()
            same = [other for other in path if np.array_equal(other.scores, chosen.scores)]
            return best_on_path(chosen, same)

        goals, chosen = goals.until_pairs_stay(best)
        if self._tighter is not None:
            self._tighter.append(chosen)
        return goals, chosen

    def _choose(
        self, fits: OutOfFold | Prefit, goals: Goals, data: Data, group: np.ndarray | None
    ) -> None:
        """Choose fits and thresholds, and conclude.

        `goals` are bound to the rows that are tested, `data` has all; `group` is of all rows.
        """
        raise NotImplementedError

    def _conclude(
        self,
        chosen: Chosen,
        scores: tuple[np.ndarray, np.ndarray],
        final: np.ndarray | None,
        goals: Goals,
        data: Data,
        group: np.ndarray | None,
    ) -> None:
        """Set what follows from the choice; raise if it is not feasible, warn if it is weak.

        Parameters
        ----------
        chosen : Chosen
        scores : tuple of two ndarray of shape (N, ...)
            What everything was chosen by, and the same of the fit without constraints.
        final : ndarray of shape (N, ...) or None
            Scores by the final classifier, if these are others.
        goals : Goals
        data : Data
            Of all rows, tested or not.
        group : ndarray of int, shape (N,), or None
        """
        criterion, choice = chosen.chooser, chosen.choice
        rows, margins = goals.measured.rows, None
        signed = self._classes.orientation * scores[0][rows]
        self._set_rules(choice, criterion, signed)
        self.confidence_level_ = choice.level
        self._take_constraints(goals)
        self._set_prices(goals, chosen.prices(choice))
        limits, decided = criterion.promised, np.nan_to_num(self._rule.decide(scores[0], group))
        if self._recalibration is not None:  # measured with recalibrations by other folds
            decided[rows] = choice.rule.decided
        plain = self._usual(scores[1])
        if limits is not None:
            margins = limits.margins(goals.measured_indicators(choice.rule.decided))
            if isinstance(criterion, CostCriterion):
                margins = np.zeros(len(margins))
        of_final = None
        if final is not None:
            of_final = self._rule.decide(final, group)
            data = with_weights(data, (~np.isnan(of_final[: len(data.train)])).astype(float))
            of_final = np.nan_to_num(of_final)  # no weight where the group is unknown
        report = self._set_reports(goals, decided, plain, margins, of_final, data)
        self.feasible_ = choice.feasible
        if self._unknown_groups is not None:  # predictions need no rows
            self._unknown_groups = replace(self._unknown_groups, group=np.zeros(0, dtype=int))
        if not self.feasible_:
            settings = goals, criterion, choice, signed, report, self.by
            why, proven = explain(*settings, self._of_fits)
            self._refuse(why, report, goals, proven=proven)
        of_level = partial(cost_of_level, goals, criterion, signed, choice, plain[rows])
        is_of_two = not isinstance(criterion, CostCriterion)
        if not is_of_two:
            if why := of_level():
                warn(why, ConstrainedFitWarning)
            check_final_rule(self, goals)
        elif final is not None and (why := unstable_fit(report, goals.constraints)):
            warn(why, ConstrainedFitWarning)
        level = choice.level if limits is None else None
        warn_of_weak_fit(goals, decided, plain, level, of_level if is_of_two else None)

    def _declared(self) -> Declared:
        return Declared.read(self.objective, self.constraints, self.by)

    def _read_rows(
        self,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        classify: Callable[[np.ndarray], tuple[Any, np.ndarray]],
    ) -> FitRows:
        """Check the declared constraints and the arguments of `fit`, and set the classes."""
        refuse_lazy(
            {"X": X, "y": y, **metadata}, "; rate_report_blocks then reports rates of all rows"
        )
        declared = self._declared()
        for name in vars(self).keys() & set(OF_ONE_FIT):
            delattr(self, name)
        rows = FitRows.read(X, y, metadata, classify)
        declared.require_pos_label(rows.classes, self.pos_label, rows.data)
        self.classes_, self._positive = rows.classes.labels, rows.classes.positive
        self._other_decisions = rows.classes.others
        self._fitted_rows = fitted_rows(rows.X, rows.data.train.label)
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

    @available_if(_has_scores)
    def decision_function(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Signed scores; positive for ``classes_[1]``. Of several classes, negated expected costs.

        Not there with `other_decisions`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) if there are more than two
            Positive exactly where `predict` returns ``classes_[1]``; of several, the largest is
            that of the class that `predict` returns.
        """
        check_is_fitted(self)
        return self._rule.signed(self._scores(X), self._codes_of(X, attributes))

    @property
    def decisions_(self) -> np.ndarray:
        """The classes, then the other decisions."""
        self._require_fitted("decisions_")
        return self._classes.decisions

    @property
    def costs_(self) -> pd.DataFrame:
        """Costs by label and decision; with `by`, by group, label and decision."""
        self._require_fitted("costs_")
        columns = pd.Index(self.decisions_, name="decision")
        labels = self.decisions_[: self._n_labels]
        costs = self._tables_of_costs()[:-1, : len(labels)].reshape(-1, len(columns))
        index = pd.Index(labels, name="label")
        unknown = self._unknown_groups
        grouping = self._grouping if unknown is None else unknown.grouping
        if grouping is not None:
            names = [*grouping.columns, "label"]
            rows = [(*group, label) for group in grouping.groups for label in labels.tolist()]
            index = pd.MultiIndex.from_tuples(rows, names=names)
        return pd.DataFrame(costs, index=index, columns=columns)

    def expected_costs(self, X: Any, *, attributes: Any = None) -> pd.DataFrame:
        """Return expected cost of each decision: `predict` returns the one of the least.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        DataFrame of shape (n_samples, n_decisions)
            A column per decision; the index is that of X. ``predict_proba(X) @ costs_``, after
            `recalibration_` if there is one, with the `costs_` of a row's group if there are
            groups. It feeds `skbandit.selection.assign`, for
            capacities that must hold exactly in one batch.
        """
        check_is_fitted(self)
        self._tables_of_costs()  # or an error
        costs = self._rule.expected(self._scores(X), self._codes_of(X, attributes))
        return pd.DataFrame(costs, index=getattr(X, "index", None), columns=self.decisions_)

    def predict(self, X: Any, *, attributes: Any = None) -> np.ndarray:
        """Predict class labels, or other decisions.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        attributes : DataFrame or dict of arrays, default=None
            The columns `by`, unless X has them; not needed without `by`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Of `decisions_`.
        """
        check_is_fitted(self)
        decided = self._rule.decide(self._scores(X), self._codes_of(X, attributes))
        return self._classes.by_code[np.nan_to_num(decided).astype(int)]

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
        self._tell_of_scorer()
        predicted = self.predict(X, attributes=attributes)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _take_features(self, fitted: Any) -> None:
        """Take the features of a fitted classifier."""
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
    def _n_labels(self) -> int:
        """Number of labels whose probabilities decide."""
        return len(self.classes_)

    def _set_rules(
        self, choice: Choice, criterion: Criterion | CostCriterion, scores: np.ndarray
    ) -> None:
        """Set the chosen rules, and one for groups unseen in `fit` if that is wanted."""
        overall = choice
        if self.by is not None and self.unseen != "error":
            apart = replace(criterion, group=None, n_groups=1)
            if isinstance(apart, CostCriterion):
                apart, recalibration = replace(apart, fold=None), choice.rule.recalibration
                scores = scores if recalibration is None else recalibration(scores)
            overall = apart.best_rule(scores)
        self._recalibration = getattr(choice.rule, "recalibration", None)
        if not self._classes.of_two:
            shape = -1, len(self.decisions_), len(self.decisions_)
            self._costs = scaled_costs(choice.rule.costs.reshape(shape))
            if overall is not choice:
                self._overall_costs = scaled_costs(overall.rule.costs.reshape(shape))
            return
        if self.by is not None:
            self._group_thresholds = choice.rule.thresholds
        if self.by is None or self.unseen != "error":
            self.threshold_ = float(overall.rule.thresholds[0])

    @property
    def recalibration_(self) -> NamedRecalibration | None:
        """Recalibration of probabilities that `expected_costs` applies before `costs_`.

        A temperature, by which their logarithms are divided, and constants, by class and, with
        groups, by group, that are added. None if nothing is.
        """
        self._require_fitted("recalibration_")
        if self._recalibration is None:
            return None
        temperature, table = self._recalibration.temperature, self._recalibration.constants
        table = table[:-1] if self._grouping is not None else table[-1:]
        values = table.reshape(-1, len(self.decisions_))[:, : self._n_labels].ravel()
        constants = pd.Series(values, self.costs_.index, name="constant")
        return NamedRecalibration(temperature, constants)

    def _usual(self, scores: np.ndarray) -> np.ndarray:
        """Codes of the decisions by scores without constraints."""
        if self._classes.of_two:
            usual = Thresholds(np.array([self._usual_threshold]), self._classes.orientation)
            return self._positive_where(usual.signed(scores, None) > 0)
        by_group = np.nan_to_num(scores).reshape(len(scores), -1, len(self.decisions_))
        return by_group.sum(axis=1).argmax(axis=1).astype(float)

    @property
    def _usual_threshold(self) -> float:
        """Threshold without constraints."""
        usual = USUAL[self.response_method_]
        return float(getattr(vars(self).get("estimator_"), "usual_threshold", usual))

    @property
    def _rule(self) -> DecisionRule:
        """Decision rule made of the fitted attributes."""
        overall = vars(self).get("threshold_", np.nan)
        if not self._classes.of_two:
            unseen = vars(self).get("_overall_costs", np.full_like(self._costs[:1], np.nan))
            return CostTables(np.concatenate([self._costs, unseen]), self._recalibration)
        if self._grouping is None:
            return Thresholds(np.array([overall, np.nan]), self._classes.orientation)
        thresholds = np.append(self._group_thresholds, overall)
        return Thresholds(thresholds, self._classes.orientation)

    def _tables_of_costs(self) -> np.ndarray:
        """Costs, shape (groups + 1, D, D); a threshold t on the probability is a table, too."""
        if self._classes.of_two and self.response_method_ != "predict_proba":
            raise AttributeError(
                f"{type(self).__name__} has costs if its threshold is one on predict_proba, and "
                f"response_method_ is {self.response_method_!r}."
            )
        return self._rule.tables()

    def _codes_of(self, X: Any, attributes: Any) -> np.ndarray | None:
        """Index of the group of each row of X, UNKNOWN or an error if unseen; None without `by`."""
        if self._grouping is None:
            return None
        warn_if_reordered({"X": X, "attributes": attributes})
        return self._codes(Columns.read(attributes, X, count_rows(X)))

    def _codes(self, columns: Columns) -> np.ndarray:
        """Index of the group of each row; if it is unseen, UNKNOWN or an error."""
        assert self._grouping is not None
        # unseen may have been set after fit
        has_overall = not {"threshold_", "_overall_costs"}.isdisjoint(vars(self))
        return self._grouping.codes_of(columns, self.unseen != "error" and has_overall)

    def _both_scores(self, X: Any) -> np.ndarray:
        return np.column_stack([self._scores(X), self._usual(self._plain_scores(X))])

    def _both_decided(
        self, both: np.ndarray, data: Data
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        codes = None
        if self._grouping is not None:
            codes = np.concatenate([self._codes(rows.columns) for rows, _ in data.parts("all")])
        scores = both[:, 0] if self._classes.of_two else both[:, :-1]
        return self._rule.decide(scores, codes), both[:, -1], None

    def _plain_scores(self, X: Any) -> np.ndarray:
        """Responses of the classifier without constraints."""
        return self._scores(X)

    def _find_unknown_groups(
        self, fits: OutOfFold, goals: Goals, data: Data, scores: np.ndarray
    ) -> np.ndarray:
        """Set the groups that goals name and `by` does not; scores of groups and labels.

        `scores` are of labels, and are returned if there are no such groups.
        """
        unknown = None
        if self.by is None and not self._classes.of_two:
            unknown = UnknownGroups.find(goals.declared, data)
        if unknown is None:
            return scores
        of_strata = unknown.fits(fits, data.train.label)
        task = unknown.task(fits, data.train.label)
        joint = unknown.joint(scores, of_strata.scores(task)[0])
        self._unknown_groups, self.group_estimator_ = unknown, of_strata.fitted(task)
        return joint

    def _chooser(
        self, fits: OutOfFold | Prefit, goals: Goals, group: np.ndarray | None, scores: np.ndarray
    ) -> Criterion | CostCriterion:
        """Return what rules are chosen by; `scores` are those of the fit without constraints."""
        settings, plain = (goals, self.confidence_level), self._usual(scores)
        n_groups = 1 if self._grouping is None else len(self._grouping.groups)
        if self._classes.of_two:
            usual, prefit = self._usual_threshold, isinstance(fits, Prefit)
            return Criterion.of(*settings, usual, group, n_groups, prefit=prefit, decided=plain)
        if (unknown := self._unknown_groups) is not None:
            group, n_groups = unknown.group, unknown.n_groups
        rows: dict[str, Any] = {"fold": fits.fold_of_rows(len(goals.data)), "decided": plain}
        return CostCriterion.of(*settings, group, n_groups, knows_group=unknown is None, **rows)

    def _of_groups(self, X: Any, probability: np.ndarray) -> np.ndarray:
        """Probabilities of groups and labels, from those of labels, if groups are unknown."""
        if (unknown := self._unknown_groups) is None:
            return probability
        method = self.response_method_
        of_strata = responses(self.group_estimator_, X, method, unknown.strata)
        return unknown.joint(probability, of_strata)

    def _response_method(self, fitted: Any) -> str:
        """Set and return the response that thresholds apply to."""
        wanted = getattr(self, "response_method", "auto")
        self.response_method_ = response_of(fitted, wanted, self._classes)
        return self.response_method_
