"""Rows merged where rates cannot tell them apart, so that a large table needs little memory.

On given predictions, a rate and its interval are functions of sums over rows: of their weights, and
of products of two weights. They depend on a row's label, decision, groups, reference predictions
and on the outcomes of conditions, but not on the values behind these. So a block of rows is reduced
to its distinct combinations, with their sums, and blocks are added by adding the sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd

from skbandit.rates._atoms import atom_amounts, atom_weights, refuse_outcomes
from skbandit.rates._columns import (
    MOST_SHOWN,
    Columns,
    Data,
    Merged,
    Rows,
    UnknownColumnError,
    columns_of_condition,
    number_groups,
)
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom, Slot
from skbandit.rates._labels import MISSING
from skbandit.rates._values import read_measured
from skbandit.utils._exact import LARGEST_EXACT
from skbandit.utils._validation import check_row_weights, first_few

MOST_MERGED = 1_000_000
"""Combinations that are kept at most; more are refused, as memory would grow with the rows."""


@dataclass(frozen=True)
class MergedRows:
    """Distinct combinations of values and outcomes in blocks of rows, in order of appearance.

    Attributes
    ----------
    values : DataFrame of shape (n, ...)
        Of the columns whose values count.
    outcomes : ndarray of bool, shape (n, ...)
        Of conditions, and whether weights are positive.
    sums : dict of ndarray of shape (n,)
        Over the rows of each combination: of the product of the weights in the key; of the amounts
        in a column if it is ("amount", weight, column).
    named : list of dict
        For each condition, the first values of the columns that it names.
    zones : dict of str to datetime
        A time of each column that conditions compare with local times.
    """

    values: pd.DataFrame
    outcomes: np.ndarray
    sums: dict[tuple[Any, ...], np.ndarray]
    named: list[dict[str, list[Any]]]
    zones: dict[str, datetime]

    def __add__(self, other: MergedRows) -> MergedRows:
        for name in self.values:
            kind, new = _kind_of_values(self.values[name]), _kind_of_values(other.values[name])
            if "empty" not in (kind, new) and kind != new:
                times = "time zone" in kind and "time zone" in new
                cure = "convert it, as by dt.tz_localize" if times else "convert it"
                raise ValueError(
                    f"column {name!r} holds {new} values such as "
                    f"{other.values[name].dropna().tolist()[0]!r}, and {kind} values such as "
                    f"{self.values[name].dropna().tolist()[0]!r} in blocks before: {cure}."
                )
        for name in self.zones.keys() & other.zones.keys():
            before, time = self.zones[name], other.zones[name]
            if _offsets(before) != _offsets(time):
                raise ValueError(
                    f"column {name!r} has the time zone {time.tzinfo}, and {before.tzinfo} in "
                    "blocks before, and a condition takes local times of each block as equal: "
                    "convert it, as by dt.tz_convert, or write times with an offset, such as "
                    "'2026-03-01T00:00Z'."
                )
        parts = _with_one_order(self.values, other.values)
        # of two dtypes, integers could become floats, which merges large ones
        integers = [
            (name, part[name])
            for part in parts
            for name in part
            if pd.api.types.is_integer_dtype(part[name].dtype)
        ]
        large = [name for name, x in integers if ((x > LARGEST_EXACT) | (x < -LARGEST_EXACT)).any()]
        parts = [part.astype(dict.fromkeys(large, object)) for part in parts]
        with warnings.catch_warnings():  # of columns without values, which some pandas skip
            warnings.simplefilter("ignore", FutureWarning)
            values = pd.concat(parts, ignore_index=True)
        both = MergedRows(
            values,
            np.concatenate([self.outcomes, other.outcomes]),
            {key: np.concatenate([total, other.sums[key]]) for key, total in self.sums.items()},
            [
                {
                    name: [*dict.fromkeys([*first, *more[name]])][: MOST_SHOWN + 1]
                    for name, first in before.items()
                }
                for before, more in zip(self.named, other.named, strict=True)
            ],
            other.zones | self.zones,
        )
        return both.merged().limited()

    def limited(self) -> MergedRows:
        """Return this, unless there are so many combinations that memory grows with the rows."""
        if len(self.values) > MOST_MERGED:
            several = {name: column.nunique() for name, column in self.values.items()}
            name = max(several, key=several.__getitem__)
            raise ValueError(
                f"The labels, predictions and groups make more than {MOST_MERGED:,} combinations; "
                f"column {name!r} holds {several[name]:,} different values. Predictions must be "
                "labels, as of predict(); bin a group by pandas.cut, or select rows by a condition."
            )
        return self

    def merged(self) -> MergedRows:
        """Merge equal combinations."""
        parts = [*self.values.items(), *enumerate(self.outcomes.T)]
        number, first = number_groups(parts, len(self.values))
        return replace(
            self,
            values=self.values.iloc[first].reset_index(drop=True),
            outcomes=self.outcomes[first],
            sums={key: np.bincount(number, total, len(first)) for key, total in self.sums.items()},
        )


def _kind_of_values(column: pd.Series) -> str:
    """Kind of the values, of which values of another kind are never equal."""
    kind = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    numbers = ("integer", "floating", "boolean", "mixed-integer-float", "decimal")
    if kind in ("datetime", "datetime64"):
        times = column.dropna().astype(object)
        zoned = {getattr(time, "tzinfo", None) is not None for time in times}
        zones = "with and without" if len(zoned) != 1 else "with" if zoned == {True} else "without"
        return f"{kind} ({zones} time zone)"
    return "numeric" if kind in numbers else kind


def _offsets(time: datetime) -> list[timedelta | None]:
    """Tell a time zone from others, whatever it is called, by its offsets of a year."""
    days = (time.replace(year=2025, month=month, day=1, tzinfo=None) for month in range(1, 13))
    return [None if time.tzinfo is None else time.tzinfo.utcoffset(day) for day in days]


def _with_one_order(*parts: pd.DataFrame) -> list[pd.DataFrame]:
    """Tables whose ordered categories are the same if those of one table contain the other's."""
    orders: dict[Any, pd.CategoricalDtype] = {}
    for name in parts[0]:
        valued: list[Any] = [part[name].dtype for part in parts if part[name].notna().any()]
        every: list[Any] = [part[name].dtype for part in parts]
        ordered = [dtype for dtype in every if getattr(dtype, "ordered", None)]
        if not ordered or not all(getattr(dtype, "ordered", None) for dtype in valued):
            continue
        fewer, *_, more = sorted((dtype.categories for dtype in ordered * 2), key=len)
        if more[more.isin(fewer)].equals(fewer):
            orders[name] = pd.CategoricalDtype(more, ordered=True)
    return [part.astype(orders) for part in parts]


