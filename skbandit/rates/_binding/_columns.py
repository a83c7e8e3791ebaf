"""Looking up columns and selecting rows: what `where`, `by` and `weight` name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skbandit.rates._kinds import Where

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


@dataclass(frozen=True)
class Columns:
    """The named columns of one dataset: `attributes`, then X where it is a DataFrame."""

    attributes: pd.DataFrame
    X: pd.DataFrame
    _masks: dict[Any, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, attributes: Any, X: Any, n_rows: int, name: str = "attributes") -> Columns:
        """Take what the user passed; `X` that is not a DataFrame names nothing."""
        return cls(
            _frame(attributes, n_rows, name), _frame(X if _is_frame(X) else None, n_rows, "X")
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All columns side by side; those of `attributes` hide those of X."""
        if not self.attributes.shape[1]:
            return self.X
        behind = self.X.drop(columns=self.attributes.columns, errors="ignore")
        return pd.concat([self.attributes, behind], axis=1) if behind.shape[1] else self.attributes

    def get(self, name: str, asked_by: str) -> pd.Series:
        """One column, or an error that lists the known ones."""
        for frame in (self.attributes, self.X):
            if name in frame.columns:
                found = frame[name]
                if isinstance(found, pd.Series):
                    return found
                raise ValueError(f"{asked_by}: {found.shape[1]} columns are named {name!r}.")
        raise ValueError(f"{asked_by}: unknown column {name!r}; {self._known()}.")

    def _known(self) -> str:
        names = list(self.frame.columns)
        if not names:
            return "no columns are known: pass attributes= (or X) as a DataFrame"
        more = f", and {len(names) - 20} more" if len(names) > 20 else ""
        return f"known columns are {', '.join(repr(n) for n in names[:20])}{more}"

    def member(self, name: str, value: Any, asked_by: str) -> np.ndarray:
        """Boolean mask of the rows whose column has a value."""
        return self._once((name, type(value), value), lambda: self.get(name, asked_by) == value)

    def among(self, name: str, values: list[Any], asked_by: str) -> np.ndarray:
        """Boolean mask of the rows whose column has one of some values."""
        return self._once((name, repr(values)), lambda: self.get(name, asked_by).isin(values))

    def _once(self, key: Any, found: Callable[[], pd.Series]) -> np.ndarray:
        """A mask worked out the first time; rules for groups ask for the same over and over."""
        if key not in self._masks:
            mask = found().to_numpy(dtype=bool, na_value=False)
            mask.flags.writeable = False
            self._masks[key] = mask
        return self._masks[key]

    def mask(self, where: Where, asked_by: str, n_rows: int) -> np.ndarray:
        """Boolean mask of shape (n_rows,) of the rows that `where` names."""
        if where is None:
            return np.ones(n_rows, dtype=bool)
        if isinstance(where, Mapping):
            chosen = np.ones(n_rows, dtype=bool)
            for name, value in where.items():
                values = value if isinstance(value, list) else [value]
                chosen &= self.among(name, values, asked_by)
            return chosen
        if callable(where):
            return _as_mask(where(self.frame), asked_by, n_rows)
        if where in self.frame.columns:
            return _as_mask(
                self.get(where, asked_by), f"{asked_by}: column {where!r}", n_rows,
                f"; write {{{where!r}: value}} or a query such as \"{where} == ...\"",
            )  # fmt: skip
        return _as_mask(self._query(where, asked_by), asked_by, n_rows)

    def _query(self, query: str, asked_by: str) -> Any:
        if "@" in _QUOTED.sub("", query):
            raise ValueError(
                f"{asked_by}: a query cannot name Python variables with @, which mean nothing "
                "where the model is fitted: write the value, or pass a function."
            )
        named = [name for name in self.frame.columns if isinstance(name, str) and name in query]
        # in nullable types ~(age > 30) is missing where age is, as it should be, not True
        frame = self.frame.assign(**self.frame[named].convert_dtypes())
        try:
            return frame.eval(query, engine="python")
        except pd.errors.UndefinedVariableError as error:
            raise ValueError(f"{asked_by}: {error}; {self._known()}.") from error
        except Exception as error:  # whatever pandas' parser and the columns' types may raise
            raise ValueError(f"{asked_by}: cannot evaluate the query {query!r}: {error}") from error

    def values_of(self, name: str, asked_by: str) -> str:
        """The first distinct values of a column, for error messages."""
        values = pd.unique(self.get(name, asked_by).dropna()).tolist()
        return ", ".join(map(repr, values[:10])) + (", ..." if len(values) > 10 else "")


def _as_mask(found: Any, asked_by: str, n_rows: int, cure: str = "") -> np.ndarray:
    """Booleans with missing = False, from a Series or array of any boolean kind."""
    column = found if isinstance(found, pd.Series) else pd.Series(np.asarray(found).ravel())
    if len(column) != n_rows:
        raise ValueError(f"{asked_by}: got {len(column)} answers for {n_rows} rows{cure}.")
    present = column.dropna()
    if not (
        pd.api.types.is_bool_dtype(column.dtype)
        or all(isinstance(v, bool | np.bool_) for v in present)
    ):
        raise ValueError(
            f"{asked_by} must be boolean, got {column.dtype} such as {present.tolist()[0]!r}{cure}."
        )
    return column.astype("boolean").to_numpy(dtype=bool, na_value=False)


def _is_frame(X: Any) -> bool:
    """Pandas, polars and their like: named columns that turn into arrays."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, Mapping)


def _frame(table: Any, n_rows: int, name: str) -> pd.DataFrame:
    """A pandas DataFrame with the rows in their given order, sharing memory where it can."""
    if table is None:
        return pd.DataFrame(index=pd.RangeIndex(n_rows))
    if isinstance(table, pd.Series) and table.name is not None:
        table = table.to_frame()
    if isinstance(table, Mapping):
        table = {column: _positional(values) for column, values in table.items()}
        single = [column for column, values in table.items() if not np.ndim(values)]
        if single:
            raise ValueError(f"{name}[{single[0]!r}] is a single value: give one a row.")
        lengths = {f"{name}[{column!r}]": len(values) for column, values in table.items()}
    elif _is_frame(table):
        lengths = {name: len(table)}
    else:
        raise TypeError(
            f"{name} must be a DataFrame (or a dict of arrays), one row a sample, "
            f"got {type(table).__name__}."
        )
    for what, length in lengths.items():
        if length != n_rows:
            raise ValueError(
                f"{what} has {length} rows for {n_rows} rows of data. Cross-validation "
                "slices a DataFrame and passes a dict whole: there, pass a DataFrame."
            )
    if isinstance(table, pd.DataFrame):
        return table.reset_index(drop=True)
    if isinstance(table, Mapping):
        return pd.DataFrame(table)
    return pd.DataFrame({column: table[column].to_numpy() for column in table.columns})


def _positional(values: Any) -> Any:
    # a Series would be aligned on its index; rows here go by position
    return values.array if isinstance(values, pd.Series) else values
