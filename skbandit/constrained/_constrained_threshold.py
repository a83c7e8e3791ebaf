"""ConstrainedThreshold: the estimator around `best_threshold`, for any classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._base_models import SINGLE, check_models, named_models
from skbandit.constrained._classes import Classes
from skbandit.constrained._declared import Declared, Goals, allowed_error
from skbandit.constrained._extra_rows import (
    ExtraData,
    blamed_on_extra,
    join_extra,
    read_extra,
    read_rows,
    with_weights,
)
from skbandit.constrained._grouping import Grouping
from skbandit.constrained._limits import Limits, SeparateLimits, SharedRisk
from skbandit.constrained._mixin import ConstrainedClassifierMixin
from skbandit.constrained._out_of_fold import out_of_fold_scores, responses
from skbandit.constrained._report import missed, plain_columns
from skbandit.constrained._rules import Rule, best_model, best_rule
from skbandit.constrained._threshold_report import (
    judged_out_of_fold,
    level_reached,
    with_margins,
)
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import MET, Columns, Data, confidence_limits, encode, score_limits
from skbandit.utils._atomic_fit import atomic_fit
from skbandit.utils._folds import Splits, rows_tested
from skbandit.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    count_rows,
    feature_names,
    fit_context,
)
from skbandit.utils._validation import warn_if_reordered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OF_ONE_FIT = ("n_features_in_", "feature_names_in_", "threshold_", "chosen_", "_cuts")
"""Attributes that a fit sets only in some cases, and the next one forgets."""

USUAL = {"predict_proba": 0.5, "decision_function": 0.0}
"""Response methods, the preferred one first, and the threshold of `predict` on each."""


def _inner_has(method: str) -> Callable[[Any], bool]:
    def check(self: ConstrainedThreshold) -> bool:
        fitted = vars(self).get("estimator_")
        models = named_models(self.estimator) if fitted is None else [(SINGLE, fitted)]
        for _, model in models:
            getattr(model, method)  # its own AttributeError
        return True

    return check


class ConstrainedThreshold(ConstrainedClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Moves the threshold of any classifier so that declared goals on rates are met.

    Among all thresholds on the classifier's scores whose hard rates meet every constraint, it
    finds, exactly, the one with the best objective.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba` or `decision_function`, for two classes.
    objective : Rate, default=None
        Rate to optimise, in the direction in which it is better; None is `error_rate()`.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        Constraints to meet: see `skbandit.rates`.
    cv : int, cross-validation generator, iterable or "prefit", default=None
        How the rows of X are scored. By default 5-fold cross-validation: each row is
        scored by a clone fitted without it, as a threshold chosen on rows that the model
        has memorised is too optimistic; `estimator_` is then fitted on all rows. A row may
        be tested at most once; rows never tested (as in a single split) do not count in any
        rate. "prefit" uses the fitted `estimator` as it is: X should be rows that it has
        not seen.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The scores. "auto" is `predict_proba` if available, else `decision_function`.
    pos_label : label, default=None
        The positive class of all rates; None is ``classes_[1]``.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    confidence_level : float in [0.5, 1) or None, default=None
        Probability, at least, that all constraints met here also hold in the population that
        the rows are drawn from. None takes training rates at face value: a binding constraint
        is then violated about every second time. See Notes.

    Attributes
    ----------
    estimator_ : classifier
        The classifier that predicts: fitted on all of X, or as passed if "prefit".
    threshold_ : float
        The response above which the positive class is predicted: a probability, or a value
        of `decision_function` (negated if the positive class is ``classes_[0]``). Midway
        between neighbouring scores, or 1/2 beyond the outermost. Of several equally good
        ones, the nearest to the usual threshold, 1/2 or 0.
    response_method_ : {"predict_proba", "decision_function"}
        The response that `threshold_` applies to.
    classes_ : ndarray of shape (2,)
        Class labels.
    constraint_report_ : DataFrame
        One row per constraint: `constraint`, `on`, `n_rows`, `effective_n`, `bound`,
        `value`, `slack`, `satisfied`. Rows of X are predicted from the scores that the
        threshold was chosen on (out-of-fold), extra rows by `estimator_`. With a
        `confidence_level`, a column `margin` after `slack` gives the slack that the level
        requires, and `satisfied` means a slack of at least that.
    feasible_ : bool
        Whether every constraint is satisfied; False only on an error's `closest_`.
    n_features_in_ : int
        Number of features, if `estimator_` has the attribute.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `estimator_` has the attribute.

    See Also
    --------
    skbandit.ConstrainedRampClassifier : Trains a linear classifier under the constraints.
    sklearn.model_selection.TunedThresholdClassifierCV : The best threshold for one metric.
    skbandit.evaluation.RateScorer : Scores any classifier by the same declarations.

    Notes
    -----
    One threshold for all rows: no group is needed at prediction.

    The constraints hold exactly on the training rows as scored out of fold. `estimator_`
    scores new rows a little differently, so there they hold up to sampling error, which
    `constraint_report` on held-out rows shows; on the training rows themselves it reflects
    what `estimator_` has memorised. Extra rows are assumed to be new to the model, as they
    are unless the classifier itself takes X_extra.

    With ``confidence_level=c``, the one-sided confidence limit of every bounded expression,
    at level 1 - (1 - c)/m for m constraints, must be inside its bound: Clopper and Pearson's
    for a single rate, combined cautiously for expressions of several (for a difference between
    two groups some 1.3 times as far as for a rule fixed in advance, as the choice costs
    something).

    - With ``cv="prefit"``, independent rows that the model has not seen, and equal weights,
      the guarantee is exact, whatever the objective, for rates that are monotone in the
      threshold: recall, positive rate, false positives and their opposites, overall or in
      groups. The choice among thresholds costs nothing there.
    - Precision, F1, accuracy, churn, differences and ratios may cross their bound several
      times. For these it holds asymptotically, in simulations from 200 rows on (1.0 to 1.2
      times the error 1 - c), unless the scores hardly separate the classes: then some
      threshold looks precise enough by chance.
    - With cross-validation the folds' models stand in for `estimator_`: an approximation.
    - n rows with unequal weights w count as (sum w)^2 / sum w^2 rows, an approximation too.

    `decision_function` is the response minus the threshold, signed for ``classes_[1]``, and
    agrees with `predict`. `predict_proba` is that of `estimator_`: it keeps its calibration,
    and is not 1/2 at the threshold.

    Threads may predict with one fitted classifier, which that does not change, while none fits
    it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skbandit.constrained import ConstrainedThreshold
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=30, random_state=0)
    >>> clf = ConstrainedThreshold(
    ...     forest, false_positive_rate(), recall() >= 0.99, pos_label=0
    ... ).fit(X, y)
    >>> clf.constraint_report_[["constraint", "bound", "satisfied"]]
           constraint  bound  satisfied
    0  recall() >= 0.99   0.99       True

    With a confidence level of 0.9, the bound holds on new data at least nine times in ten:

    >>> clf = clf.set_params(constraints=recall() >= 0.95, confidence_level=0.9).fit(X, y)
    >>> clf.constraint_report_[["bound", "value", "slack", "margin", "satisfied"]].round(3)
       bound  value  slack  margin  satisfied
    0   0.95  0.972  0.022   0.021       True
    """

    # The group of a row travels with it: users need no set_predict_request.
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"attributes": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "sample_weight": True,
        "attributes": True,
    }

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            list,
        ],
        "objective": "no_validation",
        "constraints": "no_validation",
        "cv": ["cv_object", StrOptions({"prefit"})],
        "response_method": [StrOptions({"auto", *USUAL})],
        "pos_label": "no_validation",
        "n_jobs": [Integral, None],
        "confidence_level": [Interval(Real, 0.5, 1, closed="left"), None],
        "by": [str, "array-like", None],
    }

    def __init__(
        self,
        estimator: Any,
        objective: Rate | None = None,
        constraints: Constraint | Sequence[Any] = (),
        *,
        cv: Any = None,
        response_method: str = "auto",
        pos_label: Any = None,
        n_jobs: int | None = None,
        confidence_level: float | None = None,
        by: str | Sequence[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.constraints = constraints
        self.cv = cv
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.confidence_level = confidence_level
        self.by = by

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` those of the classifiers, too, by their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the classifiers.

        Returns
        -------
        dict
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.estimator, list):
            for name, model in named_models(self.estimator):
                params[name] = model
                if hasattr(model, "get_params"):
                    inner = model.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> ConstrainedThreshold:
        """Set parameters; a name of a listed classifier replaces it.

        Parameters
        ----------
        **params
            Values by name, as in `get_params`.

        Returns
        -------
        self : ConstrainedThreshold
        """
        if "estimator" in params:
            self.estimator = params.pop("estimator")
        if isinstance(self.estimator, list):
            models = named_models(self.estimator)
            if not params.keys().isdisjoint(name for name, _ in models):
                self.estimator = [(name, params.pop(name, model)) for name, model in models]
        super().set_params(**params)
        return self

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

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        **fit_params: Any,
    ) -> ConstrainedThreshold:
        """Fit the classifier, unless it is prefit, and choose the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, in a form that `estimator` accepts.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, in the objective, in every constraint, and in the training of
            `estimator`, if its `fit` accepts them.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name and the model need not see. Columns of X, if it is
            a DataFrame, can be named too. Cross-validation slices a DataFrame.
        extra : ExtraData, default=None
            Rows that count only in rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one. In a Pipeline use these, with
            ``transform_input=["X_extra"]``; under cross-validation wrap each in a tuple of
            one, as in ``(X_extra,)``, which is never sliced.
        **fit_params : dict
            For the `fit` of `estimator` or, with metadata routing, for those who request
            them. `estimator` also receives the parameters above that it requests or, without
            metadata routing, that its `fit` names.

        Returns
        -------
        self : ConstrainedThreshold

        Raises
        ------
        InfeasibleConstraintsError
            If no threshold meets the constraints; the closest one is in its `closest_`, and
            this estimator is left as it was.
        """
        joined = join_extra(extra, X_extra, y_extra, attributes_extra, sample_weight_extra)
        metadata = {
            "sample_weight": sample_weight,
            "attributes": attributes,
            "extra": extra,
            "X_extra": X_extra,
            "y_extra": y_extra,
            "attributes_extra": attributes_extra,
            "sample_weight_extra": sample_weight_extra,
        }
        with atomic_fit(self) as draft:
            draft._fit(X, y, joined, metadata, fit_params)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        extra: ExtraData | None,
        metadata: dict[str, Any],
        fit_params: dict[str, Any],
    ) -> None:
        declared = Declared.read(self.objective, self.constraints)
        reserved = set(type(self)._parameter_constraints)
        models = check_models(self.estimator, reserved)
        for name in OF_ONE_FIT:
            if name in vars(self):
                delattr(self, name)
        given, y_given = X, y
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        X, y = indexable(X, y)
        prefit = isinstance(self.cv, str)
        if prefit:
            classes, label = self._read_prefit(models, y)
        else:
            classes = Classes.read(y, self.pos_label)
            label = (y == classes.positive).astype(np.int8)
        self.classes_, self._positive = classes.labels, classes.positive
        train_rows = read_rows(
            given, label, metadata["sample_weight"], metadata["attributes"], y=y_given
        )
        if not prefit and len(np.unique(label[train_rows.weight > 0])) < 2:
            raise ValueError("Two classes are needed: all rows of one class have weight 0.")
        X_extra, extra_rows = read_extra(
            extra,
            classes.positive,
            classes.labels,
            X_is_named=feature_names(given) is not None,
            read_X=lambda rows: indexable(rows)[0],
        )
        data = Data(train_rows, extra_rows, classes.positive, classes.labels.tolist())
        fit_params, split_params = self._route(models, metadata, fit_params, prefit)

        # bind first: report constraints the data cannot support before training anything
        splits: Splits | None = None
        counted = data
        if not prefit:
            splitter = check_cv(self.cv, y, classifier=True)
            splits = list(splitter.split(X, y, **split_params))
            counted = with_weights(data, rows_tested(splits, len(y)).astype(float))
        goals = declared.bind(counted)
        group = self._find_groups(counted)
        limits = self._bind_limits(goals, prefit, len(models))
        fitted, rules, every = [], [], []
        for name, model in models:
            final = model if splits is None else clone(model).fit(X, y, **fit_params[name])
            method = self._response_of(final)
            if splits is None:
                scores = responses(final, X, method, self._classes)
            else:
                scores = out_of_fold_scores(
                    model, X, y, fit_params[name], splits, method, self._classes, self.n_jobs
                )
            if X_extra is not None:
                with blamed_on_extra():
                    added = responses(final, X_extra, method, self._classes)
                scores = np.append(scores, added)
            fitted.append((name, final, method))
            every.append(scores)
            rules.append(self._search(scores, goals, limits, method, group))
        best = best_model(rules, goals.measured)
        name, self.estimator_, self.response_method_ = fitted[best]
        self._keep(name, rules[best])
        decisions = every[best] + self._shifts(group)
        own = None
        if not prefit:
            own = self._scores(X)
            own = np.append(own, every[best][len(own) :]) + self._shifts(group)  # extra rows
        self._judge(decisions, own, goals, limits, data)

    def _read_prefit(
        self, models: list[tuple[str, Any]], y: np.ndarray
    ) -> tuple[Classes, np.ndarray]:
        """Return the fitted classifiers' classes, and y encoded by them."""
        for _, model in models:
            try:
                check_is_fitted(model)
            except NotFittedError as error:
                raise NotFittedError(
                    f"cv='prefit' requires a fitted estimator, and this {type(model).__name__}"
                    " is not fitted: fit it first, or choose another cv."
                ) from error
        check_classification_targets(y)
        first, *others = [np.asarray(model.classes_) for _, model in models]
        for (name, _), labels in zip(models[1:], others, strict=True):
            if not np.array_equal(labels, first):
                raise ValueError(
                    f"estimator: {name!r} was fitted on the classes {labels.tolist()}, and "
                    f"{models[0][0]!r} on {first.tolist()}: fit all on the same labels."
                )
        classes = Classes.of(first, self.pos_label)
        unknown = [label for label in np.unique(y).tolist() if label not in classes.labels.tolist()]
        if unknown:
            raise ValueError(
                f"y contains {unknown}, which estimator was not fitted on: its classes are "
                f"{classes.labels.tolist()}."
            )
        return classes, encode(y, classes.positive, classes.labels.tolist(), "y")

    def _route(
        self,
        models: list[tuple[str, Any]],
        metadata: dict[str, Any],
        fit_params: dict[str, Any],
        prefit: bool,
    ) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """Return the metadata for the `fit` of each classifier, and for the splitter."""
        if prefit:
            if fit_params:
                raise ValueError(
                    f"{', '.join(sorted(fit_params))}: parameters for the fit of estimator, "
                    "which cv='prefit' does not fit. Remove them, or choose another cv."
                )
            return {}, {}
        given = {name: value for name, value in metadata.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **given, **fit_params)
            return {name: dict(routed[name].fit) for name, _ in models}, dict(routed.splitter.split)
        taken = {}
        for name, model in models:
            own = {n: value for n, value in given.items() if has_fit_parameter(model, n)}
            taken[name] = own | fit_params
            if "sample_weight" in given and not any(
                n.endswith("sample_weight") for n in taken[name]
            ):
                warnings.warn(
                    f"{type(model).__name__}.fit accepts no sample_weight: the weights are "
                    "used in the rates, not in its training. (For a step of a Pipeline pass "
                    "<step>__sample_weight as well, or enable metadata routing.)",
                    UserWarning,
                    stacklevel=5,
                )
        return taken, {}

    def _response_of(self, fitted: Any) -> str:
        """The response method for a fitted classifier."""
        wanted = list(USUAL) if self.response_method == "auto" else [self.response_method]
        found = [method for method in wanted if hasattr(fitted, method)]
        if not found:
            raise ValueError(f"{type(fitted).__name__} has no {' and no '.join(wanted)}.")
        return found[0]

    _grouping: Grouping | None
    _cuts: np.ndarray

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

    def _bind_limits(self, goals: Goals, prefit: bool, n_models: int) -> Limits | None:
        """Limits at the level; each constraint's own where that is an exact promise."""
        if self.confidence_level is None:
            return None
        rows = goals.measured.rows
        single = all(len(one.rate.atoms) == 1 for one in goals.measured.constraints.constraints)
        if prefit and single:
            error = allowed_error(self.confidence_level) or 0.0
            # each of the models may be chosen, so each takes its share of the error
            exact = confidence_limits(goals.constraints, goals.data, error / n_models)
            of_rows = tuple(limit.columns(rows) for limit in exact)
            return SeparateLimits(goals.measured.constraints, of_rows)
        limits = score_limits(goals.constraints, goals.data).columns(rows)
        return SharedRisk(limits, self.confidence_level)

    def _search(
        self,
        scores: np.ndarray,
        goals: Goals,
        limits: Limits | None,
        method: str,
        group: np.ndarray | None,
    ) -> Rule:
        """The best thresholds on one model's scores."""
        measured, sign = goals.measured, self._classes.orientation
        return best_rule(
            sign * scores[measured.rows],
            measured,
            USUAL[method],
            limits,
            None if group is None else group[measured.rows],
            1 if self._grouping is None else len(self._grouping.groups),
        )

    def _keep(self, name: str, rule: Rule) -> None:
        """Set the fitted attributes of the chosen model and its thresholds."""
        for feature in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, feature):
                setattr(self, feature, getattr(self.estimator_, feature))
        if isinstance(self.estimator, list):
            self.chosen_ = name
        if self.by is None:
            self.threshold_ = float(rule.cuts[0])
        else:
            self._cuts = rule.cuts
        self.gap_ = rule.gap

    def _judge(
        self,
        decisions: np.ndarray,
        own: np.ndarray | None,
        goals: Goals,
        limits: Limits | None,
        data: Data,
    ) -> None:
        """Set the report; raise if the constraints are not met.

        `decisions` are those that the thresholds were chosen on; `own` those of `estimator_` on
        the rows that it was fitted to, if these differ.
        """
        self._constraints = goals.constraints.constraints
        positive = self._predicted_positive(decisions)
        report = self._report(decisions, goals.data, goals.constraints)
        if limits is not None:
            report = with_margins(report, goals, limits, positive)
        if own is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the report out of fold has warned
                fitted = self._report(own, data, goals.constraints)
            report = judged_out_of_fold(report, fitted, goals, positive)
        self._report_columns = plain_columns(report)
        measured = goals.measured
        self.feasible_ = bool(report["satisfied"].fillna(True).all())
        if limits is not None:
            sums = (limits.rows @ positive[measured.rows])[:, None]
            self.feasible_ &= bool(limits.slack(sums)[0] >= -MET)
        if self.feasible_:
            return
        what = "threshold meets" if self.by is None else f"thresholds by {self.by!r} meet"
        text = f"No {what} the constraints together: {missed(report, goals.constraints)}"
        if np.isnan(self.gap_):
            text = text.replace("No", "Found no", 1) + "; there may be some, not tried"
        if isinstance(limits, SharedRisk):
            text += level_reached(limits, positive[measured.rows])
        raise InfeasibleConstraintsError(
            f"{text}. The closest one is in the error's closest_.", self
        )

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of `estimator_`, unaffected by the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of `estimator_`, unaffected by the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

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
            return scores + self._shift_of(self.threshold_)
        warn_if_reordered({"X": X, "attributes": attributes})
        columns = Columns.read(attributes, X, count_rows(X))
        return scores + self._shift_of(self._cuts[self._grouping.known_codes(columns)])

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

    def _scores(self, X: Any) -> np.ndarray:
        return responses(self.estimator_, X, self.response_method_, self._classes)

    @property
    def _shift(self) -> float:
        return 0.0  # what reports call scores are decisions here: see `_read`

    def _shift_of(self, threshold: Any) -> Any:
        return -self._classes.orientation * threshold

    def _shifts(self, codes: np.ndarray | None) -> Any:
        """What turns scores into decisions: nan for rows of an unknown group."""
        if codes is None:
            return self._shift_of(self.threshold_)
        return self._shift_of(np.append(self._cuts, np.nan)[codes])  # UNKNOWN is -1, the last

    def _read(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        attributes: Any,
        extra: ExtraData | None,
        read_X: Callable[[Any], Any],
    ) -> tuple[Any, Data]:
        scores, data = super()._read(X, y, sample_weight, attributes, extra, read_X)
        if self._grouping is None:
            return scores + self._shifts(None), data
        parts = [rows for rows in (data.train, data.extra) if rows is not None]
        codes = [self._grouping.known_codes(rows.columns) for rows in parts]
        return scores + self._shifts(np.concatenate(codes)), data
