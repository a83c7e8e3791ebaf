"""Choices as JSON, and the log that they and their rewards make."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from numbers import Real
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skbandit.logs._arms import Codes, label_array, read_pools
from skbandit.logs._log import column_names, read_times
from skbandit.utils import _validation
from skbandit.utils._exact import exact_table
from skbandit.utils._validation import first_few, plain, warn

CLOCK_ERROR = 60.0
"""Seconds by which a reward may be dated before its choice: clocks of servers differ."""

MANY_EQUAL, MANY_ZEROS = 100, 10_000
"""Numbers of equal rewards, not 0 or 0, after which they are hardly all that occurred."""

CHOICE = ("time", "context", "arm", "propensity", "available")
"""Fields that are equal in all records of one choice."""

REPEATS = ("first", "last", "sum", "error")
"""Ways to combine several rewards of one choice."""


def make_record(
    context: Any,
    arm: Any,
    propensity: Any,
    available: Any,
    arms: list[Any],
    version: int,
    of_slate: bool = False,
) -> dict[str, Any]:
    """Describe a choice by values that JSON holds exactly; None is missing.

    `available` is as passed, of one row; `arms` are those that the policy knows.
    """
    if not of_slate and isinstance(arm, list | np.ndarray) and np.size(arm) != 1:
        raise ValueError(
            f"arm has {np.size(arm)} labels, {arm!r}: a record is of one choice, such as "
            "select(X)[0]."
        )
    if available is not None:
        codes: Codes = {label: k for k, label in enumerate(arms)}
        pools = read_pools(available, 1, codes)
        available = pools.labels(label_array(codes))[0]
    label = _unwrapped(arm, "arm")
    labels = label if isinstance(label, list) else [label]
    given = _unwrapped(propensity, "propensity")
    chances = []
    for chance in given if isinstance(given, list) else [given]:
        chance = float(_validation.at_most_1(chance)) if isinstance(chance, float) else chance
        if chance is not None and not (isinstance(chance, int | float) and 0 < chance <= 1):
            raise ValueError(f"propensity is {chance!r}: a probability is in (0, 1].")
        chances.append(chance)
    pool = None if available is None else [_json_value(other, "available") for other in available]
    if None in labels:
        raise ValueError(f"arm is {arm!r}: the label of an arm cannot be missing.")
    if pool is not None and label not in pool and not all(part in pool for part in labels):
        raise ValueError(f"arm {arm!r} is not among the available arms, {first_few(pool)}.")
    return {
        "id": uuid4().hex,
        "time": time.time(),
        "context": _context(context),
        "arm": label,
        "propensity": chances if isinstance(given, list) else chances[0],
        "available": pool,
        "version": version,
    }


def _context(row: Any) -> dict[str, Any] | list[Any]:
    """Return a row by column names, or as a list if columns are not named by text."""
    if issparse(row):
        row = row.toarray()
    if isinstance(row, pd.Series):
        names, values = row.index.tolist(), row.tolist()
    else:
        names = column_names(row) or []
        shape = np.shape(row)
        if len(shape) == 2 and shape[0] == 1:
            row = row if names else np.asarray(row)[0]
        elif len(shape) != 1 or names:
            raise ValueError(f"X_row has the shape {shape}: pass one row, such as X[:1].")
        if len(set(names)) < len(names):
            raise ValueError(f"X_row has columns of the same name: {first_few(names, 20)}.")
        values = [next(iter(row[name])) for name in names] if names else list(row)
    keys = names or range(len(values))
    plain = [_json_value(v, f"X_row[{k!r}]") for k, v in zip(keys, values, strict=True)]
    by_name = names and all(isinstance(name, str) for name in names)
    return dict(zip(names, plain, strict=True)) if by_name else plain


def _unwrapped(value: Any, name: str) -> Any:
    """Return what `select` returned for one row, or an entry of it, as JSON values."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return _json_value(tuple(value) if isinstance(value, list) else value, name)


