"""The ramp and its convex bound: above everywhere, tight where it was made, convex."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from skbandit.constrained.paper._interface import hinge
from skbandit.constrained.paper._problem import KINK, majorize, ramp
from skbandit.constrained.solvers import ConvexProblem
from tests.tiers import examples

ROUNDING = 1e-12
seeds = st.integers(0, 2**32 - 1)
theorem = examples(60)


def random_problem(seed):
    """X, nonnegative rows P, Q, gamma, and scores of which some are exactly on a kink."""
    rng = np.random.default_rng(seed)
    n, m, d = rng.integers(1, 30), rng.integers(0, 4), rng.integers(1, 4)
    P, Q = (
        csr_array(rng.uniform(size=(1 + m, n)) * (rng.random((1 + m, n)) < 0.6)) for _ in range(2)
    )
    f = rng.choice([-0.5, 0.5, 0.0, 3.0, -3.0, np.nan], size=n)
    f = np.where(np.isnan(f), rng.normal(0, 1, n), f)
    return rng, rng.normal(size=(n, d)), P, Q, rng.normal(size=1 + m), f


def ramp_rows(P, Q, gamma, f):
    return P @ ramp(f) + Q @ ramp(-f) - gamma


@pytest.mark.parametrize(
    ("z", "probability"), [(-2, 0), (-0.5, 0), (-0.25, 0.25), (0, 0.5), (0.5, 1), (7, 1)]
)
def test_ramp_by_hand(z, probability):
    assert ramp(np.array([z]))[0] == probability


@theorem
@given(seeds)
def test_ramp_answers_sum_to_one_and_hinge_is_above(seed):
    z = np.random.default_rng(seed).normal(0, 2, 50)
    np.testing.assert_allclose(ramp(z) + ramp(-z), 1.0, atol=1e-15)
    assert (hinge(z) >= ramp(z)).all()
    np.testing.assert_array_equal(hinge(z)[z <= 0.5], ramp(z)[z <= 0.5])


@theorem
@given(seeds)
def test_bound_is_above_everywhere(seed):
    rng, X, P, Q, gamma, f = random_problem(seed)
    convex = majorize(X, P, Q, gamma, 1.0, f)
    for spread in (0.1, 1.0, 10.0):
        g = rng.normal(0, spread, len(f))
        assert (convex.rows(g) >= ramp_rows(P, Q, gamma, g) - ROUNDING).all()


@theorem
@given(seeds)
def test_bound_is_tight_where_it_was_made(seed):
    _, X, P, Q, gamma, f = random_problem(seed)
    convex = majorize(X, P, Q, gamma, 1.0, f)
    np.testing.assert_allclose(convex.rows(f), ramp_rows(P, Q, gamma, f), atol=ROUNDING)


@theorem
@given(seeds, st.floats(-2 * KINK, 2 * KINK))
def test_beside_a_kink_the_bound_is_tight_to_the_width_of_the_kink(seed, off):
    _, X, P, Q, gamma, f = random_problem(seed)
    f = np.where(np.abs(f) == 0.5, f + off, f)
    excess = majorize(X, P, Q, gamma, 1.0, f).rows(f) - ramp_rows(P, Q, gamma, f)
    mass = np.asarray((P + Q).sum(axis=1)).ravel()
    assert (excess >= -ROUNDING).all()
    assert (excess <= KINK * mass + ROUNDING).all()


@pytest.mark.parametrize("f", [0.5, 0.5 + KINK / 2, -0.5, -0.5 - KINK / 2])
def test_rows_on_a_kink_can_still_move(f):
    one = csr_array([[1.0]])
    convex = majorize(np.ones((1, 1)), one, one, np.zeros(1), 1.0, np.array([f]))
    assert convex.P.nnz == convex.Q.nnz == 1
    there, inwards = convex.rows(np.array([f])), convex.rows(np.array([0.9 * f]))
    assert there == pytest.approx(1, abs=2 * KINK)
    assert inwards == pytest.approx(1, abs=2 * KINK)  # one hinge falls as the other rises


@theorem
@given(seeds, st.floats(0, 1))
def test_bound_is_convex_along_segments(seed, share):
    rng, X, P, Q, gamma, f = random_problem(seed)
    convex = majorize(X, P, Q, gamma, 1.0, f)
    g, h = rng.normal(0, 2, (2, len(f)))
    between = convex.rows(share * g + (1 - share) * h)
    chord = share * convex.rows(g) + (1 - share) * convex.rows(h)
    assert (between <= chord + ROUNDING).all()


@theorem
@given(seeds)
def test_flat_rows_cost_a_constant_and_are_not_stored(seed):
    _, X, P, Q, gamma, _ = random_problem(seed)
    n = P.shape[1]
    high = majorize(X, P, Q, gamma, 1.0, np.full(n, 2.0))
    assert high.P.nnz == 0
    np.testing.assert_allclose(high.gamma, gamma - P.sum(axis=1))
    low = majorize(X, P, Q, gamma, 1.0, np.full(n, -2.0))
    assert low.Q.nnz == 0
    np.testing.assert_allclose(low.gamma, gamma - Q.sum(axis=1))


def test_costs_by_row_are_those_of_P_and_Q():
    rng = np.random.default_rng(0)
    P, Q = (csr_array(np.maximum(rng.normal(size=(3, 20)), 0)) for _ in range(2))
    problem = ConvexProblem(np.ones((20, 1)), P, Q, np.zeros(3), 1.0)
    entries = problem.by_row.tocoo()  # a row with both costs has two entries
    assert len(entries.data) == P.nnz + Q.nnz
    for W, sign in ((P, 1), (Q, -1)):
        found = np.zeros((3, 20))
        mine = sign * entries.data > 0
        np.add.at(found, (entries.col[mine], entries.row[mine]), np.abs(entries.data[mine]))
        np.testing.assert_array_equal(found, W.toarray())
