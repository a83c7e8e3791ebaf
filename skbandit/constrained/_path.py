"""The trade-off over one bound: the same classifier under tighter and looser goals."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skbandit.constrained._classifier import ConstrainedRampClassifier
from skbandit.constrained._declared import Declared
from skbandit.constrained._path_figures import (
    frame,
    measure,
    objectives,
    read_data,
    smallest_slack,
    varies,
)
from skbandit.constrained._varying_bound import (
    VariedConstraint,
    common_sense,
    common_text,
    family,
    read_bounds,
    tightest_first,
)
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.utils._pipeline import split_pipeline, transformed
from skbandit.utils._progress import report_progress
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class ConstraintPath:
    """A trade-off curve: models of one objective under one bound after another.

    Made by `constraint_path`. Everything in it has the order in which bounds were given.

    Parameters
    ----------
    table : DataFrame
        The figures on the training data, one row a bound: see `constraint_path`.
    estimators : list
        The fitted models, one a bound.
    objective : Rate
        What was optimised.
    label : str
        What is bounded, as the user wrote or named it.
    sense : {"<=", ">="} or None
        How it compares with the bound; None where a function made constraints whose bound
        is not the number that it was given.

    See Also
    --------
    constraint_path : Fits one.
    skbandit.inspection.TradeoffDisplay : Draws one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.constrained import constraint_path
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.9, pos_label=0)
    >>> path = constraint_path(clf, scale(X[::2]), y[::2], bounds=[0.95, 0.99])
    >>> path.label, path.sense
    ('recall()', '>=')
    >>> path.measure(scale(X[1::2]), y[1::2])["bound"].tolist()
    [0.95, 0.99]
    """

    table: pd.DataFrame
    estimators: list[Any]
    objective: Rate
    label: str
    sense: str | None

    def __repr__(self) -> str:
        bounds = self.table["bound"]
        span = f"{self.label} {self.sense or 'at'} {bounds.min():g} to {bounds.max():g}"
        return f"<ConstraintPath: {self.objective!r} under {span}, {len(bounds)} models>"

    def measure(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Measure every model of the path on any data.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries are unlabelled.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            As in `constraint_path`.
        X_extra : like X, default=None
            Rows for rates with ``on="extra"`` or ``"all"``.
        y_extra : array-like, default=None
            Their labels.
        attributes_extra : DataFrame or dict of arrays, default=None
            Their attributes.
        sample_weight_extra : array-like, default=None
            Their weights.
        confidence_level : float, default=0.95
            Of the interval of the objective.

        Returns
        -------
        DataFrame
            One row a bound: `bound`; `objective` of the deterministic rule, with its
            confidence interval `objective_low`, `objective_high`; `expected_objective` of
            the randomised rule; `value` and `slack` of what is bounded; `satisfied`, whether
            every constraint holds on these rows.
        """
        check_level(confidence_level)
        transformers, _ = split_pipeline(self.estimators[0])
        X, X_extra = transformed(transformers, X), transformed(transformers, X_extra)
        metadata = {
            "sample_weight": sample_weight,
            "attributes": attributes,
            "X_extra": X_extra,
            "y_extra": y_extra,
            "attributes_extra": attributes_extra,
            "sample_weight_extra": sample_weight_extra,
        }
        models = [split_pipeline(estimator)[1] for estimator in self.estimators]
        design, data = read_data(models[0], X, y, metadata)
        rows = [measure(model, self.objective, design, data, confidence_level) for model in models]
        return frame(self.table["bound"].tolist(), self.sense, rows)


