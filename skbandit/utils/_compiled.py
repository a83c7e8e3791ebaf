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
    return _compile(function, fastmath={"contract", "reassoc", "nsz", "arcp"})


def compiled_exactly(function: Function) -> Function:
    """Compile without reordering: the same arithmetic gives the same bits wherever it is called."""
    return _compile(function, error_model="numpy")


def inlined_exactly(function: Function) -> Function:
    """The same, copied into its callers, where a call would cost more than what it computes."""
    return _compile(function, error_model="numpy", forceinline=True)


def _compile(function: Function, **options: Any) -> Function:
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither next to the file nor in the user's cache may one write
        return njit(nogil=True, **options)(function)
