"""The augmented Lagrangian by semismooth Newton-CG steps, for many sparse features.

With v = (1, v_1, ..., v_m), p = v P and q = v Q, Problem 3 is to minimise
alpha/2 |w|^2 + Phi(f) subject to f = X w + b, where

    Phi(f) = max over 0 <= v_k <= upper of  sum_j p_j max(0, 1/2 + f_j) + q_j max(0, 1/2 - f_j)
                                            - v gamma.

The multipliers theta of f = X w + b lie in [-q, p]: they are the duals of the hinges, up - down.
For given theta the augmented Lagrangian, minimised over f and (with a proximal term) maximised
over v, is a convex function of (w, b) with a piecewise linear gradient. Its Newton systems
involve only the few rows of X whose f is on a kink. After Li, Sun and Toh (2018), "A highly
efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM Journal
on Optimization 28(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skbandit.constrained.solvers._interface import (
    MAX_EXCESS,
    HingeDuals,
    Solution,
    SolverError,
    certify,
)
from skbandit.constrained.solvers._line_search import adapted_damping, interpolate, root_share
from skbandit.constrained.solvers._parameters import ParametersMixin
from skbandit.constrained.solvers._problem import ConvexProblem
from skbandit.constrained.solvers.augmented_lagrangian._lagrangian import (
    AugmentedLagrangian,
    LagrangianPoint,
    NewtonDirection,
    column_squares,
)

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
minimisation stops: only rounding is left to gain.
"""

MAX_SCORE_CHANGE = 5.0
"""Largest change of a score in the first trial of a line search, where a ramp has width 1."""

MAX_STALLED_UPDATES = 10
"""Multiplier updates without progress after which the best solution so far is returned."""

MAX_UPDATES_AT_UPPER = 2
"""Consecutive updates with multipliers at HARD_UPPER after which constraints are infeasible."""


@dataclass(frozen=True)
class DualState:
    """State passed on to the next solve: theta, which combines the hinge duals, and sigma."""

    theta: np.ndarray
    sigma: float


