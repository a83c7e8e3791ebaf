"""Running standardization: features are centered and scaled by the contexts learned so far.

A feature X enters models as x = (X - center) rate. At learned events 8, 16, 32, ... the units are
renewed, to center = mean and rate = 1/sd of all learned contexts. In terms of the new x, the old
one is

    x_old = f x_new + s,    f = rate_old / rate_new,    s = (center_new - center_old) rate_old,

so the weights w_i of features become f_i w_i, and that of the constant gains Σ_i s_i w_i: θ = wᵀx
remains the same function of X. A full covariance, kept as Σ = L Lᵀ, follows exactly: L becomes A L,
where A is the matrix of this map. Of a diagonal covariance, what the data added to the precision of
each weight, 1/Σ_ii less the prior's, becomes its f_i⁻²-fold, and the prior is that of the new
units. Arms without events start from the prior in the new units.

Without a constant feature, or where sparse contexts shall stay sparse, nothing is centered: x = X
rate, and rate = 1/√(mean of X²). `center` and `seen_mean` are then empty, and `seen_squares` are
sums of X². Zeros remain zeros, and a feature that was always 0 changes nothing.

A feature without spread so far has rate 0: it counts for nothing until it varies.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._state import N_EVENTS, Posterior, Prior
from skbandit.utils._compiled import called_exactly, inlined_exactly

FIRST_RENEWAL = 8
"""Number of learned events at which units are set first; they are renewed at each doubling."""

LEAST_SPREAD = 1e-12
"""Standard deviation, relative to the mean, up to which a feature is constant: beyond rounding
errors of its sums, below the resolution of any sensible unit."""


@inlined_exactly
def show(x: np.ndarray, X: np.ndarray, row: int, center: np.ndarray, rate: np.ndarray) -> None:
    """Write a row of features, in running units if there are any, into the buffer."""
    if len(rate) == 0:
        for i in range(X.shape[1]):
            x[i] = X[row, i]
    elif len(center) == 0:
        for i in range(X.shape[1]):
            x[i] = X[row, i] * rate[i]
    else:
        for i in range(X.shape[1]):
            x[i] = (X[row, i] - center[i]) * rate[i]


@called_exactly
def count(
    X: np.ndarray, row: int, weight: float, mean: np.ndarray, squares: np.ndarray, seen: np.ndarray
) -> None:
    """Include a row in means and sums of squared deviations (West, 1979), and seen[0], its weight.

    Without means, sums are of squares.
    """
    seen[0] += weight
    if len(mean) == 0:
        for i in range(len(squares)):
            squares[i] += weight * X[row, i] * X[row, i]
    part = weight / seen[0]
    for i in range(len(mean)):
        away = X[row, i] - mean[i]
        mean[i] += part * away
        squares[i] += weight * away * (X[row, i] - mean[i])


@called_exactly
def is_due(posterior: Posterior) -> bool:
    """Whether the units are to be renewed after the latest learned event."""
    n = posterior.counters[N_EVENTS]
    return len(posterior.rate) > 0 and n >= FIRST_RENEWAL and n & (n - 1) == 0


def until_renewal(posterior: Posterior) -> int:
    """Number of further events after which the units are due to be renewed."""
    n, due = int(posterior.counters[N_EVENTS]), FIRST_RENEWAL
    while due <= n:
        due *= 2
    return due - n


@called_exactly
def renew(
    center: np.ndarray, rate: np.ndarray, mean: np.ndarray, squares: np.ndarray, weight: float,
    norm: float, factor: np.ndarray, shift: np.ndarray,
) -> None:  # fmt: skip
    """Set the units to `norm` standard deviations by what was counted; write f and s of the change.

    Features newly known and those without spread have f = 1 and s = 0.
    """
    for i in range(len(rate)):
        factor[i], shift[i] = 1.0, 0.0
        spread = math.sqrt(squares[i] / weight)
        origin = mean[i] if len(center) else 0.0
        if LEAST_SPREAD * abs(origin) < spread < math.inf:
            spread *= norm
            if rate[i] > 0.0:
                factor[i] = rate[i] * spread
                if len(center):
                    shift[i] = (origin - center[i]) * rate[i]
            rate[i] = 1.0 / spread
            if len(center):
                center[i] = origin


@called_exactly
def carry_over(
    k: int, e: int, mean: np.ndarray, cov_factor: np.ndarray, prior: Prior, factor: np.ndarray,
    shift: np.ndarray, n_features: int, centered: bool,
) -> None:  # fmt: skip
    """Express the weights of arm k under prior scale e in new units."""
    for i in range(n_features):
        if not centered and factor[i] == 1.0:  # the same bits as if the feature were not there
            continue
        if centered:
            mean[e, k, n_features] += shift[i] * mean[e, k, i]
        mean[e, k, i] *= factor[i]
        if cov_factor.ndim == 3:
            # an adaptive prior is not known any more: all of the precision is the data's
            own = 0.0 if prior.adaptive_variance else 1.0 / prior.variance[e, i]
            of_data = max(1.0 / cov_factor[e, k, i] - own, 0.0)
            cov_factor[e, k, i] = 1.0 / (own + of_data / (factor[i] * factor[i]))
        else:
            for j in range(cov_factor.shape[3]):
                if centered:
                    cov_factor[e, k, n_features, j] += shift[i] * cov_factor[e, k, i, j]
                cov_factor[e, k, i, j] *= factor[i]
