"""Rows as they are passed to a monitor, and as they wait for their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._monitor._counts import as_name, plain
from skbandit.utils._validation import as_labels, finite


def listed(values: Any, name: str, n: int | None = None) -> list[Any]:
    """Return plain scalars, one per row, None where they are missing."""
    listed = [as_name(value, name) for value in as_labels(values, name)]
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
    """Return rows as a monitor counts them."""
    rows = pd.DataFrame({"decided": pd.Series(decided, dtype=object)})
    for column, name, values in (("label", "y_true", y_true), ("id", "id", id)):
        given = [None] * len(rows) if values is None else listed(values, name, len(rows))
        rows[column] = pd.Series(given, dtype=object)
    rows["time"] = at
    names = None if people is None else [as_name(value, "groups") for value in people]
    rows["person"] = names if names is None else pd.Series(names, dtype=object)
    rows["weight"] = weight
    return rows


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
    rows = pd.DataFrame(
        {
            name: pd.Series([record.get(name) for record in records], dtype=object)
            for name in ("decided", "label", "person", "weight")
        }
    )
    for name in ("time", "came"):
        rows[name] = [float(record[name]) for record in records]
    attributes = [record["attributes"] for record in records]
    return rows, pd.DataFrame(attributes, index=range(len(records))).infer_objects()
