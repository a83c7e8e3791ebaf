"""Set selection in rounds: the k-th classifier adds the k-th ad (Mineiro 2010).

K ads, costs f (n, K), lower is better. Round k learns Psi_k on costs that depend on gamma_{k-1},
the ads chosen by the rounds before *as predicted*, bool (n, K). Two schemes:

masked   Psi_k is trained and asked on A without gamma_{k-1}. No ad comes twice, costs may have
         any sign, and as the cheapest ad left costs no more than the k-th cheapest of all, the
         regret is at most the sum of the rounds' own: m q.
post     as published: Psi_k is trained and asked on all of A with c_a = 1[a not in gamma_{k-1}]
         f_a, where f <= 0 is arranged by a shift common to all ads, so that a duplicate is worth
         nothing, and m q holds again. Duplicates are replaced, within the round by the next best
         ad that its classifier names, or after all rounds at random.

The learners may be told which ads are out, the comment under "Set Select Train": gamma_{k-1}, and
what was not available, as a classifier cannot know otherwise which ads compete.

A row may be asked for fewer ads than there are rounds (`n_choices`): it is out of later rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.parallel import Parallel, delayed

from skbandit.selection.reductions._rule import NOBODY, Reduction, Rule


@dataclass(frozen=True)
class Scheme:
    """How a round takes account of the ads chosen before.

    Parameters
    ----------
    problem : callable
        (costs, available, chosen) -> costs and mask of the cost-sensitive problem.
    pick : callable
        (rule, answers, available, chosen) -> an ad for each row.
    repeats : bool
        Whether an ad may be picked twice, so that `replace_at_random` is to follow.
    """

    problem: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    pick: Callable[[Rule, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    repeats: bool = False


def _masked_problem(
    costs: np.ndarray, available: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return costs, available & ~chosen


def _pick_among_the_rest(
    rule: Rule, answers: np.ndarray, available: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    return rule.choose(answers, available & ~chosen)


def _worthless_duplicates(
    costs: np.ndarray, available: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """c_a = 1[a not in gamma] (f_a - b), b >= 0 the smallest that makes a row nonpositive."""
    known = available & ~np.isnan(costs)
    highest = costs.max(axis=1, keepdims=True, where=known, initial=0.0)
    return np.where(chosen, 0.0, costs - highest), available


def _pick_any(
    rule: Rule, answers: np.ndarray, available: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    return rule.choose(answers, available)


def _pick_and_replace(
    rule: Rule, answers: np.ndarray, available: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    pick = rule.choose(answers, available)
    again = (pick != NOBODY) & chosen[np.arange(len(pick)), pick]
    pick[again] = rule.choose(answers[again], (available & ~chosen)[again])
    return pick


MASKED = Scheme(_masked_problem, _pick_among_the_rest)
POST_NEXT_BEST = Scheme(_worthless_duplicates, _pick_and_replace)
POST_RANDOM = Scheme(_worthless_duplicates, _pick_any, repeats=True)


def train_rounds(
    X: Any,
    costs: np.ndarray,
    available: np.ndarray,
    weight: np.ndarray,
    n_choices: np.ndarray,
    learn: Reduction,
    scheme: Scheme,
    *,
    n_rounds: int,
    told_from: int | None,
    folds: np.ndarray | None,
    n_jobs: int | None = None,
    report: Callable[[int], None] = lambda k: None,
) -> tuple[Rule, ...]:
    """Learn Psi_1, ..., Psi_m ("Set Select Train").

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    costs : ndarray of shape (n, K)
        f; nan where not observed.
    available : ndarray of shape (n, K)
        A, for each row.
    weight : ndarray of shape (n,)
        Row weights.
    n_choices : ndarray of shape (n,)
        Rows take part in so many rounds.
    learn : Reduction
        The cost-sensitive learner.
    scheme : Scheme
        See above.
    n_rounds : int
        m.
    told_from : int or None
        From this round on, counted from 0, Psi sees the pair of x and of the ads that are out,
        in gamma or not in A, rather than x; None is never.
    folds : ndarray of shape (n,) or None
        With folds, gamma on the rows of one is what classifiers trained on the other folds
        choose: independent of the rows' own costs, up to the little that they did to gamma in
        other folds. None: as chosen by Psi_k itself.
    n_jobs : int or None
        Folds fitted at the same time.
    report : callable
        Told the number of each round, from 0, when it has been learned.

    Returns
    -------
    tuple of Rule
        One a round.
    """
    everyone = slice(None)
    left_out = [] if folds is None else [(folds != j, folds == j) for j in np.unique(folds)]
    chosen = np.zeros_like(available)
    rules: list[Rule] = []
    for k in range(n_rounds):
        parts = left_out if k < n_rounds - 1 else []  # nobody asks what the last round chose
        X_k = _input(X, chosen | ~available, k, told_from)
        asked = available & (n_choices > k)[:, None]
        c, allowed = scheme.problem(costs, asked, chosen)
        psi, *without = Parallel(n_jobs=n_jobs)(
            delayed(_learn_rows)(learn, X_k, c, allowed, weight, rows)
            for rows in [everyone, *(train for train, _ in parts)]
        )
        rules.append(psi)
        report(k)
        if len(rules) == n_rounds:
            break
        of_rows = zip(without, (test for _, test in parts), strict=True)
        picks = np.empty(len(costs), dtype=np.intp)
        for rule, rows in of_rows if parts else [(psi, everyone)]:
            answers = rule.respond(X_k[rows])
            picks[rows] = scheme.pick(rule, answers, asked[rows], chosen[rows])
        _add(chosen, picks)
    return tuple(rules)


def run_rounds(
    rules: Sequence[Rule],
    X: Any,
    available: np.ndarray,
    scheme: Scheme,
    *,
    told_from: int | None,
) -> np.ndarray:
    """The ad that each round picks, (n, number of rounds); NOBODY once all are chosen.

    A rule that is asked again in the next round answers from what it has seen when it was asked
    first.
    """
    chosen = np.zeros_like(available)
    picks = np.full((len(available), len(rules)), NOBODY)
    for k, psi in enumerate(rules):
        if k == 0 or psi is not rules[k - 1]:
            answers = psi.respond(_input(X, chosen | ~available, k, told_from))
        picks[:, k] = scheme.pick(psi, answers, available, chosen)
        _add(chosen, picks[:, k])
    return picks


def replace_at_random(
    picks: np.ndarray, available: np.ndarray, n_select: int, rng: np.random.RandomState
) -> np.ndarray:
    """The distinct picks in their order, then, drawn at random, others that are available.

    The first `n_select` of these, (n, n_select); NOBODY where no more are available.
    """
    n_rounds = picks.shape[1]
    priority = np.where(available, n_rounds + rng.random_sample(available.shape), np.inf)
    rows = np.arange(len(picks))
    for k in reversed(range(n_rounds)):
        picked = picks[:, k] != NOBODY
        priority[rows[picked], picks[picked, k]] = k
    order = priority.argsort(axis=1)[:, :n_select]
    return np.where(np.isfinite(np.take_along_axis(priority, order, axis=1)), order, NOBODY)


def last_to_first(ranking: np.ndarray) -> np.ndarray:
    """Each row in reverse; NOBODY stays at the end."""
    backwards = ranking[:, ::-1]
    order = np.argsort(backwards == NOBODY, axis=1, kind="stable")
    return np.take_along_axis(backwards, order, axis=1)


def _learn_rows(
    learn: Reduction,
    X: Any,
    costs: np.ndarray,
    allowed: np.ndarray,
    weight: np.ndarray,
    rows: Any,
) -> Rule:
    """Learn from some of the rows."""
    return learn(X[rows], costs[rows], allowed[rows], weight[rows])


def _input(X: Any, out: np.ndarray, k: int, told_from: int | None) -> Any:
    """What learners of round k see, x or the pair with which ads are out, as features."""
    if told_from is None or k < told_from:
        return X
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(out.astype(X.dtype))], format="csr")
    return np.hstack([X, out.astype(X.dtype)])


def _add(chosen: np.ndarray, picks: np.ndarray) -> None:
    """Put the picks into gamma."""
    rows = np.flatnonzero(picks != NOBODY)
    chosen[rows, picks[rows]] = True
