"""Displays of reports, one row per constraint, rate or group: its value with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.constrained import constraint_report
from skbandit.evaluation import rate_report
from skbandit.evaluation._rate_report import count_text, read_verdicts
from skbandit.inspection import _report_lines as lines
from skbandit.inspection import _report_panels as panels
from skbandit.inspection import _style
from skbandit.measure import Report
from skbandit.utils._validation import text_of_shares

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class RateReportDisplay:
    """The values of a report, with their intervals and bounds.

    Create it with `from_predictions`, or with `from_report` of an existing report.

    Parameters
    ----------
    report : DataFrame
        Returned by `rate_report` or `constraint_report`; or `constraint_report_`, of which all
        that is satisfied is shown as undecided if it has no intervals.

    Attributes
    ----------
    drawn_ : DataFrame
        The rows that are drawn, in the order from the top.
    ax_ : matplotlib Axes
        The axes that hold the panels.
    axes_ : list of matplotlib Axes
        The panels: rates from 0 to 1, ratios, differences, and one for each amount, such as a mean
        cost. What follows has an entry per panel.
    figure_ : matplotlib Figure
        The figure of the plot.
    met_ : list of matplotlib Line2D
        Values of satisfied constraints, as dots.
    missed_ : list of matplotlib Line2D
        Values of violated constraints, as crosses.
    undecided_ : list of matplotlib Line2D
        Values whose interval contains the bound, as circles.
    unbounded_ : list of matplotlib Line2D
        Values of rates without a bound, as diamonds.
    intervals_ : list of matplotlib LineCollection or None
        Confidence intervals, cut where they leave the panel, with an arrow.
    bounds_ : list of matplotlib LineCollection or None
        Bounds of constraints, as upright strokes.
    margins_ : list of matplotlib LineCollection or None
        Bounds tightened by the margin that a classifier's `confidence_level` requires, in gray.

    See Also
    --------
    skbandit.evaluation.rate_report : Returns such a report.
    ConstraintReportDisplay : Evaluates the constraints of a fitted model, and draws them.

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
    >>> [label.get_text().strip() for label in display.axes_[0].get_yticklabels()][:3]
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
        ax: Axes | None = None,
        pairs: str = "worst",
        **options: Any,
    ) -> Self:
        """Report on given predictions and draw the report.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels of any classifier.
        goals : rate, constraint, list of these, or dict of str to rate or constraint
            What to measure.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        pairs : {"worst", "all"}, default="worst"
            What to draw of a goal over pairs of groups: the pair with the worst verdict and the
            least slack, or all.
        **options : dict
            `by`, `attributes`, `sample_weight`, `groups`, `labels`, ..., as in
            `skbandit.evaluation.rate_report`.

        Returns
        -------
        RateReportDisplay
        """
        report = rate_report(y_true, y_pred, goals, **options)
        return cls.from_report(report, ax=ax, pairs=pairs)

    @classmethod
    def from_report(
        cls, report: pd.DataFrame, *, ax: Axes | None = None, pairs: str = "worst"
    ) -> Self:
        """Draw an existing report.

        Parameters
        ----------
        report : DataFrame
            Returned by `rate_report` or `constraint_report`; or `constraint_report_`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        pairs : {"worst", "all"}, default="worst"
            What to draw of a goal over pairs of groups: the pair with the worst verdict and the
            least slack, or all.

        Returns
        -------
        RateReportDisplay
        """
        return cls(report).plot(ax, pairs=pairs)

    @classmethod
    def from_estimates(
        cls,
        estimates: Mapping[str, Any],
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
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
        return cls.from_report(lines.estimates_table(estimates, confidence_level), ax=ax)

    def plot(self, ax: Axes | None = None, *, pairs: str = "worst") -> Self:
        """Draw the report.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure with a height for all rows.
        pairs : {"worst", "all"}, default="worst"
            What to draw of a goal over pairs of groups: the pair with the worst verdict and the
            least slack, or all.

        Returns
        -------
        RateReportDisplay
            This display.
        """
        report = lines.of_goals(self.report)
        of_scale = lines.panels_of(report, pairs)
        layouts = [panels.Layout.of(goals) for goals in of_scale.values()]
        depths = [layout.depth for layout in layouts]
        height = max(1.0, sum(depths) + panels.PANEL_GAP * (len(depths) - 1))
        shares = Report.read(self.report).decisions
        below = _style.wrap(text_of_shares(shares), 72) if shares else ""
        size = 7.6, 1.0 + 0.21 * height + 0.18 * len(below.splitlines())
        self.ax_ = _style.get_axes(ax, f"{type(self).__name__}.plot", size)
        self.ax_.set_axis_off()
        verdict = read_verdicts(report)
        columns = {"value [interval]": [lines.figures_of(row) for _, row in report.iterrows()]}
        bound = report.get("bound", pd.Series(np.nan, report.index)).astype(float)
        if bound.notna().any():
            columns["bound"] = ["" if np.isnan(x) else f"{x:g}" for x in bound]
        if "effective_n" in report:
            columns["rows"] = [count_text(rows) for rows in report["effective_n"]]
        value = report["value"].to_numpy(dtype=float)
        margin = report.get("margin", pd.Series(0.0, report.index)).astype(float)
        above = (report["value"] - bound) * report.get("slack", 0.0) >= 0  # the side of the slack
        margins = (bound + margin.where(above, -margin)).where(margin != 0)
        ends = report[["ci_low", "ci_high"]].to_numpy(dtype=float).T if "ci_low" in report else ()
        self.axes_, self.bounds_, self.margins_, drawn, top = [], [], [], [], height
        for scale, layout in zip(of_scale, layouts, strict=True):
            place = 0.0, (top - layout.depth) / height, 1.0, layout.depth / height
            axes = self.ax_.inset_axes(place)
            top -= layout.depth + panels.PANEL_GAP
            self.bounds_.append(panels.draw_strokes(axes, bound, layout, "black"))
            self.margins_.append(panels.draw_strokes(axes, margins, layout, "#888888"))
            limits = lines.axis_of(scale, report.iloc[layout.rows])
            drawn.append(panels.draw_rows(axes, layout, verdict, value, ends, columns, limits))
            axes.set_xlabel(scale if scale in lines.FORMS else "", fontsize="small")
            if scale == "difference":
                axes.axvline(0.0, color="#999999", linewidth=0.8, zorder=0)
            self.axes_.append(axes)
        shown = [row for layout in layouts for row in layout.rows]
        if self.axes_:
            names = [name for layout in layouts for name in layout.names]
            panels.write_head(self.axes_, columns, names, [verdict[row] for row in shown])
        self.met_, self.missed_, self.undecided_, self.unbounded_ = (
            [marks[k] for marks, _ in drawn] for k in range(len(panels.MARKS))
        )
        self.intervals_ = [intervals for _, intervals in drawn]
        if below:
            self.ax_.annotate(
                below, (0.0, 0.0), xytext=(0, -34), xycoords="axes fraction", va="top",
                textcoords="offset points", fontsize="small", annotation_clip=False,
            )  # fmt: skip
        self.drawn_ = self.report.iloc[shown].reset_index(drop=True)
        self.figure_ = self.ax_.figure
        return self


class ConstraintReportDisplay(RateReportDisplay):
    """The constraints of a fitted model: values, intervals and bounds.

    Create it with `from_estimator`, or with `from_report` of an existing report. It is drawn as,
    and has the attributes of, `RateReportDisplay`.

    Parameters
    ----------
    report : DataFrame
        Returned by `constraint_report`; or `constraint_report_`, of which all that is satisfied
        is shown as undecided if it has no intervals.

    See Also
    --------
    RateReportDisplay : Draws the rates of any predictions.
    skbandit.constrained.constraint_report : Returns such a report.

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
    >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
    ['recall() >= 0.95', 'false_positive_rate() <= 0.1']
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        pairs: str = "worst",
        **rows: Any,
    ) -> Self:
        """Evaluate a fitted model on any data and draw its report.

        Parameters
        ----------
        estimator : model with declared constraints, Pipeline that ends with one, or search
            Fitted; see `skbandit.constrained.constraint_report`.
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels; None or missing entries mean unlabeled.
        confidence_level : float, default=0.95
            Nominal coverage of each interval.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        pairs : {"worst", "all"}, default="worst"
            As in `plot`.
        **rows : dict
            `sample_weight`, `attributes`, `X_extra`, ..., as in
            `skbandit.constrained.constraint_report`.

        Returns
        -------
        ConstraintReportDisplay
        """
        report = constraint_report(estimator, X, y, confidence_level=confidence_level, **rows)
        return cls.from_report(report, ax=ax, pairs=pairs)
