"""Compiled passes over rows, split so that Ctrl-C is noticed, and the arrays that they fill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbandit.bandit import _kernels as kernels
from skbandit.bandit._events import EncodedLog
from skbandit.bandit._kernels import Course, Events, Schedule
from skbandit.bandit._posterior import change_units, workspace_for
from skbandit.bandit._state import N_EVENTS, ArmSets, Beliefs, Prior, Rule
from skbandit.bandit.exploration import parts_of
from skbandit.logs import ReplayRequest
from skbandit.utils._compiled import slices

ENTRIES = 2**20
"""Entries of sparse rows that become dense at once: 8 MB. Beyond, memory is wasted without gain."""


def score_rows(X: np.ndarray, t: int, alpha: float, beliefs: Beliefs, rule: Rule) -> np.ndarray:
    """Scores of all arms in choices t, t + 1, ..., or in greedy ones, (n_rows, n_arms)."""
    space, scores = _space(beliefs), np.empty((len(X), len(beliefs.mean)))
    for rows in slices(len(X)):
        kernels.score_rows(
            X[rows], first_choice(t, rows), alpha, beliefs, rule, space, scores[rows]
        )
    return scores


def choose_rows(
    X: np.ndarray, sets: ArmSets, t: int, alpha: float, beliefs: Beliefs, rule: Rule
) -> np.ndarray:
    """Arm chosen on each row in choices t, t + 1, ..., or in greedy ones."""
    space, chosen = _space(beliefs), np.empty(len(X), dtype=np.int64)
    proposing, _ = parts_of(rule)
    own: tuple[Any, Any, Any, Any] = tuple(beliefs), tuple(rule), proposing, space
    if len(X) == 1:  # in service, slices take longer than the choice
        kernels.choose_rows(X, tuple(sets), t, alpha, *own, chosen)
        return chosen
    for rows in slices(len(X)):
        of_rows = tuple(sets_of(sets, rows))
        kernels.choose_rows(X[rows], of_rows, first_choice(t, rows), alpha, *own, chosen[rows])
    return chosen


def probability_rows(
    X: np.ndarray, sets: ArmSets, alpha: float, beliefs: Beliefs, rule: Rule
) -> np.ndarray:
    """Probability of each arm on each row, (n_rows, n_arms); 0 if not available."""
    space, n_arms = _space(beliefs), len(beliefs.mean)
    workspace, out = np.empty((5, n_arms)), np.zeros((len(X), n_arms))
    proposing, draws = parts_of(rule)
    for rows in slices(len(X)):
        sets_of_rows = sets_of(sets, rows)
        kernels.probability_rows(
            X[rows],
            sets_of_rows,
            alpha,
            beliefs,
            rule,
            proposing,
            draws,
            space,
            workspace,
            out[rows],
        )
    return out


def learn_rows(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
    *,
    at_once: bool,
    renews: bool = True,
) -> None:
    """Learn events in order, ignoring those of weight 0; `at_once` cannot be interrupted.

    If `renews`, units that are due are renewed.
    """
    space, workspace = _space(beliefs), workspace_for(beliefs.mean.shape[2])
    for rows in [slice(None)] if at_once else slices(len(X)):
        kernels.learn_rows(
            X[rows],
            action[rows],
            reward[rows],
            weight[rows],
            beliefs,
            prior,
            rule,
            renews,
            space,
            workspace,
        )


def renew_units(beliefs: Beliefs, prior: Prior) -> None:
    """Renew the units of features now."""
    change_units(beliefs, prior, prior.adaptive_mean, workspace_for(beliefs.mean.shape[2]))


def replay_rows(
    request: ReplayRequest,
    log: EncodedLog,
    alphas: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> tuple[np.ndarray, int]:
    """Replay a log, changing the beliefs in place; see `kernels.replay_rows`.

    Returns
    -------
    tuple
        Positions in the rows of the request of accepted events, and the number of rows consumed.
    """
    n_events, n_delayed = len(request.rows), log.X.shape[0] - len(request.log)
    events = Events(log.X, np.empty(0, dtype=np.int64), *log[1:])
    greedy = request.deployment | (request.rule == "predict")
    schedule = Schedule(request.rows, request.keep, greedy, request.deployment)
    most = n_events if request.max_accepted is None else request.max_accepted
    waiting = np.empty(n_delayed + (n_events if len(log.window) else 0), dtype=np.int64)
    waiting[:n_delayed] = np.arange(len(request.log), log.X.shape[0])
    counts = np.zeros(5, dtype=np.int64)
    counts[kernels.N_BEFORE], counts[kernels.N_WAITING] = beliefs.counters[N_EVENTS], n_delayed
    accepted = np.empty(n_events, dtype=np.int64)
    course = Course(accepted, waiting, log.sets.start[:-1].astype(np.int64), counts)
    space, workspace = _space(beliefs), workspace_for(beliefs.mean.shape[2])
    proposing, _ = parts_of(rule)
    n_seen = n_events
    for first, stop in _spans(n_events, log.X):
        rows = request.rows[first:stop]
        dense = _with_rows(events, rows, course) if issparse(log.X) else events
        n_seen = kernels.replay_rows(
            dense, schedule, first, stop, course, request.learn, most, alphas, beliefs, prior,
            rule, proposing, space, workspace,
        )  # fmt: skip
        if n_seen < stop:
            break
    return accepted[: counts[kernels.N_ACCEPTED]], n_seen


def _spans(n_events: int, X: Any) -> Iterator[tuple[int, int]]:
    """First and last positions of the parts of a replay; those of sparse contexts are short."""
    most = max(1, ENTRIES // max(X.shape[1], 1)) if issparse(X) else n_events
    for part in slices(n_events):
        for first in range(part.start, part.stop, most):
            yield first, min(first + most, part.stop)


def _with_rows(log: Events, rows: np.ndarray, course: Course) -> Events:
    """Log of which these rows, and those that await learning, are dense."""
    counts = course.counts
    late = course.waiting[counts[kernels.N_LEARNED] : counts[kernels.N_WAITING]]
    rows = np.concatenate([late, rows])
    place = np.empty(log.X.shape[0], dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return log._replace(X=log.X[rows].toarray(), place=place)


def _space(beliefs: Beliefs) -> np.ndarray:
    """Buffers for a row of features, followed by the constant if any, and for `moments`."""
    space = np.empty((2, beliefs.mean.shape[2]))
    space[0, -1] = 1.0
    return space


def first_choice(t: int, rows: slice) -> int:
    """Number of the choice on the first of some rows; -1 for greedy ones."""
    return t + rows.start if t >= 0 else t


def sets_of(sets: ArmSets, rows: slice) -> ArmSets:
    """Sets of available arms of some rows."""
    return ArmSets(sets.of_event[rows], sets.start, sets.arms)
