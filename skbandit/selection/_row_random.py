"""Random numbers that belong to the content of a row, not to its place in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

# Constants of SplitMix64 (Steele, Lea and Flood 2014).
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniform_by_row(X: Any, n_columns: int, seed: int) -> np.ndarray:
    """Numbers in [0, 1) that depend on the seed and on the values of the row only.

    Equal rows get equal numbers, whatever surrounds them and whether X is dense or sparse.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Rows.
    n_columns : int
        Numbers per row.
    seed : int
        Nonnegative.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        key = _mixed(_row_keys(X) + _mixed(np.uint64(seed) + _GAMMA))
        column = np.arange(1, n_columns + 1, dtype=np.uint64) * _GAMMA
        bits = _mixed(key[:, None] + column)
    return (bits >> np.uint64(11)) * 2.0**-53


def _row_keys(X: Any) -> np.ndarray:
    """64 bits per row: a sum over its nonzero entries, so that zeros may be left out."""
    if sp.issparse(X):
        entries = sp.coo_array(X)
        entries.sum_duplicates()
        row, column, value = entries.row, entries.col, entries.data
    else:
        row, column = np.nonzero(X)
        value = X[row, column]
    value = value.astype(np.float64)
    value[np.isnan(value)] = np.nan  # one of the many bit patterns
    bits = np.where(value == 0, 0.0, value).view(np.uint64)
    of_entry = _mixed(bits ^ _mixed((column.astype(np.uint64) + np.uint64(1)) * _GAMMA))
    of_entry[value == 0] = 0
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(keys, row, of_entry)
    return keys


def _mixed(z: Any) -> Any:
    """The output function of SplitMix64, a bijection of 64-bit words."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))
