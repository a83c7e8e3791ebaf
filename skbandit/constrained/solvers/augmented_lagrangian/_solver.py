"""The augmented Lagrangian by semismooth Newton-CG steps, for many sparse features.

With v = (1, v_1, ..., v_m), p = v P and q = v Q, Problem 3 is to minimise
alpha/2 |w|^2 + Phi(f) subject to f = X w + b, where

    Phi(f) = max over 0 <= v_k <= price of  sum_j p_j max(0, 1/2 + f_j) + q_j max(0, 1/2 - f_j)
                                            - v gamma.

The multipliers theta of f = X w + b lie in [-q, p]: they are the duals of the hinges, up - down.
For given theta the augmented Lagrangian, minimised over f and (with a proximal term) maximised
over v, is a convex function of (w, b) with a piecewise linear gradient, and its Newton systems
hold only the few rows of X whose f is on a kink. After Li, Sun and Toh (2018), "A highly
efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM Journal
on Optimization 28(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skbandit.constrained.solvers._interface import EXCESS, Pull, Solution, SolverError, certify
from skbandit.constrained.solvers.augmented_lagrangian._lagrangian import (
    AugmentedLagrangian,
    Point,
    Step,
    column_squares,
)
from skbandit.constrained.training._ramp import ConvexProblem

HARD_PRICE = 1e4
"""Cap of the multipliers of hard constraints; at the cap, they are taken for infinite."""

FIRST_SIGMA, WARM_SIGMA, FIRM = 3.0, 10.0, 10.0
"""sigma at first, and near a solution at most, in units of a row's mean cost; tau / n sigma."""

MAX_STEPS, MAX_TRIALS = 15, 8
"""Newton steps for one augmented Lagrangian, and trials along each, at most."""

FIRST_DAMPING, LAST_DAMPING = 1e-5, 1e3
"""Damping after short steps, in units of the Hessian's diagonal, were all rows on kinks."""

REACH = 5.0
"""How far a full step may move a score."""

PATIENCE = 10
"""Multiplier updates without progress before the best solution so far is taken."""


@dataclass(frozen=True)
class Duals:
    """What the next solve starts from: theta, the duals of the hinges, and sigma."""

    theta: np.ndarray
    sigma: float


