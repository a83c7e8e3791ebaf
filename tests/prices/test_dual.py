"""The dual of decisions against linear programs solved by HiGHS, and against brute force."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron

from skbandit.prices._dual import attainable, best_prices, conflicting, dropped_prices, told_apart
from skbandit.prices._problem import Problem


def random_problem(seed, n=40, F=3, D=4, m=3, n_objectives=1):
    """Random tables; bounds between what some random rule attains and the least possible."""
    rng = np.random.default_rng(seed)
    strata = rng.dirichlet(np.full(F, 0.5), n)
    weight = rng.dirichlet(np.ones(n))
    objective = rng.uniform(size=(n_objectives, F, D))
    goals = rng.normal(size=(m, F, D))
    problem = Problem(weight, strata, objective, rng.normal(size=n_objectives), goals, None)
    at_random = np.tensordot(goals, strata.T @ np.outer(weight, np.full(D, 1 / D)), 2)
    bound = at_random - 0.25 + rng.normal(scale=0.2, size=m)
    return Problem(weight, strata, objective, problem.constant, goals, bound)


def solve(problem):
    """The optimum over randomized rules, by HiGHS; None if no rule meets the goals."""
    objectives = [np.asarray(problem.strata @ table) for table in problem.objective]
    n, D = objectives[0].shape
    base = problem.base if problem.base.size else np.zeros((n, D))
    tables = [table + np.where(np.isfinite(base), base, 0.0) for table in objectives]
    tables += [problem.table(k) for k in range(len(problem.bound))]
    rows = [(problem.weight[:, None] * table).ravel() for table in tables]
    # the last variable is the largest of the objectives
    last = np.where(np.arange(len(rows)) < len(objectives), -1.0, 0.0)
    one_each = csr_array(kron(eye_array(n), np.ones((1, D))))
    found = linprog(
        np.append(np.zeros(n * D), 1.0),
        np.column_stack([rows, last]),
        np.concatenate([-problem.constant, problem.bound]),
        np.column_stack([one_each.toarray(), np.zeros(n)]),
        np.full(n, float(problem.n_select)),
        bounds=[(0, float(x)) for x in np.isfinite(base).ravel()] + [(None, None)],
        method="highs",
    )
    return found.fun if found.status == 0 else None


@pytest.mark.thorough
@pytest.mark.parametrize("n_objectives", [1, 3])
def test_equals_the_linear_program(n_objectives):
    n_feasible = 0
    for seed in range(20):
        problem = random_problem(seed, n_objectives=n_objectives)
        optimum = solve(problem)
        prices, value = best_prices(problem)
        assert (len(conflicting(problem)) > 0) == (optimum is None), seed
        if optimum is None:
            assert value > 10
            continue
        n_feasible += 1
        assert value == pytest.approx(optimum, abs=3e-3)
        assert value <= optimum + 1e-9  # a lower bound, whatever the accuracy
        assert prices.objectives.sum() == pytest.approx(1)
    assert 5 < n_feasible < 20


@pytest.mark.thorough
def test_the_rule_is_within_as_many_rows_of_the_optimum_as_there_are_goals():
    """A vertex splits at most m rows; the others have the decision of least cost."""
    for seed in range(10):
        problem = random_problem(seed, n=400)
        optimum = solve(problem)
        if optimum is None:
            continue
        prices, _ = best_prices(problem)
        decided = problem.decide(prices)
        B = problem.strata.T @ (decided * problem.weight[:, None])
        reached = float(np.tensordot(problem.objective[0], B, 2) + problem.constant[0])
        some = len(problem.bound) * problem.weight.max()
        assert abs(reached - optimum) <= 3 * some
        assert (problem.excess(decided) <= 6 * some).all()


def test_a_sparse_strata_matrix_changes_nothing():
    problem = random_problem(3)
    sparse = Problem(
        problem.weight,
        csr_array(problem.strata),
        problem.objective,
        problem.constant,
        problem.goals,
        problem.bound,
    )
    one, other = best_prices(problem), best_prices(sparse)
    assert one[1] == pytest.approx(other[1], abs=1e-6)
    np.testing.assert_array_equal(problem.decide(one[0]), sparse.decide(one[0]))


def test_without_goals_each_row_has_its_cheapest_decision():
    problem = random_problem(0, m=0)
    prices, value = best_prices(problem)
    cost = problem.strata @ problem.objective[0]
    np.testing.assert_array_equal(problem.decide(prices).argmax(axis=1), cost.argmin(axis=1))
    assert value == pytest.approx(problem.weight @ cost.min(axis=1) + problem.constant[0])


def test_conflicting_goals_are_those_without_which_the_others_hold():
    tables = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]])
    problem = Problem(
        np.full(10, 0.1),
        np.ones((10, 1)),
        np.array([[[0.0, 1.0]]]),
        np.zeros(1),
        tables,
        np.array([0.4, 0.4, 0.9]),  # shares of the two decisions, and a goal that always holds
    )
    np.testing.assert_array_equal(conflicting(problem), [0, 1])
    assert attainable(problem, 0) == pytest.approx(0.2, abs=1e-3)
    assert attainable(problem, 1) == pytest.approx(0.2, abs=1e-3)


def test_what_is_attainable_of_a_ratio():
    """Precision where nine of ten decisions must be made: the best tenth is left out."""
    n = 100
    probability = (np.arange(n) + 0.5) / n
    strata = np.column_stack([1 - probability, probability])
    right, decided = np.array([[0, 0], [0, 1.0]]), np.array([[0, 1.0], [0, 1.0]])
    goals = np.array([0.99 * decided - right, -decided])  # precision >= .99, 90 % decided
    problem = Problem(
        np.full(n, 1 / n),
        strata,
        np.zeros((1, 2, 2)),
        np.zeros(1),
        goals,
        np.array([0.0, -0.9]),
        np.array([decided, 0 * decided]),
        np.array([0.0, 1.0]),
    )
    best = probability[10:].mean()
    assert attainable(problem, 0) == pytest.approx(0.99 - best, abs=2e-3)
    tightened = problem.tightened(np.array([-attainable(problem, 0), 0.0]))
    assert not len(conflicting(tightened))


@pytest.mark.thorough
def test_price_of_a_constraint_is_what_the_program_gains_without_it():
    n_priced, declared = 0, np.array([4, 0, 4, 1])  # the first and third are one
    for seed in range(20):
        problem = random_problem(seed, m=4)
        if (optimum := solve(problem)) is None:
            continue
        found = dropped_prices(problem, best_prices(problem)[0], declared)
        gains = [optimum - solve(problem.with_goals(declared != k)) for k in (4, 0, 1)]
        np.testing.assert_allclose(found, [gains[0], gains[1], gains[0], gains[2]], atol=2e-4)
        n_priced += max(gains) > 0.01
    assert n_priced > 5


def test_numbers_are_told_apart():
    assert [told_apart(value, 0.8) for value in (0.75432, 0.80004, 0.8 + 2e-12)] == [
        "0.754",
        "0.80004",
        "",
    ]
    assert told_apart(1.95e-12, 0.0) == ""
