"""A log as a policy's compiled pass takes it, and what the policy knows after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbandit.bandit._delayed import Events, windows_of
from skbandit.bandit._kernels import walk
from skbandit.bandit._state import Beliefs, Choices, Prior, Rule, with_arms
from skbandit.logs import Codes, Log, code_labels, label_array


class Replayed(NamedTuple):
    """What a pass accepted, and what is known of the arms after it."""

    accepted: np.ndarray  # positions in the rows that were walked
    n_seen: int
    codes: Codes
    beliefs: Beliefs
    waiting: Events | None  # accepted, and not learned yet


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
    waiting: Events | None,
    alphas: np.ndarray,
    codes: Codes,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> Replayed:
    """Replay a log to what `beliefs` say of the arms in `codes`, without changing either.

    See `skbandit.bandit._kernels.walk`; `every` is in seconds, and None is not to wait. Events
    that are `waiting` have weight 1.
    """
    known, n_events = len(codes), len(log)
    codes = dict(codes)
    number = code_labels(log.arms, codes).astype(np.int64)  # of the log's arms
    action, reward = number[log.action], log.reward
    window = np.empty(0, dtype=np.int64)
    if every is not None and (learn or waiting is not None):
        times = None if log.timestamp is None else log.timestamp[rows]
        window = np.empty(n_events, dtype=np.int64)
        window[rows] = windows_of(times, every)
    if waiting is not None:  # as further rows, which are walked by no one
        X = np.concatenate([X, waiting.X])
        action = np.concatenate([action, code_labels(waiting.arms, codes)])
        reward = np.concatenate([reward, waiting.reward])
        window = np.concatenate([window, waiting.window])
    beliefs = with_arms(beliefs, list(codes)[known:], prior)
    # as if not known before they are learned: arms seen in between come first
    beliefs.rank[known:] += len(codes)
    if log.pools is None:
        sets = Choices(np.zeros(n_events, np.int32), np.array([0, len(number)]), number)
    else:
        sets = Choices(log.pools.of_event, log.pools.start, number[log.pools.arms])
    held = np.arange(n_events, len(X))
    accepted, n_seen = walk(
        X,
        action,
        reward,
        sets,
        window,
        held,
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
    still = None
    if len(window):
        learning = accepted[~deployment[accepted]] if learn else accepted[:0]
        waited = np.concatenate([held, rows[learning]])
        # whoever is shown an event learns those of earlier windows first
        shown = np.flatnonzero(keep[:n_seen])
        if len(shown):
            waited = waited[window[waited] == window[rows[shown[-1]]]]
        if len(waited):
            labels = label_array(codes)[action[waited]]
            ones = np.ones(len(waited))
            still = Events(X[waited], labels, reward[waited], ones, window[waited])
    return Replayed(accepted, n_seen, *_as_learned(codes, beliefs, known), still)


def _as_learned(codes: Codes, beliefs: Beliefs, known: int) -> tuple[Codes, Beliefs]:
    """The arms known before and those learned since, in this order, as if learned one by one."""
    labels = list(codes)
    learned = beliefs.learned[: beliefs.clock[2]]
    arms = np.concatenate([np.arange(known), learned[learned >= known]])
    number = np.zeros(len(labels), dtype=np.int64)
    number[arms] = np.arange(len(arms))
    order = np.zeros(len(arms), dtype=np.int64)
    order[: len(learned)] = number[learned]
    kept = Beliefs(
        mean=beliefs.mean[arms],
        spread=beliefs.spread[arms],
        n_updates=beliefs.n_updates[arms],
        rank=beliefs.rank[arms],
        learned=order,
        key=beliefs.key[arms],
        clock=beliefs.clock,
    )
    return {labels[arm]: k for k, arm in enumerate(arms.tolist())}, kept
