"""Ridge regression of many ads at once, with one Gram matrix and factor; dense or sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh, solve_triangular
from scipy.linalg.lapack import dpstrf

from skbandit.selection._costs import CostMatrix
from skbandit.selection._m_lowest import LINEAR_BLOCK_BYTES

MAX_GRAM = 5000
"""Largest number of columns of a Gram matrix: 200 MB, and two seconds to factor. Beyond it,
`Ridge.fit` is called."""

CG_COST = 1000
"""Time of conjugate gradients per ad and nonzero entry of the rows, in units in which normal
equations take p^3. Right within a factor of 4, mostly 2, for p from 500 to 3000."""

SINGULAR = 1e-13
"""Squared distance of a column from the span of the others, relative to its squared norm, up to
which it counts as linearly dependent on them."""


@dataclass(frozen=True)
class Linear:
    """Costs that are linear in x: ``[x, 1] @ weights``.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1, n_ads), C-contiguous
        The last row holds the intercepts: they cost nothing as part of the matrix product.
    alpha : float or None
        The penalty with which they were fitted, if one was.
    """

    weights: np.ndarray
    alpha: float | None = None
    block_bytes: ClassVar[int] = LINEAR_BLOCK_BYTES

    @classmethod
    def of(cls, fitted: Sequence[Any]) -> Linear:
        """The predictions of linear regressors fitted with one penalty, side by side."""
        parts = []
        for model in fitted:
            coef = np.atleast_2d(model.coef_).T
            parts.append(np.vstack([coef, np.broadcast_to(model.intercept_, coef.shape[1])]))
        return cls(np.ascontiguousarray(np.hstack(parts)), float(fitted[0].alpha))

    def astype(self, dtype: Any) -> Linear:
        """The same model in another precision."""
        return replace(self, weights=self.weights.astype(dtype, copy=False))

    @property
    def coef(self) -> np.ndarray:
        """Coefficients of shape (n_ads, n_features)."""
        return self.weights[:-1].T

    @property
    def intercept(self) -> np.ndarray:
        """Intercepts of shape (n_ads,)."""
        return self.weights[-1]

    def costs(self, X: Any) -> np.ndarray:
        """Costs of shape (n_rows, n_ads)."""
        return with_ones(X) @ self.weights

    def by_rows(self, X: Any) -> Callable[[slice], np.ndarray]:
        """A function that maps a slice of rows to their costs; each call reuses the same memory."""
        if sp.issparse(X):
            return lambda rows: self.costs(X[rows])
        buffer = np.empty((0, self.weights.shape[1]), np.result_type(X, self.weights))

        def costs_of(rows: slice) -> np.ndarray:
            nonlocal buffer
            part = with_ones(X[rows])
            if len(part) > len(buffer):
                buffer = np.empty((len(part), buffer.shape[1]), buffer.dtype)
            return np.matmul(part, self.weights, out=buffer[: len(part)])

        return costs_of


@dataclass(frozen=True)
class RidgeFactor:
    """The parts shared by ridge regressions of any costs on the same weighted rows.

    Each ad minimises sum_i s_i (f_i - x_i'w - b)^2 + alpha ||w||^2 over the rows i in which its
    cost was observed. With A = [X - shift, 1], S = diag(s) and D = diag(alpha, ..., alpha, 0) the
    solution is (A'SA + D)^-1 A'Sf, so all ads observed in every row share one Cholesky factor. Any
    other ad has its own Gram matrix, or shares one with those observed in the same rows: that of
    all rows minus that of its unobserved rows, or that of its observed rows, whichever are fewer.

    Wide X (more features than rows) is first rotated: with L L' = (X - shift)(X - shift)', ridge
    regression on the columns of L has the same predictions.

    Parameters
    ----------
    alpha : float
        Penalty on squared coefficients.
    fit_intercept : bool
        Whether A has the last column, of ones.
    shift : ndarray of shape (n_features,)
        Subtracted from rows, to avoid loss of precision; 0 if they stay sparse.
    unrotate : callable
        Maps coefficients of the columns of A, without the last, to those of X.
    design : ndarray or csr_array of shape (n_samples, p)
        A.
    weighted : ndarray or csr_array of shape (n_samples, p)
        S A.
    gram : ndarray of shape (p, p)
        A'SA.
    solve_gram : callable
        Multiplies by (A'SA + D)^-1.
    """

    alpha: float
    fit_intercept: bool
    shift: np.ndarray
    unrotate: Callable[[np.ndarray], np.ndarray]
    design: Any
    weighted: Any
    gram: np.ndarray
    solve_gram: Callable[[np.ndarray], np.ndarray]

    @classmethod
    def of(
        cls, X: Any, alpha: float, weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> RidgeFactor:
        """Factor the normal equations of X.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows.
        alpha : float
            Penalty on squared coefficients, not scaled by the number of rows.
        weight : ndarray of shape (n_samples,), default=None
            Positive row weights; None means ones.
        fit_intercept : bool, default=True
            Whether to fit an intercept, which is not penalised.

        Returns
        -------
        RidgeFactor
        """
        return cls.unpenalised(X, weight, fit_intercept).with_penalty(alpha)

    @classmethod
    def unpenalised(
        cls, X: Any, weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> RidgeFactor:
        """The normal equations of X, with no penalty yet and not factored."""
        n, d = X.shape
        s = np.ones(n) if weight is None else weight
        shift = np.zeros(d)
        if fit_intercept and (d > n or not sp.issparse(X)):
            shift = np.asarray(X.T @ (s / s.sum()), dtype=float).ravel()
        rows = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else X - shift
        unrotate: Callable[[np.ndarray], np.ndarray] = _unchanged
        if d > n:
            rows, unrotate = _rotated(rows, shift if sp.issparse(X) else np.zeros(d))
        elif fit_intercept and not sp.issparse(X):
            # constant columns are 0 only up to rounding errors
            rows[:, np.ptp(rows, axis=0) == 0] = 0.0
        design = with_ones(rows) if fit_intercept else rows
        weighted = design if weight is None else _times_rows(design, s)
        gram = _toarray(design.T @ weighted)
        _check_finite(gram)
        return cls(0.0, fit_intercept, shift, unrotate, design, weighted, gram, _unchanged)

    def with_penalty(self, alpha: float) -> RidgeFactor:
        """The same rows with another penalty, factored."""
        solve = _inverse(_penalised(self.gram, alpha, self.fit_intercept))
        return replace(self, alpha=alpha, solve_gram=solve)

    def solve(self, costs: CostMatrix) -> Linear:
        """Fit each ad to its observed costs.

        Parameters
        ----------
        costs : CostMatrix
            Costs of the same rows.

        Returns
        -------
        Linear
            An ad that was never observed has an intercept of inf.
        """
        n_observed = costs.n_observed()
        right = self.right_hand_sides(costs)
        solution = self.solve_gram(right)
        for ads in costs.observed_together():
            seen, _ = costs.of_ad(int(ads[0]))
            gram = _penalised(self.gram_of(seen), self.alpha, self.fit_intercept)
            solution[:, ads] = _inverse(gram)(right[:, ads])
        found = replace(self.for_X(solution), alpha=float(self.alpha))
        found.weights[:, n_observed == 0] = 0.0
        found.intercept[n_observed == 0] = np.inf
        return found

    def right_hand_sides(self, costs: CostMatrix) -> np.ndarray:
        """A'Sf of all ads, shape (p, n_ads); unobserved costs count as 0."""
        values = costs.with_zeros()
        if sp.issparse(values):
            return _toarray(values.T @ self.weighted).T
        return self.weighted.T @ values

    def gram_of(self, rows: np.ndarray) -> np.ndarray:
        """A'SA of selected rows, computed from these or from the others, whichever are fewer."""
        n = self.design.shape[0]
        few = 2 * len(rows) <= n
        used = rows if few else np.delete(np.arange(n), rows)
        part = self.design[used]  # without weights, X'X of one array takes half the time
        gram = _toarray(part.T @ (part if self.weighted is self.design else self.weighted[used]))
        return gram if few else self.gram - gram

    def for_X(self, solution: np.ndarray) -> Linear:
        """The model in terms of the columns of X, given the weights of the columns of A."""
        if not self.fit_intercept:
            coef = self.unrotate(solution)
            return Linear(np.ascontiguousarray(np.vstack([coef, np.zeros(coef.shape[1])])))
        coef = self.unrotate(solution[:-1])
        return Linear(np.ascontiguousarray(np.vstack([coef, solution[-1] - self.shift @ coef])))


def normal_equations_pay(X: Any, costs: CostMatrix) -> bool:
    """Whether `RidgeFactor` is faster than `Ridge`, which iterates per ad if rows are sparse."""
    p = min(X.shape)
    if p > MAX_GRAM or not sp.issparse(X):
        return p <= MAX_GRAM
    grams = 1 + int((costs.n_observed() < costs.shape[0]).sum())
    return grams * p**3 <= CG_COST * X.nnz * costs.shape[1]


def with_ones(X: Any) -> Any:
    """X with a last column of ones."""
    if sp.issparse(X):
        return sp.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr")
    return np.concatenate([X, np.ones((len(X), 1), dtype=X.dtype)], axis=1)


def _rotated(X: Any, shift: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """At most n columns whose rows have the inner products of X - shift, and the map back.

    The columns are a Cholesky factor, pivoted so that it ends once the remaining rows are linear
    combinations of the pivots.
    """
    inner, across = _toarray(X @ X.T), X @ shift
    inner += shift @ shift - across - across[:, None]
    factor, order, rank, _ = dpstrf(inner, lower=1)
    columns = np.empty((len(inner), rank))
    columns[order - 1] = np.tril(factor)[:, :rank]
    basis = order[:rank] - 1

    def unrotate(solution: np.ndarray) -> np.ndarray:
        of_rows = solve_triangular(columns[basis], solution, lower=True, trans="T")
        return X[basis].T @ of_rows - np.outer(shift, of_rows.sum(axis=0))

    return columns, unrotate


def _unchanged(solution: np.ndarray) -> np.ndarray:
    """The identity: X was not rotated, or the Gram matrix not factored."""
    return solution


def _penalised(gram: np.ndarray, alpha: float, fit_intercept: bool) -> np.ndarray:
    """A'SA + D."""
    penalty = np.full(len(gram), float(alpha))
    if fit_intercept:
        penalty[-1] = 0.0
    return gram + np.diag(penalty)


def _check_finite(gram: np.ndarray) -> None:
    if not np.isfinite(gram).all():
        raise ValueError(
            "The features have entries so large that their squares overflow: rescale them."
        )


def _inverse(gram: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that multiplies by the inverse, or by the pseudo-inverse if `gram` is singular."""
    _check_finite(gram)
    diagonal = np.diag(gram)
    size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # features may differ in units
    scaled = gram / size / size[:, None]
    try:
        factor = cho_factor(scaled)
        singular = np.diag(factor[0]).min() ** 2 <= SINGULAR
    except LinAlgError:
        singular = True
    if singular:
        inverse = pinvh(scaled, rtol=SINGULAR) / size / size[:, None]
        return lambda right: inverse @ right
    return lambda right: (cho_solve(factor, (right.T / size).T).T / size).T


def _times_rows(matrix: Any, s: np.ndarray) -> Any:
    """diag(s) matrix."""
    return matrix.multiply(s[:, None]).tocsr() if sp.issparse(matrix) else matrix * s[:, None]


def _toarray(matrix: Any) -> np.ndarray:
    """The matrix as an array, whether sparse or dense."""
    return matrix.toarray() if sp.issparse(matrix) else matrix
