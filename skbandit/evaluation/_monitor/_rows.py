"""Rows as they are passed to a monitor, and as they wait for their labels."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._monitor._counts import plain
from skbandit.logs import read_times
from skbandit.utils._validation import as_labels, finite, warn

CLOCK_ERROR = 60.0
"""Seconds by which clocks may differ."""

LATEST = 9e9
"""Seconds since 1970 that are no time of this kind; milliseconds are beyond."""


def read_when(time: Any, n: int) -> np.ndarray:
    """Seconds since 1970 of each row."""
    if time is None:
        return np.full(n, clock.time())
    single = isinstance(time, str) or np.ndim(time) == 0
    values = [pd.Timestamp(time)] if isinstance(time, str) else [time] if single else time
    at = read_times(values, 1 if single else n) if n else np.zeros(0)
    at = np.broadcast_to(at, n).astype(float)
    if np.abs(at).max(initial=0.0) > LATEST:
        raise ValueError(f"time {at[np.abs(at).argmax()]:g} is not in seconds since 1970.")
    ahead = at.max(initial=-np.inf) - clock.time()
    if ahead > CLOCK_ERROR:
        warn(
            f"times are up to {pd.Timedelta(ahead, 's')} in the future: check that they are in "
            "seconds since 1970, or datetimes, which are read in UTC without a time zone.",
            UserWarning,
        )
    return at


def listed(values: Any, name: str, n: int | None = None) -> list[Any]:
    """Plain scalars, one per row, None where they are missing."""
    listed = [plain(value) for value in as_labels(values, name)]
    if n not in (None, len(listed)):
        raise ValueError(f"{name} has {len(listed)} entries for {n} rows.")
    return listed


def read_rows(
    decided: list[Any],
    y_true: Any,
    id: Any,
    at: np.ndarray,
    people: pd.Series | None,
    weight: np.ndarray | None,
) -> pd.DataFrame:
    """Rows as a monitor counts them."""
    rows = pd.DataFrame({"decided": pd.Series(decided, dtype=object)})
    for column, name, values in (("label", "y_true", y_true), ("id", "id", id)):
        given = [None] * len(rows) if values is None else listed(values, name, len(rows))
        rows[column] = pd.Series(given, dtype=object)
    rows["time"] = at
    rows["person"] = None if people is None else people.to_numpy(dtype=object)
    rows["weight"] = weight
    return rows


def require_ids(rows: pd.DataFrame) -> None:
    """Require an id of rows whose labels may follow, and are waited for."""
    if nameless := int((rows["label"].isna() & rows["id"].isna()).sum()):
        raise ValueError(
            f"{nameless} of {len(rows)} rows have neither a label nor an id: with within=, pass "
            "id=, by which labels follow, so that rows without one count as failures in time."
        )


def warn_of_repeated(ids: pd.Series, again: pd.Series) -> None:
    """Warn of rows whose ids came before."""
    if again.any():
        warn(
            f"{again.sum()} of {len(ids)} ids are repeated, such as {ids[again].iloc[0]!r}: the "
            "first row of each counts.",
            UserWarning,
        )


def as_records(rows: pd.DataFrame, attributes: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """What is kept of rows that wait for a label, by id."""
    kept = {}
    values = attributes.astype(object).to_dict("records")
    for row, part in zip(rows.to_dict("records"), values, strict=True):
        record = {name: plain(row[name]) for name in ("decided", "time", "person", "weight")}
        named = {str(name): plain(value) for name, value in part.items()}
        kept[plain(row["id"])] = record | {"attributes": named}
    return kept


def read_records(saved: Iterable[Any]) -> dict[Any, dict[str, Any]]:
    """Those of `as_records` from pairs of JSON, with an error if they are others."""
    records = {name: dict(row) for name, row in saved}
    for row in records.values():
        finite(row["time"], "time")
        row["decided"], row["person"], row["weight"], dict(row["attributes"])
    return records


def as_rows(records: Sequence[Mapping[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Kept rows, see `as_records`, as `update` makes them."""
    rows = pd.DataFrame(
        {
            name: pd.Series([record.get(name) for record in records], dtype=object)
            for name in ("decided", "label", "person", "weight")
        }
    )
    rows["time"] = [float(record["time"]) for record in records]
    attributes = [record["attributes"] for record in records]
    return rows, pd.DataFrame(attributes, index=range(len(records))).infer_objects()


def seconds(value: Any, name: str) -> float:
    """A length of time in seconds; a number is of seconds."""
    if isinstance(value, int | float | np.number):
        return finite(value, name)
    try:
        return float(pd.Timedelta(value).total_seconds())
    except ValueError as error:
        raise ValueError(
            f"{name}={value!r} is no length of time, such as '1D', '60D' or seconds ({error})."
        ) from error


def require_json(state: dict[str, Any]) -> None:
    """Require what JSON gives back as it was: labels, groups, ids and attributes may be others."""
    try:
        same = json.loads(json.dumps(state, allow_nan=False)) == state
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"pass text or finite numbers, as JSON does not hold others: {error}"
        ) from error
    if not same:
        raise TypeError("pass text or finite numbers as ids and groups, not tuples.")
