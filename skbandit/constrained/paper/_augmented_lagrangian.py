"""Augmented Lagrangian on the dual: the second-order solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, cg

from skbandit.constrained.paper._interface import (
    MAX_EXCESS,
    ConvexProblem,
    HingeDuals,
    ParametersMixin,
    Solution,
    SolverError,
    canonical_design,
    certify,
)
from skbandit.constrained.paper._polish import box_quadratic, polish
from skbandit.utils._compiled import compiled

__all__ = ["AugmentedLagrangianSolver"]


BELOW, LOW_KINK, BETWEEN_KINKS, HIGH_KINK, ABOVE = 0, 1, 2, 3, 4
"""Places of a proximal point from left to right: off or on the kinks f = -1/2 and f = 1/2."""

FEW_COLUMNS = 200
"""Largest number of columns at which Newton systems are factored; beyond, conjugate gradients."""

MAX_CG = 300
"""Maximum number of conjugate gradient steps; then the direction found so far is used."""

DENSE = 10
"""Entries per nonzero one below which slopes of the constraints are multiplied as dense ones."""

INTERCEPT_RIDGE = 1e-3
"""Ridge on b, in units of sigma, the curvature of one kinked row.

Keeps a Newton system solvable in b if no row is on a kink.
"""

HARD_UPPER = 1e4
"""Upper bound of the multipliers of hard constraints; one that reaches it counts as infinite."""

FIRST_SIGMA, WARM_SIGMA = 3.0, 10.0
"""sigma of a cold start, and the largest sigma of a warm one, in units of the mean row cost."""

TAU_RATIO = 10.0
"""tau / (n sigma): the larger, the weaker the proximal term of the multipliers."""

MAX_STEPS, MAX_TRIALS = 15, 8
"""Maximum Newton steps per augmented Lagrangian, and maximum trials per line search."""

SHORT_STEP = 0.05
"""Length of a step below which the next Newton system is damped more."""

FIRST_DAMPING, LAST_DAMPING = 1e-5, 1e3
"""Smallest and largest damping after short steps.

In units of the Hessian's diagonal if all rows were on kinks. Beyond the largest, the
minimization stops: only rounding is left to gain.
"""

MAX_SCORE_CHANGE = 5.0
"""Largest change of a score in the first trial of a line search, where a ramp has width 1."""

POLISH_GAP, POLISH_UNKNOWNS = 1e-5, 200
"""Largest gap, in units of the objective, and number of unknowns at which to try polishing."""

MAX_STALLED_UPDATES = 10
"""Multiplier updates without progress after which the best solution so far is returned."""

MAX_UPDATES_AT_UPPER = 2
"""Consecutive updates with multipliers at HARD_UPPER after which constraints are infeasible."""


# Compiled passes over the rows of X for the augmented Lagrangian.
#
# All loops run over ``ConvexProblem.by_row``: row j of the data has the entries (k, cost), where
# cost > 0 is that of a positive prediction in row k of the problem, and cost < 0 minus that of
# a negative one. Under the weights v = (1, v_1, ..., v_m) row j costs
# p max(0, 1/2 + f) + q max(0, 1/2 - f), p and q being sums of its weighted entries.


@compiled
def prox(
    z: np.ndarray,
    theta: np.ndarray,
    sigma: float,
    v: np.ndarray,
    indptr: np.ndarray,
    k: np.ndarray,
    cost: np.ndarray,
    f: np.ndarray,
    place: np.ndarray,
    rows: np.ndarray,
) -> float:
    """Minimize the cost at f plus sigma/2 (y - f)^2, for each row of the data.

    Here y = z + theta/sigma. Fills `f`, `place` and the costs `rows` of rows 0..m of the problem
    at f; returns |y - f|^2.
    """
    rows[:] = 0.0
    squares = 0.0
    for j in range(len(z)):
        p = q = 0.0
        for a in range(indptr[j], indptr[j + 1]):
            weighted = v[k[a]] * cost[a]
            if weighted > 0:
                p += weighted
            else:
                q -= weighted
        p, q = p / sigma, q / sigma
        y = z[j] + theta[j] / sigma
        at = min(y + q, -0.5) + min(max(y + q - p, -0.5), 0.5) + max(y - p, 0.5)
        here = (y + q >= -0.5) + (y + q - p > -0.5) + (y + q - p >= 0.5) + (y - p > 0.5)
        f[j], place[j] = at, here
        squares += (y - at) * (y - at)
        above, below = max(0.0, 0.5 + at), max(0.0, 0.5 - at)
        for a in range(indptr[j], indptr[j + 1]):
            rows[k[a]] += cost[a] * above if cost[a] > 0 else -cost[a] * below
    return squares


@compiled
def slopes(place: np.ndarray, indptr: np.ndarray, cost: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the derivative in f of each entry at the proximal points; 0 on kinks."""
    for j in range(len(place)):
        here = place[j]
        kinked = here == LOW_KINK or here == HIGH_KINK
        for a in range(indptr[j], indptr[j + 1]):
            flat = kinked or here == (BELOW if cost[a] > 0 else ABOVE)
            out[a] = 0.0 if flat else cost[a]


