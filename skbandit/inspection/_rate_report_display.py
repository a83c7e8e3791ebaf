"""Display of a rate report: values with confidence intervals, by goal and group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skbandit.evaluation import rate_report
from skbandit.evaluation._rate_report import ALL, count_text
from skbandit.inspection._style import (
    BLUE,
    VERMILLION,
    axes_or_new,
    check_axes,
    read_table,
    wrapped,
    write_figures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


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
            The positive class.
        confidence_level : float, default=0.95
            Nominal coverage of each interval.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        RateReportDisplay
        """
        check_axes(ax, "RateReportDisplay.from_predictions")
        report = rate_report(
            y_true,
            y_pred,
            goals,
            by=by,
            attributes=attributes,
            sample_weight=sample_weight,
            pos_label=pos_label,
            confidence_level=confidence_level,
        )
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
        optional = ["bound"] if "bound" in getattr(self.report, "columns", ()) else []
        report = read_table(self.report, "report", [*numbers, *optional], ["goal"])
        names = _names(report)
        lines = sum(1 + name.count("\n") for name in names)
        axes = axes_or_new(ax, "RateReportDisplay.plot", (7.0, 1.1 + 0.17 * (len(names) + lines)))
        place = np.arange(len(names))
        # a constraint whose verdict is missing is drawn as a rate
        missed = np.zeros(len(report), dtype=bool)
        if "satisfied" in report:
            missed = ~report["satisfied"].astype("boolean").fillna(True).to_numpy(dtype=bool)
        values = report["value"].to_numpy()
        colors = np.where(missed, VERMILLION, BLUE)
        finite = report[["ci_low", "ci_high"]].replace([-np.inf, np.inf], np.nan)
        known = finite.notna().all(axis=1).to_numpy()
        self.intervals_ = axes.hlines(
            place[known], *finite[known].to_numpy().T, color=colors[known], linewidth=1.5
        )
        (self.met_,) = axes.plot(values[~missed], place[~missed], "o", color=BLUE, markersize=5)
        (self.missed_,) = axes.plot(
            values[missed], place[missed], "X", color=VERMILLION, markersize=7, zorder=3
        )
        self.bounds_ = None
        if optional and (bounded := report["bound"].notna().to_numpy()).any():
            at = place[bounded]
            self.bounds_ = axes.vlines(
                report["bound"][bounded], at - 0.25, at + 0.25, color="black"
            )
        texts = [
            f"{row.value:.3f} (n = {count_text(row.effective_n)})" if row.n_rows else "not measured"
            for row in report.itertuples()
        ]
        write_figures(axes, texts)
        axes.set_yticks(place, names)
        axes.set_ylim(len(names) - 0.5, -0.75)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("value, with its interval (n: rows in the denominator)")
        self.ax_, self.figure_ = axes, axes.figure
        return self


def _names(report: pd.DataFrame) -> list[str]:
    """The goal for all rows of data, and the group below it."""
    columns = report.columns.tolist()
    groups = report[[c for c in columns[: columns.index("n_rows")] if c != "goal"]]
    return [
        wrapped(goal if all(value == ALL for value in group) else ", ".join(map(str, group)), 40)
        for goal, group in zip(report["goal"], groups.to_numpy(dtype=object), strict=True)
    ]