def _json_value(value: Any, name: str) -> Any:
    """Return a value as Python's json module reads it back; None for missing ones."""
    value = plain(value)
    if isinstance(value, tuple):
        return [_json_value(part, name) for part in value]
    is_scalar = value is None or isinstance(value, str | int | float)
    if is_scalar and value not in (math.inf, -math.inf):
        return value
    raise ValueError(
        f"{name} is {value!r}, of type {type(value).__name__}, which JSON does not hold: use text, "
        "finite numbers, booleans or tuples of them."
    )


def join_rewards(
    records: Iterable[Mapping[str, Any]],
    rewards: Any,
    *,
    within: float | timedelta | None = None,
    missing: float | None = None,
    repeats: Literal["first", "last", "sum", "error"] = "first",
    now: float | datetime | None = None,
) -> tuple[Any, pd.DataFrame]:
    """Join records of choices with their rewards into contexts and a log to learn.

    Parameters
    ----------
    records : iterable of dict
        Results of a policy's `record`, possibly read back from JSON. A record that occurs twice
        counts once; two choices of one id are an error.
    rewards : DataFrame, dict of columns, iterable of dict, or mapping of ids to rewards
        With columns (or keys) ``id`` and ``reward``, and optionally ``time``, when the reward came,
        in seconds since 1970, as in the records, or datetimes, without a time zone in UTC. A reward
        of a slate is one number, or a list with one per place. None, nan and NA are no reward.
    within : float or timedelta, default=None
        Seconds after the choice within which a reward counts; later ones are left out. None sets no
        limit. Without `missing`, rewards are returned as soon as they are there, which is right if
        rewards of 0 are reported, too, and as early as others.
    missing : float or list of float, default=None
        Reward of choices whose `within` seconds have passed without one, such as 0 if only clicks
        are reported. Choices are then returned when these seconds have passed, with a reward or
        without: clicks that counted at once would be learned before their absence. If rewards are
        lists with one per place, a number stands for each place; pass a list if a call may have no
        rewards at all. As the position of a first click, 0 is a click: pass nan, which is none.
        None leaves out choices without a reward.
    repeats : {"first", "last", "sum", "error"}, default="first"
        What counts if a choice has several rewards: the first or the last in time, such as the
        final state of an order; their sum, such as that of several purchases; or none of them, an
        error. Equal rewards of one time are one that was sent twice. Without times, all rewards
        are added, and the last is that of the last row.
    now : float or datetime, default=None
        Time at which `missing` is decided, in seconds since 1970 or a datetime, without a time zone
        in UTC; None is the present, and infinity decides all.

    Returns
    -------
    X : DataFrame or ndarray
        Contexts, in the form of the rows that were recorded, except that sparse ones are dense.
    log : DataFrame
        One row per reward, in order of time, or as given without times. Columns id, action, reward
        and, if recorded, propensity, available and timestamp: the time of the reward in seconds, or
        with `missing` the time at which the `within` seconds of the choice ended.

    Raises
    ------
    ValueError
        If records differ in their columns, two of different choices have one id, only some of
        them have propensities or available arms, or a choice has several rewards and `repeats` is
        "error".

    Warns
    -----
    UserWarning
        If a choice has different rewards, or equal ones of different times, of which the first
        counts; if a sum, or the last reward, may change, as `within` has not passed; if a reward
        has no record, or came long before its choice; if all came too late; or if 100 or more are
        equal and not 0.

    Notes
    -----
    Each choice is returned once per call. If you call this repeatedly, keep the ids that were
    learned, and pass only other records.

    A policy with a parameter `columns` takes the log as ``log.rename(columns=policy.columns)``.

    Examples
    --------
    >>> import json
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.logs import join_rewards
    >>> policy = GLMUCBPolicy(arms=["tea", "coffee"], exploration="squarecb", random_state=0)
    >>> x = [[0.2, 1.0]]
    >>> arm, chances = policy.select(x)[0], policy.select_proba(x)[0]
    >>> record = policy.record(x, arm, chances[policy.arms_ == arm])
    >>> line = json.dumps(record)  # to a file, a queue or a database
    >>> X, log = join_rewards([json.loads(line)], {record["id"]: 1})
    >>> log[["action", "reward", "propensity"]]
       action  reward  propensity
    0  coffee       1         0.5
    >>> policy = policy.partial_fit(X, log)
    """
    if within is None and missing is not None:
        raise ValueError(
            f"missing={missing!r} needs within=, the seconds after which a reward is missing."
        )
    if repeats not in REPEATS:
        raise ValueError(f"repeats={repeats!r} must be in {REPEATS}.")
    within, until = _seconds(within), _moment(now)
    choices = _by_id(records)
    settled, timed, by_place = _rewards_by_id(rewards, choices, within, repeats)
    if within is not None and missing is not None:
        missing, first, settled = _label(missing), settled, {}
        for key, record in choices.items():
            end = record["time"] + within
            if end <= until:
                each = by_place and isinstance(record["arm"], list) and np.ndim(missing) == 0
                absent = (missing,) * len(record["arm"]) if each else missing
                settled[key] = first[key][0] if key in first else absent, end
    elif within is not None and repeats in ("last", "sum"):
        early = [key for key in settled if choices[key]["time"] + within > until]
        if early:
            warn(
                f"{len(early)} choices may get further rewards, such as id {early[0]!r}, until "
                f"within={within:g} seconds have passed: repeats={repeats!r} needs missing=, which "
                "returns choices then.",
                UserWarning,
            )
    if timed:
        settled = dict(sorted(settled.items(), key=lambda item: item[1][1]))
    learned = [choices[key] for key in settled]
    log: dict[str, Any] = {
        "id": list(settled),
        "action": [_label(record["arm"]) for record in learned],
        "reward": [reward for reward, _ in settled.values()],
    }
    for name in ("propensity", "available"):
        values = [_label(record[name]) for record in learned]
        lacking = [k for k, value in enumerate(values) if value is None]
        if len(lacking) < len(values):
            if lacking:
                raise ValueError(
                    f"record {learned[lacking[0]]['id']!r} has no {name}, but others have: join "
                    "them apart."
                )
            log[name] = values
    if timed:
        log["timestamp"] = np.array([at for _, at in settled.values()], dtype=np.float64)
    numbers = set(np.ravel(log["reward"]).tolist()) if not by_place else set()
    if len(numbers) == 1 and (missing is None or missing in numbers):  # else it would be there
        warn_if_equal(numbers.pop(), len(settled))
    table = pd.DataFrame(log)
    if missing is not None:
        table.attrs["missing"] = missing  # which positions of clicks cannot be: `read_cascade`
    return _contexts(learned, choices), table


