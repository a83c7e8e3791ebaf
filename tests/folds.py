"""What the library does out of fold, written down once more: folds, and scores on one scale."""

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from skbandit.utils._folds import folds_of_classes, splits_of_folds, units_of_rows


def default_splits(X, y, n_folds=5):
    """The splits of an estimator whose `cv` is a number."""
    return splits_of_folds(
        folds_of_classes(np.asarray(y), n_folds, units_of_rows(X, np.asarray(y)))
    )


def out_of_fold(estimator, method, X, y, positive=1, splits=None, sample_weight=None):
    """Scores for a class, 0 or 1, by models fitted without the fold; nan for rows never tested.

    Those of linear models have the mean and the deviation, over all rows, of the final model, with
    1/40 of the rows at either end clipped.
    """
    splits = default_splits(X, y) if splits is None else splits

    def fitted(rows):
        weights = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
        return clone(estimator).fit(X[rows], y[rows], **weights)

    def moments(model):
        scores = model.decision_function(X)
        weight, order = (
            np.ones(len(y)) if sample_weight is None else sample_weight,
            np.argsort(scores),
        )
        share, ordered = np.cumsum(weight[order]) / weight.sum(), scores[order]
        inner = np.clip(scores, ordered[share >= 0.025][0], ordered[share >= 0.975][0])
        mean = np.average(inner, weights=weight)
        return scores, mean, np.sqrt(np.average((inner - mean) ** 2, weights=weight))

    final, result = fitted(np.arange(len(y))), np.full(len(y), np.nan)
    for train, test in splits:
        model = fitted(train)
        if not hasattr(model, "coef_"):
            result[test] = getattr(model, method)(X[test])[:, positive]
            continue
        scores, mean, deviation = moments(model)
        _, final_mean, final_deviation = moments(final)
        scores = final_mean + final_deviation * (scores[test] - mean) / deviation
        scores = scores if positive else -scores
        result[test] = expit(scores) if method == "predict_proba" else scores
    return result
