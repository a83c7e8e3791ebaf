"""Augmented Lagrangian: many features, MM steps, and its parts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.paper._augmented_lagrangian import AugmentedLagrangian
from skbandit.constrained.paper._interface import hinge
from skbandit.constrained.paper._problem import majorize
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


@pytest.mark.thorough
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


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", first(2, range(8)))
def test_hard_constraints_hold_to_a_millionth_however_rough_the_gap(seed, tol):
    """In the units of the constraints' own rows, whose weights sum to 1."""
    problem = random_problem(seed, n=60, slack=0.001)
    found = AugmentedLagrangianSolver().solve(problem, np.inf, tol)
    assert found.gap <= tol
    rows = problem.rows(problem.X @ found.coef + found.intercept)
    assert rows[1:].max() <= 1e-6
