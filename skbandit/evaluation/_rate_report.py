"""Reports of rates and constraints for given predictions, by group, and as model cards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit import measure
from skbandit.rates import Constraint, Rate
from skbandit.rates._expression import AbsoluteRate
from skbandit.rates._kinds import value_text
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Goal = Rate | AbsoluteRate | Constraint

ALL, MISSING_GROUP = "all", "(missing)"
"""Labels of the row of all data, and of a group that is missing."""

MOST_NAMED = 3
"""Groups without a value that a summary names; it counts the others."""

_MARKUP = re.compile(
    r"[\\|`*~@]|<(?=[\w/!?])|&(?=#?\w+;)|\](?=[(\[])|:(?=//)|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])"
)
"""Characters that Markdown, with HTML and links, would not show as they are."""


def rate_report(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    goals: Goal | Iterable[Any] | Mapping[str, Goal],
    *,
    by: Any = None,
    attributes: Any = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Report rates and constraints of given predictions, overall and by group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels. Rows whose label is None or missing are unlabeled; rates that need
        labels ignore them.
    y_pred : array-like of shape (n_samples,)
        Predicted labels of any classifier.
    goals : rate, constraint, list of these, or dict of str to rate or constraint
        What to measure; the keys of a dict name the goals.
    by : str, list of str, Series, array or DataFrame, default=None
        Attribute columns whose values, or combinations of values that occur, are the groups;
        or the groups themselves, one row per prediction.
    attributes : DataFrame or dict of arrays, default=None
        Columns that `by` and the goals refer to.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.
    pos_label : label, default=None
        The class of rates without `of`; optional for labels {0, 1}, {-1, 1} and bool.
    labels : array-like, default=None
        All classes and other decisions that may occur: see `Rate.value`.
    groups : array-like of shape (n_samples,), default=None
        Rows with the same value are dependent, such as those of one person, site or day; None
        means that all are independent. Intervals and `effective_n` count it. It has nothing to do
        with `by`.
    confidence_level : float, default=0.95
        Nominal coverage of each interval, on its own.

    Returns
    -------
    DataFrame
        One row per goal and group, all rows of data together first. A goal with groups of its
        own (`each`, `ratio`, `difference`) has a row for each of them; if these are groups of a
        column of `by`, on all rows of data only.

        - `goal`: its name or text.
        - the columns of `by`: "all" in the row of all data, "(missing)" for a missing group.
        - `n_rows`: rows that the value depends on, 0 if there are none (a warning says why).
        - `effective_n`: rows in the denominator at these predictions, such as the positive
          predictions for precision; of unequal weights or dependent rows, the number of
          independent rows of equal weight that tell as much; the smallest number if there are
          several denominators. A warning names those below 20.
        - `n_groups`, if there are `groups`: of dependent rows in the denominator.
        - `value`, nan if undefined, and its interval from `ci_low` to `ci_high`.
        - if any goal is a constraint, `bound`, `slack` (negative if missed) and `satisfied`,
          which are missing for rates.

    Warns
    -----
    UserWarning
        If rows have no group in a goal by groups, as its column is missing there.

    See Also
    --------
    rate_report_blocks : The same for a table larger than memory.
    skbandit.ConstrainedRampClassifier.constraint_report : The same for a constrained classifier.
    to_model_card : The report as text.
    skbandit.inspection.RateReportDisplay : The report as a figure.

    Notes
    -----
    The interval of one rate is Clopper and Pearson's; of anything else, MOVER's (see the user
    guide). That of the mean F1 of many classes with a few rows each is too narrow on one side: at a
    level of .95 and 30 classes of 10 rows it covers .85. ``on=`` is ignored, as all
    predictions are one dataset.

    Examples
    --------
    >>> from skbandit.evaluation import rate_report
    >>> from skbandit.rates import positive_rate, recall
    >>> y_true = [1, 1, 0, 0] * 25
    >>> y_pred = [1, 0, 0, 0] * 15 + [1, 1, 1, 0] * 10
    >>> sex = {"sex": ["F"] * 60 + ["M"] * 40}
    >>> goals = {"hired": positive_rate(), "found": recall() >= 0.7}
    >>> report = rate_report(y_true, y_pred, goals, by="sex", attributes=sex)
    >>> report[["goal", "sex", "n_rows", "value", "satisfied"]]
        goal  sex  n_rows  value  satisfied
    0  hired  all     100   0.45       <NA>
    1  hired    F      60   0.25       <NA>
    2  hired    M      40   0.75       <NA>
    3  found  all      50   0.70       True
    4  found    F      30   0.50      False
    5  found    M      20   1.00       True
    """
    check_level(confidence_level)
    named = list(named_goals(goals))
    given = y_true, y_pred, attributes, sample_weight, pos_label
    rates = [rate_of(goal) for _, goal in named]
    data, positive = measure.read_measured(rates, *given, by=by, labels=labels, groups=groups)
    measure.warn_of_unnamed(rates, data)
    merged = measure.merge_equal(rates, data, positive, _group_table(by, data))
    return report_goals(named, *merged, confidence_level)


