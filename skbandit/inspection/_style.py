"""How the displays look: axes to draw on, colours and labels."""

from __future__ import annotations

import textwrap
from typing import Any

from skbandit.utils._optional import import_optional

# Told apart by every kind of colour vision (Okabe & Ito 2008).
BLUE, VERMILLION = "#0072B2", "#D55E00"

LABEL_WIDTH = 48


def axes_or_new(ax: Any, asked_by: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The axes given, or those of a new figure that makes room for long labels."""
    pyplot = import_optional("matplotlib.pyplot", asked_by)
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def wrapped(text: str, width: int = LABEL_WIDTH) -> str:
    """A constraint's text on several lines; matplotlib's own signs taken literally."""
    return textwrap.fill(text, width, break_long_words=False).replace("$", r"\$")
