"""The bilinear posterior is that of Bayesian regression on products of features."""

import numpy as np
import pytest

from skbandit.bandit._units import count_row
from skbandit.bandit.shared import _bilinear as bilinear
from skbandit.bandit.shared._state import (
    SharedPrior,
    append_arms,
    fixed_units,
    prior_posterior,
    renew_if_due,
    running_units,
)

PRIOR = SharedPrior(np.array([2.0]), np.ones(1), np.array([0.3]), 1.0, False, np.ones(1))
DX, DZ, N_ARMS = 4, 3, 70  # more arms than a block holds


def random_posterior(rng, full):
    """Posterior far from the prior."""
    posterior = prior_posterior(fixed_units(DX - 1), DZ, full, PRIOR)
    Z = np.column_stack([rng.normal(size=(N_ARMS, DZ - 1)), np.ones(N_ARMS)])
    posterior = append_arms(posterior, Z, list(range(N_ARMS)), PRIOR)
    posterior.mean[:] = rng.normal(size=(1, 1, DX, DZ))
    if full:
        posterior.cov_factor[:] = rng.normal(size=posterior.cov_factor.shape)
    else:
        posterior.cov_factor[:] = rng.uniform(0.1, 2, size=posterior.cov_factor.shape)
    posterior.own_mean[:] = rng.normal(size=(N_ARMS, 1, DX))
    posterior.own_variance[:] = rng.uniform(0.1, 1, size=(N_ARMS, 1, DX))
    return posterior


def arrays(posterior):
    """Posterior under the only prior scale: of B, and of the arms' own weights."""
    return (
        posterior.mean[0, 0],
        posterior.cov_factor[0],
        posterior.own_mean[:, 0],
        posterior.own_variance[:, 0],
    )


def covariance(posterior):
    """Σ of vec B, as a matrix."""
    p = DX * DZ
    if posterior.cov_factor.ndim == 3:
        return np.diag(posterior.cov_factor.ravel())
    L = posterior.cov_factor.reshape(p, p)
    return L @ L.T


def moments(posterior, x, arms):
    work = posterior.workspace()
    mean, cov_factor, own_mean, own_variance = arrays(posterior)
    bilinear.contract(x, mean, cov_factor, work.u[0], work.half[0], work.C[0])
    bilinear.arm_moments(
        np.asarray(arms), x, work.u[0], work.C[0], cov_factor.ndim == 3, posterior.Z, own_mean,
        own_variance, work.block, work.m, work.v,
    )  # fmt: skip
    return work.m[arms], work.v[arms], work


@pytest.mark.parametrize("full", [True, False])
def test_moments_are_those_of_the_products(full):
    rng = np.random.default_rng(0)
    posterior, x = random_posterior(rng, full), rng.normal(size=DX)
    m, v, _ = moments(posterior, x, np.arange(N_ARMS))
    phi = np.array([np.outer(x, z).ravel() for z in posterior.Z])
    np.testing.assert_allclose(
        m, phi @ posterior.mean.ravel() + posterior.own_mean[:, 0] @ x, rtol=1e-12
    )
    of_products = np.einsum("ap,pq,aq->a", phi, covariance(posterior), phi)
    np.testing.assert_allclose(v, of_products + posterior.own_variance[:, 0] @ x**2, rtol=1e-11)


def test_moments_do_not_depend_on_the_other_arms():
    rng = np.random.default_rng(1)
    posterior, x = random_posterior(rng, True), rng.normal(size=DX)
    m, v, _ = moments(posterior, x, np.arange(N_ARMS))
    some = rng.permutation(N_ARMS)[:67]
    of_some = moments(posterior, x, some)
    np.testing.assert_array_equal(of_some[0], m[some])
    np.testing.assert_array_equal(of_some[1], v[some])


