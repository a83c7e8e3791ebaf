"""Scalar steps and indices against 60 digits, over the whole range of (m, v)."""

import itertools

import numpy as np
import pytest

from skbandit.bandit._state import LINKS, MEANS, ChoiceRule
from skbandit.bandit.links import _linear as linear
from skbandit.bandit.links import _logistic as logistic
from skbandit.bandit.links import _probit as probit
from skbandit.bandit.links import log_evidence, mean_index, mean_reward, mean_rewards, upper_index
from tests.tiers import first

mp = pytest.importorskip("mpmath", reason="mpmath is not installed")

MEANS_OF_THETA = [0.0, 1e-3, -0.7, 4.0, -4.0, 30.0, -37.0, 200.0, -1e3, 1e3]
VARIANCES = [1e-12, 1e-4, 0.3, 1.0, 30.0, 1e3, 1e6]


@pytest.fixture(autouse=True)
def sixty_digits():
    with mp.workdps(60):
        yield


def close(actual, exact, digits):
    """Equal to the given number of digits, or both negligible."""
    exact = mp.mpf(exact)
    if abs(exact) < mp.mpf("1e-300"):
        return abs(actual) < 1e-290
    return abs((mp.mpf(float(actual)) - exact) / exact) < mp.mpf(10) ** -digits


def laplace(m, v, r):
    """(g, h) of the mode of the exact posterior density, by bisection to 60 digits."""
    m, v, r = mp.mpf(m), mp.mpf(v), mp.mpf(r)

    def slope(u):
        return r / (1 + mp.exp(u)) - (1 - r) / (1 + mp.exp(-u))

    low, high = m - v, m + v
    for _ in range(220):
        middle = (low + high) / 2
        low, high = (middle, high) if m + v * slope(middle) > middle else (low, middle)
    curvature = 1 / ((1 + mp.exp(low)) * (1 + mp.exp(-low)))
    return slope(low), curvature / (1 + v * curvature)


@pytest.mark.thorough
@pytest.mark.parametrize("r", first(1, [0.3, 1.0]))
def test_the_laplace_step_finds_the_mode(r):
    for m, v in itertools.product(MEANS_OF_THETA, VARIANCES):
        g, h = logistic.step(m, v, r)
        exact_g, exact_h = laplace(m, v, r)
        # θ is accurate to 1e-13 of its size, which limits the accuracy of the slopes
        digits = 11 - np.log10(max(1.0, abs(m)))
        if 0 < r < 1:  # r - σ(θ) cancels if a flat prior lets σ(mode) approach r
            digits = 9
        if abs(exact_g) > 1e-9:  # below, r and σ(θ) nearly agree, and v g is negligible
            assert close(g, exact_g, digits), (m, v, g, exact_g)
        assert close(h, exact_h, digits), (m, v, h, exact_h)


def hazard(z):
    return mp.npdf(z) / mp.ncdf(z)


@pytest.mark.parametrize("r", [0, 1])
def test_the_probit_step_matches_moments(r):
    sign = 2 * r - 1
    for m, v in itertools.product([*MEANS_OF_THETA, 1e4, -1e4], VARIANCES):
        g, h = probit.step(m, v, float(r))
        scale = mp.sqrt(1 + mp.mpf(v))
        z = sign * mp.mpf(m) / scale
        rho = hazard(z)
        assert close(g, sign * rho / scale, 12), (m, v)
        assert close(h, rho * (rho + z) / scale**2, 11), (m, v)


def test_the_linear_step_is_bayes_rule():
    m, v, r, s2 = 0.4, 2.0, 1.7, 0.5
    g, h = linear.step(m, v, r, s2)
    precision = 1 / v + 1 / s2
    assert v - v * v * h == pytest.approx(1 / precision)
    assert m + v * g == pytest.approx((m / v + r / s2) / precision)


def test_variances_stay_positive_and_steps_are_symmetric():
    for step in (logistic.step, probit.step):
        for m, v, r in itertools.product(MEANS_OF_THETA, VARIANCES, [0.0, 0.25, 1.0]):
            g, h = step(m, v, r)
            assert 0 <= h * v < 1, (step, m, v, r)
            assert np.isfinite(g)
            mirror_g, mirror_h = step(-m, v, 1 - r)
            assert mirror_g == pytest.approx(-g, rel=1e-9, abs=1e-15)
            assert mirror_h == pytest.approx(h, rel=1e-9)


def rule(link="logistic", ucb=0, mean=0):
    return ChoiceRule(list(LINKS).index(link), 0, ucb, mean, 0.0, 0, False)


def sigma(z):
    return 1 / (1 + mp.exp(-mp.mpf(z)))


def published_mean(m, v, mean):
    m, v = mp.mpf(m), mp.mpf(v)
    if mean == 3:
        return mp.exp(m + v / 2)
    return sigma([m, m / mp.sqrt(1 + mp.pi * v / 8), m + v / 2][mean])


