"""Folder of machine code on disk, named by a hash of all that the code depends on.

numba recompiles a function after a change to its own file, not after one to a compiled function or
a constant of another file; and an installer leaves its cache behind. Here every version of the
package has a folder of its own, outside the package, that copies with the same sources share.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

from skbandit.utils import IMPORTED

UNUSED_DAYS = 30
"""Days after which the folder of other sources, if not used since, is removed with its code."""


def key_of(package: Any) -> str | None:
    """Hash of all sources of a package and of the versions that shape its machine code.

    None if there are no sources to read, as in a frozen application.
    """
    digest = hashlib.sha256()
    sources = list(_sources(package))
    if not sources:
        return None
    for name, source in sources:
        content = source.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    versions = [numba.__version__, np.__version__, scipy.__version__]
    digest.update(repr([sys.implementation.cache_tag, sys.platform, *versions]).encode())
    return digest.hexdigest()[:32]


def changed_since(package: Any, moment: float) -> bool:
    """Whether a source has changed since a moment in seconds since the epoch.

    If the package is upgraded while a process runs, old and new modules are mixed in memory. Code
    compiled from such a mixture must not be cached.
    """
    return any(
        isinstance(source, Path) and source.stat().st_ctime > moment
        for _, source in _sources(package)
    )


def _sources(folder: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Relative names of the Python files of a folder, which may be in an archive, and the files."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            yield prefix + entry.name, entry
        elif entry.is_dir() and entry.name.isidentifier() and entry.name != "__pycache__":
            yield from _sources(entry, f"{prefix}{entry.name}/")


def user_cache() -> Path | None:
    """Folder for caches: ``NUMBA_CACHE_DIR`` if set, else the user's; None without a home."""
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


def is_private(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else may write to it; True on Windows."""
    if not hasattr(os, "geteuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


@cache
def log_not_kept(reason: str) -> None:
    """Log once that machine code is not kept, and why.

    Not a warning: nothing is wrong with the call in which it happens.
    """
    logging.getLogger("skbandit").warning(
        "Machine code is not kept, so that every process compiles for a minute or two: %s in %s. "
        "Set NUMBA_CACHE_DIR to a folder to which only you can write.",
        reason,
        user_cache(),
    )


def code_folder(root: Path | None, key: str | None) -> Path | None:
    """Make or reuse ``root/skbandit/key``; None if it cannot be written, or by others.

    Code is run as it is found, so nobody else may own ``root/skbandit`` and what is below it, or
    write there; nor replace it, as anyone can in a `root` that all may write to, unless it has the
    sticky bit, such as ``/tmp``.

    A new folder is made on the first import after an upgrade, so folders of other versions are
    then examined, and removed if unused for `UNUSED_DAYS`.
    """
    if root is None or key is None:
        return None
    try:
        root.mkdir(parents=True, exist_ok=True)
        folder = root / "skbandit" / key
        is_new = not folder.is_dir()
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()  # links may be replaced
        replaceable = os.name != "nt" and folder.parents[1].stat().st_mode & 0o1002 == 0o0002
        if replaceable or not (is_private(folder.parent) and is_private(folder)):
            raise PermissionError(0, "others may write to the folder, or own it,")
        tempfile.TemporaryFile(dir=folder).close()  # is it writable?
        os.utime(folder)  # it is in use
    except OSError as error:
        log_not_kept(error.strerror or str(error))
        return None
    if is_new:
        oldest = time.time() - UNUSED_DAYS * 24 * 3600
        for other in folder.parent.iterdir():
            with suppress(OSError):
                is_ours = len(other.name) == len(key) and set(other.name) <= set("0123456789abcdef")
                if is_ours and other.is_dir() and other.stat().st_mtime < oldest:
                    shutil.rmtree(other, ignore_errors=True)
    return folder


KEY = key_of(files("skbandit"))
"""Key of the sources; None leaves machine code in memory."""

FOLDER = code_folder(user_cache(), KEY)
"""Folder of the machine code of these sources, or None."""


def is_mixed() -> bool:
    """Whether the sources have changed since the package was imported."""
    return changed_since(files("skbandit"), IMPORTED)
