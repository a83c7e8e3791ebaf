"""Smoothed Newton: known optima, cvxpy as second opinion, awkward problems, warm starts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained._ramp import ConvexProblem
from skbandit.constrained.solvers import CvxpySolver, SolverError
from skbandit.constrained.solvers._line_search import line_search
from skbandit.constrained.solvers._newton import SmoothedNewtonSolver
from tests.constrained.solvers.convex_problems import (
    awkward_problem,
    known_optimum,
    penalised,
    random_problem,
)
from tests.problems import tightened

SOLVER = SmoothedNewtonSolver()
REFERENCE = CvxpySolver({"solver": "CLARABEL"})


def solve(problem, penalty=np.inf, tol=1e-8, warm=None):
    return SOLVER.solve(problem, penalty, tol, warm)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_finds_a_known_optimum(seed, as_sparse):
    problem, w, b, v = known_optimum(seed)
    if as_sparse:
        problem = replace(problem, X=csr_array(problem.X))
    found = solve(problem)
    np.testing.assert_allclose(found.coef, w, atol=1e-4)
    assert found.intercept == pytest.approx(b, abs=1e-4)
    np.testing.assert_allclose(found.multipliers, v, atol=1e-4)
    value = problem.rows(problem.X @ w + b)[0] + problem.alpha / 2 * w @ w
    assert found.dual - 1e-12 <= value <= found.primal + 1e-12
    assert found.gap <= 1e-8


def test_finds_a_known_optimum_at_the_price_cap():
    problem, w, _, v = known_optimum(1, violation=0.02)
    found = solve(problem, penalty=v[0])
    np.testing.assert_allclose(found.coef, w, atol=1e-4)
    np.testing.assert_allclose(found.multipliers, v, atol=1e-4)
    assert found.excess == pytest.approx(0.02, abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("alpha", [1e-7, 1e-4, 1e-2, 1.0, 10.0])
def test_agrees_with_cvxpy(alpha, penalty, fit_intercept):
    problem = random_problem(0, n=150, d=8, m=3, alpha=alpha, fit_intercept=fit_intercept)
    found, expected = solve(problem, penalty), REFERENCE.solve(problem, penalty, 1e-10)
    assert found.primal == pytest.approx(expected.primal, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-3, atol=1e-4)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.sampled_from([np.inf, 2.0]))
def test_awkward_problems(seed, penalty):
    """What is certified holds, and the optimum is reached within 1e-4 of the objective's size."""
    problem = awkward_problem(seed)
    expected = REFERENCE.solve(problem, penalty, 1e-10)
    if abs(expected.gap) > 1e-7:
        return  # no second opinion
    found = solve(problem, penalty, 1e-7)
    assert found.dual <= expected.primal + 1e-7
    assert found.primal >= expected.dual - 1e-7
    assert found.primal <= expected.primal + 1e-4 * (1 + abs(expected.primal))
    assert np.isfinite(penalty) or found.excess <= 1e-6
    if not problem.fit_intercept:
        assert found.intercept == 0.0


def test_where_newton_gets_stuck_the_augmented_lagrangian_goes_on():
    """Repeated rows, 60 features, lambda 1e-6, and twenty steps only."""
    problem, hasty = awkward_problem(2316), SmoothedNewtonSolver(max_iter=20)
    stuck = hasty._solve(problem, 2.0, 1e-7, None)
    assert stuck is None or stuck.gap > 1e-3
    assert hasty.solve(problem, 2.0, 1e-7).gap < 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_primal_is_what_it_says(seed):
    problem = random_problem(seed)
    found = solve(problem, 0.5)
    assert found.primal == pytest.approx(
        penalised(problem, found.coef, found.intercept, 0.5), abs=1e-12
    )


