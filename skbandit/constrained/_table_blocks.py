"""Tables in blocks, from files, Dask or functions, that can be read more than once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs import in_block
from skbandit.utils._optional import import_optional
from skbandit.utils._validation import as_labels

BATCH = 2**17
"""Rows per block of Parquet files."""


@dataclass(frozen=True)
class TableBlocks:
    """Tables with named columns, which can be read more than once.

    Attributes
    ----------
    opened : callable
        Returns the tables, from the first on.
    features : list of str
    label : str
    sample_weight : str or None
    """

    opened: Callable[[], Iterable[Any]]
    features: list[str]
    label: str
    sample_weight: str | None

    @classmethod
    def read(cls, blocks: Any, features: Any, label: Any, sample_weight: Any) -> TableBlocks:
        """Check the arguments of `fit_blocks`."""
        names = as_labels(features, "features")
        if not names:
            raise ValueError("features is empty: name the columns to train on.")
        if label in names:
            raise ValueError(f"label={label!r} is among the features.")
        return cls(_opener(blocks), names, label, sample_weight)

    def tables(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """Each table with its number, in memory, with a fresh index."""
        for number, block in enumerate(self.opened()):
            with in_block(number):
                table = _as_frame(block)
                wanted = [*self.features, self.label]
                wanted += [] if self.sample_weight is None else [self.sample_weight]
                for name in wanted:
                    if name not in table.columns:
                        raise ValueError(f"no column {name!r} among {list(table.columns)}.")
                if table[self.label].isna().any():
                    row = int(np.flatnonzero(table[self.label].isna())[0])
                    raise ValueError(f"column {self.label!r} is missing in row {row}.")
            yield number, table

    def parts(self, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, Any]:
        """Features, labels, attributes and weights of a table."""
        others = table.columns.difference([*self.features, self.label], sort=False)
        weight = None if self.sample_weight is None else table[self.sample_weight]
        return table[self.features], table[self.label], table[others], weight


def _opener(blocks: Any) -> Callable[[], Iterable[Any]]:
    """A function that returns the blocks from the first on."""
    if isinstance(blocks, str | os.PathLike):
        datasets = import_optional("pyarrow.dataset", "fit_blocks")
        blocks = datasets.dataset(blocks, format="parquet")
    if hasattr(blocks, "partitions"):  # Dask
        return lambda: (part.compute() for part in blocks.partitions)
    if hasattr(blocks, "scanner"):  # a pyarrow Dataset; few batches are read ahead
        return lambda: blocks.to_batches(batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
    if callable(blocks):
        return blocks
    if hasattr(blocks, "columns") or not isinstance(blocks, Iterable):
        raise TypeError(
            f"blocks must hold tables, got {type(blocks).__name__}: for a single table, pass "
            "[table]."
        )
    if iter(blocks) is blocks:
        raise TypeError(
            f"blocks are read twice, and a {type(blocks).__name__} can be read once: pass a "
            "function that opens them, such as lambda: read_csv(path, chunksize=100_000)."
        )
    return lambda: blocks


def _as_frame(block: Any) -> pd.DataFrame:
    """A table in memory as a DataFrame with a fresh index."""
    for method in ("compute", "collect"):  # of Dask and polars
        if hasattr(block, method):
            raise TypeError(
                f"a block must be in memory, got a lazy {type(block).__name__}: call its "
                f"{method}()."
            )
    if hasattr(block, "replace_schema_metadata"):  # pyarrow; its metadata could set an index
        block = block.replace_schema_metadata()
    if hasattr(block, "to_pandas"):
        block = block.to_pandas()
    if not isinstance(block, pd.DataFrame):
        raise TypeError(
            f"a block must be a table of pandas, polars or pyarrow, got {type(block).__name__}."
        )
    return block.reset_index(drop=True)
