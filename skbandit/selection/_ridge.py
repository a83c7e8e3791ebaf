"""Ridge regression of many ads at once: one Gram matrix, one factor, dense or sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh, solve_triangular
from scipy.linalg.lapack import dpstrf

from skbandit.selection._costs import Costs
from skbandit.selection._m_lowest import CACHED

LARGEST = 5000
"""Gram matrices have at most so many columns: 200 MB, and two seconds to factor."""

SPARSE = 1000
"""An ad takes conjugate gradients as long, for each nonzero entry of the rows, as it takes normal
equations for so much of p^3: right within a factor of 4, mostly of 2, for p from 500 to 3000."""

SINGULAR = 1e-13
"""A column whose squared distance from the span of others, relative to its own, is no larger says
nothing that they do not say."""


@dataclass(frozen=True)
class Linear:
    """Costs that are linear in x: ``[x, 1] @ weights``.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1, n_ads), C-contiguous
        The last row is the intercepts: as part of the matrix product they cost nothing.
    """

    weights: np.ndarray
    block_bytes: ClassVar[int] = CACHED

    @classmethod
    def of(cls, fitted: Sequence[Any]) -> Linear:
        """What fitted linear regressors predict, side by side."""
        parts = []
        for one in fitted:
            coef = np.atleast_2d(one.coef_).T
            parts.append(np.vstack([coef, np.broadcast_to(one.intercept_, coef.shape[1])]))
        return cls(np.ascontiguousarray(np.hstack(parts)))

    def astype(self, dtype: Any) -> Linear:
        """The same in another precision."""
        return Linear(self.weights.astype(dtype, copy=False))

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
        """A function of a slice of rows that gives their costs, in memory that it uses again."""
        if sp.issparse(X):
            return lambda rows: self.costs(X[rows])
        room = np.empty((0, self.weights.shape[1]), np.result_type(X, self.weights))

        def costs_of(rows: slice) -> np.ndarray:
            nonlocal room
            part = with_ones(X[rows])
            if len(part) > len(room):
                room = np.empty((len(part), room.shape[1]), room.dtype)
            return np.matmul(part, self.weights, out=room[: len(part)])

        return costs_of


@dataclass(frozen=True)
class RidgeFactor:
    """What ridge regressions of any costs on the same weighted rows have in common.

    Minimised is, for each ad, sum_i s_i (f_i - x_i'w - b)^2 + alpha ||w||^2 over the rows i in
    which its cost was observed. With A = [X - shift, 1], S = diag(s) and D = diag(alpha, ...,
    alpha, 0) the solution is (A'SA + D)^-1 A'Sf, so that all ads that are observed in every row
    share one Cholesky factor. An ad that is not has a Gram matrix of its own: the shared one minus
    that of the rows that it lacks, or that of its rows, whichever are fewer.

    Wide rows (more features than rows) are first rotated: with L L' = (X - shift)(X - shift)',
    ridge regression on the columns of L gives the same answers.

    Parameters
    ----------
    alpha : float
        Penalty on squared coefficients.
    fit_intercept : bool
        Whether A has its last column.
    shift : ndarray of shape (n_features,)
        Subtracted from rows against loss of precision; 0 where they stay sparse.
    unrotate : callable
        From coefficients of the columns of A, without the last, to those of X.
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
        """Factor the normal equations of these rows.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows.
        alpha : float
            Penalty on squared coefficients, not divided by the number of rows.
        weight : ndarray of shape (n_samples,), default=None
            Positive row weights; None is ones.
        fit_intercept : bool, default=True
            Whether there is an intercept, without a penalty.

        Returns
        -------
        RidgeFactor
        """
        n, d = X.shape
        s = np.ones(n) if weight is None else weight
        shift = np.zeros(d)
        if fit_intercept and (d > n or not sp.issparse(X)):
            shift = np.asarray(X.T @ (s / s.sum()), dtype=float).ravel()
        rows = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else X - shift
        unrotate: Callable[[np.ndarray], np.ndarray] = _unchanged
        if d > n:
            rows, unrotate = _rotated(rows, shift if sp.issparse(X) else np.zeros(d))
        elif fit_intercept and not sp.issparse(X):  # a constant column is 0 up to rounding errors
            rows[:, np.ptp(rows, axis=0) == 0] = 0.0
        design = with_ones(rows) if fit_intercept else rows
        weighted = design if weight is None else _times_rows(design, s)
        gram = _toarray(design.T @ weighted)
        solve = _inverse(_penalised(gram, alpha, fit_intercept))
        return cls(alpha, fit_intercept, shift, unrotate, design, weighted, gram, solve)

    def solve(self, costs: Costs) -> Linear:
        """Fit each ad to its observed costs.

        Parameters
        ----------
        costs : Costs
            Of the same rows.

        Returns
        -------
        Linear
            An ad never observed has an intercept of inf.
        """
        n_observed = costs.n_observed()
        n_rows = costs.shape[0]
        right = self.right_hand_sides(costs)
        solution = self.solve_gram(right)
        for j in np.flatnonzero((n_observed < n_rows) & (n_observed > 0)):
            seen, _ = costs.of_ad(int(j))
            gram = _penalised(self._gram_of(seen), self.alpha, self.fit_intercept)
            solution[:, j] = _inverse(gram)(right[:, j])
        found = self.for_X(solution)
        found.weights[:, n_observed == 0] = 0.0
        found.intercept[n_observed == 0] = np.inf
        return found

    def right_hand_sides(self, costs: Costs) -> np.ndarray:
        """A'Sf of all ads, shape (p, n_ads); costs that were not observed count as 0."""
        values = costs.with_zeros()
        if sp.issparse(values):
            return _toarray(values.T @ self.weighted).T
        return self.weighted.T @ values

    def _gram_of(self, rows: np.ndarray) -> np.ndarray:
        """A'SA of some rows, by way of those rows or of the others."""
        n = self.design.shape[0]
        few = 2 * len(rows) <= n
        used = rows if few else np.setdiff1d(np.arange(n), rows, assume_unique=True)
        part = self.design[used]  # one array twice, where there are no weights, takes half the time
        gram = _toarray(part.T @ (part if self.weighted is self.design else self.weighted[used]))
        return gram if few else self.gram - gram

    def for_X(self, solution: np.ndarray) -> Linear:
        """Weights of the columns of X, and the intercepts, from those of A."""
        if not self.fit_intercept:
            coef = self.unrotate(solution)
            return Linear(np.ascontiguousarray(np.vstack([coef, np.zeros(coef.shape[1])])))
        coef = self.unrotate(solution[:-1])
        return Linear(np.ascontiguousarray(np.vstack([coef, solution[-1] - self.shift @ coef])))


def normal_equations_pay(X: Any, costs: Costs) -> bool:
    """Whether `RidgeFactor` is faster than `Ridge`, which on sparse rows iterates, ad by ad."""
    p = min(X.shape)
    if p > LARGEST or not sp.issparse(X):
        return p <= LARGEST
    grams = 1 + int((costs.n_observed() < costs.shape[0]).sum())
    return grams * p**3 <= SPARSE * X.nnz * costs.shape[1]


def with_ones(X: Any) -> Any:
    """Rows with a column of ones at the end."""
    if sp.issparse(X):
        return sp.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr")
    return np.concatenate([X, np.ones((len(X), 1), dtype=X.dtype)], axis=1)


def _rotated(X: Any, shift: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """At most n columns with the inner products of the rows of X - shift, and the way back.

    By a Cholesky decomposition that starts with the rows that are most their own, and ends where
    all others are combinations of these.
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
    return solution


def _penalised(gram: np.ndarray, alpha: float, fit_intercept: bool) -> np.ndarray:
    """A'SA + D."""
    penalty = np.full(len(gram), float(alpha))
    if fit_intercept:
        penalty[-1] = 0.0
    return gram + np.diag(penalty)


def _inverse(gram: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What multiplies by the inverse, or by a generalised one of what is singular."""
    diagonal = np.diag(gram)
    size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # features have any units
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
    return matrix.toarray() if sp.issparse(matrix) else matrix
