"""From the randomised rule to a deterministic one: the threshold, and bounds moved for its sake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbandit.constrained._threshold import Threshold, best_threshold
from skbandit.constrained._tolerances import (
    HARD_SCALES,
    MET,
    ROUNDING_ROUNDS,
    ROUNDING_STEPS,
    ROUNDING_TOL,
    TIGHTEN,
    USELESS,
    WORTHWHILE,
)
from skbandit.constrained.training._mm import majorise_minimise
from skbandit.constrained.training._perturbations import HardGoals, search_perturbations
from skbandit.constrained.training._problem import Point, RampProblem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._starts import (
    best_intercept,
    directions,
)
from skbandit.constrained.training._trained import Trained, TrainingOptions


def with_threshold(problem: RampProblem, trained: Trained, options: TrainingOptions) -> Trained:
    """Shift b to the best feasible threshold; move the ramp's bounds where hard rates differ.

    A feasible threshold can be useless, or not exist though the ramp problem is feasible; and
    where ramp rates bind, hard rates can be far inside. Either way each bound moves by the
    difference of ramp and hard rate, and MM continues from the current point: see `moved_bounds`.
    If w stays 0, which is a rule of one probability for all rows, no threshold tells rows apart:
    simple directions are tried instead.
    """
    best = replace(trained, threshold=_search(problem, trained.point))
    if not trained.mm.feasible:
        return best
    promised = _promised(problem, trained.point)
    current, multipliers = trained.point, trained.multipliers
    margin = np.zeros(len(problem.rhs))
    for _ in range(ROUNDING_ROUNDS):
        serves = _serves(best.threshold, promised)
        relaxes = options.n_perturbations is not None
        if serves and not (relaxes and _unused(problem, current, multipliers) > WORTHWHILE):
            break
        missed = np.maximum(problem.violation(_hard(problem, current)), 0.0)
        mm = majorise_minimise(
            moved_bounds(problem, current, margin),
            current,
            options.solver,
            max_iter=ROUNDING_STEPS,
            tol=max(options.tol, ROUNDING_TOL),
            expected=TIGHTEN,
            report=options.report,
        )
        margin = margin + missed if mm.feasible else 0.5 * margin
        current, multipliers = problem.without_noise(mm.point), mm.multipliers
        improved = False
        for point in (current, randomised(problem, current.coef)):
            found = Trained(trained.mm, point, multipliers, _search(problem, point))
            if _better(problem, found, best):
                best, improved = found, True
            if problem.evaluate(current).feasible:
                break
        if serves and not improved:
            break
    if not best.point.coef.any() and not _serves(best.threshold, promised):
        for point in directions(problem, best.multipliers):
            found = replace(best, point=point, threshold=_search(problem, point))
            if _better(problem, found, best):
                best = found
    return best


def moved_bounds(problem: RampProblem, point: Point, margin: np.ndarray) -> RampProblem:
    """Bounds on ramp rates under which hard rates, differing as they do here, just meet theirs.

    Inwards where hard rates are worse than ramp rates, outwards where they are better. The
    bounds of the two sides of |a - b| <= c move together, so there is room between them but for
    `margin`, by which each bound moves inwards in addition.
    """
    hard, mean = _hard(problem, point), ramp(problem.scores(point))
    missed = problem.violation(hard)
    moves = problem.violation(mean) - missed - margin
    return replace(problem, rhs=problem.rhs + moves)


def _unused(problem: RampProblem, point: Point, multipliers: np.ndarray) -> float:
    """What the objective should gain, at its shadow prices, if hard rates used all their slack."""
    slack = np.maximum(-problem.violation(_hard(problem, point)), 0.0)
    return float(multipliers @ slack)


def perturbed(
    problem: RampProblem, trained: Trained, free: np.ndarray, n_perturbations: int, seed: int
) -> Trained:
    """Try the unconstrained direction and random changes of w; keep the best on hard rates.

    The result is at least as good, by hard rates, as the best threshold of the trained direction
    and of `free`. The randomised rule follows to a new direction, at another scale and b.
    """
    goals = HardGoals(problem.objective, problem.goals)
    starts, rng = [trained.point.coef, free], np.random.default_rng(seed)
    found = search_perturbations(problem.X, goals, starts, n_perturbations, rng)
    if found is starts[0]:
        return trained
    point = randomised(problem, found)
    other = replace(trained, point=point, threshold=_search(problem, point))
    return other if _better(problem, other, trained) else trained


def randomised(problem: RampProblem, coef: np.ndarray) -> Point:
    """The randomised rule in a direction: at the smallest scale at which ramp rates are feasible.

    The wider the range of scores, the nearer are the ramp's rates to hard ones. If none is
    feasible, that at the scale and b with the lowest penalised objective.
    """
    spread = float(np.ptp(problem.X @ coef))
    if not spread > 0:
        return Point(np.zeros_like(coef), 0.0)
    for scale in HARD_SCALES:
        point = best_intercept(problem, scale * coef / spread)
        if problem.evaluate(point).feasible:
            return point
    return best_intercept(problem, coef / spread, HARD_SCALES)


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
