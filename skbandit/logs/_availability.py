"""`available`: the arms that may be chosen in each row, for policies and selectors alike.

Three forms have one meaning: a boolean table with one column per arm, one collection of labels per
row, and one collection of labels for all rows. `align_rows` matches its rows with those of X;
`read_pools` returns sets of arm numbers, to which new labels are added; `read_mask` returns a mask
over given labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from skbandit.logs._arms import Codes, plain_labels
from skbandit.utils._validation import check_not_masked, first_few

# Treatment of labels that are not known: add them, raise an error, or leave them out.
Unknown = Literal["add", "error", "ignore"]


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

    def mask(self, n_arms: int) -> sp.csr_array:
        """Mask of shape (n_events, n_arms)."""
        flags = np.ones(len(self.arms), dtype=bool)
        sets = sp.csr_array((flags, self.arms, self.start), (len(self.start) - 1, n_arms))
        return sets[self.of_event]


@dataclass(frozen=True)
class _Table:
    """Flags with one column per arm."""

    flags: Any  # ndarray or csr_array of bool
    labels: list[Any] | None  # of the columns; None if they have no names


@dataclass(frozen=True)
class _Collections:
    """Collections of labels, one per row or a single one for all rows."""

    rows: list[Any]
    for_all: bool


def align_rows(available: Any, X: Any) -> Any:
    """Put the rows of a pandas `available` in the order of the rows of X.

    Rows are matched by label if X is a pandas object, too, and `available` has the labels of its
    rows; otherwise by position, with a warning if the labels differ.

    Parameters
    ----------
    available : object
        As in `read_pools`; returned as it is unless it is a DataFrame, or a Series of collections.
    X : object
        With one row per event, as passed by the user.

    Returns
    -------
    object
        Available arms per row of X, in this order.
    """
    pandas = pd.DataFrame | pd.Series
    if not (isinstance(available, pandas) and isinstance(X, pandas)):
        return available
    labels, wanted = available.index, X.index
    for_all_rows = available.ndim == 1 and len(available) and not _is_collection(available.iloc[0])
    if labels.equals(wanted) or for_all_rows:
        return available
    same_length = len(labels) == len(wanted)
    # 0, 1, ... are no more than positions, which say nothing about the rows of a longer table
    numbered = isinstance(wanted, pd.RangeIndex) and wanted.equals(pd.RangeIndex(len(wanted)))
    if labels.is_unique and wanted.is_unique and (same_length or not numbered):
        rows = labels.get_indexer(wanted)
        if (rows >= 0).all():
            return available.iloc[rows]
    if same_length:
        row = int(np.flatnonzero(labels != wanted)[0])
        warnings.warn(
            f"available and X have different row labels (row {row} is labeled {labels[row]!r} and "
            f"{wanted[row]!r}), so their rows are matched by position: pass "
            "available.set_axis(X.index) if they are in the same order.",
            UserWarning,
            stacklevel=4,
        )
    return available


def read_pools(
    available: Any,
    n_rows: int,
    codes: Codes,
    columns: Sequence[Any] | None = None,
    per_row: bool = False,
) -> Pools:
    """Read `available` into sets of arm numbers; new labels are appended to `codes`.

    Parameters
    ----------
    available : boolean table, sequence of collections of labels, or collection of labels
        One column per arm, True if it can be chosen; or the labels of each row; or those of all
        rows.
    n_rows : int
        Number of events.
    codes : dict
        Numbers of the arms known so far.
    columns : sequence of labels, default=None
        Arms of the columns of an unnamed table; None is all of `codes`.
    per_row : bool, default=False
        Whether `available` is a column of a log, and so has an entry per row.

    Returns
    -------
    Pools
        No set is empty.
    """
    if n_rows == 1 and (one := _one_known_tuple(available, codes)):
        return one
    read = _Collections(list(available), for_all=False) if per_row else _read(available, codes)
    if isinstance(read, _Collections):
        pools = _from_collections(read, n_rows, codes, "add")
        empty = np.flatnonzero(pools.sizes == 0)
        if len(empty):
            raise ValueError(f"available: row {empty[0]} has no arm at all.")
        return pools
    labels = read.labels
    if labels is None:
        labels = list(codes) if columns is None else list(columns)
    return _from_table(read.flags, labels, n_rows, codes)


def read_mask(
    available: Any,
    labels: np.ndarray,
    n_rows: int,
    unknown: Literal["error", "ignore"] = "error",
) -> Any:
    """Read `available` into a mask over ads.

    Parameters
    ----------
    available : boolean table, sequence of collections of labels, collection of labels, or None
        As in `read_pools`; None means all ads in every row.
    labels : ndarray of shape (n_ads,)
        Known ads, in the order of the columns to return.
    n_rows : int
        Required number of rows.
    unknown : {"error", "ignore"}, default="error"
        Whether a named table must have exactly the columns `labels`, and collections only these
        labels; or other ads are left out, and ads without a column are not available.

    Returns
    -------
    ndarray or csr_array of bool, shape (n_rows, n_ads), or None
        Rows may be empty.
    """
    if available is None:
        return None
    ads = labels.tolist()
    codes: Codes = {label: k for k, label in enumerate(ads)}
    read = _read(available, codes)
    if isinstance(read, _Collections):
        return _from_collections(read, n_rows, codes, unknown).mask(len(ads))
    flags = read.flags
    if flags.shape[0] != n_rows:
        raise ValueError(f"available has {flags.shape[0]} rows, X has {n_rows}.")
    if read.labels is None:
        if flags.shape[1] != len(ads):
            raise ValueError(
                f"available has {flags.shape[1]} columns for {len(ads)} ads: pass a DataFrame to "
                "name the columns, or the labels of the available ads."
            )
        return flags
    return _columns_in_order(flags, read.labels, codes, unknown)


def _columns_in_order(
    flags: Any, labels: list[Any], codes: Codes, unknown: Literal["error", "ignore"]
) -> Any:
    """Flags with their columns in the order of `codes`."""
    position = {label: k for k, label in enumerate(labels)}
    if len(position) < len(labels):
        twice = next(label for k, label in enumerate(labels) if label in labels[:k])
        raise ValueError(f"available has two columns for {twice!r}.")
    if unknown == "error":
        new = [label for label in labels if label not in codes]
        if new:
            raise ValueError(f"available has columns for unknown ads: {first_few(new)}. {_CURE}")
        missing = [label for label in codes if label not in position]
        if missing:
            raise ValueError(f"available has no column for ad {first_few(missing)}. {_CURE}")
        return flags[:, [position[label] for label in codes]]
    none = sp.csr_array if sp.issparse(flags) else np.zeros
    stack = sp.hstack if sp.issparse(flags) else np.hstack
    padded = stack([flags, none((flags.shape[0], 1), dtype=bool)])
    padded = sp.csr_array(padded) if sp.issparse(flags) else padded
    return padded[:, [position.get(label, len(labels)) for label in codes]]


_CURE = 'With unknown_ads="ignore", new ads are left out, and ads without a column are unavailable.'


def _read(available: Any, known: Collection[Any]) -> _Table | _Collections:
    """Tell the forms of `available` apart; `known` are the labels known so far."""
    if sp.issparse(available):
        flags = sp.csr_array(available)
        flags = sp.csr_array(
            (_flags(flags.data), flags.indices, flags.indptr), flags.shape, copy=True
        )
        flags.eliminate_zeros()
        return _Table(flags, None)
    if hasattr(available, "columns") and not isinstance(available, type):
        return _Table(_flags(available.to_numpy()), list(available.columns))
    check_not_masked(available, "available")
    n_dimensions = getattr(available, "ndim", 1)
    if n_dimensions == 2:
        return _read_array(np.asarray(available), known)
    single = isinstance(available, str | bytes | type | Mapping)
    if single or n_dimensions != 1 or not isinstance(available, Iterable):
        shown = f"{type(available).__name__} of shape {np.shape(available)}"
        raise ValueError(
            "available must be a boolean table with one column per arm, one tuple of arm labels "
            f"per row, or one list of labels for all rows, got "
            f"{repr(available) if n_dimensions == 1 else shown}."
        )
    entries = available.tolist() if hasattr(available, "tolist") else list(available)
    if not entries:
        return _Collections([], for_all=False)
    if not _is_collection(entries[0]) or _are_tuple_labels(entries, known):
        return _Collections([_one_for_all(entries, known)], for_all=True)
    return _read_rows(entries, known)


def _read_rows(rows: list[Any], known: Collection[Any]) -> _Table | _Collections:
    """Collections per row: of flags if they are booleans, unless booleans are labels."""
    first = rows[0]
    flags = isinstance(first, Sequence | np.ndarray) and len(first) and all(map(_is_flag, first))
    if not flags or any(isinstance(label, bool) for label in known):
        return _Collections(rows, for_all=False)
    for k, row in enumerate(rows):
        if not _is_collection(row) or len(row) != len(first) or not all(map(_is_flag, row)):
            raise ValueError(
                f"available: row 0 has {len(first)} booleans, but row {k} is {row!r}: pass a "
                "boolean table with one column per arm, or one tuple of arm labels per row."
            )
    return _Table(np.array([list(row) for row in rows], dtype=bool), None)


def _read_array(array: np.ndarray, known: Collection[Any]) -> _Table | _Collections:
    """A 2D array without names: flags if boolean, else labels."""
    if array.dtype == bool:
        return _Table(array, None)
    if array.dtype.kind not in "OUSiuf":
        raise ValueError(
            f"available has one column per arm and must be boolean, its type is {array.dtype}; or "
            "pass one tuple of arm labels per row."
        )
    values = array.ravel()
    if array.dtype == object and any(map(_is_flag, values)):
        return _Table(_flags(array), None)
    if array.dtype.kind in "iuf":
        if np.isin(values, (0, 1)).all():
            # three numbers from {0, 1} are not three labels
            if array.shape[1] < 3 and (0 in known or 1 in known):
                raise ValueError(
                    "available holds only the numbers 0 and 1, which could be flags or labels of "
                    "arms: pass available.astype(bool), or one tuple of arm labels per row."
                )
            return _Table(array.astype(bool), None)
        distinct = {value: value in known for value in np.unique(values).tolist()}
        unknown = [k for k, value in enumerate(values.tolist()) if not distinct.get(value)]
        if unknown:
            unknown = [k for k in unknown if values[k] not in (0, 1)] or unknown
            raise ValueError(
                f"available must be True or False everywhere, got {values[unknown[0]]} in row "
                f"{unknown[0] // array.shape[1]}; or pass one tuple of arm labels per row."
            )
    return _Collections(array.tolist(), for_all=False)


def _flags(values: np.ndarray) -> np.ndarray:
    """Booleans, from booleans or the numbers 0 and 1."""
    if values.dtype == bool:
        return values
    if values.dtype.kind in "iuf":
        wrong = ~np.isin(values, (0, 1))
    else:
        wrong = np.array([not _is_number_flag(value) for value in values.ravel()], dtype=bool)
        wrong = wrong.reshape(values.shape)
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        where = f" in row {place[0]}" if values.ndim == 2 else ""
        raise ValueError(
            f"available must be True or False everywhere, got {values[place]}{where}; or pass one "
            "tuple of arm labels per row."
        )
    return values.astype(bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_number_flag(value: Any) -> bool:
    return _is_flag(value) or (isinstance(value, int | float | np.number) and value in (0, 1))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _are_tuple_labels(entries: list[Any], known: Collection[Any]) -> bool:
    """Whether the entries are labels that are tuples, rather than tuples of labels."""
    if not (isinstance(entries[0], tuple) and any(isinstance(label, tuple) for label in known)):
        return False
    try:
        if not all(entry in known for entry in entries):
            return False
        nested = all(label in known for entry in entries for label in entry)
    except TypeError:  # not hashable
        return False
    if nested:
        raise ValueError(
            f"available: {first_few(entries)} are labels of arms, and so are their parts: pass one "
            "tuple of labels per row."
        )
    return True


def _one_for_all(labels: list[Any], known: Collection[Any]) -> list[Any]:
    """Distinct labels of the arms available in all rows."""
    if all(map(_is_flag, labels)) and not any(isinstance(label, bool) for label in known):
        raise ValueError(
            "available holds one boolean per row or arm: pass a boolean table with a row per row "
            "of X and a column per arm, or the labels of the available arms."
        )
    for k, label in enumerate(labels):
        if _is_collection(label) and not isinstance(label, tuple):
            raise ValueError(
                f"available: entry {k} is {label!r}, but entry 0 is the label {labels[0]!r}: pass "
                "one tuple of labels per row, or one list of labels for all rows."
            )
    try:
        distinct = set(labels)
    except TypeError as error:
        raise TypeError(f"available: arm labels must be hashable ({error}).") from error
    if len(distinct) < len(labels):
        twice = next(label for k, label in enumerate(labels) if label in labels[:k])
        raise ValueError(
            f"available names {twice!r} twice: to make the same arms available in all rows, name "
            "each once; for arms per row, pass one tuple of labels per row, (label,) for one arm."
        )
    return labels


def _from_table(flags: Any, columns: list[Any], n_rows: int, codes: Codes) -> Pools:
    """Sets from flags with one column per arm."""
    matrix = flags.toarray() if sp.issparse(flags) else flags
    if matrix.shape != (n_rows, len(columns)):
        raise ValueError(
            f"available has shape {matrix.shape}, expected {(n_rows, len(columns))}: one row per "
            f"event and one column per arm, {first_few(columns)}. Pass a DataFrame to name other "
            "columns."
        )
    if not matrix.size:
        raise ValueError(f"available has shape {matrix.shape}: it names no arm.")
    if not matrix.any(axis=1).all():
        raise ValueError(f"available: row {int(np.argmin(matrix.any(axis=1)))} has no arm at all.")
    numbers = np.array([codes.setdefault(label, len(codes)) for label in columns], dtype=np.int32)
    order = np.argsort(numbers, kind="stable")
    of_event = _number_rows(np.packbits(matrix, axis=1))
    sets = matrix[_first_of_each(of_event)][:, order]
    which = np.nonzero(sets)[1]
    start = np.concatenate([[0], np.cumsum(sets.sum(axis=1))])
    return Pools(of_event, start, numbers[order][which])


def _from_collections(read: _Collections, n_rows: int, codes: Codes, unknown: Unknown) -> Pools:
    """Sets from collections of labels."""
    rows = read.rows
    if not read.for_all and len(rows) != n_rows:
        raise ValueError(
            f"available has {len(rows)} entries for {n_rows} rows: pass one tuple of arm labels "
            "per row, one list of labels for all rows, or a boolean array with one column per arm."
        )
    # Logs mostly repeat one object, or equal ones: read each object once.
    objects = _number_objects(rows)
    known = _from_known_tuples(rows, objects, n_rows, codes) if not read.for_all else None
    if known is not None:
        return known
    seen: dict[Any, int] = {}
    first = _first_of_each(objects)
    of_object = np.empty(len(first), dtype=np.int64)
    sets: list[list[int]] = []
    for k, row in enumerate(first):
        pool = _checked(rows[row], row)
        try:
            of_object[k] = seen.setdefault(pool, len(seen))
        except TypeError as error:
            raise TypeError(f"available: arm labels must be hashable ({error}).") from error
        if len(sets) < len(seen):
            sets.append(_numbers(pool, int(row), codes, unknown))
    start = np.concatenate([[0], np.cumsum([len(numbers) for numbers in sets])]).astype(np.int64)
    arms = np.concatenate(sets) if sets else np.empty(0)
    of_event = of_object[objects].astype(np.int32)
    if read.for_all:
        of_event = np.zeros(n_rows, dtype=np.int32)
    return Pools(of_event, start, arms.astype(np.int32))


def _one_known_tuple(available: Any, codes: Codes) -> Pools | None:
    """The set of one row, read at once if it is a tuple of known labels, as in service."""
    if type(available) is not list or len(available) != 1:
        return None
    pool = available[0]
    if type(pool) is not tuple or not pool or _is_flag(pool[0]):
        return None
    try:
        arms = sorted({codes[label] for label in pool})
        if len(arms) < len(pool) or pool in codes:
            return None
    except (KeyError, TypeError):
        return None
    start = np.array([0, len(arms)], dtype=np.int64)
    return Pools(np.zeros(1, dtype=np.int32), start, np.array(arms, dtype=np.int32))


def _from_known_tuples(
    rows: list[Any], objects: np.ndarray, n_rows: int, codes: Codes
) -> Pools | None:
    """Sets from tuples of known labels, each named once per tuple; None if they are not such."""
    first = [rows[row] for row in _first_of_each(objects).tolist()]
    if any(type(pool) is not tuple for pool in first):
        return None
    seen: dict[tuple[Any, ...], int] = {}
    try:
        of_object = np.array([seen.setdefault(pool, len(seen)) for pool in first], dtype=np.int32)
        tuples = list(seen)
        arms = np.array([codes[label] for pool in tuples for label in pool], dtype=np.int64)
    except (KeyError, TypeError):
        return None
    sizes = np.fromiter(map(len, tuples), dtype=np.int64, count=len(tuples))
    start = np.concatenate([[0], np.cumsum(sizes)])
    held = np.sort(np.repeat(np.arange(len(sizes)), sizes) * len(codes) + arms)
    if (held[1:] == held[:-1]).any():
        return None
    return Pools(of_object[objects], start, (held % max(len(codes), 1)).astype(np.int32))


def _checked(pool: Any, row: int) -> tuple[Any, ...]:
    """The labels of a row as a tuple."""
    if not _is_collection(pool):
        raise ValueError(
            f"available: row {row} is {pool!r}, expected a tuple of arm labels "
            "(of one label: (label,))."
        )
    return tuple(pool)


def _numbers(pool: tuple[Any, ...], row: int, codes: Codes, unknown: Unknown) -> list[int]:
    """Ascending numbers of the labels of a row."""
    known = [label for label in pool if label in codes]
    if len(known) < len(pool):
        new = plain_labels([label for label in pool if label not in codes])
        missing = [label for label in new if label is None or label is pd.NA or label != label]
        if missing:
            raise ValueError(
                f"available: row {row} has {missing[0]!r} among its labels: leave it out."
            )
        if unknown == "error":
            raise ValueError(
                f"available: row {row} names unknown ads: {first_few(new)}; the known ones are "
                f'{first_few(codes)}. With unknown_ads="ignore", they are left out.'
            )
        if unknown == "add":
            for label in new:
                codes.setdefault(label, len(codes))
            known = list(pool)
    numbers = sorted({codes[label] for label in known})
    if len(numbers) < len(known) and all(map(_is_number_flag, pool)):
        raise ValueError(
            f"available: row {row} is {pool!r}, labels of which some occur twice: for flags, pass "
            "True and False."
        )
    return numbers


def _number_objects(rows: list[Any]) -> np.ndarray:
    """Number the distinct objects in order of appearance."""
    if len(rows) < 100:  # pandas has a fixed cost, and policies in service choose one row at a time
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(id(row), len(numbers)) for row in rows], dtype=np.int64)
    return pd.factorize(np.fromiter(map(id, rows), dtype=np.int64, count=len(rows)))[0]


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
