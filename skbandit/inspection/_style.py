"""Shared style of the displays: axes, colors, labels."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd

from skbandit.utils._sklearn_compat import import_optional

# Distinguishable with any color vision (Okabe & Ito 2008).
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILLION, GREEN, "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GRAY, DARK = "#BBBBBB", "#444444"

# Options of all lines and of all legends.
LINE = {"linewidth": 1.3, "markersize": 4.5}
LEGEND = {"frameon": False, "fontsize": "small"}


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
    """Return the given axes, or those of a new figure with space for long labels."""
    pyplot = check_axes(ax, caller)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def read_line_kw(line_kw: Any, caller: str) -> dict[str, Any]:
    """Validate line options, and return them with matplotlib's full names."""
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


def require_columns(table: Any, name: str, columns: Sequence[str]) -> None:
    """Require a DataFrame with these columns."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"{name} must be a DataFrame, got {type(table).__name__}.")
    if lacking := [column for column in columns if column not in table]:
        raise ValueError(f"{name} must have the column {lacking[0]!r}, got {list(table.columns)}.")


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
