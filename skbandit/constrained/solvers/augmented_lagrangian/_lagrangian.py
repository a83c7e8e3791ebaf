"""The augmented Lagrangian of Problem 3 as a function of (w, b), and its Newton systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._box_quadratic import box_quadratic, clamped_newton
from skbandit.constrained.solvers._problem import ConvexProblem
from skbandit.constrained.solvers.augmented_lagrangian import _kernels as kernels

MAX_CG = 300
"""Maximum number of conjugate gradient steps; then the direction found so far is used."""

DENSE = 10
"""Entries per nonzero one below which slopes of the constraints are multiplied as dense ones."""

INTERCEPT_RIDGE = 1e-3
"""Ridge on b, in units of sigma, the curvature of one kinked row.

Keeps a Newton system solvable in b if no row is on a kink.
"""


@dataclass(frozen=True)
class LagrangianPoint:
    """The augmented Lagrangian at one (w, b).

    Parameters
    ----------
    w, b : ndarray of shape (d,), float
        The classifier.
    z : ndarray of shape (n,)
        Scores X w + b.
    v : ndarray of shape (m,)
        The maximising multipliers.
    f, place : ndarray of shape (n,)
        The minimising scores, and their places on the hinges.
    costs : ndarray of shape (1 + m,)
        Rows of the problem at f, without gamma.
    theta : ndarray of shape (n,)
        sigma (y - f): both the next multipliers and the gradient in z.
    value : float
        The augmented Lagrangian, to be minimised over (w, b).
    """

    w: np.ndarray
    b: float
    z: np.ndarray
    v: np.ndarray
    f: np.ndarray
    place: np.ndarray
    costs: np.ndarray
    theta: np.ndarray
    value: float


class NewtonDirection(NamedTuple):
    """A direction in (w, b), with the response of v."""

    w: np.ndarray
    b: float
    v: np.ndarray


@dataclass(frozen=True)
class AugmentedLagrangian:
    """The augmented Lagrangian, minimised over (w, b) in each multiplier update.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    gamma : ndarray of shape (1 + m,)
        Bounds of the problem, or slightly tighter ones.
    theta : ndarray of shape (n,)
        Multipliers of f = X w + b.
    centre : ndarray of shape (m,)
        Centre of the proximal term |v - centre|^2 / 2 tau.
    sigma, tau : float
        Weights of the two quadratic terms.
    upper : float
        Upper bound of v.
    tol : float
        Largest slope in v that counts as 0.
    """

    problem: ConvexProblem
    gamma: np.ndarray
    theta: np.ndarray
    centre: np.ndarray
    sigma: float
    tau: float
    upper: float
    tol: float

    def at(self, w: np.ndarray, b: float, z: np.ndarray, v: np.ndarray) -> LagrangianPoint:
        """Evaluate at (w, b) with scores z, maximising over the multipliers from v.

        Newton steps: to the maximiser of the quadratic model over the box, halved until the
        value rises.
        """
        best = self._at_multipliers(w, b, z, v)
        for _ in range(50):
            v, slope = best.v, self._slope(best)
            moves = ~(((v <= 0) & (slope <= 0)) | ((v >= self.upper) & (slope >= 0)))
            if np.abs(slope[moves]).max(initial=0.0) <= self.tol:
                break
            M, _ = self.curvature(best, moves)
            target = v.copy()
            r = slope[moves] + M @ v[moves]
            target[moves] = box_quadratic(M, r, self.upper, clamped_newton(M, r, self.upper))
            for share in 0.5 ** np.arange(20):
                trial = self._at_multipliers(w, b, z, v + share * (target - v))
                if trial.value > best.value:
                    break
            else:
                break  # only rounding is left to gain
            best = trial
        return best

    def _at_multipliers(
        self, w: np.ndarray, b: float, z: np.ndarray, v: np.ndarray
    ) -> LagrangianPoint:
        """Evaluate at given multipliers v."""
        by_row = self.problem.by_row
        f, place = np.empty_like(z), np.empty(len(z), dtype=np.int8)
        weights, costs = np.append(1.0, v), np.empty(1 + len(v))
        entries = by_row.indptr, by_row.indices, by_row.data
        squares = kernels.prox(z, self.theta, self.sigma, weights, *entries, f, place, costs)
        away = v - self.centre
        value = (
            weights @ (costs - self.gamma)
            + 0.5 * self.sigma * squares
            - away @ away / (2 * self.tau)
            + 0.5 * self.problem.alpha * w @ w
        )
        theta = self.theta + self.sigma * (z - f)
        return LagrangianPoint(w, b, z, v, f, place, costs, theta, float(value))

    def _slope(self, here: LagrangianPoint) -> np.ndarray:
        """The derivative in v."""
        return (here.costs - self.gamma)[1:] - (here.v - self.centre) / self.tau

    def curvature(self, here: LagrangianPoint, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the second derivative in some of v, and the slope in f of each entry."""
        by_row, size = self.problem.by_row, int(some.sum())
        slope, M = np.empty_like(by_row.data), np.empty((size, size))
        kernels.slopes(here.place, by_row.indptr, by_row.data, slope)
        position = np.append(-1, np.where(some, np.cumsum(some) - 1, -1))
        kernels.curvature(slope, by_row.indptr, by_row.indices, position, M)
        M /= self.sigma
        M.flat[:: size + 1] += 1 / self.tau
        return M, slope

    def newton(
        self, here: LagrangianPoint, gradient: np.ndarray, damping: np.ndarray, tol: float
    ) -> NewtonDirection:
        """Solve the Newton system by conjugate gradients.

        With K the rows on a kink and F the multipliers off their bounds, the Hessian is

            alpha I + sigma X_K' X_K + E M^-1 E',   E = X' D_F,

        where D_F holds the slopes in f of the constraints F, and M is the curvature in v.
        """
        problem, sigma = self.problem, self.sigma
        one = float(problem.fit_intercept)  # the last column of [X 1], 0 without intercept
        kinked = (here.place == kernels.LOW_KINK) | (here.place == kernels.HIGH_KINK)
        X = problem.X[np.flatnonzero(kinked)]
        XT = X.T  # not a mere view if X is sparse
        free = (here.v > 0) & (here.v < self.upper)
        E, response = self._response_of_multipliers(here, free)
        ridge = damping + np.append(np.full(len(here.w), problem.alpha), INTERCEPT_RIDGE * sigma)

        def hessian(u: np.ndarray) -> np.ndarray:
            along = sigma * (X @ u[:-1] + one * u[-1])
            image = ridge * u + E @ (response @ u)
            image[:-1] += XT @ along
            image[-1] += one * along.sum()
            return image

        diagonal = ridge + np.einsum("if,fi->i", E, response)
        diagonal += sigma * np.append(column_squares(X), one * X.shape[0])
        u = conjugate_gradients(hessian, -gradient, diagonal, tol)
        v = np.zeros_like(here.v)
        v[free] = response @ u
        return NewtonDirection(u[:-1], float(u[-1]), v)

    def _response_of_multipliers(
        self, here: LagrangianPoint, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """E and M^-1 E': the derivative of the gradient in v, and of v in (w, b)."""
        X, by_row = self.problem.X, self.problem.by_row
        if not free.any():
            return np.zeros((len(here.w) + 1, 0)), np.zeros((0, len(here.w) + 1))
        M, slope = self.curvature(here, free)
        D = csr_array((slope, by_row.indices, by_row.indptr), shape=by_row.shape)
        D = D[:, 1 + np.flatnonzero(free)]
        dense = DENSE * D.nnz > D.shape[0] * D.shape[1]
        gradients = X.T @ (D.toarray() if dense else D)
        gradients = gradients.toarray() if issparse(gradients) else gradients
        E = np.vstack([gradients, self.problem.fit_intercept * D.sum(axis=0)])
        return E, np.linalg.solve(M, E.T)


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], r: np.ndarray, diagonal: np.ndarray, tol: float
) -> np.ndarray:
    """Solve H x = r to a residual of tol |r|, preconditioned by the diagonal of H."""
    x, target = np.zeros_like(r), tol * np.linalg.norm(r)
    direction, last = np.zeros_like(r), 1.0
    for _ in range(MAX_CG):
        if np.linalg.norm(r) <= target:
            break
        y = r / diagonal
        size = r @ y
        direction = y + (size / last) * direction
        image = product(direction)
        length = size / (direction @ image)
        x += length * direction
        r = r - length * image
        last = size
    return x


def column_squares(X: Any) -> np.ndarray:
    """Sum of squares of each column, shape (d,)."""
    if issparse(X):
        return np.bincount(X.indices, weights=X.data**2, minlength=X.shape[1])
    return np.einsum("ij,ij->j", X, X)
