"""Weights of one arm, w ~ N(mean, Σ), Σ diagonal or full: θ = wᵀx, and what a step on θ changes.

Li, Chu, Langford, Moon & Wang (2012), eqs. 8-9 (eq. 8 prints xᵀΣ for Σx):

    mean ← mean + g Σx          Σ ← Σ - h Σx xᵀΣ      (diagonal Σ: its diagonal)

A full Σ is kept as L with Σ = L Lᵀ (Potter's square-root filter), as rounding cannot make that
indefinite. `spread` is the diagonal or L; which, the compiler knows by its number of axes.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._state import Beliefs, Prior
from skbandit.bandit.links._linear import linear_step
from skbandit.bandit.links._logistic import logistic_step
from skbandit.bandit.links._probit import probit_step
from skbandit.utils._compiled import compiled_exactly, inlined_exactly


@inlined_exactly
def moments(x: np.ndarray, mean: np.ndarray, spread: np.ndarray, k: int) -> tuple[float, float]:
    """Mean and variance of θ = wᵀx for arm k."""
    d = len(x)
    m = 0.0
    v = 0.0
    if spread.ndim == 2:
        for i in range(d):
            m += x[i] * mean[k, i]
            v += x[i] * x[i] * spread[k, i]
    else:
        for i in range(d):
            m += x[i] * mean[k, i]
        for j in range(d):
            a = 0.0
            for i in range(d):
                a += spread[k, i, j] * x[i]
            v += a * a
    return m, v


@compiled_exactly
def learn(
    x: np.ndarray,
    k: int,
    r: float,
    weight: float,
    link: int,
    beliefs: Beliefs,
    prior: Prior,
    room: np.ndarray,
) -> None:
    """Learn reward r of arm k in context x; `weight` events' worth, by a likelihood to that power.

    `room`, of shape (2, n_weights), is overwritten.
    """
    mean, spread = beliefs.mean, beliefs.spread
    if beliefs.n_updates[k] == 0:
        beliefs.learned[beliefs.clock[2]] = k
        if beliefs.rank[k] >= len(beliefs.rank):  # not known beforehand: after those that are
            known = len(beliefs.rank) - np.sum(beliefs.rank >= len(beliefs.rank))
            beliefs.rank[k] = known
        beliefs.clock[2] += 1
    beliefs.n_updates[k] += 1
    beliefs.clock[0] += 1
    if prior.forgetting < 1.0:
        _forget(k, beliefs, prior, room)
    m, v = moments(x, mean, spread, k)
    if v > 0.0:
        if link == 0:
            g, h = linear_step(m, weight * v, r, prior.noise_variance)
        elif link == 1:
            g, h = logistic_step(m, weight * v, r)
        else:
            g, h = probit_step(m, weight * v, r)
        _absorb(x, k, weight * g, weight * h, mean, spread, room)
    if (prior.adaptive_mean or prior.adaptive_variance) and beliefs.clock[2] < len(mean):
        renew_prior(beliefs, prior)


@compiled_exactly
def _absorb(
    x: np.ndarray,
    k: int,
    g: float,
    h: float,
    mean: np.ndarray,
    spread: np.ndarray,
    room: np.ndarray,
) -> None:
    """Lift a step (g, h) on θ to the weights of arm k."""
    d = len(x)
    if spread.ndim == 2:
        for i in range(d):
            sx = spread[k, i] * x[i]
            mean[k, i] += g * sx
            spread[k, i] *= 1.0 - h * sx * x[i]
        return
    # with a = Lᵀx: L ← L - c L a aᵀ, where (1 - c v)² = 1 - h v
    a, sx = room[0], room[1]
    v = 0.0
    for j in range(d):
        a[j] = 0.0
        for i in range(d):
            a[j] += spread[k, i, j] * x[i]
        v += a[j] * a[j]
    if v <= 0.0:
        return
    c = h / (1.0 + math.sqrt(max(0.0, 1.0 - h * v)))
    for i in range(d):
        sx[i] = 0.0
        for j in range(d):
            sx[i] += spread[k, i, j] * a[j]
        mean[k, i] += g * sx[i]
    for i in range(d):
        for j in range(d):
            spread[k, i, j] -= c * sx[i] * a[j]


@compiled_exactly
def _forget(k: int, beliefs: Beliefs, prior: Prior, room: np.ndarray) -> None:
    """Discount the evidence of arm k: precision Λ ← γ Λ + (1 - γ) Λ₀, its information likewise.

    That is Σ ← Σ/γ, and then to observe the prior, coordinate by coordinate, with the precision
    (1 - γ)/variance.
    """
    mean, spread, gamma = beliefs.mean, beliefs.spread, prior.forgetting
    d = mean.shape[1]
    spread[k] /= gamma if spread.ndim == 2 else math.sqrt(gamma)
    unit = np.zeros(d)
    for i in range(d):
        unit[i] = 1.0
        m, v = moments(unit, mean, spread, k)
        g, h = linear_step(m, v, prior.mean[i], prior.variance[i] / (1.0 - gamma))
        _absorb(unit, k, g, h, mean, spread, room)
        unit[i] = 0.0


@compiled_exactly
def renew_prior(beliefs: Beliefs, prior: Prior) -> None:
    """Give arms without events the prior: fixed, or adapted to the arms that have some (sec. 5.2).

    Adaptive: mean and covariance of the posterior means of the n arms with events, where the
    covariance, [Σ₀ + Σ_k (μ_k - μ̄)(μ_k - μ̄)ᵀ] / n, counts the prior variance as one arm, so that
    it cannot vanish. Below two arms it is the prior given.
    """
    mean, spread = beliefs.mean, beliefs.spread
    n = beliefs.clock[2]
    d = mean.shape[1]
    center = np.zeros(d)
    for j in range(n):
        for i in range(d):
            center[i] += mean[beliefs.learned[j], i]
    center /= max(n, 1)
    covariance = np.diag(prior.variance)
    if prior.adaptive_variance and n >= 2:
        for j in range(n):
            for i in range(d):
                away = mean[beliefs.learned[j], i] - center[i]
                for l in range(d):  # noqa: E741
                    covariance[i, l] += away * (mean[beliefs.learned[j], l] - center[l])
        covariance /= n
    if not prior.adaptive_mean or n < 2:
        center = prior.mean
    for k in range(len(mean)):
        if beliefs.n_updates[k] == 0:
            mean[k] = center
    _spread_unlearned(spread, beliefs.n_updates, covariance)


@compiled_exactly
def _spread_unlearned(spread: np.ndarray, n_updates: np.ndarray, covariance: np.ndarray) -> None:
    """Give arms without events this covariance."""
    if spread.ndim == 2:
        of_each = np.diag(covariance)
    else:
        of_each = np.linalg.cholesky(covariance)
    for k in range(len(n_updates)):
        if n_updates[k] == 0:
            spread[k] = of_each
