"""Cross-fitting: directions trained without each fold; the best one and its threshold by that fold.

Nothing is chosen by rows that trained it. Directions are those of logistic regression, of
cost-sensitive logistic regressions, of the ramp at the same costs, and mixtures of the first with
each other: from a quarter to one and a half of the step from one to the other. The final
direction is the mean of the folds' ones: a fit to all rows would cost one more, would be a rule
that no row has tested, and would vary more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skbandit.constrained._goals import Goals, MeasuredGoals, TrainingGoals
from skbandit.constrained.cross_fitting._choose import (
    Choice,
    choose,
    levels_to_try,
)
from skbandit.constrained.cross_fitting._directions import Directions, Mixture, standardize
from skbandit.constrained.cross_fitting._folds import (
    PLAIN,
    CrossFitOptions,
    TrainedFolds,
    alpha_of,
    train_folds,
)
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.paper._starts import (
    Relaxations,
    declared_bounds,
    least_relaxations,
)
from skbandit.constrained.thresholds._candidates import ThresholdSearch, spread
from skbandit.constrained.thresholds._limits import limits_at
from skbandit.constrained.thresholds._multipliers import (
    FEW_THRESHOLDS,
    LinearProblem,
    Rules,
    rules_of_counts,
    shadow_prices,
)
from skbandit.rates._forms import RATE_TOL
from skbandit.rates._score_limits import ScoreLimits

SELECTION_ROWS = 100_000
"""Sample that preselects one of the mixtures if there are more than twice as many rows."""

SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Shares of a direction in its mixtures with the logistic one."""

CHOICES = 1
"""Number of further choices that widen the limits: the direction, from many mixtures."""


@dataclass(frozen=True)
class CrossFitted:
    """The chosen rule.

    Parameters
    ----------
    direction : Mixture
        Which direction was chosen.
    alpha : float
        The ramp's alpha.
    coef : ndarray of shape (d,)
        w.
    threshold : float
        Threshold on <w, x>.
    choice : Choice
        Its out-of-fold figures.
    predictions : ndarray of shape (n,)
        Out-of-fold predictions of all rows, 0 and 1.
    unconstrained : ndarray of shape (n,)
        Those of logistic regression at its own threshold.
    plain : Point
        Its rule for new rows.
    multipliers : ndarray of shape (m,)
        Of the measured constraints, out of fold: see `shadow_prices`.
    limits : ScoreLimits
        Of the measured constraints.
    relaxations : Relaxations or None
        Of the declared bounds, by which some threshold's rates are inside, out of fold; None if
        that is so already.
    """

    direction: Mixture
    alpha: float
    coef: np.ndarray
    threshold: float
    choice: Choice
    predictions: np.ndarray
    unconstrained: np.ndarray
    plain: Point
    multipliers: np.ndarray
    limits: ScoreLimits
    relaxations: Relaxations | None

    @property
    def direction_name(self) -> str:
        """The direction without its number and run of training."""
        return re.sub(r"(?<=cost-sensitive) \d+| #\d+", "", str(self.direction))


def cross_fit(
    design: Any, bound: TrainingGoals, options: CrossFitOptions, work: SharedWork
) -> CrossFitted:
    """Train directions without each fold; select one and its threshold on out-of-fold rows.

    Parameters
    ----------
    design : ndarray or csr_array of shape (n, d)
        All rows, extra ones below those of X.
    bound : TrainingGoals
    options : CrossFitOptions
    work : SharedWork
        What has been done for other bounds on the same rows; it is brought up to date.

    Returns
    -------
    CrossFitted
    """
    if not work.suits(bound.goals):
        work.train(design, bound, options)
    fitted = _choose(work.mix(bound, options), bound, options, work.tighter)
    work.last = fitted.choice
    return fitted


@dataclass
class SharedWork:
    """What fits under other bounds on the same rows have left behind.

    Parameters
    ----------
    trained : TrainedFolds or None
        Directions trained under all bounds so far.
    rows : ndarray of int or None
        The rows that were relevant when the last directions were trained.
    candidates : Candidates or None
        Their mixtures, once a bound has chosen among them.
    last : Choice or None
        Of the last bound.
    tighter : Choice or None
        Of a bound that is tighter than the next one: see `choose`.
    """

    trained: TrainedFolds | None = None
    rows: np.ndarray | None = None
    candidates: Candidates | None = None
    last: Choice | None = None
    tighter: Choice | None = None

    def suits(self, goals: Goals) -> bool:
        """Whether directions were trained on the rows that are relevant to these goals."""
        return self.rows is not None and np.array_equal(goals.measured.rows, self.rows)

    def train(self, design: Any, bound: TrainingGoals, options: CrossFitOptions) -> None:
        """Train directions under some bounds."""
        self.trained = train_folds(design, bound, options, self.trained)
        self.rows, self.candidates, self.tighter = bound.goals.measured.rows, None, None

    def mix(self, bound: TrainingGoals, options: CrossFitOptions) -> Candidates:
        """Mix the trained directions."""
        if self.candidates is None:
            assert self.trained is not None
            mixtures = {str(one): one for one in _mixtures(self.trained.directions.names)}
            limits = limits_at(bound.goals, options.level, CHOICES)
            self.candidates = Candidates(self.trained, mixtures, limits)
        return self.candidates


