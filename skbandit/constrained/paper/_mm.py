"""Algorithm 1 of Goh et al. (2016): majorization-minimization on the ramp loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained.paper._interface import Solution, Solver, SolverError
from skbandit.constrained.paper._problem import Iterate, Point, RampProblem
from skbandit.constrained.paper._tolerances import (
    AT_CAP,
    FEASIBLE,
    FINER,
    FIRST_PENALTY,
    LAST_PENALTY,
    LOOSEST,
    RAISE_PENALTY,
    SHRINKING,
    TOL,
)


@dataclass(frozen=True)
class Step:
    """Figures of one MM step, for progress reports.

    The duality gap is that of the convex problem, per unit of its penalty if that is above 1: in
    the penalized objective itself, violations count thousandfold, and so do gaps.
    """

    number: int
    objective: float
    violation: float
    gap: float
    seconds: float

    def __str__(self) -> str:
        violation = "none" if self.violation == -math.inf else f"{self.violation:+.2e}"
        return (
            f"step {self.number:2d}  objective {self.objective:.6f}  "
            f"worst violation {violation}  gap {self.gap:.1e}  {self.seconds:.2f} s"
        )


@dataclass(frozen=True)
class MMResult:
    """Result of a run of MM.

    Parameters
    ----------
    point : Point
        The classifier, with MM's own b.
    multipliers : ndarray of shape (m,)
        Of the last convex problem, for its normalized rows.
    path : tuple of float
        Ramp objective after each step.
    violation : float
        The largest normalized violation of a ramp constraint (-inf without constraints).
    converged : bool
        Whether it stopped because a step gained less than `tol`.
    gap : float
        Duality gap of the last convex problem.
    """

    point: Point
    multipliers: np.ndarray
    path: tuple[float, ...]
    violation: float
    converged: bool
    gap: float

    @property
    def feasible(self) -> bool:
        """True if every ramp constraint holds."""
        return self.violation <= FEASIBLE


@dataclass(frozen=True)
class ElasticPenalty:
    """Penalty per unit of violation, until MM has reached a feasible point.

    From a feasible iterate constraints are hard. From an infeasible one each unit of violation
    costs `value`, which also caps the multipliers. It rises until MM becomes feasible, to
    LAST_PENALTY or just above.

    Parameters
    ----------
    value : float, default=FIRST_PENALTY
        Objective per unit of normalized violation.
    """

    value: float = FIRST_PENALTY

    def at(self, iterate: Iterate) -> float:
        """Return the penalty for a step from an iterate: infinite (hard) if it is feasible."""
        return math.inf if iterate.feasible else self.value

    def may_rise(self, reached: Iterate) -> bool:
        """Return whether violations remain and the penalty is below its maximum."""
        return reached.worst > FEASIBLE and self.value < LAST_PENALTY

    def is_final(self, left: Iterate, reached: Iterate) -> bool:
        """Return whether the next step would solve the problem of the step `left` -> `reached`.

        It would not if the penalty may still rise, or if the step has just become feasible, as
        constraints are hard from then on.
        """
        if left.feasible:
            return True
        return reached.worst > FEASIBLE and not self.may_rise(reached)

    def after(
        self, left: Iterate, reached: Iterate, multipliers: np.ndarray, stalled: bool
    ) -> ElasticPenalty:
        """Raise the penalty after a step that stalled, or was capped without much progress.

        A multiplier at the cap would be larger under hard constraints; but while violations
        shrink quickly, the present penalty suffices.
        """
        if not self.may_rise(reached):
            return self
        capped = bool((multipliers >= AT_CAP * self.value).any())
        shrinks = reached.worst <= SHRINKING * left.worst
        if stalled or (capped and not shrinks):
            return replace(self, value=self.value * RAISE_PENALTY)
        return self


@dataclass(frozen=True)
class AccuracySchedule:
    """Duality gaps to which the subproblems are solved: rough at first, exact in the end.

    Parameters
    ----------
    gap : float
        For the next subproblem, in units of the objective.
    exact : float
        For the last subproblem of a converged run.
    """

    gap: float
    exact: float

    @classmethod
    def begin(
        cls, solver: Solver, objective_scale: float, tol: float, expected: float = math.inf
    ) -> AccuracySchedule:
        """Start at the solver's roughest gap, or finer if the first decrease is `expected`.

        The last gap is finer than the decrease that `tol` regards as none.
        """
        last_gap = max(solver.exact, min(solver.exact * max(1.0, tol / TOL) ** 2, LOOSEST))
        rough, exact = objective_scale * solver.rough, objective_scale * last_gap
        return cls(min(rough, max(FINER * expected, exact)), exact)

    @property
    def is_exact(self) -> bool:
        """True if the next subproblem is solved exactly enough to be the last."""
        return self.gap <= self.exact

    def at_last(self) -> AccuracySchedule:
        """Return the schedule for a last step."""
        return replace(self, gap=self.exact)

    def gap_under(self, penalty: float) -> float:
        """Return the gap in units of the penalized objective, whose costs grow with the penalty."""
        return self.gap if self.is_exact or math.isinf(penalty) else self.gap * penalty

    def after(self, decrease: float, stalled: bool) -> AccuracySchedule:
        """Adapt the gap to the decrease of a step; make it exact once a step stalls."""
        if stalled:
            return self.at_last()
        gap = min(self.gap, max(FINER * max(decrease, 0.0), self.exact))
        return replace(self, gap=gap)


def majorize_minimize(
    problem: RampProblem,
    start: Point,
    solver: Solver,
    *,
    max_iter: int,
    tol: float,
    expected: float = math.inf,
    gap: float | None = None,
    report: Callable[[Step], None] = lambda step: None,
) -> MMResult:
    """Minimize tight convex upper bounds in turn (Algorithm 1).

    From a feasible point every step stays feasible and never raises the objective. From an
    infeasible one the constraints are elastic (`ElasticPenalty`) until a feasible point is
    reached or no step gains any more. Subproblems are solved more and more exactly
    (`AccuracySchedule`); only an exact step ends a converged run. When starting near an
    optimum, pass the decrease expected of the first step. With a `gap`, in units of the objective,
    all are solved to it, or to the solver's best accuracy if that is worse.
    """
    current, penalty = problem.evaluate(start), ElasticPenalty()
    path: list[float] = []
    accuracy = AccuracySchedule.begin(solver, problem.objective_scale, tol, expected)
    if gap is not None:
        gap = problem.objective_scale * max(gap, solver.exact)
        accuracy = AccuracySchedule(gap, gap)
    multipliers = np.zeros(len(problem.rhs))
    solution = Solution(start.coef, start.intercept, multipliers, primal=expected, dual=0.0)
    converged = False
    for number in range(1, max_iter + 1):
        began = time.perf_counter()
        accuracy = accuracy.at_last() if number == max_iter or accuracy.is_exact else accuracy
        rho = penalty.at(current)
        solution = _minimize_bound(problem, current.point, solver, rho, accuracy, solution)
        proposed = problem.evaluate(Point(solution.coef, solution.intercept))
        decrease = current.penalized(rho) - proposed.penalized(rho)
        is_better = proposed.penalized(rho) <= current.penalized(rho)  # rounding can make it worse
        if math.isinf(rho):
            is_better = is_better and proposed.feasible
        left, current = current, proposed if is_better else current
        path.append(current.objective)
        seconds = time.perf_counter() - began
        reached = solution.gap / (max(1.0, rho) if math.isfinite(rho) else 1.0)
        report(Step(number, current.objective, current.worst, reached, seconds))
        stalled = decrease < tol
        converged = stalled and accuracy.is_exact and penalty.is_final(left, current)
        if converged:
            break
        penalty = penalty.after(left, current, solution.multipliers, stalled)
        accuracy = accuracy.after(decrease, stalled)
        solution = replace(solution, coef=current.point.coef, intercept=current.point.intercept)
    return MMResult(
        current.point, solution.multipliers, tuple(path), current.worst, converged, solution.gap
    )


def _minimize_bound(
    problem: RampProblem,
    point: Point,
    solver: Solver,
    penalty: float,
    accuracy: AccuracySchedule,
    warm: Solution,
) -> Solution:
    """Solve Problem 3 at a point."""
    convex, gap = problem.majorize_at(point), accuracy.gap_under(penalty)
    try:
        return solver.solve(convex, penalty, gap, warm)
    except SolverError:
        if math.isfinite(penalty):
            raise
        # feasible only within tolerance, or without interior: allow tiny violations
        return solver.solve(convex, LAST_PENALTY, gap, warm)
