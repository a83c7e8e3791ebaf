"""Training with a margin: what counts are the rates of models on rows they have not seen.

A linear rule trained on rows promises too much on them, the more the more weights it has, and no
bound on that is of use. So every row is also answered by a model trained without its fold
(cross-fitting), with the same bounds, and the confidence limits are those of these answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.constrained._declared import Declared, Goals
from skbandit.constrained._threshold import best_threshold
from skbandit.constrained.training._problem import Point, RampProblem, what_counts
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._train import Trained
from skbandit.rates._binding import margins

FOLDS = 5

ROUNDS, SAME = 2, 0.1
"""Refits at most, for bounds that follow the rates; they end when all move by less than 10 %."""


@dataclass(frozen=True)
class CrossFitted:
    """A model of all rows, and answers of models that have not seen the row they answer.

    Parameters
    ----------
    trained : Trained
        On all rows; its threshold is set by the unseen rows.
    answers : ndarray of shape (n,)
        0 and 1, by the same threshold on the scores of rows not seen.
    expected : ndarray of shape (n,)
        Probabilities of a positive answer, of the randomised rules.
    """

    trained: Trained
    answers: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Part:
    """Goals on the rows outside of a fold, and the fold's rows."""

    goals: Goals
    held_out: np.ndarray


def leave_folds_out(declared: Declared, goals: Goals, factors: np.ndarray) -> list[Part]:
    """Leave each fold out in turn: the labels of each dataset are shared out evenly."""
    data = goals.data
    fold = _folds(data.train.label)
    if data.extra is not None:
        fold = np.append(fold, _folds(data.extra.label))
    return [
        Part(declared.bind_part(goals, fold != k, factors), np.flatnonzero(fold == k))
        for k in range(FOLDS)
    ]


def _folds(label: np.ndarray) -> np.ndarray:
    """A fold for every row: rows of one label go round in turns."""
    fold = np.empty(len(label), dtype=int)
    for code in np.unique(label):
        rows = np.flatnonzero(label == code)
        fold[rows] = np.arange(len(rows)) % FOLDS
    return fold


def train_with_margin(
    design: Any,
    goals: Goals,
    parts: list[Part],
    compiled: Callable[[Goals], RampProblem],
    run: Callable[[RampProblem, Point | None], Trained],
    warm: Point | None,
) -> CrossFitted:
    """Train on all rows and without each fold, and set the threshold by rows not seen.

    Bounds are moved inwards until the limits of the unseen rows' rates are inside those
    declared: by the width of the limits, and by how much better the rates of seen rows are.
    The best threshold within the limits, searched exactly, makes up for the rest.
    """
    measured = goals.constraints.n_rows > 0
    constraints = goals.constraints.subset(measured)
    problem, by = compiled(goals), np.zeros(len(constraints.bound))
    problems = [compiled(part.goals) for part in parts]
    whole, of_part = run(problem, warm), [run(one, None) for one in problems]
    for _ in range(ROUNDS if whole.mm.feasible else 0):
        seen = ramp(_scores(design, whole.point))
        unseen = ramp(_unseen(design, parts, [one.point for one in of_part]))
        optimism = constraints.sign * (constraints.values(unseen) - constraints.values(seen))
        needed = optimism + margins(goals.limits, constraints, unseen)
        # an empty denominator leaves it open: that is up to the threshold
        needed = np.maximum(np.nan_to_num(needed, posinf=0.0, neginf=0.0), 0.0)
        if (abs(needed - by) <= SAME * needed).all():
            break
        by = needed
        whole = run(problem.with_margins(by), whole.point)
        of_part = [
            run(one.with_margins(by[part.goals.constraints.n_rows[measured] > 0]), before.point)
            for one, part, before in zip(problems, parts, of_part, strict=True)
        ]
    expected = ramp(_unseen(design, parts, [one.point for one in of_part]))
    if whole.threshold is None:
        return CrossFitted(whole, (expected > 0.5).astype(float), expected)
    centre = _mean_row(design)
    scores = _unseen(design, parts, [_centred(one.point, centre) for one in of_part])
    objective, constraints, used = what_counts(goals.objective, goals.maximise, goals.constraints)
    limits = [limit.columns(used) for limit in goals.limits]
    offset = _centred(whole.point, centre).intercept
    near = offset + whole.threshold.cut
    threshold = best_threshold(scores[used], objective, constraints, near, limits)
    answers = (scores > threshold.cut).astype(float)
    threshold = replace(threshold, cut=threshold.cut - offset)
    return CrossFitted(replace(whole, threshold=threshold), answers, expected)


def _centred(point: Point, centre: np.ndarray) -> Point:
    """The direction with a score of 0 for the mean row.

    An intercept is fitted to the rows seen, where overfitting leaves few scores near it: how
    many unseen rows it divides off varies from model to model much more than this does.
    """
    return replace(point, intercept=-float(centre @ point.coef))


def _mean_row(design: Any) -> np.ndarray:
    return np.asarray(design.mean(axis=0)).ravel()


def _unseen(design: Any, parts: list[Part], points: list[Point]) -> np.ndarray:
    """Scores of every row by the model without its fold."""
    scores = np.empty(design.shape[0])
    for part, point in zip(parts, points, strict=True):
        scores[part.held_out] = _scores(design[part.held_out], point)
    return scores


def _scores(design: Any, point: Point) -> np.ndarray:
    return np.asarray(design @ point.coef).ravel() + point.intercept
