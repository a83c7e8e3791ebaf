"""Reports of rates from tables larger than memory, in one pass over blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pandas as pd

from skbandit.datasets._parquet import read_parquet_tables
from skbandit.evaluation import _rate_report
from skbandit.logs import read_table, sum_over_blocks
from skbandit.measure import BlockReducer, MergedRows, warn_of_unnamed
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def rate_report_blocks(
    blocks: Any,
    goals: _rate_report.Goal | Iterable[Any] | Mapping[str, _rate_report.Goal],
    *,
    y_true: str | None,
    y_pred: str,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    groups: str | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Report rates and constraints of predictions in a table larger than memory, in one pass.

    The report equals that of `rate_report` on all rows, however they are divided into blocks.

    Parameters
    ----------
    blocks : path, iterable of paths, pyarrow Dataset, iterable of tables, or Dask DataFrame
        The rows. Of Parquet files (a file, a folder, a pattern, or files in the given order), only
        the columns that are needed are read, each file in its own types; folders such as
        ``region=east`` are a column. Tables are of pandas, as yielded by
        ``read_csv(..., chunksize=...)``, polars or pyarrow. Dask's scheduler processes the
        partitions of a Dask DataFrame, on a cluster if one is connected.
    goals : rate, constraint, list of these, or dict of str to rate or constraint
        What to measure, as in `rate_report`. Columns that goals name are those of the table.
    y_true : str or None
        Column of true labels. Rows whose label is missing are unlabeled.
    y_pred : str
        Column of predicted labels.
    by : str or list of str, default=None
        Columns whose values, or combinations of values that occur, are the groups.
    weight : str, default=None
        Column of row weights.
    pos_label : label, default=None
        The class of rates without `of`; optional for labels {0, 1}, {-1, 1} and bool.
    labels : array-like, default=None
        All classes and other decisions that may occur: see `Rate.value`.
    groups : str, default=None
        Column whose values tell which rows are dependent, as `groups` of `rate_report`. Memory is
        needed for each group's combinations.
    confidence_level : float, default=0.95
        Nominal coverage of each interval, on its own.

    Returns
    -------
    DataFrame
        As of `rate_report`.

    Raises
    ------
    ValueError
        As in `rate_report`; a note names the block, and row numbers count within it. Also if a
        block lacks a column, holds values of another kind than the blocks before, or times of
        another time zone for a condition on local times, or if labels, predictions and groups make
        more than a million combinations.

    Warns
    -----
    UserWarning
        As in `rate_report`.

    See Also
    --------
    rate_report : The same for predictions in memory, with a description of the columns.
    off_policy_blocks : Evaluates policies on logs larger than memory.

    Notes
    -----
    Each block is reduced to the combinations of labels, predictions, groups and outcomes of
    conditions that occur, with their sums of weights. Memory is needed for a block and these
    combinations. A condition may be on a column of any values, as in ``recall("age > 30")``. A
    condition that is a function is called on each block and, of Parquet files, needs all columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from skbandit.evaluation import rate_report_blocks
    >>> from skbandit.rates import positive_rate, recall
    >>> table = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40, "qualified": [1, 1, 0, 0] * 25})
    >>> table["hired"] = [1, 0, 0, 0] * 15 + [1, 1, 1, 0] * 10
    >>> blocks = (table[k : k + 30] for k in range(0, 100, 30))  # as if read one by one
    >>> goals = {"hired": positive_rate(), "found": recall() >= 0.7}
    >>> report = rate_report_blocks(blocks, goals, y_true="qualified", y_pred="hired", by="sex")
    >>> report[["goal", "sex", "n_rows", "value", "satisfied"]]
        goal  sex  n_rows  value  satisfied
    0  hired  all     100   0.45       <NA>
    1  hired    F      60   0.25       <NA>
    2  hired    M      40   0.75       <NA>
    3  found  all      50   0.70       True
    4  found    F      30   0.50      False
    5  found    M      20   1.00       True
    """
    check_level(confidence_level)
    if not (by is None or isinstance(by, str | list | tuple)):
        raise TypeError(f"by must be a column name or a list of them, got {type(by).__name__}.")
    named_columns = {"y_true": y_true, "y_pred": y_pred, "weight": weight, "groups": groups}
    for name, column in named_columns.items():
        if not (isinstance(column, str) or (column is None and name != "y_pred")):
            raise TypeError(
                f"{name} must be the name of a column of the blocks, got {type(column).__name__}."
            )
    named, names = list(_rate_report.named_goals(goals)), _rate_report.names_of_groups(by)
    rates = tuple(_rate_report.rate_of(goal) for _, goal in named)
    kept = tuple(names) if groups is None else (*names, groups)
    reduction = BlockReducer(rates, y_true, y_pred, weight, kept)
    if isinstance(blocks, Iterator):
        first = [*islice(blocks, 1)]
        blocks = chain(first, blocks)
        blocks = list(blocks) if first and _are_files(first) else blocks
    if _are_files(blocks):
        blocks = read_parquet_tables(blocks, reduction.choose, "blocks")
    elif hasattr(blocks, "to_delayed"):
        blocks = blocks[reduction.choose(blocks.columns)]  # the scheduler reads no others

    def merge(block: Any) -> MergedRows | None:
        table = read_table(block)
        if not hasattr(table, "columns"):
            raise TypeError(f"a block must be a table, got {type(block).__name__}.")
        return reduction(table)

    merged = sum_over_blocks(merge, blocks, "rate_report_blocks")
    if merged is None:
        raise ValueError(
            "blocks contains no rows: it is empty, or a generator that was read before."
        )
    data, positive = reduction.data(merged, pos_label, labels)
    table = data.train.columns.several(names, f"by={names}")
    if groups is not None:
        persons = data.train.columns.several([groups], f"groups={groups!r}")[groups]
        data = replace(data, dependent=read_groups(persons, len(data)))
    warn_of_unnamed(rates, data)
    return _rate_report.report_goals(named, data, positive, table, confidence_level)


def _are_files(blocks: Any) -> bool:
    """Return if it is a path, a list of paths, or a pyarrow Dataset."""
    several = blocks if isinstance(blocks, list | tuple) and blocks else [blocks]
    paths = all(isinstance(path, str | bytes | os.PathLike) for path in several)
    return paths or hasattr(blocks, "scanner")
