"""Text for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any


def first_few(values: Iterable[Any], most: int = 5) -> str:
    """The first values, comma-separated, followed by "..." if some are left out.

    Examples
    --------
    >>> first_few(["a", "b", "c"], most=2)
    "'a', 'b', ..."
    """
    shown = [_plain(value) for value in islice(values, most + 1)]
    return ", ".join([*map(repr, shown[:most]), *["..."][: len(shown) - most]])


def shortened(text: str, most: int = 400) -> str:
    """The text without its middle if it is longer than `most` characters.

    Examples
    --------
    >>> shortened("recall('age > 30 and age < 40')", most=19)
    "recall( ... < 40')"
    """
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python number it holds, whose repr is shorter."""
    return value.item() if hasattr(value, "item") else value
