"""Logs in Parquet files: a stream of blocks, read by pyarrow."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.utils._optional import import_optional
from skbandit.utils._validation import as_labels

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
        If a column is missing, in any file, or if what a file says cannot be read.
    OSError
        If a file is not there, is damaged or is no Parquet file.
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
    if not (isinstance(chunk_size, Integral) and 1 <= chunk_size < 2**31):
        raise ValueError(f"chunk_size must be an integer of at least 1, got {chunk_size!r}.")
    features = as_labels(features, "features")
    for name, times in Counter(features).items():
        if times > 1:
            raise ValueError(f"features names column {name!r} twice.")
    if not (names is None or isinstance(names, Mapping)):
        raise TypeError(f"names must be a dict of column names, got {names!r}.")
    own = dict(names or {})
    unknown = [name for name in own if name not in _LOG]
    if unknown:
        raise ValueError(f"names has {unknown[0]!r}, expected some of {_LOG}.")
    columns = {name: own.get(name, name) for name in _LOG}
    dataset = _open(source)
    with _in_pyarrow("the column names of source"):
        found = Counter(dataset.schema.names)
    needed = [*features, columns["action"], columns["reward"], *as_labels(own.values(), "names")]
    for name in (*needed, *columns.values()):
        if found[name] > 1:  # as there may be in a Dataset
            raise ValueError(f"two columns are called {name!r}, among {dataset.schema.names}.")
        if name in needed and not found[name]:
            raise ValueError(f"no column {name!r}: there are {dataset.schema.names}.")
    _check_lists(dataset.schema, columns["available"])
    there = {name: column for name, column in columns.items() if found[column]}
    # a Dataset may leave out or add columns on purpose
    shared = set() if dataset is source else {*features, *columns.values()}
    return _read(dataset, features, there, int(chunk_size), shared)


def _open(source: Any) -> Any:
    """The files as pyarrow knows them."""
    datasets = import_optional("pyarrow.dataset", "read_parquet_log")
    if isinstance(source, datasets.Dataset):
        return source
    alone = isinstance(source, str | bytes | os.PathLike)
    try:
        files = [os.fsdecode(path) for path in ([source] if alone else source)]
    except TypeError as error:
        raise TypeError(
            f"source must be a path, a list of paths or a pyarrow Dataset, got {source!r}."
        ) from error
    if not files or "" in files:
        raise ValueError("source names no file.")
    with _in_pyarrow("source"):
        dataset = datasets.dataset(files[0] if alone else files, format="parquet")
    if not dataset.files:
        raise ValueError(f"source={files[0]!r} is a folder without files.")
    return dataset


@contextmanager
def _in_pyarrow(place: str) -> Iterator[None]:
    """Let what pyarrow finds wrong with files be told of a place."""
    lib = import_optional("pyarrow.lib", "read_parquet_log")
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{place}: there is no file {error}.") from error
    except OSError as error:
        raise OSError(f"{place}: cannot be read, is it damaged? {error}") from error
    except (lib.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(f"{place}: cannot be read: {error}") from error


def _check_lists(schema: Any, name: str) -> None:
    """Require that what is available is lists of labels, if there is such a column."""
    if name not in schema.names:
        return
    types = import_optional("pyarrow.types", "read_parquet_log")
    kind = schema.field(name).type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or types.is_nested(kind.value_type):
        raise ValueError(f"column {name!r} must hold lists of arm labels, its type is {kind}.")


def _read(
    dataset: Any,
    features: list[str],
    columns: dict[str, str],
    chunk_size: int,
    shared: set[str],
) -> Iterator[Bunch]:
    """The chunks; a function of its own, so that wrong arguments are refused at the call."""
    scanned = dataset.scanner(
        columns=[*dict.fromkeys([*features, *columns.values()])],
        batch_size=chunk_size,
        batch_readahead=1,
        fragment_readahead=1,
    ).scan_batches()
    files = getattr(dataset, "files", [])
    file, n_events = files[0] if files else "the dataset", 0
    while True:
        # an error does not say in which file it arose
        place = f"{file} or a file after it" if len(files) > 1 else file
        with _in_pyarrow(f"{place}, after event {n_events:,}"):
            tagged = next(scanned, None)
            if tagged is None:
                return
            file, batch = getattr(tagged.fragment, "path", file), tagged.record_batch
            names = tagged.fragment.physical_schema.names
            batch.validate(full=True)  # texts that are none would be found much later
            chunk = _chunk(batch, features, columns) if len(batch) else None
        for name in sorted(shared.intersection(names) ^ shared.intersection(dataset.schema.names)):
            has = "has a" if name in names else "has no"
            raise ValueError(f"{file} {has} column {name!r}, unlike {files[0]}.")
        if chunk:
            n_events += len(batch)
            yield chunk


def _chunk(batch: Any, features: list[str], columns: dict[str, str]) -> Bunch:
    """Contexts and log of a batch."""
    y = {}
    for name, column in columns.items():
        values = batch.column(column)
        y[name] = _pools(values) if name == "available" else values.to_pandas()
    # of what pandas wrote, metadata would make some of the columns the index
    X = batch.select(features).replace_schema_metadata().to_pandas()
    X = X if features else _nothing(len(batch))
    return Bunch(X=X, y=pd.DataFrame(y))


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
