"""The logs of Yahoo!'s Today Module, R6A and R6B: a stream of events from its lines."""

from __future__ import annotations

import gzip
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

__all__ = ["read_yahoo_r6"]

# Bytes of a line that is none: pools of hundreds of articles need a tenth of it.
_LONGEST = 2**20

# Features go by their index, counted from 1; the first is the constant.
_R6A = {b"%d" % (j + 1): j for j in range(6)}
_R6B = {b"%d" % (j + 1): j for j in range(136)}


def read_yahoo_r6(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    chunk_size: int = 100_000,
    malformed: Literal["raise", "skip"] = "raise",
) -> Iterator[Bunch]:
    """Read the log of Yahoo!'s Today Module, R6A or R6B, a chunk of events at a time.

    Which article was shown to a visitor of Yahoo!'s front page, out of a pool of about 20 that
    changes over the day, and whether it was clicked. Articles were drawn from the pool uniformly
    at random. Li, Chu, Langford, Moon and Wang (2012) compare policies on such a log. Yahoo!
    gives the files (Webscope, R6) to researchers who ask for them.

    Parameters
    ----------
    paths : path or iterable of paths
        Files of lines as published, plain or packed with gzip (named ``*.gz``), in order of time.
    chunk_size : int, default=100_000
        Events in a chunk; the last one may have fewer. Memory is needed for one chunk, however
        long the files are.
    malformed : {"raise", "skip"}, default="raise"
        Whether a line that cannot be read is an error, or is left out; how many were is in each
        chunk, and in a warning at the end.

    Yields
    ------
    Bunch
        With, a row an event,

        - ``X``: DataFrame of the visitor's features by index, ``user_1`` to ``user_6`` (R6A:
          floats, memberships of five clusters) or ``user_136`` (R6B: 0 and 1). ``user_1`` is
          the constant: drop it for a policy with an intercept of its own.
        - ``y``: DataFrame with ``action`` (the article), ``reward`` (1 if clicked),
          ``propensity``, ``timestamp`` (seconds) and ``available``, the tuple of the articles
          in the pool. Articles are ints in R6A and strings in R6B. Events with equal pools
          share one tuple.
        - ``available``: that column.
        - ``article_features``: DataFrame, one row an article of the chunk, ``article_1`` to
          ``article_6`` (R6A; an article that comes without features has nan); None for R6B.
        - ``n_skipped``: malformed lines left out so far.

    Raises
    ------
    ValueError
        If a line cannot be read, with its number and what is wrong with it.
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
    if malformed not in ("raise", "skip"):
        raise ValueError(f"malformed must be 'raise' or 'skip', got {malformed!r}.")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    files = [Path(path) for path in given]
    if not files:
        raise ValueError("paths names no file.")
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file.")
    return _read(files, chunk_size, malformed == "skip")


def _read(files: list[Path], chunk_size: int, skip: bool) -> Iterator[Bunch]:
    """The chunks; a function of its own, so that wrong arguments are refused at the call."""
    chunk, n_events, n_skipped, first = _Chunk(), 0, 0, ""
    for path in files:
        for number, line in enumerate(_lines(path), start=1):
            try:
                chunk.add(line)
            except ValueError as error:
                what = f"{path}, line {number}: {error}"
                if not skip:
                    raise ValueError(f"{what} Pass malformed='skip' to leave it out.") from error
                n_skipped += 1
                first = first or what
            if len(chunk) == chunk_size:
                yield chunk.bunch(n_skipped)
                n_events += chunk_size
                chunk = _Chunk(chunk.binary)
    if len(chunk):
        yield chunk.bunch(n_skipped)
    elif not n_events:
        raise ValueError(f"no event was found in {', '.join(map(str, files))}. {first}".strip())
    if n_skipped:
        warnings.warn(
            f"{n_skipped} malformed lines were left out, the first: {first}", stacklevel=2
        )


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, cut to what one of this format cannot reach."""
    number = 0
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        try:
            while line := file.readline(_LONGEST):
                rest = line
                while len(rest) == _LONGEST and not rest.endswith(b"\n"):
                    rest = file.readline(_LONGEST)
                number += 1
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"{path} is damaged after line {number}: {error}") from error


