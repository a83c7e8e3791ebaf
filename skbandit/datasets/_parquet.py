"""Read logs in Parquet files as blocks, with pyarrow."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.logs import read_table
from skbandit.utils._exact import exact_column
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import as_labels, warn

__all__ = ["read_parquet_log"]

Block = TypeVar("Block")

_COLUMN_NAMES = ("action", "reward", "propensity", "timestamp", "available", "id")

TABLE_ROWS = 500_000
"""Rows of a table of `read_parquet_tables`: fewer take longer, more need more memory."""

_KINDS = {
    "numbers": ("boolean", "integer", "floating", "decimal"),
    "dates": ("date",),
    "text": ("string", "large_string"),
}
"""Types whose values may be equal."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Name of a folder of rows without a value, as pandas, Dask and Spark write it."""


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
    source : path, iterable of paths, or pyarrow Dataset
        A file, a folder of files (read in the order of their names), or files in the given
        order, on disk or at any address that pyarrow reads. A path on disk may be a pattern, such
        as ``"logs/2026-*.parquet"``. Folders such as ``region=east`` are a column. A Dataset may
        be filtered, as by ``pyarrow.dataset.dataset(...).filter(...)``.
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
          ``timestamp``, ``available``, which holds tuples of labels, and ``id``, by which events
          that occur twice are told.

    Raises
    ------
    ValueError
        If a column is missing in any file, holds values of another kind than in the files before
        (such as text after numbers, or a feature's times of another time zone), or the content of
        a file cannot be read.
    OSError
        If a file is missing, damaged or not a Parquet file.
    ImportError
        If pyarrow is not installed.

    Warns
    -----
    UserWarning
        If a file holds other values of a column than its folder, such as ``region=east``, says.

    See Also
    --------
    skbandit.evaluation.replay_blocks : Evaluates policies that learn.
    skbandit.evaluation.off_policy_blocks : Evaluates policies that do not learn.

    Notes
    -----
    Other columns are not read. Memory is needed for a few blocks and their row group: write files
    with row groups of at most a few million events.

    Each file is read in its own types, so a column may be of integers in one and of floats in
    another. A Dataset is read in the types of its schema.

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
    if twice := [name for name, times in Counter(features).items() if times > 1]:
        raise ValueError(f"features contains column {twice[0]!r} twice.")
    if not (names is None or isinstance(names, Mapping)):
        raise TypeError(f"names must be a dict of column names, got {names!r}.")
    renamed = dict(names or {})
    as_labels(renamed.values(), "names")
    if unknown := [name for name in renamed if name not in _COLUMN_NAMES]:
        raise ValueError(f"names has the key {unknown[0]!r}, expected some of {_COLUMN_NAMES}.")
    columns = {name: renamed.get(name, name) for name in _COLUMN_NAMES}
    if columns["id"] in features:
        del columns["id"]
    opened = _open_dataset(source, "source")
    with _in_pyarrow("the column names of source"):
        counts = Counter(opened.schema.names)
    required = [*features, columns["action"], columns["reward"], *renamed.values()]
    for name in (*required, *columns.values()):
        if counts[name] > 1:  # possible in a Dataset
            raise ValueError(f"two columns are named {name!r}, among {opened.schema.names}.")
        if name in required and not counts[name]:
            raise ValueError(f"no column {name!r} among {opened.schema.names}.")
    if columns["available"] in counts:
        _require_lists(opened.schema.field(columns["available"]).type, columns["available"])
    present = {name: column for name, column in columns.items() if column in opened.schema.names}

    def block(batch: Any) -> Bunch:
        """Contexts and log of a record batch."""
        of_log = {name: batch.column(column) for name, column in present.items()}
        y = {
            name: _pools(values, columns[name]) if name == "available" else exact_column(values)
            for name, values in of_log.items()
        }
        X = read_table(batch.select(features))
        return Bunch(X=X if features else pd.DataFrame(index=range(len(batch))), y=pd.DataFrame(y))

    opened = opened._replace(
        columns=list(dict.fromkeys([*features, *present.values()])),
        shared={*features, *columns.values()},
        one_zone=features,
    )
    return _read_batches(opened, int(block_size), block)


def read_parquet_tables(
    source: Any, choose: Callable[[list[str]], list[str]], name: str
) -> Iterator[pd.DataFrame]:
    """Read some columns of Parquet files, one DataFrame at a time.

    Parameters
    ----------
    source : path, iterable of paths, or pyarrow Dataset
        As in `read_parquet_log`.
    choose : callable
        Maps the names of all columns to those to read.
    name : str
        Name of `source` in error messages.
    """
    opened = _open_dataset(source, name)
    columns = choose(opened.schema.names)
    opened = opened._replace(columns=columns, shared=set(columns))
    return _read_batches(opened, TABLE_ROWS, read_table)


class _Opened(NamedTuple):
    """Files, or a Dataset as it was passed, and what is read of them."""

    dataset: Any
    schema: Any  # of the first file and its folders, or of the Dataset
    folders: dict[str, dict[str, Any]] | None  # values in the folders' names, by file and column
    columns: Sequence[str] = ()  # to be read
    shared: Collection[str] = ()  # of all files or of none
    one_zone: Collection[str] = ()  # whose times have one zone


def _open_dataset(source: Any, name: str) -> _Opened:
    """Return the files as a pyarrow Dataset."""
    datasets, lib = _arrow("dataset"), _arrow("lib")
    if isinstance(source, datasets.Dataset):
        return _Opened(source, source.schema, None)
    alone = isinstance(source, str | bytes | os.PathLike)
    try:
        paths = [os.fsdecode(path) for path in ([source] if alone else source)]
    except TypeError as error:
        raise TypeError(
            f"{name} must be a path, a list of paths or a pyarrow Dataset, got {source!r}."
        ) from error
    if not paths or "" in paths:
        raise ValueError(f"{name} contains no file name.")
    files = [file for path in paths for file in _matching(path, name)]
    # by default all columns of a file are buffered before the first batch, and kept to the end
    unbuffered = datasets.ParquetFragmentScanOptions(pre_buffer=False)
    by_row_group = datasets.ParquetFileFormat(default_fragment_scan_options=unbuffered)
    with _in_pyarrow(name):
        if alone and files == paths:
            dataset = datasets.dataset(files[0], format=by_row_group)
        else:
            parts = [
                datasets.dataset(file, format="parquet").files if os.path.isdir(file) else [file]
                for file in files
            ]
            dataset = datasets.dataset(
                [file for part in parts for file in part], format=by_row_group
            )
    if not dataset.files:
        raise ValueError(f"{name}={files[0]!r} is a folder without files.")
    for file, times in Counter(map(os.path.realpath, dataset.files)).items():
        if times > 1:
            raise ValueError(f"{name} has the file {file!r} {times} times: name it once.")
    folders = _values_of_folders(dataset.files)
    schema = dataset.schema
    for column, value in folders[dataset.files[0]].items():
        if column not in schema.names:
            schema = schema.append(lib.field(column, lib.scalar(value).type))
    return _Opened(dataset, schema, folders)


def _matching(path: str, name: str) -> list[str]:
    """Return the path, or what matches it if it is a pattern, in the order of the names."""
    if "://" in path or not glob.has_magic(path) or os.path.exists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if "**" in path:  # folders would repeat their files
        matches = [match for match in matches if os.path.isfile(match)]
    if not os.path.basename(path).startswith("_"):  # as in a folder, no _SUCCESS
        matches = [match for match in matches if not os.path.basename(match).startswith("_")]
    if not matches:
        raise FileNotFoundError(f"{name}: no such file: nothing matches {path!r}.")
    return matches


def _values_of_folders(files: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Values in the names of folders such as ``region=east``, by file and column.

    They are integers if they all look like it: not "01", which would equal "1".
    """
    values: dict[str, dict[str, Any]] = {}
    for file in files:
        parts = [part.partition("=") for part in file.split("/")[:-1]]
        values[file] = {
            unquote(column): None if value == _NO_VALUE else unquote(value)
            for column, equals, value in parts
            if equals and column
        }
    for column in {column for of_file in values.values() for column in of_file}:
        holders = [of_file for of_file in values.values() if of_file.get(column) is not None]
        if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", of_file[column]) for of_file in holders):
            for of_file in holders:
                of_file[column] = int(of_file[column])
    return values


def _arrow(module: str) -> Any:
    """Return a module of pyarrow."""
    return import_optional(f"pyarrow.{module}", "reading Parquet files")


@contextmanager
def _in_pyarrow(place: str) -> Iterator[None]:
    """Turn pyarrow's errors into ones that name the place in the files."""
    lib = _arrow("lib")
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{place}: no such file: {error}.") from error
    except OSError as error:
        raise OSError(f"{place}: cannot be read; is it damaged? {error}") from error
    except (lib.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(f"{place}: cannot be read: {error}") from error


def _kind_of_type(kind: Any) -> str | None:
    """Kind of a type's values, of which those of another kind are never equal; None: of none."""
    types = _arrow("types")
    if types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        return _kind_of_type(kind.value_type)
    for shared, names in _KINDS.items():
        if any(getattr(types, f"is_{name}")(kind) for name in names):
            return shared
    if types.is_timestamp(kind):
        return "times without a time zone" if kind.tz is None else "times with a time zone"
    if hasattr(kind, "value_type"):  # lists of any form
        values = _kind_of_type(kind.value_type)
        return None if values is None else f"lists of {values}"
    return "text" if str(kind) == "string_view" else str(kind)


def _read_batches(
    opened: _Opened, block_size: int, convert: Callable[[Any], Block]
) -> Iterator[Block]:
    """Yield the blocks; a separate generator, so that arguments are checked at the call."""
    parts = _tagged if opened.folders is None else _by_file
    for place, batch in parts(opened, {"batch_size": block_size, "batch_readahead": 1}):
        with _in_pyarrow(place):
            batch.validate(full=True)  # else invalid UTF-8 would surface much later
            block = convert(batch)
        yield block


def _tagged(opened: _Opened, options: dict[str, int]) -> Iterator[tuple[str, Any]]:
    """Return the batches of a Dataset, and their place; it may omit or add columns on purpose."""
    scanner = opened.dataset.scanner(columns=opened.columns, fragment_readahead=1, **options)
    batches = scanner.scan_batches()
    files = getattr(opened.dataset, "files", [])
    file, n_rows = files[0] if files else "the dataset", 0
    while True:
        # pyarrow's errors do not name the file
        place = f"{file} or a file after it" if len(files) > 1 else file
        place = f"{place}, after row {n_rows:,}"
        with _in_pyarrow(place):
            tagged = next(batches, None)
            if tagged is None:
                return
            if getattr(tagged.fragment, "path", file) != file or not n_rows:
                file = getattr(tagged.fragment, "path", file)
                _refuse_casts(file, tagged.fragment.physical_schema, opened)
        if len(tagged.record_batch):
            yield place, tagged.record_batch
            n_rows += len(tagged.record_batch)


def _refuse_casts(file: str, physical: Any, opened: _Opened) -> None:
    """Require that a file's values stay what they are in the types of a Dataset.

    By default those are the types of its first file; pyarrow casts to them without a word.
    """
    dataset = opened.dataset
    for name in opened.columns:
        if physical.get_field_index(name) < 0:
            continue
        stored, kind = physical.field(name).type, opened.schema.field(name).type
        if not _changes(stored, kind):
            continue
        files = getattr(dataset, "files", [])
        if files:
            first = dataset.format.inspect(files[0], dataset.filesystem)
            if first.get_field_index(name) < 0 or first.field(name).type != kind:
                return  # a schema that was chosen
        raise ValueError(
            f"{file}: column {name!r} is of type {stored}, and the Dataset would read it as "
            f"{kind}, the type in its first file: pass the paths instead, or a schema= to "
            "pyarrow.dataset.dataset, or convert the column."
        )


def _changes(stored: Any, kind: Any) -> bool:
    """Return whether pyarrow's cast to another type could change values without an error."""
    types = _arrow("types")
    if stored == kind or _kind_of_type(stored) is None:
        return False
    if _kind_of_type(stored) != _kind_of_type(kind):
        return True
    while hasattr(stored, "value_type"):  # dictionaries and lists
        stored = stored.value_type
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    if types.is_floating(stored):
        narrower = types.is_floating(kind) and kind.bit_width < stored.bit_width
        return bool(narrower or types.is_boolean(kind) or types.is_decimal(kind))
    return bool(types.is_boolean(kind) and stored != kind)


def _by_file(opened: _Opened, options: dict[str, int]) -> Iterator[tuple[str, Any]]:
    """Return the batches of files, each in its own types, and their place."""
    compute, lib, first = _arrow("compute"), _arrow("lib"), opened.dataset.files[0]
    assert opened.folders is not None
    before: dict[str, tuple[str, Any]] = {}  # file and type of the first values of each column
    told: set[str] = set()
    for fragment in opened.dataset.get_fragments():
        file, n_rows = fragment.path, 0
        folders = opened.folders[file]
        with _in_pyarrow(file):
            physical = fragment.physical_schema
        names = {*physical.names, *folders}
        for name in sorted(names.symmetric_difference(opened.schema.names) & {*opened.shared}):
            has = "has a" if name in names else "has no"
            raise ValueError(f"{file} {has} column {name!r}, unlike {first}.")
        selected = {}
        for name in opened.columns:
            selected[name] = compute.field(name)
            if name not in physical.names:
                selected[name] = compute.scalar(folders[name])
            elif _kind_of_type(physical.field(name).type) is None and name in before:
                selected[name] = compute.scalar(lib.scalar(None, before[name][1]))
        batches = fragment.scanner(columns=selected, **options).to_batches()
        unseen = set(opened.columns)
        while True:
            place = f"{file}, after row {n_rows:,}"
            with _in_pyarrow(place):
                batch = next(batches, None)
            if batch is None:
                break
            for name in sorted(unseen):
                if batch.column(name).null_count < len(batch):
                    kind = batch.schema.field(name).type
                    _note_type(name, file, kind, before, name in opened.one_zone)
                    unseen.remove(name)
            for name in set(opened.columns).intersection(physical.names, folders) - told:
                if _warn_of_folder(file, name, folders[name], batch.column(name)):
                    told.add(name)
            if len(batch):
                yield place, batch
                n_rows += len(batch)


def _warn_of_folder(file: str, name: str, folder: Any, values: Any) -> bool:
    """Warn if a folder names another value than the file holds; return whether it does."""
    lib = _arrow("lib")
    for value in values.unique():
        expected = lib.scalar(None if folder is None else str(folder))
        with suppress(lib.ArrowException):  # a text that is no value of the type
            expected = expected.cast(value.type)
        if not value.equals(expected) and value.as_py() != folder:
            warn(
                f"{file}: column {name!r} holds {value.as_py()!r} where the folder is "
                f"{name}={folder}: the file's values count. Rename its column if the folder's are "
                "meant.",
                UserWarning,
            )
            return True
    return False


def _note_type(
    name: str, file: str, kind: Any, before: dict[str, tuple[str, Any]], one_zone: bool
) -> None:
    """Remember the type of a column's first values; require later ones of the same kind.

    With `one_zone`, times must be of the same time zone, as what is local may be read of them.
    """
    values = _kind_of_type(kind)
    if values is None:
        return
    types = _arrow("types")
    plain = kind.value_type if types.is_dictionary(kind) else kind
    earlier, first = before.setdefault(name, (file, plain))
    if values != (expected := _kind_of_type(first)):
        zones = values.startswith("times") and str(expected).startswith("times")
        cure = ", as by dt.tz_localize" if zones else ""
        raise ValueError(
            f"{file}: column {name!r} holds {values} ({kind}), and {expected} ({first}) in "
            f"{earlier}: convert it{cure}."
        )
    zone, of_first = getattr(plain, "tz", None), getattr(first, "tz", None)
    if one_zone and zone != of_first:
        raise ValueError(
            f"{file}: feature {name!r} holds times of the zone {zone}, and of {of_first} in "
            f"{earlier}, whose hours and days differ: convert it, as by dt.tz_convert."
        )


def _require_lists(kind: Any, name: str) -> None:
    """Require a type of lists of labels, or of no values."""
    values = _kind_of_type(kind)
    if values is not None and not re.fullmatch("lists of (?!lists)[^<]+", values):
        raise ValueError(f"column {name!r} must hold lists of arm labels, its type is {kind}.")


def _pools(column: Any, name: str) -> np.ndarray:
    """Return lists of labels as tuples; equal lists share one tuple."""
    _require_lists(column.type, name)
    seen: dict[Any, Any] = {}
    pools = np.empty(len(column), dtype=object)
    for row, labels in enumerate(column.to_pylist()):
        pool = None if labels is None else tuple(labels)
        pools[row] = seen.setdefault(pool, pool)
    return pools