def _seconds(within: Any) -> float | None:
    """Length of time in seconds, which is not negative."""
    if isinstance(within, timedelta | np.timedelta64):
        within = pd.Timedelta(within).total_seconds()
    if within is None:
        return None
    if isinstance(within, str | bool):
        raise TypeError(
            f"within={within!r} is neither a number of seconds nor a timedelta: write 600, or "
            "pandas.Timedelta('10min')."
        )
    if not (seconds := _validation.finite(within, "within")) >= 0:
        raise ValueError(f"within={seconds:g} must not be negative: it is in seconds.")
    return seconds


def _moment(now: Any) -> float:
    """Time in seconds since 1970."""
    if now is None:
        return time.time()
    if isinstance(now, datetime | np.datetime64) and now == now:
        return float(read_times([now], 1)[0])
    if not isinstance(now, Real) or isinstance(now, bool) or now != now:
        raise ValueError(
            f"now={now!r} is no time: pass seconds since 1970, a datetime, or None for the present."
        )
    return float(now)


def warn_if_equal(reward: float, n: int) -> bool:
    """Warn of n rewards that are all equal, if they are many; return whether they are.

    Rewards of 0 are common where others are rare.
    """
    if n < (MANY_EQUAL if reward else MANY_ZEROS):
        return False
    cure = (
        "check that ids and times of rewards are those of the records."
        if not reward
        else "if clients report clicks only, they must report 0, too, or join_rewards(missing=0, "
        "within=...) must add it."
    )
    warn(
        f"all of {n} rewards are {reward:g}, so that no arm is better than another: {cure}",
        UserWarning,
    )
    return True


