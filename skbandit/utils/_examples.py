"""Weighted examples: cost-sensitive classification as weighted classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from skbandit.utils._sklearn_compat import routes_weights, rows_of
from skbandit.utils._validation import warn

ENTRIES = 2**18
"""Log-odds held at a time."""

MANY = 3
"""Choices from which on a logistic regression has coefficients for each."""

FREE = "C", "fit_intercept", "max_iter", "random_state", "tol"
"""Parameters of `LogisticRegression` that may have any value."""

SAME_SOLUTION = {"maxls": 50, "ftol": 64 * np.finfo(float).eps}
"""Options of L-BFGS in `LogisticRegression`."""


def weighted_examples(gain: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn what each choice gains over the worst one into examples of the choices.

    A row becomes one example per choice, of the gain as weight. The probability of a choice by a
    calibrated classifier is then proportional to its expected gain, so that the most probable
    choice is the best one.

    Parameters
    ----------
    gain : ndarray of shape (n_rows, n_choices)
        Nonnegative.

    Returns
    -------
    tuple of three ndarray of shape (n_examples,)
        Rows, choices, and positive weights.

    Examples
    --------
    >>> weighted_examples(np.array([[0.0, 2.0], [6.0, 0.0]]))
    (array([0, 1]), array([1, 0]), array([2., 6.]))
    """
    row, choice = np.nonzero(gain > 0)
    return row, choice, gain[row, choice]


def logistic_of_gains(
    classifier: Any, X: Any, gain: np.ndarray, labels: np.ndarray, *, scaled_by_weight: bool
) -> Any:
    """Return a logistic regression fitted to `weighted_examples`, none of which is made.

    The log-odds of a row are the same in all of its examples, so that the loss needs them once.
    Time and memory then grow with rows times choices, not with its square.

    Parameters
    ----------
    classifier : classifier
        Cloned.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
    gain : ndarray of shape (n_rows, n_choices)
        Nonnegative; the weights of the examples.
    labels : ndarray of shape (n_choices,)
        What the choices are called.
    scaled_by_weight : bool
        Whether scalers weigh examples, or count them.

    Returns
    -------
    classifier or None
        None if the classifier is something other than such a regression, alone or on standardized
        features, or if fewer than three choices have examples.
    """
    chosen = np.flatnonzero(gain.any(axis=0))
    fitted = clone(classifier)
    steps = fitted.steps if isinstance(fitted, Pipeline) else [("", fitted)]
    *scalers, model = (step for _, step in steps)
    if len(chosen) < MANY or type(model) is not LogisticRegression or routes_weights(fitted):
        return None
    usual, asked = LogisticRegression().get_params(), model.get_params()
    is_pipeline = type(fitted) is Pipeline and fitted.memory is None
    is_plain = (fitted is model or is_pipeline) and all(
        asked[name] == value for name, value in usual.items() if name not in FREE
    )  # so that L-BFGS fits it
    if not (is_plain and all(type(scaler) is StandardScaler for scaler in scalers)):
        return None
    rows, chosen = np.flatnonzero(gain.any(axis=1)), chosen[np.argsort(labels[chosen])]
    gain, X = gain[np.ix_(rows, chosen)], rows_of(X, rows)
    times = gain.sum(axis=1) if scaled_by_weight else (gain > 0).sum(axis=1)
    for scaler in scalers:
        with np.errstate(invalid="ignore"):  # rounded, the variance of a constant is below 0
            X = scaler.fit(X, sample_weight=times).transform(X)
    _fit_logistic(model, X, gain, labels[chosen])
    return fitted


def _fit_logistic(model: LogisticRegression, X: Any, gain: np.ndarray, labels: np.ndarray) -> None:
    """Fit as `LogisticRegression` fits an example per row and choice, to the same tolerance."""
    X = validate_data(model, X, accept_sparse="csr", dtype=[np.float64, np.float32])
    n_choices, total, of_row = len(labels), gain.sum(), gain.sum(axis=1, keepdims=True)
    penalty, step = 1 / (model.C * total), max(ENTRIES // n_choices, 1)
    of_labels = np.column_stack([np.asarray(gain.T @ X), gain.sum(axis=0)])

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        coef = flat.reshape(n_choices, -1, order="F")
        slope, intercept = coef[:, :-1].astype(X.dtype), coef[:, -1].astype(X.dtype)
        value, gradient = -np.vdot(of_labels, coef), -of_labels
        for start in range(0, len(gain), step):
            part, weight = X[start : start + step], of_row[start : start + step]
            odds = part @ slope.T + intercept
            largest = odds.max(axis=1, keepdims=True)
            np.exp(odds - largest, out=odds)
            sums = odds.sum(axis=1, keepdims=True)
            value += np.vdot(weight, np.log(sums) + largest)
            odds *= weight / sums
            gradient[:, :-1] += odds.T @ part
            gradient[:, -1] += odds.sum(axis=0)
        gradient /= total
        gradient[:, :-1] += penalty * coef[:, :-1]
        gradient[:, -1] *= model.fit_intercept
        value = value / total + 0.5 * penalty * np.vdot(coef[:, :-1], coef[:, :-1])
        return float(value), gradient.ravel(order="F")

    options = {"maxiter": model.max_iter, "gtol": model.tol, **SAME_SOLUTION}
    start = np.zeros(of_labels.size)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if solution.status != 0:
        warn(
            f"LogisticRegression did not converge in {solution.nit} iterations: increase max_iter, "
            "or scale the features.",
            ConvergenceWarning,
        )
    coef = solution.x.reshape(n_choices, -1, order="F").astype(X.dtype)
    model.classes_, model.coef_, model.intercept_ = labels, coef[:, :-1], coef[:, -1]
    model.n_iter_ = np.array([solution.nit], dtype=np.int32)
