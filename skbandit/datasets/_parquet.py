"""Read logs in Parquet files as blocks, with pyarrow."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from skbandit.datasets._files import check_block_size
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import as_labels

_LOG = ("action", "reward", "propensity", "timestamp", "available")


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
    check_block_size(block_size)
    features = as_labels(features, "features")
    names = _read_names(names)
    dataset = _open(source)
    _check_columns(dataset.schema, features, names)
    columns = {name: names.get(name, name) for name in _LOG}
    # a Dataset may omit or add columns on purpose
    shared = set() if dataset is source else {*features, *columns.values()}
    columns = {name: column for name, column in columns.items() if column in dataset.schema.names}
    return _blocks(dataset, features, columns, int(block_size), shared)


def _read_names(names: Any) -> dict[str, str]:
    """Column names of the files by their names in a log, if they differ."""
    if not (names is None or isinstance(names, Mapping)):
        raise TypeError(f"names must be a dict of column names, got {names!r}.")
    names = dict(names or {})
    for name in names:
        if name not in _LOG:
            raise ValueError(f"names has the key {name!r}, expected some of {_LOG}.")
    as_labels(names.values(), "names")
    return names


def _open(source: Any) -> Any:
    """The files as a pyarrow Dataset."""
    datasets = import_optional("pyarrow.dataset", "read_parquet_log")
    if isinstance(source, datasets.Dataset):
        return source
    is_single = isinstance(source, str | bytes | os.PathLike)
    try:
        files = [os.fsdecode(path) for path in ([source] if is_single else source)]
    except TypeError as error:
        raise TypeError(
            f"source must be a path, a list of paths or a pyarrow Dataset, got {source!r}."
        ) from error
    if not files or "" in files:
        raise ValueError("source contains no file name.")
    dataset = datasets.dataset(files[0] if is_single else files, format="parquet")
    if not dataset.files:
        raise ValueError(f"source={files[0]!r} is a folder without files.")
    return dataset


def _check_columns(schema: Any, features: list[str], names: dict[str, str]) -> None:
    """Require each column once, features, action, reward and those in `names`; and lists."""
    for name, times in Counter(features).items():
        if times > 1:
            raise ValueError(f"features contains column {name!r} twice.")
    action, reward, *optional, available = (names.get(name, name) for name in _LOG)
    required = [*features, action, reward, *names.values()]
    count = Counter(schema.names)
    for name in (*required, *optional, available):
        if count[name] > 1:  # possible in a Dataset
            raise ValueError(f"two columns are named {name!r}, among {schema.names}.")
        if name in required and not count[name]:
            raise ValueError(f"no column {name!r} among {schema.names}.")
    if available in count:
        types = import_optional("pyarrow.types", "read_parquet_log")
        kind = schema.field(available).type
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not lists or types.is_nested(kind.value_type):
            raise ValueError(f"column {available!r} must hold lists of arm labels, not {kind}.")


def _blocks(
    dataset: Any, features: list[str], columns: dict[str, str], block_size: int, shared: set[str]
) -> Iterator[Bunch]:
    """Yield the blocks; each file must have the same columns out of `shared`."""
    lib = import_optional("pyarrow.lib", "read_parquet_log")
    scanned = dataset.scanner(
        columns=list(dict.fromkeys([*features, *columns.values()])),
        batch_size=block_size,
        batch_readahead=1,
        fragment_readahead=1,
    ).scan_batches()
    files = getattr(dataset, "files", [])
    file, n_events = files[0] if files else "the dataset", 0
    while True:
        # pyarrow's errors do not name the file
        place = f"{file} or a file after it" if len(files) > 1 else file
        place = f"{place}, after event {n_events:,}: cannot be read"
        try:
            tagged = next(scanned, None)
            if tagged is None:
                return
            file, batch = getattr(tagged.fragment, "path", file), tagged.record_batch
            names = tagged.fragment.physical_schema.names
            batch.validate(full=True)  # else invalid UTF-8 would surface much later
            block = _block(batch, features, columns) if len(batch) else None
        except OSError as error:
            raise OSError(f"{place}; is it damaged? {error}") from error
        except (lib.ArrowException, UnicodeDecodeError) as error:
            raise ValueError(f"{place}: {error}") from error
        for name in sorted(shared.intersection(names) ^ shared.intersection(dataset.schema.names)):
            article = "a" if name in names else "no"
            raise ValueError(f"{file} has {article} column {name!r}, unlike {files[0]}.")
        if block:
            n_events += len(batch)
            yield block


def _block(batch: Any, features: list[str], columns: dict[str, str]) -> Bunch:
    """Contexts and log of a record batch."""
    index = pd.RangeIndex(len(batch))
    # metadata written by pandas could turn columns into the index
    X = batch.select(features).replace_schema_metadata().to_pandas().reindex(index)
    y = {name: batch.column(column) for name, column in columns.items()}
    y = {name: _read_pools(c) if name == "available" else c.to_pandas() for name, c in y.items()}
    return Bunch(X=X, y=pd.DataFrame(y, index))


def _read_pools(column: Any) -> list[tuple[Any, ...] | None]:
    """Lists of labels as tuples; equal lists share one tuple."""
    shared: dict[Any, Any] = {}
    pools = (None if labels is None else tuple(labels) for labels in column.to_pylist())
    return [shared.setdefault(pool, pool) for pool in pools]
