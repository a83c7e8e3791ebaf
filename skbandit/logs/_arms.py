"""Arms: their labels, which may be of any hashable kind, and which of them are available.

`available` says which arms may be chosen in each row, for policies and selectors alike. Three forms
have one meaning: a boolean table with one column per arm, one collection of labels per row, and one
collection of labels for all rows. `align_rows` matches its rows with those of X; `read_pools`
returns sets of arm numbers, to which new labels are added; `read_mask` returns a mask over given
labels.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from skbandit.utils._validation import check_not_masked, first_few, plain, same_columns, warn

# Arm label -> arm number. Reading data appends new labels in order of appearance.
Codes = dict[Hashable, int]

# Labels that are looked up one by one.
_FEW_LABELS = 20

# Treatment of labels that are not known: add them, raise an error, or leave them out.
Unknown = Literal["add", "error", "ignore"]

# The labels of each row, or those of all rows.
_Rows = list[Any] | tuple[Any, ...]

_CURE_OF_TABLES = "pass a column for each action of the fit, and no others."

POOLS_UNKNOWN = (
    "some rows of the fit could not get every action, and it is not known which rows can here: "
    "pass {}=, labels per row or a boolean table. One of True says that every row can get every "
    "action."
)
"""Warning about rows without pools, if those of the fit had some."""

_CURE = (
    'pass a column for each ad and no others; selectors with unknown_ads="ignore" leave new ads '
    "out, and take ads without a column as unavailable."
)


def label_array(labels: Iterable[Any]) -> np.ndarray:
    """Labels as an array: bool, int64 or float64 if all are of that type, else object.

    Integers beyond int64, such as hashes of 64 bits, stay as they are: NumPy would turn them into
    floats, of which one may stand for several.
    """
    labels = list(labels)
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if labels and all(type(label) is kind for label in labels):
            with suppress(OverflowError):
                return np.array(labels, dtype=dtype)
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
    if isinstance(label, date):
        return 3, type(label).__name__, label.isoformat()
    return 3, type(label).__name__, repr(label)


def ascending(labels: Iterable[Any]) -> list[Any] | None:
    """Different labels in ascending order; None if they have none, as numbers and text."""
    try:
        ordered = sorted(labels)
        total = all(label < other for label, other in pairwise(ordered))
    except TypeError:
        return None
    return ordered if total else None


def code_labels(labels: Any, codes: Codes, name: str = "action") -> np.ndarray:
    """Numbers of labels of shape (n,); new labels are appended to `codes`, as Python scalars."""
    check_not_masked(labels, name)
    several = isinstance(labels, Iterable) or hasattr(labels, "__array__")
    if isinstance(labels, str | bytes) or getattr(labels, "ndim", 1) == 0 or not several:
        raise TypeError(
            f"{name} must have one value per row, got {labels!r}: write [{labels!r}] for one row."
        )
    if isinstance(labels, pd.Series | np.ndarray):
        values = labels
    else:
        is_table = hasattr(labels, "to_numpy")
        values = labels.to_numpy() if is_table else label_array(plain_labels(labels))
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1D with one arm label per row, got shape {values.shape}.")
    few = _few_plain(values)
    if few is not None:
        return np.array([codes.setdefault(label, len(codes)) for label in few], dtype=np.int32)
    try:
        places, distinct = pd.factorize(values)
    except TypeError as error:
        raise TypeError(f"{name}: arm labels must be hashable ({error}).") from error
    if (places < 0).any():
        raise ValueError(f"{name} is missing on row {np.flatnonzero(places < 0)[0]}.")
    numbers = [codes.setdefault(label, len(codes)) for label in plain_labels(distinct)]
    return np.array(numbers, dtype=np.int32)[places]


def _few_plain(values: Any) -> list[Any] | None:
    """Return a few integers, booleans or strings as Python scalars, else None.

    They cannot be missing, and pandas has a fixed cost, which policies in service pay per event.
    """
    if len(values) > _FEW_LABELS:
        return None
    array = values.to_numpy() if isinstance(values, pd.Series) else values
    are_plain = array.dtype == object and all(type(label) in (str, int, bool) for label in array)
    return array.tolist() if are_plain or array.dtype.kind in "iubU" else None


def renumbered(numbers: np.ndarray, before: list[Any], codes: Codes) -> np.ndarray:
    """Numbers of arms, -1 for none, after `codes` has changed from those of the labels before."""
    if list(codes)[: len(before)] == before:
        return numbers
    now = np.array([*(codes[label] for label in before), -1], dtype=numbers.dtype)
    return now[numbers]


def plain_labels(labels: Iterable[Any]) -> list[Any]:
    """Labels as Python scalars; NumPy's times become pandas', which equal those of datetime."""
    times = {np.datetime64: pd.Timestamp, np.timedelta64: pd.Timedelta}
    return [
        times.get(type(label), np.generic.item)(label) if isinstance(label, np.generic) else label
        for label in labels
    ]


@lru_cache
def _all_arms(n_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `start` and `arms` of one set of all arms."""
    return np.array([0, n_arms], np.int64), np.arange(n_arms, dtype=np.int64)


