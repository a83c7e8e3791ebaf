"""Trade-off curves: one classifier under a range of bounds on one constraint."""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skbandit.constrained._classifier import ConstrainedRampClassifier
from skbandit.constrained._fit_rows import ExtraData, join_extra
from skbandit.constrained._goals import Declared
from skbandit.constrained._report import add_intervals, report_table
from skbandit.constrained.cross_fitting._cross_fit import SharedWork
from skbandit.constrained.thresholds._candidates import (
    VariedConstraint,
    common_sense,
    common_text,
    family,
    read_bounds,
    tightest_first,
)
from skbandit.exceptions import ConstrainedFitWarning, InfeasibleConstraintsError
from skbandit.rates import Constraint, Rate
from skbandit.rates._bind import bind_constraints, bind_rate
from skbandit.rates._columns import Data
from skbandit.rates._expression import as_rate
from skbandit.rates._forms import LinearFractionalForms
from skbandit.utils._folds import split_pipeline, transformed
from skbandit.utils._progress import report_progress
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


DIRECTIONS = 2
"""Bounds, evenly spread, that directions are trained for if the classifier is cross-fitted: with 2
the tightest and the loosest.

Every bound chooses among the directions of all of these and their mixtures, with its own
threshold. On made problems each is as good as a fit of its own, with 2, 3 or 4; with more, a path
takes longer.
"""


