"""Column lookup and row selection for `where`, `by` and `weight`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property, partial
from operator import eq
from typing import Any

import numpy as np
import pandas as pd

from skbandit.rates._kinds import Atom, Member, On, Where
from skbandit.rates._labels import encode, encode_classes, positive_is_known
from skbandit.rates._query import Query, QueryError, find_among
from skbandit.utils._exact import exact_table
from skbandit.utils._validation import dtype_names, first_few, shortened, warn_if_wrapped

_ROUTED = (
    "Behind a Pipeline, whose transformers drop columns or their names, pass <step>__attributes=, "
    "or attributes= with sklearn.set_config(enable_metadata_routing=True)"
)

MOST_SHOWN = 10
"""Values of a column that an error message lists."""

MANY_GROUPS = 50
"""Groups above which training warns, and floats of a column above which they are no groups."""


class UnknownColumnError(ValueError):
    """A rate refers to a column that is not there."""


@dataclass(frozen=True)
class Columns:
    """Named columns of one dataset: those of `attributes`, then those of X if a DataFrame."""

    attributes: pd.DataFrame
    X: pd.DataFrame
    _masks: dict[Any, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, attributes: Any, X: Any, n_rows: int, name: str = "attributes") -> Columns:
        """Validate user input; an `X` that is not a DataFrame has no named columns."""
        return cls(
            _frame(attributes, n_rows, name), _frame(X if _is_frame(X) else None, n_rows, "X")
        )

    def take(self, rows: np.ndarray) -> Columns:
        """Return the columns in some of the rows."""
        index = pd.RangeIndex(len(rows))
        attributes, X = (
            frame.iloc[rows].set_axis(index) if frame.shape[1] else pd.DataFrame(index=index)
            for frame in (self.attributes, self.X)
        )
        return Columns(attributes, X)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All columns side by side; those of `attributes` take precedence over those of X."""
        if not self.attributes.shape[1]:
            return self.X
        others = self.X.drop(columns=self.attributes.columns, errors="ignore")
        return pd.concat([self.attributes, others], axis=1) if others.shape[1] else self.attributes

    def get(self, name: str, context: str) -> pd.Series:
        """Return one column, or raise an error that lists the known columns."""
        for frame in (self.attributes, self.X):
            if name in frame.columns:
                column = frame[name]
                if isinstance(column, pd.Series):
                    return column
                raise ValueError(f"{context}: {column.shape[1]} columns are named {name!r}.")
        raise UnknownColumnError(f"{context}: unknown column {name!r}; {self._known()}.")

    def _known(self) -> str:
        names = list(self.frame.columns)
        if not names:
            return f"no columns are known: pass attributes= (or X) as a DataFrame. {_ROUTED}"
        more = f", and {len(names) - 20} more" if len(names) > 20 else ""
        listing = f"known columns are {', '.join(repr(n) for n in names[:20])}{more}"
        if self.attributes.shape[1]:
            return listing
        return f"{listing}. Pass those that X lacks as attributes=, a DataFrame. {_ROUTED}"

    def several(self, names: Sequence[str], context: str) -> pd.DataFrame:
        """Return some columns, with the errors of `get`."""
        return pd.DataFrame({name: self.get(name, context) for name in names})

    def member(self, group: Member, context: str) -> np.ndarray:
        """Boolean mask of the rows of a group."""
        masks = [
            self._once((name, type(value), value), partial(eq, self.get(name, context), value))
            for name, value in zip(group.columns, group.values, strict=True)
        ]
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def _once(self, key: Any, compute: Callable[[], pd.Series]) -> np.ndarray:
        """Return cached mask: group constraints request the same one repeatedly."""
        if key not in self._masks:
            mask = compute().to_numpy(dtype=bool, na_value=False)
            mask.flags.writeable = False
            self._masks[key] = mask
        return self._masks[key]

    def mask(self, where: Where, context: str, n_rows: int) -> np.ndarray:
        """Boolean mask of shape (n_rows,) of the rows that `where` selects."""
        context = shortened(context)
        if callable(where):
            return _as_mask(where(self.frame), context, n_rows)
        if isinstance(where, str) and where in self.frame.columns:
            return _as_mask(
                self.get(where, context), f"{context}: column {where!r}", n_rows,
                f"; write {{{where!r}: value}} or a query such as \"{where} == ...\"",
            )  # fmt: skip
        try:
            if isinstance(where, str):
                query = Query.parse(where)
                names = list(query.names.values())
                if unknown := [name for name in names if name not in self.frame.columns]:
                    raise UnknownColumnError(
                        f"{context}: name {unknown[0]!r} is not defined; {self._known()}."
                    )
                return _as_mask(query.evaluate(self.several(names, context)), context, n_rows)
            chosen = np.ones(n_rows, dtype=bool)
            for name, value in (where or {}).items():
                values = value if isinstance(value, list) else [value]
                listed = partial(find_among, self.get(name, context), values)
                chosen &= self._once((name, repr(values)), listed)
            return chosen
        except QueryError as error:
            raise ValueError(f"{context}: {shortened(str(error))}.") from error

    def values_in(self, where: Where, context: str) -> dict[str, list[Any]]:
        """Return the first distinct values of the columns of a condition, for error messages.

        None for the name of a boolean column, or for a function.
        """
        if isinstance(where, str) and where in self.frame.columns:
            return {}
        names = columns_of_condition(where, self.frame.columns) or ()
        first: dict[str, list[Any]] = {}
        for name in names:
            column = self.get(name, context)
            few = pd.unique(column.head(1000).dropna())  # mostly enough, and much faster
            several = few if len(few) > MOST_SHOWN else pd.unique(column.dropna())
            first[name] = several[: MOST_SHOWN + 1].tolist()
        return first

    def local_times(self, where: Where) -> dict[Any, datetime]:
        """Return a time of each column that may be compared with times without an offset."""
        if isinstance(where, str) and (
            where in self.frame.columns or not Query.parse(where).is_local
        ):
            return {}
        names = columns_of_condition(where, self.frame.columns)
        columns = self.several(list(self.frame.columns) if names is None else names, "a condition")
        times: dict[Any, Any] = {
            name: next(iter(column.dropna()), None)
            for name, column in columns.items()
            if not pd.api.types.is_numeric_dtype(column.dtype)
        }
        return {name: time for name, time in times.items() if isinstance(time, datetime)}


