"""A direction by prices: constraints become costs of rows, and prices climb where rates miss.

Given prices p >= 0 of the constraints, the Lagrangian is a cost per positive prediction, c + S'p.
The best rule predicts positive where that is negative: a classification with the sign as label
and the size as weight (the reduction of Agarwal et al., ICML 2018). Prices follow the violations
of hard rates by projected subgradient steps; the later half of the directions is averaged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skbandit.constrained.cross_fitting._logistic import LinearFit, fit_logistic

ROUNDS = 6
"""Weighted fits."""

STRIDE = 2.0
"""First step of the prices, in units of the objective per normalised violation."""


def lagrangian_direction(
    X: Any,
    cost: np.ndarray,
    rows: csr_array,
    rhs: np.ndarray,
    *,
    fit_intercept: bool = True,
    start: LinearFit | None = None,
) -> np.ndarray | None:
    """Average direction of cost-sensitive fits at climbing prices.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Rows.
    cost : ndarray of shape (n,)
        The objective's cost of a positive prediction of each row.
    rows : csr_array of shape (m, n)
    rhs : ndarray of shape (m,)
        Constraints on positive predictions pi: ``rows @ pi <= rhs``, normalised.
    fit_intercept : bool
        Whether scores have an intercept.
    start : LinearFit or None
        Where the first fit begins.

    Returns
    -------
    ndarray of shape (d,) or None
        None if no prices made both answers best for some rows.
    """
    size = np.abs(cost).sum() or 1.0
    unit = np.abs(cost[cost != 0]).mean() if cost.any() else 1.0 / len(cost)
    prices, fit, found = np.zeros(len(rhs)), start, []
    for step in range(ROUNDS):
        full = cost + size * (prices @ rows)
        positive = full < 0
        if positive.any() and not positive.all():
            weight = np.abs(full) / unit
            fit = fit_logistic(X, positive, weight, fit_intercept=fit_intercept, start=fit)
            scores = np.asarray(X @ fit.coef).ravel()
            deviation = float(scores.std())
            if deviation > 0:
                found.append((step, fit.coef / deviation))
            answers = (scores + fit.intercept > 0).astype(float)
        else:  # one answer for all: prices go on from what it misses
            answers = positive.astype(float)
        missed = rows @ answers - rhs
        prices = np.maximum(0.0, prices + STRIDE / np.sqrt(step + 1.0) * missed)
        if not prices.any():
            break
    if not found:
        return None
    later = [coef for step, coef in found if step >= ROUNDS // 2] or [found[-1][1]]
    return np.mean(later, axis=0)
