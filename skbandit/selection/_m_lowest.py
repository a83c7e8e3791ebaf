"""Choosing the m ads of lowest cost per row."""

from __future__ import annotations

import numpy as np

BLOCK_BYTES = 2**26
"""Bytes of costs per block of rows; larger blocks save calls of regressors, but take memory."""

SCAN_MIN_ADS = 256
"""Number of ads from which on a compiled scan may be used; with fewer, loading the compiler does
not pay."""

SCAN_MAX_SELECT = 100
"""Largest set chosen by the scan; larger ones are chosen by a partition. Measured for 256 to 10,000
ads; the scan is 15 times as fast for 10 of 10,000."""


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
        from skbandit.selection._m_lowest_kernel import scan

        chosen = np.empty((len(costs), m), dtype=np.intp)
        scan(costs, np.empty((0, 0), dtype=bool) if allowed is None else allowed, chosen)
        return chosen
    # all entries below the m-th lowest and the first of those equal to it, sorted
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
