"""Scores of rows by models that have not seen them, by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skbandit.constrained._declared import Classes
from skbandit.utils._sklearn_compat import params_of_rows, rows_of

Splits = list[tuple[Any, Any]]


def out_of_fold_scores(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    params: dict[str, Any],
    splits: Splits,
    method: str,
    classes: Classes,
    n_jobs: int | None,
) -> np.ndarray:
    """Scores of rows by clones fitted without them; nan for rows never tested."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fold_scores)(clone(estimator), X, y, params, train, test, method, classes)
        for train, test in splits
    )
    scores = np.full(len(y), np.nan)
    for (_, test), of_fold in zip(splits, found, strict=True):
        scores[test] = of_fold
    return scores


def tested_rows(splits: Splits, n_rows: int) -> np.ndarray:
    """Which rows are in a test part; none may be in several."""
    times = np.zeros(n_rows, dtype=int)
    for _, test in splits:
        times[test] += 1
    if (times > 1).any():
        row = int(np.flatnonzero(times > 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, and a row has one score: choose a cv that "
            "tests each row once at most, such as StratifiedKFold(shuffle=True)."
        )
    return times > 0


def _fold_scores(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    params: dict[str, Any],
    train: Any,
    test: Any,
    method: str,
    classes: Classes,
) -> np.ndarray:
    """Fit on the training part of a fold, score the test part."""
    if len(np.unique(y[train])) < 2:
        raise ValueError(
            "cv trains on one class only: with few rows of a class, choose fewer folds or a "
            "stratified cv."
        )
    whole = {name: value for name, value in params.items() if name.endswith("_extra")}
    sliced = {name: value for name, value in params.items() if name not in whole}
    sliced = params_of_rows(X, sliced, indices=train)
    estimator.fit(rows_of(X, train), y[train], **sliced, **whole)
    return responses(estimator, rows_of(X, test), method, classes)


def responses(estimator: Any, X: Any, method: str, classes: Classes) -> np.ndarray:
    """Responses for the positive class, signed to speak for ``classes.labels[1]``."""
    values = np.asarray(getattr(estimator, method)(X), dtype=float)
    if method == "predict_proba":
        column = np.asarray(estimator.classes_).tolist().index(classes.positive)
        values = classes.orientation * values[:, column]
    values = values.ravel()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{type(estimator).__name__}.{method} answers {values[row]} in row {row}: a threshold "
            "needs finite scores."
        )
    return values
