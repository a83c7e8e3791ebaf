"""Logs in Parquet files: a stream of blocks, read by pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.utils._optional import import_optional

__all__ = ["read_parquet_log"]

_LOG = ("action", "reward", "propensity", "timestamp", "available")


def read_parquet_log(
    source: Any,
    features: Iterable[str],
    *,
    names: Mapping[str, str] | None = None,
    chunk_size: int = 100_000,
) -> Iterator[Bunch]:
    """Read a log of decisions from Parquet files, a chunk of events at a time.

    Parameters
    ----------
    source : path, list of paths, or pyarrow Dataset
        A file, a folder of files (read in the order of their names) or files in the order
        given, on disk or at whatever address pyarrow reads. Of a Dataset, as made by
        ``pyarrow.dataset.dataset(...).filter(...)``, the events that it selects.
    features : iterable of str
        Columns that are contexts; there may be none.
    names : dict of str, default=None
        Columns of the files that are called otherwise: ``{"action": "item_id"}``.
    chunk_size : int, default=100_000
        Events in a chunk. The last chunk of a file's row group may have fewer.

    Yields
    ------
    Bunch
        With, a row an event,

        - ``X``: DataFrame of the features.
        - ``y``: DataFrame of ``action``, ``reward``, and of ``propensity``, ``timestamp`` and
          ``available`` those that the files have; ``available`` holds tuples of labels.

    Raises
    ------
    ValueError
        If a column is missing.
    ImportError
        If pyarrow is not installed.

    See Also
    --------
    skbandit.evaluation.replay_blocks : For policies that learn.
    skbandit.evaluation.off_policy_blocks : For policies that do not.

    Notes
    -----
    Other columns are not read. Memory is needed for a few chunks and for the row group that
    they are in: write files with row groups of at most some millions of events.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from skbandit.datasets import make_bandit_log, read_parquet_log
    >>> log = make_bandit_log(2500, n_arms=3, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     pd.concat([log.X, log.y], axis=1).to_parquet(Path(folder, "monday.parquet"))
    ...     sizes = [
    ...         len(block.y) for block in read_parquet_log(folder, log.X.columns, chunk_size=1000)
    ...     ]
    >>> sizes
    [1000, 1000, 500]
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    if isinstance(features, str):
        raise TypeError(f"features must be a list of names, got {features!r}.")
    features, names = list(features), dict(names or {})
    unknown = [name for name in names if name not in _LOG]
    if unknown:
        raise ValueError(f"names has {unknown[0]!r}, expected some of {_LOG}.")
    dataset = _open(source)
    there = set(dataset.schema.names)
    columns = {name: names.get(name, name) for name in _LOG}
    needed = [*features, columns["action"], columns["reward"], *names.values()]
    missing = [name for name in needed if name not in there]
    if missing:
        raise ValueError(f"no column {missing[0]!r}: there are {dataset.schema.names}.")
    return _read(dataset, features, {k: v for k, v in columns.items() if v in there}, chunk_size)


def _open(source: Any) -> Any:
    """The files as pyarrow knows them."""
    datasets = import_optional("pyarrow.dataset", "read_parquet_log")
    if isinstance(source, datasets.Dataset):
        return source
    if isinstance(source, str | os.PathLike):
        return datasets.dataset(os.fspath(source), format="parquet")
    files = [os.fspath(path) for path in source]
    if not files:
        raise ValueError("source names no file.")
    return datasets.dataset(files, format="parquet")


def _read(
    dataset: Any, features: list[str], columns: dict[str, str], chunk_size: int
) -> Iterator[Bunch]:
    """The chunks; a function of its own, so that wrong arguments are refused at the call."""
    batches = dataset.to_batches(
        columns=[*dict.fromkeys([*features, *columns.values()])],
        batch_size=chunk_size,
        batch_readahead=1,
        fragment_readahead=1,
    )
    for batch in batches:
        if not len(batch):
            continue
        y = {}
        for name, column in columns.items():
            values = batch.column(column)
            y[name] = _pools(values) if name == "available" else values.to_pandas()
        X = batch.select(features).to_pandas() if features else _nothing(len(batch))
        yield Bunch(X=X, y=pd.DataFrame(y))


def _nothing(n_rows: int) -> pd.DataFrame:
    """Contexts without features."""
    return pd.DataFrame(index=pd.RangeIndex(n_rows))


def _pools(column: Any) -> np.ndarray:
    """Lists of labels as tuples, one for all events that have the same."""
    seen: dict[Any, Any] = {}
    pools = np.empty(len(column), dtype=object)
    for row, labels in enumerate(column.to_pylist()):
        pool = None if labels is None else tuple(labels)
        pools[row] = seen.setdefault(pool, pool)
    return pools
