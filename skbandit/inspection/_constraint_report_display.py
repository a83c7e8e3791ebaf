"""Display of a constraint report: slacks with confidence intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.constrained import ExtraData, constraint_report
from skbandit.inspection._style import (
    BLUE,
    VERMILLION,
    axes_or_new,
    read_flags,
    read_table,
    wrapped,
    write_figures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class ConstraintReportDisplay:
    """The slack of each constraint, with its confidence interval.

    Create it with `from_estimator`, or with `from_report` of an existing report.

    Parameters
    ----------
    report : DataFrame
        Returned by `constraint_report`; or `constraint_report_`, which has no intervals.

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
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        extra: ExtraData | None = None,
        X_extra: Any = None,
        y_extra: Any = None,
        attributes_extra: Any = None,
        sample_weight_extra: Any = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> ConstraintReportDisplay:
        """Evaluate a fitted classifier on any data and draw its report.

        Parameters
        ----------
        estimator : ConstrainedRampClassifier, ConstrainedThreshold or Pipeline
            A fitted classifier with `constraint_report`, or a Pipeline that ends with one.
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries mean unlabelled.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        attributes : DataFrame or dict of arrays, default=None
            Columns named by constraints.
        extra : ExtraData, default=None
            Rows for rates with ``on="extra"`` or ``"all"``.
        X_extra, y_extra, attributes_extra, sample_weight_extra : default=None
            The parts of `extra`, passed one by one.
        confidence_level : float, default=0.95
            Nominal coverage of each interval.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        ConstraintReportDisplay
        """
        report = constraint_report(
            estimator,
            X,
            y,
            sample_weight=sample_weight,
            attributes=attributes,
            extra=extra,
            X_extra=X_extra,
            y_extra=y_extra,
            attributes_extra=attributes_extra,
            sample_weight_extra=sample_weight_extra,
            confidence_level=confidence_level,
        )
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
        names = [wrapped(name, 40) for name in report["constraint"]]
        lines = sum(1 + name.count("\n") for name in names)
        size = 7.8, 1.1 + 0.2 * (len(names) + lines)
        axes = axes_or_new(ax, "ConstraintReportDisplay.plot", size)
        place = np.arange(len(names))
        slack = report["slack"].to_numpy(dtype=float)
        holds = report["satisfied"].to_numpy()
        ends = _slack_of_interval(report)
        reach = np.abs([slack, *ends]).max(axis=0)
        reach = reach[np.isfinite(reach)]
        # show small differences rather than the constraint with most slack
        edge = 3 * np.median(reach) if len(reach) else np.inf
        beyond = slack > edge

        self.bound_ = axes.axvline(0.0, color="black", linewidth=1)
        self.intervals_ = None
        if ends:
            color = np.where(holds, BLUE, VERMILLION)
            self.intervals_ = axes.hlines(place, *ends, color=color, linewidth=1.5)
        self.margins_ = None
        if "margin" in report:
            self.margins_ = axes.vlines(report["margin"], place - 0.25, place + 0.25, color="black")
        met, missed = holds & ~beyond, ~holds
        (self.met_,) = axes.plot(slack[met], place[met], "o", color=BLUE, markersize=5)
        (self.missed_,) = axes.plot(
            slack[missed], place[missed], "X", color=VERMILLION, markersize=7, zorder=3
        )
        if beyond.any():
            axes.set_xlim(right=edge)
        (self.beyond_,) = axes.plot(
            np.full(beyond.sum(), edge), place[beyond], ">", color=BLUE, clip_on=False
        )
        # a line without points, unclipped, would take the room up to the corner of the figure
        self.beyond_.set_in_layout(False)
        write_figures(axes, [_figure(row) for _, row in report.iterrows()])
        axes.set_yticks(place, names)
        axes.set_ylim(len(names) - 0.5, -0.75)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("← missed    slack    met →")
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _read_report(report: Any) -> pd.DataFrame:
    """The validated report; its values are those out of fold, where it has some, as its slacks."""
    columns = getattr(report, "columns", ())
    if "cross_fitted" in columns:
        report = report.assign(value=report["cross_fitted"])
    optional = [name for name in ("ci_low", "ci_high", "margin") if name in columns]
    if "ci_low" in optional or "ci_high" in optional:
        optional += {"ci_low", "ci_high"}.difference(optional)
    numbers = ["n_rows", "bound", "value", "slack", *optional]
    report = read_table(report, "report", numbers, ["constraint", "satisfied"])
    # missing if the value is undefined
    satisfied = read_flags(report, "report", "satisfied") != 0
    report = report.assign(constraint=list(map(str, report["constraint"])), satisfied=satisfied)
    return _without_mirrored(report)


def _without_mirrored(report: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of groups, compared either way round, the row with less slack.

    The other one says the same: a difference is negated, a ratio inverted. A missing slack stays.
    """
    if report.empty:
        return report
    parts = report["constraint"].astype(object).str.extract(r"^(.*) \[(.+) ([/-]) (.+)\]$")
    kept: dict[tuple[str, ...], int] = {}
    slack = report["slack"] - report["margin"] if "margin" in report else report["slack"]
    room = slack.fillna(-np.inf).to_numpy(dtype=float)
    for k, (declared, one, joint, other) in enumerate(parts.itertuples(index=False)):
        if not isinstance(declared, str):
            kept[(str(k),)] = k
            continue
        key = (declared, joint, *sorted((one, other)))
        kept[key] = min(kept.get(key, k), k, key=lambda row: room[row])
    return report.iloc[sorted(kept.values())].reset_index(drop=True)


def _slack_of_interval(report: pd.DataFrame) -> tuple[np.ndarray, ...]:
    """Ends of the intervals as slacks; empty if the report has no intervals."""
    if "ci_low" not in report:
        return ()
    above = report["value"] - report["bound"]
    # slack is value - bound for >=, bound - value for <=; if both are 0, read the text
    written = report["constraint"].astype(str).str.extract("(<=|>=)", expand=False)
    sign = np.sign(report["slack"] * above)
    sign = sign.where(sign != 0, written.map({">=": 1.0, "<=": -1.0}).astype(float))
    ends = (sign * (report[end] - report["bound"]) for end in ("ci_low", "ci_high"))
    return tuple(end.to_numpy(dtype=float) for end in ends)


def _figure(row: pd.Series) -> str:
    """Value, interval and bound as text."""
    if row["n_rows"] == 0:
        return "not measured"
    if np.isnan(row["value"]):
        return "undefined"
    interval = f" [{row['ci_low']:.3f}, {row['ci_high']:.3f}]" if "ci_low" in row else ""
    margin = f", margin {row['margin']:.3f}" if "margin" in row else ""
    return f"{row['value']:.3f}{interval}, bound {row['bound']:g}{margin}"
