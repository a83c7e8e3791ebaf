"""Features of arms, read from a table."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs import Codes
from skbandit.utils._validation import check_squares, first_few, same_columns


def read_arm_features(table: Any, columns: Collection[Hashable] | None = None) -> pd.DataFrame:
    """Check a table of arm features with one row per arm, labeled by its index.

    Parameters
    ----------
    table : DataFrame of shape (n_arms, n_arm_features)
        Finite numbers.
    columns : collection of labels, default=None
        Columns that the table must have, in any order; None takes them as they are.

    Returns
    -------
    DataFrame
        Of float64.
    """
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            "arm_features must be a DataFrame with one row per arm, whose index holds the labels "
            f"of the arms, got {type(table).__name__}."
        )
    if not len(table):
        raise ValueError("arm_features is empty: it has one row for each arm.")
    for axis, names in (("index", table.index), ("columns", table.columns)):
        if not names.is_unique:
            twice = names[names.duplicated()][0]
            raise ValueError(f"arm_features: its {axis} has {twice!r} twice.")
    if table.index.hasnans:
        raise ValueError("arm_features: a label is missing in its index.")
    if columns is not None:
        cure = f"its columns must be those of the arms described first, {first_few(columns)}."
        table = table.iloc[:, same_columns(columns, table.columns, "arm_features", cure)]
    for name in table.columns:
        kind = table[name].dtype
        if not (pd.api.types.is_numeric_dtype(kind) and kind.kind != "c"):
            raise ValueError(
                f"arm_features: column {name!r} holds {kind}, but features are numbers: encode "
                "categories, for example by pandas.get_dummies."
            )
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"arm_features: {table.columns[column]!r} of arm {table.index.tolist()[row]!r} is "
            f"{values[row, column]}: features must be finite; impute missing values."
        )
    check_squares(values, "arm_features")
    return pd.DataFrame(np.ascontiguousarray(values), table.index, table.columns)


def rows_of_new_arms(table: pd.DataFrame, codes: Codes, values: np.ndarray) -> np.ndarray:
    """Return rows of a table whose arms are new; known ones must keep their features, `values`."""
    labels = table.index.tolist()
    number = np.array([codes.get(label, -1) for label in labels])
    rows = np.flatnonzero(number >= 0)
    before, now = values[number[rows]], table.to_numpy()[rows]
    for row, column in np.argwhere(before != now)[:1]:
        raise ValueError(
            f"arm_features: {table.columns[column]!r} of arm {labels[rows[row]]!r} was "
            f"{before[row, column]:g} and is now {now[row, column]:g}, but an arm keeps the "
            "features that it was learned with: give the changed arm a new label, or put features "
            "that change into the context."
        )
    return np.flatnonzero(number < 0)
