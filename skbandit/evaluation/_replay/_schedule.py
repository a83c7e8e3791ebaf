"""The random decisions of a replay, drawn before it starts and so the same for every policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ReplaySchedule:
    """The events of one run in order, which matches are kept, and their bucket."""

    rows: np.ndarray  # (n_rows,), positions in the log, in the order of the replay
    keep: np.ndarray  # (n_rows,), whether the event is kept if the policy chooses its action
    deployment: np.ndarray  # (n_rows,), whether it is in the deployment bucket


@dataclass(frozen=True)
class Streams:
    """Independent random streams of one run, so that a log can be replayed in blocks."""

    events: np.random.Generator  # order, subsample and which matches are kept
    buckets: np.random.Generator
    seed: int  # for a policy without a `random_state` of its own

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> Streams:
        """All streams, spawned from one seed."""
        events, buckets, policy = (np.random.default_rng(own) for own in (seed, *seed.spawn(2)))
        return cls(events, buckets, int(policy.integers(2**31)))


def draw_schedule(
    probability: np.ndarray,
    c: float,
    streams: Streams,
    *,
    deployment_share: float,
    shuffle: bool = False,
    subsample: float | None = None,
) -> ReplaySchedule:
    """Draw the order, subsample and buckets of the events, and which matches are kept.

    A match logged with probability p is kept with probability min(1, c/p): if c is at most every
    p, matches are kept with probability c whatever their context and arm.

    Without `shuffle` and `subsample`, the schedules of consecutive blocks are the schedule of the
    whole log.
    """
    rng = streams.events
    n_events = len(probability)
    rows = np.arange(n_events)
    if subsample is not None:
        chosen = np.zeros(n_events, dtype=bool)
        size = max(1, round(subsample * n_events))
        chosen[rng.choice(n_events, size, replace=False, shuffle=False)] = True
        rows = np.flatnonzero(chosen)
    if shuffle:
        rows = rng.permutation(rows)
    of_rows = probability[rows] if shuffle or subsample is not None else probability
    keep = rng.random(len(rows)) < c / of_rows
    deployment = np.zeros(len(rows), dtype=bool)
    if deployment_share:
        deployment = streams.buckets.random(len(rows)) < deployment_share
    return ReplaySchedule(rows, keep, deployment)
