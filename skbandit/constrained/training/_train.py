"""Training from start to deployable threshold: arrays in, a linear classifier out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained._tolerances import (
    ELITE,
    FIRST_CHANGE,
    HARD_SCALES,
    LAST_CHANGE,
    MET,
    NEAR,
    PERTURBATIONS,
    PERTURBED_ROWS,
    ROUNDING_ROUNDS,
    ROUNDING_STEPS,
    ROUNDING_TOL,
    ROUNDS,
    SAME_SCORE,
    TIGHTEN,
    USELESS,
    WORTHWHILE,
)
from skbandit.constrained.solvers import Solver
from skbandit.constrained.thresholds._candidates import Threshold, best_threshold
from skbandit.constrained.training._mm import MMResult, Step, majorise_minimise
from skbandit.constrained.training._problem import Point, RampProblem, ramp
from skbandit.constrained.training._starts import (
    best_intercept,
    directions,
    starts,
    unconstrained_direction,
    unconstrained_solution,
)
from skbandit.rates._forms import BoundConstraints, LinearFractionalForms


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
    n_perturbations : int or None
        Random changes of w that are tried if a threshold is chosen, beside the direction of the
        problem without constraints; None tries neither and is the paper's machine.
    seed : int
        Of these changes.
    from_zero : bool
        Whether to start from w = 0, b = 0, as the paper does, unless there is a warm start.
    """

    solver: Solver
    max_iter: int
    tol: float
    choose_threshold: bool
    report: Callable[[Step], None] = lambda step: None
    n_perturbations: int | None = None
    seed: int = 0
    from_zero: bool = False


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


# Random changes of w, each judged by its exactly best threshold on hard rates.
#
# MM ends at a local optimum of the ramp, which on few rows is far from the best linear rule: its
# hard objective is a step function of w with thousands of levels. There a search that only ever
# looks at hard rates pays, since the best cut of any direction costs one sort.


MISSED = 1e6
"""Rank of a direction without feasible cut, before its miss is added: behind any feasible one."""

BLOCK = 2**18
"""Running sums held in memory at a time, per form."""


def number_of_perturbations(asked: int | str, n_rows: int) -> int | None:
    """Perturbations to try on so many rows; "auto" is PERTURBATIONS, on few rows only.

    None, for 0, also leaves out the comparison with the unconstrained direction.
    """
    if not isinstance(asked, str):
        return int(asked) or None
    return PERTURBATIONS if n_rows <= PERTURBED_ROWS else 0


@dataclass(frozen=True)
class HardGoals:
    """Objective and constraints over n rows, as dense coefficients for many cuts at once.

    Parameters
    ----------
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    constraints : BoundConstraints
        K constraints over the same rows.
    """

    objective: LinearFractionalForms
    constraints: BoundConstraints

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """Rank S directions by the best cut of each; lower is better.

        Parameters
        ----------
        scores : ndarray of shape (S, n)
            Scores of the rows in each direction.

        Returns
        -------
        ndarray of shape (S,)
            The lowest hard objective among feasible cuts; if there are none, MISSED plus the
            smallest miss (inf if undefined at every cut).
        """
        size = max(1, BLOCK // scores.shape[1])
        parts = [self._ranks(scores[first : first + size]) for first in range(0, len(scores), size)]
        return np.concatenate([np.zeros(0), *parts])

    def _ranks(self, scores: np.ndarray) -> np.ndarray:
        order = np.argsort(-scores, axis=1, kind="stable")
        descending = np.take_along_axis(scores, order, axis=1)
        gap = -np.diff(descending, axis=1)
        same = gap <= SAME_SCORE * np.median(np.abs(scores), axis=1, keepdims=True)
        slack = np.full((len(scores), scores.shape[1] + 1), np.inf)
        bound, sign = self.constraints.bound, self.constraints.sign
        for k in range(len(bound)):
            values = _values(self.constraints.forms, k, order)
            one = sign[k] * (bound[k] - values)
            np.minimum(slack, np.where(np.isnan(one), -np.inf, one), out=slack)
        slack[:, 1:-1][same] = -np.inf  # no cut between equal scores
        cost = _values(self.objective, 0, order)
        cost[np.isnan(cost) | (slack < -MET)] = np.inf
        lowest = cost.min(axis=1)
        return np.where(np.isfinite(lowest), lowest, MISSED - slack.max(axis=1))


def _values(forms: LinearFractionalForms, k: int, order: np.ndarray) -> np.ndarray:
    """Values of expression k with the first 0, 1, ..., n rows in order positive; (S, n + 1)."""
    above = _running(forms.numerator[[k]], order) + forms.numerator_constant[k]
    below = np.full_like(above, forms.denominator_constant[k])
    if forms.denominator[[k]].nnz:
        below += _running(forms.denominator[[k]], order)
    rounding = order.shape[1] * np.finfo(float).eps * forms.denominator_constant[k]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > rounding, above / below, np.nan)


