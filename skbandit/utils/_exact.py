"""Tables and columns of other libraries as those of pandas, with every integer as it was.

pandas and NumPy make floats of integers next to missing values, and floats merge integers beyond
2**53, such as ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

LARGEST_EXACT = 2**53
"""Largest integer below which floats hold all."""


def exact_table(table: Any) -> Any:
    """Return a table of Arrow, polars, or a dict of columns as a DataFrame; others as they are."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "column_names") and hasattr(table, "column"):  # pyarrow, also its batches
        names = table.column_names
        columns = [exact_column(table.column(k)) for k in range(len(names))]
    elif isinstance(table, Mapping):
        names, columns = list(table), [exact_column(values) for values in table.values()]
        if columns and all(map(pd.api.types.is_scalar, columns)):
            raise TypeError(f"a dict as a table needs a list or an array per name, got {table!r}.")
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars
        names = list(table.columns)
        columns = [exact_column(table[name]) for name in names]
    else:
        return table
    frame = pd.DataFrame(dict(enumerate(columns)), index=None if columns else pd.RangeIndex(0))
    frame.columns = pd.Index(names, dtype=None if names else object)
    return frame


def exact_column(values: Any) -> Any:
    """Return a column of Arrow or polars, or a list, as of pandas or NumPy; others as they are.

    Integers next to missing values are floats, as in pandas, unless one is too large for that.
    """
    if isinstance(values, pd.Series):  # not aligned on its index
        return values.array
    missing, listed = False, values
    if hasattr(values, "to_pylist"):  # of Arrow
        missing = bool(values.null_count) and bool(re.match("u?int", str(values.type)))
        listed, values = values.to_pylist() if missing else [], values.to_pandas().array
    elif hasattr(values, "null_count") and hasattr(values, "to_list"):  # of polars
        missing = bool(values.null_count()) and values.dtype.is_integer()
        zone = getattr(values.dtype, "time_zone", None)
        if str(values.dtype) == "Date":  # NumPy's are times to pandas
            return pd.Series(values.to_list(), dtype=object).array
        listed, values = values.to_list() if missing else [], values.to_numpy()
        if zone is not None:  # NumPy has instants only
            return pd.Series(values).dt.tz_localize("UTC").dt.tz_convert(zone).array
    elif isinstance(values, list | tuple):
        missing = any(value is None or value is pd.NA for value in values)
        missing = missing and pd.api.types.infer_dtype(values, skipna=True) == "integer"
    if not missing or all(pd.isna(value) or abs(value) <= LARGEST_EXACT for value in listed):
        return values
    for dtype in ("Int64", "UInt64"):
        try:
            return pd.array(listed, dtype=dtype)
        except (OverflowError, TypeError):
            continue
    return np.array(listed, dtype=object)
