"""Data files: published ones, found or downloaded and checked by hash, and logs, line by line."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

from skbandit.utils._validation import warn

# Folder of data files installed with the package, laid out like a data home, and fetch options.
_DATA = Path(__file__).parent / "data"
INCLUDED: dict[str, Any] = {"data_home": _DATA, "download_if_missing": False}


@dataclass(frozen=True)
class DataFile:
    """A published file whose bytes never change.

    Parameters
    ----------
    folder : str
        Subfolder of the data home.
    name : str
        File name; the local file may also be ``name + ".gz"``.
    url : str
        The publisher's address.
    sha256 : str
        Checksum of the uncompressed content.
    """

    folder: str
    name: str
    url: str
    sha256: str


def load_bytes(
    file: DataFile,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> bytes:
    """Return the uncompressed content of a file.

    The file is searched in `data_home`; if that is None, in the folder named by the environment
    variable ``SKBANDIT_DATA``, then in scikit-learn's data home. Downloads go to the last folder
    searched.

    Parameters
    ----------
    file : DataFile
        The file.
    data_home : path-like, default=None
        The only folder to search and to download to.
    download_if_missing : bool, default=True
        Whether to download a file that is in none of the folders.

    Returns
    -------
    bytes
        The content; its hash was checked.

    Raises
    ------
    OSError
        If the file is missing and cannot (or must not) be downloaded, or its hash is wrong.

    Examples
    --------
    >>> file = DataFile("toy", "toy.csv", "https://example.org/toy.csv", sha256="0" * 64)
    >>> load_bytes(file, data_home="no-such-folder", download_if_missing=False)
    Traceback (most recent call last):
        ...
    OSError: toy.csv was not found in no-such-folder/toy. Pass download_if_missing=True, or ...
    """
    homes = [data_home]
    if data_home is None:
        # The folder of the environment variable may be shared and read-only: never download there.
        homes = [os.environ.get("SKBANDIT_DATA"), Path(get_data_home(), "skbandit")]
    folders = [Path(home).expanduser() / file.folder for home in homes if home]
    for folder in folders:
        for path in (folder / file.name, folder / f"{file.name}.gz"):
            if path.exists():
                return _read_checked(path, file.sha256)

    missing = f"{file.name} was not found in {' or '.join(map(str, folders))}"
    by_hand = (
        f"put the file, as served by {file.url} or compressed as {file.name}.gz, into a subfolder "
        f"{file.folder!r} of the folder passed as data_home or named by the environment variable "
        "SKBANDIT_DATA."
    )
    if not download_if_missing:
        raise OSError(f"{missing}. Pass download_if_missing=True, or {by_hand}")
    target = folders[-1]
    try:
        target.mkdir(parents=True, exist_ok=True)
        path = fetch_file(file.url, folder=target, local_filename=file.name, sha256=file.sha256)
    except (OSError, HTTPException) as error:
        raise OSError(f"{missing}; download failed ({error}). Try again, or {by_hand}") from error
    return _read_checked(Path(path), file.sha256)


def _read_checked(path: Path, sha256: str) -> bytes:
    """Read a file, decompress it if its name ends in .gz, and check its hash.

    The hash comes first, in a pass that keeps one piece in memory: a small file may decompress to
    more than fits.
    """
    digest = hashlib.sha256()
    with _open_file(path) as file:
        while piece := file.read(2**20):
            digest.update(piece)
    if digest.hexdigest() != sha256:
        raise OSError(
            f"{path} is not the published file: the sha256 of its uncompressed content is "
            f"{digest.hexdigest()}, expected {sha256}. Remove or replace it."
        )
    with _open_file(path) as file:
        return file.read()


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
        """The event of a line, None if it has none; a malformed line raises a ValueError."""

    def bunch(self, columns: list[list[Any]], n_skipped: int) -> Bunch:
        """The block of these events, as yielded to the caller."""


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
    """The start of a text, quoted for a message."""
    start = text[:100].decode("ascii", errors="backslashreplace").strip()
    return repr(start if len(start) <= 60 else start[:57] + "...")
