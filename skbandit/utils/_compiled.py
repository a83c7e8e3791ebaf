"""Compiled loops. Importing this module loads numba, so import its users inside functions.

Machine code is cached on disk, outside the package, under a key of all that shapes it. numba's own
key is the file of the function, so it misses constants and functions of other files. Ours has the
bytecode of the function and of the compiled functions that it calls, and the values of constants,
as they are in memory: an upgrade never runs old code, and an edit elsewhere compiles nothing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from time import perf_counter
from types import CodeType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
import scipy
from numba import njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

Function = TypeVar("Function", bound=Callable[..., Any])

SLICE_SECONDS = 0.1
"""Aim, in seconds, for one call of compiled code that can be split: Python handles Ctrl-C between
calls only. Longer passes are split."""

FIRST_SLICE = 256
"""Rows of the first call of a split pass; smaller passes are not split."""


def compiled(function: Function) -> Function:
    """Compile a function on its first call, caching the result on disk if possible.

    Sums may be reordered so that they vectorize; nan and infinity keep their meaning.
    """
    return _compile(function, fastmath={"contract", "reassoc", "nsz", "arcp"})


def compiled_exactly(function: Function) -> Function:
    """Compile without reordering, so that equal inputs give equal bits in every caller.

    The function, and those that follow, may not create arrays: then no references are counted,
    which in an inner loop costs more than the arithmetic. `allocating_exactly` may.
    """
    return _compile(function, error_model="numpy", _nrt=False)


def called_exactly(function: Function) -> Function:
    """Compile as `compiled_exactly` does, for compiled callers.

    Python's way in is compiled by every process that takes it, for tests.
    """
    return _compile(function, error_model="numpy", _nrt=False, no_cpython_wrapper=True)


def inlined_exactly(function: Function) -> Function:
    """Compile as `called_exactly` does, and inline into callers where a call costs too much."""
    return _compile(
        function, error_model="numpy", _nrt=False, no_cpython_wrapper=True, forceinline=True
    )


def allocating_exactly(function: Function) -> Function:
    """Compile as `compiled_exactly` does a function that creates arrays, and keeps them."""
    return _compile(function, error_model="numpy")


def slices(n_rows: int) -> Iterator[slice]:
    """Split a pass over rows so that each part takes about `SLICE_SECONDS`.

    Between the parts Python handles signals, so Ctrl-C is noticed within a fraction of a second.
    """
    if n_rows <= FIRST_SLICE:
        if n_rows:
            yield slice(0, n_rows)
        return
    start, size = 0, FIRST_SLICE
    while start < n_rows:
        stop = min(start + size, n_rows)
        begin = perf_counter()
        yield slice(start, stop)
        seconds = perf_counter() - begin
        # the first call may compile, which tells nothing of the speed: change by small factors
        if seconds < SLICE_SECONDS / 2:
            size *= 2
        elif seconds > SLICE_SECONDS:
            size = max(size // 2, 1)
        start = stop


class _Compiled:
    """A compiled function, callable from Python and, through `_numba_type_`, in compiled code."""

    __qualname__: str

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, repr(_shape(options, frozenset()))
        options |= {"nogil": True, "no_cfunc_wrapper": True}
        dispatcher: Any = njit(**options)(function)
        self._dispatcher = dispatcher
        dispatcher._cache = _Cache(self)
        self._call = None if options.get("no_cpython_wrapper") else dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self._dispatcher._numba_type_

    @cached_property
    def key(self) -> str:
        """Hash of all that shapes the machine code, apart from arguments; for the first call."""
        return hashlib.sha256(repr(_shape(self, frozenset())).encode()).hexdigest()

    def __call__(self, *args: Any) -> Any:
        if self._call is None:
            inner = self._dispatcher
            self._call = njit(nogil=True)(lambda *args: inner(*args))
        try:
            return self._call(*args)
        except SystemError as error:
            # Ctrl-C while the result was being converted for Python: CPython reports a result
            # together with an exception
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise


def _compile(function: Function, **options: Any) -> Function:
    return _Compiled(function, options)  # type: ignore[return-value]


def _shape(value: Any, callers: frozenset[Any]) -> Any:
    """Describe a value that compiled code refers to, down to the functions that it calls."""
    if isinstance(value, _Compiled):
        if value in callers:
            return value.__qualname__
        function, callers = value._function, callers | {value}
        return value._options, _shape(function.__code__, callers), _globals(function, callers)
    if isinstance(value, CodeType):
        constants = [_shape(constant, callers) for constant in value.co_consts]
        if value.co_flags & 0x2 and value.co_consts and isinstance(value.co_consts[0], str):
            constants[0] = None  # the docstring, by its place
        names = value.co_names, value.co_varnames, value.co_cellvars, value.co_freevars
        return value.co_code, value.co_exceptiontable, value.co_argcount, names, constants
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [_shape(item, callers) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, dict):
        return [(name, _shape(value[name], callers)) for name in sorted(value)]
    if isinstance(value, type):
        return value.__qualname__, getattr(value, "_fields", ())
    if callable(value) or isinstance(value, ModuleType):
        return value.__name__
    return repr(value)


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _globals(function: Any, callers: frozenset[Any]) -> list[Any]:
    """Describe the globals and closure of a function, and attributes of modules of the package."""
    names = _names(function.__code__)
    scope = {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    cells = function.__closure__ or ()
    scope |= {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True)
    }
    for name, value in list(scope.items()):
        if isinstance(value, ModuleType) and value.__name__.startswith("skbandit."):
            used = sorted(names & vars(value).keys())
            scope |= {f"{name}.{attribute}": getattr(value, attribute) for attribute in used}
    return [(name, _shape(scope[name], callers)) for name in sorted(scope)]


def _fields(kind: Any) -> Any:
    """Describe the type of an argument: code reads fields of a named tuple by their order."""
    if hasattr(kind, "fields") and hasattr(kind, "types"):
        return kind.fields, [_fields(inner) for inner in kind.types]
    return str(kind)


def user_cache() -> Path | None:
    """Return the folder for caches: ``NUMBA_CACHE_DIR`` or the user's; None without a home."""
    if chosen := numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        return Path(chosen)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else None
    with suppress(RuntimeError):
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches"
        named = os.environ.get("XDG_CACHE_HOME", "")
        return Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return None


