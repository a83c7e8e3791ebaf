"""Ridge regression of many ads at once, by shared normal equations; dense or sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh, solve_triangular
from scipy.linalg.lapack import dpstrf

from skbandit.selection._costs import CostMatrix, append_columns, to_dense

MAX_GRAM = 5000
"""Largest number of columns of a Gram matrix: 200 MB, and two seconds to factor. Beyond it,
`Ridge.fit` is called."""

CG_COST = 1000
"""Time of conjugate gradients per ad and nonzero entry of the rows, in units in which normal
equations take p^3. Right within a factor of 4, mostly 2, for p from 500 to 3000."""

SINGULAR = 1e-13
"""Squared distance of a column from the span of the others, relative to its squared norm, up to
which it counts as linearly dependent on them."""

RIDGE_PENALTIES = np.geomspace(1e-7, 1e3, 21)
"""Penalties to choose from, relative to the largest eigenvalue of X'SX: from a fit without a
penalty, up to rounding errors, to one that uses a thousandth of the strongest direction."""

MAX_TUNED = 1000
"""Number of rows on which the penalty is chosen, spread evenly, if both rows and features are more:
the eigenvectors of larger matrices take longer than the fit."""

FEWEST_AD_GROUPS, MOST_AD_GROUPS = 3, 30
"""Bounds of the number of groups of ads, each observed in the same rows, on which the penalty is
chosen."""

MOST_GROUP_COSTS = 2 * 10**7
"""Costs of a group on which the penalty is chosen, beyond those of `FEWEST_AD_GROUPS` ads."""

EIGEN_WORK, LEAVE_ONE_OUT_WORK = 10**8, 3 * 10**8
"""Multiplications for the eigenvectors of groups, and for leaving rows out exactly: some 10 ms.
Beyond the second number, generalized cross-validation takes the mean leverage for all rows. It
hardly differs if there are many more rows than features."""

MAX_COPIES = 2**31
"""Largest weight that can count copies; with a larger one, rows are left out whole."""

NEGLIGIBLE_REST = 1e-10
"""Share of a row's weight below which its cost is not predicted by the other rows."""

UNKNOWN_PENALTY = 1.0
"""The penalty if data cannot tell, since X is constant or no ad was observed twice."""


@dataclass(frozen=True)
class Linear:
    """Costs that are linear in x: ``[x, 1] @ weights``.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1, n_ads), C-contiguous
        The last row holds the intercepts: they cost nothing as part of the matrix product.
    alpha : float
        The penalty with which they were fitted.
    """

    weights: np.ndarray
    alpha: float = np.nan

    @classmethod
    def of(cls, fitted: Sequence[Any]) -> Linear:
        """Return the predictions of linear regressors fitted with one penalty, side by side."""
        parts = []
        for model in fitted:
            coef = np.atleast_2d(model.coef_).T
            parts.append(np.vstack([coef, np.broadcast_to(model.intercept_, coef.shape[1])]))
        return cls(np.ascontiguousarray(np.hstack(parts)), float(fitted[0].alpha))

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


