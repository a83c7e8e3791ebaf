"""Directions trained without each fold: logistic, ramps along a path of alphas, a Lagrangian."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbandit.constrained._goals import Goals, MeasuredGoals, TrainingData
from skbandit.constrained._tolerances import NEAR
from skbandit.constrained.cross_fitting._directions import (
    Directions,
    LinearFit,
    column_scales,
    fit_logistic,
    lagrangian_direction,
)
from skbandit.constrained.solvers import ConvexProblem, Solution, Solver
from skbandit.constrained.training._mm import ElasticPenalty, MMResult, Step, majorise_minimise
from skbandit.constrained.training._problem import (
    MAX_ROWS,
    Point,
    RampProblem,
    RowSpan,
    compile_problem,
    ramp,
    row_span,
)
from skbandit.rates._columns import Data
from skbandit.utils._folds import stratified_folds

FOLDS, FEW_FOLDS, MANY_ROWS, ROWS_PER_COLUMN = 5, 3, 3000, 150
"""Folds; the few are for at least so many rows, and so many per column."""

FIT_ROWS, FIT_ROWS_PER_COLUMN = 8000, 50
"""Rows that each direction is fitted to at most, or so many per column; more hardly change it."""

ALPHAS = (0.1, 0.01)
"""The ramp's path for alpha="auto", in units of the sum of the objective's absolute costs."""

MM_STEPS, MM_TOL = 8, 3e-4
"""Majorisation-minimisation steps per alpha at most, and the decrease that ends them."""

FEW_COLUMNS = 1000
"""Most columns at which constraints are hard once the ramp is inside.

Of more, hard ones may take multipliers far above those of the end, and ten times as long.
"""

NEWTON_ROWS_PER_COLUMN = 5
"""Fewest rows per column at which rough fits are smoothed Newton's, whose matrix is d x d."""

PLAIN, RAMP, LAGRANGIAN = "logistic", "ramp", "lagrangian"
"""Names of directions."""


ROUGH_GAP = 1e-3
"""Duality gap of the ramp's convex subproblems, in units of the sum of absolute costs.

A direction is judged by rows that it has not seen, where smaller gaps cannot be told apart.
"""


