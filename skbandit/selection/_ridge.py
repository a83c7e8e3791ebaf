"""Ridge regression of many ads at once, with one Gram matrix and factor; dense or sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh, pinvh, solve_triangular
from scipy.linalg.lapack import dormqr, dpstrf, dpttrf, dpttrs, dsterf, dsytrd

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


TRIDIAGONAL_FROM = 200
"""Size p of matrices from which reflections are faster than eigenvectors, for up to p / 4
right-hand sides, each solved for some twenty penalties."""

BLOCK = 64
"""Reflections that LAPACK applies at a time."""


class Middle(Protocol):
    """The matrix M, with its eigenvalues d, ascending, and the cost of a solution.

    The cost is in multiplications of a matrix product, per entry of the right-hand side.
    """

    @property
    def d(self) -> np.ndarray: ...

    @property
    def cost(self) -> int: ...

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R, for R of shape (p, K)."""
        ...

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over columns r of R of r'(M + alpha)^-1 r and r'(M + alpha)^-2 r, each (L,)."""
        ...

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """b'(M + alpha)^-1 b for the rows b of B (n, p), shape (n, L)."""
        ...


@dataclass(frozen=True)
class Diagonal:
    """M = diag(d), d ascending and not negative."""

    d: np.ndarray
    cost: ClassVar[int] = 2

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R."""
        return right / (self.d + alpha)[:, None]

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of quadratic forms."""
        power = np.einsum("ij,ij->i", right, right)
        inverse = 1.0 / (self.d + alphas[:, None])
        return inverse @ power, inverse**2 @ power

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Quadratic forms of each row."""
        return B**2 @ (1.0 / (self.d[:, None] + alphas))


@dataclass(frozen=True)
class Tridiagonal:
    """M with a diagonal (p,), and what is beside it (p - 1,); positive semidefinite."""

    diagonal: np.ndarray
    beside: np.ndarray
    d: np.ndarray
    cost: ClassVar[int] = 300

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R."""
        pivots, below, failed = dpttrf(self.diagonal + alpha, self.beside)
        if failed:  # alpha is within the rounding errors of M
            raise np.linalg.LinAlgError("M + alpha is not positive definite")
        return dpttrs(pivots, below, right)[0]

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of quadratic forms."""
        right = np.asfortranarray(right)
        found = np.empty((2, len(alphas)))
        for k, alpha in enumerate(alphas):
            z = self.solve(alpha, right)
            found[:, k] = np.vdot(right, z), np.vdot(z, z)
        return found[0], found[1]

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Quadratic forms of each row."""
        columns = np.asfortranarray(B.T)
        forms = [np.einsum("ij,ij->j", columns, self.solve(alpha, columns)) for alpha in alphas]
        return np.stack(forms, axis=1)


Turn = Callable[[np.ndarray], np.ndarray]
"""Maps rows X of shape (n, p) to X Q."""


def reduced(G: np.ndarray, n_right: int) -> tuple[Middle, Turn]:
    """M and the map X -> X Q of a positive semidefinite G, for that many right-hand sides."""
    if len(G) >= TRIDIAGONAL_FROM and 4 * n_right <= len(G):
        return reflected(G)
    return diagonalised(G)


def diagonalised(G: np.ndarray) -> tuple[Diagonal, Turn]:
    """M of eigenvalues."""
    d, V = np.linalg.eigh(G)
    return Diagonal(np.maximum(d, 0.0)), lambda X: X @ V


