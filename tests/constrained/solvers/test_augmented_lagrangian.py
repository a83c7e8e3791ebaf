"""Augmented Lagrangian: known optima, cvxpy as second opinion, awkward problems, warm starts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained._ramp import ConvexProblem, hinge, majorise
from skbandit.constrained.solvers import CvxpySolver, SolverError
from skbandit.constrained.solvers import _augmented_lagrangian as module
from skbandit.constrained.solvers._augmented_lagrangian import AugmentedLagrangianSolver
from skbandit.constrained.solvers._lagrangian import (
    AugmentedLagrangian,
    column_squares,
    conjugate_gradients,
    pinned_newton,
)
from tests.constrained.solvers.convex_problems import (
    awkward_problem,
    known_optimum,
    penalised,
    random_problem,
)
from tests.problems import tightened

SOLVER = AugmentedLagrangianSolver()
REFERENCE = CvxpySolver({"solver": "CLARABEL"})


def solve(problem, penalty=np.inf, tol=1e-8, warm=None):
    return SOLVER.solve(problem, penalty, tol, warm)


def words(seed, n=300, d=2000, per_row=8, alpha=1e-4, m=2, spread=0.3):
    """Bags of words: few of many features a row, the frequent ones much more so."""
    rng = np.random.default_rng(seed)
    columns = (d ** rng.random((n, per_row))).astype(int) - 1
    X = np.zeros((n, d))
    X[np.arange(n)[:, None], columns] = rng.uniform(0.5, 1.5, (n, per_row))
    problem = random_problem(seed, n, d=3, m=m)
    toward = np.sign(X @ rng.normal(size=d))
    signed = np.vstack([-toward / n, (problem.P - problem.Q)[1:].toarray()])
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    f = X @ rng.normal(0, spread, d)
    gamma = P @ hinge(f) + Q @ hinge(-f) + 0.01
    return ConvexProblem(csr_array(X), P, Q, gamma, alpha)


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
    assert 0 <= found.gap <= 1e-8


def test_finds_a_known_optimum_at_the_price_cap():
    problem, w, _, v = known_optimum(1, violation=0.02)
    found = solve(problem, penalty=v[0])
    np.testing.assert_allclose(found.coef, w, atol=1e-4)
    np.testing.assert_allclose(found.multipliers, v, atol=1e-4)
    assert found.excess == pytest.approx(0.02, abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("alpha", [1e-8, 1e-6, 1e-4, 1e-2, 1.0, 10.0])
def test_agrees_with_cvxpy(alpha, penalty, fit_intercept):
    problem = random_problem(0, n=150, d=8, m=3, alpha=alpha, fit_intercept=fit_intercept)
    found, expected = solve(problem, penalty), REFERENCE.solve(problem, penalty, 1e-10)
    assert found.primal == pytest.approx(expected.primal, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("penalty", [np.inf, 2.0])
@pytest.mark.parametrize("alpha", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("m", [0, 2])
def test_many_features(alpha, penalty, m):
    problem = words(0, alpha=alpha, m=m)
    found, expected = solve(problem, penalty, 1e-6), REFERENCE.solve(problem, penalty, 1e-9)
    assert 0 <= found.gap <= 1e-6
    assert found.primal == pytest.approx(expected.primal, rel=1e-4, abs=1e-6)


@settings(derandomize=True, deadline=None, max_examples=50)
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
    """Rows exactly at f = -+1/2 of a majoriser, where both hinges are kept."""
    X = np.array([[1.0], [-1.0], [0.5], [-0.5], [1.0]])
    signed = np.array([[-0.2, 0.2, -0.2, 0.2, 0.2], [0.5, 0, -0.5, 0, 0]])
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    problem = majorise(X, P, Q, np.array([0.0, 0.7]), 0.1, X[:, 0] * 0.5)
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
        assert 0 <= warm.gap <= tol
    np.testing.assert_allclose(warm.coef, best.coef, atol=0.02)


def majorised(problem, solution):
    """The next MM step's problem, of the same costs."""
    f = problem.X @ solution.coef + solution.intercept
    return majorise(problem.X, problem.P, problem.Q, problem.gamma, problem.alpha, f)


@pytest.fixture
def newton_steps(monkeypatch):
    """A list that grows by an item a Newton step."""
    taken, newton = [], AugmentedLagrangian.newton

    def counted(self, *args):
        taken.append(self.sigma)
        return newton(self, *args)

    monkeypatch.setattr(AugmentedLagrangian, "newton", counted)
    return taken


@pytest.mark.parametrize("seed", range(3))
def test_warm_starts_across_mm_steps_end_where_cold_ones_do_and_sooner(seed, newton_steps):
    problem = words(seed, n=600)
    steps = []
    for carry in (lambda s: s, lambda s: replace(s, state=None), lambda s: None):
        convex, solution = problem, solve(problem, 5.0, 1e-5)
        newton_steps.clear()
        values = []
        for _ in range(4):
            convex = majorised(problem, solution)
            solution = solve(convex, 5.0, 1e-5, carry(solution))
            values.append(solution.primal)
        steps.append(len(newton_steps))
        again = solve(convex, 5.0, 1e-5)
        assert solution.primal == pytest.approx(again.primal, abs=2e-5)
        distance = np.linalg.norm(solution.coef - again.coef)
        assert distance**2 <= 2 * (solution.gap + again.gap) / problem.alpha * 2
    warm, _, cold = steps
    assert warm < 0.8 * cold


def test_a_warm_start_from_elsewhere_does_no_harm():
    problem = random_problem(3, n=80, d=5, alpha=0.01)
    far = replace(solve(problem), coef=np.full(5, 30.0), intercept=-40.0)
    wrong_size = module.Duals(np.ones(7), 1e9)
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


