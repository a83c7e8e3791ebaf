"""Out-of-fold scores: each row by a model fitted without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skbandit.constrained._classes import Classes
from skbandit.utils._folds import Splits
from skbandit.utils._sklearn_compat import params_of_rows, rows_of

USUAL = {"predict_proba": 0.5, "decision_function": 0.0}
"""Response methods, the preferred one first, and the threshold of `predict` on each."""


def response_of(estimator: Any, wanted: str) -> str:
    """The response method of a classifier: `wanted`, or the first of USUAL if "auto"."""
    methods = list(USUAL) if wanted == "auto" else [wanted]
    found = [method for method in methods if hasattr(estimator, method)]
    if not found:
        raise ValueError(f"{type(estimator).__name__} has no {' and no '.join(methods)}.")
    return found[0]


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
    """Score each row by a clone fitted without it; nan for rows never tested."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fold_scores)(clone(estimator), X, y, params, train, test, method, classes)
        for train, test in splits
    )
    scores = np.full(len(y), np.nan)
    for (_, test), of_fold in zip(splits, found, strict=True):
        scores[test] = of_fold
    return scores


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
    """Fit on a split's training rows, score its test rows."""
    if len(np.unique(y[train])) < 2:
        raise ValueError(
            "A cv split has training rows of one class only: choose fewer folds or a stratified cv."
        )
    # the extra dataset is not indexed by the rows of X
    whole = {n: value for n, value in params.items() if n == "extra" or n.endswith("_extra")}
    sliced = {name: value for name, value in params.items() if name not in whole}
    sliced = params_of_rows(X, sliced, indices=train)
    estimator.fit(rows_of(X, train), y[train], **sliced, **whole)
    return responses(estimator, rows_of(X, test), method, classes)


def responses(estimator: Any, X: Any, method: str, classes: Classes) -> np.ndarray:
    """Responses for the positive class, signed so that high favours ``classes.labels[1]``."""
    values = np.asarray(getattr(estimator, method)(X), dtype=float)
    if method == "predict_proba":
        column = np.asarray(estimator.classes_).tolist().index(classes.positive)
        values = classes.orientation * values[:, column]
    values = values.ravel()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{type(estimator).__name__}.{method} returns {values[row]} for row {row}: a "
            "threshold needs finite scores."
        )
    return values
