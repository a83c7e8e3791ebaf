"""Encoding of labels as 1 (positive), 0 (negative) and -1 (missing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

from skbandit.utils._messages import first_few

MISSING = -1


def encode(values: Any, pos_label: Any, labels: Sequence[Any], name: str) -> np.ndarray:
    """Encode labels or stored predictions as int8 codes 1, 0 and -1 (missing).

    Parameters
    ----------
    values : array-like of shape (n,)
        Labels; missing values are allowed.
    pos_label : label or None
        The positive class; if None, labels must be {0, 1}, {-1, 1} or bool.
    labels : sequence
        The known labels. Other values in {0, 1} or {-1, 1}, common in stored predictions,
        are read with 1 = positive, unless 1 is the label of the negative class.
    name : str
        Name of the values in error messages.

    Returns
    -------
    ndarray of int8, shape (n,)
    """
    codes, found = _factorized(values, name)
    zero_one = positive_is_known(found)
    if pos_label is None:
        if not zero_one:
            raise ValueError(
                f"{name} has labels [{first_few(found)}]: choose the positive one with pos_label=."
            )
        pos_label = 1
    elif not set(found) <= {*labels, pos_label}:
        if not zero_one or (1 in labels and pos_label != 1):  # 1 would be ambiguous
            unknown = [label for label in found if label not in {*labels, pos_label}]
            raise ValueError(
                f"{name} has [{first_few(unknown)}], not among the labels [{first_few(labels)}]; "
                f"the positive label is {pos_label!r}."
            )
        pos_label = 1
    positive = np.array([label == pos_label for label in found] + [MISSING], dtype=np.int8)
    return positive[codes]  # missing values have code -1, which is the last entry


def positive_is_known(labels: Sequence[Any]) -> bool:
    """Whether labels, {0, 1}, {-1, 1} or bool, say themselves which class is positive."""
    return set(labels) <= {0, 1} or set(labels) <= {-1, 1}


def either_label(values: Any) -> Any:
    """A label to stand for the positive class where it may be either; None if labels tell it."""
    labels = distinct(values, "y_true")
    return None if positive_is_known(labels) else labels[0]


def distinct(values: Any, name: str) -> list[Any]:
    """Distinct non-missing labels in order of appearance."""
    return _factorized(values, name)[1]


def check_two_labels(labels: Sequence[Any], pos_label: Any) -> None:
    """Raise an error unless `labels` fit a two-class problem."""
    if len(labels) > 2:
        raise ValueError(f"Rates are for two classes, got {len(labels)}: [{first_few(labels)}].")
    if pos_label is not None and len(labels) == 2 and pos_label not in list(labels):
        raise ValueError(f"pos_label={pos_label!r} is not among the labels [{first_few(labels)}].")


def _factorized(values: Any, name: str) -> tuple[np.ndarray, list[Any]]:
    """Code of each label, -1 if missing, and the distinct labels."""
    column = values if isinstance(values, pd.Series) else column_or_1d(_as_array(values))
    try:
        codes, found = pd.factorize(column)
    except TypeError as error:
        raise TypeError(f"{name}: labels must be hashable ({error}).") from error
    return codes, list(found)


def _as_array(values: Any) -> np.ndarray:
    array = np.asarray(values)
    # np.asarray(["yes", nan]) would turn nan into the string "nan".
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        array = np.asarray(values, dtype=object)
    return array
