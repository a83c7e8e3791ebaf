"""Training from start to deployable threshold: arrays in, a linear classifier out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skbandit.constrained._threshold import Threshold, best_threshold
from skbandit.constrained._tolerances import (
    HARD_SCALES,
    MET,
    NEAR,
    TIGHTEN,
    TIGHTEN_ROUNDS,
    TIGHTEN_STEPS,
    TIGHTEN_TOL,
    USELESS,
)
from skbandit.constrained.solvers import Solver
from skbandit.constrained.training._mm import MMResult, Step, majorise_minimise
from skbandit.constrained.training._perturbations import HardGoals, search_perturbations
from skbandit.constrained.training._problem import Point, RampProblem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._starts import (
    best_intercept,
    directions,
    starts,
    unconstrained_direction,
)


@dataclass(frozen=True)
class TrainingOptions:
    """How to train, whatever the problem.

    Parameters
    ----------
    solver : Solver
        Solver of the convex subproblems.
    max_iter : int
        Maximum number of MM steps.
    tol : float
        Decrease of the objective below which MM stops.
    choose_threshold : bool
        Whether to replace b by the best threshold on hard rates.
    report : callable
        Called with each `Step`.
    n_perturbations : int
        Random changes of w that are tried if a threshold is chosen; 0 is the paper's machine.
    seed : int
        Of these changes.
    """

    solver: Solver
    max_iter: int
    tol: float
    choose_threshold: bool
    report: Callable[[Step], None] = lambda step: None
    n_perturbations: int = 0
    seed: int = 0


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
        For w alone (cut on <w, x>); None if b was kept.
    """

    mm: MMResult
    point: Point
    multipliers: np.ndarray
    threshold: Threshold | None


def train(problem: RampProblem, options: TrainingOptions, warm: Point | None = None) -> Trained:
    """Run MM from a start and, if asked for, choose the deterministic threshold.

    MM is local: if it ends where the constraints do not hold, or where it began (e.g. at the
    same prediction for all), it is run from the next start too.
    """
    best: MMResult | None = None
    for start in starts(problem, options.solver, warm):
        before = problem.evaluate(start)
        mm = majorise_minimise(
            problem,
            start,
            options.solver,
            max_iter=options.max_iter,
            tol=options.tol,
            expected=NEAR if start is warm else math.inf,
            report=options.report,
        )
        if best is None or _ahead(mm, best):
            best = mm
        moved = not before.feasible or mm.path[-1] < before.objective - options.tol
        if best.feasible and (moved or start is warm):
            break
    assert best is not None  # there is always a start
    first = Trained(best, problem.without_noise(best.point), best.multipliers, None)
    if not options.choose_threshold:
        return first
    found = _with_threshold(problem, first, options)
    return perturbed(problem, found, options) if options.n_perturbations else found


def _ahead(one: MMResult, other: MMResult) -> bool:
    """Whether a run ended better: within the constraints, or with a lower objective there."""
    if one.feasible and other.feasible:
        return one.path[-1] < other.path[-1]
    return one.violation < other.violation


def _with_threshold(problem: RampProblem, trained: Trained, options: TrainingOptions) -> Trained:
    """Shift b to the best feasible threshold; if that costs too much, tighten and refit.

    A feasible threshold can be useless, or not exist though the ramp problem is feasible.
    Bounds are then tightened by the amount by which the hard rates miss them, and MM
    continues from the current point. If w stays 0, which is a rule of one probability for all
    rows, no threshold tells rows apart: simple directions are tried instead.
    """
    best = replace(trained, threshold=_search(problem, trained.point))
    if not trained.mm.feasible:
        return best
    promised = _promised(problem, trained.point)
    current, bounds = trained.point, problem
    for _ in range(TIGHTEN_ROUNDS):
        if _serves(best.threshold, promised):
            break
        missed = problem.violation(_hard(problem, current))
        bounds = bounds.tightened(np.maximum(missed, 0.0) + TIGHTEN)
        mm = majorise_minimise(
            bounds,
            current,
            options.solver,
            max_iter=TIGHTEN_STEPS,
            tol=max(options.tol, TIGHTEN_TOL),
            expected=TIGHTEN,
            report=options.report,
        )
        current = problem.without_noise(mm.point)
        found = Trained(trained.mm, current, mm.multipliers, _search(problem, current))
        if _better(problem, found, best):
            best = found
    if not best.point.coef.any() and not _serves(best.threshold, promised):
        for point in directions(problem, best.multipliers):
            found = replace(best, point=point, threshold=_search(problem, point))
            if _better(problem, found, best):
                best = found
    return best


def perturbed(problem: RampProblem, trained: Trained, options: TrainingOptions) -> Trained:
    """Try random changes of w; keep the best rule on hard rates.

    Starts are the trained direction and the one that no constraint holds back, so the result is
    at least as good as the best threshold of either. The randomised rule follows to the new
    direction, at its best scale and b.
    """
    free = unconstrained_direction(problem, options.solver)
    found = search_perturbations(
        problem.X,
        HardGoals(problem.objective, problem.goals),
        [trained.point.coef, free],
        options.n_perturbations,
        np.random.default_rng(options.seed),
    )
    best = trained
    for coef in (free, found):
        spread = float(np.ptp(problem.X @ coef))
        if spread > 0:
            point = best_intercept(problem, coef / spread, HARD_SCALES)
            other = replace(trained, point=point, threshold=_search(problem, point))
            if _better(problem, other, best):
                best = other
    return best


def _serves(threshold: Threshold | None, promised: float) -> bool:
    """Whether a threshold is feasible and about as good as promised."""
    assert threshold is not None
    return threshold.feasible and threshold.objective <= promised + USELESS


def _search(problem: RampProblem, point: Point) -> Threshold:
    """Find the best threshold on <w, x>, among equals the nearest to the point's own."""
    z = problem.scores(replace(point, intercept=0.0))
    return best_threshold(z, problem.objective, problem.goals, preferred=-point.intercept)


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
    """Rank feasible thresholds first, by objective; then the others by their miss.

    A feasible threshold whose randomised rule is no longer feasible must be better by
    USELESS; among infeasible thresholds, a feasible randomised rule comes first.
    """
    found = trained.threshold
    assert found is not None
    holds = problem.evaluate(trained.point).feasible
    if found.feasible:
        return 0, found.objective + (0.0 if holds else USELESS)
    return 1 if holds else 2, -found.slack
