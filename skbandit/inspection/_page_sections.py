"""Sections of a page: decisions, goals, what they cost, rates of groups, confusions, changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation import rate_report
from skbandit.evaluation._rate_report import ALL, read_verdicts, sum_up
from skbandit.inspection import _page
from skbandit.inspection._case import PLAIN, TODAY, Case
from skbandit.inspection._report_lines import figures_of, number_text, of_goals
from skbandit.measure import Report, flatten_constraints, read_objective
from skbandit.rates import Rate, each, error_rate, positive_rate, precision
from skbandit.rates._expression import AbsoluteRate, atom_rate, call_rate
from skbandit.rates._kinds import OUTCOME, Slot, value_text

MOST_CHANGES, WIDEST = 12, 10
"""Pairs of decisions, and decisions of a table of all, that are shown."""

CONSTANT, ALWAYS = 0.9, 0.99
"""A rule is all but constant if this share of each class, or of all rows, gets one decision."""

Section = tuple[str, str]


def decisions(case: Case) -> Iterable[Section]:
    """Show the share of each decision beside those of other rules, and if one is all but constant.

    A decision may be rare because a class is: a rule counts as all but constant if its decisions
    hardly depend on the class.
    """
    rules = {"share": case.decided, PLAIN: case.plain, TODAY: case.usual}
    rules = {
        name: np.reshape(rule, (len(rule), -1)) for name, rule in rules.items() if rule is not None
    }
    share = {  # of rows that get each decision, of which each may get several
        name: np.array([(rule == label).any(axis=1).mean() for label in case.labels])
        for name, rule in rules.items()
    }
    order = (-share["share"]).argsort(kind="stable") if len(case.labels) > WIDEST else slice(None)
    table = pd.DataFrame(share, index=pd.Index(case.labels, tupleize_cols=False)).iloc[order]
    rows = [(name, *(f"{x:.1%}" for x in row)) for name, row in table.iloc[:WIDEST].iterrows()]
    if len(rest := table.iloc[WIDEST:]):
        rows.append((f"{len(rest):,} others", *(f"{x:.1%}" for x in rest.sum())))
    yield (
        "",
        _constant(case, share["share"])
        + _page.plain_table(["decision", *share], [tuple(row) for row in rows], numbers=len(share)),
    )


def _constant(case: Case, share: np.ndarray) -> str:
    """Return a warning if decisions hardly depend on the row."""
    if case.decided.ndim > 1 or len(case.labels) < 2:
        return ""
    label = case.labels[share.argmax()]
    least = float(share.max())
    if (counts := case.confusion) is not None and len(counts) > 1:
        least = float((counts[label] / counts.sum(axis=1)).min())
    if least < (CONSTANT if counts is not None else ALWAYS):
        return ""
    cure = "Relax a goal, or add columns that tell rows apart."
    if hasattr(case.fitted, "threshold_") or hasattr(case.fitted, "thresholds_"):
        cure = (
            "Give groups thresholds of their own (by=), train under the goals "
            "(ConstrainedReduction), or relax a goal."
        )
    of_class = "" if counts is None else f", and {least:.1%} or more of those of every class"
    text = f"It decides {escape(value_text(label))} for {share.max():.1%} of the rows"
    head = "<strong>The rule is all but constant.</strong>"
    return f'<p class="warn">{head} {text}{of_class}. {escape(cure)}</p>'


def goals(case: Case) -> Iterable[Section]:
    """Show which goals are met, in a sentence and row by row."""
    n_rows = f"{len(case.decided):,} rows"
    if not case.has_goals:
        yield "", _page.paragraph(f"Evaluated on {n_rows}.", "soft")
    elif not len(case.report):
        yield "", _page.paragraph(f"No constraints were declared. {n_rows}.", "soft")
    else:
        measured = f"Measured on {n_rows}, with intervals of level 95%."
        yield "", f"<p>{_summary(case.report)}</p>{_page.paragraph(measured, 'soft')}"
        yield "Goals", _page.bars(case.report)


def _summary(report: pd.DataFrame) -> str:
    """Return a sentence on what is met, violated and undecided."""
    report = report.assign(verdict=read_verdicts(report))
    return sum_up(report, lambda text: escape(str(text)), "<strong>Violated</strong>")


def costs(case: Case) -> Iterable[Section]:
    """Show what all constraints together and each alone cost, as the fit found it."""
    if not case.has_goals:
        return
    row = case.fitted.objective_report_.iloc[0]
    expected = row["value"] if np.isnan(row["cross_fitted"]) else row["cross_fitted"]
    figures = figures_of({**row, "value": expected, "n_rows": 1})
    text = f"The objective, {row['objective']}, is {figures}"
    text += " in the fit" if np.isnan(row["cross_fitted"]) else " out of fold"
    report = of_goals(case.fitted.constraint_report_)
    if not len(report):
        yield "The objective", _page.paragraph(f"{text}.")
        return
    if not np.isnan(row["unconstrained"]):
        best = row.get("best_unconstrained", row["unconstrained"])
        if best == row["unconstrained"]:
            text += f", and {number_text(best)} without constraints"
        else:
            text += f", {number_text(row['unconstrained'])} by the classifier at its usual "
            text += f"threshold, and {number_text(best)} by the best rule without constraints"
        binds = not (report["multiplier"] == 0).all()
        cost = abs(expected - best) if binds else 0.0
        # `price` compares thresholds only, so that a single one may exceed the cost of all
        if not report["price"].max() > cost:
            text += f": all constraints together cost {number_text(cost)}"
    _, parts = Report.read(report).rows(report["goal"])
    rows: list[tuple[Any, ...]] = []
    for _, part in parts.groupby("number", sort=False):
        of_goal = report.iloc[part.index]
        bounds = ", ".join(f"{bound:g}" for bound in dict.fromkeys(of_goal["bound"]))
        per_unit, gain = 0.01 * of_goal["multiplier"].max(), of_goal["price"].iloc[0]
        prices = ["not known" if np.isnan(gain) else f"{x:.3g}" for x in (gain, per_unit)]
        rows.append((part["declared"].iloc[0], bounds, *prices))
    headings = "constraint", "bound", "gain without it", "gain per 0.01 of the bound"
    about = "How much better the objective would be without each constraint alone, and with a bound"
    yield (
        "The objective against each bound",
        _page.paragraph(f"{text}.")
        + _page.paragraph(f"{about} that is relaxed a little.", "soft")
        + _page.plain_table(headings, rows, numbers=3),
    )


def rates_of_groups(case: Case) -> Iterable[Section]:
    """Show the objective and the bounded rates by group; those of all rows are among the goals."""
    if not case.has_goals or case.is_table:
        return
    limits = flatten_constraints(case.fitted.constraints)
    objective, y_true = case.fitted.objective, case.y if case.is_classifier else None
    rates = {} if y_true is None else {"error_rate()": error_rate()}
    rates = rates if objective is None else {repr(objective): objective}
    bounded = {
        f"rate of {limit.name}" if limit.name else repr(limit.rate): limit.rate
        for limit in limits
        if not limit.absolute
    }
    named: dict[tuple[str, ...], dict[str, Rate]] = {}
    if case.parts is not None:
        named[tuple(case.parts.columns)] = {
            name: rate
            for name, rate in (rates | bounded).items()
            if not (rate.is_form or any(atom.kind == OUTCOME for atom in rate.atoms))
        }
    for names, behind in _rates_behind([objective, *(limit.rate for limit in limits)]).items():
        named.setdefault(names, {}).update(behind)
    bars = ""
    for names, of_names in named.items():
        if of_names:
            by = case.columns.several(list(names), f"by={list(names)}")
            report = rate_report(y_true, case.decided, of_names, by=by, **case.options)
            of_all = (report[by.columns] == ALL).all(axis=1) & report["goal"].isin(bounded)
            bars += _page.bars(_without(report, of_all))
    if bars:
        yield "Rates by group", bars


def _without(report: pd.DataFrame, dropped: pd.Series) -> pd.DataFrame:
    """Return a report without some rows, which still knows the goals of the others."""
    kept = Report.read(report).take(np.flatnonzero(~dropped))
    return kept.attached(report[~dropped].reset_index(drop=True))


def _rates_behind(rates: Sequence[Any]) -> dict[tuple[str, ...], dict[str, Rate]]:
    """Return the rates that gaps between groups are made of, by the columns of the groups."""
    behind: dict[tuple[str, ...], dict[str, Rate]] = {}
    for rate in rates:
        rate = rate.rate if isinstance(rate, AbsoluteRate) else rate
        if rate is None or rate.grouped_by is None or (rate.is_form and len(rate.atoms) == 1):
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
        name = f"{terms[0][1]!r}" if len(terms) == 1 else f"what {rate} compares"
        behind.setdefault(columns, {})[name] = call_rate(first, name)
    return behind


def classes(case: Case) -> Iterable[Section]:
    """Show how many rows of each class are decided as which, and precisions without a goal."""
    if (counts := case.confusion) is None:
        return
    labels = counts.columns
    if len(labels) <= WIDEST:
        total = counts.sum(axis=1)
        rows = [
            (name, *(f"{n:,} ({n / n_rows:.1%})" for n in row), f"{n_rows:,}")
            for name, row, n_rows in zip(counts.index, counts.to_numpy(), total, strict=True)
        ]
        heads = ["class, and how many of its rows are decided as", *labels, "rows"]
        body = _page.plain_table(heads, rows, numbers=len(labels) + 1)
    else:
        y_true = np.asarray(case.y, dtype=object).ravel()
        wrong = ~pd.isna(y_true) & (y_true != case.decided)
        body = _page.paragraph("The most frequent errors:")
        headings = "class", "decided as", "rows"
        body += _most_frequent(y_true[wrong], case.decided[wrong], headings)
    report = rate_report(
        case.y, case.decided, {"precision": each(precision, of="classes")}, **case.options
    )
    bounded = " ".join(case.report["goal"])
    is_goal = [
        f"precision(of={label!r})" in bounded
        or "each(precision" in bounded
        or (label == case.fitted._positive and "precision()" in bounded)
        for label in report["of"]
    ]
    report = _without(report, pd.Series(is_goal, dtype=bool))
    yield "Classes", body + _page.bars(report)


def goals_of_today(case: Case) -> Iterable[Section]:
    """Show the objective and the goals of a classifier as the rule of today has them."""
    if not case.is_classifier or case.usual is None:
        return
    limits = flatten_constraints(case.fitted.constraints)
    goals = [read_objective(case.fitted.objective), *limits] if case.y is not None else limits
    report = rate_report(case.y, case.usual, goals, **case.options)
    text = f"<p>{TODAY.capitalize()}: {_summary(report)}</p>" if limits else ""
    yield f"The same for {TODAY}", text + _page.bars(report)


def changes(case: Case) -> Iterable[Section]:
    """Show how many rows are decided differently than by other rules, in which way, and of whom."""
    if case.is_table:
        return
    plain = PLAIN if not case.is_classifier or len(case.report) else "at the usual threshold"
    rules = {f"by {TODAY}": case.usual, plain: case.plain if case.is_classifier else None}
    bodies = []
    for name, rule in rules.items():
        if rule is None:
            continue
        changed = np.asarray(case.decided != rule)
        pairs = ""
        if changed.any():
            pairs = _most_frequent(rule[changed], case.decided[changed], (name, "here", "rows"))
        bodies.append(differences(case, changed, name, pairs))
    if bodies:
        yield "What is decided differently", "".join(bodies)


def _most_frequent(then: Any, now: np.ndarray, headings: Sequence[str]) -> str:
    """Return a table of the most frequent pairs, and how many rows the others are."""
    counts = pd.DataFrame({"then": then, "now": now}).value_counts()
    first = counts.iloc[:MOST_CHANGES].reset_index()
    rows = [(a, b, f"{count:,}") for a, b, count in first.itertuples(index=False)]
    body = _page.plain_table(headings, rows, numbers=1)
    if len(rest := counts.iloc[MOST_CHANGES:]):
        text = f"{rest.sum():,} more rows are of {len(rest):,} rarer pairs."
        body += _page.paragraph(text, "soft")
    return body


def differences(case: Case, changed: np.ndarray, rule: str, pairs: str = "") -> str:
    """Return how many rows are decided differently than by a rule, which `pairs`, and of whom."""
    text = f"{changed.sum():,} of {len(changed):,} rows ({changed.mean():.1%}) are decided"
    body = _page.paragraph(f"{text} differently than {rule}.") + pairs
    if case.parts is None:
        return body
    share = {"decided differently": positive_rate()}
    return body + _page.bars(rate_report(None, changed.astype(int), share, by=case.parts))
