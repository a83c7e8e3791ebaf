"""Weights of arms in the units of the contexts, averaged over prior scales.

With x = (X - c) r (`skbandit.bandit._units`), θ = Σ_i w_i (X_i - c_i) r_i + w_0: the weight of X_i
is r_i w_i, and the constant is w_0 - Σ_i c_i r_i w_i. Means and covariances over prior scales are
those of the mixture (`skbandit.bandit._mixture`).
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import Beliefs


def mean_weights(beliefs: Beliefs) -> np.ndarray:
    """Posterior means, (n_arms, n_weights), the constant's last."""
    return _in_units(beliefs, np.einsum("e,kei->ki", beliefs.share, beliefs.mean))


def weight_covariance(beliefs: Beliefs) -> np.ndarray:
    """Posterior variances, (n_arms, n_weights), or covariances, with another axis of n_weights."""
    share, factor = beliefs.share, beliefs.cov_factor
    away = beliefs.mean - np.einsum("e,kei->ki", share, beliefs.mean)[:, None]
    if factor.ndim == 3:
        of_weights = np.einsum("e,kei->ki", share, factor + away**2)
        return _diagonal_in_units(beliefs, of_weights)
    covariance = factor @ factor.transpose(0, 1, 3, 2) + away[..., None] * away[..., None, :]
    mixed = np.einsum("e,keij->kij", share, covariance)
    once = _in_units(beliefs, mixed)
    both = _in_units(beliefs, once.transpose(0, 2, 1))
    return both if not len(beliefs.rate) else (both + both.transpose(0, 2, 1)) / 2


def _in_units(beliefs: Beliefs, weights: np.ndarray) -> np.ndarray:
    """Map the last axis of weights of features in running units to those of the contexts."""
    n_features = len(beliefs.rate)
    if not n_features:
        return weights
    mapped = weights.copy()
    mapped[..., :n_features] *= beliefs.rate
    if len(beliefs.centre):
        mapped[..., -1] -= mapped[..., :n_features] @ beliefs.centre
    return mapped


def _diagonal_in_units(beliefs: Beliefs, variance: np.ndarray) -> np.ndarray:
    """Map variances of uncorrelated weights likewise."""
    n_features = len(beliefs.rate)
    if not n_features:
        return variance
    mapped = variance.copy()
    mapped[:, :n_features] *= beliefs.rate**2
    if len(beliefs.centre):
        mapped[:, -1] += mapped[:, :n_features] @ beliefs.centre**2
    return mapped
