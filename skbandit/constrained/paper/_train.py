"""Training from start to deployable threshold: arrays in, a linear classifier out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.paper._interface import Solver
from skbandit.constrained.paper._mm import MMResult, Step, majorize_minimize
from skbandit.constrained.paper._problem import Point, RampProblem, ramp
from skbandit.constrained.paper._starts import (
    best_intercept,
    starts,
    unconstrained_direction,
    unconstrained_solution,
)
from skbandit.constrained.paper._tolerances import (
    HARD_SCALES,
    ROUNDING_ROUNDS,
    ROUNDING_STEPS,
    ROUNDING_TOL,
    TIGHTEN,
    USELESS,
    WORTHWHILE,
)
from skbandit.constrained.rules._candidates import Rule, ThresholdSearch
from skbandit.measure import RATE_TOL


@dataclass(frozen=True)
class TrainingOptions:
    """Training options that do not depend on the problem.

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
    from_zero : bool
        Whether to start from w = 0, b = 0, as the paper does. Then the direction of the problem
        without constraints is not tried, and bounds move inwards only.
    """

    solver: Solver
    max_iter: int
    tol: float
    choose_threshold: bool
    report: Callable[[Step], None] = lambda step: None
    from_zero: bool = False


@dataclass(frozen=True)
class Trained:
    """A trained classifier.

    Parameters
    ----------
    mm : MMResult
        Of the first run: its path and whether it converged.
    point : Point
        w, and the b of the randomized rule.
    multipliers : ndarray of shape (m,)
        For the normalized rows.
    threshold : Rule or None
        For w alone (threshold on <w, x>); None if b was kept.
    free : ndarray of shape (d,) or None
        w without constraints, if it was trained.
    """

    mm: MMResult
    point: Point
    multipliers: np.ndarray
    threshold: Rule | None
    free: np.ndarray | None = None


def with_threshold(problem: RampProblem, trained: Trained, options: TrainingOptions) -> Trained:
    """Shift b to the best feasible threshold; move the ramp's bounds where hard rates differ.

    A feasible threshold can be useless, or not exist though the ramp problem is feasible; and
    where ramp rates bind, hard rates can be far inside. Either way each bound moves by the
    difference of ramp and hard rate, and MM continues from the current point: see `moved_bounds`.
    """
    best = replace(trained, threshold=_search(problem, trained.point))
    if not trained.mm.feasible:
        return best
    # what MM led to expect: the worse of its two rules at its own b
    rules = _hard(problem, trained.point), ramp(problem.scores(trained.point))
    promised = max(map(problem.objective_value, rules))
    current, multipliers = trained.point, trained.multipliers
    margin = np.zeros(len(problem.rhs))
    for _ in range(ROUNDING_ROUNDS):
        threshold = best.threshold
        assert threshold is not None
        serves = threshold.feasible and threshold.objective <= promised + USELESS
        violation = problem.violation(_hard(problem, current))
        # what the objective gains, at its prices, if hard rates use all their slack
        unused = 0.0 if options.from_zero else multipliers @ np.maximum(-violation, 0.0)
        if serves and not unused > WORTHWHILE:
            break
        missed = np.maximum(violation, 0.0)
        mm = majorize_minimize(
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
        for point in (current, randomized(problem, current.coef)):
            candidate = Trained(trained.mm, point, multipliers, _search(problem, point))
            if _is_better(problem, candidate, best):
                best, improved = candidate, True
            if problem.evaluate(current).feasible:
                break
        if serves and not improved:
            break
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


def randomized(problem: RampProblem, coef: np.ndarray) -> Point:
    """Scale a direction as little as makes ramp rates feasible: the randomized rule.

    The wider the range of scores, the nearer are the ramp's rates to hard ones. If none is
    feasible, that at the scale and b with the lowest penalized objective.
    """
    spread = float(np.ptp(problem.X @ coef))
    if not spread > 0:
        return Point(np.zeros_like(coef), 0.0)
    for scale in HARD_SCALES:
        point = best_intercept(problem, scale * coef / spread)
        if problem.evaluate(point).feasible:
            return point
    return best_intercept(problem, coef / spread, HARD_SCALES)


def _search(problem: RampProblem, point: Point) -> Rule:
    """Find the best threshold on <w, x>, among equals the nearest to the point's own."""
    z = problem.scores(replace(point, intercept=0.0))
    goals = MeasuredGoals(problem.objective, problem.goals, np.arange(len(z)))
    return ThresholdSearch.of(z, goals).best(preferred=-point.intercept)


def _hard(problem: RampProblem, point: Point) -> np.ndarray:
    return (problem.scores(point) > 0).astype(float)


def _is_better(problem: RampProblem, candidate: Trained, other: Trained) -> bool:
    """Return whether a candidate is better by more than rounding."""
    (grade, cost), (other_grade, other_cost) = _rank(problem, candidate), _rank(problem, other)
    return grade < other_grade or (grade == other_grade and cost < other_cost - RATE_TOL)


def _rank(problem: RampProblem, trained: Trained) -> tuple[int, float]:
    """Rank feasible thresholds first, by objective; then the others by their miss.

    A feasible threshold whose randomized rule is no longer feasible must be better by
    USELESS; among infeasible thresholds, a feasible randomized rule comes first.
    """
    threshold = trained.threshold
    assert threshold is not None
    holds = problem.evaluate(trained.point).feasible
    if threshold.feasible:
        return 0, threshold.objective + (0.0 if holds else USELESS)
    return 1 if holds else 2, -threshold.slack


def train(problem: RampProblem, options: TrainingOptions) -> Trained:
    """Run MM from a start and, if `choose_threshold`, choose the deterministic threshold.

    MM is local: if it ends where the constraints do not hold, or where it began (e.g. at the
    same prediction for all), it is run from the next start too.
    """
    best: MMResult | None = None
    unconstrained = cache(lambda: unconstrained_solution(problem, options.solver))
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    searched = starts(problem, options.solver, unconstrained)
    for start in [zero] if options.from_zero else searched:
        before = problem.evaluate(start)
        mm = majorize_minimize(
            problem,
            start,
            options.solver,
            max_iter=options.max_iter,
            tol=options.tol,
            report=options.report,
        )
        if best is None:
            best = mm
        elif best.feasible and mm.feasible:
            best = mm if mm.path[-1] < best.path[-1] else best
        elif mm.violation < best.violation:
            best = mm
        moved = not before.feasible or mm.path[-1] < before.objective - options.tol
        if best.feasible and moved:
            break
    assert best is not None  # there is always a start
    first = Trained(best, problem.without_noise(best.point), best.multipliers, None)
    if not options.choose_threshold:
        return first
    trained = with_threshold(problem, first, options)
    if options.from_zero:
        return trained
    # the unconstrained direction, its randomized rule at another scale and b, may be better
    free = unconstrained_direction(problem, options.solver, unconstrained)
    point = randomized(problem, free)
    other = replace(trained, point=point, threshold=_search(problem, point))
    return replace(other if _is_better(problem, other, trained) else trained, free=free)
