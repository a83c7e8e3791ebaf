"""Limits of proportions against scipy, and of ratios against their definition."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from skbandit.rates._confidence import ratio_limits, wilson_score
from tests.tiers import first


def test_wilson_is_scipys():
    for n, level in itertools.product((1, 7, 300), (0.5, 0.95, 0.999)):
        for k in {0, 1, n // 2, n}:
            expected = binomtest(k, n).proportion_ci(level, method="wilson")
            z = norm.isf((1 - level) / 2)
            found = wilson_score(np.array(k / n), np.array(n), z)
            other = 1 - wilson_score(np.array(1 - k / n), np.array(n), z)
            assert (found, other) == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.parametrize("seed", first(2, range(20)))
def test_closed_form_of_ratios_is_where_the_limit_of_a_difference_is_zero(seed):
    """Against a search for the root of N - tD - sqrt(a^2 + t^2 b^2 + 2 |t| ab r)."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        D, N = rng.uniform(0.05, 1), rng.uniform(-1, 1)
        a, b = rng.uniform(0, 1), rng.uniform(0, D)
        up, r = rng.uniform(0, 1), rng.choice([0.0, 0.5, 1.0])

        def limit(t, a=a, b=b, up=up, r=r, N=N, D=D):
            side = up if t > 0 else b
            return N - t * D - np.sqrt(a**2 + t**2 * side**2 + 2 * abs(t) * a * side * r)

        expected = brentq(limit, -1e9, N / D + 1e-9) if limit(-1e9) > 0 else -np.inf
        found = ratio_limits(*map(np.array, (N, a, D, b, up)), (a * b * r, a * up * r))
        if expected > -1e6:  # beyond, D is nearly 0 at its limit
            assert float(found) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_ratios_to_nothing_are_open():
    none = np.zeros(1)
    found = ratio_limits(np.array([0.5]), np.array([0.2]), none, none, np.ones(1), (none, none))
    assert found[0] == pytest.approx(np.sqrt(0.5**2 - 0.2**2))
    found = ratio_limits(np.array([-0.5]), np.array([0.2]), none, none, np.ones(1), (none, none))
    assert found[0] == -np.inf