@dataclass(frozen=True)
class RoughSolver:
    """A solver whose last gap is `ROUGH_GAP` or what it can do best, if that is more."""

    solver: Solver

    @property
    def name(self) -> str:
        """The solver's own name."""
        return self.solver.name

    @property
    def rough(self) -> float:
        """The gap to begin with."""
        return max(self.solver.rough, self.exact)

    @property
    def exact(self) -> float:
        """The gap to end with."""
        return max(self.solver.exact, ROUGH_GAP)

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Solve by the solver itself."""
        return self.solver.solve(problem, penalty, tol, warm)


@dataclass(frozen=True)
class CrossFitOptions:
    """How to train the directions and to choose among them.

    Parameters
    ----------
    solver : Solver
        Of the ramp's convex subproblems.
    alpha : float or None
        The ramp's alpha; None is for the path `ALPHAS`.
    fit_intercept : bool
        Whether there is a threshold to choose.
    level : float or None
        Probability with which the constraints shall hold; None is for `DEFAULT_LEVEL`, or less
        where that is out of reach or dearer than `DEAREST`.
    fold : ndarray of int, shape (n_samples,), or None
        Fold of each row of X; None is for `FOLDS` or `FEW_FOLDS` stratified ones.
    report : callable
        Called with each `Step`.
    """

    solver: Solver
    alpha: float | None
    fit_intercept: bool
    level: float | None
    fold: np.ndarray | None = None
    report: Callable[[Step], None] = lambda step: None


@dataclass(frozen=True)
class OneFold:
    """What was trained without one fold, in units of the columns.

    Parameters
    ----------
    plain : LinearFit
        Logistic regression, which no bound changes.
    ramps : dict of float to MMResult
        By alpha.
    lagrangian : ndarray of shape (d,) or None
        None if no prices made both answers best for some rows.
    """

    plain: LinearFit
    ramps: dict[float, MMResult]
    lagrangian: np.ndarray | None

    def directions(self, run: int = 0) -> dict[str, np.ndarray]:
        """All directions by name, the logistic one first."""
        found = {PLAIN: self.plain.coef}
        found |= {ramp_name(alpha, run): mm.point.coef for alpha, mm in self.ramps.items()}
        priced = {} if self.lagrangian is None else {LAGRANGIAN + _mark(run): self.lagrangian}
        return found | priced


@dataclass(frozen=True)
class TrainedFolds:
    """Directions trained without each fold.

    Parameters
    ----------
    columns : _Columns
        The rows that they are for, in the span of the rows if there are more columns.
    place : _Place
        Where scores and weights of `columns` belong.
    used : ndarray of bool, shape (n,)
        The rows that matter.
    fold : ndarray of int, shape (n,)
    runs : tuple of lists of OneFold
        All folds, under the constraints of each run of training.
    directions : Directions
        Of all runs, standardised.
    """

    columns: _Columns
    place: _Place
    used: np.ndarray
    fold: np.ndarray
    runs: tuple[list[OneFold], ...]
    directions: Directions

    @property
    def weight(self) -> np.ndarray:
        """1.0 for the rows that matter."""
        return self.used.astype(float)

    def plain_predictions(self) -> np.ndarray:
        """Predictions of all rows, 0 and 1, by the logistic regression without their fold."""
        positive = np.zeros(len(self.fold))
        for k, one in enumerate(self.runs[0]):
            rows = np.flatnonzero(self.fold == k)
            scores = self.columns.rows(rows) @ one.plain.coef + one.plain.intercept
            positive[rows] = np.asarray(scores).ravel() > 0
        return positive

    def plain_rule(self) -> Point:
        """The mean of the folds' logistic regressions, for the design's columns."""
        coefs, intercepts = [], []
        for one in self.runs[0]:
            coef = one.plain.coef / self.columns.scales
            weights, larger = self.place.weights(coef)
            if self.columns.centre is not None:
                larger += float(self.columns.centre @ coef)
            coefs.append(weights)
            intercepts.append(one.plain.intercept - larger)
        return Point(np.mean(coefs, axis=0), float(np.mean(intercepts)))

    @property
    def ramps(self) -> dict[str, tuple[float, list[MMResult]]]:
        """Alpha and results without each fold of every ramp, by the name of its direction."""
        return {
            ramp_name(alpha, run): (alpha, [one.ramps[alpha] for one in folds])
            for run, folds in enumerate(self.runs)
            for alpha in folds[0].ramps
        }


def train_folds(
    read: TrainingData,
    options: CrossFitOptions,
    warm: TrainedFolds | None = None,
) -> TrainedFolds:
    """Train directions without each fold.

    Parameters
    ----------
    read : TrainingData
    options : CrossFitOptions
    warm : TrainedFolds or None
        Trained on the same rows for the same objective and other bounds: columns, folds and all
        directions are kept, and new ones join them. Of no use if other rows count.

    Returns
    -------
    TrainedFolds
    """
    goals = read.goals
    used = rows_used(goals)
    if warm is not None and not np.array_equal(used, warm.used):
        warm = None
    if warm is None:
        columns, place = _read_columns(read.design, used.astype(float), options.fit_intercept)
        fold = assign_folds(goals.data, used, columns.design.shape[1], options.fold)
    else:
        columns, place, fold = warm.columns, warm.place, warm.fold
    n_columns = columns.design.shape[1]
    alphas, folds = _alphas(goals, options), []
    runs = () if warm is None else warm.runs
    for k in range(int(fold.max()) + 1):
        kept = rows_to_fit(fold, used, k, n_columns)
        part = read.declared.bind_part(goals, kept, read.factors)
        before = runs[0][k].plain if runs else None
        folds.append(_train_fold(columns, part, kept, read.factors, alphas, options, before))
    runs = (*runs, folds)
    found: list[Mapping[str, np.ndarray]] = [
        {
            name: coef / columns.scales
            for run, one in enumerate(of_fold)
            for name, coef in one.directions(run).items()
        }
        for of_fold in zip(*runs, strict=True)
    ]
    directions = Directions.standardised(
        columns.design, used.astype(float), fold, found, centred=options.fit_intercept
    )
    return TrainedFolds(columns, place, used, fold, runs, directions)


@dataclass(frozen=True)
class _Place:
    """From directions of `_Columns` to those of the design: the span of its rows, units, centre."""

    span: RowSpan | None
    scales: np.ndarray
    centre: np.ndarray | None

    def weights(self, coef: np.ndarray) -> tuple[np.ndarray, float]:
        """Weights of the design's columns, and what their scores are larger by."""
        if self.span is None:
            return coef, 0.0
        weights = self.span.weights(coef) / self.scales
        return weights, 0.0 if self.centre is None else float(weights @ self.centre)


