"""Rows that are counted together, as rates read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skbandit import measure
from skbandit.evaluation._monitor._calendar import Calendar
from skbandit.evaluation._monitor._counts import Counts, places_of, plain
from skbandit.evaluation._monitor._units import Range, Unit
from skbandit.utils._validation import first_few


@dataclass(frozen=True, eq=False)
class Labels:
    """Classes and decisions so far, of the units of a monitor.

    Attributes
    ----------
    units : sequence of Unit
    allowed : tuple or None
        All that may occur.
    pos_label : label or None
    classes, decisions : tuple
    """

    units: Sequence[Unit]
    allowed: tuple[Any, ...] | None
    pos_label: Any
    classes: tuple[Any, ...] = ()
    decisions: tuple[Any, ...] = ()

    def more(self, classes: Iterable[Any], decisions: Iterable[Any]) -> Labels:
        """Return them with those of new rows."""
        merged = [
            tuple(dict.fromkeys([*part, *map(plain, new)]))
            for part, new in ((self.classes, classes), (self.decisions, decisions))
        ]
        every = list(dict.fromkeys(merged[0] + merged[1]))
        if strange := [x for x in every if self.allowed and x not in self.allowed]:
            raise ValueError(
                f"there is {strange[0]!r}, not among labels=[{first_few(self.allowed or ())}]."
            )
        measure.refuse_alike(every, "decided and y_true have", "which would be two labels")
        return replace(self, classes=merged[0], decisions=merged[1])

    @cached_property
    def nobody(self) -> measure.Data:
        """No rows, with these classes and decisions."""
        empty = pd.DataFrame({"decided": [], "label": [], "weight": []}, dtype=object)
        return self.data(empty, pd.DataFrame())[0]

    def data(self, rows: pd.DataFrame, table: pd.DataFrame) -> tuple[measure.Data, np.ndarray]:
        """Return rows as rates read them, and the codes of their decisions."""
        every = list(dict.fromkeys([*self.classes, *self.decisions]))
        of_costs = [atom.cells.labels for u in self.units for _, atom in u.terms if atom.cells]
        classes = list(dict.fromkeys([*self.classes, *(x for part in of_costs for x in part)]))
        if not any(of_costs) and (len(every) <= 2 or not classes):
            classes = every
        others = [label for label in every if label not in classes]
        weight = rows["weight"].to_numpy(dtype=float)
        weight = np.where(np.isnan(weight), 1.0, weight)
        unlabeled = measure.Rows(
            measure.Columns.read(table, None, len(rows)),
            np.full(len(rows), measure.MISSING),
            weight,
        )
        closed = self.allowed is not None
        data = measure.Data(unlabeled, None, self._positive(every), classes, others, closed)
        if data.closed:
            measure.check_classes([atom for unit in self.units for _, atom in unit.terms], data)
        codes = [
            measure.encode_classes(rows[name], data.decisions, name)
            for name in ("decided", "label")
        ]
        return replace(data, train=replace(unlabeled, label=codes[1])), codes[0]

    def _positive(self, labels: list[Any]) -> Any:
        """Return the positive class; one of two labels if either may be it."""
        if self.pos_label is not None:
            return self.pos_label
        numbers = [label for label in labels if not isinstance(label, str)]
        if numbers and measure.positive_is_known(numbers):
            return 1
        for unit in self.units:
            if unit.counted and unit.atom.needs_pos_label:
                raise ValueError(
                    f"{unit.atom!r} is the rate of one class, and the labels are "
                    f"[{first_few(labels)}]: choose it with pos_label=."
                )
        return labels[0] if labels else None

    def begin(self, counts: Counts, more: Labels) -> None:
        """Count rows so far for the classes that are new, of which they are not."""
        if not self.decisions:
            return
        for number, unit in enumerate(self.units):
            before = unit.classes(self.nobody)
            for label in unit.classes(more.nobody):
                if label not in before:
                    counts.begin(number, label)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one call.

    Attributes
    ----------
    rows, table : DataFrame
        See `read_rows`, and the columns that goals name.
    labels : Labels
        With those of the rows.
    arrival : ndarray or None
        When labels came of rows that were counted before; None for new rows.
    failed : bool
        Whether these are not labels, but the end of waiting for them.
    """

    rows: pd.DataFrame
    table: pd.DataFrame
    labels: Labels
    arrival: np.ndarray | None
    failed: bool

    @classmethod
    def read(
        cls,
        rows: pd.DataFrame,
        table: pd.DataFrame,
        labels: Labels,
        arrival: np.ndarray | None,
        failed: bool,
    ) -> Batch:
        """Read the labels of rows."""
        if rows["decided"].isna().any():
            raise ValueError("decided has missing values: every row needs a decision.")
        more = (
            measure.distinct(rows["label"], "label"),
            measure.distinct(rows["decided"], "decided"),
        )
        return cls(rows, table, labels.more(*more), arrival, failed)

    @cached_property
    def data(self) -> tuple[measure.Data, np.ndarray]:
        """Rows as rates read them, and the codes of their decisions."""
        return self.labels.data(self.rows, self.table)

    def count(self, by: tuple[str, ...], calendar: Calendar, ranges: Mapping[str, Range]) -> Counts:
        """Return the counts of all units."""
        counts = Counts()
        for number, unit in enumerate(self.labels.units):
            if self.arrival is None or unit.needs_label:
                self._count(counts, number, by, calendar, ranges)
        return counts

    def _count(
        self,
        counts: Counts,
        number: int,
        by: tuple[str, ...],
        calendar: Calendar,
        ranges: Mapping[str, Range],
    ) -> None:
        unit, (data, decided) = self.labels.units[number], self.data
        decision = self.rows["time"].to_numpy(dtype=float)
        columns = data.train.columns.several([*unit.columns, *by], repr(unit.atom))
        when = decision if self.arrival is None else self.arrival
        places = places_of(columns, unit.columns, by, calendar.number(when))
        weighted = self.rows["weight"].notna().any()
        person = self.rows["person"]
        largest = 1.0
        for name in [unit.atom.weight, "sample_weight" if weighted else None]:
            largest *= _largest(name, ranges) if name else 1.0
        for of in unit.classes(data):
            share, weight = (unit.failures if self.failed else unit.shares)(of, data, decided)
            if weight.max(initial=0.0) > largest:
                raise ValueError(
                    f"{unit.atom!r}: a weight of {weight.max():g} is above its end in ranges=."
                )
            counts.add(
                number, of, share, weight / largest, places,
                counted=unit.counted and not weighted and unit.atom.weight is None,
                person=person.to_numpy() if person.notna().any() else None,
                weeks=calendar.week,
            )  # fmt: skip
        seen, made = unit.selected(data), (decided, data.decisions)
        labeled = seen & (self.failed | (data.train.label != measure.MISSING)) & unit.needs_label
        if self.arrival is None:
            counts.add_seen(number, places, seen, made, 0)
        else:
            places = places_of(columns, unit.columns, by, calendar.number(decision))
        counts.add_seen(number, places, labeled, made, 1)


def _largest(name: str, ranges: Mapping[str, Range]) -> float:
    if name not in ranges:
        raise ValueError(
            f"rows are weighted by {name!r}: pass ranges={{{name!r}: (0, largest possible "
            "weight)}."
        )
    return ranges[name][1]
