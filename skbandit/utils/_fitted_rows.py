"""Which rows were fitted, so that reports on them can say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit.utils._folds import hashes_of_contexts
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import warn

MOST_HASHES = 1000
"""Hashes kept of a fit: the least ones, which tell other rows whatever their order and number."""

FEW_HASHES = 10
"""Rows with hashes in the range of those that are kept, below which nothing is said."""

SHARE_TOLD = 0.2
"""Share of rows that were in the fit from which on it is said."""

MOST_REPEATED = 0.05
"""Share of repeated rows in a fit beyond which new rows may equal fitted ones by chance."""

VALUES_AT_ONCE = 2**20
"""Entries that are hashed at a time."""

FittedRows = tuple[str, np.ndarray]
"""Digest of all rows in their order, and the least hashes, which are empty if many rows repeat."""


def fitted_rows(X: Any, *values: np.ndarray) -> FittedRows | None:
    """Hash the rows of a fit, to tell them from others; None if they cannot be hashed.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of n_rows rows
    *values : ndarray of shape (n_rows,)
        What else belongs to a row, such as its label.
    """
    hashes = _hashes(X, values)
    if hashes is None:
        return None
    distinct = np.unique(hashes)
    if len(distinct) < (1.0 - MOST_REPEATED) * len(hashes):
        distinct = distinct[:0]
    return _digest(hashes), distinct[:MOST_HASHES].copy()


def share_fitted(fitted: FittedRows | None, X: Any, *values: np.ndarray) -> float:
    """Share of rows that were in a fit, estimated by those with small hashes.

    Parameters
    ----------
    fitted : tuple or None
        From `fitted_rows`.
    X, *values : object
        As there.
    """
    hashes = None if fitted is None else _hashes(X, values)
    if fitted is None or hashes is None:
        return 0.0
    digest, least = fitted
    if digest == _digest(hashes):
        return 1.0
    if len(least) == MOST_HASHES:
        hashes = hashes[hashes <= least[-1]]
    return float(np.isin(hashes, least).mean()) if len(hashes) >= FEW_HASHES else 0.0


def events_of_log(log: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pair the hash of the label of each event's arm with its reward."""
    labels = pd.util.hash_array(np.array([str(label) for label in log.arms], dtype=object))
    return labels[log.action], np.asarray(log.reward, dtype=np.float64)


def warn_of_fitted_rows(share: float) -> None:
    """Warn of a report on rows of the fit."""
    if share >= SHARE_TOLD:
        warn(
            f"{share:.0%} of these rows were in the fit, so that they look better than new rows "
            "will: report on rows that had no part in the fit, or read the out-of-fold values "
            "that the fit reports.",
            UserWarning,
        )


def _digest(hashes: np.ndarray) -> str:
    return f"{len(hashes)} {pd.util.hash_array(hashes + np.arange(len(hashes))).sum()}"


def _hashes(X: Any, values: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """64 bits per row, in blocks, as the hashes of entries take much memory."""
    try:
        X = X.tocsr() if issparse(X) else X
        n, width = count_rows(X), int(np.prod(np.shape(X)[1:])) or 1
        size = max(VALUES_AT_ONCE // width, 1)
        blocks = [slice(start, start + size) for start in range(0, n, size)]
        hashes = np.concatenate([hashes_of_contexts(rows_of(X, rows)) for rows in blocks])
        for number, entries in enumerate(values, 2):
            hashes = hashes * np.uint64(2 * number + 1) + pd.util.hash_array(np.asarray(entries))
    except (TypeError, ValueError, AttributeError):  # rows of other things than numbers and text
        return None
    return hashes
