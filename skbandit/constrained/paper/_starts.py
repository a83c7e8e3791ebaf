"""Starting points of MM: constant predictions, or directions scaled and shifted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from skbandit.constrained._goals import Goals
from skbandit.constrained.paper._interface import Solution, Solver, SolverError
from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point, RampProblem
from skbandit.constrained.paper._tolerances import (
    DIRECTION_SCALES,
    FIRST_PENALTY,
    FLAT,
    RELAXED_STEPS,
    ROUNDING_TOL,
    START_PENALTY,
    START_TIE,
)
from skbandit.constrained.rules._advice import Relaxations, families
from skbandit.constrained.rules._candidates import slacks
from skbandit.constrained.rules._curve import Curve

CHEAP = 0.01
"""Weight of the violations of a bound that may be relaxed, among those that may not."""

MAX_DECLARED = 6
"""Declared constraints that are tried alone; of more, those that are missed by most."""


def starts(
    problem: RampProblem,
    solver: Solver,
    unconstrained: Callable[[], Solution],
) -> Iterator[Point]:
    """Yield starting points of MM on demand, the most promising first.

    The lowest penalized ramp objective wins among constant predictions and the solution of the
    all-hinge problem without constraints, at several scales, each at its exactly best b.
    Next comes the solution of the all-hinge problem with elastic constraints. It hugs the
    constraints, and MM rarely escapes, e.g., the neighborhood of the deployed model under a
    churn bound; but it is needed where the objective points away from everything feasible.
    Last come constant predictions alone, which meet bounds on groups and on positives.
    `unconstrained` solves the problem without constraints.
    """
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    gap = problem.objective_scale * solver.rough
    candidates = [best_intercept(problem, zero.coef)]
    free = unconstrained()
    # some objectives, such as recall, are best alone if all predictions are the same
    if np.ptp(problem.X @ free.coef) > FLAT:
        yield lowest_candidate(problem, [*candidates, *scaled_and_shifted(problem, free)])
    elastic = solver.solve(problem.majorize_at(zero), FIRST_PENALTY, gap)
    yield lowest_candidate(problem, [*candidates, *scaled_and_shifted(problem, elastic)])
    yield candidates[0]


def unconstrained_solution(problem: RampProblem, solver: Solver) -> Solution:
    """Solve the all-hinge problem without constraints."""
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    gap = problem.objective_scale * solver.rough
    return solver.solve(problem.majorize_at(zero, constrained=False), np.inf, gap)


def unconstrained_direction(
    problem: RampProblem, solver: Solver, unconstrained: Callable[[], Solution]
) -> np.ndarray:
    """Return w of the solution without constraints.

    An objective that is best alone if all predictions are the same, such as recall, leaves no
    direction; then every constraint's costs are added, each at a multiplier of 1.
    """
    free = unconstrained()
    if np.ptp(problem.X @ free.coef) > FLAT or not len(problem.rhs):
        return free.coef
    multipliers = csr_array(np.full((1, len(problem.rhs)), problem.objective_scale))
    objective = problem.objective
    priced = replace(
        objective, numerator=csr_array(objective.numerator + multipliers @ problem.rows)
    )
    return unconstrained_solution(replace(problem, objective=priced), solver).coef


def scaled_and_shifted(problem: RampProblem, solution: Solution) -> list[Point]:
    """Return a solution as it is, and at its best scale with its best b."""
    point = Point(solution.coef, solution.intercept)
    return [point, best_intercept(problem, solution.coef, DIRECTION_SCALES)]


def lowest_candidate(problem: RampProblem, candidates: list[Point]) -> Point:
    """Return the candidate with the lowest penalized objective."""
    values = np.array([problem.evaluate(point).penalized(START_PENALTY) for point in candidates])
    return candidates[int(np.flatnonzero(values <= values.min() + START_TIE)[0])]


def best_intercept(
    problem: RampProblem, coef: np.ndarray, scales: tuple[float, ...] = (1.0,)
) -> Point:
    """Find the best b for the best of some scales of w, by the penalized objective.

    Along b every ramp rate is piecewise linear with kinks at -+1/2 - <w, x_j>, and a penalty
    adds kinks where a constraint becomes tight: the optimum is at one of these. (Only nearly
    so for a ratio as objective while a bound is missed: ratio plus penalty is curved between
    kinks.) The search is compiled, over running sums of the forms, so it restates
    `Iterate.penalized` on these.
    """
    if not problem.fit_intercept:
        return lowest_candidate(problem, [Point(scale * coef, 0.0) for scale in scales])
    from skbandit.constrained.paper._intercept_kernel import (  # numba: loaded on first use
        minimize_along_b,
    )

    objective, z = problem.objective, problem.scores(Point(coef, 0.0))
    descending = np.argsort(-z)  # the order of equal scores does not matter
    stacked = vstack([objective.numerator, objective.denominator, problem.rows])
    by_row = csr_array(csc_array(stacked).T)[descending]
    z = z[descending]
    constant = [objective.numerator_constant, objective.denominator_constant, -problem.rhs]

    def along_b(scale: float, enough: float = -np.inf) -> tuple[float, float]:
        at_zero = np.concatenate(constant)
        at_zero[0] += problem.regularizer(Point(scale * coef, 0.0))
        forms = by_row.indptr, by_row.indices, by_row.data
        return minimize_along_b(*forms, at_zero, z, scale, START_PENALTY, enough)

    values = np.array([along_b(scale)[0] for scale in scales])
    best = int(np.flatnonzero(values <= values.min() + START_TIE)[0])
    _, b = along_b(scales[best], values[best] + START_TIE)  # the first of equally good ones
    return Point(scales[best] * coef, float(b))


def relaxations(
    problem: RampProblem, closest: Point, declared: Sequence[np.ndarray], solver: Solver
) -> Relaxations:
    """Search for relaxations under which some linear rule meets all bounds on its hard rates.

    For each declared bound alone, MM minimizes violations of which this bound's count for little;
    the exact best threshold of every direction found on the way then tells what is missing.
    Together it is the least sum over all thresholds and directions (the elastic solution). All
    amounts are sufficient; smaller ones may be.

    Parameters
    ----------
    problem : RampProblem
        The problem without feasible rule.
    closest : Point
        Where training ended.
    declared : sequence of ndarray of int
        For each declared bound the constraints that share it, such as all pairs of groups.
    solver : Solver
        Of the convex problems.
    """
    free = unconstrained_solution(problem, solver)
    points = [closest, Point(free.coef, free.intercept)]
    missed = problem.violation((problem.scores(closest) > 0).astype(float))
    worst = [float(missed[rows].max()) for rows in declared]
    for k in np.argsort(worst)[::-1][:MAX_DECLARED]:
        weight = np.ones(len(problem.rhs))
        weight[declared[k]] = CHEAP
        lenient = replace(
            problem,
            rows=problem.rows.multiply(weight[:, None]).tocsr(),
            rhs=problem.rhs * weight,
        )
        try:
            ended = majorize_minimize(
                lenient, closest, solver, max_iter=RELAXED_STEPS, tol=ROUNDING_TOL
            )
        except SolverError:  # a solver that gives up adds no direction
            continue
        points.append(ended.point)
    goals = problem.goals
    curves = (Curve.of(problem.scores(point)) for point in points)
    return Relaxations.least(
        (slacks(goals, curve.values(goals.forms)) for curve in curves), declared
    )


def relaxation_advice(problem: RampProblem, closest: Point, goals: Goals, solver: Solver) -> str:
    """Say in words which bounds to relax, and how far; one or two sentences after a blank.

    Empty if nothing was found, as where a rate is undefined whatever the threshold.
    """
    declared = families(goals.measured.constraints.constraints)
    return relaxations(problem, closest, declared, solver).in_words(goals)
