"""Logs of decisions: chosen arm, reward, propensity, available arms and time of each event."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit.logs import _arms
from skbandit.utils import _validation
from skbandit.utils._exact import exact_table
from skbandit.utils._validation import first_few, warn

LARGEST_REWARD = 1e145
"""Largest absolute reward of a slate, in its own unit; beyond it, squares may overflow."""

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

# Kinds of numbers, as pandas infers them.
_NUMBERS = (
    "integer", "floating", "mixed-integer-float", "integer-na", "decimal", "boolean", "empty"
)  # fmt: skip

# Without the value, so that Python shows the warning once for many events.
_FAR_FUTURE = "timestamp is in seconds after the year 5138"

# Numbers above these are not seconds, but probably of this unit: the year 5138 in each.
_OTHER_UNITS = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"))

_SLATES = (
    "a log of slates is for skbandit.bandit.SlatePolicy, and for replay_slates, slate_ips and "
    "slate_pseudo_inverse of skbandit.evaluation"
)

NO_REWARDS = (
    "y has actions but no rewards, so each action counts as reward 1: pass a DataFrame with "
    "columns 'action' and 'reward', or reward=."
)


def column_names(y: Any) -> list[Any] | None:
    """Column names of a table, dict or structured array; None if it has no named columns."""
    if isinstance(y, Mapping):
        return list(y)
    names = getattr(y, "column_names", None)  # of pyarrow, whose columns are arrays
    if names is None:
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
    _validation.check_not_masked(y, "y")
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
    name_of = {name: name for name in LOG_COLUMNS if name in names} | mapped
    for name in [name for name in names if name not in name_of.values()]:
        # names that probably are a column of the log which is otherwise missing
        role = _meaning(name)
        similar = get_close_matches(str(name).lower(), LOG_COLUMNS, n=1, cutoff=0.75)
        if similar and similar[0] not in name_of:
            role = similar[0]
        elif role is None or role in name_of or role not in _NEEDED_IF_PRESENT:
            continue
        raise ValueError(
            f"y has a column {name!r}: rename it to {role!r}, map it by "
            f"columns={{{role!r}: {name!r}}}, or drop it."
        )
    if "action" not in name_of:
        near = [name for name in names if _meaning(name) == "action"]
        guess = repr(near[0] if near else "arm_id")
        raise ValueError(
            f"y has no column 'action': rename the column of the chosen arms, or map it by "
            f"columns={{'action': {guess}}}. Its columns are {first_few(names, 20)}."
        )
    return {name: name_of[name] for name in LOG_COLUMNS if name in name_of}


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
    _validation.same_columns(dict.fromkeys(names), names, "columns", f"map each once, in {mapped}.")
    return mapped


def _meaning(name: Any) -> str | None:
    """Return the meaning of a name in use elsewhere."""
    return next((m for m, words in _SYNONYMS.items() if str(name).lower() in words), None)


@dataclass(frozen=True)
class Log:
    """Logged events in order of time; arms are numbers, `arms` holds their labels.

    Of slates, rewards and propensities are as given: `of_arms` and `of_slates` read them.
    """

    arms: np.ndarray  # (n_arms,), labels
    action: np.ndarray  # (n_events,); of slates (n_events, n_places), -1 in empty places
    reward: Any  # (n_events,)
    propensity: Any  # (n_events,), of the logged action; None: not logged
    pools: _arms.Pools | None  # None: every arm of the log is available to every event
    timestamp: np.ndarray | None  # (n_events,), seconds

    def __len__(self) -> int:
        return len(self.action)

    @property
    def sets(self) -> _arms.Pools:
        """Sets of available arms, of all arms if the log has none."""
        if self.pools is not None:
            return self.pools
        return _arms.Pools.of_all(len(self), len(self.arms))

    @property
    def probability(self) -> np.ndarray:
        """Probability of each logged action: as logged, else uniform over the available arms."""
        if self.propensity is not None:
            return np.asarray(self.propensity)
        return 1.0 / self.sets.sizes

    def available_sets(self) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        """Return the distinct sets of available arms, as tuples of labels, and each event's set."""
        return self.sets.labels(self.arms), self.sets.of_event

    def available_labels(self) -> list[tuple[Any, ...]]:
        """Labels of the arms available to each event."""
        sets, set_of_event = self.available_sets()
        return [sets[k] for k in set_of_event.tolist()]

    def available_mask(self, n_arms: int) -> np.ndarray:
        """Mask of the arms available to each event, of shape (n_events, n_arms).

        `n_arms` may exceed the number of arms of the log; the further arms are not available.
        """
        return self.sets.mask(n_arms)

    def sample(self) -> np.ndarray:
        """Up to 200 rows, evenly spaced, by which logs are distinguished."""
        return np.linspace(0, len(self) - 1, min(len(self), 200)).astype(np.int64)

    def fingerprint(self, contexts: Any) -> bytes:
        """Digest of the sampled events, given their contexts as an array or CSR."""
        rows = self.sample()
        labels = repr(self.arms[self.action[rows]].tolist())
        digest = blake2b(f"{len(self)} {labels}".encode("utf-8", "surrogatepass"), digest_size=16)
        sparse = issparse(contexts)
        parts = (contexts.data, contexts.indices, contexts.indptr) if sparse else (contexts,)
        for part in (*parts, self.reward[rows]):
            digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return digest.digest()

    def with_sorted_arms(self) -> Log:
        """Return the log with sorted arms, whose order tells nothing of when they were logged."""
        keys = [_arms.label_order(label) for label in self.arms.tolist()]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        number = np.append(np.argsort(order), -1).astype(self.action.dtype)
        pools = None if self.pools is None else self.pools.renumbered(number)
        return replace(self, arms=self.arms[order], action=number[self.action], pools=pools)

    def take(self, rows: np.ndarray | slice) -> Log:
        """Return the given events as a log, in the given order."""
        of_rows: dict[str, Any] = {
            name: None if values is None else values[rows]
            for name in ("action", "reward", "propensity", "timestamp")
            for values in [getattr(self, name)]
        }
        return replace(self, **of_rows, pools=self.pools and self.pools.take(rows))

    @property
    def shown(self) -> np.ndarray:
        """Mask of the places of slates that are not empty, (n_events, n_places)."""
        return self.action >= 0

    @property
    def sizes(self) -> np.ndarray:
        """Number of arms of each slate."""
        return self.shown.sum(axis=1)

    def of_arms(self, values: Any, name: str) -> np.ndarray:
        """Numbers given per shown arm of slates, as an array like `action`; nan in empty places.

        Each event has a number per place or, for slates of one arm, a single number.
        """
        _validation.check_not_masked(values, name)
        if issparse(values):
            raise TypeError(f"{name} is a sparse table: pass {name}.toarray().")
        dtype, rows = getattr(values, "dtype", None), None  # type: Any, Any
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and np.ndim(values):
            rows = np.asarray(values)  # numbers need no look at each row
        else:
            rows = [np.ravel(row) for row in entries_per_slate(values, name)]
        if len(rows) != len(self):
            raise ValueError(f"{name} has {len(rows)} entries for {len(self)} slates.")
        if isinstance(rows, list):
            sizes, flat = np.array([len(row) for row in rows]), np.concatenate(rows)
        else:
            sizes, flat = np.full(len(rows), rows[0].size), rows.ravel()
        wrong = np.flatnonzero((sizes != self.sizes) & (sizes != self.action.shape[1]))
        if len(wrong):
            k = wrong[0]
            raise ValueError(
                f"{name} of row {k} has {sizes[k]} entries for a slate of {self.sizes[k]} arms: "
                "pass one per place."
            )
        out = np.full(self.action.shape, np.nan)
        try:
            numbers = pd.to_numeric(pd.Series(flat))
            filled = np.arange(self.action.shape[1]) < sizes[:, None]
            out[filled] = numbers.to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{name} must be numbers: {error}.") from error
        out[~self.shown] = np.nan
        of_rows = str(getattr(values, "dtype", "object")) == "object"
        of_rows = of_rows and not hasattr(values, "columns")
        _validation.warn_if_wrapped(flat if of_rows else values, out, name)
        _refuse_large(out, name)
        return out

    def of_slates(self, values: Any, name: str) -> np.ndarray:
        """Finite numbers given per slate, (n_events,)."""
        numbers = read_numbers(values, len(self), name)
        _validation.warn_if_wrapped(values, numbers, name)
        _refuse_large(numbers, name)
        return numbers


