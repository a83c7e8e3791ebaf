"""Infeasible bounds: how far to relax each of them alone, and all of them together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained._declared import Goals
from skbandit.constrained._threshold import slacks_by_cut
from skbandit.constrained._tolerances import MET, RELAXED_STEPS, ROUNDING_TOL
from skbandit.constrained.solvers import Solver, SolverError
from skbandit.constrained.training._mm import majorise_minimise
from skbandit.constrained.training._problem import Point, RampProblem
from skbandit.constrained.training._starts import unconstrained_solution

CHEAP = 0.01
"""Weight of the violations of a bound that may be relaxed, among those that may not."""

MAX_DECLARED = 6
"""Declared constraints that are tried alone; of more, those that are missed by most."""


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

    For each declared bound alone, MM minimises violations of which this bound's count for
    little; the exact best cut of every direction found on the way then tells what is missing.
    Together it is the least sum over all cuts and directions (the elastic solution). All amounts
    are sufficient; smaller ones may be.

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
    found = [closest, Point(free.coef, free.intercept)]
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
            ended = majorise_minimise(
                lenient, closest, solver, max_iter=RELAXED_STEPS, tol=ROUNDING_TOL
            )
        except SolverError:  # a solver that gives up adds no direction
            continue
        found.append(ended.point)
    slacks = (slacks_by_cut(problem.scores(point), problem.goals) for point in found)
    return least_relaxations(slacks, declared)


def least_relaxations(slacks: Iterable[np.ndarray], declared: Sequence[np.ndarray]) -> Relaxations:
    """The smallest relaxations over all cuts along some directions.

    Parameters
    ----------
    slacks : iterable of ndarray of shape (m, C)
        For each direction, the slack of every constraint at each of its cuts.
    declared : sequence of ndarray of int
        For each declared bound the constraints that share it.
    """
    alone, together = np.full(len(declared), np.inf), np.full(len(declared), np.inf)
    for slack in slacks:
        needed = np.maximum(-np.array([slack[rows].min(axis=0) for rows in declared]), 0.0)
        needed[needed <= MET] = 0.0
        total = needed.sum(axis=0)
        best = int(np.argmin(total))
        if total[best] < together.sum():
            together = needed[:, best]
        for k, own in enumerate(needed):
            others_hold = (np.delete(needed, k, axis=0) == 0).all(axis=0)
            alone[k] = min(alone[k], own[others_hold].min(initial=np.inf))
    return Relaxations(alone, together)


def relaxation_advice(problem: RampProblem, closest: Point, goals: Goals, solver: Solver) -> str:
    """Say in words which bounds to relax, and how far; one or two sentences and a space.

    Empty if nothing was found, as where a rate is undefined whatever the threshold.
    """
    declared = [rows for _, rows in declared_bounds(goals)]
    return in_words(relaxations(problem, closest, declared, solver), goals)


def in_words(found: Relaxations, goals: Goals, where: str = "On these rows") -> str:
    """Relaxations of the declared bounds in one or two sentences and a space, or nothing."""
    families = declared_bounds(goals)
    measured = goals.constraints.subset(goals.is_measured)
    alone, together = [], []
    for (label, rows), own, shared in zip(families, found.alone, found.together, strict=True):
        sign, bound = measured.sign[rows[0]], measured.bound[rows[0]]
        if 0 < own < np.inf:
            alone.append(f"{label} to {_beyond(bound + sign * own, sign)}")
        if 0 < shared < np.inf:
            together.append(f"{label} to {_beyond(bound + sign * shared, sign)}")
    said = f"{where} it suffices to relax {', or '.join(alone)}. " if alone else ""
    if len(together) > 1:
        said += f"Relaxing several, it suffices to move {' and '.join(together)}. "
    return said


def declared_bounds(goals: Goals) -> list[tuple[str, np.ndarray]]:
    """Labels of the declared bounds, and the measured constraints that share each.

    Constraints for groups are named by what was declared and, in brackets, the groups.
    """
    families: dict[tuple[str, str], list[int]] = {}
    measured = goals.constraints.subset(goals.is_measured)
    for k, one in enumerate(measured.constraints):
        label = re.sub(r" \[[^\[\]]*\]$", "", one.label)
        families.setdefault((label, str(one.sense)), []).append(k)
    return [(label, np.array(rows)) for (label, _), rows in families.items()]


def _beyond(bound: float, sign: float) -> str:
    """A bound in four decimals, rounded to the looser side."""
    scaled = sign * bound * 1e4
    return f"{sign * np.ceil(scaled - 1e-6) / 1e4:g}"
