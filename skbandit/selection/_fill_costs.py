"""Estimates of unobserved costs, for learners that need them all.

The cost of ad a in row i is taken to be g_ia + e_i plus noise: a prediction, and what is common to
all ads of the row and not predicted, which the row's other ads tell. With tau^2 the variance of e
and sigma^2 that of the noise, the best linear prediction of e_i from n_i residuals is their sum
over n_i + sigma^2 / tau^2; both variances come from the moments of residuals in the same row.
"""

from __future__ import annotations

import numpy as np


def ad_means(costs: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Weighted mean observed cost of each ad; the mean of all where an ad was not observed.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        nan where not observed.
    s : ndarray of shape (n,)
        Positive weights.
    """
    seen = ~np.isnan(costs)
    paid, weight = s @ np.where(seen, costs, 0.0), s @ seen
    overall = paid.sum() / weight.sum() if weight.sum() else 0.0
    return np.divide(paid, weight, out=np.full(len(paid), overall), where=weight > 0)


def row_effects(residual: np.ndarray) -> np.ndarray:
    """Best linear prediction of e from residuals (n, K), nan where not observed."""
    seen = ~np.isnan(residual)
    known = np.where(seen, residual, 0.0)
    count, total, squares = seen.sum(axis=1), known.sum(axis=1), (known**2).sum(axis=1)
    pairs = (count * (count - 1)).sum()
    common = (total**2 - squares).sum() / pairs if pairs else 0.0
    if common <= 0.0:
        return np.zeros(len(residual))
    noise = max(squares.sum() / count.sum() - common, 0.0)
    return total / np.maximum(count + noise / common, 1.0)


def filled(costs: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The costs (n, K), where nan the predicted ones (n, K) or (K,) plus the effect of the row."""
    effects = row_effects(costs - predicted)
    return np.where(np.isnan(costs), predicted + effects[:, None], costs)
