"""Logs larger than memory, read as blocks of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs._log import Log, columns_of, ids_of
from skbandit.utils._exact import exact_table
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import method_that_loads, warn

_IN_BLOCK = "In block {}, counted from 0."

MOST_IDS = 2**16
"""Ids that are compared between blocks: those of the least hashes, wherever they occur."""


def as_blocks(blocks: Any) -> Iterable[Any]:
    """Require an iterable of blocks; a single block is not one."""
    lazy = method_that_loads(blocks)
    single = (
        lazy is not None
        or hasattr(blocks, "columns")
        or hasattr(blocks, "y")
        or getattr(blocks, "ndim", 1) == 0
    )
    if single or isinstance(blocks, type) or not isinstance(blocks, Iterable):
        cure = "for a single block, pass [block]"
        if hasattr(blocks, "to_delayed"):
            cure = "pass (part.compute() for part in frame.partitions)"
        elif lazy == "collect":
            cure = "pass [frame.collect()], or parts of it that fit in memory"
        raise TypeError(
            f"blocks must be an iterable of blocks, got {type(blocks).__name__}: {cure}."
        )
    return blocks


def sum_over_blocks(task: Callable[[Any], Any], blocks: Any, needed_by: str) -> Any:
    """Add the results of all blocks, or None without any.

    Parameters
    ----------
    task : callable
        Maps a block to something with ``+``, or to None; picklable, so that it can be sent to
        workers. Notes name the block in its errors and in those of the addition.
    blocks : iterable of blocks, or Dask DataFrame
        The partitions of the latter are blocks. Dask's scheduler maps and adds them.
    needed_by : str
        Name of the caller for the error without Dask.
    """

    def numbered(number: int, block: Any) -> tuple[int, Any]:
        with noting(_IN_BLOCK.format(number)):
            return number, task(block)

    if not hasattr(blocks, "to_delayed"):
        return _added(numbered(k, block) for k, block in enumerate(as_blocks(blocks)))[1]
    dask = import_optional("dask", f"{needed_by} of a Dask DataFrame")
    shared = dask.delayed(numbered, traverse=False, pure=False)  # sent once, not per partition
    parts = [shared(k, part) for k, part in enumerate(blocks.to_delayed())]
    while len(parts) > 1:  # in steps, so that no worker holds all results
        parts = [dask.delayed(_added)(parts[k : k + 16]) for k in range(0, len(parts), 16)]
    return dask.compute(*parts)[0][1]


def _added(parts: Iterable[tuple[int, Any]]) -> tuple[int, Any]:
    """Sum of results, with the number of the first block."""
    first, total = 0, None
    for number, part in parts:
        if part is not None and total is not None:
            with noting(_IN_BLOCK.format(number)):
                total = total + part
        elif part is not None:
            first, total = number, part
    return first, total


def read_table(block: Any) -> Any:
    """Return a block as a table in memory, of pandas or polars; one of pyarrow as of pandas."""
    for method in ("compute", "collect"):  # of Dask and polars
        if hasattr(type(block), method):  # not a column of this name
            raise TypeError(
                f"a block must be in memory, got a lazy {type(block).__name__}: call its "
                f"{method}()."
            )
    if hasattr(block, "replace_schema_metadata"):  # pyarrow; its metadata could set an index
        return exact_table(block)
    return block


def read_block(
    block: Any, features: Sequence[str] | None, columns: Mapping[str, Any] | None = None
) -> tuple[Any, Any]:
    """Split a block into contexts and log.

    Parameters
    ----------
    block : table, pair (X, y), or object with attributes X and y
        A table of pandas, polars or pyarrow holds both: the columns `features` are the contexts,
        all others are the log.
    features : sequence of str or None
        Column names.
    columns : dict, default=None
        Names of the log's columns that differ.

    Returns
    -------
    X, y : object
        As given, or parts of a DataFrame. X is None for a table without features.
    """
    block = read_table(block)
    if hasattr(block, "columns") and not isinstance(block, type):
        names = list(features or ())
        if missing := [name for name in names if name not in block.columns]:
            raise ValueError(
                f"features contains {missing[0]!r}, which is not a column: {list(block.columns)}."
            )
        y = block[[name for name in block.columns if name not in names]]
        X = block[names] if names else None
    elif isinstance(block, tuple) and len(block) == 2:
        X, y = block
    elif hasattr(block, "X") and hasattr(block, "y"):
        X, y = block.X, block.y
        weight = getattr(block, "sample_weight", None)
        if weight is not None and not np.all(np.asarray(weight) == 1):
            raise ValueError(
                "the block has a sample_weight other than 1, as events were dropped before they "
                "were logged, and no estimate uses it: divide the propensities by it, pass the "
                "pair (X, y), and estimate by replay or snips."
            )
    else:
        raise TypeError(
            "a block must be a table, a pair (X, y), or an object with X and y, got "
            f"{type(block).__name__}."
        )
    if "propensity" not in (columns_of(y, columns) or ()):
        raise ValueError(
            "y needs a column 'propensity' when a log is read in blocks, as a block does not show "
            "how many arms the log has: for uniform actions, add 1 / (number of arms)."
        )
    return X, y


def check_block_arms(log: Log, arms: Collection[Any] | None) -> None:
    """Require that the arms available to the events of a block are known."""
    if log.pools is not None:
        return
    if arms is None:
        raise ValueError(
            "a block does not show all arms of the log: pass them as arms=[...], or add a column "
            "'available'."
        )
    if len(log.arms) > len(arms):
        new = set(log.arms.tolist()) - set(arms)
        raise ValueError(f"the log has arms that are not in arms=: {sorted(new, key=repr)}.")


@contextmanager
def noting(note: str) -> Iterator[None]:
    """Add a note to errors, such as the block within which row numbers count."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


