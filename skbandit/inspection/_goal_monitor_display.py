"""Display of a watched goal over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from skbandit.evaluation import GoalMonitor
from skbandit.inspection import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class GoalMonitorDisplay:
    """Goal over time: its value, the interval that holds at all times, and its bound.

    Create it with `from_monitor`.

    Parameters
    ----------
    history : DataFrame
        Returned by `GoalMonitor.history`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the plot.
    line_ : matplotlib Line2D
        The value on all rows until then.
    interval_ : matplotlib PolyCollection
        The interval.
    bound_ : matplotlib Line2D
        The bound.
    seen_ : matplotlib Line2D or None
        The value that would raise an alarm within 30 days in about half of all cases.
    alarm_ : matplotlib Line2D or None
        The time of the alarm, if there was one.
    since_ : matplotlib Polygon or Rectangle, or None
        The periods whose rows raised it, which the value on all rows may hide.

    See Also
    --------
    skbandit.evaluation.GoalMonitor : Watches goals.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.evaluation import GoalMonitor
    >>> from skbandit.inspection import GoalMonitorDisplay
    >>> from skbandit.rates import positive_rate
    >>> monitor = GoalMonitor(positive_rate() <= 0.3)
    >>> day = np.repeat(np.arange("2026-03-01", "2026-03-21", dtype="datetime64[D]"), 40)
    >>> monitor.update(np.arange(800) % 10 < np.where(np.arange(800) < 400, 2, 6), time=day)
    >>> display = GoalMonitorDisplay.from_monitor(monitor)
    >>> display.ax_.get_ylabel(), display.alarm_ is None
    ('positive_rate() <= 0.3', False)
    """

    def __init__(self, history: pd.DataFrame) -> None:
        self.history = history

    @classmethod
    def from_monitor(
        cls,
        monitor: GoalMonitor,
        *,
        goal: str | int | None = None,
        on: str | None = None,
        ax: Axes | None = None,
    ) -> GoalMonitorDisplay:
        """Draw one goal of a monitor.

        Parameters
        ----------
        monitor : GoalMonitor
            It has counted rows.
        goal : str or int, default=None
            As in its report, or the number of the row there; None is the first.
        on : str, default=None
            As in its report; None is the first there.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        Returns
        -------
        GoalMonitorDisplay
        """
        return cls(monitor.history(goal, on)).plot(ax)

    def plot(
        self, ax: Axes | None = None, *, line_kw: dict[str, Any] | None = None
    ) -> GoalMonitorDisplay:
        """Draw the goal.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        line_kw : dict, default=None
            Passed to ``Axes.plot`` for the value.

        Returns
        -------
        GoalMonitorDisplay
            This display.
        """
        axes = _style.get_axes(ax, "GoalMonitorDisplay.plot")
        style = _style.LINE | {"color": _style.BLUE, "label": "all rows until then"}
        style |= _style.full_names(line_kw)
        table = self.history
        time, ends = table["time"], (table["ci_low"], table["ci_high"])
        single = len(table) == 1  # a point, which has no line
        band = {"color": _style.BLUE, "alpha": 0.2, "linewidth": 6 if single else 0}
        style |= {"marker": "o"} if single else {}
        self.interval_ = axes.fill_between(time, *ends, label="interval at all times", **band)
        (self.line_,) = axes.plot(time, table["value"], **style)
        self.bound_ = axes.axhline(
            table["bound"].iloc[0], color=_style.DARK, linestyle="--", linewidth=1, label="bound"
        )
        self.alarm_ = self.since_ = self.seen_ = None
        if not pd.isna(seen := table.attrs.get("seen_in_30_days", float("nan"))):
            style = {"color": _style.DARK, "linestyle": ":", "linewidth": 1}
            self.seen_ = axes.axhline(seen, label="would be seen in 30 days", **style)
        if table["alarm"].any():
            at = time[table["alarm"]].iloc[0]
            self.alarm_ = axes.axvline(at, color=_style.VERMILLION, linewidth=1.3, label="alarm")
            if (since := table.attrs.get("since")) is not None:
                shade = {"color": _style.VERMILLION, "alpha": 0.1, "linewidth": 0}
                value = table.attrs.get("value_since", float("nan"))
                label = f"violated since, at {value:.3g}"
                self.since_ = axes.axvspan(since, at, label=label, **shade)
        on = table.attrs.get("on", "all")
        title = table.attrs.get("goal", "") + ("" if on == "all" else f", {on}")
        axes.set_ylabel(_style.wrap(title))
        axes.figure.autofmt_xdate()
        axes.legend(**_style.ABOVE)
        self.ax_, self.figure_ = axes, axes.figure
        return self