@dataclass(frozen=True)
class NormalEquations:
    """The parts shared by ridge regressions of any costs on the same weighted rows.

    Each ad minimizes sum_i s_i (f_i - x_i'w - b)^2 + alpha ||w||^2 over the rows i in which its
    cost was observed. With A = [X - shift, 1], S = diag(s) and D = diag(alpha, ..., alpha, 0) the
    solution is (A'SA + D)^-1 A'Sf, so ads observed in the same rows share one Cholesky factor. The
    Gram matrix of some rows is that of all rows minus that of the other rows, or is computed from
    the rows themselves, whichever are fewer.

    Wide X (more features than rows) is first rotated: with L L' = (X - shift)(X - shift)', ridge
    regression on the columns of L has the same predictions.

    Compared with scikit-learn's `Ridge`, this takes as long on dense rows with complete costs, a
    third to an eighth of the time if costs are missing (one fit per ad, otherwise), and down to a
    ninth on sparse rows with many ads.

    Parameters
    ----------
    shift : ndarray of shape (n_features,)
        Subtracted from rows, to avoid loss of precision; 0 if they stay sparse.
    unrotate : callable
        Maps coefficients of the columns of A, without the last, to those of X.
    s : ndarray of shape (n_samples,)
        Row weights.
    design : ndarray or csr_array of shape (n_samples, p)
        A.
    weighted : ndarray or csr_array of shape (n_samples, p)
        S A.
    gram : ndarray of shape (p, p)
        A'SA.
    """

    shift: np.ndarray
    unrotate: Callable[[np.ndarray], np.ndarray]
    s: np.ndarray
    design: Any
    weighted: Any
    gram: np.ndarray

    @classmethod
    def of(cls, X: Any, weight: np.ndarray | None = None) -> NormalEquations:
        """Compute the Gram matrix of X.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows.
        weight : ndarray of shape (n_samples,), default=None
            Positive row weights; None means ones.

        Returns
        -------
        NormalEquations
        """
        n, d = X.shape
        s = np.ones(n) if weight is None else weight
        shift = np.zeros(d)
        if d > n or not sp.issparse(X):
            shift = np.asarray(X.T @ (s / s.sum()), dtype=float).ravel()
        rows = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else X - shift
        unrotate: Callable[[np.ndarray], np.ndarray] = np.asarray
        if d > n:
            rows, unrotate = _rotate(rows, shift if sp.issparse(X) else np.zeros(d))
        elif not sp.issparse(X):
            # constant columns are 0 only up to rounding errors
            rows[:, np.ptp(rows, axis=0) == 0] = 0.0
        design = weighted = with_ones(rows)
        if weight is not None and sp.issparse(design):
            weighted = design.multiply(s[:, None]).tocsr()
        elif weight is not None:
            weighted = design * s[:, None]
        gram = to_dense(design.T @ weighted)
        if not np.isfinite(gram).all():
            raise ValueError(
                "The features have entries so large that their squares overflow: rescale them."
            )
        return cls(shift, unrotate, s, design, weighted, gram)

    def solve(self, costs: CostMatrix, alpha: float) -> Linear:
        """Fit each ad to its observed costs.

        Parameters
        ----------
        costs : CostMatrix
            Costs of the same rows.
        alpha : float
            Penalty on squared coefficients, not scaled by the number of rows.

        Returns
        -------
        Linear
            An ad that was never observed has an intercept of inf.
        """
        right = self.right_hand_sides(costs)
        penalty = np.full(len(self.gram), float(alpha))
        penalty[-1] = 0.0
        solution = np.zeros_like(right)
        for ads in costs.observed_together():
            gram = self.gram_of(costs.of_ad(int(ads[0]))[0]) + np.diag(penalty)
            solution[:, ads] = _solve(gram, right[:, ads])
        model = replace(self.for_X(solution), alpha=float(alpha))
        never = costs.n_observed() == 0
        model.weights[:, never] = 0.0
        model.intercept[never] = np.inf
        return model

    def right_hand_sides(self, costs: CostMatrix) -> np.ndarray:
        """A'Sf of all ads, shape (p, n_ads); unobserved costs count as 0."""
        values = costs.with_zeros()
        if sp.issparse(values):
            return to_dense(values.T @ self.weighted).T
        return self.weighted.T @ values

    def gram_of(self, rows: np.ndarray) -> np.ndarray:
        """A'SA of selected rows, computed from these or from the others, whichever are fewer."""
        n = self.design.shape[0]
        few = 2 * len(rows) <= n
        used = rows if few else np.delete(np.arange(n), rows)
        part = self.design[used]  # without weights, X'X of one array takes half the time
        gram = to_dense(part.T @ (part if self.weighted is self.design else self.weighted[used]))
        return gram if few else self.gram - gram

    def for_X(self, solution: np.ndarray) -> Linear:
        """Return the model in terms of the columns of X, given the weights of the columns of A."""
        coef = self.unrotate(solution[:-1])
        return Linear(np.ascontiguousarray(np.vstack([coef, solution[-1] - self.shift @ coef])))


