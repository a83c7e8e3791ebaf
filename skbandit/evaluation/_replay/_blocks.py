"""Replay of a log larger than memory: one run, block after block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from skbandit import logs
from skbandit.evaluation._guaranteed import check_range, read_range
from skbandit.evaluation._policy_protocol import name_block_columns
from skbandit.evaluation._replay import _engine, _result
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._folds import behind_transformers
from skbandit.utils._validation import as_labels, warn


def replay_blocks(
    policy: Any,
    blocks: Iterable[Any],
    *,
    acceptance: float,
    features: Sequence[str] | None = None,
    arms: Sequence[Any] | None = None,
    learn: bool = True,
    rule: Literal["select", "predict"] = "select",
    deployment_share: float = 0.0,
    max_accepted: int | None = None,
    reward: str | None = None,
    columns: Mapping[str, Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> _result.ReplayResult:
    """Replay a log larger than memory, from blocks of events in order of time.

    The result equals that of `replay` on the whole log, event for event: the state of the policy
    and all random streams carry over from block to block.

    Parameters
    ----------
    policy : object with select or predict, Pipeline that ends in one, or fitted search
        The policy to evaluate, as in `replay`. A copy is replayed.
    blocks : iterable of blocks
        A block is a pair (X, y), an object with X and y, as yielded by `read_parquet_log` and
        `read_yahoo_r6`, or a table of pandas, polars or pyarrow. The log needs a column
        propensity.
    acceptance : float
        c: an event whose action the policy chooses, logged with probability p, is kept with
        probability min(1, c/p). `replay` takes the smallest p of the log; here it must be known
        in advance. See Examples for a pass that finds it.
    features : sequence of str, default=None
        For blocks that are tables: the columns that are contexts; all others are the log.
    arms : sequence of labels, default=None
        All arms of the log; required without a column available.
    learn : bool, default=True
        Whether a policy with `partial_fit` learns from the kept events.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring or the greedy one.
    deployment_share : float in [0, 1), default=0.0
        Share of the events on which the greedy choice is played and nothing is learned.
    max_accepted : int, default=None
        Stop when this many events have been kept in the learning bucket; no further block is
        read.
    reward : str, default=None
        Column of the rewards, if not "reward".
    columns : dict, default=None
        Names of the log's columns, if different, as in ``columns={"action": "arm_id"}``; None uses
        the policy's `columns`.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, to which intervals are clipped. None takes [0, 1],
        or those of the log beyond.
    random_state : int, RandomState instance or None, default=None
        As in `replay`.

    Returns
    -------
    ReplayResult
        The result of one run. It takes 29 bytes per kept event;
        `event` in its history counts from the start of the first block. If `max_accepted` ends the
        replay, `logged_mean` is the mean over the blocks read.

    Raises
    ------
    ValueError
        As in `replay`; a note names the block, and row numbers count within it.

    Warns
    -----
    ReplayCoverageWarning
        As in `replay`.
    UserWarning
        As in `replay`, or if ids of a column ``id`` occur in several blocks, of which 65,536 are
        compared.

    See Also
    --------
    replay : For logs in memory: several runs, in random order or on random subsamples.
    skbandit.datasets.read_parquet_log : Reads blocks from Parquet files.
    off_policy_blocks : Evaluates policies that do not learn.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log, read_parquet_log
    >>> from skbandit.evaluation import replay, replay_blocks
    >>> log = make_bandit_log(20_000, n_arms=5, base_rate=0.1, random_state=0)
    >>> policy = GLMUCBPolicy(alpha=0.3, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.parquet")
    ...     pd.concat([log.X, log.y], axis=1).to_parquet(path)
    ...     c = min(block.y["propensity"].min() for block in read_parquet_log(path, []))
    ...     blocks = read_parquet_log(path, list(log.X.columns), block_size=1000)
    ...     result = replay_blocks(policy, blocks, acceptance=c, arms=range(5))
    >>> result.history.equals(replay(policy, log.X, log.y).history)
    True
    """
    options = _result.ReplayOptions(
        learn=learn,
        rule=rule,
        deployment_share=deployment_share,
        acceptance=acceptance,
        max_accepted=max_accepted,
    )
    if acceptance is None:
        raise ValueError("acceptance must be a number: a block does not show the smallest p.")
    columns = name_block_columns(policy, columns, reward)
    bounds = read_range(reward_range)
    features = None if features is None else as_labels(features, "features")
    arms = None if arms is None else as_labels(arms, "arms")
    (seed,) = _engine.seeds_of_runs(random_state, 1)
    streams = _engine.Streams.of(seed)
    kept = _KeptSoFar()
    replayed, latest, seen = None, -np.inf, logs.SeenIds.of(None)
    for number, block in enumerate(logs.as_blocks(blocks)):
        with logs.noting(f"In block {number}, counted from 0."):
            X, y = logs.read_block(block, features, columns)
            if not len(y):
                continue
            last, X = behind_transformers(policy, X)
            if replayed is None:
                options.check_policy(last)
                replayed = _engine.prepared_copy(last, streams, keep_seed=True)
            seen += logs.SeenIds.of(y)
            if X is None:
                raise ValueError("a policy needs contexts: name their columns, features=[...].")
            X, log = _engine.read_replayed(
                replayed, X, y, arms=() if arms is None else arms, columns=columns
            )
            logs.check_block_arms(log, arms)
            if bounds is not None:
                check_range(log.reward, bounds)
            if log.timestamp is not None:
                if log.timestamp[0] < latest:
                    raise ValueError(
                        f"timestamp of row 0, {log.timestamp[0]:.15g} s, is earlier than the end "
                        f"of the block before, {latest:.15g} s: replay_blocks needs blocks in "
                        "order of time."
                    )
                latest = float(log.timestamp[-1])
            if not kept.parts:
                _result.check_past(last, X, log, options.learns(last))
            left = None if max_accepted is None else max_accepted - kept.n_learning
            request = _engine.draw_request(X, log, acceptance, streams, options, left)
            kept.add(_engine.replay_request(replayed, request), log, float(acceptance))
        if max_accepted is not None and kept.n_learning >= max_accepted:
            break
    if replayed is None or kept.totals is None:
        raise ValueError("blocks contains no event.")
    seen.warn("replay_blocks")
    labels, learns = logs.label_array(kept.codes), options.learns(replayed)
    metadata = _result.ReplayMetadata(
        labels, kept.totals, float(acceptance), learns, bounds, options
    )
    result = _result.ReplayResult((kept.joined(),), metadata)
    _result.check_kept(result, max_accepted)
    if _result.keeps_too_few(result):
        warn(f"replay_blocks: {_result.too_few(result)}.", ReplayCoverageWarning)
    return result


@dataclass
class _KeptSoFar:
    """The kept events of all blocks so far, and totals of the log."""

    codes: logs.Codes = field(default_factory=dict)  # of the log's arms, in order of appearance
    parts: list[_result.Trajectory] = field(default_factory=list)
    n_learning: int = 0  # kept in the learning bucket
    totals: _result.LogTotals | None = None

    def add(self, trajectory: _result.Trajectory, log: logs.Log, c: float) -> None:
        """Append the trajectory of the next block."""
        before = self.totals.rewards.n if self.totals else 0
        totals = _result.LogTotals.of(log, c)
        self.totals = self.totals + totals if self.totals else totals
        self.n_learning += len(trajectory.take("learning"))
        self.parts.append(
            replace(
                trajectory,
                event=trajectory.event + before,
                action=logs.code_labels(log.arms, self.codes)[trajectory.action],
                n_seen=trajectory.n_seen + before,
            )
        )

    def joined(self) -> _result.Trajectory:
        """Return the parts as one trajectory."""
        parts = [part.columns() for part in self.parts]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return _result.Trajectory(**columns, n_events=sum(part.n_events for part in self.parts))
