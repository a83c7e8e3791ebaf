"""Problem 3, the convex subproblem that every solver sees (Goh et al. 2016, Section 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack

__all__ = ["ConvexProblem", "canonical", "hinge"]


def hinge(z: np.ndarray) -> np.ndarray:
    """The convex bound max(0, 1/2 + z), equal to the ramp for z <= 1/2."""
    return np.maximum(0.5 + z, 0.0)


def canonical(X: Any) -> Any:
    """Return X as a C-ordered array, or in CSR with sorted indices and no duplicate entries."""
    if not issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    if not isinstance(X, csr_array) or X.dtype != np.float64:
        X = csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:  # scipy caches the answer on X
        X = X.copy()
        X.sum_duplicates()
    return X


@dataclass(frozen=True)
class ConvexProblem:
    """Problem 3: minimise a convex upper bound on Problem 2, tight where it was made.

    Row 0 is the objective, rows 1..m the constraints; with f = X w + b, row k is

        sum_j P[k, j] max(0, 1/2 + f_j) + Q[k, j] max(0, 1/2 - f_j) - gamma[k]

    and the problem is: minimise row 0 + alpha/2 |w|^2 subject to rows 1..m <= 0. Rows of X on
    a flat bound have zero weight here; their cost is in gamma.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix.
    P, Q : csr_array of shape (1 + m, n)
        Nonnegative costs of a positive and of a negative prediction.
    gamma : ndarray of shape (1 + m,)
        Bounds; gamma[0] is a constant of the objective.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b, which is never penalised, is free or 0.

    Examples
    --------
    Two rows, one per class; each costs 1/2 if it is classified wrongly:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> problem.rows(np.zeros(2))
    array([0.5])
    """

    X: Any
    P: csr_array
    Q: csr_array
    gamma: np.ndarray
    alpha: float
    fit_intercept: bool = True

    def rows(self, f: np.ndarray) -> np.ndarray:
        """Values of rows 0..m at the scores f, without the regulariser.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Scores X w + b.

        Returns
        -------
        ndarray of shape (1 + m,)
            The objective, then the violations of the constraints (negative inside).
        """
        return self.P @ hinge(f) + self.Q @ hinge(-f) - self.gamma

    def dual_upper_bounds(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds p = P[0] + v P[1:] and q = Q[0] + v Q[1:] on the hinge duals.

        They are the costs per row of X in the Lagrangian, a weighted SVM, whose hinge duals
        lie in [0, p] and [0, q].

        Parameters
        ----------
        multipliers : ndarray of shape (m,)
            v >= 0.

        Returns
        -------
        p, q : ndarray of shape (n,)
            For the hinges max(0, 1/2 + f) and max(0, 1/2 - f).
        """
        v = np.append(1.0, multipliers)
        return v @ self.P, v @ self.Q

    @cached_property
    def objective_scale(self) -> float:
        """Sum of the objective's costs, the unit of duality gaps."""
        return float(sum(W.data[: W.indptr[1]].sum() for W in (self.P, self.Q)))

    @cached_property
    def by_row(self) -> csr_array:
        """P and Q as one array of shape (n, 1 + m), for loops over the rows of X.

        A positive entry s in column k is the cost P[k, j] = s of a positive prediction, a
        negative one the cost Q[k, j] = -s of a negative prediction; a row of X with both has
        two entries.
        """
        stacked = csc_array(vstack([self.P, -self.Q]))
        K = len(self.gamma)
        return csr_array(
            (stacked.data, stacked.indices % K, stacked.indptr), shape=(stacked.shape[1], K)
        )
