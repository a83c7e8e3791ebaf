"""save_report: what a model decides, what it costs and for whom, as one page to sign."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from skbandit.evaluation import rate_report
from skbandit.evaluation._rate_report import parts_of_rows, read_verdicts, sum_up
from skbandit.inspection import _page
from skbandit.inspection._against_today import (
    TODAY,
    Case,
    decisions_of,
    goals_of_both,
    value_of_both,
)
from skbandit.inspection._report_lines import of_goals
from skbandit.logs import columns_of, holds_slates, is_log
from skbandit.measure import Columns, flatten_constraints, read_objective
from skbandit.rates import Rate, each, error_rate, positive_rate, precision, recall
from skbandit.rates._expression import AbsoluteRate, atom_rate, call_rate
from skbandit.rates._kinds import OUTCOME, Slot
from skbandit.utils._folds import behind_transformers, split_pipeline
from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import first_few, in_memory

if TYPE_CHECKING:
    from os import PathLike

PACKAGES = ("skbandit", "scikit-learn", "numpy", "scipy", "pandas")
"""Packages whose versions are named."""

LONGEST, MOST_CHANGES, WIDEST = 600, 12, 10
"""Letters of a setting, pairs of decisions, and decisions of a table of all that are shown."""

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
    today: Any = None,
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
    today : model, policy or array-like, default=None
        The rule that the model would replace: a model with `predict` or, of policies, `select`, or
        one decision per row of X, as `replay` takes it; of policies also probabilities, as in
        `off_policy_value`. None compares with no constraints, with the rule that made the log, or
        with the ads that are cheapest on average.
    groups : array-like of shape (n_samples,), default=None
        Rows with the same value are dependent, such as those of one person: intervals, and so
        whether goals are met, count them as such. It has nothing to do with `by`.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the cost of an ad that a selector chooses is not known, or that of a decision of today's
        rule, `y` is a log of slates, or `today` has not one decision per row.

    See Also
    --------
    skbandit.evaluation.to_model_card : The goals as Markdown.
    RateReportDisplay : Rates as a figure.

    Notes
    -----
    Whether goals are met is measured on X and y; outcomes of a policy are doubly robust estimates.
    What goals cost is known from the fit: see `objective_report_` and the column `price` of
    `constraint_report_`.

    The value of a policy is that of its objective. Where that does not count what a constraint
    bounds, such as ``cost({...}) <= 2``, the page also has the value less that, for both rules.

    The number of the report is the start of a SHA-256 hash of its contents, and stands on each
    printed page. An existing file is replaced only once the new one is complete.

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
    X, y, attributes, today, groups = map(in_memory, (X, y, attributes, today, groups))
    fitted, rows = behind_transformers(model, X)
    check_is_fitted(fitted)
    columns = Columns.read(attributes, X, count_rows(X))
    if not (by is None or isinstance(by, str) or all(isinstance(name, str) for name in by)):
        raise TypeError("by= must be names of columns: pass the groups as columns of attributes.")
    names = [by] if isinstance(by, str) else list(() if by is None else by)
    parts = columns.several(names, f"by={by!r}") if names else None
    case = Case(model, fitted, X, rows, y, attributes, columns, parts, groups, today)
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
    ]
    text = _page.page(title or f"Report on {type(fitted).__name__}", sections)
    _replace_file(Path(path), text.encode("utf-8", "backslashreplace"))


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file; one that is there stays until the new one is complete."""
    if path.exists() and not path.is_file():  # such as a pipe
        path.write_bytes(content)
        return
    path = path.resolve()
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _of_classifier(case: Case) -> list[Section]:
    """Sections on a constrained classifier."""
    fitted = case.fitted
    attributes = case.columns.frame if case.columns.frame.shape[1] else None
    rows = {"attributes": attributes, **case.dependence}
    report = of_goals(constraint_report(case.model, case.X, case.y, **rows))
    decided, plain = fitted._predict_both(case.rows, case.attributes)
    sections = [*_goals(report, len(decided)), *_costs(fitted)]
    classes = {"pos_label": fitted._positive, "labels": fitted._classes.decisions}
    sections += _rates_of(case, decided, case.y, **classes)
    sections += _of_classes(case, decided, **classes)
    if case.today is not None:
        usual = decisions_of(case.today, case.X, case.attributes)
        goals = [read_objective(fitted.objective), *flatten_constraints(fitted.constraints)]
        goals = goals if case.y is not None else goals[1:]
        frame = {"attributes": attributes, **case.dependence}
        sections.append(goals_of_both(decided, usual, case.y, goals, **frame, **classes))
        head, body = _changes(decided, usual, f"by {TODAY}", case.groups)[0]
        sections.append((f"{head} than today", body))
    if plain is not None:
        others = "without constraints" if len(report) else "at the usual threshold"
        sections += _changes(decided, plain, others, case.groups)
    return sections


