"""Compiled passes over rows, split so that Ctrl-C is noticed, and the arrays that they fill."""

from __future__ import annotations

import numpy as np

from skbandit.bandit._events import EncodedLog
from skbandit.bandit._passes import first_choice, sets_of
from skbandit.bandit._state import N_EVENTS, ArmSets, Rule
from skbandit.bandit.exploration import parts_of
from skbandit.bandit.shared import _kernels as kernels
from skbandit.bandit.shared._state import SharedBeliefs, SharedPrior, workspace_for
from skbandit.logs import ReplayRequest
from skbandit.utils._compiled import slices


def score_rows(
    X: np.ndarray, t: int, alpha: float, beliefs: SharedBeliefs, rule: Rule
) -> np.ndarray:
    """Scores of all arms in choices t, t + 1, ..., or in greedy ones, (n_rows, n_arms)."""
    work, arms = workspace_for(beliefs), np.arange(len(beliefs.Z))
    scores = np.empty((len(X), len(arms)))
    for rows in slices(len(X)):
        kernels.score_rows(
            X[rows], arms, first_choice(t, rows), alpha, beliefs, rule, work, scores[rows]
        )
    return scores


def choose_rows(
    X: np.ndarray, sets: ArmSets, t: int, alpha: float, beliefs: SharedBeliefs, rule: Rule
) -> np.ndarray:
    """Arm chosen on each row in choices t, t + 1, ..., or in greedy ones."""
    work, chosen = workspace_for(beliefs), np.empty(len(X), dtype=np.int64)
    proposing, _ = parts_of(rule)
    for rows in slices(len(X)):
        kernels.choose_rows(
            X[rows], sets_of(sets, rows), first_choice(t, rows), alpha, beliefs, rule, proposing,
            work, chosen[rows],
        )  # fmt: skip
    return chosen


def probability_rows(
    X: np.ndarray, sets: ArmSets, alpha: float, beliefs: SharedBeliefs, rule: Rule
) -> np.ndarray:
    """Probability of each arm on each row, (n_rows, n_arms); 0 if not available."""
    n_arms = len(beliefs.Z)
    work, places = workspace_for(beliefs), np.arange(n_arms)
    buffer, of_pool = np.empty((3, n_arms)), np.empty(n_arms)
    out = np.zeros((len(X), n_arms))
    proposing, draws = parts_of(rule)
    for rows in slices(len(X)):
        kernels.probability_rows(
            X[rows], sets_of(sets, rows), places, alpha, beliefs, rule, proposing, draws, work,
            buffer, of_pool, out[rows],
        )  # fmt: skip
    return out


def learn_rows(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    beliefs: SharedBeliefs,
    prior: SharedPrior,
    rule: Rule,
) -> None:
    """Learn events in order, changing the beliefs in place."""
    work = workspace_for(beliefs)
    for rows in slices(len(X)):
        kernels.learn_rows(
            X[rows], action[rows], reward[rows], weight[rows], beliefs, prior, rule, work
        )


def replay_rows(
    request: ReplayRequest,
    log: EncodedLog,
    alphas: np.ndarray,
    beliefs: SharedBeliefs,
    prior: SharedPrior,
    rule: Rule,
) -> tuple[np.ndarray, int]:
    """Replay a log, changing the beliefs in place; see `kernels.replay_rows`.

    Returns
    -------
    tuple
        Positions in the rows of the request of accepted events, and the number of rows consumed.
    """
    rows, n_events = request.rows, len(request.rows)
    work, accepted = workspace_for(beliefs), np.empty(n_events, dtype=np.int64)
    X, action, reward, sets, window = log
    n_delayed = len(X) - len(request.log)
    waiting = np.empty(n_delayed + (n_events if len(window) else 0), dtype=np.int64)
    waiting[:n_delayed] = np.arange(len(request.log), len(X))
    counts = np.array([beliefs.counters[N_EVENTS], 0, 0, 0, n_delayed], dtype=np.int64)
    most = n_events if request.max_accepted is None else request.max_accepted
    proposing, _ = parts_of(rule)
    greedy = request.deployment | (request.rule == "predict")
    n_seen = n_events
    for part in slices(n_events):
        n_seen = kernels.replay_rows(
            X, action, reward, sets, rows, request.keep, greedy, request.deployment, part.start,
            part.stop, accepted, window, waiting, counts, request.learn, most, alphas, beliefs,
            prior, rule, proposing, work,
        )  # fmt: skip
        if n_seen < part.stop:
            break
    return accepted[: counts[1]], n_seen
