"""One replay pass over a log: Algorithms 1 and 2 of Li et al. (2012), for any policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._policy_protocol import checked_choices
from skbandit.evaluation._replay._options import ReplayOptions
from skbandit.evaluation._replay._schedule import ReplaySchedule
from skbandit.logs import Log
from skbandit.utils._progress import iter_with_progress
from skbandit.utils._sklearn_compat import rows_of

# Events per call of a policy whose choices cannot change during the replay.
_BATCH_SIZE = 8192


def replay_pass(
    policy: Any,
    X: Any,
    log: Log,
    schedule: ReplaySchedule,
    options: ReplayOptions,
    max_accepted: int | None,
    report: Callable[[float], None] = lambda share: None,
) -> tuple[np.ndarray, int]:
    """Show a policy one event after the other, and keep those whose action it chooses.

    This is the reference: a policy's own pass (see `_policy_protocol`) must return the same.

    Parameters
    ----------
    policy : object
        Modified as it learns.
    X : {array, sparse matrix, DataFrame} of shape (n_events, n_features)
        Contexts, in the order of `log`.
    log : Log
        All of its arms are available to every event unless it has `pools`.
    schedule : ReplaySchedule
        The events to replay. Those that would not be kept are not shown to the policy.
    options : ReplayOptions
        Which choice is played, and whether the policy learns.
    max_accepted : int or None
        Stop after this many matches in the learning bucket (Algorithm 1); None replays the
        whole log (Algorithm 2).
    report : callable
        Called every few seconds with the share of the events replayed.

    Returns
    -------
    accepted : ndarray of shape (n_accepted,)
        Positions in ``schedule.rows`` of the matches in either bucket, ascending.
    n_seen : int
        Number of scheduled events up to the end of the pass.
    """
    replayed = _ReplayedPolicy(policy, X, log, schedule, options)
    accepted, n_valid = [np.empty(0, dtype=np.int64)], 0  # T in the paper
    n_seen = len(schedule.rows)
    for events in replayed.batches(report):  # line 5: get the next event
        kept = events[replayed.chooses_logged_action(events)]  # line 6
        valid = kept[~schedule.deployment[kept]]
        if max_accepted is not None and n_valid + len(valid) >= max_accepted:  # Algorithm 1
            last = valid[max_accepted - n_valid - 1]
            accepted.append(kept[kept <= last])
            n_seen = int(last) + 1
            break
        accepted.append(kept)
        n_valid += len(valid)  # line 9
        replayed.learn(valid)  # line 7
    replayed.warn_of_unavailable_choices()
    return np.concatenate(accepted), n_seen


class _ReplayedPolicy:
    """A policy before the scheduled events of a log; events are positions in the schedule."""

    def __init__(
        self, policy: Any, X: Any, log: Log, schedule: ReplaySchedule, options: ReplayOptions
    ) -> None:
        self.policy = policy
        self.log = log
        self.schedule = schedule
        self.rule = options.rule
        # rows_of takes any container, but is slow
        self.contexts = X.__getitem__ if isinstance(X, np.ndarray) else partial(rows_of, X)
        self.sets, self.set_of_event = log.available_sets()
        self.choosers = {
            name: checked_choices(policy, name)
            for name in {options.rule, "predict"}
            if hasattr(policy, name)
        }
        self.feedback = _feedback(log) if options.learns(policy) else None
        self.times = log.timestamp if hasattr(policy, "advance") else None
        self.n_unavailable = 0
        self.first_unavailable = ""

    def batches(self, report: Callable[[float], None]) -> Iterator[np.ndarray]:
        """Events to show at once: single ones if the policy changes from event to event."""
        changes = self.feedback is not None or self.times is not None
        size = 1 if changes else _BATCH_SIZE
        shown = np.flatnonzero(self.schedule.keep)
        for start in iter_with_progress(range(0, len(shown), size), report):
            yield shown[start : start + size]

    def chooses_logged_action(self, events: np.ndarray) -> np.ndarray:
        """Mask of the events on which the policy's choice is the logged action."""
        if self.times is not None:
            self.policy.advance(self.times[self.schedule.rows[events[0]]])
        matches = np.empty(len(events), dtype=bool)
        deployment = self.schedule.deployment[events]
        for rule, bucket in (("predict", deployment), (self.rule, ~deployment)):
            if bucket.any():
                matches[bucket] = self._matches(rule, self.schedule.rows[events[bucket]])
        return matches

    def _matches(self, rule: str, rows: np.ndarray) -> list[bool]:
        available = [self.sets[k] for k in self.set_of_event[rows].tolist()]
        choices = self.choosers[rule](self.contexts(rows), available)
        for row, choice, arms in zip(rows, choices, available, strict=True):
            if choice not in arms:
                self.n_unavailable += 1
                self.first_unavailable = self.first_unavailable or f"{choice!r} on row {row}"
        logged = self.log.arms[self.log.action[rows]].tolist()
        return [choice == action for choice, action in zip(choices, logged, strict=True)]

    def learn(self, events: np.ndarray) -> None:
        """Pass events to `partial_fit`, if the policy learns."""
        if self.feedback is not None and len(events):
            rows = self.schedule.rows[events]
            self.policy.partial_fit(self.contexts(rows), self.feedback.iloc[rows])

    def warn_of_unavailable_choices(self) -> None:
        """Warn if the policy chose arms that were not available."""
        if self.n_unavailable:
            warnings.warn(
                f"{type(self.policy).__name__} chose arms that were not available on "
                f"{self.n_unavailable:,} events, first {self.first_unavailable}. Such events can "
                "never be kept, so the estimate is for the other contexts only: let the policy "
                "choose among `available`.",
                UserWarning,
                stacklevel=3,
            )


def _feedback(log: Log) -> pd.DataFrame:
    """The log as the `y` of `partial_fit`, one row per event."""
    columns = {"action": log.arms[log.action], "reward": log.reward}
    if log.timestamp is not None:
        columns["timestamp"] = log.timestamp
    return pd.DataFrame(columns)
