"""Arms as numbers: labels of any hashable kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._validation import check_not_masked

# Arm label -> arm number. Reading data appends new labels in order of appearance.
Codes = dict[Hashable, int]

# Labels that are looked up one by one.
_FEW = 20


def label_array(labels: Iterable[Any]) -> np.ndarray:
    """Labels as an array: bool, int or float if all are of that type, else object."""
    labels = list(labels)
    for kind in (bool, int, float):
        if labels and all(type(label) is kind for label in labels):
            return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def label_order(label: Any) -> tuple[Any, ...]:
    """Sort key of labels of any kinds, which does not depend on the others: numbers come first."""
    if isinstance(label, bool | int | float):
        return 0, label
    if isinstance(label, str):
        return 1, label
    if isinstance(label, tuple):
        return 2, tuple(label_order(part) for part in label)
    return 3, type(label).__name__, repr(label)


def code_labels(labels: Any, codes: Codes, name: str = "action") -> np.ndarray:
    """Numbers of labels of shape (n,); new labels are appended to `codes`, as Python scalars."""
    check_not_masked(labels, name)
    several = isinstance(labels, Iterable) or hasattr(labels, "__array__")
    if isinstance(labels, str | bytes) or getattr(labels, "ndim", 1) == 0 or not several:
        raise TypeError(
            f"{name} must have one value per row, got {labels!r}: write [{labels!r}] for one row."
        )
    values = labels if isinstance(labels, pd.Series) else _one_dimensional(labels, name)
    few = _few_plain(values)
    if few is not None:
        return np.array([codes.setdefault(label, len(codes)) for label in few], dtype=np.int32)
    try:
        found, distinct = pd.factorize(values)
    except TypeError as error:
        raise TypeError(f"{name}: arm labels must be hashable ({error}).") from error
    if (found < 0).any():
        raise ValueError(f"{name} is missing on row {np.flatnonzero(found < 0)[0]}.")
    numbers = [codes.setdefault(label, len(codes)) for label in plain_labels(distinct.tolist())]
    return np.array(numbers, dtype=np.int32)[found]


def _few_plain(values: Any) -> list[Any] | None:
    """A few integers, booleans or strings as Python scalars, else None.

    They cannot be missing, and pandas has a fixed cost, which policies in service pay per event.
    """
    if len(values) > _FEW:
        return None
    array = values.to_numpy() if isinstance(values, pd.Series) else values
    if array.dtype.kind in "iubU":
        return array.tolist()
    if array.dtype == object and all(type(label) in (str, int, bool) for label in array):
        return array.tolist()
    return None


def plain_labels(labels: Iterable[Any]) -> list[Any]:
    """Labels as Python scalars, as `ndarray.tolist` returns them."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def _one_dimensional(labels: Any, name: str) -> np.ndarray:
    """Labels as a 1D array; tuples and labels of mixed types are kept as objects."""
    if isinstance(labels, np.ndarray):
        array = labels
    elif hasattr(labels, "to_numpy"):
        array = labels.to_numpy()
    else:
        array = label_array(plain_labels(labels))
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1D with one arm label per row, got shape {array.shape}.")
    return array
