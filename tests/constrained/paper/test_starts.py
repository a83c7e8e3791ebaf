"""Where MM starts: the best b for a given w, and the best candidate."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st

from skbandit.constrained.paper import _train
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.paper._starts import best_intercept, starts, unconstrained_solution
from skbandit.constrained.paper._tolerances import FEASIBLE, START_PENALTY
from skbandit.constrained.paper._train import TrainingOptions, train
from skbandit.constrained.solvers import CvxpySolver
from skbandit.rates import (
    error_rate,
    f1,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    recall,
)
from tests.problems import compiled
from tests.tiers import examples, first

SOLVER = CvxpySolver({"solver": "CLARABEL"})
theorem = examples(30)
seeds = st.integers(0, 2**32 - 1)


def sample(rng, n=25, ties=False):
    X = rng.integers(-1, 2, (n, 3)).astype(float) if ties else rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=n) > 0.2).astype(int)
    y[:2] = 0, 1
    return X, y, rng.uniform(0.2, 2, n)


def penalized(problem, point):
    """The objective by which starts are compared."""
    return problem.evaluate(point).penalized(START_PENALTY)


def first_start(problem):
    return next(starts(problem, SOLVER, partial(unconstrained_solution, problem, SOLVER)))


def brute_force(problem, w):
    """The lowest penalized objective over a fine grid and all kinks."""
    z = problem.scores(Point(w, 0.0))
    b = np.concatenate([np.linspace(-z.max() - 0.7, -z.min() + 0.7, 1500), -0.5 - z, 0.5 - z])
    pi = np.clip(0.5 + z[:, None] + b, 0, 1)
    goal = problem.objective
    above = (goal.numerator @ pi)[0] + goal.numerator_constant + problem.alpha / 2 * w @ w
    below = (goal.denominator @ pi)[0] + goal.denominator_constant
    missed = np.maximum(problem.rows @ pi - problem.rhs[:, None], 0).sum(axis=0)
    defined = below > 1e-12
    return (above[defined] / below[defined] + START_PENALTY * missed[defined]).min()


LINEAR = {
    "error": (error_rate(), []),
    "one bound": (error_rate(), [false_positive_rate() <= 0.1]),
    "two bounds": (error_rate(), [recall() >= 0.8, false_positive_rate() <= 0.1]),
    "precision bound": (error_rate(), [precision() >= 0.9, recall() >= 0.5]),
    "recall": (recall(), [positive_rate() <= 0.3]),
}
RATIOS = {
    "f1": (f1(), []),
    "precision": (precision(), []),
    "npv": (negative_predictive_value(), []),
}
BOUNDED_RATIOS = {
    "f1 bounded": (f1(), [positive_rate() <= 0.6]),
    "precision bounded": (precision(), [recall() >= 0.9, false_positive_rate() <= 0.05]),
}
ALL = LINEAR | RATIOS | BOUNDED_RATIOS


@pytest.mark.parametrize("name", LINEAR | RATIOS)
@theorem
@given(seed=seeds)
def test_best_intercept_is_the_best(name, seed):
    rng = np.random.default_rng(seed)
    X, y, weight = sample(rng, ties=bool(seed % 2))
    objective, goals = (LINEAR | RATIOS)[name]
    problem = compiled(X, y, None, objective, goals, weight)
    w = rng.normal(0, rng.choice([0.2, 1, 10]), 3)
    found = best_intercept(problem, w)
    np.testing.assert_array_equal(found.coef, w)
    assert penalized(problem, found) <= brute_force(problem, w) + 1e-9


def test_the_optimum_can_lie_between_kinks_where_a_bound_becomes_tight():
    """One positive, one negative, w = 0: recall >= .8 holds from b = .3 on."""
    problem = compiled(
        np.zeros((2, 3)), np.array([1, 0]), None, false_positive_rate(), recall() >= 0.8
    )
    assert best_intercept(problem, np.zeros(3)).intercept == pytest.approx(0.3)


def test_without_intercept_there_is_nothing_to_choose():
    rng = np.random.default_rng(0)
    X, y, _ = sample(rng)
    problem = compiled(X, y, None, error_rate(), fit_intercept=False)
    assert best_intercept(problem, np.ones(3)).intercept == 0.0


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_start_is_no_worse_than_constants_and_the_svm(name, seed):
    rng = np.random.default_rng(seed)
    X, y, _ = sample(rng, n=50)
    problem = compiled(X, y, None, *ALL[name])
    start = penalized(problem, first_start(problem))
    zero = np.zeros(3)
    free = SOLVER.solve(problem.majorize_at(Point(zero, 0.0), constrained=False), np.inf, 1e-10)
    assert start <= penalized(problem, Point(free.coef, free.intercept)) + 1e-9
    for b in np.linspace(-0.5, 0.5, 101):
        assert start <= penalized(problem, Point(zero, b)) + 1e-9


@pytest.mark.parametrize("goal", [precision(), negative_predictive_value(), f1()], ids=repr)
def test_start_escapes_the_precision_trap(goal):
    """All-negative has no precision, and a step to it is stationary: the start is defined."""
    rng = np.random.default_rng(3)
    X, y, _ = sample(rng, n=60)
    problem = compiled(X, y, None, goal, recall() >= 0.3)
    start = problem.evaluate(first_start(problem))
    assert np.isfinite(start.objective)
    assert start.violations.max() <= FEASIBLE


def test_rounding_does_not_choose_among_equal_starts():
    """Rows in another order give the same start."""
    rng = np.random.default_rng(4)
    X, y, _ = sample(rng, n=60, ties=True)
    order = rng.permutation(60)
    goals = [recall() >= 0.8, positive_rate() <= 0.6]
    problems = [
        compiled(X[rows], y[rows], None, error_rate(), goals) for rows in (np.arange(60), order)
    ]
    one, other = (first_start(problem) for problem in problems)
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-8)
    assert one.intercept == pytest.approx(other.intercept, abs=1e-8)


def test_a_run_that_ends_where_it_began_is_not_the_last(monkeypatch):
    """Answering nobody is feasible and stationary under a precision floor."""
    rng = np.random.default_rng(0)
    X, y, weight = sample(rng, n=80)
    problem = compiled(X, y, None, error_rate(), precision() >= 0.8, weight, alpha=0.01)
    nobody, svm = Point(np.zeros(3), -2.0), Point(np.array([2.0, 0.0, 0.0]), -1.0)
    options = TrainingOptions(SOLVER, 15, 1e-5, choose_threshold=False)
    monkeypatch.setattr(_train, "starts", lambda *_: iter([nobody, svm]))
    found = train(problem, options)
    assert np.ptp(problem.scores(found.point)) > 1
    assert found.mm.path[-1] < problem.evaluate(nobody).objective - 0.05