class Pools(NamedTuple):
    """Sets of available arms; a set shared by many events is stored once.

    Set k holds the numbers ``arms[start[k]:start[k + 1]]``, ascending. Compiled code takes it as it
    is.
    """

    of_event: np.ndarray  # (n_events,), index of the event's set
    start: np.ndarray  # (n_sets + 1,)
    arms: np.ndarray

    @classmethod
    def of_all(cls, n_events: int, n_arms: int) -> Pools:
        """Return one set of all arms, for every event."""
        return cls(np.zeros(n_events, dtype=np.int32), *_all_arms(n_arms))

    @property
    def sizes(self) -> np.ndarray:
        """Number of available arms per event."""
        return np.diff(self.start)[self.of_event]

    @property
    def set_of_arm(self) -> np.ndarray:
        """Index of the set of each entry of `arms`."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def contains(self, action: np.ndarray) -> np.ndarray:
        """Tell whether each event's action is in its set."""
        n_arms = int(max(self.arms.max(initial=0), action.max(initial=0))) + 1
        held = self.set_of_arm * n_arms + self.arms
        return np.isin(self.of_event.astype(np.int64) * n_arms + action, held)

    def labels(self, arms: np.ndarray) -> list[tuple[Any, ...]]:
        """Return the labels of each set, given those of all arms."""
        return [tuple(pool.tolist()) for pool in np.split(arms[self.arms], self.start[1:-1])]

    def take(self, rows: np.ndarray | slice) -> Pools:
        """Return sets of the given events."""
        return Pools(self.of_event[rows], self.start, self.arms)

    def renumbered(self, number: np.ndarray) -> Pools:
        """Return the sets with `number[k]` for arm k."""
        arms = number[self.arms]
        return Pools(self.of_event, self.start, arms[np.lexsort((arms, self.set_of_arm))])

    def table(self, n_arms: int) -> sp.csr_array:
        """Return flags of shape (n_sets, n_arms)."""
        flags = np.ones(len(self.arms), dtype=bool)
        return sp.csr_array((flags, self.arms, self.start), (len(self.start) - 1, n_arms))

    def mask(self, n_arms: int) -> np.ndarray:
        """Mask of shape (n_events, n_arms)."""
        return self.table(n_arms).toarray()[self.of_event]


@dataclass(frozen=True)
class _Table:
    """Flags with one column per arm."""

    flags: Any  # ndarray or csr_array of bool
    labels: list[Any] | None = None  # of the columns; None if they have no names


def in_label_order(codes: Codes, pools: Pools, n_known: int = 0) -> tuple[Codes, Pools]:
    """Sort the numbers of arms beyond the first `n_known` by their labels.

    Ties between arms, and draws from their probabilities, then depend on the sets alone.
    """
    labels = list(codes)
    order = sorted(labels[n_known:], key=label_order)
    if order == labels[n_known:]:
        return codes, pools
    ordered = {label: k for k, label in enumerate([*labels[:n_known], *order])}
    number = np.array([ordered[label] for label in labels], dtype=pools.arms.dtype)
    return ordered, pools.renumbered(number)


def warn_without_pools(policy: Any, available: Any) -> None:
    """Warn of rows that may get every action, if a policy was fitted to rows that could not."""
    if available is None and getattr(policy, "_has_pools", False):
        warn(f"{POOLS_UNKNOWN.format('available')} All are taken as available.", UserWarning)


