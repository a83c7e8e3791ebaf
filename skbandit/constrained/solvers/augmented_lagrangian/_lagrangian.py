"""The augmented Lagrangian of Problem 3 as a function of (w, b), and its Newton systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._box_quadratic import box_quadratic
from skbandit.constrained.solvers.augmented_lagrangian import _kernels as kernels
from skbandit.constrained.training._ramp import ConvexProblem

MAX_CG = 300
"""Conjugate gradient steps at most."""

BIAS_RIDGE = 1e-3
"""Keeps a Newton system solvable in b, in units of a row on a kink."""


@dataclass(frozen=True)
class Point:
    """The augmented Lagrangian at one (w, b).

    Parameters
    ----------
    w, b : ndarray of shape (d,), float
        The classifier.
    z : ndarray of shape (n,)
        Its scores X w + b.
    v : ndarray of shape (m,)
        The maximising multipliers.
    f, place : ndarray of shape (n,)
        The minimising scores, and where they are on the hinges.
    costs : ndarray of shape (1 + m,)
        Rows of the problem at f, without gamma.
    theta : ndarray of shape (n,)
        sigma (y - f), the next multipliers, and the gradient in z.
    value : float
        What is minimised over (w, b).
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


class Step(NamedTuple):
    """A direction in (w, b) and how v answers."""

    w: np.ndarray
    b: float
    v: np.ndarray


