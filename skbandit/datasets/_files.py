"""Load published data files from a local folder, or download them once; check their hash."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from sklearn.datasets import fetch_file, get_data_home

__all__ = ["INCLUDED", "DataFile", "load_bytes"]

INCLUDED = Path(__file__).parent / "data"
"""Folder of the data files that are installed with the package, laid out like a data home."""

_PIECE = 2**20
"""Bytes read at a time; more only takes more memory."""


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
    *,
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
    folders = [home / file.folder for home in _homes(data_home)]
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
        reason = f"{missing} and the download failed ({error})"
        raise OSError(f"{reason}. Try again, or {by_hand}") from error
    return _read_checked(Path(path), file.sha256)


def _homes(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """The folders to search; the last one receives downloads."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    # The folder of the environment variable may be shared and read-only: never download there.
    named = os.environ.get("SKBANDIT_DATA")
    cache = Path(get_data_home()) / "skbandit"
    return [Path(named).expanduser(), cache] if named else [cache]


def _read_checked(path: Path, sha256: str) -> bytes:
    """Read a file, decompress it if its name ends in .gz, and check its hash.

    The hash comes first, in a pass that keeps one piece in memory: a small file may decompress to
    more than fits.
    """
    digest = hashlib.sha256()
    for piece in _pieces(path):
        digest.update(piece)
    found = digest.hexdigest()
    if found != sha256:
        raise OSError(
            f"{path} is not the published file: the sha256 of its uncompressed content is "
            f"{found}, expected {sha256}. Remove or replace it."
        )
    return b"".join(_pieces(path))


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, decompressed if its name ends in .gz, piece by piece."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise OSError(f"{path} is damaged: {error}. Remove or replace it.") from error
