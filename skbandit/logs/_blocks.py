"""Logs too large for memory, one block of events after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skbandit.logs._log import Log, column_names


def as_blocks(blocks: Any) -> Iterable[Any]:
    """Blocks, if they can be taken one after the other."""
    single = hasattr(blocks, "columns") or hasattr(blocks, "y") or getattr(blocks, "ndim", 1) == 0
    if single or isinstance(blocks, type) or not isinstance(blocks, Iterable):
        cure = "(part.compute() for part in frame.partitions)"
        if not hasattr(blocks, "to_delayed"):
            cure = "[block] is a single one"
        raise TypeError(
            f"blocks must be an iterable of blocks, got {type(blocks).__name__}: {cure}."
        )
    return blocks


def read_block(block: Any, features: Sequence[str] | None) -> tuple[Any, Any]:
    """Contexts and log of a block; a table's contexts are None where it has no features.

    Parameters
    ----------
    block : table, pair (X, y), or object with attributes X and y
        A table, of pandas, polars or pyarrow, holds both: the columns `features` are the
        contexts, all others the log.
    features : sequence of str or None
        Names of columns.

    Returns
    -------
    X, y : object
        As they were given, or parts of a DataFrame.
    """
    for cure in ("compute", "collect"):  # of Dask and of polars
        if hasattr(block, cure):
            raise TypeError(
                f"a block must be in memory, got a lazy {type(block).__name__}: call its {cure}()."
            )
    if hasattr(block, "replace_schema_metadata"):  # of pyarrow; it could make columns the index
        block = block.replace_schema_metadata().to_pandas()
    if hasattr(block, "columns") and not isinstance(block, type):
        names = list(features or ())
        missing = [name for name in names if name not in block.columns]
        if missing:
            raise ValueError(
                f"features names {missing[0]!r}, which is none of the columns, "
                f"{list(block.columns)}."
            )
        X = block[names] if names else None
        y = block[[name for name in block.columns if name not in names]]
    elif isinstance(block, tuple) and len(block) == 2:
        X, y = block
    elif hasattr(block, "X") and hasattr(block, "y"):
        X, y = block.X, block.y
    else:
        raise TypeError(
            "a block must be a table, a pair (X, y), or an object with X and y, got "
            f"{type(block).__name__}."
        )
    if "propensity" not in (column_names(y) or ()):
        raise ValueError(
            "y needs a column 'propensity' when a log is read in blocks, as a block does not say "
            "how many arms the log has: where actions were uniform, 1 / (number of arms)."
        )
    return X, y


def check_block_arms(log: Log, arms: Collection[Any] | None) -> None:
    """Require that a block tells what its events could choose from."""
    if log.pools is not None:
        return
    if arms is None:
        raise ValueError(
            "a block does not say which arms the whole log has: name them all, arms=[...], or give "
            "a column 'available'."
        )
    if len(log.arms) > len(arms):
        new = set(log.arms.tolist()) - set(arms)
        raise ValueError(f"the log has arms that arms= does not name: {sorted(new, key=repr)}.")


@contextmanager
def in_block(number: int) -> Iterator[None]:
    """Let an error say in which block it arose, as the rows that it names are a block's."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was in block {number}, counted from 0.")
        raise
