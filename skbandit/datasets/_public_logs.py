"""Published logs of bandits: Yahoo!'s Today Module, R6A and R6B, and the Open Bandit data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import isfinite, nan
from struct import pack
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.datasets._files import INCLUDED, quote, read_blocks

# One-based feature index -> column; the first feature is the constant.
_R6A = {b"%d" % (j + 1): j for j in range(6)}
_R6B = {b"%d" % (j + 1): j for j in range(136)}
_NO_FEATURES = [nan] * len(_R6A)

_USER = [f"user_feature_{j}" for j in range(4)]
_AFFINITY = "user-item_affinity_"


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
    return read_blocks(paths, _YahooReader(), block_size, malformed)


class _YahooReader:
    """Reads events, and stores articles and pools until the end of a block, to bound memory."""

    def __init__(self) -> None:
        self.binary: bool | None = None  # True for R6B, False for R6A; None: not known yet
        self._forget()

    def _forget(self) -> None:
        self.articles: dict[Any, list[float]] = {}  # features by label
        self.named: dict[bytes, tuple[bytes, Any]] = {}  # name and label by text
        # The last pool: its text, the labels by name, and the labels.
        self.text, self.pool, self.available = b"", dict[bytes, Any](), tuple[Any, ...]()

    def read(self, line: bytes) -> tuple[Any, ...] | None:
        """Return action, reward, time, available articles and the visitor's features."""
        line = line.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
        if not line.strip():
            return None
        head, _, rest = line.partition(b"|user")
        user, bar, text = rest.partition(b"|")
        fields = head.split()
        if not bar or len(fields) != 3:
            raise ValueError(
                f"expected 'time shown click |user features |article ... |article ...', got "
                f"{quote(line)}."
            )
        time, name, click = fields
        if not time.isdigit() or len(time) > 12:
            raise ValueError(f"the time must be a whole number of seconds, got {quote(time)}.")
        if click not in (b"0", b"1"):
            raise ValueError(f"the click must be 0 or 1, got {quote(click)}.")
        if text != self.text:
            self._read_pool(text)
        if name not in self.pool:
            raise ValueError(f"the article shown, {quote(name)}, is not in the pool.")
        binary = b":" not in user
        if self.binary not in (None, binary):
            raise ValueError(f"a line of R6{'AB'[binary]} after lines of R6{'BA'[binary]}.")
        # as bytes, which the garbage collector does not traverse again and again
        try:
            features: bytes = bytes(map(_R6B.__getitem__, user.split())) if binary else b""
        except KeyError as error:
            raise ValueError(
                f"the user's features must be indices from 1 to {len(_R6B)}, got "
                f"{quote(error.args[0])}."
            ) from error
        features = features if binary else pack("6d", *_read_values(user, "the user"))
        self.binary = binary
        return self.pool[name], int(click), int(time), self.available, features

    def _read_pool(self, text: bytes) -> None:
        """Set the current pool."""
        pool: dict[bytes, Any] = {}
        for article in text.split(b"|"):
            name, label = self.named.get(article) or self._read_article(article)
            if name in pool:
                raise ValueError(f"the pool has article {label!r} twice.")
            pool[name] = label
        self.text, self.pool, self.available = text, pool, tuple(pool.values())

    def _read_article(self, text: bytes) -> tuple[bytes, Any]:
        """Name and label of an article; its features are stored."""
        name, _, described = text.strip().partition(b" ")
        if not name or not name.isascii():
            raise ValueError(f"the pool has an article without a name: {quote(text)}.")
        label = int(name) if name.isdigit() else name.decode()
        values = _read_values(described, f"article {label}") if described else _NO_FEATURES
        self.articles[label] = values
        self.named[text] = name, label
        return name, label

    def bunch(self, columns: list[list[Any]], n_skipped: int) -> Bunch:
        """Return the block as yielded to the caller."""
        action, reward, timestamp, available, features = columns
        y = pd.DataFrame(
            {
                "action": action,
                "reward": reward,
                "propensity": [1.0 / len(pool) for pool in available],
                "timestamp": timestamp,
                "available": available,
            }
        )
        articles = None
        if self.binary:
            X: Any = np.zeros((len(action), len(_R6B)), dtype=np.uint8)
            rows = np.repeat(np.arange(len(action)), [len(indices) for indices in features])
            X[rows, np.frombuffer(b"".join(features), dtype=np.uint8)] = 1
        else:
            X = np.frombuffer(bytearray().join(features)).reshape(len(action), len(_R6A))
            articles = pd.DataFrame.from_dict(self.articles, orient="index")
            articles.columns = [f"article_{j + 1}" for j in range(len(_R6A))]
        self._forget()
        return Bunch(
            X=pd.DataFrame(X, columns=[f"user_{j + 1}" for j in range(X.shape[1])]),
            y=y,
            available=y["available"],
            article_features=articles,
            n_skipped=n_skipped,
        )


