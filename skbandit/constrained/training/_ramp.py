"""The ramp loss, and the convex problem above it (Goh et al. 2016, Section 2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skbandit.constrained.solvers import ConvexProblem

KINK = 1e-6
"""How close to a kink of the ramp a row counts as being on it.

Optima put many rows exactly at f = 1/2 or -1/2. There both bounds are tight and the hinge is
the one that can still move, so rounding must not push such a row onto the flat one.
"""


def ramp(z: np.ndarray) -> np.ndarray:
    """Probability of a positive answer, sigma(z) = min(1, max(0, 1/2 + z)) (eq. 2)."""
    return np.clip(0.5 + z, 0.0, 1.0)


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
