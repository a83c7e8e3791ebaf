"""The convex subproblem by cvxpy: second opinions, brute force, the certificate, backends."""

import re

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained.solvers import (
    ConvexProblem,
    CvxpySolver,
    HingeDuals,
    SolverError,
    certify,
)
from tests.constrained.paper.convex_problems import random_problem
from tests.problems import tightened
from tests.tiers import examples

theorem = examples(40)


def solve(problem, penalty=np.inf, tol=1e-10, solver="CLARABEL"):
    return CvxpySolver({"solver": solver}).solve(problem, penalty, tol)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 4.0])
def test_two_points_by_hand(alpha):
    """Rows +-1, right answers wanted: max(0, 1/2 - w) + alpha/2 w^2 has w = min(1/2, 1/alpha)."""
    P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    problem = ConvexProblem(np.array([[1.0], [-1.0]]), P, Q, np.zeros(1), alpha)
    found = solve(problem)
    w = min(0.5, 1 / alpha)
    assert found.coef[0] == pytest.approx(w, abs=1e-9)
    assert found.primal == pytest.approx(0.5 - w + alpha / 2 * w**2, abs=1e-12)


@theorem
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.3, 3.0, np.inf]))
def test_rough_duals_give_a_lower_bound_too(seed, fit_intercept, penalty):
    rng = np.random.default_rng(seed)
    problem = random_problem(seed % 2, n=25, slack=0.01, fit_intercept=fit_intercept)
    found = solve(problem, penalty)
    spread = rng.choice([0.01, 0.1, 10.0])
    up, down = rng.normal(0, spread, (2, 25))
    v = np.minimum(rng.exponential(1, 2), penalty)
    rough = certify(problem, rng.normal(size=3), 0.3, v, penalty, HingeDuals(up, down))
    assert rough.dual <= found.primal + 1e-12
    near = certify(
        problem, found.coef, found.intercept, found.multipliers, penalty, HingeDuals(up, down)
    )
    assert near.dual <= found.primal + 1e-12
    assert near.primal == pytest.approx(found.primal, abs=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 7.0])
def test_unbalanced_duals_are_balanced_within_their_bounds(share):
    """Under a heavy ridge w is nearly 0 and the bound is nearly half the duals' sum."""
    problem = random_problem(1, m=0, alpha=1e4)
    best = solve(problem)
    boxes = [np.asarray(W.sum(axis=0)).ravel() for W in (problem.P, problem.Q)]
    for up, down in [(share, 1.0), (1.0, share)]:
        duals = HingeDuals(up * boxes[0], down * boxes[1])
        found = certify(problem, best.coef, best.intercept, best.multipliers, np.inf, duals)
        assert found.dual <= best.primal + 1e-12
        if share >= 1:
            assert found.dual == pytest.approx(best.primal, abs=1e-3)


def test_a_high_enough_penalty_is_a_hard_constraint():
    problem = random_problem(0, slack=0.02)
    hard = solve(problem)
    assert 0 < hard.multipliers.max() < 10
    elastic = solve(problem, 10.0)
    np.testing.assert_allclose(elastic.coef, hard.coef, atol=1e-9)
    np.testing.assert_allclose(elastic.multipliers, hard.multipliers, atol=1e-9)


def test_missing_solver_comes_with_its_pip_line(monkeypatch):
    import cvxpy

    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL"])
    with pytest.raises(SolverError, match=r'pip install "cvxpy\[GUROBI\]"'):
        solve(random_problem(0), solver="GUROBI")


# --- a backend that fails hands over to the next ---------------------------------------------


@pytest.fixture
def failing(monkeypatch):
    """Backends named in the list raise cvxpy's error, or return without a solution."""
    import cvxpy

    names, solved = [], cvxpy.Problem.solve

    def solve(program, *args, solver, **options):
        if solver in names:
            raise cvxpy.error.SolverError(f"{solver} is scripted to fail.")
        return solved(program, *args, solver=solver, **options)

    monkeypatch.setattr(cvxpy.Problem, "solve", solve)
    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL", "PIQP"])
    return names


@pytest.mark.parametrize("penalty", [np.inf, 0.3])
def test_a_failing_backend_hands_over_to_the_next(failing, penalty):
    problem = random_problem(2, slack=0.02)
    right = solve(problem, penalty)
    failing.append("PIQP")
    with pytest.warns(UserWarning, match="PIQP failed, CLARABEL takes over: .* scripted to fail"):
        found = CvxpySolver().solve(problem, penalty, 1e-10)
    np.testing.assert_allclose(found.coef, right.coef, atol=1e-7)
    failing.append("CLARABEL")
    with pytest.warns(UserWarning) as told:
        found = CvxpySolver().solve(problem, penalty, 1e-10)
    for warning, names in zip(told, ["PIQP.*CLARABEL", "CLARABEL.*newton"], strict=True):
        assert re.search(names, str(warning.message))
    np.testing.assert_allclose(found.coef, right.coef, atol=1e-7)
    assert 0 <= found.gap + 1e-12 <= 1e-9


@pytest.mark.parametrize("options", [{"solver": "PIQP"}, {"max_iter": 100}])
def test_a_backend_with_options_is_the_only_one(failing, options):
    failing.append("PIQP")
    with pytest.raises(SolverError, match="PIQP failed: PIQP is scripted"):
        CvxpySolver(options).solve(random_problem(0), np.inf, 1e-8)


def test_infeasible_is_an_answer_not_a_failure(failing):
    """No warning (which would be an error here): hard constraints are retried by MM."""
    pytest.importorskip("piqp")
    with pytest.raises(SolverError, match="infeasible"):
        CvxpySolver().solve(tightened(random_problem(0), np.full(2, 10.0)), np.inf, 1e-8)


def test_without_the_first_backend_the_second_is_the_first(failing, monkeypatch):
    import cvxpy

    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL"])
    failing.append("PIQP")
    assert CvxpySolver().solve(random_problem(0), np.inf, 1e-10).gap < 1e-8
