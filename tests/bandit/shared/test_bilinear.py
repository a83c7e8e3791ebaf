"""The bilinear posterior is that of Bayesian regression on products of features."""

import numpy as np
import pytest

from skbandit.bandit._units import count
from skbandit.bandit.shared import _bilinear as bilinear
from skbandit.bandit.shared._state import (
    SharedPrior,
    append_arms,
    fixed_units,
    prior_beliefs,
    renew_if_due,
    running_units,
)

PRIOR = SharedPrior(2.0, 1.0, 0.3, 1.0, estimates_noise=False)
DX, DZ, N_ARMS = 4, 3, 70  # more arms than a block holds


def random_beliefs(rng, full):
    """Beliefs far from the prior."""
    beliefs = prior_beliefs(fixed_units(DX - 1), DZ, full, PRIOR)
    Z = np.column_stack([rng.normal(size=(N_ARMS, DZ - 1)), np.ones(N_ARMS)])
    beliefs = append_arms(beliefs, Z, list(range(N_ARMS)), PRIOR)
    beliefs.mean[:] = rng.normal(size=(DX, DZ))
    if full:
        beliefs.cov_factor[:] = rng.normal(size=beliefs.cov_factor.shape)
    else:
        beliefs.cov_factor[:] = rng.uniform(0.1, 2, size=beliefs.cov_factor.shape)
    beliefs.offset_mean[:] = rng.normal(size=N_ARMS)
    beliefs.offset_variance[:] = rng.uniform(0.1, 1, size=N_ARMS)
    return beliefs


def covariance(beliefs):
    """Σ of vec B, as a matrix."""
    p = DX * DZ
    if beliefs.cov_factor.ndim == 2:
        return np.diag(beliefs.cov_factor.ravel())
    L = beliefs.cov_factor.reshape(p, p)
    return L @ L.T


def moments(beliefs, x, arms):
    work = beliefs.workspace()
    bilinear.contract(x, beliefs.mean, beliefs.cov_factor, work.u, work.half, work.C)
    bilinear.arm_moments(
        np.asarray(arms), work.u, work.C, beliefs.cov_factor.ndim == 3, beliefs.Z,
        beliefs.offset_mean, beliefs.offset_variance, work.block, work.m, work.v,
    )  # fmt: skip
    return work.m[arms], work.v[arms], work


@pytest.mark.parametrize("full", [True, False])
def test_moments_are_those_of_the_products(full):
    rng = np.random.default_rng(0)
    beliefs, x = random_beliefs(rng, full), rng.normal(size=DX)
    m, v, _ = moments(beliefs, x, np.arange(N_ARMS))
    phi = np.array([np.outer(x, z).ravel() for z in beliefs.Z])
    np.testing.assert_allclose(m, phi @ beliefs.mean.ravel() + beliefs.offset_mean, rtol=1e-12)
    of_products = np.einsum("ap,pq,aq->a", phi, covariance(beliefs), phi)
    np.testing.assert_allclose(v, of_products + beliefs.offset_variance, rtol=1e-11)


def test_moments_do_not_depend_on_the_other_arms():
    rng = np.random.default_rng(1)
    beliefs, x = random_beliefs(rng, True), rng.normal(size=DX)
    m, v, _ = moments(beliefs, x, np.arange(N_ARMS))
    some = rng.permutation(N_ARMS)[:67]
    of_some = moments(beliefs, x, some)
    np.testing.assert_array_equal(of_some[0], m[some])
    np.testing.assert_array_equal(of_some[1], v[some])


