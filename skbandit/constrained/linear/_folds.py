"""Directions trained without each fold: logistic regressions and ramps of costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.fits._weighted_fits import Task
from skbandit.constrained.linear._directions import (
    FEW_COLUMNS,
    Directions,
    LinearFit,
    column_scales,
    fit_logistic,
)
from skbandit.constrained.paper._interface import Solver
from skbandit.constrained.paper._mm import Step, majorize_minimize
from skbandit.constrained.paper._problem import (
    MAX_ROWS,
    Point,
    RowSpan,
    ramp_of_costs,
    row_span,
)
from skbandit.constrained.paper._starts import best_intercept, lowest_candidate
from skbandit.constrained.paper._tolerances import DIRECTION_SCALES
from skbandit.constrained.rounds._multipliers import Multipliers, row_costs
from skbandit.constrained.rounds._rounds import Costs, Criterion, Round, rounds
from skbandit.constrained.rules._choose import objective_scale
from skbandit.measure import MISSING, Data
from skbandit.utils._folds import FEW_FOLDS, FOLDS, folds_of_classes, folds_of_extra

MANY_ROWS, ROWS_PER_COLUMN = 3000, 150
"""FEW_FOLDS if there are MANY_ROWS rows and ROWS_PER_COLUMN per column, or more; else FOLDS."""

FIT_ROWS, FIT_ROWS_PER_COLUMN = 8000, 50
"""Most rows to fit a direction: FIT_ROWS, or FIT_ROWS_PER_COLUMN per column if these are more."""

ALPHA = 0.1
"""The ramp's alpha if it is "auto", in units of the sum of the objective's absolute costs."""

MM_STEPS, MM_TOL = 15, 3e-4
"""Majorization-minimization steps per ramp at most, and the decrease that ends them."""

COST_SENSITIVE_FITS, MOST_COST_SENSITIVE_FITS = 3, 6
"""Logistic regressions per fold, one after the other, at multipliers of the constraints.

After COST_SENSITIVE_FITS, further ones follow while the objective may fall by `MUCH_TO_GAIN`.
"""

COST_SENSITIVE_TOL = 1e-3
"""Difference of objectives that ends these fits if no rule could be better by more."""

MUCH_TO_GAIN = 0.05
"""Decrease of the objective, in units of the sum of absolute costs, that is worth another fit."""

MULTIPLIER_ROWS = 10_000
"""Sample that sets multipliers if there are more than twice as many rows."""

PLAIN, RAMP, COST_SENSITIVE = "logistic", "ramp", "cost-sensitive"
"""Names of directions."""

ROUGH_GAP = 1e-2
"""Duality gap of the ramp's convex subproblems, in units of the sum of absolute costs.

