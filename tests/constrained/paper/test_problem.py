"""The compiled problem: rows mean what was declared, bounds are tight, multipliers are slopes."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point, ramp
from skbandit.constrained.solvers import CvxpySolver
from skbandit.measure import nonnegative_rows
from skbandit.rates import (
    accuracy,
    error_rate,
    f1,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    recall,
)
from tests.problems import compiled, sample
from tests.tiers import examples, first

A, B = {"g": "a"}, {"g": "b"}
SOLVER = CvxpySolver({"solver": "CLARABEL"})
theorem = examples(20)
seeds = st.integers(0, 2**32 - 1)


def by_hand(name, pi, y, group, w):
    """Rates of answers pi from their textbook definitions."""

    def share(of, among):
        return (w * of * among).sum() / (w * among).sum()

    tp, fp, fn = (w * y * pi).sum(), (w * (1 - y) * pi).sum(), (w * y * (1 - pi)).sum()
    tn = (w * (1 - y) * (1 - pi)).sum()
    return {
        "error_rate": (fp + fn) / w.sum(),
        "accuracy": (tp + tn) / w.sum(),
        "recall": tp / (tp + fn),
        "fpr": fp / (fp + tn),
        "precision": tp / (tp + fp),
        "npv": tn / (tn + fn),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "gap": share(pi, group == "a") - share(pi, group == "b"),
    }[name]


RATES = {
    "error_rate": error_rate(),
    "accuracy": accuracy(),
    "recall": recall(),
    "fpr": false_positive_rate(),
    "precision": precision(),
    "npv": negative_predictive_value(),
    "f1": f1(),
    "gap": positive_rate(A) - positive_rate(B),
}


@pytest.mark.parametrize("sense", ["<=", ">="])
@pytest.mark.parametrize("name", RATES)
@theorem
@given(seed=seeds)
def test_rows_have_the_sign_and_the_zero_of_the_declared_constraint(name, sense, seed):
    rng = np.random.default_rng(seed)
    X, y, group = sample(seed % 50)
    w = rng.uniform(0.1, 2, len(y))
    pi = rng.uniform(size=len(y))
    value, t = by_hand(name, pi, y, group, w), rng.uniform(0.01, 0.99)
    below = t < value if sense == "<=" else t > value
    bound = RATES[name] <= t if sense == "<=" else RATES[name] >= t
    problem = compiled(X, y, group, error_rate(), bound, w)
    np.testing.assert_allclose(abs(problem.rows).sum(axis=1), 1.0)
    assert (problem.violation(pi)[0] > 0) == below
    exact = RATES[name] <= value if sense == "<=" else RATES[name] >= value
    tight = compiled(X, y, group, error_rate(), exact, w)
    assert tight.violation(pi)[0] == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("name", RATES)
@theorem
@given(seed=seeds)
def test_objective_is_the_declared_rate_signed_so_that_lower_is_better(name, seed):
    rng = np.random.default_rng(seed)
    X, y, group = sample(seed % 50)
    w, pi = rng.uniform(0.1, 2, len(y)), rng.uniform(size=len(y))
    every_row = positive_rate() <= 0.9
    problem = compiled(X, y, group, RATES[name], every_row, w)
    sign = -1.0 if RATES[name].greater_is_better else 1.0
    expected = sign * by_hand(name, pi, y, group, w)
    assert problem.objective_value(pi) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [10, 1000, 20_000])
@pytest.mark.parametrize(("rate", "answer"), [(negative_predictive_value(), 1), (precision(), 0)])
def test_undefined_objectives_are_infinite_whatever_the_rounding(rate, answer, n):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y, group = sample(seed, n=n)
        problem = compiled(X, y, group, rate, weight=rng.uniform(0.1, 3, n))
        assert problem.objective_value(np.full(n, float(answer))) == np.inf


@theorem
@given(seeds)
def test_nonnegative_rows_say_the_same_and_never_charge_both_answers(seed):
    rng = np.random.default_rng(seed)
    signed = csr_array(rng.normal(size=(3, 20)) * (rng.random((3, 20)) < 0.7))
    rhs, pi = rng.normal(size=3), rng.uniform(size=20)
    P, Q, gamma = nonnegative_rows(signed, rhs)
    np.testing.assert_allclose(P @ pi + Q @ (1 - pi) - gamma, signed @ pi - rhs, atol=1e-12)
    assert P.min() >= 0 and Q.min() >= 0
    assert P.multiply(Q).nnz == 0


def test_overlapping_groups_are_netted_row_by_row():
    """A group against all: a row of the group has one coefficient, 1/n - 1/n_a, not two."""
    X, y, group = sample(0)
    problem = compiled(X, y, group, error_rate(), positive_rate() - positive_rate(A) <= 0.1)
    n, n_a = len(y), (group == "a").sum()
    expected = 1 / n - np.where(group == "a", 1 / n_a, 0.0)
    np.testing.assert_allclose(problem.rows.toarray()[0] * problem.scale[0], expected)
    convex = problem.majorize_at(Point(np.zeros(3), 0.0))
    assert convex.P.multiply(convex.Q).nnz == 0


def test_rows_that_count_nowhere_are_dropped():
    X, y, group = sample(1)
    weight = np.where(np.arange(40) % 3 == 0, 0.0, 1.0)
    kept = compiled(X, y, group, error_rate(), recall() >= 0.5, weight)
    alone = compiled(X[weight > 0], y[weight > 0], group[weight > 0], error_rate(), recall() >= 0.5)
    np.testing.assert_array_equal(kept.X, alone.X)
    np.testing.assert_allclose(kept.rows.toarray(), alone.rows.toarray())
    np.testing.assert_allclose(kept.rhs, alone.rhs)
    only_positives = compiled(X, y, group, recall())
    assert len(only_positives.X) == y.sum()


@pytest.mark.parametrize("objective", [error_rate(), f1(), precision()], ids=repr)
@theorem
@given(seed=seeds)
def test_majorized_problem_bounds_the_ramp_problem_and_touches_it(objective, seed):
    """Row 0 + alpha/2 |w|^2 >= (N + alpha/2 |w|^2) - rho D for a ratio N/D of value rho."""
    rng = np.random.default_rng(seed)
    X, y, group = sample(seed % 20)
    goals = [recall() >= 0.6, precision() >= 0.5, abs(positive_rate(A) - positive_rate(B)) <= 0.1]
    problem = compiled(X, y, group, objective, goals)
    here, there = (Point(rng.normal(size=3), rng.normal() / 2) for _ in range(2))
    convex = problem.majorize_at(here)
    value = problem.objective_value(ramp(problem.scores(here)), problem.regularizer(here))
    for point in (here, there):
        pi = ramp(problem.scores(point))
        above, below = problem.objective.fractions(pi)
        exact = above[0] + problem.regularizer(point)
        if problem.fractional:
            exact -= value * below[0]
        bound = convex.rows(problem.scores(point))
        assert bound[0] + problem.regularizer(point) >= exact - 1e-12
        assert (bound[1:] >= problem.violation(pi) - 1e-12).all()
        if point is here:
            assert bound[0] + problem.regularizer(point) == pytest.approx(exact, abs=1e-12)
            np.testing.assert_allclose(bound[1:], problem.violation(pi), atol=1e-12)
    if problem.fractional:
        at_here = convex.rows(problem.scores(here))[0] + problem.regularizer(here)
        assert at_here == pytest.approx(0, abs=1e-12)


def test_without_constraints_only_the_objective_is_majorized():
    X, y, group = sample(2)
    problem = compiled(X, y, group, error_rate(), [recall() >= 0.6, precision() >= 0.5])
    assert problem.majorize_at(Point(np.zeros(3), 0.0), constrained=False).P.shape[0] == 1
    assert problem.majorize_at(Point(np.zeros(3), 0.0)).P.shape[0] == 3


LINEAR = [
    (error_rate(), lambda t: false_positive_rate() <= t, 0.12, +1),
    (error_rate(), lambda t: recall() >= t, 0.85, -1),
    (false_positive_rate(), lambda t: recall() >= t, 0.8, -1),
    (recall(), lambda t: 3 * false_positive_rate() <= t, 0.3, +1),
    (f1(), lambda t: positive_rate() <= t, 0.3, +1),
    (precision(), lambda t: recall() >= t, 0.7, -1),
    (error_rate(), lambda t: positive_rate(A) - positive_rate(B) <= t, 0.05, +1),
]


def value(problem, point):
    """Of the convex problem at a point, in units of the objective's own value."""
    below = problem.objective.fractions(ramp(problem.scores(point)))[1][0]
    found = SOLVER.solve(problem.majorize_at(point), np.inf, 1e-10)
    assert found.gap <= 1e-12
    return found.primal / below, found


