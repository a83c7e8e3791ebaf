"""Arms as numbers: labels of any hashable kind, and the sets of arms available to events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._messages import first_few
from skbandit.utils._validation import check_not_masked

# Arm label -> arm number. Reading data appends new labels in order of appearance.
Codes = dict[Hashable, int]


@dataclass(frozen=True)
class Pools:
    """Sets of available arms; a set shared by many events is stored once.

    Set k holds the numbers ``arms[start[k]:start[k + 1]]``, ascending.
    """

    of_event: np.ndarray  # (n_events,), number of the event's set
    start: np.ndarray  # (n_sets + 1,)
    arms: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of available arms per event."""
        return np.diff(self.start)[self.of_event]

    @property
    def set_of_arm(self) -> np.ndarray:
        """Set number of each entry of `arms`."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def contains(self, action: np.ndarray) -> np.ndarray:
        """Whether each event's action is in its set."""
        n_arms = int(max(self.arms.max(initial=0), action.max(initial=0))) + 1
        held = self.set_of_arm * n_arms + self.arms
        return np.isin(self.of_event.astype(np.int64) * n_arms + action, held)

    def take(self, rows: np.ndarray | slice) -> Pools:
        """Sets of the given events."""
        return Pools(self.of_event[rows], self.start, self.arms)


def label_array(labels: Iterable[Any]) -> np.ndarray:
    """Labels as an array: bool, int or float if all are of that type, else object."""
    labels = list(labels)
    for kind in (bool, int, float):
        if labels and all(type(label) is kind for label in labels):
            return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def code_labels(labels: Any, codes: Codes, name: str = "action") -> np.ndarray:
    """Numbers of labels of shape (n,); new labels are appended to `codes`, as Python scalars."""
    check_not_masked(labels, name)
    if isinstance(labels, str | bytes):
        raise TypeError(f"{name} must be 1D with one label per row, got {labels!r}: [{labels!r}]?")
    values = labels if isinstance(labels, pd.Series) else _one_dimensional(labels, name)
    try:
        found, distinct = pd.factorize(values)
    except TypeError as error:
        raise TypeError(f"{name}: arm labels must be hashable ({error}).") from error
    if (found < 0).any():
        raise ValueError(f"{name} is missing on row {np.flatnonzero(found < 0)[0]}.")
    numbers = [codes.setdefault(label, len(codes)) for label in _plain(distinct.tolist())]
    return np.array(numbers, dtype=np.int32)[found]


def read_pools(
    available: Any, n_rows: int, codes: Codes, columns: Sequence[Any] | None = None
) -> Pools:
    """Read `available` into sets of arm numbers; new labels are appended to `codes`.

    Parameters
    ----------
    available : sequence of tuples of labels, or boolean array or DataFrame
        One collection of labels per row; or one column per arm, True if it can be chosen.
    n_rows : int
        Number of events.
    codes : dict
        Numbers of the arms known so far.
    columns : sequence of labels, default=None
        Arms of the columns of an unnamed boolean array; None is all of `codes`.

    Returns
    -------
    Pools
        No set is empty.
    """
    if hasattr(available, "columns"):
        return _from_booleans(available.to_numpy(), list(available.columns), n_rows, codes)
    if getattr(available, "ndim", 1) == 2:
        named = list(codes) if columns is None else list(columns)
        return _from_booleans(np.asarray(available), named, n_rows, codes)
    flat = getattr(available, "ndim", 1) == 1
    if not flat or not isinstance(available, Iterable) or isinstance(available, type):
        shown = f"{type(available).__name__} of shape {np.shape(available)}"
        raise ValueError(
            f"available must hold one tuple of arm labels per row, or be a boolean array with one "
            f"column per arm, got {available if flat else shown}."
        )
    rows = available.tolist() if hasattr(available, "tolist") else list(available)
    if len(rows) != n_rows:
        raise ValueError(
            f"available has {len(rows)} entries for {n_rows} rows: pass one tuple of arm labels "
            "per row, or a boolean array with one column per arm."
        )
    return _from_collections(rows, codes)


