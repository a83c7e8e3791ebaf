"""Models that predict costs: fitted regressors and classifiers behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skbandit.selection._costs import CostMatrix, quoted
from skbandit.selection._m_lowest import REGRESSOR_BLOCK_BYTES
from skbandit.selection._ridge import Linear, NormalEquations, choose_penalty, normal_equations_pay
from skbandit.utils._fitting import in_parallel
from skbandit.utils._sklearn_compat import count_rows, rows_of, takes_weights
from skbandit.utils._validation import first_few, warn


class PredictsFromRows:
    """Base of cost models that predict from rows in the form the user passed."""

    block_bytes: ClassVar[int] = REGRESSOR_BLOCK_BYTES

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        raise NotImplementedError

    def by_rows(self, X: Any) -> Callable[[slice], np.ndarray]:
        """Return a function that maps a slice of rows to their costs."""
        return lambda rows: self.costs(rows_of(X, rows))


@dataclass(frozen=True)
class MultiOutputModel(PredictsFromRows):
    """One regressor that predicts the costs of all ads."""

    estimator: Any

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        predicted = predict_finite(self.estimator, X)
        return predicted.reshape(len(predicted), -1)


@dataclass(frozen=True)
class PerAdModels(PredictsFromRows):
    """One regressor or `ExpectedCost` per ad."""

    estimators: list[Any]

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        return np.stack([predict_finite(model, X) for model in self.estimators], axis=1)


@dataclass(frozen=True)
class ExpectedCost:
    """A classifier over the values of a cost, used as a regressor: sum_k p(k | x) value_k.

    Parameters
    ----------
    classifier : classifier with predict_proba
        Its classes are positions in `values`.
    values : ndarray
        Costs.
    """

    classifier: Any
    values: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Return expected costs of shape (n_rows,)."""
        return self.classifier.predict_proba(X) @ self.values[self.classifier.classes_]


def learn_costs(
    estimator: Any, X: Any, costs: CostMatrix, weight: np.ndarray | None, n_jobs: int | None
) -> Linear | MultiOutputModel | PerAdModels:
    """Fit an estimator to observed costs.

    `Ridge` is fitted by normal equations if that is faster; None is `Ridge` with the penalty
    that cross-validation chooses.
    """
    ridge = ridge_of(estimator)
    if ridge is not None and normal_equations_pay(X, costs):
        equations = NormalEquations.of(X, weight, ridge.fit_intercept)
        alpha = ridge.alpha
        if estimator is None:
            alpha = choose_penalty(X, costs, weight, equations)
        return equations.solve(costs, alpha).astype(X.dtype)
    if estimator is None:
        ridge = Ridge(choose_penalty(X, costs, weight))
    learner = ridge or estimator
    if learns_all_at_once(learner, costs):
        fitted = clone(learner).fit(X, costs.dense(), **weight_params(learner, weight))
        check_n_outputs(fitted, X, costs.shape[1])
        if isinstance(last_step(learner), MultiOutputRegressor):
            check_learns(learner, "costs of each ad")
        return MultiOutputModel(fitted) if ridge is None else Linear.of([fitted])
    models = fit_per_ad(learner, X, costs, weight, n_jobs)
    if costs.shape[1] > 1:
        check_learns(learner, "costs of each ad")
    return models if ridge is None else Linear.of(models.estimators)


def ridge_of(estimator: Any) -> Ridge | None:
    """Return the `Ridge` that normal equations can replace: the default, or a plain one."""
    ridge = Ridge() if estimator is None else estimator
    plain = (
        type(ridge) is Ridge
        and ridge.solver in ("auto", "cholesky")
        and not ridge.positive
        and isinstance(ridge.alpha, Real)
        and float(ridge.alpha) >= 0
    )
    return ridge if plain else None