@dataclass(frozen=True)
class Reducer:
    """Merges rows that some rates cannot tell apart, and counts them.

    Parameters
    ----------
    rates : tuple of Rate
    """

    rates: tuple[Rate, ...]

    @cached_property
    def atoms(self) -> dict[Any, Atom]:
        """The atoms on given rows; pairs of groups share theirs."""
        distinct = {atom.key: atom for rate in self.rates for atom in rate.atoms}
        given = (replace(atom, on="train") for atom in distinct.values())
        return {atom.key: atom for atom in given}

    @property
    def conditions(self) -> dict[Any, Atom]:
        """An atom with each condition."""
        return {atom.condition: atom for atom in self.atoms.values() if atom.where is not None}

    @property
    def weights(self) -> list[str | None]:
        """Columns of weights of rates; None, which is for none, is the first."""
        return list(dict.fromkeys([None, *(atom.weight for atom in self.atoms.values())]))

    @property
    def named_columns(self) -> dict[str, str]:
        """Columns of groups and of reference predictions, and what names them."""
        contexts: dict[str, str] = {}
        for atom in self.atoms.values():
            groups = () if atom.group is None else atom.group.columns
            for name in filter(None, [*groups, atom.reference]):
                contexts.setdefault(name, repr(atom))
        return contexts

    def reduce(self, rows: Rows, values: pd.DataFrame) -> MergedRows:
        """Merge rows of which `values` and what the rates count are equal."""
        for atom in self.atoms.values():
            self._check(atom, rows, values)
        weights: dict[str | None, np.ndarray] = {}
        for name in self.weights:
            numbers = 1.0 if name is None else rows.numbers(name, f"weight={name!r}")
            # what is not valid counts nowhere, which _check makes sure of
            valid = (numbers > 0) & np.isfinite(numbers)
            weights[name] = rows.weight * np.where(valid, numbers, 0.0)
        sums: dict[tuple[Any, ...], np.ndarray] = {(): np.ones(len(rows))}
        for name in weights:
            sums[name,] = weights[name]
        for a, b in combinations_with_replacement(weights, 2):
            sums[a, b] = weights[a] * weights[b]
        for atom in self.atoms.values():
            if atom.amount is not None:
                amount = rows.numbers(atom.amount, repr(atom))
                finite = np.where(np.isfinite(amount), amount, 0.0)
                sums["amount", atom.weight, atom.amount] = weights[atom.weight] * finite
        outcomes = [weight > 0 for weight in weights.values()]
        outcomes += [rows.selected(atom) for atom in self.conditions.values()]
        named = [rows.values_in(atom) for atom in self.conditions.values()]
        zones: dict[str, datetime] = {}
        for atom in self.conditions.values():
            zones |= rows.columns.local_times(atom.where)
        return MergedRows(values, np.column_stack(outcomes), sums, named, zones).merged()

    def _check(self, atom: Atom, rows: Rows, values: pd.DataFrame) -> None:
        """Require valid weights and amounts in the rows that an atom counts."""
        refuse_outcomes(atom)
        if atom.weight is None and atom.amount is None:
            return
        counted = np.ones(len(rows), dtype=bool)
        if isinstance(atom.group, Slot):
            counted &= values[[*atom.group.columns]].notna().all(axis=1).to_numpy()
        inside = atom_weights(atom, replace(rows, weight=rows.weight * counted))
        if atom.amount is not None:
            atom_amounts(atom, rows, inside)

    def counted(self, merged: MergedRows) -> Merged:
        """Return what the rates count of merged rows."""
        sums = merged.sums
        outcomes = merged.outcomes.T[len(self.weights) :]
        means: dict[tuple[str, str | None], np.ndarray] = {
            (name, None): _quotient_or(sums[name,], sums[None,]) for name in self.weights if name
        }
        for atom in self.atoms.values():
            if atom.amount is not None:
                amounts = sums["amount", atom.weight, atom.amount]
                means[atom.amount, atom.weight] = _quotient_or(amounts, sums[atom.weight,])
        effective = {
            (a, b): _quotient_or(sums[a,] * sums[b,], sums[pair], 1.0)
            for pair in combinations_with_replacement(self.weights, 2)
            for a, b in (pair, pair[::-1])
        }
        return Merged(
            sums[()],
            dict(zip(self.conditions, outcomes, strict=True)),
            dict(zip(self.conditions, merged.named, strict=True)),
            means,
            effective,
        )