def _from_booleans(matrix: np.ndarray, columns: list[Any], n_rows: int, codes: Codes) -> Pools:
    """Sets from a matrix with one column per arm."""
    if matrix.shape != (n_rows, len(columns)):
        raise ValueError(
            f"available has shape {matrix.shape}, expected {(n_rows, len(columns))}: one row per "
            f"event and one column per arm, {first_few(columns)}. Pass a DataFrame to name other "
            "columns."
        )
    if not matrix.size:
        raise ValueError(f"available has shape {matrix.shape}: it names no arm.")
    if matrix.dtype != bool:
        wrong = [value for value in matrix.ravel()[:1000] if not isinstance(value, bool | np.bool_)]
        if wrong or matrix.dtype != object:
            shown = wrong[0] if wrong else matrix.ravel()[0]
            raise ValueError(
                f"available has one column per arm and must be boolean, found {shown!r}; or pass "
                "one tuple of arm labels per row."
            )
        matrix = matrix.astype(bool)
    if not matrix.any(axis=1).all():
        raise ValueError(f"available: row {int(np.argmin(matrix.any(axis=1)))} has no arm at all.")
    numbers = np.array([codes.setdefault(label, len(codes)) for label in columns], dtype=np.int32)
    order = np.argsort(numbers, kind="stable")
    of_event = _number_rows(np.packbits(matrix, axis=1))
    sets = matrix[_first_of_each(of_event)][:, order]
    which = np.nonzero(sets)[1]
    start = np.concatenate([[0], np.cumsum(sets.sum(axis=1))])
    return Pools(of_event, start, numbers[order][which])


def _from_collections(rows: list[Any], codes: Codes) -> Pools:
    """Sets from one collection of labels per row."""
    # Logs mostly repeat one object, or equal ones: read each object once.
    objects = _number_objects(rows)
    seen: dict[Any, int] = {}
    first = _first_of_each(objects)
    of_object = np.empty(len(first), dtype=np.int64)
    for k, row in enumerate(first):
        pool = rows[row]
        if isinstance(pool, str | bytes) or not isinstance(pool, Iterable):
            raise ValueError(
                f"available: row {row} is {pool!r}, expected a tuple of arm labels "
                "(of one label: (label,))."
            )
        of_object[k] = seen.setdefault(tuple(pool), len(seen))
    sets = []
    for pool in seen:
        if not pool:
            row = int(np.flatnonzero(of_object[objects] == seen[pool])[0])
            raise ValueError(f"available: row {row} has no arm at all.")
        if not all(label in codes for label in pool):
            for label in _plain(pool):
                codes.setdefault(label, len(codes))
        sets.append(sorted({codes[label] for label in pool}))
    start = np.concatenate([[0], np.cumsum([len(numbers) for numbers in sets])]).astype(np.int64)
    arms = np.concatenate(sets) if sets else np.empty(0)
    return Pools(of_object[objects].astype(np.int32), start, arms.astype(np.int32))


def _number_objects(rows: list[Any]) -> np.ndarray:
    """Number the distinct objects in order of appearance."""
    if len(rows) < 100:  # pandas has a fixed cost, and policies in service choose one row at a time
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(id(row), len(numbers)) for row in rows])
    return pd.factorize(np.fromiter(map(id, rows), dtype=np.int64, count=len(rows)))[0]


def _plain(pool: Sequence[Any]) -> list[Any]:
    """Labels as Python scalars, as `ndarray.tolist` returns them."""
    return [label.item() if isinstance(label, np.generic) else label for label in pool]


def _number_rows(packed: np.ndarray) -> np.ndarray:
    """Number the distinct rows of a matrix of bytes in order of appearance."""
    n_rows, n_bytes = packed.shape
    padded = np.zeros((n_rows, -(-n_bytes // 8) * 8), dtype=np.uint8)
    padded[:, :n_bytes] = packed
    numbers = np.zeros(n_rows, dtype=np.int64)
    for word in padded.view(np.uint64).T:
        codes, distinct = pd.factorize(word)
        numbers = pd.factorize(numbers * len(distinct) + codes)[0]
    return numbers.astype(np.int32)


def _first_of_each(numbers: np.ndarray) -> np.ndarray:
    """Position of the first occurrence of each of the numbers 0, 1, ..."""
    first = np.empty(numbers.max(initial=-1) + 1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return first


def _one_dimensional(labels: Any, name: str) -> np.ndarray:
    """Labels as a 1D array; tuples and labels of mixed types are kept as objects."""
    if isinstance(labels, np.ndarray):
        array = labels
    elif hasattr(labels, "to_numpy"):
        array = labels.to_numpy()
    else:
        array = label_array(_plain(tuple(labels)))
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1D with one arm label per row, got shape {array.shape}.")
    return array
