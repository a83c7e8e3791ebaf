"""Panels of reports: names at the left, marks with intervals, columns of numbers at the right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.inspection import _style
from skbandit.inspection._report_lines import UNDECIDED, Line
from skbandit.inspection._style import BLUE, DARK, VERMILLION

MARKS: dict[str, dict[str, Any]] = {
    "met": {"marker": "o", "color": BLUE, "markersize": 6},
    "violated": {"marker": "X", "color": VERMILLION, "markersize": 8},
    UNDECIDED: {
        "marker": "o", "color": DARK, "markersize": 6.5, "markerfacecolor": "white",
        "markeredgewidth": 1.5,
    },
    "": {"marker": "D", "color": DARK, "markersize": 4},
}  # fmt: skip
"""Marks of verdicts, which differ in shape, as colors are lost in print."""

WIDTH, INDENT, PANEL_GAP = 34, "    ", 3.2
"""Letters in a line of names, what groups are indented by, and lines between two panels."""


@dataclass(frozen=True)
class Layout:
    """Names of lines and where they are: y grows downwards, by 1 per line of text."""

    names: list[str]
    ticks: list[float]
    rows: list[int]
    place: np.ndarray
    depth: float

    @classmethod
    def of(cls, goals: Sequence[Sequence[Line]]) -> Layout:
        """From the top down, with some space between goals that have groups."""
        names, ticks, place, depth = [], [], {}, 0.0
        for lines in goals:
            for line in lines:
                indent = "" if line.is_goal else INDENT
                text = _style.wrap(line.text, WIDTH - len(indent))
                names.append(textwrap.indent(text, indent))
                height = 1.25 + text.count("\n")
                ticks.append(depth + height / 2)
                depth += height
                if line.row is not None:
                    place[line.row] = ticks[-1]
            depth += 0.4 * (len(lines) > 1)
        return cls(names, ticks, list(place), np.array([*place.values()]), max(depth, 1.0))


def draw_strokes(axes: Any, values: pd.Series, layout: Layout, color: str) -> Any:
    """Draw an upright stroke at a value of each row that has one; return None if no row has."""
    x = values.iloc[layout.rows].to_numpy()
    has_value = ~np.isnan(x)
    if not has_value.any():
        return None
    place = layout.place[has_value]
    return axes.vlines(x[has_value], place - 0.45, place + 0.45, color=color, linewidth=1.6)


def draw_rows(
    axes: Any,
    layout: Layout,
    verdict: Sequence[str],
    value: np.ndarray,
    ends: Any,
    columns: Mapping[str, Sequence[str]],
    limits: tuple[float, float],
) -> tuple[list[Any], Any]:
    """Draw rows from the top down: name, interval, mark, and columns of text at the right.

    Return marks by verdict, as in `MARKS`, and intervals.

    `verdict`, `value`, `ends` and `columns` are those of the whole report. What lies outside of
    `limits` is cut there, with an arrow.
    """
    rows, place = layout.rows, layout.place
    verdicts, value = np.array(verdict, dtype=object)[rows], value[rows]
    low, high = limits
    reach, intervals = [value, value], None
    if len(ends):
        ends = np.array(ends)[:, rows]
        ends = np.where(np.isfinite(ends).all(axis=0), np.sort(ends, axis=0), np.nan)
        reach = [np.fmin(value, ends[0]), np.fmax(value, ends[1])]
        color = [MARKS[word]["color"] for word in verdicts]
        intervals = axes.hlines(place, *ends.clip(low, high), color=color, linewidth=1.8)
    marks = []
    for word, style in MARKS.items():
        here = (verdicts == word) & ~np.isnan(value)
        marks += axes.plot(value[here], place[here], linestyle="", zorder=3, **style)
    axes.set_xlim(low, high)
    for line in marks:  # so that a mark is seen at its edge, too
        x, inside = line.get_xdata(), 0.03 * (high - low)
        line.set_xdata(np.where(x > high, high - inside, np.where(x < low, low + inside, x)))
        line.set(clip_on=False, in_layout=False)
    for edge, marker, is_out in (
        (low, "<", reach[0] < low), (high, ">", reach[1] > high),
    ):  # fmt: skip
        style = {"color": "black", "markersize": 6, "zorder": 4}
        (heads,) = axes.plot(np.full(is_out.sum(), edge), place[is_out], marker, **style)
        # an unclipped line without points would reserve space up to the corner of the figure
        heads.set(clip_on=False, in_layout=False)
    axes.set_ylim(layout.depth, 0.0)
    axes.set_yticks(layout.ticks, layout.names, ha="left")
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize="small")
    axes.hlines(place, 0, 1, transform=axes.get_yaxis_transform(), color="#DDDDDD", linewidth=0.6,
                zorder=0)  # fmt: skip
    axes.spines[["top", "right", "left"]].set_visible(False)
    for x, texts in zip(_offsets(axes, columns), columns.values(), strict=True):
        for row, y in zip(rows, place, strict=True):
            _write(axes, texts[row], (1.0, y), axes.get_yaxis_transform(), (x, 0.0), "center")
    return marks, intervals


def write_head(
    panels: Sequence[Any],
    columns: Mapping[str, Sequence[str]],
    names: Sequence[str],
    verdict: Sequence[str],
) -> None:
    """Align the names, and write above the first panel what columns and marks mean."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import offset_copy

    axes, left = panels[0], _width(panels[0], names) + 12
    for panel in panels:
        panel.tick_params(axis="y", pad=left)
    for x, heading in zip(_offsets(axes, columns), columns, strict=True):
        _write(axes, heading, (1.0, 1.0), axes.transAxes, (x, 5.0), "bottom")
    if not any(verdict):
        return
    marks = [
        Line2D([], [], linestyle="", label=word or "no bound", **style)
        for word, style in MARKS.items()
        if word in verdict
    ]
    axes.legend(
        handles=marks, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(marks), frameon=False,
        bbox_transform=offset_copy(axes.transAxes, axes.figure, x=-left - 4, units="points"),
        fontsize="small", handletextpad=0.1, columnspacing=1.0, borderaxespad=0.2,
    )  # fmt: skip


def _write(
    axes: Any, text: str, place: tuple[float, float], transform: Any, offset: Any, va: str
) -> None:
    """Write text that ends at a distance from a place, in points."""
    axes.annotate(
        text, place, xycoords=transform, xytext=offset, textcoords="offset points", ha="right",
        va=va, fontsize="small", annotation_clip=False,
    )  # fmt: skip


def _offsets(axes: Any, columns: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Points from the right edge of the axes to that of each column."""
    widths = [_width(axes, [head, *texts], "small") for head, texts in columns.items()]
    return np.cumsum([12 + width for width in widths])


def _width(axes: Any, texts: Sequence[str], size: str | None = None) -> float:
    """Width of the widest text, in points."""
    if not texts:
        return 0.0
    text = axes.text(0, 0, "\n".join(texts), fontsize=size)
    width = text.get_window_extent().width * 72 / axes.figure.dpi
    text.remove()
    return width
