"""Labels to compare two classifiers: against enumeration of all outcomes, and the paper's cases."""

from math import comb

import numpy as np
import pytest

from skbandit.evaluation import labels_to_compare
from skbandit.evaluation._labels_to_compare import sign_test_power


def power_by_enumeration(n, q, tail):
    wins = np.arange(n + 1)
    ways = np.array([comb(n, k) for k in wins], dtype=float)
    reached = ways[::-1].cumsum()[::-1] / 2.0**n  # P(W >= k) for equally good ones
    return (ways * q**wins * (1 - q) ** (n - wins))[reached <= tail].sum()


@pytest.mark.parametrize("q", [0.55, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("tail", [0.025, 0.1])
def test_power_is_that_of_all_outcomes(q, tail):
    sizes = np.arange(1, 60)
    found = sign_test_power(sizes, q, tail)
    np.testing.assert_allclose(found, [power_by_enumeration(n, q, tail) for n in sizes], atol=1e-12)


@pytest.mark.parametrize("better", [0.08, 0.12, 0.3])
@pytest.mark.parametrize("power", [0.3, 0.8])
def test_no_smaller_number_will_do(better, power):
    """From it on the power is reached for good; one label less is one tooth too early."""
    n = labels_to_compare(better, 0.05, power=power)
    q = better / (better + 0.05)
    assert power_by_enumeration(n - 1, q, 0.025) < power
    assert all(power_by_enumeration(m, q, 0.025) >= power for m in range(n, n + 60))


def test_the_cases_of_the_paper():
    """A dozen or so, and closer to 1000 (Goh et al. 2016, section 1)."""
    assert labels_to_compare(0.05, 0.0) <= 12
    assert 900 < labels_to_compare(0.3, 0.25) < 1000


def test_a_number_of_labels_large_enough_for_a_tiny_gain():
    n = labels_to_compare(0.0501, 0.0499)
    at = sign_test_power(np.array([n - 1, n]), 0.501, 0.025)
    assert at[0] < 0.8 <= at[1]


def test_only_the_ratio_of_the_shares_counts():
    assert labels_to_compare(0.06, 0.02) == labels_to_compare(0.6, 0.2)


def test_more_is_asked_of_more():
    base = labels_to_compare(0.06, 0.02)
    assert labels_to_compare(0.06, 0.03) > base
    assert labels_to_compare(0.06, 0.02, power=0.95) > base
    assert labels_to_compare(0.06, 0.02, confidence_level=0.99) > base


def test_simulated_comparisons_find_the_better_one_as_often():
    """Exact power about .8; over 4,000 comparisons a correct one fails once in 10,000 seeds."""
    rng = np.random.default_rng(0)
    n = labels_to_compare(0.15, 0.05)
    wins = (rng.random((4_000, n)) < 0.75).sum(axis=1)
    p_value = np.array([sum(comb(n, k) for k in range(w, n + 1)) / 2**n for w in range(n + 1)])
    found = (p_value[wins] <= 0.025).mean()
    expected = sign_test_power(np.array([n]), 0.75, 0.025)[0]
    assert abs(found - expected) < 3.9 * np.sqrt(expected * (1 - expected) / 4_000)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"better": 0.1, "worse": 0.2}, "better > worse"),
        ({"better": 0.1, "worse": 0.1}, "better > worse"),
        ({"better": 0.8, "worse": 0.3}, "at most 1"),
        ({"better": 0.1, "worse": -0.1}, "worse >= 0"),
        ({"better": float("nan"), "worse": 0.1}, "better=nan"),
        ({"better": 0.2, "worse": 0.1, "power": 1.0}, "power=1.0"),
        ({"better": 0.2, "worse": 0.1, "confidence_level": 1.5}, "1.5"),
    ],
)
def test_wrong_shares_are_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        labels_to_compare(**wrong)
