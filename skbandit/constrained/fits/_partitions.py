"""Rows of Dask collections: responses are computed by partition, and features stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.measure import columns_of_condition
from skbandit.rates import Rate
from skbandit.utils._sklearn_compat import count_rows, import_optional


def is_partitioned(X: Any) -> bool:
    """Return whether X is a DataFrame or an array of Dask."""
    return hasattr(type(X), "to_delayed")


def computed(x: Any) -> Any:
    """Take in what Dask has computed: labels, groups, weights or attributes."""
    return x.compute() if is_partitioned(x) else x


def columns_read(rates: Iterable[Rate], by: str | Sequence[str] | None, X: Any) -> list[Any]:
    """Columns of X that rates or `by` name; all if a condition is a function."""
    every = list(getattr(X, "columns", []))
    names: set[Any] = {by} if isinstance(by, str) else set(by or ())
    for atom in (atom for rate in rates for atom in rate.atoms):
        condition = columns_of_condition(atom.where, every)
        if condition is None:
            return every
        names |= {*condition, atom.weight, atom.amount, atom.reference}
        names |= set(() if atom.group is None else atom.group.columns)
    return [name for name in every if name in names]


def from_partitions(
    X: Any, columns: list[Any], respond: Callable[[Any], np.ndarray] = count_rows
) -> tuple[pd.DataFrame, np.ndarray]:
    """Read some columns of all rows, and responses to them.

    Parameters
    ----------
    X : Dask DataFrame or array
    columns : list
        Those that come to the client.
    respond : callable
        From the rows of a partition to an array; it is sent to workers.

    Returns
    -------
    tuple of DataFrame and ndarray
    """
    if not is_partitioned(X):  # one block
        return X, respond(X)
    dask = import_optional("dask", "rows of Dask")
    parts = X.to_delayed() if hasattr(X, "columns") else X.rechunk({1: -1}).to_delayed().ravel()
    answers = dask.compute(*[dask.delayed(_answer)(part, columns, respond) for part in parts])
    tables, responses = zip(*[answer for answer in answers if len(answer[0])], strict=True)
    return pd.concat(tables), np.concatenate(responses)


def _answer(
    part: Any, columns: list[Any], respond: Callable[[Any], np.ndarray]
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns of a partition, and the responses to its rows."""
    index = getattr(part, "index", None)
    index = pd.RangeIndex(count_rows(part)) if index is None else index
    table = part[columns] if columns else pd.DataFrame(index=index)
    return table, np.atleast_1d(respond(part)) if len(table) else np.empty(0)