def feasible_point(problem):
    """A point well inside, by an elastic step from zero with its bounds drawn in."""
    tighter = replace(problem, rhs=problem.rhs - 0.02)
    point = Point(np.zeros(3), 0.0)
    for _ in range(4):
        s = SOLVER.solve(tighter.majorize_at(point), 10.0, 1e-10)
        point = Point(s.coef, s.intercept)
    assert problem.violation(ramp(problem.scores(point))).max() < -1e-3
    return point


@pytest.mark.parametrize(
    ("objective", "constraint", "t", "gives"),
    LINEAR,
    ids=lambda x: "" if callable(x) else repr(x)[:40],
)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_shadow_price_is_the_gain_per_unit_of_the_bound(objective, constraint, t, gives, seed):
    """Central differences in the user's own bound at fixed f'; relative tolerance 1e-3."""
    X, y, group = sample(seed)
    problem = compiled(X, y, group, objective, constraint(t))
    point = feasible_point(problem)
    _, found = value(problem, point)
    multiplier = problem.shadow_prices(found.multipliers, ramp(problem.scores(point)))[0]
    h = 1e-6
    looser, tighter = (
        value(compiled(X, y, group, objective, constraint(t + s * gives * h)), point)[0]
        for s in (1, -1)
    )
    assert multiplier == pytest.approx((tighter - looser) / (2 * h), rel=1e-3, abs=1e-6)
    assert multiplier >= 0
    assert tighter >= looser - 1e-12


