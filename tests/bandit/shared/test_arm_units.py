"""A renewal of arms' units is Bayesian regression with the prior in the new units."""

import numpy as np
import pytest

from skbandit.bandit.shared._state import in_new_units

DX, DZ = 3, 4


def regression(x, z, r, prior):
    """Mean and covariance of vec B."""
    phi = np.einsum("ni,nj->nij", x, z).reshape(len(r), -1)
    S = np.linalg.inv(np.diag(1 / prior.ravel()) + phi.T @ phi)
    return (S @ phi.T @ r).reshape(DX, DZ), S


@pytest.mark.parametrize("growth", [1.0, 1e4])
def test_the_posterior_is_that_of_the_new_prior(growth):
    rng = np.random.default_rng(0)
    x, z, r = rng.normal(size=(30, DX)), rng.normal(size=(30, DZ)), rng.normal(size=30)
    z[:, -1] = 1.0
    prior = rng.uniform(1, 3, size=(DX, DZ))
    factor, shift = growth * rng.uniform(0.5, 2, size=DZ - 1), rng.normal(size=DZ - 1)
    new_z = np.column_stack([(z[:, :-1] - shift) / factor, np.ones(30)])
    mean, S = regression(x, z, r, prior)
    L = np.linalg.cholesky(S).reshape(DX, DZ, DX * DZ)
    new_mean, new_L = in_new_units(factor, shift, mean, L, prior)
    expected, covariance = regression(x, new_z, r, prior)
    np.testing.assert_allclose(new_mean, expected, rtol=1e-6, atol=1e-9)
    of_new = new_L.reshape(DX * DZ, -1)
    np.testing.assert_allclose(of_new @ of_new.T, covariance, rtol=1e-6, atol=1e-9)


def test_a_diagonal_posterior_keeps_its_function_and_the_prior_where_nothing_was_learned():
    rng = np.random.default_rng(1)
    mean, prior = rng.normal(size=(DX, DZ)), rng.uniform(1, 3, size=(DX, DZ))
    factor, shift = rng.uniform(0.5, 9, size=DZ - 1), rng.normal(size=DZ - 1)
    new, variance = in_new_units(factor, shift, mean, prior.copy(), prior)
    new_z = np.append(rng.normal(size=DZ - 1), 1.0)
    np.testing.assert_allclose(new @ new_z, mean @ np.append(factor * new_z[:-1] + shift, 1.0))
    np.testing.assert_allclose(variance, prior)
