"""Partial least squares of many costs at once, by SIMPLS (de Jong 1993).

Component k is the direction r_k of largest covariance with the costs, |Y'X r|, among those whose
scores X r are uncorrelated with the scores before. Only the matrix of cross-products X'Y is
deflated, never X, which may therefore stay sparse. With one cost it is the usual PLS1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

NEGLIGIBLE = 1e-12
"""Share of the first covariance below which no component is left."""


def partial_least_squares(
    X: Any, Y: np.ndarray, s: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Directions and loadings: with k components the coefficients are ``R[:, :k] @ Q[:, :k].T``.

    Parameters
    ----------
    X : {ndarray, sparse array} of shape (n, p)
        Rows, centred or not.
    Y : ndarray of shape (n, K)
        Costs; those of each column are centred here.
    s : ndarray of shape (n,)
        Positive weights.
    n_components : int
        Largest number of components.

    Returns
    -------
    R : ndarray of shape (p, k)
        Directions; their scores have the weighted sum of squares 1. k is smaller than
        `n_components` if no more directions covary with the costs.
    Q : ndarray of shape (K, k)
        Loadings of the costs.
    """
    centre = X.T @ s / s.sum()
    Y = Y - s @ Y / s.sum()
    weighted = Y * s[:, None]
    left = np.asarray(X.T @ weighted)
    p, n_ads = left.shape
    R, P, Q = np.zeros((p, n_components)), np.zeros((p, n_components)), np.zeros((n_ads, 0))
    first = 0.0
    for k in range(n_components):
        r, size = _strongest(left)
        first = first or size
        scores = X @ r - centre @ r
        norm = np.sqrt(s @ scores**2)
        if size <= NEGLIGIBLE * first or norm <= 0.0:
            return R[:, :k], Q
        scores, r = scores / norm, r / norm
        direction = X.T @ (s * scores) - centre * (s @ scores)
        direction = direction - P[:, :k] @ (P[:, :k].T @ direction)
        direction = direction / np.linalg.norm(direction)
        left = left - np.outer(direction, direction @ left)
        left -= P[:, :k] @ (P[:, :k].T @ left)  # against rounding errors
        R[:, k], P[:, k] = r, direction
        Q = np.column_stack([Q, weighted.T @ scores])
    return R, Q


def _strongest(cross: np.ndarray) -> tuple[np.ndarray, float]:
    """The first left singular vector of a matrix (p, K), and its singular value."""
    p, n_ads = cross.shape
    wide = p <= n_ads
    gram = cross @ cross.T if wide else cross.T @ cross
    value, vector = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])
    found = vector[:, 0] if wide else cross @ vector[:, 0]
    size = np.linalg.norm(found)
    return (found / size if size > 0.0 else found), float(np.sqrt(max(value[0], 0.0)))
