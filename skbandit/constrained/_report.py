"""Reports: which constraints hold, for which rule, by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from skbandit import measure
from skbandit.constrained._goals import Goals
from skbandit.constrained.fits._fit_rows import with_weights
from skbandit.exceptions import ConstrainedFitWarning, InfeasibleConstraintsError
from skbandit.prices._dual import ShadowPrices
from skbandit.prices._levels import quantile_of, weak_level
from skbandit.rates import Rate
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


INTERVAL_LEVEL = 0.95
"""Level of the intervals in `constraint_report_`."""

COSTLY = 0.1
"""Warn if constraints cost more of the objective, in units of the sum of its absolute costs."""

AT_LEAST, RELATIVELY_COSTLY = 0.05, 0.5
"""Warn of costs above AT_LEAST, too, that are a larger share of the unconstrained objective."""

RARE = 0.1
"""Warn if a class is predicted for fewer rows than this share of the rows of that class."""

WORSE = 0.654
"""Part of half an interval at a level of .95 that a normal quantile at a level of .9 is."""

LARGE_MISS = 0.1
"""Distance from its bound from which on a rate of the final rule is far beyond it."""

MOSTLY = 0.5
"""Warn if a decision that is no class is taken for more than this share of the rows."""


def report_table(
    goals: measure.BoundConstraints,
    data: measure.Data,
    positive: np.ndarray,
    prices: ShadowPrices | None = None,
    expected: np.ndarray | None = None,
    unconstrained: np.ndarray | None = None,
    level: float | None = None,
) -> pd.DataFrame:
    """Report on constraints, one row per constraint.

    Parameters
    ----------
    goals : BoundConstraints
        K constraints over n rows.
    data : Data
        The rows that they are bound to.
    positive : ndarray of shape (n,)
        Codes of the decisions: of two classes 1 for positive predictions, else 0.
    prices : ShadowPrices or None
        nan where skipped.
    expected : ndarray of shape (n,) or None
        Probabilities of a positive prediction by the randomized rule.
    unconstrained : ndarray of shape (n,) or None
        The same of the classifier without constraints.
    level : float or None
        Level of the intervals of the deterministic rule's values, in the last columns.

    Returns
    -------
    DataFrame
        `satisfied` refers to the deterministic rule: missing if nothing was measured, False
        if the rate is undefined. `effective_n` is the number of independent rows of equal weight
        that tell as much of the deterministic rule. The columns `expected`, `multiplier`, `price`
        and `unconstrained` are left out if these are None.
    """
    measured, rates = goals.n_rows > 0, [goal.rate for goal in goals.constraints]
    counted = [rates[k] for k in np.flatnonzero(measured)]
    merged = measure.merge_equal(counted, data, positive, pd.DataFrame(index=range(len(data))))
    estimates = measure.Estimates.of(rates, measured, *merged[:2], level)
    slack = goals.slack(estimates.value)
    columns: dict[str, Any] = {"constraint": [goal.label for goal in goals.constraints]}
    if any(goal.of for goal in goals.constraints):
        columns["of"] = [goal.of for goal in goals.constraints]
    columns["on"] = [
        ", ".join(dict.fromkeys(atom.on for atom in goal.rate.atoms)) for goal in goals.constraints
    ]
    columns |= {"n_rows": goals.n_rows, "effective_n": estimates.effective}
    if data.dependent is not None:
        columns["n_groups"] = estimates.n_groups
    columns["bound"] = goals.bound
    if expected is not None:
        columns["expected"] = goals.values(expected)
    columns["value"] = estimates.value
    if unconstrained is not None:
        columns["unconstrained"] = goals.values(unconstrained)
    columns |= {"slack": slack, "satisfied": measure.satisfied(slack, measured)}
    if prices is not None:
        columns |= {"multiplier": prices.per_unit, "price": prices.dropped}
    if level is not None:
        columns |= {"ci_low": estimates.ends[:, 0], "ci_high": estimates.ends[:, 1]}
    table = pd.DataFrame(columns)
    table = measure.Report.of(goals.constraints).attached(table)
    # The classifier chooses how many rows these denominators hold.
    chosen = [
        k
        for k, constraint in enumerate(goals.constraints)
        if any(atom.fractional for atom in constraint.rate.atoms)
    ]
    measure.warn_of_few(table["constraint"].iloc[chosen].tolist(), estimates.effective[chosen])
    return table


def objective_row(
    goals: Goals,
    data: measure.Data,
    decisions: np.ndarray,
    held_out: np.ndarray | None,
    unconstrained: np.ndarray | None,
    free: float,
) -> dict[str, Any]:
    """Return the objective of decisions: the row of `objective_report_`.

    Parameters
    ----------
    goals : Goals
    data : Data
        The training rows of the final rule.
    decisions : ndarray of shape (n,)
        Codes of its decisions there.
    held_out : ndarray of shape (N,) or None
        Codes of out-of-fold decisions on the rows of the goals.
    unconstrained : ndarray of shape (N,) or None
        The same by the plain classifier.
    free : float
        The objective of the best rule without constraints, lower is better; nan if not known.

    Returns
    -------
    dict
        The interval is that of `cross_fitted` or, without it, of `value`. Of several groups, all
        are those of the worst one.
    """
    rates: Sequence[Rate] = goals.rates
    if goals.adds:  # these are terms of it
        rates = measure.objective_rates(goals.declared.objective, goals.data)
    sign = -1.0 if goals.maximize else 1.0
    on_all, on_train = (with_weights(rows, goals.factors) for rows in (goals.data, data))

    def worst(decided: np.ndarray | None, data: measure.Data) -> tuple[float, Rate]:
        if decided is None:
            return np.nan, rates[0]
        values = [(measure.count(rate, data, decided), rate) for rate in rates]
        return max(values, key=lambda pair: sign * pair[0])

    measured = {"value": worst(decisions, on_train), "cross_fitted": worst(held_out, on_all)}
    value, rate = measured["value" if held_out is None else "cross_fitted"]
    rows = (on_train, decisions) if held_out is None else (on_all, held_out)
    low, high = (
        (np.nan, np.nan) if np.isnan(value) else measure.interval(rate, *rows, INTERVAL_LEVEL)
    )
    plain = worst(unconstrained, on_all)[0]
    best = sign * np.fmin(sign * plain, free)  # the plain one may not be, for this objective
    return {
        "objective": repr(goals.declared.objective),
        **{name: number for name, (number, _) in measured.items()},
        "ci_low": low,
        "ci_high": high,
        "unconstrained": best if unconstrained is None else plain,
        "best_unconstrained": best,
    }


def with_margins(table: pd.DataFrame, is_measured: np.ndarray, margins: np.ndarray) -> pd.DataFrame:
    """Insert column margin; only a slack of at least the margin counts as satisfied.

    Parameters
    ----------
    table : DataFrame
        From `report_table`, K rows.
    is_measured : ndarray of bool, shape (K,)
        Which constraints were not skipped.
    margins : ndarray of shape (m,)
        Slack that the confidence level takes, for each of these.

    Returns
    -------
    DataFrame
    """
    margin = np.full(len(table), np.nan)
    margin[is_measured] = margins
    table = table.assign(
        satisfied=measure.satisfied(table["slack"].to_numpy() - margin, is_measured)
    )
    table.insert(table.columns.tolist().index("slack") + 1, "margin", margin)
    return table


def cross_fitted_report(
    training: pd.DataFrame, held_out: pd.DataFrame, margins: np.ndarray | None
) -> pd.DataFrame:
    """Combine the reports of a rule on its training rows and of out-of-fold predictions.

    `expected` and `value` are the rule's own. All else is out of fold: `cross_fitted` and its
    interval, `unconstrained`, `effective_n`, `slack`, the `margin` that a confidence level takes,
    if there is one, and `satisfied`.

    Parameters
    ----------
    training : DataFrame
        From `report_table`, of the rule itself.
    held_out : DataFrame
        From `report_table` at a level, of out-of-fold predictions.
    margins : ndarray of shape (m,) or None
        Slack that the confidence level takes, for each constraint that was not skipped.

    Returns
    -------
    DataFrame
    """
    table = training.assign(**held_out[["effective_n", "slack", "satisfied"]])
    place = table.columns.tolist().index("value") + 1
    for name in ("unconstrained", "ci_high", "ci_low", "value"):
        table.insert(place, "cross_fitted" if name == "value" else name, held_out[name])
    if margins is None:
        return table
    return with_margins(table, table["n_rows"].to_numpy() > 0, margins)


def warn_of_weak_fit(
    goals: Goals,
    decided: np.ndarray,
    plain: np.ndarray,
    level: float | None,
    of_level: Callable[[], str] | None = None,
) -> None:
    """Warn of an objective without a value, high costs, rare classes, and a level that is too low.

    Parameters
    ----------
    goals : Goals
        Bound to n rows.
    decided, plain : ndarray of shape (n,)
        Codes of decisions with and without constraints.
    level : float or None
        The level reached, if it was free to fall.
    of_level : callable or None
        Says what the level costs, in place of the constraints, if that is most; or "".
    """
    sentences = _weaknesses(goals, decided, plain, level, of_level)
    if goals.constraints.constraints and (why := " ".join(sentences)):
        warn(why, ConstrainedFitWarning)


def _weaknesses(
    goals: Goals,
    decided: np.ndarray,
    plain: np.ndarray,
    level: float | None,
    of_level: Callable[[], str] | None,
) -> Iterator[str]:
    """Sentences of `warn_of_weak_fit`.

    An objective that is best if all predictions are the same costs nothing: what it has without
    constraints tells nothing.
    """
    objective, forms, decisions = goals.declared.objective, goals.objective, goals.data.decisions
    pi, pi_plain = (measure.indicators(codes, len(decisions)) for codes in (decided, plain))
    costs = forms.numerator.data
    if not forms.denominator.nnz and costs.min(initial=0.0) < 0 < costs.max(initial=0.0):
        without, within = (float(forms.values(rule)[0]) + 0.0 for rule in (pi_plain, pi))
        worse = (without - within if goals.maximize else within - without) / np.abs(costs).sum()
        part = worse / max(abs(without), measure.RATE_TOL)
        if worse > COSTLY or (worse > AT_LEAST and part > RELATIVELY_COSTLY):
            yield (of_level() if of_level is not None else "") or (
                f"{objective!r} is {without:.3f} without constraints and {within:.3f} with them: "
                "relax the bounds, or see the column unconstrained of constraint_report_ for what "
                "they change."
            )
    if np.isnan(forms.values(pi)).any():
        yield (
            f"{objective!r} is 0/0 for the chosen rule: no rule was found that meets the "
            "constraints and has a value of it. Relax the bounds, or choose another objective."
        )
    train, n = goals.data.train, len(goals.data.train)
    for code, decision in enumerate(decisions):
        share, predicted, usual = (
            float(np.average(here == code, weights=train.weight))
            for here in (train.label, decided[:n], plain[:n])
        )
        if decision in goals.data.others:
            if predicted > MOSTLY:
                yield (
                    f"{decision!r} is decided for {predicted:.2%} of the rows: relax the bounds, "
                    f"or bound positive_rate(of={decision!r})."
                )
        elif predicted < RARE * share <= usual:
            constant = ": the rule is all but constant" if goals.data.of_two else ""
            yield (
                f"{decision!r} is predicted for {predicted:.2%} of the rows, and for {usual:.2%} "
                f"without constraints; {share:.2%} are{constant}."
            )
    if level is not None and (weak := weak_level(level)):
        yield weak


def plain_columns(table: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of a report as lists and arrays of numbers.

    A DataFrame keeps its strings and its missing values in types of pandas and pyarrow, which
    skops refuses, and which pickle restores only where both are installed.
    """
    columns: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        if is_bool_dtype(column):
            columns[name] = [None if value is pd.NA else bool(value) for value in column]
        else:
            columns[name] = column.to_numpy() if is_numeric_dtype(column) else list(column)
    return columns


