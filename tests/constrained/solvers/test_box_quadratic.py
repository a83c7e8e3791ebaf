"""The small program of the multipliers, against a bounded least squares solver."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from skbandit.constrained.solvers._box_quadratic import box_quadratic


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 1e4]))
def test_agrees_with_bounded_least_squares(seed, cap):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    L = rng.normal(size=(m + int(rng.integers(0, 3)), m))
    S, r = L.T @ L + 1e-6 * np.eye(m), rng.normal(size=m)
    start = rng.uniform(0, cap, m) * rng.integers(0, 2, m)
    found = box_quadratic(S, r, cap, start)
    C = np.linalg.cholesky(S)
    expected = lsq_linear(C.T, np.linalg.solve(C, r), (0, cap), tol=1e-14).x

    def value(v):
        return v @ S @ v / 2 - r @ v

    assert (found >= 0).all() and (found <= cap).all()
    assert value(found) <= value(expected) + 1e-8 * (1 + abs(value(expected)))


def test_opposed_constraints_leave_a_flat_direction():
    """S is singular along (1, 1) but for rounding: the pull down that line is followed at once."""
    S = np.array([[1.0, -1.0], [-1.0, 1.0]]) + 1e-10 * np.eye(2)
    found = box_quadratic(S, np.array([0.5, -0.6]), 1e4, np.array([3.0, 3.0]))
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-8)


@pytest.mark.parametrize("r", [-1.0, 0.0, 0.3, 5.0])
def test_one_variable(r):
    assert box_quadratic(np.eye(1), np.array([r]), 1.0, np.zeros(1)) == pytest.approx(
        [np.clip(r, 0, 1)]
    )
