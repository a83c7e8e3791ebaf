"""Where MM starts: constant answers, or an unconstrained direction, scaled and shifted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array, vstack

from skbandit.constrained._mm import FIRST_PRICE, evaluate, worst
from skbandit.constrained._problem import FEASIBLE, Point, RampProblem
from skbandit.constrained.solvers import Solution, Solver

SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PRICE = 10.0
"""Of a unit of violation, when starts are compared."""

FLAT = 1e-3
"""A direction whose scores differ by less (of a ramp of width 1) tells no rows apart."""

TIE = 1e-10
"""Starts this close in value are the same: the first is taken, whatever the rounding."""


def starts(
    problem: RampProblem, solver: Solver, tol: float, warm: Point | None = None
) -> Iterator[Point]:
    """Points to start MM from, the best guess first; more are worked out only if asked for.

    A feasible warm start is the first. Then the lowest penalised ramp objective wins among
    constant answers and the solution of the all-hinge problem without constraints, at
    several scales, each at its exactly best b (METHODS, feasible start; SOLVERS, starts).
    Last comes the solution of the all-hinge problem with elastic constraints: it clings to
    them, and MM rarely leaves, say, the neighbourhood of a model not to be churned from; but
    where the objective points away from everything feasible, it is what is left.
    """
    if warm is not None:
        objective, violations = evaluate(problem, warm)
        if np.isfinite(objective) and worst(violations) <= FEASIBLE:
            yield warm
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    candidates = [] if warm is None else [warm]
    candidates.append(best_intercept(problem, zero.coef))
    free = solver.solve(problem.majorise_at(zero, constrained=False), np.inf, tol)
    # Alone some objectives are best served by one answer for all, as recall is.
    if np.ptp(problem.X @ free.coef) > FLAT:
        yield lowest(problem, candidates + scaled(problem, free))
    elastic = solver.solve(problem.majorise_at(zero), FIRST_PRICE, tol)
    yield lowest(problem, candidates + scaled(problem, elastic))


def scaled(problem: RampProblem, solution: Solution) -> list[Point]:
    """A solution as it is, and at every scale with its best b."""
    shifted = [best_intercept(problem, scale * solution.coef) for scale in SCALES]
    return [Point(solution.coef, solution.intercept), *shifted]


def lowest(problem: RampProblem, candidates: list[Point]) -> Point:
    """The candidate with the lowest penalised objective."""
    values = np.array([penalised(problem, candidate) for candidate in candidates])
    return candidates[int(np.flatnonzero(values <= values.min() + TIE)[0])]


def penalised(problem: RampProblem, point: Point) -> float:
    """The ramp objective plus the priced violations."""
    objective, violations = evaluate(problem, point)
    return objective + PRICE * float(np.maximum(violations, 0.0).sum())


def best_intercept(problem: RampProblem, coef: np.ndarray) -> Point:
    """The exactly best b for a given w by the penalised ramp objective.

    Along b every ramp rate is piecewise linear with kinks at -+1/2 - <w, x_j>, and a price
    adds kinks where a constraint becomes tight: the optimum is at one of these. (Only nearly
    so for a ratio as objective while a bound is missed: between kinks ratio plus price bends.)
    """
    if not problem.fit_intercept:
        return Point(coef, 0.0)
    z = problem.scores(Point(coef, 0.0))
    objective = problem.objective
    stacked = csr_array(vstack([objective.numerator, objective.denominator, problem.rows]))
    knots, values = _along_intercept(stacked, z)
    at_knots = values(knots)
    violations = at_knots[2:] - problem.rhs[:, None]
    tight = [_crossings(knots, violation) for violation in violations]
    b = np.unique(np.concatenate([knots, *tight]))
    rows = values(b)
    above = rows[0] + objective.numerator_constant[0]
    above = above + problem.regulariser(Point(coef, 0.0))
    below = rows[1] + objective.denominator_constant[0]
    goal = np.full(len(b), np.inf)
    np.divide(above, below, out=goal, where=below > 1e-15)
    goal += PRICE * np.maximum(rows[2:] - problem.rhs[:, None], 0.0).sum(axis=0)
    return Point(coef, float(b[np.flatnonzero(goal <= goal.min() + TIE)[0]]))


def _along_intercept(
    rows: csr_array, z: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Sorted kinks, and the function that gives ``rows @ ramp(z + b)`` at any array of b."""
    kinks = np.concatenate([-0.5 - z, 0.5 - z])
    order = np.argsort(kinks, kind="stable")
    kinks = kinks[order]
    dense = rows.toarray()
    turns = np.hstack([dense, -dense])[:, order]
    slopes = np.hstack([np.zeros((len(dense), 1)), np.cumsum(turns, axis=1)])
    offsets = np.hstack([np.zeros((len(dense), 1)), np.cumsum(turns * kinks, axis=1)])

    def values(b: np.ndarray) -> np.ndarray:
        place = np.searchsorted(kinks, b, side="right")
        return slopes[:, place] * b - offsets[:, place]

    return np.unique(kinks), values


def _crossings(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where a function that is linear between knots changes its sign."""
    left, right = values[:-1], values[1:]
    at = np.flatnonzero(left * right < 0)
    share = left[at] / (left[at] - right[at])
    return knots[at] + share * (knots[at + 1] - knots[at])
