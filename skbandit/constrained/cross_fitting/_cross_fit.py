"""Cross-fitting: directions trained without each fold, judged on it; the best with its threshold.

Nothing that is chosen is chosen on rows that trained it. Directions are those of logistic
regression, of the ramp along a path of alphas, of a Lagrangian, and mixtures of the first with
each other: less or more than all of the step from one to the other, without another fit. The final
direction is the mean of the folds' ones. A fit on all rows would cost one more and would be a rule
that no row has judged; the mean is made of the rules that were judged, and varies less than each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbandit.constrained._declared import Declared, Goals, MeasuredGoals
from skbandit.constrained._tolerances import NEAR, SCALES
from skbandit.constrained.cross_fitting._choose import (
    DEFAULT_LEVEL,
    Choice,
    attainable_quantile,
    choose,
)
from skbandit.constrained.cross_fitting._directions import (
    Directions,
    Mixture,
    column_scales,
    standardise,
)
from skbandit.constrained.cross_fitting._lagrangian import lagrangian_direction
from skbandit.constrained.cross_fitting._logistic import LinearFit, fit_logistic
from skbandit.constrained.solvers import ConvexProblem, Solution, Solver
from skbandit.constrained.training._mm import MMResult, Step, majorise_minimise
from skbandit.constrained.training._problem import Point, RampProblem, compile_problem
from skbandit.constrained.training._ramp import ramp
from skbandit.constrained.training._row_span import MAX_ROWS, row_span
from skbandit.constrained.training._starts import best_intercept
from skbandit.rates._binding import Data, ScoreLimits, score_limits
from skbandit.utils._folds import stratified_folds

FOLDS, FEW_FOLDS, MANY_ROWS, ROWS_PER_COLUMN = 5, 3, 3000, 150
"""Folds; the few are for at least so many rows, and so many per column."""

FIT_ROWS, FIT_ROWS_PER_COLUMN = 8000, 50
"""Rows that each direction is fitted to at most, or so many per column; more hardly change it."""

ALPHAS = (0.1, 0.01)
"""The ramp's path for alpha="auto", in units of the sum of the objective's absolute costs."""

MM_STEPS, MM_TOL = 8, 3e-4
"""Majorisation-minimisation steps per alpha at most, and the decrease that ends them."""

SELECTION_ROWS = 100_000
"""Rows by which one of the mixtures is preselected where they are more than twice as many."""

SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Shares of a direction in its mixtures with the logistic one."""

DEAREST = 0.05
"""What the default level may cost at most, in units of the sum of the objective's absolute costs.

With few rows, limits of differences between groups are met by rules that hardly tell rows apart.
"""

PLAIN, LAGRANGIAN = "logistic", "lagrangian"


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
    max_iter : int
        Maximum number of MM steps per alpha, if below `MM_STEPS`.
    tol : float
        Decrease that ends them, if above `MM_TOL`.
    alpha : float or None
        The ramp's alpha; None is for the path `ALPHAS`.
    fit_intercept : bool
        Whether there is a threshold to choose.
    level : float or None
        Probability with which the constraints shall hold; None is for `DEFAULT_LEVEL`, or less
        where that is out of reach or dearer than `DEAREST`.
    report : callable
        Called with each `Step`.
    """

    solver: Solver
    max_iter: int
    tol: float
    alpha: float | None
    fit_intercept: bool
    level: float | None
    report: Callable[[Step], None] = lambda step: None


@dataclass(frozen=True)
class CrossFitted:
    """The chosen rule.

    Parameters
    ----------
    direction : Mixture
        Which direction was chosen.
    alpha : float
        The ramp's alpha: of the direction, or that whose ramp does best if it is not a ramp.
    point : Point
        w, and the b of the randomised rule.
    cut : float
        Threshold on <w, x>.
    choice : Choice
        Its out-of-fold figures.
    predictions : ndarray of shape (n,)
        Out-of-fold predictions of all rows, 0 and 1.
    path : tuple of float
        The regularised ramp objective after each MM step at alpha, mean over the folds.
    multipliers : ndarray of shape (m,)
        Shadow prices of the measured constraints at alpha, median over the folds.
    margins : ndarray of shape (m,) or None
        Slack that the level takes for each measured constraint; None without a level.
    rows_needed : float
        Rows that the level takes, about, if they were too few; inf if no number would do.
    """

    direction: Mixture
    alpha: float
    point: Point
    cut: float
    choice: Choice
    predictions: np.ndarray
    path: tuple[float, ...]
    multipliers: np.ndarray
    margins: np.ndarray | None
    rows_needed: float

    @property
    def direction_name(self) -> str:
        """The direction without its alpha."""
        return re.sub(r"(?<=ramp) \S+", "", str(self.direction))


@dataclass(frozen=True)
class _Ramp:
    """A fold's ramp at one alpha, and its shadow prices; nan for constraints without rows."""

    mm: MMResult
    multipliers: np.ndarray


