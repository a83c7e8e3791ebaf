"""Parts of the solver: the small program of the multipliers, step lengths and damping."""

import numpy as np
import pytest

from skbandit.constrained.paper._polish import (
    adapted_damping,
    interpolate,
    root_share,
)

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from skbandit.constrained.paper._polish import box_quadratic, clamped_newton
from tests.tiers import examples


@pytest.mark.thorough
@examples(100)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 10.0, 1e4]))
def test_agrees_with_bounded_least_squares(seed, upper):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    L = rng.normal(size=(m + int(rng.integers(0, 3)), m))
    S, r = L.T @ L + 1e-6 * np.eye(m), rng.normal(size=m)
    start = rng.uniform(0, upper, m) * rng.integers(0, 2, m)
    found = box_quadratic(S, r, upper, start)
    C = np.linalg.cholesky(S)
    expected = lsq_linear(C.T, np.linalg.solve(C, r), (0, upper), tol=1e-14).x

    def value(v):
        return v @ S @ v / 2 - r @ v

    assert (found >= 0).all() and (found <= upper).all()
    assert value(found) <= value(expected) + 1e-8 * (1 + abs(value(expected)))


def test_opposed_constraints_leave_a_flat_direction():
    """S is singular along (1, 1) but for rounding: the slope down that line is followed at once."""
    S = np.array([[1.0, -1.0], [-1.0, 1.0]]) + 1e-10 * np.eye(2)
    found = box_quadratic(S, np.array([0.5, -0.6]), 1e4, np.array([3.0, 3.0]))
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-8)


@pytest.mark.parametrize("r", [-1.0, 0.0, 0.3, 5.0])
def test_one_variable(r):
    assert box_quadratic(np.eye(1), np.array([r]), 1.0, np.zeros(1)) == pytest.approx(
        [np.clip(r, 0, 1)]
    )


@pytest.mark.parametrize("seed", range(5))
def test_clamped_newton_is_exact_where_nothing_comes_back(seed):
    """Exact for S diagonal, and inside the box; feasible always."""
    rng = np.random.default_rng(seed)
    r, diagonal = rng.normal(size=8), rng.uniform(0.1, 1, 8)
    found = clamped_newton(np.diag(diagonal), r, 1.5)
    np.testing.assert_allclose(found, np.clip(r / diagonal, 0, 1.5))
    A = rng.normal(size=(12, 8))
    S, inside = A.T @ A, rng.uniform(0.1, 1.4, 8)
    np.testing.assert_allclose(clamped_newton(S, S @ inside, 1.5), inside)
    found = clamped_newton(S, 9 * r, 1.5)
    assert ((found >= 0) & (found <= 1.5)).all()


@pytest.mark.parametrize(("low", "high", "share"), [(-1.0, 1.0, 0.5), (-1.0, 3.0, 0.25)])
def test_root_of_a_linear_derivative(low, high, share):
    assert root_share(low, high) == share


@pytest.mark.parametrize(("share", "point"), [(0.5, 3.0), (0.0, 2.2), (-9.0, 2.2), (1.0, 3.8)])
def test_interpolation_keeps_away_from_the_ends(share, point):
    assert interpolate(2.0, 4.0, share) == pytest.approx(point)


@pytest.mark.parametrize(
    ("damping", "length", "expected"),
    [
        (0.0, 0.01, 1e-4),
        (1e-3, 0.01, 1e-2),
        (0.5, 0.01, 5.0),
        (1e-3, 0.3, 1e-3),
        (1e-3, 1.0, 1e-4),
        (1e-4, 1.0, 0.0),
    ],
)
def test_damping_follows_the_length_of_steps(damping, length, expected):
    assert adapted_damping(damping, length, short=0.1, least=1e-4) == pytest.approx(expected)
