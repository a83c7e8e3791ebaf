"""Smoothed Newton in SQP form: a convex problem at the cost of a few linear systems.

The hinges are smoothed (see `_kernels`), more and more sharply (`_schedule`). Each step
(`_newton_step`) solves the quadratic model of the Lagrangian under the linearised constraints: its
Hessian is the Gram matrix of the few rows on the curved part of a hinge, and its dual is a small
quadratic program over 0 <= v <= penalty, whose upper bound *is* the elastic mode. Once the hinges
are sharp, the centres of the smoothing move instead (proximal point method), and the gap goes to 0.
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
from skbandit.constrained.solvers._parameters import ParametersMixin
from skbandit.constrained.solvers._polish import polish
from skbandit.constrained.solvers._problem import ConvexProblem, canonical
from skbandit.constrained.solvers.augmented_lagrangian._solver import AugmentedLagrangianSolver
from skbandit.constrained.solvers.smoothed_newton._kernels import Centres
from skbandit.constrained.solvers.smoothed_newton._newton_step import Iterate, newton_step
from skbandit.constrained.solvers.smoothed_newton._schedule import SmoothingSchedule
from skbandit.constrained.solvers.smoothed_newton._smoothed_problem import (
    Derivatives,
    SmoothedProblem,
    Smoothing,
)
from skbandit.utils._threads import one_blas_thread

HARD_FIRST_PENALTY, HARD_LAST_PENALTY = 10.0, 1e4
"""Penalty per unit of violation of hard constraints, at first and at last.

Times 10 while a multiplier is at the penalty; constraints that need more than the last one
are left to the augmented Lagrangian.
"""

POLISH_GAP, POLISH_UNKNOWNS = 1e-5, 200
"""Largest gap (in units of the objective) and number of unknowns at which to try polishing."""

FALLBACK_GAP = 1e-4
"""Gap, as a share of the objective's scale, above which the augmented Lagrangian is tried."""

MAX_STALLED_CERTIFICATES = 8
"""Certificates without progress after which the best solution so far is returned."""


@dataclass
class SmoothedNewtonSolver(ParametersMixin):
    """Newton steps on smoothed hinges, for up to about a thousand features.

    If they get stuck, which takes nearly separable rows and a tiny lambda, the augmented
    Lagrangian takes over.

    Parameters
    ----------
    max_iter : int
        Maximum number of Newton steps per convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem, SmoothedNewtonSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> SmoothedNewtonSolver().solve(problem, np.inf, 1e-8).coef.round(6)
    array([0.5])
    """

    max_iter: int = 200

    name: ClassVar[str] = "smoothed_newton"
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
            Penalty per unit of constraint violation; infinite for hard constraints.
        tol : float
            Duality gap to reach; the solution reports the gap reached.
        warm : Solution, optional
            Solution to start from, with its multipliers.

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
            found = self._descend(problem, penalty, tol, warm)
            enough = max(tol, FALLBACK_GAP * problem.objective_scale)
            if found is not None and abs(found.gap) <= enough:
                return found
            try:
                second = AugmentedLagrangianSolver().solve(problem, penalty, tol, found)
            except SolverError:
                if found is None:
                    raise
                return found  # less exact than requested, but within the constraints
            return second if found is None or second.gap < found.gap else found

    def _descend(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None
    ) -> Solution | None:
        """Return the best point found within hard constraints, None if there is none."""
        hard = math.isinf(penalty)
        step_penalty = HARD_FIRST_PENALTY if hard else penalty
        smoothed = SmoothedProblem(problem)
        derivatives, here = Derivatives(smoothed), _start(smoothed, step_penalty, warm)
        warm_gap = None if warm is None else warm.gap
        schedule = SmoothingSchedule.start(tol, problem.objective_scale, warm_gap)
        uncentred = Centres(np.full(len(here.z), 0.5), np.full(len(here.z), 0.5))
        smoothing = Smoothing(schedule.eps, uncentred, schedule.lift)

        best, least_error, n_stalled, polish_below = None, math.inf, 0, POLISH_GAP
        for _ in range(self.max_iter):
            here, progress = newton_step(smoothed, derivatives, here, smoothing, step_penalty)
            if not schedule.is_finished(progress):
                continue
            if schedule.certifies:
                duals = smoothed.hinge_duals(here.z, here.v, smoothing)
                found = _certified(problem, here, penalty, duals)
                error = _error(found, hard)
                n_stalled = 0 if error < 0.9 * least_error else n_stalled + 1
                stalled = n_stalled > MAX_STALLED_CERTIFICATES
                promising = error < polish_below and _is_small(problem, here, duals)
                if error > tol and (promising or stalled):
                    polish_below = error / 10
                    found = polish(problem, found, duals, penalty)
                    error = _error(found, hard)
                if error < least_error:
                    best, least_error = found, error
                if least_error <= tol or stalled:
                    break
                if hard and not schedule.lifted and _is_too_low(step_penalty, here.v):
                    step_penalty *= 10
                schedule = schedule.stricter()
            centres = smoothing.centres
            if schedule.moves_centres:
                centres = smoothed.shares(here.z, smoothing)
            schedule = schedule.sharper()
            smoothing = Smoothing(schedule.eps, centres, schedule.lift)
        return best


def _start(smoothed: SmoothedProblem, penalty: float, warm: Solution | None) -> Iterate:
    """Start from a solution, or from zero."""
    u = np.zeros(smoothed.problem.X.shape[1] + 1)
    v = np.zeros(len(smoothed.problem.gamma) - 1)
    if warm is not None:
        u, v = np.append(warm.coef, warm.intercept), np.minimum(warm.multipliers, penalty)
    return Iterate(u, smoothed.scores(u), v)


def _certified(
    problem: ConvexProblem, here: Iterate, penalty: float, duals: HingeDuals
) -> Solution:
    """The iterate as a solution of the problem with true hinges."""
    w, b = here.u[:-1].copy(), here.u[-1]
    return certify(problem, w, b, here.v.copy(), penalty, duals, here.z)


def _is_too_low(penalty: float, v: np.ndarray) -> bool:
    """Whether a penalty holds multipliers down and may still rise."""
    return penalty < HARD_LAST_PENALTY and bool((v >= 0.99 * penalty).any())


def _is_small(problem: ConvexProblem, here: Iterate, duals: HingeDuals) -> bool:
    """Whether the active set gives a linear system of few unknowns."""
    p, q = problem.dual_upper_bounds(here.v)
    kinked = (duals.up > 0) & (duals.up < p)
    kinked |= (duals.down > 0) & (duals.down < q)
    return len(here.u) + len(here.v) + int(kinked.sum()) <= POLISH_UNKNOWNS


def _error(found: Solution, hard: bool) -> float:
    """The gap; infinite if hard constraints are missed."""
    return math.inf if hard and found.excess > MAX_EXCESS else abs(found.gap)
