"""Bilinear ridge regression: costs x'Wz of ads with features z, and what each ad adds to that."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, svd
from sklearn.exceptions import ConvergenceWarning

from skbandit.selection._ad_features import AdFeatures
from skbandit.selection._costs import Costs
from skbandit.selection._ridge import Linear, RidgeFactor

BLOCK = 2**25
"""Bytes of costs looked at in one go where some are not observed."""

ENOUGH = 1e-8
"""Conjugate gradients stop when the residual, preconditioned, is so small beside the first one."""

MAX_STEPS = 500


@dataclass(frozen=True)
class Bilinear:
    """Costs ``[x, 1]' (W [1, z - centre] + u_a)``, with u_a = 0 for an ad that was not seen.

    Parameters
    ----------
    W : ndarray of shape (n_features + 1, n_ad_features + 1)
        What is shared by all ads, mean cost included.
    own : ndarray of shape (n_features + 1, n_ads)
        u of the ads seen in training.
    centre : ndarray of shape (n_ad_features,)
        Mean of z over these ads.
    """

    W: np.ndarray
    own: np.ndarray
    centre: np.ndarray

    def of_ads(self, features: AdFeatures, seen: np.ndarray) -> Linear:
        """The costs of given ads, which are linear in x.

        Parameters
        ----------
        features : AdFeatures
            Of n_new_ads ads.
        seen : ndarray of intp, shape (n_new_ads,)
            Which ad of the training each of them is, -1 if none.
        """
        weights = self.W @ _with_one(features.numbers() - self.centre).T
        weights[:, seen >= 0] += self.own[:, seen[seen >= 0]]
        return Linear(np.ascontiguousarray(weights))


def fit_bilinear(factor: RidgeFactor, costs: Costs, Z: np.ndarray, id_effect: float) -> Bilinear:
    """Fit the bilinear model with an effect for each ad.

    With A = [X - shift, 1], z~ = [1, z - centre] and the mean cost c, minimised is

        sum_ia s_i (f_ia - c - A_i'(W z~_a + u_a))^2 + alpha (||W||^2 + ||U||^2 / id_effect).

    The weights B = W Z~' + U of the ads then minimise the same with penalty alpha tr(B K^-1 B'),
    K = Z~Z~' + id_effect I, and W = B K^-1 Z~. Where all costs are observed, the eigenvectors V,
    values mu of K and Q, d of A'SA separate the problem into one division an entry: Q'BV is
    Q'A'S(F - c)V / (d + alpha / mu). Conjugate gradients that are preconditioned by this solution
    do the rest where some are not.

    Parameters
    ----------
    factor : RidgeFactor
        Of the rows; its alpha, and its A and S.
    costs : Costs
        Of the same rows.
    Z : ndarray of shape (n_ads, n_ad_features)
        Features of the ads, in the order of `costs`.
    id_effect : float
        Variance of an ad's own weights beside those of its features; 0 is none.

    Returns
    -------
    Bilinear
    """
    centre = Z.mean(axis=0)
    kernel = _Kernel.of(_with_one(Z - centre), id_effect)
    whole = bool((costs.n_observed() == costs.shape[0]).all())
    sums = np.broadcast_to(factor.gram[:, -1:], (len(factor.gram), len(Z)))
    if not whole:
        sums = _over_blocks(factor, costs, lambda rows, seen: seen)
    right = factor.right_hand_sides(costs)
    mean = right[-1].sum() / sums[-1].sum()
    right = right - mean * sums

    d, Q = eigh(factor.gram)
    observed = sums[-1].mean() / factor.gram[-1, -1]

    def as_if_complete(R: np.ndarray) -> np.ndarray:
        return Q @ kernel.divide(Q.T @ R, observed * d, factor.alpha)

    def normal(B: np.ndarray) -> np.ndarray:
        predicted = _over_blocks(factor, costs, lambda rows, seen: seen * (factor.design[rows] @ B))
        return predicted + factor.alpha * kernel.solve(B)

    B = as_if_complete(right) if whole else _conjugate_gradients(normal, right, as_if_complete)
    W = kernel.shared(B)
    own = B - W @ kernel.features.T
    W, own = factor.for_X(W).weights, factor.for_X(own).weights
    W[-1, 0] += mean
    return Bilinear(W, own, centre)


@dataclass(frozen=True)
class _Kernel:
    """K = Z~Z~' + id_effect I, by way of the singular values of Z~ = V diag(size) R.

    Parameters
    ----------
    features : ndarray of shape (n_ads, n_ad_features + 1)
        Z~.
    V : ndarray of shape (n_ads, rank)
        Eigenvectors of K in the span of Z~; on what is orthogonal to them K is id_effect.
    size : ndarray of shape (rank,)
        Singular values.
    R : ndarray of shape (rank, n_ad_features + 1)
        The other side.
    id_effect : float
        0 confines solutions to the span.
    """

    features: np.ndarray
    V: np.ndarray
    size: np.ndarray
    R: np.ndarray
    id_effect: float

    @classmethod
    def of(cls, features: np.ndarray, id_effect: float) -> _Kernel:
        V, size, R = svd(features, full_matrices=False)
        kept = size > max(features.shape) * np.finfo(float).eps * size[0]
        return cls(features, V[:, kept], size[kept], R[kept], id_effect)

    @property
    def mu(self) -> np.ndarray:
        """Eigenvalues in the span."""
        return self.size**2 + self.id_effect

    def divide(self, R: np.ndarray, d: np.ndarray, alpha: float) -> np.ndarray:
        """B with d_j B_jk + alpha B_jk / mu_k = R_jk, k in the eigenbasis of K."""
        inside = R @ self.V
        found = _quotient(inside, d[:, None] + alpha / self.mu) @ self.V.T
        if self.id_effect > 0:
            outside = R - inside @ self.V.T
            found += _quotient(outside, d[:, None] + alpha / self.id_effect)
        return found

    def solve(self, B: np.ndarray) -> np.ndarray:
        """B K^-1, in the span only if there is no id effect."""
        inside = B @ self.V
        found = (inside / self.mu) @ self.V.T
        if self.id_effect > 0:
            found += (B - inside @ self.V.T) / self.id_effect
        return found

    def shared(self, B: np.ndarray) -> np.ndarray:
        """W = B K^-1 Z~."""
        return (B @ self.V) * (self.size / self.mu) @ self.R


def _over_blocks(
    factor: RidgeFactor, costs: Costs, of_block: Callable[[slice, np.ndarray], np.ndarray]
) -> np.ndarray:
    """A'S T, T of shape (n_samples, n_ads) made block by block of what was observed there."""
    total = np.zeros((len(factor.gram), costs.shape[1]))
    for rows, block in costs.blocks(BLOCK):
        total += factor.weighted[rows].T @ of_block(rows, ~np.isnan(block))
    return total


def _conjugate_gradients(
    normal: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Solve normal(B) = right for B, a matrix."""
    B, residual = np.zeros_like(right), right.copy()
    ahead = precondition(residual)
    direction, size = ahead, np.vdot(residual, ahead)
    enough = ENOUGH**2 * size
    for _ in range(MAX_STEPS):
        if size <= enough:
            return B
        image = normal(direction)
        step = size / np.vdot(direction, image)
        B += step * direction
        residual -= step * image
        ahead = precondition(residual)
        size, before = np.vdot(residual, ahead), size
        direction = ahead + (size / before) * direction
    warnings.warn(
        f"The bilinear model did not converge in {MAX_STEPS} steps: a larger alpha helps.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return B


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Entry by entry, 0 where nothing stands below."""
    tiny = below.max(initial=0.0) * np.finfo(float).eps
    return np.divide(
        above, below, out=np.zeros_like(above), where=np.broadcast_to(below > tiny, above.shape)
    )


def _with_one(Z: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(Z), 1)), Z], axis=1)
