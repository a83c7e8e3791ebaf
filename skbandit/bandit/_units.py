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

A feature without spread so far has rate 0: it counts for nothing until it varies. If it begins to
vary late, the next doubling of all events may be far away. So the unit of a single feature is also
renewed once it is missing, or its spread has grown to `GROWN` units: at an event that is away from
the mean by the spread or more, of which the sum of squared deviations holds `FIRST_RENEWAL` like
it, so that no single outlier sets a unit. These conditions have no unit themselves.

Rewards of a linear link have running units, too: r enters models as r' = (r - center) rate, with a
noise variance of 1. At the same events, center becomes the mean of all learned rewards and rate
1/sd, so that

    r'_new = f r'_old + g,    f = rate_new / rate_old,    g = (center_old - center_new) rate_new.

Let an arm have learned n events, with the prior N(0, V) of its weights and X their features, of
which e marks the constant: X e = 1. Its posterior has Σ⁻¹ = V⁻¹ + XᵀX, which has no unit, and the
mean μ = Σ Xᵀr', which becomes

    μ_new = Σ Xᵀ(f r' + g X e) = f μ + g Σ (Σ⁻¹ - V⁻¹) e = f μ + g (e - Σ V⁻¹ e):

exactly Bayes' posterior by all rewards in the new unit. Of a diagonal Σ, only the constant's weight
is shifted. Without a constant, nothing is centered: rate = 1/√(mean of r²), and g = 0.

Until two rewards differ, their unit is not known: all have r' = 0, and all means are 0.

**Theorem.** Rewards r and a r + b, with a > 0, lead to the same choices. Proof: a r + b has the
center a c + b and the rate 1/(a s), so that all r', f and g are the same, by induction over events;
and choices depend on nothing else. Rounding must not decide between arms that are equal but for the
unit in which they learned, so scores are compared on a grid of 1e-9.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit import _state
from skbandit.bandit._state import Posterior, Prior
from skbandit.utils._changes import MEAN as RESIDUAL
from skbandit.utils._changes import SQUARES as SQUARED
from skbandit.utils._compiled import called_exactly, compiled_exactly, inlined_exactly

FIRST_RENEWAL = 8
"""Number of learned events at which units are set first; they are renewed at each doubling."""

GROWN = 2.0
"""Spread, in units of a feature, at which its unit is renewed alone."""

RESOLUTION = 2.0**30
"""Distinct scores within one standard deviation of rewards."""

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


@compiled_exactly
def count_row(
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
def reward_in_units(r: float, weight: float, posterior: Posterior) -> float:
    """Return reward r' in running units, after its inclusion in their sums."""
    units, seen = posterior.reward, posterior.seen_weight[0]
    away = r - units[_state.MEAN]
    units[_state.MEAN] += weight / (seen + weight) * away
    units[_state.SQUARES] += weight * away * (r - units[_state.MEAN])
    centered = posterior.mean.shape[2] > len(posterior.rate)
    if seen == 0.0 and centered:
        units[_state.CENTER] = r
    if units[_state.RATE] == 0.0:  # all were equal to the center
        units[_state.RATE] = _rate_of(units, seen + weight, centered)
    return (r - units[_state.CENTER]) * units[_state.RATE]


@inlined_exactly
def _rate_of(units: np.ndarray, weight: float, centered: bool) -> float:
    """Return reciprocal of the spread of the rewards, 0 if they have none."""
    spread = units[_state.SQUARES] / weight
    if not centered:
        spread += units[_state.MEAN] * units[_state.MEAN]
    spread = math.sqrt(spread)
    return 1.0 / spread if LEAST_SPREAD * abs(units[_state.MEAN]) < spread < math.inf else 0.0


@called_exactly
def renew_reward(posterior: Posterior, prior: Prior) -> None:
    """Renew the unit of rewards, and express in it all that arms have learned."""
    units, mean, evidence = posterior.reward, posterior.mean, posterior.evidence
    last = mean.shape[2] - 1
    centered = mean.shape[2] > len(posterior.rate)
    rate = _rate_of(units, posterior.seen_weight[0], centered)
    if rate == 0.0:  # all are equal
        if centered:
            units[_state.CENTER] = units[_state.MEAN]
        return
    f = rate / units[_state.RATE] if units[_state.RATE] > 0.0 else 1.0
    g = (units[_state.CENTER] - units[_state.MEAN]) * rate if centered else 0.0
    units[_state.RATE] = rate
    if centered:
        units[_state.CENTER] = units[_state.MEAN]
    for k in range(len(posterior.check)):
        posterior.check[k, RESIDUAL] *= f
        posterior.check[k, SQUARED] *= f * f
    for e in range(len(mean)):
        for j in range(posterior.counters[_state.N_LEARNED_ARMS]):
            k = posterior.learned[j]
            for i in range(last + 1):
                mean[e, k, i] *= f
            if centered:
                _shift_mean(g, k, e, mean, posterior.cov_factor, prior)
        # likelihoods that were told by a unit far too small would decide for good
        evidence[e] *= min(f * f, 1.0)


@called_exactly
def _shift_mean(
    g: float, k: int, e: int, mean: np.ndarray, cov_factor: np.ndarray, prior: Prior
) -> None:
    """Add g (e - Σ V⁻¹ e) to the mean of arm k under prior scale e."""
    last = mean.shape[2] - 1
    mean[e, k, last] += g
    if not prior.adaptive_mean:  # else the prior moves with the rewards
        part = g / prior.variance[e, last]
        if cov_factor.ndim == 3:
            mean[e, k, last] -= part * min(cov_factor[e, k, last], prior.variance[e, last])
        else:
            for i in range(last + 1):
                for j in range(last + 1):
                    of_both = cov_factor[e, k, i, j] * cov_factor[e, k, last, j]
                    mean[e, k, i] -= part * of_both


@compiled_exactly
def is_due(posterior: Posterior) -> bool:
    """Return whether the units are to be renewed after the latest learned event."""
    n = posterior.counters[_state.N_EVENTS]
    return len(posterior.rate) > 0 and n >= FIRST_RENEWAL and n & (n - 1) == 0


@called_exactly
def renew(
    center: np.ndarray, rate: np.ndarray, mean: np.ndarray, squares: np.ndarray, weight: float,
    norm: float, factor: np.ndarray, shift: np.ndarray,
) -> None:  # fmt: skip
    """Set the units to `norm` standard deviations by what was counted; write f and s of the change.

    Features newly known and those without spread have f = 1 and s = 0.
    """
    for i in range(len(rate)):
        _renew_one(i, center, rate, mean, squares, weight, norm, factor, shift)


@inlined_exactly
def _has_grown(i: int, rate: np.ndarray, squares: np.ndarray, weight: float, norm: float) -> bool:
    """Return whether feature i varies, and has no unit, or one of far less spread."""
    in_units = norm * rate[i]
    grown = squares[i] * (in_units * in_units) > GROWN * GROWN * weight
    return squares[i] > 0.0 and (rate[i] == 0.0 or grown)


@inlined_exactly
def any_has_grown(rate: np.ndarray, squares: np.ndarray, weight: float, norm: float) -> bool:
    """Return whether `renew_late` may renew a unit: a call takes longer than this loop."""
    for i in range(len(rate)):
        if _has_grown(i, rate, squares, weight, norm):
            return True
    return False


@called_exactly
def renew_late(
    X: np.ndarray, row: int, center: np.ndarray, rate: np.ndarray, mean: np.ndarray,
    squares: np.ndarray, weight: float, norm: float, factor: np.ndarray, shift: np.ndarray,
) -> bool:  # fmt: skip
    """Renew the units of features that vary since lately, or more than they did, at a row's event.

    Returns
    -------
    bool
        Whether arms' weights change. f and s of the change are then written.
    """
    changed, begun = False, False
    for i in range(len(rate)):
        if _has_grown(i, rate, squares, weight, norm):
            away = X[row, i] - mean[i] if len(mean) else X[row, i]
            away *= away
            if squares[i] <= weight * away and FIRST_RENEWAL * away <= squares[i]:
                if not begun:
                    begun = True
                    for j in range(len(rate)):
                        factor[j], shift[j] = 1.0, 0.0
                changed = changed or rate[i] > 0.0
                _renew_one(i, center, rate, mean, squares, weight, norm, factor, shift)
    return changed


@inlined_exactly
def _renew_one(
    i: int, center: np.ndarray, rate: np.ndarray, mean: np.ndarray, squares: np.ndarray,
    weight: float, norm: float, factor: np.ndarray, shift: np.ndarray,
) -> None:  # fmt: skip
    """Set the unit of feature i."""
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
            prior_precision = 0.0 if prior.adaptive_variance else 1.0 / prior.variance[e, i]
            of_data = max(1.0 / cov_factor[e, k, i] - prior_precision, 0.0)
            if of_data > 0.0:
                cov_factor[e, k, i] = 1.0 / (prior_precision + of_data / (factor[i] * factor[i]))
        else:
            for j in range(cov_factor.shape[3]):
                if centered:
                    cov_factor[e, k, n_features, j] += shift[i] * cov_factor[e, k, i, j]
                cov_factor[e, k, i, j] *= factor[i]
