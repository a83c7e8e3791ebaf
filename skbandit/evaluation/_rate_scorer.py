"""Rates and constraints as a scorer for model selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED

from skbandit import measure
from skbandit.evaluation._rate_report import on_given_rows
from skbandit.rates import Constraint, Rate
from skbandit.rates._expression import AbsoluteRate, as_rate, smallest_value
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_VIOLATION = 1e15
"""Violation of an undefined constraint, in units of its rate, at most: scores must be finite."""


class RateScorer(BaseEstimator):
    """Score any classifier by a rate, subject to constraints on rates.

    A scorer for ``GridSearchCV(..., scoring=...)``, ``cross_validate``,
    ``TunedThresholdClassifierCV(..., scoring=...)`` and the like. Higher
    is better: if every constraint holds on the given rows, the score is the value of the
    objective, negated if the objective is minimized. Otherwise the score is lower than any
    such value and decreases with the violation::

        worst - violation * max(1, |worst|)

    where worst is the lowest score the objective can have on any data (-1 for the error
    rate, 0 for recall) and violation is the total amount by which bounds are violated.

    Parameters
    ----------
    objective : Rate or AbsoluteRate, default=None
        Rate to score; None stands for ``error_rate()``. Its direction is
        `Rate.greater_is_better`. `ratio` is maximized; `difference` and ``abs(...)`` are
        minimized. Group forms are scored by their worst group or pair.
    constraints : Constraint or iterable of Constraint, default=()
        Constraints, which must hold to within 1e-9.
    pos_label : label, default=None
        The positive class; None is the `pos_label` of the classifier, if it has one, also within
        a Pipeline or a search. Required otherwise, unless labels are {0, 1}, {-1, 1} or bool or
        all rates are the same for either class, as `error_rate` and `churn` are.

    See Also
    --------
    skbandit.rates : How to declare rates and constraints.

    Notes
    -----
    Predictions are those of ``estimator.predict``. Columns that rates refer to are looked up
    in `attributes`, then in the X passed to the scorer, if it is a DataFrame. For a Pipeline
    that is the X before its steps, so a step may drop a column that a rate refers to.
    ``TunedThresholdClassifierCV`` passes no X, so there the columns must be in `attributes`.

    `attributes` and `sample_weight` are requested: with
    ``sklearn.set_config(enable_metadata_routing=True)`` they reach the scorer when passed to
    ``GridSearchCV.fit`` or as ``params`` of ``cross_validate``.

    A scorer sees one dataset, so ``on=`` is ignored. Groups are those found on the given
    rows; a group without rows in a denominator (say, no positives in this fold) is skipped
    with a warning. If `where` selects no rows, a ValueError is raised. If no *prediction*
    falls in a denominator, as in the precision of a classifier that never predicts
    positive, a constraint is violated by the largest amount possible, and an objective has
    its worst value, with a warning.

    A search averages scores over folds: a candidate is penalized for each fold on which it
    violates a bound, but may still rank above one that barely meets it on all folds.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbandit.evaluation import RateScorer
    >>> from skbandit.rates import error_rate, recall
    >>> X, y = make_classification(2000, weights=[0.8], class_sep=0.3, random_state=0)
    >>> weights = {"class_weight": [None, "balanced"]}
    >>> search = GridSearchCV(LogisticRegression(), weights, scoring=RateScorer(error_rate()))
    >>> search.fit(X, y).best_params_
    {'class_weight': None}
    >>> search.scoring = RateScorer(error_rate(), [recall() >= 0.7])
    >>> search.fit(X, y).best_params_
    {'class_weight': 'balanced'}
    """

    __metadata_request__score: ClassVar = {
        "attributes": True,
        "sample_weight": True,
        "groups": True,
        "estimator": UNUSED,
    }

    def __init__(
        self,
        objective: Rate | AbsoluteRate | None = None,
        constraints: Constraint | Iterable[Any] = (),
        *,
        pos_label: Any = None,
    ) -> None:
        self.objective = objective
        self.constraints = constraints
        self.pos_label = pos_label

    def score(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Score a fitted classifier on given rows.

        Parameters
        ----------
        estimator : object with predict
            A fitted classifier, or a Pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            Passed to ``predict``; rates can refer to columns of a DataFrame.
        y : array-like of shape (n_samples,)
            True labels.
        attributes : DataFrame or dict of arrays, default=None
            Further columns that rates can refer to; passed on to a `predict` that takes
            `attributes`, as that of ``ConstrainedThreshold(by=...)``.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        groups : array-like of shape (n_samples,), default=None
            Taken, as searches pass on to scorers what they pass to `fit`. A score has no interval,
            so that dependent rows do not change it.

        Returns
        -------
        float
            Higher is better.
        """
        classifier = behind_transformers(estimator, None)[0]
        pos_label = self.pos_label
        if pos_label is None:
            pos_label = getattr(classifier, "pos_label", None)
        labels: Any = getattr(classifier, "decisions_", getattr(classifier, "classes_", None))
        if labels is not None:
            labels = [*dict.fromkeys([*np.ravel(labels).tolist(), *measure.distinct(y, "y")])]
        decided = _predict_labels(estimator, X, attributes)
        rows = {"attributes": attributes, "sample_weight": sample_weight, "X": X}
        return self._score_predictions(y, decided, pos_label=pos_label, labels=labels, **rows)

    def _score_predictions(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        attributes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        X: Any = None,
        labels: Any = None,
    ) -> float:
        """Score predicted labels."""
        goal = measure.read_objective(self.objective)
        if isinstance(goal, AbsoluteRate):  # bounded by 0, so that its slack is its score
            bounded = Constraint(goal.rate, "<=", as_rate(0.0, ""), absolute=True)
            objective = bounded.named(repr(goal))
        else:
            objective = measure.as_constraint(goal)
        worst = min(_smallest_possible_slack(side) for side in objective.one_sided())
        if not np.isfinite(worst):
            raise ValueError(
                f"{objective.label} can become arbitrarily bad, so no score is worse than all "
                "of its values: use a bounded objective, such as a difference of rates instead "
                "of their ratio."
            )
        constraints = measure.flatten_constraints(self.constraints)
        rates = [objective.rate, *(constraint.rate for constraint in constraints)]
        given = y_true, y_pred, attributes, sample_weight, pos_label
        data, positive = measure.read_measured(rates, *given, X=X, labels=labels)
        if data.others and labels is None:
            raise ValueError(
                f"The predictions have {list(data.others)}, which y lacks: a scorer knows other "
                "decisions from the attribute decisions_ of a classifier."
            )
        values, undefined = _measure_slack([objective], data, positive)
        if not len(values):
            raise ValueError(
                f"{objective.label} cannot be measured: its denominator has no rows in any group."
            )
        slack, _ = _measure_slack(constraints, data, positive)
        violation = float(-slack[slack < -measure.RATE_TOL].sum())
        if violation > 0:
            return worst - violation * max(1.0, abs(worst))
        if undefined:
            warn(
                f"{objective.label} is undefined, as no prediction falls in its denominator: it "
                "is scored by its worst value.",
                UndefinedMetricWarning,
            )
        return float(values.min())

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)

    # TunedThresholdClassifierCV scores labels at many thresholds with these parts of a scorer.

    @property
    def _score_func(self) -> Callable[..., float]:
        return self._score_predictions

    @property
    def _sign(self) -> int:
        return 1

    @property
    def _kwargs(self) -> dict[str, Any]:
        return {} if self.pos_label is None else {"pos_label": self.pos_label}

    def _accept_sample_weight(self) -> bool:
        # scikit-learn calls this on every scorer of a dict if routing is disabled.
        return True


