"""Cross-validation folds, and Pipelines taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.pipeline import Pipeline

# Training and test rows of each fold.
Splits = list[tuple[np.ndarray, np.ndarray]]


def stratified_folds(labels: np.ndarray, n_folds: int) -> np.ndarray:
    """Fold number per row; the rows of each label are dealt to the folds in turn."""
    fold = np.empty(len(labels), dtype=int)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        fold[rows] = np.arange(len(rows)) % n_folds
    return fold


def rows_tested(splits: Splits, n_rows: int) -> np.ndarray:
    """Mask of the rows that some fold tests; a row tested by several folds is an error."""
    times = np.zeros(n_rows, dtype=int)
    for _, test in splits:  # row numbers or masks
        times[test] += 1
    if (times > 1).any():
        row = int(np.flatnonzero(times > 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, but a row has one score: choose a cv that "
            "tests each row at most once, such as StratifiedKFold(shuffle=True)."
        )
    return times > 0


def splits_of_all_rows(cv: Any, X: Any, n_rows: int, random_state: Any) -> Splits:
    """Splits that test each row exactly once and never train on a row they test.

    Parameters
    ----------
    cv : int, cross-validation generator or iterable of splits
        An integer is a shuffled `KFold`.
    X : object
        Passed to ``cv.split``.
    n_rows : int
        Number of rows of X.
    random_state : int, RandomState or None
        Shuffles the rows if `cv` is an integer.

    Returns
    -------
    list of (ndarray, ndarray)
        Row numbers.
    """
    if isinstance(cv, int | np.integer):
        cv = KFold(int(cv), shuffle=True, random_state=random_state)
    rows = np.arange(n_rows)
    splits = [(rows[train], rows[test]) for train, test in _split(check_cv(cv), X)]
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_rows)
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, but each row needs one prediction by models "
            "fitted without it: choose a cv that tests each row once, such as KFold."
        )
    for train, test in splits:
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(f"cv trains on row {both[0]} in the fold that tests it.")
    return splits


def _split(cv: Any, X: Any) -> Splits:
    """The splits of a generator; raise an informative error if it requires groups or labels."""
    try:
        return list(cv.split(X))
    except (TypeError, ValueError) as error:
        name = type(cv).__name__
        if "groups" in str(error):
            cure = f"cv=list({name}(...).split(X, groups=groups))"
        elif name.startswith(("Stratified", "RepeatedStratified")):
            cure = f"cv=list({name}(...).split(X, labels)), with the labels to stratify by"
        else:
            raise
        raise ValueError(f"{name} needs more than X to split ({error}): pass {cure}.") from error


def split_pipeline(estimator: Any) -> tuple[Pipeline | None, Any]:
    """Split an estimator into transformers (None if there are none) and final estimator."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    transformers = estimator[:-1] if len(estimator.steps) > 1 else None
    return transformers, estimator.steps[-1][1]


def transformed(transformers: Pipeline | None, rows: Any) -> Any:
    """Transform rows for the last step; the items of a tuple are transformed one by one."""
    if transformers is None or rows is None:
        return rows
    if isinstance(rows, tuple):
        return tuple(transformers.transform(part) for part in rows)
    return transformers.transform(rows)


def behind_transformers(policy: Any, X: Any) -> tuple[Any, Any]:
    """The policy within a Pipeline or a fitted search, and the rows transformed for it."""
    if hasattr(policy, "best_estimator_"):
        return behind_transformers(policy.best_estimator_, X)
    transformers, last = split_pipeline(policy)
    if last is policy:
        return policy, X
    return behind_transformers(last, transformed(transformers, X))
