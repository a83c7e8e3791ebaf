"""Step lengths and damping."""

import pytest

from skbandit.constrained.paper._polish import (
    adapted_damping,
    interpolate,
    root_share,
)


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
