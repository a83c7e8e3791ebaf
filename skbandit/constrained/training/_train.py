"""Training from start to deployable threshold; pure arrays in, a linear classifier out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained._threshold import Threshold, best_threshold
from skbandit.constrained.solvers import Solver
from skbandit.constrained.training._mm import (
    MMResult,
    Step,
    evaluate,
    majorise_minimise,
    worst,
)
from skbandit.constrained.training._problem import FEASIBLE, Point, RampProblem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._starts import starts
from skbandit.rates._binding import MET

USELESS = 0.005
"""A threshold whose objective is worse than MM promised by more than this is not taken."""

NEAR = 1e-3
"""What the first step from a warm start is expected to gain."""

TIGHTEN, TIGHTEN_ROUNDS, TIGHTEN_STEPS, TIGHTEN_TOL = 2e-4, 6, 5, 1e-4
"""By how much bounds are tightened more than they are missed, how often, and to what effort."""


@dataclass(frozen=True)
class Trained:
    """A trained classifier.

    Parameters
    ----------
    mm : MMResult
        Of the first run: its path and whether it converged.
    point : Point
        w, and the b of the randomised rule.
    multipliers : ndarray of shape (m,)
        For the normalised rows.
    threshold : Threshold or None
        For w alone (cut on <w, x>); None if b was left alone.
    """

    mm: MMResult
    point: Point
    multipliers: np.ndarray
    threshold: Threshold | None


def train(
    problem: RampProblem,
    solver: Solver,
    *,
    max_iter: int,
    tol: float,
    shift: bool,
    warm: Point | None = None,
    report: Callable[[Step], None] = lambda step: None,
) -> Trained:
    """Run MM from a start, and, if `shift`, choose the deterministic threshold.

    MM is local: if it ends where the constraints do not hold, or where it began, such as at
    one answer for all, it is run from the next start too.
    """
    best: MMResult | None = None
    for start in starts(problem, solver, warm):
        before, missed = evaluate(problem, start)
        mm = majorise_minimise(
            problem,
            start,
            solver,
            max_iter=max_iter,
            tol=tol,
            expected=NEAR if start is warm else math.inf,
            report=report,
        )
        if best is None or _ahead(mm, best):
            best = mm
        moved = worst(missed) > FEASIBLE or mm.path[-1] < before - tol
        if best.feasible and (moved or start is warm):
            break
    assert best is not None  # there is always a start
    first = Trained(best, best.point, best.multipliers, None)
    return _with_threshold(problem, first, solver, tol, report) if shift else first


def _ahead(one: MMResult, other: MMResult) -> bool:
    """Whether a run ended better: within the constraints, or with a lower objective there."""
    if one.feasible and other.feasible:
        return one.path[-1] < other.path[-1]
    return one.violation < other.violation


def _with_threshold(
    problem: RampProblem,
    trained: Trained,
    solver: Solver,
    tol: float,
    report: Callable[[Step], None],
) -> Trained:
    """Shift b to the best feasible threshold; if that costs too much, tighten and refit.

    A single threshold can be feasible and useless, or not exist though the ramp problem is
    feasible. Bounds are then tightened by what the hard rates miss, and MM goes on from
    where it is.
    """
    best = replace(trained, threshold=_search(problem, trained.point))
    if not trained.mm.feasible:
        return best
    promised = _promised(problem, trained.point)
    current, bounds = trained.point, problem
    for _ in range(TIGHTEN_ROUNDS):
        threshold = best.threshold
        assert threshold is not None
        if threshold.feasible and threshold.objective <= promised + USELESS:
            break
        missed = problem.violation(_hard(problem, current))
        bounds = bounds.tightened(np.maximum(missed, 0.0) + TIGHTEN)
        mm = majorise_minimise(
            bounds,
            current,
            solver,
            max_iter=TIGHTEN_STEPS,
            tol=max(tol, TIGHTEN_TOL),
            expected=TIGHTEN,
            report=report,
        )
        current = mm.point
        found = Trained(trained.mm, current, mm.multipliers, _search(problem, current))
        if _better(problem, found, best):
            best = found
    return best


def _search(problem: RampProblem, point: Point) -> Threshold:
    z = problem.scores(replace(point, intercept=0.0))
    return best_threshold(z, problem.objective, problem.goals, near=-point.intercept)


def _hard(problem: RampProblem, point: Point) -> np.ndarray:
    return (problem.scores(point) > 0).astype(float)


def _promised(problem: RampProblem, point: Point) -> float:
    """The objective that MM led to expect: the worse of its two rules at its own b."""
    return max(
        problem.objective_value(_hard(problem, point)),
        problem.objective_value(ramp(problem.scores(point))),
    )


def _better(problem: RampProblem, one: Trained, other: Trained) -> bool:
    """Whether one is better by more than rounding."""
    (grade, cost), (other_grade, other_cost) = _rank(problem, one), _rank(problem, other)
    return grade < other_grade or (grade == other_grade and cost < other_cost - MET)


def _rank(problem: RampProblem, trained: Trained) -> tuple[int, float]:
    """Feasible thresholds first, by objective; then by what is missed.

    A threshold that holds beside a randomised rule that no longer does must be the better
    one by a margin; among those that do not hold, the randomised rule decides.
    """
    found = trained.threshold
    assert found is not None
    holds = worst(evaluate(problem, trained.point)[1]) <= FEASIBLE
    if found.feasible:
        return 0, found.objective + (0.0 if holds else USELESS)
    return 1 if holds else 2, -found.slack
