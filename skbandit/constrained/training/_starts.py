"""Starting points of MM: constant predictions, or directions scaled and shifted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from skbandit.constrained._tolerances import (
    FIRST_PENALTY,
    FLAT,
    MAX_DIRECTIONS,
    SCALES,
    START_PENALTY,
    TIE,
)
from skbandit.constrained.solvers import Solution, Solver
from skbandit.constrained.training._problem import Point, RampProblem


def starts(
    problem: RampProblem,
    solver: Solver,
    warm: Point | None = None,
    unconstrained: Callable[[], Solution] | None = None,
) -> Iterator[Point]:
    """Yield points to start MM from, the most promising first; each is computed on demand.

    A feasible warm start is the first. Then the lowest penalised ramp objective wins among
    constant predictions and the solution of the all-hinge problem without constraints, at
    several scales, each at its exactly best b.
    Last comes the solution of the all-hinge problem with elastic constraints. It hugs the
    constraints, and MM rarely escapes, e.g., the neighbourhood of the deployed model under a
    churn bound; but it is needed where the objective points away from everything feasible.
    A caller who needs the solution without constraints too passes the function that solves for
    it.
    """
    if warm is not None:
        at_warm = problem.evaluate(warm)
        if np.isfinite(at_warm.objective) and at_warm.feasible:
            yield warm
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    gap = problem.objective_scale * solver.rough
    candidates = [] if warm is None else [warm]
    candidates.append(best_intercept(problem, zero.coef))
    free = unconstrained() if unconstrained else unconstrained_solution(problem, solver)
    # some objectives, such as recall, are best alone if all predictions are the same
    if np.ptp(problem.X @ free.coef) > FLAT:
        yield lowest(problem, [*candidates, *scaled_and_shifted(problem, free)])
    elastic = solver.solve(problem.majorise_at(zero), FIRST_PENALTY, gap)
    yield lowest(problem, [*candidates, *scaled_and_shifted(problem, elastic)])


def unconstrained_solution(problem: RampProblem, solver: Solver) -> Solution:
    """Solve the all-hinge problem without constraints."""
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    gap = problem.objective_scale * solver.rough
    return solver.solve(problem.majorise_at(zero, constrained=False), np.inf, gap)


def unconstrained_direction(
    problem: RampProblem, solver: Solver, unconstrained: Callable[[], Solution]
) -> np.ndarray:
    """Return w of the solution without constraints.

    An objective that is best alone if all predictions are the same, such as recall, leaves no
    direction; then every constraint's costs are added, each at a price of 1.
    """
    free = unconstrained()
    if np.ptp(problem.X @ free.coef) > FLAT or not len(problem.rhs):
        return free.coef
    prices = csr_array(np.full((1, len(problem.rhs)), problem.objective_scale))
    objective = problem.objective
    priced = replace(objective, numerator=csr_array(objective.numerator + prices @ problem.rows))
    return unconstrained_solution(replace(problem, objective=priced), solver).coef


def directions(problem: RampProblem, multipliers: np.ndarray) -> Iterator[Point]:
    """Yield directions against the costs of positive predictions, each at its best scale and b.

    One for the objective and one for each of some constraints, the largest multipliers first:
    the steepest descent from w = 0, with b moved along. Costs that are the same for all rows
    have no direction.
    """
    forms = [problem.objective.numerator[[0]]]
    leading = np.argsort(-multipliers, kind="stable")[:MAX_DIRECTIONS]
    forms += [problem.rows[[k]] for k in leading]
    for form in forms:
        costs = form.toarray().ravel()
        centred = costs - costs.mean()
        if np.ptp(costs) <= 1e-12 * np.abs(costs).max(initial=0.0):
            continue
        coef = -np.asarray(problem.X.T @ centred).ravel()
        spread = float(np.ptp(problem.X @ coef))
        if spread > 0:
            yield best_intercept(problem, coef / spread, SCALES)


def scaled_and_shifted(problem: RampProblem, solution: Solution) -> list[Point]:
    """Return a solution as it is, and at its best scale with its best b."""
    found = Point(solution.coef, solution.intercept)
    return [found, best_intercept(problem, solution.coef, SCALES)]


def lowest(problem: RampProblem, candidates: list[Point]) -> Point:
    """Return the candidate with the lowest penalised objective."""
    values = np.array([problem.evaluate(one).penalised(START_PENALTY) for one in candidates])
    return candidates[int(np.flatnonzero(values <= values.min() + TIE)[0])]


def best_intercept(
    problem: RampProblem, coef: np.ndarray, scales: tuple[float, ...] = (1.0,)
) -> Point:
    """Find the best b for the best of some scales of w, by the penalised objective.

    Along b every ramp rate is piecewise linear with kinks at -+1/2 - <w, x_j>, and a penalty
    adds kinks where a constraint becomes tight: the optimum is at one of these. (Only nearly
    so for a ratio as objective while a bound is missed: ratio plus penalty is curved between
    kinks.) The search is compiled, over running sums of the forms, so it restates
    `Iterate.penalised` on these.
    """
    if not problem.fit_intercept:
        return lowest(problem, [Point(scale * coef, 0.0) for scale in scales])
    from skbandit.constrained.training._intercept_kernel import (  # numba: loaded on first use
        RowForms,
        minimise_along_b,
    )

    objective, z = problem.objective, problem.scores(Point(coef, 0.0))
    descending = np.argsort(-z, kind="stable")
    stacked = vstack([objective.numerator, objective.denominator, problem.rows])
    by_row = csr_array(csc_array(stacked).T)[descending]
    z = z[descending]
    constant = [objective.numerator_constant, objective.denominator_constant, -problem.rhs]

    def along_b(scale: float, enough: float = -np.inf) -> tuple[float, float]:
        at_zero = np.concatenate(constant)
        at_zero[0] += problem.regulariser(Point(scale * coef, 0.0))
        forms = RowForms(by_row.indptr, by_row.indices, by_row.data, at_zero)
        return minimise_along_b(forms, z, scale, START_PENALTY, enough)

    values = np.array([along_b(scale)[0] for scale in scales])
    best = int(np.flatnonzero(values <= values.min() + TIE)[0])
    _, b = along_b(scales[best], values[best] + TIE)  # the first of equally good ones
    return Point(scales[best] * coef, float(b))
