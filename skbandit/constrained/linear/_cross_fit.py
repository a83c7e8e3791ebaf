"""Cross-fitting: directions trained without each fold; the best one and its threshold by that fold.

Nothing is chosen by rows that trained it. Directions are those of logistic regression, of
cost-sensitive logistic regressions, of the ramp at the same costs, and mixtures of the first with
each other: from a quarter to one and a half of the step from one to the other. The final
direction is the mean of the folds' ones: a fit to all rows would cost one more, would be a rule
that no row has tested, and would vary more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.linear._directions import Mixture, standardize
from skbandit.constrained.linear._folds import (
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
from skbandit.constrained.rounds._multipliers import (
    FEW_THRESHOLDS,
    Rules,
    dropped_prices_of_rules,
    rules_of_curve,
    shadow_prices,
)
from skbandit.constrained.rules._candidates import ThresholdSearch
from skbandit.constrained.rules._choose import (
    Choice,
    choose,
)
from skbandit.constrained.rules._limits import SETTLING, limits_at, wider_factors
from skbandit.measure import RATE_TOL, ScoreLimits
from skbandit.prices._dual import ShadowPrices
from skbandit.prices._levels import levels_to_try

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
    prices : ShadowPrices
        Of the measured constraints, out of fold.
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
    prices: ShadowPrices
    limits: ScoreLimits
    relaxations: Relaxations | None

    @property
    def direction_name(self) -> str:
        """The direction without its number and run of training."""
        return re.sub(r"(?<=cost-sensitive) \d+| #\d+", "", str(self.direction))


@dataclass
class Candidates:
    """Mixtures of directions trained out of fold, among which goals on the same rows choose.

    Attributes
    ----------
    trained : TrainedFolds
        Directions trained under all bounds so far.
    rows : ndarray of int or None
        The rows that were relevant when the last directions were trained.
    mixtures : dict of str to Mixture
    limits : ScoreLimits
        Of the constraints of the last training.
    searches : dict of str to ThresholdSearch
        Thresholds on the out-of-fold scores of the relevant rows, of the mixtures searched so far.
    final : dict of str to tuple
        Mean direction of the folds, and its mean score.
    last, tighter : Choice or None
        The choice for the last bounds, and one for bounds that are tighter than the next ones: see
        `choose`.
    """

    trained: TrainedFolds = field(init=False)
    rows: np.ndarray | None = None
    mixtures: dict[str, Mixture] = field(init=False)
    limits: ScoreLimits = field(init=False)
    searches: dict[str, ThresholdSearch] = field(init=False)
    final: dict[str, tuple[np.ndarray, float]] = field(init=False)
    last: Choice | None = None
    tighter: Choice | None = None

    def train(self, design: Any, goals: Goals, options: CrossFitOptions) -> None:
        """Train directions without each fold, in addition to those that are known."""
        warm = None if self.rows is None else self.trained
        self.trained = train_folds(design, goals, options, warm)
        self.rows, self.tighter = goals.measured.rows, None
        self.mixtures = {
            str(mixture): mixture for mixture in _mixtures(self.trained.directions.names)
        }
        self.limits = self._limits(goals, options)
        self.searches, self.final = {}, {}

    def under(self, goals: Goals, options: CrossFitOptions) -> dict[str, ThresholdSearch]:
        """All mixtures; on large data, those preselected for these bounds and for tighter ones."""
        measured, directions = goals.measured, self.trained.directions
        limits = self._limits(goals, options).with_rows_of(self.limits)
        settings, names = _choice_settings(options), list(self.mixtures)
        if len(measured.rows) > 2 * SELECTION_ROWS:
            # the plain direction, and the mixture that is best on a sample of the rows
            part, mixtures = goals.sample(SELECTION_ROWS), self.mixtures
            samples = {k: directions.out_of_fold(mixtures[k], part.measured.rows) for k in names}
            best = choose(samples, part.measured, limits_at(part, None), **settings)
            names = list(dict.fromkeys([PLAIN, best.name]))
            tighter = self.tighter
            names += [] if tighter is None or tighter.name in names else [tighter.name]
        for name in names:
            if name not in self.searches:
                mixture = self.mixtures[name]
                scores = directions.out_of_fold(mixture, measured.rows)
                self.searches[name] = ThresholdSearch.of(
                    scores, measured, limits, settings["thresholds"]
                )
                self.final[name] = standardize(
                    self.trained.columns.design,
                    self.trained.weight,
                    directions.mean_direction(mixture),
                    centered=options.fit_intercept,
                )
        return {name: self.searches[name].under(measured, limits) for name in names}

    def _limits(self, goals: Goals, options: CrossFitOptions) -> ScoreLimits:
        """Limits whose numbers of trials are those at the plain predictions."""
        plain = self.trained.plain_predictions()
        return limits_at(goals, options.level, CHOICES, np.nan_to_num(plain))

    def choose(self, design: Any, goals: Goals, options: CrossFitOptions) -> CrossFitted:
        """The best mixture and its threshold by out-of-fold rates, as a rule for new rows.

        Directions are trained first if none were on the rows that are relevant to these goals.
        """
        if self.rows is None or not np.array_equal(goals.measured.rows, self.rows):
            self.train(design, goals, options)
        searches, trained, measured = self.under(goals, options), self.trained, goals.measured
        limits, directions = searches[PLAIN].limits, trained.directions
        settings = _choice_settings(options)
        choice = choose(searches, measured, limits, tighter=self.tighter, **settings)
        for count in range(SETTLING):
            factors = wider_factors(limits, goals, choice.rule.decided, count)
            if factors is None:
                break
            limits = replace(limits, clustered=factors)
            searches = {name: search.under(measured, limits) for name, search in searches.items()}
            choice = choose(searches, measured, limits, tighter=self.tighter, **settings)
        self.last = choice
        chosen, threshold = self.mixtures[choice.name], float(choice.rule.thresholds[0])
        coef, mean = self.final[choice.name]
        weights, larger = trained.place.weights(coef)
        missed = not choice.feasible and all(
            search.slack.max() < -RATE_TOL for search in searches.values()
        )
        return CrossFitted(
            direction=chosen,
            alpha=alpha_of(measured, options),
            coef=weights,
            threshold=threshold + mean + larger,
            choice=choice,
            predictions=(directions.out_of_fold(chosen) > threshold).astype(float),
            unconstrained=trained.plain_predictions(),
            plain=trained.plain_rule(),
            prices=_shadow_prices(searches, directions.names, measured, limits, choice),
            limits=limits,
            relaxations=_relaxed(list(searches.values()), goals) if missed else None,
        )


def _shadow_prices(
    searches: Mapping[str, ThresholdSearch],
    directions: Sequence[str],
    measured: MeasuredGoals,
    limits: ScoreLimits,
    choice: Choice,
) -> ShadowPrices:
    """Shadow prices in the best mixture of all directions' thresholds; nan if none is inside."""
    z, rules = choice.quantile, dict[str, Rules]()
    for name, search in searches.items():
        rules[name] = rules_of_curve(search.curve.spread(FEW_THRESHOLDS), measured, limits, z)
    every, m = Rules.joined(list(rules.values())), len(limits.offset)
    free = float(np.fmin(every.free_value(), choice.rule.objective))
    if not choice.feasible:
        return ShadowPrices(np.full(m, np.nan), np.full(m, np.nan), free)
    priced = Rules.joined([rules[name] for name in rules if name in {*directions, choice.name}])
    return ShadowPrices(
        shadow_prices(priced, measured, choice.rule.decided),
        dropped_prices_of_rules(every, measured, choice.rule.objective),
        free,
    )


def _relaxed(searches: list[ThresholdSearch], goals: Goals) -> Relaxations:
    """How far to relax the declared bounds, by the rates out of fold."""
    declared = [rows for _, rows in declared_bounds(goals)]
    return least_relaxations((search.slacks() for search in searches), declared)


def _choice_settings(options: CrossFitOptions) -> dict[str, Any]:
    """Arguments of `choose` that do not depend on the candidates."""
    return {
        "levels": levels_to_try(options.level),
        "thresholds": None if options.fit_intercept else np.zeros(1),
    }


def _mixtures(names: tuple[str, ...]) -> list[Mixture]:
    """The plain direction, and all mixtures of it with each other one."""
    others = [name for name in names if name != PLAIN]
    return [Mixture(PLAIN, PLAIN), *(Mixture(PLAIN, other, t) for other in others for t in SHARES)]
