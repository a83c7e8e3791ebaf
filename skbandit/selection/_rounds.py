"""Set selection in rounds: the k-th classifier adds the k-th ad (Mineiro 2010).

K ads, costs f (n, K), lower is better. Round k learns Psi_k on costs that depend on gamma_{k-1},
the ads chosen by earlier rounds *as predicted*, bool (n, K). Two methods:

masked      Psi_k is trained and evaluated on A without gamma_{k-1}. No ad repeats and costs may
            have any sign. The cheapest remaining ad costs no more than the k-th cheapest of all,
            so the regret is at most the sum of the regrets of the rounds, m q.
published   Psi_k is trained and evaluated on all of A with c_a = 1[a not in gamma_{k-1}] f_a.
            A shift common to all ads makes f <= 0, so that a duplicate is worth nothing and m q
            holds again. After all rounds, duplicates are replaced by other ads: any will do for
            the bound, and the post suggests random ones. They depend on the content of the row, so
            that its set does not depend on its batch.

The excluded ads may be passed to learners as features (the comment under "Set Select Train"): those
in gamma_{k-1} and those not available, since a classifier cannot otherwise know which ads compete.

A row may need fewer ads than there are rounds (`n_choices`); it then takes no part in later rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skbandit.selection._costs import append_columns, check_n_select
from skbandit.selection.reductions._registry import REDUCTIONS
from skbandit.selection.reductions._rule import NO_AD, CostSensitiveRule, Examples, Reduction
from skbandit.utils._fitting import in_parallel
from skbandit.utils._folds import hashes_of_contexts

MASKED, PUBLISHED = "masked", "published"


@dataclass(frozen=True)
class RoundSettings:
    """Settings of the rounds.

    Parameters
    ----------
    method : {"masked", "published"}
        Treatment of the ads chosen before.
    n_select : int
        m.
    n_rounds : int
        Number of rounds to train.
    mask_features_from : int or None
        First round whose learners see which ads are excluded, counted from 0. This is the second
        round if all ads were available, since no ad is then excluded in the first.
    leaves_out : bool, default=False
        Whether rounds choose the ads to leave out.
    trained_once : bool, default=False
        Whether one fit serves all rounds.
    ranked_by_cost : bool, default=False
        Whether that fit predicts costs, so that the rounds choose the lowest of them in turn.
    """

    method: str
    n_select: int
    n_rounds: int
    mask_features_from: int | None
    leaves_out: bool = False
    trained_once: bool = False
    ranked_by_cost: bool = False


def settle_rounds(
    n_ads: int, n_select: int, *, all_available: bool, reduction: str, method: str
) -> RoundSettings:
    """Derive the settings from the parameters of `SetSelectClassifier` and the data.

    Parameters
    ----------
    n_ads : int
        Number of ads.
    n_select : int
        m.
    all_available : bool
        Whether every ad is available in every training row.
    reduction, method
        As in `SetSelectClassifier`.

    Returns
    -------
    RoundSettings
    """
    check_n_select(n_select, n_ads)
    masked, kind = method == MASKED, REDUCTIONS[reduction]
    sees_chosen = masked and kind.depends_on_mask
    trained_once = masked and not kind.depends_on_mask
    leaves_out = sees_chosen and all_available and 2 * n_select > n_ads
    return RoundSettings(
        method=method,
        n_select=n_select,
        n_rounds=max(1, n_ads - n_select) if leaves_out else n_select,
        mask_features_from=int(all_available) if sees_chosen else None,
        leaves_out=leaves_out,
        trained_once=trained_once,
        ranked_by_cost=trained_once and kind.predicts_costs,
    )


def train_rounds(
    examples: Examples,
    n_choices: np.ndarray,
    learn: Reduction,
    settings: RoundSettings,
    folds: np.ndarray | None,
    n_jobs: int | None = None,
    report: Callable[[int], None] = lambda k: None,
) -> tuple[CostSensitiveRule, ...]:
    """Learn Psi_1, ..., Psi_m ("Set Select Train").

    Parameters
    ----------
    examples : Examples
        f and A.
    n_choices : ndarray of shape (n,)
        Number of rounds in which each row takes part.
    learn : Reduction
        The cost-sensitive learner.
    settings : RoundSettings
        Method, number of rounds, and from which on they see the excluded ads: those in gamma or not
        in A.
    folds : ndarray of shape (n,) or None
        Fold of each row. gamma on the rows of a fold is chosen by classifiers trained on the other
        folds, and so is independent of the rows' own costs, apart from their small influence on
        gamma in other folds. If None, Psi_k itself chooses.
    n_jobs : int or None
        Number of folds fitted in parallel.
    report : callable
        Called with the number of each round, counted from 0, once it is learned.

    Returns
    -------
    tuple of CostSensitiveRule
        One per round.
    """
    everything = slice(None)
    splits = [] if folds is None else [(folds != j, folds == j) for j in np.unique(folds)]
    chosen = np.zeros_like(examples.allowed)
    rules: list[CostSensitiveRule] = []
    for k in range(settings.n_rounds):
        last = k == settings.n_rounds - 1
        if last:
            splits = []  # no later round needs the choices of the last one
        X_k = _with_mask_features(examples.X, chosen | ~examples.allowed, k, settings)
        c, allowed = examples.costs, examples.allowed & (n_choices > k)[:, None]
        if settings.method == MASKED:
            allowed = allowed & ~chosen
        else:  # c_a = 1[a not in gamma] (f_a - b), with the smallest b >= 0 that makes c <= 0
            observed = allowed & ~np.isnan(c)
            highest = c.max(axis=1, keepdims=True, where=observed, initial=0.0)
            c = np.where(chosen, 0.0, c - highest)
        of_round = Examples(X_k, c, allowed, examples.weight)
        rule, *fold_rules = in_parallel(
            (
                partial(learn, of_round.take(rows))
                for rows in [everything, *(train for train, _ in splits)]
            ),
            n_jobs,
        )
        rules.append(rule)
        report(k)
        if last:
            break
        unseen = zip(fold_rules, (test for _, test in splits), strict=True)
        picks = np.empty(examples.n, dtype=np.intp)
        for chooser, rows in unseen if splits else [(rule, everything)]:
            picks[rows] = chooser.choose(chooser.respond(X_k[rows]), allowed[rows])
        _mark_chosen(chosen, picks)
    return tuple(rules)


def run_rounds(
    rules: Sequence[CostSensitiveRule], X: Any, available: np.ndarray, settings: RoundSettings
) -> np.ndarray:
    """Ads picked per round, shape (n, n_rounds); NO_AD once all available ads are chosen.

    If consecutive rounds share a rule, its responses are computed once, for the first of them.
    """
    chosen = np.zeros_like(available)
    picks = np.full((len(available), len(rules)), NO_AD)
    for k, rule in enumerate(rules):
        if k == 0 or rule is not rules[k - 1]:
            X_k = _with_mask_features(X, chosen | ~available, k, settings)
            responses = rule.respond(X_k)
        allowed = available & ~chosen if settings.method == MASKED else available
        picks[:, k] = rule.choose(responses, allowed)
        _mark_chosen(chosen, picks[:, k])
    return picks


def draw_lots(X: Any, keys: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 1, shape (n, K), by the content of each row and random keys of K ads."""
    joint = hashes_of_contexts(X)[:, None] + keys
    return pd.util.hash_array(joint.ravel()).reshape(joint.shape) * 2.0**-64


