"""Starting points of MM: constant predictions, or directions scaled and shifted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    MAX_DIRECTIONS,
    RELAXED_STEPS,
    ROUNDING_TOL,
    START_PENALTY,
    START_TIE,
)
from skbandit.constrained.rules._candidates import slacks
from skbandit.constrained.rules._curve import Curve
from skbandit.measure import RATE_TOL

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
        centered = costs - costs.mean()
        if np.ptp(costs) <= 1e-12 * np.abs(costs).max(initial=0.0):
            continue
        coef = -np.asarray(problem.X.T @ centered).ravel()
        spread = float(np.ptp(problem.X @ coef))
        if spread > 0:
            yield best_intercept(problem, coef / spread, DIRECTION_SCALES)


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
        RowForms,
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
        forms = RowForms(by_row.indptr, by_row.indices, by_row.data, at_zero)
        return minimize_along_b(forms, z, scale, START_PENALTY, enough)

    values = np.array([along_b(scale)[0] for scale in scales])
    best = int(np.flatnonzero(values <= values.min() + START_TIE)[0])
    _, b = along_b(scales[best], values[best] + START_TIE)  # the first of equally good ones
    return Point(scales[best] * coef, float(b))


@dataclass(frozen=True)
class Relaxations:
    """Amounts, in the units of the declared bounds, that make the training rows feasible.

    Parameters
    ----------
    alone : ndarray of shape (n_declared,)
        What suffices if only this bound is relaxed; inf if nothing was found.
    together : ndarray of shape (n_declared,)
        What suffices if all these are relaxed: the least found in total.
    """

    alone: np.ndarray
    together: np.ndarray


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
    return least_relaxations(
        (slacks(goals, curve.values(goals.forms)) for curve in curves), declared
    )


def least_relaxations(
    by_direction: Iterable[np.ndarray], declared: Sequence[np.ndarray]
) -> Relaxations:
    """Return the smallest relaxations over all thresholds along some directions.

    Parameters
    ----------
    by_direction : iterable of ndarray of shape (m, C)
        For each direction, the slack of every constraint at each of its thresholds.
    declared : sequence of ndarray of int
        For each declared bound the constraints that share it.
    """
    alone, together = np.full(len(declared), np.inf), np.full(len(declared), np.inf)
    for slack in by_direction:
        needed = np.maximum(-np.array([slack[rows].min(axis=0) for rows in declared]), 0.0)
        needed[needed <= RATE_TOL] = 0.0
        total = needed.sum(axis=0)
        best = int(np.argmin(total))
        if total[best] < together.sum():
            together = needed[:, best]
        for k, amount in enumerate(needed):
            others_hold = (np.delete(needed, k, axis=0) == 0).all(axis=0)
            alone[k] = min(alone[k], amount[others_hold].min(initial=np.inf))
    return Relaxations(alone, together)


def relaxation_advice(problem: RampProblem, closest: Point, goals: Goals, solver: Solver) -> str:
    """Say in words which bounds to relax, and how far; one or two sentences and a space.

    Empty if nothing was found, as where a rate is undefined whatever the threshold.
    """
    declared = [rows for _, rows in declared_bounds(goals)]
    return in_words(relaxations(problem, closest, declared, solver), goals)


def in_words(relaxation: Relaxations, goals: Goals, where: str = "On these rows") -> str:
    """Relaxations of the declared bounds in one or two sentences and a space, or nothing."""
    families = declared_bounds(goals)
    measured = goals.constraints.subset(goals.is_measured)
    alone, together = [], []
    for (label, rows), amount, shared in zip(
        families, relaxation.alone, relaxation.together, strict=True
    ):
        sign, bound = measured.sign[rows[0]], measured.bound[rows[0]]
        if 0 < amount < np.inf:
            alone.append(f"{label} to {_beyond(bound + sign * amount, sign)}")
        if 0 < shared < np.inf:
            together.append(f"{label} to {_beyond(bound + sign * shared, sign)}")
    said = f"{where} it is about enough to relax {', or '.join(alone)}. " if alone else ""
    if len(together) > 1:
        said += f"Relaxing several, it is about enough to move {' and '.join(together)}. "
    return said


def declared_bounds(goals: Goals) -> list[tuple[str, np.ndarray]]:
    """Labels of the declared bounds, and the measured constraints that share each.

    Constraints for groups are named by what was declared and, in brackets, the groups.
    """
    families: dict[tuple[Any, ...], list[int]] = {}
    measured = goals.constraints.subset(goals.is_measured)
    labels = [constraint.label for constraint in measured.constraints]
    for k, constraint in enumerate(measured.constraints):
        label = re.sub(r" \[[^\[\]]*\]$", "", labels[k])
        kinds = tuple(atom.kind for atom in constraint.rate.atoms)  # users may name others alike
        families.setdefault((label, constraint.sense, constraint.bound, kinds), []).append(k)
    return [
        (label if len(rows) > 1 else labels[rows[0]], np.array(rows))
        for (label, *_), rows in families.items()
    ]


def _beyond(bound: float, sign: float) -> str:
    """Return a bound in four decimals, rounded to the looser side."""
    scaled = sign * bound * 1e4
    return f"{sign * np.ceil(scaled - 1e-6) / 1e4:g}"