@dataclass
class _Chunk:
    """The events read so far, and what was learned of articles on the way."""

    binary: bool | None = None  # whether lines are of R6B; None: not known yet
    timestamp: list[int] = field(default_factory=list)
    action: list[Any] = field(default_factory=list)
    reward: list[int] = field(default_factory=list)
    available: list[tuple[Any, ...]] = field(default_factory=list)
    # One event's features after the other's: six values of R6A, or as many columns of R6B as
    # are 1. Flat, as the garbage collector would look through many small lists again and again.
    users: list[Any] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    articles: dict[Any, list[float] | None] = field(default_factory=dict)
    # Text of an article -> its name and label. A chunk forgets what the one before has seen, and
    # all pools but the last: however they change, memory is bounded.
    labels: dict[bytes, tuple[bytes, Any]] = field(default_factory=dict)
    pool_text: bytes = b""
    pool_labels: dict[bytes, Any] = field(default_factory=dict)
    pool: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.timestamp)

    def add(self, line: bytes) -> None:
        """Read a line; one that is malformed is a ValueError and adds no event."""
        if len(line) == _LONGEST:
            raise ValueError(f"a line of more than {_LONGEST:,} bytes, it begins {_shown(line)}.")
        head, _, rest = line.partition(b"|user")
        user, bar, text = rest.partition(b"|")
        fields = head.split()
        if not bar or len(fields) != 3:
            raise ValueError(
                f"expected 'time shown click |user features |article ... |article ...', got "
                f"{_shown(line)}."
            )
        time, name, click = fields
        if not time.isdigit():
            raise ValueError(f"the time must be a whole number of seconds, got {_shown(time)}.")
        if click not in (b"0", b"1"):
            raise ValueError(f"the click must be 0 or 1, got {_shown(click)}.")
        if text != self.pool_text:
            self._read_pool(text)
        if name not in self.pool_labels:
            raise ValueError(f"the article shown, {_shown(name)}, is not in the pool.")
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
        """Let this be the last pool."""
        labels: dict[bytes, Any] = {}
        for article in text.split(b"|"):
            name, label = self.labels.get(article) or self._read_article(article)
            if name in labels:
                raise ValueError(f"the pool has article {label!r} twice.")
            labels[name] = label
        self.pool_text, self.pool_labels, self.pool = text, labels, tuple(labels.values())

    def _read_article(self, text: bytes) -> tuple[bytes, Any]:
        """Name and label of an article, whose features are kept."""
        name, _, described = text.strip().partition(b" ")
        if not name or not name.isascii():
            raise ValueError(f"the pool has an article without a name: {_shown(text)}.")
        label = int(name) if name.isdigit() else name.decode()
        features = _read_values(described, f"article {label}") if described.strip() else None
        self.articles[label] = features
        self.labels[text] = name, label
        return name, label

    def bunch(self, n_skipped: int) -> Bunch:
        """The events as the caller gets them."""
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
    """Six features of R6A, each with its index."""
    tokens = text.replace(b":", b" ").split()
    try:
        numbers = dict(zip(tokens[::2], map(float, tokens[1::2]), strict=True))
        values = [numbers[index] for index in _R6A]
    except (ValueError, KeyError):
        values = [nan]
    if len(tokens) != 2 * len(_R6A) or not isfinite(sum(values)):
        raise ValueError(
            f"{whose} must have the features 1 to {len(_R6A)} as index:value, got {_shown(text)}."
        )
    return values


def _read_indices(text: bytes) -> list[int]:
    """Columns of the features that R6B has as 1."""
    try:
        return [_R6B[index] for index in text.split()]
    except KeyError as error:
        raise ValueError(
            f"the user's features must be indices from 1 to {len(_R6B)}, got "
            f"{_shown(error.args[0])}."
        ) from error


def _names(of: str, indices: dict[bytes, int]) -> list[str]:
    """Names of columns."""
    return [f"{of}_{j + 1}" for j in indices.values()]


def _shown(text: bytes) -> str:
    """Part of a line to quote in a message."""
    words = text[:100].decode("ascii", errors="backslashreplace").strip()
    return repr(words if len(words) <= 60 else words[:57] + "...")