def cross_fit(
    design: Any, goals: Goals, declared: Declared, factors: np.ndarray, options: CrossFitOptions
) -> CrossFitted:
    """Train directions without each fold; choose one, and its threshold, by the rows left out.

    Parameters
    ----------
    design : ndarray or csr_array of shape (n, d)
        All rows, extra ones below.
    goals : Goals
        On all rows.
    declared : Declared
        The goals without data.
    factors : ndarray
        Factors of the weights of the rows of X in the objective.
    options : CrossFitOptions

    Returns
    -------
    CrossFitted
    """
    weight, centred = rows_used(goals).astype(float), options.fit_intercept
    scales = column_scales(design, weight, centred=centred)
    centre = (weight / weight.sum()) @ design if centred and not issparse(design) else None
    columns = _Columns(design, centre, scales)
    if not is_wide(design):
        return _cross_fit(columns, goals, declared, factors, options)
    span = row_span(columns.rows(np.arange(len(weight))))
    as_they_are = _Columns(span.rows, None, np.ones(span.rows.shape[1]))
    found = _cross_fit(as_they_are, goals, declared, factors, options)
    coef = span.weights(found.point.coef) / scales
    moved = 0.0 if centre is None else float(coef @ centre)
    point = Point(coef, found.point.intercept - moved)
    return replace(found, point=point, cut=found.cut + moved)


def is_wide(design: Any) -> bool:
    """Whether directions are trained in the span of the rows."""
    n, d = design.shape
    return n < d and n <= MAX_ROWS


def _cross_fit(
    columns: _Columns,
    goals: Goals,
    declared: Declared,
    factors: np.ndarray,
    options: CrossFitOptions,
) -> CrossFitted:
    """`cross_fit` with given units of the columns."""
    design, scales, used = columns.design, columns.scales, rows_used(goals)
    weight = used.astype(float)
    fold = deal_folds(goals.data, used, design.shape[1])
    alphas = _alphas(goals, options)
    found: list[Mapping[str, np.ndarray]] = []
    ramps: dict[float, list[_Ramp]] = {alpha: [] for alpha in alphas}
    for k in range(int(fold.max()) + 1):
        kept = rows_to_fit(fold, used, k, design.shape[1])
        part = declared.bind_part(goals, kept, factors)
        of_part, of_fold = _train_directions(columns, part, kept, factors, alphas, options)
        found.append({name: coef / scales for name, coef in of_part.items()})
        was_measured = part.is_measured[goals.is_measured]
        for alpha in alphas:
            prices = np.full(len(was_measured), np.nan)
            prices[was_measured] = of_fold[alpha].multipliers
            ramps[alpha].append(replace(of_fold[alpha], multipliers=prices))
    directions = Directions.standardised(design, weight, fold, found, centred=options.fit_intercept)
    return _choose(design, weight, scales, goals, directions, ramps, declared, factors, options)


def rows_used(goals: Goals) -> np.ndarray:
    """Mask of the rows that matter: those of X, and extra ones that count in some goal.

    Rows of weight 0 do not.
    """
    train = goals.data.train
    used = np.zeros(len(goals.data), dtype=bool)
    used[goals.measured.rows] = True
    used[: len(train)] = train.weight > 0
    return used


def deal_folds(data: Data, used: np.ndarray, n_columns: int) -> np.ndarray:
    """Fold of each row: rows of each label in turn; those that are not used take no turn.

    Raises
    ------
    ValueError
        If a class has one row only.
    """
    label, counted = data.train.label, used[: len(data.train)]
    counts = [int((counted & (label == one)).sum()) for one in (0, 1)]
    many = used.sum() >= max(MANY_ROWS, ROWS_PER_COLUMN * n_columns)
    n_folds = min(FEW_FOLDS if many else FOLDS, *counts)
    if n_folds < 2:
        raise ValueError(
            f"One class has {min(counts)} row of positive weight, and threshold='cross_fit' "
            "leaves rows of both classes out in turn: pass more rows, or threshold='train'."
        )
    fold = np.zeros(len(data), dtype=int)
    for rows, place in data.parts("all"):
        inside = np.flatnonzero(used[place])
        fold[place][inside] = stratified_folds(rows.label[inside], n_folds)
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