Out-of-fold rates do not show smaller gaps.
"""


@dataclass(frozen=True)
class CrossFitOptions:
    """How to train the directions and to choose among them.

    Parameters
    ----------
    solver : Solver
        Of the ramp's convex subproblems.
    alpha : float or None
        The ramp's alpha; None is for `ALPHA` in units of the objective.
    fit_intercept : bool
        Whether there is a threshold to choose.
    level : float or None
        Probability that the constraints hold; None means the best of `LEVELS`.
    unit : ndarray of int, shape (n,)
        Unit of each row, extra ones included, which is on one side of every fold.
    cv : int, ndarray of int of shape (n_samples,), or None
        Number of folds, or the fold of each row of X; None is for `FOLDS` or `FEW_FOLDS`.
    report : callable
        Called with each `Step`.
    tell : callable
        Called with a line on each round of logistic regressions.
    """

    solver: Solver
    alpha: float | None
    fit_intercept: bool
    level: float | None
    unit: np.ndarray
    cv: int | np.ndarray | None = None
    report: Callable[[Step], None] = lambda step: None
    tell: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class TrainedFolds:
    """Directions trained without each fold.

    Parameters
    ----------
    columns : _Columns
        The rows that they are for, in the span of the rows if there are more columns.
    place : _DesignPlace
        Where scores and weights of `columns` belong.
    used : ndarray of bool, shape (n,)
        The rows that matter.
    fold : ndarray of int, shape (n,)
    plain : list of LinearFit
        Logistic regression without each fold, in units of the columns.
    directions : Directions
        All directions, standardized.
    """

    columns: _Columns
    place: _DesignPlace
    used: np.ndarray
    fold: np.ndarray
    plain: list[LinearFit]
    directions: Directions

    @property
    def weight(self) -> np.ndarray:
        """1.0 for the rows that matter."""
        return self.used.astype(float)

    def plain_predictions(self) -> np.ndarray:
        """Predict all rows, 0 and 1, by the logistic regression without their fold."""
        positive = np.zeros(len(self.fold))
        for k, fit in enumerate(self.plain):
            rows = np.flatnonzero(self.fold == k)
            scores = self.columns.rows(rows) @ fit.coef + fit.intercept
            positive[rows] = np.asarray(scores).ravel() > 0
        return positive

    def plain_rule(self) -> Point:
        """Return the mean of the folds' logistic regressions, for the design's columns."""
        coefs, intercepts = [], []
        for fit in self.plain:
            coef = fit.coef / self.columns.scales
            weights, larger = self.place.weights(coef)
            if self.columns.center is not None:
                larger += float(self.columns.center @ coef)
            coefs.append(weights)
            intercepts.append(fit.intercept - larger)
        return Point(np.mean(coefs, axis=0), float(np.mean(intercepts)))


def train_folds(design: Any, goals: Goals, options: CrossFitOptions) -> TrainedFolds:
    """Train directions without each fold.

    Parameters
    ----------
    design : ndarray or csr_array of shape (n, d)
        All rows.
    goals : Goals
    options : CrossFitOptions

    Returns
    -------
    TrainedFolds
    """
    used, intercept, train = rows_used(goals), options.fit_intercept, goals.data.train
    columns, place = _read_columns(design, used.astype(float), intercept)
    fold = assign_to_folds(goals.data, used, columns.design.shape[1], options)
    kept = [rows_to_fit(fold, used, k, columns.design.shape[1]) for k in range(fold.max() + 1)]
    task = Task.of_labels(train.label == 1, 2, train.weight * goals.factors)
    plain = _fit_weighted(columns, task, kept, intercept, [None] * len(kept))
    fits, costs = _cost_sensitive_fits(columns, goals, fold, kept, plain, options)
    alpha = alpha_of(goals.measured, options)
    ramps = [
        _train_ramp(columns, costs, alpha, rows, [start, *weighted[-1:]], options)
        for rows, start, weighted in zip(kept, plain, fits, strict=True)
    ]
    by_fold: list[Mapping[str, np.ndarray]] = [
        {name: fit.coef / columns.scales for name, fit in _by_name(*of_fold).items()}
        for of_fold in zip(plain, ramps, fits, strict=True)
    ]
    directions = Directions.standardized(
        columns.design, used.astype(float), fold, by_fold, centered=intercept
    )
    return TrainedFolds(columns, place, used, fold, plain, directions)


def _by_name(
    plain: LinearFit, ramp: LinearFit, cost_sensitive: Sequence[LinearFit]
) -> dict[str, LinearFit]:
    """Name the fits without one fold; the one that no constraint changes is the first."""
    numbered = enumerate(cost_sensitive, start=1)
    return {PLAIN: plain, RAMP: ramp} | {f"{COST_SENSITIVE} {k}": fit for k, fit in numbered}


@dataclass(frozen=True)
class _DesignPlace:
    """From directions of `_Columns` to those of the design: the span of its rows, units, center."""

    span: RowSpan | None
    scales: np.ndarray
    center: np.ndarray | None

    def weights(self, coef: np.ndarray) -> tuple[np.ndarray, float]:
        """Return weights of the design's columns, and what their scores are larger by."""
        if self.span is None:
            return coef, 0.0
        weights = self.span.weights(coef) / self.scales
        return weights, 0.0 if self.center is None else float(weights @ self.center)