def replace_duplicates(
    picks: np.ndarray, available: np.ndarray, n_select: int, lots: np.ndarray
) -> np.ndarray:
    """Return the distinct picks in order, then other available ads, those of lower lots first.

    `lots` (n, K), or (K,) for all rows, are not negative. The result has shape (n, n_select), with
    NO_AD where no more ads are available.
    """
    n_rounds = picks.shape[1]
    priority = np.where(available, n_rounds + lots, np.inf)
    rows = np.arange(len(picks))
    for k in reversed(range(n_rounds)):
        picked = picks[:, k] != NO_AD
        priority[rows[picked], picks[picked, k]] = k
    chosen = priority.argsort(axis=1)[:, :n_select]
    return np.where(np.isfinite(np.take_along_axis(priority, chosen, axis=1)), chosen, NO_AD)


def last_to_first(ranking: np.ndarray) -> np.ndarray:
    """Each row reversed; NO_AD stays at the end."""
    backwards = ranking[:, ::-1]
    order = np.argsort(backwards == NO_AD, axis=1, kind="stable")
    return np.take_along_axis(backwards, order, axis=1)


def _with_mask_features(X: Any, excluded: np.ndarray, k: int, settings: RoundSettings) -> Any:
    """Input of round k: x, from `mask_features_from` on with the mask of excluded ads."""
    first = settings.mask_features_from
    if first is None or k < first:
        return X
    return append_columns(X, excluded.astype(X.dtype))


def _mark_chosen(chosen: np.ndarray, picks: np.ndarray) -> None:
    """Add the picks to gamma."""
    rows = np.flatnonzero(picks != NO_AD)
    chosen[rows, picks[rows]] = True
