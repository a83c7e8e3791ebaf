"""Read the logs of Yahoo!'s Today Module, R6A and R6B, as blocks."""

from __future__ import annotations

import gzip
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite, nan
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
import pandas as pd
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


# Bytes; a longer line is malformed. Pools of hundreds of articles take a tenth of it.
_LONGEST = 2**20

# One-based feature index -> column; the first feature is the constant.
_R6A = {b"%d" % (j + 1): j for j in range(6)}
_R6B = {b"%d" % (j + 1): j for j in range(136)}


def read_yahoo_r6(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    block_size: int = 100_000,
    malformed: Literal["raise", "skip"] = "raise",
) -> Iterator[Bunch]:
    """Read the log of Yahoo!'s Today Module, R6A or R6B, one block of events at a time.

    Each event is an article shown to a visitor of Yahoo!'s front page, drawn uniformly at random
    from a pool of about 20 that changes over the day, and whether it was clicked. Li, Chu,
    Langford, Moon and Wang (2012) compare policies on such a log. Yahoo! provides the files
    (Webscope, R6) to researchers on request.

    Parameters
    ----------
    paths : path or iterable of paths
        Files as published, plain or compressed with gzip (named ``*.gz``), in order of time.
    block_size : int, default=100_000
        Number of events per block; the last block may have fewer. Memory is needed for one block
        only.
    malformed : {"raise", "skip"}, default="raise"
        Whether an unreadable line is an error, or is skipped; each block, and a warning at the
        end, report the number of skipped lines.

    Yields
    ------
    Bunch
        With, one row per event,

        - ``X``: DataFrame of the visitor's features, ``user_1`` to ``user_6`` (R6A: floats,
          memberships of five clusters) or to ``user_136`` (R6B: 0 and 1). ``user_1`` is the
          constant: drop it for a policy with an intercept.
        - ``y``: DataFrame with ``action`` (the article), ``reward`` (1 if clicked),
          ``propensity``, ``timestamp`` (seconds) and ``available``, a tuple of the articles
          in the pool. Articles are ints in R6A and strings in R6B. Events with equal pools
          share one tuple.
        - ``available``: that column.
        - ``article_features``: DataFrame, one row per article of the block, ``article_1`` to
          ``article_6`` (R6A; nan for an article without features); None for R6B.
        - ``n_skipped``: number of malformed lines skipped so far.

    Raises
    ------
    ValueError
        If a line cannot be read, with its number and the reason.
    OSError
        If a file is missing or damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skbandit.datasets import read_yahoo_r6
    >>> lines = '''1317513291 id-560620 0 |user 1 9 11 |id-552077 |id-560620
    ... 1317513292 id-552077 1 |user 1 4 |id-552077 |id-560620
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "ydata-fp-td-clicks-v2_0.20111002")
    ...     _ = path.write_text(lines)
    ...     (log,) = read_yahoo_r6(path)
    >>> log.X.shape
    (2, 136)
    >>> log.y[["action", "reward", "available"]]
          action  reward               available
    0  id-560620       0  (id-552077, id-560620)
    1  id-552077       1  (id-552077, id-560620)
    """
    check_line_options(block_size, malformed)
    files = existing_files(paths)
    return read_blocks(
        files, _Block(), longest=_LONGEST, block_size=block_size, skip=malformed == "skip"
    )