def learns_all_at_once(estimator: Any, costs: CostMatrix) -> bool:
    """Return whether one fit can learn all ads: a multi-output regressor and no unobserved cost.

    A frozen regressor, whose fit does nothing, cannot be fitted per ad.
    """
    n_rows, n_ads = costs.shape
    if n_ads == 1 or is_classifier(estimator):
        return False
    complete = bool((costs.n_observed() == n_rows).all())
    return is_frozen(estimator) or (complete and is_multi_output(estimator))


def is_frozen(estimator: Any) -> bool:
    """Return whether fit changes nothing, or only the first steps of a Pipeline."""
    return isinstance(last_step(estimator), FrozenEstimator)


def last_step(estimator: Any) -> Any:
    """Return the last step of Pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def check_learns(learner: Any, what: str) -> None:
    """Refuse a learner that is frozen, or a wrapper of one: every fit of it is the same model.

    Calibration learns even if its classifier is frozen.
    """
    inside = last_step(learner)
    while not isinstance(inside, FrozenEstimator | CalibratedClassifierCV):
        inside = last_step(getattr(inside, "estimator", None))
        if inside is None:
            return
    if isinstance(inside, FrozenEstimator):
        raise ValueError(
            f"{type(learner).__name__} is frozen, so it cannot learn the {what}: pass "
            f"{type(inside.estimator).__name__}(...) without FrozenEstimator."
        )


def is_multi_output(estimator: Any) -> bool:
    """Return whether a regressor learns several outputs in one fit.

    scikit-learn's tag is False for searches, which can if their estimator can, and for
    `MLPRegressor`, which can.
    """
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return is_multi_output(estimator.estimator)
    return isinstance(estimator, MLPRegressor) or get_tags(estimator).target_tags.multi_output


def warn_of_separate_fits(estimator: Any, costs: CostMatrix, allowed: Any) -> None:
    """Warn if only costs missing from y keep a joint learner from learning all ads at once.

    Parameters
    ----------
    estimator : regressor, classifier or None
        The learner; linear ones, and None, lose nothing by separate fits.
    costs : CostMatrix
        Costs, those of unavailable ads not observed.
    allowed : ndarray or sparse array of bool, shape (n_samples, n_ads), or None
        Which ads were available; None means all.
    """
    n_rows, n_ads = costs.shape
    n_needed = n_rows * n_ads if allowed is None else int(allowed.sum())
    n_missing = n_needed - int(costs.n_observed().sum())
    complete = CostMatrix(np.zeros((1, n_ads)), None, costs.ads)
    linear = isinstance(estimator, MultiOutputRegressor | LinearRegression | Ridge)
    separate = estimator is None or linear or is_frozen(estimator)
    if n_missing and not separate and learns_all_at_once(estimator, complete):
        warn(
            f"{type(estimator).__name__} could learn the costs of all ads in one fit, but "
            f"{n_missing:,} of {n_needed:,} costs were not observed, so it is fitted as {n_ads} "
            "models, one per ad. For a single fit, drop the incomplete rows, or fill in these "
            "costs; for ads that could not be chosen, pass available=.",
            UserWarning,
        )


def fit_per_ad(
    estimator: Any, X: Any, costs: CostMatrix, weight: np.ndarray | None, n_jobs: int | None
) -> PerAdModels:
    """Fit one clone per ad, to the rows in which its cost was observed."""
    models = in_parallel(
        (
            partial(_fit_ad, estimator, X, *costs.of_ad(j), weight, costs.ads[j])
            for j in range(costs.shape[1])
        ),
        n_jobs,
    )
    check_n_outputs(models[0], X, 1)
    return PerAdModels(models)


def _fit_ad(
    estimator: Any,
    X: Any,
    rows: np.ndarray,
    costs: np.ndarray,
    weight: np.ndarray | None,
    ad: Any,
) -> Any:
    """Fit a clone to one ad; errors name the ad."""
    try:
        if len(rows) < count_rows(X):
            X = rows_of(X, rows)
            weight = None if weight is None else weight[rows]
        return fit_to_costs(estimator, X, costs, weight)
    except ValueError as error:
        raise ValueError(f"Ad {quoted([ad])}, observed in {len(rows)} rows: {error}") from error


def fit_to_costs(estimator: Any, X: Any, costs: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a clone to one cost per row, so that `predict` returns costs.

    Parameters
    ----------
    estimator : regressor, or classifier with predict_proba
        A classifier learns which of the distinct costs is paid.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Rows.
    costs : ndarray of shape (n_rows,)
        Costs without nan.
    weight : ndarray of shape (n_rows,) or None
        Row weights.

    Returns
    -------
    object with predict
    """
    fit_params = weight_params(estimator, weight)
    if not is_classifier(estimator):
        takes_1d = get_tags(estimator).target_tags.single_output
        return clone(estimator).fit(X, costs if takes_1d else costs[:, None], **fit_params)
    values, label = np.unique(costs, return_inverse=True)
    if len(values) == 1:
        return constant(values[0])
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, which is needed to compute expected "
            "costs. Pass a classifier that has it, or a regressor."
        )
    if 2 * len(values) > max(len(costs), 20):
        raise ValueError(
            f"{len(costs)} costs take {len(values)} different values: a classifier needs costs "
            "with few distinct values, such as 0 and -1. Pass a regressor."
        )
    fitted = clone(estimator).fit(X, label, **fit_params)
    check_n_classes(fitted, len(values))
    return ExpectedCost(fitted, values)


