"""One replay pass over a log: Algorithms 1 and 2 of Li et al. (2012), for any policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._policy_protocol import checked_choices
from skbandit.logs import Log, ReplayRequest
from skbandit.utils._progress import iter_with_progress
from skbandit.utils._sklearn_compat import rows_of

# Events per call of a policy whose choices cannot change during the replay.
_BATCH_SIZE = 8192


def replay_pass(
    policy: Any, request: ReplayRequest, report: Callable[[float], None] = lambda share: None
) -> tuple[np.ndarray, int]:
    """Show a policy one event after the other, and keep those whose action it chooses.

    This is the reference for `_replay_log` of a policy, which must return the same.

    Parameters
    ----------
    policy : object
        Modified as it learns.
    request : ReplayRequest
        The log, the events to replay, and the choice to play. With `max_accepted`, the pass is
        Algorithm 1, else Algorithm 2.
    report : callable
        Called every few seconds with the share of the events replayed.

    Returns
    -------
    accepted : ndarray of shape (n_accepted,)
        Positions in ``request.rows`` of the matches in either bucket, ascending.
    n_seen : int
        Number of rows consumed.
    """
    replayed = _ReplayedPolicy(policy, request)
    accepted, n_valid = [np.empty(0, dtype=np.int64)], 0  # n_valid is T in the paper
    n_seen, horizon = len(request.rows), request.max_accepted
    for events in replayed.batches(report):  # line 5: get the next event
        kept = events[replayed.chooses_logged_action(events)]  # line 6
        valid = kept[~request.deployment[kept]]
        if horizon is not None and n_valid + len(valid) >= horizon:  # Algorithm 1 ends
            last = valid[horizon - n_valid - 1]
            accepted.append(kept[kept <= last])
            n_seen = int(last) + 1
            break
        accepted.append(kept)
        replayed.learn(valid)  # line 7
        n_valid += len(valid)  # line 9
    replayed.warn_of_unavailable_choices()
    return np.concatenate(accepted), n_seen


class _ReplayedPolicy:
    """A policy before the events of a request; events are positions in ``request.rows``."""

    def __init__(self, policy: Any, request: ReplayRequest) -> None:
        self.policy = policy
        self.request = request
        log, X = request.log, request.X
        # rows_of takes any container, but is slow
        self.contexts = X.__getitem__ if isinstance(X, np.ndarray) else partial(rows_of, X)
        self.sets, self.set_of_event = log.available_sets()
        self.choosers = {
            name: checked_choices(policy, name)
            for name in {request.rule, "predict"}
            if hasattr(policy, name)
        }
        learns = request.learn and hasattr(policy, "partial_fit")
        self.feedback = _feedback(log) if learns else None
        self.times = log.timestamp if hasattr(policy, "advance") else None
        self.n_unavailable = 0
        self.first_unavailable = ""

    def batches(self, report: Callable[[float], None]) -> Iterator[np.ndarray]:
        """Events to show at once: single ones if the policy changes from event to event."""
        changes = self.feedback is not None or self.times is not None
        size = 1 if changes else _BATCH_SIZE
        shown = np.flatnonzero(self.request.keep)  # the others could not be kept anyway
        for start in iter_with_progress(range(0, len(shown), size), report):
            yield shown[start : start + size]

    def chooses_logged_action(self, events: np.ndarray) -> np.ndarray:
        """Mask of the events on which the policy's choice is the logged action."""
        rows = self.request.rows[events]
        if self.times is not None:
            self.policy.advance(self.times[rows[0]])
        matches = np.empty(len(events), dtype=bool)
        deployment = self.request.deployment[events]
        for rule, bucket in (("predict", deployment), (self.request.rule, ~deployment)):
            if bucket.any():
                matches[bucket] = self._matches(rule, rows[bucket])
        return matches

    def _matches(self, rule: str, rows: np.ndarray) -> list[bool]:
        available = [self.sets[k] for k in self.set_of_event[rows].tolist()]
        choices = self.choosers[rule](self.contexts(rows), available)
        for row, choice, arms in zip(rows, choices, available, strict=True):
            if choice not in arms:
                self.n_unavailable += 1
                self.first_unavailable = self.first_unavailable or f"{choice!r} on row {row}"
        log = self.request.log
        logged = log.arms[log.action[rows]].tolist()
        return [choice == action for choice, action in zip(choices, logged, strict=True)]

    def learn(self, events: np.ndarray) -> None:
        """Pass events to `partial_fit`, if the policy learns."""
        if self.feedback is not None and len(events):
            rows = self.request.rows[events]
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
