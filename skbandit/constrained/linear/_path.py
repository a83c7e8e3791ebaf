"""Trade-off curves: one classifier under a range of bounds on one constraint."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from skbandit.constrained._goals import Declared
from skbandit.constrained._mixins import ConstrainedClassifierMixin
from skbandit.constrained._report import report_table
from skbandit.constrained.fits._fit_rows import Extra
from skbandit.exceptions import ConstrainedFitWarning, InfeasibleConstraintsError
from skbandit.measure import (
    Data,
    LinearFractionalForms,
    as_constraint,
    bind_constraints,
    bind_rate,
    flatten_constraints,
    indicators,
)
from skbandit.rates import Constraint, Rate
from skbandit.rates._expression import as_rate
from skbandit.utils._fitting import report_progress
from skbandit.utils._folds import split_pipeline, transformed
from skbandit.utils._validation import check_level, silenced, told_once

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


DEPENDENT = ("groups", "groups_extra")
"""Arguments of `fit` that say which rows are dependent."""


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
        The rate that was optimized.
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
        confidence_level: float = 0.95,
        **rows: Any,
    ) -> pd.DataFrame:
        """Measure every model of the path on any rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries are unlabeled.
        confidence_level : float, default=0.95
            Level of the objective's interval.
        **rows : dict
            As in `constraint_path`.

        Returns
        -------
        DataFrame
            One row per bound: `bound`; `objective` with its confidence interval `objective_low`,
            `objective_high`; of a `RampClassifier`, `expected_objective` of the randomized rule;
            `value` and `slack` of the bounded expression; `satisfied`,
            whether every constraint holds on these rows.
        """
        check_level(confidence_level)
        transformers, _ = split_pipeline(self.estimators[0])
        rows = _transform_extra(transformers, rows)
        models = [split_pipeline(estimator)[1] for estimator in self.estimators]
        design = transformed(transformers, X)
        measured = [
            _measure_model(model, self.objective, design, y, rows, confidence_level)
            for model in models
        ]
        return _path_table(self.table["bound"].tolist(), self.sense, measured)


@told_once()
def constraint_path(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    bounds: ArrayLike,
    constraint: int | str | Callable[[float], Any] | None = None,
    verbose: int = 0,
    **rows: Any,
) -> ConstraintPath:
    """Fit a classifier under a sequence of bounds on one constraint.

    Parameters
    ----------
    estimator : classifier with constraints, or Pipeline that ends with one
        A `ConstrainedThreshold`, `ConstrainedReduction`, `ConstrainedRampClassifier` or
        `RampClassifier`; it is cloned. The transformers of a Pipeline are fitted once.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels.
    bounds : array-like of shape (n_bounds,)
        Numbers, in any order, each of which in turn replaces the declared bound.
    constraint : int, str, callable or None, default=None
        The constraint whose bound varies: its position among the estimator's constraints, or
        its name or text; None if there is only one. Or a function from a bound to constraints
        in addition to the estimator's, as in ``lambda bound: recall() >= bound`` or
        ``lambda share: positive_rate("man") <= positive_rate("woman") / share``.
    verbose : int, default=0
        1 reports every bound in one line, as ``verbose=1`` of the estimator does every step.
    **rows : dict
        `sample_weight`, `attributes`, `X_extra`, `y_extra`, `attributes_extra`,
        `sample_weight_extra`, `groups` and `groups_extra`, as in the classifier's `fit`; `X_extra`
        is transformed as X is.

    Returns
    -------
    ConstraintPath
        Its `estimators` are the fitted models. Its `table` has one row per bound, measured
        on the training data:

        - `bound`;
        - `feasible`: whether the deterministic rule meets every constraint. If no such rule
          was found, the row describes the closest model;
        - `objective` (the rate as declared, without `class_weight` and the regularizer) and, of a
          `RampClassifier`, `expected_objective` of the randomized rule;
        - `value` of the bounded expression, comparable with `bound` (the worst of several
          groups; nan if the path's `sense` is None), and its `slack`, both as in the model's
          `constraint_report_`;
        - `cross_fitted`, if the classifier is: the value of out-of-fold predictions, which new
          rows can be expected to show;
        - `multiplier`: the improvement of the objective per unit by which the bound is
          relaxed, as in the classifier's `multipliers_`;
        - `seconds` of the fit.

    See Also
    --------
    skbandit.inspection.TradeoffDisplay : Draws the objective against the bound.
    sklearn.model_selection.validation_curve : Cross-validated scores over any parameter.

    Notes
    -----
    The tightest bound comes first, and a rule under a tighter bound is a candidate under a looser
    one if every bound is the number passed, of the same expression. Out of fold, or on rows new to
    the model, the objective then never gets worse as a bound is loosened, at a given
    `confidence_level`; where that is None, the objective plus the cost of violations. The optima
    of a `RampClassifier` are local, and its curve need not be monotone.

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
    transformers, classifier = _pipeline_parts(estimator)
    declared = Declared.read(classifier.objective, ())
    declared.require_one_rate("constraint_path")
    objective = declared.objective
    numbers = read_bounds(bounds)
    constraints_at, words = family(classifier.constraints, constraint)
    goals = [constraints_at(number) for number in numbers]
    varied: list[list[Constraint]]
    varied = [[goal for goal in at if isinstance(goal, VariedConstraint)] for at in goals]
    sense = common_sense(varied, numbers)

    if transformers is not None:
        transformers = clone(transformers)
        X = transformers.fit_transform(X, y)
        rows = _transform_extra(transformers, rows)
    trained: list[Any] = [None] * len(goals)
    seconds = [0.0] * len(goals)
    order = np.arange(len(goals))
    tighter: list[Any] | None = None
    compared = attrgetter("terms", "denominator", "summary")
    expressions = {  # but for the number; names may be alike
        repr(
            [
                (goal.absolute, goal.lhs.constant, compared(goal.lhs), compared(goal.rhs))
                for goal in made
            ]
        )
        for made in varied
    }
    if sense is not None and len(expressions) == 1:
        order, tighter = np.argsort(numbers), list[Any]()
        order = order if sense == "<=" else order[::-1]
    for count, k in enumerate(order, 1):
        began = time.perf_counter()
        model = clone(classifier).set_params(constraints=goals[k])
        model._tighter = tighter
        try:
            with silenced(ConstrainedFitWarning):  # a path is there to show costs
                trained[k] = model.fit(X, y, **rows)
        except InfeasibleConstraintsError as error:
            trained[k] = error.closest_
        del trained[k]._tighter
        seconds[k] = time.perf_counter() - began
        if verbose:
            met = "met" if trained[k].feasible_ else "not met"
            report_progress(
                f"[constraint_path] {count} of {len(numbers)}, bound {numbers[k]:g}: {met}, "
                f"{seconds[k]:.1f} s"
            )
    measured = {name: part for name, part in rows.items() if name not in DEPENDENT}
    multipliers = [model.multipliers_[_is_varied(model._constraints)] for model in trained]
    table = _path_table(
        numbers,
        sense,
        {
            "feasible": [model.feasible_ for model in trained],
            **_objectives(trained, objective, X, y, measured),
            "slack": [
                _varied_slack(model._constraints, _training_report(model)) for model in trained
            ],
            **_out_of_fold_slack(trained),
            "multiplier": [np.nan if np.isnan(x).all() else np.nansum(x) for x in multipliers],
            "seconds": seconds,
        },
    )
    estimators = [_joined(estimator, transformers, model) for model in trained]
    return ConstraintPath(table, estimators, objective, common_text(varied) or words, sense)


# --- constraints whose bound varies ------------------------------------------------------------


class VariedConstraint(Constraint):
    """A constraint whose bound varies.

    A type rather than a mask, as `dataclasses.replace` keeps it when a constraint is split into
    one per group at `fit`.
    """


def read_bounds(bounds: ArrayLike) -> list[float]:
    """Check the user's `bounds`: one or more finite numbers."""
    try:
        numbers = check_array(bounds, ensure_2d=False, dtype=np.float64, input_name="bounds")
    except ValueError as error:
        raise ValueError(f"bounds={bounds!r} must be a list of finite numbers: {error}") from error
    if numbers.ndim != 1:
        raise ValueError(f"bounds must be a list of numbers, got shape {numbers.shape}.")
    return numbers.tolist()


def family(
    declared: Any, which: int | str | Callable[[float], Any] | None
) -> tuple[Callable[[float], list[Constraint]], str]:
    """Return a function from a bound to all constraints, and a label of what varies."""
    constraints = flatten_constraints(declared)
    if callable(which) and not isinstance(which, type):
        constraint_at = which
        try:
            label = next(iter(inspect.signature(constraint_at).parameters), "bound")
        except ValueError:  # some compiled functions have no signature
            label = "bound"

        def with_made(bound: float) -> list[Constraint]:
            made = [
                _as_varied(constraint) for constraint in flatten_constraints(constraint_at(bound))
            ]
            if not made:
                raise ValueError(f"constraint={constraint_at!r} returns no constraint for {bound}.")
            return [*constraints, *made]

        return with_made, label

    k = _index(constraints, which)

    def with_replaced(bound: float) -> list[Constraint]:
        varied = _as_varied(with_bound(constraints[k], bound))
        return [*constraints[:k], varied, *constraints[k + 1 :]]

    return with_replaced, constraints[k].label


def _index(constraints: list[Constraint], which: Any) -> int:
    """Return the index of the constraint that the user's `constraint=` refers to."""
    listed = "; ".join(f"{k}: {constraint.label}" for k, constraint in enumerate(constraints))
    if not constraints:
        raise ValueError(
            "The estimator declares no constraint whose bound could vary: declare one, or pass "
            "constraint=lambda bound: ..., a function that returns one."
        )
    if which is None and len(constraints) == 1:
        return 0
    if which is None:
        raise ValueError(f"Pass constraint= to choose the one whose bound varies: {listed}.")
    if isinstance(which, str):
        matches = [
            k
            for k, constraint in enumerate(constraints)
            if which in (constraint.name, constraint.text)
        ]
        if len(matches) == 1:
            return matches[0]
    elif isinstance(which, int | np.integer) and -len(constraints) <= which < len(constraints):
        return int(which) % len(constraints)
    raise ValueError(f"constraint={which!r} does not match exactly one of {listed}.")


def _as_varied(constraint: Constraint) -> VariedConstraint:
    return VariedConstraint(
        constraint.lhs, constraint.sense, constraint.rhs, constraint.absolute, constraint.name
    )


def with_bound(constraint: Constraint, bound: float) -> Constraint:
    """Replace the number on the right-hand side of a constraint."""
    rhs = constraint.rhs
    if rhs.is_number:
        return replace(constraint, rhs=as_rate(bound, constraint.text))
    more = bound - rhs.constant
    moved = rhs + more if more >= 0 else rhs - -more
    return replace(constraint, rhs=replace(moved, constant=bound))


def common_sense(varied: Iterable[list[Constraint]], numbers: list[float]) -> str | None:
    """Return the sense of all constraints if each is bounded by its own number, else None."""
    as_given = all(
        constraint.rhs.constant == number
        for made, number in zip(varied, numbers, strict=True)
        for constraint in made
    )
    senses = {str(constraint.sense) for made in varied for constraint in made}
    return senses.pop() if as_given and len(senses) == 1 else None


def common_text(varied: list[list[Constraint]]) -> str | None:
    """Return the text of the bounded expressions if it is the same for every bound."""
    texts = {" and ".join(map(_bounded_text, made)) for made in varied}
    return texts.pop() if len(texts) == 1 else None


def _bounded_text(constraint: Constraint) -> str:
    if constraint.name is not None or not constraint.rhs.is_number:
        return constraint.label
    return f"abs({constraint.lhs})" if constraint.absolute else f"{constraint.lhs}"


# --- measuring all models on the same rows ---------------------------------------------------


def _decided(
    model: ConstrainedClassifierMixin, X: Any, y: Any, rows: dict[str, Any]
) -> tuple[Data, np.ndarray, np.ndarray | None]:
    """Rows, the codes of their decisions, and expected ones of a randomized rule."""
    names = ("sample_weight", "attributes")
    extra = Extra.read(**{name: rows[name] for name in rows.keys() - {*names}})
    weight, attributes = (rows.get(name) for name in names)
    both, data = model._read(X, y, weight, attributes, extra, model._both_scores)
    decided, _, expected = model._both_decided(both, data)
    return data, decided, expected


def _objectives(
    models: list[ConstrainedClassifierMixin], objective: Rate, X: Any, y: Any, rows: dict[str, Any]
) -> dict[str, list[float]]:
    """Return the objective of all models, and that of their randomized rules if there are any."""
    values: dict[str, list[float]] = {"objective": [], "expected_objective": []}
    for model in models:
        data, decided, expected = _decided(model, X, y, rows)
        forms = LinearFractionalForms.stack([bind_rate(objective, data)[:2]], data.n_indicators)
        pi = indicators(decided, len(data.decisions))
        values["objective"].append(float(forms.values(pi)[0]))
        if expected is not None:
            values["expected_objective"].append(float(forms.values(expected)[0]))
    return {name: of_models for name, of_models in values.items() if of_models}


def _measure_model(
    model: ConstrainedClassifierMixin,
    objective: Rate,
    X: Any,
    y: Any,
    rows: dict[str, Any],
    level: float,
) -> dict[str, Any]:
    """Return results of one model, with the confidence interval of its objective."""
    # as one more row of the report, the objective gets its interval as constraints do
    as_goal = as_constraint(objective)
    data, decided, expected = _decided(model, X, y, rows)
    constraints = model._deciding(data, decided)
    goals = bind_constraints((*constraints, as_goal), data, allow_empty=True)
    report = report_table(goals, data, decided, expected=expected, level=level)
    report, of_objective = report.iloc[:-1], report.iloc[-1]
    return {
        "objective": of_objective["value"],
        "objective_low": of_objective["ci_low"],
        "objective_high": of_objective["ci_high"],
        **({} if expected is None else {"expected_objective": of_objective["expected"]}),
        "slack": _varied_slack(constraints, report),
        "satisfied": bool(report["satisfied"].all()),
    }


def _path_table(bounds: list[float], sense: str | None, columns: Any) -> pd.DataFrame:
    """Return one row per bound; the value is recovered from bound and slack."""
    table = pd.DataFrame(columns)
    table.insert(0, "bound", bounds)
    sign = {"<=": 1.0, ">=": -1.0, None: np.nan}[sense]
    value = table["bound"] - sign * table["slack"]
    table.insert(table.columns.tolist().index("slack"), "value", value)
    if "cross_fitted" in table:
        out_of_fold = table["bound"] - sign * table.pop("cross_fitted")
        table.insert(table.columns.tolist().index("slack"), "cross_fitted", out_of_fold)
    return table


def _training_report(model: ConstrainedClassifierMixin) -> pd.DataFrame:
    """Return the report of a model with slacks of its values on the training rows."""
    report = model.constraint_report_
    sign = np.array(
        [1.0 if constraint.sense == "<=" else -1.0 for constraint in model._constraints]
    )
    return report.assign(slack=sign * (report["bound"] - report["value"]))


def _out_of_fold_slack(models: list[ConstrainedClassifierMixin]) -> dict[str, list[float]]:
    """Slacks of out-of-fold predictions, if any, from which `_path_table` makes values."""
    reports = [model.constraint_report_ for model in models]
    if "cross_fitted" not in reports[0]:
        return {}
    slack = [
        _varied_slack(model._constraints, report)
        for model, report in zip(models, reports, strict=True)
    ]
    return {"cross_fitted": slack}


def _is_varied(constraints: Sequence[Constraint]) -> np.ndarray:
    """Mark the constraints whose bound varies."""
    return np.array(
        [isinstance(constraint, VariedConstraint) for constraint in constraints], dtype=bool
    )


def _varied_slack(constraints: Sequence[Constraint], report: pd.DataFrame) -> float:
    """Return the smallest slack of the varied constraints; nan if undefined or not measured."""
    slack = report["slack"][_is_varied(constraints) & (report["n_rows"] > 0)]
    return float(slack.min(skipna=False)) if len(slack) else np.nan


# --- pipelines -----------------------------------------------------------------------------


def _pipeline_parts(estimator: Any) -> tuple[Pipeline | None, Any]:
    """Return the transformers, if any, and the classifier."""
    transformers, classifier = split_pipeline(estimator)
    if not isinstance(classifier, ConstrainedClassifierMixin):
        raise TypeError(
            "estimator must be a ConstrainedThreshold, ConstrainedReduction, "
            "ConstrainedRampClassifier or RampClassifier, or a Pipeline that ends with one, got "
            f"{type(classifier).__name__}."
        )
    return transformers, classifier


def _transform_extra(transformers: Pipeline | None, rows: dict[str, Any]) -> dict[str, Any]:
    """Transform the extra rows as those of X."""
    if rows.get("X_extra") is None:
        return rows
    return rows | {"X_extra": transformed(transformers, rows["X_extra"])}


def _joined(estimator: Any, transformers: Pipeline | None, model: Any) -> Any:
    """Return the user's estimator with a fitted model in place of its last step."""
    if not isinstance(estimator, Pipeline):
        return model
    steps = [] if transformers is None else transformers.steps
    return clone(estimator).set_params(steps=[*steps, (estimator.steps[-1][0], model)])