def constant(values: Any) -> DummyRegressor:
    """Predict one value, or a value per ad, for all rows: there is nothing to learn."""
    return DummyRegressor(strategy="constant", constant=values).fit([[0.0]], [values])


def check_n_outputs(fitted: Any, X: Any, n_outputs: int) -> None:
    """Require that a learner predicts as many costs as it was passed, which frozen ones need not.

    Parameters
    ----------
    fitted : object with predict
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Rows, of which the first is predicted.
    n_outputs : int
        Number of costs per row that it was passed.
    """
    n_predicted = np.size(fitted.predict(rows_of(X, np.arange(1))))
    if n_predicted != n_outputs:
        raise ValueError(
            f"{type(fitted).__name__} predicts {n_predicted} costs per row, but its fit was passed "
            f"{n_outputs}: if it was fitted earlier, fit it to the ads of y."
        )


def check_n_classes(fitted: Any, n_classes: int) -> None:
    """Require that a classifier knows the classes 0, 1, ... it was passed, in any order.

    Frozen ones need not.
    """
    classes = np.asarray(getattr(fitted, "classes_", range(n_classes))).tolist()
    if len(classes) != n_classes or set(classes) != set(range(n_classes)):
        raise ValueError(
            f"{type(fitted).__name__} has the classes {first_few(classes)}, but its fit was passed "
            f"{first_few(range(n_classes))}: pass a learner that is not fitted yet."
        )


def predict_finite(estimator: Any, X: Any) -> np.ndarray:
    """Return a new array of predicted costs, all finite; 1-D if there is one cost per row."""
    predicted = np.array(estimator.predict(X), dtype=float)
    predicted = predicted.ravel() if predicted.shape[1:] == (1,) else predicted
    if not np.isfinite(predicted).all():
        row = np.argwhere(~np.isfinite(predicted))[0][0]
        raise ValueError(
            f"{type(estimator).__name__} predicts {predicted[row]} in row {row}: predicted costs "
            "must be finite."
        )
    return predicted


def weight_params(learner: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Keyword arguments of `fit` that pass the weights; none if all weights are 1.

    In a Pipeline the last step receives them or, with metadata routing, every step that requests
    them.
    """
    if weight is None or (weight == 1.0).all():
        return {}
    last, prefix = learner, ""
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    if not takes_weights(last):
        raise ValueError(
            f"{type(last).__name__}.fit takes no sample_weight, but rows have different weights: "
            "choose a learner that takes weights, such as LogisticRegression, Ridge or gradient "
            "boosting."
        )
    return {("" if get_config()["enable_metadata_routing"] else prefix) + "sample_weight": weight}