def reflected(G: np.ndarray) -> tuple[Tridiagonal, Turn]:
    """M by Householder's reflections; p is at least 2."""
    lower, diagonal, beside, tau, _ = dsytrd(G, lower=1, lwork=BLOCK * len(G))
    reflections = np.asfortranarray(lower[1:, :-1])  # of the columns but the first

    def turn(X: np.ndarray) -> np.ndarray:
        rest = np.ascontiguousarray(X[:, 1:], dtype=float)
        turned = np.empty(X.shape)
        turned[:, 0] = X[:, 0]
        n_work = BLOCK * max(1, len(X))
        turned[:, 1:] = dormqr("L", "T", reflections, tau, rest.T, n_work, overwrite_c=1)[0].T
        return turned

    d = np.maximum(dsterf(diagonal, beside)[0], 0.0)
    return Tridiagonal(diagonal, beside, d), turn


LEAST_PENALTY, LARGEST_PENALTY = 1e-7, 1e3
"""Range of penalties, relative to the largest eigenvalue of X'SX: from a fit without a penalty,
up to rounding errors, to one that uses a thousandth of the strongest direction."""

PENALTIES_PER_DECADE = 2
"""Cross-validated errors hardly differ within a half decade."""

MAX_COPIES = 2**31
"""Largest weight that can count copies; with a larger one, rows are left out whole."""

NEGLIGIBLE_REST = 1e-10
"""Share 1 - h_i of a row's weight below which its cost is not predicted by other rows."""


def penalties(largest: float) -> np.ndarray:
    """Penalties to choose from, ascending, for a largest eigenvalue of X'SX."""
    decades = np.log10(LARGEST_PENALTY / LEAST_PENALTY)
    n_steps = round(decades * PENALTIES_PER_DECADE) + 1
    return largest * np.geomspace(LEAST_PENALTY, LARGEST_PENALTY, n_steps)


def left_out_weight(s: np.ndarray) -> np.ndarray:
    """Weight u_i of what is left out of row i at a time, for positive weights s."""
    if (s != np.floor(s)).any() or s.max() > MAX_COPIES:
        return s
    return np.full(len(s), float(np.gcd.reduce(s.astype(np.int64))))


def squared_residuals(
    M: Middle, B: np.ndarray, r: np.ndarray, F: np.ndarray, alphas: np.ndarray
) -> np.ndarray:
    """Squared residuals of rows within the fit, summed over ads, (n, L).

    Parameters
    ----------
    M : Middle
        Of all rows.
    B : ndarray of shape (n, p)
        All rows or some, centred and turned.
    r : ndarray of shape (p, K)
        B'SF of all rows.
    F : ndarray of shape (n, K)
        Costs of the rows in B, centred.
    alphas : ndarray of shape (L,)
        Positive penalties.
    """
    found = np.empty((len(B), len(alphas)))
    for k, alpha in enumerate(alphas):
        residual = B @ M.solve(alpha, r)
        np.subtract(F, residual, out=residual)
        np.einsum("ij,ij->i", residual, residual, out=found[:, k])
    return found


def left_out_factors(
    M: Middle, B: np.ndarray, u: np.ndarray, total: float, alphas: np.ndarray
) -> np.ndarray:
    """What `squared_residuals` are multiplied by if the row is left out, (1 - h)^-2, (n, L).

    Parameters
    ----------
    M, B, alphas
        As in `squared_residuals`.
    u : ndarray of shape (n,)
        What is left out of each row in B.
    total : float
        Sum of the weights of all rows.

    Returns
    -------
    ndarray of shape (n, L)
        0 where the other rows say nothing.
    """
    left = 1.0 - u[:, None] * (1.0 / total + M.forms_of_rows(B, alphas))
    return np.divide(1.0, left**2, out=np.zeros_like(left), where=left > NEGLIGIBLE_REST)


def mean_factors(M: Middle, n: float, alphas: np.ndarray) -> np.ndarray:
    """The same for the mean leverage, (L,).

    Parameters
    ----------
    M, alphas
        As in `squared_residuals`.
    n : float
        Number of rows, or of copies of rows, that are left out in turn: sum(s / u).
    """
    mean_leverage = (1.0 + (M.d / (M.d + alphas[:, None])).sum(axis=1)) / n
    return 1.0 / np.maximum(1.0 - mean_leverage, NEGLIGIBLE_REST) ** 2


