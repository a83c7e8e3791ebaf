"""Logs of slates: the arms shown together, and what is known of their rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs import _log
from skbandit.logs._arms import Codes, code_labels
from skbandit.logs._log import Log, column_names
from skbandit.utils._validation import plain


def read_slates(
    y: Any,
    n_rows: int | None = None,
    *,
    reward: Any = None,
    propensity: Any = None,
    available: Any = None,
    arms: Iterable[Any] = (),
    columns: Mapping[str, Any] | None = None,
    gaps: bool = False,
) -> Log:
    """Validate a log of slates, and number its arms.

    Parameters
    ----------
    y : DataFrame, dict or structured array with a column action, or slates
        An entry of action is a tuple, list or array of different labels, best place first; None
        and nan are empty places. A single label is a slate of one arm. Columns reward,
        propensity, available and timestamp are kept if present. Without column names: an array
        of shape (n_events, n_places), or a sequence of slates.
    n_rows : int, default=None
        Required number of events.
    reward, propensity, available : array-like, default=None
        Values that are not columns of `y`.
    arms : iterable of labels, default=()
        Arms known so far; they get the first numbers.
    columns : dict, default=None
        Names of the columns of `y`, if different.
    gaps : bool, default=False
        Whether places before filled ones may be empty, and whole slates.

    Returns
    -------
    Log
    """
    by_place = column_names(y) is not None and are_slates(y) and not columns
    names = None if by_place else _log.columns_of(y, columns)
    given = {"reward": reward, "propensity": propensity, "available": available}
    read = _log.read_columns(y, names, {"action": y} if names is None else {}, given)
    codes: Codes = {label: k for k, label in enumerate(arms)}
    n_known = len(codes)
    shown = read["action"]
    if getattr(getattr(shown, "dtype", None), "kind", "O") in "biuU" and shown.ndim == 1:
        action = code_labels(shown, codes).astype(np.int64)[:, None]  # one arm each, none missing
    else:
        action = code_slates(slate_labels(shown, "action", gaps=gaps), codes)
    n = len(action)
    if n_rows is not None and n != n_rows:
        raise ValueError(f"y has {n} slates for {n_rows} rows of X.")
    return _log.finished_log(read, action, codes, n_known, per_row=available is None)


def are_slates(y: Any) -> bool:
    """Tell whether `y` holds slates, without names or with numbers of places, and not a log."""
    names = column_names(y)
    return names is None or all(isinstance(name, int | np.integer) for name in names)


def slate_labels(
    slates: Any, name: str, n_events: int | None = None, gaps: bool = False
) -> list[list[Any]]:
    """Labels of slates, of which there must be `n_events`, without empty places at their ends."""
    rows = _log.entries_per_slate(slates, name)
    if n_events is not None and len(rows) != n_events:
        raise ValueError(f"{name}: there are {len(rows)} slates for {n_events} events.")
    return [_labels(row, k, gaps) for k, row in enumerate(rows)]


def code_slates(slates: list[list[Any]], codes: Codes) -> np.ndarray:
    """Return indices of the labels of slates, -1 in empty places; new labels extend `codes`."""
    flat = [label for slate in slates for label in slate]
    objects = np.empty(len(flat), dtype=object)
    objects[:] = flat
    filled = ~pd.isna(objects)
    if not filled.any():
        raise ValueError("the log is empty: it has no slates.")
    numbers = np.full(len(flat), -1)
    numbers[filled] = code_labels(objects[filled], codes)
    sizes = np.array([len(slate) for slate in slates])
    action = np.full((len(slates), sizes.max()), -1, dtype=np.int64)
    action[np.arange(sizes.max()) < sizes[:, None]] = numbers
    in_order = np.sort(action, axis=1)
    twice = ((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        k = int(np.flatnonzero(twice)[0])
        raise ValueError(f"row {k} shows an arm twice: {slates[k]}.")
    return action


def _labels(row: Any, k: int, gaps: bool = False) -> list[Any]:
    """Labels of a slate, without empty places at its end."""
    many = isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes)
    slate = list(row) if many else [row]
    if gaps:
        return slate
    while slate and plain(slate[-1]) is None:
        slate.pop()
    if not slate:
        raise ValueError(f"row {k} shows no arm: drop it from the log.")
    if None in map(plain, slate):
        raise ValueError(
            f"row {k} has an empty place before a filled one: move the arms up, {slate}."
        )
    return slate


def holds_slates(y: Any, columns: Mapping[str, Any] | None) -> bool:
    """Tell whether y is a log with a reward per arm of a slate; a tuple may be one arm's label."""
    name = (_log.columns_of(y, columns) or {}).get("reward") if _log.is_log(y, columns) else None
    return name is not None and isinstance(next(iter(y[name]), None), tuple | list | np.ndarray)
