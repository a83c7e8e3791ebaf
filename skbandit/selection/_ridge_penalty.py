"""The penalty of ridge regression, by exact leave-one-out or generalised cross-validation.

Rows x_i of weight s_i minimise sum_i s_i (f_i - x_i'w - b)^2 + alpha ||w||^2. With the rows
centred at their weighted mean, X'SX = Q M Q' and B = XQ, M diagonal or tridiagonal, the fit at row
i and its leverage are

    m + b_i'(M + alpha)^-1 r,    h_i = s_i (1 / sum(s) + b_i'(M + alpha)^-1 b_i),

where m is the weighted mean of f and r = B'S(f - m). The residual of a row left out of the fit is
its residual over 1 - h_i (Allen 1974, "PRESS"). Generalised cross-validation replaces h_i by its
mean (Golub, Heath & Wahba 1979) and needs M, r and the sum of squares of f only.

Weights that are whole numbers count copies of a row: one copy is left out, of the greatest common
weight u, and u replaces s_i in h_i. Other weights may be any measure of importance, and rows are
left out whole.

The best alpha is the variance of the noise over that of w, whatever the number of rows: so one
penalty serves ads observed in different numbers of rows, and may be chosen on a part of them.
"""

from __future__ import annotations

import numpy as np

from skbandit.selection._tridiagonal import Middle

LEAST_PENALTY, LARGEST_PENALTY = 1e-7, 1e3
"""Range of penalties, relative to the largest eigenvalue of X'SX: from a fit without a penalty,
up to rounding errors, to one that uses a thousandth of the strongest direction."""

PENALTIES_PER_DECADE = 2
"""Cross-validated errors hardly differ within a half decade."""

MAX_COPIES = 2**31
"""Largest weight that can count copies; with a larger one, rows are left out whole."""

SINGULAR = 1e-10
"""Share 1 - h_i of a row's weight below which its cost is not predicted by other rows."""


def penalties(largest: float) -> np.ndarray:
    """Penalties to choose from, ascending, for a largest eigenvalue of X'SX."""
    decades = np.log10(LARGEST_PENALTY / LEAST_PENALTY)
    n_steps = round(decades * PENALTIES_PER_DECADE) + 1
    return largest * np.geomspace(LEAST_PENALTY, LARGEST_PENALTY, n_steps)


def left_out_weight(s: np.ndarray) -> np.ndarray:
    """Weight u_i of what is left out of row i at a time, for positive weights s."""
    if (s != np.floor(s)).any() or s.max() > MAX_COPIES:
        return s
    return np.full(len(s), float(np.gcd.reduce(s.astype(np.int64))))


def squared_residuals(
    M: Middle, B: np.ndarray, r: np.ndarray, F: np.ndarray, alphas: np.ndarray
) -> np.ndarray:
    """Squared residuals of rows within the fit, summed over ads, (n, L).

    Parameters
    ----------
    M : Middle
        Of all rows.
    B : ndarray of shape (n, p)
        All rows or some, centred and turned.
    r : ndarray of shape (p, K)
        B'SF of all rows.
    F : ndarray of shape (n, K)
        Costs of the rows in B, centred.
    alphas : ndarray of shape (L,)
        Positive penalties.
    """
    found = np.empty((len(B), len(alphas)))
    for k, alpha in enumerate(alphas):
        residual = B @ M.solve(alpha, r)
        np.subtract(F, residual, out=residual)
        np.einsum("ij,ij->i", residual, residual, out=found[:, k])
    return found


def left_out_factors(
    M: Middle, B: np.ndarray, u: np.ndarray, total: float, alphas: np.ndarray
) -> np.ndarray:
    """What `squared_residuals` are multiplied by if the row is left out, (1 - h)^-2, (n, L).

    Parameters
    ----------
    M, B, alphas
        As in `squared_residuals`.
    u : ndarray of shape (n,)
        What is left out of each row in B.
    total : float
        Sum of the weights of all rows.

    Returns
    -------
    ndarray of shape (n, L)
        0 where the other rows say nothing.
    """
    left = 1.0 - u[:, None] * (1.0 / total + M.forms_of_rows(B, alphas))
    return np.divide(1.0, left**2, out=np.zeros_like(left), where=left > SINGULAR)


def mean_factors(M: Middle, n: float, alphas: np.ndarray) -> np.ndarray:
    """The same for the mean leverage, (L,).

    Parameters
    ----------
    M, alphas
        As in `squared_residuals`.
    n : float
        Number of rows, or of copies of rows, that are left out in turn: sum(s / u).
    """
    mean_leverage = (1.0 + (M.d / (M.d + alphas[:, None])).sum(axis=1)) / n
    return 1.0 / np.maximum(1.0 - mean_leverage, SINGULAR) ** 2


def generalised(M: Middle, r: np.ndarray, total: float, n: float, alphas: np.ndarray) -> np.ndarray:
    """Weighted sums of squared errors of rows left out, if all had the mean leverage.

    Parameters
    ----------
    M, r, alphas
        As in `squared_residuals`.
    total : float
        Weighted sum of squares of the centred costs, summed over ads.
    n : float
        As in `mean_factors`.

    Returns
    -------
    ndarray of shape (L,)
    """
    first, second = M.forms(r, alphas)
    residual = np.maximum(total - first - alphas * second, 0.0)
    return residual * mean_factors(M, n, alphas)
