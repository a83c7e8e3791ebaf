"""The inner problem of Algorithm 2: a support vector machine with two costs per row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._interface import HingeDuals
from skbandit.constrained.solvers._problem import hinge
from skbandit.constrained.solvers.cutting_plane._dual_ascent import ascend

INTERCEPT_PACE = 0.1
"""Square of a constant feature that would move as fast as b, as a share of the mean |x|^2."""

MAX_SWEEPS = 50
"""Maximum sweeps between gap checks, when few rows remain active."""

MARGIN = 0.1
"""Distance from a kink up to which a resting row is active again.

A share of the largest change of a score since the last gap check; rows further away are
skipped.
"""

RUN = 8
"""Number of consecutive rows visited together, since they are consecutive in memory."""


@dataclass(frozen=True)
class Design:
    """A design matrix by sparse rows.

    Parameters
    ----------
    X : csr_array of shape (n, d)
        The matrix.
    """

    X: csr_array

    @classmethod
    def of(cls, X: Any) -> Design:
        """Wrap a matrix; a dense one becomes a full CSR array over the same entries, not a copy."""
        if not issparse(X):
            (n, d), entries = X.shape, np.ascontiguousarray(X, dtype=np.float64).ravel()
            ends = np.arange(n + 1, dtype=np.int64) * d
            return cls(csr_array((entries, np.tile(np.arange(d), n), ends), shape=(n, d)))
        return cls(csr_array(X))

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared norm |x_j|^2 of each row."""
        return np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()


@dataclass(frozen=True)
class WeightedSVM:
    """min over (w, b) of sum_j p_j h(f_j) + q_j h(-f_j) + alpha/2 |w|^2, with f = X w + b.

    h(z) = max(0, 1/2 + z). The dual has one variable per row, theta_j in [-p_j, q_j], which
    pulls the row's score up; w = X' theta / alpha (in the usual SVM dual,
    theta = beta - alpha):

        max  sum_j min(q_j - theta_j/2, p_j + theta_j/2) - |X' theta|^2 / (2 alpha)

    with sum_j theta_j = 0 if b is free; otherwise b = 0.

    Parameters
    ----------
    design : Design
        X.
    p, q : ndarray of shape (n,)
        Nonnegative costs of a positive and of a negative prediction.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b, which is never penalised, is free or 0.
    """

    design: Design
    p: np.ndarray
    q: np.ndarray
    alpha: float
    fit_intercept: bool = True

    def primal(self, coef: np.ndarray, f: np.ndarray) -> float:
        """The objective at w, whose scores are f."""
        costs = self.p @ hinge(f) + self.q @ hinge(-f)
        return float(costs + 0.5 * self.alpha * coef @ coef)

    def dual(self, theta: np.ndarray) -> float:
        """The dual objective at a feasible theta."""
        alpha_w = self.design.X.T @ theta
        gain = np.minimum(self.q - theta / 2, self.p + theta / 2).sum()
        return float(gain - alpha_w @ alpha_w / (2 * self.alpha))

    def feasible(self, theta: np.ndarray) -> np.ndarray:
        """Clip theta to [-p, q] and, if b is free, shrink the heavier side until it sums to 0."""
        theta = np.clip(theta, -self.p, self.q)
        if not self.fit_intercept:
            return theta
        to_positive, to_negative = theta[theta > 0].sum(), -theta[theta < 0].sum()
        less = min(to_positive, to_negative)
        scale = np.where(theta > 0, less / (to_positive or 1.0), less / (to_negative or 1.0))
        return theta * scale

    def scaled(self, theta: np.ndarray, other: WeightedSVM) -> np.ndarray:
        """Rescale theta from the bounds [-p, q] of another SVM to the bounds of this one."""
        up, down = np.maximum(theta, 0.0), np.maximum(-theta, 0.0)
        up = np.divide(up, other.q, out=np.zeros_like(up), where=other.q > 0)
        down = np.divide(down, other.p, out=np.zeros_like(down), where=other.p > 0)
        return up * self.q - down * self.p

    def hinge_duals(self, theta: np.ndarray) -> HingeDuals:
        """Duals of the two hinges: the largest such that down - up = theta."""
        return HingeDuals.of(theta, self.p, self.q)

    def at_rest(self, theta: np.ndarray, f: np.ndarray, margin: float) -> np.ndarray:
        """Mask of rows whose theta_j stays at its corner while f_j moves by at most `margin`."""
        kink = self.q - self.p
        lowest = np.where(theta == self.q, -np.inf, np.where(theta == kink, -0.5, 0.5))
        highest = np.where(theta == -self.p, np.inf, np.where(theta == kink, 0.5, -0.5))
        return (f > lowest + margin) & (f < highest - margin)


@dataclass(frozen=True)
class SVMSolution:
    """A solution of the weighted SVM with its certificate.

    Parameters
    ----------
    svm : WeightedSVM
        The problem solved.
    coef : ndarray of shape (d,)
        w.
    intercept : float
        b.
    scores : ndarray of shape (n,)
        f = X w + b.
    theta : ndarray of shape (n,)
        Feasible dual variables.
    primal, dual : float
        Primal and dual objective: upper and lower bound on the optimal value.
    epochs : float
        Number of row visits, divided by the number of rows that cost something.
    """

    svm: WeightedSVM
    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    theta: np.ndarray
    primal: float
    dual: float
    epochs: float


