"""Dual multipliers against enumerated rules and mixtures, exact oracles and finite differences."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.rounds._multipliers import (
    Multipliers,
    Rules,
    best_multipliers,
    highest_multipliers,
    multipliers_per_bound,
    next_multipliers,
    row_costs,
    rules_of_curve,
)
from skbandit.constrained.rules._curve import Curve
from skbandit.measure import Columns, Data, Rows, score_limits
from skbandit.rates import error_rate, f1, positive_rate, precision, recall, worst
from tests.constrained.rules.test_choose import bound, made
from tests.problems import bound_to_rows
from tests.tiers import first

HIGH, ONE = np.array([1e6]), np.ones(1)
A, B = {"g": "a"}, {"g": "b"}


def some_rules(seed, n_constraints=1, ratio=False, n=30):
    """Random rules; the first one meets everything."""
    rng = np.random.default_rng(seed)
    missed = rng.normal(size=(n_constraints, n)) + 0.3
    missed[:, 0] = -0.1
    below = rng.uniform(0.2, 1.0, n) if ratio else np.ones(n)
    return Rules(rng.uniform(0.2, 1.0, (1, n)), below, missed, np.ones(missed.shape))


def best_of_pairs(rules):
    """The value of the best mixture under one constraint: of two rules at most."""
    values = [rules.best_value()]
    for i, j in combinations(range(len(rules.below)), 2):
        (a, b) = rules.missed[0, [i, j]]
        if a * b < 0:
            p = b / (b - a)  # the mixture that meets the bound exactly
            above = p * rules.above[0, i] + (1 - p) * rules.above[0, j]
            values.append(above / (p * rules.below[i] + (1 - p) * rules.below[j]))
    return min(values)


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_that_of_the_best_mixture_and_of_the_best_lagrangian(seed, ratio):
    rules = some_rules(seed, ratio=ratio)
    found = best_multipliers(rules, HIGH)
    assert found.value == pytest.approx(best_of_pairs(rules))
    assert rules.lagrangian(found) == pytest.approx(found.value)
    lambdas = np.append(np.linspace(0, 5, 2001), found.constraints)
    lagrangians = [rules.lagrangian(Multipliers(np.nan, np.array([one]), ONE)) for one in lambdas]
    assert max(lagrangians) == pytest.approx(found.value)


@pytest.mark.parametrize("seed", range(5))
def test_the_value_of_the_worst_group_is_that_of_the_best_mixture_and_of_weights_of_groups(seed):
    rng, n = np.random.default_rng(seed), 30
    rules = replace(some_rules(seed, n_constraints=2), above=rng.uniform(0.2, 1.0, (3, n)))
    found = best_multipliers(rules, np.full(2, 1e6))
    # the primal program: weights of rules, and the largest value of a group
    rows = np.block([[rules.above, -np.ones((3, 1))], [rules.missed, np.zeros((2, 1))]])
    total = np.append(np.ones(n), 0.0)[None, :]
    mixed = linprog(np.append(np.zeros(n), 1.0), rows, np.zeros(5), total, [1.0])
    assert found.value == pytest.approx(mixed.fun)
    assert found.groups.sum() == pytest.approx(1.0)
    assert found.groups.min() >= 0.0
    assert rules.lagrangian(found) == pytest.approx(found.value)


def test_without_a_mixture_that_meets_the_bound_the_price_is_the_highest():
    rules = Rules(np.array([[0.1, 0.3]]), np.ones(2), np.array([[0.5, 0.2]]), np.ones((1, 2)))
    found = best_multipliers(rules, np.array([7.0]))
    assert found.constraints == pytest.approx([7.0])
    assert found.value == pytest.approx(0.3 + 7 * 0.2)


# --- an exact learner: of all rules on a few cells, the one of least cost ------------------------

CELLS = 7


def cells_problem(seed, objective=None, constraints=None, n=400):
    rng = np.random.default_rng(seed)
    cell, group = rng.integers(0, CELLS, n), np.where(rng.random(n) < 0.5, "a", "b")
    cell = np.where((group == "a") & (rng.random(n) < 0.5), cell // 2, cell)
    y = (rng.random(n) < (cell + 1 + (group == "b")) / (CELLS + 2)).astype(int)
    objective = error_rate() if objective is None else objective
    if constraints is None:
        constraints = [positive_rate(B) - positive_rate(A) <= 0.05]
    forms, goals = bound_to_rows(y, group, objective, constraints)
    if objective.greater_is_better:
        forms = forms.negated()
    return MeasuredGoals(forms, goals, np.arange(n)), cell


def rules_of(problem, answers):
    """The rules of J predictions, shape (n, J)."""
    columns = [problem.objective.fractions(one) for one in answers.T]
    above = np.column_stack([part[0] for part in columns])
    below = np.array([part[1][0] for part in columns])
    forms = problem.constraints.forms
    divisor = forms.denominator @ answers + forms.denominator_constant[:, None]
    return Rules(above, below, problem.linear[0] @ answers - problem.linear[1][:, None], divisor)


def all_rules(problem, cell):
    answers = np.array(list(product([0.0, 1.0], repeat=CELLS)))[:, cell].T
    return answers, rules_of(problem, answers)


def cheapest(problem, cell, multipliers):
    costs = np.bincount(cell, weights=row_costs(problem, multipliers), minlength=CELLS)
    return (costs < 0)[cell].astype(float)[:, None]


GOALS = {
    "parity": (None, None),
    "precision": (recall(), [precision() >= 0.75]),
    "ratio": (f1(), [positive_rate(A) >= 0.9 * positive_rate(B), positive_rate() <= 0.4]),
    "worst group": (worst(error_rate, by="g"), [positive_rate() <= 0.4]),
    "worst recall": (worst(recall, by="g"), [positive_rate() <= 0.4]),
}


@pytest.mark.parametrize("objective, constraints", GOALS.values(), ids=GOALS)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rounds_with_an_exact_learner_end_at_the_best_mixture_of_all_rules(
    seed, objective, constraints
):
    problem, cell = cells_problem(seed, objective, constraints)
    _, every = all_rules(problem, cell)
    highest = highest_multipliers(problem)
    optimum = best_multipliers(every, highest)
    tried = [Multipliers.nothing(problem)]
    first = cheapest(problem, cell, replace(tried[0], value=every.lagrangian(tried[0])))
    known = rules_of(problem, np.hstack([first, 0 * first, 0 * first + 1]))
    for _ in range(40):
        found = next_multipliers(known, tried, highest)
        tried.append(found.multipliers)
        new = rules_of(problem, cheapest(problem, cell, found.multipliers))
        known = Rules.joined([known, new])
    assert best_multipliers(known, highest).value == pytest.approx(optimum.value, abs=1e-6)
    # nothing that meets the constraints is better than promised
    final = next_multipliers(known, tried, highest)
    assert every.best_value() >= final.value - final.gap - 1e-6
    assert final.value >= optimum.value - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_costs_are_those_of_the_lagrangian(seed):
    problem, cell = cells_problem(seed, *GOALS["ratio"])
    answers, every = all_rules(problem, cell)
    multipliers = Multipliers(-0.4, np.array([0.3, 1.2]), ONE)
    reduced = every.above[0] + 0.4 * every.below + multipliers.constraints @ every.missed
    np.testing.assert_allclose(
        np.diff(row_costs(problem, multipliers) @ answers), np.diff(reduced), atol=1e-12
    )
    best = rules_of(problem, cheapest(problem, cell, multipliers))
    least = best.above[0] + 0.4 * best.below + multipliers.constraints @ best.missed
    assert least[0] == pytest.approx(reduced.min())


def mixture(rules):
    """Weights of the best mixture, by the primal linear program."""
    found = linprog(
        rules.above[0],
        A_ub=rules.missed,
        b_ub=np.zeros(len(rules.missed)),
        A_eq=rules.below[None, :],
        b_eq=[1.0],
    )
    return found.x / found.x.sum()


@pytest.mark.parametrize("objective", [recall(), f1()], ids=str)
def test_a_price_per_bound_is_a_finite_difference(objective):
    value, step = {}, 1e-4
    for t in (0.75 - step, 0.75, 0.75 + step):
        problem, cell = cells_problem(0, objective, [precision() >= t])
        answers, every = all_rules(problem, cell)
        found = best_multipliers(every, HIGH)
        value[t] = found.value
        if t == 0.75:
            mixed = answers @ mixture(every)
            multiplier = multipliers_per_bound(
                found.constraints, problem.objective, problem.constraints.forms, mixed
            )[0]
    low, _, high = value.values()
    assert multiplier > 0.01
    assert (high - low) / (2 * step) == pytest.approx(multiplier, rel=0.02)


# --- thresholds as rules ------------------------------------------------------------------------


@pytest.mark.parametrize("z", [0.0, norm.isf(0.2)])
def test_cuts_are_rules_with_their_rates_and_limits(z):
    score, _, data = made(200)
    score = np.round(score, 1)  # ties
    goals, limits = bound(recall(), [precision() >= 0.6, positive_rate() <= 0.5], data)
    found = rules_of_curve(Curve.of(score[goals.rows]), goals, limits, z)
    thresholds = [np.inf, *np.unique(score)[::-1]]
    assert found.above.shape == (1, len(thresholds))
    for k, threshold in enumerate(thresholds):
        positive = (score >= threshold).astype(float)[goals.rows]
        above, below = goals.objective.fractions(positive)
        assert (found.above[0, k], found.below[k]) == pytest.approx((above[0], below[0]))
        divisors = goals.constraints.forms.fractions(positive)[1]
        if (divisors > 0).all():
            slack = limits.at(positive, z)
            np.testing.assert_allclose(found.missed[:, k], -slack * divisors, atol=1e-12)


def test_skipped_rows_and_weights_count():
    y = np.array([0, 1, 1, 0], dtype=np.int8)
    weight = np.array([1.0, 2.0, 0.0, 1.0])
    data = Data(Rows(Columns.read(None, None, 4, "attributes"), y, weight), None, 1, [0, 1])
    goals, _ = bound(error_rate(), [recall() >= 0.5], data)
    np.testing.assert_allclose(row_costs(goals, Multipliers(0.0, ONE, ONE)), [0.25, -1.5, 0.25])
    assert goals.rows.tolist() == [0, 1, 3]
    assert score_limits(goals.constraints, data).rows.shape[1] == 4
