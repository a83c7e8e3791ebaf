"""Logged decisions: which arm was chosen, what came of it, and how likely the choice was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs._arms import Codes, Pools, code_labels, label_array, read_pools
from skbandit.utils._validation import check_squares

_COLUMNS = ("action", "reward", "propensity", "available", "timestamp")


@dataclass(frozen=True)
class Log:
    """Events in the order in which they happened; arms are numbers, the labels are in `arms`."""

    arms: np.ndarray  # (n_arms,), labels
    action: np.ndarray  # (n_events,)
    reward: np.ndarray  # (n_events,)
    propensity: np.ndarray | None  # (n_events,), of the action; None: not logged
    pools: Pools | None  # None: every arm of the log, at every event
    timestamp: np.ndarray | None  # (n_events,), seconds

    def __len__(self) -> int:
        return len(self.action)

    @property
    def probability(self) -> np.ndarray:
        """Probability of each logged choice: as logged, else uniform over what was available."""
        if self.propensity is not None:
            return self.propensity
        if self.pools is None:
            return np.full(len(self), 1.0 / len(self.arms))
        return 1.0 / self.pools.sizes

    def take(self, rows: np.ndarray | slice) -> Log:
        """The log of some events, in the order given."""
        return replace(
            self,
            action=self.action[rows],
            reward=self.reward[rows],
            propensity=None if self.propensity is None else self.propensity[rows],
            pools=None if self.pools is None else self.pools.take(rows),
            timestamp=None if self.timestamp is None else self.timestamp[rows],
        )


def read_log(
    y: Any,
    n_rows: int | None = None,
    *,
    reward: Any = None,
    propensity: Any = None,
    available: Any = None,
    timestamp: Any = None,
    arms: Iterable[Any] = (),
    columns: Sequence[Any] | None = None,
) -> Log:
    """Check and number a log.

    Parameters
    ----------
    y : DataFrame or structured array with columns action and reward, or array of actions
        Columns propensity, available and timestamp are read where they are there; others are
        left alone, unless their name is nearly one of these.
    n_rows : int, default=None
        The number of rows that it must have.
    reward, propensity, available, timestamp : array-like, default=None
        What is no column of `y`.
    arms : iterable of labels, default=()
        Arms known so far: they come first.
    columns : sequence of labels, default=None
        The arms that the columns of a boolean `available` without names stand for; None is all
        known arms and the log's other actions, in order of appearance.

    Returns
    -------
    Log
        Its arms are those known, the log's other actions in order of appearance, and what else
        is in `available`.
    """
    given = {
        "reward": reward, "propensity": propensity, "available": available, "timestamp": timestamp
    }  # fmt: skip
    read = _columns_of(y)
    for name, values in given.items():
        if values is None:
            continue
        if name in read and not _same(read[name], values):
            raise ValueError(f"{name} is given twice, as a column of y and by itself, and differs.")
        read[name] = values
    if "reward" not in read:
        raise ValueError(
            "the log has no rewards: y must be a DataFrame (or structured array) with columns "
            "'action' and 'reward', or pass reward= beside an array of actions."
        )
    codes: Codes = {label: k for k, label in enumerate(_distinct(arms))}
    action = code_labels(read["action"], codes)
    n = len(action)
    if n_rows is not None and n != n_rows:
        raise ValueError(f"y has {n} events for {n_rows} rows of X.")
    if n == 0:
        raise ValueError("the log is empty: y has no events.")
    rewards = read_numbers(read["reward"], n, "reward")
    check_squares(rewards, "reward")
    propensities = read.get("propensity")
    if propensities is not None:
        propensities = _read_propensities(propensities, n)
    pools = read.get("available")
    if pools is not None:
        pools = read_pools(pools, n, codes, columns)
        _check_contains(pools, action, list(codes))
    times = read.get("timestamp")
    if times is not None:
        times = read_times(times, n)
    return Log(label_array(codes), action, rewards, propensities, pools, times)


def read_numbers(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Finite numbers of shape (n_rows,), as float64."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "cmM":  # of which floats would keep a part, or nanoseconds
            raise TypeError(f"found {numbers.dtype}")
        if numbers.dtype.kind not in "biuf":  # nullable, or numbers among objects
            series = pd.to_numeric(pd.Series(values), errors="raise")
            numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        numbers = numbers.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers, one a row: {error}.") from error
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be 1D with one number a row, got shape {numbers.shape}.")
    if len(numbers) != n_rows:
        raise ValueError(f"{name} has {len(numbers)} entries for {n_rows} events.")
    if not np.isfinite(numbers.sum()):  # quick; the sum of finite numbers might overflow
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            what = "missing" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]}"
            raise ValueError(f"{name} is {what} on row {bad[0]}.")
    return numbers


def column_names(y: Any) -> list[Any] | None:
    """Names of a log's columns; None for an array of actions."""
    names = getattr(y, "columns", None)
    if names is None:
        names = getattr(getattr(y, "dtype", None), "names", None)
    return None if names is None else list(names)


