"""The choice among scores and thresholds, against brute force and known answers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from skbandit.constrained._goals import Declared
from skbandit.constrained.rules._candidates import ThresholdSearch
from skbandit.constrained.rules._choose import choose
from skbandit.constrained.rules._limits import limits_at_quantile
from skbandit.measure import Columns, Data, Rows, score_limits
from skbandit.prices._levels import LEVELS, VIOLATION_COST, best_quantile, level_of, quantile_of
from skbandit.rates import difference, error_rate, false_positive_rate, precision, recall
from tests.tiers import first

Z = norm.isf(0.2)


def made(n=300, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.4).astype(np.int8)
    sex = rng.choice(["F", "M"], n)
    score = 1.5 * label + 0.4 * (sex == "F") + rng.normal(size=n)
    columns = Columns.read(pd.DataFrame({"sex": sex}), None, n, "attributes")
    weight = np.ones(n) if weight is None else weight
    return score, rng.normal(size=n), Data(Rows(columns, label, weight), None, 1, [0, 1])


def bound(objective, constraints, data):
    measured = (goals := Declared.read(objective, constraints).bind(data)).measured
    return measured, score_limits(goals.constraints, data).columns(measured.rows)


GOALS = {
    "recall": (false_positive_rate(), recall() >= 0.8),
    "precision": (recall(), precision() >= 0.6),
    "groups": (error_rate(), difference(recall, by="sex") <= 0.2),
    "two": (error_rate(), [recall() >= 0.6, false_positive_rate() <= 0.3]),
    "none": (error_rate(), []),
}


@pytest.mark.parametrize("objective, constraints", GOALS.values(), ids=GOALS)
@pytest.mark.parametrize("z", first(1, [Z, 0.0, 0.3]))
def test_the_best_threshold_is_that_of_brute_force(objective, constraints, z):
    weight = np.random.default_rng(5).uniform(0.5, 2.0, size=700)
    score, _, data = made(700, weight=weight)
    score = np.round(score, 2)  # ties
    goals, limits = bound(objective, constraints, data)
    score = score[goals.rows]
    best = np.inf
    for threshold in [*np.unique(score), score.min() - 1]:
        positive = (score > threshold).astype(float)
        value = goals.objective.values(positive)[0]
        slack = limits.at(positive, 0.0).min(initial=np.inf)
        risk = limits.risk((limits.rows @ positive)[:, None], z)[0] if z else 0.0
        if slack >= -1e-9 and risk <= norm.sf(z) + 1e-9 and value < best:
            best = value
    search = ThresholdSearch.of(score, goals, limits.rows)
    found = search.best(limits_at_quantile(limits, z))
    assert found.feasible
    assert found.objective == pytest.approx(best, abs=1e-12)
    positive = (score > found.value).astype(float)
    assert goals.objective.values(positive)[0] == pytest.approx(best, abs=1e-12)


def test_constraints_far_from_their_bounds_do_not_count():
    score, _, data = made()
    alone, limits = bound(*GOALS["recall"], data)
    _, more = bound(false_positive_rate(), [recall() >= 0.8, precision() >= 0.05], data)
    _, twice = bound(false_positive_rate(), [recall() >= 0.8, recall() >= 0.8], data)
    thresholds = {}
    for name, some in (("alone", limits), ("far", more), ("twice", twice)):
        found = choose({"s": score[alone.rows]}, alone, some, levels=(0.8,))
        thresholds[name] = found.rule.thresholds[0]
    assert thresholds["alone"] == thresholds["far"] > thresholds["twice"]


def test_the_better_score_is_chosen_with_its_predictions():
    score, noise, data = made()
    goals, limits = bound(*GOALS["recall"], data)
    scores = {"noise": noise[goals.rows], "score": score[goals.rows]}
    found = choose(scores, goals, limits, levels=(0.8,))
    assert found.name == "score"
    assert found.feasible
    assert (found.rule.decided == (score[goals.rows] > found.rule.thresholds[0])).all()
    assert found.level == pytest.approx(0.8)
    assert limits.at(found.rule.decided, Z).min() >= 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("bounded, unit", [(True, 1), (False, 1), (True, 5)])
def test_the_best_quantile_is_that_of_brute_force(seed, bounded, unit):
    """Whatever higher levels cost, with levels out of reach, and whether or not it stops early."""
    rng = np.random.default_rng(seed)
    goals, _ = bound(unit * error_rate(), [], made(30)[2])
    rises = rng.exponential(0.02, size=len(LEVELS))
    objective = unit * (0.3 + np.cumsum(rises)[::-1])
    objective[: rng.integers(len(LEVELS))] = np.inf
    at = dict(zip(map(quantile_of, LEVELS), objective, strict=True))
    tried = []

    def attempt(z):
        tried.append(z)
        return at[z], objective[-1] if bounded else np.nan

    found = best_quantile(attempt, LEVELS, goals.scale)
    costs = objective + unit * VIOLATION_COST * (1 - np.array(LEVELS))
    assert level_of(found) == LEVELS[np.argmin(costs)]
    assert len(tried) < len(LEVELS) if bounded and rises[:-1].sum() < 0.01 else tried


@pytest.mark.parametrize("level", [*LEVELS, 0.95, 1 - 1e-13])
def test_a_level_is_that_of_its_quantile_and_never_1(level):
    found = level_of(quantile_of(level))
    assert found < 1
    assert found == level if level < 0.99 else found == pytest.approx(level, abs=1e-15)


def test_the_level_falls_only_where_that_is_allowed():
    score, _, data = made(60)
    declared = [recall() >= 0.8, false_positive_rate() <= 0.5]
    goals, limits = bound(error_rate(), declared, data)
    score = {"s": score[goals.rows]}
    found = choose(score, goals, limits, levels=(0.99, 0.5))
    assert found.feasible
    assert found.level == 0.5
    assert goals.constraints.slack(goals.constraints.values(found.rule.decided)).min() >= 0
    strict = choose(score, goals, limits, levels=(0.99,))
    assert not strict.feasible


def test_impossible_goals_end_at_the_least_miss():
    score, _, data = made()
    goals, limits = bound(error_rate(), [recall() >= 0.95, false_positive_rate() <= 0.02], data)
    found = choose({"s": score[goals.rows]}, goals, limits)
    assert not found.feasible
    slack = ThresholdSearch.of(score[goals.rows], goals).slack
    assert found.rule.slack == pytest.approx(slack.max())


def test_only_given_thresholds_are_chosen():
    score, _, data = made()
    goals, limits = bound(error_rate(), [], data)
    found = choose({"s": score[goals.rows]}, goals, limits, thresholds=np.array([0.25]))
    assert found.rule.thresholds[0] == 0.25
    expected = np.mean((score > 0.25) != data.train.label)
    assert found.rule.objective == pytest.approx(expected)