def _read_columns(design: Any, weight: np.ndarray, centred: bool) -> tuple[_Columns, _Place]:
    """Columns in their units; of more columns than rows, the span of the rows instead."""
    scales = column_scales(design, weight, centred=centred)
    centre = (weight / weight.sum()) @ design if centred and not issparse(design) else None
    columns = _Columns(design, centre, scales)
    if not is_wide(design):
        return columns, _Place(None, scales, centre)
    span = row_span(columns.rows(np.arange(len(weight))))
    return _Columns(span.rows, None, np.ones(span.rows.shape[1])), _Place(span, scales, centre)


def is_wide(design: Any) -> bool:
    """Whether directions are trained in the span of the rows."""
    n, d = design.shape
    return n < d and n <= MAX_ROWS


def rows_used(goals: Goals) -> np.ndarray:
    """Mask of the rows that matter: those of X, and extra ones that count in some goal.

    Rows of weight 0 do not.
    """
    train = goals.data.train
    used = np.zeros(len(goals.data), dtype=bool)
    used[goals.measured.rows] = True
    used[: len(train)] = train.weight > 0
    return used


def assign_folds(
    data: Data, used: np.ndarray, n_columns: int, of_X: np.ndarray | None = None
) -> np.ndarray:
    """Assign rows to folds, those of each label in turn; rows that are not used take no turn.

    Parameters
    ----------
    data : Data
    used : ndarray of bool, shape (n,)
        The rows that matter.
    n_columns : int
        On which the number of folds depends.
    of_X : ndarray of int or None
        The folds of the rows of X, if these are given; only extra rows are assigned then.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If a class has one row only.
    """
    label, counted = data.train.label, used[: len(data.train)]
    counts = [int((counted & (label == one)).sum()) for one in (0, 1)]
    many = used.sum() >= max(MANY_ROWS, ROWS_PER_COLUMN * n_columns)
    n_folds = min(FEW_FOLDS if many else FOLDS, *counts) if of_X is None else int(of_X.max()) + 1
    if min(n_folds, *counts) < 2:
        raise ValueError(
            f"One class has {min(counts)} row of positive weight, and rows of both classes are "
            "left out of training in turn: pass more rows, or use RampClassifier, which leaves "
            "none out."
        )
    fold = np.zeros(len(data), dtype=int)
    for rows, place in data.parts("all"):
        inside = np.flatnonzero(used[place])
        fold[place][inside] = stratified_folds(rows.label[inside], n_folds)
    if of_X is not None:
        fold[: len(of_X)] = of_X
    return fold


def rows_to_fit(fold: np.ndarray, used: np.ndarray, k: int, n_columns: int) -> np.ndarray:
    """Mask of the rows outside of fold k, or of a random part where they are very many."""
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
    """Rows in units of their columns, made for those that are asked for only."""

    design: Any
    centre: np.ndarray | None
    scales: np.ndarray

    def rows(self, which: np.ndarray) -> Any:
        """Some rows: divided by the units, and centred if dense."""
        part = self.design[which]
        if issparse(part):
            return part.multiply(1.0 / self.scales[None, :]).tocsr()
        return (part if self.centre is None else part - self.centre) / self.scales


