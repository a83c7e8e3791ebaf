"""Models that predict costs: fitted regressors and classifiers behind one interface."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skbandit.selection._costs import CostMatrix
from skbandit.selection._ridge import Linear, NormalEquations, choose_penalty, normal_equations_pay
from skbandit.utils._fitting import in_parallel
from skbandit.utils._sklearn_compat import count_rows, rows_of, takes_weights
from skbandit.utils._validation import first_few


@dataclass(frozen=True)
class CostModels:
    """One regressor or `ExpectedCost` per ad, or one regressor that predicts all costs."""

    estimators: list[Any]

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        return np.column_stack([predict_finite(model, X) for model in self.estimators])


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
) -> Linear | CostModels:
    """Fit an estimator to observed costs.

    `Ridge` is fitted by normal equations if that is faster; None is `Ridge` with the penalty
    that cross-validation chooses.
    """
    ridge = ridge_of(estimator)
    if ridge is not None and ridge.fit_intercept and normal_equations_pay(X, costs):
        equations = NormalEquations.of(X, weight)
        alpha = ridge.alpha
        if estimator is None:
            alpha = choose_penalty(X, costs, weight, equations)
        model = equations.solve(costs, alpha)
        return replace(model, weights=model.weights.astype(X.dtype, copy=False))
    if estimator is None:
        ridge = Ridge(choose_penalty(X, costs, weight))
    learner, n_ads = ridge or estimator, costs.shape[1]
    complete = bool((costs.n_observed() == costs.shape[0]).all())
    if complete and n_ads > 1 and is_multi_output(learner):
        fitted = clone(learner).fit(X, costs.dense(), **weight_params(learner, weight))
        return CostModels([fitted]) if ridge is None else Linear.of([fitted])
    calls = (
        partial(_fit_ad, learner, X, *costs.of_ad(j), weight, costs.ads[j]) for j in range(n_ads)
    )
    models = in_parallel(calls, n_jobs)
    return CostModels(models) if ridge is None else Linear.of(models)


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


def is_multi_output(estimator: Any) -> bool:
    """Return whether a regressor learns several outputs in one fit.

    scikit-learn's tag is False for searches, which can if their estimator can, and for
    `MLPRegressor`, which can.
    """
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return is_multi_output(estimator.estimator)
    tags = get_tags(estimator)
    multi_output = isinstance(estimator, MLPRegressor) or tags.target_tags.multi_output
    return multi_output and tags.estimator_type != "classifier"


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
        raise ValueError(f"Ad {first_few([ad])}, observed in {len(rows)} rows: {error}") from error


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
    return ExpectedCost(clone(estimator).fit(X, label, **fit_params), values)


def constant(values: Any) -> DummyRegressor:
    """Predict one value, or a value per ad, for all rows: there is nothing to learn."""
    return DummyRegressor(strategy="constant", constant=values).fit([[0.0]], [values])


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
