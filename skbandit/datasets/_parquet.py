"""Read logs in Parquet files as blocks, with pyarrow."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.logs import read_table
from skbandit.utils._exact import exact_column
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import as_labels

__all__ = ["read_parquet_log"]

Block = TypeVar("Block")

_COLUMN_NAMES = ("action", "reward", "propensity", "timestamp", "available")

TABLE_ROWS = 500_000
"""Rows of a table of `read_parquet_tables`: fewer take longer, more need more memory."""


def read_parquet_log(
    source: Any,
    features: Iterable[str],
    *,
    names: Mapping[str, str] | None = None,
    block_size: int = 100_000,
) -> Iterator[Bunch]:
    """Read a log of decisions from Parquet files, one block of events at a time.

    Parameters
    ----------
    source : path, list of paths, or pyarrow Dataset
        A file, a folder of files (read in the order of their names), or files in the given
        order, on disk or at any address that pyarrow reads. A Dataset may be filtered, as by
        ``pyarrow.dataset.dataset(...).filter(...)``.
    features : iterable of str
        Columns that are contexts; may be empty.
    names : dict of str, default=None
        Column names in the files, if different: ``{"action": "item_id"}``.
    block_size : int, default=100_000
        Number of events per block. The last block of a row group may have fewer.

    Yields
    ------
    Bunch
        With, one row per event,

        - ``X``: DataFrame of the features.
        - ``y``: DataFrame of ``action``, ``reward`` and, if present, ``propensity``,
          ``timestamp`` and ``available``, which holds tuples of labels.

    Raises
    ------
    ValueError
        If a column is missing in any file, or the content of a file cannot be read.
    OSError
        If a file is missing, damaged or not a Parquet file.
    ImportError
        If pyarrow is not installed.

    See Also
    --------
    skbandit.evaluation.replay_blocks : Evaluates policies that learn.
    skbandit.evaluation.off_policy_blocks : Evaluates policies that do not learn.

    Notes
    -----
    Other columns are not read. Memory is needed for a few blocks and their row group: write files
    with row groups of at most a few million events.

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
    ...         len(block.y) for block in read_parquet_log(folder, log.X.columns, block_size=1000)
    ...     ]
    >>> sizes
    [1000, 1000, 500]
    """
    if not (isinstance(block_size, Integral) and 1 <= block_size < 2**31):
        raise ValueError(f"block_size must be an integer of at least 1, got {block_size!r}.")
    features = as_labels(features, "features")
    twice = [name for name, times in Counter(features).items() if times > 1]
    if twice:
        raise ValueError(f"features contains column {twice[0]!r} twice.")
    renamed = _read_names(names)
    columns = {name: renamed.get(name, name) for name in _COLUMN_NAMES}
    dataset = _open_dataset(source, "source")
    _check_columns(dataset.schema, features, columns, as_labels(renamed.values(), "names"))
    present = {name: column for name, column in columns.items() if column in dataset.schema.names}
    # a Dataset may omit or add columns on purpose
    shared = set() if dataset is source else {*features, *columns.values()}
    names = list(dict.fromkeys([*features, *present.values()]))
    convert = partial(_block, features=features, columns=present)
    return _read_batches(dataset, names, int(block_size), shared, convert)


def read_parquet_tables(
    source: Any, choose: Callable[[list[str]], list[str]], name: str
) -> Iterator[pd.DataFrame]:
    """Read some columns of Parquet files, one DataFrame at a time.

    Parameters
    ----------
    source : path, list of paths, or pyarrow Dataset
        As in `read_parquet_log`.
    choose : callable
        Maps the names of all columns to those to read.
    name : str
        Name of `source` in error messages.
    """
    dataset = _open_dataset(source, name)
    columns = choose(dataset.schema.names)
    shared = set() if dataset is source else set(columns)
    return _read_batches(dataset, columns, TABLE_ROWS, shared, read_table)


def _read_names(names: Any) -> dict[str, str]:
    """Column names of the files by their names in a log, if they differ."""
    if not (names is None or isinstance(names, Mapping)):
        raise TypeError(f"names must be a dict of column names, got {names!r}.")
    renamed = dict(names or {})
    unknown = [name for name in renamed if name not in _COLUMN_NAMES]
    if unknown:
        raise ValueError(f"names has the key {unknown[0]!r}, expected some of {_COLUMN_NAMES}.")
    return renamed


def _check_columns(
    schema: Any, features: list[str], columns: dict[str, str], named: list[str]
) -> None:
    """Require each feature, action, reward and `named` column once, and lists in available."""
    with _in_pyarrow("the column names of source"):
        counts = Counter(schema.names)
    required = [*features, columns["action"], columns["reward"], *named]
    for name in (*required, *columns.values()):
        if counts[name] > 1:  # possible in a Dataset
            raise ValueError(f"two columns are named {name!r}, among {schema.names}.")
        if name in required and not counts[name]:
            raise ValueError(f"no column {name!r} among {schema.names}.")
    _check_lists(schema, columns["available"])


def _open_dataset(source: Any, name: str) -> Any:
    """The files as a pyarrow Dataset."""
    datasets = import_optional("pyarrow.dataset", "reading Parquet files")
    if isinstance(source, datasets.Dataset):
        return source
    alone = isinstance(source, str | bytes | os.PathLike)
    try:
        files = [os.fsdecode(path) for path in ([source] if alone else source)]
    except TypeError as error:
        raise TypeError(
            f"{name} must be a path, a list of paths or a pyarrow Dataset, got {source!r}."
        ) from error
    if not files or "" in files:
        raise ValueError(f"{name} contains no file name.")
    with _in_pyarrow(name):
        dataset = datasets.dataset(files[0] if alone else files, format="parquet")
    if not dataset.files:
        raise ValueError(f"{name}={files[0]!r} is a folder without files.")
    return dataset


@contextmanager
def _in_pyarrow(place: str) -> Iterator[None]:
    """Turn pyarrow's errors into ones that name the place in the files."""
    lib = import_optional("pyarrow.lib", "reading Parquet files")
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{place}: no such file: {error}.") from error
    except OSError as error:
        raise OSError(f"{place}: cannot be read; is it damaged? {error}") from error
    except (lib.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(f"{place}: cannot be read: {error}") from error


def _check_lists(schema: Any, name: str) -> None:
    """Require lists of labels in the column available, if present."""
    if name not in schema.names:
        return
    types = import_optional("pyarrow.types", "reading Parquet files")
    kind = schema.field(name).type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or types.is_nested(kind.value_type):
        raise ValueError(f"column {name!r} must hold lists of arm labels, its type is {kind}.")


def _read_batches(
    dataset: Any,
    columns: list[str],
    block_size: int,
    shared: set[str],
    convert: Callable[[Any], Block],
) -> Iterator[Block]:
    """Yield the blocks; a separate generator, so that arguments are checked at the call."""
    scanned = dataset.scanner(
        columns=columns,
        batch_size=block_size,
        batch_readahead=1,
        fragment_readahead=1,
    ).scan_batches()
    files = getattr(dataset, "files", [])
    file, n_rows = files[0] if files else "the dataset", 0
    while True:
        # pyarrow's errors do not name the file
        place = f"{file} or a file after it" if len(files) > 1 else file
        with _in_pyarrow(f"{place}, after row {n_rows:,}"):
            tagged = next(scanned, None)
            if tagged is None:
                return
            file, batch = getattr(tagged.fragment, "path", file), tagged.record_batch
            names = tagged.fragment.physical_schema.names
            batch.validate(full=True)  # else invalid UTF-8 would surface much later
            block = convert(batch) if len(batch) else None
        for name in sorted(shared.intersection(names) ^ shared.intersection(dataset.schema.names)):
            has = "has a" if name in names else "has no"
            raise ValueError(f"{file} {has} column {name!r}, unlike {files[0]}.")
        if block is not None:
            n_rows += len(batch)
            yield block


def _block(batch: Any, features: list[str], columns: dict[str, str]) -> Bunch:
    """Contexts and log of a record batch."""
    y = {}
    for name, column in columns.items():
        values = batch.column(column)
        y[name] = _pools(values) if name == "available" else exact_column(values)
    X = read_table(batch.select(features))
    return Bunch(X=X if features else pd.DataFrame(index=range(len(batch))), y=pd.DataFrame(y))


def _pools(column: Any) -> np.ndarray:
    """Lists of labels as tuples; equal lists share one tuple."""
    seen: dict[Any, Any] = {}
    pools = np.empty(len(column), dtype=object)
    for row, labels in enumerate(column.to_pylist()):
        pool = None if labels is None else tuple(labels)
        pools[row] = seen.setdefault(pool, pool)
    return pools