def generalised(M: Middle, r: np.ndarray, total: float, n: float, alphas: np.ndarray) -> np.ndarray:
    """Weighted sums of squared errors of rows left out, if all had the mean leverage.

    Parameters
    ----------
    M, r, alphas
        As in `squared_residuals`.
    total : float
        Weighted sum of squares of the centred costs, summed over ads.
    n : float
        As in `mean_factors`.

    Returns
    -------
    ndarray of shape (L,)
    """
    first, second = M.forms(r, alphas)
    residual = np.maximum(total - first - alphas * second, 0.0)
    return residual * mean_factors(M, n, alphas)


LEAVE_ONE_OUT_WORK = 3 * 10**8
"""Multiplications up to which rows are left out exactly, about 10 ms; where a fit takes more, as
many as that. Beyond it, generalised cross-validation chooses."""

RESIDUALS, MOST_LEFT_OUT = 20_000, 2_000
"""Number of costs, in rows spread evenly, whose leverages are computed, and of these rows. There
are as many rows as features, up to the second number."""

MOST_COSTS = 10**9
"""Number of ads observed together, times the square of their rows or features, up to which all of
them are used."""

TUNING_WORK = 5 * 10**7
"""Multiplications to spend on ads that have their own rows: about 10 ms. Where the fit itself takes
more, the tuning may take as much as the fit."""

ENOUGH_COSTS = 500_000
"""Number of costs of ads that have their own rows, beyond which no more such ads are used."""

FEWEST_ADS = 8
"""Number of ads, spread evenly over the columns, that are always used; if they would take more
than four times the work allowed, each on part of its rows, spread evenly too."""

CALLS_COST = 4 * 10**6
"""Work of the calls for an ad, whatever its size, in multiplications."""

EIGEN_COST, REFLECTION_COST = 10, 4
"""Work of the eigenvectors of a matrix of size q, and of making it tridiagonal, in units of q^3
multiplications."""

NO_PENALTY_KNOWN = 1.0
"""The penalty where data cannot tell, since X is constant or no ad was observed twice."""


@dataclass(frozen=True)
class Ads:
    """Ads observed in the same rows.

    Parameters
    ----------
    s, u : ndarray of shape (n,)
        Weights of these rows, and what is left out of them.
    F : ndarray of shape (n, K)
        Costs, centred.
    M : Middle
    B : callable
        Maps positions among the n rows to rows of B.
    r : ndarray of shape (p, K)
    share : float
        How much the errors of these ads and rows count.
    """

    s: np.ndarray
    u: np.ndarray
    F: np.ndarray
    M: Middle
    B: Callable[[np.ndarray], np.ndarray]
    r: np.ndarray
    share: float

    @classmethod
    def of(
        cls, rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray, share: float
    ) -> Ads:
        """Prepare ads of costs F (n, K) in the rows `seen`; s are the weights of all rows."""
        weight = s[seen]
        F = F - weight @ F / weight.sum()
        reduce = _by_rows if len(seen) < rows.design.shape[1] - 1 else _by_features
        return cls(weight, left_out_weight(weight), F, *reduce(rows, weight, seen, F), share)

    def generalised(self, alphas: np.ndarray) -> np.ndarray:
        """Errors by generalised cross-validation, (L,)."""
        total = float(self.s @ np.einsum("ij,ij->i", self.F, self.F))
        return self.share * generalised(self.M, self.r, total, self._n_copies, alphas)

    def errors(self, alphas: np.ndarray) -> np.ndarray:
        """Errors by exact leave-one-out, if that is not too dear, (L,).

        They differ from the generalised ones in the leverages, not in the residuals within the fit:
        so the difference is known well from some of the rows.
        """
        approximate = self.generalised(alphas)
        p, n_ads = self.r.shape
        some = _spread(np.arange(len(self.s)), _n_left_out(p, n_ads))
        work = len(some) * p * (2 * p + 3 * (2 * n_ads + self.M.cost))
        if work > max(LEAVE_ONE_OUT_WORK, len(self.s) * p**2):
            return approximate
        B, s, total = self.B(some), self.s[some], float(self.s.sum())
        factors = left_out_factors(self.M, B, self.u[some], total, alphas)
        factors -= mean_factors(self.M, self._n_copies, alphas)
        squares = squared_residuals(self.M, B, self.r, self.F[some], alphas)
        difference = np.einsum("i,ij,ij->j", s, factors, squares)
        return approximate + self.share * total / s.sum() * difference

    @property
    def _n_copies(self) -> float:
        """Number of rows, or of copies of rows, that are left out in turn."""
        return float((self.s / self.u).sum())


