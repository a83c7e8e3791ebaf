"""Files installed with the package, and logs, line by line."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skbandit.utils._validation import warn

INCLUDED = Path(__file__).parent / "data"
"""Folder of the data files that are installed with the package."""


def _lines(files: Iterable[Path]) -> Iterator[tuple[Path, int, bytes]]:
    """Yield the lines of files, decompressed if their names end in .gz, with their places."""
    for path in files:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        try:
            with opener(path, "rb") as file:
                for number, line in enumerate(file, start=1):
                    yield path, number, line
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise OSError(f"{path} is damaged: {error}. Remove or replace it.") from error


class ContradictionError(ValueError):
    """An intact line contradicts itself.

    Where all lines do, as in a log of another convention, some agree by chance: to skip the others
    would select events by their actions.
    """


def read_blocks(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    reader: Any,
    block_size: int,
    malformed: str,
) -> Iterator[Bunch]:
    """Read files by line and yield blocks of events; arguments are checked at the call.

    Parameters
    ----------
    paths, block_size, malformed : object
        As in `read_yahoo_r6`.
    reader : object
        Of one format with one event per line: ``read(line)`` returns an event, None if there is
        none, or raises a ValueError; ``bunch(columns, n_skipped)`` returns a block of events.
    """
    if malformed not in ("raise", "skip"):
        raise ValueError(f"malformed must be 'raise' or 'skip', got {malformed!r}.")
    if not (isinstance(block_size, int | np.integer) and block_size >= 1):
        raise ValueError(f"block_size must be an integer of at least 1, got {block_size!r}.")
    files = [Path(p) for p in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not files:
        raise ValueError("paths contains no file name.")
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file.")
    return _yield_blocks(files, reader, block_size, malformed == "skip")


def _yield_blocks(files: list[Path], reader: Any, block_size: int, skip: bool) -> Iterator[Bunch]:
    """Yield blocks; malformed lines are errors, or skipped with a warning at the end."""
    columns: list[list[Any]] = []
    n_blocks, n_skipped, first = 0, 0, ""
    for path, number, line in _lines(files):
        try:
            event = reader.read(line)
        except ValueError as error:
            problem = f"{path}, line {number}: {error}"
            if isinstance(error, ContradictionError):
                raise ValueError(f"{problem} It cannot be skipped.") from error
            if not skip:
                raise ValueError(f"{problem} Pass malformed='skip' to skip it.") from error
            n_skipped += 1
            first = first or problem
            continue
        if event is None:
            continue
        columns = columns or [[] for _ in event]
        for column, value in zip(columns, event, strict=True):
            column.append(value)
        if len(columns[0]) == block_size:
            yield reader.bunch(columns, n_skipped)
            n_blocks, columns = n_blocks + 1, []
    if columns:
        yield reader.bunch(columns, n_skipped)
    elif not n_blocks:
        raise ValueError(f"no event in {', '.join(map(str, files))}. {first}".strip())
    if n_skipped:
        warn(f"{n_skipped} malformed lines were skipped, the first: {first}", UserWarning)


def quote(text: bytes) -> str:
    """Return the start of a text, quoted for a message."""
    start = text[:100].decode("ascii", errors="backslashreplace").strip()
    return repr(start if len(start) <= 60 else start[:57] + "...")
