"""Replay in compiled code: a log encoded for the kernel, and the policy's state afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from skbandit.bandit._contexts import (
    every_weight_changes,
    every_weight_counts,
    gathered,
    of_features,
)
from skbandit.bandit._kernels import EncodedLog, Schedule
from skbandit.bandit._passes import replay_rows
from skbandit.bandit._posterior import with_arms
from skbandit.bandit._sequential import Events, joined, still_waiting, windows_of
from skbandit.bandit._state import N_LEARNED_ARMS, ArmSets, Beliefs, Prior, Rule, only_arms
from skbandit.logs import Codes, ReplayRequest, code_labels, label_array


class Replayed(NamedTuple):
    """Accepted events, and the state of the policy after them."""

    accepted: np.ndarray  # positions in the rows of the request
    n_seen: int  # rows consumed
    codes: Codes
    beliefs: Beliefs
    delayed: Events | None  # accepted, but not learned yet


class Compact(NamedTuple):
    """Sparse contexts without the features that neither count nor change."""

    X: Any
    weights: np.ndarray | None  # numbers of the weights of its columns; None is all


def compact(X: Any, beliefs: Beliefs, prior: Prior, rule: Rule) -> Compact:
    """Leave out features whose weights cannot change.

    They occur neither in these contexts nor, where units are renewed, in those learned before.
    """
    if not issparse(X) or every_weight_counts(beliefs) or every_weight_changes(prior):
        return Compact(X, None)
    n_features = X.shape[1]
    features = np.union1d(X.indices, np.flatnonzero(beliefs.seen_squares))
    constant = [n_features] if rule.intercept else []
    weights = np.concatenate([features, constant]).astype(np.int64)
    return Compact(X[:, features], weights)


def replay_compiled(
    request: ReplayRequest,
    X: Any,
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
    contexts = X if delayed is None else joined([X, delayed.X])  # further rows, not in the schedule
    X, weights = compact(contexts, beliefs, prior, rule)
    known, whole_prior = beliefs, prior
    if weights is not None:
        beliefs = gathered(beliefs, weights)
        prior = prior._replace(mean=prior.mean[weights], variance=prior.variance[:, weights])
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
    if delayed is not None:
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
    delayed_rows = np.arange(n_events, X.shape[0])
    greedy = request.deployment | (request.rule == "predict")
    accepted, n_seen = replay_rows(
        EncodedLog(X, np.empty(0, dtype=np.int64), action, reward, sets, window),
        Schedule(rows, keep, greedy, request.deployment),
        delayed_rows,
        request.learn,
        len(rows) if request.max_accepted is None else request.max_accepted,
        alphas,
        beliefs,
        prior,
        rule,
    )
    still_delayed = None
    if len(window):
        waiting = still_waiting(request, window, len(delayed_rows), accepted, n_seen)
        if len(waiting):
            labels = label_array(codes)[action[waiting]]
            ones = np.ones(len(waiting))
            still_delayed = Events(
                contexts[waiting], labels, reward[waiting], ones, window[waiting]
            )
    codes, beliefs = _in_learned_order(codes, beliefs, n_known)
    if weights is not None:
        whole = with_arms(known, list(codes)[n_known:], whole_prior)
        whole.mean[:, :, weights], whole.cov_factor[:, :, weights] = (
            beliefs.mean,
            beliefs.cov_factor,
        )
        features = of_features(weights, known)
        whole.rate[features], whole.seen_squares[features] = beliefs.rate, beliefs.seen_squares
        beliefs = beliefs._replace(
            mean=whole.mean,
            cov_factor=whole.cov_factor,
            rate=whole.rate,
            seen_squares=whole.seen_squares,
        )
    return Replayed(accepted, n_seen, codes, beliefs, still_delayed)


def _in_learned_order(codes: Codes, beliefs: Beliefs, n_known: int) -> tuple[Codes, Beliefs]:
    """Drop new arms never learned, and number the others as if learned one by one."""
    labels = list(codes)
    learned = beliefs.learned[: beliefs.counters[N_LEARNED_ARMS]]
    arms = np.concatenate([np.arange(n_known), learned[learned >= n_known]])
    return {labels[arm]: k for k, arm in enumerate(arms.tolist())}, only_arms(beliefs, arms)