def as_actions(y: Any) -> Any:
    """A log without column names as a flat array of actions."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None.")
    if not hasattr(y, "ndim"):
        iterable = isinstance(y, Iterable) or hasattr(y, "__array__")
        if not iterable or isinstance(y, type):
            raise TypeError(f"y must be a log, or an array of actions, got {y!r}.")
        y = np.asarray(y) if hasattr(y, "__array__") else label_array(y)
    if y.ndim != 1:
        raise ValueError(
            f"y has shape {y.shape} and no column names, so which column is the action is "
            "unknown: give a DataFrame with columns 'action' and 'reward', or a 1D array of "
            "actions and reward=."
        )
    return y


def check_in_order(timestamp: np.ndarray, why: str) -> None:
    """Require timestamps that do not decrease."""
    late = np.flatnonzero(np.diff(timestamp) < 0)
    if len(late):
        row = int(late[0]) + 1
        raise ValueError(
            f"timestamp goes back on row {row}, from {timestamp[row - 1]:.15g} s to "
            f"{timestamp[row]:.15g} s: {why} needs events in order of time; sort the log."
        )


def _columns_of(y: Any) -> dict[str, Any]:
    """What y says of events, by name."""
    names = column_names(y)
    if names is None:
        return {"action": as_actions(y)}
    if "action" not in names:
        raise ValueError(f"y has no column 'action'; its columns are {names}.")
    for name in names:
        # a propensity that is overlooked makes every estimate wrong
        near = get_close_matches(str(name).lower(), _COLUMNS, n=1, cutoff=0.75)
        if name not in _COLUMNS and near and near[0] not in names:
            raise ValueError(f"y has a column {name!r}: rename it to {near[0]!r}, or drop it.")
    return {name: y[name] for name in _COLUMNS if name in names}


def _same(one: Any, other: Any) -> bool:
    """Whether two columns hold the same; tuples of labels and rows of an array never do."""
    try:
        return list(one) == list(other)
    except ValueError:
        return False


def _distinct(arms: Iterable[Any]) -> list[Any]:
    """Known arms as plain labels, each once."""
    labels = arms.tolist() if isinstance(arms, np.ndarray) else list(arms)
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if len(set(labels)) != len(labels):
        repeated = next(label for k, label in enumerate(labels) if label in labels[:k])
        raise ValueError(f"arms names {repeated!r} twice.")
    return labels


def _read_propensities(values: Any, n_rows: int) -> np.ndarray:
    """Probabilities in (0, 1]."""
    propensity = read_numbers(values, n_rows, "propensity")
    wrong = np.flatnonzero((propensity <= 0) | (propensity > 1))
    if len(wrong):
        raise ValueError(
            f"propensity must be in (0, 1], the probability of the logged action given its "
            f"context: row {wrong[0]} has {propensity[wrong[0]]:g}."
        )
    return propensity


def _check_contains(pools: Pools, action: np.ndarray, labels: list[Any]) -> None:
    """Require that each event's action was available to it."""
    outside = np.flatnonzero(~pools.contains(action))
    if len(outside):
        row = int(outside[0])
        pool = pools.of_event[row]
        own = [labels[k] for k in pools.arms[pools.start[pool] : pools.start[pool + 1]]]
        raise ValueError(
            f"the action of row {row}, {labels[action[row]]!r}, is not among the arms available "
            f"to it, {own}."
        )


def times_as_series(values: Any) -> pd.Series:
    """Times of whatever kind, one an event."""
    try:
        return pd.Series(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"timestamp must be 1D with one time an event: {error}.") from error


def read_times(values: Any, n_rows: int) -> np.ndarray:
    """Times in seconds."""
    series = times_as_series(values)
    if len(series) != n_rows:
        raise ValueError(f"timestamp has {len(series)} entries for {n_rows} events.")
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        if series.isna().any():
            raise ValueError(f"timestamp is missing on row {np.flatnonzero(series.isna())[0]}.")
        at = pd.DatetimeIndex(series)
        series = pd.Series(at.asi8 / {"s": 1e0, "ms": 1e3, "us": 1e6, "ns": 1e9}[at.unit])
    elif not pd.api.types.is_numeric_dtype(series.dtype):
        raise ValueError(
            f"timestamp must be datetimes or numbers of seconds, got {series.iloc[0]!r} on row 0: "
            "convert it by pandas.to_datetime."
        )
    return read_numbers(series, n_rows, "timestamp")
