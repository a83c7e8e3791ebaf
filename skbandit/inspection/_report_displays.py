"""Displays of reports, one row per constraint, rate or group: its value with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.constrained import constraint_report
from skbandit.evaluation import rate_report
from skbandit.evaluation._rate_report import ALL, count_text, read_verdicts, slack_of_interval
from skbandit.inspection import _style
from skbandit.inspection._style import BLUE, GRAY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

UNDECIDED = "undecided"


class ConstraintReportDisplay:
    """The slack of each constraint, with its confidence interval.

    Create it with `from_estimator`, or with `from_report` of an existing report.

    Parameters
    ----------
    report : DataFrame
        Returned by `constraint_report`; or `constraint_report_`, of which all that is satisfied
        is shown as undecided if it has no intervals.

    Attributes
    ----------
    drawn_ : DataFrame
        The rows that are drawn: of two groups compared either way round, the one with less slack.
    ax_ : matplotlib Axes
        The axes of the plot; the first constraint is at the top.
    figure_ : matplotlib Figure
        The figure of the plot.
    bound_ : matplotlib Line2D
        The line of zero slack, where every bound lies.
    met_ : matplotlib Line2D
        Slacks of satisfied constraints, as dots.
    missed_ : matplotlib Line2D
        Slacks of violated constraints, as crosses.
    undecided_ : matplotlib Line2D
        Slacks whose interval contains 0, or without an interval, as circles.
    intervals_ : matplotlib LineCollection or None
        Confidence intervals, in the order of the constraints.
    margins_ : matplotlib LineCollection or None
        The slack that a classifier's `confidence_level` requires, as upright strokes.
    beyond_ : matplotlib Line2D
        Arrowheads at the right edge, for constraints with so much slack that they would compress
        the others.

    See Also
    --------
    skbandit.ConstrainedRampClassifier.constraint_report : Returns such a report.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbandit import ConstrainedRampClassifier
    >>> from skbandit.inspection import ConstraintReportDisplay
    >>> from skbandit.rates import false_positive_rate, recall
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> goals = [recall() >= 0.95, false_positive_rate() <= 0.1]
    >>> clf = ConstrainedRampClassifier(constraints=goals).fit(X[::2], y[::2])
    >>> display = ConstraintReportDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['recall() >= 0.95', 'false_positive_rate() <= 0.1']
    """

    def __init__(self, report: pd.DataFrame) -> None:
        self.report = report

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        **rows: Any,
    ) -> ConstraintReportDisplay:
        """Evaluate a fitted classifier on any data and draw its report.

        Parameters
        ----------
        estimator : classifier with declared constraints, Pipeline that ends with one, or search
            Fitted; see `skbandit.constrained.constraint_report`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries mean unlabeled.
        confidence_level : float, default=0.95
            Nominal coverage of each interval.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        **rows : dict
            `sample_weight`, `attributes`, `X_extra`, ..., as in
            `skbandit.constrained.constraint_report`.

        Returns
        -------
        ConstraintReportDisplay
        """
        report = constraint_report(estimator, X, y, confidence_level=confidence_level, **rows)
        return cls.from_report(report, ax=ax)

    @classmethod
    def from_report(
        cls, report: pd.DataFrame, *, ax: Axes | None = None
    ) -> ConstraintReportDisplay:
        """Draw an existing report.

        Parameters
        ----------
        report : DataFrame
            Returned by `constraint_report`; or `constraint_report_`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        ConstraintReportDisplay
        """
        return cls(report).plot(ax)

    def plot(self, ax: Axes | None = None) -> ConstraintReportDisplay:
        """Draw the report.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure with a height for all constraints.

        Returns
        -------
        ConstraintReportDisplay
            This display.
        """
        self.drawn_ = report = _read_report(self.report)
        names = [_style.wrap(name, 40) for name in report["constraint"]]
        axes = _row_axes(ax, names, "ConstraintReportDisplay.plot")
        slack, place = report["slack"].to_numpy(), np.arange(len(names))
        verdict = np.array(read_verdicts(report), dtype=object)
        ends = slack_of_interval(report) if "ci_low" in report else ()
        reach = np.abs([slack, *ends]).max(axis=0)
        # show small differences rather than the constraint with most slack
        edge = 3 * np.median(reach[np.isfinite(reach)]) if np.isfinite(reach).any() else np.inf
        beyond = slack > edge

        self.bound_ = axes.axvline(0.0, color="black", linewidth=1)
        self.margins_ = None
        if "margin" in report:
            self.margins_ = _draw_strokes(axes, report["margin"], place)
        texts = [
            _describe(row, one) for (_, row), one in zip(report.iterrows(), verdict, strict=True)
        ]
        self.met_, self.missed_, self.undecided_, self.intervals_ = _draw_rows(
            axes, names, texts, np.where(beyond, np.nan, slack), ends, verdict
        )
        if beyond.any():
            axes.set_xlim(right=edge)
        (self.beyond_,) = axes.plot(
            np.full(beyond.sum(), edge), place[beyond], ">", color=BLUE, clip_on=False
        )
        # an unclipped line without points would reserve space up to the corner of the figure
        self.beyond_.set_in_layout(False)
        axes.set_xlabel("← missed    slack    met →")
        self.ax_, self.figure_ = axes, axes.figure
        return self


class RateReportDisplay:
    """The values of a rate report, with their intervals and bounds.

    Create it with `from_predictions`, or with `from_report` of an existing report.

    Parameters
    ----------
    report : DataFrame
        Returned by `rate_report`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot; the first row of the report is at the top.
    figure_ : matplotlib Figure
        The figure of the plot.
    met_ : matplotlib Line2D
        Values of rates and of satisfied constraints, as dots.
    missed_ : matplotlib Line2D
        Values of violated constraints, as crosses.
    undecided_ : matplotlib Line2D
        Values whose interval contains the bound, as circles.
    intervals_ : matplotlib LineCollection
        Confidence intervals.
    bounds_ : matplotlib LineCollection or None
        Bounds of constraints, as upright strokes.

    See Also
    --------
    skbandit.evaluation.rate_report : Returns such a report.
    ConstraintReportDisplay : Draws slacks, of a classifier's own constraints.

    Examples
    --------
    >>> from skbandit.inspection import RateReportDisplay
    >>> from skbandit.rates import positive_rate, recall
    >>> y_true, y_pred = [1, 1, 0, 0] * 25, [1, 0, 0, 0] * 15 + [1, 1, 1, 0] * 10
    >>> display = RateReportDisplay.from_predictions(
    ...     y_true,
    ...     y_pred,
    ...     [recall() >= 0.6, positive_rate()],
    ...     by="sex",
    ...     attributes={"sex": ["F"] * 60 + ["M"] * 40},
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][:3]
    ['recall() >= 0.6', 'F', 'M']
    """

    def __init__(self, report: pd.DataFrame) -> None:
        self.report = report

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike,
        goals: Any | Iterable[Any] | Mapping[str, Any],
        *,
        by: Any = None,
        attributes: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> RateReportDisplay:
        """Report on given predictions and draw the report.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels of any classifier.
        goals : rate, constraint, list of these, or dict of str to rate or constraint
            What to measure.
        by : str, list of str, Series, array or DataFrame, default=None
            Attribute columns of the groups, or the groups themselves.
        attributes : DataFrame or dict of arrays, default=None
            Columns that `by` and the goals refer to.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        pos_label : label, default=None
            The class of rates without `of`.
        labels : array-like, default=None
            All classes and other decisions that may occur.
        confidence_level : float, default=0.95
            Nominal coverage of each interval.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        RateReportDisplay
        """
        _style.check_axes(ax, "RateReportDisplay.from_predictions")
        report = rate_report(
            y_true, y_pred, goals, by=by, attributes=attributes, sample_weight=sample_weight,
            pos_label=pos_label, labels=labels, confidence_level=confidence_level,
        )  # fmt: skip
        return cls.from_report(report, ax=ax)

    @classmethod
    def from_report(cls, report: pd.DataFrame, *, ax: Axes | None = None) -> RateReportDisplay:
        """Draw an existing report.

        Parameters
        ----------
        report : DataFrame
            Returned by `rate_report`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        RateReportDisplay
        """
        return cls(report).plot(ax)

    @classmethod
    def from_estimates(
        cls,
        estimates: Mapping[str, Any],
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> RateReportDisplay:
        """Draw the mean rewards of several policies, or their differences.

        Parameters
        ----------
        estimates : dict of str to OffPolicyEstimate, ReplayResult or PolicyDifference
            Estimates by the names of the policies.
        confidence_level : float, default=0.95
            Nominal coverage of each interval. Whether two policies differ is seen from the
            interval of their difference, ``a - b``, not from whether theirs overlap.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        RateReportDisplay
        """
        rows = []
        for name, one in estimates.items():
            effective = getattr(one, "effective_sample_size", getattr(one, "n_accepted", None))
            ends = one.interval(confidence_level)
            effective = one.n_events if effective is None else effective
            rows.append((str(name), one.n_events, effective, one.mean_reward, *ends))
        columns = ["goal", "n_rows", "effective_n", "value", "ci_low", "ci_high"]
        display = cls.from_report(pd.DataFrame(rows, columns=columns), ax=ax)
        display.ax_.set_xlabel("mean reward, with its interval (n: events in effect)")
        return display

    def plot(self, ax: Axes | None = None) -> RateReportDisplay:
        """Draw the report.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure with a height for all rows.

        Returns
        -------
        RateReportDisplay
            This display.
        """
        numbers = ["n_rows", "effective_n", "value", "ci_low", "ci_high"]
        report = _style.read_table(self.report, "report", numbers, ["goal"], optional=["bound"])
        names = _name_rows(report)
        axes = _row_axes(ax, names, "RateReportDisplay.plot")
        if "satisfied" in report:
            _style.read_flags(report, "report", "satisfied")
        verdict = np.array(read_verdicts(report), dtype=object)
        self.bounds_ = None
        if "bound" in report and (bounded := report["bound"].notna()).any():
            self.bounds_ = _draw_strokes(axes, report["bound"][bounded], np.flatnonzero(bounded))
        texts = [
            f"{row.value:.3f} (n = {count_text(row.effective_n)}){_suffix(row.value, one)}"
            if row.n_rows
            else "not measured"
            for row, one in zip(report.itertuples(), verdict, strict=True)
        ]
        ends = report[["ci_low", "ci_high"]].to_numpy().T
        self.met_, self.missed_, self.undecided_, self.intervals_ = _draw_rows(
            axes, names, texts, report["value"].to_numpy(), ends, verdict
        )
        axes.set_xlabel("value, with its interval (n: rows in the denominator)")
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _row_axes(ax: Any, names: list[str], caller: str) -> Any:
    """The given axes, or those of a new figure with a height for all names."""
    lines = sum(1 + name.count("\n") for name in names)
    return _style.get_axes(ax, caller, (7.8, 1.1 + 0.2 * (len(names) + lines)))


def _draw_strokes(axes: Any, values: pd.Series, place: np.ndarray) -> Any:
    """Draw an upright stroke at a value of each row."""
    return axes.vlines(values, place - 0.25, place + 0.25, color="black")


def _draw_rows(
    axes: Any, names: list[str], texts: list[str], values: Any, ends: Any, verdict: np.ndarray
) -> tuple[Any, Any, Any, Any]:
    """Draw rows from the top down: name, value as a mark, interval, and text above it.

    Returns the dots, the crosses of what is violated, the circles of what is undecided, and the
    intervals, which are None if `ends` is empty.
    """
    place, intervals = np.arange(len(names)), None
    missed, open_ = verdict == "violated", verdict == UNDECIDED
    met = ~missed & ~open_ & ~np.isnan(values)
    if len(ends):
        color = np.select([missed, open_], [VERMILLION, GRAY], BLUE)
        ends = np.where(np.isfinite(ends).all(axis=0), ends, np.nan)
        intervals = axes.hlines(place, *ends, color=color, linewidth=1.5)
    (dots,) = axes.plot(values[met], place[met], "o", color=BLUE, markersize=5)
    (crosses,) = axes.plot(
        values[missed], place[missed], "X", color=VERMILLION, markersize=7, zorder=3
    )
    hollow = {"color": GRAY, "markerfacecolor": "white", "markersize": 6, "zorder": 3}
    (circles,) = axes.plot(values[open_], place[open_], "o", **hollow)
    # x in widths of the axes, y in rows; inside of the axes, so that no text covers a neighbor, and
    # on the side away from the mark; a line behind the text is interrupted
    style = {
        "transform": axes.get_yaxis_transform(), "fontsize": "small", "in_layout": False,
        "bbox": {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 0.5},
    }  # fmt: skip
    middle = np.mean(axes.get_xlim())
    for row, text in enumerate(texts):
        x, side = (0.985, "right") if values[row] < middle else (0.015, "left")
        axes.text(x, row - 0.14, text, ha=side, va="bottom", clip_on=True, **style)
    axes.set_yticks(place, names)
    axes.set_ylim(len(names) - 0.5, -0.75)
    axes.tick_params(axis="y", length=0)
    return dots, crosses, circles, intervals


def _read_report(report: Any) -> pd.DataFrame:
    """The validated report; its values, as its slacks, are out of fold if the report has them."""
    columns = getattr(report, "columns", ())
    if "cross_fitted" in columns:
        report = report.assign(value=report["cross_fitted"])
    has_interval = "ci_low" in columns or "ci_high" in columns
    numbers = ["n_rows", "bound", "value", "slack", *["ci_low", "ci_high"] * has_interval]
    report = _style.read_table(report, "report", numbers, ["constraint", "satisfied"], ["margin"])
    # missing if the value is undefined
    satisfied = _style.read_flags(report, "report", "satisfied") != 0
    report = report.assign(constraint=list(map(str, report["constraint"])), satisfied=satisfied)
    return _drop_mirrored(report)


def _drop_mirrored(report: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of groups, compared either way round, the row with less slack.

    The other one says the same: a difference is negated, a ratio inverted. A missing slack stays.
    """
    if report.empty:
        return report
    texts = report["constraint"].astype(object)
    if "of" in report:  # groups are compared within each class, which is named last
        texts = pd.Series(
            [
                f"{of}: {text.removesuffix(f', {of}]')}]" if text.endswith(f", {of}]") else text
                for text, of in zip(texts, report["of"], strict=True)
            ],
            dtype=object,
        )
    parts = texts.str.extract(r"^(.*) \[(.+) ([/-]) (.+)\]$")
    slack, value = report["slack"] - report.get("margin", 0.0), report["value"].to_numpy()
    first: dict[tuple[str, ...], int] = {}
    kept = []
    for k in slack.fillna(-np.inf).argsort(kind="stable"):
        declared, one, joint, other = parts.iloc[k]
        is_pair = isinstance(declared, str)
        j = first.setdefault((declared, joint, *sorted((one, other))) if is_pair else (str(k),), k)
        both = value[j] * value[k] - 1.0 if joint == "/" else value[j] + value[k]
        # beyond rounding, these are two groups whose names look like pairs
        if j == k or abs(both) > 1e-6:
            kept.append(k)
    return report.iloc[sorted(kept)].reset_index(drop=True)


