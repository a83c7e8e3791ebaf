"""Where MM starts: constant answers, or an unconstrained direction, scaled and shifted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from skbandit.constrained.solvers import Solution, Solver
from skbandit.constrained.training._mm import FIRST_PRICE, evaluate, worst
from skbandit.constrained.training._problem import FEASIBLE, Point, RampProblem

SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PRICE = 10.0
"""Of a unit of violation, when starts are compared."""

FLAT = 1e-3
"""A direction whose scores differ by less (of a ramp of width 1) tells no rows apart."""

TIE = 1e-10
"""Starts this close in value are the same: the first is taken, whatever the rounding."""


def starts(problem: RampProblem, solver: Solver, warm: Point | None = None) -> Iterator[Point]:
    """Points to start MM from, the best guess first; more are worked out only if asked for.

    A feasible warm start is the first. Then the lowest penalised ramp objective wins among
    constant answers and the solution of the all-hinge problem without constraints, at
    several scales, each at its exactly best b.
    Last comes the solution of the all-hinge problem with elastic constraints: it clings to
    them, and MM rarely leaves, say, the neighbourhood of a model not to be churned from; but
    where the objective points away from everything feasible, it is what is left.
    """
    if warm is not None:
        objective, violations = evaluate(problem, warm)
        if np.isfinite(objective) and worst(violations) <= FEASIBLE:
            yield warm
    zero, tol = Point(np.zeros(problem.X.shape[1]), 0.0), problem.unit * solver.rough
    candidates = [] if warm is None else [warm]
    candidates.append(best_intercept(problem, zero.coef))
    free = solver.solve(problem.majorise_at(zero, constrained=False), np.inf, tol)
    # Alone some objectives are best served by one answer for all, as recall is.
    if np.ptp(problem.X @ free.coef) > FLAT:
        yield lowest(problem, [*candidates, *turned(problem, free)])
    elastic = solver.solve(problem.majorise_at(zero), FIRST_PRICE, tol)
    yield lowest(problem, [*candidates, *turned(problem, elastic)])


def turned(problem: RampProblem, solution: Solution) -> list[Point]:
    """A solution as it is, and at its best scale with its best b."""
    found = Point(solution.coef, solution.intercept)
    return [found, best_intercept(problem, solution.coef, SCALES)]


def lowest(problem: RampProblem, candidates: list[Point]) -> Point:
    """The candidate with the lowest penalised objective."""
    values = np.array([penalised(problem, candidate) for candidate in candidates])
    return candidates[int(np.flatnonzero(values <= values.min() + TIE)[0])]


def penalised(problem: RampProblem, point: Point) -> float:
    """The ramp objective plus the priced violations."""
    objective, violations = evaluate(problem, point)
    return objective + PRICE * float(np.maximum(violations, 0.0).sum())


def best_intercept(
    problem: RampProblem, coef: np.ndarray, scales: tuple[float, ...] = (1.0,)
) -> Point:
    """The exactly best b for a given w, and the best of some scales of w, penalised objective.

    Along b every ramp rate is piecewise linear with kinks at -+1/2 - <w, x_j>, and a price
    adds kinks where a constraint becomes tight: the optimum is at one of these. (Only nearly
    so for a ratio as objective while a bound is missed: between kinks ratio plus price bends.)
    """
    if not problem.fit_intercept:
        return lowest(problem, [Point(scale * coef, 0.0) for scale in scales])
    from skbandit.constrained.training._intercept_kernel import (  # numba: loaded on first use
        Rates,
        walk,
    )

    objective, z = problem.objective, problem.scores(Point(coef, 0.0))
    descending = np.argsort(-z, kind="stable")
    forms = vstack([objective.numerator, objective.denominator, problem.rows])
    by_row = csr_array(csc_array(forms).T)[descending]
    z = z[descending]
    constant = [objective.numerator_constant, objective.denominator_constant, -problem.rhs]

    def along(scale: float, enough: float = -np.inf) -> tuple[float, float]:
        at_zero = np.concatenate(constant)
        at_zero[0] += problem.regulariser(Point(scale * coef, 0.0))
        rates = Rates(by_row.indptr, by_row.indices, by_row.data, at_zero)
        return walk(rates, z, scale, PRICE, enough)

    values = np.array([along(scale)[0] for scale in scales])
    best = int(np.flatnonzero(values <= values.min() + TIE)[0])
    _, b = along(scales[best], values[best] + TIE)  # the first as good
    return Point(scales[best] * coef, float(b))
