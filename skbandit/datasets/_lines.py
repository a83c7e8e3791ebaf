"""Lines of log files, plain or compressed, of bounded length."""

from __future__ import annotations

import gzip
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, Self

from sklearn.utils import Bunch


def existing_files(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """One or several paths as a list; each must be a file."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    files = [Path(path) for path in given]
    if not files:
        raise ValueError("paths contains no file name.")
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file.")
    return files


def check_line_options(block_size: Any, malformed: Any) -> None:
    """Validate the options that readers of lines share."""
    if malformed not in ("raise", "skip"):
        raise ValueError(f"malformed must be 'raise' or 'skip', got {malformed!r}.")
    if not isinstance(block_size, Integral):
        raise ValueError(f"block_size must be an integer, got {block_size!r}.")
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1, got {block_size}.")


def read_lines(path: Path, longest: int) -> Iterator[bytes]:
    """The lines of a file, each cut to at most `longest` bytes; named ``*.gz`` if compressed."""
    number = 0
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        try:
            while line := file.readline(longest):
                rest = line
                while len(rest) == longest and not rest.endswith(b"\n"):
                    rest = file.readline(longest)
                number += 1
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"{path} is damaged after line {number}: {error}") from error


class Block(Protocol):
    """Events read so far; a reader of a format defines one."""

    def __len__(self) -> int: ...

    def add(self, line: bytes) -> None:
        """Add the event of a line; a malformed line raises a ValueError and adds nothing."""
        ...

    def bunch(self, n_skipped: int) -> Bunch:
        """The block as yielded to the caller."""
        ...

    def next(self) -> Self:
        """An empty block that continues this one."""
        ...


def read_blocks(
    files: list[Path], block: Block, *, longest: int, block_size: int, skip: bool
) -> Iterator[Bunch]:
    """Yield blocks of events; malformed lines are errors, or skipped with a warning at the end."""
    n_events, n_skipped, first = 0, 0, ""
    for path in files:
        for number, line in enumerate(read_lines(path, longest), start=1):
            try:
                block.add(line)
            except ValueError as error:
                problem = f"{path}, line {number}: {error}"
                if not skip:
                    raise ValueError(f"{problem} Pass malformed='skip' to skip it.") from error
                n_skipped += 1
                first = first or problem
            if len(block) == block_size:
                yield block.bunch(n_skipped)
                n_events += block_size
                block = block.next()
    if len(block):
        yield block.bunch(n_skipped)
    elif not n_events:
        raise ValueError(f"no event in {', '.join(map(str, files))}. {first}".strip())
    if n_skipped:
        warnings.warn(f"{n_skipped} malformed lines were skipped, the first: {first}", stacklevel=2)


def quoted(text: bytes) -> str:
    """The start of a text, quoted for a message."""
    words = text[:100].decode("ascii", errors="backslashreplace").strip()
    return repr(words if len(words) <= 60 else words[:57] + "...")
