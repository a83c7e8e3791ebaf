"""Wide data: with more features than rows, training takes place in the span of the rows.

The problem sees w through X w and |w|^2 only. A part of w orthogonal to all rows adds to |w|^2 and
not to X w, so the optimum lies in the span of the rows (the representer theorem). In an orthonormal
basis Q of the span, w = Q u gives X w = (X Q) u and |w| = |u|: the same problem, with at most as
many features as rows. Every w of the span has such a u, so constraints, starting points and optima
correspond one to one, whether there is an intercept or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

MAX_ROWS = 2000
"""Largest number of rows: their inner products are decomposed, a dense matrix of this order.

Beyond it, training sees the features themselves.
"""

SMALLEST_SHARE = 1e-10
"""Smallest squared singular value that is kept, as a share of the largest.

Inner products are exact to about 1e-16 of the largest: far below, they say nothing.
"""

NULL = 1e-10
"""Largest |X'v|, as a share of the largest singular value, of a direction that counts as empty."""


@dataclass(frozen=True)
class RowSpan:
    """The rows in coordinates of their own span.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        The rows.
    rows : ndarray or csr_array of shape (n, r)
        X Q, for a basis Q with r columns; X itself if `combinations` is None.
    combinations : ndarray of shape (n, r) or None
        C such that Q = X' C. None means that Q is the identity.
    """

    X: Any
    rows: Any
    combinations: np.ndarray | None = None

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return w = Q u."""
        if self.combinations is None:
            return coordinates
        return np.asarray(self.X.T @ (self.combinations @ coordinates)).ravel()

    def coordinates(self, weights: np.ndarray) -> np.ndarray:
        """Return u = Q'w, the coordinates of the part of w in the span."""
        if self.combinations is None:
            return weights
        return self.combinations.T @ np.asarray(self.X @ weights).ravel()


def row_span(X: Any) -> RowSpan:
    """Express rows in a basis of their span if that has fewer dimensions than there are features.

    By the eigenvectors of the inner products X X' = V S V', Q = X' V S^(-1/2) and X Q = V S^(1/2).
    Directions of tiny eigenvalues are dropped if they are empty. If they are not, as among columns
    of very different scales, a dense X is decomposed itself, and a sparse one left as it is.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix.

    Returns
    -------
    RowSpan
    """
    n, d = X.shape
    if not n < d or n > MAX_ROWS:
        return RowSpan(X, X)
    inner = X @ X.T
    squares, V = np.linalg.eigh(inner.toarray() if issparse(inner) else inner)
    largest = squares[-1]
    if not 0 < largest < np.inf:
        return RowSpan(X, X)
    kept = squares > SMALLEST_SHARE * largest
    probe = V[:, ~kept] @ np.cos(np.arange((~kept).sum()))  # no direction has weight 0
    if np.linalg.norm(X.T @ probe) > NULL * np.sqrt(largest):
        return RowSpan(X, X) if issparse(X) else _by_singular_values(X)
    sizes = np.sqrt(squares[kept])
    return RowSpan(X, V[:, kept] * sizes, V[:, kept] / sizes)


def _by_singular_values(X: np.ndarray) -> RowSpan:
    """As `row_span`, from X itself: exact over many more orders of magnitude, and slower."""
    V, sizes, _ = np.linalg.svd(X, full_matrices=False)
    kept = sizes > NULL * sizes[0]
    V, sizes = V[:, kept], sizes[kept]
    return RowSpan(X, V * sizes, V / sizes)
