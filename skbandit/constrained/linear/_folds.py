"""Linear fits without each fold: logistic regressions and ramps of costs, and their directions.

Each direction is standardized: its scores have mean 0 and deviation 1 over all rows, which takes
no labels. So the scores of different folds' models are on one scale, and one threshold suits all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.fits._weighted_fits import Task
from skbandit.constrained.linear._directions import (
    FEW_COLUMNS,
    SMALLEST_DEVIATION,
    column_scales,
    fit_logistic,
)
from skbandit.constrained.paper._interface import Solver
from skbandit.constrained.paper._mm import Step, majorize_minimize
from skbandit.constrained.paper._problem import Point, RowSpan, ramp_of_costs, row_span
from skbandit.constrained.paper._starts import best_intercept, lowest_candidate
from skbandit.constrained.paper._tolerances import DIRECTION_SCALES
from skbandit.constrained.rounds._multipliers import row_costs
from skbandit.constrained.rounds._rounds import Costs, Criterion, Round, ThresholdRounds, rounds

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

SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Shares of a direction in its mixtures with the logistic one."""

OPPOSITE = 1e-12
"""Variance of a mixture below which its parts cancel, but for rounding."""

PLAIN, RAMP, COST_SENSITIVE = "logistic", "ramp", "cost-sensitive"
"""Names of directions."""

ROUGH_GAP = 1e-2
"""Duality gap of the ramp's convex subproblems, in units of the sum of absolute costs.

Out-of-fold rates do not show smaller gaps.
"""


