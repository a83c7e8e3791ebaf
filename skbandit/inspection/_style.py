"""Shared style of the displays (axes, colours, labels), and checks of their tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._sklearn_compat import import_optional

# Distinguishable with any colour vision (Okabe & Ito 2008).
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILLION, GREEN, "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GREY = "#BBBBBB"

# Characters per line of a label.
LABEL_WIDTH = 48


def check_axes(ax: Any, caller: str) -> Any:
    """Return pyplot if `ax` is usable; called before long computations to fail early."""
    pyplot = import_optional("matplotlib.pyplot", caller)
    from matplotlib.axes import Axes

    if not (ax is None or isinstance(ax, Axes)):
        raise TypeError(
            f"ax must be matplotlib Axes, got {type(ax).__name__}: from an array of "
            "plt.subplots(...), pass one element."
        )
    return pyplot


def axes_or_new(ax: Any, caller: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The given axes, or those of a new figure with room for long labels."""
    pyplot = check_axes(ax, caller)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def line_options(line_kw: Any, caller: str) -> dict[str, Any]:
    """Validated line options, with matplotlib's full names."""
    if line_kw is None:
        return {}
    if not isinstance(line_kw, dict):
        raise TypeError(f"line_kw must be a dict of options of Axes.plot, got {line_kw!r}.")
    import_optional("matplotlib.lines", caller)
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    try:
        options = normalize_kwargs(line_kw, Line2D)
        Line2D([], [], **options)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"line_kw={line_kw!r} is not valid for Axes.plot: {error}.") from error
    return options


def read_table(
    table: Any, name: str, numbers: Sequence[str], others: Sequence[str] = ()
) -> pd.DataFrame:
    """Require a DataFrame with these columns, and return `numbers` as float64."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"{name} must be a DataFrame, got {type(table).__name__}.")
    columns = table.columns.tolist()
    for column in (*numbers, *others):
        if columns.count(column) != 1:
            raise ValueError(f"{name} must have one column {column!r}, got {columns}.")
    return table.assign(**{column: as_floats(table[column], name) for column in numbers})


def read_flags(table: pd.DataFrame, name: str, column: str) -> np.ndarray:
    """A boolean column as 1.0 and 0.0, nan if missing."""
    flags = read_table(table, name, [column])[column].to_numpy()
    wrong = flags[~(np.isin(flags, (0, 1)) | np.isnan(flags))]
    if len(wrong):
        raise ValueError(f"{name}: column {column!r} must be true or false, found {wrong[0]:g}.")
    return flags


def as_floats(values: pd.Series, name: str) -> np.ndarray:
    """A column as float64, nan if missing."""
    try:
        if values.dtype.kind not in "biufO":  # dates would become nanoseconds
            raise TypeError(f"found {values.dtype}")
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: column {values.name!r} must be numbers: {error}.") from error


def write_figures(axes: Any, texts: Iterable[str]) -> None:
    """Write one text per row above its middle, inside of the axes: none covers a neighbour."""
    beside = axes.get_yaxis_transform()  # x in widths of the axes, y in rows
    for row, text in enumerate(texts):
        written = axes.text(0.015, row - 0.14, text, transform=beside, va="bottom", clip_on=True)
        written.set(fontsize="small", in_layout=False)


def short_dates(axes: Any, timezone: Any) -> None:
    """Format the dates of the x-axis so that labels do not overlap."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=timezone, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone))


def wrapped(text: Any, width: int = LABEL_WIDTH) -> str:
    """Text wrapped to lines; "$" is escaped, as matplotlib would start a formula."""
    return textwrap.fill(str(text), width, break_long_words=False).replace("$", r"\$")