@dataclass(frozen=True)
class BlockReducer(Reducer):
    """What some rates count of blocks; maps a block to `MergedRows`, also in another process.

    Parameters
    ----------
    rates : tuple of Rate
    y_true, y_pred, weight : str
        Columns of labels, predictions and row weights; None if there are none.
    by : tuple of str
        Columns of groups, besides those of rates.
    """

    y_true: str | None
    y_pred: str
    weight: str | None
    by: tuple[str, ...]

    @property
    def columns(self) -> dict[str, str]:
        """Columns whose values count, and what names them."""
        contexts = {} if self.y_true is None else {self.y_true: "y_true"}
        contexts.setdefault(self.y_pred, "y_pred")
        for name in self.by:
            contexts.setdefault(name, f"by={list(self.by)}")
        for name, context in self.named_columns.items():
            contexts.setdefault(name, context)
        return contexts

    def choose(self, table_columns: Iterable[Any]) -> list[Any]:
        """Columns to read of a table with `table_columns`: all if a condition is a function.

        Raises
        ------
        ValueError
            If a column is missing.
        """
        table_columns = list(table_columns)
        needed = self.columns
        if self.weight is not None:
            needed.setdefault(self.weight, "weight")
        for atom in self.atoms.values():
            condition = columns_of_condition(atom.where, table_columns) or ()
            for name in filter(None, [*condition, atom.weight, atom.amount]):
                needed.setdefault(name, repr(atom))
        for name, context in needed.items():
            if name not in table_columns:
                raise UnknownColumnError(
                    f"{context}: no column {name!r} among [{first_few(table_columns, 20)}]."
                )
        return (
            table_columns
            if any(callable(atom.where) for atom in self.atoms.values())
            else [*needed]
        )

    def __call__(self, table: Any) -> MergedRows | None:
        """Merge the rows of a table of pandas or polars; None without rows."""
        names, n = self.choose(table.columns), len(table)
        if not n:
            return None
        columns = Columns.read(table[names], None, n, "the block")
        values = columns.several([*self.columns], "the block")
        if values[self.y_pred].isna().any():
            raise ValueError(
                f"y_pred: column {self.y_pred!r} has missing values: every row needs a prediction."
            )
        rows = Rows(columns, np.full(n, MISSING), np.ones(n))
        if self.weight is not None:
            context = f"weight={self.weight!r}"
            weight = rows.numbers(self.weight, context)
            weight = check_row_weights(weight, n, context) if weight.any() else weight
            rows = replace(rows, weight=weight)
        return self.reduce(rows, values).limited()

    def data(self, merged: MergedRows, pos_label: Any, labels: Any) -> tuple[Data, np.ndarray]:
        """Return the rows, and the codes of their predictions, as of `read_measured`."""
        values = merged.values
        y_true = None if self.y_true is None else values[self.y_true]
        given = y_true, values[self.y_pred], values, merged.sums[None,], pos_label
        data, predicted = read_measured(self.rates, *given, labels=labels)
        return replace(data, train=replace(data.train, merged=self.counted(merged))), predicted


