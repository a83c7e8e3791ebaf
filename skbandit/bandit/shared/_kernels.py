"""Compiled passes over events under a shared model: score, choose, learn, and replay.

As in `skbandit.bandit._kernels`, `t` numbers the choices, greedy ones pass t = -1, and `proposing`
and `draws` are those of `exploration.parts_of`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.bandit._state import N_CHOICES, N_EVENTS, ArmSets, Rule
from skbandit.bandit.exploration import (
    accepts_proposal,
    alpha_scale,
    compares_proposal,
    probabilities,
    proposes,
    score,
)
from skbandit.bandit.exploration._greedy import uniform_score, wins_tie
from skbandit.bandit.links import step
from skbandit.bandit.shared._bilinear import (
    absorb,
    add_residual,
    arm_moments,
    change_units,
    contract,
    forget,
    noise_scale,
)
from skbandit.bandit.shared._standardize import count_row, renew, show
from skbandit.bandit.shared._state import (
    N_RANKED,
    SharedBeliefs,
    SharedPrior,
    Workspace,
)
from skbandit.utils._compiled import called_exactly, compiled_exactly


@compiled_exactly
def score_rows(
    X: np.ndarray,
    arms: np.ndarray,
    t: int,
    alpha: float,
    beliefs: SharedBeliefs,
    rule: Rule,
    work: Workspace,
    scores: np.ndarray,
) -> None:
    """Fill in the scores of some arms in choices t, t + 1, ..., or in greedy ones."""
    rng_key = beliefs.rng_key
    for row in range(len(X)):
        _look(X[row], beliefs, work)
        _moments(arms, beliefs, work)
        for j in range(len(arms)):
            scores[row, j] = score(work.m[j], work.v[j], alpha, t, rng_key[arms[j]], rule)
        t += t >= 0


@compiled_exactly
def choose_rows(
    X: np.ndarray,
    sets: ArmSets,
    t: int,
    alpha: float,
    beliefs: SharedBeliefs,
    rule: Rule,
    proposing: bool | None,
    work: Workspace,
    chosen: np.ndarray,
) -> None:
    """Fill in the arm chosen on each row in choices t, t + 1, ..., or in greedy ones."""
    of_event, start, arms = sets.of_event, sets.start, sets.arms
    for row in range(len(X)):
        _look(X[row], beliefs, work)
        pool = arms[start[of_event[row]] : start[of_event[row] + 1]]
        chosen[row] = _choice(pool, t, alpha, beliefs, rule, proposing, work)
        t += t >= 0


@compiled_exactly
def probability_rows(
    X: np.ndarray,
    sets: ArmSets,
    places: np.ndarray,
    alpha: float,
    beliefs: SharedBeliefs,
    rule: Rule,
    proposing: bool | None,
    draws: bool | None,
    work: Workspace,
    buffer: np.ndarray,
    of_pool: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill in the probabilities of available arms on each row.

    `places` is ``arange(n_arms)``; the buffers have the shapes (3, n_arms) and (n_arms,).
    """
    of_event, start, arms = sets.of_event, sets.start, sets.arms
    n_events = beliefs.counters[N_EVENTS]
    for row in range(len(X)):
        _look(X[row], beliefs, work)
        pool = arms[start[of_event[row]] : start[of_event[row] + 1]]
        _moments(pool, beliefs, work)
        of_pool[: len(pool)] = 0.0
        probabilities(
            places[: len(pool)], work.m, work.v, alpha, n_events, rule, buffer, of_pool, proposing,
            draws,
        )  # fmt: skip
        for j in range(len(pool)):
            out[row, pool[j]] = of_pool[j]


@compiled_exactly
def learn_rows(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    beliefs: SharedBeliefs,
    prior: SharedPrior,
    rule: Rule,
    work: Workspace,
) -> None:
    """Learn events in order."""
    for row in range(len(X)):
        _look(X[row], beliefs, work)
        k: Any = np.int64(action[row])
        _learn(X[row], k, reward[row], weight[row], beliefs, prior, rule, work)


@compiled_exactly
def replay_rows(
    X: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    sets: ArmSets,
    rows: np.ndarray,
    keep: np.ndarray,
    greedy: np.ndarray,
    deployment: np.ndarray,
    first: int,
    stop: int,
    accepted: np.ndarray,
    window: np.ndarray,
    waiting: np.ndarray,
    counts: np.ndarray,
    learning: bool,
    max_accepted: int,
    alphas: np.ndarray,
    beliefs: SharedBeliefs,
    prior: SharedPrior,
    rule: Rule,
    proposing: bool | None,
    work: Workspace,
) -> int:
    """Accept, and learn, the logged events whose action the policy would have chosen.

    Li, Chu, Langford, Moon & Wang (2012), Algorithms 1 and 2. Accepted events outside the
    deployment bucket are learned at once, or, if they have a `window`, when it has passed;
    `waiting` are rows that await it, in order, and those that did. `counts` holds the events
    learned before the replay, those accepted, those accepted outside the deployment bucket, the
    waiting rows that were learned, and their number; `alphas` has one entry, or one per number of
    events learned since the replay began.

    Returns
    -------
    int
        `stop`, or the number of events it took to accept `max_accepted` for learning.
    """
    of_event, start, arms = sets.of_event, sets.start, sets.arms
    counters = beliefs.counters
    for position in range(first, stop):
        if counts[2] == max_accepted:
            return position
        if not keep[position]:
            continue
        row = rows[position]
        if counts[3] < counts[4] and window[row] > window[waiting[counts[3]]]:
            for place in range(counts[3], counts[4]):
                late = waiting[place]
                arm: Any = np.int64(action[late])
                _look(X[late], beliefs, work)
                _learn(X[late], arm, reward[late], 1.0, beliefs, prior, rule, work)
            counts[3] = counts[4]
        t = -1
        if not greedy[position]:
            t = counters[N_CHOICES]
            counters[N_CHOICES] += 1
        alpha = alphas[min(counters[N_EVENTS] - counts[0], len(alphas) - 1)]
        alpha *= alpha_scale(noise_scale(beliefs.noise), rule)
        pool = arms[start[of_event[row]] : start[of_event[row] + 1]]
        _look(X[row], beliefs, work)
        if _choice(pool, t, alpha, beliefs, rule, proposing, work) != action[row]:
            continue
        accepted[counts[1]] = position
        counts[1] += 1
        if not deployment[position]:
            counts[2] += 1
            if learning and len(window):
                waiting[counts[4]] = row
                counts[4] += 1
            elif learning:
                k: Any = np.int64(action[row])
                _learn(X[row], k, reward[row], 1.0, beliefs, prior, rule, work)
    return stop


