"""save_report: what a model decides, what it costs and for whom, as one page to sign."""

from __future__ import annotations

import datetime
import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.special import ndtri
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skbandit.constrained import constraint_report
from skbandit.evaluation import off_policy_value, rate_report
from skbandit.evaluation._rate_report import parts_of_rows, read_verdicts, sum_up
from skbandit.inspection import _page
from skbandit.inspection._report_lines import estimates_table, of_goals
from skbandit.logs import columns_of, holds_slates, is_log, read_log
from skbandit.measure import Columns, flatten_constraints
from skbandit.rates import Rate, error_rate, positive_rate
from skbandit.rates._kinds import OUTCOME
from skbandit.utils._folds import behind_transformers, split_pipeline
from skbandit.utils._sklearn_compat import count_rows

if TYPE_CHECKING:
    from os import PathLike

PACKAGES = ("skbandit", "scikit-learn", "numpy", "scipy", "pandas")
"""Packages whose versions are named."""

LONGEST, MOST_CHANGES = 600, 12
"""Letters of a setting, and kinds of changed decisions, that are shown."""

RULE = ("confidence_level_", "feasible_", "threshold_", "thresholds_", "costs_", "prices_")
"""Fitted attributes that are the rule, and how sure it is."""

LONGEST_TABLE = 3000
"""Letters of a table that is shown."""

MEAN_COST = "mean cost"

HALF_WIDTH = float(ndtri(0.975))
"""Half the width of an interval of level 0.95, in standard errors."""

Section = tuple[str, str]


def save_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | PathLike[str],
    *,
    attributes: Any = None,
    by: str | Sequence[str] | None = None,
    title: str | None = None,
    groups: Any = None,
) -> None:
    """Save a report on a fitted model as one HTML file, to read, print, sign and file.

    It says which goals are met, violated or undecided, what they cost, the rates of groups, which
    decisions differ from those without constraints, and which model and data it is about. The file
    needs no network and runs no scripts. It fits a phone and prints on A4.

    Parameters
    ----------
    model : classifier with constraints, policy or selector, Pipeline that ends with one, or search
        Fitted: `ConstrainedThreshold`, `ConstrainedReduction`, `ConstrainedRampClassifier`;
        `ConstrainedPolicy`, `GLMUCBPolicy`, `OffPolicyClassifier` and other policies;
        `RegressionSetSelector`, `SetSelectClassifier`.
    X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        Rows that had no part in the fit, as for the `predict` of `model`.
    y : array-like or DataFrame
        Labels for a classifier, a log for a policy, a table of costs for a selector.
    path : str or path-like
        File to write, such as "report.html". An existing file is replaced.
    attributes : DataFrame or dict of arrays, default=None
        Columns that goals or `by` name, unless X has them.
    by : str or list of str, default=None
        Columns whose values, or combinations of values, are the groups that rates are reported of.
    title : str, default=None
        Heading. None names the model.
    groups : array-like of shape (n_samples,), default=None
        Rows with the same value are dependent, such as those of one person: intervals, and so
        whether goals are met, count them as such. It has nothing to do with `by`.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the cost of an ad that a selector chooses is not known, or `y` is a log of slates.

    See Also
    --------
    skbandit.evaluation.to_model_card : The goals as Markdown.
    RateReportDisplay : Rates as a figure.

    Notes
    -----
    Whether goals are met is measured on X and y; outcomes of a policy are doubly robust estimates.
    What goals cost is known from the fit: see `objective_report_` and the column `price` of
    `constraint_report_`.

    A policy is compared with the log's own rule, a selector with the ads that are cheapest on
    average over all rows of `y`.

    The fingerprint of the data is a SHA-256 hash of values and column names, and does not depend on
    the index.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedThreshold
    >>> from skbandit.inspection import save_report
    >>> from skbandit.rates import recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.9)
    >>> clf = clf.fit(scale(X)[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     save_report(clf, scale(X)[1::2], y[1::2], path, title="Tumors")
    ...     "The goal is met." in path.read_text(encoding="utf-8")
    True
    """
    fitted, rows = behind_transformers(model, X)
    check_is_fitted(fitted)
    columns = Columns.read(attributes, X, count_rows(X))
    if not (by is None or isinstance(by, str) or all(isinstance(name, str) for name in by)):
        raise TypeError("by= must be names of columns: pass the groups as columns of attributes.")
    names = [by] if isinstance(by, str) else list(() if by is None else by)
    parts = columns.several(names, f"by={by!r}") if names else None
    case = _Case(model, fitted, X, rows, y, attributes, columns, parts, groups)
    if hasattr(fitted, "_predict_both"):
        sections = _of_classifier(case)
    elif hasattr(fitted, "predict_indicator"):
        sections = _of_selector(case)
    elif hasattr(fitted, "arms_") and hasattr(fitted, "predict"):
        sections = _of_policy(case)
    else:
        raise TypeError(
            f"{type(fitted).__name__} has no declared constraints, and is no policy and no "
            "selector: pass one of these. For other classifiers use "
            "skbandit.evaluation.rate_report and to_model_card."
        )
    sections += [
        ("Model", _page.facts(_settings(model, fitted))),
        ("Data", _page.facts(_data(case))),
        ("Approval", _page.signature()),
    ]
    text = _page.page(title or f"Report on {type(fitted).__name__}", sections)
    Path(path).write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class _Case:
    """What the user passed: `fitted` is the last step of `model`, `rows` are X as it sees them."""

    model: Any
    fitted: Any
    X: Any
    rows: Any
    y: Any
    attributes: Any
    columns: Columns
    groups: pd.DataFrame | None
    dependent: Any = None

    @property
    def dependence(self) -> dict[str, Any]:
        """The groups of dependent rows, as an argument, if there are any."""
        return {} if self.dependent is None else {"groups": self.dependent}


