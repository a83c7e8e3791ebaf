"""Smoothed Newton in SQP form: a convex problem for the price of a few linear systems.

The hinges are smoothed (see `_smoothed`), more and more sharply. Each step solves the quadratic
model of the Lagrangian under the linearised constraints: its Hessian is the Gram matrix of the few
rows on the curved part of a hinge, and its dual is a small quadratic program over the box of the
multipliers, 0 <= v <= price, whose cap *is* the elastic mode. Once sharp, the centres of the
smoothing move instead (proximal point method), and the gap goes to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._box_quadratic import box_quadratic
from skbandit.constrained.solvers._interface import EXCESS, Pull, Solution, SolverError, certify
from skbandit.constrained.solvers._polish import polish
from skbandit.constrained.solvers.augmented_lagrangian._solver import AugmentedLagrangianSolver
from skbandit.constrained.solvers.smoothed_newton import _kernels as smoothed
from skbandit.constrained.solvers.smoothed_newton._line_search import line_search
from skbandit.constrained.training._ramp import ConvexProblem, canonical
from skbandit.utils._threads import one_blas_thread

SMOOTHEST, PROXIMAL, SHARPEST = 1.0, 0.02, 1e-3
"""Smoothing eps: at first; from where the centres move; at last."""

UNCENTRED = 5e-6
"""Gaps down to which, as a share of the objective's costs, centres may stay where they are."""

WARM, FAR, ROUGH = 0.1, 0.1, 1e-4
"""Smoothing to start with near a solution, as FAR from which is not near: until there, a full
step is enough to go on. If no more than a ROUGH gap is to be left, PROXIMAL will do."""

FIRST_PRICE, LAST_PRICE = 10.0, 1e4
"""Price of a unit of violation of hard constraints; times 10 while it is too low."""

HOPELESS = 0.01
"""Gaps are about 0.1 eps^2: what is asked for is not looked for long before."""

CLOSE, SMALL = 1e-5, 200
"""Gap from which, and unknowns up to which, solving for the active set is worth a try."""

STUCK = 1e-4
"""Gap, as a share of the objective's costs, beyond which the other method is tried too."""

PATIENCE = 8
"""Certificates without progress before the best so far is taken."""


