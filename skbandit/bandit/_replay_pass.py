"""A log as a policy's compiled pass takes it."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._beliefs import Beliefs, Choices, Prior, Rule, with_arms
from skbandit.bandit._events import windows_of
from skbandit.bandit._passes import walk
from skbandit.utils._arms import Codes, code_labels
from skbandit.utils._log import Log


def replay_pass(
    X: np.ndarray,
    log: Log,
    rows: np.ndarray,
    keep: np.ndarray,
    greedy: np.ndarray,
    deployment: np.ndarray,
    *,
    max_accepted: int,
    learn: bool,
    every: float | None,
    alphas: np.ndarray,
    codes: Codes,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> tuple[np.ndarray, int]:
    """Replay a log to what `beliefs` say of the arms in `codes`, without changing either.

    See `skbandit.bandit._passes.walk`; `every` is in seconds, and None is not to wait.
    """
    known = len(codes)
    codes = dict(codes)
    number = code_labels(log.arms, codes).astype(np.int64)  # of the log's arms
    beliefs = with_arms(beliefs, list(codes)[known:], prior)
    # as if not known before they are learned: arms seen in between come first
    beliefs.rank[known:] += len(codes)
    if log.pools is None:
        sets = Choices(np.zeros(len(log), np.int32), np.array([0, len(number)]), number)
    else:
        sets = Choices(log.pools.of_event, log.pools.start, number[log.pools.arms])
    window = np.empty(0, dtype=np.int64)
    if every is not None and learn:
        times = None if log.timestamp is None else log.timestamp[rows]
        window = np.empty(len(log), dtype=np.int64)
        window[rows] = windows_of(times, every)
    return walk(
        X,
        number[log.action],
        log.reward,
        sets,
        window,
        rows,
        keep,
        greedy,
        deployment,
        learn,
        max_accepted,
        alphas,
        beliefs,
        prior,
        rule,
    )