def _of_policy(case: Case) -> list[Section]:
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
        return sections + _against_cheapest(case, decided, fitted.arms_)
    values, usual = value_of_both(case, decided if has_goals else None, case.today)
    sections += values
    if has_goals:
        sections += _rates_of(case, decided, None, labels=fitted.arms_)
    if usual is not None:
        sections += _changes(decided, usual, f"by {TODAY}", case.groups)
    return sections


def _of_selector(case: Case) -> list[Section]:
    """Sections on a selector of ads."""
    chosen, labels = case.fitted.predict(case.rows), case.fitted.ads_
    return [_evaluated_on(chosen), *_against_cheapest(case, chosen, labels)]


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


def _rates_of(case: Case, decided: np.ndarray, y_true: Any, **classes: Any) -> list[Section]:
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
    if decided.ndim > 1:
        return []
    reports = []
    if case.groups is not None and goals:
        reports.append((case.groups, goals))
    for columns, behind in _rates_behind(case).items():
        reports.append((case.columns.several(list(columns), f"by={list(columns)}"), behind))
    options = {"attributes": case.columns.frame, **case.dependence, **classes}
    bars = [
        _page.bars(rate_report(y_true, decided, rates, by=by, **options)) for by, rates in reports
    ]
    return [("Rates by group", "".join(bars))] if bars else []


def _rates_behind(case: Case) -> dict[tuple[str, ...], dict[str, Rate]]:
    """The rates that gaps between groups are made of, by the columns of the groups."""
    behind: dict[tuple[str, ...], dict[str, Rate]] = {}
    objective = [] if case.fitted.objective is None else [case.fitted.objective]
    rates = [limit.rate for limit in flatten_constraints(case.fitted.constraints)]
    for rate in (*objective, *rates):
        if isinstance(rate, AbsoluteRate):
            rate = rate.rate
        if rate.grouped_by is None or (rate.is_form and len(rate.atoms) == 1):
            continue  # its rows are the rates
        columns, _ = rate.grouped_by
        terms = [
            (coefficient, replace(atom, group=None))
            for coefficient, atom in rate.terms
            if isinstance(atom.group, Slot) and atom.group.index == 0
        ]
        if any(atom.kind == OUTCOME for _, atom in terms):
            continue
        first = call_rate(replace(atom_rate(terms[0][1]), terms=tuple(terms)), "")
        single = len(terms) == 1
        name = f"{terms[0][1]!r}" if single else f"what {rate} compares"
        behind.setdefault(columns, {})[name] = call_rate(first, name)
    return behind


def _of_classes(case: Case, decided: np.ndarray, **classes: Any) -> list[Section]:
    """How often each class is decided as which, and its precision and recall."""
    labels = classes["labels"]
    if case.y is None:
        return []
    y_true = np.asarray(case.y, dtype=object).ravel()
    is_known = ~pd.isna(y_true)
    pairs = pd.DataFrame({"class": y_true[is_known], "decided": decided[is_known]})
    body = ""
    if len(labels) <= WIDEST:
        counts = pd.crosstab(pairs["class"], pairs["decided"]).reindex(
            index=[label for label in labels if label in set(pairs["class"])],
            columns=labels,
            fill_value=0,
        )
        rows = [
            (name, *(f"{n:,}" for n in row), f"{row.sum():,}")
            for name, row in zip(counts.index, counts.to_numpy(), strict=True)
        ]
        heads = ["class, and how many rows are decided as", *labels, "rows"]
        body += _page.plain_table(heads, rows, numbers=len(labels) + 1)
    else:
        wrong = pairs[pairs["class"] != pairs["decided"]]
        body += _page.paragraph("The most frequent errors:") + _most_frequent(
            wrong.value_counts(), ("class", "decided as", "rows")
        )
    options = {"attributes": case.columns.frame, **case.dependence, **classes}
    rates = {"precision": each(precision, of="classes"), "recall": each(recall, of="classes")}
    return [("Classes", body + _page.bars(rate_report(case.y, decided, rates, **options)))]