def _by_id(records: Iterable[Mapping[str, Any]]) -> dict[Any, Mapping[str, Any]]:
    """Return records by their ids, which tell choices apart."""
    choices: dict[Any, Mapping[str, Any]] = {}
    rows: Any = records.to_dict("records") if isinstance(records, pd.DataFrame) else records
    for given in rows:
        if not isinstance(given, Mapping):
            raise TypeError(f"a record is no dict, but {given!r}: pass what `record` returned.")
        if lacking := [name for name in ("id", "context", "arm") if name not in given]:
            raise ValueError(
                f"a record has no {lacking[0]!r}, but {first_few(given)}: pass what `record` "
                "returned, or a dict of id, time, context, arm, propensity and available."
            )
        record: dict[str, Any] = dict.fromkeys(("time", "propensity", "available"))
        for name, value in given.items():  # of tables, lists are arrays, and None is nan
            record[name] = value.tolist() if isinstance(value, np.ndarray) else plain(value)
        if isinstance(record.get("time"), str | datetime):
            record["time"] = _moment(pd.Timestamp(record["time"]))
        same = choices.setdefault(record["id"], record)
        differing = [name for name in CHOICE if same.get(name) != record.get(name)]
        if differing:
            name = differing[0]
            raise ValueError(
                f"two records have the id {record['id']!r}, and {name} is {same.get(name)!s:.80} "
                f"in one and {record.get(name)!s:.80} in the other: give each choice an id."
            )
    return choices


