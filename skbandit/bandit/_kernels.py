"""Compiled passes over events, for all models: score, choose, learn, and replay.

The functions at the top are all in which models differ: one model per arm, or a model of all arms
(`skbandit.bandit.shared`). The number of axes of `mean`, a field of the
posterior, distinguishes them at compile time.

`t` numbers the choices and addresses their random numbers; greedy choices draw nothing and pass
t = -1. Results and buffers are allocated by the caller (`skbandit.bandit._passes`): every
allocation in compiled code lengthens its compilation.

Links and exploration rules are numbers in `ChoiceRule`, so that all share the code compiled once;
it is compiled again for another number of axes (the two models, a diagonal or full covariance) and
for an adaptive prior. Each compiled function is optimized alone and once more within all of its
callers, as a copy per call, so what is large is called in one place, through few others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skbandit.bandit import exploration
from skbandit.bandit._events import EncodedLog
from skbandit.bandit._posterior import learn_row, mixed_moments, settle, variance_in_mean
from skbandit.bandit._state import N_CHOICES, N_EVENTS, ArmWorkspace, ChoiceRule, Posterior
from skbandit.bandit._units import RESOLUTION, show
from skbandit.bandit.exploration._greedy import uniform_score, wins_tie
from skbandit.bandit.shared import _kernels as shared
from skbandit.bandit.shared._bilinear import noise_scale
from skbandit.bandit.shared._state import SharedPosterior, Workspace
from skbandit.bandit.shared._state import settle as settle_shared
from skbandit.logs import Pools
from skbandit.utils._changes import RESTARTED_AT
from skbandit.utils._compiled import called_exactly, compiled_exactly, inlined_exactly

# Entries of `Course.counts`.
N_BEFORE, N_ACCEPTED, N_COUNTED, N_LEARNED, N_WAITING = range(5)


class Model(NamedTuple):
    """Posterior, the settings of choices, and buffers."""

    posterior: Any
    rule: ChoiceRule
    work: Any


@inlined_exactly
def look(X: np.ndarray, row: int, mean: np.ndarray, model: Model) -> None:
    """Prepare for the context of a row."""
    posterior, _, work = model
    if mean.ndim == 4:
        shared.look(X, row, posterior, work)
    else:
        show(work.x, X, row, posterior.center, posterior.rate)


@inlined_exactly
def prepare(pool: np.ndarray, mean: np.ndarray, model: Model) -> None:
    """Prepare for `moments` of the arms of a pool, in the context looked at."""
    if mean.ndim == 4:
        shared.fill_moments(pool, model.posterior, model.work)


@inlined_exactly
def moments(k: int, mean: np.ndarray, model: Model) -> tuple[float, float]:
    """Return mean and variance of θ of arm k."""
    posterior, _, work = model
    if mean.ndim == 4:
        m, v = work.m[k], work.v[k]
    else:
        m, v = mixed_moments(work.x, posterior, k, work.buffer[0])
    return m, v


@inlined_exactly
def scored(k: int, t: int, alpha: float, mean: np.ndarray, model: Model) -> float:
    """Return score of arm k in choice t, in the context looked at."""
    m, v = moments(k, mean, model)
    if mean.ndim == 3:
        if model.posterior.n_updates[k] == 0:
            v = variance_in_mean(v, t, model.posterior, model.rule)
    result = exploration.score(m, v, alpha, t, model.posterior.rng_key[k], model.rule)
    if mean.ndim == 3:
        if len(model.posterior.reward):  # rounding must not break ties
            result = np.rint(result * RESOLUTION) / RESOLUTION
    return result


@inlined_exactly
def _has_unseen(pool: np.ndarray, n_updates: np.ndarray) -> bool:
    """Return whether an arm of a pool has no events."""
    for k in pool:
        if n_updates[k] == 0:
            return True
    return False


@inlined_exactly
def with_names(mean: np.ndarray, model: tuple[Any, Any, Any]) -> Model:
    """Return a model that came as plain tuples."""
    posterior, rule, work = model
    if mean.ndim == 4:
        named = Model(SharedPosterior(*posterior), ChoiceRule(*rule), Workspace(*work))
    else:
        named = Model(Posterior(*posterior), ChoiceRule(*rule), ArmWorkspace(*work))
    return named


class Course(NamedTuple):
    """Mutable state of a running replay, between two calls of `replay_rows`."""

    accepted: np.ndarray  # (n_events,), positions in the schedule of accepted events
    waiting: np.ndarray  # rows that await learning, in order, and those that did
    last_best: np.ndarray  # (n_sets,), place of the last winner of each set of arms
    counts: np.ndarray  # (5,): events learned before the replay, and the counts named above


class Schedule(NamedTuple):
    """Order and treatment of the events of a replay, each array of shape (n_events,)."""

    rows: np.ndarray  # rows of the log, in the order of the replay
    keep: np.ndarray  # False skips the event
    greedy: np.ndarray  # True compares the greedy choice
    deployment: np.ndarray  # True learns nothing


@compiled_exactly
def score_rows(
    X: np.ndarray, arms: np.ndarray, t: int, alpha: float, model: Model, scores: np.ndarray
) -> None:
    """Fill in the scores of all arms in choices t, t + 1, ..., or in greedy ones."""
    for row in range(len(X)):
        look(X, row, model.posterior.mean, model)
        prepare(arms, model.posterior.mean, model)
        for k in arms:
            scores[row, k] = scored(k, t, alpha, model.posterior.mean, model)
        t += t >= 0


@compiled_exactly
def choose_rows(
    X: np.ndarray, sets: Any, t: int, alpha: float, mean: np.ndarray, model: Any,
    chosen: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the arm chosen on each row in choices t, t + 1, ..., or in greedy ones.

    `sets` and the fields of `model` may be plain tuples, which come faster from Python.
    """
    named = with_names(mean, model)
    of_event, start, arms = sets
    for row in range(len(X)):
        look(X, row, mean, named)
        pool = arms[start[of_event[row]] : start[of_event[row] + 1]]
        chosen[row], _ = _choice(pool, t, alpha, named, named.work.x[:0])
        t += t >= 0


