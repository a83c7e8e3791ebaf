"""Declarations that no data can meet, and numbers that no float can hold, are errors at once."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from skbandit.rates import (
    accuracy,
    cost,
    difference,
    each,
    error_rate,
    f1,
    positive_rate,
    precision,
    ratio,
    recall,
)
from skbandit.rates._expression import smallest_value, value_range
from tests.worlds import refuses

A, B, C = positive_rate("a"), positive_rate("b"), positive_rate("c")


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: recall() >= 95, r"recall\(\) >= 95 can never hold: .* 0 and 1\. Did.*0\.95\?"),
        (lambda: recall() <= -0.1, r"can never hold: recall\(\) lies between 0 and 1\.$"),
        (lambda: 95 <= precision(), "Did you mean 0.95"),
        (lambda: each(f1, by="g") >= 60, "Did you mean 0.6"),
        (lambda: ratio(positive_rate, by="g") >= 1.25, "at most 1, as groups .* have[.]$"),
        (lambda: ratio(positive_rate, by="g") >= 80, r"Did you mean 0\.8\?"),
        (lambda: 2 * ratio(recall, by="g") + 1 >= 3.1, "at most 3"),
        (lambda: -ratio(recall, by="g") <= -1.1, "at least -1"),
        (lambda: difference(recall, by="g") <= -0.1, "at least 0"),
        (lambda: difference(recall, by="g") + 0.5 <= 0.4, "at least 0.5"),
        (lambda: abs(A - B) <= -0.01, "can never hold"),
        (lambda: abs(A - 3) <= 1, "lies between -3 and -2"),
        (lambda: A - B >= 1.5, "lies between -1 and 1"),
        (lambda: A >= B + 1.5, r"positive_rate.* - \(.*\) lies between -2.5 and -0.5"),
        (lambda: A - A >= 0.1, "lies between 0 and 0"),
        (lambda: 1 - accuracy() >= 1.1, "lies between 0 and 1"),
        (lambda: A / (A + B) >= 1.2, "lies between 0 and 1"),
    ],
)  # fmt: skip
def test_impossible_bounds(declare, message):
    refuses(message, declare)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: recall() >= 1,
        lambda: recall() <= 0,
        lambda: recall() >= 0.1 + 0.2 + 0.7,  # 1 plus a rounding error
        lambda: recall() <= 1.5,  # idle, not impossible
        lambda: ratio(positive_rate, by="g") >= 1,
        lambda: difference(recall, by="g") <= 0,
        lambda: abs(A - B) <= 0,
        lambda: A >= 1.25 * B,
        lambda: A >= 80 * B,  # both may be 0
        lambda: A / B >= 80,
        lambda: 1 / recall() <= 1,
    ],
)
def test_possible_bounds(declare):
    declare()


@pytest.mark.parametrize("by", ["g", ["g", "h"]])
def test_range_of_the_worst_pair_is_reached_and_never_left(by):
    """Random rates of two groups: the worst pair is inside; equal groups reach the end."""
    rng = np.random.default_rng(0)
    for scale, shift in ((1.0, 0.0), (2.5, -1.0), (-0.5, 0.3)):
        for form in (ratio, difference):
            rate = scale * form(recall, by=by) + shift
            low, high = value_range(rate)
            pairs = rng.uniform(0.01, 1, (500, 2))
            there = np.array([_of_pair(form, *pair) for pair in pairs])
            back = np.array([_of_pair(form, *pair[::-1]) for pair in pairs])
            both = scale * np.column_stack([there, back]) + shift
            worst = both.min(axis=1) if rate.summary == "min" else both.max(axis=1)
            best_possible = scale * _of_pair(form, 0.4, 0.4) + shift
            assert low == high == pytest.approx(best_possible)
            assert (worst <= high + 1e-12 if rate.summary == "min" else worst >= low - 1e-12).all()


def _of_pair(form, a, b):
    return a / b if form is ratio else a - b


@pytest.mark.parametrize(
    "build",
    [
        lambda: 1e308 * recall() * 1e308,
        lambda: recall() / 1e-310,
        lambda: 1e308 * recall() + 1e308 * precision(),
        lambda: recall() * 1e200 * 1e200 >= 1,
        lambda: recall() + 1e308 + 1e308,
    ],
)
def test_coefficients_stay_finite(build):
    refuses("infinite coefficient", build)


@pytest.mark.parametrize(
    "number", [10**400, -(10**400), Fraction(10**400, 3), 10**5000], ids=range(4)
)
def test_numbers_beyond_floats(number):
    for build in (lambda: recall() >= number, lambda: number * recall(), lambda: recall() - number):
        refuses(r"a number of about 2\*\*.* must be finite", build)


def test_functions_have_no_address_in_the_text():
    class Rule:
        def __call__(self, attributes):
            return attributes["age"] > 30

    old = lambda attributes: attributes["age"] > 30  # noqa: E731
    assert (recall(old) >= 0.9).label == "recall(<lambda>) >= 0.9"
    assert repr(recall(test_possible_bounds)) == "recall(test_possible_bounds)"
    assert " at 0x" not in repr(recall(Rule())) and "Rule" in repr(recall(Rule()))


def test_functions_of_one_name_are_still_different_rates():
    young, old = (lambda t: t["age"] <= 30), (lambda t: t["age"] > 30)
    gap = recall(young) - recall(old)
    assert value_range(gap) == (-1, 1)
    assert value_range(recall(old) - recall(old)) == (0, 0)
    assert gap.value([1, 1, 1], [1, 0, 1], {"age": [20, 40, 50]}) == 0.5


@pytest.mark.parametrize("bound", [3, 30])
def test_a_percentage_that_always_holds_is_asked_about(bound):
    with pytest.warns(UserWarning, match=r"always holds.*Did you mean 0\.0?3\?"):
        _ = positive_rate() <= bound
    with pytest.warns(UserWarning, match="Did you mean"):
        _ = each(positive_rate, of="decisions") <= bound


def test_a_cap_on_gains_is_asked_about():
    gains = cost({"call": -6, "none": 0})
    with pytest.warns(UserWarning, match="always holds, as no cost in the table is above 0"):
        _ = gains <= 3
    _ = gains <= -3, gains >= -3, -gains <= 3, cost({"call": -6, "none": 2}) <= 1


# --- the range of an expression: by hand, and against every corner of the box of atoms ---------


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