@dataclass(frozen=True)
class AugmentedLagrangianSolver:
    """Newton-CG steps on an augmented Lagrangian, for many sparse features.

    Parameters
    ----------
    max_iter : int
        Multiplier updates for one convex problem at most, each of up to 15 Newton steps.
    name : str
        What `solver_` says.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.training._ramp import majorise
    >>> from skbandit.constrained.solvers.augmented_lagrangian import AugmentedLagrangianSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = majorise(X, P, Q, gamma=np.zeros(1), alpha=0.1, f=np.zeros(2))
    >>> AugmentedLagrangianSolver().solve(problem, np.inf, 1e-8).coef.round(3)
    array([0.5])
    """

    max_iter: int = 100
    name: str = "newton"

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
            Price of a unit of constraint violation; infinite for hard constraints.
        tol : float
            The gap aimed at; the solution tells the gap reached.
        warm : Solution, optional
            Of a neighbouring problem. One of this solver brings its duals of the hinges too.

        Returns
        -------
        Solution

        Raises
        ------
        SolverError
            If hard constraints are not met.
        """
        hard, cap = math.isinf(penalty), min(penalty, HARD_PRICE)
        w, b, v, duals = _start(problem, cap, warm)
        z, theta, sigma = problem.X @ w + b, duals.theta, duals.sigma
        margin, slope_tol = np.zeros_like(v), 1e-7
        best, rank, dual = None, (True, math.inf), -math.inf
        least, stalled, capped = math.inf, 0, 0
        for _ in range(self.max_iter):
            gamma = problem.gamma - np.append(0.0, margin)
            tau = FIRM * len(theta) * sigma
            lagrangian = AugmentedLagrangian(problem, gamma, theta, v, sigma, tau, cap, slope_tol)
            here, steps = _minimise(lagrangian, lagrangian.at(w, b, z, v), penalty, tol)
            w, b, z, v, theta = here.w, here.b, here.z, here.v, here.theta

            found = certify(problem, w, b, v, penalty, _pull(problem, v, theta), z)
            dual = max(dual, found.dual)
            missed = hard and found.excess > EXCESS
            if (missed, found.primal) < rank:
                best, rank = found, (missed, found.primal)
            error = rank[1] - dual
            stalled = 0 if error < 0.9 * least else stalled + 1
            least = min(least, error)
            capped = capped + 1 if missed and (v >= cap).any() else 0
            if (error <= tol and not rank[0]) or stalled > PATIENCE or capped > 2:
                break
            if missed and found.primal - dual <= tol:
                # f keeps the constraints, X w + b not yet: it is scattered around f's kinks
                violations = np.maximum(problem.rows(z)[1:], 0.0)
                affordable = 0.25 * tol / (1 + v.sum())
                margin = np.minimum(margin + 1.5 * violations, affordable)
            slope_tol = min(max(1e-3 * error, 1e-12), 1e-6)
            sigma *= 3.0 if steps <= 3 else 0.5 if steps >= MAX_STEPS else 1.5
        if best is None or rank[0]:
            reason = "they may contradict one another" if capped else f"the gap was {error:.1e}"
            raise SolverError(
                "The augmented Lagrangian found no point within the hard constraints: the last "
                f"one misses them by {found.excess:.1e}, at multipliers up to "
                f"{v.max(initial=0.0):.1e}; {reason}. solver_options={{'max_iter': ...}} allows "
                "for more multiplier updates."
            )
        return replace(best, dual=min(dual, best.primal), state=Duals(theta, sigma))


def _start(
    problem: ConvexProblem, cap: float, warm: Solution | None
) -> tuple[np.ndarray, float, np.ndarray, Duals]:
    """Start at w, b, v, and the duals of the hinges, as far as a solution brings them along."""
    n, d = problem.X.shape
    unit = max((problem.P.sum(axis=1) + problem.Q.sum(axis=1)).max(), 1e-12) / n
    first = Duals(np.zeros(n), FIRST_SIGMA * unit)
    if warm is None:
        return np.zeros(d), 0.0, np.zeros(len(problem.gamma) - 1), first
    w, b = warm.coef, warm.intercept if problem.fit_intercept else 0.0
    v = np.clip(warm.multipliers, 0.0, cap)
    if not isinstance(warm.state, Duals) or len(warm.state.theta) != n:
        return w, b, v, first
    p, q = problem.boxes(v)
    sigma = min(max(warm.state.sigma, unit), WARM_SIGMA * unit)
    return w, b, v, Duals(np.clip(warm.state.theta, -q, p), sigma)


def _minimise(
    lagrangian: AugmentedLagrangian, here: Point, penalty: float, tol: float
) -> tuple[Point, int]:
    """Take Newton steps until the gap owes more to theta than to (w, b); count them."""
    problem, damping = lagrangian.problem, 0.0
    X, alpha, n = problem.X, problem.alpha, len(here.z)
    all_kinked = lagrangian.sigma * np.append(column_squares(X), n)
    for count in range(MAX_STEPS):
        turned = X.T @ here.theta
        gradient = np.append(alpha * here.w + turned, problem.fit_intercept * here.theta.sum())
        rows = problem.rows(here.z)
        primal = rows[0] + 0.5 * alpha * here.w @ here.w
        price = penalty if math.isfinite(penalty) else here.v
        primal += np.sum(price * np.maximum(rows[1:], 0.0))
        dual = np.append(1.0, here.v) @ (here.costs - problem.gamma) - here.theta @ here.f
        gap = primal - dual + turned @ turned / (2 * alpha)  # if theta summed to 0
        own = gradient[:-1] @ gradient[:-1] / (2 * alpha)  # what an exact minimum would save
        lopsided = abs(gradient[-1])
        solved = gap <= tol or own <= 0.25 * (gap - own)
        if solved and lopsided <= 0.02 * max(gap, tol):
            return here, count

        while damping <= LAST_DAMPING:
            accuracy = 0.03 if count < 3 else 0.01
            step = lagrangian.newton(here, gradient, damping * all_kinked, accuracy)
            there, length = _line_search(lagrangian, here, step, gradient)
            if length < 0.05:
                damping = max(10 * damping, FIRST_DAMPING)
            elif length > 0.5:
                damping = damping / 10 if damping > FIRST_DAMPING else 0.0
            if length:
                break
        else:
            return here, count  # what is left to gain is rounding
        here = there
    return here, MAX_STEPS


def _line_search(
    lagrangian: AugmentedLagrangian, here: Point, step: Step, gradient: np.ndarray
) -> tuple[Point, float]:
    """Go along a step to where the derivative is small, by regula falsi; never upwards.

    Returns the lowest point seen and the length, which is 0 if none is lower.
    """
    alpha, cap = lagrangian.problem.alpha, lagrangian.cap
    dz = lagrangian.problem.X @ step.w + step.b
    slope, bend = gradient @ np.append(step.w, step.b), alpha * step.w @ step.w
    low, low_slope, high, high_slope = 0.0, slope, math.inf, 0.0
    t, best, best_t = min(1.0, REACH / max(np.abs(dz).max(), 1e-300)), here, 0.0
    for _ in range(MAX_TRIALS):
        v = np.clip(here.v + t * step.v, 0.0, cap)
        there = lagrangian.at(here.w + t * step.w, here.b + t * step.b, here.z + t * dz, v)
        steepness = there.theta @ dz + alpha * here.w @ step.w + t * bend
        if there.value < best.value:
            best, best_t = there, t
        if abs(steepness) <= 0.2 * abs(slope):
            break
        if steepness > 0:
            high, high_slope = t, steepness
        else:
            low, low_slope = t, steepness
        if math.isinf(high):
            t *= 2
        else:
            share = low_slope / (low_slope - high_slope)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return best, best_t


def _pull(problem: ConvexProblem, v: np.ndarray, theta: np.ndarray) -> Pull:
    """The best duals of the hinges with up - down = theta, balanced where that is for free.

    On a kink a dual may change at no cost in the first order: there theta is moved towards the
    end of its box until its sum is 0, if that suffices.
    """
    p, q = problem.boxes(v)
    pull = Pull.of(-theta, p, q)
    up, down = np.clip(pull.up, 0.0, p), np.clip(pull.down, 0.0, q)
    if problem.fit_intercept:
        excess = up.sum() - down.sum()
        up_end, down_end = (0.0, q) if excess > 0 else (p, 0.0)
        room_up = np.where((up > 0) & (up < p), up_end - up, 0.0)
        room_down = np.where((down > 0) & (down < q), down_end - down, 0.0)
        room = np.abs(room_up).sum() + np.abs(room_down).sum()
        share = min(1.0, abs(excess) / room) if room else 0.0
        up, down = up + share * room_up, down + share * room_down
    return Pull(up, down)
