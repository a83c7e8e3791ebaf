"""Shared style of the displays (axes, colors, labels), and checks of their tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skbandit.utils._sklearn_compat import import_optional

# Distinguishable with any color vision (Okabe & Ito 2008).
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILLION, GREEN, "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GRAY, DARK = "#BBBBBB", "#444444"

# Options of all lines and of all legends.
LINE = {"linewidth": 1.3, "markersize": 4.5}
LEGEND = {"frameon": False, "fontsize": "small"}

Names = Sequence[str]


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


def get_axes(ax: Any, caller: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The given axes, or those of a new figure with space for long labels."""
    pyplot = check_axes(ax, caller)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def read_line_kw(line_kw: Any, caller: str) -> dict[str, Any]:
    """Validated line options, with matplotlib's full names."""
    if not (line_kw is None or isinstance(line_kw, dict)):
        raise TypeError(f"line_kw must be a dict of options of Axes.plot, got {line_kw!r}.")
    import_optional("matplotlib.lines", caller)
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    try:
        options = normalize_kwargs(line_kw or {}, Line2D)
        Line2D([], [], **options)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"line_kw={line_kw!r} is not valid for Axes.plot: {error}.") from error
    return options


def require_columns(
    table: Any, name: str, numbers: Names, others: Names = (), optional: Names = ()
) -> pd.DataFrame:
    """Require a DataFrame with these columns, and return `numbers` and `optional` as float64."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"{name} must be a DataFrame, got {type(table).__name__}.")
    columns = table.columns.tolist()
    numbers = [*numbers, *(column for column in optional if column in columns)]
    for column in (*numbers, *others):
        if columns.count(column) != 1:
            raise ValueError(f"{name} must have one column {column!r}, got {columns}.")
    table = table.copy()
    for column in numbers:
        values = table[column]
        try:
            if values.dtype.kind not in "biufO":  # dates would become nanoseconds
                raise TypeError(f"found {values.dtype}")
            table[column] = values.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{name}: column {column!r} must be numbers: {error}.") from error
    return table


def read_flags(
    table: pd.DataFrame, name: str, column: str, may_be_missing: bool = True
) -> np.ndarray:
    """A boolean column as 1.0 and 0.0, nan if missing."""
    flags = require_columns(table, name, [column])[column].to_numpy()
    wrong = flags[~(np.isin(flags, (0, 1)) | np.isnan(flags) & may_be_missing)]
    if len(wrong):
        raise ValueError(f"{name}: column {column!r} must be true or false, found {wrong[0]:g}.")
    return flags


def place_legend(axes: Any) -> None:
    """Add a legend above the axes, so that it hides no interval."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, **LEGEND)


def wrap(text: Any, width: int = 48) -> str:
    """Wrap text to lines, not between a bound and its sign.

    "$" is escaped, as matplotlib would start a formula.
    """
    text = re.sub("([<>]=) ", "\\1\u00a0", str(text))
    lines = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\u00a0", " ").replace("$", r"\$")
