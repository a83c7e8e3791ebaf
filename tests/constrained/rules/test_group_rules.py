"""One threshold per group as columns: against all combinations, enumerated."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from skbandit.constrained.rounds._multipliers import (
    GroupCurves,
    Multipliers,
    Rules,
    best_multipliers,
    rules_of_curve,
    rules_of_sums,
    summed_rows,
    with_group_thresholds,
)
from skbandit.constrained.rules._curve import Curve
from skbandit.rates import difference, error_rate, f1, positive_rate, precision, recall
from tests.constrained.rules.test_choose import bound, made
from tests.tiers import first

GOALS = {
    "parity": (error_rate(), [difference(positive_rate, by="sex") <= 0.02]),
    "parity and recall": (
        error_rate(),
        [difference(positive_rate, by="sex") <= 0.02, recall() >= 0.8],
    ),
    "ratio": (f1(), [difference(recall, by="sex") <= 0.01]),
    "precision": (recall(), [precision() >= 0.7]),
}
HIGH = 1e4


def problem_of(name, seed, n=40):
    score, other, data = made(n, seed)
    goals, limits = bound(*GOALS[name], data)
    sex = data.train.columns.several(("sex",), "")["sex"].to_numpy()
    return score, score + 0.5 * other, (sex == "M").astype(int), goals, limits


def every_combination(score, group, problem, limits, z=0.0):
    """All rules that one threshold per group makes."""
    sides = []
    for g in (0, 1):
        own = np.sort(score[group == g])[::-1]
        sides.append([np.inf, *own])
    answers = [score >= np.where(group == 0, *thresholds) for thresholds in product(*sides)]
    sums = summed_rows(problem, limits) @ np.array(answers, dtype=float).T
    return rules_of_sums(sums, problem, limits, z)


@pytest.mark.parametrize("seed", first(1, range(4)))
@pytest.mark.parametrize("name", GOALS)
def test_prices_are_those_of_the_best_mixture_of_all_combinations(name, seed):
    score, other, group, problem, _ = problem_of(name, seed)
    most = np.full(len(problem.linear[1]), HIGH)
    every = Rules.joined([every_combination(one, group, problem, None) for one in (score, other)])
    optimum = best_multipliers(every, most)
    few = Rules.joined([rules_of_curve(Curve.of(one).spread(5), problem) for one in (score, other)])
    both = [GroupCurves.of(one, group, problem) for one in (score, other)]
    found = with_group_thresholds(few, both, most)
    assert found.lagrangian(optimum) >= optimum.value - 1e-9
    assert best_multipliers(found, most).value == pytest.approx(optimum.value, abs=2e-4)
    assert best_multipliers(few, most).value > optimum.value + 1e-3 or name == "precision"


@pytest.mark.parametrize("z", [0.0, norm.isf(0.2)])
def test_the_cheapest_combination_costs_what_enumeration_finds(z):
    score, _, group, problem, limits = problem_of("parity and recall", 0)
    multipliers = Multipliers(0.3, np.array([0.4, 0.0, 0.7]), np.ones(1))
    thresholds = GroupCurves.of(score, group, problem, limits)
    found = thresholds.cheapest(multipliers, z)
    every = every_combination(score, group, problem, limits, 0.0)
    costs = every.reduced(multipliers)
    assert thresholds.cheapest(multipliers).reduced(multipliers)[0] == pytest.approx(costs.min())
    with_limits = every_combination(score, group, problem, limits, z)
    k = np.argmin(costs)
    np.testing.assert_allclose(found.missed[:, 0], with_limits.missed[:, k], atol=1e-12)
