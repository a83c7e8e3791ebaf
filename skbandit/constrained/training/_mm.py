"""Algorithm 1 of Goh et al. (2016): majorisation-minimisation on the ramp loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained.solvers import Solution, Solver, SolverError
from skbandit.constrained.training._problem import FEASIBLE, Point, RampProblem
from skbandit.constrained.training._ramp import ramp

FIRST_PRICE, RAISE_PRICE, LAST_PRICE = 2.0, 5.0, 1e4
"""Price of a unit of violation while there is no feasible point; it caps the multipliers."""

SHRINKING = 0.7
"""A price that brings the worst violation down to this share in one step is high enough."""

TOL, LOOSEST = 1e-5, 1e-5
"""Where `tol` is looser than TOL, the last step need not be as exact as the solver can."""

FINER = 2.0
"""A step is solved to this many times what the last one gained, within what a solver offers."""


@dataclass(frozen=True)
class Step:
    """What one MM step did, for progress reports."""

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
    """Where MM ended.

    Parameters
    ----------
    point : Point
        The classifier, with MM's own b.
    multipliers : ndarray of shape (m,)
        Of the last convex problem, for its normalised rows.
    path : tuple of float
        Ramp objective after each step.
    violation : float
        The largest normalised violation of a ramp constraint (-inf without constraints).
    converged : bool
        Whether it stopped because nothing was to be gained.
    gap : float
        How far from optimal the last convex problem was solved at most.
    """

    point: Point
    multipliers: np.ndarray
    path: tuple[float, ...]
    violation: float
    converged: bool
    gap: float

    @property
    def feasible(self) -> bool:
        """Whether every ramp constraint holds."""
        return self.violation <= FEASIBLE


def majorise_minimise(
    problem: RampProblem,
    start: Point,
    solver: Solver,
    *,
    max_iter: int,
    tol: float,
    expected: float = math.inf,
    report: Callable[[Step], None] = lambda step: None,
) -> MMResult:
    """Minimise tight convex upper bounds in turn (Algorithm 1).

    From a feasible point every step stays feasible and never raises the objective. From an
    infeasible one the constraints are elastic: violations are paid for, at a price that
    rises while it is too low, until the point is feasible or nothing is gained any more.

    Early steps are solved as roughly as `solver` offers, later ones the more exactly the less
    they gain, and only a step that was solved exactly is the last of a converged run. Near an
    optimum say what the first step is `expected` to gain.
    """
    point, path = start, []
    objective, violations = evaluate(problem, point)
    price = FIRST_PRICE
    rough, exact = problem.unit * solver.rough, problem.unit * _exactness(solver, tol)
    solution = guess(point, np.zeros(len(problem.rhs)), expected)
    accuracy = min(rough, max(FINER * expected, exact))
    converged = False
    for number in range(1, max_iter + 1):
        began = time.perf_counter()
        inside = worst(violations) <= FEASIBLE
        last = accuracy <= exact or number == max_iter
        accuracy = exact if last else accuracy
        # the price of violations is what an elastic problem is measured in
        wanted = accuracy if inside or last else accuracy * price
        solution = _solve(problem, point, solver, math.inf if inside else price, wanted, solution)
        proposed = Point(solution.coef, solution.intercept)
        new_objective, new_violations = evaluate(problem, proposed)
        before = _penalised(objective, violations, 0.0 if inside else price)
        after = _penalised(new_objective, new_violations, 0.0 if inside else price)
        stays = not inside or worst(new_violations) <= FEASIBLE
        missed = worst(violations)
        if after <= before and stays:  # otherwise what is left to gain is rounding
            point, objective, violations = proposed, new_objective, new_violations
        path.append(objective)
        report(
            Step(number, objective, worst(violations), solution.gap, time.perf_counter() - began)
        )
        too_cheap = worst(violations) > FEASIBLE and price < LAST_PRICE
        stays_out = inside or worst(violations) > FEASIBLE
        if before - after < tol and not too_cheap and stays_out and last:
            converged = True
            break
        capped = bool((solution.multipliers >= 0.999 * price).any())
        shrinks = worst(violations) <= SHRINKING * missed
        if too_cheap and (before - after < tol or (capped and not shrinks)):
            price *= RAISE_PRICE
        gain = max(before - after, 0.0)
        accuracy = exact if gain < tol else min(accuracy, max(FINER * gain, exact))
        solution = replace(solution, coef=point.coef, intercept=point.intercept)
    return MMResult(
        point, solution.multipliers, tuple(path), worst(violations), converged, solution.gap
    )


def _exactness(solver: Solver, tol: float) -> float:
    """The gap of a last step: finer than what `tol` counts as nothing gained."""
    return max(solver.exact, min(solver.exact * max(1.0, tol / TOL) ** 2, LOOSEST))


def evaluate(problem: RampProblem, point: Point) -> tuple[float, np.ndarray]:
    """The ramp objective with its regulariser, and the normalised violations."""
    positive = ramp(problem.scores(point))
    value = problem.objective_value(positive, problem.regulariser(point))
    return value, problem.violation(positive)


def worst(violations: np.ndarray) -> float:
    """The largest violation, -inf without constraints."""
    return float(violations.max(initial=-math.inf))


def _penalised(objective: float, violations: np.ndarray, price: float) -> float:
    return objective + price * float(np.maximum(violations, 0.0).sum())


def guess(point: Point, multipliers: np.ndarray, gap: float) -> Solution:
    """A point as something for a solver to start from, some gap away from the optimum."""
    return Solution(point.coef, point.intercept, multipliers, primal=gap, dual=0.0)


def _solve(
    problem: RampProblem,
    point: Point,
    solver: Solver,
    price: float,
    accuracy: float,
    warm: Solution,
) -> Solution:
    convex = problem.majorise_at(point)
    try:
        return solver.solve(convex, price, accuracy, warm)
    except SolverError:
        if math.isfinite(price):
            raise
        # Feasible only within tolerance, or with no interior: let the constraints give a hair.
        return solver.solve(convex, LAST_PRICE, accuracy, warm)