def _running(row: csr_array, order: np.ndarray) -> np.ndarray:
    sums = np.zeros((order.shape[0], order.shape[1] + 1))
    np.cumsum(row.toarray().ravel()[order], axis=1, out=sums[:, 1:])
    return sums


def search_perturbations(
    X: Any,
    goals: HardGoals,
    starts: Sequence[np.ndarray],
    n_perturbations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Search for the direction with the best hard objective at its best cut.

    In each of ROUNDS rounds the ELITE best directions so far are changed at random, by less from
    round to round: FIRST_CHANGE to LAST_CHANGE times their length, where each feature counts in
    units of its standard deviation. The best is never lost, so the result is at least as good
    as every start.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Rows.
    goals : HardGoals
        On the same rows.
    starts : sequence of ndarray of shape (d,)
        One or more directions; on equal ranks the first one stays.
    n_perturbations : int
        Directions tried in all.
    rng : Generator
        Source of the changes.

    Returns
    -------
    ndarray of shape (d,)
        The best start itself, or a changed direction that is better.
    """
    unit = _deviations(X)
    found = np.array([one * unit for one in starts], dtype=float)
    length = np.linalg.norm(found, axis=1)
    given = [np.asarray(one) for one, norm in zip(starts, length, strict=True) if norm > 0]
    found = found[length > 0] / length[length > 0, None]
    if not given:
        given, found = [np.eye(1, len(unit))[0] / unit], np.eye(1, len(unit))
    ranks = goals.ranks(_scores(X, np.array(given)))
    best_given, lowest = given[np.argmin(ranks)], ranks.min()
    sizes = np.geomspace(FIRST_CHANGE, LAST_CHANGE, ROUNDS)
    for size, batch in zip(sizes, np.array_split(np.arange(n_perturbations), ROUNDS), strict=True):
        first = np.argsort(ranks, kind="stable")[:ELITE]
        found, ranks = found[first], ranks[first]
        change = rng.normal(size=(len(batch), len(unit))) * rng.random((len(batch), 1))
        tried = found[rng.integers(len(found), size=len(batch))] + size * change
        tried /= np.maximum(np.linalg.norm(tried, axis=1, keepdims=True), 1e-300)
        found = np.vstack([found, tried])
        ranks = np.append(ranks, goals.ranks(_scores(X, tried / unit)))
    return found[np.argmin(ranks)] / unit if ranks.min() < lowest - MET else best_given


def _scores(X: Any, directions: np.ndarray) -> np.ndarray:
    """Scores of all rows, one row per direction."""
    return np.ascontiguousarray((X @ directions.T).T)


def _deviations(X: Any) -> np.ndarray:
    """Standard deviations of the columns; 1 for constant ones."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if issparse(X) else X * X
    variance = np.asarray(squares.mean(axis=0)).ravel() - mean**2
    rounding = 1e-12 * mean**2
    return np.sqrt(np.where(variance > rounding, variance, 1.0))


def train(problem: RampProblem, options: TrainingOptions, warm: Point | None = None) -> Trained:
    """Run MM from a start and, if asked for, choose the deterministic threshold.

    MM is local: if it ends where the constraints do not hold, or where it began (e.g. at the
    same prediction for all), it is run from the next start too.
    """
    best: MMResult | None = None
    unconstrained = cache(lambda: unconstrained_solution(problem, options.solver))
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    only_zero = options.from_zero and warm is None
    searched = starts(problem, options.solver, warm, unconstrained)
    for start in [zero] if only_zero else searched:
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
    found = with_threshold(problem, first, options)
    if options.n_perturbations is None:
        return found
    free = unconstrained_direction(problem, options.solver, unconstrained)
    return perturbed(problem, found, free, options.n_perturbations, options.seed)


def _ahead(one: MMResult, other: MMResult) -> bool:
    """Whether a run ended better: within the constraints, or with a lower objective there."""
    if one.feasible and other.feasible:
        return one.path[-1] < other.path[-1]
    return one.violation < other.violation