def report_goals(
    named: Sequence[tuple[str, Goal]],
    data: measure.Data,
    positive: np.ndarray,
    table: pd.DataFrame,
    level: float,
) -> pd.DataFrame:
    """Report named goals on merged rows, at predictions `positive`, by the groups of a table."""
    columns = table.columns.tolist()
    grouped = [(rate_of(goal).grouped_by or [()])[0] for _, goal in named]
    several = set(grouped) - {()}
    measure.warn_of_weightless({names: {"train"} for names in sorted(several)}, data)
    for names in sorted(several):
        measure.warn_of_no_group(names, data.train)
    parts = [((ALL,) * len(columns), data, positive)]
    parts += [(group, data.take(at), positive[at]) for group, at in _rows_by_group(table, data)]
    lines = [
        replace(line, group=group, part=part, goal=(k, *line.goal[1:]))
        for k, (name, goal) in enumerate(named)
        for of_all in [[*_lines(name, goal, data)]]
        # a goal with groups of a column is not split by it
        for part, (group, *_) in enumerate(
            parts[: None if set(columns).isdisjoint(grouped[k]) else 1]
        )
        for line in of_all
    ]
    n_rows = measure.count_rows_of_rates(
        [(line.text, line.rate, parts[line.part][1], line.may_be_empty) for line in lines]
    )
    value, effective, low, high, n_groups = np.full((5, len(lines)), np.nan)
    part_of = np.array([line.part for line in lines], dtype=int)
    for number, (_, part, decided) in enumerate(parts):
        at = np.flatnonzero(part_of == number)
        rates = [lines[k].rate for k in at]
        of_part = measure.Estimates.of(rates, n_rows[at] > 0, part, decided, level)
        value[at], effective[at], n_groups[at] = of_part.value, of_part.effective, of_part.n_groups
        low[at], high[at] = of_part.ends.T
    ends, absolute = np.column_stack([low, high]), [line.absolute for line in lines]
    if any(absolute):
        value, sizes = np.where(absolute, np.abs(value), value), np.sort(np.abs(ends), axis=1)
        sizes[(low <= 0) & (0 <= high), 0] = 0.0
        ends = np.where(np.array(absolute)[:, None], sizes, ends)
    measure.warn_of_few([line.text for line in lines], effective)
    first = {"goal": [line.name for line in lines]}
    if any(line.of for line in lines):
        first["of"] = [line.of for line in lines]
    first |= {column: [line.group[k] for line in lines] for k, column in enumerate(columns)}
    goals = [measure.Report.row(line.name, line.goal, line.rate, line.sense) for line in lines]
    report = measure.Report(goals).attached(pd.DataFrame(first))
    report = report.assign(
        n_rows=n_rows, effective_n=effective, value=value, ci_low=ends[:, 0], ci_high=ends[:, 1]
    )
    if data.dependent is not None:
        report.insert(
            report.columns.tolist().index("effective_n") + 1, "n_groups", n_groups.astype(int)
        )
    if not any(isinstance(goal, Constraint) for _, goal in named):
        return report
    bound = np.array([line.bound for line in lines], dtype=float)
    sign = np.array([1.0 if line.sense == "<=" else -1.0 for line in lines])
    slack, measured = sign * (bound - value), (n_rows > 0) & np.isfinite(bound)
    verdict = pd.Series(measure.verdicts(ends, bound, sign), dtype=object)
    return report.assign(
        bound=bound,
        slack=slack,
        satisfied=measure.satisfied(slack, measured),
        verdict=verdict.where(measured, ""),
    )