def read_by(by: Any) -> tuple[str, ...]:
    """Return the names of the columns of groups, from a parameter `by`: one, or a list of them."""
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"by={by!r} must be the name of an attribute column, or a list of names.")
    if len(set(names)) < len(names):
        raise ValueError(f"by={by!r} names a column twice.")
    return names


def number_groups(columns: Iterable[tuple[Any, Any]], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each of n rows' combination of values, and the first row of each.

    Numbers are in order of appearance; a missing value counts as one like any other.

    Examples
    --------
    >>> frame = pd.DataFrame({"g": ["b", "a", "b", None], "h": [1, 1, 1, 2]})
    >>> number, first = number_groups(frame.items(), 4)
    >>> number.tolist(), first.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    number, size = np.zeros(n, dtype=np.int64), 1
    for name, column in columns:
        try:
            codes, uniques = pd.factorize(column)
        except TypeError as error:
            raise TypeError(
                f"column {name!r}: the values must be hashable to be groups ({error}); make them "
                "strings or tuples."
            ) from error
        several = len(uniques) + 1
        if size > np.iinfo(np.int64).max // several:
            number, joint = pd.factorize(number)
            size = len(joint)
        number, size = number * several + codes + 1, size * several
    number, joint = pd.factorize(number)
    first = np.empty(len(joint), dtype=np.int64)
    first[number[::-1]] = np.arange(n)[::-1]  # of equal places, the last assignment holds
    return number, first


def values_at(frame: pd.DataFrame, rows: list[int] | np.ndarray) -> list[tuple[Any, ...]]:
    """Return the values in some rows as plain Python objects, None where they are missing."""
    part = frame.iloc[rows].astype(object)
    return [*map(tuple, part.where(part.notna(), None).to_numpy().tolist())]


def columns_of_condition(where: Where, table_columns: Collection[Any]) -> list[str] | None:
    """Columns that a condition reads, of a table with `table_columns`; None if it is a function."""
    if callable(where):
        return None
    if where is None or isinstance(where, Mapping):
        return list(where or ())
    return [where] if where in table_columns else list(Query.parse(where).names.values())


def _as_mask(values: Any, context: str, n_rows: int, hint: str = "") -> np.ndarray:
    """Convert a boolean Series or array to bool, with False for missing values."""
    column = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values).ravel())
    if len(column) != n_rows:
        raise ValueError(f"{context}: got {len(column)} values for {n_rows} rows{hint}.")
    present = column.dropna()
    if not (
        pd.api.types.is_bool_dtype(column.dtype)
        or all(isinstance(v, bool | np.bool_) for v in present)
    ):
        raise ValueError(
            f"{context} must be boolean, got {column.dtype} such as {present.tolist()[0]!r}{hint}."
        )
    return column.astype("boolean").to_numpy(dtype=bool, na_value=False)