def _suffix(value: Any, verdict: str) -> str:
    return f", {UNDECIDED}" if verdict == UNDECIDED and not np.isnan(value) else ""


def _describe(row: pd.Series, verdict: str) -> str:
    """Value, interval and bound as text, and whether the verdict is open."""
    if row["n_rows"] == 0:
        return "not measured"
    if np.isnan(row["value"]):
        return "undefined"
    interval = f" [{row['ci_low']:.3f}, {row['ci_high']:.3f}]" if "ci_low" in row else ""
    margin = f", margin {row['margin']:.3f}" if "margin" in row else ""
    figures = f"{row['value']:.3f}{interval}, bound {row['bound']:g}{margin}"
    return figures + _suffix(row["value"], verdict)


def _name_rows(report: pd.DataFrame) -> list[str]:
    """The goal for all rows of data, and the group below it."""
    columns = report.columns.tolist()
    groups = report[[c for c in columns[: columns.index("n_rows")] if c not in ("goal", "of")]]
    names, above = [], None
    for goal, group in zip(report["goal"], groups.to_numpy(dtype=object), strict=True):
        parts = [] if all(value == ALL for value in group) else [*map(str, group)]
        names.append(_style.wrap(", ".join(parts if goal == above else [goal, *parts]), 40))
        above = goal
    return names
