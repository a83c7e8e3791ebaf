"""Compiled sweeps of dual coordinate ascent (Hsieh et al. 2008) over the rows of an SVM."""

from __future__ import annotations

import numpy as np

from skbandit.utils._compiled import compiled


@compiled
def ascend(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    curvature: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    alpha: float,
    pace: float,
    theta: np.ndarray,
    w: np.ndarray,
    b: float,
    rows: np.ndarray,
    n_sweeps: int,
) -> None:
    """Maximise the dual in theta_j for each j of `rows` in turn, in the order given.

    Updates `theta` and w = X' theta / alpha in place; b moves by `pace` per unit of theta.
    As a function of theta_j the dual is min(q_j - theta_j/2, p_j + theta_j/2) minus a parabola;
    its maximiser is a median.
    """
    for _ in range(n_sweeps):
        for j in rows:
            f = b
            for e in range(indptr[j], indptr[j + 1]):
                f += data[e] * w[indices[e]]
            kink = q[j] - p[j]
            rising = theta[j] + (0.5 - f) / curvature[j]  # best where theta_j < kink
            falling = theta[j] - (0.5 + f) / curvature[j]  # best where theta_j > kink
            best = min(max(min(rising, kink), falling, -p[j]), q[j])
            step = best - theta[j]
            if step != 0.0:
                theta[j] = best
                b += pace * step
                for e in range(indptr[j], indptr[j + 1]):
                    w[indices[e]] += step / alpha * data[e]
