"""One Newton step: derivatives by differences, the factor, the merit, and its descent."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.paper._smoothed_newton import (
    Centers,
    CholeskyFactor,
    Derivatives,
    NewtonIterate,
    SmoothedProblem,
    Smoothing,
    StepMerit,
    newton_step,
)
from skbandit.constrained.solvers import ConvexProblem
from tests.constrained.paper.convex_problems import random_problem

EPS = 0.3


def smoothing(n, eps=EPS, center=0.5, lift=0.0):
    return Smoothing(eps, Centers(np.full(n, center), np.full(n, center)), lift)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def smoothed(request):
    problem = random_problem(0, n=30, d=4)
    if request.param:
        P, Q = problem.P, problem.Q
        problem = ConvexProblem(csr_array(problem.X), P, Q, problem.gamma, problem.alpha)
    return SmoothedProblem(problem)


def rows(smoothed, u, chosen):
    z = smoothed.scores(u)
    return smoothed.rows_along(z, np.zeros_like(z), 0.0, chosen)[0]


def test_lifted_hinges_majorize_the_true_ones_and_unlifted_ones_do_not_exceed_them(smoothed):
    u = np.random.default_rng(1).normal(size=5)
    true = smoothed.problem.rows(smoothed.scores(u))
    assert (rows(smoothed, u, smoothing(30, lift=EPS / 4)) >= true - 1e-12).all()
    assert (rows(smoothed, u, smoothing(30)) <= true + 1e-12).all()
    np.testing.assert_allclose(rows(smoothed, u, smoothing(30, eps=1e-9)), true, atol=1e-8)


@pytest.mark.thorough
def test_gradients_and_hessian_by_differences(smoothed):
    rng, chosen, h = np.random.default_rng(2), smoothing(30), 1e-6
    v, derivatives = np.array([0.7, 0.3]), Derivatives(smoothed)
    for _ in range(3):  # a sparse X updates J from one point to the next
        u = 0.3 * rng.normal(size=5)
        ends = [[rows(smoothed, u + sign * h * e, chosen) for e in np.eye(5)] for sign in (1, -1)]
        derivatives.update(smoothed.scores(u), v, chosen, 0.0)
        np.testing.assert_allclose(derivatives.J, np.subtract(*ends) / (2 * h), atol=1e-7)
        H = np.tril(derivatives.H) + np.tril(derivatives.H, -1).T
        slopes = []
        for sign in (1, -1):
            for e in np.eye(5):
                near = Derivatives(smoothed)
                near.update(smoothed.scores(u + sign * h * e), v, chosen, 0.0)
                slopes.append(near.J @ np.append(1.0, v))
        numeric = (np.array(slopes[:5]) - np.array(slopes[5:])) / (2 * h)
        np.testing.assert_allclose(H, numeric, atol=1e-5)


def test_the_factor_solves():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    H, ridge, b = A @ A.T, np.full(6, 0.1), rng.normal(size=6)
    factor = CholeskyFactor.of(np.tril(H), ridge)
    x = factor.backward(factor.forward(b[:, None])[:, 0])
    np.testing.assert_allclose((H + np.diag(ridge)) @ x, b, atol=1e-6)


def test_a_singular_matrix_gets_jitter():
    factor = CholeskyFactor.of(np.tril(np.ones((3, 3))), np.zeros(3))
    assert np.isfinite(factor.L).all()


def test_the_merit_is_the_objective_plus_penalized_violations():
    merit = StepMerit(penalties=np.array([2.0, 3.0]), regularizer=np.array([1.0, 10.0, 100.0]))
    rows, slopes = np.array([5.0, 0.5, -1.0]), np.array([7.0, 4.0, 1e6])
    assert merit.value(rows, 0.1) == pytest.approx(5 + (1 + 1 + 1) + 2 * 0.5)
    assert merit.slope(rows, slopes, 0.1) == pytest.approx(7 + (10 + 20) + 2 * 4)


def test_steps_settle_at_the_smoothed_optimum(smoothed):
    """The decrement vanishes, the multipliers stay in their box, the constraints are met."""
    chosen, derivatives = smoothing(30, lift=EPS / 4), Derivatives(smoothed)
    here = NewtonIterate(np.zeros(5), np.zeros(30), np.zeros(2))
    for _ in range(30):
        here, progress = newton_step(smoothed, derivatives, here, chosen, 10.0)
        assert progress.gain >= 0
        np.testing.assert_allclose(here.z, smoothed.scores(here.u), atol=1e-12)
    assert progress.decrement < 1e-12
    assert progress.excess < 1e-8
    assert ((here.v >= 0) & (here.v <= 10.0)).all()
    gradient = derivatives.J @ np.append(1.0, here.v) + smoothed.ridge * here.u
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
