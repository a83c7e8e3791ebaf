"""From ramp rates to hard ones: bounds move by their difference, and a rule's scale narrows it."""

import numpy as np
import pytest

from skbandit.constrained import RampClassifier
from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point, ramp
from skbandit.constrained.paper._tolerances import FEASIBLE
from skbandit.constrained.paper._train import TrainingOptions, moved_bounds, randomized, train
from skbandit.constrained.solvers import CvxpySolver
from skbandit.rates import (
    churn,
    each,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.problems import compiled, sample
from tests.tiers import first

SOLVER = CvxpySolver({"solver": "CLARABEL"})
A, B = {"g": "a"}, {"g": "b"}
GOALS = [abs(positive_rate(A) - positive_rate(B)) <= 0.02, recall() >= 0.8, precision() >= 0.6]


def hard(problem, point):
    return (problem.scores(point) > 0).astype(float)


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_moved_bounds_are_missed_by_ramp_rates_as_declared_ones_are_by_hard_rates(seed):
    X, y, group = sample(seed)
    problem = compiled(X, y, group, error_rate(), GOALS)
    rng = np.random.default_rng(seed)
    point, margin = Point(rng.normal(size=3), rng.normal() / 2), rng.uniform(0, 0.1, 4)
    moved = moved_bounds(problem, point, np.zeros(4))
    mean, declared = ramp(problem.scores(point)), problem.violation(hard(problem, point))
    np.testing.assert_allclose(moved.violation(mean), declared, atol=1e-12)
    # the room between the two sides of |a - b| stays, whatever the point
    assert moved.rhs[:2].sum() == pytest.approx(problem.rhs[:2].sum())
    more = moved_bounds(problem, point, margin)
    np.testing.assert_allclose(more.violation(mean), declared + margin, atol=1e-12)


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_a_randomized_rule_in_any_direction_with_a_feasible_cut_is_feasible(seed):
    X, y, group = sample(seed, n=200)
    problem = compiled(X, y, group, error_rate(), [recall() >= 0.8, false_positive_rate() <= 0.3])
    coef = np.array([1.0, 0.1, -0.1])
    point = randomized(problem, coef)
    assert problem.evaluate(point).worst <= FEASIBLE
    np.testing.assert_allclose(point.coef / point.coef[0], coef)
    assert not randomized(problem, np.zeros(3)).coef.any()


@pytest.mark.thorough
def test_slack_that_hard_rates_leave_unused_is_used():
    """Churn and recall bind as ramp rates; hard ones end far inside unless bounds are relaxed."""
    rng = np.random.default_rng(0)
    X = (rng.random((2000, 12)) < 0.2).astype(float)
    w = rng.normal(size=12)
    y = (X @ w + 1.2 * rng.normal(size=2000) > 0.8).astype(int)
    deployed = (X[:, :6] @ w[:6] > 0.8).astype(int)
    goals = [churn("deployed") <= 0.05, recall() >= 0.3]
    reached = []
    for init in ("zeros", "search"):
        clf = RampClassifier(false_positive_rate(), goals, alpha=1e-2, solver="newton", init=init)
        try:
            clf.fit(X, y, attributes={"deployed": deployed})
        except ValueError as error:
            clf = error.closest_
        assert clf.feasible_
        reached.append(false_positive_rate().value(y, clf.predict(X)))
    assert reached[1] <= reached[0]


def test_training_from_zero_is_the_run_of_the_paper():
    X, y, group = sample(0, n=100)
    problem = compiled(X, y, group, error_rate(), [false_positive_rate() <= 0.5])
    options = TrainingOptions(SOLVER, 50, 1e-6, choose_threshold=False, from_zero=True)
    zero = Point(np.zeros(3), 0.0)
    expected = majorize_minimize(problem, zero, SOLVER, max_iter=50, tol=1e-6)
    assert train(problem, options).mm.path == expected.path
    clf = RampClassifier(
        constraints=false_positive_rate() <= 0.5, alpha=0.05, threshold=False, init="zeros",
        solver="cvxpy", solver_options={"solver": "CLARABEL"}, tol=1e-6,
    )  # fmt: skip
    np.testing.assert_allclose(clf.fit(X, y).objective_path_, expected.path)


@pytest.mark.parametrize("alpha", first(1, [0.01, 0.1]))
@pytest.mark.parametrize("seed", first(1, [413, *range(400, 413), *range(414, 426)]))
def test_precision_ends_at_a_rule_though_the_ramp_runs_out_of_positives(seed, alpha):
    """The ramp's precision is best where hardly any is left: there it is 0/0 but for rounding."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(80, 400)), int(rng.integers(1, 8))
    group = np.array(list("ab"))[rng.integers(0, 2, n)]
    X = rng.normal(size=(n, d))
    X[:, 0] += (group == "a") * 0.7
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > rng.normal() * 0.5).astype(int)
    goals = [
        each(false_positive_rate, by="group") <= 0.6,
        ratio(positive_rate, by="group") >= 0.5,
        positive_rate() <= 0.5,
    ]
    clf = RampClassifier(precision(), goals, alpha=alpha, solver="newton")
    clf.fit(X, y, attributes={"group": group})  # a gap that is too large would be a warning
    assert clf.feasible_ and np.isfinite(clf.multipliers_).all()
    assert clf.predict(X).any()