@dataclass(frozen=True)
class _Line:
    """One rate on one part of the data: a row of the report."""

    name: str
    rate: Rate
    absolute: bool
    bound: float
    sense: str
    goal: tuple[int, str, str]
    of: str = ""
    group: tuple[Any, ...] = ()
    part: int = 0

    @property
    def overall(self) -> bool:
        """True if it is on all rows of data."""
        return all(value == ALL for value in self.group)

    @property
    def may_be_empty(self) -> bool:
        """True if it may have no rows, as of a group or of a class that it names."""
        return not self.overall or any(atom.of is not None for atom in self.rate.atoms)

    @property
    def text(self) -> str:
        """The goal with its group, for warnings."""
        where = "" if self.overall else f" in {', '.join(map(value_text, self.group))}"
        return self.name + where


def _lines(name: str, goal: Goal, data: measure.Data) -> Iterator[_Line]:
    """Return rows of a goal, one per group of its own, on all data."""
    bounded, absolute = isinstance(goal, Constraint), isinstance(goal, AbsoluteRate)
    rate = rate_of(goal)
    constraint: Constraint = rate <= 0.0 if rate.denominator is None else rate >= 0.0
    constraint = goal if isinstance(goal, Constraint) else constraint
    for side in measure.expand([on_given_rows(constraint).named(name)], data):
        assert side.part is not None  # it is expanded
        bound, sense = (side.bound, side.sense) if bounded else (np.nan, "")
        yield _Line(side.label, side.rate, absolute, bound, sense, side.part, side.of)


def on_given_rows(constraint: Constraint) -> Constraint:
    """Return a constraint on the rows at hand, whatever rows it names."""
    lhs, rhs = map(measure.on_given_rows, (constraint.lhs, constraint.rhs))
    return replace(constraint, lhs=lhs, rhs=rhs)


def _group_table(by: Any, data: measure.Data) -> pd.DataFrame:
    """Columns whose values are the groups."""
    if isinstance(by, str | list | tuple) or by is None:
        return data.train.columns.several(names_of_groups(by), f"by={by!r}")
    if not hasattr(by, "shape"):
        raise TypeError(
            "by must be the name of an attribute column, a list of names, or the groups as an "
            f"array or DataFrame, got {type(by).__name__}."
        )
    values = {getattr(by, "name", None) or "group": by} if len(by.shape) == 1 else by
    table = measure.Columns.read(values, None, len(data), "by").frame
    names_of_groups(list(map(str, table.columns)))
    return table


def names_of_groups(by: str | Sequence[str] | None) -> list[str]:
    """Return the columns of groups, which no other column of the report may be named after."""
    names = [by] if isinstance(by, str) else list(by or ())
    if not all(isinstance(name, str) for name in names):
        raise TypeError("by must list names of attribute columns; pass values as an array.")
    taken = {"goal", "of", "n_rows", "effective_n", "n_groups", "value", "ci_low", "ci_high"}
    taken |= {"bound", "slack", "satisfied", "verdict"}
    for name in names:
        if name in taken or names.count(name) > 1:
            raise ValueError(f"by: {name!r} would be two columns of the report; rename it.")
    return names