BOUNDS = {
    "precision": (lambda t: precision() >= t, 0.88, -1),
    "f1": (lambda t: f1() >= t, 0.78, -1),
    "ratio": (lambda t: positive_rate(A) / positive_rate(B) >= t, 1.2, -1),
    "linear": (lambda t: false_positive_rate() <= t, 0.08, +1),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", first(2, BOUNDS))
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_shadow_price_is_what_training_gains_per_unit_of_the_bound(name, seed):
    """Central differences of whole runs of MM, from its optimum."""
    X, y, group = sample(seed, n=300, noise=0.6)
    constraint, t, gives = BOUNDS[name]

    def run(t, start):
        problem = compiled(X, y, group, recall(), constraint(t))
        found = majorize_minimize(problem, start, SOLVER, max_iter=100, tol=1e-12)
        assert found.feasible
        return problem, found

    problem, found = run(t, Point(np.zeros(3), 0.0))
    multiplier = problem.shadow_prices(found.multipliers, ramp(problem.scores(found.point)))[0]
    assert multiplier > 0.01
    h = 2e-5
    looser, tighter = (run(t + s * gives * h, found.point)[1].path[-1] for s in (1, -1))
    assert multiplier == pytest.approx((tighter - looser) / (2 * h), rel=0.02)


@pytest.mark.thorough
def test_a_ratio_of_nothing_is_linearized_at_that_of_a_coin():
    """From w = 0 and no positive predictions, as from any other point, a step lowers the ratio."""
    X, y, group = sample(0)
    problem = compiled(X, y, group, precision(), positive_rate() <= 0.5)
    nothing = Point(np.zeros(X.shape[1]), -0.5)
    assert problem.evaluate(nothing).objective == np.inf
    assert np.isnan(problem.shadow_prices(np.ones(1), ramp(problem.scores(nothing)))).all()
    found = majorize_minimize(problem, nothing, SOLVER, max_iter=20, tol=1e-6)
    assert found.feasible and -found.path[-1] > y.mean() + 0.05
