"""How to train, and what training returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbandit.constrained._threshold import Threshold
from skbandit.constrained.solvers import Solver
from skbandit.constrained.training._mm import MMResult, Step
from skbandit.constrained.training._problem import Point


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
