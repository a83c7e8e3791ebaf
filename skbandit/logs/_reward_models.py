"""Models of the reward, one an arm, each predicting only rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import indexable
from sklearn.utils.validation import has_fit_parameter

from skbandit.utils._sklearn_compat import count_rows, rows_of


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
    """Predict every arm's reward (or cost) on every row, by models fitted without the row.

    Parameters
    ----------
    model : regressor, classifier with predict_proba, or None
        Cloned for every arm and fold, and fitted to the arm's own events; None is `Ridge()`. A
        classifier, whose classes are numbers, predicts its expected class.
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
        Contexts, as `model` takes them.
    action : ndarray of shape (n_events,)
        Numbers of the arms, from 0 to n_arms - 1.
    reward : ndarray of shape (n_events,)
        What was observed, in any unit.
    n_arms : int
        How many arms there are, with those that have no event.
    row : ndarray of shape (n_events,), default=None
        The row of X that each event belongs to; None is one event a row, in order.
    cv : int, cross-validation generator or iterable of splits, default=5
        Of the rows; each must be tested exactly once. Numbers are not stratified by arm: so what
        the models have seen says nothing of the actions that they are tested on.
    random_state : int, RandomState or None, default=None
        Shuffles the rows, if `cv` is a number.
    sample_weight : ndarray of shape (n_events,), default=None
        For the models' `fit`; an event of weight 0 is as one that is not there.

    Returns
    -------
    ndarray of shape (n_rows, n_arms)
        An arm without an event in a fold's training part is predicted by that part's (weighted)
        mean reward over all arms; a classifier's arm with rewards of one value, by that value.
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
    for train, test in _splits(cv, X, n_rows, random_state):
        in_train = np.zeros(n_rows, dtype=bool)
        in_train[train] = True
        seen = in_train[row] & (weight > 0)
        if not seen.any():
            raise ValueError("cv has a fold whose training part has no event: choose fewer folds.")
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


def _splits(
    cv: Any, X: Any, n_rows: int, random_state: Any
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold."""
    if isinstance(cv, int | np.integer):
        cv = KFold(int(cv), shuffle=True, random_state=random_state)
    rows = np.arange(n_rows)
    splits = [(rows[train], rows[test]) for train, test in check_cv(cv).split(X)]
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_rows)
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, and each needs one prediction by models "
            "that have not seen it: choose a cv that tests each row once, such as KFold."
        )
    for train, test in splits:
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(f"cv trains on row {both[0]} in the fold that tests it.")
    return splits


def expected_reward(model: Any, X: Any) -> np.ndarray:
    """Rewards that a fitted model expects; of a classifier, the mean of its classes."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X), dtype=float).ravel()
    return model.predict_proba(X) @ np.asarray(model.classes_, dtype=float)


def _expected(
    model: Any, X: Any, reward: np.ndarray, weights: dict[str, np.ndarray], X_new: Any
) -> np.ndarray:
    """Expected rewards on new rows, by a model fitted to these."""
    if hasattr(model, "predict_proba") and (reward == reward[0]).all():
        return np.full(np.shape(X_new)[0], reward[0])  # classifiers want two classes
    return expected_reward(model.fit(X, reward, **weights), X_new)
