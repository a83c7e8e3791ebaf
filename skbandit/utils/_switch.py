"""Switches between files of one kind, such as links, by a code that compiled code compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from skbandit.utils._compiled import inlined_exactly


def files_of(package: str, names: Iterable[str]) -> list[Any]:
    """Return the modules of a package that are named by a table, ``_name`` for each name."""
    return [import_module(f"{package}._{name}") for name in names]


def switch(files: Sequence[Any], name: str, default: Any = None) -> Any:
    """Return a compiled function of a code and values, that of this name in the code's file.

    Functions of files that need fewer values take the first ones. A file may lack it: it has the
    default.
    """
    call = None
    for code in reversed(range(len(files))):
        function = getattr(files[code], name, default)
        call = _either(name, code, function, len(signature(function).parameters), call)
    return call


def _either(name: str, position: int, function: Any, n_values: int, otherwise: Any) -> Any:
    """Return the function of a position, or another switch; the last one asks for no code."""

    def last(code: int, *values: Any) -> Any:
        return function(*values[:n_values])

    def either(code: int, *values: Any) -> Any:
        if code == position:
            result = function(*values[:n_values])
        else:
            result = otherwise(code, *values)
        return result

    call = last if otherwise is None else either
    call.__qualname__ = name if otherwise is None else f"{name}_{position}"
    return inlined_exactly(call)
