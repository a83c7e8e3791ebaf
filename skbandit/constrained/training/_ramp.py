"""The ramp loss, and the convex problem above it (Goh et al. 2016, Section 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack

KINK = 1e-6
"""How close to a kink of the ramp a row counts as being on it.

Optima put many rows exactly at f = 1/2 or -1/2. There both bounds are tight and the hinge is
the one that can still move, so rounding must not push such a row onto the flat one.
"""


def ramp(z: np.ndarray) -> np.ndarray:
    """Probability of a positive answer, sigma(z) = min(1, max(0, 1/2 + z)) (eq. 2)."""
    return np.clip(0.5 + z, 0.0, 1.0)


def hinge(z: np.ndarray) -> np.ndarray:
    """The convex bound max(0, 1/2 + z), equal to the ramp for z <= 1/2."""
    return np.maximum(0.5 + z, 0.0)


def canonical(X: Any) -> Any:
    """Return X as a C-ordered array, or in CSR with sorted indices and nothing stored twice."""
    if not issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    if not isinstance(X, csr_array) or X.dtype != np.float64:
        X = csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:  # looked up once, and then known to X
        X = X.copy()
        X.sum_duplicates()
    return X


@dataclass(frozen=True)
class ConvexProblem:
    """Problem 3: a convex upper bound on Problem 2, tight where it was made.

    Row 0 is the objective, rows 1..m the constraints; with f = X w + b, row k is

        sum_j P[k, j] max(0, 1/2 + f_j) + Q[k, j] max(0, 1/2 - f_j) - gamma[k]

    and the problem is: minimise row 0 + alpha/2 |w|^2 subject to rows 1..m <= 0. Rows of X on
    a flat bound have no weight here; what they cost is in gamma.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix.
    P, Q : csr_array of shape (1 + m, n)
        Nonnegative costs of a positive and of a negative answer.
    gamma : ndarray of shape (1 + m,)
        Bounds; gamma[0] is a constant of the objective.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b, which is never penalised, is free or 0.
    """

    X: Any
    P: csr_array
    Q: csr_array
    gamma: np.ndarray
    alpha: float
    fit_intercept: bool = True

    def rows(self, f: np.ndarray) -> np.ndarray:
        """Values of rows 0..m, shape (1 + m,), without the regulariser."""
        return self.P @ hinge(f) + self.Q @ hinge(-f) - self.gamma

    def boxes(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The costs p and q of the rows' mixture, P[0] + v P[1:] and likewise for Q.

        They bound the duals of the hinges, which lie in [0, p] and [0, q].
        """
        v = np.append(1.0, multipliers)
        return v @ self.P, v @ self.Q

    @cached_property
    def by_row(self) -> csr_array:
        """P and Q as one array of shape (n, 1 + m), for loops over the rows of X.

        A positive entry s in column k is the cost P[k, j] = s of a positive answer, a negative
        one the cost Q[k, j] = -s of a negative answer; a row with both has two entries.
        """
        stacked = csc_array(vstack([self.P, -self.Q]))
        K = len(self.gamma)
        return csr_array(
            (stacked.data, stacked.indices % K, stacked.indptr), shape=(stacked.shape[1], K)
        )


def majorise(
    X: Any,
    P: csr_array,
    Q: csr_array,
    gamma: np.ndarray,
    alpha: float,
    f: np.ndarray,
    fit_intercept: bool = True,
) -> ConvexProblem:
    """Build Problem 3 at the scores f' = `f` (eq. 4 and 5).

    sigma(f) is bounded by its hinge where f' <= 1/2 and by 1 elsewhere, sigma(-f) by its
    hinge where f' >= -1/2 and by 1 elsewhere: above the ramp everywhere, equal at f'.
    """
    bent_up = f <= 0.5 + KINK
    bent_down = f >= -0.5 - KINK
    flat = P @ (~bent_up).astype(float) + Q @ (~bent_down).astype(float)
    return ConvexProblem(
        X, _keep(P, bent_up), _keep(Q, bent_down), gamma - flat, alpha, fit_intercept
    )


def _keep(weights: csr_array, columns: np.ndarray) -> csr_array:
    kept = columns[weights.indices]
    indptr = np.append(0, np.cumsum(kept))[weights.indptr].astype(weights.indptr.dtype)
    return csr_array((weights.data[kept], weights.indices[kept], indptr), shape=weights.shape)