@dataclass(frozen=True)
class SeenIds:
    """Ids of events and in how many blocks each occurs; those of disjoint blocks add up.

    The least hashes so far include the least ones of all blocks, so that these are counted in all.
    """

    hashes: np.ndarray  # sorted, MOST_IDS at most
    n_blocks: np.ndarray

    @classmethod
    def of(cls, y: Any) -> SeenIds:
        """Return the ids of one block; repeats within it are told by `warn_of_repeats`."""
        text = ids_of(y).to_numpy(dtype=object)
        hashes = np.unique(pd.util.hash_array(text, categorize=False))[:MOST_IDS]
        return cls(hashes, np.ones(len(hashes), dtype=np.int64))

    def __add__(self, other: SeenIds) -> SeenIds:
        hashes, place = np.unique(np.append(self.hashes, other.hashes), return_inverse=True)
        n_blocks = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(n_blocks, place, np.append(self.n_blocks, other.n_blocks))
        return SeenIds(hashes[:MOST_IDS], n_blocks[:MOST_IDS])

    def warn(self, function: str) -> None:
        """Warn of ids that occur in several blocks."""
        n_repeated = int((self.n_blocks > 1).sum())
        if n_repeated:
            warn(
                f"{function}: {n_repeated:,} of {len(self.hashes):,} ids that were compared occur "
                f"in several blocks, up to {self.n_blocks.max():,}, as if a file were read twice, "
                "and their events count again. Leave out copies; if ids are of people, rename the "
                "column.",
                UserWarning,
            )


@dataclass(frozen=True)
class ReplayRequest:
    """Events to replay, and how, by a policy with a replay of its own, `_replay_log(request)`.

    That changes the policy as it learns, with the decisions of its `select`, `predict` and
    `partial_fit`. It returns the positions in `rows` of the accepted events and the number of rows
    consumed, or None, with the policy unchanged, to be replayed event by event.
    """

    X: Any  # contexts, rows in the order of `log`
    log: Log  # without `pools`, all of its arms are available
    rows: np.ndarray  # (n_rows,), positions in the log in the order of the replay
    keep: np.ndarray  # (n_rows,), False skips the event without showing it to the policy
    deployment: np.ndarray  # (n_rows,), True plays `predict` and learns nothing
    rule: str  # "select" or "predict": the choice played outside the deployment bucket
    learn: bool
    max_accepted: int | None  # stop after accepting this many outside the deployment bucket
