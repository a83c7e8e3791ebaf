"""Directions trained without each fold in turn, and their out-of-fold scores.

Each direction is standardized: its scores have mean 0 and deviation 1 over all rows, which takes
no labels. So the scores of different folds' models are on one scale, and one threshold suits all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit

from skbandit.constrained.paper._interface import canonical_design

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


@dataclass(frozen=True)
class Mixture:
    """A combination of directions by name: (1 - share) of the plain one, share of another."""

    plain: str
    other: str
    share: float = 1.0

    def __str__(self) -> str:
        if self.share == 1.0:
            return self.other
        return f"{1.0 - self.share:g} {self.plain} + {self.share:g} {self.other}"


@dataclass(frozen=True)
class Directions:
    """J standardized directions for each of K folds.

    Parameters
    ----------
    names : tuple of J str
    coef : ndarray of shape (K, d, J)
        Trained without each fold.
    center : ndarray of shape (K, J)
        Their mean scores over all rows; 0 without an intercept.
    correlation : ndarray of shape (K, J, J)
        Of their scores over all rows.
    scores : ndarray of shape (n, J)
        Standardized scores of each row by the directions trained without its fold.
    fold : ndarray of int, shape (n,)
    """

    names: tuple[str, ...]
    coef: np.ndarray
    center: np.ndarray
    correlation: np.ndarray
    scores: np.ndarray
    fold: np.ndarray

    @classmethod
    def standardized(
        cls,
        X: Any,
        weight: np.ndarray,
        fold: np.ndarray,
        by_fold: list[Mapping[str, np.ndarray]],
        *,
        centered: bool,
    ) -> Directions:
        """Standardize the directions of each fold.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n, d)
            All rows.
        weight : ndarray of shape (n,)
            Weights of the rows in means and deviations.
        fold : ndarray of int, shape (n,)
            Fold of each row.
        by_fold : list of mappings of str to ndarray of shape (d,)
            Directions by name, without each fold. The first stands in for those that are
            missing or tell no rows apart.
        centered : bool
            Whether scores have mean 0.
        """
        names = tuple(dict.fromkeys(name for coef_of in by_fold for name in coef_of))
        share = weight / weight.sum()
        coefs, centers, correlations = [], [], []
        scores = np.empty((len(fold), len(names)))
        for k, coef_of in enumerate(by_fold):
            plain = next(iter(coef_of.values()))
            coef = np.column_stack([coef_of.get(name, plain) for name in names])
            raw = np.asarray(X @ coef)
            mean, deviation = _weighted_moments(raw, share, centered)
            flat = deviation <= SMALLEST_DEVIATION * np.abs(raw).max(axis=0)
            coef[:, flat], raw[:, flat] = coef[:, [0]], raw[:, [0]]
            mean, deviation = _weighted_moments(raw, share, centered)
            flat = deviation <= SMALLEST_DEVIATION * np.abs(raw).max(axis=0)
            deviation[flat] = 1.0
            raw = (raw - mean) / deviation
            raw[:, flat] = 0.0  # else rounding would tell rows apart
            scores[fold == k] = raw[fold == k]
            coefs.append(coef / deviation)
            centers.append(mean / deviation)
            correlations.append(raw.T @ (raw * share[:, None]))
        return cls(names, np.stack(coefs), np.stack(centers), np.stack(correlations), scores, fold)

    def _parts(self, mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients, (J,), and the deviation of the sum by fold, (K,)."""
        part = np.zeros(len(self.names))
        part[self.names.index(mixture.other)] = mixture.share
        part[self.names.index(mixture.plain)] += 1.0 - mixture.share
        deviation = np.sqrt(np.maximum(part @ self.correlation @ part, 0.0))
        deviation[deviation <= SMALLEST_DEVIATION] = 1.0
        return part, deviation

    def out_of_fold(self, mixture: Mixture, rows: np.ndarray | None = None) -> np.ndarray:
        """Return standardized scores of a mixture, each by the directions without the row's fold.

        Of all rows or of some.
        """
        part, deviation = self._parts(mixture)
        scores, fold = self.scores, self.fold
        if rows is not None:
            scores, fold = scores[rows], fold[rows]
        return (scores @ part) / deviation[fold]

    def mean_direction(self, mixture: Mixture) -> np.ndarray:
        """Return the mean over folds of a mixture's standardized directions, shape (d,)."""
        part, deviation = self._parts(mixture)
        return np.mean((self.coef @ part) / deviation[:, None], axis=0)


def _weighted_moments(
    scores: np.ndarray, share: np.ndarray, centered: bool
) -> tuple[np.ndarray, np.ndarray]:
    mean = share @ scores if centered else np.zeros(scores.shape[1])
    return mean, np.sqrt(share @ (scores - mean) ** 2)


def standardize(
    X: Any, weight: np.ndarray, coef: np.ndarray, *, centered: bool
) -> tuple[np.ndarray, float]:
    """Scale one direction; return it and its mean score."""
    scores = np.asarray(X @ coef).ravel()
    mean, deviation = _weighted_moments(scores[:, None], weight / weight.sum(), centered)
    size = float(deviation[0])
    if size <= SMALLEST_DEVIATION * np.abs(scores).max(initial=0.0):
        size = 1.0
    return coef / size, float(mean[0]) / size


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
    return LinearFit(theta[:d], float(theta[d]) if fit_intercept else 0.0)


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
    if issparse(X):
        from skbandit.constrained.linear._gram import add_gram  # numba: on first use

        add_gram(X.indptr, X.indices, X.data, curvature, full)
    else:
        full[:d, :d] = X.T @ (X * curvature[:, None])
        full[d, :d], full[d, d] = X.T @ curvature, curvature.sum()
    full[np.arange(d), np.arange(d)] += 1.0
    full[d, d] += JITTER * max(float(np.trace(full[:d, :d])), 1.0)
    return full[:size, :size]