def constraint_report(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **rows: Any,
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
        Labels; None or missing entries are unlabeled.
    confidence_level : float, default=0.95
        Level of each interval.
    **rows : dict
        `sample_weight`, `attributes`, `groups` of dependent rows, and for rates with
        ``on="extra"`` or ``"all"`` `X_extra`, `y_extra`, `attributes_extra`,
        `sample_weight_extra` and `groups_extra`, as in `fit`. Columns of X that constraints name
        and transformers drop must be among the attributes.

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
    if "X_extra" in rows:
        rows["X_extra"] = behind_transformers(estimator, rows["X_extra"])[1]
    X = behind_transformers(estimator, X)[1]
    return classifier.constraint_report(X, y, confidence_level=confidence_level, **rows)


def check_final_rule(model: Any, goals: Goals) -> None:
    """Tell that the final rule, if it is another, misses bounds on its rows by more than noise.

    With a level that was asked for it is refused. There, half an interval is more than noise: a
    rule is rather better on the rows that it was fitted to.
    """
    table, level = model.constraint_report_, model.confidence_level
    if "cross_fitted" not in table:
        return
    promised = level is not None and quantile_of(level) > 0
    wide = (table["ci_high"] - table["ci_low"]).to_numpy()
    noise = 0.5 * wide if promised else np.maximum(wide, LARGE_MISS)
    beyond = goals.constraints.sign * (table["value"] - table["bound"]).to_numpy()
    far = np.flatnonzero(goals.is_measured & (beyond > noise))
    if not len(far):
        return
    row = table.iloc[int(far[0])]
    why = (
        f"{row['constraint']} is {row['cross_fitted']:.3g} out of fold and {row['value']:.3g} for "
        "the final rule on its training rows: the models of the folds differ much, as single trees "
        "do. Choose a more stable estimator, such as a forest, or cv='prefit'."
    )
    if not promised:
        warn(why, ConstrainedFitWarning)
        return
    model.feasible_ = False
    raise InfeasibleConstraintsError(
        f"Found no rule whose goals hold at confidence_level={level:g}: {why} The closest "
        "classifier is in the error's closest_.",
        model,
    )


def unstable_fit(table: pd.DataFrame, goals: measure.BoundConstraints) -> str:
    """Return a sentence if the final fit is worse on its own rows than out of fold; else "".

    Its own rows flatter it, so that this is no chance: its scores are not those of the folds'
    models, for which the rule was chosen. Worse is by more than `WORSE` of half an interval, which
    is the margin of one rate at a level of .9, and outside the bound.
    """
    value, crossed = table["value"].to_numpy(float), table["cross_fitted"].to_numpy(float)
    end = np.where(goals.sign > 0, table["ci_high"], table["ci_low"])
    worse = goals.sign * (value - crossed) > WORSE * np.abs(end - crossed)
    worse &= goals.sign * (value - table["bound"].to_numpy(float)) > measure.RATE_TOL
    if not worse.any():
        return ""
    rates = [
        f"{goals.constraints[k].label} is {value[k]:.3g} there and {crossed[k]:.3g} out of fold"
        for k in np.flatnonzero(worse)
    ]
    return (
        f"The final model is worse on its training rows than the models of the folds on new ones: "
        f"{'; '.join(rates)}. The learner is unstable, so that the level may not hold: scale the "
        "columns, average its fits (SGDClassifier(average=True), a bagged or larger ensemble), or "
        "fit it on other rows and pass cv='prefit'."
    )
