"""The small program of the multipliers."""

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from skbandit.constrained.paper._polish import box_quadratic
from tests.tiers import examples


@pytest.mark.thorough
@examples(100)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 1e4]))
def test_agrees_with_bounded_least_squares(seed, upper):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    L = rng.normal(size=(m + int(rng.integers(0, 3)), m))
    S, r = L.T @ L + 1e-6 * np.eye(m), rng.normal(size=m)
    found = box_quadratic(S, r, upper)
    C = np.linalg.cholesky(S)
    expected = lsq_linear(C.T, np.linalg.solve(C, r), (0, upper), tol=1e-14).x

    def value(v):
        return v @ S @ v / 2 - r @ v

    assert (found >= 0).all() and (found <= upper).all()
    assert value(found) <= value(expected) + 1e-8 * (1 + abs(value(expected)))


def test_opposed_constraints_leave_a_flat_direction():
    """S is singular along (1, 1) but for rounding: the slope down that line is followed at once."""
    S = np.array([[1.0, -1.0], [-1.0, 1.0]]) + 1e-10 * np.eye(2)
    found = box_quadratic(S, np.array([0.5, -0.6]), 1e4)
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-8)


@pytest.mark.parametrize("r", [-1.0, 0.0, 0.3, 5.0])
def test_one_variable(r):
    assert box_quadratic(np.eye(1), np.array([r]), 1.0) == pytest.approx([np.clip(r, 0, 1)])
