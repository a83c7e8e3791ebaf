"""Events for a policy to learn, their times, and logs encoded for compiled replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack

from skbandit.logs import Codes, Pools, ReplayRequest, check_in_order, code_labels, label_array
from skbandit.utils._validation import warn


@dataclass(frozen=True)
class Events:
    """Events for a policy to learn, in order."""

    X: Any  # (n_events, n_features), array or CSR
    arms: np.ndarray  # (n_events,), labels
    reward: np.ndarray  # (n_events,)
    weight: np.ndarray  # (n_events,)
    window: np.ndarray  # (n_events,), index of the update window

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: np.ndarray) -> Events:
        """Select events by a mask or by position."""
        return Events(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def join(parts: Sequence[Events]) -> Events:
    """Concatenate events; labels of several types as objects, as int64 would become float64."""
    X, arms, *others = zip(*(vars(part).values() for part in parts), strict=True)
    if len({labels.dtype for labels in arms}) > 1:
        arms = tuple(labels.astype(object) for labels in arms)
    return Events(join_contexts(X), *(np.concatenate(column) for column in (arms, *others)))


def join_contexts(parts: Sequence[Any]) -> Any:
    """Concatenate contexts; one sparse part makes all sparse."""
    if any(issparse(part) for part in parts):
        return vstack(parts, format="csr")
    return np.concatenate(parts)


def windows_of(timestamp: np.ndarray | None, every: float) -> np.ndarray:
    """Return index of the window of `every` seconds that holds each of the ordered times."""
    if timestamp is None:
        raise ValueError(
            "update_every requires event times, but the log has no column 'timestamp'."
        )
    check_in_order(timestamp, "update_every")
    return np.floor(timestamp / every).astype(np.int64)


class EncodedLog(NamedTuple):
    """Events of a log, arms numbered as in posterior; further rows hold delayed events."""

    X: Any  # (n_rows, n_features), or some of the rows
    place: np.ndarray  # (n_rows,), where X has a row; empty if it has all
    action: np.ndarray  # (n_rows,)
    reward: np.ndarray  # (n_rows,)
    sets: Pools  # available arms of each event
    window: np.ndarray  # (n_rows,), index of the event's update window; empty without delay


def encode_log(
    request: ReplayRequest, X: Any, *, every: float | None, delayed: Events | None, codes: Codes
) -> tuple[EncodedLog, Codes]:
    """Return the log of a replay as compiled code takes it, and `codes` with its new arms.

    `X` are the request's contexts, checked. `every` is the length of update windows in seconds, or
    None to learn at once; `delayed` are events, of weight 1, that await learning.
    """
    log, rows, n_events, codes = request.log, request.rows, len(request.log), dict(codes)
    number = code_labels(log.arms, codes).astype(np.int64)  # of each arm of the log
    action, reward = number[log.action], log.reward
    window = np.empty(0, dtype=np.int64)
    if every is not None and (request.learn or delayed is not None):
        times = None if log.timestamp is None else log.timestamp[rows]
        window = np.empty(n_events, dtype=np.int64)
        window[rows] = windows_of(times, every)
    if delayed is not None:
        X = join_contexts([X, delayed.X])
        action = np.concatenate([action, code_labels(delayed.arms, codes)])
        reward = np.concatenate([reward, delayed.reward])
        window = np.concatenate([window, delayed.window])
    sets = log.sets._replace(arms=number[log.sets.arms])
    reward = reward.view()
    reward.flags.writeable = False  # as from pandas: another kind of array is compiled again
    return EncodedLog(X, np.empty(0, np.int64), action, reward, sets, window), codes


def still_waiting(
    request: ReplayRequest, log: EncodedLog, labels: list[Any], accepted: np.ndarray, n_seen: int
) -> list[Events]:
    """Events accepted by a replay, or waiting before it, whose window had not ended at its end.

    Parameters
    ----------
    request : ReplayRequest
        The replay.
    log : EncodedLog
        Its log, whose rows beyond the request's waited before.
    labels : list
        Labels of the arms of the log.
    accepted : ndarray
        Positions of accepted events in the rows of the request.
    n_seen : int
        Number of rows that were consumed.
    """
    window = log.window
    if not len(window):
        return []
    before = np.arange(len(request.log), len(window))
    learned = accepted[~request.deployment[accepted]] if request.learn else accepted[:0]
    rows = np.concatenate([before, request.rows[learned]])
    # showing an event first learns those of earlier windows
    shown = np.flatnonzero(request.keep[:n_seen])
    if len(shown):
        rows = rows[window[rows] == window[request.rows[shown[-1]]]]
    arms = label_array(labels)[log.action[rows]]
    events = Events(log.X[rows], arms, log.reward[rows], np.ones(len(rows)), window[rows])
    return [events] if len(events) else []


def check_time(
    timestamp: np.ndarray, latest: float | None, *, every: float | None, forgetting: float
) -> None:
    """Check that time runs forward, within events and from those learned before.

    Update windows and forgetting need it, so events out of order are an error. Otherwise they are
    learned in the order given, with a warning.

    Parameters
    ----------
    timestamp : ndarray of shape (n_events,)
        Seconds.
    latest : float or None
        Time of the latest event of earlier calls.
    every : float or None
        Length of update windows in seconds; an event may be late within its window.
    forgetting : float
        Discount of earlier evidence; below 1, the order of events matters.
    """
    first = float(timestamp[0])
    needs = "update_every" if every is not None else f"forgetting={forgetting:g}"
    strict = every is not None or forgetting < 1
    if strict:
        check_in_order(timestamp, needs)
    back = np.flatnonzero(np.diff(timestamp) < 0)
    before = first if latest is None else latest
    late = first < before
    if every is not None and late:  # an event may be late within its window
        late = bool(np.floor(first / every) < np.floor(before / every))
    if late:
        problem = (
            f"timestamp of row 0, {first:.15g} s, is earlier than that of an event learned before, "
            f"{before:.15g} s"
        )
        if strict:
            raise ValueError(f"{problem}: {needs} needs events in order of time.")
    elif len(back):
        problem = f"timestamp goes back on row {back[0] + 1}"
    else:
        return
    warn(
        f"{problem}: events are learned in the given order, and another order leads to another "
        "state. Sort the log by time.",
        UserWarning,
    )