def _smallest_possible_slack(side: Constraint) -> float:
    """Smallest possible slack of a one-sided constraint, on any data."""
    if side.sense == ">=":
        return smallest_value(side.rate) - side.bound
    return side.bound + smallest_value(-side.rate)


def _measure_slack(
    constraints: list[Constraint], data: measure.Data, positive: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Slack of the constraints that can be measured, and whether any is undefined."""
    sides = measure.expand([on_given_rows(constraint) for constraint in constraints], data)
    declared = [(side.label, side.rate, data, bool(side.of)) for side in sides]
    measured = measure.count_rows_of_rates(declared) > 0
    slack = np.full(len(sides), np.nan)
    for k in np.flatnonzero(measured):
        value = measure.count(sides[k].rate, data, positive)
        slack[k] = sides[k].bound - value if sides[k].sense == "<=" else value - sides[k].bound
    undefined = np.isnan(slack) & measured
    for k in np.flatnonzero(undefined):
        slack[k] = max(_smallest_possible_slack(sides[k]), -MAX_VIOLATION)
    return slack[measured], bool(undefined.any())


def _predict_labels(estimator: Any, X: Any, attributes: Any) -> np.ndarray:
    """Predicted labels; attributes are for classifiers whose `predict` takes them."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if last is not estimator and get_config()["enable_metadata_routing"]:
        takes = estimator.get_metadata_routing().consumes("predict", ["attributes"])
    else:
        takes = hasattr(last, "predict") and "attributes" in signature(last.predict).parameters
    more = {"attributes": attributes} if attributes is not None and takes else {}
    labels = np.asarray(estimator.predict(X, **more))
    fractions = labels[labels % 1 > 0] if labels.dtype.kind == "f" else labels[:0]
    if fractions.size:
        raise ValueError(
            f"Rates require a classifier: {type(estimator).__name__}.predict returns numbers "
            f"such as {fractions[0]:g} instead of labels."
        )
    return labels
