"""One threshold per group against brute force over all combinations of thresholds."""

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skbandit.constrained._goals import Declared
from skbandit.constrained.rules._groups import GroupSearch
from skbandit.constrained.rules._limits import Limits
from skbandit.measure import RATE_TOL, Columns, Data, Rows, score_limits
from skbandit.rates import (
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.problems import best_threshold, bound_to_rows
from tests.tiers import examples

theorem = examples(15)
seeds = st.integers(0, 2**32 - 1)
NAMES = np.array(["a", "b", "c", "d"])

DECLARED = {
    "nothing": (error_rate(), []),
    "parity": (error_rate(), [difference(positive_rate, by="g") <= 0.1]),
    "ratio": (error_rate(), [ratio(positive_rate, by="g") >= 0.8]),
    "odds": (
        error_rate(),
        [difference(recall, by="g") <= 0.2, difference(false_positive_rate, by="g") <= 0.2],
    ),
    "each": (false_positive_rate(), [each(recall, by="g") >= 0.6]),
    "precision in each": (error_rate(), [each(precision, by="g") >= 0.7]),
    "overall": (false_positive_rate(), [recall() >= 0.7]),
    "f1": (f1(), [difference(positive_rate, by="g") <= 0.1]),
    "precision": (precision(), [recall() >= 0.3]),
    "undefined at either end": (f1(), [precision() >= 0.5, negative_predictive_value() >= 0.5]),
    "impossible": (error_rate(), [recall() >= 0.9, false_positive_rate() <= 0.02]),
}


def sample(seed, n=18, n_groups=2, ties=True):
    """Scores that order each group about as well, at levels of its own."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % n_groups)
    y = rng.integers(0, 2, n)
    y[[*(np.flatnonzero(group == g)[0] for g in range(n_groups))]] = 1  # recall in each group
    y[[*(np.flatnonzero(group == g)[1] for g in range(n_groups))]] = 0
    scores = y + rng.normal(0, 1, n) + group
    scores = np.round(scores) / 2 if ties else scores
    return y, scores, group, rng.integers(1, 4, n).astype(float)


def forms_of(y, group, objective, constraints, weight=None):
    forms, goals = bound_to_rows(y, NAMES[group], objective, constraints, weight)
    return forms.negated() if objective.greater_is_better else forms, goals


def criterion(scores, group, objective, goals, thresholds):
    pi = (scores > np.asarray(thresholds)[group]).astype(float)
    slack = goals.slack(goals.forms.values(pi))
    slack = np.where(np.isnan(slack), -np.inf, slack).min(initial=np.inf)
    value = objective.values(pi)[0]
    return (np.inf if np.isnan(value) else value), slack


def all_cuts(scores):
    distinct = np.unique(scores)
    return [distinct[0] - 1, *(distinct[1:] + distinct[:-1]) / 2, distinct[-1] + 1]


def brute_force(scores, group, objective, goals):
    """Objectives of the combinations that meet the constraints."""
    each_group = [all_cuts(scores[group == g]) for g in range(group.max() + 1)]
    judged = [
        criterion(scores, group, objective, goals, thresholds)
        for thresholds in itertools.product(*each_group)
    ]
    return [value for value, slack in judged if slack >= -RATE_TOL]


@pytest.mark.parametrize("name", DECLARED)
@theorem
@given(seed=seeds, ties=st.booleans())
def test_equals_brute_force_over_all_combinations(name, seed, ties):
    y, scores, group, weight = sample(seed, 15, 3, ties)
    objective, goals = forms_of(y, group, *DECLARED[name], weight)
    found = GroupSearch.of(scores, group, objective, goals, 0.0).best()
    assert (found.objective, found.slack) == pytest.approx(
        criterion(scores, group, objective, goals, found.thresholds), abs=1e-12
    )
    feasible = brute_force(scores, group, objective, goals)
    assert found.feasible == bool(feasible)
    if feasible and math.isfinite(min(feasible)):
        assert found.objective == pytest.approx(min(feasible), abs=2 * RATE_TOL)
        assert found.gap == 0.0
    elif not feasible:
        assert found.gap == np.inf  # proven


@pytest.mark.parametrize("level", [0.6, 0.9])
def test_within_a_level_no_group_has_a_better_threshold_given_the_others(level):
    """And the risk of a bound is that of the level, also of one below 0.84, a quantile of 1."""
    moved = 0
    for seed in range(2):
        y, scores, group, _ = sample(seed, n=60, n_groups=3, ties=False)
        table = Columns.read({"g": NAMES[group]}, None, len(y), "attributes")
        data = Data(Rows(table, y.astype(np.int8), np.ones(len(y))), None, 1, [0, 1])
        goals = Declared.read(error_rate(), false_positive_rate() <= 0.3).bind(data)
        objective, bounds = goals.objective, goals.constraints
        limits = Limits(score_limits(bounds, data), level)

        def criterion(thresholds, scores=scores, group=group, limits=limits, objective=objective):
            pi = (scores > np.asarray(thresholds)[group]).astype(float)
            sums = (limits.rows @ pi)[:, None]
            risk = limits.limits.risk(sums, norm.ppf(limits.level))[0]
            assert limits.slack(sums)[0] == pytest.approx(1 - limits.level - risk)
            return objective.values(pi)[0], limits.slack(sums)[0] >= -RATE_TOL

        found = GroupSearch.of(scores, group, objective, bounds, 0.0).best(limits)
        value, inside = criterion(found.thresholds)
        assert inside and value == pytest.approx(found.objective)
        for g in range(3):
            for threshold in all_cuts(scores[group == g]):
                other = found.thresholds.copy()
                other[g] = threshold
                there, allowed = criterion(other)
                assert not allowed or there >= value - RATE_TOL
                moved += allowed
    assert moved > 10


def test_equally_good_cuts_are_the_nearest_to_the_preferred_one():
    y = np.array([0, 0, 1, 1, 0, 1])
    group = np.array([0, 0, 0, 0, 1, 1])
    scores = np.array([1.0, 2.0, 6.0, 7.0, 10.0, 20.0])
    objective, goals = forms_of(y, group, error_rate(), [])
    found = GroupSearch.of(scores, group, objective, goals, 9.0).best()
    assert found.thresholds.tolist() == [4.0, 15.0] and found.objective == 0.0
    nobody, goals = forms_of(y, group, false_positive_rate(), [])
    found = GroupSearch.of(scores, group, nobody, goals, 3.0).best()
    assert found.thresholds.tolist() == [4.0, 15.0]


def large(n, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(n_groups, n, p=rng.dirichlet(np.full(n_groups, 5.0)))
    level = rng.normal(0, 0.6, n_groups)
    y = (rng.random(n) < 1 / (1 + np.exp(-level[group]))).astype(int)
    scores = 1.5 * y - 0.7 + rng.normal(size=n) + 0.8 * level[group]
    return y, scores, group


@pytest.mark.parametrize(("n", "n_groups"), [(10_000, 2), (3000, 4)])
@pytest.mark.parametrize("name", ["parity", "odds", "f1"])
def test_thousands_of_rows_are_exact(name, n, n_groups):
    y, scores, group = large(n, n_groups)
    objective, goals = forms_of(y, group, *DECLARED[name])
    found = GroupSearch.of(scores, group, objective, goals, 0.0).best()
    assert found.feasible and found.gap == 0.0
    assert found.objective <= best_threshold(scores, objective, goals, 0.0).objective
