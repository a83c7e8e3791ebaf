"""Choosing the m ads of lowest cost per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from skbandit.selection._costs import CostMatrix, to_dense

LINEAR_BLOCK_BYTES = 2**25
"""Bytes per block of linear costs. Larger blocks leave the cache; in smaller ones, rereading the
weights for each block costs more than choosing (10,000 ads still make hundreds of rows)."""

REGRESSOR_BLOCK_BYTES = 2**26
"""Bytes per block of costs predicted by regressors; larger blocks save calls but take memory."""

SCAN_MIN_ADS = 256
"""Number of ads from which on a compiled scan may be used; with fewer, loading the compiler does
not pay."""

SCAN_MAX_SELECT = 100
"""Largest set chosen by the scan; larger ones are chosen by a partition. Measured for 256 to 10,000
ads; the scan is 15 times as fast for 10 of 10,000."""


def choose_in_blocks(
    costs_of: Callable[[slice], np.ndarray],
    shape: tuple[int, int],
    m: int,
    available: Any = None,
    block_bytes: int = LINEAR_BLOCK_BYTES,
) -> np.ndarray:
    """Choose the m available ads of lowest cost per row, one block of rows at a time.

    Ties go to the first ad.

    Parameters
    ----------
    costs_of : callable
        Maps a slice of rows to their costs, an array that may be overwritten.
    shape : tuple of int
        (n_rows, n_ads).
    m : int
        Number of ads to choose, at most n_ads.
    available : ndarray or csr_array of bool of that shape, default=None
        Which ads may be chosen; None means all.
    block_bytes : int, default=LINEAR_BLOCK_BYTES
        Size of a block, in bytes of float64 costs.

    Returns
    -------
    ndarray of intp, shape (n_rows, m)
        Columns, best first; -1 where a row has fewer than m available ads with finite costs.
    """
    n_rows, n_ads = shape
    chosen = np.empty((n_rows, m), dtype=np.intp)
    size = max(1, block_bytes // (8 * n_ads))
    for start in range(0, n_rows, size):  # gen_batches checks its arguments for 0.03 ms
        rows = slice(start, min(start + size, n_rows))
        allowed = None if available is None else to_dense(available[rows])
        chosen[rows] = m_lowest(costs_of(rows), m, allowed)
    return chosen


def m_lowest(costs: np.ndarray, m: int, allowed: np.ndarray | None = None) -> np.ndarray:
    """Columns of the m lowest entries of each row, lowest first, ties from left to right.

    Parameters
    ----------
    costs : ndarray of shape (n_rows, n_ads)
        May be overwritten.
    m : int
        Number of ads to choose, at most n_ads.
    allowed : ndarray of bool, shape (n_rows, n_ads), default=None
        Which entries may be taken; None means all. Those that are inf or nan never are.

    Returns
    -------
    ndarray of intp, shape (n_rows, m)
        Columns; -1 where fewer than m entries may be taken.
    """
    if m <= SCAN_MAX_SELECT and costs.shape[1] >= SCAN_MIN_ADS:
        return _by_scan(costs, m, allowed)
    return _by_partition(costs, m, allowed)


def set_costs(
    costs: CostMatrix, chosen: np.ndarray, weights: np.ndarray | float = 1.0
) -> np.ndarray:
    """Weighted sum of the costs of the chosen ads per row, nan if any was not observed.

    Parameters
    ----------
    costs : CostMatrix
        Costs, with the ads in the order to which `chosen` refers.
    chosen : ndarray of intp, shape (n_rows, m)
        Columns, without -1.
    weights : ndarray of shape (m,) or float, default=1.0
        Weights of positions.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
    """
    if not sp.issparse(costs.values):
        picked = np.take_along_axis(costs.values, chosen, axis=1)
    else:
        rows = np.repeat(np.arange(len(chosen)), chosen.shape[1])
        picked = np.asarray(costs.values.tocsr()[rows, chosen.ravel()]).reshape(chosen.shape)
    return (weights * picked.astype(np.float64)).sum(axis=1)


def _by_scan(costs: np.ndarray, m: int, allowed: np.ndarray | None) -> np.ndarray:
    """Scan each row, keeping the m lowest so far in order (compiled)."""
    from skbandit.selection._m_lowest_kernel import scan

    chosen = np.empty((len(costs), m), dtype=np.intp)
    scan(costs, np.empty((0, 0), dtype=bool) if allowed is None else allowed, chosen)
    return chosen


def _by_partition(costs: np.ndarray, m: int, allowed: np.ndarray | None) -> np.ndarray:
    """Take all entries below the m-th lowest and the first of those equal to it; then sort."""
    usable = costs < np.inf
    costs[~usable if allowed is None else ~(usable & allowed)] = np.inf
    last = np.partition(costs, m - 1, axis=1)[:, m - 1 : m]
    below, equal = costs < last, costs == last
    n_ties = m - below.sum(axis=1, keepdims=True)
    taken = below | (equal & (equal.cumsum(axis=1) <= n_ties))
    columns = np.nonzero(taken)[1].reshape(len(costs), m)
    values = np.take_along_axis(costs, columns, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    chosen = np.take_along_axis(columns, order, axis=1)
    return np.where(np.take_along_axis(values, order, axis=1) < np.inf, chosen, -1)
