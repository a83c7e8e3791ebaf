"""The columns of a log by their meaning, whatever their names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from skbandit.utils._messages import first_few
from skbandit.utils._validation import check_not_masked

LOG_COLUMNS = ("action", "reward", "propensity", "available", "timestamp")

# Names in use elsewhere. Overlooking a propensity or a time would pass in silence.
_SYNONYMS = {
    "action": ("arm", "arm_id", "action_id", "item", "item_id", "ad_id", "choice", "chosen"),
    "reward": ("click", "clicked", "clicks", "payoff", "r", "outcome"),
    "propensity": ("pscore", "propensity_score", "prob", "probability", "action_prob", "p"),
    "timestamp": ("ts", "time", "datetime", "event_time"),
    "available": ("pool", "candidates", "available_arms"),
}
_NEEDED_IF_PRESENT = ("propensity", "timestamp")


def column_names(y: Any) -> list[Any] | None:
    """Column names of a table, dict or structured array; None if it has no named columns."""
    if isinstance(y, Mapping):
        return list(y)
    names = getattr(y, "columns", None)
    if names is None:
        names = getattr(getattr(y, "dtype", None), "names", None)
    return None if names is None else list(names)


def columns_of(y: Any, columns: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Name in `y` of each column that describes events.

    Parameters
    ----------
    y : object
        A log.
    columns : dict, default=None
        Names in `y` that differ, by meaning: ``{"action": "arm_id", "propensity": "pscore"}``.

    Returns
    -------
    dict or None
        From meaning to name, with the key action and, if present, reward, propensity, available
        and timestamp; None if `y` has no column names.

    Raises
    ------
    ValueError
        If there is no action, `columns` names what is not there, or an unmapped name is close to
        one of a log's columns or used for it elsewhere.
    """
    check_not_masked(y, "y")
    mapped = _checked_mapping(columns)
    names = column_names(y)
    if names is None:
        if mapped:
            raise ValueError(
                f"columns={mapped} needs a DataFrame or structured array as y, got "
                f"{type(y).__name__} without column names."
            )
        return None
    for meaning, name in mapped.items():
        if name not in names:
            near = get_close_matches(str(name), [str(other) for other in names], n=1)
            raise ValueError(
                f"columns maps {meaning!r} to {name!r}, which is not a column of y"
                + (f"; did you mean {near[0]!r}?" if near else f": {first_few(names, 20)}.")
            )
    found = {name: name for name in LOG_COLUMNS if name in names} | mapped
    _check_overlooked([name for name in names if name not in found.values()], found)
    if "action" not in found:
        near = [name for name in names if _meaning(name) == "action"]
        guess = repr(near[0] if near else "arm_id")
        raise ValueError(
            f"y has no column 'action': rename the column of the chosen arms, or map it by "
            f"columns={{'action': {guess}}}. Its columns are {first_few(names, 20)}."
        )
    return {name: found[name] for name in LOG_COLUMNS if name in found}


def _checked_mapping(columns: Any) -> dict[str, Any]:
    """Require a mapping from a log's columns to distinct names."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict such as {{'action': 'arm_id'}}, got {columns!r}.")
    mapped = dict(columns)
    for meaning in mapped:
        if meaning not in LOG_COLUMNS:
            hint = ""
            if mapped[meaning] in LOG_COLUMNS:
                hint = f" Write {{{mapped[meaning]!r}: {meaning!r}}}."
            raise ValueError(f"columns has the key {meaning!r}, expected {LOG_COLUMNS}.{hint}")
    names = list(mapped.values())
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ValueError(f"columns maps {name!r} twice: {mapped}.")
    return mapped


def _check_overlooked(names: list[Any], found: Mapping[str, Any]) -> None:
    """Refuse names that probably are a column of the log which is otherwise missing."""
    for name in names:
        meaning = _meaning(name)
        similar = get_close_matches(str(name).lower(), LOG_COLUMNS, n=1, cutoff=0.75)
        if similar and similar[0] not in found:
            meaning = similar[0]
        elif meaning is None or meaning in found or meaning not in _NEEDED_IF_PRESENT:
            continue
        raise ValueError(
            f"y has a column {name!r}: rename it to {meaning!r}, map it by "
            f"columns={{{meaning!r}: {name!r}}}, or drop it."
        )


def _meaning(name: Any) -> str | None:
    """The meaning of a name in use elsewhere."""
    return next((m for m, words in _SYNONYMS.items() if str(name).lower() in words), None)
