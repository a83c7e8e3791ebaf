"""Limits of skewed means: coverage by simulation, and values by hand."""

import numpy as np
import pytest
from scipy.special import ndtri

from skbandit.utils._skewed_means import Amounts, skewed_quantile, third_cumulant

Z = float(ndtri(0.9))


def share_covered(draw, mean, limit, n_samples=2000):
    """Share of samples whose limit is above the mean."""
    rng = np.random.default_rng(5)
    return np.mean([limit(draw(rng)) >= mean for _ in range(n_samples)])


def skewed_limit(x):
    influence = (x - x.mean()) / len(x)
    error = np.sqrt((influence**2).sum())
    k = third_cumulant(influence, None) / error**3
    return x.mean() + error * float(skewed_quantile(Z, np.array([k]))[0])


def plain_limit(x):
    return x.mean() + Z * x.std() / np.sqrt(len(x))


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda r: (r.random(2000) < 0.01) * r.exponential(size=2000), 0.01),
        (lambda r: r.exponential(size=50), 1.0),
        (lambda r: 1.0 * (r.random(2000) < 0.01), 0.01),
    ],
    ids=["claims", "exponential", "events"],
)
def test_limits_of_means_cover_few_large_values(draw, mean):
    """At .9; a right limit fails with a probability of 1e-4 (2,000 samples, 4 standard errors)."""
    assert share_covered(draw, mean, skewed_limit) > 0.9 - 4 * 0.3 / np.sqrt(2000)
    assert share_covered(draw, mean, plain_limit) < 0.87


@pytest.mark.thorough
def test_limits_of_means_cover_amounts_whose_largest_are_missing():
    """Limits of the lognormal mean, where those of the sample are far from their level."""
    rate, sigma, n = 0.02, 2.2, 1000

    def draw(rng):
        return np.where(rng.random(n) < rate, np.exp(sigma * rng.normal(size=n)), 0.0)

    def limit(x):
        amounts = Amounts.heavy(x)
        of_tail = 0.0 if amounts is None else x.mean() * amounts.factor(Z)
        return max(skewed_limit(x), of_tail)

    mean = rate * np.exp(sigma**2 / 2)
    assert share_covered(draw, mean, limit) > 0.85
    assert share_covered(draw, mean, plain_limit) < 0.6


def test_the_transformation_is_inverted():
    """g(t) = t + k t^2 / 3 + k^2 t^3 / 27 + k / 6 of minus the new quantile is minus the old."""
    k = np.array([0.01, 0.1, 0.3, 0.9])
    t = -skewed_quantile(Z, k)
    assert t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6 == pytest.approx(-Z)


def test_third_cumulants_take_groups_as_trials():
    influence, group = np.array([1.0, 2.0, -1.0, -2.0]), np.array([0, 0, 1, 2])
    assert third_cumulant(influence, group) == 27 - 1 - 8


def test_amounts_of_a_long_tail_are_heavy():
    assert Amounts.heavy(np.r_[np.zeros(9), 1.0]) is None  # one event: the rule of three
    assert Amounts.heavy(np.ones(5)) is None  # equal amounts have no tail
    assert Amounts.heavy(np.r_[1.0:30.0]) is None
    assert Amounts.heavy(np.r_[-1.0, 5.0, 90.0]) is None  # of two signs
    losses = Amounts.heavy(-np.r_[0.0, np.e, np.e, np.e**4])
    assert (losses.count, losses.log_mean, losses.log_variance) == pytest.approx((3, 2.0, 3.0))
    limit = np.exp(2.0 + 1.5 + 2.0 * np.sqrt(4.0 / 3.0 + 9.0 / 4.0))
    assert losses.factor(2.0) == pytest.approx(limit / losses.mean)
