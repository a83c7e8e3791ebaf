"""Labels of classes and decisions: read, encoded and ordered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

from skbandit.utils._exact import exact_column
from skbandit.utils._validation import first_few, warn, warn_if_blanks_differ

MISSING = -1


def encode_classes(values: Any, labels: Sequence[Any], name: str) -> np.ndarray:
    """Encode labels by their place among `labels`, missing ones as -1.

    Parameters
    ----------
    values : array-like of shape (n,)
        Labels; missing values are allowed.
    labels : sequence
        All that may occur.
    name : str
        Name of the values in error messages.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    codes, uniques = _factorized(values, name)
    place = [next((k for k, x in enumerate(labels) if label == x), None) for label in uniques]
    if unknown := [label for label, k in zip(uniques, place, strict=True) if k is None]:
        raise ValueError(
            f"{name} has [{first_few(unknown)}], not among the labels [{first_few(labels)}]."
        )
    return np.array([*place, MISSING])[codes]


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
    codes, uniques = _factorized(values, name)
    zero_one = positive_is_known(uniques)
    if pos_label is None:
        if not zero_one:
            raise ValueError(
                f"{name} has labels [{first_few(uniques)}]: choose the positive one with "
                "pos_label=."
            )
        pos_label = 1
    elif len(unknown := [label for label in uniques if label not in {*labels, pos_label}]) > max(
        0, 2 - len({*labels, pos_label})
    ):  # where one label is known, as without y, values may add the other
        if not zero_one or (1 in labels and pos_label != 1):  # 1 would be ambiguous
            raise ValueError(
                f"{name} has [{first_few(unknown)}], not among the labels [{first_few(labels)}]; "
                f"the positive label is {pos_label!r}."
            )
        pos_label = 1
    positive = np.array([label == pos_label for label in uniques] + [MISSING], dtype=np.int8)
    return positive[codes]  # missing values have code -1, which is the last entry


def positive_is_known(labels: Sequence[Any]) -> bool:
    """Return whether labels, {0, 1}, {-1, 1} or bool, say themselves which class is positive."""
    return set(labels) <= {0, 1} or set(labels) <= {-1, 1}


def distinct(values: Any, name: str) -> list[Any]:
    """Distinct non-missing labels in order of appearance."""
    return _factorized(values, name)[1]


def warn_of_blank(labels: Collection[Any], name: str) -> None:
    """Warn of a label that is blank text, such as a missing one in a file, or is so around it."""
    warn_if_blanks_differ(labels, name)
    for label in labels:
        if isinstance(label, str) and not label.strip():
            warn(
                f"{name} has the label {label!r}, which counts as a class: pass None or nan for "
                "labels that are missing.",
                UserWarning,
            )


def check_pos_label(labels: Sequence[Any], pos_label: Any) -> None:
    """Raise an error unless the positive class is one of two labels or more."""
    if pos_label is not None and len(labels) >= 2 and pos_label not in list(labels):
        raise ValueError(f"pos_label={pos_label!r} is not among the labels [{first_few(labels)}].")


def _factorized(values: Any, name: str) -> tuple[np.ndarray, list[Any]]:
    """Code of each label, -1 if missing, and the distinct labels."""
    column = exact_column(values)
    if isinstance(column, pd.api.extensions.ExtensionArray):
        column = pd.Series(column)
    elif not isinstance(values, pd.Series):
        # np.asarray(["yes", nan]) would turn nan into the string "nan".
        texts = isinstance(column, list | tuple) and np.asarray(column).dtype.kind in "US"
        column = column_or_1d(np.asarray(column, dtype=object if texts else None))
    try:
        codes, uniques = pd.factorize(column)
    except TypeError as error:
        raise TypeError(f"{name}: labels must be hashable ({error}).") from error
    return codes, list(map(as_python, uniques))  # Decimal(1) == np.int64(1) is an error


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Labels as plain Python objects, sorted if they can be."""
    plain = [as_python(label) for label in labels]
    try:
        return sorted(plain)
    except TypeError:  # of several types
        return sorted(plain, key=str)


def as_python(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