def _of_classifier(case: _Case) -> list[Section]:
    """Sections on a constrained classifier."""
    fitted = case.fitted
    attributes = case.columns.frame if case.columns.frame.shape[1] else None
    rows = {"attributes": attributes, **case.dependence}
    report = of_goals(constraint_report(case.model, case.X, case.y, **rows))
    decided, plain = fitted._predict_both(case.rows, case.attributes)
    sections = [*_goals(report, len(decided)), *_costs(fitted)]
    classes = {"pos_label": fitted._positive, "labels": fitted._classes.decisions}
    sections += _rates_of(case, decided, case.y, **classes)
    if plain is not None:
        others = "without constraints" if len(report) else "at the usual threshold"
        sections += _changes(decided, plain, others, case.groups)
    return sections


def _of_policy(case: _Case) -> list[Section]:
    """Sections on a policy, with constraints or without."""
    fitted, y = case.fitted, case.y
    has_goals, options = hasattr(fitted, "constraint_report_"), dict[str, Any]()
    if holds_slates(y, fitted.columns):
        raise ValueError(
            "y is a log of slates, whose value is not reported: pass a log of one action per row, "
            "or a table of costs; skbandit.evaluation.slate_pseudo_inverse estimates the value."
        )
    if is_log(y, fitted.columns):
        names = columns_of(y, fitted.columns) or {}
        if "available" in names:
            options["available"] = y[names["available"]]
    if has_goals:
        options["attributes"] = case.attributes
    decided = fitted.predict(case.rows, **options)
    sections = [_evaluated_on(decided)]
    if has_goals:
        report = of_goals(constraint_report(case.model, case.X, y, **options))
        sections = [*_goals(report, len(decided)), *_costs(fitted)]
    if has_goals and not is_log(y, fitted.columns):
        return sections + _against_cheapest(decided, fitted.arms_, y, case.groups)
    log = read_log(y, len(decided), columns=fitted.columns)
    evaluated, X = (decided, None) if has_goals else (case.model, case.X)
    rows = {"columns": fitted.columns, **case.dependence}
    value = off_policy_value(evaluated, X, y, **rows)
    today = off_policy_value(log.probability, None, y, **rows)
    estimates = {"this policy": value, "today's rule": today, "difference": value - today}
    about = _page.paragraph("Today's rule is the one that made the log.", "soft")
    bars = _page.bars(estimates_table(estimates, 0.95))
    sections.append(("Value against today's rule", about + bars))
    if has_goals:
        sections += _rates_of(case, decided, None, labels=fitted.arms_)
    return sections + _changes(decided, log.arms[log.action], "by today's rule", case.groups)