def normal_equations_pay(X: Any, costs: CostMatrix) -> bool:
    """Return whether to use `NormalEquations`: `Ridge` iterates per ad if rows are sparse."""
    p = min(X.shape)
    if p > MAX_GRAM or not sp.issparse(X):
        return p <= MAX_GRAM
    grams = 1 + int((costs.n_observed() < costs.shape[0]).sum())
    return grams * p**3 <= CG_COST * X.nnz * costs.shape[1]


def with_ones(X: Any) -> Any:
    """X with a last column of ones."""
    return append_columns(X, np.ones((X.shape[0], 1), dtype=X.dtype))


def _rotate(X: Any, shift: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """At most n columns whose rows have the inner products of X - shift, and the map back.

    The columns are a Cholesky factor, pivoted so that it ends once the remaining rows are linear
    combinations of the pivots.
    """
    inner, across = to_dense(X @ X.T), X @ shift
    inner += shift @ shift - across - across[:, None]
    factor, order, rank, _ = dpstrf(inner, lower=1)
    columns = np.empty((len(inner), rank))
    columns[order - 1] = np.tril(factor)[:, :rank]
    basis = order[:rank] - 1

    def unrotate(solution: np.ndarray) -> np.ndarray:
        of_rows = solve_triangular(columns[basis], solution, lower=True, trans="T")
        return X[basis].T @ of_rows - np.outer(shift, of_rows.sum(axis=0))

    return columns, unrotate


def _solve(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by Cholesky's factor, or by the pseudo-inverse if `gram` is singular."""
    diagonal = np.diag(gram)
    size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))[:, None]  # features may differ in units
    scaled = gram / size / size.T
    try:
        factor = cho_factor(scaled)
        if np.diag(factor[0]).min() ** 2 > SINGULAR:
            return cho_solve(factor, right / size) / size
    except LinAlgError:
        pass
    return pinvh(scaled, rtol=SINGULAR) @ (right / size) / size


@dataclass(frozen=True)
class _Spectrum:
    """Ridge regressions of ads observed in the same rows, with X'SX = V diag(d) V', X centered.

    Parameters
    ----------
    s, u : ndarray of shape (n,)
        Weights of the rows, and what is left out of them: if weights are whole numbers, a copy.
    F : ndarray of shape (n, K)
        Costs, centered.
    d : ndarray of shape (p,)
        Eigenvalues, ascending.
    right : ndarray of shape (p, K)
        V'X'SF.
    rotated : ndarray of shape (n, p) or None
        X V; None for generalized cross-validation.
    """

    s: np.ndarray
    u: np.ndarray
    F: np.ndarray
    d: np.ndarray
    right: np.ndarray
    rotated: np.ndarray | None

    @classmethod
    def of(
        cls, equations: NormalEquations, costs: CostMatrix, ads: np.ndarray, work: float
    ) -> _Spectrum:
        """Decompose the Gram matrix of the rows in which the ads were observed, or their kernel."""
        rows, _ = costs.of_ad(int(ads[0]))
        s = equations.s[rows]
        whole = (s == np.floor(s)).all() and s.max() <= MAX_COPIES
        u = np.full(len(s), float(np.gcd.reduce(s.astype(np.int64)))) if whole else s
        F = to_dense(costs.values[:, ads])[rows].astype(float)
        F -= s @ F / s.sum()
        n, p = len(rows), len(equations.gram) - 1
        exact = n * min(n, p) * (min(n, p) + len(RIDGE_PENALTIES) * (len(ads) + 1)) <= work
        if n <= p:
            root = np.sqrt(s)[:, None]
            X = to_dense(equations.design[rows])[:, :-1]
            X = root * (X - s @ X / s.sum())
            d, U = np.linalg.eigh(X @ X.T)
            d = np.maximum(d, 0.0)
            right = np.sqrt(d)[:, None] * (U.T @ (root * F))
            return cls(s, u, F, d, right, U * np.sqrt(d) / root if exact else None)
        gram = equations.gram_of(rows)
        center = gram[-1, :-1] / gram[-1, -1]
        d, V = np.linalg.eigh(gram[:-1, :-1] - np.outer(center, gram[-1, :-1]))
        everywhere = np.zeros((costs.shape[0], len(ads)))
        everywhere[rows] = F
        right = V.T @ to_dense(equations.weighted[:, :-1].T @ everywhere)
        rotated = (to_dense(equations.design[rows])[:, :-1] - center) @ V if exact else None
        return cls(s, u, F, np.maximum(d, 0.0), right, rotated)

    def errors(self, alphas: np.ndarray) -> np.ndarray:
        """Squared leave-one-out errors: residuals over 1 - h, h the leverage or its mean."""
        inverse = 1.0 / (self.d + alphas[:, None])
        if self.rotated is None:
            power = np.einsum("ij,ij->i", self.right, self.right)
            total = self.s @ np.einsum("ij,ij->i", self.F, self.F)
            residual = total - inverse @ power - alphas * (inverse**2 @ power)
            mean_leverage = (1.0 + inverse @ self.d) / (self.s / self.u).sum()
            rest = np.maximum(1.0 - mean_leverage, NEGLIGIBLE_REST)
            return np.maximum(residual, 0.0) / rest**2
        rest = 1.0 - self.u[:, None] * (1.0 / self.s.sum() + self.rotated**2 @ inverse.T)
        has_rest = rest > NEGLIGIBLE_REST
        factor = self.s[:, None] * np.divide(1.0, rest**2, out=np.zeros_like(rest), where=has_rest)
        errors = np.empty(len(alphas))
        for k, divided in enumerate(inverse):
            residual = self.F - self.rotated @ (self.right * divided[:, None])
            errors[k] = factor[:, k] @ np.einsum("ij,ij->i", residual, residual)
        return errors


