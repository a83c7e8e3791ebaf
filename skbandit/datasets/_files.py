"""Files installed with the package, and logs, line by line."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.utils import Bunch

from skbandit.utils._validation import warn

INCLUDED = Path(__file__).parent / "data"
"""Folder of the data files that are installed with the package."""


@contextmanager
def _open_file(path: Path) -> Iterator[Any]:
    """Open a file for reading bytes, decompressed if its name ends in .gz."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise OSError(f"{path} is damaged: {error}. Remove or replace it.") from error


class LineReader(Protocol):
    """Reader of one format of logs with one event per line."""

    def read(self, line: bytes) -> tuple[Any, ...] | None:
        """Return the event of a line, None if it has none; a malformed line raises a ValueError."""

    def bunch(self, columns: list[list[Any]], n_skipped: int) -> Bunch:
        """Return the block of these events, as yielded to the caller."""


class ContradictionError(ValueError):
    """An intact line contradicts itself.

    Where all lines do, as in a log of another convention, some agree by chance: to skip the others
    would select events by their actions.
    """


def read_blocks(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    reader: LineReader,
    block_size: int,
    malformed: str,
) -> Iterator[Bunch]:
    """Read files by line and yield blocks of events; arguments are checked at the call."""
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


def _yield_blocks(
    files: list[Path], reader: LineReader, block_size: int, skip: bool
) -> Iterator[Bunch]:
    """Yield blocks; malformed lines are errors, or skipped with a warning at the end."""
    columns: list[list[Any]] = []
    n_blocks, n_skipped, first = 0, 0, ""
    for path in files:
        with _open_file(path) as file:
            for number, line in enumerate(file, start=1):
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
