"""Reward models, one per arm, cross-fitted: no model predicts a row it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils import indexable
from sklearn.utils.validation import has_fit_parameter

from skbandit.utils._folds import splits_of_all_rows
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import explained_strings


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

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
        An arm without training events in a fold gets the (weighted) mean training reward of all
        arms. With a classifier, an arm whose training rewards are all equal gets that value.
    """
    model = Ridge() if model is None else model
    (X,) = indexable(X)
    n_rows = count_rows(X)
    row = np.arange(n_rows) if row is None else row
    weight = np.ones(len(action)) if sample_weight is None else sample_weight
    if sample_weight is not None and not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"{type(model).__name__}.fit takes no sample_weight: choose another reward model."
        )
    ends = np.cumsum(np.bincount(action, minlength=n_arms))
    of_arm = np.split(np.argsort(action, kind="stable"), ends[:-1])
    predicted = np.empty((n_rows, n_arms))
    for train, test in splits_of_all_rows(cv, X, n_rows, random_state):
        in_train = np.zeros(n_rows, dtype=bool)
        in_train[train] = True
        seen = in_train[row] & (weight > 0)
        if not seen.any():
            raise ValueError("cv has a fold without events to train on: choose fewer folds.")
        mean = np.average(reward[seen], weights=weight[seen])
        tested = rows_of(X, test)
        for arm, events in enumerate(of_arm):
            own = events[seen[events]]
            if len(own) == 0:
                predicted[test, arm] = mean
                continue
            weights = {} if sample_weight is None else {"sample_weight": weight[own]}
            contexts = rows_of(X, row[own])
            predicted[test, arm] = _expected(clone(model), contexts, reward[own], weights, tested)
    return predicted


def expected_reward(model: Any, X: Any) -> np.ndarray:
    """Expected reward per row under a fitted model; for a classifier, the expected class."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X), dtype=float).ravel()
    return model.predict_proba(X) @ np.asarray(model.classes_, dtype=float)


def _expected(
    model: Any, X: Any, reward: np.ndarray, weights: dict[str, np.ndarray], X_new: Any
) -> np.ndarray:
    """Expected rewards of new rows under the model fitted to the given rows."""
    if hasattr(model, "predict_proba") and (reward == reward[0]).all():
        return np.full(np.shape(X_new)[0], reward[0])  # classifiers need two classes
    with explained_strings(X, "the model of rewards"):
        return expected_reward(model.fit(X, reward, **weights), X_new)