def solve_svm(
    svm: WeightedSVM,
    tol: float,
    warm: SVMSolution | None = None,
    *,
    ceiling: float = np.inf,
    max_epochs: float = 10_000,
) -> SVMSolution:
    """Solve by dual coordinate ascent until the duality gap is at most `tol`.

    A free b breaks coordinate ascent, as sum_j theta_j = 0 holds every theta_j where it is.
    So b is found by proximal-point steps: adding mu/2 (b - b')^2 to the objective removes the
    constraint, b = b' + sum_j theta_j / mu, and b' is moved to b at every gap check.
    Convergence is slow if alpha is tiny and many more rows than features are on kinks.

    Parameters
    ----------
    svm : WeightedSVM
        The problem.
    tol : float
        Duality gap to reach.
    warm : SVMSolution, optional
        Solution of an SVM with other costs, to start from. Its theta is rescaled with the
        bounds, not clipped: most rows are at a bound and stay there.
    ceiling : float
        Known upper bound on the optimum: a dual value within `tol` of it suffices.
    max_epochs : float
        Number of epochs after which to stop with the gap reached.

    Returns
    -------
    SVMSolution
        The best primal and the best dual point found.

    Examples
    --------
    Two rows, one per class: max(0, 1/2 - w) + alpha/2 w^2 is lowest at w = 1/2.

    >>> import numpy as np
    >>> from skbandit.constrained.solvers.cutting_plane._weighted_svm import Design
    >>> from skbandit.constrained.solvers.cutting_plane._weighted_svm import WeightedSVM, solve_svm
    >>> X, p, q = np.array([[1.0], [-1.0]]), np.array([0.0, 0.5]), np.array([0.5, 0.0])
    >>> found = solve_svm(WeightedSVM(Design.of(X), p, q, alpha=0.1), tol=1e-10)
    >>> found.coef.round(6), round(found.primal, 6), round(found.dual, 6)
    (array([0.5]), 0.0125, 0.0125)
    """
    X, alpha = svm.design.X, svm.alpha
    costly = np.flatnonzero(svm.p + svm.q > 0)
    pace = _pace(svm)
    curvature = np.maximum(svm.design.squares / alpha + pace, np.finfo(float).tiny)
    rng = np.random.default_rng(0)

    theta, b = np.zeros(len(svm.p)), 0.0
    if warm is not None:
        theta, b = svm.feasible(svm.scaled(warm.theta, warm.svm)), warm.intercept
    w, b = X.T @ theta / alpha, b if svm.fit_intercept else 0.0
    f = X @ w + b
    best = SVMSolution(svm, w, b, f, theta, svm.primal(w, f), svm.dual(theta), epochs=0.0)
    resting = svm.at_rest(theta, f, 0.0)
    while min(best.primal, ceiling) - best.dual > tol and best.epochs < max_epochs:
        rows = costly[~resting[costly]]
        rows = rows if len(rows) else costly
        n_sweeps = min(len(costly) // len(rows), MAX_SWEEPS)
        theta = theta.copy()
        data = (X.indptr, X.indices, X.data, curvature, svm.p, svm.q, alpha, pace)
        order = _shuffled(rng, rows)
        ascend(*data, theta, w.copy(), b + pace * theta.sum(), order, n_sweeps)
        # Recomputed from theta, free of the rounding errors accumulated in the sweeps.
        w, b = X.T @ theta / alpha, b + pace * theta.sum()
        before, f = f, X @ w + b
        resting = svm.at_rest(theta, f, MARGIN * np.abs(f - before).max())
        best = _better(best, w, b, f, theta)
        best = replace(best, epochs=best.epochs + n_sweeps * len(rows) / len(costly))
    return best


def _shuffled(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Shuffle the rows, which converges far faster than any fixed order; in runs, for speed."""
    starts = rng.permutation(np.arange(0, len(rows), RUN))
    order = (starts[:, None] + np.arange(RUN)).ravel()
    return rows[order[order < len(rows)]]


def _pace(svm: WeightedSVM) -> float:
    """Movement of b per unit of theta, 1 / mu."""
    if not svm.fit_intercept:
        return 0.0
    return INTERCEPT_PACE / svm.alpha * (float(svm.design.squares.mean()) or 1.0)


def _better(
    best: SVMSolution, w: np.ndarray, b: float, f: np.ndarray, theta: np.ndarray
) -> SVMSolution:
    """Keep the better primal and the better dual point; they need not belong together."""
    primal = best.svm.primal(w, f)
    if primal < best.primal:
        best = replace(best, coef=w, intercept=b, scores=f, primal=primal)
    theta = best.svm.feasible(theta)
    dual = best.svm.dual(theta)
    return replace(best, theta=theta, dual=dual) if dual > best.dual else best