@dataclass
class _Block:
    """The events read so far, and the articles and pools seen."""

    binary: bool | None = None  # True for R6B, False for R6A; None: not known yet
    timestamp: list[int] = field(default_factory=list)
    action: list[Any] = field(default_factory=list)
    reward: list[int] = field(default_factory=list)
    available: list[tuple[Any, ...]] = field(default_factory=list)
    # Features of all events: six values each (R6A), or the columns that are 1 (R6B). Flat, as the
    # garbage collector would traverse many small lists again and again.
    users: list[Any] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    articles: dict[Any, list[float] | None] = field(default_factory=dict)
    # Text of an article -> its name and label. Each block starts anew and keeps only the last pool,
    # which bounds memory.
    labels: dict[bytes, tuple[bytes, Any]] = field(default_factory=dict)
    pool_text: bytes = b""
    pool_labels: dict[bytes, Any] = field(default_factory=dict)
    pool: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.timestamp)

    def next(self) -> _Block:
        """An empty block of the same format."""
        return _Block(self.binary)

    def add(self, line: bytes) -> None:
        """Add the event of a line; a malformed line raises a ValueError and adds nothing."""
        if len(line) == _LONGEST:
            raise ValueError(
                f"the line has more than {_LONGEST:,} bytes; it begins {quoted(line)}."
            )
        head, _, rest = line.partition(b"|user")
        user, bar, text = rest.partition(b"|")
        fields = head.split()
        if not bar or len(fields) != 3:
            raise ValueError(
                f"expected 'time shown click |user features |article ... |article ...', got "
                f"{quoted(line)}."
            )
        time, name, click = fields
        if not time.isdigit():
            raise ValueError(f"the time must be a whole number of seconds, got {quoted(time)}.")
        if click not in (b"0", b"1"):
            raise ValueError(f"the click must be 0 or 1, got {quoted(click)}.")
        if text != self.pool_text:
            self._read_pool(text)
        if name not in self.pool_labels:
            raise ValueError(f"the article shown, {quoted(name)}, is not in the pool.")
        binary = b":" not in user
        if self.binary not in (None, binary):
            raise ValueError(f"a line of R6{'AB'[binary]} after lines of R6{'BA'[binary]}.")
        features = _read_indices(user) if binary else _read_values(user, "the user")
        self.binary = binary
        self.users += features
        self.lengths.append(len(features))
        self.timestamp.append(int(time))
        self.action.append(self.pool_labels[name])
        self.reward.append(int(click))
        self.available.append(self.pool)

    def _read_pool(self, text: bytes) -> None:
        """Set the current pool."""
        labels: dict[bytes, Any] = {}
        for article in text.split(b"|"):
            name, label = self.labels.get(article) or self._read_article(article)
            if name in labels:
                raise ValueError(f"the pool has article {label!r} twice.")
            labels[name] = label
        self.pool_text, self.pool_labels, self.pool = text, labels, tuple(labels.values())

    def _read_article(self, text: bytes) -> tuple[bytes, Any]:
        """Name and label of an article; its features are stored."""
        name, _, described = text.strip().partition(b" ")
        if not name or not name.isascii():
            raise ValueError(f"the pool has an article without a name: {quoted(text)}.")
        label = int(name) if name.isdigit() else name.decode()
        features = _read_values(described, f"article {label}") if described.strip() else None
        self.articles[label] = features
        self.labels[text] = name, label
        return name, label

    def bunch(self, n_skipped: int) -> Bunch:
        """The block as yielded to the caller."""
        available: Any = np.empty(len(self), dtype=object)
        available[:] = self.available
        y = pd.DataFrame(
            {
                "action": self.action,
                "reward": self.reward,
                "propensity": 1.0 / np.fromiter(map(len, self.available), dtype=np.float64),
                "timestamp": self.timestamp,
                "available": available,
            }
        )
        if self.binary:
            indices, articles = _R6B, None
            X = np.zeros((len(self), len(indices)), dtype=np.uint8)
            X[np.repeat(np.arange(len(self)), self.lengths), self.users] = 1
        else:
            indices, X = _R6A, np.array(self.users).reshape(len(self), len(_R6A))
            rows = [[nan] * len(indices) if row is None else row for row in self.articles.values()]
            articles = pd.DataFrame(rows, list(self.articles), _names("article", indices))
        return Bunch(
            X=pd.DataFrame(X, columns=_names("user", indices)),
            y=y,
            available=y["available"],
            article_features=articles,
            n_skipped=n_skipped,
        )


def _read_values(text: bytes, whose: str) -> list[float]:
    """The six features of R6A, written as index:value."""
    tokens = text.replace(b":", b" ").split()
    try:
        numbers = dict(zip(tokens[::2], map(float, tokens[1::2]), strict=True))
        values = [numbers[index] for index in _R6A]
    except (ValueError, KeyError):
        values = [nan]
    if len(tokens) != 2 * len(_R6A) or not isfinite(sum(values)):
        raise ValueError(
            f"{whose} must have the features 1 to {len(_R6A)} as index:value, got {quoted(text)}."
        )
    return values


def _read_indices(text: bytes) -> list[int]:
    """Columns of the features that are 1 in R6B."""
    try:
        return [_R6B[index] for index in text.split()]
    except KeyError as error:
        raise ValueError(
            f"the user's features must be indices from 1 to {len(_R6B)}, got "
            f"{quoted(error.args[0])}."
        ) from error


def _names(of: str, indices: dict[bytes, int]) -> list[str]:
    """Column names."""
    return [f"{of}_{j + 1}" for j in indices.values()]
