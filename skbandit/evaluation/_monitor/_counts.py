"""Counts of rows per unit, group, class and period: all that a monitor keeps of closed rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from skbandit import measure
from skbandit.evaluation._guaranteed import WeightedShares
from skbandit.evaluation._monitor._evidence import Tally
from skbandit.utils._validation import plain

AS_TEXT = date, timedelta, np.datetime64, np.timedelta64, pd.Period, pd.Interval
"""Names that are kept as their text."""

FINEST = 2.0**-20
"""Shares are rounded to multiples of it, so that their sums are exact in any order."""

Key = tuple[int, Any, tuple[Any, ...], tuple[Any, ...]]
"""Unit, class, values of its group, and of the group of `by`."""

Places = list[tuple[tuple[Any, ...], tuple[Any, ...], int, np.ndarray]]
"""Group, group of `by`, period, and the rows of these."""

Decided = tuple[np.ndarray, Sequence[Any]]
"""Codes of the decisions of rows, and what they are of."""


@dataclass
class Counts:
    """Sums over rows; those of disjoint rows add up.

    Attributes
    ----------
    rows : dict
        By key and period: successes and trials.
    amounts : dict
        By key and period: weighted shares, of weighted rows, amounts and persons.
    people : dict
        By key, first period of the week, and person, for a year: sum of shares, and rows.
    seen : dict
        By key, period and decision: rows that can count, and those of them with a label.
    """

    rows: dict[Key, dict[int, list[float]]] = field(default_factory=dict)
    amounts: dict[Key, dict[int, WeightedShares]] = field(default_factory=dict)
    people: dict[Key, dict[tuple[int, Any], list[float]]] = field(default_factory=dict)
    seen: dict[Key, dict[tuple[int, Any], list[float]]] = field(default_factory=dict)

    @property
    def periods(self) -> list[int]:
        """Periods of which anything is known, in order."""
        numbers = {period for part in self.people.values() for period, _ in part}
        for counts in (self.rows, self.amounts):
            for key in counts:
                numbers |= counts[key].keys()
        return sorted(numbers)

    def add(self, key: Key, period: int, share: np.ndarray, weight: np.ndarray | None) -> None:
        """Add rows of weights of at most 1; None if they are successes or failures of weight 1."""
        if weight is None:
            numbers = [float(share.sum()), float(len(share))]
            _add(self.rows.setdefault(key, {}), period, numbers)
            return
        shares = WeightedShares.of(weight, np.round(share / FINEST) * FINEST)
        amounts = self.amounts.setdefault(key, {})
        amounts[period] = amounts[period] + shares if period in amounts else shares

    def add_people(
        self, key: Key, week: int, person: np.ndarray, share: np.ndarray, weight: np.ndarray
    ) -> None:
        """Add rows of persons to their sums in a week, named by its first period."""
        table = self.people.setdefault(key, {})
        for who, x, w in zip(person.tolist(), share, weight, strict=True):
            _add(table, (week, who), [float(w * x), float(w)])

    def begin(self, unit: int, of: Any) -> None:
        """Count the rows so far for a class that comes now."""
        every: list[dict[Key, Any]] = [self.rows, self.amounts, self.people]
        for table in every:
            for key in [key for key in table if key[:2] == (unit, None)]:
                table[unit, of, *key[2:]] = dict(table[key])

    def forget(self, period: int) -> None:
        """Drop people of periods before this one."""
        for key, people in self.people.items():
            self.people[key] = {place: x for place, x in people.items() if place[0] >= period}

    def add_seen(
        self, unit: int, places: Places, mask: np.ndarray, decided: Decided, column: int
    ) -> None:
        """Add decisions of rows (column 0), or of those whose label came (column 1)."""
        codes, decisions = decided
        for group, by, period, index in places:
            sizes = np.bincount(codes[index[mask[index]]])
            for code in np.flatnonzero(sizes).tolist():
                step = [0.0, 0.0]
                step[column] = float(sizes[code])
                table = self.seen.setdefault((unit, None, group, by), {})
                _add(table, (period, decisions[code]), step)

    def tally(self, key: Key, periods: list[int]) -> Tally:
        """Return the rows of a key, by period."""
        rows, amounts = self.rows.get(key, {}), self.amounts.get(key, {})
        table = np.array([rows.get(period, [0.0, 0.0]) for period in periods]).reshape(-1, 2)
        parts = tuple(amounts.get(period) for period in periods) if amounts else ()
        people = self.people.get(key, {})
        if not people:
            return Tally(table[:, 0], table[:, 1], parts)
        at = np.searchsorted(periods, [period for period, _ in people])
        who, _ = pd.factorize(pd.Series([name for _, name in people], dtype=object))
        numbers = np.array(list(people.values())).T
        return Tally(table[:, 0], table[:, 1], parts, np.array([at, who, *numbers]))

    def absorb(self, other: Counts) -> None:
        """Add what others counted."""
        for name in ("rows", "people", "seen"):
            for key, table in getattr(other, name).items():
                for place, numbers in table.items():
                    _add(getattr(self, name).setdefault(key, {}), place, numbers)
        for key, shares in other.amounts.items():
            mine = self.amounts.setdefault(key, {})
            for period, more in shares.items():
                mine[period] = mine[period] + more if period in mine else more

    def to_list(self, names: Sequence[str]) -> list[Any]:
        """Return some of the tables as JSON: [name, key, [[place, numbers], ...]]."""
        entries: list[Any] = []
        for name in names:
            for (unit, of, *groups), table in getattr(self, name).items():
                places = [
                    [
                        list(place) if isinstance(place, tuple) else place,
                        numbers
                        if isinstance(numbers, list)
                        else [np.asarray(part).tolist() for part in vars(numbers).values()],
                    ]
                    for place, numbers in table.items()
                ]
                if places:
                    entries.append([name, [unit, of, *map(list, groups)], places])
        return entries

    @classmethod
    def from_list(cls, entries: Any) -> Counts:
        """Read the results of `to_list`; anything else is a ValueError."""
        counts = cls()
        for name, key, places in entries:
            _require(name in vars(counts), name)
            unit, of, *groups = key
            _require(isinstance(unit, int) and len(groups) == 2, key)
            _require(all(isinstance(x, list) and None not in x for x in groups), key)
            table = getattr(counts, name).setdefault((unit, of, *map(tuple, groups)), {})
            for place, numbers in places:
                if name in ("rows", "amounts"):
                    place = as_period(place)
                else:
                    place = as_period(place[0]), place[1]
                if name == "amounts":
                    table[place] = _shares(numbers)
                    continue
                first, second = table[place] = list(map(float, numbers))
                _require(min(first, second) >= 0 and first + second < np.inf, numbers)
                _require(name == "seen" or first <= second, numbers)
        return counts


def _add(table: dict[Any, list[float]], place: Hashable, numbers: list[float]) -> None:
    before = table.get(place, [0.0, 0.0])
    table[place] = [before[0] + numbers[0], before[1] + numbers[1]]


def _require(condition: bool, value: Any) -> None:
    if not condition:
        raise ValueError(f"{value!r:.80} is not what a monitor saves.")


def as_period(value: Any) -> int:
    """Return the number of a period, as JSON holds it."""
    _require(isinstance(value, int) and not isinstance(value, bool), value)
    return int(value)


def _shares(numbers: Any) -> WeightedShares:
    cell, *tables = numbers
    totals, least, greatest = (np.array(table, dtype=float) for table in tables)
    n = len(cell)
    _require(totals.shape == (3, n) and least.shape == greatest.shape == (2, n) and n > 0, cell)
    valid = (totals >= 0) & np.isfinite(totals)
    _require(bool(valid.all() and (least >= 0).all() and (greatest <= 1).all()), totals.tolist())
    _require(bool((totals[0] > 0).all() and (least <= greatest).all()), totals.tolist())
    return WeightedShares(np.array(cell, dtype=np.int16), totals, least, greatest)


def places_of(
    table: pd.DataFrame, columns: tuple[str, ...], by: tuple[str, ...], period: np.ndarray
) -> Places:
    """Return rows by group, group of `by` and period; () is all of `by`, missing is no group."""
    places: Places = []
    splits = [(), by] if by and set(by).isdisjoint(columns) else [()]
    for split in splits:
        names, every = [*columns, *split], pd.RangeIndex(len(period))
        frame = pd.DataFrame({name: table[name].array for name in names}, index=every)
        index = np.flatnonzero(frame.notna().all(axis=1))
        keys = [("period", period[index]), *frame.iloc[index].items()]
        number, first = measure.number_groups(keys, len(index))
        parts = np.split(
            index[np.argsort(number, kind="stable")], np.cumsum(np.bincount(number))[:-1]
        )
        for part, values in zip(parts, measure.values_at(frame, index[first]), strict=False):
            group = tuple(
                as_name(value, f"column {name!r}")
                for name, value in zip(names, values, strict=True)
            )
            cut = len(columns)
            places.append((group[:cut], group[cut:], int(period[part[0]]), part))
    return places


def as_name(value: Any, what: str) -> Any:
    """Return a value that JSON can hold: dates, times and intervals as text; others are refused."""
    if isinstance(value, AS_TEXT) and value is not pd.NaT:
        return str(value)
    value = plain(value)
    if isinstance(value, str | int | float | None) and value not in (np.inf, -np.inf):
        return value
    raise TypeError(
        f"{what} has {value!r:.80}, a {type(value).__name__}, which cannot be saved: pass text or "
        "finite numbers, such as by .astype(str). Nothing was counted."
    )
