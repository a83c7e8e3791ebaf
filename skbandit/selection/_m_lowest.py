"""The m ads of lowest cost: the choice that makes a set selector of any table of costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from skbandit.selection._costs import Costs, dense_rows

CACHED = 2**25
"""Bytes of a block of linear costs: about a cache, and for 10,000 ads still hundreds of rows, or
reading the weights again for each block would cost more than choosing."""

UNCACHED = 2**26
"""Bytes of a block of costs that come from regressors: few calls, some memory."""

MANY, FEW = 256, 100
"""Choosing at most FEW of at least MANY ads, a compiled scan is faster than a partition, measured
for 256 to 10,000 ads: 15 times for 10 of 10,000. Fewer are not worth loading the compiler."""


def choose(
    costs_of: Callable[[slice], np.ndarray],
    shape: tuple[int, int],
    m: int,
    available: Any = None,
    block_bytes: int = CACHED,
) -> np.ndarray:
    """Choose in each row the m available ads of lowest cost, a block of rows at a time.

    Ties go to the ad that comes first.

    Parameters
    ----------
    costs_of : callable
        ``costs_of(rows)`` gives the costs of some rows, an array that may be overwritten.
    shape : tuple of int
        (n_rows, n_ads).
    m : int
        How many, at most n_ads.
    available : ndarray or csr_array of bool of that shape, default=None
        Which ads may be chosen; None is all.
    block_bytes : int, default=CACHED
        Size of a block of float64 costs.

    Returns
    -------
    ndarray of intp, shape (n_rows, m)
        Columns, best first; -1 where a row has fewer than m available ads with finite costs.
    """
    n_rows, n_ads = shape
    chosen = np.empty((n_rows, m), dtype=np.intp)
    for rows in gen_batches(n_rows, max(1, block_bytes // (8 * n_ads))):
        allowed = None if available is None else dense_rows(available, rows)
        chosen[rows] = lowest(costs_of(rows), m, allowed)
    return chosen


def lowest(costs: np.ndarray, m: int, allowed: np.ndarray | None = None) -> np.ndarray:
    """Columns of the m lowest entries of each row, lowest first, ties from left to right.

    Parameters
    ----------
    costs : ndarray of shape (n_rows, n_ads)
        May be overwritten.
    m : int
        How many, at most n_ads.
    allowed : ndarray of bool, shape (n_rows, n_ads), default=None
        Which may be taken; None is all. Those that are inf or nan may not.

    Returns
    -------
    ndarray of intp, shape (n_rows, m)
        -1 after the last entry that may be taken.
    """
    if m <= FEW and costs.shape[1] >= MANY:
        return _by_scan(costs, m, allowed)
    return _by_partition(costs, m, allowed)


def set_costs(costs: Costs, chosen: np.ndarray) -> np.ndarray:
    """The sum of the chosen ads' costs in each row, nan where one was not observed.

    Parameters
    ----------
    costs : Costs
        With the ads in the order that `chosen` counts in.
    chosen : ndarray of intp, shape (n_rows, m)
        Columns, none of them -1.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
    """
    if not sp.issparse(costs.values):
        return np.take_along_axis(costs.values, chosen, axis=1).sum(axis=1, dtype=np.float64)
    rows = np.repeat(np.arange(len(chosen)), chosen.shape[1])
    picked = np.asarray(costs.values.tocsr()[rows, chosen.ravel()])
    return picked.reshape(chosen.shape).sum(axis=1, dtype=np.float64)


def _by_scan(costs: np.ndarray, m: int, allowed: np.ndarray | None) -> np.ndarray:
    """The m lowest so far, kept in order."""
    from skbandit.selection._m_lowest_kernel import scan

    chosen = np.empty((len(costs), m), dtype=np.intp)
    scan(costs, np.empty((0, 0), dtype=bool) if allowed is None else allowed, chosen)
    return chosen


def _by_partition(costs: np.ndarray, m: int, allowed: np.ndarray | None) -> np.ndarray:
    """All below the m-th lowest, and of those equal to it the first; then in order."""
    usable = costs < np.inf
    costs[~usable if allowed is None else ~(usable & allowed)] = np.inf
    last = np.partition(costs, m - 1, axis=1)[:, m - 1 : m]
    below, equal = costs < last, costs == last
    wanted = m - below.sum(axis=1, keepdims=True)
    taken = below | (equal & (equal.cumsum(axis=1) <= wanted))
    columns = np.nonzero(taken)[1].reshape(len(costs), m)
    values = np.take_along_axis(costs, columns, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    chosen = np.take_along_axis(columns, order, axis=1)
    return np.where(np.take_along_axis(values, order, axis=1) < np.inf, chosen, -1)
