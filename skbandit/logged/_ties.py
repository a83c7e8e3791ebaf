"""Noise that breaks ties of predicted costs: without it a share jumps by all rows that tie."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.utils._folds import hashes_of_contexts

DITHER, FEW_COSTS = 0.02, 0.2
"""Spread of the noise that breaks ties, in units of the costs' spread; it is added where there are
fewer different rows of costs than this share of the rows, as of a tree with few leaves."""


def spread_of_noise(costs: np.ndarray) -> float:
    """Width of the noise that costs (n, D) need; 0 if they tell rows apart."""
    table = np.where(np.isfinite(costs), costs, np.nan)
    unit = float(np.nanmean(np.nanmax(table, axis=1) - np.nanmin(table, axis=1)))
    apart = table - np.nanmean(table, axis=1, keepdims=True)
    distinct = len(np.unique((apart / (unit or 1.0)).round(9), axis=0))
    tied = distinct < FEW_COSTS * len(costs)
    tied |= np.nanstd(apart, axis=0).max() < 2 * DITHER * unit
    tied |= _least_spread(np.nan_to_num(apart)) < 0.5 * DITHER * unit
    return DITHER * unit if tied else 0.0


def noise_of_rows(X: Any, D: int, spread: float) -> np.ndarray:
    """Uniform noise of some width around 0, (n, D), the same for equal rows."""
    seeds = hashes_of_contexts(X)[:, None] * np.arange(1, 2 * D, 2, dtype=np.uint64)
    seeds ^= seeds >> np.uint64(31)
    return spread * ((seeds >> np.uint64(11)).astype(float) / 2.0**53 - 0.5)


def _least_spread(costs: np.ndarray) -> float:
    """Return the least standard deviation of the difference of two columns."""
    if costs.shape[1] < 2:
        return np.inf
    covariance = np.cov(costs.T)
    variance = np.diag(covariance)
    of_pairs = variance[:, None] + variance - 2 * covariance
    np.fill_diagonal(of_pairs, np.inf)
    return float(np.sqrt(max(of_pairs.min(), 0.0)))
