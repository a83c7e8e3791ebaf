"""Cross-fitting: directions trained without each fold; the best one and its threshold by that fold.

Nothing is chosen by rows that trained it. Directions are those of logistic regression, of
cost-sensitive logistic regressions, of the ramp at the same costs, and mixtures of the first with
each other: from a quarter to one and a half of the step from one to the other. The final
direction is the mean of the folds' ones: a fit to all rows would cost one more, would be a rule
that no row has tested, and would vary more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.constrained._goals import Goals
from skbandit.constrained.linear._folds import PLAIN, CrossFitOptions, TrainedFolds
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.rounds._multipliers import FEW_THRESHOLDS
from skbandit.constrained.rounds._rounds import Criterion
from skbandit.constrained.rules._candidates import ThresholdSearch
from skbandit.constrained.rules._choose import Choice, choose
from skbandit.constrained.rules._limits import Limits, limits_at, settled
from skbandit.prices._dual import ShadowPrices
from skbandit.prices._levels import levels_to_try

SELECTION_ROWS = 100_000
"""Sample that preselects one of the mixtures if there are more than twice as many rows."""

CHOICES = 1
"""Number of further choices that widen the limits: the direction, from many mixtures."""


@dataclass(frozen=True)
class CrossFitted:
    """The chosen rule.

    Parameters
    ----------
    point : Point
        w and b, for the columns of the design.
    choice : Choice
        Its out-of-fold figures; its name is that of the direction.
    scores : ndarray of shape (n,)
        Its out-of-fold scores, of the rows that count.
    predictions : ndarray of shape (n,)
        Out-of-fold predictions of all rows, 0 and 1.
    chooser : Criterion
        What it was chosen by.
    prices : ShadowPrices
        Of the measured constraints, out of fold.
    """

    point: Point
    choice: Choice
    scores: np.ndarray
    predictions: np.ndarray
    chooser: Criterion
    prices: ShadowPrices


def choose_mixture(trained: TrainedFolds, goals: Goals, options: CrossFitOptions) -> CrossFitted:
    """Choose the best mixture and its threshold by out-of-fold rates, as a rule for new rows."""
    folds, _, directions = trained
    measured, level, rows = goals.measured, options.level, goals.measured.rows
    limits, levels = (
        limits_at(goals, level, CHOICES, trained.plain_predictions()),
        levels_to_try(level),
    )
    promised = None if level is None else Limits(limits, level)
    thresholds, mixtures = None if options.fit_intercept else np.zeros(1), directions.mixtures()
    criterion = Criterion(measured, limits, levels, 0.0, promised=promised, thresholds=thresholds)
    settings: dict[str, Any] = {"levels": levels, "thresholds": thresholds}
    if len(rows) > 2 * SELECTION_ROWS:
        # the plain direction, and the mixture that is best on a sample of the rows
        part = goals.sample(SELECTION_ROWS)
        sampled = directions.scores[part.measured.rows]
        samples = {name: sampled @ mixed for name, mixed in mixtures.items()}
        promising = choose(samples, part.measured, limits_at(part, None), **settings).name
        mixtures = {name: mixtures[name] for name in dict.fromkeys([PLAIN, promising])}
    counted = directions.scores[rows]
    searches = {
        name: ThresholdSearch.of(counted @ mixed, measured, limits.rows, thresholds)
        for name, mixed in mixtures.items()
    }

    def best(criterion: Criterion) -> Choice:
        return choose(searches, measured, criterion.limits, **settings)

    criterion, choice = settled(criterion, goals, best)
    mixed, threshold = mixtures[choice.name], float(choice.rule.thresholds[0])
    coef = directions.coef @ mixed
    mean, deviation = folds.moments(np.asarray(folds.X @ coef).reshape(-1, 1))
    size = deviation[0] if np.isfinite(deviation[0]) else 1.0
    known_rules, scores = criterion.no_rules(), counted @ mixed
    known_rules.n_thresholds = FEW_THRESHOLDS
    for each in (*counted.T, scores):
        known_rules.add(each)
    prices = criterion.shadow_prices_of(known_rules, choice)
    if not choice.feasible:
        prices = replace(prices, per_unit=np.full_like(prices.per_unit, np.nan))
    return CrossFitted(
        folds.rule(coef / size, -threshold - float(mean[0]) / size),
        choice,
        scores,
        (directions.scores @ mixed > threshold).astype(float),
        criterion,
        prices,
    )