def published_upper(m, v, alpha, ucb, mean):
    """The table under eq. 3."""
    root = mp.sqrt(mp.mpf(v))
    if ucb == 0:
        return sigma(m + alpha * root)
    if ucb == 1:
        top = mp.pi * mp.mpf(m) / mp.sqrt(8) - 1
        spread = mp.ncdf(top / mp.sqrt(mp.pi - 1 + mp.pi**2 * mp.mpf(v) / 8))
        spread -= published_mean(m, v, 1) ** 2
        return sigma(m + alpha * root) + alpha * mp.sqrt(max(0, spread))
    if ucb == 2:
        return published_mean(m, v, mean) * (1 + alpha * mp.sqrt(mp.expm1(mp.mpf(v))))
    return sigma(m) + alpha * root


@pytest.mark.parametrize("mean", range(4), ids=MEANS)
@pytest.mark.parametrize("ucb", range(4))
def test_upper_indices_order_arms_as_published_upper_bounds_do(ucb, mean):
    """The bounded U1 and U3 may tie in floating point."""
    places = [*itertools.product([-800.0, -6.0, -1.0, 0.0, 2.0, 50.0], [1e-6, 0.1, 4.0, 800.0])]
    pairs = {
        (m, v): (
            upper_index(m, v, 0.7, rule(ucb=ucb, mean=mean)),
            published_upper(m, v, 0.7, ucb, mean),
        )
        for m, v in places
    }
    assert all(np.isfinite(mine) for mine, _ in pairs.values())
    for one, other in itertools.combinations(places, 2):
        difference = pairs[one][1] - pairs[other][1]
        if ucb in (1, 3) and abs(difference) < 1e-14 * abs(pairs[one][1]):
            continue
        if abs(difference) > mp.mpf("1e-50") * abs(pairs[one][1]):
            assert (pairs[one][0] > pairs[other][0]) == (difference > 0), (one, other)


@pytest.mark.parametrize("mean", range(4), ids=MEANS)
def test_mean_indices_order_arms_as_posterior_means_do(mean):
    places = [*itertools.product([-800.0, -6.0, 0.0, 2.0, 50.0], [1e-6, 0.1, 4.0, 800.0])]
    for one, other in itertools.combinations(places, 2):
        difference = published_mean(*one, mean) - published_mean(*other, mean)
        if abs(difference) > mp.mpf("1e-50"):
            mine = mean_index(*one, rule(mean=mean)) - mean_index(*other, rule(mean=mean))
            assert (mine > 0) == (difference > 0)


def test_no_bonus_without_uncertainty():
    for ucb in range(4):
        with_bonus = upper_index(-1.0, 0.0, 2.0, rule(ucb=ucb))
        without = upper_index(-1.0, 0.0, 0.0, rule(ucb=ucb))
        # U1's approximate variance is .0008 there, not 0
        assert with_bonus == pytest.approx(without, abs=0.1 if ucb == 1 else 1e-12)


@pytest.mark.parametrize("mean", range(4), ids=MEANS)
@pytest.mark.parametrize("link", LINKS)
def test_mean_rewards_of_an_index(link, mean):
    """In compiled code and by scipy, against 60 digits."""
    given = rule(link, mean=mean)
    indices = np.array([-700.0, -37.0, -3.0, 0.0, 0.2, 5.0, 40.0])
    one_by_one = [mean_reward(index, given) for index in indices]
    by_scipy = mean_rewards(indices, given)
    for index, one, other in zip(indices, one_by_one, by_scipy, strict=True):
        if link == "linear":
            exact = index
        elif link == "probit":
            exact = mp.ncdf(mp.mpf(index))
        else:
            exact = mp.exp(index) if mean == 3 else sigma(index)
        assert close(one, exact, 11) or one == exact
        assert close(other, exact, 11) or other == exact


def test_the_log_likelihood_of_probit_rewards_is_exact_in_both_tails():
    for z in (-40.0, -12.0, -5.1, -5.0, -4.9, -0.3, 0.0, 2.0, 5.0):
        exact = mp.log(mp.ncdf(mp.mpf(z)))
        assert close(probit.log_predictive(z, 0.0, 1.0), exact, 12), z
        assert close(probit.log_predictive(-z, 0.0, 0.0), exact, 12), z
    m, v, r = -30.0, 2.0, 0.25
    z = mp.mpf(m) / mp.sqrt(1 + mp.mpf(v))
    exact = r * mp.log(mp.ncdf(z)) + (1 - r) * mp.log(mp.ncdf(-z))
    assert close(probit.log_predictive(m, v, r), exact, 12)


@pytest.mark.parametrize("link", [logistic, probit])
def test_a_weight_is_the_first_reward_and_then_its_copies(link):
    m, v, r, code = -1.5, 2.0, 1.0, (linear, logistic, probit).index(link)
    g, h = link.step(m, v, r)
    first, after = link.log_predictive(m, v, r), link.log_predictive(m + v * g, v - v * v * h, r)
    for weight in (0.5, 1.0, 3.0, 2.5):
        expected = weight * first if weight <= 1 else first + (weight - 1) * after
        assert log_evidence(code, m, v, r, weight, 1.0) == pytest.approx(expected, rel=1e-12)
