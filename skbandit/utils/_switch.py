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
        n_values = len(signature(function).parameters)
        call = (
            _last(name, function, n_values)
            if call is None
            else (_either(f"{name}_{code}", code, function, n_values, call))
        )
    return call


def _last(name: str, function: Any, n_values: int) -> Any:
    def call(code: int, *values: Any) -> Any:
        return function(*values[:n_values])

    call.__qualname__ = name
    return inlined_exactly(call)


def _either(name: str, position: int, function: Any, n_values: int, otherwise: Any) -> Any:
    def call(code: int, *values: Any) -> Any:
        if code == position:
            result = function(*values[:n_values])
        else:
            result = otherwise(code, *values)
        return result

    call.__qualname__ = name
    return inlined_exactly(call)