def align_rows(available: Any, X: Any) -> Any:
    """Put the rows of a pandas `available` in the order of the rows of X.

    Rows are matched by label if X is also a pandas object and `available` has the labels of its
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
        warn(
            f"available and X have different row labels (row {row} is labeled {labels[row]!r} and "
            f"{wanted[row]!r}), so their rows are matched by position: pass "
            "available.set_axis(X.index) if they are in the same order.",
            UserWarning,
        )
    return available


def read_pools(
    available: Any,
    n_rows: int,
    codes: Codes,
    columns: Sequence[Any] | None = None,
    per_row: bool = False,
    n_known: int | None = None,
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
        Indices of the arms known so far.
    columns : sequence of labels, default=None
        Arms of the columns of an unnamed table; None is all of `codes`. If their labels have an
        order, and it is another one, the table is refused: it may have been made in either.
    per_row : bool, default=False
        Whether `available` is a column of a log, and so has an entry per row.
    n_known : int, default=None
        If not None, an unnamed table numbers all but the first `n_known` of `codes` anew, in the
        order of their labels: nobody can arrange columns by the first row of each arm.

    Returns
    -------
    Pools
        No set is empty.
    """
    if n_rows == 1 and (pools := one_known_tuple(available, codes)):
        return pools
    read = list(available) if per_row else _read_available(available, codes)
    if isinstance(read, _Table):
        labels = read.labels
        if labels is None and columns is None:
            labels = list(codes)
            if n_known is not None:
                labels[n_known:] = sorted(labels[n_known:], key=label_order)
                codes.clear()
                codes.update({label: k for k, label in enumerate(labels)})
        elif labels is None:
            labels = list(columns or ())
        if read.labels is None and ascending(labels) not in (None, labels):
            raise ValueError(
                f"available is a table without names, and the arms, {first_few(labels)}, are not "
                "in the order of their labels, so that it could be read in two ways: pass a "
                "DataFrame with one column per arm, named by its label."
            )
        return _from_table(read.flags, labels, n_rows, codes)
    pools = _from_rows(read, n_rows, codes, "add")
    empty = np.flatnonzero(pools.sizes == 0)
    if len(empty):
        raise ValueError(f"available: row {empty[0]} has no arm at all.")
    return pools