@dataclass(frozen=True)
class AugmentedLagrangian:
    """The function of (w, b) that one multiplier update minimises.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    gamma : ndarray of shape (1 + m,)
        Its bounds, or slightly tighter ones.
    theta : ndarray of shape (n,)
        Multipliers of f = X w + b.
    centre : ndarray of shape (m,)
        Of the proximal term |v - centre|^2 / 2 tau.
    sigma, tau : float
        Weights of the two quadratic terms.
    cap : float
        Upper bound of v.
    tol : float
        Slope in v that counts as 0.
    """

    problem: ConvexProblem
    gamma: np.ndarray
    theta: np.ndarray
    centre: np.ndarray
    sigma: float
    tau: float
    cap: float
    tol: float

    def at(self, w: np.ndarray, b: float, z: np.ndarray, v: np.ndarray) -> Point:
        """Evaluate at (w, b) with scores z; the search for the best multipliers starts at v.

        It takes Newton steps: the maximiser of the quadratic model over the box, then halves
        of the way there until the value rises.
        """
        best = self._given(w, b, z, v)
        for _ in range(50):
            v, slope = best.v, self._slope(best)
            moves = ~(((v <= 0) & (slope <= 0)) | ((v >= self.cap) & (slope >= 0)))
            if np.abs(slope[moves]).max(initial=0.0) <= self.tol:
                break
            M, _ = self.curvature(best, moves)
            target = v.copy()
            r = slope[moves] + M @ v[moves]
            target[moves] = box_quadratic(M, r, self.cap, pinned_newton(M, r, self.cap))
            for share in 0.5 ** np.arange(20):
                trial = self._given(w, b, z, v + share * (target - v))
                if trial.value > best.value:
                    break
            else:
                break  # what is left to gain is rounding
            best = trial
        return best

    def _given(self, w: np.ndarray, b: float, z: np.ndarray, v: np.ndarray) -> Point:
        """The value for given v."""
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
        return Point(w, b, z, v, f, place, costs, theta, float(value))

    def _slope(self, here: Point) -> np.ndarray:
        """The derivative in v."""
        return (here.costs - self.gamma)[1:] - (here.v - self.centre) / self.tau

    def curvature(self, here: Point, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the second derivative in some of v; and the slope in f of every entry."""
        by_row, size = self.problem.by_row, int(some.sum())
        slope, M = np.empty_like(by_row.data), np.empty((size, size))
        kernels.slopes(here.place, by_row.indptr, by_row.data, slope)
        position = np.append(-1, np.where(some, np.cumsum(some) - 1, -1))
        kernels.curvature(slope, by_row.indptr, by_row.indices, position, M)
        M /= self.sigma
        M.flat[:: size + 1] += 1 / self.tau
        return M, slope

    def newton(self, here: Point, gradient: np.ndarray, damping: np.ndarray, tol: float) -> Step:
        """Solve the Newton system by conjugate gradients.

        With K the rows on a kink and F the multipliers off their bounds, the Hessian is

            alpha I + sigma X_K' X_K + E M^-1 E',   E = X' D_F,

        where D_F holds the slopes in f of the constraints F, and M is the curvature in v.
        """
        problem, sigma = self.problem, self.sigma
        bias = float(problem.fit_intercept)  # without intercept the 1 of [X 1] is 0
        kinked = (here.place == kernels.LOW_KINK) | (here.place == kernels.HIGH_KINK)
        X = problem.X[np.flatnonzero(kinked)]
        XT = X.T  # for a sparse X not a mere view
        free = (here.v > 0) & (here.v < self.cap)
        E, answer = self._through_multipliers(here, free)
        ridge = damping + np.append(np.full(len(here.w), problem.alpha), BIAS_RIDGE * sigma)

        def hessian(u: np.ndarray) -> np.ndarray:
            along = sigma * (X @ u[:-1] + bias * u[-1])
            image = ridge * u + E @ (answer @ u)
            image[:-1] += XT @ along
            image[-1] += bias * along.sum()
            return image

        diagonal = ridge + np.einsum("if,fi->i", E, answer)
        diagonal += sigma * np.append(column_squares(X), bias * X.shape[0])
        u = conjugate_gradients(hessian, -gradient, diagonal, tol)
        v = np.zeros_like(here.v)
        v[free] = answer @ u
        return Step(u[:-1], float(u[-1]), v)

    def _through_multipliers(self, here: Point, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E and M^-1 E': how the gradient depends on v, and v on (w, b)."""
        X, by_row = self.problem.X, self.problem.by_row
        if not free.any():
            return np.zeros((len(here.w) + 1, 0)), np.zeros((0, len(here.w) + 1))
        M, slope = self.curvature(here, free)
        D = csr_array((slope, by_row.indices, by_row.indptr), shape=by_row.shape)
        D = D[:, 1 + np.flatnonzero(free)]
        turned = X.T @ D
        turned = turned.toarray() if issparse(turned) else turned
        E = np.vstack([turned, self.problem.fit_intercept * D.sum(axis=0)])
        return E, np.linalg.solve(M, E.T)


def pinned_newton(S: np.ndarray, r: np.ndarray, cap: float) -> np.ndarray:
    """Nearly minimise v'Sv/2 - r'v over 0 <= v <= cap, in few systems.

    What leaves the box is pinned to the end it leaves by, all of it at once, for good.
    """
    v, inside = np.zeros_like(r), np.ones(len(r), dtype=bool)
    while inside.any():
        rest = r[inside] - S[np.ix_(inside, ~inside)] @ v[~inside]
        v[inside] = np.linalg.solve(S[np.ix_(inside, inside)], rest)
        leaves = inside & ((v < 0) | (v > cap))
        if not leaves.any():
            break
        v[leaves] = np.clip(v[leaves], 0.0, cap)
        inside &= ~leaves
    return v


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], r: np.ndarray, diagonal: np.ndarray, tol: float
) -> np.ndarray:
    """Solve H x = r to a residual of tol |r|, preconditioned by the diagonal of H."""
    x, enough = np.zeros_like(r), tol * np.linalg.norm(r)
    direction, last = np.zeros_like(r), 1.0
    for _ in range(MAX_CG):
        if np.linalg.norm(r) <= enough:
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
    """Sums of squares of the columns, shape (d,)."""
    if issparse(X):
        return np.bincount(X.indices, weights=X.data**2, minlength=X.shape[1])
    return np.einsum("ij,ij->j", X, X)