def _changes(
    decided: np.ndarray, before: np.ndarray, rule: str, groups: pd.DataFrame | None
) -> list[Section]:
    """How many rows are decided differently, in which way, and of which groups."""
    now, then = np.asarray(decided), np.asarray(before)
    changed = np.asarray(now != then)
    kinds = pd.DataFrame({"then": then[changed], "now": now[changed]})
    body = _how_many(changed, rule)
    if len(kinds):
        body += _most_frequent(kinds.value_counts(), (rule, "here", "rows"))
    return [("What is decided differently", body + _of_whom(changed, groups))]


def _most_frequent(counts: pd.Series, headings: Sequence[str]) -> str:
    """A table of the most frequent pairs, and how many rows the others are."""
    first = counts.iloc[:MOST_CHANGES].reset_index()
    rows = [(a, b, f"{count:,}") for a, b, count in first.itertuples(index=False)]
    body = _page.plain_table(headings, rows, numbers=1)
    if len(rest := counts.iloc[MOST_CHANGES:]):
        text = f"{rest.sum():,} more rows are of {len(rest):,} rarer pairs."
        body += _page.paragraph(text, "soft")
    return body


def _how_many(changed: np.ndarray, rule: str) -> str:
    text = f"{changed.sum():,} of {len(changed):,} rows ({changed.mean():.1%}) are decided"
    return _page.paragraph(f"{text} differently than {rule}.")


def _of_whom(changed: np.ndarray, groups: pd.DataFrame | None) -> str:
    """The share of changed decisions by group."""
    if groups is None:
        return ""
    share = {"decided differently": positive_rate()}
    return _page.bars(rate_report(None, changed.astype(int), share, by=groups))


def _against_cheapest(case: Case, chosen: np.ndarray, labels: np.ndarray) -> list[Section]:
    """The mean cost of chosen sets against those of today, or the cheapest on average."""
    y, groups = case.y, case.groups
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
    if case.today is None:
        rule, action = "most popular", "by choosing the most popular"
        mean = pd.DataFrame(costs).mean().fillna(np.inf).to_numpy()
        cheapest = np.sort(np.argsort(mean, kind="stable")[: sets.shape[1]])
        named = ", ".join(str(labels[k]) for k in cheapest)
        about = _page.paragraph(f"The cheapest on average over these rows: {named}.")
        others = np.broadcast_to(cheapest, sets.shape)
    else:
        rule, action, about = TODAY, f"by {TODAY}", ""
        others = _sets_of_today(case, place, sets.shape)
    row_costs = np.take_along_axis(costs, sets, axis=1).sum(axis=1)
    usual = np.take_along_axis(costs, others, axis=1).sum(axis=1)
    if np.isnan(row_costs).any() or np.isnan(usual).any():
        row = int(np.argmax(np.isnan(row_costs) | np.isnan(usual)))
        raise ValueError(
            f"y has no cost in row {row} of an ad that is chosen there: estimate missing costs "
            "with skbandit.selection.logged_costs."
        )
    estimates = {
        "this selector": row_costs, rule: usual, "difference": row_costs - usual,
    }  # fmt: skip
    report = pd.DataFrame([_mean_row(name, values) for name, values in estimates.items()])
    changed = (np.sort(sets, axis=1) != np.sort(others, axis=1)).any(axis=1)
    against = "the most popular" if case.today is None else TODAY
    return [
        (f"Mean cost against {against}", about + _page.bars(report)),
        ("What is decided differently", _how_many(changed, action) + _of_whom(changed, groups)),
    ]


def _sets_of_today(case: Case, place: Mapping[Any, int], shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the ads that the rule of today chooses."""
    usual = decisions_of(case.today, case.X, case.attributes).reshape(shape[0], -1)
    if usual.shape != shape:
        raise ValueError(f"today chooses {usual.shape[1]} per row, and the model {shape[1]}.")
    if strange := [label for label in pd.unique(usual.ravel()).tolist() if label not in place]:
        raise ValueError(f"today chooses {first_few(strange)}, which have no costs in y.")
    return np.array([[place[label] for label in row] for row in usual.tolist()])


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


def _data(case: Case) -> dict[str, str]:
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
