"""Rows as they are passed, as they are counted together, and as they wait for their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skbandit import measure
from skbandit.evaluation._monitor._calendar import Calendar
from skbandit.evaluation._monitor._counts import Counts, as_name, places_of
from skbandit.evaluation._monitor._units import Range, Unit
from skbandit.utils._validation import as_labels, finite, first_few, plain


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
        See `read_rows`, and the columns that goals name. Rows that were counted before have a
        column `came`: when their labels did, or, of rows without any, when waiting for them ended.
    labels : Labels
        With those of the rows.
    """

    rows: pd.DataFrame
    table: pd.DataFrame
    labels: Labels

    @classmethod
    def read(cls, rows: pd.DataFrame, table: pd.DataFrame, labels: Labels) -> Batch:
        """Read the labels of rows, with a warning of new ones without a group."""
        if rows["decided"].isna().any():
            raise ValueError("decided has missing values: every row needs a decision.")
        classes = measure.distinct(rows["label"], "label")
        batch = cls(rows, table, labels.more(classes, measure.distinct(rows["decided"], "decided")))
        groups = {unit.columns for unit in labels.units if unit.columns}
        for names in sorted(groups) if "came" not in rows else []:
            measure.warn_of_no_group(names, batch.data[0].train)
        return batch

    @cached_property
    def data(self) -> tuple[measure.Data, np.ndarray]:
        """Rows as rates read them, and the codes of their decisions."""
        return self.labels.data(self.rows, self.table)

    def count(self, by: tuple[str, ...], calendar: Calendar, ranges: Mapping[str, Range]) -> Counts:
        """Return the counts of all units."""
        counts, (data, decided), made = Counts(), self.data, (self.data[1], self.data[0].decisions)
        came = "came" in self.rows
        failed = came and self.rows["label"].isna().all()
        is_labeled = failed | (data.train.label != measure.MISSING)
        weighted, person = self.rows["weight"].notna().any(), self.rows["person"]
        people = person.to_numpy() if person.notna().any() else None
        if weighted and "sample_weight" not in ranges:
            raise ValueError(
                "rows are weighted by 'sample_weight': pass ranges={'sample_weight': (0, largest "
                "possible weight)}."
            )
        for number, unit in enumerate(self.labels.units):
            if came and not unit.needs_label:
                continue
            columns = data.train.columns.several([*unit.columns, *by], repr(unit.atom))
            decision, counted = (
                places_of(columns, unit.columns, by, calendar.number(self.rows[name]))
                for name in ("time", "came" if came else "time")
            )
            weights = [name for name in (unit.atom.weight, weighted and "sample_weight") if name]
            largest = math.prod(ranges[name][1] for name in weights)
            for of in unit.classes(data):
                share, weight = (unit.failures if failed else unit.shares)(of, data, decided)
                if weight.max(initial=0.0) > largest:
                    raise ValueError(
                        f"{unit.atom!r}: a weight of {weight.max():g} is above its end in ranges=."
                    )
                weight = weight / largest
                for group, by_group, period, index in counted:
                    index = index[weight[index] > 0]
                    key, x, w = (number, of, group, by_group), share[index], weight[index]
                    if people is not None and len(index):
                        counts.add_people(key, calendar.week(period), people[index], x, w)
                    elif len(index):
                        counts.add(key, period, x, None if unit.counted and not weights else w)
            seen = unit.selected(data)
            if not came:
                counts.add_seen(number, decision, seen, made, 0)
            counts.add_seen(number, decision, seen & is_labeled & unit.needs_label, made, 1)
        return counts


def listed(values: Any, name: str, n: int | None = None) -> list[Any]:
    """Return plain scalars, one per row, None where they are missing."""
    listed = [as_name(value, name) for value in as_labels(values, name)]
    if n not in (None, len(listed)):
        raise ValueError(f"{name} has {len(listed)} entries for {n} rows.")
    return listed


def read_rows(decided: list[Any], **given: Any) -> pd.DataFrame:
    """Return rows as a monitor counts them, with what else is given of each."""
    rows = pd.DataFrame({"decided": pd.Series(decided, dtype=object)})
    for name, values in given.items():
        entries = [None] * len(rows) if values is None else listed(values, name, len(rows))
        rows[name] = pd.Series(entries, dtype=object)
    return rows.rename(columns={"y_true": "label", "groups": "person"})


def as_records(rows: pd.DataFrame, attributes: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return what is kept of rows that wait for a label, by id."""
    kept = {}
    values = attributes.astype(object).to_dict("records") or [{}] * len(rows)  # pandas 2 has none
    for row, part in zip(rows.to_dict("records"), values, strict=True):
        record = {name: plain(row[name]) for name in ("decided", "time", "person", "weight")}
        named = {str(name): as_name(value, f"column {name!r}") for name, value in part.items()}
        kept[plain(row["id"])] = record | {"attributes": named}
    return kept


def read_records(saved: Iterable[Any]) -> dict[Any, dict[str, Any]]:
    """Return those of `as_records` from pairs of JSON, with an error if they are others."""
    records = {name: dict(row) for name, row in saved}
    for row in records.values():
        finite(row["time"], "time")
        row["decided"], row["person"], row["weight"], dict(row["attributes"])
    return records


def as_rows(records: Sequence[Mapping[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return kept rows, see `as_records`, as `update` makes them, and when their labels came."""
    names = ["decided", "label", "person", "weight", "time", "came"]
    values = [[record.get(name) for name in names] for record in records]
    rows = pd.DataFrame(values, columns=names, dtype=object).astype({"time": float, "came": float})
    attributes = [record["attributes"] for record in records]
    return rows, pd.DataFrame(attributes, index=range(len(records))).infer_objects()