def _rows_by_group(
    table: pd.DataFrame, data: measure.Data
) -> Iterator[tuple[tuple[Any, ...], np.ndarray]]:
    """Each group and its rows; those with a missing value are the last."""
    names, rows = table.columns.tolist(), data.train
    if not names:
        return
    if (table == MISSING_GROUP).to_numpy(dtype=bool, na_value=False).any():
        raise ValueError(
            f"by={names}: a group is {MISSING_GROUP!r}, the label of rows without one; rename it."
        )
    labeled = {
        name: np.where(table[name].isna(), MISSING_GROUP, table[name].astype(object))
        for name in names
    }
    groups: dict[Any, None] = {}
    for frame in (table, labeled):
        columns = measure.Columns.read(frame, None, len(rows))
        each = measure.Data(measure.Rows(columns, rows.label, rows.weight))
        groups |= dict.fromkeys(each.groups(names, {"train"}, f"by={names}"))
    measure.warn_of_weightless({tuple(names): {"train"}}, each)
    if any(all(value == ALL for value in group.values) for group in groups):
        raise ValueError(f"by={names}: a group is {ALL!r}, the label of all data; rename it.")
    number, first = measure.number_groups(columns.frame.items(), len(rows))
    inside = np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
    rows_of = dict(zip(measure.values_at(columns.frame, first), inside, strict=True))
    for group in sorted(
        groups, key=lambda member: [value == MISSING_GROUP for value in member.values]
    ):
        yield group.values, rows_of[group.values]


def rate_of(goal: Goal) -> Rate:
    """Return the expression that a goal measures."""
    return goal if isinstance(goal, Rate) else goal.rate


def named_goals(goals: Any) -> Iterator[tuple[str, Goal]]:
    """Goals with their names or texts, from any nesting of lists."""
    if isinstance(goals, Mapping):
        for name, goal in goals.items():
            if not isinstance(goal, Rate | AbsoluteRate | Constraint):
                raise TypeError(f"goals[{name!r}] = {goal!r} is not a rate or a constraint.")
            yield str(name), goal
    elif isinstance(goals, Constraint):
        yield goals.label, goals
    elif isinstance(goals, Rate | AbsoluteRate):
        yield repr(goals), goals
    elif isinstance(goals, Iterable) and not isinstance(goals, str):
        for goal in goals:
            yield from named_goals(goal)
    else:
        raise TypeError(
            f"goals: {goals!r} is not a rate or a constraint: pass one such as "
            "skbandit.rates.recall(), with parentheses, a list, or a dict of names."
        )


def to_model_card(
    report: pd.DataFrame,
    *,
    title: str = "Model card",
    goal: str = "",
    data: str = "",
    limits: str = "",
    digits: int = 3,
) -> str:
    """Write a report as a model card in Markdown (Mitchell et al. 2019).

    Parameters
    ----------
    report : DataFrame
        Returned by `rate_report`, or a `constraint_report` of a classifier.
    title : str, default="Model card"
        Heading.
    goal : str, default=""
        Intended use: what the model is for, who uses it, and what it must not be used for.
    data : str, default=""
        Evaluation data: origin, time, selection.
    limits : str, default=""
        Caveats and recommendations.
    digits : int, default=3
        Decimals of rates.

    Returns
    -------
    str
        Sections of the card; a text that was not given is "Not stated.".

    References
    ----------
    M. Mitchell et al., "Model cards for model reporting", FAT* 2019.

    Examples
    --------
    >>> from skbandit.evaluation import rate_report, to_model_card
    >>> from skbandit.rates import recall
    >>> report = rate_report([1, 0] * 50, [1, 0] * 50, recall() >= 0.9)
    >>> print(to_model_card(report, goal="Ranks applications for a human reader."))
    # Model card
    <BLANKLINE>
    ## Intended use
    <BLANKLINE>
    Ranks applications for a human reader.
    <BLANKLINE>
    ## Evaluation data
    <BLANKLINE>
    Not stated.
    <BLANKLINE>
    ## Quantitative analysis
    <BLANKLINE>
    The goal is met.
    <BLANKLINE>
    | goal | rows | effective rows | value | interval | bound | verdict |
    |---|---:|---:|---:|---|---:|---|
    | recall() >= 0.9 | 50 | 50 | 1.000 | 0.929 to 1.000 | 0.900 | met |
    <BLANKLINE>
    ## Caveats and recommendations
    <BLANKLINE>
    Not stated.
    <BLANKLINE>
    """
    needed = {"n_rows", "effective_n", "value"}
    if not isinstance(report, pd.DataFrame) or not needed <= set(report.columns):
        raise TypeError("report must be a DataFrame returned by rate_report or constraint_report.")
    if "cross_fitted" in report:  # which the intervals and verdicts are about
        report = report.assign(value=report["cross_fitted"])
    report = report.assign(verdict=read_verdicts(report))
    parts = [("Intended use", goal), ("Evaluation data", data)]
    sentences = filter(None, [sum_up(report, _cell, "**Violated**"), _costs_of(report, digits)])
    figures = f"{' '.join(sentences)}\n\n{_markdown_table(report, digits)}"
    parts.append(("Quantitative analysis", figures))
    parts.append(("Caveats and recommendations", limits))
    sections = [f"## {heading}\n\n{text.strip() or 'Not stated.'}\n" for heading, text in parts]
    return "\n".join([f"# {title}\n", *sections])