def _rewards_by_id(
    rewards: Any, choices: Mapping[str, Any], within: float | None, repeats: str
) -> tuple[dict[str, tuple[Any, float]], bool, bool]:
    """Return the reward of each choice with its time: the first, the last, or the sum.

    And whether there are times, and rewards of each place.
    """
    if isinstance(rewards, Mapping) and "reward" not in rewards:
        rewards = {"id": list(rewards), "reward": list(rewards.values())}
    table = exact_table(rewards)
    if not isinstance(table, pd.DataFrame):
        rows = list(rewards)
        table = pd.DataFrame(rows)
        if "id" in table:  # integers beside None as they are
            table["id"] = np.array([row.get("id") for row in rows] + [None], dtype=object)[:-1]
    lacking = [name for name in ("id", "reward") if len(table) and name not in table]
    if lacking:
        raise ValueError(f"rewards has no {lacking[0]!r}: its columns are {first_few(table, 20)}.")
    timed = "time" in table if len(table) else within is not None
    if within is not None and not timed:
        raise ValueError(f"within={within:g} needs the column 'time' of rewards.")
    times = read_times(table["time"], len(table)) if timed and len(table) else np.zeros(len(table))
    settled: dict[str, tuple[Any, float]] = {}
    sent: set[tuple[Any, Any, float]] = set()
    unknown, repeated, early, late = [], [], [], []
    ids, given = [table[name].tolist() for name in ("id", "reward")] if len(table) else [[], []]
    if len(table) and "uint" in _validation.dtype_names(table["reward"])[0]:
        numbers = table["reward"].to_numpy(np.float64, na_value=np.nan)
        _validation.warn_if_wrapped(table["reward"], numbers, "reward")
    given = [_reward(value) for value in given]
    for k in np.argsort(times, kind="stable").tolist():
        key, reward, at = ids[k], given[k], float(times[k])
        if key not in choices:
            unknown.append(key)
        elif reward is None:
            continue
        elif within is not None and at > choices[key]["time"] + within:
            late.append(key)
        elif key not in settled:
            settled[key] = reward, at
            early += [key] if timed and at < choices[key]["time"] - CLOCK_ERROR else []
        elif timed and (key, reward, at) in sent:
            continue
        elif repeats in ("last", "sum"):
            total = _added(settled[key][0], reward, key) if repeats == "sum" else reward
            settled[key] = total, at
        elif timed or repeats == "error" or settled[key][0] != reward:
            repeated.append((key, (settled[key], (reward, at))))
        sent.add((key, reward, at))
    if unknown:
        warn(
            f"{len(unknown)} of {len(table)} rewards have no record, such as that of id "
            f"{unknown[0]!r}, and those of records are as {first_few(list(choices)[:1])}: they are "
            "left out.",
            UserWarning,
        )
    if early or (late and not settled):
        key, when = (early[0], "before its choice") if early else (late[0], "too late")
        warn(
            f"{len(early or late)} of {len(table)} rewards came {when}, as that of id {key!r}: "
            "check that times are in seconds since 1970, or datetimes with a time zone.",
            UserWarning,
        )
    if repeated:
        key, pair = repeated[0]
        both = " and ".join(f"{reward}" + f" at {at:.15g} s" * timed for reward, at in pair)
        message = f"id {key!r} has several rewards, such as {both}"
        cure = "repeats='sum' adds them, and repeats='last' takes the last one."
        if repeats == "error":
            raise ValueError(f"{message}: {cure}")
        warn(
            f"{message}, of which the first counts; {len(repeated)} are left out: {cure}",
            UserWarning,
        )
    return settled, timed, any(isinstance(reward, tuple) for reward in given)


def _added(reward: Any, other: Any, key: Any) -> Any:
    """Return the sum of two rewards, place by place where there is one per place."""
    if isinstance(reward, Real) and isinstance(other, Real):
        return reward + other
    if not isinstance(reward, tuple) or np.shape(reward) != np.shape(other):
        raise ValueError(
            f"id {key!r} has the rewards {reward} and {other}, which cannot be added: "
            "report numbers, or lists with one per place."
        )
    return tuple(
        b if a != a else a if b != b else a + b for a, b in zip(reward, other, strict=True)
    )


def _reward(value: Any) -> Any:
    """Return a reward, as a tuple if there is one per place; None if it is missing."""
    value = _label(value)
    if isinstance(value, str):
        raise TypeError(f"a reward is the text {value!r}: pass numbers.")
    if not isinstance(value, tuple):
        return None if pd.isna(value) else value
    parts: tuple[Any, ...] = tuple(math.nan if pd.isna(part) else part for part in value)
    return None if all(part is math.nan for part in parts) else parts


def _label(value: Any) -> Any:
    """Return lists and arrays as tuples."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(_label(part) for part in value) if isinstance(value, list) else value


def _contexts(learned: list[Any], choices: Mapping[str, Any]) -> Any:
    """Return recorded contexts as a table like the one that their rows came from."""
    form: Any = next((record["context"] for record in choices.values()), [])
    columns = list(form) if isinstance(form, dict) else range(len(form))
    rows = []
    for record in learned:
        row = record["context"]
        now = list(row) if isinstance(row, dict) else range(len(row))
        what = f"the context of record {record['id']!r}, {row!s:.80},"
        _validation.same_columns(
            columns, now, what, "join records of other columns than the first apart."
        )
        rows.append([np.nan if row[name] is None else row[name] for name in columns])
    table = pd.DataFrame(rows, columns=columns)
    return table if isinstance(form, dict) else table.to_numpy()
