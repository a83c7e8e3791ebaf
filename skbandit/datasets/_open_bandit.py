"""The Open Bandit data: recommendations of a fashion shop, uniform or by Thompson sampling."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.datasets._files import INCLUDED, DataFile, load_bytes

# The commit of the repository that published both samples, so that they never change.
_ZR_OBP = (
    "https://raw.githubusercontent.com/st-tech/zr-obp/"
    "12eb4f1738b8220498f9faed5ff6a4ffe5f4c626/obp/dataset/obd/"
)


def _file(logging: str, name: str, sha256: str) -> DataFile:
    """A file of the men's campaign; both files of a log share a local folder."""
    return DataFile(f"open_bandit/{logging}", name, f"{_ZR_OBP}{logging}/men/{name}", sha256)


_LOGS = {
    logging: _file(logging, "men.csv", sha256)
    for logging, sha256 in (
        ("random", "ede6d08c6877f99cd3770f7d09e26c738e6aa6de4445ccccfb1356ba5d06b1eb"),
        ("bts", "db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527"),
    )
}
_ITEMS = {
    logging: _file(logging, "item_context.csv", sha256)
    for logging, sha256 in (
        ("random", "6d855c2b7e917d0448d71bbe62c023147495882c0fdc8c41e86fef86abf9fe09"),
        ("bts", "3b411ed6b0471316321a6b93f4f756bb25888eac6218cd71d0b603d41d85732d"),
    )
}

_USER = [f"user_feature_{j}" for j in range(4)]
_AFFINITY = "user-item_affinity_"

_DESCR = """\
Open Bandit Dataset, sample of 10,000 events of the men's campaign, ZOZO Research, CC BY 4.0.
Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline: Toward Realistic and
Reproducible Off-Policy Evaluation" (2021).

ZOZOTOWN, an online shop for fashion, in the last week of November 2019: which of 34 items was
shown in one of three positions, with what probability, and whether it was clicked. Items were
chosen uniformly at random, or by Bernoulli Thompson sampling (bts). There are 46 clicks in the
former log and 69 in the latter: enough to try software, too few to tell good policies from bad.
"""


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
        As `fetch_open_bandit` returns it.

    See Also
    --------
    fetch_open_bandit : The same from a folder of your own, or downloaded.

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
    return fetch_open_bandit(logging, return_X_y=return_X_y, **INCLUDED)


def fetch_open_bandit(
    logging: Literal["random", "bts"] = "random",
    campaign: Literal["men"] = "men",
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.DataFrame]:
    """Load the Open Bandit sample (a log of 10,000 recommendations, 34 items).

    The files are read from a local folder or downloaded once, and checked by hash. The columns of
    X are the same for both logs, so that a policy trained on one can be evaluated on the other.

    Parameters
    ----------
    logging : {"random", "bts"}, default="random"
        The logging policy: uniform, or Bernoulli Thompson sampling with propensities as small as
        1.65e-4.
    campaign : {"men"}, default="men"
        Part of the shop; only the men's sample is available.
    data_home : path-like, default=None
        The folder to search and to download to; the files are ``men.csv`` and
        ``item_context.csv`` in its subfolders ``open_bandit/random`` and ``open_bandit/bts``,
        as published or compressed with gzip. If None, the folder named by the environment variable
        ``SKBANDIT_DATA`` is searched, then ``skbandit`` inside scikit-learn's data home, which
        also receives downloads.
    download_if_missing : bool, default=True
        Whether to download files that are not found; if False, a missing file is an ``OSError``.
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

    See Also
    --------
    load_open_bandit : The same, from files installed with the package.

    Examples
    --------
    If the files are missing and downloads are off, the error names the cure:

    >>> from skbandit.datasets import fetch_open_bandit
    >>> fetch_open_bandit(data_home="no-such-folder", download_if_missing=False)
    Traceback (most recent call last):
        ...
    OSError: men.csv was not found in no-such-folder/open_bandit/random. Pass ...

    With the files (not run here, as it needs the network):

    >>> log = fetch_open_bandit("bts")  # doctest: +SKIP
    >>> log.y.groupby("action")["reward"].mean()  # doctest: +SKIP
    """
    if logging not in _LOGS:
        raise ValueError(f"logging must be 'random' or 'bts', got {logging!r}.")
    if campaign != "men":
        raise ValueError(f"campaign must be 'men', the only sample available, got {campaign!r}.")

    def load(file: DataFile) -> pd.DataFrame:
        return pd.read_csv(BytesIO(load_bytes(file, data_home, download_if_missing)), index_col=0)

    # Read both logs: each alone may lack some levels of a category.
    tables = pd.concat({name: load(file) for name, file in _LOGS.items()})
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
    return Bunch(
        X=encoded,
        y=y,
        available=y["available"],
        position=table["position"],
        affinity=affinity,
        item_context=load(_ITEMS[logging]).set_index("item_id"),
        users=table[_USER],
        DESCR=_DESCR,
    )
