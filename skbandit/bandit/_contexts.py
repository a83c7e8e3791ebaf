"""Compiled passes over contexts that may be sparse.

Zeros change neither θ = wᵀx nor, with a diagonal covariance, the weights of their features. So the
weights of the features that are present in a few rows are gathered, the dense pass sees only these,
and what it learned is put back: the same sums in the same order, at a cost that follows the number
of nonzero entries. Units that are scaled only are gathered as weights are, and renewed for all
features between such parts. Where every weight counts, rows become dense, a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from skbandit.bandit import _passes as dense
from skbandit.bandit._events import EncodedLog
from skbandit.bandit._passes import first_choice, sets_of
from skbandit.bandit._posterior import with_arms
from skbandit.bandit._state import (
    N_EVENTS,
    N_LEARNED_ARMS,
    ArmSets,
    Beliefs,
    Prior,
    Rule,
    only_arms,
)
from skbandit.bandit._units import is_due, until_renewal
from skbandit.logs import Codes, ReplayRequest

# Nonzero entries gathered at once. Fewer cost calls, about 30 µs each; of more, each row meets
# the features of more other rows.
_NONZEROS = 256


class Part(NamedTuple):
    """Consecutive rows of contexts as a dense array."""

    rows: slice
    X: np.ndarray
    weights: np.ndarray | None  # numbers of the weights that the columns belong to; None is all


def score_rows(X: Any, t: int, alpha: float, beliefs: Beliefs, rule: Rule) -> np.ndarray:
    """Scores of all arms in choices t, t + 1, ..., or in greedy ones, (n_rows, n_arms)."""
    if not issparse(X):
        return dense.score_rows(X, t, alpha, beliefs, rule)
    scores = np.empty((X.shape[0], len(beliefs.mean)))
    for rows, x, weights in _parts(X, beliefs, rule):
        own = gathered(beliefs, weights)
        scores[rows] = dense.score_rows(x, first_choice(t, rows), alpha, own, rule)
    return scores


def choose_rows(
    X: Any, sets: ArmSets, t: int, alpha: float, beliefs: Beliefs, rule: Rule
) -> np.ndarray:
    """Arm chosen on each row in choices t, t + 1, ..., or in greedy ones."""
    if not issparse(X):
        return dense.choose_rows(X, sets, t, alpha, beliefs, rule)
    chosen = np.empty(X.shape[0], dtype=np.int64)
    for rows, x, weights in _parts(X, beliefs, rule):
        of_rows = sets_of(sets, rows)
        own = gathered(beliefs, weights)
        chosen[rows] = dense.choose_rows(x, of_rows, first_choice(t, rows), alpha, own, rule)
    return chosen


def probability_rows(
    X: Any, sets: ArmSets, alpha: float, beliefs: Beliefs, rule: Rule
) -> np.ndarray:
    """Probability of each arm on each row, (n_rows, n_arms); 0 if not available."""
    if not issparse(X):
        return dense.probability_rows(X, sets, alpha, beliefs, rule)
    probability = np.empty((X.shape[0], len(beliefs.mean)))
    for rows, x, weights in _parts(X, beliefs, rule):
        of_rows = sets_of(sets, rows)
        own = gathered(beliefs, weights)
        probability[rows] = dense.probability_rows(x, of_rows, alpha, own, rule)
    return probability


def learn_rows(
    X: Any,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
    *,
    at_once: bool,
) -> None:
    """Learn events in order, ignoring those of weight 0; `at_once` is not interrupted if dense."""
    if not issparse(X):
        dense.learn_rows(X, action, reward, weight, beliefs, prior, rule, at_once=at_once)
        return
    for rows, x, weights in _parts(X, beliefs, rule, prior):
        if weights is None:
            dense.learn_rows(
                x, action[rows], reward[rows], weight[rows], beliefs, prior, rule, at_once=at_once
            )
            continue
        arms, features = np.unique(action[rows]), of_features(weights, beliefs)
        at = np.ix_(arms, np.arange(len(beliefs.share)), weights)
        own, n_before = _empty(beliefs, weights), beliefs.counters[N_EVENTS]
        own.mean[arms], own.cov_factor[arms] = beliefs.mean[at], beliefs.cov_factor[at]
        dense.learn_rows(
            x, action[rows], reward[rows], weight[rows], own, prior, rule, at_once=at_once,
            renews=False,
        )  # fmt: skip
        beliefs.mean[at], beliefs.cov_factor[at] = own.mean[arms], own.cov_factor[arms]
        beliefs.seen_squares[features] = own.seen_squares
        if beliefs.counters[N_EVENTS] > n_before and is_due(beliefs):
            dense.renew_units(beliefs, prior)


def replay_rows(
    request: ReplayRequest,
    log: EncodedLog,
    n_known: int,
    codes: Codes,
    alphas: np.ndarray,
    beliefs: Beliefs,
    prior: Prior,
    rule: Rule,
) -> tuple[np.ndarray, int, Codes, Beliefs]:
    """Replay a log of the arms in `codes`, with `beliefs` about the first `n_known`.

    Returns
    -------
    tuple
        Accepted positions in the rows of the request, the number of rows consumed, and the known
        arms and beliefs about them after the replay.
    """
    X, weights = compact(log.X, beliefs, prior, rule)
    known, whole_prior = beliefs, prior
    if weights is not None:
        beliefs = gathered(beliefs, weights)
        prior = prior._replace(mean=prior.mean[weights], variance=prior.variance[:, weights])
    beliefs = with_arms(beliefs, list(codes)[n_known:], prior)
    # new arms rank last until they are learned: arms learned in the meantime precede them
    beliefs.tie_order[n_known:] += len(codes)
    accepted, n_seen = dense.replay_rows(request, log._replace(X=X), alphas, beliefs, prior, rule)
    codes, beliefs = _in_learned_order(codes, beliefs, n_known)
    if weights is not None:
        whole = with_arms(known, list(codes)[n_known:], whole_prior)
        whole.mean[:, :, weights] = beliefs.mean
        whole.cov_factor[:, :, weights] = beliefs.cov_factor
        features = of_features(weights, known)
        whole.rate[features], whole.seen_squares[features] = beliefs.rate, beliefs.seen_squares
        names = ("mean", "cov_factor", "rate", "seen_squares")
        beliefs = beliefs._replace(**{name: getattr(whole, name) for name in names})
    return accepted, n_seen, codes, beliefs


def _in_learned_order(codes: Codes, beliefs: Beliefs, n_known: int) -> tuple[Codes, Beliefs]:
    """Drop new arms never learned, and number the others as if learned one by one."""
    labels = list(codes)
    learned = beliefs.learned[: beliefs.counters[N_LEARNED_ARMS]]
    arms = np.concatenate([np.arange(n_known), learned[learned >= n_known]])
    return {labels[arm]: k for k, arm in enumerate(arms.tolist())}, only_arms(beliefs, arms)


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


def _parts(X: Any, beliefs: Beliefs, rule: Rule, prior: Prior | None = None) -> Iterator[Part]:
    """Split CSR rows into dense parts; with a prior, for learning."""
    n_rows, n_features = X.shape
    if every_weight_counts(beliefs) or (prior is not None and every_weight_changes(prior)):
        step = max(1, dense.ENTRIES // n_features)
        for first in range(0, n_rows, step):
            rows = slice(first, min(first + step, n_rows))
            yield Part(rows, X[rows].toarray(), None)
        return
    constant = [n_features] if rule.intercept else []
    first = 0
    while first < n_rows:
        full = np.searchsorted(X.indptr, X.indptr[first] + _NONZEROS, side="right") - 1
        last = min(max(int(full), first + 1), n_rows)
        if prior is not None and len(beliefs.rate):
            last = min(last, first + until_renewal(beliefs))
        rows = slice(first, last)
        start, stop = X.indptr[rows.start], X.indptr[rows.stop]
        features, place = np.unique(X.indices[start:stop], return_inverse=True)
        x = np.zeros((rows.stop - rows.start, len(features)))
        lengths = np.diff(X.indptr[rows.start : rows.stop + 1])
        x[np.repeat(np.arange(len(x)), lengths), place] = X.data[start:stop]
        yield Part(rows, x, np.concatenate([features, constant]).astype(np.int64))
        first = rows.stop


def every_weight_counts(beliefs: Beliefs) -> bool:
    """Whether features that are 0 matter: by correlations, or as 0 is not 0 in running units."""
    return beliefs.cov_factor.ndim == 4 or len(beliefs.centre) > 0


def every_weight_changes(prior: Prior) -> bool:
    """Whether learning changes weights of features that are 0, too."""
    return prior.forgetting is not None or bool(prior.adaptive_mean or prior.adaptive_variance)


def gathered(beliefs: Beliefs, weights: np.ndarray | None) -> Beliefs:
    """Beliefs about some of the weights, none of which are centred."""
    if weights is None:
        return beliefs
    mean, cov_factor = beliefs.mean[:, :, weights], beliefs.cov_factor[:, :, weights]
    return _in_their_units(beliefs, weights)._replace(
        mean=np.ascontiguousarray(mean), cov_factor=np.ascontiguousarray(cov_factor)
    )


def of_features(weights: np.ndarray, beliefs: Beliefs) -> np.ndarray:
    """Those of ascending numbers of weights that belong to features with running units."""
    return weights[: np.searchsorted(weights, len(beliefs.rate))]


def _in_their_units(beliefs: Beliefs, weights: np.ndarray) -> Beliefs:
    """Beliefs with the units of these weights only."""
    features = of_features(weights, beliefs)
    return beliefs._replace(
        rate=beliefs.rate[features], seen_squares=beliefs.seen_squares[features]
    )


def _empty(beliefs: Beliefs, weights: np.ndarray) -> Beliefs:
    """Beliefs with room for these weights of each arm, not filled in, and with their units."""
    shape = *beliefs.mean.shape[:2], len(weights)
    own = _in_their_units(beliefs, weights)
    return own._replace(mean=np.empty(shape), cov_factor=np.empty(shape))
