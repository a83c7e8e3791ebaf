"""Decisions with costs of their own under budgets, against linear programs solved by HiGHS."""

import numpy as np
import pytest

from skbandit.prices._dual import attainable, best_prices, conflicting
from skbandit.prices._problem import Prices, Problem, Use, decisions, lowest_entries, stacked
from tests.prices.test_dual import solve


def random_problem(seed, n=60, D=5, n_select=1):
    """Shares, a spend by row and decision, parity between two groups; some are unavailable."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, D))
    base[:, 1:][rng.random((n, D - 1)) < 0.1] = np.inf
    if n_select > 1:
        base = np.where(np.isinf(base), 5.0, base)
    weight = np.full(n, 1 / n)
    women = rng.random(n) < 0.5
    share = np.eye(D)
    of_women, of_men = (np.where(one, 1 / np.mean(one), 0.0) for one in (women, ~women))
    spend = Use(np.ones(n), rng.uniform(size=(n, D)))
    goals = (
        ((1.0, Use(np.ones(n), share[0])),),
        ((1.0, spend),),
        ((1.0, Use(of_women, share[1])), (-1.0, Use(of_men, share[1]))),
        ((-1.0, Use(np.ones(n), share[2])),),
    )
    bound = np.array([0.1, 0.35, 0.05, -0.25]) * n_select + rng.normal(scale=0.1, size=4)
    return Problem.of_uses(base, weight, tuple(goals), bound, n_select)


@pytest.mark.thorough
@pytest.mark.parametrize("n_select", [1, 2])
def test_equals_the_linear_program(n_select):
    n_feasible = 0
    for seed in range(17):
        problem = random_problem(seed, n_select=n_select)
        optimum, value = solve(problem), best_prices(problem)[1]
        assert (len(conflicting(problem)) > 0) == (optimum is None), seed
        if optimum is None:
            continue
        n_feasible += 1
        assert value == pytest.approx(optimum, abs=4e-3)
        assert value <= optimum + 1e-9
    assert 3 < n_feasible < 17


def test_rules_choose_as_many_as_they_should_and_only_what_is_available():
    for n_select in (1, 2):
        problem = random_problem(1, n_select=n_select)
        decided = problem.decide(best_prices(problem)[0])
        assert (decided.sum(axis=1) == n_select).all()
        assert np.isfinite(problem.base[decided]).all()


def test_labels_are_decisions_with_the_costs_that_labels_expect():
    """The two problems are one: probabilities times tables are costs and uses."""
    rng = np.random.default_rng(0)
    n, K = 300, 3
    P, weight = rng.dirichlet(np.ones(K), n), np.full(n, 1 / n)
    errors = 1 - np.eye(K)
    recalls = [-np.outer(one, one) / P[:, k].mean() for k, one in enumerate(np.eye(K)[:2])]
    bound = np.array([-0.6, -0.6])
    by_label = Problem(weight, P, errors[None], np.zeros(1), np.array(recalls), bound)
    goals = tuple(((1.0, Use(np.ones(n), P @ table)),) for table in recalls)
    by_action = Problem.of_uses(P @ errors, weight, goals, bound)
    (one, value), (other, its) = best_prices(by_label), best_prices(by_action)
    assert value == pytest.approx(its, abs=1e-4)
    assert (
        np.mean(by_label.decide(one).argmax(axis=1) == by_action.decide(other).argmax(axis=1))
        > 0.98
    )


def test_a_bound_beyond_any_value_is_not_attainable():
    """The others miss each other by less than the tolerance of conflicts, and so by 0.9 in all."""
    share = np.eye(2)
    of_all = [(-1.0, Use(np.ones(10), share[0])), (-1.0, Use(np.ones(10), share[1]))]
    problem = Problem.of_uses(
        np.zeros((10, 2)),
        np.full(10, 0.1),
        ((of_all[0],), (of_all[1],), (of_all[1],)),
        np.array([-0.6, -0.40009, -0.5]),
    )
    assert not len(conflicting(problem.with_goals(np.arange(3) < 2)))
    np.testing.assert_array_equal(conflicting(problem), [0, 2])
    assert attainable(problem, 2) == np.inf


def test_what_is_attainable():
    problem = Problem.of_uses(
        np.zeros((10, 2)),
        np.full(10, 0.1),
        tuple(((1.0, Use(np.ones(10), np.eye(2)[j])),) for j in range(2)),
        np.array([0.4, 0.4]),
    )
    np.testing.assert_array_equal(conflicting(problem), [0, 1])
    assert attainable(problem, 0) == pytest.approx(0.2, abs=1e-3)


def test_a_column_of_the_rows_times_amounts_by_decision_is_a_table():
    rng = np.random.default_rng(0)
    n, D = 30, 4
    rate, has = rng.uniform(size=(2, n))
    by_decision = [np.eye(D)[1], np.array([0.0, 2.0, 0.0, -0.5])]
    factors = [Use(rate, amount, has) for amount in by_decision]
    tables = [Use(rate, has[:, None] * amount) for amount in by_decision]
    base, weight = rng.normal(size=(n, D)), np.full(n, 1 / n)
    short, full = (
        Problem.of_uses(base, weight, (((1.0, a), (-2.0, b)), ((0.5, b),)), np.array([0.2, 0.1]))
        for a, b in (factors, tables)
    )
    kept = rng.permutation(n)[:20]
    share = rng.dirichlet(np.ones(D), n)
    prices = Prices(np.ones(1), np.array([0.7, 1.3]))
    for ours, theirs, of_rows in (
        (short, full, share),
        (short.rows(kept), full.rows(kept), share[kept]),
        (stacked(short, short), stacked(full, full), np.concatenate([share, share])),
    ):
        assert ours.row_costs(prices) == pytest.approx(theirs.row_costs(prices))
        assert ours.used(of_rows) == pytest.approx(theirs.used(of_rows))
        assert ours.reach == pytest.approx(theirs.reach)
        for k in range(2):
            assert ours.table(k) == pytest.approx(theirs.table(k))
        for mine, other in zip(ours.uses[0], theirs.uses[0], strict=True):
            decided = decisions(lowest_entries(-of_rows, 1))
            assert mine[1].of(*decided) == pytest.approx(other[1].of(*decided))
