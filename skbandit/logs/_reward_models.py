"""Reward models, one per arm, cross-fitted: no model predicts a row it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.utils import indexable

from skbandit.logs import _arm_models
from skbandit.logs._log import Log
from skbandit.logs._uniform import check_uniform
from skbandit.utils._folds import splits_of_all_rows
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import warn

SMALLEST = 1e-75
"""Propensity whose weights have squares of squares."""


def cross_fitted_rewards(
    model: Any,
    X: Any,
    action: np.ndarray,
    reward: np.ndarray,
    n_arms: int,
    *,
    row: np.ndarray | None = None,
    cv: Any = 5,
    random_state: Any = None,
    sample_weight: np.ndarray | None = None,
    group: np.ndarray | None = None,
) -> np.ndarray:
    """Predict the reward (or cost) of every arm on every row, by models fitted without that row.

    Parameters
    ----------
    model : regressor, classifier with predict_proba, or None
        Cloned per arm and fold, and fitted to the arm's events; None is `Ridge()`. A classifier
        must have numeric classes; its prediction is the expected class.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
        Contexts in any form that `model` accepts.
    action : ndarray of shape (n_events,)
        Arm numbers, from 0 to n_arms - 1.
    reward : ndarray of shape (n_events,)
        Observed rewards (or costs), in any unit.
    n_arms : int
        Number of arms, including those without events.
    row : ndarray of shape (n_events,), default=None
        The row of X that each event belongs to; None is one event per row, in order.
    cv : int, cross-validation generator or iterable of splits, default=5
        Folds of the rows; each row must be tested exactly once. An integer is not stratified by
        arm, so that the training rows carry no information about the actions of the test rows.
    random_state : int, RandomState or None, default=None
        Shuffles the rows if `cv` is an integer.
    sample_weight : ndarray of shape (n_events,), default=None
        Passed to the models' `fit`; an event of weight 0 is ignored.
    group : ndarray of int, shape (n_rows,), default=None
        Groups of rows, which stay on one side of each split.

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
        An arm without training events in a fold gets the (weighted) mean training reward of all
        arms. With a classifier, an arm whose training rewards are all equal gets that value. A
        regressor learns what arms have in common once, if this tells them apart better, and wild
        predictions are clipped: see `skbandit.logs._arm_models`.
    """
    automatic, model = model is None, Ridge() if model is None else model
    (X,) = indexable(X)
    n_rows = count_rows(X)
    if getattr(X, "shape", ())[1:] == (0,):  # models need a column, if a constant one
        X = np.ones((n_rows, 1))
    row = np.arange(n_rows) if row is None else row
    weight = np.ones(len(action)) if sample_weight is None else sample_weight
    given = None if sample_weight is None else weight
    events = _arm_models.ArmEvents(X, row, action, reward, given, n_arms)
    counted = events.take(weight > 0)
    is_apart = automatic or not len(counted.row)
    sharing = _arm_models.APART if is_apart else _arm_models.sharing_of(model, counted)
    predicted, are_clipped = np.empty((n_rows, n_arms)), False
    total = np.bincount(row, reward, minlength=n_rows)
    for train, test in splits_of_all_rows(cv, X, total, random_state, group):
        in_train = np.zeros(n_rows, dtype=bool)
        in_train[train] = True
        seen = in_train[row] & (weight > 0)
        if not seen.any():
            raise ValueError("cv has a fold without events to train on: choose fewer folds.")
        training = events.take(seen)
        fitted = _arm_models.RewardsByArm.fitted(model, training, sharing)
        q = fitted.predicted(rows_of(X, test))
        q = np.where(np.isnan(q), np.average(reward[seen], weights=weight[seen]), q)
        predicted[test] = _arm_models.within_range(q, _arm_models.range_of(training.reward), test)
        are_clipped = are_clipped or not np.array_equal(predicted[test], q)
    if fitted.are_linear and not are_clipped:
        _arm_models.warn_of_wild_context(X)
    return predicted


@dataclass(frozen=True)
class LoggedSlates:
    """The ads shown in a log, one entry per row and ad.

    Parameters
    ----------
    row, ad : ndarray of int, shape (n_shown,)
        Row and position of the ad; no ad occurs twice in a row.
    cost, propensity : ndarray of shape (n_shown,)
        f, and the probability pi_a(x) of showing the ad in that row.
    n_rows, n_ads : int
        Numbers of rows and ads.
    available : ndarray of bool, shape (n_rows, n_ads), or None
        Which ads could be shown; None means all.
    """

    row: np.ndarray
    ad: np.ndarray
    cost: np.ndarray
    propensity: np.ndarray
    n_rows: int
    n_ads: int
    available: np.ndarray | None = None

    @classmethod
    def of_log(cls, log: Log) -> LoggedSlates:
        """Return the events of a log as slates of one arm, with negative rewards as costs."""
        n, n_arms = len(log), len(log.arms)
        available = None if log.pools is None else log.available_mask(n_arms)
        events = np.arange(n), log.action.astype(np.intp), -log.reward, log.probability
        return cls(*events, n, n_arms, available)

    def weight_available(self, row_weight: np.ndarray) -> np.ndarray:
        """Total weight of the rows in which each ad could be shown."""
        if self.available is None:
            return np.full(self.n_ads, row_weight.sum())
        return row_weight @ self.available

    def in_matrix(self, values: np.ndarray) -> np.ndarray:
        """Return a matrix (n_rows, n_ads) with the values of the entries, and 0 elsewhere."""
        matrix = np.zeros((self.n_rows, self.n_ads))
        matrix[self.row, self.ad] = values
        return matrix


def check_weights(slates: LoggedSlates, labels: np.ndarray, noun: str) -> None:
    """Warn if the mean weight of an ad, over the rows where it was available, is far from 1.

    By Bernstein's inequality, for weights of finite variance, chance does this with probability
    below 1e-5 per ad. The message calls ads by `noun`.
    """
    n = np.maximum(slates.weight_available(np.ones(slates.n_rows)), 1)
    weight = 1 / np.maximum(slates.propensity, SMALLEST)
    total = np.bincount(slates.ad, weight, minlength=slates.n_ads)
    square = np.bincount(slates.ad, weight**2, minlength=slates.n_ads)
    largest = np.zeros(slates.n_ads)
    np.maximum.at(largest, slates.ad, weight)
    mean = total / n
    gap = np.abs(mean - 1)
    far = (total > 0) & (gap**2 > 25 * (square / n - mean**2 + gap * largest / 3) / n)
    if far.any():
        ad = int(np.flatnonzero(far)[np.argmax(gap[far])])
        cause = "was not available in every row (pass available=)"
        if slates.available is not None or mean[ad] > 1:
            cause = "was available in other rows than available says"
        warn(
            f"the weights 1/propensity of {noun} {labels.tolist()[ad]!r} have the mean "
            f"{mean[ad]:.3g} over {n[ad]:,.0f} rows, where 1 is expected: the {noun} {cause}, or "
            "the propensities are wrong. What is estimated for it is biased.",
            UserWarning,
        )


def check_propensities(log: Log, X: Any) -> None:
    """Warn of a log whose propensities cannot be right, or that lacks them and is not uniform."""
    if log.propensity is None:
        check_uniform(log, X)
    else:
        check_weights(LoggedSlates.of_log(log), log.arms, "arm")


def ips_costs(slates: LoggedSlates) -> np.ndarray:
    """1[a shown] f_a / pi_a: inverse propensity scoring."""
    return slates.in_matrix(slates.cost / slates.propensity)


def snips_costs(slates: LoggedSlates, row_weight: np.ndarray | None = None) -> np.ndarray:
    """Return `ips_costs` with the weights of each ad divided by their mean over its rows.

    Its rows are those in which it could be shown; in them, 1[a shown] / pi has expectation 1. The
    mean of a column over these rows is then a weighted mean of the ad's observed costs. Rows may
    count for several, or a part, by `row_weight` (n_rows,).
    """
    weight = 1 / slates.propensity
    of_row = np.ones(slates.n_rows) if row_weight is None else row_weight
    total = np.bincount(slates.ad, weight * of_row[slates.row], minlength=slates.n_ads)
    n = slates.weight_available(of_row)
    mean = total / np.where(n > 0, n, 1.0)
    return slates.in_matrix(slates.cost * weight / np.where(mean > 0, mean, 1.0)[slates.ad])


def dr_costs(slates: LoggedSlates, mu: np.ndarray, shrinkage: float = np.inf) -> np.ndarray:
    """mu_a + 1[a shown] w (f_a - mu_a), with out-of-fold predictions mu (n_rows, n_ads).

    The weight w is 1 / pi_a, or with a finite shrinkage lambda the smaller lambda w / (w^2 +
    lambda) of Su et al. (2020), "Doubly robust off-policy evaluation with shrinkage".
    """
    residual = slates.cost - mu[slates.row, slates.ad]
    return mu + slates.in_matrix(residual * shrunk_weights(1 / slates.propensity, shrinkage))


def shrunk_weights(weight: np.ndarray, shrinkage: float) -> np.ndarray:
    """λ w / (w² + λ), for λ from 0 (no weights) to infinity (all of w); at most √λ / 2."""
    if np.isinf(shrinkage):
        return weight
    # w² may overflow: with v = w / √λ, it is √λ v / (v² + 1) = √λ / (v + 1/v)
    root = np.sqrt(shrinkage)
    if root == 0:
        return np.zeros_like(weight)
    v = weight / root
    positive = v > 0
    return root * np.where(positive, 1 / (v + 1 / np.where(positive, v, 1.0)), 0.0)


def offset_costs(slates: LoggedSlates) -> np.ndarray:
    """1[a shown] (f_a - offset) / pi_a, where the offset is the midrange of the costs.

    On these costs, the filter tree is the offset tree of Beygelzimer & Langford (2009), "The offset
    tree for learning with partial labels". There, a logged event (x, a, f, p) is an example for the
    match between ads l and r only if it shows one of them. The example has the weight
    |f - offset| / p; its label is a if f is below the offset, and the opponent otherwise. (For
    rewards in [0, 1] the offset is 1/2, with the least variance in the worst case.) In the filter
    tree, |c_l - c_r| is 0 in matches without a. In rounds, an event whose ad has been chosen is
    ignored, as that ad no longer competes.

    The expected costs are f* - offset for every ad: the true costs, shifted by a constant.
    """
    midrange = (slates.cost.min() + slates.cost.max()) / 2
    return slates.in_matrix((slates.cost - midrange) / slates.propensity)