@compiled_exactly
def probability_rows(
    X: np.ndarray, sets: Any, t: int, alpha: float, mean: np.ndarray, model: Any,
    buffer: np.ndarray, out: np.ndarray, chosen: np.ndarray,
) -> None:  # fmt: skip
    """Fill in the arms chosen as `choose_rows` does, and the probabilities of available arms.

    `out` is (n_rows, n_arms), and `buffer` (5, n_arms).
    """
    named = with_names(mean, model)
    rule, n_events = named.rule, _experience(named.posterior)
    m, v, others, scores = buffer[0], buffer[1], buffer[2:], buffer[2]
    of_event, start, arms = sets
    for row in range(len(X)):
        look(X, row, mean, named)
        pool = arms[start[of_event[row]] : start[of_event[row] + 1]]
        k, best = _choice(pool, t, alpha, named, scores)
        if exploration.DRAWS[rule.exploration]:
            for j in pool:
                m[j], v[j] = moments(j, mean, named)
        exploration.probabilities(best, pool, m, v, alpha, n_events, rule, others, out[row])
        chosen[row] = k
        t += t >= 0


@compiled_exactly
def learn_rows(
    X: np.ndarray, action: np.ndarray, reward: np.ndarray, weight: np.ndarray, mean: np.ndarray,
    model: Model, prior: Any,
) -> None:  # fmt: skip
    """Learn events in order, ignoring those of weight 0."""
    posterior, rule, work = model
    for row in range(len(X)):
        if weight[row] > 0.0:
            k: Any = np.int64(action[row])  # a log's numbers may have 32 bits: compiled once
            look(X, row, mean, model)
            if mean.ndim == 4:
                shared.learn(X, row, k, reward[row], weight[row], posterior, prior, rule, work)
            else:
                learn_row(X, row, k, reward[row], weight[row], posterior, prior, rule, work)


@compiled_exactly
def replay_rows(
    log: EncodedLog, schedule: Schedule, first: int, stop: int, course: Course, learning: bool,
    max_accepted: int, alphas: np.ndarray, mean: np.ndarray, model: Model, prior: Any,
) -> int:  # fmt: skip
    """Accept, and learn, the logged events whose action the policy would have chosen.

    Li, Chu, Langford, Moon & Wang (2012), Algorithms 1 and 2. An accepted event outside the
    deployment bucket is learned at once, or when its `window` has passed. `alphas` has one entry,
    or one per number of events learned since the replay began.

    Returns
    -------
    int
        `stop`, or the number of events it took to accept `max_accepted` for learning.
    """
    posterior, rule, work = model
    counters = posterior.counters
    X, place, action, reward, sets, window = log
    rows, keep, greedy, deployment = schedule
    accepted, waiting, last_best, counts = course
    n_before, n_accepted, n_counted = counts[N_BEFORE], counts[N_ACCEPTED], counts[N_COUNTED]
    n_learned, n_waiting = counts[N_LEARNED], counts[N_WAITING]
    end, settled = stop, np.int64(-1)
    for position in range(first, stop):
        if n_counted == max_accepted:
            end = position
            break
        if not keep[position]:
            continue
        row, due = rows[position], n_learned
        pool = sets.arms[sets.start[sets.of_event[row]] : sets.start[sets.of_event[row] + 1]]
        if n_learned < n_waiting and window[row] > window[waiting[n_learned]]:
            due = n_waiting
        for j in range(n_learned, due + 1):  # the events now due, and the one of this position
            event = waiting[j] if j < due else row
            if j == due and settled != counters[N_EVENTS]:
                if _has_unseen(pool, posterior.n_updates):
                    if mean.ndim == 4:
                        settle_shared(posterior, prior)
                    else:
                        settle(posterior, prior)
                    settled = counters[N_EVENTS]
            seen = place[event] if len(place) else event
            look(X, seen, mean, model)
            k: Any = np.int64(action[event])
            if j == due:
                t = -1
                if not greedy[position]:
                    t = counters[N_CHOICES]
                    counters[N_CHOICES] += 1
                alpha = alphas[min(counters[N_EVENTS] - n_before, len(alphas) - 1)]
                if mean.ndim == 4:  # the unit of rewards does not matter
                    alpha *= exploration.alpha_scale(noise_scale(posterior.noise), rule)
                if exploration.proposes(t, rule):
                    matches = k == _choice(pool, t, alpha, model, alphas[:0])[0]
                else:
                    matches = _is_best(k, t, alpha, row, sets, last_best, model)
                if not matches:
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
                    continue
            if mean.ndim == 4:
                shared.learn(X, seen, k, reward[event], 1.0, posterior, prior, rule, work)
            else:
                learn_row(X, seen, k, reward[event], 1.0, posterior, prior, rule, work)
        n_learned = due
    counts[N_ACCEPTED], counts[N_COUNTED] = n_accepted, n_counted
    counts[N_LEARNED], counts[N_WAITING] = n_learned, n_waiting
    return end


