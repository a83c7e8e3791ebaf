"""Compiled loops. Importing this module loads numba, so import its users inside functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call, caching the result on disk if possible.

    Sums may be reordered so that they vectorise; nan and infinity keep their meaning.
    """
    return _compile(function, fastmath={"contract", "reassoc", "nsz", "arcp"})


def compiled_exactly(function: Function) -> Function:
    """Compile without reordering, so that equal inputs give equal bits in every caller."""
    return _compile(function, error_model="numpy")


def inlined_exactly(function: Function) -> Function:
    """Compile as `compiled_exactly` does, and inline into callers where a call costs too much."""
    return _compile(function, error_model="numpy", forceinline=True)


def _compile(function: Function, **options: Any) -> Function:
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither the file's folder nor the user's cache is writable
        return njit(nogil=True, **options)(function)
