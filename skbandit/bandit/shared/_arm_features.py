"""Features of arms, read from a table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.logs import Codes
from skbandit.utils._validation import check_squares, first_few

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ArmFeatures:
    """Features of arms, as given."""

    columns: tuple[Hashable, ...]
    values: np.ndarray  # (n_arms, n_columns), rows in the order of the arms

    def plus(self, values: np.ndarray) -> ArmFeatures:
        """Return features of further arms, too."""
        return ArmFeatures(self.columns, np.concatenate([self.values, values]))

    def take(self, arms: np.ndarray) -> ArmFeatures:
        """Return features of the arms of these numbers."""
        return ArmFeatures(self.columns, self.values[arms])


def read_arm_features(
    table: Any, columns: tuple[Hashable, ...] | None = None
) -> tuple[list[Any], ArmFeatures]:
    """Check a table of arm features with one row per arm, labeled by its index.

    Parameters
    ----------
    table : DataFrame of shape (n_arms, n_arm_features)
        Finite numbers.
    columns : tuple of labels, default=None
        Columns that the table must have, in any order; None takes them as they are.

    Returns
    -------
    tuple of list and ArmFeatures
        Labels of the arms, as Python scalars, and their features.
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
    given = tuple(table.columns)
    if columns is not None and given != columns:
        missing = [name for name in columns if name not in given]
        unknown = [name for name in given if name not in columns]
        if missing or unknown:
            what = f"lacks {first_few(missing)}" if missing else f"has {first_few(unknown)}, too"
            raise ValueError(
                f"arm_features {what}: its columns must be those of the arms described first, "
                f"{first_few(columns)}."
            )
        table = table[list(columns)]
    labels = table.index.tolist()
    return labels, ArmFeatures(tuple(table.columns), _finite_features(table, labels))


def _finite_features(table: pd.DataFrame, labels: list[Any]) -> np.ndarray:
    """Return entries of the table, finite."""
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
            f"arm_features: {table.columns[column]!r} of arm {labels[row]!r} is "
            f"{values[row, column]}: features must be finite; impute missing values."
        )
    check_squares(values, "arm_features")
    return np.ascontiguousarray(values)


def new_arms(
    labels: list[Any], described: ArmFeatures, features: ArmFeatures, codes: Codes
) -> tuple[list[Any], np.ndarray]:
    """Return labels and features of the arms that are new; a known arm must keep its features."""
    fresh = []
    for row, label in enumerate(labels):
        number = codes.get(label)
        if number is None:
            fresh.append(row)
            continue
        differ = np.flatnonzero(described.values[row] != features.values[number])
        if len(differ):
            column = differ[0]
            raise ValueError(
                f"arm_features: {features.columns[column]!r} of arm {label!r} was "
                f"{features.values[number, column]:g} and is now "
                f"{described.values[row, column]:g}, but an arm keeps the features that it was "
                "learned with: give the changed arm a new label, or put features that change into "
                "the context."
            )
    return [labels[row] for row in fresh], described.values[fresh]
