"""Polish: rough solutions become exact, and nothing becomes worse, however degenerate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.paper import _cvxpy, _polish
from skbandit.constrained.paper._interface import hinge
from skbandit.constrained.paper._polish import polish
from skbandit.constrained.paper._problem import majorize
from skbandit.constrained.solvers import ConvexProblem, CvxpySolver, HingeDuals, certify

EXACT = 1e-12
SOLVERS = ["PIQP", "CLARABEL"]


def rough(problem, penalty, tol, solver="PIQP"):
    """The solution and hinge duals that the backend itself returns: the input of polish."""
    if solver == "PIQP":
        pytest.importorskip("piqp")
    own = {"eps_duality_gap_abs": tol, "eps_duality_gap_rel": tol} if solver == "PIQP" else {}
    caught = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cvxpy, "polish", lambda p, s, duals, penalty: caught.append(duals) or s)
        solution = CvxpySolver({"solver": solver, **own}).solve(problem, penalty, tol)
    return solution, caught[0]


def make(X, signed, slack, alpha=0.1, fit_intercept=True):
    """Rows from signed ones; constraints are met with `slack` left by small random scores."""
    P, Q = csr_array(np.maximum(signed, 0)), csr_array(np.maximum(-signed, 0))
    f = X @ np.random.default_rng(1).normal(0, 0.3, X.shape[1])
    return ConvexProblem(X, P, Q, P @ hinge(f) + Q @ hinge(-f) + slack, alpha, fit_intercept)


def noisy(seed, n=60, d=4, m=2, slack=0.03, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signed = rng.uniform(-1, 1, (1 + m, n))
    signed[0] = -np.sign(X[:, 0] + 0.5 * rng.normal(size=n)) * rng.uniform(0.5, 1.5, n)
    return make(X, signed / np.abs(signed).sum(axis=1, keepdims=True), slack, **options)


def changed(problem, X, P=None, Q=None):
    P, Q = problem.P if P is None else P, problem.Q if Q is None else Q
    return ConvexProblem(X, P, Q, problem.gamma, problem.alpha)


def duplicated_rows():
    p = noisy(0)
    P, Q = (csr_array(np.tile(W.toarray(), 2) / 2) for W in (p.P, p.Q))
    return changed(p, np.vstack([p.X, p.X]), P, Q)


def duplicated_columns():
    p = noisy(1)
    return changed(p, np.hstack([p.X, p.X[:, :2]]))


def constant_features():
    p = noisy(2)
    return changed(p, np.hstack([p.X, np.ones((60, 1)), np.zeros((60, 1))]))


def separable():
    X = np.random.default_rng(3).normal(size=(40, 2))
    X[:, 0] += np.sign(X[:, 0])
    return make(X, -np.sign(X[None, :, 0]) / 40, 0.0, alpha=1e-4)


def few_distinct_rows():
    X = np.random.default_rng(4).integers(0, 2, (80, 3)).astype(float)
    y = np.sign(X[:, 0] - 0.5 + np.random.default_rng(5).normal(0, 0.5, 80))
    return make(X, np.vstack([-y, np.ones(80)]) / 80, -0.02)


def at_the_kinks_already():
    """The bound made at an optimum: its supporting rows sit exactly on kinks."""
    p = noisy(6, m=1)
    s = CvxpySolver().solve(p, np.inf, 1e-10)
    f = p.X @ s.coef + s.intercept
    assert (np.abs(np.abs(f) - 0.5) < 1e-9).sum() >= 3
    return majorize(p.X, p.P, p.Q, p.gamma, p.alpha, f)


def sparse():
    p = noisy(7)
    return changed(p, csr_array(np.where(np.abs(p.X) > 0.5, p.X, 0.0)))


CASES = {
    "several constraints": (lambda: noisy(8, m=3), np.inf),
    "no constraint": (lambda: noisy(9, m=0), np.inf),
    "no active constraint": (lambda: noisy(10, slack=5.0), np.inf),
    "slack constraint, elastic": (lambda: noisy(10, slack=5.0), 2.0),
    "multipliers at the penalty": (lambda: noisy(11, slack=-0.2), 0.05),
    "one at the penalty, one below": (lambda: noisy(12, slack=np.array([0, -0.3, 0.02])), 0.6),
    "no intercept": (lambda: noisy(13, fit_intercept=False), np.inf),
    "more features than rows": (lambda: noisy(14, n=15, d=30), np.inf),
    "duplicated rows": (duplicated_rows, np.inf),
    "duplicated columns": (duplicated_columns, np.inf),
    "constant and zero columns": (constant_features, np.inf),
    "separable": (separable, np.inf),
    "few distinct rows": (few_distinct_rows, 1.0),
    "bound made at an optimum": (at_the_kinks_already, np.inf),
    "sparse": (sparse, np.inf),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_rough_solutions_become_exact(case, solver):
    make_problem, penalty = CASES[case]
    problem = make_problem()
    before, duals = rough(problem, penalty, 1e-7, solver)
    assert abs(before.gap) > EXACT
    after = polish(problem, before, duals, penalty)
    assert abs(after.gap) <= EXACT
    excess = problem.rows(problem.X @ after.coef + after.intercept)[1:].max(initial=0.0)
    assert excess <= EXACT or np.isfinite(penalty)
    assert (after.multipliers >= 0).all() and (after.multipliers <= penalty).all()


def test_nonsense_is_left_alone():
    """Random points with random duals: kept, or replaced by something certified better."""
    rng = np.random.default_rng(0)
    problem = noisy(1)
    best = CvxpySolver().solve(problem, 2.0, 1e-10)
    for _ in range(50):
        v = rng.uniform(0, 2, 2)
        duals = HingeDuals(*rng.uniform(0, 0.05, (2, 60)))
        before = certify(problem, rng.normal(size=4), rng.normal(), v, 2.0, duals)
        after = polish(problem, before, duals, 2.0)
        assert abs(after.gap) <= abs(before.gap)
        assert after.dual <= best.primal + EXACT
        assert after.primal >= best.dual - EXACT


def test_too_large_systems_are_left_alone():
    problem = noisy(3)
    before, duals = rough(problem, np.inf, 1e-4)
    assert polish(problem, before, duals, np.inf, 4) is before


def test_inactive_constraints_get_multiplier_zero():
    problem = noisy(4, slack=5.0)
    for solver in SOLVERS:
        before, duals = rough(problem, np.inf, 1e-4, solver)
        assert (before.multipliers > 0).any()
        np.testing.assert_array_equal(polish(problem, before, duals, np.inf).multipliers, 0.0)


@pytest.mark.parametrize("exact_gap", [-1e-3, 1e-3])
def test_a_certificate_that_contradicts_itself_is_no_improvement(monkeypatch, exact_gap):
    """A dual value above the primal one is as wrong as a large gap."""
    problem = noisy(0)
    solution, duals = rough(problem, np.inf, 1e-6, "CLARABEL")
    assert abs(solution.gap) < 1e-4

    def contradicts(*args):
        found = certify(*args)
        return replace(found, dual=found.primal - exact_gap)

    monkeypatch.setattr(_polish, "certify", contradicts)
    assert polish(problem, solution, duals, np.inf) is solution