@called_exactly
def _look(row: np.ndarray, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Prepare for the moments of arms in a context."""
    show(work.x, row, beliefs.units)
    contract(work.x, beliefs.mean, beliefs.cov_factor, work.u, work.half, work.C)


@called_exactly
def _moments(arms: np.ndarray, beliefs: SharedBeliefs, work: Workspace) -> None:
    """Fill in the moments of some arms in the context looked at."""
    full = beliefs.cov_factor.ndim == 3
    arm_moments(
        arms, work.u, work.C, full, beliefs.Z, beliefs.offset_mean, beliefs.offset_variance,
        work.block, work.m, work.v,
    )  # fmt: skip


@called_exactly
def _choice(
    pool: np.ndarray,
    t: int,
    alpha: float,
    beliefs: SharedBeliefs,
    rule: Rule,
    proposing: bool | None,
    work: Workspace,
) -> int:
    """Arm chosen from the pool in the context looked at."""
    rng_key, tie_order = beliefs.rng_key, beliefs.tie_order
    proposed = -1
    if proposing is not None:
        if proposes(t, rule):
            proposed = _drawn(pool, t, rng_key, tie_order, rule)
            if not compares_proposal(rule):
                return pool[proposed]
    _moments(pool, beliefs, work)
    m, v = work.m, work.v
    best = -1
    best_score = -np.inf
    for j in range(len(pool)):
        k = pool[j]
        its = score(m[j], v[j], alpha, t, rng_key[k], rule)
        if (
            best < 0
            or its > best_score
            or (
                its == best_score
                and wins_tie(
                    t, rng_key[k], rng_key[pool[best]], tie_order[k], tie_order[pool[best]], rule
                )
            )
        ):
            best, best_score = j, its
    if proposing is not None:
        if proposed >= 0 and proposed != best:
            its = score(m[proposed], v[proposed], alpha, t, rng_key[pool[proposed]], rule)
            n_events = beliefs.counters[N_EVENTS]
            if accepts_proposal(best_score, its, len(pool), n_events, alpha, t, rule):
                best = proposed
    return pool[best]


@called_exactly
def _drawn(pool: np.ndarray, t: int, rng_key: np.ndarray, tie_order: np.ndarray, rule: Rule) -> int:
    """Place in the pool of the arm drawn uniformly in choice t."""
    drawn = 0
    largest = uniform_score(t, rng_key[pool[0]], rule)
    for j in range(1, len(pool)):
        k, other = pool[j], pool[drawn]
        its = uniform_score(t, rng_key[k], rule)
        if its > largest or (
            its == largest
            and wins_tie(t, rng_key[k], rng_key[other], tie_order[k], tie_order[other], rule)
        ):
            drawn, largest = j, its
    return drawn


@called_exactly
def _learn(
    row: np.ndarray,
    k: int,
    r: float,
    weight: float,
    beliefs: SharedBeliefs,
    prior: SharedPrior,
    rule: Rule,
    work: Workspace,
) -> None:
    """Learn reward r of arm k in the context looked at, whose features are `row`."""
    counters = beliefs.counters
    if beliefs.tie_order[k] >= len(beliefs.tie_order):  # a new arm follows the known ones
        beliefs.tie_order[k] = counters[N_RANKED]
        counters[N_RANKED] += 1
    beliefs.n_updates[k] += 1
    counters[N_EVENTS] += 1
    _forget(k, prior.forgetting, beliefs, prior, work)
    work.arm[0] = k
    _moments(work.arm, beliefs, work)
    m, v = work.m[0], work.v[0]
    if prior.estimates_noise:
        add_residual(m, v, r, weight, beliefs.noise)
    if v > 0.0:
        g, h = step(m, weight * v, r, rule.link, prior.noise_variance)
        absorb(
            work.x, beliefs.Z[k], k, weight * g, weight * h, beliefs.mean, beliefs.cov_factor,
            beliefs.offset_mean, beliefs.offset_variance, work.half, work.a,
        )  # fmt: skip
    if count_row(row, beliefs.units):
        renew(beliefs.units, work.factor, work.shift)
        change_units(work.factor, work.shift, beliefs.mean, beliefs.cov_factor, prior.variance)


@called_exactly
def _forget(
    k: int, gamma: float | None, beliefs: SharedBeliefs, prior: SharedPrior, work: Workspace
) -> None:
    """Discount earlier evidence, and look at the context again."""
    if gamma is not None:  # else the compiler leaves the rest out
        forget(
            k, gamma, beliefs.mean, beliefs.cov_factor, prior.variance, prior.constant_variance,
            beliefs.offset_mean, beliefs.offset_variance, prior.offset_variance, work.a,
        )  # fmt: skip
        beliefs.noise[0] *= gamma
        beliefs.noise[1] *= gamma
        contract(work.x, beliefs.mean, beliefs.cov_factor, work.u, work.half, work.C)
