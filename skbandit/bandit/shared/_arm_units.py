"""Units of arms' features: a renewal keeps what the data say, and states the prior anew.

When arms are described that differ more than those known, the unit of a feature grows, and a prior
variance that was right in the old unit would be far too wide in the new one. The data's part of the
posterior is therefore carried over alone, and meets the prior in the new units: for linear rewards
that is the posterior of a policy that had known all arms from the start.
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit.shared._standardize import Units


def standardized(values: np.ndarray, units: Units) -> np.ndarray:
    """Features in these units, followed by the constant."""
    return np.column_stack([(values - units.centre) * units.rate, np.ones(len(values))])


def as_given(units: Units) -> np.ndarray:
    """T with (x, 1) = T (X, 1) for features x in these units, X as given."""
    d = len(units.rate)
    T = np.zeros((d + 1, d + 1))
    T[np.arange(d), np.arange(d)] = units.rate
    T[:d, d] = -units.rate * units.centre
    T[d, d] = 1.0
    return T


def in_new_units(
    factor: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    cov_factor: np.ndarray,
    prior_variance: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior of B where the arms' old features were z = factor z' + shift.

    Parameters
    ----------
    factor, shift : ndarray of shape (dz - 1,)
        Change of units.
    mean : ndarray of shape (dx, dz)
        Posterior mean; the prior's is 0.
    cov_factor : ndarray of shape (dx, dz, dx dz) or (dx, dz)
        L with Σ = L Lᵀ, or the diagonal of Σ, of which then only the diagonal is carried over.
    prior_variance : ndarray of shape (dx, dz)
        Prior variances in old and in new units.

    Returns
    -------
    tuple of ndarray
        New mean and cov_factor.
    """
    dx, dz = mean.shape
    N = np.diag(np.append(1 / factor, 1.0))  # old weights = N new weights
    N[-1, :-1] = -shift / factor
    if cov_factor.ndim == 2:
        T = np.linalg.inv(N).T
        data = np.maximum(1 / cov_factor - 1 / prior_variance, 0.0)
        scale = np.append(factor, 1.0)
        return mean @ T, 1 / (1 / prior_variance + data / scale**2)
    p = dx * dz
    inverse = np.linalg.inv(cov_factor.reshape(p, p))
    precision = inverse.T @ inverse
    values, vectors = np.linalg.eigh(precision - np.diag(1 / prior_variance.ravel()))
    data = (vectors * np.maximum(values, 0.0)) @ vectors.T  # without what rounding made negative
    lift = np.kron(np.eye(dx), N)
    natural = lift.T @ (precision @ mean.ravel())
    new = lift.T @ data @ lift + np.diag(1 / prior_variance.ravel())
    L = np.linalg.inv(np.linalg.cholesky((new + new.T) / 2)).T
    return (L @ (L.T @ natural)).reshape(dx, dz), np.ascontiguousarray(L).reshape(dx, dz, p)
