"""Out-of-fold prices: against the known slope of a population's trade-off."""

import numpy as np
import pytest
from scipy.stats import norm

from skbandit.constrained._goals import Declared
from skbandit.constrained.cross_fitting._choose import STEP, CutSearch, choose, prices_out_of_fold
from skbandit.rates import error_rate, false_positive_rate, positive_rate, recall
from skbandit.rates._columns import Columns, Data, Rows
from skbandit.rates._score_limits import score_limits

SHIFT = 1.5
"""Positives score N(SHIFT, 1), negatives N(0, 1)."""


def prepared(constraints, objective, n=200_000, level=0.5):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], n // 2)
    scores = rng.normal(size=n) + SHIFT * y
    rows = Rows(Columns({}, n), y, np.ones(n))
    data = Data(rows, None, 1, [0, 1])
    goals = Declared.read(objective, constraints).bind(data)
    limits = score_limits(goals.constraints, data).columns(goals.measured.rows)
    scores = scores[goals.measured.rows]
    choice = choose({"one": scores}, goals.measured, limits, level=level)
    return CutSearch.of(scores, goals.measured, limits), limits, choice


def priced(constraints, objective, **settings):
    search, limits, choice = prepared(constraints, objective, **settings)
    return prices_out_of_fold({"one": search}, limits, choice)


@pytest.mark.parametrize("bound", [0.7, 0.8, 0.9])
def test_the_price_of_a_recall_is_the_ratio_of_the_densities(bound):
    """FPR = Phi(-c) and recall = Phi(SHIFT - c): d FPR / d recall = phi(c) / phi(SHIFT - c).

    The threshold moves over 200 to 250 positives, so that the price has an error of about 6 %.
    """
    cut = SHIFT - norm.ppf(bound)
    slope = norm.pdf(cut) / norm.pdf(SHIFT - cut)
    (price,) = priced(recall() >= bound, false_positive_rate())
    assert price == pytest.approx(slope, rel=0.2)


def test_what_does_not_bind_costs_nothing():
    goals = [recall() >= 0.8, false_positive_rate() <= 0.9]
    binding, idle = priced(goals, false_positive_rate())
    assert binding > 0.1 and idle == 0


def test_where_no_threshold_is_inside_there_is_no_price():
    goals = [recall() >= 0.9, false_positive_rate() <= 0.1]
    assert np.isnan(priced(goals, false_positive_rate(), n=2000)).all()


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_prices_are_differences_of_searches_from_the_beginning(level):
    goals = [recall() >= 0.8, false_positive_rate() <= 0.3, positive_rate() <= 0.5]
    search, limits, choice = prepared(goals, error_rate(), n=2000, level=level)
    search = CutSearch.of(
        search.scores + np.random.default_rng(1).normal(size=2000), search.goals, limits
    )
    steps = STEP * (limits.at(choice.positive, 0.0) - limits.at(choice.positive, 1.0))
    found = prices_out_of_fold({"one": search}, limits, choice)
    lowest = search.best(choice.quantile)
    if not lowest.feasible:
        assert np.isnan(found).all()
        return
    for k, step in enumerate(steps):
        relaxed = CutSearch.of(search.scores, search.goals, limits.relaxed(k, step))
        gain = lowest.objective - relaxed.best(choice.quantile).objective
        assert found[k] == pytest.approx(gain / step, abs=1e-12)
    assert found.max() > 0