def test_a_step_is_conditioning_without_the_covariances_of_own_weights():
    """The joint Gaussian of (vec B, w), conditioned on θ + noise; its blocks are what is kept."""
    rng = np.random.default_rng(2)
    posterior, x, k, r, noise = random_posterior(rng, True), rng.normal(size=DX), 5, 1.3, 0.7
    p = DX * DZ
    joint = np.zeros((p + DX, p + DX))
    joint[:p, :p] = covariance(posterior)
    joint[p:, p:] = np.diag(posterior.own_variance[k, 0])
    mean = np.append(posterior.mean.ravel(), posterior.own_mean[k, 0])
    row = np.append(np.outer(x, posterior.Z[k]).ravel(), x)
    gain = joint @ row / (row @ joint @ row + noise)
    expected = mean + gain * (r - row @ mean)
    after = joint - np.outer(gain, row @ joint)

    m, v, work = moments(posterior, x, [k])
    total = v[0] + noise
    new = posterior.copy()
    bilinear.absorb(
        x, posterior.Z[k], k, (r - m[0]) / total, 1 / total, *arrays(new), work.half[0], work.a
    )
    np.testing.assert_allclose(new.mean.ravel(), expected[:p], rtol=1e-10)
    np.testing.assert_allclose(new.own_mean[k, 0], expected[p:], rtol=1e-10)
    np.testing.assert_allclose(covariance(new), after[:p, :p], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(new.own_variance[k, 0], np.diag(after)[p:], rtol=1e-10)
    others = np.arange(N_ARMS) != k
    np.testing.assert_array_equal(new.own_mean[others], posterior.own_mean[others])


def test_a_diagonal_step_has_the_marginals_of_the_full_one():
    rng = np.random.default_rng(3)
    posterior, x, k = random_posterior(rng, False), rng.normal(size=DX), 1
    _, v, work = moments(posterior, x, [k])
    g, h = 0.4, 0.8 / v[0]
    phi, S = np.outer(x, posterior.Z[k]).ravel(), covariance(posterior)
    new = posterior.copy()
    bilinear.absorb(x, posterior.Z[k], k, g, h, *arrays(new), work.half[0], work.a)
    np.testing.assert_allclose(new.mean.ravel(), posterior.mean.ravel() + g * S @ phi, rtol=1e-12)
    after = np.diag(S - h * np.outer(S @ phi, S @ phi))
    np.testing.assert_allclose(new.cov_factor.ravel(), after, rtol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_a_change_of_units_keeps_the_function(full):
    rng = np.random.default_rng(4)
    posterior = random_posterior(rng, full)
    factor, shift = rng.uniform(0.5, 2, size=DX - 1), rng.normal(size=DX - 1)
    new_x = np.append(rng.normal(size=DX - 1), 1.0)
    old_x = np.append(factor * new_x[:-1] + shift, 1.0)
    before = moments(posterior, old_x, np.arange(N_ARMS))
    mean, cov_factor, own_mean, own_variance = arrays(posterior)
    bilinear.change_units(factor, shift, mean, cov_factor, 2.0)
    bilinear.change_units(factor, shift, own_mean.T, own_variance.T, 0.3)
    after = moments(posterior, new_x, np.arange(N_ARMS))
    np.testing.assert_allclose(after[0], before[0], rtol=1e-10, atol=1e-12)
    assert (own_variance[:, :-1] <= 0.3 + 1e-12).all()  # never beyond the prior's
    if not full:
        assert (cov_factor[:-1] <= 2.0 + 1e-12).all()


@pytest.mark.parametrize("location", [0.0, 1e6])
def test_running_moments_are_those_of_the_rows(location):
    rng = np.random.default_rng(5)
    X = location + rng.normal(size=(40, 3)) * [1e-3, 1.0, 1e3]
    X[:, 0] = location  # constant
    units = running_units(3)
    factor, shift = np.empty(3), np.empty(3)
    renewed = []
    for n, row in enumerate(X, start=1):
        old = units.center.copy(), units.rate.copy()
        count_row(X, n - 1, 1.0, units.mean, units.squares, units.seen)
        if renew_if_due(units, factor, shift):
            renewed.append(n)
            known = old[1] > 0
            np.testing.assert_allclose(
                ((row - old[0]) * old[1])[known],
                (factor * ((row - units.center) * units.rate) + shift)[known],
                rtol=1e-7, atol=1e-9,
            )  # fmt: skip
    assert renewed == [8, 16, 32]
    first = X[:32]
    np.testing.assert_allclose(units.center[1:], first.mean(0)[1:], rtol=1e-9)
    np.testing.assert_allclose(1 / units.rate[1:], first.std(0)[1:] * np.sqrt(3), rtol=1e-6)
    assert units.rate[0] == 0.0


def test_the_estimate_of_noise_is_unbiased():
    """Prequential residuals of the model itself: within 5 standard errors (false alarms 1e-6)."""
    rng, sigma, n = np.random.default_rng(6), 3.0, 4000
    noise = np.zeros(2)
    assert bilinear.noise_scale(noise) == 1.0
    for v in rng.uniform(0, 5, n):
        r = 7 + rng.normal() * sigma * np.sqrt(v + 1)
        bilinear.add_residual(7.0, v, r, 1.0, noise)
    error = sigma**2 * np.sqrt(2 / n)
    assert abs(bilinear.noise_scale(noise) ** 2 - sigma**2) < 5 * error


@pytest.mark.parametrize("full", [True, False])
def test_forgetting_discounts_precisions(full):
    """Λ ← γ Λ + (1 - γ) Λ₀, likewise Λ mean; of the arms' own weights only those of arm k."""
    gamma, k, rng = 0.7, 5, np.random.default_rng(0)
    old = random_posterior(rng, full)
    new = old.copy()
    mean, cov_factor, own_mean, own_variance = arrays(new)
    variances = PRIOR.variance[0], PRIOR.constant_variance[0]
    bilinear.forget(gamma, mean, cov_factor, *variances, np.empty(DX * DZ))
    bilinear.forget_own(k, gamma, own_mean, own_variance, PRIOR.own_variance[0])
    own = np.full(DX * DZ, PRIOR.variance[0])
    own[-1] = PRIOR.constant_variance[0]
    before, after = np.linalg.inv(covariance(old)), np.linalg.inv(covariance(new))
    np.testing.assert_allclose(after, gamma * before + (1 - gamma) * np.diag(1 / own), rtol=1e-6)
    np.testing.assert_allclose(
        after @ new.mean.ravel(), gamma * before @ old.mean.ravel(), rtol=1e-6, atol=1e-8
    )
    others = np.arange(N_ARMS) != k
    np.testing.assert_array_equal(new.own_mean[others], old.own_mean[others])
    np.testing.assert_array_equal(new.own_variance[others], old.own_variance[others])
    precision = gamma / old.own_variance[k] + (1 - gamma) / PRIOR.own_variance[0]
    np.testing.assert_allclose(1 / new.own_variance[k], precision)
    natural = gamma * old.own_mean[k] / old.own_variance[k]
    np.testing.assert_allclose(new.own_mean[k] * precision, natural)
