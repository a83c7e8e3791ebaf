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


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python number it holds, whose repr is shorter."""
    return value.item() if hasattr(value, "item") else value
