"""Posterior of an arm's weights, w ~ N(mean, Σ): moments of θ = wᵀx, and updates by a step on θ.

Li, Chu, Langford, Moon & Wang (2012), eqs. 8-9 (eq. 8 prints xᵀΣ for Σx):

    mean ← mean + g Σx          Σ ← Σ - h Σx xᵀΣ      (only the diagonal of a diagonal Σ)

A full Σ is stored as L with Σ = L Lᵀ (Potter's square-root filter), which rounding cannot make
indefinite. `cov_factor` is the diagonal or L; the number of axes distinguishes them at compile
time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skbandit.bandit._arm_keys import new_keys
from skbandit.bandit._state import N_EVENTS, N_LEARNED_ARMS, Beliefs, Prior
from skbandit.bandit.links import linear, step
from skbandit.utils._compiled import compiled_exactly, inlined_exactly


@inlined_exactly
def moments(x: np.ndarray, mean: np.ndarray, cov_factor: np.ndarray, k: int) -> tuple[float, float]:
    """Mean and variance of θ = wᵀx for arm k."""
    d = len(x)
    m = 0.0
    v = 0.0
    if cov_factor.ndim == 2:
        for i in range(d):
            m += x[i] * mean[k, i]
            v += x[i] * x[i] * cov_factor[k, i]
    else:
        for i in range(d):
            m += x[i] * mean[k, i]
        for j in range(d):
            a = 0.0
            for i in range(d):
                a += cov_factor[k, i, j] * x[i]
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
    workspace: np.ndarray,
) -> None:
    """Learn reward r of arm k in context x, with the likelihood raised to the power `weight`.

    `workspace` has shape (2, n_weights) and is overwritten.
    """
    mean, cov_factor = beliefs.mean, beliefs.cov_factor
    if beliefs.n_updates[k] == 0:
        beliefs.learned[beliefs.counters[N_LEARNED_ARMS]] = k
        if beliefs.tie_order[k] >= len(beliefs.tie_order):  # a new arm follows the known ones
            n_known = np.sum(beliefs.tie_order < len(beliefs.tie_order))
            beliefs.tie_order[k] = n_known
        beliefs.counters[N_LEARNED_ARMS] += 1
    beliefs.n_updates[k] += 1
    beliefs.counters[N_EVENTS] += 1
    if prior.forgetting < 1.0:
        _forget(k, beliefs, prior, workspace)
    m, v = moments(x, mean, cov_factor, k)
    if v > 0.0:
        g, h = step(m, weight * v, r, link, prior.noise_variance)
        _absorb(x, k, weight * g, weight * h, mean, cov_factor, workspace)
    adaptive = prior.adaptive_mean or prior.adaptive_variance
    if adaptive and beliefs.counters[N_LEARNED_ARMS] < len(mean):
        renew_prior(beliefs, prior)


@compiled_exactly
def _absorb(
    x: np.ndarray,
    k: int,
    g: float,
    h: float,
    mean: np.ndarray,
    cov_factor: np.ndarray,
    workspace: np.ndarray,
) -> None:
    """Update the weights of arm k by a step (g, h) on θ."""
    d = len(x)
    if cov_factor.ndim == 2:
        for i in range(d):
            sx = cov_factor[k, i] * x[i]
            mean[k, i] += g * sx
            cov_factor[k, i] *= 1.0 - h * sx * x[i]
        return
    # with a = Lᵀx: L ← L - c L a aᵀ, where (1 - c v)² = 1 - h v
    a, sx = workspace[0], workspace[1]
    v = 0.0
    for j in range(d):
        a[j] = 0.0
        for i in range(d):
            a[j] += cov_factor[k, i, j] * x[i]
        v += a[j] * a[j]
    if v <= 0.0:
        return
    c = h / (1.0 + math.sqrt(max(0.0, 1.0 - h * v)))
    for i in range(d):
        sx[i] = 0.0
        for j in range(d):
            sx[i] += cov_factor[k, i, j] * a[j]
        mean[k, i] += g * sx[i]
    for i in range(d):
        for j in range(d):
            cov_factor[k, i, j] -= c * sx[i] * a[j]


@compiled_exactly
def _forget(k: int, beliefs: Beliefs, prior: Prior, workspace: np.ndarray) -> None:
    """Discount the evidence of arm k: Λ ← γ Λ + (1 - γ) Λ₀ for its precision, likewise Λ mean.

    That is Σ ← Σ/γ, followed by an observation of each coordinate's prior mean with precision
    (1 - γ)/variance.
    """
    mean, cov_factor, gamma = beliefs.mean, beliefs.cov_factor, prior.forgetting
    d = mean.shape[1]
    cov_factor[k] /= gamma if cov_factor.ndim == 2 else math.sqrt(gamma)
    unit = np.zeros(d)
    for i in range(d):
        unit[i] = 1.0
        m, v = moments(unit, mean, cov_factor, k)
        g, h = linear.step(m, v, prior.mean[i], prior.variance[i] / (1.0 - gamma))
        _absorb(unit, k, g, h, mean, cov_factor, workspace)
        unit[i] = 0.0


@compiled_exactly
def renew_prior(beliefs: Beliefs, prior: Prior) -> None:
    """Reset arms without events to the prior: fixed, or adapted to the other arms (section 5.2).

    The adaptive prior has the mean μ̄ of the posterior means μ_k of the n arms with events, and the
    covariance [Σ₀ + Σ_k (μ_k - μ̄)(μ_k - μ̄)ᵀ] / n, which counts the prior variance as one arm so
    that it cannot vanish. With fewer than two such arms the prior stays fixed.
    """
    mean, cov_factor = beliefs.mean, beliefs.cov_factor
    n = beliefs.counters[N_LEARNED_ARMS]
    d = mean.shape[1]
    center = np.zeros(d)
    for j in range(n):
        for i in range(d):
            center[i] += mean[beliefs.learned[j], i]
    center /= max(n, 1)
    center_of_learned = center
    if not prior.adaptive_mean or n < 2:
        center = prior.mean
    for k in range(len(mean)):
        if beliefs.n_updates[k] == 0:
            mean[k] = center
    _reset_unlearned(cov_factor, beliefs, prior, center_of_learned)


@compiled_exactly
def _reset_unlearned(
    cov_factor: np.ndarray, beliefs: Beliefs, prior: Prior, center: np.ndarray
) -> None:
    """Reset the covariance of arms without events; `center` is the mean of the others' means."""
    mean, learned = beliefs.mean, beliefs.learned
    n, d = beliefs.counters[N_LEARNED_ARMS], mean.shape[1]
    adaptive = prior.adaptive_variance and n >= 2
    if cov_factor.ndim == 2:
        factor = prior.variance.copy()
        if adaptive:
            for j in range(n):
                for i in range(d):
                    away = mean[learned[j], i] - center[i]
                    factor[i] += away * away
            factor /= n
    else:
        covariance = np.diag(prior.variance)
        if adaptive:
            for j in range(n):
                for i in range(d):
                    away = mean[learned[j], i] - center[i]
                    for l in range(d):  # noqa: E741
                        covariance[i, l] += away * (mean[learned[j], l] - center[l])
            covariance /= n
        factor = np.linalg.cholesky(covariance)
    for k in range(len(mean)):
        if beliefs.n_updates[k] == 0:
            cov_factor[k] = factor


def with_arms(beliefs: Beliefs, labels: list[Any], prior: Prior) -> Beliefs:
    """Copy of beliefs with new arms at their prior; greedy choices prefer earlier arms."""
    grown = {}
    for name, array in beliefs._asdict().items():
        if name == "counters":
            grown[name] = array.copy()
        else:
            new_rows = np.zeros((len(labels), *array.shape[1:]), array.dtype)
            grown[name] = np.concatenate([array, new_rows])
    n_old = len(beliefs.tie_order)
    grown["tie_order"][n_old:] = np.arange(n_old, n_old + len(labels))
    # keyed by label, as an arm's number depends on the order of events
    grown["rng_key"][n_old:] = new_keys(labels, beliefs.rng_key.tolist() if labels else [])
    larger = Beliefs(**grown)
    renew_prior(larger, prior)
    return larger