def test_a_step_is_conditioning_without_the_covariance_between_model_and_offset():
    """The joint Gaussian of (vec B, b), conditioned on θ + noise; its blocks are what is kept."""
    rng = np.random.default_rng(2)
    beliefs, x, k, r, noise = random_beliefs(rng, True), rng.normal(size=DX), 5, 1.3, 0.7
    p = DX * DZ
    joint = np.zeros((p + 1, p + 1))
    joint[:p, :p], joint[p, p] = covariance(beliefs), beliefs.offset_variance[k]
    mean = np.append(beliefs.mean.ravel(), beliefs.offset_mean[k])
    row = np.append(np.outer(x, beliefs.Z[k]).ravel(), 1.0)
    gain = joint @ row / (row @ joint @ row + noise)
    expected = mean + gain * (r - row @ mean)
    after = joint - np.outer(gain, row @ joint)

    m, v, work = moments(beliefs, x, [k])
    total = v[0] + noise
    new = beliefs.copy()
    bilinear.absorb(
        x, beliefs.Z[k], k, (r - m[0]) / total, 1 / total, new.mean, new.cov_factor,
        new.offset_mean, new.offset_variance, work.half, work.a,
    )  # fmt: skip
    np.testing.assert_allclose(new.mean.ravel(), expected[:p], rtol=1e-10)
    np.testing.assert_allclose(new.offset_mean[k], expected[p], rtol=1e-10)
    np.testing.assert_allclose(covariance(new), after[:p, :p], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(new.offset_variance[k], after[p, p], rtol=1e-10)
    others = np.arange(N_ARMS) != k
    np.testing.assert_array_equal(new.offset_mean[others], beliefs.offset_mean[others])


def test_a_diagonal_step_has_the_marginals_of_the_full_one():
    rng = np.random.default_rng(3)
    beliefs, x, k = random_beliefs(rng, False), rng.normal(size=DX), 1
    _, v, work = moments(beliefs, x, [k])
    g, h = 0.4, 0.8 / v[0]
    phi, S = np.outer(x, beliefs.Z[k]).ravel(), covariance(beliefs)
    new = beliefs.copy()
    bilinear.absorb(
        x, beliefs.Z[k], k, g, h, new.mean, new.cov_factor, new.offset_mean,
        new.offset_variance, work.half, work.a,
    )  # fmt: skip
    np.testing.assert_allclose(new.mean.ravel(), beliefs.mean.ravel() + g * S @ phi, rtol=1e-12)
    after = np.diag(S - h * np.outer(S @ phi, S @ phi))
    np.testing.assert_allclose(new.cov_factor.ravel(), after, rtol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_a_change_of_units_keeps_the_function(full):
    rng = np.random.default_rng(4)
    beliefs = random_beliefs(rng, full)
    factor, shift = rng.uniform(0.5, 2, size=DX - 1), rng.normal(size=DX - 1)
    new_x = np.append(rng.normal(size=DX - 1), 1.0)
    old_x = np.append(factor * new_x[:-1] + shift, 1.0)
    before = moments(beliefs, old_x, np.arange(N_ARMS))
    bilinear.change_units(factor, shift, beliefs.mean, beliefs.cov_factor, 2.0)
    after = moments(beliefs, new_x, np.arange(N_ARMS))
    np.testing.assert_allclose(after[0], before[0], rtol=1e-10, atol=1e-12)
    if full:
        np.testing.assert_allclose(after[1], before[1], rtol=1e-10)
    else:
        assert (beliefs.cov_factor[:-1] <= 2.0 + 1e-12).all()  # never beyond the prior's


@pytest.mark.parametrize("location", [0.0, 1e6])
def test_running_moments_are_those_of_the_rows(location):
    rng = np.random.default_rng(5)
    X = location + rng.normal(size=(40, 3)) * [1e-3, 1.0, 1e3]
    X[:, 0] = location  # constant
    units = running_units(3)
    factor, shift = np.empty(3), np.empty(3)
    renewed = []
    for n, row in enumerate(X, start=1):
        old = units.centre.copy(), units.rate.copy()
        count(X, n - 1, 1.0, units.mean, units.squares, units.seen)
        if renew_if_due(units, factor, shift):
            renewed.append(n)
            known = old[1] > 0
            np.testing.assert_allclose(
                ((row - old[0]) * old[1])[known],
                (factor * ((row - units.centre) * units.rate) + shift)[known],
                rtol=1e-7, atol=1e-9,
            )  # fmt: skip
    assert renewed == [8, 16, 32]
    first = X[:32]
    np.testing.assert_allclose(units.centre[1:], first.mean(0)[1:], rtol=1e-9)
    np.testing.assert_allclose(1 / units.rate[1:], first.std(0)[1:] * np.sqrt(3), rtol=1e-6)
    assert units.rate[0] == 0.0


def test_the_estimate_of_noise_is_unbiased():
    """Prequential residuals of the model itself: within 5 standard errors (false alarms 1e-6)."""
    rng, sigma, n = np.random.default_rng(6), 3.0, 4000
    noise = np.zeros(2)
    assert bilinear.noise_scale(noise) == 1.0
    for v, weight in zip(rng.uniform(0, 5, n), rng.integers(1, 4, n).astype(float), strict=True):
        r = 7 + rng.normal() * sigma * np.sqrt(v + 1 / weight)
        bilinear.add_residual(7.0, v, r, weight, noise)
    error = sigma**2 * np.sqrt(2 / n)
    assert abs(bilinear.noise_scale(noise) ** 2 - sigma**2) < 5 * error


@pytest.mark.parametrize("full", [True, False])
def test_forgetting_discounts_precisions(full):
    """Λ ← γ Λ + (1 - γ) Λ₀, likewise Λ mean; of the arms' offsets only that of arm k."""
    gamma, k, rng = 0.7, 5, np.random.default_rng(0)
    old = random_beliefs(rng, full)
    new = old.copy()
    bilinear.forget(
        k, gamma, new.mean, new.cov_factor, PRIOR.variance, PRIOR.constant_variance,
        new.offset_mean, new.offset_variance, PRIOR.offset_variance, np.empty(DX * DZ),
    )  # fmt: skip
    own = np.full(DX * DZ, PRIOR.variance)
    own[-1] = PRIOR.constant_variance
    before, after = np.linalg.inv(covariance(old)), np.linalg.inv(covariance(new))
    np.testing.assert_allclose(after, gamma * before + (1 - gamma) * np.diag(1 / own), rtol=1e-6)
    np.testing.assert_allclose(
        after @ new.mean.ravel(), gamma * before @ old.mean.ravel(), rtol=1e-6, atol=1e-8
    )
    others = np.arange(N_ARMS) != k
    np.testing.assert_array_equal(new.offset_mean[others], old.offset_mean[others])
    np.testing.assert_array_equal(new.offset_variance[others], old.offset_variance[others])
    precision = gamma / old.offset_variance[k] + (1 - gamma) / PRIOR.offset_variance
    assert 1 / new.offset_variance[k] == pytest.approx(precision)
    natural = gamma * old.offset_mean[k] / old.offset_variance[k]
    assert new.offset_mean[k] * precision == pytest.approx(natural)