def tuned_penalty(rows: RidgeFactor, costs: CostMatrix) -> float:
    """The penalty of least squared error of costs left out, summed over ads and their rows.

    Generalised cross-validation finds it up to some half decades, and exact leave-one-out goes on
    from there.

    Parameters
    ----------
    rows : RidgeFactor
        The rows, with an intercept and any penalty.
    costs : CostMatrix
        Costs of the same rows. Each ad is left out and predicted within the rows where its cost was
        observed.

    Returns
    -------
    float
    """
    n, p = rows.design.shape[0], rows.design.shape[1] - 1
    n_observed = costs.n_observed()
    if not p or n_observed.max() < 2:
        return NO_PENALTY_KNOWN
    s = _dense(rows.weighted[:, [-1]]).ravel()
    complete = np.flatnonzero(n_observed == n)
    used = []
    if len(complete):
        ads = _spread(complete, _most_ads(n, p))
        F = _dense(costs.values if len(ads) == costs.shape[1] else costs.values[:, ads])
        used.append(Ads.of(rows, s, np.arange(n), F.astype(float), len(complete) / len(ads)))
        largest = used[0].M.d[-1]
    else:
        largest = eigvalsh(_centred(rows.gram), subset_by_index=[p - 1, p - 1])[0]
    if largest <= 0.0:
        return NO_PENALTY_KNOWN
    used.extend(_incomplete(rows, s, costs, n_observed))
    alphas = penalties(largest)
    best = int(np.sum([ads.generalised(alphas) for ads in used], axis=0).argmin())
    found: dict[int, float] = {}
    while True:  # downhill from there; the errors rarely have a second minimum
        near = [k for k in (best - 1, best, best + 1) if 0 <= k < len(alphas)]
        new = [k for k in near if k not in found]
        errors = np.sum([ads.errors(alphas[new]) for ads in used], axis=0)
        found.update(zip(new, errors.tolist(), strict=True))
        lowest = min(near, key=found.__getitem__)
        if lowest == best:
            return float(alphas[best])
        best = lowest


def tuned_on_part(X: Any, costs: CostMatrix, weight: np.ndarray | None, n_rows: int) -> float:
    """The penalty chosen on `n_rows` rows spread evenly over X."""
    used = _spread(np.arange(costs.shape[0]), n_rows)
    part = RidgeFactor.unpenalised(X[used], None if weight is None else weight[used])
    return tuned_penalty(part, costs.of_rows(used))


