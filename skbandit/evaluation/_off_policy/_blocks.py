"""What a fixed policy would have earned, from a log of any size in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from skbandit.evaluation._off_policy._estimators import OffPolicyEstimate, estimate_of, shortcoming
from skbandit.evaluation._off_policy._sums import (
    EventSums,
    doubly_robust_sums,
    ips_sums,
    snips_sums,
)
from skbandit.evaluation._off_policy._target_policy import JudgedLog, read_judged_log
from skbandit.evaluation._policy_protocol import behind_transformers
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs._blocks import as_blocks, check_block_arms, in_block, read_block
from skbandit.logs._log import column_names
from skbandit.logs._reward_models import expected_reward
from skbandit.utils._optional import import_optional
from skbandit.utils._validation import as_labels

# Sums by name of the estimator.
_Sums = dict[str, EventSums]


def off_policy_blocks(
    policy: Any,
    blocks: Any,
    *,
    features: Sequence[str] | None = None,
    arms: Sequence[Any] | None = None,
    reward_model: Any = None,
    rule: str = "select",
) -> dict[str, OffPolicyEstimate]:
    """Estimate a fixed policy's mean reward from a log larger than memory, in one pass.

    The estimates of `ips`, `snips` and `doubly_robust`, from sums over the events of each block:
    those of the whole log in memory, up to rounding, however it is cut.

    Parameters
    ----------
    policy : policy or str
        A fitted policy, or a Pipeline or fitted search that ends in one, as in `ips`. Or the
        name of a column of the log with the probabilities of the logged actions under the
        policy that is judged.
    blocks : iterable of blocks, or Dask DataFrame
        A block is a table (of pandas, as ``read_csv(..., chunksize=...)`` yields them, polars
        or pyarrow), a pair (X, y), or an object with X and y, as `read_parquet_log` yields
        them. The log needs a column propensity.

        Partitions of a Dask DataFrame are blocks. They are worked on by Dask's scheduler, on a
        cluster if one is connected, and of each a few sums come back.
    features : sequence of str, default=None
        The columns that are contexts, of blocks that are tables; all others are the log.
    arms : sequence of labels, default=None
        All arms of the log; needed for a policy, where there is no column available.
    reward_model : dict of fitted models, or policy with predict_reward, default=None
        For `doubly_robust`: a regressor (or a classifier with predict_proba) for each arm, by
        label, or one object with ``predict_reward(X)`` and `arms_`, as a `GLMUCBPolicy`. It is
        fitted beforehand, to events that are none of this log's: to predict each event by
        models that have not seen it would take a second pass. The estimate is unbiased
        whatever it predicts. None leaves `doubly_robust` out.
    rule : {"select", "predict"}, default="select"
        The choice of a policy that is judged: the exploring one or the greedy one.

    Returns
    -------
    dict of OffPolicyEstimate
        By name: ips, snips and, with a reward model, doubly_robust.

    Raises
    ------
    ValueError
        As `ips` does; a note of the error says in which block. Rows are counted in the block.

    Warns
    -----
    ReplayCoverageWarning
        As `ips` does.

    See Also
    --------
    skbandit.datasets.read_parquet_log : Blocks of a folder of Parquet files.
    replay_blocks : For policies that learn.
    ips, snips, doubly_robust : The same for a log in memory.

    Notes
    -----
    A policy is asked about each block as it is now. One that has no `select_proba` and chooses
    at random draws the same numbers in each block.

    Dask turns columns of Python objects into strings where it makes a DataFrame of one of pandas:
    for a column available of tuples, set its option ``dataframe.convert-string`` to False. Lists
    read from Parquet stay what they are.

    Examples
    --------
    A policy fitted to the first part of a log, judged on the others:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_blocks
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> parts = [(log.X[k : k + 5000], log.y[k : k + 5000]) for k in range(0, 20_000, 5000)]
    >>> policy = GLMUCBPolicy().fit(*parts[0])
    >>> found = off_policy_blocks(
    ...     policy, parts[1:], arms=range(4), reward_model=policy, rule="predict"
    ... )
    >>> for estimate in found.values():
    ...     print(estimate)
    <ips: mean reward 0.1355 ± 0.0059, 2.61 x the log's; 15,000 events count as 3,740>
    <snips: mean reward 0.1358 ± 0.0056, 2.62 x the log's; 15,000 events count as 3,740>
    <doubly_robust: mean reward 0.1352 ± 0.0052, 2.60 x the log's; 15,000 events count as 3,740>
    """
    features = None if features is None else as_labels(features, "features")
    arms = None if arms is None else as_labels(arms, "arms")
    task = _Task(policy, features, arms, reward_model, rule)
    of_blocks = _on_dask if hasattr(blocks, "to_delayed") else _one_by_one
    totals: _Sums = reduce(_merged, of_blocks(task, blocks), {})
    if not totals:
        raise ValueError("blocks holds no event.")
    said = shortcoming(totals["ips"])
    if said:
        warnings.warn(f"off_policy_blocks: {said}", ReplayCoverageWarning, stacklevel=2)
    return {name: estimate_of(name, sums) for name, sums in totals.items()}


@dataclass(frozen=True)
class _Task:
    """What is to be done with each block."""

    policy: Any
    features: Sequence[str] | None
    arms: list[Any] | None
    reward_model: Any
    rule: str

    def __call__(self, number: int, block: Any) -> _Sums:
        """Sums over the events of a block; nothing if it has none."""
        with in_block(number):
            X, y = read_block(block, self.features)
            return self._sums(X, y) if len(y) else {}

    def _sums(self, X: Any, y: Any) -> _Sums:
        given = self.policy
        if isinstance(given, str):
            names = column_names(y) or []
            if given not in names:
                raise ValueError(
                    f"policy={given!r} is none of the log's columns, {names}: name the one with "
                    "the probabilities of the logged actions, or pass a fitted policy."
                )
            given = y[given]
        judged = read_judged_log(given, X, y, None, None, None, self.rule, arms=self.arms or ())
        reward, weight = judged.log.reward, judged.weight
        sums = {"ips": ips_sums(reward, weight), "snips": snips_sums(reward, weight)}
        if judged.of_arms is not None:
            check_block_arms(judged.log, self.arms)
        if self.reward_model is not None:
            q = _predictions(self.reward_model, X, judged)
            sums["doubly_robust"] = doubly_robust_sums(reward, weight, *judged.predicted(q))
        return sums


def _predictions(model: Any, X: Any, judged: JudgedLog) -> np.ndarray:
    """Predicted rewards, of shape (n_events, n_arms)."""
    if X is None:
        raise ValueError("the reward model needs contexts: name their columns, features=[...].")
    if judged.of_arms is None:
        raise ValueError(
            "a reward model needs a policy, which has probabilities of all arms: a column has "
            "those of the logged actions alone."
        )
    if not isinstance(model, Mapping):
        model, X = behind_transformers(model, X)
        if not hasattr(model, "predict_reward"):
            raise TypeError(
                "reward_model must be a dict of fitted models, one an arm, or have predict_reward, "
                f"got {type(model).__name__}."
            )
    known = list(model) if isinstance(model, Mapping) else model.arms_.tolist()
    unknown = [arm for arm in judged.arms if arm not in known]
    if unknown:
        raise ValueError(f"reward_model knows nothing of arm {unknown[0]!r}, only of {known}.")
    if isinstance(model, Mapping):
        return np.column_stack([expected_reward(model[arm], X) for arm in judged.arms])
    return model.predict_reward(X)[:, [known.index(arm) for arm in judged.arms]]


def _one_by_one(task: _Task, blocks: Iterable[Any]) -> Iterable[_Sums]:
    """Sums of blocks as they come."""
    return (task(number, block) for number, block in enumerate(as_blocks(blocks)))


def _on_dask(task: _Task, frame: Any) -> Iterable[_Sums]:
    """Sums of the partitions of a Dask DataFrame, computed by its scheduler."""
    dask = import_optional("dask", "off_policy_blocks of a Dask DataFrame")
    shared = dask.delayed(task, traverse=False, pure=False)  # sent once, not with each partition
    return dask.compute(*(shared(k, part) for k, part in enumerate(frame.to_delayed())))


def _merged(one: _Sums, other: _Sums) -> _Sums:
    """Sums over disjoint events."""
    if not one or not other:
        return one or other
    return {name: one[name] + other[name] for name in one}
