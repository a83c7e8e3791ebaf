"""Labels of any kind as 1 (positive), 0 (negative) and -1 (missing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

MISSING = -1


def encode(values: Any, pos_label: Any, labels: Sequence[Any], name: str) -> np.ndarray:
    """Encode labels, or stored predictions of them, as int8 codes 1, 0 and -1 (missing).

    Parameters
    ----------
    values : array-like of shape (n,)
        Labels; missing values are allowed.
    pos_label : label or None
        The positive class; None reads {0, 1}, {-1, 1} and bool as they are.
    labels : sequence
        The labels known so far. Values that are none of them but lie in {0, 1} or
        {-1, 1}, as stored predictions often do, are read as 1 = positive, unless 1 is the
        label of the negative class.
    name : str
        What to call the values in an error.

    Returns
    -------
    ndarray of int8, shape (n,)
    """
    codes, found = _factorized(values, name)
    yes_no = set(found) <= {0, 1} or set(found) <= {-1, 1}
    if pos_label is None:
        if not yes_no:
            raise ValueError(
                f"{name} has labels {_listed(found)}: say which is positive with pos_label=."
            )
        pos_label = 1
    elif not set(found) <= {*labels, pos_label}:
        if not yes_no or (1 in labels and pos_label != 1):  # whose 1 would it be?
            unknown = [label for label in found if label not in {*labels, pos_label}]
            raise ValueError(
                f"{name} has {_listed(unknown)}, which is none of the labels "
                f"{_listed([*labels])}; positive is {pos_label!r}."
            )
        pos_label = 1
    positive = np.array([label == pos_label for label in found] + [MISSING], dtype=np.int8)
    return positive[codes]  # factorize codes a missing value as -1, the last entry


def distinct(values: Any, name: str) -> list[Any]:
    """The distinct labels that are not missing, in order of appearance."""
    return _factorized(values, name)[1]


def check_two_labels(labels: Sequence[Any], pos_label: Any) -> None:
    """Raise unless `labels` can be the labels of a two-class problem."""
    if len(labels) > 2:
        raise ValueError(f"Rates are for two classes, got {len(labels)}: {_listed(labels)}.")
    if pos_label is not None and len(labels) == 2 and pos_label not in list(labels):
        raise ValueError(f"pos_label={pos_label!r} is none of the labels {_listed(labels)}.")


def _factorized(values: Any, name: str) -> tuple[np.ndarray, list[Any]]:
    """Each label's number, -1 where it is missing; and the labels."""
    column = values if isinstance(values, pd.Series) else column_or_1d(_as_array(values))
    try:
        codes, found = pd.factorize(column)
    except TypeError as error:
        raise TypeError(f"{name}: labels must be hashable ({error}).") from error
    return codes, list(found)


def _as_array(values: Any) -> np.ndarray:
    array = np.asarray(values)
    # ["yes", None] and [True, None] must stay objects; np.asarray(["yes", nan]) would not
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        array = np.asarray(values, dtype=object)
    return array


def _listed(values: Sequence[Any], most: int = 5) -> str:
    shown = ", ".join(repr(v.item() if hasattr(v, "item") else v) for v in values[:most])
    return f"[{shown}, ...]" if len(values) > most else f"[{shown}]"
