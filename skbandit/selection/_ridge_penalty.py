"""The penalty of ridge regression, by exact leave-one-out or generalised cross-validation.

Rows x_i of weight s_i minimise sum_i s_i (f_i - x_i'w - b)^2 + alpha ||w||^2. With the rows centred
at their weighted mean, X'SX = V diag(d) V' and U = XV, the fit at row i and its leverage are

    m + sum_j U_ij r_j / (d_j + alpha),    h_i = s_i (1 / sum(s) + sum_j U_ij^2 / (d_j + alpha)),

where m is the weighted mean of f and r = U'S(f - m). The residual of a row left out of the fit is
its residual over 1 - h_i (Allen 1974, "PRESS"). Generalised cross-validation replaces h_i by its
mean (Golub, Heath & Wahba 1979) and needs d and the sums of squares of r and f only.

Weights that are whole numbers count copies of a row: one copy is left out, of the greatest common
weight u, and u replaces s_i in h_i. Other weights may be any measure of importance, and rows are
left out whole.

The best alpha is the variance of the noise over that of w, whatever the number of rows: so one
penalty serves ads observed in different numbers of rows, and may be chosen on a part of them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

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


def spectrum(X: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and d of rows X (n, p) with weights s, from X'SX or its counterpart of n rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows, centred or not.
    s : ndarray of shape (n,)
        Positive weights.

    Returns
    -------
    U : ndarray of shape (n, min(n, p))
    d : ndarray of shape (min(n, p),)
    """
    centred = X - s @ X / s.sum()
    n, p = X.shape
    if n >= p:
        d, V = eigh(centred.T @ (centred * s[:, None]))
        return centred @ V, np.maximum(d, 0.0)
    root = np.sqrt(s)[:, None]
    centred = centred * root
    d, P = eigh(centred @ centred.T)
    d = np.maximum(d, 0.0)
    return P * np.sqrt(d) / root, d


def leave_one_out(
    U: np.ndarray, d: np.ndarray, s: np.ndarray, F: np.ndarray, alphas: np.ndarray
) -> np.ndarray:
    """Weighted sums of squared errors of rows left out, one for each penalty.

    Parameters
    ----------
    U, d : ndarray of shape (n, p) and (p,)
        As returned by `spectrum`.
    s : ndarray of shape (n,)
        Weights.
    F : ndarray of shape (n, K)
        Costs, all observed.
    alphas : ndarray of shape (L,)
        Positive penalties.

    Returns
    -------
    ndarray of shape (L,)
        Summed over rows and ads.
    """
    total = s.sum()
    F = F - s @ F / total
    r = U.T @ (F * s[:, None])
    shrunk = 1.0 / (d[:, None] + alphas)
    left = 1.0 - left_out_weight(s)[:, None] * (1.0 / total + U**2 @ shrunk)
    factor = np.divide(s[:, None], left**2, out=np.zeros_like(left), where=left > SINGULAR)
    if F.shape[1] == 1:
        residual = F - U @ (r * shrunk)
        return np.einsum("ij,ij,ij->j", factor, residual, residual)
    errors = np.empty(len(alphas))
    for k in range(len(alphas)):
        residual = U @ (r * shrunk[:, k : k + 1])
        np.subtract(F, residual, out=residual)
        errors[k] = factor[:, k] @ np.einsum("ij,ij->i", residual, residual)
    return errors


def generalised(
    d: np.ndarray, power: np.ndarray, total: float, n: float, alphas: np.ndarray
) -> np.ndarray:
    """Approximate `leave_one_out` by leverages equal to their mean.

    Parameters
    ----------
    d : ndarray of shape (p,)
        Eigenvalues of X'SX.
    power : ndarray of shape (p,)
        Squares of r, summed over ads.
    total : float
        Weighted sum of squares of the centred costs, summed over ads.
    n : float
        Number of rows, or of copies of rows, that are left out in turn: sum(s / u).
    alphas : ndarray of shape (L,)
        Positive penalties.

    Returns
    -------
    ndarray of shape (L,)
    """
    sizes = d + alphas[:, None]
    residual = np.maximum(total - ((2.0 - d / sizes) / sizes) @ power, 0.0)
    mean_leverage = (1.0 + (d / sizes).sum(axis=1)) / n
    return residual / np.maximum(1.0 - mean_leverage, SINGULAR) ** 2