@dataclass(frozen=True)
class CrossFitOptions:
    """Options for training the directions and choosing among them.

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
    fold : ndarray of int, shape (n,)
        Fold of each row, extra ones included; -1 of those that are not used.
    report : callable
        Called with each `Step`.
    tell : callable
        Called with a line on each round of logistic regressions.
    """

    solver: Solver
    alpha: float | None
    fit_intercept: bool
    level: float | None
    fold: np.ndarray
    report: Callable[[Step], None] = lambda step: None
    tell: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class LinearFolds:
    """Linear fits without each fold, and what they say of the rows that they leave out.

    Rows are centered if dense, in units of their columns, and in their span if they are wide.

    Parameters
    ----------
    span : RowSpan
    center : ndarray of shape (d,) or None
        Subtracted from the rows of the design.
    scales : ndarray of shape (d,)
        Units of its columns.
    share : ndarray of shape (n,)
        Weight of each row in means and deviations, the same for all that matter.
    fold : ndarray of int, shape (n,)
    fit_intercept : bool
    """

    span: RowSpan
    center: np.ndarray | None
    scales: np.ndarray
    share: np.ndarray
    fold: np.ndarray
    fit_intercept: bool

    @classmethod
    def of(cls, design: Any, goals: Goals, options: CrossFitOptions) -> LinearFolds:
        """Scale the rows; those of X and the extra ones that some rate depends on matter."""
        train, centered = goals.data.train, options.fit_intercept
        used = np.zeros(len(goals.data))
        used[goals.measured.rows] = 1.0
        used[: len(train)] = train.weight > 0
        scales, share = column_scales(design, used, centered=centered), used / used.sum()
        center = share @ design if centered and not issparse(design) else None
        if issparse(design):
            entries = design.data * (1.0 / scales)[design.indices]
            X = csr_array((entries, design.indices, design.indptr), shape=design.shape)
        else:
            X = (design if center is None else design - center) / scales
        fold = np.maximum(options.fold, 0)
        return cls(row_span(X), center, scales, share, fold, options.fit_intercept)

    @property
    def X(self) -> Any:
        """The rows that are fitted."""
        return self.span.rows

    @property
    def n_folds(self) -> int:
        """Their number."""
        return int(self.fold.max()) + 1

    def rows_to_fit(self, k: int) -> np.ndarray:
        """List the rows outside of fold k, or a random part of them where they are very many."""
        rows = np.flatnonzero((self.fold != k) & (self.share > 0))
        most = max(FIT_ROWS, FIT_ROWS_PER_COLUMN * self.X.shape[1])
        if len(rows) <= most:
            return rows
        return np.sort(np.random.default_rng(k).choice(rows, most, replace=False))

    def logistic(self, task: Task, starts: Sequence[Point] | None = None) -> list[Point]:
        """Fit logistic regressions without each fold; the mean weight does not count.

        Newton steps forget where they began, so that other folds begin where the first one ended.
        L-BFGS would remember a little of the rows that are left out.
        """
        forgets = self.X.shape[1] <= FEW_COLUMNS
        fits: list[Point] = []
        for k in range(self.n_folds):
            rows = self.rows_to_fit(k)
            rows, positive, weight = task.examples(rows[rows < len(task.gain)])
            start = None if starts is None else starts[k]
            fit = fit_logistic(
                self.X[rows],
                positive,
                weight / weight.mean(),
                fit_intercept=self.fit_intercept,
                start=fits[0] if fits and forgets else start,
            )
            fits.append(fit)
        return fits

    def ramps(
        self,
        costs: np.ndarray,
        alpha: float,
        starts: Sequence[list[Point]],
        options: CrossFitOptions,
    ) -> list[Point]:
        """Minimize ramps of the rows' costs without each fold: Problem 2 without constraints.

        Each starts from the best of some fits, at its best scale and intercept.
        """
        fits = []
        for k in range(self.n_folds):
            rows = self.rows_to_fit(k)
            rows = rows[costs[rows] != 0]
            problem = ramp_of_costs(self.X[rows], costs[rows], alpha, self.fit_intercept)
            candidates = [
                best_intercept(problem, of_folds[k].coef, DIRECTION_SCALES) for of_folds in starts
            ]
            mm = majorize_minimize(
                problem,
                lowest_candidate(problem, candidates),
                options.solver,
                max_iter=MM_STEPS,
                tol=MM_TOL,
                gap=ROUGH_GAP,
                report=options.report,
            )
            point = problem.without_noise(mm.point)
            fits.append(point)
        return fits

    def scores(self, fits: Sequence[Point], rows: np.ndarray) -> np.ndarray:
        """Score some rows, each by the fit without its fold."""
        scores, fold = np.empty(len(rows)), self.fold[rows]
        for k, fit in enumerate(fits):
            tested = self.X[rows[fold == k]]
            scores[fold == k] = np.asarray(tested @ fit.coef).ravel() + fit.intercept
        return scores

    def moments(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean, 0 without intercept, and the deviation of each column of scores."""
        mean = self.share @ scores if self.fit_intercept else np.zeros(scores.shape[1])
        deviation = np.sqrt(self.share @ (scores - mean) ** 2)
        flat = deviation <= SMALLEST_DEVIATION * np.abs(scores).max(axis=0, initial=0.0)
        return mean, np.where(flat, np.inf, deviation)

    def standardized(self, fits: Mapping[str, Sequence[Point]]) -> Directions:
        """Standardize directions; the first one stands in for those that tell no rows apart."""
        size = len(fits)
        scores = np.empty((len(self.fold), size))
        mean_coef, correlation = np.zeros((self.X.shape[1], size)), np.zeros(size)
        for k in range(self.n_folds):
            coef = np.column_stack([of_folds[k].coef for of_folds in fits.values()])
            raw = np.asarray(self.X @ coef)
            mean, deviation = self.moments(raw)
            place = np.where(np.isinf(deviation), 0, np.arange(size))
            raw = (raw - mean)[:, place] / deviation[place]
            scores[self.fold == k] = raw[self.fold == k]
            mean_coef += coef[:, place] / deviation[place] / self.n_folds
            correlation += self.share @ (raw * raw[:, [0]]) / self.n_folds
        return Directions(tuple(fits), mean_coef, correlation, scores)

    def rule(self, coef: np.ndarray, intercept: float) -> Point:
        """Return the rule for the columns of the design."""
        weights = self.span.weights(coef) / self.scales
        moved = 0.0 if self.center is None else float(weights @ self.center)
        return Point(weights, intercept - moved)


@dataclass(frozen=True)
class Directions:
    """J standardized directions, of which the first is the plain one, and mixtures with it.

    Parameters
    ----------
    names : tuple of J str
    coef : ndarray of shape (d, J)
        Their means over the folds.
    correlation : ndarray of shape (J,)
        Of their scores with those of the first, over all rows.
    scores : ndarray of shape (n, J)
        Scores of each row by the directions trained without its fold.
    """

    names: tuple[str, ...]
    coef: np.ndarray
    correlation: np.ndarray
    scores: np.ndarray

    def mixtures(self) -> dict[str, np.ndarray]:
        """Return coefficients (J,) of the first direction, and of its mixtures with each other."""
        plain, *others = np.eye(len(self.names))
        mixtures = {self.names[0]: plain}
        for name, other, rho in zip(self.names[1:], others, self.correlation[1:], strict=True):
            for t in SHARES:
                variance = t**2 + (1.0 - t) ** 2 + 2.0 * t * (1.0 - t) * rho
                text = name if t == 1.0 else f"{1.0 - t:g} {self.names[0]} + {t:g} {name}"
                mixed = (1.0 - t) * plain + t * other
                mixtures[text] = mixed / np.sqrt(variance if variance > OPPOSITE else 1.0)
        return mixtures


class TrainedFolds(NamedTuple):
    """Rows and folds, the logistic regressions without each, and all directions."""

    folds: LinearFolds
    plain: list[Point]
    directions: Directions

    def plain_predictions(self) -> np.ndarray:
        """Predict all rows, 0 and 1, by the logistic regression without their fold."""
        every = np.arange(len(self.folds.fold))
        return (self.folds.scores(self.plain, every) > 0).astype(float)

    def plain_rule(self) -> Point:
        """Return the mean of the folds' logistic regressions, for the design's columns."""
        coef = np.mean([fit.coef for fit in self.plain], axis=0)
        return self.folds.rule(coef, float(np.mean([fit.intercept for fit in self.plain])))


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
    folds, train = LinearFolds.of(design, goals, options), goals.data.train
    plain = folds.logistic(Task.of_labels(train.label == 1, 2, train.weight * goals.factors))
    weighted, costs = _cost_sensitive_fits(folds, goals, plain, options)
    ramps = folds.ramps(costs, alpha_of(goals.measured, options), [plain, *weighted[-1:]], options)
    fits = {PLAIN: plain, RAMP: ramps}
    fits |= {f"{COST_SENSITIVE} {k}": of_folds for k, of_folds in enumerate(weighted, start=1)}
    return TrainedFolds(folds, plain, folds.standardized(fits))


def alpha_of(goals: MeasuredGoals, options: CrossFitOptions) -> float:
    """Return the ramp's alpha."""
    return ALPHA * goals.scale if options.alpha is None else options.alpha


def _cost_sensitive_fits(
    folds: LinearFolds, goals: Goals, plain: list[Point], options: CrossFitOptions
) -> tuple[list[list[Point]], np.ndarray]:
    """Fit logistic regressions at multipliers that all folds share: see `rounds`.

    Also returns the costs of all rows at the last of these multipliers.
    """
    costs = Costs.of(goals, goals.data)
    if len(goals.measured.rows) > 2 * MULTIPLIER_ROWS:
        goals = goals.sample(MULTIPLIER_ROWS)
    criterion = Criterion.of(goals, options.level, 0.0)
    fits = [plain]

    def score(task: Task | None) -> tuple[np.ndarray, None]:
        if task is not None:
            fits.append(folds.logistic(task, fits[-1]))
        return folds.scores(fits[-1], goals.measured.rows), None

    def supports(task: Task) -> bool:
        return all(map(task.has_both_labels, map(folds.rows_to_fit, range(folds.n_folds))))

    much, done = MUCH_TO_GAIN * goals.measured.scale, list[Round]()
    kind = ThresholdRounds(
        criterion, criterion.no_rules(), costs, score, supports, COST_SENSITIVE_TOL
    )
    limit = 1 + MOST_COST_SENSITIVE_FITS
    for each in rounds(kind.evaluate, kind.next_task, costs.plain, max_iter=limit):
        options.tell(f"round {len(done)}: {each}")
        done.append(each)
        if len(done) <= COST_SENSITIVE_FITS:
            continue
        # the best threshold of all rounds; the proposal's gap is less for rates of 0/0
        rules = [criterion.search(round_.scores)(None) for round_ in done]
        value = min((rule.objective for rule in rules if rule.feasible), default=np.inf)
        if not value - (each.proposal.value - each.proposal.gap) > much:
            break
    return fits[1:], row_costs(costs.goals, done[-1].multipliers)
