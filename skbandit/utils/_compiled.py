"""Compiled loops. Importing this imports numba: modules that do so are themselves imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call, and keep the result on disk where there is a place.

    Sums may be reordered, so that they run on vectors; nan and infinity keep their meaning.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither next to the file nor in the user's cache may one write
        return njit(**options)(function)
