"""How the displays look: axes to draw on, colours and labels."""

from __future__ import annotations

import textwrap
from typing import Any

from skbandit.utils._optional import import_optional

# Told apart by every kind of colour vision (Okabe & Ito 2008).
BLUE, VERMILLION = "#0072B2", "#D55E00"
PALETTE = (BLUE, VERMILLION, "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#F0E442")
GREY = "#BBBBBB"

LABEL_WIDTH = 48


def axes_or_new(ax: Any, asked_by: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The axes given, or those of a new figure that makes room for long labels."""
    pyplot = import_optional("matplotlib.pyplot", asked_by)
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def short_dates(axes: Any, timezone: Any) -> None:
    """Dates below the axes that do not run into one another."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=timezone, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone))


def wrapped(text: str, width: int = LABEL_WIDTH) -> str:
    """A constraint's text on several lines; matplotlib's own signs taken literally."""
    return textwrap.fill(text, width, break_long_words=False).replace("$", r"\$")
