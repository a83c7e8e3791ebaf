"""Training to a confidence level: constraints are judged on rows that the models have not seen.

A linear rule does better on its training rows than on new ones, the more so the more weights it
has, and no known bound on this optimism is tight enough to be useful. So every row is also scored
by a model trained without its fold (cross-fitting) under the same bounds, and the confidence
limits are those of these out-of-fold predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.constrained._declared import Declared, Goals
from skbandit.constrained._threshold import Threshold, best_threshold
from skbandit.constrained._tolerances import FOLDS, REFITS, SETTLED
from skbandit.constrained.training._problem import Point, RampProblem, compile_problem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._train import Trained, TrainingOptions, train
from skbandit.rates._binding import margins
from skbandit.utils._folds import stratified_folds


@dataclass(frozen=True)
class CrossFitted:
    """A model of all rows, and out-of-fold predictions.

    Parameters
    ----------
    trained : Trained
        On all rows; its threshold is chosen on out-of-fold scores.
    predictions : ndarray of shape (n,)
        0 and 1: out-of-fold scores cut at the same threshold.
    """

    trained: Trained
    predictions: np.ndarray


@dataclass(frozen=True)
class Fold:
    """Goals on the rows outside of a fold, and the indices of its held-out rows."""

    goals: Goals
    held_out: np.ndarray


def leave_folds_out(declared: Declared, goals: Goals, factors: np.ndarray) -> list[Fold]:
    """Leave out each fold in turn; folds share the labels of each dataset evenly."""
    data = goals.data
    fold = stratified_folds(data.train.label, FOLDS)
    if data.extra is not None:
        fold = np.append(fold, stratified_folds(data.extra.label, FOLDS))
    return [
        Fold(declared.bind_part(goals, fold != k, factors), np.flatnonzero(fold == k))
        for k in range(FOLDS)
    ]


def train_with_margins(
    design: Any,
    goals: Goals,
    folds: list[Fold],
    problem: RampProblem,
    options: TrainingOptions,
    warm: Point | None = None,
) -> CrossFitted:
    """Train on all rows and without each fold; choose the threshold on out-of-fold scores.

    Each bound is moved inwards by a margin that covers the width of its confidence limit and
    the optimism of the training rows, and all models are trained again. The best threshold
    within the limits, found exactly, makes up for the rest.

    Parameters
    ----------
    design : ndarray or csr_array of shape (n, d)
        All rows.
    goals : Goals
        On all rows, with confidence limits.
    folds : list of Fold
        From `leave_folds_out`.
    problem : RampProblem
        `goals`, compiled.
    options : TrainingOptions
        Used for all models.
    warm : Point or None
        Start of the model of all rows.
    """
    margin = np.zeros(int(goals.is_measured.sum()))
    in_folds = [
        compile_problem(design, fold.goals.measured, problem.alpha, problem.fit_intercept)
        for fold in folds
    ]
    model = train(problem, options, warm)
    fold_models = [train(in_fold, options) for in_fold in in_folds]
    for _ in range(REFITS if model.mm.feasible else 0):
        needed = _needed_margin(goals, design, folds, model, fold_models)
        if (abs(needed - margin) <= SETTLED * needed).all():
            break
        margin = needed
        model = train(problem.with_margins(margin), options, model.point)
        fold_models = [
            train(
                in_fold.with_margins(margin[fold.goals.is_measured[goals.is_measured]]),
                options,
                fold_model.point,
            )
            for in_fold, fold, fold_model in zip(in_folds, folds, fold_models, strict=True)
        ]
    points = [one.point for one in fold_models]
    if model.threshold is None:
        return CrossFitted(model, (_out_of_fold(design, folds, points) > 0).astype(float))
    threshold, predictions = _out_of_fold_threshold(design, goals, folds, model, points)
    return CrossFitted(replace(model, threshold=threshold), predictions)


def _needed_margin(
    goals: Goals, design: Any, folds: list[Fold], model: Trained, fold_models: list[Trained]
) -> np.ndarray:
    """How far inside its bound each training rate must be: its optimism plus its limit's width.

    A rate with an empty denominator has no margin: it is left to the threshold.
    """
    constraints = goals.constraints.subset(goals.is_measured)
    in_sample = ramp(_scores(design, model.point))
    out_of_fold = ramp(_out_of_fold(design, folds, [one.point for one in fold_models]))
    optimism = constraints.sign * (constraints.values(out_of_fold) - constraints.values(in_sample))
    needed = optimism + margins(goals.limits, constraints, out_of_fold)
    return np.maximum(np.nan_to_num(needed, posinf=0.0, neginf=0.0), 0.0)


def _out_of_fold_threshold(
    design: Any, goals: Goals, folds: list[Fold], model: Trained, fold_points: list[Point]
) -> tuple[Threshold, np.ndarray]:
    """The best threshold within the limits on out-of-fold scores, and predictions by it.

    The model's own rates must be inside the bounds as well, if any threshold allows it. All
    models are centred first, so that one cut suits the scores of all; the threshold returned is
    a cut on <w, x> again, as the model's was.
    """
    centre = _mean_row(design)
    scores = _out_of_fold(design, folds, [_centred(point, centre) for point in fold_points])
    own = _centred(model.point, centre)
    shift = own.intercept  # centred score minus <w, x>
    assert model.threshold is not None
    measured = goals.measured
    threshold = best_threshold(
        scores[measured.rows],
        measured.objective,
        measured.constraints,
        preferred=shift + model.threshold.cut,
        limits=measured.limits,
        own_scores=_scores(design, own)[measured.rows],
    )
    predictions = (scores > threshold.cut).astype(float)
    return replace(threshold, cut=threshold.cut - shift), predictions


def _centred(point: Point, centre: np.ndarray) -> Point:
    """Replace the intercept so that the mean row has score 0.

    Intercepts are fitted to training rows; where overfitting leaves few scores near them, the
    number of unseen rows on either side varies much more from model to model than with this.
    """
    return replace(point, intercept=-float(centre @ point.coef))


def _mean_row(design: Any) -> np.ndarray:
    return np.asarray(design.mean(axis=0)).ravel()


def _out_of_fold(design: Any, folds: list[Fold], points: list[Point]) -> np.ndarray:
    """Scores of every row by the model trained without its fold."""
    scores = np.empty(design.shape[0])
    for fold, point in zip(folds, points, strict=True):
        scores[fold.held_out] = _scores(design[fold.held_out], point)
    return scores


def _scores(design: Any, point: Point) -> np.ndarray:
    return np.asarray(design @ point.coef).ravel() + point.intercept