def read_verdicts(report: pd.DataFrame) -> list[str]:
    """Per row of a report, "met", "violated" or "undecided"; "" if not bounded or not measured.

    Without intervals, no row is met: on the rows of a fit, its value is the bound or just inside.
    """
    if "satisfied" not in report:
        return [""] * len(report)
    flags = report["satisfied"].astype("boolean").where(report["n_rows"] > 0)
    if "verdict" in report:
        words = report["verdict"].tolist()
    elif "ci_low" in report:
        name, bound = "goal" if "goal" in report else "constraint", report["bound"].astype(float)
        sense = measure.Report.read(report).rows(report[name])[1]["sense"].to_numpy()
        # slack is value - bound for >=, bound - value for <=; without both nothing is known
        above = np.sign((report["slack"] * (bound - report["value"])).to_numpy(dtype=float))
        above[above == 0] = np.nan
        sign = np.select([sense == "<=", sense == ">="], [1.0, -1.0], above)
        ends = report[["ci_low", "ci_high"]].to_numpy(dtype=float)
        words = measure.verdicts(ends, bound.to_numpy(), sign)
    else:
        words = flags.map({True: "undecided", False: "violated"}).tolist()
    return [word if has_flag else "" for word, has_flag in zip(words, flags.notna(), strict=True)]


def sum_up(report: pd.DataFrame, text: Callable[[Any], str], violated: str) -> str:
    """Return what is met, violated and undecided, for each goal as declared.

    Parameters
    ----------
    report : DataFrame
        With the column `verdict`, as of `read_verdicts`.
    text : callable
        Writes names of goals and groups in the markup of the reader.
    violated : str
        How "Violated" is written there.
    """
    name = "goal" if "goal" in report else "constraint"
    groups = [c for c in report.columns[: report.columns.tolist().index("n_rows")] if c != name]
    overall = (report[[c for c in groups if c not in ("on", "of")]] == ALL).all(axis=1)
    bounded = overall & report["bound"].notna() if "bound" in report else overall & False
    unit, parts = measure.Report.read(report).rows(report[name])
    slack = report["slack"].to_numpy() if "slack" in report else np.nan
    table = parts.assign(effective_n=report["effective_n"].to_numpy(), slack=slack)
    table["verdict"] = report["verdict"].replace("", "not measured").to_numpy()
    table = table[bounded.to_numpy()]
    if not (table["verdict"] != "not measured").any():
        return "No goals were measured."
    verdict: dict[str, list[str]] = {"violated": [], "undecided": [], "met": [], "not measured": []}
    n = n_met = 0
    for _, rows in table.groupby("number", sort=False):
        words = set(rows["verdict"])
        n, n_met = n + 1, n_met + (words == {"met"})
        if "not measured" not in words:  # that all others are met need not be said
            words.discard("met")
        for word in words:
            verdict[word].append(text(rows["declared"].iloc[0]) + _where(rows, word, text))
    if n_met == n:
        return "The goal is met." if n == 1 else f"All {n} {unit} are met."
    counts = "" if n == 1 else f"Of {n} {unit}, {n_met} {'is' if n_met == 1 else 'are'} met."
    rest = [
        f"{violated if word == 'violated' else word.capitalize()}: {'; '.join(goals)}."
        for word, goals in verdict.items()
        if goals
    ]
    if "ci_low" not in report:
        rest.append(
            "The report has no intervals, without which nothing counts as met: `constraint_report` "
            "on new rows has them."
        )
    return " ".join(filter(None, [counts, *rest]))


