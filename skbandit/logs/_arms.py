"""Arms by number: labels of any kind, and the sets of them that events could choose from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

# Label of an arm -> its number. Reading data appends what is new, in order of appearance.
Codes = dict[Hashable, int]


@dataclass(frozen=True)
class Pools:
    """The arms available to each event; a set that many events share is stored once.

    Set k holds the numbers ``arms[start[k]:start[k + 1]]``, ascending.
    """

    of_event: np.ndarray  # (n_events,), which set
    start: np.ndarray  # (n_sets + 1,)
    arms: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of arms of each event."""
        return np.diff(self.start)[self.of_event]

    @property
    def set_of_arm(self) -> np.ndarray:
        """Which set each entry of `arms` is in."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def contains(self, action: np.ndarray) -> np.ndarray:
        """Whether each event's own set holds its action."""
        n_arms = int(max(self.arms.max(initial=0), action.max(initial=0))) + 1
        held = self.set_of_arm * n_arms + self.arms
        return np.isin(self.of_event.astype(np.int64) * n_arms + action, held)

    def take(self, rows: np.ndarray | slice) -> Pools:
        """The pools of some events."""
        return Pools(self.of_event[rows], self.start, self.arms)


def label_array(labels: Iterable[Any]) -> np.ndarray:
    """Labels as an array of their own kind, of objects where they are strings or mixed."""
    labels = list(labels)
    for kind in (bool, int, float):
        if labels and all(type(label) is kind for label in labels):
            return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def code_labels(labels: Any, codes: Codes, name: str = "action") -> np.ndarray:
    """Numbers of labels of shape (n,); labels that are new are appended to `codes`."""
    values = labels if isinstance(labels, pd.Series) else _one_dimensional(labels, name)
    try:
        found, distinct = pd.factorize(values)
    except TypeError as error:
        raise TypeError(f"{name}: arm labels must be hashable ({error}).") from error
    if (found < 0).any():
        raise ValueError(f"{name} is missing on row {np.flatnonzero(found < 0)[0]}.")
    numbers = [codes.setdefault(label, len(codes)) for label in distinct.tolist()]
    return np.array(numbers, dtype=np.int32)[found]


def read_pools(
    available: Any, n_rows: int, codes: Codes, columns: Sequence[Any] | None = None
) -> Pools:
    """The sets of arms in `available`; labels that are new are appended to `codes`.

    Parameters
    ----------
    available : sequence of tuples of labels, or boolean array or DataFrame
        One collection of labels a row; or one column an arm, True where it can be chosen.
    n_rows : int
        How many events there are.
    codes : dict
        Numbers of the arms known so far.
    columns : sequence of labels, default=None
        The arms that the columns of a boolean array without names stand for; None is all of
        `codes`.

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
            f"available must hold one tuple of arm labels a row, or be a boolean array with one "
            f"column an arm, got {available if flat else shown}."
        )
    rows = available.tolist() if hasattr(available, "tolist") else list(available)
    if len(rows) != n_rows:
        raise ValueError(
            f"available has {len(rows)} entries for {n_rows} rows: one tuple of arm labels a row, "
            "or a boolean array with one column an arm."
        )
    return _from_collections(rows, codes)


def _from_booleans(matrix: np.ndarray, columns: list[Any], n_rows: int, codes: Codes) -> Pools:
    """Sets from a matrix with one column an arm."""
    if matrix.shape != (n_rows, len(columns)):
        raise ValueError(
            f"available has shape {matrix.shape}, expected {(n_rows, len(columns))}: one row an "
            f"event and one column an arm, {_shown(columns)}. A DataFrame names its own columns."
        )
    if not matrix.size:
        raise ValueError(f"available has shape {matrix.shape}: it names no arm.")
    if matrix.dtype != bool:
        wrong = [value for value in matrix.ravel()[:1000] if not isinstance(value, bool | np.bool_)]
        if wrong or matrix.dtype != object:
            shown = wrong[0] if wrong else matrix.ravel()[0]
            raise ValueError(
                "available, as an array with one column an arm, must be boolean, found "
                f"{shown!r}; or give one tuple of arm labels a row."
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
    """Sets from one collection of labels a row."""
    # Mostly a log repeats one object, or equal ones: each object is looked at once.
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
    if len(rows) < 100:  # pandas is quick once it has begun, and a served choice is one row
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(id(row), len(numbers)) for row in rows])
    return pd.factorize(np.fromiter(map(id, rows), dtype=np.int64, count=len(rows)))[0]


def _plain(pool: tuple[Any, ...]) -> list[Any]:
    """Labels as Python's own types, as an array's `tolist` gives them."""
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
    """Position where each of the numbers 0, 1, ... first appears."""
    first = np.empty(numbers.max(initial=-1) + 1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return first


def _one_dimensional(labels: Any, name: str) -> np.ndarray:
    """Labels as a flat array; a list of tuples stays one of tuples, of mixed kinds one of them."""
    if isinstance(labels, np.ndarray):
        array = labels
    elif hasattr(labels, "to_numpy"):
        array = labels.to_numpy()
    else:
        array = label_array(_plain(tuple(labels)))
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1D with one arm label a row, got shape {array.shape}.")
    return array


def _shown(labels: list[Any]) -> str:
    """A few labels to name in a message."""
    names = ", ".join(map(repr, labels[:5]))
    return f"{names}, ..." if len(labels) > 5 else names