VERSIONS = (numba.__version__, np.__version__, scipy.__version__, sys.implementation.cache_tag)
"""Versions that shape machine code."""


class _Cache(NullCache):
    """Machine code on disk, a file per function, types of arguments, processor and versions.

    Code that cannot be read or written is compiled in memory.
    """

    def __init__(self, compiled: _Compiled) -> None:
        self._compiled = compiled

    def path(self, sig: Any, codegen: Any) -> Path | None:
        """Return the file of the machine code; None without a folder for caches."""
        root = user_cache()
        if root is None:
            return None
        function = self._compiled
        types = [_fields(kind) for kind in sig]
        key = repr((function.key, types, codegen.magic_tuple(), VERSIONS))
        name = f"{function.__qualname__}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        return root / "skbandit" / function.__module__ / name

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        with suppress(Exception):  # whatever unpickling raises: files may be damaged
            path = self.path(sig, target_context.codegen())
            if path is not None and path.exists():
                return CompileResult._rebuild(target_context, *pickle.loads(path.read_bytes()))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            return
        try:
            path = self.path(sig, data.codegen)
            if path is None:
                raise OSError(0, "no home folder")
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # other processes may write or read the same file
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(dumps(data._reduce()))
            os.replace(file.name, path)
        except OSError as error:
            _log_not_kept(error.strerror or str(error))


@cache
def _log_not_kept(reason: str) -> None:
    """Log once that machine code is not kept, and why: nothing is wrong with the call."""
    logging.getLogger("skbandit").warning(
        "Machine code is not kept, so that every process compiles for a minute or two: %s in %s. "
        "Set NUMBA_CACHE_DIR to a folder that you can write to.",
        reason,
        user_cache(),
    )
