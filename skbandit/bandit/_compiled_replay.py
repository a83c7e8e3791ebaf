"""Replay in compiled code: a log encoded for the kernel, and the policy's state afterwards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbandit.bandit._delayed import Events, windows_of
from skbandit.bandit._kernels import EncodedLog, Schedule, replay_rows
from skbandit.bandit._posterior import with_arms
from skbandit.bandit._state import N_LEARNED_ARMS, ArmSets, Beliefs, Prior, Rule, only_arms
from skbandit.logs import Codes, ReplayRequest, code_labels, label_array


class Replayed(NamedTuple):
    """Accepted events, and the state of the policy after them."""

    accepted: np.ndarray  # positions in the rows of the request
    n_seen: int  # rows consumed
    codes: Codes
    beliefs: Beliefs
    delayed: Events | None  # accepted, but not learned yet


def replay_compiled(
    request: ReplayRequest,
    X: np.ndarray,
    *,
    every: float | None,
    delayed: Events | None,
    alphas: np.ndarray,
    codes: Codes,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> Replayed:
    """Replay a log with `beliefs` about the arms in `codes`, without changing either.

    `X` are the request's contexts, checked. `every` is the length of update windows in seconds,
    or None to learn at once; `delayed` are events, of weight 1, that await learning.
    """
    log, rows, keep = request.log, request.rows, request.keep
    n_known, n_events = len(codes), len(log)
    codes = dict(codes)
    number = code_labels(log.arms, codes).astype(np.int64)  # of each arm of the log
    action, reward = number[log.action], log.reward
    window = np.empty(0, dtype=np.int64)
    if every is not None and (request.learn or delayed is not None):
        times = None if log.timestamp is None else log.timestamp[rows]
        window = np.empty(n_events, dtype=np.int64)
        window[rows] = windows_of(times, every)
    if delayed is not None:  # further rows, outside the schedule
        X = np.concatenate([X, delayed.X])
        action = np.concatenate([action, code_labels(delayed.arms, codes)])
        reward = np.concatenate([reward, delayed.reward])
        window = np.concatenate([window, delayed.window])
    beliefs = with_arms(beliefs, list(codes)[n_known:], prior)
    # new arms rank last until they are learned: arms learned in the meantime precede them
    beliefs.tie_order[n_known:] += len(codes)
    if log.pools is None:
        sets = ArmSets(np.zeros(n_events, np.int32), np.array([0, len(number)]), number)
    else:
        sets = ArmSets(log.pools.of_event, log.pools.start, number[log.pools.arms])
    delayed_rows = np.arange(n_events, len(X))
    greedy = request.deployment | (request.rule == "predict")
    accepted, n_seen = replay_rows(
        EncodedLog(X, action, reward, sets, window, delayed_rows),
        Schedule(rows, keep, greedy, request.deployment),
        request.learn,
        len(rows) if request.max_accepted is None else request.max_accepted,
        alphas,
        beliefs,
        prior,
        rule,
    )
    still_delayed = None
    if len(window):
        learned = accepted[~request.deployment[accepted]] if request.learn else accepted[:0]
        candidates = np.concatenate([delayed_rows, rows[learned]])
        # showing an event first learns those of earlier windows
        shown = np.flatnonzero(keep[:n_seen])
        if len(shown):
            candidates = candidates[window[candidates] == window[rows[shown[-1]]]]
        if len(candidates):
            labels = label_array(codes)[action[candidates]]
            ones = np.ones(len(candidates))
            still_delayed = Events(
                X[candidates], labels, reward[candidates], ones, window[candidates]
            )
    return Replayed(accepted, n_seen, *_in_learned_order(codes, beliefs, n_known), still_delayed)


def _in_learned_order(codes: Codes, beliefs: Beliefs, n_known: int) -> tuple[Codes, Beliefs]:
    """Drop new arms never learned, and number the others as if learned one by one."""
    labels = list(codes)
    learned = beliefs.learned[: beliefs.counters[N_LEARNED_ARMS]]
    arms = np.concatenate([np.arange(n_known), learned[learned >= n_known]])
    return {labels[arm]: k for k, arm in enumerate(arms.tolist())}, only_arms(beliefs, arms)