def _read_values(text: bytes, whose: str) -> list[float]:
    """Return the six features of R6A, written as index:value."""
    tokens = text.replace(b":", b" ").split()
    try:
        numbers = dict(zip(tokens[::2], map(float, tokens[1::2]), strict=True))
        values = [numbers[index] for index in _R6A]
    except (ValueError, KeyError):
        values = [nan]
    # Python reads 0_1 as 1
    if len(tokens) != 2 * len(_R6A) or b"_" in text or not isfinite(sum(values)):
        raise ValueError(
            f"{whose} must have the features 1 to {len(_R6A)} as index:value, got {quote(text)}."
        )
    return values


def load_open_bandit(
    logging: Literal["random", "bts"] = "random", *, return_X_y: bool = False
) -> Bunch | tuple[pd.DataFrame, pd.DataFrame]:
    """Load the Open Bandit sample installed with the package (10,000 events, 34 items).

    The columns of X are the same for both logs, so that a policy trained on one can be evaluated
    on the other.

    Parameters
    ----------
    logging : {"random", "bts"}, default="random"
        The logging policy: uniform, or Bernoulli Thompson sampling with propensities as small as
        1.65e-4.
    return_X_y : bool, default=False
        Whether to return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    Bunch or tuple
        A Bunch with, one row per event in order of time,

        - ``X``: DataFrame of 26 zeros and ones, the one-hot encoded four categories of a user.
          Columns such as ``user_feature_0_cef3390e`` name the category and its level, hashed by
          the publisher.
        - ``y``: DataFrame with ``action`` (the item), ``reward`` (1 if clicked),
          ``propensity``, ``timestamp`` and ``available``, a tuple of all items.
        - ``available``: that column.
        - ``position``: Series of 1, 2, 3, the position of the item.
        - ``affinity``: DataFrame of the user's affinity to each item (one column per item);
          nearly all are 0.
        - ``item_context``: DataFrame, one row per item: one number and three categories, whose
          levels are hashed differently in the two logs.
        - ``users``: DataFrame of the four categories before encoding.
        - ``DESCR``.

        With `return_X_y`, the tuple ``(X, y)``.

    Notes
    -----
    The files are the publisher's sample of the men's campaign, compressed: Saito, Aihara, Matsutani
    and Narita, "Open Bandit Dataset and Pipeline" (2021), https://github.com/st-tech/zr-obp,
    CC BY 4.0.

    Examples
    --------
    >>> from skbandit.datasets import load_open_bandit
    >>> log = load_open_bandit("bts")
    >>> log.X.shape, len(log.item_context)
    ((10000, 26), 34)
    >>> int(log.y["reward"].sum())
    69
    """
    if logging not in ("random", "bts"):
        raise ValueError(f"logging must be 'random' or 'bts', got {logging!r}.")
    folder = INCLUDED / "open_bandit"
    # Read both logs: each alone may lack some levels of a category.
    tables = pd.concat(
        {name: pd.read_csv(folder / name / "men.csv.gz", index_col=0) for name in ("random", "bts")}
    )
    levels = tables[_USER].apply(lambda level: level.str[:8])
    encoded = pd.get_dummies(levels, dtype=np.float64).loc[logging]
    table: Any = tables.astype(dict.fromkeys(_USER, "category")).loc[logging]
    affinity = table.filter(like=_AFFINITY)
    affinity.columns = [int(name.removeprefix(_AFFINITY)) for name in affinity.columns]
    y = pd.DataFrame(
        {
            "action": table["item_id"],
            "reward": table["click"],
            "propensity": table["propensity_score"],
            "timestamp": pd.to_datetime(table["timestamp"]),
            "available": [tuple(affinity.columns)] * len(table),
        }
    )
    if return_X_y:
        return encoded, y
    items = pd.read_csv(folder / logging / "item_context.csv.gz", index_col=0)
    return Bunch(
        X=encoded,
        y=y,
        available=y["available"],
        position=table["position"],
        affinity=affinity,
        item_context=items.set_index("item_id"),
        users=table[_USER],
        DESCR=(folder / "men.md").read_text(encoding="utf-8"),
    )
