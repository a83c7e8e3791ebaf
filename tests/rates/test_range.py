"""The reach of an expression: by hand, and against every corner of the box of atoms."""

import itertools
import math
import pickle

import numpy as np
import pytest

from skbandit.rates import difference, each, error_rate, f1, positive_rate, ratio, recall
from skbandit.rates._expression import smallest_value

A, B, C = positive_rate("a"), positive_rate("b"), positive_rate("c")


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [
        (error_rate(), 0, 1),
        (f1(), 0, 1),
        (2 * f1() - 0.5, -0.5, 1.5),
        (A - B, -1, 1),
        (3 * A - 2 * B + 1, -1, 4),
        (A - A, 0, 0),
        (A / (B + 0.5), 0, 2),
        (A / B, 0, math.inf),
        ((A - 0.5) / B, -math.inf, math.inf),
        (A / (A + B), 0, 1),
        ((A + 2 * B) / (A + B), 1, 2),
        (each(recall, by="g"), 0, 1),
        (difference(recall, by="g"), -1, 1),
        (ratio(recall, by="g"), 0, math.inf),
        (A / B - 0.8, -0.8, math.inf),
    ],
    ids=repr,
)
def test_range_of_rates_is_that_by_hand(rate, low, high):
    assert smallest_value(rate) == pytest.approx(low)
    assert -smallest_value(-rate) == pytest.approx(high)


def test_same_rate_written_twice_is_one():
    assert smallest_value((recall() - error_rate()) / (recall() + error_rate())) == -1
    assert smallest_value(pickle.loads(pickle.dumps(1 - A / (A + B)))) == 0


def test_range_of_random_rates_is_that_of_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, d = rng.integers(-3, 4, 3), rng.integers(0, 4, 3)
        n0, d0 = (int(c) for c in rng.integers(0, 3, 2))
        if not d.any():
            continue
        above = n0 + sum((int(c) * atom for c, atom in zip(n, (A, B, C), strict=True)), 0 * A)
        below = d0 + sum((int(c) * atom for c, atom in zip(d, (A, B, C), strict=True)), 0 * A)
        corners = []
        for corner in itertools.product((0, 1), repeat=3):
            top, bottom = n0 + n @ corner, d0 + d @ corner
            if bottom > 0:
                corners.append(top / bottom)
            elif top < 0:
                corners.append(-math.inf)
        assert smallest_value(above / below) == pytest.approx(min(corners))
