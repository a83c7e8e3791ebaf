"""Passes over contexts, dense or sparse, split so that Ctrl-C is noticed.

Zeros change neither θ = wᵀx nor, with a diagonal covariance, the weights of their features. So the
weights of the features that are present in a few sparse rows are gathered, the compiled pass sees
only these, and what it learned is put back: the same sums in the same order, at a cost that follows
the number of nonzero entries. Units that are scaled only are gathered as weights are, and renewed
for all features between such parts. Where every weight counts, rows become dense, a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from skbandit.bandit import _kernels as kernels
from skbandit.bandit._events import EncodedLog, Events
from skbandit.bandit._kernels import Course, Model, Schedule
from skbandit.bandit._posterior import begin, change_units, restart, settle
from skbandit.bandit._state import N_EVENTS, ChoiceRule, Posterior
from skbandit.bandit._units import FIRST_RENEWAL, GROWN, is_due
from skbandit.bandit.exploration import explores_by_score
from skbandit.bandit.shared._state import settle as settle_shared
from skbandit.logs import Pools, ReplayRequest
from skbandit.utils._changes import N_RESTARTS
from skbandit.utils._compiled import slices

DENSE_ENTRIES = 2**20
"""Entries of sparse rows that become dense at once: 8 MB. Beyond, memory is wasted without gain."""

# Nonzero entries gathered at once. Fewer cost calls, about 30 µs each; of more, each row meets
# the features of more other rows.
_NONZEROS = 256


class LearningModel(NamedTuple):
    """A model, and how it learns."""

    posterior: Any
    rule: ChoiceRule
    prior: Any = None  # only for learning
    alphas: Any = None  # of choices within a replay


class Asked(NamedTuple):
    """Contexts on which arms are scored or chosen, and the model that does so."""

    X: Any
    sets: Pools
    t: int  # number of the first choice; -1 for greedy ones
    alpha: float
    posterior: Any
    rule: ChoiceRule

    def parts(self) -> Iterator[tuple[slice, Asked]]:
        """Yield rows, and what is asked on them, with dense contexts."""
        if self.X.shape[0] == 1 and not issparse(self.X):  # in service, splitting takes long
            yield slice(0, 1), self
            return
        for rows, x, weights in _parts(self.X, LearningModel(self.posterior, self.rule)):
            sets, t = self.sets.take(rows), self.t + rows.start if self.t >= 0 else -1
            yield (
                rows,
                self._replace(X=x, sets=sets, t=t, posterior=gathered(self.posterior, weights)),
            )

    def model(self) -> tuple[tuple[Any, ...], ...]:
        """Return plain tuples, which come faster from Python to compiled code."""
        return tuple(self.posterior), tuple(self.rule), tuple(self.posterior.workspace())


def score_rows(asked: Asked) -> np.ndarray:
    """Return scores of all arms in choices t, t + 1, ..., or in greedy ones, (n_rows, n_arms)."""
    arms = np.arange(len(asked.posterior.rng_key))
    scores = np.empty((asked.X.shape[0], len(arms)))
    for rows, part in asked.parts():
        model = Model(part.posterior, part.rule, part.posterior.workspace())
        kernels.score_rows(part.X, arms, part.t, part.alpha, model, scores[rows])
    return scores


def choose_rows(asked: Asked) -> np.ndarray:
    """Return arm chosen on each row in choices t, t + 1, ..., or in greedy ones."""
    chosen = np.empty(asked.X.shape[0], dtype=np.int64)
    for rows, part in asked.parts():
        X, sets, t, alpha, posterior, _ = part
        kernels.choose_rows(X, tuple(sets), t, alpha, posterior.mean, part.model(), chosen[rows])
    return chosen


def choose_with_probabilities(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Return arm chosen on each row, as by `choose_rows`, and its probability."""
    parts = [
        (arms, table[0, arms] if len(arms) == 1 else table[np.arange(len(arms)), arms])
        for _, arms, table in _probabilities(asked)
    ]
    if len(parts) == 1:  # in service, joining takes as long as the choice
        return parts[0]
    chosen, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    return chosen, probability


def probability_rows(asked: Asked) -> np.ndarray:
    """Return probability of each arm on each row, (n_rows, n_arms); 0 if not available."""
    out = np.empty((asked.X.shape[0], len(asked.posterior.rng_key)))
    # scores that proposals are compared with, and means of draws, are those of greedy choices
    t = 0 if explores_by_score(asked.rule) else -1
    for rows, _, table in _probabilities(asked._replace(t=t)):
        out[rows] = table
    return out