def _of_selector(case: _Case) -> list[Section]:
    """Sections on a selector of ads."""
    chosen, labels = case.fitted.predict(case.rows), case.fitted.ads_
    return [_evaluated_on(chosen), *_against_cheapest(chosen, labels, case.y, case.groups)]


def _evaluated_on(decided: np.ndarray) -> Section:
    return "", _page.paragraph(f"Evaluated on {len(decided):,} rows.", "soft")


def _goals(report: pd.DataFrame, n_rows: int) -> list[Section]:
    """Which goals are met, in a sentence and row by row."""
    if not len(report):
        return [("", _page.paragraph(f"No constraints were declared. {n_rows:,} rows.", "soft"))]
    report = report.assign(verdict=read_verdicts(report))
    summary = sum_up(report, lambda text: escape(str(text)), "<strong>Violated</strong>")
    measured = f"Measured on {n_rows:,} rows, with intervals of level 95%."
    head = f"<p>{summary}</p>{_page.paragraph(measured, 'soft')}"
    return [("", head), ("Goals", _page.bars(report))]


def _costs(fitted: Any) -> list[Section]:
    """What all constraints together and each alone cost, as the fit found it."""
    row = fitted.objective_report_.iloc[0]
    expected = row["value"] if np.isnan(row["cross_fitted"]) else row["cross_fitted"]
    text = f"The objective, {row['objective']}, is {_page.number(expected)}"
    if np.isfinite([row["ci_low"], row["ci_high"]]).all():
        text += f" [{_page.number(row['ci_low'])}, {_page.number(row['ci_high'])}]"
    text += " in the fit" if np.isnan(row["cross_fitted"]) else " out of fold"
    report = of_goals(fitted.constraint_report_)
    if not len(report):
        return [("The objective", _page.paragraph(f"{text}."))]
    if not np.isnan(row["unconstrained"]):
        best = row.get("best_unconstrained", row["unconstrained"])
        if best == row["unconstrained"]:
            text += f", and {_page.number(best)} without constraints"
        else:
            text += f", {_page.number(row['unconstrained'])} by the classifier at its usual "
            text += f"threshold, and {_page.number(best)} by the best rule without constraints"
        binds = not (report["multiplier"] == 0).all()
        cost = abs(expected - best) if binds else 0.0
        # `price` compares thresholds only, so that a single one may exceed the cost of all
        if not report["price"].max() > cost:
            text += f": all constraints together cost {_page.number(cost)}"
    _, parts = parts_of_rows(report["goal"])
    rows: list[tuple[Any, ...]] = []
    for _, part in parts.groupby("number", sort=False):
        of_it = report.iloc[part.index]
        bounds = ", ".join(f"{bound:g}" for bound in dict.fromkeys(of_it["bound"]))
        per_unit = 0.01 * of_it["multiplier"].max()
        gain = of_it["price"].iloc[0]
        has_gain = not np.isnan(gain)
        prices = [f"{price:.3g}" if has_gain else "not known" for price in (gain, per_unit)]
        rows.append((part["declared"].iloc[0], bounds, *prices))
    headings = "constraint", "bound", "gain without it", "gain per 0.01 of the bound"
    about = "How much better the objective would be without each constraint alone, and with a bound"
    return [
        (
            "The objective against each bound",
            _page.paragraph(f"{text}.")
            + _page.paragraph(f"{about} that is relaxed a little.", "soft")
            + _page.plain_table(headings, rows, numbers=3),
        )
    ]