def read_mask(
    available: Any,
    labels: np.ndarray,
    n_rows: int,
    unknown: Literal["error", "ignore"] | None = "error",
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
    unknown : {"error", "ignore"} or None, default="error"
        The parameter `unknown_ads`; None is for policies, which lack it and raise errors. Whether a
        named table must have exactly the columns `labels`, and collections only these
        labels; or other ads are left out, and ads without a column are not available.

    Returns
    -------
    ndarray or csr_array of bool, shape (n_rows, n_ads), or None
        Rows may be empty.
    """
    if available is None:
        return None
    ads = plain_labels(labels)
    codes: Codes = {label: k for k, label in enumerate(ads)}
    read = _read_available(available, codes)
    if not isinstance(read, _Table):
        pools = _from_rows(read, n_rows, codes, unknown)
        return pools.table(len(ads))[pools.of_event]
    flags = read.flags
    if read.labels is not None:
        flags = _columns_in_order(flags, read.labels, codes, unknown)
    _check_shape(flags, n_rows, ads)
    return flags


def _columns_in_order(
    flags: np.ndarray, labels: list[Any], codes: Codes, unknown: Literal["error", "ignore"] | None
) -> np.ndarray:
    """Return flags with their columns in the order of `codes`."""
    cure = _CURE_OF_TABLES if unknown is None else _CURE
    if unknown != "ignore":
        return flags[:, same_columns(codes, labels, "available", cure)]
    every = same_columns(dict.fromkeys(labels), labels, "available", cure)
    places = [k for k in every if labels[k] in codes]
    ordered = np.zeros((len(flags), len(codes)), dtype=bool)
    ordered[:, [codes[labels[k]] for k in places]] = flags[:, places]
    return ordered


def _read_available(available: Any, arms: Collection[Any]) -> _Table | _Rows:
    """Return a table of flags, or labels; `arms` are the labels known so far."""
    if sp.issparse(available):
        flags = sp.csr_array(available, copy=True)
        flags.data = _flags(flags.data)
        flags.eliminate_zeros()
        return _Table(flags)
    if hasattr(available, "columns") and not isinstance(available, type):
        return _Table(_flags(available.to_numpy()), list(available.columns))
    check_not_masked(available, "available")
    n_dimensions = getattr(available, "ndim", 1)
    if n_dimensions == 2:
        table = np.asarray(available)
        entirely_labels = table.dtype == object and not any(map(_is_flag, table.flat))
        if entirely_labels or table.dtype.kind in "USmM":
            return [plain_labels(row) for row in table]
        return _Table(_flags(table))
    if n_dimensions != 1 or isinstance(available, type) or not _is_collection(available):
        shape = f"{type(available).__name__} of shape {np.shape(available)}"
        raise _refusal(repr(available) if n_dimensions == 1 else shape)
    entries = plain_labels(available)
    if entries and (not _is_collection(entries[0]) or _are_tuple_labels(entries, arms)):
        return tuple(_one_for_all(entries, arms))
    first = entries[0] if entries else ()
    unknown = not arms and isinstance(first, tuple)  # no table has columns for them
    if unknown or not _are_flags(first) or any(isinstance(label, bool) for label in arms):
        return entries
    for k, row in enumerate(entries):
        if not _are_flags(row) or len(row) != len(first):
            raise _refusal(f"{len(first)} booleans in row 0, and {row!r} in row {k}")
    return _Table(np.array([list(row) for row in entries], dtype=bool))


def _refusal(what: str) -> ValueError:
    """Return the error of everything that has none of the three forms."""
    return ValueError(
        "available must be a boolean table with one column per arm, one tuple of arm labels per "
        f"row, (label,) for one arm, or one list of labels for all rows, got {what}."
    )


def _flags(values: np.ndarray) -> np.ndarray:
    """Booleans, which a table of several types, or with missing values, holds as objects."""
    if values.dtype != bool:
        for k, value in enumerate(values.flat):
            if not _is_flag(value):
                place = f" in row {k // values.shape[1]}" if values.ndim == 2 else ""
                raise _refusal(f"{value}{place}")
    return values.astype(bool, copy=False)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _are_flags(row: Any) -> bool:
    """Tell whether a row is a sequence of booleans."""
    return isinstance(row, Sequence | np.ndarray) and len(row) > 0 and all(map(_is_flag, row))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _are_tuple_labels(entries: list[Any], arms: Collection[Any]) -> bool:
    """Tell whether the entries are labels that are tuples, rather than tuples of labels."""
    try:
        if not all(entry in arms for entry in entries):
            return False
        nested = all(label in arms for entry in entries for label in entry)
    except TypeError:  # not hashable
        return False
    if nested:
        raise ValueError(
            f"available: {first_few(entries)} are labels of arms, and so are their parts: pass one "
            "tuple of labels per row."
        )
    return True


def _one_for_all(labels: list[Any], arms: Collection[Any]) -> list[Any]:
    """Distinct labels of the arms available in all rows."""
    if all(map(_is_flag, labels)) and not any(isinstance(label, bool) for label in arms):
        raise _refusal("one boolean per row or arm")
    for k, label in enumerate(labels):
        if _is_collection(label) and not isinstance(label, tuple):
            raise _refusal(f"{label!r} as entry {k}, but the label {labels[0]!r} as entry 0")
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


def _check_shape(flags: Any, n_rows: int, columns: list[Any]) -> None:
    """Require a row of flags for each of X, and a column for each arm."""
    if flags.shape != (n_rows, len(columns)):
        raise ValueError(
            f"available has shape {flags.shape}, expected {(n_rows, len(columns))}: a row for "
            f"each of X and a column for each of {first_few(columns)}. Pass a DataFrame to name "
            "other columns, or the labels of the available ones."
        )


def _from_table(flags: Any, columns: list[Any], n_rows: int, codes: Codes) -> Pools:
    """Return sets from flags with one column per arm."""
    matrix = flags.toarray() if sp.issparse(flags) else flags
    _check_shape(matrix, n_rows, columns)
    if not matrix.size:
        raise ValueError(f"available has shape {matrix.shape}: it names no arm.")
    if not matrix.any(axis=1).all():
        raise ValueError(f"available: row {int(np.argmin(matrix.any(axis=1)))} has no arm at all.")
    numbers = np.array([codes.setdefault(label, len(codes)) for label in columns], dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    packed = np.ascontiguousarray(np.packbits(matrix, axis=1))  # of any order of memory
    of_event = pd.factorize(packed.view(f"S{packed.shape[1]}").ravel())[0].astype(np.int32)
    sets = matrix[np.unique(of_event, return_index=True)[1]][:, order]
    which = np.nonzero(sets)[1]
    start = np.concatenate([[0], np.cumsum(sets.sum(axis=1))])
    return Pools(of_event, start, numbers[order][which])


def _from_rows(rows: _Rows, n_rows: int, codes: Codes, unknown: Unknown | None) -> Pools:
    """Return sets from the labels of each row, or of all rows."""
    for_all = isinstance(rows, tuple)
    rows = [rows] if isinstance(rows, tuple) else rows
    if not for_all and len(rows) != n_rows:
        raise ValueError(
            f"available has {len(rows)} entries for {n_rows} rows: pass one tuple of arm labels "
            "per row, one list of labels for all rows, or a boolean array with one column per arm."
        )
    # Logs mostly repeat one object, or equal ones: read each object once.
    place: dict[int, int] = {}
    objects = np.array([place.setdefault(id(row), len(place)) for row in rows], dtype=np.int64)
    first = np.unique(objects, return_index=True)[1].tolist()
    pools = [rows[row] for row in first]
    if any(type(pool) is not tuple for pool in pools):
        strange = next((row for row in first if not _is_collection(rows[row])), None)
        if strange is not None:
            raise _refusal(f"{rows[strange]!r} in row {strange}")
        pools = [tuple(pool) for pool in pools]
    seen: dict[tuple[Any, ...], int] = {}
    try:
        of_object = np.array([seen.setdefault(pool, len(seen)) for pool in pools], dtype=np.int32)
        sets = list(seen)
        labels = [label for pool in sets for label in pool]
        new: list[Any] = []
        if not set(labels) <= codes.keys():
            sets = [tuple(plain_labels(pool)) for pool in sets]
            labels = [label for pool in sets for label in pool]
            new = [label for label in dict.fromkeys(labels) if label not in codes]
    except TypeError as error:
        raise TypeError(f"available: arm labels must be hashable ({error}).") from error
    of_event = np.zeros(n_rows, dtype=np.int32) if for_all else of_object[objects]
    if new:
        _check_new(new, sets, of_event, codes, unknown)
    for label in new if unknown == "add" else ():
        codes.setdefault(label, len(codes))
    numbers = [codes.get(label, -1) for label in labels] if new else [codes[k] for k in labels]
    n_arms = max(len(codes), 1)
    of_label = np.repeat(np.arange(len(sets)) * n_arms, [len(pool) for pool in sets])
    held = of_label + np.array(numbers, dtype=np.int64)
    held = np.sort(held[np.array(numbers) >= 0] if new else held)
    twice = held[1:] == held[:-1]
    if twice.any():
        for k in (held[1:][twice] // n_arms).tolist():
            if set(sets[k]) <= {0, 1}:  # as if for flags
                raise _refusal(f"{sets[k]!r} in row {np.argmax(of_event == k)}, with a label twice")
        held = np.unique(held)
    start = np.searchsorted(held, np.arange(len(sets) + 1) * n_arms)
    return Pools(of_event, start, held % n_arms)


def _check_new(
    new: list[Any],
    sets: list[tuple[Any, ...]],
    of_event: np.ndarray,
    codes: Codes,
    unknown: Unknown | None,
) -> None:
    """Refuse missing labels, and unknown ones if they are an error."""
    missing = [label for label in new if plain(label) is None]
    if not missing and unknown in ("add", "ignore"):
        return
    wrong = missing or new
    pool = next(k for k, labels in enumerate(sets) if any(label is wrong[0] for label in labels))
    row = np.argmax(of_event == pool)
    if missing:
        raise ValueError(f"available: row {row} has {wrong[0]!r} among its labels: leave it out.")
    wrong = [label for label in sets[pool] if label not in codes]
    arms, cure = "ads", 'Leave them out, as selectors with unknown_ads="ignore" do.'
    if unknown is None:
        arms, cure = "actions", "Leave them out, or fit with events of them."
    raise ValueError(
        f"available: row {row} names unknown {arms}: {first_few(wrong)}; the known ones are "
        f"{first_few(codes)}. {cure}"
    )


def one_known_tuple(available: Any, codes: Codes) -> Pools | None:
    """Return the set of one row, read at once if it is a tuple of known labels, as in service."""
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
    return Pools(np.zeros(1, dtype=np.int32), start, np.array(arms, dtype=np.int64))
