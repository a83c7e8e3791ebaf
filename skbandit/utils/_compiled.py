"""Compiled loops. Importing this module loads numba, so import its users inside functions."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import update_wrapper
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar
from zlib import crc32

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from skbandit.utils._code_folder import FOLDER, KEY, is_mixed, is_private, log_not_kept

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

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        options |= {"nogil": True, "no_cfunc_wrapper": True}
        dispatcher: Any = njit(**options)(function)
        self._dispatcher = dispatcher
        if FOLDER is not None:
            dispatcher._cache = _Cache(function)
        self._call = None if options.get("no_cpython_wrapper") else dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self._dispatcher._numba_type_

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


class _Place:
    """Place of the machine code of one function, in the interface of numba's cache locators."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = inspect.getfile(function)
        self._line = function.__code__.co_firstlineno
        assert FOLDER is not None
        self._path = FOLDER / function.__module__

    def ensure_cache_path(self) -> None:
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def is_private(self) -> bool:
        """Whether only this user may write here: machine code of others must not run."""
        return all(map(is_private, (self._path, *self._path.parents[:2])))

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str | None:
        return KEY

    def get_disambiguator(self) -> str:
        return str(self._line)


class _CacheImpl(CompileResultCacheImpl):
    """Finds machine code by the key of all sources, and nowhere else."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function)
        name = f"{Path(self._locator._py_file).stem}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class _CacheFile(IndexDataCacheFile):
    """Machine code with its key and a checksum: numba would run code that is damaged."""

    def save(self, key: Any, data: Any) -> None:
        content = self._dump((key, data))
        super().save(key, (crc32(content), content))

    def load(self, key: Any) -> Any:
        entry = super().load(key)
        if entry is None:
            return None
        checksum, content = entry
        if crc32(content) != checksum:
            raise ValueError("the machine code is damaged")
        saved_key, data = pickle.loads(content)
        return data if saved_key == key else None


class _Cache(FunctionCache):
    """Machine code on disk; code that cannot be read or written is compiled in memory."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, *args: Any) -> Any:
        try:
            return super().load_overload(*args) if self._impl.locator.is_private() else None
        except Exception:  # whatever unpickling raises: files may be damaged, or not ours
            return None

    def save_overload(self, *args: Any) -> None:
        if is_mixed():
            return
        try:
            self._impl.locator.ensure_cache_path()
            if not self._impl.locator.is_private():
                raise PermissionError(0, "others may write to the folder, or own it,")
            try:
                super().save_overload(*args)
            except Exception:  # the index cannot be read
                self.flush()
                super().save_overload(*args)
        except Exception as error:
            log_not_kept(getattr(error, "strerror", None) or str(error))
