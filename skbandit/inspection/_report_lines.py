"""The lines of a report, for figures and pages: goals, and their groups below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._rate_report import ALL, read_verdicts
from skbandit.measure import Report
from skbandit.rates._kinds import value_text

ESTIMATES = "mean reward"
"""Goal of a report of estimates."""

UNDECIDED, FORMS = "undecided", ("rate", "ratio", "difference")

LONG = 24
"""Lines of a goal above which they are in order of value, and its name is on each sheet."""

_WORST_FIRST = ["violated", UNDECIDED, "met", ""]

SMALL = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Ends of the axis of rates below 1, if all rates are smaller."""


@dataclass(frozen=True)
class Line:
    """A goal, or a group below it; `row` is its place in the report, None of a mere heading."""

    text: str
    row: int | None
    is_goal: bool


Panels = dict[str, list[list[Line]]]
"""Lines of each goal, by the scale of its values: "rate", "ratio", "difference" or an amount."""


def rows_of(goals: Sequence[Sequence[Line]]) -> list[int]:
    """Return the places of goals in the report, from the top down."""
    return [line.row for lines in goals for line in lines if line.row is not None]


def panels_of(report: pd.DataFrame, pairs: str = "worst") -> Panels:
    """Divide a report with the column `goal` into scales, and these into goals as declared.

    Parameters
    ----------
    report : DataFrame
        Returned by `rate_report`, or a report of constraints with `goal` as a column.
    pairs : {"worst", "all"}
        Of a goal over pairs of groups, "worst" is the pair with the worst verdict and the least
        slack; without a bound the least ratio or the largest difference.
    """
    if pairs not in ("worst", "all"):
        raise ValueError(f"pairs={pairs!r} must be 'worst' or 'all'.")
    columns = report.columns.tolist()
    by = [c for c in columns[: columns.index("n_rows")] if c not in ("goal", "of", "on")]
    unit, parts = Report.read(report).rows(report["goal"])
    if unit == "rows":  # a goal is a run of rows with the same text
        parts["number"] = (parts["declared"] != parts["declared"].shift()).cumsum()
    parts["part"] = [
        "" if all(value == ALL for value in values) else ", ".join(map(value_text, values))
        for values in report[by].to_numpy(dtype=object)
    ]
    order = _worst_first(report, parts)
    if pairs == "worst":
        order = order[~(order.duplicated(["number", "part"]) & order["over_pairs"])]
        parts = parts.loc[sorted(order.index)]
        parts["group"] = parts["group"].where(~parts["over_pairs"], "worst: " + parts["group"])
    panels: Panels = {}
    for _, rows in parts.groupby("number", sort=False):
        if len(rows) > LONG:
            of_all = (rows["part"] == "") & (rows["group"] == "")
            groups = set(rows.index[~of_all])
            rows = rows.loc[[*rows.index[of_all], *(k for k in order.index if k in groups)]]
        scale = _scale_of_goal(report.iloc[rows.index], rows)
        goal, names = rows["declared"].iloc[0], []
        for row in rows.to_dict("records"):  # empty if it is all of the goal
            of_side = not row["group"] and row["label"] != row["declared"]  # of an absolute value
            side = row["label"].removeprefix(row["declared"]).strip(" ()") if of_side else ""
            names.append(", ".join(filter(None, [row["group"], side, row["part"]])))
        lines = [
            Line(name or goal, row, not name) for row, name in zip(rows.index, names, strict=True)
        ]
        heading = [Line(goal, None, True)] * bool(names[0])
        panels.setdefault(scale, []).append([*heading, *lines])
    return panels


def _worst_first(report: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
    """Return the parts by verdict and slack; without a bound, the largest value first.

    Of ratios without a bound, the least is first.
    """
    sign = np.where(parts["form"] == "ratio", 1.0, -1.0)
    slack = sign * report["value"].to_numpy(dtype=float)
    if "slack" in report:
        bounded = report["bound"].notna()
        slack = np.where(bounded, report["slack"].to_numpy(dtype=float, na_value=np.nan), slack)
    verdict = [_WORST_FIRST.index(word) for word in read_verdicts(report)]
    order = parts.assign(verdict=verdict, slack=slack)
    return order.sort_values(["verdict", "slack"], kind="stable")


def _scale_of_goal(report: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Return the scale of a goal's values, by its form and where they lie."""
    goal, forms = parts["declared"].iloc[0], set(parts["form"])
    if goal == ESTIMATES:
        return ESTIMATES
    if "ratio" in forms:
        return "ratio"
    if "amount" in forms:
        return goal
    columns = [c for c in ("value", "ci_low", "ci_high", "bound") if c in report]
    values = report[columns].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    if "difference" in forms or ((values < 0).any() and (abs(values) <= 1).all()):
        return "difference"
    return "rate" if (values <= 1).all() and (values >= 0).all() else goal


def axis_of(scale: str, report: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis of a panel, which are round."""
    columns = [name for name in ("value", "ci_low", "ci_high", "bound") if name in report]
    values = report[columns].to_numpy(dtype=float)
    least, most = (end(values[np.isfinite(values)], initial=0.0) for end in (np.min, np.max))
    if scale == "rate":
        return 0.0, next((end for end in SMALL if end >= most), 1.0)
    if scale == "ratio":
        bound = report["bound"].max() if "bound" in report else np.nan
        largest = np.nanmax([bound, report["value"].max(), 0.0])
        return 0.0, max(1.25, min(2.0, largest), 1.5 * np.nan_to_num(bound))
    step = (most - least) / 4 or 1.0
    power = 10.0 ** np.floor(np.log10(step))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= 0.999 * step)
    low, high = step * np.floor(least / step), step * np.ceil(most / step)
    return float(low), float(high if high > low else low + step)


def of_goals(report: pd.DataFrame) -> pd.DataFrame:
    """Return the report with the column `goal`, and values out of fold if it has them."""
    if "cross_fitted" in report:
        report = report.assign(value=report["cross_fitted"])
    return report if "goal" in report else report.rename(columns={"constraint": "goal"})


def estimates_table(estimates: Mapping[str, Any], confidence_level: float) -> pd.DataFrame:
    """Estimates of policies, or their differences, as a report."""
    rows = []
    for name, estimate in estimates.items():
        names = "effective_sample_size", "n_accepted", "n_events"
        sizes = [n for size in names if (n := getattr(estimate, size, None)) is not None]
        ends = estimate.interval(confidence_level)
        rows.append((ESTIMATES, str(name), sizes[-1], sizes[0], estimate.mean_reward, *ends))
    columns = ["goal", "policy", "n_rows", "effective_n", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)


def figures_of(row: Mapping[str, Any] | pd.Series) -> str:
    """Return value and interval as text."""
    if row["n_rows"] == 0:
        return "not measured"
    if np.isnan(row["value"]):
        return "undefined"
    ends = [row["ci_low"], row["ci_high"]] if "ci_low" in row else []
    interval = f" [{', '.join(map(number_text, ends))}]" if np.isfinite(ends).any() else ""
    return f"{number_text(row['value'])}{interval}"


def number_text(value: float) -> str:
    """Write three decimals, or four digits if large; what differs by rounding reads the same."""
    if np.isnan(value):
        return "not known"
    value = round(value, 9)
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.4g}"