def _ramp_name(alpha: float) -> str:
    return f"ramp {alpha:.3g}"


def _train_directions(
    columns: _Columns,
    part: Goals,
    kept: np.ndarray,
    factors: np.ndarray,
    alphas: tuple[float, ...],
    options: CrossFitOptions,
) -> tuple[dict[str, np.ndarray], dict[float, _Ramp]]:
    """All directions of one fold in units of the columns, the logistic one first."""
    train = part.data.train
    labelled = np.flatnonzero(kept[: len(train)] & (train.weight * factors > 0))
    weight = (train.weight * factors)[labelled]
    plain = fit_logistic(
        columns.rows(labelled),
        train.label[labelled] == 1,
        weight / weight.mean(),
        fit_intercept=options.fit_intercept,
    )
    found = {PLAIN: plain.coef}
    measured = part.measured
    here = replace(measured, rows=np.arange(len(measured.rows)))
    X = columns.rows(measured.rows)
    problem = compile_problem(X, here, alphas[0], options.fit_intercept)
    ramps, point = _ramp_path(problem, plain, alphas, options)
    found |= {_ramp_name(alpha): ramp_of.mm.point.coef for alpha, ramp_of in ramps.items()}
    cost = _cost(problem, point)
    priced = lagrangian_direction(
        X, cost, problem.rows, problem.rhs, fit_intercept=options.fit_intercept, start=plain
    )
    if priced is not None:
        found[LAGRANGIAN] = priced
    return found, ramps


def _ramp_path(
    problem: RampProblem, plain: LinearFit, alphas: tuple[float, ...], options: CrossFitOptions
) -> tuple[dict[float, _Ramp], Point]:
    """The ramp at each alpha in turn, from the logistic direction on; and where it ended."""
    point = best_intercept(problem, plain.coef, SCALES)
    found, expected = {}, math.inf
    for alpha in alphas:
        at = replace(problem, alpha=alpha)
        mm = majorise_minimise(
            at,
            point,
            RoughSolver(options.solver),
            max_iter=min(options.max_iter, MM_STEPS),
            tol=max(options.tol, MM_TOL),
            expected=expected,
            report=options.report,
        )
        point, expected = mm.point, NEAR
        prices = at.shadow_prices(mm.multipliers, ramp(at.scores(point)))
        found[alpha] = _Ramp(mm, prices)
    return found, point


def _cost(problem: RampProblem, point: Point) -> np.ndarray:
    """The objective's cost per positive prediction; of a ratio N/D, of N - rho D at a point."""
    cost = problem.objective.numerator[[0]].toarray().ravel()
    if problem.fractional:
        value = problem.objective_value(ramp(problem.scores(point)))
        if np.isfinite(value):
            cost = cost - value * problem.objective.denominator[[0]].toarray().ravel()
    return cost


def _choose(
    design: Any,
    weight: np.ndarray,
    scales: np.ndarray,
    goals: Goals,
    directions: Directions,
    ramps: dict[float, list[_Ramp]],
    declared: Declared,
    factors: np.ndarray,
    options: CrossFitOptions,
) -> CrossFitted:
    """The best mixture and its threshold, as a rule for new rows."""
    measured, centred = goals.measured, options.fit_intercept
    rows = measured.rows
    mixtures = {str(one): one for one in _mixtures(directions.names)}
    limits = score_limits(goals.constraints, goals.data).columns(rows)
    settings = _choice_settings(options, measured)
    if len(rows) > 2 * SELECTION_ROWS:
        names = _preselected(mixtures, directions, declared, goals, factors, settings)
        mixtures = {name: mixtures[name] for name in names}
    candidates = {name: directions.out_of_fold(one, rows) for name, one in mixtures.items()}
    final = {
        name: standardise(design, weight, directions.mean_direction(one), centred=centred)
        for name, one in mixtures.items()
    }
    own = {name: standardised[rows] for name, (_, _, standardised) in final.items()}
    choice = choose(candidates, measured, limits, plain=PLAIN, own=own, **settings)
    margins, needed = None, 0.0
    if options.level is not None:
        margins = limits.at(choice.positive, 0.0) - limits.at(choice.positive, choice.quantile)
    if options.level is not None and not choice.feasible:
        attained = attainable_quantile(candidates, measured, limits, choice.quantile)
        ratio = choice.quantile / attained if attained > 0 else math.inf
        needed = len(rows) * ratio**2
    chosen = mixtures[choice.name]
    alpha = _alpha_of(chosen, tuple(ramps), candidates, measured, limits)
    coef, mean, standardised = final[choice.name]
    size, b = _ramp_scale(
        standardised[rows], measured, alpha * float(coef @ (scales**2 * coef)), options
    )
    cut = choice.threshold.cut
    return CrossFitted(
        chosen,
        alpha,
        Point(size * coef, b - size * mean),
        size * (cut + mean),
        choice,
        (directions.out_of_fold(chosen) > cut).astype(float),
        _mean_path([one.mm.path for one in ramps[alpha]]),
        _median_prices(ramps[alpha]),
        margins,
        needed,
    )