def _rates_of(case: _Case, decided: np.ndarray, y_true: Any, **classes: Any) -> list[Section]:
    """The objective and the bounded rates by group."""
    objective, rates = case.fitted.objective, dict[str, Rate]()
    if objective is not None or y_true is not None:
        first = error_rate() if objective is None else objective
        rates[repr(first)] = first
    for constraint in flatten_constraints(case.fitted.constraints):
        if not constraint.absolute:
            rate = constraint.rate
            rates[f"rate of {constraint.name}" if constraint.name else repr(rate)] = rate
    goals = {
        name: rate
        for name, rate in rates.items()
        if not (rate.is_form or any(atom.kind == OUTCOME for atom in rate.atoms))
    }
    if case.groups is None or not goals or decided.ndim > 1:
        return []
    frame = case.columns.frame
    rows = {"by": case.groups, "attributes": frame, **case.dependence}
    report = rate_report(y_true, decided, goals, **rows, **classes)
    return [("Rates by group", _page.bars(report))]


def _changes(
    decided: np.ndarray, before: np.ndarray, rule: str, groups: pd.DataFrame | None
) -> list[Section]:
    """How many rows are decided differently, in which way, and of which groups."""
    now, then = np.asarray(decided), np.asarray(before)
    changed = np.asarray(now != then)
    kinds = pd.DataFrame({"then": then[changed], "now": now[changed]})
    counts = kinds.value_counts().iloc[:MOST_CHANGES].reset_index()
    rows = [(a, b, f"{count:,}") for a, b, count in counts.itertuples(index=False)]
    body = _how_many(changed, rule)
    if rows:
        body += _page.plain_table((rule, "here", "rows"), rows, numbers=1)
    return [("What is decided differently", body + _of_whom(changed, groups))]


def _how_many(changed: np.ndarray, rule: str) -> str:
    text = f"{changed.sum():,} of {len(changed):,} rows ({changed.mean():.1%}) are decided"
    return _page.paragraph(f"{text} differently than {rule}.")


def _of_whom(changed: np.ndarray, groups: pd.DataFrame | None) -> str:
    """The share of changed decisions by group."""
    if groups is None:
        return ""
    share = {"decided differently": positive_rate()}
    return _page.bars(rate_report(None, changed.astype(int), share, by=groups))


def _against_cheapest(
    chosen: np.ndarray, labels: np.ndarray, y: Any, groups: pd.DataFrame | None
) -> list[Section]:
    """The mean cost of chosen sets against the ads that are cheapest on average."""
    costs = y.reindex(columns=labels) if isinstance(y, pd.DataFrame) else np.asarray(y)
    costs = np.asarray(costs, dtype=float)
    if len(costs) != len(chosen):
        raise ValueError(f"y has {len(costs)} rows, X has {len(chosen)}.")
    if np.isinf(costs).any():
        row = int(np.argwhere(np.isinf(costs))[0][0])
        raise ValueError(f"y has an infinite cost in row {row}: pass nan for what is not known.")
    place = {label: k for k, label in enumerate(labels.tolist())}
    rows = np.reshape(chosen, (len(chosen), -1)).tolist()
    sets = np.array([[place[label] for label in row] for row in rows])
    mean = pd.DataFrame(costs).mean().fillna(np.inf).to_numpy()
    cheapest = np.sort(np.argsort(mean, kind="stable")[: sets.shape[1]])
    row_costs = np.take_along_axis(costs, sets, axis=1).sum(axis=1)
    usual = costs[:, cheapest].sum(axis=1)
    if np.isnan(row_costs).any() or np.isnan(usual).any():
        row = int(np.argmax(np.isnan(row_costs) | np.isnan(usual)))
        raise ValueError(
            f"y has no cost in row {row} of an ad that is chosen there: estimate missing costs "
            "with skbandit.selection.logged_costs."
        )
    estimates = {
        "this selector": row_costs, "most popular": usual, "difference": row_costs - usual,
    }  # fmt: skip
    report = pd.DataFrame([_mean_row(name, values) for name, values in estimates.items()])
    named = ", ".join(str(labels[k]) for k in cheapest)
    changed = (np.sort(sets, axis=1) != cheapest).any(axis=1)
    return [
        (
            "Mean cost against the most popular",
            _page.paragraph(f"The cheapest on average over these rows: {named}.")
            + _page.bars(report),
        ),
        (
            "What is decided differently",
            _how_many(changed, "by choosing the most popular") + _of_whom(changed, groups),
        ),
    ]