class Descent:
    """The iterate of one solve: a point with its scores, multipliers, and derivatives there."""

    def __init__(self, problem: ConvexProblem, u: np.ndarray, v: np.ndarray) -> None:
        n, d = problem.X.shape
        K, by_row = len(problem.gamma), problem.by_row
        self.problem, self.u, self.v = problem, u, v
        self.costs = smoothed.Costs(by_row.indptr, by_row.indices, by_row.data)
        self.centres, self.lifted = smoothed.Centres(np.full(n, 0.5), np.full(n, 0.5)), True
        self.ridge = np.append(np.full(d, problem.alpha), 0.0)
        self.z, self.dz = self.scores(u), np.zeros(n)
        self.turn, self.counted = np.zeros(by_row.nnz), np.zeros(by_row.nnz)
        self.curvature = np.zeros(n)
        self.J, self.H = np.zeros((d + 1, K)), np.zeros((d + 1, d + 1))
        self.damping, self.length = 0.0, 1.0
        self.values, self.smoothing = np.zeros(K), 0.0  # of the rows, with which eps; 0 is none

    def scores(self, u: np.ndarray) -> np.ndarray:
        """[X 1] u."""
        return np.asarray(self.problem.X @ u[:-1]).ravel() + u[-1]

    def rows(self, t: float, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """The smoothed rows, and their slopes, at a step t along dz.

        Uncentred hinges are lifted above the true ones: what they allow is allowed.
        """
        values, slopes = np.empty((2, len(self.problem.gamma)))
        lift = eps / 4 if self.lifted else 0.0
        smoothed.along(self.costs, self.centres, self.z, self.dz, t, eps, lift, values, slopes)
        return values - self.problem.gamma, slopes

    def differentiate(self, eps: float) -> None:
        """Fill J, the gradient of every row, and H, the lower half of the mixture's Hessian."""
        X, J, H = self.problem.X, self.J, self.H
        widen = 0.2 if self.length < 0.5 else 0.0  # after short steps: see a little further
        smoothed.turns(
            self.costs,
            self.centres,
            self.z,
            eps,
            np.append(1.0, self.v),
            widen,
            self.turn,
            self.curvature,
        )
        H[:] = 0.0
        if issparse(X):
            smoothed.add_sparse(
                X.indptr,
                X.indices,
                X.data,
                self.costs,
                self.turn,
                self.counted,
                self.curvature,
                J,
                H,
            )
        else:
            by_row = (self.turn, self.costs.k, self.costs.indptr)
            turn = csr_array(by_row, shape=(len(X), J.shape[1])).T
            J[:-1], J[-1] = (turn @ X).T, turn.sum(axis=1)
            curved = np.flatnonzero(self.curvature)
            root = np.sqrt(self.curvature[curved])
            if len(curved):
                B = X[curved] * root[:, None]
                H[:-1, :-1] = dsyrk(1.0, B.T, lower=1)
                H[-1, :-1], H[-1, -1] = root @ B, root @ root
        if not self.problem.fit_intercept:
            J[-1], H[-1] = 0.0, 0.0

    def step(self, eps: float, price: float) -> Progress:
        """One Newton step with a line search."""
        u, ridge = self.u, self.ridge
        if self.smoothing != eps:
            self.values, _ = self.rows(0.0, eps)
        rows = self.values
        self.differentiate(eps)
        solve, back = _factor(self.H, ridge + self.damping * self.metric if self.damping else ridge)
        gradient, c = self.J[:, 0] + ridge * u, rows[1:]
        Y = solve(np.column_stack([gradient, self.J[:, 1:]]))
        v = _multipliers(Y, c, price, self.v)
        towards = Y[:, 0] + Y[:, 1:] @ v
        du = -back(towards)
        if not self.problem.fit_intercept:
            du[-1] = 0.0
        self.dz = self.scores(du)

        prices = np.minimum(price, 1.5 * np.maximum(v, self.v) + 0.02)
        bend = np.array([0.5 * u @ (ridge * u), u @ (ridge * du), 0.5 * du @ (ridge * du)])

        seen = {0.0: rows}

        def merit(t: float) -> tuple[float, float]:
            values, slopes = self.rows(t, eps)
            seen[t] = values
            c = values[1:]
            value = values[0] + bend @ [1, t, t * t] + prices @ np.maximum(c, 0.0)
            slope = slopes[0] + bend @ [0, 1, 2 * t] + prices @ np.where(c > 0, slopes[1:], 0.0)
            return value, slope

        value = rows[0] + bend[0] + prices @ np.maximum(c, 0.0)
        slope = gradient @ du + prices @ np.where(c > 0, self.J[:, 1:].T @ du, 0.0)
        t, lower = line_search(merit, value, slope)
        self.u, self.z, self.v = u + t * du, self.z + t * self.dz, v
        self.length, self.values, self.smoothing = t, seen[t], eps
        if t < 0.1:
            self.damping = min(max(10 * self.damping, 1e-4), 1.0)
        elif t > 0.5:
            self.damping = self.damping / 10 if self.damping > 1e-4 else 0.0
        excess = np.where(v < price * (1 - 1e-9), self.values[1:], 0.0)
        return Progress(float(towards @ towards), t, value - lower, excess.max(initial=0.0))

    @cached_property
    def metric(self) -> np.ndarray:
        """What damping is measured by: the Gram matrix's diagonal, were all rows curved."""
        X, costs = self.problem.X, self.problem.P.sum(axis=0) + self.problem.Q.sum(axis=0)
        squares = X.multiply(X) if issparse(X) else X * X
        return np.append(costs @ squares, costs.sum())

    def certificate(self, eps: float, penalty: float) -> tuple[Solution, Pull]:
        """The iterate as a solution of the problem with true hinges."""
        up, down = np.empty_like(self.z), np.empty_like(self.z)
        smoothed.shares(self.centres, self.z, eps, up, down)
        p, q = self.problem.boxes(self.v)
        pull = Pull(up * p, down * q)
        w, b = self.u[:-1].copy(), self.u[-1]
        return certify(self.problem, w, b, self.v.copy(), penalty, pull, self.z), pull

    def sharpen(self, eps: float, rough: bool) -> float:
        """The next smoothing; once sharp, the centres move to the maximisers: it is exact there.

        A rough solution does without: uncentred it is within the constraints.
        """
        if eps > PROXIMAL or (rough and self.lifted and eps > SHARPEST):
            return max(min(eps / 2, PROXIMAL), SHARPEST)
        smoothed.shares(self.centres, self.z, eps, self.centres.up, self.centres.down)
        self.lifted, self.smoothing = False, 0.0
        return max(eps / 2, SHARPEST)


@dataclass(frozen=True)
class Progress:
    """What a step did: Newton decrement, length, fall of the merit, violation after it."""

    decrement: float
    length: float
    gain: float
    excess: float


def _factor(
    H: np.ndarray, ridge: np.ndarray
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Factor H + diag(ridge) = L L' (H's lower half): functions B -> L^-1 B and b -> L^-T b."""
    size = len(H)
    diagonal = H.diagonal() + ridge
    floor = np.append(np.full(size - 1, 1e-12), 1e-6)
    scale = 1 / np.sqrt(np.maximum(diagonal, floor))
    H = H * scale * scale[:, None]
    more = 1e-10
    while True:
        H.flat[:: size + 1] = 1.0 + more
        try:
            L = cholesky(H, lower=True, check_finite=False)
            break
        except LinAlgError:
            more *= 100

    def solve(B: np.ndarray) -> np.ndarray:
        return solve_triangular(L, B * scale[:, None], lower=True, check_finite=False)

    def back(b: np.ndarray) -> np.ndarray:
        return scale * solve_triangular(L, b, lower=True, trans="T", check_finite=False)

    return solve, back


def _multipliers(Y: np.ndarray, c: np.ndarray, price: float, v: np.ndarray) -> np.ndarray:
    """Multipliers of the linearised constraints in the box [0, price]."""
    if len(c):
        S = Y[:, 1:].T @ Y[:, 1:]
        near = 1e-13 + 1e-10 * S.max()  # opposed constraints: stay near the last multipliers
        S.flat[:: len(c) + 1] += near
        v = box_quadratic(S, c - Y[:, 1:].T @ Y[:, 0] + near * v, price, v)
    return v


@dataclass(frozen=True)
class SmoothedNewtonSolver:
    """Smoothed Newton steps, for up to about a thousand features.

    Where they get stuck, which takes nearly separable rows and a tiny lambda, the augmented
    Lagrangian goes on.

    Parameters
    ----------
    max_iter : int
        Newton steps for one convex problem at most.
    name : str
        What `solver_` says.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.training._ramp import majorise
    >>> from skbandit.constrained.solvers.smoothed_newton._solver import SmoothedNewtonSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = majorise(X, P, Q, gamma=np.zeros(1), alpha=0.1, f=np.zeros(2))
    >>> SmoothedNewtonSolver().solve(problem, np.inf, 1e-8).coef.round(6)
    array([0.5])
    """

    max_iter: int = 200
    name: str = "newton"

    rough: ClassVar[float] = 3e-3
    exact: ClassVar[float] = 2e-7

    def __post_init__(self) -> None:
        if not self.max_iter >= 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Take Newton steps on sharper and sharper hinges until the certified gap is small.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Price of a unit of constraint violation; infinite for hard constraints.
        tol : float
            The gap aimed at; the solution tells the gap reached.
        warm : Solution, optional
            Where to start; its multipliers are used too.

        Returns
        -------
        Solution

        Raises
        ------
        SolverError
            If hard constraints are not met.
        """
        problem = replace(problem, X=canonical(problem.X))
        with one_blas_thread():
            found = self._solve(problem, penalty, tol, warm)
            if found is not None and abs(found.gap) <= max(tol, STUCK * _mass(problem)):
                return found
            try:
                second = AugmentedLagrangianSolver().solve(problem, penalty, tol, found)
            except SolverError:
                if found is None:
                    raise
                return found  # not as exact as asked for, but within the constraints
            return second if found is None or second.gap < found.gap else found

    def _solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None
    ) -> Solution | None:
        """The best point found within hard constraints, None if there is none."""
        m, hard = len(problem.gamma) - 1, math.isinf(penalty)
        mass = _mass(problem)
        price = FIRST_PRICE if hard else penalty
        u, v, eps = np.zeros(problem.X.shape[1] + 1), np.zeros(m), SMOOTHEST
        if warm is not None:
            u = np.append(warm.coef, warm.intercept)
            v = np.minimum(warm.multipliers, price)
            if warm.gap <= FAR * mass:
                eps = WARM if tol > ROUGH * mass else PROXIMAL
        descent = Descent(problem, u, v)
        rough = tol > UNCENTRED * mass
        settle, polish_below, stalled = 2e-3, CLOSE, 0
        best, least = None, math.inf
        for _ in range(self.max_iter):
            did = descent.step(eps, price)
            settled = did.decrement <= settle * eps and did.excess <= max(1e-3 * eps, 1e-9)
            if eps > WARM:
                if settled or did.length > 0.9 or did.gain < 1e-12:
                    eps = eps / 4
                continue
            if not settled and did.length > 1e-8:
                continue

            if eps > SHARPEST and HOPELESS * eps * eps * mass > tol:
                eps = descent.sharpen(eps, rough)
                continue
            found, pull = descent.certificate(eps, penalty)
            error = _error(found, hard)
            stalled = 0 if error < 0.9 * least else stalled + 1
            few = error < polish_below and _unknowns(descent, pull) <= SMALL
            if error > tol and (few or stalled > PATIENCE):
                polish_below = error / 10
                found = polish(problem, found, pull, penalty)
                error = _error(found, hard)
            if error < least:
                best, least = found, error
            if least <= tol or stalled > PATIENCE:
                break
            too_cheap = price < LAST_PRICE and bool((descent.v >= 0.99 * price).any())
            if hard and too_cheap and not descent.lifted:
                price *= 10
            settle = max(0.3 * settle, 1e-13) if eps <= PROXIMAL else settle
            eps = descent.sharpen(eps, rough)
        return best


def _mass(problem: ConvexProblem) -> float:
    """The sum of the objective's costs: what gaps are shares of."""
    return float(sum(W.data[: W.indptr[1]].sum() for W in (problem.P, problem.Q)))


def _unknowns(descent: Descent, pull: Pull) -> int:
    """Size of the system that the active set makes."""
    p, q = descent.problem.boxes(descent.v)
    kinked = (pull.up > 0) & (pull.up < p)
    kinked |= (pull.down > 0) & (pull.down < q)
    return len(descent.u) + len(descent.v) + int(kinked.sum())


def _error(found: Solution, hard: bool) -> float:
    """The gap; infinite if hard constraints are missed."""
    return math.inf if hard and found.excess > EXCESS else abs(found.gap)