@dataclass(frozen=True, eq=False)
class ConstraintPath:
    """A trade-off curve: models of one objective under a sequence of bounds.

    Returned by `constraint_path`. Everything in it is in the order of the bounds passed.

    Parameters
    ----------
    table : DataFrame
        Results on the training data, one row per bound: see `constraint_path`.
    estimators : list
        The fitted models, one per bound.
    objective : Rate
        The rate that was optimised.
    label : str
        The bounded expression, as the user wrote or named it.
    sense : {"<=", ">="} or None
        How it compares with the bound; None if a function made constraints whose bound is
        not the number passed to it.

    See Also
    --------
    constraint_path : Fits a path.
    skbandit.inspection.TradeoffDisplay : Draws a path.

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
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """Measure every model of the path on any rows.

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
        extra : ExtraData, default=None
            Rows for rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one.
        confidence_level : float, default=0.95
            Level of the objective's interval.

        Returns
        -------
        DataFrame
            One row per bound: `bound`; `objective` of the deterministic rule, with its
            confidence interval `objective_low`, `objective_high`; `expected_objective` of
            the randomised rule; `value` and `slack` of the bounded expression; `satisfied`,
            whether every constraint holds on these rows.
        """
        check_level(confidence_level)
        transformers, _ = split_pipeline(self.estimators[0])
        extra = join_extra(extra, X_extra, y_extra, attributes_extra, sample_weight_extra)
        extra = _transformed_extra(transformers, extra)
        models = [split_pipeline(estimator)[1] for estimator in self.estimators]
        design, data = models[0]._read_design(
            transformed(transformers, X), y, sample_weight, attributes, extra
        )
        rows = [_measure(model, self.objective, design, data, confidence_level) for model in models]
        return _table(self.table["bound"].tolist(), self.sense, rows)


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
    extra: ExtraData | None = None,
    X_extra: Any = None,
    y_extra: Any = None,
    attributes_extra: Any = None,
    sample_weight_extra: Any = None,
) -> ConstraintPath:
    """Fit a classifier under a sequence of bounds, each fit starting from the one before.

    Parameters
    ----------
    estimator : ConstrainedRampClassifier, or Pipeline that ends with one
        Classifier to fit; it is cloned. The transformers of a Pipeline are fitted once.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    bounds : array-like of shape (n_bounds,)
        Numbers, in any order, each of which in turn replaces the declared bound.
    constraint : int, str, callable or None, default=None
        The constraint whose bound varies: its position among the estimator's constraints, or
        its name or text; None if there is only one. Or a function from a bound to constraints
        in addition to the estimator's, as in ``lambda bound: recall() >= bound`` or
        ``lambda share: positive_rate("man") <= positive_rate("woman") / share``.
    tol : float, default=1e-4
        Training for a bound stops when a step lowers the objective by less. The first fit,
        which has no warm start, always runs to the estimator's own `tol`; no fit uses a
        tighter one.
    verbose : int, default=0
        1 reports every bound in one line, as ``verbose=1`` of the estimator does every step.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights, in the objective and in every constraint.
    attributes : DataFrame with n_samples rows, or dict of arrays, default=None
        Columns that constraints name.
    extra : ExtraData, default=None
        Rows that count only in rates with ``on="extra"`` or ``"all"``; transformed as X is.
    X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
        The parts of `extra`, passed one by one.

    Returns
    -------
    ConstraintPath
        Its `estimators` are the fitted models. Its `table` has one row per bound, measured
        on the training data:

        - `bound`;
        - `feasible`: whether the deterministic rule meets every constraint. If no such rule
          was found, the row describes the closest model;
        - `objective` of the deterministic rule, `expected_objective` of the randomised one
          (the rates as declared, without `class_weight` and the regulariser);
        - `value` of the bounded expression, comparable with `bound` (the worst of several
          groups; nan if the path's `sense` is None), and its `slack`, both as in the model's
          `constraint_report_`;
        - `cross_fitted`, if the classifier is: the value of out-of-fold predictions, which new
          rows can be expected to show;
        - `multiplier`: the improvement of the objective per unit by which the bound is
          relaxed, as in the classifier's `multipliers_`;
        - `n_iter` and `seconds` of the fit.

    See Also
    --------
    skbandit.inspection.TradeoffDisplay : Draws the objective against the bound.
    sklearn.model_selection.validation_curve : Cross-validated scores over any parameter.

    Notes
    -----
    If the classifier is cross-fitted, its default, directions are trained for the tightest and
    the loosest bound. Every bound chooses among all of them, and their thresholds, by its own
    out-of-fold rates; so at one confidence level, a looser bound never has a higher objective
    out of fold.

    Otherwise models are fitted from the tightest bound to the loosest, each starting from the one
    before, which is feasible already: no other start is searched for, and training only
    descends from it. Optima are local, so an independent fit may end at a somewhat better or
    worse one. If the path's `sense` is None, it is unknown which bound is tighter, and models
    are fitted in the order given.

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

    extra = join_extra(extra, X_extra, y_extra, attributes_extra, sample_weight_extra)
    if transformers is not None:
        transformers = clone(transformers)
        X = transformers.fit_transform(X, y)
        extra = _transformed_extra(transformers, extra)
    metadata = {"sample_weight": sample_weight, "attributes": attributes, "extra": extra}
    models: dict[int, ConstrainedRampClassifier] = {}
    seconds: dict[int, float] = {}
    own = {"tol": classifier.tol, "warm_start": classifier.warm_start}
    model, stop = clone(classifier), classifier.tol
    order = tightest_first(numbers, sense)
    model._shared_work = work = SharedWork()
    if model.threshold == "cross_fit":
        for place in sorted(_spread(len(order), DIRECTIONS)):
            at = clone(classifier).set_params(constraints=goals[order[place]])
            at._train_directions(work, X, y, **metadata)
    for k in order:
        # of unknown sense, no bound is known to be tighter than the next one
        work.tighter = None if sense is None else work.last
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
    for model in trained:
        del model._shared_work
    design, data = trained[0]._read_design(X, y, sample_weight, attributes, extra)
    table = _table(
        numbers,
        sense,
        {
            "feasible": [model.feasible_ for model in trained],
            **_objectives(trained, objective, design, data),
            "slack": [_smallest_slack(model._constraints, _own(model)) for model in trained],
            **_out_of_fold_slack(trained),
            "multiplier": [
                np.nansum(model.multipliers_[_is_varied(model._constraints)]) for model in trained
            ],
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
    """Train a model under other constraints, starting from where it ended."""
    model = copy.copy(model).set_params(constraints=constraints, tol=tol, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstrainedFitWarning)  # a path is there to show costs
        try:
            return model.fit(X, y, **metadata)
        except InfeasibleConstraintsError as error:
            return error.closest_


def _spread(n: int, most: int) -> frozenset[int]:
    """Places of at most `most` of n, evenly spread from the first to the last."""
    return frozenset(np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist())


# --- measuring all models on the same rows ---------------------------------------------------


def _objectives(
    models: list[ConstrainedRampClassifier], objective: Rate, design: Any, data: Data
) -> dict[str, np.ndarray]:
    """The objective of all models, by both of their rules."""
    forms = LinearFractionalForms.stack([bind_rate(objective, data)[:2]], len(data))
    predictions = [model._predictions(design) for model in models]
    return {
        "objective": np.array([forms.values(positive)[0] for positive, _ in predictions]),
        "expected_objective": np.array([forms.values(mean)[0] for _, mean in predictions]),
    }


def _measure(
    model: ConstrainedRampClassifier, objective: Rate, design: Any, data: Data, level: float
) -> dict[str, Any]:
    """Results of one model, with the confidence interval of its objective."""
    # as one more row of the report, the objective gets its interval as constraints do
    as_goal = Constraint(objective, ">=", as_rate(0.0, repr(objective)))
    positive, expected = model._predictions(design)
    constraints = model._deciding(data, positive)
    goals = bind_constraints((*constraints, as_goal), data, allow_empty=True)
    report = report_table(goals, data, positive, expected)
    report = add_intervals(report, goals, data, positive, level)
    report, of_objective = report.iloc[:-1], report.iloc[-1]
    return {
        "objective": of_objective["value"],
        "objective_low": of_objective["ci_low"],
        "objective_high": of_objective["ci_high"],
        "expected_objective": of_objective["expected"],
        "slack": _smallest_slack(constraints, report),
        "satisfied": bool(report["satisfied"].all()),
    }


def _table(bounds: list[float], sense: str | None, columns: Any) -> pd.DataFrame:
    """One row per bound; the value is recovered from bound and slack."""
    table = pd.DataFrame(columns)
    table.insert(0, "bound", bounds)
    sign = {"<=": 1.0, ">=": -1.0, None: np.nan}[sense]
    value = table["bound"] - sign * table["slack"]
    table.insert(table.columns.tolist().index("slack"), "value", value)
    if "cross_fitted" in table:
        out_of_fold = table["bound"] - sign * table.pop("cross_fitted")
        table.insert(table.columns.tolist().index("slack"), "cross_fitted", out_of_fold)
    return table


def _own(model: ConstrainedRampClassifier) -> pd.DataFrame:
    """The report of a model with slacks of its values on the training rows."""
    report = model.constraint_report_
    sign = np.array([1.0 if one.sense == "<=" else -1.0 for one in model._constraints])
    return report.assign(slack=sign * (report["bound"] - report["value"]))


def _out_of_fold_slack(models: list[ConstrainedRampClassifier]) -> dict[str, list[float]]:
    """Slacks of out-of-fold predictions, from which `_table` makes values, if there are any."""
    reports = [model.constraint_report_ for model in models]
    if "cross_fitted" not in reports[0]:
        return {}
    slack = [
        _smallest_slack(model._constraints, report)
        for model, report in zip(models, reports, strict=True)
    ]
    return {"cross_fitted": slack}


def _is_varied(constraints: Sequence[Constraint]) -> np.ndarray:
    """Mask of the constraints whose bound varies."""
    return np.array([isinstance(one, VariedConstraint) for one in constraints], dtype=bool)


def _smallest_slack(constraints: Sequence[Constraint], report: pd.DataFrame) -> float:
    """The smallest slack of the varied constraints; nan if undefined or not measured."""
    slack = report["slack"][_is_varied(constraints) & (report["n_rows"] > 0)]
    return float(slack.min(skipna=False)) if len(slack) else np.nan


# --- pipelines -----------------------------------------------------------------------------


def _parts(estimator: Any) -> tuple[Pipeline | None, ConstrainedRampClassifier]:
    """Return the transformers, if any, and the classifier."""
    transformers, classifier = split_pipeline(estimator)
    if not isinstance(classifier, ConstrainedRampClassifier):
        raise TypeError(
            "estimator must be a ConstrainedRampClassifier, or a Pipeline that ends with one, "
            f"got {type(classifier).__name__}."
        )
    return transformers, classifier


def _transformed_extra(transformers: Pipeline | None, extra: ExtraData | None) -> ExtraData | None:
    """Transform the extra rows as those of X."""
    return None if extra is None else replace(extra, X=transformed(transformers, extra.X))


def _joined(estimator: Any, transformers: Pipeline | None, model: ConstrainedRampClassifier) -> Any:
    """The user's estimator with a fitted model in place of its last step."""
    if not isinstance(estimator, Pipeline):
        return model
    steps = [] if transformers is None else transformers.steps
    return clone(estimator).set_params(steps=[*steps, (estimator.steps[-1][0], model)])