def _alphas(goals: Goals, options: CrossFitOptions) -> tuple[float, ...]:
    if options.alpha is not None:
        return (options.alpha,)
    return tuple(alpha * size_of(goals.measured) for alpha in ALPHAS)


def size_of(goals: MeasuredGoals) -> float:
    """The sum of the objective's absolute costs; 1 for a single rate."""
    return round(float(np.abs(goals.objective.numerator.data).sum()), 12) or 1.0


def ramp_name(alpha: float, run: int = 0) -> str:
    """The name of a ramp's direction."""
    return f"{RAMP} {alpha:.3g}{_mark(run)}"


def _mark(run: int) -> str:
    """What tells the directions of several runs of training apart."""
    return f" #{run + 1}" if run else ""


def _train_fold(
    columns: _Columns,
    part: Goals,
    kept: np.ndarray,
    factors: np.ndarray,
    alphas: tuple[float, ...],
    options: CrossFitOptions,
    plain: LinearFit | None,
) -> OneFold:
    """All directions without one fold; the plain one, which no bound changes, may be known."""
    plain = _train_plain(columns, part, kept, factors, options) if plain is None else plain
    measured = part.measured
    here = replace(measured, rows=np.arange(len(measured.rows)))
    X = columns.rows(measured.rows)
    problem = compile_problem(X, here, alphas[0], options.fit_intercept)
    ramps, point = _ramp_path(problem, plain, alphas, options)
    cost = _cost(problem, point)
    priced = lagrangian_direction(
        X, cost, problem.rows, problem.rhs, fit_intercept=options.fit_intercept, start=plain
    )
    return OneFold(plain, ramps, priced)


def _train_plain(
    columns: _Columns, part: Goals, kept: np.ndarray, factors: np.ndarray, options: CrossFitOptions
) -> LinearFit:
    """Logistic regression of the labels, without a fold."""
    train = part.data.train
    labelled = np.flatnonzero(kept[: len(train)] & (train.weight * factors > 0))
    weight = (train.weight * factors)[labelled]
    return fit_logistic(
        columns.rows(labelled),
        train.label[labelled] == 1,
        weight / weight.mean(),
        fit_intercept=options.fit_intercept,
    )


def _ramp_path(
    problem: RampProblem,
    plain: LinearFit,
    alphas: tuple[float, ...],
    options: CrossFitOptions,
) -> tuple[dict[float, MMResult], Point]:
    """The ramp at each alpha in turn, from the logistic classifier on; and where it ended.

    Under bounds that this misses, violations cost more and more until it is inside. A start that
    is inside already is nearly constant, and MM hardly leaves it in the steps that it has. Nor does
    it start from the ramp under another bound, which would keep it near that one's local optimum.
    """
    point = Point(plain.coef, plain.intercept)
    found, expected = {}, math.inf
    for alpha in alphas:
        found[alpha] = majorise_minimise(
            replace(problem, alpha=alpha),
            point,
            RoughSolver(options.solver),
            max_iter=MM_STEPS,
            tol=MM_TOL,
            expected=expected,
            penalty=ElasticPenalty(hard=problem.X.shape[1] <= FEW_COLUMNS),
            report=options.report,
        )
        point, expected = found[alpha].point, NEAR
    return found, point


def _cost(problem: RampProblem, point: Point) -> np.ndarray:
    """The objective's cost per positive prediction; of a ratio N/D, of N - rho D at a point."""
    cost = problem.objective.numerator[[0]].toarray().ravel()
    if problem.fractional:
        value = problem.objective_value(ramp(problem.scores(point)))
        if np.isfinite(value):
            cost = cost - value * problem.objective.denominator[[0]].toarray().ravel()
    return cost
