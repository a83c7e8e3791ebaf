"""Algorithm 2: second opinions, and valid cuts and bounds at every iteration."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained.paper import _cutting_plane as module
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.paper._train import TrainingOptions, train
from skbandit.constrained.solvers import (
    ConvexProblem,
    CuttingPlaneSolver,
    CvxpySolver,
    Solution,
    SolverError,
)
from skbandit.rates import error_rate, false_positive_rate, positive_rate, precision, recall
from tests.constrained.paper.convex_problems import penalized, random_problem
from tests.problems import compiled, tightened
from tests.tiers import examples, first
from tests.worlds import refuses

theorem = examples(40)

ROUGH = 1e-6
"""A gap that cutting planes reach by themselves: polishing starts beyond the floor."""


def solve(problem, penalty=np.inf, tol=ROUGH, warm=None, **options):
    return CuttingPlaneSolver(**options).solve(problem, penalty, tol, warm)


def exact(problem, penalty=np.inf):
    return CvxpySolver().solve(problem, penalty, 1e-10)


def dual_function(problem, v):
    """min over (w, b) of Psi(w, b, v), by cvxpy."""
    weights = np.append(1.0, v)
    P, Q = (csr_array(csr_array(weights[None]) @ W) for W in (problem.P, problem.Q))
    gamma = np.array([weights @ problem.gamma])
    svm = ConvexProblem(problem.X, P, Q, gamma, problem.alpha, problem.fit_intercept)
    return exact(svm).primal


def violations(problem, found):
    return problem.rows(problem.X @ found.coef + found.intercept)[1:]


class Record:
    """What the solver does, iteration by iteration."""

    def __init__(self, monkeypatch):
        self.models, self.lower, self.upper, self.caps, self.svms = [], [], [], [], []
        maximize, center, solve_svm = module.maximize, module.analytic_center, module.solve_svm

        def note_maximize(h, cap):
            self.models.append(h)
            return maximize(h, cap)

        def note_center(h, lower, cap, top):
            self.lower.append(lower)
            self.upper.append(top.value)
            self.caps.append(cap)
            return center(h, lower, cap, top)

        def note_svm(*args, **kwargs):
            self.svms.append(solve_svm(*args, **kwargs))
            return self.svms[-1]

        monkeypatch.setattr(module, "maximize", note_maximize)
        monkeypatch.setattr(module, "analytic_center", note_center)
        monkeypatch.setattr(module, "solve_svm", note_svm)

    @property
    def epochs(self):
        return sum(svm.epochs for svm in self.svms)


@pytest.fixture
def record(monkeypatch):
    return Record(monkeypatch)


# The solution


@pytest.mark.parametrize("fit_intercept", first(1, [True, False]))
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("m", first(2, [1, 5, 0, 2]))
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_agrees_with_cvxpy(seed, m, penalty, fit_intercept):
    problem = random_problem(seed, n=60, m=m, slack=0.02, fit_intercept=fit_intercept)
    found, best = solve(problem, penalty), exact(problem, penalty)
    assert found.gap <= ROUGH
    assert found.primal == pytest.approx(best.primal, abs=2 * ROUGH)
    # alpha-strong convexity: by how much w may be off
    np.testing.assert_allclose(found.coef, best.coef, atol=np.sqrt(2 * ROUGH / 0.1))
    assert (found.intercept == 0.0) or fit_intercept
    finer = solve(problem, penalty, 1e-10)
    np.testing.assert_allclose(finer.multipliers, best.multipliers, atol=1e-4)
    assert finer.primal == pytest.approx(best.primal, abs=1e-8)  # rtol, if not polished


def test_rows_that_cost_something_whatever_the_answer():
    """The costs of an objective and a constraint on one row do not cancel."""
    problem = random_problem(5, n=80)
    opposed = replace(problem, P=csr_array(problem.P + 0.3 * problem.Q[[1, 0, 2]]))
    found, best = solve(opposed, 0.5), exact(opposed, 0.5)
    assert found.primal == pytest.approx(best.primal, abs=2 * ROUGH)
    assert found.dual == pytest.approx(best.primal, abs=2 * ROUGH)


@pytest.mark.parametrize("tol", first(2, [1e-2, 1e-7, 0.1, 1e-4]))
@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_what_is_returned_is_certified_and_feasible_at_any_accuracy(seed, penalty, tol):
    problem = random_problem(seed, m=3, slack=0.01)
    found, best = solve(problem, penalty, tol), exact(problem, penalty)
    assert found.gap <= tol
    assert found.dual <= best.primal + 1e-12
    assert found.primal >= best.primal - 1e-12
    if np.isinf(penalty):
        assert violations(problem, found).max() <= 1e-8
    else:
        value = penalized(problem, found.coef, found.intercept, penalty)
        assert found.primal == pytest.approx(value, abs=1e-12)
        assert (found.multipliers <= penalty).all()


@pytest.mark.parametrize("penalty", [0.0, 0.05, 0.5, 50.0])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_price_caps_the_multipliers(seed, penalty):
    problem = random_problem(seed, slack=-0.05)
    found = solve(problem, penalty, 1e-10)
    missed = violations(problem, found)
    assert (found.multipliers <= penalty).all()
    np.testing.assert_allclose(found.multipliers[missed > 1e-6], penalty, rtol=1e-6)
    assert found.primal == pytest.approx(exact(problem, penalty).primal, abs=1e-7)
    np.testing.assert_allclose(found.multipliers[missed < -1e-6], 0, atol=1e-6)


# The algorithm, line by line


@pytest.mark.parametrize("penalty", [np.inf, 0.3])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_every_cut_is_above_the_dual_function(record, seed, m, penalty):
    """From the first, rough ones on, everywhere: also outside V."""
    problem = random_problem(seed, m=m, slack=0.02)
    solve(problem, penalty, 1e-4)
    cuts = record.models[-1]
    assert len(cuts.offsets) >= 3
    rng = np.random.default_rng(seed)
    for scale in (0.1, 1.0, 10.0):
        v = rng.exponential(scale, m)
        assert cuts(v) >= dual_function(problem, v) - 1e-9


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_bounds_close_in_on_the_optimum(record, seed, m):
    problem = random_problem(seed, m=m, slack=0.02)
    best = exact(problem)
    solve(problem)
    lower, upper, caps = (np.array(a) for a in (record.lower, record.upper, record.caps))
    assert np.all(lower <= best.primal + 1e-9)
    large_enough = caps >= best.multipliers.max()
    assert large_enough.any()
    assert np.all(upper[large_enough] >= best.primal - 1e-9)
    assert np.all(np.diff(lower) >= 0)
    assert np.all(np.diff(upper)[np.diff(caps) == 0] <= 1e-9)


def test_without_constraints_one_svm_is_solved(record):
    problem = random_problem(0, m=0)
    found = solve(problem)
    assert found.gap <= ROUGH
    as_it_is, solved = record.svms
    assert as_it_is.epochs == 0
    assert solved.epochs > 0


def test_the_box_grows_to_hold_large_multipliers(record):
    """The objective counted 50 times: so do the multipliers."""
    problem = random_problem(1, slack=0.002)
    scale = np.array([[50.0], [1.0], [1.0]])
    P, Q = (csr_array(W.multiply(scale)) for W in (problem.P, problem.Q))
    times_50 = replace(problem, P=P, Q=Q, gamma=scale[:, 0] * problem.gamma, alpha=5.0)
    found, best = solve(times_50, tol=1e-5), exact(problem)
    assert 50 * best.multipliers.max() > 4
    assert record.caps[-1] > record.caps[0]
    assert found.primal == pytest.approx(50 * best.primal, abs=1e-5)
    assert violations(times_50, found).max() <= 1e-8


@pytest.mark.thorough
def test_one_feasible_point_is_found():
    """Constraints that only one w allows: f <= -1/2 on one row, f >= -1/2 on another like it."""
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    P = csr_array([[0.0, 0.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    Q = csr_array([[0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    problem = ConvexProblem(X, P, Q, np.array([0.0, 0.0, 1.0]), 0.1, fit_intercept=False)
    found, best = solve(problem), exact(problem)
    assert found.primal == pytest.approx(best.primal, abs=2 * ROUGH)
    np.testing.assert_allclose(found.coef, [-0.5, 0.5], atol=5e-3)
    assert violations(problem, found).max() <= 1e-8


# Warm starts and budgets


@pytest.mark.thorough
@pytest.mark.parametrize("tol", first(1, [1e-6, 1e-3]))
@pytest.mark.parametrize("m", first(1, [3, 1]))
def test_warm_starts_save_work_and_change_nothing(record, m, tol):
    effort = np.zeros(2)
    for seed in range(6):
        problem = random_problem(seed, n=300, m=m, slack=0.01)
        near = solve(tightened(problem, np.full(m, -1e-4)), tol=tol)
        found = []
        for i, start in enumerate((None, near)):
            record.svms.clear()
            found.append(solve(problem, tol=tol, warm=start))
            effort[i] += record.epochs
        assert found[1].gap <= tol
        assert found[1].primal == pytest.approx(found[0].primal, abs=tol)
    assert effort[1] < 0.8 * effort[0]


@theorem
@given(st.integers(0, 10**6), st.sampled_from([np.inf, 0.5]))
def test_the_result_is_never_worse_than_the_warm_start(seed, penalty):
    """However rough, and wherever it comes from: MM relies on it."""
    problem = random_problem(seed % 5, slack=0.02)
    rng = np.random.default_rng(seed)
    best = exact(problem, penalty)
    t = rng.uniform(0, 0.1)
    inside = exact(tightened(problem, np.full(2, 0.01)), penalty)
    coef = (1 - t) * inside.coef + t * best.coef
    b = (1 - t) * inside.intercept + t * best.intercept
    warm = Solution(coef, b, np.zeros(2), np.inf, -np.inf)
    found = solve(problem, penalty, 10.0, warm)
    value = penalized(problem, coef, b, 0.0 if np.isinf(penalty) else penalty)
    assert found.primal <= value + 1e-12


@pytest.mark.thorough
def test_a_warm_start_that_does_not_fit_is_used_as_far_as_it_does():
    problem = random_problem(0, m=2)
    other = solve(random_problem(1, n=20, m=1))
    found = solve(problem, warm=replace(other, multipliers=np.array([3.0])))
    assert found.primal == pytest.approx(exact(problem).primal, abs=2 * ROUGH)
    priced = solve(problem, 0.1, warm=solve(problem))
    assert priced.primal == pytest.approx(exact(problem, 0.1).primal, abs=2 * ROUGH)


@pytest.mark.parametrize("options", [{"max_cuts": 3}, {"max_epochs": 2}])
def test_a_spent_budget_leaves_the_true_gap(options):
    problem = random_problem(2, n=200, slack=0.02)
    found, best = solve(problem, 0.5, **options), exact(problem, 0.5)
    assert found.gap > ROUGH
    assert found.dual <= best.primal + 1e-12
    assert best.primal <= found.primal + 1e-12


def test_a_budget_spent_before_anything_is_feasible_raises():
    problem = random_problem(0, slack=0.001)
    assert violations(problem, exact(problem, 0.0)).max() > 0.01
    refuses("raise max_cuts or max_epochs", solve, problem, max_cuts=1, error=SolverError)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("share", 0.0),
        ("share", 1.0),
        ("max_cuts", 0),
        ("max_epochs", -1),
        ("rtol", 0.0),
        ("largest_multiplier", np.nan),
    ],
)
def test_wrong_options_are_named(option, value):
    refuses(f"{option} must be .*, got {value}", CuttingPlaneSolver, **{option: value})


# Whole trainings


@pytest.mark.thorough
def test_parity_on_a9a_as_cvxpy(a9a):
    """The first convex problem from w = 0, as in Fig. 2, under the 80% rule."""
    sex = np.where(a9a.male, "Male", "Female")
    y = (a9a.target == np.unique(a9a.target)[1]).astype(int)
    parity = positive_rate({"g": "Male"}) <= positive_rate({"g": "Female"}) / 0.8
    problem = compiled(a9a.data, y, sex, error_rate(), [parity], alpha=1e-3)
    convex = problem.majorize_at(Point(np.zeros(problem.X.shape[1]), 0.0))
    found, best = solve(convex), exact(convex)
    assert found.gap <= ROUGH
    assert found.primal == pytest.approx(best.primal, abs=2 * ROUGH)
    assert found.multipliers[0] == pytest.approx(best.multipliers[0], abs=1e-2)
    assert violations(convex, found).max() <= 1e-8


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_training_ends_at_the_optimum_of_the_other_solvers(seed):
    """Rough early steps led to other local optima, worse by up to a third."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(600, 8)), rng.integers(0, 2, 600)
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=600) > 0).astype(int)
    goals = [precision() >= 0.75, recall({"g": 1}) >= 0.6, positive_rate() <= 0.45]
    problem = compiled(X, y, group, false_positive_rate(), goals, alpha=1e-3)
    ends = [
        train(problem, TrainingOptions(solver, 200, 1e-8, choose_threshold=False)).mm.path[-1]
        for solver in (CvxpySolver({"solver": "CLARABEL"}), CuttingPlaneSolver())
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-3)
