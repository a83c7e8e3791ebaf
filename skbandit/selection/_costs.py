"""Costs of ads as they are given: which ad, observed or not, may be chosen or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array, gen_batches

CURE = "Have n_select ads available, choose fewer (n_select=), or have the rest marked (fill=)."


HUGE = 1e150
"""Sums of squares of larger costs overflow."""


@dataclass(frozen=True)
class Costs:
    """What each ad would have cost in each row; lower is better.

    Parameters
    ----------
    values : ndarray or csc_array of shape (n_samples, n_ads)
        float32 or float64; nan is not observed. Entries that a sparse matrix does not hold
        are costs of 0.
    available : ndarray or csc_array of bool of that shape, or None
        Only with sparse `values`: costs of ads that could not be chosen do not count either.
    ads : ndarray of shape (n_ads,)
        Labels.
    """

    values: Any
    available: Any
    ads: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and ads."""
        return self.values.shape

    def of_ad(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows in which the cost of the j-th ad was observed, and these costs."""
        costs = _column(self.values, j)
        seen = ~np.isnan(costs)
        if self.available is not None:
            seen &= _column(self.available, j)
        rows = np.flatnonzero(seen)
        return rows, costs[rows]

    def n_observed(self) -> np.ndarray:
        """In how many rows each ad's cost was observed."""
        if not sp.issparse(self.values):
            return (~np.isnan(self.values)).sum(axis=0)
        if self.available is not None:
            return np.array([len(self.of_ad(j)[0]) for j in range(self.shape[1])])
        unseen = np.concatenate([[0], np.cumsum(np.isnan(self.values.data))])
        return self.shape[0] - np.diff(unseen[self.values.indptr])

    def blocks(self, n_bytes: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows as in `dense`, each of about so many bytes."""
        values = sp.csr_array(self.values) if sp.issparse(self.values) else self.values
        allowed = sp.csr_array(self.available) if sp.issparse(self.available) else self.available
        for rows in gen_batches(self.shape[0], max(1, n_bytes // (8 * self.shape[1]))):
            block = _toarray(values[rows])
            if allowed is not None:
                block[~_toarray(allowed[rows])] = np.nan
            yield rows, block

    def with_zeros(self) -> Any:
        """The costs, 0 where one does not count."""
        if not sp.issparse(self.values):
            return (
                np.nan_to_num(self.values, nan=0.0) if np.isnan(self.values).any() else self.values
            )
        data = np.nan_to_num(self.values.data, nan=0.0)
        known = sp.csc_array((data, self.values.indices, self.values.indptr), self.shape)
        return known if self.available is None else known.multiply(self.available).tocsc()

    def of_rows(self, rows: np.ndarray) -> Costs:
        """The same costs in some rows only."""
        allowed = None if self.available is None else self.available[rows]
        return Costs(self.values[rows], allowed, self.ads)

    def in_order_of(self, ads: np.ndarray) -> Costs:
        """The same costs with the columns in the order of these labels."""
        if np.array_equal(self.ads, ads):
            return self
        order = positions_of(ads, self.ads, "y")
        allowed = None if self.available is None else self.available[:, order]
        return Costs(self.values[:, order], allowed, ads)

    def dense(self) -> np.ndarray:
        """All as one array of shape (n_samples, n_ads), nan where a cost does not count."""
        if not sp.issparse(self.values):
            return self.values
        costs = self.values.toarray()
        if self.available is not None:
            costs[~_toarray(self.available)] = np.nan
        return costs


def read_costs(y: Any, available: Any = None) -> Costs:
    """Check a matrix of costs; an unavailable ad's cost counts as not observed.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
        Costs. The columns of a DataFrame name the ads, else they are 0, 1, ...
    available : as for `read_available`, default=None
        What could be chosen.

    Returns
    -------
    Costs
        ``values`` is never the caller's own memory if something was changed in it.
    """
    values = _read_values(y)
    ads = _labels(y, values.shape[1])
    if sp.issparse(values):
        allowed = read_available(available, ads, values.shape[0])
        return Costs(values, sp.csc_array(allowed) if sp.issparse(allowed) else allowed, ads)
    allowed = read_available(available, ads, len(values))
    if allowed is not None:
        values = np.where(_toarray(allowed), values, values.dtype.type(np.nan))
    return Costs(values, None, ads)


def check_every_ad_observed(costs: Costs) -> None:
    """Raise if some ad's cost was never observed."""
    never = np.flatnonzero(costs.n_observed() == 0)
    if len(never):
        raise ValueError(
            f"No cost of ad {quoted(costs.ads[never])} was observed: its column of y is nan "
            "wherever it was available. Leave the column out, or describe ads by ad_features."
        )


def check_n_select(n_select: int, n_ads: int) -> None:
    """Raise unless 1 <= n_select <= n_ads."""
    if not 1 <= n_select <= n_ads:
        raise ValueError(f"n_select={n_select} must be at least 1 and at most {n_ads}, all ads.")


def read_available(available: Any, ads: np.ndarray, n_rows: int) -> Any:
    """Check which ads may be chosen in which row.

    Parameters
    ----------
    available : array-like, DataFrame or sparse matrix of shape (n_rows, n_ads) or None
        True, or 1, is available. The columns of a DataFrame are matched with `ads` by label;
        entries that a sparse matrix does not hold are False; None is everything.
    ads : ndarray of shape (n_ads,)
        Labels in the order wanted.
    n_rows : int
        How many rows there must be.

    Returns
    -------
    ndarray or csr_array of bool, in the order of `ads`; or None
    """
    if available is None:
        return None
    if sp.issparse(available):
        read = sp.csr_array(available)
        _check_flags(read.data)
        read = read.astype(bool)
        read.eliminate_zeros()
    else:
        table = check_array(available, dtype=None, ensure_all_finite=False, input_name="available")
        _check_flags(table)
        read = table.astype(bool)
    if read.shape[0] != n_rows:
        raise ValueError(f"available has {read.shape[0]} rows, X has {n_rows}.")
    if column_names(available) is not None:
        return read[:, positions_of(ads, _labels(available, read.shape[1]), "available")]
    if read.shape[1] != len(ads):
        raise ValueError(f"available has {read.shape[1]} columns for {len(ads)} ads.")
    return read


def count_available(available: Any) -> np.ndarray:
    """How many ads may be chosen in each row."""
    if sp.issparse(available):
        return np.diff(available.indptr)
    return available.sum(axis=1)


def check_enough_available(available: Any, n_select: int) -> None:
    """Raise if some row has fewer than n_select available ads."""
    if available is None:
        return
    unsure = np.arange(available.shape[0])
    if not sp.issparse(available):  # most rows have enough in their first part
        unsure = np.flatnonzero(available[:, : 10 * n_select].sum(axis=1) < n_select)
    count = count_available(available[unsure])
    short = np.flatnonzero(count < n_select)
    if len(short):
        raise ValueError(
            f"Row {unsure[short[0]]} has {count[short[0]]} available ads, n_select is {n_select}. "
            f"{CURE}"
        )


def dense_rows(matrix: Any, rows: slice) -> np.ndarray:
    """Some rows as an array."""
    return _toarray(matrix[rows])


def positions_of(wanted: np.ndarray, labels: np.ndarray, name: str) -> np.ndarray:
    """Where each wanted label stands among `labels`, which must be the same set."""
    place = {label: k for k, label in enumerate(labels.tolist())}
    known = set(wanted.tolist())
    unknown = [label for label in labels.tolist() if label not in known]
    if unknown:
        raise ValueError(f"{name} names ads that are not known: {quoted(unknown)}.")
    missing = [label for label in wanted.tolist() if label not in place]
    if missing:
        raise ValueError(f"{name} says nothing about ad {quoted(missing)}.")
    return np.array([place[label] for label in wanted.tolist()], dtype=np.intp)


def column_names(table: Any) -> Any:
    """The columns of a DataFrame of any kind; None for what has no named columns."""
    return getattr(table, "columns", None)


def _labels(table: Any, n_columns: int) -> np.ndarray:
    """What the columns are called, else 0, 1, ..."""
    names = column_names(table)
    if names is None:
        return np.arange(n_columns)
    index = pd.Index(names)
    if not index.is_unique:
        raise ValueError(f"Two columns are called {index[index.duplicated()][0]!r}: rename one.")
    return np.asarray(index)


def _read_values(y: Any) -> Any:
    """Costs as floats, nan where not observed."""
    if y is None:
        raise ValueError(
            "This selector requires y to be passed, but the target y is None: y holds the costs "
            "of all ads, (n_samples, n_ads)."
        )
    values = check_array(
        y,
        accept_sparse="csc",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_2d=False,
        input_name="y",
    )
    if values.ndim != 2:
        raise ValueError(
            "y must hold a row of costs for each sample and a column for each ad, (n_samples, "
            f"n_ads), but its shape is {values.shape}. Reshape it to (-1, 1) if there is one ad."
        )
    if sp.issparse(values):
        values = sp.csc_array(values)
        if not values.has_canonical_format:
            values = values.copy()
            values.sum_duplicates()
        stored, row_of = values.data, values.indices
    else:
        stored, row_of = values, None
    most = stored.dtype.type(min(HUGE, float(np.finfo(stored.dtype).max)))
    beyond = (stored > most) | (stored < -most)
    if beyond.any():
        place = np.argwhere(beyond)[0]
        row = place[0] if row_of is None else row_of[place[0]]
        raise ValueError(
            f"y contains {stored[tuple(place)]} in row {row}: a cost must be finite, and its "
            "square too. Use nan for a cost that was not observed, available= for an ad that may "
            "not be chosen."
        )
    return values


def _check_flags(values: np.ndarray) -> None:
    """Raise unless all are True, False, 1 or 0."""
    if values.dtype == bool:
        return
    if values.dtype.kind not in "iuf":  # pd.NA cannot be compared with 0 and 1, nor can durations
        values = np.where(pd.isna(values), np.nan, values.astype(object))
    wrong = np.flatnonzero(~np.isin(values.ravel(), [0, 1]))
    if len(wrong):
        value, width = values.ravel()[wrong[0]], values.shape[-1]
        where = f" in row {wrong[0] // width}" if values.ndim == 2 else ""
        raise ValueError(f"available must be True or False everywhere, got {value}{where}.")


def _column(matrix: Any, j: int) -> np.ndarray:
    """A column as a 1-D array."""
    if not sp.issparse(matrix):
        return matrix[:, j]
    column = np.zeros(matrix.shape[0], dtype=matrix.dtype)
    part = slice(matrix.indptr[j], matrix.indptr[j + 1])
    column[matrix.indices[part]] = matrix.data[part]
    return column


def _toarray(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def quoted(labels: Sequence[Any] | np.ndarray) -> str:
    """The first few of many labels."""
    shown = ", ".join(repr(label) for label in np.asarray(labels)[:5].tolist())
    return shown + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