def _probabilities(asked: Asked) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Return rows in parts, the arms chosen on them, and the probabilities of all arms."""
    n_arms = len(asked.posterior.rng_key)
    buffer = np.empty((5, n_arms))
    for rows, part in asked.parts():
        X, sets, t, alpha, posterior, _ = part
        out, chosen = np.zeros((len(X), n_arms)), np.empty(len(X), dtype=np.int64)
        kernels.probability_rows(
            X, tuple(sets), t, alpha, posterior.mean, part.model(), buffer, out, chosen
        )
        yield rows, chosen, out


def learn_rows(events: Events, learner: LearningModel) -> None:
    """Learn events in order, whose arms are numbers, ignoring those of weight 0."""
    posterior, rule, prior, _ = learner
    action, weight = events.arms, events.weight
    counted = np.flatnonzero(weight > 0)
    arms, first = np.unique(action[counted], return_index=True)
    new = np.sort(counted[first[posterior.n_updates[arms] == 0]])  # rows of arms' first events
    for rows, x, weights in _parts(events.X, learner, new):
        of_part = x, action[rows], events.reward[rows], weight[rows]
        if weights is None:
            model = Model(posterior, rule, posterior.workspace())
            kernels.learn_rows(*of_part, posterior.mean, model, prior)
            continue
        arms, features = np.unique(action[rows]), of_features(weights, posterior)
        squares = posterior.seen_squares[features] + weight[rows] @ x[:, : len(features)] ** 2
        rate = posterior.rate[features]
        grown = squares * rate**2 > GROWN**2 * posterior.seen_weight
        if grown.any() or (prior.mean.any() and not rate.all()):  # a unit, and so all weights of it
            arms = np.union1d(arms, np.flatnonzero(posterior.n_updates))
        at = np.ix_(np.arange(len(posterior.share)), arms, weights)
        for row in new[(new >= rows.start) & (new < rows.stop)]:  # all weights, not only these
            begin(action[row], posterior, prior, rule.link)
        shape, n_before = (*posterior.mean.shape[:2], len(weights)), posterior.counters[N_EVENTS]
        part = _in_their_units(posterior, weights)
        part = part._replace(mean=np.empty(shape), cov_factor=np.empty(shape))
        part.mean[:, arms], part.cov_factor[:, arms] = posterior.mean[at], posterior.cov_factor[at]
        as_begun = prior._replace(averages=False, renews=False)
        n_restarts = posterior.restarts[N_RESTARTS]
        kernels.learn_rows(*of_part, part.mean, Model(part, rule, part.workspace()), as_begun)
        if posterior.restarts[N_RESTARTS] > n_restarts:  # of all weights, not only these
            restart(posterior, np.ones(len(posterior.n_updates), dtype=bool), prior)
        posterior.mean[at], posterior.cov_factor[at] = part.mean[:, arms], part.cov_factor[:, arms]
        posterior.seen_squares[features], posterior.rate[features] = part.seen_squares, part.rate
        if posterior.counters[N_EVENTS] > n_before and is_due(posterior):
            change_units(posterior, prior, prior.adaptive_mean, posterior.workspace().buffer)
    _settle(posterior, prior)


def _settle(posterior: Any, prior: Any) -> None:
    """Put arms without events, if there are any, where they start after learning."""
    if not posterior.n_updates.all():
        (settle_shared if posterior.mean.ndim == 4 else settle)(posterior, prior)


def replay_rows(
    request: ReplayRequest, log: EncodedLog, learner: LearningModel
) -> tuple[np.ndarray, int]:
    """Replay a log, changing the posterior in place; see `kernels.replay_rows`.

    Returns
    -------
    tuple
        Positions in the rows of the request of accepted events, and the number of rows consumed.
    """
    posterior, rule, prior, alphas = learner
    n_events, n_delayed = len(request.rows), log.X.shape[0] - len(request.log)
    greedy = request.deployment | (request.rule == "predict")
    schedule = Schedule(request.rows, request.keep, greedy, request.deployment)
    most = n_events if request.max_accepted is None else request.max_accepted
    waiting = np.empty(n_delayed + (n_events if len(log.window) else 0), dtype=np.int64)
    waiting[:n_delayed] = np.arange(len(request.log), log.X.shape[0])
    counts = np.zeros(5, dtype=np.int64)
    counts[kernels.N_BEFORE], counts[kernels.N_WAITING] = posterior.counters[N_EVENTS], n_delayed
    accepted = np.empty(n_events, dtype=np.int64)
    course = Course(accepted, waiting, log.sets.start[:-1].astype(np.int64), counts)
    model = Model(posterior, rule, posterior.workspace())
    n_seen = n_events
    for first, stop in _spans(n_events, log.X):
        dense = log
        if issparse(log.X):  # these rows, and those that await learning
            late = waiting[counts[kernels.N_LEARNED] : counts[kernels.N_WAITING]]
            rows = np.concatenate([late, request.rows[first:stop]])
            place = np.empty(log.X.shape[0], dtype=np.int64)
            place[rows] = np.arange(len(rows))
            dense = log._replace(X=log.X[rows].toarray(), place=place)
        n_seen = kernels.replay_rows(
            dense, schedule, first, stop, course, request.learn, most, alphas, posterior.mean,
            model, prior,
        )  # fmt: skip
        if n_seen < stop:
            break
    _settle(posterior, prior)
    return accepted[: counts[kernels.N_ACCEPTED]], n_seen


def _spans(n_events: int, X: Any) -> Iterator[tuple[int, int]]:
    """First and last positions of the parts of a replay; those of sparse contexts are short."""
    most = max(1, DENSE_ENTRIES // max(X.shape[1], 1)) if issparse(X) else n_events
    for part in slices(n_events):
        for first in range(part.start, part.stop, most):
            yield first, min(first + most, part.stop)


def replay_log(
    request: ReplayRequest, log: EncodedLog, learner: LearningModel
) -> tuple[np.ndarray, int]:
    """Replay a log as `replay_rows` does, with the features of sparse contexts that are present.

    The weights of others, which were not learned before either, cannot change.
    """
    (posterior, rule, prior, _), X = learner, log.X
    if not issparse(X) or every_weight_matters(learner):
        return replay_rows(request, log, learner)
    features = np.union1d(X.indices, np.flatnonzero(posterior.seen_squares))
    constant = [X.shape[1]] if rule.intercept else []
    weights = np.concatenate([features, constant]).astype(np.int64)
    part = gathered(posterior, weights)
    variance = np.ascontiguousarray(prior.variance[:, weights])  # else compiled again
    prior = prior._replace(mean=prior.mean[weights], variance=variance)
    of_part = learner._replace(posterior=part, prior=prior)
    result = replay_rows(request, log._replace(X=X[:, features]), of_part)
    for name in ("mean", "cov_factor", "start"):
        getattr(posterior, name)[:, :, weights] = getattr(part, name)
    features = of_features(weights, posterior)
    posterior.rate[features], posterior.seen_squares[features] = part.rate, part.seen_squares
    return result


def _parts(
    X: Any, learner: LearningModel, new: Any = ()
) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Split rows into dense parts, with the indices of the columns' weights, or None for all.

    With a prior, it is for learning. Then a sparse part begins with each row in `new`, in which an
    arm begins with all its weights.
    """
    (n_rows, n_features), (posterior, rule, prior, _) = X.shape, learner
    if not issparse(X):
        for rows in slices(n_rows):
            yield rows, X[rows], None
        return
    if every_weight_matters(learner):
        for first, last in _spans(n_rows, X):
            yield slice(first, last), X[first:last].toarray(), None
        return
    constant = [n_features] if rule.intercept else []
    first = 0
    while first < n_rows:
        full = np.searchsorted(X.indptr, X.indptr[first] + _NONZEROS, side="right") - 1
        last = min(max(int(full), first + 1), n_rows)
        if prior is not None and len(posterior.rate):  # up to the next renewal of units
            n = int(posterior.counters[N_EVENTS])
            last = min(last, first + max(FIRST_RENEWAL, 1 << n.bit_length()) - n)
        for row in new[np.searchsorted(new, first, side="right") :][:1]:
            last = min(last, int(row))
        rows = slice(first, last)
        start, stop = X.indptr[rows.start], X.indptr[rows.stop]
        features, place = np.unique(X.indices[start:stop], return_inverse=True)
        x = np.zeros((rows.stop - rows.start, len(features)))
        lengths = np.diff(X.indptr[rows.start : rows.stop + 1])
        x[np.repeat(np.arange(len(x)), lengths), place] = X.data[start:stop]
        yield rows, x, np.concatenate([features, constant]).astype(np.int64)
        first = rows.stop


