"""Matrices of costs and availability: reading, checking and labeling their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from skbandit.logs import read_cost_values
from skbandit.utils._validation import check_not_masked, first_few, same_columns


@dataclass(frozen=True)
class CostMatrix:
    """Cost of each ad in each row; lower is better.

    Parameters
    ----------
    values : ndarray or csc_array of shape (n_samples, n_ads)
        float32 or float64; nan is not observed. Implicit zeros of a sparse matrix are costs of 0.
    available : ndarray or csc_array of bool, shape (n_samples, n_ads), or None
        Only with sparse `values`: where False, the cost counts as not observed.
    ads : ndarray of shape (n_ads,)
        Labels.
    """

    values: Any
    available: Any
    ads: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and ads."""
        return self.values.shape

    def of_ad(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows in which the cost of the j-th ad was observed, and these costs."""
        costs = _column(self.values, j)
        observed = ~np.isnan(costs)
        if self.available is not None:
            observed &= _column(self.available, j)
        rows = np.flatnonzero(observed)
        return rows, costs[rows]

    def observed_together(self) -> list[np.ndarray]:
        """Ads observed in the same rows, one or more, in groups."""
        n_observed = self.n_observed()
        complete = np.flatnonzero(n_observed == self.shape[0])
        ads = np.flatnonzero((n_observed > 0) & (n_observed < self.shape[0]))
        rows_of_ads: Iterable[np.ndarray] = (self.of_ad(int(j))[0] for j in ads)
        if not sp.issparse(self.values):
            rows_of_ads = np.packbits(np.isnan(self.values)[:, ads], axis=0).T
        groups: dict[bytes, list[int]] = {}
        for j, rows in zip(ads.tolist(), rows_of_ads, strict=True):
            groups.setdefault(blake2b(rows.tobytes(), digest_size=16).digest(), []).append(j)
        return [complete] * bool(len(complete)) + [np.array(group) for group in groups.values()]

    def n_observed(self) -> np.ndarray:
        """Return the number of observed costs per ad."""
        if not sp.issparse(self.values):
            return (~np.isnan(self.values)).sum(axis=0)
        if self.available is not None:
            return np.array([len(self.of_ad(j)[0]) for j in range(self.shape[1])])
        n_nan = np.concatenate([[0], np.cumsum(np.isnan(self.values.data))])
        return self.shape[0] - np.diff(n_nan[self.values.indptr])

    def at(self, chosen: np.ndarray) -> np.ndarray:
        """Return the costs at the columns `chosen` (n_samples, m), as float64."""
        values = self.values.tocsr() if sp.issparse(self.values) else self.values
        return to_dense(values[np.arange(len(chosen))[:, None], chosen]).astype(np.float64)

    def with_zeros(self) -> Any:
        """Return the costs, with 0 for those not observed."""
        if not sp.issparse(self.values):
            return (
                np.nan_to_num(self.values, nan=0.0) if np.isnan(self.values).any() else self.values
            )
        data = np.nan_to_num(self.values.data, nan=0.0)
        matrix = sp.csc_array((data, self.values.indices, self.values.indptr), self.shape)
        return matrix if self.available is None else matrix.multiply(self.available).tocsc()

    def of_rows(self, rows: np.ndarray) -> CostMatrix:
        """Return the costs of selected rows."""
        allowed = None if self.available is None else self.available[rows]
        return CostMatrix(self.values[rows], allowed, self.ads)

    def where_available(self, allowed: Any) -> CostMatrix:
        """Return the costs, not observed where the mask `allowed` (None for no mask) is False."""
        if allowed is None:
            return self
        if sp.issparse(self.values):
            mask = sp.csc_array(allowed) if sp.issparse(allowed) else allowed
            return CostMatrix(self.values, mask, self.ads)
        nan = self.values.dtype.type(np.nan)
        return CostMatrix(np.where(to_dense(allowed), self.values, nan), None, self.ads)

    def in_order_of(self, ads: np.ndarray) -> CostMatrix:
        """Return the costs with their columns in the order of `ads`."""
        if np.array_equal(self.ads, ads):
            return self
        cure = "pass a column for each ad of the fit, and no others."
        order = same_columns(ads.tolist(), self.ads.tolist(), "y", cure)
        allowed = None if self.available is None else self.available[:, order]
        return CostMatrix(self.values[:, order], allowed, ads)

    def dense(self) -> np.ndarray:
        """Return the costs as an array of shape (n_samples, n_ads), nan where not observed."""
        if not sp.issparse(self.values):
            return self.values
        costs = self.values.toarray()
        if self.available is not None:
            costs[~to_dense(self.available)] = np.nan
        return costs


def read_cost_matrix(y: Any, name: str = "y", absent: float = np.nan) -> CostMatrix:
    """Check a matrix of costs.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix of shape (n_samples, n_ads)
        Costs. The columns of a DataFrame name the ads; otherwise they are 0, 1, ...
    name : str, default="y"
        Name of the parameter.
    absent : float, default=nan
        The only value, apart from nan, that need not be finite.

    Returns
    -------
    CostMatrix
        If anything had to be changed, `values` is a copy.
    """
    check_not_masked(y, name)
    labels = column_labels(y)
    values = read_cost_values(y, labels, name, absent)
    return CostMatrix(values, None, np.arange(values.shape[1]) if labels is None else labels)


def check_every_ad_observed(costs: CostMatrix) -> None:
    """Raise if an ad has no observed cost."""
    never = np.flatnonzero(costs.n_observed() == 0)
    if len(never):
        raise ValueError(
            f"No cost of ad {first_few(costs.ads[never])} was observed: its column of y is nan in "
            "every row where it was available. Drop the column, or describe the ads to a "
            "RegressionSetSelector by ad_features=."
        )


def check_n_select(n_select: int, n_ads: int, n_rounds: int | None = None) -> None:
    """Raise unless n_select is from 1 to n_ads and to n_rounds, the number of rounds trained."""
    if not isinstance(n_select, Integral) or isinstance(n_select, bool):
        raise TypeError(f"n_select must be an integer, got {n_select!r}.")
    if n_rounds is not None and n_rounds < n_select <= n_ads:
        raise ValueError(
            f"n_select={n_select} is more than {n_rounds}, the number of ads that this selector "
            f"was trained to choose of {n_ads}: fit it with a larger n_select."
        )
    if not 1 <= n_select <= n_ads:
        raise ValueError(
            f"n_select={n_select} must be at least 1 and at most {n_ads}, the number of ads."
        )


def check_enough_available(available: Any, n_select: int) -> None:
    """Raise if a row has fewer than n_select available ads."""
    candidates = np.arange(available.shape[0])
    if not sp.issparse(available):  # in most rows, the first columns are enough
        candidates = np.flatnonzero(available[:, : 10 * n_select].sum(axis=1) < n_select)
    count = np.asarray(available[candidates].sum(axis=1))
    short = np.flatnonzero(count < n_select)
    if len(short):
        raise ValueError(
            f"Row {candidates[short[0]]} has {count[short[0]]} available ads, but n_select is "
            f"{n_select}. Make more ads available, choose fewer (n_select=), or mark the missing "
            "ones (fill=)."
        )


def column_labels(table: Any) -> np.ndarray | None:
    """Column labels of a DataFrame of any library; None if the columns have no names."""
    arrow = hasattr(table, "column_names") and hasattr(table, "to_pandas")  # columns are arrays
    columns = table.column_names if arrow else getattr(table, "columns", None)
    if columns is None:
        return None
    index = pd.Index(columns)
    if not index.is_unique:
        raise ValueError(f"Two columns are called {index[index.duplicated()][0]!r}: rename one.")
    return index_labels(index)


def index_labels(index: pd.Index) -> np.ndarray:
    """Labels of an index, by which they are found: as times of pandas, not NumPy's integers."""
    labels = np.asarray(index)
    return np.asarray(index, dtype=object) if labels.dtype.kind in "mM" else labels


def _column(matrix: Any, j: int) -> np.ndarray:
    """Column j as a 1-D array."""
    if not sp.issparse(matrix):
        return matrix[:, j]
    column = np.zeros(matrix.shape[0], dtype=matrix.dtype)
    entries = slice(matrix.indptr[j], matrix.indptr[j + 1])
    column[matrix.indices[entries]] = matrix.data[entries]
    return column


def to_dense(matrix: Any) -> np.ndarray:
    """Return the matrix as an array, whether sparse or dense."""
    return matrix.toarray() if sp.issparse(matrix) else matrix


def append_columns(X: Any, columns: np.ndarray) -> Any:
    """X followed by other columns, sparse if X is."""
    if sp.issparse(X):
        return sp.hstack([X, columns], format="csr")
    return np.concatenate([X, columns], axis=1)


def labeled_ads(chosen: np.ndarray, ads: np.ndarray, fill: Any) -> np.ndarray:
    """Labels at the chosen positions, with `fill` for -1."""
    if fill is None:
        return ads[chosen]
    if fill in ads.tolist():
        raise ValueError(f"fill={fill!r} is the label of an ad: pass a different marker.")
    filler = np.array([fill])
    kinds = {filler.dtype.kind, ads.dtype.kind}
    dtype = np.result_type(filler, ads) if len(kinds) == 1 or kinds <= set("iuf") else object
    if np.dtype(dtype).kind != "O" and (ads.astype(dtype).astype(ads.dtype) != ads).any():
        dtype = object  # else large integers would be rounded
    return np.where(chosen < 0, np.array(fill, dtype=dtype), ads.astype(dtype)[chosen])


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
    observed = np.where(seen, residual, 0.0)
    count, total, squares = seen.sum(axis=1), observed.sum(axis=1), (observed**2).sum(axis=1)
    pairs = (count * (count - 1)).sum()
    common = (total**2 - squares).sum() / pairs if pairs else 0.0
    if common <= 0.0:
        return np.zeros(len(residual))
    noise = max(squares.sum() / count.sum() - common, 0.0)
    return total / np.maximum(count + noise / common, 1.0)


def fill_costs(costs: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Fill missing costs (n, K) by predicted ones (n, K) or (K,) plus the effect of the row."""
    effects = row_effects(costs - predicted)
    return np.where(np.isnan(costs), predicted + effects[:, None], costs)


def estimated_costs(
    costs: np.ndarray, s: np.ndarray, available: np.ndarray | None = None
) -> np.ndarray:
    """Estimated costs (n, K); nan in the column of an ad that was never observed.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        nan where not observed.
    s : ndarray of shape (n,)
        Row weights, not negative.
    available : ndarray of bool, shape (n, K), or None
        Which ads could be chosen; shares are over these rows. None means all.
    """
    seen = ~np.isnan(costs)
    means = ad_means(costs, s)
    guess = means + row_effects(costs - means)[:, None]
    there = s @ (np.ones_like(seen) if available is None else available | seen)
    share = np.divide(s @ seen, there, out=np.zeros(len(there)), where=there > 0)
    correction = np.where(seen, costs - guess, 0.0)
    estimates = guess + np.divide(
        correction,
        share,
        out=np.zeros_like(correction),
        where=np.broadcast_to(share > 0, seen.shape),
    )
    estimates[:, share == 0] = np.nan
    return estimates


def read_position_weights(weights: Any, n_select: int) -> np.ndarray:
    """Weights of the first n_select positions; ones if None.

    Parameters
    ----------
    weights : array-like or None
        Weights of at least n_select positions, the best first.
    n_select : int
        Number of positions that are filled.

    Returns
    -------
    ndarray of shape (n_select,)
    """
    if weights is None:
        return np.ones(n_select)
    try:
        numbers = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        message = f"position_weights must be a list of numbers, got {weights!r}."
        raise type(error)(message) from error
    if numbers.ndim != 1 or len(numbers) < n_select:
        raise ValueError(
            f"position_weights has shape {numbers.shape}, but n_select={n_select} positions need a "
            "weight each: pass a list of as many numbers, or more."
        )
    descends = np.isfinite(numbers) & (numbers >= 0) & (np.diff(numbers, prepend=np.inf) <= 0)
    if not descends.all() or numbers[0] == 0:
        k = int(descends.argmin())
        raise ValueError(
            f"position_weights[{k}] is {numbers[k]:g}, but weights must be finite, positive at "
            "first, and descend to 0 at the least, as ads are chosen best first: sort them, and "
            "show the k-th ad in the position of the k-th largest weight."
        )
    return numbers[:n_select]