def _read_columns(design: Any, weight: np.ndarray, centered: bool) -> tuple[_Columns, _DesignPlace]:
    """Return columns in their units; of more columns than rows, the span of the rows instead."""
    scales = column_scales(design, weight, centered=centered)
    center = (weight / weight.sum()) @ design if centered and not issparse(design) else None
    columns = _Columns(design, center, scales)
    n, d = design.shape
    if n >= d or n > MAX_ROWS:
        return columns, _DesignPlace(None, scales, center)
    span = row_span(columns.rows(np.arange(len(weight))))
    return _Columns(span.rows, None, np.ones(span.rows.shape[1])), _DesignPlace(
        span, scales, center
    )


def rows_used(goals: Goals) -> np.ndarray:
    """Mark the relevant rows: those of X, and extra ones that some rate depends on.

    Rows of weight 0 do not.
    """
    train = goals.data.train
    used = np.zeros(len(goals.data), dtype=bool)
    used[goals.measured.rows] = True
    used[: len(train)] = train.weight > 0
    return used


def assign_to_folds(
    data: Data, used: np.ndarray, n_columns: int, options: CrossFitOptions
) -> np.ndarray:
    """Assign rows to folds; those that are not used are in the first one.

    Parameters
    ----------
    data : Data
    used : ndarray of bool, shape (n,)
        The rows that matter.
    n_columns : int
        On which the number of folds depends.
    options : CrossFitOptions
        Its `cv` and `unit`.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If a class has one row or unit only.
    """
    n, label, unit = len(data.train), data.train.label, options.unit
    counted, fold = np.flatnonzero(used[:n]), np.full(n, -1)
    if isinstance(options.cv, np.ndarray):
        fold = options.cv
    else:
        counts = [len(np.unique(unit[counted[label[counted] == code]])) for code in (0, 1)]
        if min(counts) < 2:
            raise ValueError(
                f"One class has {min(counts)} row of positive weight, and rows of both classes "
                "are left out of training in turn: pass more rows, or use RampClassifier, which "
                "leaves none out. (Equal rows, and rows of a group, count once.)"
            )
        many = used.sum() >= max(MANY_ROWS, ROWS_PER_COLUMN * n_columns)
        default = min(FEW_FOLDS if many else FOLDS, *counts)
        n_folds = default if options.cv is None else options.cv
        fold[counted] = folds_of_classes(label[counted], n_folds, unit[counted])
    if data.extra is not None:
        stratum = data.extra.label - MISSING
        fold = np.append(fold, folds_of_extra(fold, int(fold.max()) + 1, stratum, unit))
    return np.maximum(fold, 0)


def rows_to_fit(fold: np.ndarray, used: np.ndarray, k: int, n_columns: int) -> np.ndarray:
    """Mark the rows outside of fold k, or of a random part where they are very many."""
    kept = (fold != k) & used
    most = max(FIT_ROWS, FIT_ROWS_PER_COLUMN * n_columns)
    if kept.sum() <= most:
        return kept
    rows = np.random.default_rng(k).choice(np.flatnonzero(kept), most, replace=False)
    kept = np.zeros(len(fold), dtype=bool)
    kept[rows] = True
    return kept


@dataclass(frozen=True)
class _Columns:
    """Rows in units of their columns, computed on demand."""

    design: Any
    center: np.ndarray | None
    scales: np.ndarray

    def rows(self, which: np.ndarray) -> Any:
        """Scale some rows: divide them by the units, and center dense ones."""
        part = self.design[which]
        if issparse(part):
            scaled = part.data * (1.0 / self.scales)[part.indices]
            return csr_array((scaled, part.indices, part.indptr), shape=part.shape)
        return (part if self.center is None else part - self.center) / self.scales


def alpha_of(goals: MeasuredGoals, options: CrossFitOptions) -> float:
    """Return the ramp's alpha."""
    return ALPHA * objective_scale(goals) if options.alpha is None else options.alpha