@pytest.mark.parametrize("penalty", [np.inf, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_rough_and_warm_solutions_are_certified_too(seed, penalty):
    problem = random_problem(seed, n=80, d=5, alpha=0.01)
    best = solve(problem, penalty, 1e-9)
    warm = None
    for tol in (1e-1, 1e-2, 1e-3, 1e-5):
        warm = solve(problem, penalty, tol, warm)
        assert warm.dual - 1e-12 <= best.primal
        assert warm.primal >= best.dual - 1e-12
        assert warm.gap <= tol
    np.testing.assert_allclose(warm.coef, best.coef, atol=0.02)


def test_a_warm_start_from_elsewhere_does_no_harm():
    problem = random_problem(3, n=80, d=5, alpha=0.01)
    far = replace(solve(problem), coef=np.full(5, 30.0), intercept=-40.0)
    again = solve(problem, warm=replace(far, multipliers=np.array([9.0, 0.0])))
    assert again.primal == pytest.approx(solve(problem).primal, abs=1e-7)


def test_duplicated_rows_count_as_their_weights():
    problem = random_problem(2, n=60, d=4, alpha=0.01)
    twice = ConvexProblem(
        np.vstack([problem.X, problem.X]),
        *(csr_array(np.tile(W.toarray(), 2) / 2) for W in (problem.P, problem.Q)),
        problem.gamma,
        problem.alpha,
    )
    assert solve(twice).primal == pytest.approx(solve(problem).primal, abs=1e-7)


def test_unsorted_and_repeated_indices_are_put_in_order_in_a_copy():
    rng = np.random.default_rng(0)
    problem = random_problem(1, n=60, d=6, alpha=0.01)
    dense = np.where(rng.random((60, 6)) < 0.5, problem.X, 0.0)
    indices, data, indptr = [], [], [0]
    for row in dense:
        columns = rng.permutation(np.repeat(np.flatnonzero(row), 2))
        indices, data = [*indices, *columns], [*data, *row[columns] / 2]
        indptr.append(len(indices))
    X = csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=dense.shape)
    kept = X.indices.copy()
    messy, tidy = solve(replace(problem, X=X), 5.0), solve(replace(problem, X=dense), 5.0)
    assert messy.primal == pytest.approx(tidy.primal, abs=1e-8)
    np.testing.assert_array_equal(X.indices, kept)


def test_read_only_arrays():
    problem = random_problem(1, n=40, d=3)
    X = csr_array(problem.X)
    for part in (X.data, X.indices, X.indptr, problem.gamma, problem.X):
        part.flags.writeable = False
    assert solve(replace(problem, X=X)).gap <= 1e-8
    assert solve(problem).gap <= 1e-8


def test_many_constraints():
    problem = random_problem(5, n=100, d=6, m=60, slack=0.03, alpha=0.01)
    found, expected = solve(problem), REFERENCE.solve(problem, np.inf, 1e-10)
    assert found.primal == pytest.approx(expected.primal, abs=1e-6)


def test_impossible_constraints_raise():
    impossible = tightened(random_problem(0), np.full(2, 10.0))
    with pytest.raises(SolverError, match="contradict"):
        solve(impossible)


def test_a_wrong_option_is_named():
    with pytest.raises(ValueError, match="max_iter=0 must be at least 1"):
        SmoothedNewtonSolver(max_iter=0)


@pytest.mark.parametrize("bend", [0.0, 1.0, 100.0])
def test_line_search_on_a_parabola_with_a_kink(bend):
    """-t + bend/2 t^2, and a wall from t = .3 on: at most a quarter of the slope is left."""

    def merit(t):
        wall = 50 * max(t - 0.3, 0.0)
        return -t + bend / 2 * t * t + wall, -1 + bend * t + 50 * (t > 0.3)

    t, value = line_search(merit, 0.0, -1.0)
    assert value == merit(t)[0] < 0
    best = min(0.3, 1 / bend) if bend else 0.3
    assert value <= 0.75 * merit(best)[0]


def test_line_search_stays_where_nothing_is_lower():
    assert line_search(lambda t: (t, 1.0), 0.0, -1.0) == (0.0, 0.0)