@compiled
def curvature(
    slope: np.ndarray, indptr: np.ndarray, k: np.ndarray, position: np.ndarray, out: np.ndarray
) -> None:
    """Fill `out` with the Gram matrix over the data of the slopes of some rows of the problem.

    `position[k]` is the index of row k of the problem in `out`, or -1.
    """
    out[:] = 0.0
    at, value = np.empty(2 * len(position), np.int64), np.empty(2 * len(position))
    for j in range(len(indptr) - 1):
        n_entries = 0
        for a in range(indptr[j], indptr[j + 1]):
            if slope[a] != 0.0 and position[k[a]] >= 0:
                at[n_entries], value[n_entries] = position[k[a]], slope[a]
                n_entries += 1
        for i in range(n_entries):
            for c in range(n_entries):
                out[at[i], at[c]] += value[i] * value[c]


@compiled
def _add_sparse_gram(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    curvature: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add [X 1]' diag(curvature) [X 1] to the lower half of H: five times as fast as scipy's."""
    d = H.shape[0] - 1
    for j in range(len(curvature)):
        c = curvature[j]
        if c > 0:
            first, last = indptr[j], indptr[j + 1]
            for a in range(first, last):
                row = indices[a]
                cx = c * data[a]
                for b in range(first, a + 1):
                    H[row, indices[b]] += cx * data[b]
                H[d, row] += cx
            H[d, d] += c


def add_gram(X: Any, curvature: np.ndarray, H: np.ndarray) -> None:
    """Add [X 1]' diag(curvature) [X 1] to the lower half of H."""
    X = canonical_design(X)
    if issparse(X):
        _add_sparse_gram(X.indptr, X.indices, X.data, curvature, H)
        return
    H[:-1, :-1] += X.T @ (X * curvature[:, None])
    H[-1, :-1] += X.T @ curvature
    H[-1, -1] += curvature.sum()


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
        The maximizing multipliers.
    f, place : ndarray of shape (n,)
        The minimizing scores, and their places on the hinges.
    costs : ndarray of shape (1 + m,)
        Rows of the problem at f, without gamma.
    theta : ndarray of shape (n,)
        sigma (y - f): both the next multipliers and the gradient in z.
    value : float
        The augmented Lagrangian, to be minimized over (w, b).
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


@dataclass(frozen=True)
class AugmentedLagrangian:
    """The augmented Lagrangian, minimized over (w, b) in each multiplier update.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    gamma : ndarray of shape (1 + m,)
        Bounds of the problem, or slightly tighter ones.
    theta : ndarray of shape (n,)
        Multipliers of f = X w + b.
    center : ndarray of shape (m,)
        Center of the proximal term |v - center|^2 / 2 tau.
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
    center: np.ndarray
    sigma: float
    tau: float
    upper: float
    tol: float

    def at(self, w: np.ndarray, b: float, z: np.ndarray, v: np.ndarray) -> LagrangianPoint:
        """Evaluate at (w, b) with scores z, maximizing over the multipliers from v.

        Newton steps: to the maximizer of the quadratic model over the box, halved until the
        value rises.
        """
        best = self._at_multipliers(w, b, z, v)
        for _ in range(50):
            v = best.v
            slope = (best.costs - self.gamma)[1:] - (v - self.center) / self.tau  # in v
            moves = ~(((v <= 0) & (slope <= 0)) | ((v >= self.upper) & (slope >= 0)))
            if np.abs(slope[moves]).max(initial=0.0) <= self.tol:
                break
            M, _ = self.curvature(best, moves)
            target = v.copy()
            r = slope[moves] + M @ v[moves]
            target[moves] = box_quadratic(M, r, self.upper)
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
        squares = prox(z, self.theta, self.sigma, weights, *entries, f, place, costs)
        away = v - self.center
        value = (
            weights @ (costs - self.gamma)
            + 0.5 * self.sigma * squares
            - away @ away / (2 * self.tau)
            + 0.5 * self.problem.alpha * w @ w
        )
        theta = self.theta + self.sigma * (z - f)
        return LagrangianPoint(w, b, z, v, f, place, costs, theta, float(value))

    def curvature(self, here: LagrangianPoint, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the second derivative in some of v, and the slope in f of each entry."""
        by_row, size = self.problem.by_row, int(part.sum())
        slope, M = np.empty_like(by_row.data), np.empty((size, size))
        slopes(here.place, by_row.indptr, by_row.data, slope)
        position = np.append(-1, np.where(part, np.cumsum(part) - 1, -1))
        curvature(slope, by_row.indptr, by_row.indices, position, M)
        M /= self.sigma
        M.flat[:: size + 1] += 1 / self.tau
        return M, slope

    def newton(
        self, here: LagrangianPoint, gradient: np.ndarray, damping: np.ndarray, tol: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the Newton step of (w, b), and the response of v to it.

        With K the rows on a kink and F the multipliers off their bounds, the Hessian is

            alpha I + sigma X_K' X_K + E M^-1 E',   E = X' D_F,

        where D_F holds the slopes in f of the constraints F, and M is the curvature in v.
        """
        problem, sigma = self.problem, self.sigma
        constant = float(problem.fit_intercept)  # the last column of [X 1], 0 without intercept
        kinked = (here.place == LOW_KINK) | (here.place == HIGH_KINK)
        X = problem.X[np.flatnonzero(kinked)]
        free = (here.v > 0) & (here.v < self.upper)
        E, response = self._response_of_multipliers(here, free)
        ridge = damping + np.append(np.full(len(here.w), problem.alpha), INTERCEPT_RIDGE * sigma)
        if len(here.w) <= FEW_COLUMNS:
            hessian = E @ response
            add_gram(X, np.full(X.shape[0], sigma), hessian)
            if not problem.fit_intercept:
                hessian[-1] = 0.0
            hessian.flat[:: len(ridge) + 1] *= 1 + 1e-11  # definite in spite of rounding
            hessian.flat[:: len(ridge) + 1] += ridge
            step = cho_solve(cho_factor(hessian, lower=True), -gradient)
        else:
            XT = X.T  # not a mere view if X is sparse

            def product(u: np.ndarray) -> np.ndarray:
                along = sigma * (X @ u[:-1] + constant * u[-1])
                image = ridge * u + E @ (response @ u)
                image[:-1] += XT @ along
                image[-1] += constant * along.sum()
                return image

            diagonal = ridge + np.einsum("if,fi->i", E, response)
            diagonal += sigma * np.append(column_squares(X), constant * X.shape[0])
            shape = (len(gradient), len(gradient))
            step, _ = cg(
                LinearOperator(shape, matvec=product),
                -gradient,
                rtol=tol,
                maxiter=MAX_CG,
                M=LinearOperator(shape, matvec=lambda r: r / diagonal),
            )
        v = np.zeros_like(here.v)
        v[free] = response @ step
        return step, v

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


def column_squares(X: Any) -> np.ndarray:
    """Return the sum of squares of each column, shape (d,)."""
    if issparse(X):
        return np.bincount(X.indices, weights=X.data**2, minlength=X.shape[1])
    return np.einsum("ij,ij->j", X, X)


# The augmented Lagrangian by semismooth Newton-CG steps.
#
# With v = (1, v_1, ..., v_m), p = v P and q = v Q, Problem 3 is to minimize
# alpha/2 |w|^2 + Phi(f) subject to f = X w + b, where
#
#     Phi(f) = max over 0 <= v_k <= upper of  sum_j p_j max(0, 1/2 + f_j) + q_j max(0, 1/2 - f_j)
#                                             - v gamma.
#
# The multipliers theta of f = X w + b lie in [-q, p]: they are the duals of the hinges, up - down.
# For given theta the augmented Lagrangian, minimized over f and (with a proximal term) maximized
# over v, is a convex function of (w, b) with a piecewise linear gradient. Its Newton systems
# involve only the few rows of X whose f is on a kink. After Li, Sun and Toh (2018), "A highly
# efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM Journal
# on Optimization 28(1).


@dataclass(frozen=True)
class DualState:
    """State passed on to the next solve: theta, which combines the hinge duals, and sigma."""

    theta: np.ndarray
    sigma: float


@dataclass
class AugmentedLagrangianSolver(ParametersMixin):
    """Semismooth Newton-CG steps on an augmented Lagrangian.

    Parameters
    ----------
    max_iter : int
        Maximum number of multiplier updates per convex problem, each of up to 15 Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import AugmentedLagrangianSolver, ConvexProblem
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> AugmentedLagrangianSolver().solve(problem, np.inf, 1e-8).coef.round(3)
    array([0.5])
    """

    max_iter: int = 100

    name: ClassVar[str] = "augmented_lagrangian"
    rough: ClassVar[float] = 1e-3
    exact: ClassVar[float] = 1e-5

    def __post_init__(self) -> None:
        if not self.max_iter >= 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Update the multipliers until the certified gap is small.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Penalty per unit of constraint violation; infinite for hard constraints.
        tol : float
            Duality gap to reach; the solution reports the gap reached.
        warm : Solution, optional
            Solution of a similar problem; one by this solver supplies its hinge duals, too.

        Returns
        -------
        Solution

        Raises
        ------
        SolverError
            If hard constraints are not met.
        """
        hard, upper = math.isinf(penalty), min(penalty, HARD_UPPER)
        w, b, v, state = _first_state(problem, upper, penalty, warm)
        z, theta, sigma = problem.X @ w + b, state.theta, state.sigma
        tightening, slope_tol = np.zeros_like(v), 1e-7
        best, best_rank, best_dual = None, (True, math.inf), -math.inf  # rank: missed, primal
        least_error, n_stalled, n_at_upper = math.inf, 0, 0
        for _ in range(self.max_iter):
            gamma = problem.gamma - np.append(0.0, tightening)
            tau = TAU_RATIO * len(theta) * sigma
            lagrangian = AugmentedLagrangian(problem, gamma, theta, v, sigma, tau, upper, slope_tol)
            here, n_steps = _minimize(lagrangian, lagrangian.at(w, b, z, v), penalty, tol)
            w, b, z, v, theta = here.w, here.b, here.z, here.v, here.theta

            duals = _hinge_duals(problem, v, theta)
            solution = certify(problem, w, b, v, penalty, duals, z)
            if tol < solution.gap <= POLISH_GAP * problem.objective_scale:
                solution = polish(problem, solution, duals, penalty, POLISH_UNKNOWNS)
            best_dual = max(best_dual, solution.dual)
            missed = hard and solution.excess > MAX_EXCESS
            if (missed, solution.primal) < best_rank:
                best, best_rank = solution, (missed, solution.primal)
            error = best_rank[1] - best_dual
            n_stalled = 0 if error < 0.9 * least_error else n_stalled + 1
            least_error = min(least_error, error)
            n_at_upper = n_at_upper + 1 if missed and (v >= upper).any() else 0
            solved = error <= tol and not best_rank[0]
            if solved or n_stalled > MAX_STALLED_UPDATES or n_at_upper > MAX_UPDATES_AT_UPPER:
                break
            if missed and solution.primal - best_dual <= tol:
                # f meets the constraints, X w + b not yet: it is scattered around f's kinks
                violations = np.maximum(problem.rows(z)[1:], 0.0)
                affordable = 0.25 * tol / (1 + v.sum())
                tightening = np.minimum(tightening + 1.5 * violations, affordable)
            slope_tol = min(max(1e-3 * error, 1e-12), 1e-6)
            sigma *= 3.0 if n_steps <= 3 else 0.5 if n_steps >= MAX_STEPS else 1.5
        if best is None or best_rank[0]:
            reason = "they may contradict one another" if n_at_upper else f"the gap was {error:.1e}"
            raise SolverError(
                "The augmented Lagrangian found no point within the hard constraints: the last "
                f"one misses them by {solution.excess:.1e}, at multipliers up to "
                f"{v.max(initial=0.0):.1e}; {reason}. Raise the solver's max_iter to allow more "
                "multiplier updates, or relax the constraints."
            )
        return replace(best, dual=min(best_dual, best.primal), state=DualState(theta, sigma))


def _first_state(
    problem: ConvexProblem, upper: float, penalty: float, warm: Solution | None
) -> tuple[np.ndarray, float, np.ndarray, DualState]:
    """Return w, b, v and the dual state to start from: zero, or as much as `warm` supplies.

    Multipliers of an elastic problem may be far too high for the same constraints if they are
    hard, and take long to fall: of the warm dual state and zero, the one with the higher dual value
    is used.
    """
    n, d = problem.X.shape
    mean_cost = max((problem.P.sum(axis=1) + problem.Q.sum(axis=1)).max(), 1e-12) / n
    cold = DualState(np.zeros(n), FIRST_SIGMA * mean_cost)
    nothing = np.zeros(len(problem.gamma) - 1)
    if warm is None:
        return np.zeros(d), 0.0, nothing, cold
    w, b = warm.coef, warm.intercept if problem.fit_intercept else 0.0
    v, state = np.clip(warm.multipliers, 0.0, upper), cold
    p, q = problem.dual_upper_bounds(v)
    if isinstance(warm.state, DualState) and len(warm.state.theta) == n:
        sigma = min(max(warm.state.sigma, mean_cost), WARM_SIGMA * mean_cost)
        state = DualState(np.clip(warm.state.theta, -q, p), sigma)

    def dual(v: np.ndarray, theta: np.ndarray) -> float:
        return certify(problem, w, b, v, penalty, _hinge_duals(problem, v, theta)).dual

    if dual(v, state.theta) < dual(nothing, cold.theta):
        return w, b, nothing, cold
    return w, b, v, state


def _optimality(
    lagrangian: AugmentedLagrangian, here: LagrangianPoint, penalty: float, tol: float
) -> tuple[np.ndarray, bool]:
    """Return the gradient in (w, b), and whether theta, rather than (w, b), makes the gap.

    Then (w, b) is good enough: the part of the gap that an exact minimum over w would remove is
    small, and so is the sum of theta, which vanishes at a minimum over b.
    """
    problem, alpha = lagrangian.problem, lagrangian.problem.alpha
    X_theta = problem.X.T @ here.theta
    gradient = np.append(alpha * here.w + X_theta, problem.fit_intercept * here.theta.sum())
    rows = problem.rows(here.z)
    penalties = penalty if math.isfinite(penalty) else here.v
    primal = rows[0] + 0.5 * alpha * here.w @ here.w
    primal += np.sum(penalties * np.maximum(rows[1:], 0.0))
    dual = np.append(1.0, here.v) @ (here.costs - problem.gamma) - here.theta @ here.f
    gap = primal - dual + X_theta @ X_theta / (2 * alpha)
    of_w = gradient[:-1] @ gradient[:-1] / (2 * alpha)
    minimal = gap <= tol or of_w <= 0.25 * (gap - of_w)
    return gradient, bool(minimal and abs(gradient[-1]) <= 0.02 * max(gap, tol))


def _minimize(
    lagrangian: AugmentedLagrangian, here: LagrangianPoint, penalty: float, tol: float
) -> tuple[LagrangianPoint, int]:
    """Take Newton steps until the gap is due to theta rather than to (w, b); count them."""
    damping, n, X = 0.0, len(here.z), lagrangian.problem.X
    for n_steps in range(MAX_STEPS):
        gradient, suffices = _optimality(lagrangian, here, penalty, tol)
        if suffices:
            return here, n_steps
        cg_tol = 0.03 if n_steps < 3 else 0.01
        while damping <= LAST_DAMPING:
            ridge = np.zeros(len(gradient))
            if damping:  # in units of the diagonal if all rows were on kinks
                ridge = damping * lagrangian.sigma * np.append(column_squares(X), n)
            step = lagrangian.newton(here, gradient, ridge, cg_tol)
            there, length = _line_search(lagrangian, here, *step, gradient)
            if length < SHORT_STEP:
                damping = max(10 * damping, FIRST_DAMPING)
            elif length > 0.5:
                damping = damping / 10 if damping > FIRST_DAMPING else 0.0
            if length:
                break
        else:
            return here, n_steps  # only rounding is left to gain
        here = there
    return here, MAX_STEPS


def _line_search(
    lagrangian: AugmentedLagrangian,
    here: LagrangianPoint,
    step: np.ndarray,
    step_v: np.ndarray,
    gradient: np.ndarray,
) -> tuple[LagrangianPoint, float]:
    """Search along a step for a small derivative, by regula falsi; never upwards.

    Returns the lowest point found and the step length, 0 if none is lower.
    """
    alpha, upper = lagrangian.problem.alpha, lagrangian.upper
    dw, db = step[:-1], float(step[-1])
    dz = lagrangian.problem.X @ dw + db
    slope, bend = gradient @ step, alpha * dw @ dw
    low, low_slope, high, high_slope = 0.0, slope, math.inf, 0.0
    t, best, best_t = min(1.0, MAX_SCORE_CHANGE / max(np.abs(dz).max(), 1e-300)), here, 0.0
    for _ in range(MAX_TRIALS):
        v = np.clip(here.v + t * step_v, 0.0, upper)
        there = lagrangian.at(here.w + t * dw, here.b + t * db, here.z + t * dz, v)
        slope_t = there.theta @ dz + alpha * here.w @ dw + t * bend
        if there.value < best.value:
            best, best_t = there, t
        if abs(slope_t) <= 0.2 * abs(slope):
            break
        if slope_t > 0:
            high, high_slope = t, slope_t
        else:
            low, low_slope = t, slope_t
        if math.isinf(high):
            t *= 2
        else:
            share = -low_slope / (high_slope - low_slope)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return best, best_t


def _hinge_duals(problem: ConvexProblem, v: np.ndarray, theta: np.ndarray) -> HingeDuals:
    """Return the best duals with up - down = theta, balanced where that costs nothing.

    On a kink a dual may change at no cost to first order: there the duals are moved toward an
    end of their intervals until the sum of theta is 0, if that suffices.
    """
    p, q = problem.dual_upper_bounds(v)
    largest = HingeDuals.of(-theta, p, q)
    up, down = np.clip(largest.up, 0.0, p), np.clip(largest.down, 0.0, q)
    if problem.fit_intercept:
        imbalance = up.sum() - down.sum()
        up_end, down_end = (0.0, q) if imbalance > 0 else (p, 0.0)
        room_up = np.where((up > 0) & (up < p), up_end - up, 0.0)
        room_down = np.where((down > 0) & (down < q), down_end - down, 0.0)
        room = np.abs(room_up).sum() + np.abs(room_down).sum()
        share = min(1.0, abs(imbalance) / room) if room else 0.0
        up, down = up + share * room_up, down + share * room_down
    return HingeDuals(up, down)
