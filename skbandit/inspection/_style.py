"""Shared style of the displays: axes, colors, labels."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from skbandit.utils._sklearn_compat import import_optional

# Distinguishable with any color vision (Okabe & Ito 2008).
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PALETTE = (BLUE, VERMILLION, GREEN, "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GRAY, DARK = "#BBBBBB", "#444444"

# Options of all lines and of all legends.
LINE = {"linewidth": 1.3, "markersize": 4.5}
LEGEND = {"frameon": False, "fontsize": "small"}
# Above the axes, so that it hides no interval.
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2, **LEGEND}


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


def full_names(line_kw: dict[str, Any] | None) -> dict[str, Any]:
    """Return options of lines with matplotlib's full names."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return dict(normalize_kwargs(line_kw or {}, Line2D))


def wrap(text: Any, width: int = 48) -> str:
    """Wrap text to lines, not between a bound and its sign.

    "$" is escaped, as matplotlib would start a formula.
    """
    text = re.sub("([<>]=) ", "\\1\u00a0", str(text))
    lines = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\u00a0", " ").replace("$", r"\$")
