"""Step lengths and damping."""

import math

import pytest

from skbandit.constrained.paper._polish import (
    adapted_damping,
    interpolate,
    line_search,
    root_share,
)


@pytest.mark.parametrize("bend", [0.0, 1.0, 100.0])
def test_line_search_on_a_parabola_with_a_kink(bend):
    """-t + bend/2 t^2, and a wall from t = .3 on: at most a quarter of the slope is left."""

    def merit(t):
        wall = 50 * max(t - 0.3, 0.0)
        return -t + bend / 2 * t * t + wall, -1 + bend * t + 50 * (t > 0.3)

    t, value = line_search(merit, 0.0, -1.0)
    assert value == merit(t)[0] < 0
    best = min(0.3, 1 / bend) if bend else 0.3
    assert value <= 0.75 * merit(best)[0]


def test_line_search_stays_where_nothing_is_lower():
    assert line_search(lambda t: (t, 1.0), 0.0, -1.0) == (0.0, 0.0)


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
        (0.5, 0.01, 1.0),
        (1e-3, 0.3, 1e-3),
        (1e-3, 1.0, 1e-4),
        (1e-4, 1.0, 0.0),
    ],
)
def test_damping_follows_the_length_of_steps(damping, length, expected):
    found = adapted_damping(damping, length, short=0.1, least=1e-4, most=1.0)
    assert found == pytest.approx(expected)
    assert adapted_damping(5.0, 0.0, short=0.1, least=1e-4, most=math.inf) == 50.0