@inlined_exactly
def _beats(k: int, score: float, other: int, other_score: float, t: int, model: Model) -> bool:
    """Return whether arm k, by its score or in a tie, comes before another one in choice t.

    In ties of greedy choices, arms with events come first.
    """
    if score == other_score:
        keys, order, seen = (
            model.posterior.rng_key,
            model.posterior.tie_order,
            model.posterior.n_updates,
        )
        if t < 0 and (seen[k] == 0) != (seen[other] == 0):
            return seen[other] == 0
        return wins_tie(t, keys[k], keys[other], order[k], order[other], model.rule)
    return score > other_score


@inlined_exactly
def _experience(posterior: Any) -> int:
    """Return number of events learned since the policy last started anew."""
    return posterior.counters[N_EVENTS] - posterior.restarts[RESTARTED_AT]


@called_exactly
def _choice(
    pool: np.ndarray, t: int, alpha: float, model: Model, scores: np.ndarray
) -> tuple[int, float]:
    """Arm of the pool chosen in the context looked at, and the largest score if it was needed.

    Unless `scores` is empty, it is, and the scores of all arms of the pool are filled in.
    """
    best: Any = np.int64(-1)
    rule, proposed = model.rule, best
    best_score, proposed_score = -np.inf, -np.inf
    if exploration.proposes(t, rule):
        proposed = _drawn(pool, t, model)
        if not len(scores) and not exploration.COMPARES[rule.exploration]:
            return proposed, best_score
    prepare(pool, model.posterior.mean, model)
    for k in pool:
        score = scored(k, t, alpha, model.posterior.mean, model)
        if len(scores):
            scores[k] = score
        if k == proposed:
            proposed_score = score
        if best < 0 or _beats(k, score, best, best_score, t, model):
            best, best_score = k, score
    if proposed >= 0 and proposed != best:
        n_events = _experience(model.posterior)
        if not exploration.COMPARES[rule.exploration] or exploration.accepts(
            rule.exploration, best_score, proposed_score, len(pool), n_events, alpha, t, rule
        ):
            best = proposed
    return best, best_score


@called_exactly
def _drawn(pool: np.ndarray, t: int, model: Model) -> int:
    """Return arm of the pool drawn uniformly in choice t."""
    drawn = pool[0]
    largest = uniform_score(t, model.posterior.rng_key[drawn], model.rule)
    for k in pool[1:]:
        score = uniform_score(t, model.posterior.rng_key[k], model.rule)
        if _beats(k, score, drawn, largest, t, model):
            drawn, largest = k, score
    return drawn


@inlined_exactly
def _is_best(
    k: int, t: int, alpha: float, row: int, sets: Pools, last_best: np.ndarray, model: Model
) -> bool:
    """Return whether arm k has the largest score of the arms available to the event of a row.

    The first better arm settles it. The previous winner, kept in `last_best`, is compared first.
    """
    pool = sets.of_event[row]
    first, stop = sets.start[pool], sets.start[pool + 1]
    prepare(sets.arms[first:stop], model.posterior.mean, model)
    score = scored(k, t, alpha, model.posterior.mean, model)
    j = place = last_best[pool]
    for _ in range(first, stop):
        other = sets.arms[j]
        if other == k:
            place = j
        else:
            other_score = scored(other, t, alpha, model.posterior.mean, model)
            if _beats(other, other_score, k, score, t, model):
                last_best[pool] = j
                return False
        j = j + 1 if j + 1 < stop else first
    last_best[pool] = place
    return True
