"""Posterior of a bilinear predictor, θ = x̃ᵀB z̃ + x̃ᵀw: moments of many arms, updates by a step.

x̃ are the features of the context and z̃ those of the arm, each followed by a constant, so that B
holds the products, the main effects and an intercept; w are the arm's own weights. With
φ = x̃ ⊗ z̃, vec B ~ N(vec M, Σ) and w ~ N(β, diag τ) independent of it,

    E θ = φᵀ vec M + βᵀx̃,     Var θ = φᵀΣφ + Σ_i τ_i x̃_i²,

and a step (g, h) on θ (`skbandit.bandit.links`) moves both as Li et al. (2012), eqs. 8-9, move the
weights of an arm:

    vec M ← vec M + g Σφ    Σ ← Σ - h Σφ φᵀΣ    β_i ← β_i + g τ_i x̃_i    τ_i ← τ_i - h (τ_i x̃_i)²

This is Bayes' rule for Gaussian rewards, but for the covariances of w, which are dropped so that
the cost does not depend on the number of arms.

In one context all arms share x̃. With u = Mᵀx̃ and C = (x̃ ⊗ I)ᵀ Σ (x̃ ⊗ I), of the size of z̃,

    E θ = uᵀz̃ + βᵀx̃,     Var θ = z̃ᵀC z̃ + Σ_i τ_i x̃_i²:

p² operations a context and dz² an arm in place of p² an arm, where p = dx dz.

A full Σ is stored as L with Σ = L Lᵀ (Potter's square-root filter), which rounding cannot make
indefinite, and as an array (dx, dz, p); of a diagonal Σ the variances are stored, (dx, dz). The
number of axes distinguishes them at compile time.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.utils._compiled import called_exactly, compiled_exactly, inlined_exactly

BLOCK = 64
"""Arms whose moments are computed side by side: their features stay in the fastest cache."""

LEAST_KEPT = 0.5
"""Discounts of a full Σ, which cost p³ operations each, are applied at once up to this factor."""


@called_exactly
def contract(
    x: np.ndarray,
    mean: np.ndarray,
    cov_factor: np.ndarray,
    u: np.ndarray,
    half: np.ndarray,
    C: np.ndarray,
) -> None:
    """Fill in u = Mᵀx̃ and C = (x̃ ⊗ I)ᵀ Σ (x̃ ⊗ I), of which only the lower triangle.

    `half` receives (x̃ ⊗ I)ᵀ L, of shape (dz, p), which `absorb` needs.
    """
    dx, dz = mean.shape
    for j in range(dz):
        u[j] = 0.0
        C[j, j] = 0.0
    for i in range(dx):
        for j in range(dz):
            u[j] += x[i] * mean[i, j]
    if cov_factor.ndim == 2:
        for i in range(dx):
            for j in range(dz):
                C[j, j] += x[i] * x[i] * cov_factor[i, j]
        return
    p = dx * dz
    for j in range(dz):
        for k in range(p):
            half[j, k] = 0.0
    for i in range(dx):
        if x[i] != 0.0:
            for j in range(dz):
                for k in range(p):
                    half[j, k] += x[i] * cov_factor[i, j, k]
    for j in range(dz):
        for l in range(j + 1):  # noqa: E741
            C[j, l] = _dot(half[j], half[l])


@called_exactly
def arm_moments(
    arms: np.ndarray, x: np.ndarray, u: np.ndarray, C: np.ndarray, full: bool, Z: np.ndarray,
    own_mean: np.ndarray, own_variance: np.ndarray, block: np.ndarray, m: np.ndarray,
    v: np.ndarray,
) -> None:  # fmt: skip
    """Fill in m[k] and v[k], mean and variance of θ, for some arms k, after `contract`.

    `Z` are the arms' z̃, of shape (n_arms, dz); `block` is a buffer of shape (dz + 3, BLOCK).
    """
    dz = Z.shape[1]
    for first in range(0, len(arms), BLOCK):
        n = min(BLOCK, len(arms) - first)
        part, of_block, v_of_block = block[dz], block[dz + 1], block[dz + 2]
        for a in range(n):
            k = arms[first + a]
            of_block[a], v_of_block[a] = 0.0, 0.0
            for j in range(dz):
                block[j, a] = Z[k, j]
        for j in range(dz):
            for a in range(n):
                of_block[a] += u[j] * block[j, a]
                part[a] = C[j, j] * block[j, a]
            if full:
                for l in range(j):  # noqa: E741
                    twice = 2.0 * C[j, l]
                    for a in range(n):
                        part[a] += twice * block[l, a]
            for a in range(n):
                v_of_block[a] += part[a] * block[j, a]
        for a in range(n):  # rounding may leave a small negative number
            k = arms[first + a]
            m[k], v[k] = of_block[a], max(v_of_block[a], 0.0)
            for i in range(len(x)):
                m[k] += x[i] * own_mean[k, i]
                v[k] += x[i] * x[i] * own_variance[k, i]


@called_exactly
def absorb(
    x: np.ndarray, z: np.ndarray, k: int, g: float, h: float, mean: np.ndarray,
    cov_factor: np.ndarray, own_mean: np.ndarray, own_variance: np.ndarray,
    half: np.ndarray, workspace: np.ndarray,
) -> None:  # fmt: skip
    """Update B, and the own weights of arm k, by a step (g, h) on θ; `contract` was called with x̃.

    `workspace` has shape (p,).
    """
    dx, dz = mean.shape
    for i in range(dx):
        covariance = own_variance[k, i] * x[i]
        own_mean[k, i] += g * covariance
        own_variance[k, i] *= 1.0 - h * covariance * x[i]
    if cov_factor.ndim == 2:
        for i in range(dx):
            for j in range(dz):
                phi = x[i] * z[j]
                s = cov_factor[i, j] * phi
                mean[i, j] += g * s
                cov_factor[i, j] *= 1.0 - h * s * phi
        return
    # with a = Lᵀφ: L ← L - c L a aᵀ, where (1 - c v)² = 1 - h v and v = aᵀa
    a, p = workspace, dx * dz
    for k_column in range(p):
        a[k_column] = 0.0
    for j in range(dz):
        if z[j] != 0.0:
            for k_column in range(p):
                a[k_column] += z[j] * half[j, k_column]
    c = h / (1.0 + math.sqrt(max(0.0, 1.0 - h * _dot(a, a))))
    for i in range(dx):
        for j in range(dz):
            row = cov_factor[i, j]
            s = _dot(row, a)
            mean[i, j] += g * s
            for k_column in range(p):
                row[k_column] -= c * s * a[k_column]


@called_exactly
def forget_own(
    k: int, gamma: float, own_mean: np.ndarray, own_variance: np.ndarray, prior_variance: float
) -> None:
    """Discount the evidence about the own weights of arm k as `forget` does that about B."""
    if prior_variance > 0.0:
        for i in range(own_mean.shape[1]):
            kept = gamma / own_variance[k, i]
            total = kept + (1.0 - gamma) / prior_variance
            own_mean[k, i] *= kept / total
            own_variance[k, i] = 1.0 / total


@called_exactly
def forget(
    gamma: float, mean: np.ndarray, cov_factor: np.ndarray, variance: float,
    constant_variance: float, workspace: np.ndarray,
) -> None:  # fmt: skip
    """Discount the evidence about B by the factor gamma.

    Λ ← γ Λ + (1 - γ) Λ₀ for the precision, likewise Λ mean, where the prior has the mean 0. Of a
    full Σ that is Σ ← Σ/γ, followed by an observation of each entry's prior mean with precision
    (1 - γ)/variance: p³ operations. `workspace` has shape (p,).
    """
    dx, dz = mean.shape
    if cov_factor.ndim == 3:
        for i in range(dx):
            for j in range(dz):
                for l in range(dx * dz):  # noqa: E741
                    cov_factor[i, j, l] /= math.sqrt(gamma)
    for i in range(dx):
        for j in range(dz):
            prior_variance = constant_variance if i == dx - 1 and j == dz - 1 else variance
            if cov_factor.ndim == 2:
                kept = gamma / cov_factor[i, j]
                total = kept + (1.0 - gamma) / prior_variance
                mean[i, j] *= kept / total
                cov_factor[i, j] = 1.0 / total
            else:
                _observe_zero(i, j, prior_variance / (1.0 - gamma), mean, cov_factor, workspace)


@called_exactly
def _observe_zero(
    i: int, j: int, noise_variance: float, mean: np.ndarray, cov_factor: np.ndarray, a: np.ndarray
) -> None:
    """Update B, of full Σ, by an observation 0 of its entry (i, j); `a` is a buffer."""
    dx, dz = mean.shape
    for l in range(dx * dz):  # noqa: E741
        a[l] = cov_factor[i, j, l]
    v = _dot(a, a)
    h = 1.0 / (v + noise_variance)
    g, c = -mean[i, j] * h, h / (1.0 + math.sqrt(max(0.0, 1.0 - h * v)))
    for row in range(dx):
        for column in range(dz):
            factor = cov_factor[row, column]
            s = _dot(factor, a)
            mean[row, column] += g * s
            for l in range(dx * dz):  # noqa: E741
                factor[l] -= c * s * a[l]


@called_exactly
def add_residual(m: float, v: float, r: float, weight: float, noise: np.ndarray) -> None:
    """Add the residual of a linear reward, θ ~ N(m, v σ²) before it, to an estimate of σ².

    `weight` rewards r have the squared residual weight (r - m)²/(1 + weight v), besides their
    differences from each other, which are 0. For one, its mean is σ² under the model, whose mean
    does not depend on σ² if all variances are multiples of it (the normal-inverse-gamma model).
    """
    noise[0] += weight * (r - m) * (r - m) / (1.0 + weight * v)
    noise[1] += weight


@called_exactly
def residual_evidence(m: float, v: float, r: float, weight: float, noise: np.ndarray) -> float:
    """Log likelihood of a linear reward of unknown noise, but for what m and v do not change.

    Student's t: the normal likelihood integrated over σ², given the residuals so far.
    """
    square, power = weight * (r - m) * (r - m) / (1.0 + weight * v), 0.5 * (noise[1] + weight)
    evidence = -0.5 * math.log(1.0 + weight * v)
    if noise[0] > 0.0:
        evidence -= power * math.log1p(square / noise[0])
    elif square > 0.0 and noise[1] > 0.0:  # the first residual is the same for all
        evidence -= power * math.log(square)
    return evidence


@compiled_exactly
def noise_scale(noise: np.ndarray) -> float:
    """Estimate of σ, in which standard deviations are counted; 1 before the first residual."""
    return math.sqrt(noise[0] / noise[1]) if noise[1] > 0.0 else 1.0


@called_exactly
def change_units(
    factor: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    cov_factor: np.ndarray,
    prior_variance: float,
) -> None:
    """Carry B over to features x', where the old features were x = factor x' + shift.

    θ stays the same function of the context: exactly, under a full Σ; its mean only, under a
    diagonal one, whose precisions in excess of the prior's are rescaled. Arrays have the features
    on their first axis, the constant last.
    """
    d, last = len(factor), len(mean) - 1
    for i in range(d):
        for j in range(mean.shape[1]):
            mean[last, j] += shift[i] * mean[i, j]
            mean[i, j] *= factor[i]
            if cov_factor.ndim == 3:
                for k in range(cov_factor.shape[2]):
                    cov_factor[last, j, k] += shift[i] * cov_factor[i, j, k]
                    cov_factor[i, j, k] *= factor[i]
            else:
                data = max(1.0 / cov_factor[i, j] - 1.0 / prior_variance, 0.0)
                cov_factor[i, j] = 1.0 / (1.0 / prior_variance + data / (factor[i] * factor[i]))


@inlined_exactly
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return inner product, in eight sums that processors add at once."""
    n = len(a)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = n - n % 8
    for i in range(0, whole, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    total = ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    for i in range(whole, n):
        total += a[i] * b[i]
    return total