def _mean_row(name: str, values: np.ndarray) -> dict[str, Any]:
    """Mean with its normal interval of level .95, as a row of a report."""
    n, mean = len(values), float(values.mean())
    wide = HALF_WIDTH * float(values.std(ddof=1)) / np.sqrt(n)
    row = {"goal": MEAN_COST, "rule": name, "n_rows": n, "effective_n": n, "value": mean}
    return {**row, "ci_low": mean - wide, "ci_high": mean + wide}


def _settings(model: Any, fitted: Any) -> Mapping[str, Any]:
    """Class, parameters, level and versions."""
    steps = getattr(model, "best_estimator_", model)
    transformers, _ = split_pipeline(steps)
    names = [] if transformers is None else [type(step).__name__ for _, step in transformers.steps]
    settings: dict[str, Any] = {"model": " → ".join([*names, type(fitted).__name__])}
    if hasattr(model, "best_params_"):
        settings["chosen by search"] = model.best_params_
    settings |= fitted.get_params(deep=False)
    if isinstance(settings.get("estimator"), Pipeline):
        settings["estimator"] = " → ".join(str(step) for _, step in settings["estimator"].steps)
    for name in RULE:
        if hasattr(fitted, name):
            settings[name] = getattr(fitted, name)
    settings |= {name: version(name) for name in PACKAGES}
    settings |= {"Python": platform.python_version(), "created": datetime.date.today().isoformat()}
    return {name: _setting(value) for name, value in settings.items()}


def _setting(value: Any) -> str:
    """A setting or a fitted value as text, without addresses in memory, which differ each time."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.round(4).to_string()
        return value if len(value) < LONGEST_TABLE else shorten(value, LONGEST)
    text = value if isinstance(value, str) else repr(value)
    return shorten(re.sub(r" object at 0x[0-9a-f]+", "", text), LONGEST)


def _data(case: _Case) -> dict[str, str]:
    """Fingerprints of the data, and how many rows have no label."""
    fingerprints = {"X": _fingerprint(case.X), "y": _fingerprint(case.y)}
    if case.attributes is not None:
        fingerprints["attributes"] = _fingerprint(case.columns.attributes)
    if getattr(case.y, "ndim", 1) == 1 and (missing := int(pd.isna(np.asarray(case.y)).sum())):
        fingerprints["y"] += f"; {missing:,} rows without a label count in no rate that needs one"
    return fingerprints


def _fingerprint(data: Any) -> str:
    """Rows, columns, and a hash of values and names."""
    hasher = hashlib.sha256()
    if issparse(data):
        table = data.tocsr()
        shape = table.shape
        for part in (table.indptr, table.indices, table.data):
            hasher.update(np.ascontiguousarray(part).tobytes())
    else:
        frame = Columns.read(None, data, count_rows(data), "data").frame
        if not frame.shape[1]:
            frame = pd.DataFrame(np.asarray(data))
        shape = frame.shape
        hasher.update(repr([str(name) for name in frame.columns]).encode())
        for _, column in frame.items():
            values = column.astype(str) if column.dtype == object else column
            hasher.update(pd.util.hash_pandas_object(values, index=False).to_numpy().tobytes())
    return f"{shape[0]:,} rows, {shape[1]:,} columns, SHA-256 {hasher.hexdigest()}"