def every_weight_matters(learner: LearningModel) -> bool:
    """Return whether features that are 0 do: by correlations, centering, or as learning goes on."""
    posterior, _, prior, _ = learner
    if posterior.cov_factor.ndim == 4 or len(posterior.center) > 0:
        return True
    changes = prior is not None and (prior.adaptive_mean or prior.adaptive_variance)
    return bool(changes or (prior is not None and (prior.forgetting < 1).any()))


def gathered(posterior: Any, weights: np.ndarray | None) -> Any:
    """Return posterior about some of the weights, none of which are centered."""
    if weights is None:
        return posterior
    mean, cov_factor = posterior.mean[:, :, weights], posterior.cov_factor[:, :, weights]
    return _in_their_units(posterior, weights)._replace(
        mean=np.ascontiguousarray(mean),
        cov_factor=np.ascontiguousarray(cov_factor),
        start=np.ascontiguousarray(posterior.start[:, :, weights]),
    )


def of_features(weights: np.ndarray, posterior: Posterior) -> np.ndarray:
    """Return those of ascending numbers of weights that belong to features with running units."""
    return weights[: np.searchsorted(weights, len(posterior.rate))]


def _in_their_units(posterior: Posterior, weights: np.ndarray) -> Posterior:
    """Return posterior with the units of these weights only."""
    features = of_features(weights, posterior)
    return posterior._replace(
        rate=posterior.rate[features], seen_squares=posterior.seen_squares[features]
    )