def _refuse_large(numbers: np.ndarray, name: str) -> None:
    """Refuse numbers whose squares overflow."""
    large = np.argwhere(np.abs(numbers) > LARGEST_REWARD)
    if len(large):
        raise ValueError(
            f"{name} of row {large[0][0]} is {numbers[tuple(large[0])]:g}, too large to be squared."
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
    table_arms: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Log:
    """Validate a log and number its arms.

    Parameters
    ----------
    y : DataFrame, dict or structured array with columns action and reward, or array of actions
        Columns propensity, available and timestamp are read if present. Other columns are
        ignored, but a name close to one of these is an error.
    n_rows : int, default=None
        Required number of events.
    reward, propensity, available, timestamp : array-like, default=None
        Values that are not columns of `y`.
    arms : iterable of labels, default=()
        Arms known so far; they get the first numbers.
    table_arms : sequence of labels, default=None
        Arms of the columns of an unnamed boolean `available`; None is all known arms and then
        the log's other actions, in the order of their labels.
    columns : dict, default=None
        Names of the columns of `y`, if different: ``{"action": "arm_id"}``.

    Returns
    -------
    Log
        Its arms are the known ones, then the log's other actions in order of appearance, or in
        that of the columns of an unnamed `available`, then the remaining labels of `available`.
    """
    given = {
        "reward": reward, "propensity": propensity, "available": available, "timestamp": timestamp
    }  # fmt: skip
    names = columns_of(y, columns)
    read = read_columns(y, names, {"action": as_actions(y)} if names is None else {}, given)
    # a tuple may be the label of one arm
    for name, kinds in (("action", (list, np.ndarray)), ("reward", (list, np.ndarray, tuple))):
        several = isinstance(read[name], Iterable) and getattr(read[name], "ndim", 1) > 0
        first = next(iter(read[name]), None) if several else None
        if isinstance(first, kinds) and np.size(first) != 1:
            raise TypeError(f"{name} has several values on a row, such as {first!r}: {_SLATES}.")
    labels = list(arms) if isinstance(arms, dict) else _arms.plain_labels(arms)
    if not isinstance(arms, dict):  # the codes of a policy
        _validation.same_columns(dict.fromkeys(labels), labels, "arms", "name each once.")
    codes: _arms.Codes = {label: k for k, label in enumerate(labels)}
    action = _arms.code_labels(read["action"], codes)
    if len(codes) > len(labels):
        _validation.warn_if_blanks_differ(codes, "action")
    n = len(action)
    if n_rows is not None and n != n_rows:
        raise ValueError(f"y has {n} events for {n_rows} rows of X.")
    if n == 0:
        raise ValueError("the log is empty: y has no events.")
    rewards = read_numbers(read["reward"], n, "reward")
    _validation.warn_if_wrapped(read["reward"], rewards, "reward")
    _validation.check_squares(rewards, "reward")
    read["reward"] = rewards
    if (given_chances := read.get("propensity")) is not None:
        chances = _validation.at_most_1(read_numbers(given_chances, n, "propensity"))
        wrong = np.flatnonzero((chances <= 0) | (chances > 1))
        if len(wrong):
            raise ValueError(
                "propensity must be in (0, 1], the probability of the logged action given its "
                f"context: row {wrong[0]} has {chances[wrong[0]]:g}."
            )
        read["propensity"] = chances
    return finished_log(read, action, codes, len(labels), available is None, table_arms)


def finished_log(
    read: Mapping[str, Any],
    action: np.ndarray,
    codes: _arms.Codes,
    n_known: int,
    per_row: bool,
    table_arms: Sequence[Any] | None = None,
) -> Log:
    """Return a log of actions, of one place or several, with the arms available and the times."""
    pools, times, n = read.get("available"), read.get("timestamp"), len(action)
    if pools is not None:
        before = list(codes)
        pools = _arms.read_pools(pools, n, codes, table_arms, per_row=per_row, n_known=n_known)
        action = _arms.renumbered(action, before, codes)
        check_shown(pools, action, list(codes))
    times = None if times is None else read_times(times, n)
    return Log(
        _arms.label_array(codes), action, read["reward"], read.get("propensity"), pools, times
    )


def read_columns(
    y: Any, names: Mapping[str, Any] | None, read: dict[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a log, by the names of its columns, and further arguments say of events."""
    _validation.warn_if_reordered({"y": y, **given})
    warn_of_repeats(y)
    read |= {meaning: y[name] for meaning, name in (names or {}).items()}
    for name, values in given.items():
        if values is None:
            continue
        is_equal = name not in read
        with suppress(ValueError):  # of entries that are arrays
            is_equal = is_equal or list(read[name]) == list(values)
        if not is_equal:
            raise ValueError(f"{name}= differs from the column {name!r} of y: pass only one.")
        read[name] = values
    if "reward" not in read:
        raise ValueError(
            "the log has no rewards: y must be a DataFrame (or structured array) with columns "
            "'action' and 'reward', or an array of actions or slates with reward=; columns= maps "
            "other names, as in columns={'reward': 'clicked'}."
        )
    return read


def entries_per_slate(values: Any, name: str) -> list[Any]:
    """Return a list of what is given for each slate."""
    if values is None or isinstance(values, str | bytes | type):
        raise ValueError(f"{name} must have one entry per slate, got {values!r}.")
    values = exact_table(values)
    if isinstance(values, pd.DataFrame):
        values = values.to_numpy()
    for method in ("to_list", "to_pylist"):  # a Series of polars has lists as Series otherwise
        values = getattr(values, method, lambda given=values: given)()
    _validation.check_not_masked(values, name)
    if hasattr(values, "__array__") and not isinstance(values, Iterable):
        values = np.asarray(values)
    if getattr(values, "ndim", 1) == 0 or not isinstance(values, Iterable):
        raise ValueError(f"{name} must have one entry per slate, got {values!r}.")
    return values.tolist() if hasattr(values, "tolist") else list(values)


def ids_of(y: Any) -> pd.Series:
    """Return the ids of a log's events as text, by row; of rows and logs without ids, none."""
    values = y["id"] if "id" in (column_names(y) or []) else []
    values = values.to_numpy() if hasattr(values, "to_numpy") else list(values)
    ids = pd.Series(values, dtype=object)
    return ids[ids.notna()].map(repr)  # of lists, too, and 1 is not True


def warn_of_repeats(y: Any) -> None:
    """Warn of choices that occur twice in a log, by its column of ids, if it has one."""
    ids = ids_of(y)
    copies = ids[ids.duplicated()]
    if len(copies):
        first = ids.index[ids == copies.iloc[0]][0]
        warn(
            f"the log has {len(copies)} events more than ids: that of row {copies.index[0]}, "
            f"{copies.iloc[0]:.80}, is that of row {first}, and counts again. Drop copies by "
            "drop_duplicates('id'), or sum their rewards. If ids are of people, rename the column, "
            "and pass groups= where their events are dependent.",
            UserWarning,
        )


def read_numbers(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Finite numbers of shape (n_rows,), as float64."""
    _validation.check_not_masked(values, name)
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "cmM":  # not convertible without loss or a unit
            raise TypeError(f"found {numbers.dtype}")
        if numbers.dtype.kind not in "biuf":  # nullable dtypes, or numbers stored as objects
            series = pd.to_numeric(pd.Series(values), errors="raise")
            numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        numbers = numbers.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers, one per row: {error}.") from error
    if numbers.ndim == 0:
        raise ValueError(
            f"{name} must have one value per row, got {values!r}: write [{values!r}] for one row."
        )
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be 1D with one number per row, got shape {numbers.shape}.")
    if len(numbers) != n_rows:
        raise ValueError(f"{name} has {len(numbers)} entries for {n_rows} events.")
    if not np.isfinite(numbers.sum()):  # fast; but a sum of finite numbers may overflow
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            if not np.isnan(numbers[bad[0]]):
                raise ValueError(f"{name} is {numbers[bad[0]]} on row {bad[0]}.")
            raise ValueError(
                f"{name} is missing on row {bad[0]}. Leave out the rows whose {name} is not known "
                "yet: all columns of a row are learned together."
            )
    return numbers


def as_actions(y: Any) -> Any:
    """Return a log without column names as a 1D array of actions."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None.")
    if not hasattr(y, "ndim"):
        iterable = isinstance(y, Iterable) or hasattr(y, "__array__")
        if not iterable or isinstance(y, type):
            raise TypeError(f"y must be a log, or an array of actions, got {y!r}.")
        y = np.asarray(y) if hasattr(y, "__array__") else _arms.label_array(y)
    if y.ndim != 1:
        raise ValueError(
            f"y has shape {y.shape} and no column names, so the action column is unknown: pass a "
            "DataFrame with columns 'action' and 'reward', or a 1D array of actions and reward=."
        )
    return y


def check_in_order(timestamp: np.ndarray, consumer: str) -> None:
    """Require nondecreasing timestamps; `consumer` names what depends on the order."""
    late = np.flatnonzero(np.diff(timestamp) < 0)
    if len(late):
        row = int(late[0]) + 1
        raise ValueError(
            f"timestamp goes back on row {row}, from {timestamp[row - 1]:.15g} s to "
            f"{timestamp[row]:.15g} s: {consumer} needs events in order of time; sort the log. "
            "(Searches by successive halving shuffle it: use others.)"
        )


def check_shown(pools: _arms.Pools, action: np.ndarray, labels: list[Any]) -> None:
    """Require that the actions of each event, -1 for none, were available to it."""
    places = action.reshape(len(action), -1)
    held = [pools.contains(place) for place in places.T]
    outside = np.argwhere(~np.column_stack(held) & (places >= 0))
    if len(outside):
        row, place = outside[0]
        pool = np.flatnonzero(pools.take(slice(row, row + 1)).mask(len(labels))[0])
        pool_labels, label = [labels[k] for k in pool], labels[places[row, place]]
        slate = isinstance(label, tuple) and set(label) <= set(pool_labels)
        raise ValueError(
            f"row {row}: the action {label!r} is not among the available arms, {pool_labels}"
            + (f": {_SLATES}." if slate else ".")
        )


def times_as_series(values: Any) -> pd.Series:
    """Datetimes or numbers, one per event, as a Series."""
    try:
        return pd.Series(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"timestamp must be 1D with one time per event: {error}.") from error


@contextmanager
def times_already_read() -> Iterator[None]:
    """Do not repeat the warning about the times of a log when its events are learned."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _FAR_FUTURE, UserWarning)
        yield


def read_times(values: Any, n_rows: int) -> np.ndarray:
    """Return times in seconds, as float64."""
    series = times_as_series(values)
    if len(series) != n_rows:
        raise ValueError(f"timestamp has {len(series)} entries for {n_rows} events.")
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        if series.isna().any():
            raise ValueError(f"timestamp is missing on row {np.flatnonzero(series.isna())[0]}.")
        at = pd.DatetimeIndex(series)
        return at.asi8 / {"s": 1e0, "ms": 1e3, "us": 1e6, "ns": 1e9}[at.unit]
    kind = pd.api.types.infer_dtype(series)  # of objects, by their values
    if kind == "datetime":  # of several time zones
        return read_times(pd.to_datetime(series, utc=True), n_rows)
    if kind not in _NUMBERS:
        cure = "convert with pandas.to_datetime."
        if kind.startswith("timedelta"):
            cure = "add the time from which they count."
        raise ValueError(
            f"timestamp must be datetimes or numbers of seconds, got {series.iloc[0]!r} on row 0: "
            + cure
        )
    times = read_numbers(series, n_rows, "timestamp")
    largest = float(np.abs(times).max(initial=0.0))
    unit = next((unit for latest, unit in _OTHER_UNITS if largest > latest), None)
    if unit is not None:
        warn(
            f"{_FAR_FUTURE}: if its unit is another one, pass pandas.to_datetime(timestamp, "
            f"unit={unit!r}).",
            UserWarning,
        )
    return times


def count_actions(y: Any) -> tuple[Any, np.ndarray]:
    """Actions without rewards, and a reward of 1 for each, with a warning."""
    y = as_actions(y)
    warn(NO_REWARDS, UserWarning)
    return y, np.ones(len(y))


def is_log(y: Any, columns: Mapping[str, Any] | None) -> bool:
    """Tell whether y is a log, with a column of actions, or a table of costs."""
    names = column_names(y)
    return names is not None and bool({"action"} & {*names, *(columns or {})})
