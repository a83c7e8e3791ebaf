"""Augmented Lagrangian: many features, MM steps, and its parts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.paper import hinge, majorize
from skbandit.constrained.paper._augmented_lagrangian import (
    AugmentedLagrangian,
    column_squares,
)
from skbandit.constrained.solvers import (
    AugmentedLagrangianSolver,
    ConvexProblem,
    CvxpySolver,
    SolverError,
)
from tests.constrained.paper.convex_problems import random_problem
from tests.tiers import first

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


@pytest.mark.parametrize("penalty", first(1, [np.inf, 2.0]))
@pytest.mark.parametrize("alpha", first(1, [1e-4, 1e-6, 1e-2]))
@pytest.mark.parametrize("m", [0, 2])
def test_many_features(alpha, penalty, m):
    problem = words(0, alpha=alpha, m=m)
    found, expected = solve(problem, penalty, 1e-6), REFERENCE.solve(problem, penalty, 1e-9)
    assert 0 <= found.gap <= 1e-6
    assert found.primal == pytest.approx(expected.primal, rel=1e-4, abs=1e-6)


def majorized(problem, solution):
    """The next MM step's problem, of the same costs."""
    f = problem.X @ solution.coef + solution.intercept
    return majorize(problem.X, problem.P, problem.Q, problem.gamma, problem.alpha, f)


@pytest.fixture
def newton_steps(monkeypatch):
    """A list that grows by an item a Newton step."""
    taken, newton = [], AugmentedLagrangian.newton

    def counted(self, *args):
        taken.append(self.sigma)
        return newton(self, *args)

    monkeypatch.setattr(AugmentedLagrangian, "newton", counted)
    return taken


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_warm_starts_across_mm_steps_end_where_cold_ones_do_and_sooner(seed, newton_steps):
    problem = words(seed, n=600)
    steps = []
    for carry in (lambda s: s, lambda s: replace(s, state=None), lambda s: None):
        convex, solution = problem, solve(problem, 5.0, 1e-5)
        newton_steps.clear()
        values = []
        for _ in range(4):
            convex = majorized(problem, solution)
            solution = solve(convex, 5.0, 1e-5, carry(solution))
            values.append(solution.primal)
        steps.append(len(newton_steps))
        again = solve(convex, 5.0, 1e-5)
        assert solution.primal == pytest.approx(again.primal, abs=2e-5)
        distance = np.linalg.norm(solution.coef - again.coef)
        assert distance**2 <= 2 * (solution.gap + again.gap) / problem.alpha * 2
    warm, _, cold = steps
    assert warm < 0.8 * cold


def test_too_few_updates_raise_for_hard_constraints_only():
    problem, once = random_problem(0, slack=0.0), AugmentedLagrangianSolver(max_iter=1)
    with pytest.raises(SolverError, match=r"the gap was .*max_iter"):
        once.solve(problem, np.inf, 1e-9)
    rough = once.solve(problem, 1.0, 1e-9)
    best = solve(problem, 1.0)
    assert rough.gap > 1e-9
    assert rough.dual <= best.primal <= rough.primal + 1e-12


@pytest.fixture(params=[0, 1])
def lagrangian(request):
    problem = random_problem(request.param, n=50, d=4, m=3, slack=0.0)
    rng = np.random.default_rng(request.param)
    sigma, center = 0.1, rng.exponential(size=3)
    return AugmentedLagrangian(
        problem, problem.gamma, 0.02 * rng.normal(size=50), center, sigma, 5.0, 2.0, 1e-12
    )


def value_by_hand(lagrangian, z, v):
    """The proximal minimum row by row, over a fine grid and the kinks."""
    problem, weights = lagrangian.problem, np.append(1.0, v)
    f = z[:, None] + np.linspace(-4, 4, 40001)
    f[:, :2] = -0.5, 0.5
    p, q = (weights @ W.toarray() for W in (problem.P, problem.Q))
    away = z[:, None] + (lagrangian.theta / lagrangian.sigma)[:, None] - f
    costs = p[:, None] * hinge(f) + q[:, None] * hinge(-f) + lagrangian.sigma / 2 * away**2
    proximal = np.sum((v - lagrangian.center) ** 2) / (2 * lagrangian.tau)
    return costs.min(axis=1).sum() - weights @ lagrangian.gamma - proximal


def test_value_and_best_multipliers_by_brute_force(lagrangian):
    rng = np.random.default_rng(0)
    z = lagrangian.problem.X @ rng.normal(size=4)
    here = lagrangian.at(np.zeros(4), 0.0, z, np.ones(3))
    assert here.value == pytest.approx(value_by_hand(lagrangian, z, here.v), abs=1e-7)
    assert ((here.v >= 0) & (here.v <= lagrangian.upper)).all()
    for size in (1e-3, 1e-1, 1.0):
        v = np.clip(here.v + size * rng.normal(size=3), 0, lagrangian.upper)
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


def test_column_squares():
    X = np.array([[1.0, 0.0, -2.0], [3.0, 0.0, 1.0]])
    np.testing.assert_array_equal(column_squares(X), [10, 0, 5])
    np.testing.assert_array_equal(column_squares(csr_array(X)), [10, 0, 5])


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", first(2, range(8)))
def test_hard_constraints_hold_to_a_millionth_however_rough_the_gap(seed, tol):
    """In the units of the constraints' own rows, whose weights sum to 1."""
    problem = random_problem(seed, n=60, slack=0.001)
    found = AugmentedLagrangianSolver().solve(problem, np.inf, tol)
    assert found.gap <= tol
    rows = problem.rows(problem.X @ found.coef + found.intercept)
    assert rows[1:].max() <= 1e-6