@dataclass
class AugmentedLagrangianSolver(ParametersMixin):
    """Semismooth Newton-CG steps on an augmented Lagrangian, for many sparse features.

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
        w, b, v, state = _start(problem, upper, warm)
        z, theta, sigma = problem.X @ w + b, state.theta, state.sigma
        tightening, slope_tol = np.zeros_like(v), 1e-7
        best, best_rank, best_dual = None, (True, math.inf), -math.inf  # rank: missed, primal
        least_error, n_stalled, n_at_upper = math.inf, 0, 0
        for _ in range(self.max_iter):
            gamma = problem.gamma - np.append(0.0, tightening)
            tau = TAU_RATIO * len(theta) * sigma
            lagrangian = AugmentedLagrangian(problem, gamma, theta, v, sigma, tau, upper, slope_tol)
            here, n_steps = _minimise(lagrangian, lagrangian.at(w, b, z, v), penalty, tol)
            w, b, z, v, theta = here.w, here.b, here.z, here.v, here.theta

            found = certify(problem, w, b, v, penalty, _hinge_duals(problem, v, theta), z)
            best_dual = max(best_dual, found.dual)
            missed = hard and found.excess > MAX_EXCESS
            if (missed, found.primal) < best_rank:
                best, best_rank = found, (missed, found.primal)
            error = best_rank[1] - best_dual
            n_stalled = 0 if error < 0.9 * least_error else n_stalled + 1
            least_error = min(least_error, error)
            n_at_upper = n_at_upper + 1 if missed and (v >= upper).any() else 0
            solved = error <= tol and not best_rank[0]
            if solved or n_stalled > MAX_STALLED_UPDATES or n_at_upper > MAX_UPDATES_AT_UPPER:
                break
            if missed and found.primal - best_dual <= tol:
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
                f"one misses them by {found.excess:.1e}, at multipliers up to "
                f"{v.max(initial=0.0):.1e}; {reason}. Raise the solver's max_iter to allow more "
                "multiplier updates, or relax the constraints."
            )
        return replace(best, dual=min(best_dual, best.primal), state=DualState(theta, sigma))


def _start(
    problem: ConvexProblem, upper: float, warm: Solution | None
) -> tuple[np.ndarray, float, np.ndarray, DualState]:
    """Return w, b, v and the dual state to start from: zero, or as much as `warm` supplies."""
    n, d = problem.X.shape
    mean_cost = max((problem.P.sum(axis=1) + problem.Q.sum(axis=1)).max(), 1e-12) / n
    cold = DualState(np.zeros(n), FIRST_SIGMA * mean_cost)
    if warm is None:
        return np.zeros(d), 0.0, np.zeros(len(problem.gamma) - 1), cold
    w, b = warm.coef, warm.intercept if problem.fit_intercept else 0.0
    v = np.clip(warm.multipliers, 0.0, upper)
    if not isinstance(warm.state, DualState) or len(warm.state.theta) != n:
        return w, b, v, cold
    p, q = problem.dual_upper_bounds(v)
    sigma = min(max(warm.state.sigma, mean_cost), WARM_SIGMA * mean_cost)
    return w, b, v, DualState(np.clip(warm.state.theta, -q, p), sigma)


@dataclass(frozen=True)
class Optimality:
    """Distance of a point from the Lagrangian's minimum and from the problem's optimum.

    Parameters
    ----------
    gradient : ndarray of shape (d + 1,)
        In (w, b).
    gap : float
        Duality gap of Problem 3, as if theta summed to 0.
    own_gap : float
        The part of the gap that an exact minimum over w would remove.
    imbalance : float
        |sum of theta|, which vanishes at a minimum over b.
    """

    gradient: np.ndarray
    gap: float
    own_gap: float
    imbalance: float

    @classmethod
    def of(
        cls, lagrangian: AugmentedLagrangian, here: LagrangianPoint, penalty: float
    ) -> Optimality:
        """Evaluate primal, dual and gradient at a point."""
        problem, alpha = lagrangian.problem, lagrangian.problem.alpha
        X_theta = problem.X.T @ here.theta
        gradient = np.append(alpha * here.w + X_theta, problem.fit_intercept * here.theta.sum())
        rows = problem.rows(here.z)
        penalties = penalty if math.isfinite(penalty) else here.v
        primal = rows[0] + 0.5 * alpha * here.w @ here.w
        primal += np.sum(penalties * np.maximum(rows[1:], 0.0))
        dual = np.append(1.0, here.v) @ (here.costs - problem.gamma) - here.theta @ here.f
        gap = primal - dual + X_theta @ X_theta / (2 * alpha)
        own_gap = gradient[:-1] @ gradient[:-1] / (2 * alpha)
        return cls(gradient, gap, own_gap, abs(gradient[-1]))

    def suffices(self, tol: float) -> bool:
        """Whether the gap is due to theta rather than to (w, b), which are then good enough."""
        minimal = self.gap <= tol or self.own_gap <= 0.25 * (self.gap - self.own_gap)
        return bool(minimal and self.imbalance <= 0.02 * max(self.gap, tol))


def _minimise(
    lagrangian: AugmentedLagrangian, here: LagrangianPoint, penalty: float, tol: float
) -> tuple[LagrangianPoint, int]:
    """Take Newton steps until the gap is due to theta rather than to (w, b); count them."""
    damping, n = 0.0, len(here.z)
    all_kinked = lagrangian.sigma * np.append(column_squares(lagrangian.problem.X), n)
    for n_steps in range(MAX_STEPS):
        optimality = Optimality.of(lagrangian, here, penalty)
        if optimality.suffices(tol):
            return here, n_steps
        gradient, cg_tol = optimality.gradient, 0.03 if n_steps < 3 else 0.01
        while damping <= LAST_DAMPING:
            step = lagrangian.newton(here, gradient, damping * all_kinked, cg_tol)
            there, length = _line_search(lagrangian, here, step, gradient)
            damping = adapted_damping(damping, length, short=SHORT_STEP, least=FIRST_DAMPING)
            if length:
                break
        else:
            return here, n_steps  # only rounding is left to gain
        here = there
    return here, MAX_STEPS


def _line_search(
    lagrangian: AugmentedLagrangian,
    here: LagrangianPoint,
    step: NewtonDirection,
    gradient: np.ndarray,
) -> tuple[LagrangianPoint, float]:
    """Search along a step for a small derivative, by regula falsi; never upwards.

    Returns the lowest point found and the step length, 0 if none is lower. `root_share`
    explains the difference from `line_search` of the smoothed Newton solver.
    """
    alpha, upper = lagrangian.problem.alpha, lagrangian.upper
    dz = lagrangian.problem.X @ step.w + step.b
    slope, bend = gradient @ np.append(step.w, step.b), alpha * step.w @ step.w
    low, low_slope, high, high_slope = 0.0, slope, math.inf, 0.0
    t, best, best_t = min(1.0, MAX_SCORE_CHANGE / max(np.abs(dz).max(), 1e-300)), here, 0.0
    for _ in range(MAX_TRIALS):
        v = np.clip(here.v + t * step.v, 0.0, upper)
        there = lagrangian.at(here.w + t * step.w, here.b + t * step.b, here.z + t * dz, v)
        slope_t = there.theta @ dz + alpha * here.w @ step.w + t * bend
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
            t = interpolate(low, high, root_share(low_slope, high_slope))
    return best, best_t


def _hinge_duals(problem: ConvexProblem, v: np.ndarray, theta: np.ndarray) -> HingeDuals:
    """The best duals of the hinges with up - down = theta, balanced where that costs nothing.

    On a kink a dual may change at no cost to first order: there the duals are moved towards an
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