def choose_penalty(
    X: Any,
    costs: CostMatrix,
    weight: np.ndarray | None,
    equations: NormalEquations | None = None,
) -> float:
    """Choose one penalty for all ads by leave-one-out.

    It has the least sum of squared errors over ads, each within the rows where it was observed. If
    costs are missing, the groups of ads with most observed costs decide.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Rows.
    costs : CostMatrix
        Costs of the same rows.
    weight : ndarray of shape (n_samples,) or None
        Positive row weights.
    equations : NormalEquations, default=None
        Those of X and weight, with an intercept, if they are known already.

    Returns
    -------
    float
    """
    if min(X.shape) > MAX_TUNED:
        rows = np.linspace(0, X.shape[0] - 1, MAX_TUNED).round().astype(int)
        part = None if weight is None else weight[rows]
        return choose_penalty(X[rows], costs.of_rows(rows), part)
    equations = NormalEquations.of(X, weight) if equations is None else equations
    p = len(equations.gram) - 1
    n_observed = costs.n_observed()
    groups = [ads for ads in costs.observed_together() if n_observed[ads[0]] > 1]
    if not p or not groups:
        return UNKNOWN_PENALTY
    groups.sort(key=lambda ads: -len(ads) * n_observed[ads[0]])
    n_rows = np.array([n_observed[ads[0]] for ads in groups], dtype=float)
    q = np.minimum(n_rows, p)
    eigen_work = np.cumsum(q**2 * (np.maximum(n_rows, p) + 10 * q))
    groups = groups[
        : int(np.clip((eigen_work < EIGEN_WORK).sum(), FEWEST_AD_GROUPS, MOST_AD_GROUPS))
    ]
    n_ads = max(FEWEST_AD_GROUPS, MOST_GROUP_COSTS // costs.shape[0])
    work = LEAVE_ONE_OUT_WORK / len(groups)
    spectra = [_Spectrum.of(equations, costs, ads[:n_ads], work) for ads in groups]
    # of X'SX in all rows, if the rows of a group are like them
    largest = max(part.d[-1] * equations.s.sum() / part.s.sum() for part in spectra)
    if largest <= 0.0:
        return UNKNOWN_PENALTY
    alphas = largest * RIDGE_PENALTIES
    return float(alphas[np.sum([part.errors(alphas) for part in spectra], axis=0).argmin()])
