"""Cross-fitting: directions trained without each fold; the best one and its threshold by that fold.

Nothing is chosen by rows that trained it. Directions are those of logistic regression, of
cost-sensitive logistic regressions, of the ramp at the same costs, and mixtures of the first with
each other: from a quarter to one and a half of the step from one to the other. The final
direction is the mean of the folds' ones: a fit to all rows would cost one more, would be a rule
that no row has tested, and would vary more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.linear._directions import Mixture, standardize
from skbandit.constrained.linear._folds import (
    PLAIN,
    CrossFitOptions,
    TrainedFolds,
)
from skbandit.constrained.rounds._multipliers import (
    FEW_THRESHOLDS,
    Rules,
    dropped_prices_of_rules,
    rules_of_curve,
    shadow_prices,
)
from skbandit.constrained.rules._advice import Relaxations, families
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
    coef : ndarray of shape (d,)
        w.
    threshold : float
        Threshold on <w, x>.
    choice : Choice
        Its out-of-fold figures.
    predictions : ndarray of shape (n,)
        Out-of-fold predictions of all rows, 0 and 1.
    prices : ShadowPrices
        Of the measured constraints, out of fold.
    limits : ScoreLimits
        Of the measured constraints.
    relaxations : Relaxations or None
        Of the declared bounds, by which some threshold's rates are inside, out of fold; None if
        that is so already.
    """

    direction: Mixture
    coef: np.ndarray
    threshold: float
    choice: Choice
    predictions: np.ndarray
    prices: ShadowPrices
    limits: ScoreLimits
    relaxations: Relaxations | None


def choose_mixture(trained: TrainedFolds, goals: Goals, options: CrossFitOptions) -> CrossFitted:
    """Choose the best mixture and its threshold by out-of-fold rates, as a rule for new rows."""
    measured, directions = goals.measured, trained.directions
    limits = limits_at(goals, options.level, CHOICES, trained.plain_predictions())
    thresholds = None if options.fit_intercept else np.zeros(1)
    settings: dict[str, Any] = {"levels": levels_to_try(options.level), "thresholds": thresholds}
    mixtures = {str(mixture): mixture for mixture in _mixtures(directions.names)}
    if len(measured.rows) > 2 * SELECTION_ROWS:
        # the plain direction, and the mixture that is best on a sample of the rows
        part = goals.sample(SELECTION_ROWS)
        samples = {k: directions.out_of_fold(v, part.measured.rows) for k, v in mixtures.items()}
        best = choose(samples, part.measured, limits_at(part, None), **settings).name
        mixtures = {name: mixtures[name] for name in dict.fromkeys([PLAIN, best])}
    searches = {
        name: ThresholdSearch.of(
            directions.out_of_fold(mixture, measured.rows), measured, limits.rows, thresholds
        )
        for name, mixture in mixtures.items()
    }
    choice = choose(searches, measured, limits, **settings)
    for count in range(SETTLING):
        factors = wider_factors(limits, goals, choice.rule.decided, count)
        if factors is None:
            break
        limits = replace(limits, clustered=factors)
        choice = choose(searches, measured, limits, **settings)
    chosen, threshold = mixtures[choice.name], float(choice.rule.thresholds[0])
    coef, mean = standardize(
        trained.columns.design,
        trained.weight,
        directions.mean_direction(chosen),
        centered=options.fit_intercept,
    )
    weights, larger = trained.place.weights(coef)
    relaxations = None
    if not choice.feasible and all(each.slack.max() < -RATE_TOL for each in searches.values()):
        declared = families(measured.constraints.constraints)
        relaxations = Relaxations.least((each.slacks() for each in searches.values()), declared)
    return CrossFitted(
        direction=chosen,
        coef=weights,
        threshold=threshold + mean + larger,
        choice=choice,
        predictions=(directions.out_of_fold(chosen) > threshold).astype(float),
        prices=_shadow_prices(searches, directions.names, measured, limits, choice),
        limits=limits,
        relaxations=relaxations,
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


def _mixtures(names: tuple[str, ...]) -> list[Mixture]:
    """List the plain direction and its mixtures with each other one."""
    others = [name for name in names if name != PLAIN]
    return [Mixture(PLAIN, PLAIN), *(Mixture(PLAIN, other, t) for other in others for t in SHARES)]
