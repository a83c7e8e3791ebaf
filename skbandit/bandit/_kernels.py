"""Compiled passes over rows: what a policy chooses, what it learns, and both in turn over a log.

A choice has a number t, the address of its random numbers; a greedy one, which has none, has -1.
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit._posterior import learn, moments
from skbandit.bandit._scores import blind_score, explores, score, wins_tie
from skbandit.bandit._state import Beliefs, Choices, Prior, Rule
from skbandit.utils._compiled import compiled_exactly, inlined_exactly


@compiled_exactly
def score_rows(X: np.ndarray, t: int, alpha: float, beliefs: Beliefs, rule: Rule) -> np.ndarray:
    """What choices t, t + 1, ... (or greedy ones) compare, of shape (n_rows, n_arms)."""
    mean, spread, key = beliefs.mean, beliefs.spread, beliefs.key
    x = context(X, rule)
    scores = np.empty((len(X), len(mean)))
    for row in range(len(X)):
        x[: X.shape[1]] = X[row]
        for k in range(len(mean)):
            m, v = moments(x, mean, spread, k)
            scores[row, k] = score(m, v, alpha, t, key[k], rule)
        t += t >= 0
    return scores


@compiled_exactly
def choose_rows(
    X: np.ndarray, choices: Choices, t: int, alpha: float, beliefs: Beliefs, rule: Rule
) -> np.ndarray:
    """The arm chosen on each row, by choices t, t + 1, ..., or by greedy ones."""
    mean, spread, key, rank = beliefs.mean, beliefs.spread, beliefs.key, beliefs.rank
    x = context(X, rule)
    chosen = np.empty(len(X), dtype=np.int64)
    for row in range(len(X)):
        x[: X.shape[1]] = X[row]
        pool = choices.of_event[row]
        best = -1
        best_score = -np.inf
        blind = explores(t, rule)
        for j in range(choices.start[pool], choices.start[pool + 1]):
            k = choices.arms[j]
            if blind:
                its = blind_score(t, key[k], rule)
            else:
                m, v = moments(x, mean, spread, k)
                its = score(m, v, alpha, t, key[k], rule)
            if (
                best < 0
                or its > best_score
                or (its == best_score and wins_tie(t, key[k], key[best], rank[k], rank[best], rule))
            ):
                best, best_score = k, its
        chosen[row] = best
        t += t >= 0
    return chosen


@compiled_exactly
def learn_rows(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> None:
    """Learn events in order; those without weight never happened."""
    x = context(X, rule)
    room = np.empty((2, len(x)))
    for row in range(len(X)):
        if weight[row] > 0.0:
            x[: X.shape[1]] = X[row]
            learn(x, action[row], reward[row], weight[row], rule.link, beliefs, prior, room)


@compiled_exactly
def walk(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    choices: Choices,
    window: np.ndarray,
    held: np.ndarray,
    rows: np.ndarray,
    keep: np.ndarray,
    greedy: np.ndarray,
    deployment: np.ndarray,
    learning: bool,
    max_accepted: int,
    alphas: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> tuple[np.ndarray, int]:
    """Replay: one pass over a log, learning the events that the policy would have chosen itself.

    Li, Chu, Langford, Moon & Wang (2012), Algorithms 1 and 2. Events of `rows` are taken in turn,
    those without `keep` passed over. An event is accepted where the choice, greedy or exploring,
    is the logged one; it is then learned, unless it is of the deployment bucket, at once or when
    its `window` has passed; the rows `held` wait for that from the beginning. `alphas` is one, or
    one for each number of events learned.

    Returns
    -------
    tuple
        Positions in `rows` of accepted events, and how many of `rows` it took to accept
        `max_accepted` in the learning bucket.
    """
    mean, spread, key, rank = beliefs.mean, beliefs.spread, beliefs.key, beliefs.rank
    of_event, start, arms, clock = choices.of_event, choices.start, choices.arms, beliefs.clock
    x = context(X, rule)
    room = np.empty((2, len(x)))
    accepted = np.empty(len(rows), dtype=np.int64)
    waiting = np.empty(len(held) + (len(rows) if len(window) else 0), dtype=np.int64)
    waiting[: len(held)] = held
    n_before = clock[0]
    n_accepted = n_counted = n_learned = 0
    n_waiting = len(held)
    last_best = start[:-1].copy()
    for position in range(len(rows)):
        if n_counted == max_accepted:
            return accepted[:n_accepted], position
        if not keep[position]:
            continue
        row = rows[position]
        if n_learned < n_waiting and window[row] > window[waiting[n_learned]]:
            for j in range(n_learned, n_waiting):
                x[: X.shape[1]] = X[waiting[j]]
                k = action[waiting[j]]
                learn(x, k, reward[waiting[j]], 1.0, rule.link, beliefs, prior, room)
            n_learned = n_waiting
        for i in range(X.shape[1]):
            x[i] = X[row, i]
        t = -1
        if not greedy[position]:
            t = clock[1]
            clock[1] += 1
        alpha = alphas[min(clock[0] - n_before, len(alphas) - 1)]
        if not _is_choice(
            x, action[row], alpha, t, of_event[row], start, arms, last_best, mean, spread, key,
            rank, rule,
        ):  # fmt: skip
            continue
        accepted[n_accepted] = position
        n_accepted += 1
        if deployment[position]:
            continue
        n_counted += 1
        if not learning:
            continue
        if len(window):
            waiting[n_waiting] = row
            n_waiting += 1
        else:
            learn(x, action[row], reward[row], 1.0, rule.link, beliefs, prior, room)
    return accepted[:n_accepted], len(rows)


@inlined_exactly
def _is_choice(
    x: np.ndarray,
    k: int,
    alpha: float,
    t: int,
    pool: int,
    start: np.ndarray,
    arms: np.ndarray,
    last_best: np.ndarray,
    mean: np.ndarray,
    spread: np.ndarray,
    key: np.ndarray,
    rank: np.ndarray,
    rule: Rule,
) -> bool:
    """Whether arm k, one of the pool, is chosen.

    One better arm is enough to say no: the one that won last time is looked at first.
    """
    blind = explores(t, rule)
    if blind:
        mine = blind_score(t, key[k], rule)
    else:
        m, v = moments(x, mean, spread, k)
        mine = score(m, v, alpha, t, key[k], rule)
    j = own = last_best[pool]
    for _ in range(start[pool + 1] - start[pool]):
        other = arms[j]
        if other == k:
            own = j
        else:
            if blind:
                its = blind_score(t, key[other], rule)
            else:
                m, v = moments(x, mean, spread, other)
                its = score(m, v, alpha, t, key[other], rule)
            if its > mine or (
                its == mine and wins_tie(t, key[other], key[k], rank[other], rank[k], rule)
            ):
                last_best[pool] = j
                return False
        j = j + 1 if j + 1 < start[pool + 1] else start[pool]
    last_best[pool] = own
    return True


@compiled_exactly
def context(X: np.ndarray, rule: Rule) -> np.ndarray:
    """Room for one row, the constant feature last."""
    return np.ones(X.shape[1] + (1 if rule.intercept else 0))
