"""Datasets that expressions are bound to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skbandit.rates._binding._columns import Columns
from skbandit.rates._kinds import Member, On

MANY_GROUPS = 50
"""Groups above which training warns, and floats of a column above which they are no groups."""


@dataclass(frozen=True)
class Rows:
    """One dataset, row by row.

    Attributes
    ----------
    columns : Columns
        Columns that rates can refer to.
    label : ndarray of int8, shape (n,)
        1 positive, 0 negative, -1 unlabelled.
    weight : ndarray of shape (n,)
        Nonnegative; a row of weight 0 is ignored.
    """

    columns: Columns
    label: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True)
class Data:
    """The rows of X and those of X_extra, stacked in this order.

    `pos_label` and `labels` determine how stored predictions (`churn`) are encoded.
    """

    train: Rows
    extra: Rows | None = None
    pos_label: Any = None
    labels: Sequence[Any] = field(default=())

    def __len__(self) -> int:
        return len(self.train) + (0 if self.extra is None else len(self.extra))

    def parts(self, on: On) -> Iterator[tuple[Rows, slice]]:
        """Iterate over the datasets selected by `on`, each with its slice of the stack."""
        n = len(self.train)
        if on in ("train", "all"):
            yield self.train, slice(0, n)
        if on in ("extra", "all") and self.extra is not None:
            yield self.extra, slice(n, len(self))

    def groups(self, columns: Sequence[str], ons: set[On], context: str) -> list[Member]:
        """Sorted groups: the combinations of values on rows of positive weight.

        Rows with a missing value are of no group: see `without_group`.
        """
        parts = [part for on in sorted(ons) for part in self.parts(on)]
        if not parts:
            raise ValueError(f"{context} is measured on the rows of X_extra: pass X_extra.")
        found: dict[tuple[Any, ...], None] = {}
        for rows, _ in parts:
            frame = rows.columns.several(columns, context)[rows.weight > 0].dropna()
            try:
                distinct = frame.drop_duplicates()
                found |= dict.fromkeys(zip(*(distinct[c].tolist() for c in columns), strict=True))
            except TypeError as error:
                raise TypeError(
                    f"{context}: the values of by={list(columns)} must be hashable to be groups "
                    f"({error}); make them strings or tuples."
                ) from error
        for name, of_groups in zip(columns, zip(*found, strict=True), strict=False):
            numbers = {value for value in of_groups if isinstance(value, float)}
            if len(numbers) > MANY_GROUPS:
                raise ValueError(
                    f"{context}: column {name!r} holds {len(numbers)} different numbers, and each "
                    "would be a group. Bin it with pandas.cut, or select rows by a condition such "
                    f"as {f'{name} > {np.median([*numbers]):.3g}'!r}; numbers that are names of "
                    "groups should be strings or integers."
                )
        try:
            groups = sorted(found)
        except TypeError:  # values of several types
            groups = sorted(found, key=lambda group: list(map(str, group)))
        return [Member(tuple(columns), group) for group in groups]

    def without_group(self, columns: Sequence[str], ons: set[On], context: str) -> int:
        """Number of rows of positive weight in which one of the columns is missing."""
        missing = np.zeros(len(self), dtype=bool)
        for rows, place in (part for on in sorted(ons) for part in self.parts(on)):
            values = rows.columns.several(columns, context)
            missing[place] = values.isna().any(axis=1).to_numpy() & (rows.weight > 0)
        return int(missing.sum())
