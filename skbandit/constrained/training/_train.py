"""Training from start to deployable threshold: arrays in, a linear classifier out."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from skbandit.constrained._tolerances import NEAR
from skbandit.constrained.training._deterministic import perturbed, with_threshold
from skbandit.constrained.training._mm import MMResult, majorise_minimise
from skbandit.constrained.training._problem import Point, RampProblem
from skbandit.constrained.training._starts import (
    starts,
    unconstrained_direction,
    unconstrained_solution,
)
from skbandit.constrained.training._trained import Trained, TrainingOptions

__all__ = ["Trained", "TrainingOptions", "train"]


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