def _fit_weighted(
    columns: _Columns,
    task: Task,
    kept: list[np.ndarray],
    fit_intercept: bool,
    starts: Sequence[LinearFit | None],
) -> list[LinearFit]:
    """Logistic regressions without each fold; the mean weight does not count.

    Newton steps forget where they began, so that other folds begin where the first one ended.
    L-BFGS would remember a little of the rows that are left out.
    """
    forgets = columns.design.shape[1] <= FEW_COLUMNS
    fits: list[LinearFit] = []
    for among, start in zip(kept, starts, strict=True):
        rows, positive, weight = task.examples(np.flatnonzero(among[: len(task.gain)]))
        fit = fit_logistic(
            columns.rows(rows),
            positive,
            weight / weight.mean(),
            fit_intercept=fit_intercept,
            start=fits[0] if fits and forgets else start,
        )
        fits.append(fit)
    return fits


def _train_ramp(
    columns: _Columns,
    costs: np.ndarray,
    alpha: float,
    among: np.ndarray,
    fits: Sequence[LinearFit],
    options: CrossFitOptions,
) -> LinearFit:
    """Minimize the ramp of the rows' costs, without constraints (Problem 2 with these costs).

    Starts from the best of some fits, at its best scale and intercept.
    """
    rows = np.flatnonzero(among & (costs != 0))
    problem = ramp_of_costs(columns.rows(rows), costs[rows], alpha, options.fit_intercept)
    mm = majorize_minimize(
        problem,
        lowest_candidate(
            problem, [best_intercept(problem, fit.coef, DIRECTION_SCALES) for fit in fits]
        ),
        options.solver,
        max_iter=MM_STEPS,
        tol=MM_TOL,
        gap=ROUGH_GAP,
        report=options.report,
    )
    point = problem.without_noise(mm.point)
    return LinearFit(point.coef, point.intercept)


def _to_gain(criterion: Criterion, done: Sequence[Round]) -> float:
    """How much better a rule could be than the best threshold of all rounds; nan if unknown.

    `Round.gap` is less where constraints hold as N - tD <= 0 for rates of 0/0.
    """
    rules = [criterion.search(round_.scores)(None) for round_ in done]
    value = min((rule.objective for rule in rules if rule.feasible), default=np.inf)
    return value - (done[-1].value - done[-1].gap)


def _cost_sensitive_fits(
    columns: _Columns,
    goals: Goals,
    fold: np.ndarray,
    kept: list[np.ndarray],
    plain: list[LinearFit],
    options: CrossFitOptions,
) -> tuple[list[tuple[LinearFit, ...]], np.ndarray]:
    """Logistic regressions of each fold at multipliers that all folds share: see `rounds`.

    Also returns the costs of all rows at the last of these multipliers.
    """
    costs = Costs.of(goals, goals.data)
    if len(goals.measured.rows) > 2 * MULTIPLIER_ROWS:
        goals = goals.sample(MULTIPLIER_ROWS)
    judged, n = goals.measured.rows, len(fold)
    criterion = Criterion.of(goals, options.level, 0.0)
    fits = [plain]

    def score(task: Task | None) -> tuple[np.ndarray, None]:
        if task is not None:
            fits.append(_fit_weighted(columns, task, kept, options.fit_intercept, fits[-1]))
        scores = np.empty(n)
        for k, fit in enumerate(fits[-1]):
            tested = judged[fold[judged] == k]
            scores[tested] = np.asarray(columns.rows(tested) @ fit.coef).ravel() + fit.intercept
        return scores[judged], None

    def task_of(multipliers: Multipliers) -> Task | None:
        task = costs.task(multipliers)
        return task if all(task.has_both_labels(np.flatnonzero(rows)) for rows in kept) else None

    known_rules, limit = criterion.no_rules(), 1 + MOST_COST_SENSITIVE_FITS
    much = MUCH_TO_GAIN * objective_scale(goals.measured)
    done: list[Round] = []
    for round_ in rounds(
        criterion, known_rules, costs.plain, score, task_of, max_iter=limit, tol=COST_SENSITIVE_TOL
    ):
        options.tell(f"round {len(done)}: {round_}")
        done.append(round_)
        if len(done) > COST_SENSITIVE_FITS and not _to_gain(criterion, done) > much:
            break
    last = row_costs(costs.goals, done[-1].multipliers)
    return list(zip(*fits[1:], strict=True)) or [()] * len(plain), last
