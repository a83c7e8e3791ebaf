"""Fitted regressors and classifiers as models of costs: rows in, a column of costs an ad out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from skbandit.selection._costs import Costs, quoted
from skbandit.selection._m_lowest import UNCACHED
from skbandit.selection._weights import weight_params
from skbandit.utils._sklearn_compat import count_rows, rows_of


class Asked:
    """Models of costs that are asked for whole rows as the user gave them."""

    block_bytes: ClassVar[int] = UNCACHED

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        raise NotImplementedError

    def by_rows(self, X: Any) -> Callable[[slice], np.ndarray]:
        """A function of a slice of rows that gives their costs."""
        return lambda rows: self.costs(rows_of(X, rows))


@dataclass(frozen=True)
class Joint(Asked):
    """One regressor that answers with the costs of all ads."""

    estimator: Any

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        answers = answers_of(self.estimator, X)
        return answers.reshape(len(answers), -1)


@dataclass(frozen=True)
class Separate(Asked):
    """A regressor an ad, or an `ExpectedCost`."""

    estimators: list[Any]

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        return np.stack([answers_of(one, X) for one in self.estimators], axis=1)


@dataclass(frozen=True)
class ExpectedCost:
    """A classifier of costs that take a few values, as a regressor: sum_k p(k | x) value_k.

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
        """Expected costs of shape (n_rows,)."""
        return self.classifier.predict_proba(X) @ self.values[self.classifier.classes_]


def learns_jointly(estimator: Any, costs: Costs) -> bool:
    """Whether one fit can learn all ads: a multi-output regressor, and nothing unobserved."""
    n_rows, n_ads = costs.shape
    return (
        n_ads > 1
        and not is_classifier(estimator)
        and get_tags(estimator).target_tags.multi_output
        and bool((costs.n_observed() == n_rows).all())
    )


def fit_joint(estimator: Any, X: Any, costs: Costs, weight: np.ndarray | None) -> Joint:
    """Fit a clone to all costs at once."""
    return Joint(clone(estimator).fit(X, costs.dense(), **weight_params(estimator, weight)))


def fit_separate(
    estimator: Any, X: Any, costs: Costs, weight: np.ndarray | None, n_jobs: int | None
) -> Separate:
    """Fit a clone for each ad to the rows in which its cost was observed."""
    return Separate(
        Parallel(n_jobs=n_jobs)(
            delayed(_fit_ad)(estimator, X, *costs.of_ad(j), weight, costs.ads[j])
            for j in range(costs.shape[1])
        )
    )


def _fit_ad(
    estimator: Any,
    X: Any,
    rows: np.ndarray,
    costs: np.ndarray,
    weight: np.ndarray | None,
    ad: Any,
) -> Any:
    try:
        if len(rows) < count_rows(X):
            X = rows_of(X, rows)
            weight = None if weight is None else weight[rows]
        return fit_to_costs(estimator, X, costs, weight)
    except ValueError as error:
        raise ValueError(f"Ad {quoted([ad])}, observed in {len(rows)} rows: {error}") from error


def fit_to_costs(estimator: Any, X: Any, costs: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a clone to one cost a row; what `predict` answers are costs.

    Parameters
    ----------
    estimator : regressor, or classifier with predict_proba
        A classifier learns which of the costs that occur is paid.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
        Rows.
    costs : ndarray of shape (n_rows,)
        None is nan.
    weight : ndarray of shape (n_rows,) or None
        Row weights.

    Returns
    -------
    object with predict
    """
    fit_params = weight_params(estimator, weight)
    if not is_classifier(estimator):
        alone = get_tags(estimator).target_tags.single_output
        return clone(estimator).fit(X, costs if alone else costs[:, None], **fit_params)
    values, label = np.unique(costs, return_inverse=True)
    if len(values) == 1:
        return DummyRegressor(strategy="constant", constant=values[0]).fit(X, costs)
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, which makes expected costs of "
            "classes. Take a classifier that has it, or a regressor."
        )
    if 2 * len(values) > max(len(costs), 20):
        raise ValueError(
            f"{len(costs)} costs take {len(values)} different values: a classifier is for costs "
            "of a few values, such as 0 and -1. Take a regressor."
        )
    return ExpectedCost(clone(estimator).fit(X, label, **fit_params), values)


def answers_of(estimator: Any, X: Any) -> np.ndarray:
    """Predicted costs, all of them finite, in an array of their own; flat if there is one a row."""
    answers = np.array(estimator.predict(X), dtype=float)
    answers = answers.ravel() if answers.shape[1:] == (1,) else answers
    if not np.isfinite(answers).all():
        row = np.argwhere(~np.isfinite(answers))[0][0]
        raise ValueError(
            f"{type(estimator).__name__} predicts {answers[row]} in row {row}: ads are chosen by "
            "finite costs."
        )
    return answers
