"""Column lookup and row selection for `where`, `by` and `weight`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from skbandit.rates._binding._query import Query, QueryError
from skbandit.rates._kinds import Member, Where
from skbandit.utils._messages import shortened


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
                found = frame[name]
                if isinstance(found, pd.Series):
                    return found
                raise ValueError(f"{context}: {found.shape[1]} columns are named {name!r}.")
        raise ValueError(f"{context}: unknown column {name!r}; {self._known()}.")

    def _known(self) -> str:
        names = list(self.frame.columns)
        if not names:
            return (
                "no columns are known: pass attributes= (or X) as a DataFrame. Behind a Pipeline, "
                "whose transformers drop columns or their names, pass <step>__attributes=, or "
                "attributes= with sklearn.set_config(enable_metadata_routing=True)"
            )
        more = f", and {len(names) - 20} more" if len(names) > 20 else ""
        return f"known columns are {', '.join(repr(n) for n in names[:20])}{more}"

    def several(self, names: Sequence[str], context: str) -> pd.DataFrame:
        """Return some columns, with the errors of `get`."""
        return pd.DataFrame({name: self.get(name, context) for name in names})

    def member(self, group: Member, context: str) -> np.ndarray:
        """Boolean mask of the rows of a group."""
        masks = [
            self._once((name, type(value), value), partial(self._equal, name, value, context))
            for name, value in zip(group.columns, group.values, strict=True)
        ]
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def among(self, name: str, values: list[Any], context: str) -> np.ndarray:
        """Boolean mask of the rows with any of the given values in a column."""
        return self._once((name, repr(values)), lambda: self.get(name, context).isin(values))

    def _equal(self, name: str, value: Any, context: str) -> pd.Series:
        return self.get(name, context) == value

    def _once(self, key: Any, found: Callable[[], pd.Series]) -> np.ndarray:
        """Cached mask: group constraints request the same one repeatedly."""
        if key not in self._masks:
            mask = found().to_numpy(dtype=bool, na_value=False)
            mask.flags.writeable = False
            self._masks[key] = mask
        return self._masks[key]

    def mask(self, where: Where, context: str, n_rows: int) -> np.ndarray:
        """Boolean mask of shape (n_rows,) of the rows that `where` selects."""
        context = shortened(context)
        if where is None:
            return np.ones(n_rows, dtype=bool)
        if isinstance(where, Mapping):
            chosen = np.ones(n_rows, dtype=bool)
            for name, value in where.items():
                values = value if isinstance(value, list) else [value]
                chosen &= self.among(name, values, context)
            return chosen
        if callable(where):
            return _as_mask(where(self.frame), context, n_rows)
        if where in self.frame.columns:
            return _as_mask(
                self.get(where, context), f"{context}: column {where!r}", n_rows,
                f"; write {{{where!r}: value}} or a query such as \"{where} == ...\"",
            )  # fmt: skip
        return _as_mask(self._query(where, context), context, n_rows)

    def _query(self, text: str, context: str) -> Any:
        try:
            query = Query.parse(text)
        except QueryError as error:
            raise ValueError(f"{context}: {shortened(str(error))}.") from error
        unknown = [name for name in query.columns if name not in self.frame.columns]
        if unknown:
            raise ValueError(f"{context}: name {unknown[0]!r} is not defined; {self._known()}.")
        named = self.several(query.columns, context)
        try:
            # With nullable types, ~(age > 30) is missing (rather than True) where age is missing.
            return query.evaluate(named.convert_dtypes())
        except QueryError as error:
            raise ValueError(f"{context}: {shortened(str(error))}.") from error

    def named_in(self, where: Where) -> list[str]:
        """Columns that a selection names, for error messages; none for a function."""
        if isinstance(where, Mapping):
            return list(where)
        if not isinstance(where, str) or where in self.frame.columns:
            return []
        return Query.parse(where).columns

    def values_of(self, name: str, context: str) -> str:
        """List the first distinct values of a column for error messages."""
        values = pd.unique(self.get(name, context).dropna()).tolist()
        return ", ".join(map(repr, values[:10])) + (", ..." if len(values) > 10 else "")


def _as_mask(found: Any, context: str, n_rows: int, hint: str = "") -> np.ndarray:
    """Convert a boolean Series or array to bool, with False for missing values."""
    column = found if isinstance(found, pd.Series) else pd.Series(np.asarray(found).ravel())
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
    """Whether X has named columns, as in pandas and polars."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, Mapping)


def _frame(table: Any, n_rows: int, name: str) -> pd.DataFrame:
    """Convert a table to a pandas DataFrame with a positional index, without copies if possible."""
    if table is None:
        return pd.DataFrame(index=pd.RangeIndex(n_rows))
    if isinstance(table, pd.Series) and table.name is not None:
        table = table.to_frame()
    if hasattr(table, "column_names") and hasattr(table, "to_pandas"):
        table = table.to_pandas()  # pyarrow's Table, whose columns are arrays, not names
    if isinstance(table, Mapping):
        table = {column: _positional(values) for column, values in table.items()}
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
            raise ValueError(
                f"{column} has {length} rows for {n_rows} rows of data. Cross-validation "
                "slices a DataFrame but not a dict: pass a DataFrame."
            )
    if isinstance(table, pd.DataFrame):
        return table.reset_index(drop=True)
    if isinstance(table, Mapping):
        return pd.DataFrame(table)
    return pd.DataFrame({column: table[column].to_numpy() for column in table.columns})


def _positional(values: Any) -> Any:
    # DataFrame() would align a Series on its index, but rows are matched by position.
    return values.array if isinstance(values, pd.Series) else values
