"""How the displays look: axes to draw on, colours and labels."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._optional import import_optional

# Told apart by every kind of colour vision (Okabe & Ito 2008).
BLUE, VERMILLION = "#0072B2", "#D55E00"
PALETTE = (BLUE, VERMILLION, "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GREY = "#BBBBBB"

LABEL_WIDTH = 48


def check_axes(ax: Any, asked_by: str) -> Any:
    """pyplot, if `ax` can be drawn on; also asked before long work, which would be in vain."""
    pyplot = import_optional("matplotlib.pyplot", asked_by)
    from matplotlib.axes import Axes

    if not (ax is None or isinstance(ax, Axes)):
        raise TypeError(
            f"ax must be matplotlib Axes, got {type(ax).__name__}: of several that "
            "plt.subplots(...) gives, pass one."
        )
    return pyplot


def axes_or_new(ax: Any, asked_by: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The axes given, or those of a new figure that makes room for long labels."""
    pyplot = check_axes(ax, asked_by)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def line_options(line_kw: Any, asked_by: str) -> dict[str, Any]:
    """What the user wants of lines, by matplotlib's full names."""
    if line_kw is None:
        return {}
    if not isinstance(line_kw, dict):
        raise TypeError(f"line_kw must be a dict of options of Axes.plot, got {line_kw!r}.")
    import_optional("matplotlib.lines", asked_by)
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    try:
        options = normalize_kwargs(line_kw, Line2D)
        Line2D([], [], **options)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"line_kw={line_kw!r} is not for Axes.plot: {error}.") from error
    return options


def read_table(
    table: Any, name: str, numbers: Sequence[str], others: Sequence[str] = ()
) -> pd.DataFrame:
    """A table to be drawn: it has all these columns, and of numbers some as float64."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"{name} must be a DataFrame, got {type(table).__name__}.")
    columns = table.columns.tolist()
    for column in (*numbers, *others):
        if columns.count(column) != 1:
            raise ValueError(f"{name} must have one column {column!r}, there are {columns}.")
    return table.assign(**{column: as_floats(table[column], name) for column in numbers})


def read_flags(table: pd.DataFrame, name: str, column: str) -> np.ndarray:
    """A column of true and false as 1.0 and 0.0, nan where it is missing."""
    flags = read_table(table, name, [column])[column].to_numpy()
    wrong = flags[~(np.isin(flags, (0, 1)) | np.isnan(flags))]
    if len(wrong):
        raise ValueError(f"{name}: column {column!r} must be true or false, found {wrong[0]:g}.")
    return flags


def as_floats(values: pd.Series, name: str) -> np.ndarray:
    """Numbers, nan where they are missing."""
    try:
        if values.dtype.kind not in "biufO":  # dates would be numbers of nanoseconds
            raise TypeError(f"found {values.dtype}")
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: column {values.name!r} must be numbers: {error}.") from error


def short_dates(axes: Any, timezone: Any) -> None:
    """Dates below the axes that do not run into one another."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=timezone, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone))


def wrapped(text: Any, width: int = LABEL_WIDTH) -> str:
    """A constraint's text on several lines; matplotlib's own signs taken literally."""
    return textwrap.fill(str(text), width, break_long_words=False).replace("$", r"\$")