def _choice_settings(options: CrossFitOptions, measured: MeasuredGoals) -> dict[str, Any]:
    """Arguments of `choose` that do not depend on the candidates."""
    return {
        "level": DEFAULT_LEVEL if options.level is None else options.level,
        "relax": options.level is None,
        "cuts": None if options.fit_intercept else np.zeros(1),
        "dearest": DEAREST * size_of(measured),
    }


def _preselected(
    mixtures: dict[str, Mixture],
    directions: Directions,
    declared: Declared,
    goals: Goals,
    factors: np.ndarray,
    settings: dict[str, Any],
) -> list[str]:
    """The plain direction, each ramp, and the mixture that is best on a sample of the rows."""
    kept = np.zeros(len(goals.data), dtype=bool)
    chosen = np.random.default_rng(0).choice(goals.measured.rows, SELECTION_ROWS, replace=False)
    kept[chosen] = True
    part = declared.bind_part(goals, kept, factors)
    measured = part.measured
    limits = score_limits(part.constraints, part.data).columns(measured.rows)
    candidates = {
        name: directions.out_of_fold(one, measured.rows) for name, one in mixtures.items()
    }
    best = choose(candidates, measured, limits, plain=PLAIN, **(settings | {"relax": True}))
    ramps = [name for name in directions.names if name not in (PLAIN, LAGRANGIAN)]
    return list(dict.fromkeys([PLAIN, best.name, *ramps]))


def _mixtures(names: tuple[str, ...]) -> list[Mixture]:
    """The plain direction, and all mixtures of it with each other one."""
    others = [name for name in names if name != PLAIN]
    return [Mixture(PLAIN, PLAIN), *(Mixture(PLAIN, one, t) for one in others for t in SHARES)]


def _alpha_of(
    chosen: Mixture,
    alphas: tuple[float, ...],
    candidates: Mapping[str, np.ndarray],
    measured: MeasuredGoals,
    limits: ScoreLimits,
) -> float:
    """The alpha of a ramp; for another direction, that of the ramp which does best."""
    by_name = {_ramp_name(alpha): alpha for alpha in alphas}
    if chosen.other in by_name:
        return by_name[chosen.other]
    if len(alphas) == 1:
        return alphas[0]
    ramps = {name: candidates[name] for name in by_name}
    return by_name[choose(ramps, measured, limits).name]


def _ramp_scale(
    scores: np.ndarray, measured: MeasuredGoals, alpha: float, options: CrossFitOptions
) -> tuple[float, float]:
    """Scale of a score and b with which its ramp does best on the training rows."""
    here = replace(measured, rows=np.arange(len(scores)))
    problem = compile_problem(scores[:, None], here, alpha, options.fit_intercept)
    scaled = best_intercept(problem, np.ones(1), SCALES)
    return float(scaled.coef[0]), scaled.intercept


def _mean_path(paths: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Mean of paths, each of which stays where it ended."""
    longest = max(map(len, paths))
    full = [np.append(path, np.full(longest - len(path), path[-1])) for path in paths]
    return tuple(np.mean(full, axis=0).tolist())


def _median_prices(ramps: list[_Ramp]) -> np.ndarray:
    """Median over the folds that measured a constraint; 0 if none did.

    Where a fold's ramp does not meet the bounds, its price is the penalty, which a mean would
    follow.
    """
    stacked = np.stack([one.multipliers for one in ramps])
    missing = ~np.isfinite(stacked).any(axis=0)
    return np.nanmedian(np.where(missing, 0.0, stacked), axis=0)