@dataclass(frozen=True)
class Candidates:
    """Mixtures of trained directions, their thresholds sorted once they are candidates.

    Parameters
    ----------
    trained : TrainedFolds
    mixtures : dict of str to Mixture
    limits : ScoreLimits
        Of the constraints of the first bound.
    searches : dict of str to ThresholdSearch
        Thresholds on the out-of-fold scores of the relevant rows, of the candidates so far.
    final : dict of str to tuple
        Mean direction of the folds, and its mean score.
    """

    trained: TrainedFolds
    mixtures: dict[str, Mixture]
    limits: ScoreLimits
    searches: dict[str, ThresholdSearch] = field(default_factory=dict)
    final: dict[str, tuple[np.ndarray, float]] = field(default_factory=dict)

    def under(
        self, bound: TrainingGoals, options: CrossFitOptions, tighter: Choice | None
    ) -> dict[str, ThresholdSearch]:
        """All mixtures; on large data, those preselected for this bound and for a tighter one."""
        measured, directions = bound.goals.measured, self.trained.directions
        limits = limits_at(bound.goals, options.level, CHOICES).with_rows_of(self.limits)
        settings, names = _choice_settings(options), list(self.mixtures)
        if len(measured.rows) > 2 * SELECTION_ROWS:
            names = _preselected(self.mixtures, directions, bound, settings)
            names += [] if tighter is None or tighter.name in names else [tighter.name]
        for name in names:
            if name not in self.searches:
                one = self.mixtures[name]
                scores = directions.out_of_fold(one, measured.rows)
                self.searches[name] = ThresholdSearch.of(
                    scores, measured, limits, settings["thresholds"]
                )
                self.final[name] = standardize(
                    self.trained.columns.design,
                    self.trained.weight,
                    directions.mean_direction(one),
                    centered=options.fit_intercept,
                )
        return {name: self.searches[name].under(measured, limits) for name in names}


def _choose(
    candidates: Candidates, bound: TrainingGoals, options: CrossFitOptions, tighter: Choice | None
) -> CrossFitted:
    """The best mixture and its threshold, as a rule for new rows."""
    searches, goals = candidates.under(bound, options, tighter), bound.goals
    trained, measured, limits = candidates.trained, goals.measured, searches[PLAIN].limits
    directions = trained.directions
    settings = _choice_settings(options)
    choice = choose(searches, measured, limits, tighter=tighter, **settings)
    under = [] if choice.feasible else list(searches.values())
    chosen = candidates.mixtures[choice.name]
    coef, mean = candidates.final[choice.name]
    weights, larger = trained.place.weights(coef)
    threshold = choice.threshold.value
    return CrossFitted(
        chosen,
        alpha_of(measured, options),
        weights,
        threshold + mean + larger,
        choice,
        (directions.out_of_fold(chosen) > threshold).astype(float),
        trained.plain_predictions(),
        trained.plain_rule(),
        _multipliers(
            [searches[name] for name in searches if name in {*directions.names, choice.name}],
            measured,
            limits,
            choice,
        ),
        limits,
        _relaxed(under, goals)
        if all(one.slack.max() < -RATE_TOL for one in under) and under
        else None,
    )


def _multipliers(
    searches: Sequence[ThresholdSearch],
    measured: MeasuredGoals,
    limits: ScoreLimits,
    choice: Choice,
) -> np.ndarray:
    """Shadow prices in the best mixture of all directions' thresholds; nan if none is inside."""
    if not choice.feasible:
        return np.full(len(limits.offset), np.nan)
    problem = LinearProblem.of(measured.objective, measured.constraints)
    z = choice.quantile
    rules = [
        rules_of_counts(one.order, spread(one.n_positive, FEW_THRESHOLDS), problem, limits, z)
        for one in searches
    ]
    return shadow_prices(Rules.joined(rules), problem, choice.positive)


def _relaxed(searches: list[ThresholdSearch], goals: Goals) -> Relaxations:
    """How far to relax the declared bounds, by the rates out of fold."""
    declared = [rows for _, rows in declared_bounds(goals)]
    return least_relaxations((one.slacks() for one in searches), declared)


def _choice_settings(options: CrossFitOptions) -> dict[str, Any]:
    """Arguments of `choose` that do not depend on the candidates."""
    return {
        "levels": levels_to_try(options.level),
        "thresholds": None if options.fit_intercept else np.zeros(1),
    }


def _preselected(
    mixtures: dict[str, Mixture],
    directions: Directions,
    bound: TrainingGoals,
    settings: dict[str, Any],
) -> list[str]:
    """The plain direction, and the mixture that is best on a sample of the rows."""
    part = bound.sample(SELECTION_ROWS)
    measured = part.measured
    limits = limits_at(part, None)
    candidates = {
        name: directions.out_of_fold(one, measured.rows) for name, one in mixtures.items()
    }
    best = choose(candidates, measured, limits, **settings)
    return list(dict.fromkeys([PLAIN, best.name]))


def _mixtures(names: tuple[str, ...]) -> list[Mixture]:
    """The plain direction, and all mixtures of it with each other one."""
    others = [name for name in names if name != PLAIN]
    return [Mixture(PLAIN, PLAIN), *(Mixture(PLAIN, one, t) for one in others for t in SHARES)]
