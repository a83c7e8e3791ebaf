"""Report of a fitted classifier's constraints, behind the transformers of a Pipeline too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from skbandit.constrained._extra_rows import ExtraData
from skbandit.utils._pipeline import behind_transformers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def constraint_report(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    attributes: Any = None,
    extra: ExtraData | None = None,
    X_extra: Any = None,
    y_extra: Any = None,
    attributes_extra: Any = None,
    sample_weight_extra: Any = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Report on the constraints of a fitted classifier, behind a Pipeline or in a search too.

    Parameters
    ----------
    estimator : classifier with declared constraints, Pipeline that ends with one, or search
        Fitted. The transformers of a Pipeline are applied to X and to the extra rows; of a
        search, such as `GridSearchCV`, `best_estimator_` is reported on.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows, as for the `predict` of `estimator`.
    y : array-like of shape (n_samples,), default=None
        Labels; None or missing entries are unlabelled.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.
    attributes : DataFrame or dict of arrays, default=None
        Columns that constraints name. Columns of X that the transformers drop must be among
        them.
    extra : ExtraData, default=None
        Rows for rates with ``on="extra"`` or ``"all"``.
    X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
        The parts of `extra`, passed one by one.
    confidence_level : float, default=0.95
        Level of each interval.

    Returns
    -------
    DataFrame
        As from the classifier's method `constraint_report`.

    See Also
    --------
    skbandit.ConstrainedRampClassifier.constraint_report : The report without transformers.
    skbandit.inspection.ConstraintReportDisplay : Draws such a report.
    skbandit.evaluation.rate_report : The same for the predictions of any classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.constrained import constraint_report
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.95)
    >>> pipeline = make_pipeline(StandardScaler(), clf).fit(X[::2], y[::2])
    >>> constraint_report(pipeline, X[1::2], y[1::2])[["constraint", "n_rows"]]
             constraint  n_rows
    0  recall() >= 0.95     174
    """
    classifier, _ = behind_transformers(estimator, None)
    if not hasattr(classifier, "constraint_report"):
        raise TypeError(
            f"{type(classifier).__name__} has no declared constraints: pass a classifier that has, "
            "a Pipeline that ends with one, or a search that has refitted one. For other "
            "classifiers use skbandit.evaluation.rate_report(y, predictions, constraints)."
        )
    if isinstance(extra, ExtraData):
        extra = replace(extra, X=behind_transformers(estimator, extra.X)[1])
    return classifier.constraint_report(
        behind_transformers(estimator, X)[1],
        y,
        sample_weight=sample_weight,
        attributes=attributes,
        extra=extra,
        X_extra=behind_transformers(estimator, X_extra)[1],
        y_extra=y_extra,
        attributes_extra=attributes_extra,
        sample_weight_extra=sample_weight_extra,
        confidence_level=confidence_level,
    )
