"""Theorems about training under rate constraints, on many random problems.

No statement here is statistical: every seed is fixed and every bound is to hold on each draw.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVC, LinearSVC

from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import KINK, Point
from skbandit.constrained.paper._starts import best_intercept
from skbandit.constrained.paper._tolerances import DIRECTION_SCALES
from skbandit.constrained.paper._train import TrainingOptions, train
from skbandit.constrained.solvers import CvxpySolver
from skbandit.rates import (
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests import problems
from tests.problems import compiled
from tests.tiers import first

SOLVER = CvxpySolver({"solver": "CLARABEL"})
A, B = {"g": "a"}, {"g": "b"}
PARITY = abs(positive_rate(A) - positive_rate(B))
ROUNDING = 1e-10


def sample(seed, kind="dense", n=100, noise=0.5):
    X, y, group = problems.sample(seed, n, 4, noise, above=0.3)
    if kind == "sparse":
        X = csr_array(np.where(np.abs(X) > 0.6, X, 0.0))
    elif kind == "binary":  # many rows sit exactly on kinks
        X = csr_array((X > 0).astype(float))
    return X, y, group


GOALS = {
    "false positives": (error_rate(), [false_positive_rate() <= 0.1]),
    "recall and precision": (error_rate(), [recall() >= 0.7, precision() >= 0.65]),
    "parity": (error_rate(), [PARITY <= 0.1, recall() >= 0.6]),
    "recall": (recall(), [false_positive_rate() <= 0.15, false_positive_rate(A) <= 0.15]),
    "f1": (f1(), [positive_rate() <= 0.3, positive_rate(A) >= 0.8 * positive_rate(B)]),
    "precision": (precision(), [recall() >= 0.6, positive_rate() <= 0.6]),
}


def feasible_start(problem):
    """A feasible point by elastic steps from zero, None if they find none."""
    inside = replace(problem, rhs=problem.rhs - 0.01)
    zero = Point(np.zeros(problem.X.shape[1]), 0.0)
    point = majorize_minimize(inside, zero, SOLVER, max_iter=15, tol=1e-3).point
    return point if problem.evaluate(point).violations.max() <= 0 else None


@pytest.mark.parametrize("kind", first(1, ["binary", "dense", "sparse"]))
@pytest.mark.parametrize("name", GOALS)
def test_bare_steps_descend_and_stay_feasible(name, kind):
    """The two facts of Algorithm 1, of the convex solutions themselves: none is rejected.

    Old objective >= convex value there >= convex optimum >= new objective, and
    0 >= convex rows >= ramp rows; to rounding, and to KINK where a row lies beside a kink.
    """
    steps = 0
    for seed in range(4):
        problem = compiled(*sample(seed, kind), *GOALS[name])
        point = feasible_start(problem)
        if point is None:
            continue
        current = problem.evaluate(point)
        for _ in range(6):
            convex = problem.majorize_at(point)
            solution = SOLVER.solve(convex, np.inf, 1e-10)
            moved = Point(solution.coef, solution.intercept)
            new = problem.evaluate(moved)
            rows = convex.rows(problem.scores(moved))[1:]
            assert rows.max() <= ROUNDING
            assert (new.violations <= rows + ROUNDING).all()
            assert new.objective <= current.objective + ROUNDING + KINK * (current.worst > -KINK)
            steps += 1
            if current.objective - new.objective < 1e-6:
                break
            point, current = moved, new
    assert steps >= 3


def fit(problem, max_iter=6):
    return train(problem, TrainingOptions(SOLVER, max_iter, 1e-5, choose_threshold=True))


def assert_same(one, other, atol=1e-7):
    np.testing.assert_allclose(one.point.coef, other.point.coef, atol=atol)
    assert one.point.intercept == pytest.approx(other.point.intercept, abs=atol)
    assert one.threshold.value == pytest.approx(other.threshold.value, abs=atol)
    np.testing.assert_allclose(one.multipliers, other.multipliers, atol=1e-6)


METAMORPHIC = ["false positives", "parity", "f1"]


@pytest.mark.parametrize("name", METAMORPHIC)
def test_dense_and_sparse_rows_give_the_same_classifier(name):
    X, y, group = sample(5, "sparse", n=80)
    sparse = fit(compiled(X, y, group, *GOALS[name]))
    assert_same(sparse, fit(compiled(X.toarray(), y, group, *GOALS[name])))


@pytest.mark.parametrize("objective", [error_rate(), f1()], ids=repr)
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_constraint_slack_in_every_convex_problem_changes_nothing(objective, seed):
    """Not: one that always holds. Its hinges may bind where its ramps never do."""
    X, y, group = sample(seed)
    bare = fit(compiled(X, y, group, objective))
    problem = compiled(X, y, group, objective, [positive_rate() <= 0.5, recall() >= 0.5])
    slack = fit(replace(problem, rhs=problem.rhs + 50.0))
    np.testing.assert_allclose(slack.point.coef, bare.point.coef, atol=1e-8)
    assert slack.point.intercept == pytest.approx(bare.point.intercept, abs=1e-8)
    np.testing.assert_array_equal(slack.multipliers, 0.0)
    np.testing.assert_allclose(slack.mm.path, bare.mm.path, atol=1e-10)


def outliers(seed):
    """Labels flipped, far rows mislabeled, or classes of unequal size and spread."""
    X, y, group = sample(seed, noise=0.3)
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        y = np.where(rng.random(100) < 0.15, 1 - y, y)
    elif seed % 3 == 1:
        X[:8], y[:8] = 6 * X[:8], 1 - y[:8]
    else:
        X[y == 1] *= 2.5
    return X, y, group


@pytest.mark.parametrize("seed", first(1, range(9)))
def test_no_worse_than_a_linear_svm_at_any_scale(seed):
    """Both by the ramp objective. f = half the decision function: margins of 1/2, not 1.

    LinearSVC minimizes |u|^2/2 + C sum hinge(1 - y(xu + c)); with u = 2w, c = 2b and
    C = 2/(alpha n) that is 4/alpha times alpha/2 |w|^2 + mean max(0, 1/2 - y(xw + b)).
    """
    X, y, group = outliers(seed)
    alpha = 0.02
    problem = compiled(X, y, group, error_rate(), alpha=alpha)
    svm = LinearSVC(
        C=2 / (alpha * 100), loss="hinge", tol=1e-4, max_iter=10**6, intercept_scaling=10
    ).fit(X, y)
    w, b = svm.coef_[0] / 2, svm.intercept_[0] / 2
    trained = fit(problem, max_iter=15)
    ours = problem.evaluate(trained.mm.point).objective
    assert ours <= problem.evaluate(Point(w, b)).objective + 1e-4  # the penalized intercept's error
    scaled = [problem.evaluate(best_intercept(problem, s * w)).objective for s in DIRECTION_SCALES]
    assert ours <= min(scaled) + 1e-4
    anyscale = [
        problem.evaluate(best_intercept(problem, s * w)).objective
        for s in np.geomspace(0.1, 30, 200)
    ]
    assert ours <= min(anyscale) + 1e-4


def test_the_first_direction_is_that_of_a_linear_svm():
    """The units above, checked on LIBSVM, whose intercept is not penalized either."""
    X, y, group = outliers(1)
    problem = compiled(X, y, group, error_rate(), alpha=0.02)
    found = SOLVER.solve(problem.majorize_at(Point(np.zeros(4), 0.0)), np.inf, 1e-10)
    svm = SVC(C=1.0, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(svm.coef_[0] / 2, found.coef, atol=1e-6)
    assert svm.intercept_[0] / 2 == pytest.approx(found.intercept, abs=1e-6)


# --- where it stops ------------------------------------------------------------------------


def gap(problem, point):
    """How far a point is from the optimum of Problem 3, built at that point."""
    convex = problem.majorize_at(point)
    solution = SOLVER.solve(convex, np.inf, 1e-10)

    def value(at):
        return convex.rows(problem.scores(at))[0] + problem.regularizer(at)

    return value(point) - value(Point(solution.coef, solution.intercept))


CONVERGING = {
    "unconstrained": (error_rate(), []),
    "false positives": GOALS["false positives"],
    "coverage": (error_rate(), [positive_rate() <= 0.3, recall() >= 0.5]),
}


@pytest.mark.parametrize("name", CONVERGING)
@pytest.mark.parametrize("seed", first(1, range(6)))
def test_the_last_point_solves_its_own_convex_problem(name, seed):
    """The bounds touch the ramps at the present point, so its convex value is its ramp objective.

    The optimum of Problem 3 is lower by at least what a step gains, by nothing at a fixed point.
    """
    problem = compiled(*problems.sample(seed, 60, 3), *CONVERGING[name])
    start = Point(np.zeros(3), 0.0)
    found = majorize_minimize(problem, start, SOLVER, max_iter=60, tol=1e-9)
    assert found.converged
    assert abs(gap(problem, found.point)) <= 1e-7
    assert gap(problem, start) > 1e-3  # which a point that is none does not


# --- a problem of others -------------------------------------------------------------------


@pytest.mark.parametrize("seed", first(1, range(20)))
def test_neyman_pearson_classification_is_the_same_problem(seed):
    """Of Gasso et al. (2011): the mean bounded loss over positives, with a bound over negatives.

    With the ramp for the loss, objective and constraint are the same everywhere.
    """
    X, y, _ = problems.sample(seed, 60, 3)
    goals = false_negative_rate(), [false_positive_rate() <= 0.1]
    problem = compiled(X, y, None, *goals)
    rng = np.random.default_rng(seed)
    scales = []
    for _ in range(10):
        w, b = rng.normal(size=3), rng.normal()
        found = problem.evaluate(Point(w, b))
        f = X @ w + b
        missed = np.clip(0.5 - f[y == 1], 0, 1).mean()
        alarms = np.clip(0.5 + f[y == 0], 0, 1).mean()
        assert found.objective == pytest.approx(missed + 0.05 / 2 * w @ w)
        scales.append(found.violations[0] / (alarms - 0.1))
    assert scales[0] > 0  # constraints are compared in units of their own
    np.testing.assert_allclose(scales, scales[0])