def _incomplete(
    rows: RidgeFactor, s: np.ndarray, costs: CostMatrix, n_observed: np.ndarray
) -> list[Ads]:
    """Ads with rows of their own: those used, each counting for others, too."""
    n_rows, p = rows.design.shape[0], rows.design.shape[1] - 1
    groups = [ads for ads in costs.observed_together() if n_observed[ads[0]] > 1]
    if not groups:
        return []
    n = np.array([n_observed[ads[0]] for ads in groups], dtype=float)
    size = np.array([len(ads) for ads in groups])
    allowed = max(TUNING_WORK, (np.minimum(n, n_rows - n) * p**2 + p**3 / 3).sum())
    work = CALLS_COST + np.mean([_work(n_rows, p, int(k)) for k in n])
    enough = min(allowed / work, ENOUGH_COSTS / (n * size).mean())
    used = _spread(np.arange(len(groups)), max(FEWEST_ADS, int(enough)))
    counts_for = (n * size).sum() / (n * size)[used].sum()
    found = []
    for g in used:
        seen, _ = costs.of_ad(int(groups[g][0]))
        kept = _spread(seen, _fewest_within(allowed / len(used), n_rows, p, len(seen)))
        ads = _spread(groups[g], _most_ads(len(kept), p))
        F = _dense(costs.values[:, ads])[kept].astype(float)
        share = counts_for * len(groups[g]) / len(ads) * len(seen) / len(kept)
        found.append(Ads.of(rows, s, kept, F, share))
    return found


def _by_features(
    rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray
) -> tuple[Middle, Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """M, B and r of rows `seen`, which are not fewer than features."""
    n_rows = rows.design.shape[0]
    gram = rows.gram if len(seen) == n_rows else rows.gram_of(seen)
    centre = gram[:-1, -1] / gram[-1, -1]
    M, turn = reduced(_centred(gram), F.shape[1])
    everywhere = F
    if len(seen) < n_rows:
        everywhere = np.zeros((n_rows, F.shape[1]))
        everywhere[seen] = F
    # F is centred, so that rows need not be
    r = turn(_dense(rows.weighted[:, :-1].T @ everywhere).T).T
    return M, lambda some: turn(_dense(rows.design[seen[some], :-1]) - centre), r


def _by_rows(
    rows: RidgeFactor, s: np.ndarray, seen: np.ndarray, F: np.ndarray
) -> tuple[Middle, Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """M, B and r of rows `seen`, which are fewer than features, by their inner products."""
    root = np.sqrt(s)[:, None]
    X = _dense(rows.design[seen, :-1])
    X = (X - s @ X / s.sum()) * root
    M, turn = diagonalised(X @ X.T)
    B = turn(np.eye(len(X))) * np.sqrt(M.d) / root
    return M, lambda some: B[some], B.T @ (F * root**2)


def _centred(gram: np.ndarray) -> np.ndarray:
    """X'SX of centred rows, given A'SA, A = [X, 1]."""
    return gram[:-1, :-1] - np.outer(gram[:-1, -1], gram[:-1, -1]) / gram[-1, -1]


def _most_ads(n: int, p: int) -> int:
    """Number of ads observed together in n rows that suffices."""
    return max(FEWEST_ADS, MOST_COSTS // max(n, p) ** 2)


def _n_left_out(p: int, n_ads: int) -> int:
    """Number of rows of that many ads that suffices."""
    return min(MOST_LEFT_OUT, max(p, RESIDUALS // n_ads))


def _work(n_rows: int, p: int, n: int) -> float:
    """Multiplications to tune on an ad observed in n rows."""
    if n < p:
        return n**2 * p + EIGEN_COST * n**3
    reduction = (EIGEN_COST if p < TRIDIAGONAL_FROM else REFLECTION_COST) * p**3
    products = min(n, n_rows - n) + 2 * min(n, _n_left_out(p, 1))
    return products * p**2 + reduction


def _fewest_within(work: float, n_rows: int, p: int, n: int) -> int:
    """Number of rows, from 2 to n, whose errors take at most four times that `work`."""
    while n > 2 and _work(n_rows, p, n) > 4 * work:
        n = max(2, n // 2)
    return n


def _spread(items: np.ndarray, n: int) -> np.ndarray:
    """At most n of the items, evenly spaced."""
    if n >= len(items):
        return items
    return items[np.linspace(0, len(items) - 1, n).round().astype(int)]


def _dense(matrix: Any) -> np.ndarray:
    """The matrix as an array, whether sparse or dense."""
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