def merge_equal(
    rates: Sequence[Rate], data: Data, decided: np.ndarray, table: pd.DataFrame
) -> tuple[Data, np.ndarray, pd.DataFrame]:
    """One dataset, the codes of its decisions and a table of groups, with equal rows merged.

    Rates, and columns of the table, cannot tell the rows apart that are merged. Two datasets, and
    merged rows, remain as they are.
    """
    if data.extra is not None or data.train.merged is not None:
        return data, decided, table
    reducer, rows = Reducer(tuple(rates)), data.train
    values = {name: rows.columns.get(name, at) for name, at in reducer.named_columns.items()}
    codes = rows.label, decided, data.dependent
    keys: dict[Any, Any] = {k: code for k, code in enumerate(codes) if code is not None}
    of_table = range(len(codes), len(codes) + table.shape[1])
    keys |= {k: table.iloc[:, k - len(codes)] for k in of_table}
    every = pd.DataFrame({**values, **keys}, index=pd.RangeIndex(len(rows)))
    merged = reducer.reduce(rows, every)
    label, of_decided = (merged.values[k].to_numpy() for k in range(2))
    dependent = None if data.dependent is None else merged.values[2].to_numpy()
    columns = Columns.read(merged.values[[*values]], None, len(merged.values))
    train = Rows(columns, label, merged.sums[None,], reducer.counted(merged))
    groups = merged.values[[*of_table]].set_axis(table.columns, axis=1)
    return replace(data, train=train, dependent=dependent), of_decided, groups


def _quotient_or(above: np.ndarray, below: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """Quotients, or another number where the divisor is 0."""
    return np.divide(above, below, out=np.full(len(above), otherwise), where=below > 0)
