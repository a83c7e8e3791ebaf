"""ConstrainedThreshold: plumbing around `best_threshold`, for any classifier with scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbandit.constrained._declared import Classes, Declared, Goals
from skbandit.constrained._extra_rows import (
    Extra,
    blamed_on_extra,
    read_extra,
    read_rows,
    with_weights,
)
from skbandit.constrained._mixin import ConstrainedClassifierMixin
from skbandit.constrained._out_of_fold import out_of_fold_scores, responses, tested_rows
from skbandit.constrained._report import add_margins, missed
from skbandit.constrained._threshold import best_threshold
from skbandit.constrained.training._problem import what_counts
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import Data, encode
from skbandit.utils._atomic_fit import all_or_nothing
from skbandit.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    feature_names,
    fit_context,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

USUAL = {"predict_proba": 0.5, "decision_function": 0.0}
"""Methods that score, the preferred one first, and the threshold of `predict` on each."""


def _inner_has(method: str) -> Callable[[Any], bool]:
    def check(self: ConstrainedThreshold) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)  # its own AttributeError
        return True

    return check


class ConstrainedThreshold(ConstrainedClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Moves the threshold of any classifier to where declared goals on rates are met.

    Of all thresholds on the classifier's scores it takes, exactly, the one with the best
    objective among those whose hard rates meet every constraint.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba` or `decision_function`, for two classes.
    objective : Rate, default=None
        What to optimise, in the direction in which it is better; None is `error_rate()`.
    constraints : Constraint or (nested) sequence of Constraint, default=()
        What must hold: see `skbandit.rates`.
    cv : int, cross-validation generator, iterable or "prefit", default=None
        How the rows of X are scored. By default 5-fold cross-validation: each row is
        scored by a clone fitted without it, as a threshold chosen on rows that the model
        has memorised promises too much, and `estimator_` is then fitted on all rows. A
        row may be tested once at most; rows never tested (as in a single split) do not
        count in any rate. "prefit" takes the fitted `estimator` as it is: X should be rows
        that it has not seen.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        The scores. "auto" is `predict_proba` if there is one, else `decision_function`.
    pos_label : label, default=None
        The positive class of all rates; None is ``classes_[1]``.
    n_jobs : int, default=None
        Folds fitted at the same time.
    margin : float between 0 and 0.5, or None, default=None
        Probability, at most, that any constraint met here is violated in the population
        that the rows are drawn from (a probability, not a distance). None takes training
        rates at face value: a bound that binds is then violated about every second time.
        See Notes.

    Attributes
    ----------
    estimator_ : classifier
        The fitted one that answers: trained on all of X, or as passed if "prefit".
    threshold_ : float
        The response for the positive class above which it is answered: a probability, or a
        value of `decision_function` (negated if the positive class is ``classes_[0]``).
        Midway between neighbouring scores, or 1/2 beyond the outermost. Of several equally
        good ones, that nearest to the usual threshold, 1/2 or 0.
    response_method_ : {"predict_proba", "decision_function"}
        The response that `threshold_` is for.
    classes_ : ndarray of shape (2,)
        Class labels.
    constraint_report_ : DataFrame
        One row a constraint: `constraint`, `on`, `n_rows`, `effective_n`, `bound`, `value`,
        `slack`, `satisfied`. The rows of X are answered by the scores that the threshold was chosen
        on (the folds' own), those of X_extra by `estimator_`. With `margin`, a column
        `margin` after `slack` says how much of it is needed: `satisfied` is what has as
        much.
    feasible_ : bool
        Whether every constraint holds in it; False only on an error's `closest_`.
    n_features_in_ : int
        Number of features, if `estimator_` tells.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `estimator_` tells.

    See Also
    --------
    skbandit.ConstrainedRampClassifier : Trains a linear classifier under the constraints.
    sklearn.model_selection.TunedThresholdClassifierCV : The best threshold for one metric.
    skbandit.evaluation.RateScorer : Scores any classifier by the same declarations.

    Notes
    -----
    One threshold for all rows: no group is needed at prediction.

    The constraints hold on the training rows exactly as the folds scored them. `estimator_`
    scores new rows a little differently, so there they hold up to sampling error, which
    `constraint_report` on held-out rows shows. On the training rows themselves it shows what
    `estimator_` has memorised. Rows of X_extra are taken to be new to the model, as they are
    unless the classifier itself takes X_extra.

    With ``margin=delta`` each of m constraints must keep inside its bound the one-sided
    confidence limit, at level 1 - delta/m, of what it bounds: Clopper and Pearson's for a
    single rate, conservatively combined for expressions of several (for a difference between
    two groups some 1.7 times as wide as it might be).

    - With ``cv="prefit"``, independent rows that the model has not seen, and equal weights,
      the promise is exact, whatever the objective, for rates that move one way with the
      threshold: recall, positive rate, false positives and their opposites, in all or in
      groups. The choice among thresholds costs nothing there.
    - Precision, F1, accuracy, churn, differences and ratios may cross their bound several
      times. There it holds as the number of rows grows, in simulations from 200 rows on (1.0
      to 1.2 times delta), unless scores hardly tell the classes apart: with none that do,
      some threshold looks precise enough by luck.
    - With cross-validation the folds' models also stand for `estimator_`: an approximation.
    - n rows of unequal weights w count as (sum w)^2 / sum w^2 rows, an approximation too.

    `decision_function` is the response minus the threshold, signed for ``classes_[1]``, and
    agrees with `predict`. `predict_proba` is that of `estimator_`: it keeps its calibration,
    and is not 1/2 at the threshold.

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

    Nine times out of ten, or more often, the bound is then met on new data:

    >>> clf.set_params(constraints=recall() >= 0.95, margin=0.1).fit(X, y).constraint_report_[
    ...     ["bound", "value", "slack", "margin", "satisfied"]
    ... ].round(3)
       bound  value  slack  margin  satisfied
    0   0.95  0.972  0.022   0.021       True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "objective": "no_validation",
        "constraints": "no_validation",
        "cv": ["cv_object", StrOptions({"prefit"})],
        "response_method": [StrOptions({"auto", *USUAL})],
        "pos_label": "no_validation",
        "n_jobs": [Integral, None],
        "margin": [Interval(Real, 0, 0.5, closed="neither"), None],
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
        margin: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.constraints = constraints
        self.cv = cv
        self.response_method = response_method
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.margin = margin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.classifier_tags.multi_class = False
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Requests of this estimator, of the inner one's `fit`, and of the splitter.

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
        **fit_params: Any,
    ) -> ConstrainedThreshold:
        """Fit the classifier, unless it is fitted already, and choose the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Training rows, as `estimator` takes them.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, in the objective, in every constraint, and in the training of
            `estimator`, if its `fit` takes them.
        attributes : DataFrame with n_samples rows, or dict of arrays, default=None
            Columns that constraints name and the model need not see. Columns of X, if it is
            a DataFrame, can be named too. Cross-validation slices a DataFrame.
        X_extra : like X, default=None
            Rows that count only in rates with ``on="extra"`` or ``"all"``. In a Pipeline,
            use ``transform_input=["X_extra"]``; under cross-validation pass ``(X_extra,)``,
            which is never sliced. So with the other parts of the extra dataset.
        y_extra : array-like, default=None
            Its labels; None or missing entries are unlabelled rows.
        attributes_extra : DataFrame or dict of arrays, default=None
            Its attributes.
        sample_weight_extra : array-like, default=None
            Its row weights.
        **fit_params : dict
            For the `fit` of `estimator`, or, with metadata routing, whoever requests them.
            With metadata routing `estimator` also gets those of the parameters above that
            it requests; without it, those that its `fit` names.

        Returns
        -------
        self : ConstrainedThreshold

        Raises
        ------
        InfeasibleConstraintsError
            If no threshold meets the constraints; the closest one is in its `closest_`, and
            this estimator is left as it was.
        """
        extra = Extra(X_extra, y_extra, attributes_extra, sample_weight_extra)
        with all_or_nothing(self) as draft:
            draft._fit(X, y, sample_weight, attributes, extra, fit_params)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        attributes: Any,
        extra: Extra,
        fit_params: dict[str, Any],
    ) -> None:
        declared = Declared.read(self.objective, self.constraints)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        given = X
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        X, y = indexable(X, y)
        prefit = isinstance(self.cv, str)
        if prefit:
            classes, label = self._read_prefit(y)
        else:
            classes = Classes.read(y, self.pos_label)
            label = (y == classes.positive).astype(np.int8)
        self.classes_, self._positive = classes.labels, classes.positive
        train_rows = read_rows(given, label, sample_weight, attributes)
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
        metadata = {"sample_weight": sample_weight, "attributes": attributes}
        metadata |= {f"{part}_extra": value for part, value in vars(extra).items()}
        fit_params, split_params = self._route(metadata, fit_params, prefit)

        # what the data do not carry is told of before anything is trained
        if prefit:
            goals = declared.bind(data, margin=self.margin)
            self.estimator_ = self.estimator
            self._read_response(self.estimator_)
            scores = self._scores(X)
        else:
            splitter = check_cv(self.cv, y, classifier=True)
            splits = list(splitter.split(X, y, **split_params))
            tested = tested_rows(splits, len(y))
            tested_data = with_weights(data, tested.astype(float))
            goals = declared.bind(tested_data, margin=self.margin)
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
            self._read_response(self.estimator_)
            scores = out_of_fold_scores(
                self.estimator,
                X,
                y,
                fit_params,
                splits,
                self.response_method_,
                self._classes,
                self.n_jobs,
            )
        if X_extra is not None:
            with blamed_on_extra():
                scores = np.append(scores, self._scores(X_extra))
        self._choose(scores, goals)

    def _read_prefit(self, y: np.ndarray) -> tuple[Classes, np.ndarray]:
        """The fitted estimator's classes, and y in their terms."""
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                f"cv='prefit' takes a fitted estimator, and this {type(self.estimator).__name__} "
                "is not: fit it first, or choose another cv."
            ) from error
        check_classification_targets(y)
        classes = Classes.of(np.asarray(self.estimator.classes_), self.pos_label)
        unknown = [label for label in np.unique(y).tolist() if label not in classes.labels.tolist()]
        if unknown:
            raise ValueError(
                f"y has {unknown}, which estimator has not seen: its classes are "
                f"{classes.labels.tolist()}."
            )
        return classes, encode(y, classes.positive, classes.labels.tolist(), "y")

    def _route(
        self, metadata: dict[str, Any], fit_params: dict[str, Any], prefit: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the inner `fit` gets, and the splitter."""
        if prefit:
            if fit_params:
                raise ValueError(
                    f"{', '.join(sorted(fit_params))}: passed for the fit of estimator, and with "
                    "cv='prefit' it is not fitted."
                )
            return {}, {}
        given = {name: value for name, value in metadata.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **given, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        taken = {n: value for n, value in given.items() if has_fit_parameter(self.estimator, n)}
        taken |= fit_params
        if "sample_weight" in given and not any(n.endswith("sample_weight") for n in taken):
            warnings.warn(
                f"{type(self.estimator).__name__}.fit takes no sample_weight: the weights count in "
                "the rates, not in its training. (For a step of a Pipeline pass "
                "<step>__sample_weight as well, or enable metadata routing.)",
                UserWarning,
                stacklevel=5,
            )
        return taken, {}

    def _read_response(self, fitted: Any) -> None:
        """Find the method that scores, and what the fitted estimator tells about features."""
        wanted = list(USUAL) if self.response_method == "auto" else [self.response_method]
        found = [method for method in wanted if hasattr(fitted, method)]
        if not found:
            raise ValueError(f"{type(fitted).__name__} has no {' and no '.join(wanted)}.")
        self.response_method_ = found[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _choose(self, scores: np.ndarray, goals: Goals) -> None:
        """Set the threshold, or say what could not be met."""
        objective, constraints, used = what_counts(
            goals.objective, goals.maximise, goals.constraints
        )
        response = self._classes.orientation * scores[used]
        usual = USUAL[self.response_method_]
        limits = [limit.columns(used) for limit in goals.limits]
        self.threshold_ = best_threshold(response, objective, constraints, usual, limits).cut
        self._constraints = goals.constraints.constraints
        report = self._report(scores, goals.data, goals.constraints)
        if self.margin is not None:
            answers = self._answers(scores)
            report = add_margins(report, goals.constraints, goals.limits, answers)
        self.constraint_report_ = report
        self.feasible_ = bool(self.constraint_report_["satisfied"].fillna(True).all())
        if not self.feasible_:
            raise InfeasibleConstraintsError(
                "No threshold meets the constraints together: "
                f"{missed(report, goals.constraints)}. The closest one is in the error's closest_.",
                self,
            )

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities by `estimator_`, not shifted with the threshold.

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
        """Logarithms of probabilities by `estimator_`, not shifted with the threshold.

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

    def _scores(self, X: Any) -> np.ndarray:
        return responses(self.estimator_, X, self.response_method_, self._classes)

    @property
    def _shift(self) -> float:
        return -self._classes.orientation * self.threshold_
