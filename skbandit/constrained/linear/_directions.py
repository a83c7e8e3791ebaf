"""Logistic regression by Newton steps, and the units of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit

from skbandit.constrained.paper._interface import canonical_design
from skbandit.constrained.paper._problem import Point

SMALLEST_DEVIATION = 1e-9
"""Deviation of scores, as a share of their largest size, below which they do not differ."""

FEW_COLUMNS = 200
"""Largest number of columns at which Newton steps are taken: they factor a matrix of this order.

Beyond, L-BFGS is faster.
"""

MAX_NEWTON, MAX_LBFGS = 25, 200
"""Largest numbers of steps."""

SMALL_DECREASE = 1e-7
"""Decrease of the objective, in units of its value without weights, that ends the steps."""

LAST_STEP = 1e-4
"""Expected decrease of a Newton step, in the same units, after which there is none.

The error is about the square of that, as Newton's method converges quadratically.
"""

HALVINGS = 20
"""Times that a Newton step is halved until it lowers the objective."""

JITTER = 1e-10
"""Share of the Hessian's trace added to the unpenalized intercept, whose curvature may vanish."""


def column_scales(X: Any, weight: np.ndarray, *, centered: bool) -> np.ndarray:
    """Return each column's unit: its deviation per nonzero entry, so that units do not matter.

    That is sqrt(variance / share of nonzero entries): the deviation itself of a column without
    zeros, and about 1 for a rare indicator, which counts no more for being rare. A column of one
    value is its own unit.
    """
    share = weight / weight.sum()
    mean = np.asarray(share @ X).ravel() if centered else np.zeros(X.shape[1])
    if issparse(X):
        square = np.asarray(share @ X.multiply(X)).ravel()
        variance = np.maximum(square - mean * mean, 0.0)
        varied = variance > SMALLEST_DEVIATION * square
    else:
        around = X - mean  # the difference of squares is rounded off far from 0
        square = np.einsum("i,ij,ij->j", share, X, X)
        variance = np.einsum("i,ij,ij->j", share, around, around)
        varied = variance > SMALLEST_DEVIATION**2 * square
    nonzero = np.asarray(share @ (X != 0)).ravel()
    constant = np.sqrt(np.where(square > 0, square, 1.0))
    return np.where(varied, np.sqrt(variance / np.where(nonzero > 0, nonzero, 1.0)), constant)


def fit_logistic(
    X: Any,
    positive: np.ndarray,
    weight: np.ndarray,
    *,
    fit_intercept: bool = True,
    start: Point | None = None,
) -> Point:
    """Minimize sum_j weight_j log(1 + exp(-s_j f_j)) + |w|^2 / 2, with s = 1 or -1.

    Own code, as a cross-fitted classifier takes dozens of such fits: with scikit-learn's L-BFGS, as
    exact, one on the sparse indicators of Adult takes six times as long.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Rows.
    positive : ndarray of bool, shape (n,)
        Labels.
    weight : ndarray of shape (n,)
        Nonnegative row weights.
    fit_intercept : bool
        Whether there is an intercept, which is not penalized.
    start : Point or None
        Where to begin.

    Returns
    -------
    Point

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(X, X[:, 0] > 1.5, np.ones(4))
    >>> print(f"{-fit.intercept / fit.coef[0]:.3f}")
    1.500
    """
    X, d = canonical_design(X), X.shape[1]
    theta = np.zeros(d + fit_intercept)
    if start is not None:
        theta[:d] = start.coef
        theta[d:] = start.intercept
    sign = np.where(positive, 1.0, -1.0)
    zero = float(weight.sum()) * np.log(2.0)
    if d > FEW_COLUMNS:
        options = {"maxiter": MAX_LBFGS, "ftol": SMALL_DECREASE}
        optimum = minimize(
            lambda theta: _loss(theta, X, sign, weight)[:2],
            theta,
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        theta = optimum.x
    else:
        theta = _newton(X, sign, weight, theta, LAST_STEP * max(zero, 1e-300))
    return Point(theta[:d], float(theta[d]) if fit_intercept else 0.0)


def _loss(
    theta: np.ndarray, X: Any, sign: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the objective, its gradient, and each row's probability of the wrong label."""
    d = X.shape[1]
    f = sign * (np.asarray(X @ theta[:d]).ravel() + theta[d:].sum())
    value = float(weight @ np.logaddexp(0.0, -f)) + 0.5 * float(theta[:d] @ theta[:d])
    wrong = expit(-f)
    slope = -weight * sign * wrong
    gradient = np.append(np.asarray(X.T @ slope).ravel() + theta[:d], slope.sum())
    return value, gradient[: len(theta)], wrong


def _newton(
    X: Any, sign: np.ndarray, weight: np.ndarray, theta: np.ndarray, small: float
) -> np.ndarray:
    """Newton's method with halved steps; a full one of small expected decrease is the last."""
    value, gradient, wrong = _loss(theta, X, sign, weight)
    for _ in range(MAX_NEWTON):
        hessian = _hessian(X, weight * wrong * (1.0 - wrong), len(theta))
        try:
            step = cho_solve(cho_factor(hessian, lower=True), gradient)
        except LinAlgError:  # columns of sizes so different that rounding hides some
            break
        expected = float(gradient @ step)
        length = 1.0
        for _ in range(HALVINGS):
            proposed = theta - length * step
            reached, *derivatives = _loss(proposed, X, sign, weight)
            if reached < value:
                break
            length /= 2.0
        else:
            break
        theta, value, (gradient, wrong) = proposed, reached, derivatives
        if expected < small and length == 1.0:
            break
    return theta


def _hessian(X: Any, curvature: np.ndarray, size: int) -> np.ndarray:
    """Its lower half."""
    d = X.shape[1]
    full = np.zeros((d + 1, d + 1))
    from skbandit.constrained.paper._augmented_lagrangian import add_gram  # numba: on first use

    add_gram(X, curvature, full)
    full[np.arange(d), np.arange(d)] += 1.0
    full[d, d] += JITTER * max(float(np.trace(full[:d, :d])), 1.0)
    return full[:size, :size]