def test_impossible_constraints_raise():
    impossible = tightened(random_problem(0), np.full(2, 10.0))
    with pytest.raises(
        SolverError, match=r"no point within the hard.*misses them by .* contradict"
    ):
        solve(impossible)


def test_too_few_updates_raise_for_hard_constraints_only():
    problem, once = random_problem(0, slack=0.0), AugmentedLagrangianSolver(max_iter=1)
    with pytest.raises(SolverError, match=r"the gap was .*max_iter"):
        once.solve(problem, np.inf, 1e-9)
    rough = once.solve(problem, 1.0, 1e-9)
    best = solve(problem, 1.0)
    assert rough.gap > 1e-9
    assert rough.dual <= best.primal <= rough.primal + 1e-12


def test_a_wrong_option_is_named():
    with pytest.raises(ValueError, match="max_iter=0 must be at least 1"):
        AugmentedLagrangianSolver(max_iter=0)


@pytest.fixture(params=[0, 1])
def lagrangian(request):
    problem = random_problem(request.param, n=50, d=4, m=3, slack=0.0)
    rng = np.random.default_rng(request.param)
    sigma, centre = 0.1, rng.exponential(size=3)
    return AugmentedLagrangian(
        problem, problem.gamma, 0.02 * rng.normal(size=50), centre, sigma, 5.0, 2.0, 1e-12
    )


def value_by_hand(lagrangian, z, v):
    """The proximal minimum row by row, over a fine grid and the kinks."""
    problem, weights = lagrangian.problem, np.append(1.0, v)
    f = z[:, None] + np.linspace(-4, 4, 40001)
    f[:, :2] = -0.5, 0.5
    p, q = (weights @ W.toarray() for W in (problem.P, problem.Q))
    away = z[:, None] + (lagrangian.theta / lagrangian.sigma)[:, None] - f
    costs = p[:, None] * hinge(f) + q[:, None] * hinge(-f) + lagrangian.sigma / 2 * away**2
    proximal = np.sum((v - lagrangian.centre) ** 2) / (2 * lagrangian.tau)
    return costs.min(axis=1).sum() - weights @ lagrangian.gamma - proximal


def test_value_and_best_multipliers_by_brute_force(lagrangian):
    rng = np.random.default_rng(0)
    z = lagrangian.problem.X @ rng.normal(size=4)
    here = lagrangian.at(np.zeros(4), 0.0, z, np.ones(3))
    assert here.value == pytest.approx(value_by_hand(lagrangian, z, here.v), abs=1e-7)
    assert ((here.v >= 0) & (here.v <= lagrangian.cap)).all()
    for size in (1e-3, 1e-1, 1.0):
        v = np.clip(here.v + size * rng.normal(size=3), 0, lagrangian.cap)
        assert value_by_hand(lagrangian, z, v) <= here.value + 1e-7


def test_derivatives_are_those_of_the_value(lagrangian):
    """theta is the gradient in z; the Newton step solves the system of that gradient's slopes."""
    problem, rng = lagrangian.problem, np.random.default_rng(3)
    w, b = rng.normal(size=4), 0.1

    def gradient(u):
        here = lagrangian.at(u[:-1], u[-1], problem.X @ u[:-1] + u[-1], np.ones(3))
        slope = problem.X.T @ here.theta + problem.alpha * u[:-1]
        return np.append(slope, here.theta.sum()), here

    u, h = np.append(w, b), 1e-6
    g, here = gradient(u)
    numeric = [
        (gradient(u + h * e)[1].value - gradient(u - h * e)[1].value) / (2 * h) for e in np.eye(5)
    ]
    np.testing.assert_allclose(numeric, g, atol=1e-7)
    H = np.array([(gradient(u + h * e)[0] - gradient(u - h * e)[0]) / (2 * h) for e in np.eye(5)])
    step = lagrangian.newton(here, g, np.zeros(5), 1e-13)
    np.testing.assert_allclose(H @ np.append(step.w, step.b), -g, atol=2e-3 * np.linalg.norm(g))


def test_conjugate_gradients():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30)) * 10.0 ** rng.uniform(-2, 2, 30)
    H, r = A.T @ A + np.eye(30), rng.normal(size=30)
    x = conjugate_gradients(lambda u: H @ u, r, H.diagonal(), 1e-10)
    np.testing.assert_allclose(H @ x, r, atol=1e-8)
    np.testing.assert_array_equal(conjugate_gradients(lambda u: H @ u, 0 * r, H.diagonal(), 0.1), 0)


@pytest.mark.parametrize("seed", range(5))
def test_pinned_newton_is_exact_where_nothing_comes_back(seed):
    """Exact for S diagonal, and inside the box; feasible always."""
    rng = np.random.default_rng(seed)
    r, diagonal = rng.normal(size=8), rng.uniform(0.1, 1, 8)
    found = pinned_newton(np.diag(diagonal), r, 1.5)
    np.testing.assert_allclose(found, np.clip(r / diagonal, 0, 1.5))
    A = rng.normal(size=(12, 8))
    S, inside = A.T @ A, rng.uniform(0.1, 1.4, 8)
    np.testing.assert_allclose(pinned_newton(S, S @ inside, 1.5), inside)
    found = pinned_newton(S, 9 * r, 1.5)
    assert ((found >= 0) & (found <= 1.5)).all()


def test_column_squares():
    X = np.array([[1.0, 0.0, -2.0], [3.0, 0.0, 1.0]])
    np.testing.assert_array_equal(column_squares(X), [10, 0, 5])
    np.testing.assert_array_equal(column_squares(csr_array(X)), [10, 0, 5])