def constraint_path(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    bounds: ArrayLike,
    constraint: int | str | Callable[[float], Any] | None = None,
    tol: float = 1e-4,
    verbose: int = 0,
    sample_weight: ArrayLike | None = None,
    attributes: Any = None,
    X_extra: Any = None,
    y_extra: Any = None,
    attributes_extra: Any = None,
    sample_weight_extra: Any = None,
) -> ConstraintPath:
    """Fit a classifier under one bound after another, each from its neighbour.

    Parameters
    ----------
    estimator : ConstrainedRampClassifier, or Pipeline that ends with one
        What to fit; it is cloned. The transformers of a Pipeline are fitted once.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    bounds : array-like of shape (n_bounds,)
        Numbers, in any order, that in turn take the place of the one that the constraint
        was declared with.
    constraint : int, str, callable or None, default=None
        Which constraint's bound varies: its place among the estimator's constraints, or its
        name or text; None is the only one there is. Or a function from a bound to what
        varies, beside the estimator's constraints, as in ``lambda bound: recall() >= bound``
        or ``lambda share: positive_rate("man") <= positive_rate("woman") / share``.
    tol : float, default=1e-4
        A step that lowers the objective by less ends the training for a bound. The first
        bound's, which starts from nowhere, goes on to the estimator's own `tol`, and none
        goes further than that.
    verbose : int, default=0
        Whether to print a line after each bound. For the steps of a fit, set the estimator's
        own, or its callbacks.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, in the objective and in every constraint.
    attributes : DataFrame with n_samples rows, or dict of arrays, default=None
        Columns that constraints name.
    X_extra : like X, default=None
        Rows that count only in rates with ``on="extra"`` or ``"all"``; transformed as X is.
    y_extra : array-like, default=None
        Their labels.
    attributes_extra : DataFrame or dict of arrays, default=None
        Their attributes.
    sample_weight_extra : array-like, default=None
        Their weights.

    Returns
    -------
    ConstraintPath
        Its `estimators` are the fitted models. Its `table` has one row a bound, measured on
        the training data:

        - `bound`;
        - `feasible`: whether the deterministic rule meets every constraint. Where no rule
          was found that does, the row is about the closest model;
        - `objective` of the deterministic rule, `expected_objective` of the randomised one
          (the rates as declared: without `class_weight` and the regulariser);
        - `value` of what is bounded, in the terms of `bound` (of several groups the worst;
          nan where the path's `sense` is None), and `slack`, how far inside it is, as the
          model's own `constraint_report_` has them;
        - `multiplier`: by how much the objective would improve for each unit that the bound
          gives, as in the classifier's `multipliers_`;
        - `n_iter` and `seconds` of the fit.

    See Also
    --------
    skbandit.inspection.TradeoffDisplay : Draws the objective against the bound.
    sklearn.model_selection.validation_curve : Cross-validated scores over any parameter.

    Notes
    -----
    Models are fitted from the tightest bound to the loosest, each from the one before. That
    one is feasible already: no start is searched for, and training only descends from it.
    Optima are local, so an independent fit may end elsewhere, somewhat better or worse. Where
    the path's `sense` is None, which bound is tighter is not known, and the order is the one
    given.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.constrained import constraint_path
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedRampClassifier(false_positive_rate(), recall() >= 0.9, pos_label=0)
    >>> path = constraint_path(clf, scale(X), y, bounds=[0.9, 0.95, 0.99])
    >>> path.table[["bound", "feasible"]]
       bound  feasible
    0   0.90      True
    1   0.95      True
    2   0.99      True
    """
    transformers, classifier = _parts(estimator)
    if not (isinstance(tol, Real) and 0 <= tol <= sys.float_info.max):
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}.")
    objective = Declared.read(classifier.objective, ()).objective
    numbers = read_bounds(bounds)
    constraints_at, words = family(classifier.constraints, constraint)
    goals = [constraints_at(number) for number in numbers]
    varied: list[list[Constraint]]
    varied = [[one for one in at if isinstance(one, VariedConstraint)] for at in goals]
    sense = common_sense(varied, numbers)

    if transformers is not None:
        transformers = clone(transformers)
        X = transformers.fit_transform(X, y)
        X_extra = transformed(transformers, X_extra)
    metadata = {
        "sample_weight": sample_weight,
        "attributes": attributes,
        "X_extra": X_extra,
        "y_extra": y_extra,
        "attributes_extra": attributes_extra,
        "sample_weight_extra": sample_weight_extra,
    }
    models: dict[int, ConstrainedRampClassifier] = {}
    seconds: dict[int, float] = {}
    own = {"tol": classifier.tol, "warm_start": classifier.warm_start}
    model, stop = clone(classifier), classifier.tol
    for k in tightest_first(numbers, sense):
        began = time.perf_counter()
        model = _refitted(model, goals[k], stop, X, y, metadata)
        seconds[k] = time.perf_counter() - began
        models[k] = model.set_params(**own)
        if verbose:
            met = "met" if model.feasible_ else "not met"
            report_progress(
                f"[constraint_path] {len(models)} of {len(numbers)}, bound {numbers[k]:g}: {met}, "
                f"{model.n_iter_} steps, {seconds[k]:.1f} s"
            )
        stop = max(tol, classifier.tol)
    trained = [models[k] for k in range(len(numbers))]
    table = frame(
        numbers,
        sense,
        {
            "feasible": [model.feasible_ for model in trained],
            **objectives(trained, objective, *read_data(trained[0], X, y, metadata)),
            "slack": [smallest_slack(model, model.constraint_report_) for model in trained],
            "multiplier": [np.nansum(model.multipliers_[varies(model)]) for model in trained],
            "n_iter": [model.n_iter_ for model in trained],
            "seconds": [seconds[k] for k in range(len(numbers))],
        },
    )
    estimators = [_joined(estimator, transformers, model) for model in trained]
    return ConstraintPath(table, estimators, objective, common_text(varied) or words, sense)


def _refitted(
    model: ConstrainedRampClassifier,
    constraints: list[Constraint],
    tol: float,
    X: Any,
    y: Any,
    metadata: dict[str, Any],
) -> ConstrainedRampClassifier:
    """A model under other constraints, trained from where a given one ended."""
    model = copy.copy(model).set_params(constraints=constraints, tol=tol, warm_start=True)
    try:
        return model.fit(X, y, **metadata)
    except InfeasibleConstraintsError as error:
        return error.closest_


# --- pipelines -----------------------------------------------------------------------------


def _parts(estimator: Any) -> tuple[Pipeline | None, ConstrainedRampClassifier]:
    """The transformers, if there are any, and the classifier."""
    transformers, classifier = split_pipeline(estimator)
    if not isinstance(classifier, ConstrainedRampClassifier):
        raise TypeError(
            "A path is fitted by a ConstrainedRampClassifier, or a Pipeline that ends with one, "
            f"not by {estimator!r}."
        )
    return transformers, classifier


def _joined(estimator: Any, transformers: Pipeline | None, model: ConstrainedRampClassifier) -> Any:
    """A fitted model in the place of the user's."""
    if not isinstance(estimator, Pipeline):
        return model
    steps = [] if transformers is None else transformers.steps
    return clone(estimator).set_params(steps=[*steps, (estimator.steps[-1][0], model)])
