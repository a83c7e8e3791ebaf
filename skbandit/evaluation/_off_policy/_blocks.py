"""Off-policy estimates from a log larger than memory, in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._guaranteed import Range, read_range
from skbandit.evaluation._off_policy._estimate import LogSums, OffPolicyEstimate, check_predictable
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog, are_floats, read_evaluated
from skbandit.evaluation._policy_protocol import name_block_columns
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import (
    as_blocks,
    check_block_arms,
    column_names,
    expected_reward,
    noting,
    read_block,
)
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import import_optional
from skbandit.utils._validation import as_labels


def off_policy_blocks(
    policy: Any,
    blocks: Any,
    *,
    features: Sequence[str] | None = None,
    arms: Sequence[Any] | None = None,
    reward_model: Any = None,
    rule: str = "select",
    reward: str | None = None,
    columns: Mapping[str, Any] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> dict[str, OffPolicyEstimate]:
    """Estimate a fixed policy's mean reward from a log larger than memory, in one pass.

    The estimates of `off_policy_value` by all methods, accumulated over blocks. They and their
    intervals equal those of the whole log in memory up to rounding, however the log is divided.

    Parameters
    ----------
    policy : policy or str
        A fitted policy, or a Pipeline or fitted search that ends in one, as in `off_policy_value`.
        Or the name of a column of the log with the probabilities of the logged actions under the
        evaluated policy.
    blocks : iterable of blocks, or Dask DataFrame
        A block is a table (of pandas, as yielded by ``read_csv(..., chunksize=...)``, polars or
        pyarrow), a pair (X, y), or an object with X and y, as yielded by `read_parquet_log`. The
        log needs a column propensity.

        The partitions of a Dask DataFrame are blocks. Dask's scheduler processes them, on a
        cluster if one is connected, and returns a few sums per partition.
    features : sequence of str, default=None
        For blocks that are tables: the columns that are contexts; all others are the log.
    arms : sequence of labels, default=None
        All arms of the log; required for a policy without a column available.
    reward_model : dict of fitted models, or policy with predict_reward, default=None
        For the doubly robust methods: a regressor (or a classifier with predict_proba) per arm
        label, or one object with ``predict_reward(X)`` and `arms_`, such as a `GLMUCBPolicy`. It
        must be fitted in advance, to events outside this log: cross-fitting would take a second
        pass. "dr" is unbiased whatever the model predicts. None omits these methods.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward : str, default=None
        Column of the rewards, if not "reward".
    columns : dict, default=None
        Names of the log's columns, if different, as in ``columns={"action": "arm_id"}``; None uses
        the policy's `columns`.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which intervals of kind "sequence" require.

    Returns
    -------
    dict of OffPolicyEstimate
        By method: "snips", "ips" and, with a reward model, "dr", "sndr", "switch_dr" and
        "dr_shrinkage".

    Raises
    ------
    ValueError
        As in `off_policy_value`; a note names the block, and row numbers count within it.

    Warns
    -----
    ReplayCoverageWarning
        As in `off_policy_value`.

    See Also
    --------
    skbandit.datasets.read_parquet_log : Reads blocks from Parquet files.
    replay_blocks : Evaluates policies that learn.
    off_policy_value : The same for a log in memory, with formulas.

    Notes
    -----
    Every block is evaluated with the policy in its present state. A random policy without
    `select_proba` draws the same numbers in every block.

    When Dask converts a pandas DataFrame, it turns columns of Python objects into strings: for a
    column available of tuples, set its option ``dataframe.convert-string`` to False. Lists read
    from Parquet are left unchanged.

    Examples
    --------
    Fit a policy to the first part of a log and evaluate it on the others:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_blocks
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> parts = [(log.X[k : k + 5000], log.y[k : k + 5000]) for k in range(0, 20_000, 5000)]
    >>> policy = GLMUCBPolicy().fit(*parts[0])
    >>> found = off_policy_blocks(
    ...     policy, parts[1:], arms=range(4), reward_model=policy, rule="predict"
    ... )
    >>> for name in ("ips", "snips", "dr"):
    ...     print(found[name])
    <ips: mean reward 0.1371 ± 0.0059, 2.64 x the log's; 15,000 events count as 3,720>
    <snips: mean reward 0.1382 ± 0.0057, 2.66 x the log's; 15,000 events count as 3,720>
    <dr: mean reward 0.1368 ± 0.0052, 2.63 x the log's; 15,000 events count as 3,720>
    """
    features = None if features is None else as_labels(features, "features")
    arms = None if arms is None else as_labels(arms, "arms")
    columns = name_block_columns(policy, columns, reward)
    bounds = read_range(reward_range)
    task = _Task(policy, features, arms, reward_model, rule, columns, bounds)
    run = _on_dask if hasattr(blocks, "to_delayed") else _one_by_one
    total = None
    for part in run(task, blocks):
        if part is not None:
            total = part if total is None else total + part
    if total is None:
        raise ValueError("blocks contains no event.")
    if total.shortcoming:
        warnings.warn(
            f"off_policy_blocks: {total.shortcoming}", ReplayCoverageWarning, stacklevel=2
        )
    return total.estimates()


@dataclass(frozen=True)
class _Task:
    """The work per block; picklable, so that it can be sent to workers."""

    policy: Any
    features: Sequence[str] | None
    arms: list[Any] | None
    reward_model: Any
    rule: str
    columns: Mapping[str, Any] | None
    reward_range: Range | None

    def __call__(self, number: int, block: Any) -> LogSums | None:
        """Sums over the events of a block; None if it has none."""
        with noting(f"In block {number}, counted from 0."):
            X, y = read_block(block, self.features, self.columns)
            return self._sums(X, y) if len(y) else None

    def _sums(self, X: Any, y: Any) -> LogSums:
        given, named = self.policy, isinstance(self.policy, str)
        if named:
            names = column_names(y) or []
            if given not in names:
                raise ValueError(
                    f"policy={given!r} is not a column of the log, {names}: name the column with "
                    "the probabilities of the logged actions, or pass a fitted policy."
                )
            values = pd.Series(y[given])
            if not are_floats(values):
                raise ValueError(
                    f"column {given!r} holds {values.dtype} values such as {values.iloc[0]!r}, "
                    "which look like labels of chosen arms: pass a column with the probabilities "
                    "of the logged actions, as floats."
                )
            given = values
        evaluated = read_evaluated(
            given, X, y, rule=self.rule, columns=self.columns, arms=self.arms or (), of_logged=named
        )
        if evaluated.of_arms is not None:
            check_block_arms(evaluated.log, self.arms)
        q = None if self.reward_model is None else _predictions(self.reward_model, X, evaluated)
        return LogSums.of(evaluated.events(q), self.reward_range)


def _predictions(model: Any, X: Any, evaluated: EvaluatedLog) -> np.ndarray:
    """Predicted rewards, of shape (n_events, n_arms)."""
    check_predictable(X, evaluated)
    if not isinstance(model, Mapping):
        model, X = behind_transformers(model, X)
        if not hasattr(model, "predict_reward"):
            raise TypeError(
                "reward_model must be a dict of fitted models, one per arm, or have "
                f"predict_reward, got {type(model).__name__}."
            )
    known = list(model) if isinstance(model, Mapping) else model.arms_.tolist()
    unknown = [arm for arm in evaluated.arms if arm not in known]
    if unknown:
        raise ValueError(f"reward_model has no model of arm {unknown[0]!r}, only of {known}.")
    if isinstance(model, Mapping):
        return np.column_stack([expected_reward(model[arm], X) for arm in evaluated.arms])
    return model.predict_reward(X)[:, [known.index(arm) for arm in evaluated.arms]]


def _one_by_one(task: _Task, blocks: Iterable[Any]) -> Iterable[LogSums | None]:
    """Sums of blocks, one after the other."""
    return (task(number, block) for number, block in enumerate(as_blocks(blocks)))


def _on_dask(task: _Task, frame: Any) -> Iterable[LogSums | None]:
    """Sums of the partitions of a Dask DataFrame, computed by Dask's scheduler."""
    dask = import_optional("dask", "off_policy_blocks of a Dask DataFrame")
    shared = dask.delayed(task, traverse=False, pure=False)  # sent once, not per partition
    return dask.compute(*(shared(k, part) for k, part in enumerate(frame.to_delayed())))