def _is_frame(X: Any) -> bool:
    """Return whether X has named columns, as in pandas and polars."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, Mapping)


def _frame(table: Any, n_rows: int, name: str) -> pd.DataFrame:
    """Convert a table to a pandas DataFrame with a positional index, without copies if possible."""
    if table is None:
        return pd.DataFrame(index=pd.RangeIndex(n_rows))
    if isinstance(table, pd.Series) and table.name is not None:
        table = table.to_frame()
    if hasattr(table, "column_names"):  # pyarrow's Table, whose columns are arrays, not names
        table = exact_table(table)
    if isinstance(table, Mapping):
        single = [column for column, values in table.items() if not np.ndim(values)]
        if single:
            raise ValueError(f"{name}[{single[0]!r}] is a single value: pass one value per row.")
        lengths = {f"{name}[{column!r}]": len(values) for column, values in table.items()}
    elif _is_frame(table):
        lengths = {name: len(table)}
    else:
        raise TypeError(
            f"{name} must be a DataFrame (or a dict of arrays) with one row per sample, "
            f"got {type(table).__name__}."
        )
    for column, length in lengths.items():
        if length != n_rows:
            cure = (
                "Cross-validation slices a DataFrame but not a dict: pass a DataFrame"
                if isinstance(table, Mapping)
                else f"Select the rows of X, as in {name}.loc[X.index]. Rows that a step of a "
                "Pipeline adds have no attributes: resample within ConstrainedThreshold"
            )
            raise ValueError(f"{column} has {length} rows for {n_rows} rows of data. {cure}.")
    if isinstance(table, pd.DataFrame):
        return table.reset_index(drop=True)
    frame = exact_table(table)
    assert isinstance(frame, pd.DataFrame)
    return frame


@dataclass(frozen=True)
class Merged:
    """Merged rows: each stands for several that all rates count alike.

    The weight of such a row is the sum of theirs. A weight column None is 1 in all rows.

    Attributes
    ----------
    n_rows : ndarray of shape (n,)
        Numbers of rows.
    masks : dict
        Outcomes of conditions, by `Atom.condition`.
    values : dict
        `Columns.values_in` of conditions.
    means : dict of ndarray
        Of a column of numbers, weighted by the rows' weights times those of a weight column; by
        both columns.
    effective : dict of ndarray
        Product of the sums of such weights over the sum of their products, by two weight columns:
        Kish's effective number of rows if they are one.
    """

    n_rows: np.ndarray
    masks: Mapping[Any, np.ndarray]
    values: Mapping[Any, dict[str, list[Any]]]
    means: Mapping[tuple[str, str | None], np.ndarray]
    effective: Mapping[tuple[str | None, str | None], np.ndarray]

    def take(self, rows: np.ndarray) -> Merged:
        """Take some of the rows."""
        masks = {key: values[rows] for key, values in self.masks.items()}
        means = {key: values[rows] for key, values in self.means.items()}
        effective = {key: values[rows] for key, values in self.effective.items()}
        return Merged(self.n_rows[rows], masks, self.values, means, effective)


@dataclass(frozen=True)
class Rows:
    """One dataset, row by row.

    Attributes
    ----------
    columns : Columns
        Columns that rates can refer to.
    label : ndarray of int, shape (n,)
        Codes of the classes, of two classes 1 for positive and 0 for negative; -1 is unlabeled.
    weight : ndarray of shape (n,)
        Nonnegative; a row of weight 0 is ignored.
    merged : Merged or None
        If each stands for several; `columns` then has their groups and reference predictions.
    """

    columns: Columns
    label: np.ndarray
    weight: np.ndarray
    merged: Merged | None = None

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray) -> Rows:
        """Take some of the rows."""
        merged = None if self.merged is None else self.merged.take(rows)
        return Rows(self.columns.take(rows), self.label[rows], self.weight[rows], merged)

    def selected(self, atom: Atom) -> np.ndarray:
        """Boolean mask of the rows that the condition of an atom selects."""
        if self.merged is None or atom.where is None:
            return self.columns.mask(atom.where, repr(atom), len(self))
        return self.merged.masks[atom.condition]

    def values_in(self, atom: Atom) -> dict[str, list[Any]]:
        """Return the first values of the columns that the condition of an atom names."""
        if self.merged is None:
            return self.columns.values_in(atom.where, repr(atom))
        return self.merged.values[atom.condition]

    def numbers(self, name: str, context: str, weight: str | None = None) -> np.ndarray:
        """Values of a column of numbers; of merged rows, their means under a weight column."""
        if self.merged is not None:
            return self.merged.means[name, weight]
        column = self.columns.get(name, context)
        try:
            if dtype_names(column)[0].startswith(("date", "time", "duration")):
                raise TypeError("times have no unit")
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{context}: column {name!r} is not numeric, but {column.dtype}."
            ) from error
        warn_if_wrapped(column, numbers, f"column {name!r}")
        return numbers


@dataclass(frozen=True)
class Data:
    """The rows of X and those of X_extra, stacked in this order.

    Attributes
    ----------
    train : Rows
    extra : Rows or None
    pos_label : label or None
        The positive class, of which rates are that name none; None is for labels that tell it.
    labels : sequence of labels
        The classes, in the order of their codes if there are `others` or more than two.
    others : sequence of labels
        Decisions that are no classes.
    closed : bool
        Whether a rate may name these classes and decisions only.
    dependent : ndarray of int, shape (n,), or None
        Rows with the same code are dependent, such as those of one person.
    whole : Data or None
        The data that these are some rows of.
    counted : dict
        What atoms count of merged rows, by `Atom.key`.
    """

    train: Rows
    extra: Rows | None = None
    pos_label: Any = None
    labels: Sequence[Any] = field(default=())
    others: Sequence[Any] = field(default=())
    closed: bool = True
    dependent: np.ndarray | None = None
    whole: Data | None = field(default=None, repr=False, compare=False)
    counted: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def take(self, rows: np.ndarray) -> Data:
        """Take some of the rows of a single dataset."""
        dependent = None if self.dependent is None else pd.factorize(self.dependent[rows])[0]
        return replace(self, train=self.train.take(rows), dependent=dependent, whole=self)

    @property
    def of_two(self) -> bool:
        """True if rows have codes 1, positive, and 0."""
        return len(self.labels) <= 2 and not self.others

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """The classes in the order of their codes; None for an unknown one of two."""
        if not self.of_two:
            return tuple(self.labels)
        positive = 1 if self.pos_label is None else self.pos_label
        others = [label for label in self.labels if label != positive]
        return (others[0] if others else None), positive

    @property
    def decisions(self) -> tuple[Any, ...]:
        """The classes and other decisions in the order of their codes."""
        return (*self.classes, *self.others)

    @property
    def weight(self) -> np.ndarray:
        """Values of all rows."""
        return np.concatenate([rows.weight for rows, _ in self.parts("all")])

    @property
    def label(self) -> np.ndarray:
        """Values of all rows."""
        return np.concatenate([rows.label for rows, _ in self.parts("all")])

    @property
    def n_indicators(self) -> int:
        """Length of the `indicators` of all rows' decisions."""
        return len(self) * (1 if self.of_two else len(self.decisions) - 1)

    def positive(self, atom: Any) -> Any:
        """Return the positive class, which an atom needs."""
        if self.of_two:
            return self.classes[1]
        if self.pos_label is not None:
            return self.pos_label
        if positive_is_known(self.labels):
            return 1
        name, first = atom.kind.name, self.labels[0]
        raise ValueError(
            f"{name}() is the rate of one class, and there are {len(self.labels)}: "
            f"[{first_few(self.labels)}]. Write {name}(of={first!r}), each({name}, of='classes') "
            f"for each, mean({name}, of='classes') for their mean, or choose one with pos_label=."
        )

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Return the codes of labels or stored predictions, -1 where they are missing."""
        if self.of_two:
            return encode(values, self.pos_label, self.labels, name)
        return encode_classes(values, self.decisions, name)

    def __len__(self) -> int:
        return len(self.train) + (0 if self.extra is None else len(self.extra))

    def count(self, inside: np.ndarray) -> int:
        """Return the number of rows of a boolean mask."""
        merged = self.train.merged
        return int(inside.sum() if merged is None else merged.n_rows[np.flatnonzero(inside)].sum())

    def effective(self, first: Atom, second: Atom, rows: np.ndarray) -> np.ndarray:
        """Product of the weights of two atoms over the sum of products that it stands for.

        Of some rows; 1 unless rows are merged.
        """
        merged = self.train.merged
        return np.ones(1) if merged is None else merged.effective[first.weight, second.weight][rows]

    def parts(self, on: On) -> Iterator[tuple[Rows, slice]]:
        """Iterate over the datasets selected by `on`, each with its slice of the stack."""
        n = len(self.train)
        if on in ("train", "all"):
            yield self.train, slice(0, n)
        if on in ("extra", "all") and self.extra is not None:
            yield self.extra, slice(n, len(self))

    def groups(
        self, columns: Sequence[str], ons: set[On], context: str, *, weighted: bool = True
    ) -> list[Member]:
        """Sorted groups: the combinations of values on rows of positive weight, or else on all.

        Ordered categories are in their order. Rows with a missing value are of no group: see
        `without_group`.
        """
        parts = [part for on in sorted(ons) for part in self.parts(on)]
        if not parts:
            raise ValueError(f"{context} is measured on the rows of X_extra: pass X_extra.")
        combinations: dict[tuple[Any, ...], None] = {}
        for rows, _ in parts:
            frame = rows.columns.several(columns, context).dropna()
            frame = frame[rows.weight[frame.index] > 0] if weighted else frame
            _, first = number_groups(frame.items(), len(frame))
            combinations |= dict.fromkeys(values_at(frame, first))
        check_groups(columns, combinations, context)
        orders: list[dict[Any, int]] = []  # of categories that have the same one in all parts
        for name in columns:
            dtypes: list[Any] = [rows.columns.get(name, context).dtype for rows, _ in parts]
            dtype = dtypes[0]
            alike = all(x == dtype for x in dtypes) and isinstance(dtype, pd.CategoricalDtype)
            ordered = dtype.categories.tolist() if alike and dtype.ordered else []
            orders.append({category: place for place, category in enumerate(ordered)})
        places = {
            group: [order.get(value, value) for order, value in zip(orders, group, strict=True)]
            for group in combinations
        }
        try:
            groups = sorted(combinations, key=places.__getitem__)
        except TypeError:  # values of several types
            groups = sorted(
                combinations,
                key=lambda group: [
                    f"{place:09}" if order else str(place)
                    for order, place in zip(orders, places[group], strict=True)
                ],
            )
        return [Member(tuple(columns), group) for group in groups]

    def without_group(self, columns: Sequence[str], ons: set[On], context: str) -> int:
        """Return the number of rows of positive weight in which one of the columns is missing."""
        missing = np.zeros(len(self), dtype=bool)
        for rows, place in (part for on in sorted(ons) for part in self.parts(on)):
            values = rows.columns.several(columns, context)
            missing[place] = values.isna().any(axis=1).to_numpy() & (rows.weight > 0)
        return int(missing.sum())


def check_groups(
    columns: Sequence[str], combinations: Iterable[tuple[Any, ...]], context: str
) -> None:
    """Refuse groups by amounts, and those that are one group to a reader."""
    for name, of_groups in zip(columns, zip(*combinations, strict=True), strict=False):
        numbers = {value for value in of_groups if isinstance(value, float)}
        if len(numbers) > MANY_GROUPS:
            raise ValueError(
                f"{context}: column {name!r} holds {len(numbers)} different numbers, and each "
                "would be a group. Bin it with pandas.cut, or select rows by a condition such "
                f"as {f'{name} > {np.median([*numbers]):.3g}'!r}; numbers that are names of "
                "groups should be strings or integers."
            )
        refuse_alike(of_groups, f"{context}: column {name!r} holds", "which would be two groups")


def refuse_alike(values: Collection[Any], context: str, why: str) -> None:
    """Refuse values that are one to a reader: 1 and "1", "a" and "a ", or times but for a zone."""
    written: dict[str, Any] = {}
    pairs = []
    for value in values:
        text = str(float(value)) if isinstance(value, float | Decimal) else str(value)
        pairs.append((written.setdefault(text.strip() or text, value), value))
    pairs = [(first, second) for first, second in pairs if first != second]
    of_text = bool(pairs) and all(isinstance(value, str) for value in pairs[0])
    cure = "strip it, as by str.strip()" if of_text else "convert it to one type"
    zones = {time.tzinfo is None: time for time in values if isinstance(time, datetime)}
    if len(zones) == 2:
        pairs, cure = [(zones[True], zones[False])], "convert it, as by dt.tz_localize"
    if pairs:
        first, second = pairs[0]
        raise ValueError(f"{context} {first!r} and {second!r}, {why}: {cure}.")