def _where(rows: pd.DataFrame, word: str, text: Callable[[Any], str]) -> str:
    """In how many groups of a goal a verdict holds, and of which it is the worst, or all."""
    part, n_groups = rows[rows["verdict"] == word], rows["group"].nunique()
    if n_groups <= 1:
        return ""
    names = part["group"].drop_duplicates()
    where = f" in {len(names)} of {n_groups} groups or pairs"
    if word == "not measured":
        others = [f"{len(names) - MOST_NAMED} others"] * (len(names) > MOST_NAMED)
        return f"{where} ({', '.join([*map(text, names[:MOST_NAMED]), *others])})"
    if word == "undecided" and part["effective_n"].notna().all():
        worst = part.iloc[int(np.argmin(part["slack"].fillna(np.inf)))]
        return f"{where} ({count_text(worst['effective_n'])} rows of {text(worst['group'])})"
    return where


def _costs_of(report: pd.DataFrame, digits: int) -> str:
    """How much better the objective would be without each goal, if the report knows it."""
    if "price" not in report or not report["price"].notna().any():
        return ""
    name = "goal" if "goal" in report else "constraint"
    _, parts = measure.Report.read(report).rows(report[name])
    price = report["price"].groupby(parts["number"].to_numpy(), sort=False).first()
    texts = parts.groupby("number", sort=False)["declared"].first()
    least = 0.5 * 10.0**-digits
    costly = [
        f"{_cell(text)} {cost:.{digits}f}"
        for text, cost in zip(texts, price, strict=True)
        if cost >= least
    ]
    others = ["others nothing"] if costly and (price < least).any() else []
    written = "; ".join([*costly, *others])
    return written and f"Of the objective, each goal alone costs: {written}."


def _markdown_table(report: pd.DataFrame, digits: int) -> str:
    """Return the report as a Markdown table."""
    name = "goal" if "goal" in report else "constraint"
    before = report.columns.tolist()[: report.columns.tolist().index("n_rows")]

    def number(value: Any) -> str:
        return "" if pd.isna(value) else f"{value:.{digits}f}"

    columns = [("goal", "---", [_cell(text) for text in report[name]])]
    for column in before:
        if column not in (name, "on"):
            write = str if column == "of" else value_text
            columns.append(
                (_cell(column), "---", [_cell(write(value)) for value in report[column]])
            )
    for heading, column in (("rows", "n_rows"), ("effective rows", "effective_n")):
        columns.append((heading, "---:", [count_text(rows) for rows in report[column]]))
    values = [number(value) or "undefined" for value in report["value"]]
    columns.append(("value", "---:", values))
    if "ci_low" in report:
        ends = zip(report["ci_low"], report["ci_high"], strict=True)
        shown = ["" if pd.isna(a) else f"{number(a)} to {number(b)}" for a, b in ends]
        columns.append(("interval", "---", shown))
    if "bound" in report:
        columns.append(("bound", "---:", [number(value) for value in report["bound"]]))
        words = [f"**{word}**" if word == "violated" else word for word in report["verdict"]]
        columns.append(("verdict", "---", words))
    headings, rules, cells = zip(*columns, strict=True)
    lines = [f"| {' | '.join(line)} |" for line in (headings, *zip(*cells, strict=True))]
    return "\n".join([lines[0], f"|{'|'.join(rules)}|", *lines[1:]])


def count_text(rows: Any) -> str:
    """Write a number of rows, which is fractional if they are weighted."""
    return f"{rows:,.0f}" if rows >= 1000 else f"{rows:.4g}"


def _cell(value: Any) -> str:
    """Text of a table cell, on one line, shown as it is."""
    return _MARKUP.sub(lambda match: f"&#{ord(match.group())};", " ".join(str(value).split()))
