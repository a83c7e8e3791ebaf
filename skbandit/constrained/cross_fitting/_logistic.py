"""Ridge logistic regression with row weights, from any starting point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit

from skbandit.constrained.solvers._problem import canonical

FEW_COLUMNS = 200
"""Largest number of columns at which Newton steps are taken: they factor a matrix of this order.

Beyond, L-BFGS is faster.
"""

MAX_NEWTON, MAX_LBFGS = 25, 200
"""Largest numbers of steps."""

SMALL_DECREASE = 1e-7
"""Decrease of the objective, in units of its value without weights, that ends the steps."""

HALVINGS = 20
"""Times that a Newton step is halved until it lowers the objective."""

JITTER = 1e-10
"""Share of the Hessian's trace added to the unpenalised intercept, whose curvature may vanish."""


@dataclass(frozen=True)
class LinearFit:
    """Weights w and intercept b of scores ``X @ coef + intercept``."""

    coef: np.ndarray
    intercept: float


def fit_logistic(
    X: Any,
    positive: np.ndarray,
    weight: np.ndarray,
    *,
    fit_intercept: bool = True,
    start: LinearFit | None = None,
) -> LinearFit:
    """Minimise sum_j weight_j log(1 + exp(-s_j f_j)) + |w|^2 / 2, with s = 1 or -1.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Rows.
    positive : ndarray of bool, shape (n,)
        Labels.
    weight : ndarray of shape (n,)
        Nonnegative row weights.
    fit_intercept : bool
        Whether there is an intercept, which is not penalised.
    start : LinearFit or None
        Where to begin.

    Returns
    -------
    LinearFit

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(X, X[:, 0] > 1.5, np.ones(4))
    >>> print(f"{-fit.intercept / fit.coef[0]:.3f}")
    1.500
    """
    X, d = canonical(X), X.shape[1]
    theta = np.zeros(d + fit_intercept)
    if start is not None:
        theta[:d] = start.coef
        theta[d:] = start.intercept
    sign = np.where(positive, 1.0, -1.0)
    zero = float(weight.sum()) * np.log(2.0)
    if d > FEW_COLUMNS:
        options = {"maxiter": MAX_LBFGS, "ftol": SMALL_DECREASE}
        found = minimize(
            _loss, theta, (X, sign, weight), jac=True, method="L-BFGS-B", options=options
        )
        theta = found.x
    else:
        theta = _newton(X, sign, weight, theta, SMALL_DECREASE * max(zero, 1e-300))
    return LinearFit(theta[:d], float(theta[d]) if fit_intercept else 0.0)


def _scores(X: Any, theta: np.ndarray) -> np.ndarray:
    d = X.shape[1]
    intercept = theta[d] if len(theta) > d else 0.0
    return np.asarray(X @ theta[:d]).ravel() + intercept


def _loss(
    theta: np.ndarray, X: Any, sign: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray]:
    """The objective and its gradient."""
    d = X.shape[1]
    f = sign * _scores(X, theta)
    value = float(weight @ np.logaddexp(0.0, -f)) + 0.5 * float(theta[:d] @ theta[:d])
    slope = -weight * sign * expit(-f)
    gradient = np.append(np.asarray(X.T @ slope).ravel() + theta[:d], slope.sum())
    return value, gradient[: len(theta)]


def _newton(
    X: Any, sign: np.ndarray, weight: np.ndarray, theta: np.ndarray, enough: float
) -> np.ndarray:
    """Newton's method with halved steps."""
    value, gradient = _loss(theta, X, sign, weight)
    for _ in range(MAX_NEWTON):
        p = expit(_scores(X, theta))
        hessian = _hessian(X, weight * p * (1.0 - p), len(theta))
        try:
            step = cho_solve(cho_factor(hessian, lower=True), gradient)
        except LinAlgError:  # columns of sizes so different that rounding hides some
            break
        promised = float(gradient @ step)
        if promised < enough:
            break
        length = 1.0
        for _ in range(HALVINGS):
            proposed = theta - length * step
            reached, slope = _loss(proposed, X, sign, weight)
            if reached < value:
                break
            length /= 2.0
        else:
            break
        decrease, theta, value, gradient = value - reached, proposed, reached, slope
        if decrease < enough:
            break
    return theta


def _hessian(X: Any, curvature: np.ndarray, size: int) -> np.ndarray:
    """Its lower half."""
    d = X.shape[1]
    full = np.zeros((d + 1, d + 1))
    if issparse(X):
        from skbandit.constrained.solvers.smoothed_newton._kernels import (  # numba: on first use
            add_gram,
        )

        add_gram(X.indptr, X.indices, X.data, curvature, full)
    else:
        full[:d, :d] = X.T @ (X * curvature[:, None])
        full[d, :d], full[d, d] = X.T @ curvature, curvature.sum()
    full[np.arange(d), np.arange(d)] += 1.0
    full[d, d] += JITTER * max(float(np.trace(full[:d, :d])), 1.0)
    return full[:size, :size]
