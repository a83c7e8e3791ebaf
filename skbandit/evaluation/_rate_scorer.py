"""Rates and constraints as a scorer for model selection."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import UNUSED

from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import (
    MET,
    AbsoluteRate,
    Data,
    as_rate,
    bind_constraints,
    expand,
    flatten_constraints,
    on_given_rows,
    read_objective,
    read_predictions,
    smallest_value,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# A constraint is missed by at most this much, as a score must stay finite.
_FURTHEST = 1e15


class RateScorer(BaseEstimator):
    """Score any classifier by a rate, among those that meet the constraints.

    A scorer for ``GridSearchCV(..., scoring=...)``, `cross_validate` and the like. Higher
    is better: where every constraint holds on the rows given, the score is the objective's
    value, negated if the objective is to be minimised. Where one does not, the score is
    lower than any such value, and the lower the more is missed::

        worst - missed * max(1, |worst|)

    with worst the lowest score that the objective could give on any data (-1 for the error
    rate, 0 for recall) and missed the sum of the amounts by which bounds are missed.

    Parameters
    ----------
    objective : Rate or AbsoluteRate, default=None
        What is scored; None is ``error_rate()``. Its direction is
        `Rate.greater_is_better`. `ratio` is maximised; `difference` and ``abs(...)`` are
        minimised. Group forms count by their worst group or pair.
    constraints : Constraint or iterable of Constraint, default=()
        What must hold, to within 1e-9.
    pos_label : label, default=None
        The positive class; may be left out for labels {0, 1}, {-1, 1} and bool.

    See Also
    --------
    skbandit.rates : How to declare rates and constraints.

    Notes
    -----
    Predictions are those of ``estimator.predict``. The columns that rates name are looked
    up in `attributes`, then in the X that the scorer is given, if that is a DataFrame: the X
    before the steps of a Pipeline, so that a step may drop a column which a rate names.

    `attributes` and `sample_weight` are requested: with
    ``sklearn.set_config(enable_metadata_routing=True)`` they reach the scorer when they are
    passed to ``GridSearchCV.fit`` or as ``params`` of `cross_validate`.

    A scorer sees one dataset, so ``on=`` is read as the rows given. Groups are those found
    on these rows; one that has no row in a denominator (say, no positives in this fold) is
    left out with a warning. Rows named by `where` must be there, or a ValueError is raised.
    Where no *answer* falls in a denominator, as in the precision of a classifier that never
    answers positive, a constraint counts as missed by the largest amount possible and an
    objective as the worst possible, with a warning.

    A search averages scores over folds: a candidate that misses a bound on some folds
    pays for these, and can still come before one that meets it everywhere by little.

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
    ) -> float:
        """Score a fitted classifier on given rows.

        Parameters
        ----------
        estimator : object with predict
            A fitted classifier, or a Pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            What it predicts from; columns of a DataFrame can be named by rates.
        y : array-like of shape (n_samples,)
            True labels.
        attributes : DataFrame or dict of arrays, default=None
            More columns that rates can name.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        float
            Higher is better.
        """
        objective = _as_goal(read_objective(self.objective))
        worst = min(_smallest_slack(side) for side in objective.one_sided())
        if not np.isfinite(worst):
            raise ValueError(
                f"{objective.label} can become arbitrarily bad, so no score is worse than all "
                "of its values: take an objective that is bounded, such as a difference of "
                "rates in place of their ratio."
            )
        constraints = flatten_constraints(self.constraints)
        data, positive = read_predictions(
            y, _answers(estimator, X), attributes, sample_weight, self.pos_label, X
        )
        values, undefined = _measure([objective], data, positive)
        if not len(values):
            raise ValueError(f"{objective.label} cannot be measured: no group has rows for it.")
        slack, _ = _measure(constraints, data, positive)
        missed = float(-slack[slack < -MET].sum())
        if missed > 0:
            return worst - missed * max(1.0, abs(worst))
        if undefined:
            warnings.warn(
                f"{objective.label} is undefined, as no answer falls in its denominator: it "
                "counts as the worst possible.",
                UndefinedMetricWarning,
                stacklevel=2,
            )
        return float(values.min())

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        return self.score(estimator, X, y, attributes=attributes, sample_weight=sample_weight)

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks this of every scorer in a dict when routing is off
        return True


def _as_goal(objective: Rate | AbsoluteRate) -> Constraint:
    """The objective compared with 0, so that its slack is its value, higher is better."""
    zero = as_rate(0.0, "")
    if isinstance(objective, AbsoluteRate):
        goal = Constraint(objective.rate, "<=", zero, absolute=True)
    else:
        goal = Constraint(objective, ">=" if objective.greater_is_better else "<=", zero)
    return goal.named(repr(objective))


def _smallest_slack(side: Constraint) -> float:
    """The slack of a one-sided constraint where it is missed by most."""
    if side.sense == ">=":
        return smallest_value(side.rate) - side.bound
    return side.bound + smallest_value(-side.rate)


def _measure(
    constraints: list[Constraint], data: Data, positive: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Slack of what can be measured on these rows, and whether some of it is undefined."""
    here = [
        replace(one, lhs=on_given_rows(one.lhs), rhs=on_given_rows(one.rhs)) for one in constraints
    ]
    sides = expand(here, data)
    bound = bind_constraints(sides, data)
    slack = bound.slack(bound.values(positive))
    undefined = np.isnan(slack) & (bound.n_rows > 0)
    for k in np.flatnonzero(undefined):
        slack[k] = max(_smallest_slack(sides[k]), -_FURTHEST)
    return slack[bound.n_rows > 0], bool(undefined.any())


def _answers(estimator: Any, X: Any) -> np.ndarray:
    """The predicted labels."""
    answers = np.asarray(estimator.predict(X))
    fractions = answers[answers % 1 > 0] if answers.dtype.kind == "f" else answers[:0]
    if fractions.size:
        raise ValueError(
            f"Rates are for classifiers: {type(estimator).__name__}.predict answers with "
            f"numbers such as {fractions[0]:g}, not with labels."
        )
    return answers
