"""Every solver on known optima; the second-order one on second opinions, awkward problems."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained.paper._augmented_lagrangian import DualState
from skbandit.constrained.paper._problem import majorize
from skbandit.constrained.solvers import (
    AugmentedLagrangianSolver,
    ConvexProblem,
    CuttingPlaneSolver,
    CvxpySolver,
    SolverError,
)
from tests.constrained.paper.convex_problems import (
    awkward_problem,
    known_optimum,
    penalized,
    random_problem,
)
from tests.problems import tightened
from tests.tiers import examples, first

REFERENCE = CvxpySolver({"solver": "CLARABEL"})
BY_CVXPY, SECOND_ORDER = "infeasible", r"no point within the hard.*misses them by .* contradict"
SOLVERS = {
    "PIQP": (CvxpySolver({"solver": "PIQP"}), 1e-10, 1e-9, BY_CVXPY),
    "CLARABEL": (REFERENCE, 1e-10, 1e-9, BY_CVXPY),
    "cutting_plane": (CuttingPlaneSolver(), 1e-10, 1e-9, "penalty of 10000 .* constraint [01] "),
    "lagrangian": (AugmentedLagrangianSolver(), 1e-8, 1e-4, SECOND_ORDER),
}
"""Solver, the gap asked for, how far the solution may be off then, and why there is none."""


@pytest.fixture(params=SOLVERS)
def solver(request):
    if request.param == "PIQP":
        pytest.importorskip("piqp")
    return SOLVERS[request.param]


@pytest.mark.parametrize("violation", [None, 0.02])
@pytest.mark.parametrize("seed", first(1, range(1, 6)))
def test_finds_a_known_optimum(solver, seed, violation):
    """Also where a multiplier equals the penalty: its constraint is missed by a known amount."""
    problem, w, b, v = known_optimum(seed, violation=violation)
    solver, gap, off, _ = solver
    penalty = np.inf if violation is None else v[0]
    solution = solver.solve(problem, penalty, gap)
    np.testing.assert_allclose(solution.coef, w, atol=off)
    assert solution.intercept == pytest.approx(b, abs=off)
    np.testing.assert_allclose(solution.multipliers, v, atol=off)
    assert solution.excess == pytest.approx(violation or 0.0, abs=max(off / 100, 1e-9))
    value = penalized(problem, w, b, 0.0 if violation is None else penalty)
    assert solution.dual - 1e-12 <= value <= solution.primal + 1e-12
    assert solution.gap <= gap


def test_sparse_rows_change_nothing(solver):
    problem, (solver, gap, _, _) = random_problem(3), solver
    X = np.where(np.abs(problem.X) > 0.7, problem.X, 0.0)
    dense, sparse = (solver.solve(replace(problem, X=A), np.inf, gap) for A in (X, csr_array(X)))
    assert dense.primal == pytest.approx(sparse.primal, abs=gap)
    # alpha-strong convexity: by how much coefficients may differ
    np.testing.assert_allclose(dense.coef, sparse.coef, atol=np.sqrt(4 * gap / problem.alpha))


def test_impossible_constraints_raise(solver):
    solver, gap, _, reason = solver
    with pytest.raises(SolverError, match=reason):
        solver.solve(tightened(random_problem(0), np.full(2, 10.0)), np.inf, gap)


def solve(problem, penalty=np.inf, tol=1e-8, warm=None):
    return AugmentedLagrangianSolver().solve(problem, penalty, tol, warm)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("alpha", first(2, [1e-6, 1e-2, 1e-8, 1e-4, 1.0, 10.0]))
def test_agrees_with_cvxpy(alpha, penalty, fit_intercept):
    problem = random_problem(0, n=150, d=8, m=3, alpha=alpha, fit_intercept=fit_intercept)
    found, expected = solve(problem, penalty), REFERENCE.solve(problem, penalty, 1e-10)
    assert found.primal == pytest.approx(expected.primal, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-3, atol=1e-4)


@pytest.mark.thorough
@examples(50)
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


@pytest.mark.parametrize("room", [1e-3, 1e-5])
def test_opposed_constraints_that_leave_hardly_any_room(room):
    """A rate both <= c and >= c - room, f small enough for every hinge to be tight."""
    rng = np.random.default_rng(0)
    X, toward = rng.uniform(-1, 1, (80, 4)), np.sign(rng.normal(size=80))
    P, Q = np.zeros((3, 80)), np.zeros((3, 80))
    P[0], Q[0] = np.maximum(-toward, 0) / 80, np.maximum(toward, 0) / 80
    P[1] = Q[2] = 1 / 80
    problem = ConvexProblem(X, csr_array(P), csr_array(Q), np.array([0, 0.6, 0.4 + room]), 0.01)
    found, expected = solve(problem, tol=1e-7), REFERENCE.solve(problem, np.inf, 1e-10)
    assert found.excess <= 1e-6
    assert found.primal == pytest.approx(expected.primal, abs=1e-5)
    assert found.dual <= expected.primal + 1e-7


def test_one_row_at_every_kink():
    """Rows exactly at f = -+1/2 of a majorizer, where both hinges are kept."""
    X = np.array([[1.0], [-1.0], [0.5], [-0.5], [1.0]])
    signed = np.array([[-0.2, 0.2, -0.2, 0.2, 0.2], [0.5, 0, -0.5, 0, 0]])
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    problem = majorize(X, P, Q, np.array([0.0, 0.7]), 0.1, X[:, 0] * 0.5)
    found, expected = solve(problem), REFERENCE.solve(problem, np.inf, 1e-10)
    assert found.primal == pytest.approx(expected.primal, abs=1e-8)


@pytest.mark.parametrize("m", [0, 2])
def test_without_costs_zero_is_optimal(m):
    """Every row of the data on a flat bound: all of P and Q empty."""
    empty = csr_array((1 + m, 6))
    problem = ConvexProblem(np.ones((6, 2)), empty, empty, np.full(1 + m, 0.1), 0.1)
    found = solve(problem)
    np.testing.assert_allclose(found.coef, 0, atol=1e-8)
    assert found.primal == pytest.approx(-0.1, abs=1e-9)
    assert found.gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("penalty", [np.inf, 0.5])
@pytest.mark.parametrize("seed", first(1, range(4)))
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


@pytest.mark.thorough
def test_a_warm_start_from_elsewhere_does_no_harm():
    problem = random_problem(3, n=80, d=5, alpha=0.01)
    far = replace(solve(problem), coef=np.full(5, 30.0), intercept=-40.0)
    wrong_size = DualState(np.ones(7), 1e9)
    for state in (far.state, "of another solver", wrong_size):
        warm = replace(far, multipliers=np.array([9.0, 0.0]), state=state)
        assert solve(problem, warm=warm).primal == pytest.approx(solve(problem).primal, abs=1e-7)


def test_a_warm_start_with_an_intercept_where_there_is_none():
    problem = random_problem(3, fit_intercept=False)
    found = solve(problem, warm=replace(solve(problem), intercept=3.0))
    assert found.intercept == 0.0
    assert found.primal == pytest.approx(solve(problem).primal, abs=1e-7)


def test_duplicated_rows_count_as_their_weights():
    problem = random_problem(2, n=60, d=4, alpha=0.01)
    twice = ConvexProblem(
        np.vstack([problem.X, problem.X]),
        *(csr_array(np.tile(W.toarray(), 2) / 2) for W in (problem.P, problem.Q)),
        problem.gamma,
        problem.alpha,
    )
    assert solve(twice).primal == pytest.approx(solve(problem).primal, abs=1e-7)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_of_the_objective_do_not_matter(factor):
    problem = random_problem(4, n=60, d=4, alpha=0.01)
    scale = csr_array(np.diag([factor, 1.0, 1.0]))
    scaled = replace(
        problem,
        P=csr_array(scale @ problem.P),
        Q=csr_array(scale @ problem.Q),
        gamma=scale @ problem.gamma,
        alpha=factor * problem.alpha,
    )
    one, other = solve(problem), solve(scaled, tol=1e-8 * factor)
    assert other.primal / factor == pytest.approx(one.primal, abs=1e-6)


@pytest.mark.thorough
def test_unsorted_repeated_and_long_indices():
    rng = np.random.default_rng(0)
    problem = random_problem(1, n=60, d=6, alpha=0.01)
    dense = np.where(rng.random((60, 6)) < 0.5, problem.X, 0.0)
    indices, data, indptr = [], [], [0]
    for row in dense:
        columns = rng.permutation(np.repeat(np.flatnonzero(row), 2))
        indices, data = [*indices, *columns], [*data, *row[columns] / 2]
        indptr.append(len(indices))
    X = csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=dense.shape)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    kept = X.indices.copy()
    messy, tidy = solve(replace(problem, X=X), 5.0), solve(replace(problem, X=dense), 5.0)
    assert messy.primal == pytest.approx(tidy.primal, abs=1e-8)
    np.testing.assert_array_equal(X.indices, kept)


@pytest.mark.thorough
def test_read_only_arrays():
    problem = random_problem(1, n=40, d=3)
    X = csr_array(problem.X)
    for part in (X.data, X.indices, X.indptr, problem.gamma, problem.X, problem.P.data):
        part.flags.writeable = False
    assert solve(replace(problem, X=X)).gap <= 1e-8
    assert solve(problem).gap <= 1e-8


def test_many_constraints():
    problem = random_problem(5, n=100, d=6, m=60, slack=0.03, alpha=0.01)
    found, expected = solve(problem), REFERENCE.solve(problem, np.inf, 1e-10)
    assert found.primal == pytest.approx(expected.primal, abs=1e-6)


@pytest.mark.thorough
def test_a_thousand_constraints_on_few_rows_each():
    rng = np.random.default_rng(0)
    n, m = 300, 1200
    rows = np.repeat(np.arange(m), 4)
    signed = csr_array((rng.uniform(-0.25, 0.25, 4 * m), (rows, rng.integers(0, n, 4 * m))), (m, n))
    X = rng.normal(size=(n, 5))
    goal = csr_array(-np.sign(X[:, :1].T) / n)
    P, Q = (
        csr_array(np.vstack([(s * goal).maximum(0).toarray(), (s * signed).maximum(0).toarray()]))
        for s in (1, -1)
    )
    gamma = P @ np.full(n, 0.5) + Q @ np.full(n, 0.5) + 0.05
    problem = ConvexProblem(X, P, Q, gamma, 0.01)
    found, expected = solve(problem, tol=1e-5), REFERENCE.solve(problem, np.inf, 1e-9)
    assert found.primal == pytest.approx(expected.primal, abs=2e-5)
    assert found.excess <= 1e-6


def test_a_wrong_option_is_named():
    with pytest.raises(ValueError, match="max_iter=0 must be at least 1"):
        AugmentedLagrangianSolver(max_iter=0)
