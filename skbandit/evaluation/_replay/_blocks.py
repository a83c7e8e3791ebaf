"""Replay of a log that is larger than memory: one walk, block after block."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from skbandit.evaluation._off_policy._sums import EventSums, ips_sums
from skbandit.evaluation._policy_protocol import behind_transformers
from skbandit.evaluation._replay._engine import (
    Plan,
    check_plays,
    read_replayed,
    seeds_of_runs,
    started,
    walk_part,
)
from skbandit.evaluation._replay._pass import Chance, draw
from skbandit.evaluation._replay._result import FEW, ReplayResult, Terms, Walk, too_few
from skbandit.evaluation._replay._warnings import check_clipped, check_kept
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs._arms import Codes, code_labels, label_array
from skbandit.logs._blocks import as_blocks, check_block_arms, in_block, read_block
from skbandit.logs._log import Log
from skbandit.utils._validation import as_labels


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
    random_state: int | np.random.RandomState | None = None,
) -> ReplayResult:
    """Replay a log larger than memory, from blocks of events in order of time.

    The result of `replay` on the whole log, event for event: what the policy has learned, its
    random numbers and those of the walk go on from block to block.

    Parameters
    ----------
    policy : object with select or predict, Pipeline that ends in one, or fitted search
        What is judged, as in `replay`. Works on a copy.
    blocks : iterable of blocks
        A block is a pair (X, y), an object with X and y, as `read_parquet_log` and
        `read_yahoo_r6` yield them, or a table of pandas, polars or pyarrow. The log needs a
        column propensity.
    acceptance : float
        c: an event on which the policy agrees, logged with probability p, is kept with
        probability min(1, c/p). `replay` takes the smallest p of the log; here it has to be
        known beforehand. See Examples for a pass that finds it.
    features : sequence of str, default=None
        The columns that are contexts, of blocks that are tables; all others are the log.
    arms : sequence of labels, default=None
        All arms of the log; needed where there is no column available.
    learn : bool, default=True
        Whether a policy with `partial_fit` learns from the kept events.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring or the greedy one.
    deployment_share : float in [0, 1), default=0.0
        Share of the events on which the greedy choice is played and nothing is learned.
    max_accepted : int, default=None
        Stop when so many events have been kept in the learning bucket; no further block is
        read then.
    random_state : int, RandomState instance or None, default=None
        As in `replay`.

    Returns
    -------
    ReplayResult
        Of one run. It holds the kept events, 29 bytes each; `event` in its history counts
        from the beginning of the first block. Where `max_accepted` ends the walk, the log's own
        mean is that of the blocks which were read.

    Raises
    ------
    ValueError
        As `replay` does; a note of the error says in which block. Rows are counted in the block.

    Warns
    -----
    ReplayCoverageWarning
        As `replay` does.
    UserWarning
        As `replay` does.

    See Also
    --------
    replay : For logs in memory: several runs, in random orders or on random parts.
    skbandit.datasets.read_parquet_log : Blocks of a folder of Parquet files.
    off_policy_blocks : For policies that do not learn.

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
    ...     blocks = read_parquet_log(path, list(log.X.columns), chunk_size=1000)
    ...     result = replay_blocks(policy, blocks, acceptance=c, arms=range(5))
    >>> result.history.equals(replay(policy, log.X, log.y).history)
    True
    """
    plan = Plan(
        learn=learn,
        rule=rule,
        deployment_share=deployment_share,
        acceptance=acceptance,
        max_accepted=max_accepted,
    )
    if acceptance is None:
        raise ValueError("acceptance must be a number: a block does not tell the smallest p.")
    features = None if features is None else as_labels(features, "features")
    arms = None if arms is None else as_labels(arms, "arms")
    (seed,) = seeds_of_runs(random_state, 1)
    chance = Chance.of(seed)
    kept = _Kept()
    replayed = None
    for number, block in enumerate(as_blocks(blocks)):
        with in_block(number):
            X, y = read_block(block, features)
            if not len(y):
                continue
            last, X = behind_transformers(policy, X)
            if replayed is None:
                check_plays(last, plan)
                replayed = started(last, chance, keep_seed=True)
            X, log = _read(replayed, X, y, arms)
            draws = draw(log.probability, acceptance, chance, deployment_share=deployment_share)
            left = None if max_accepted is None else max_accepted - kept.n_learning
            kept.add(walk_part(replayed, X, log, draws, plan, left), log, acceptance)
        if max_accepted is not None and kept.n_learning >= max_accepted:
            break
    if replayed is None:
        raise ValueError("blocks holds no event.")
    learns = learn and hasattr(replayed, "partial_fit")
    return _checked(kept, plan, float(acceptance), learns)


def _read(policy: Any, X: Any, y: Any, arms: Sequence[Any] | None) -> tuple[Any, Log]:
    """Contexts whose rows can be taken, and the log of as many events, its arms sorted."""
    if X is None:
        raise ValueError("a policy needs contexts: name their columns, features=[...].")
    X, log = read_replayed(policy, X, y, arms=() if arms is None else arms)
    check_block_arms(log, arms)
    return X, log


@dataclass
class _Kept:
    """What was kept so far, and what else has to be known of the blocks walked."""

    codes: Codes = field(default_factory=dict)  # of the log's arms, in order of appearance
    parts: list[Walk] = field(default_factory=list)
    n_walked: int = 0
    n_learning: int = 0  # kept in the learning bucket
    n_clipped: int = 0
    smallest: float = 1.0  # propensity
    rewards: EventSums = field(default_factory=lambda: _moments(np.empty(0)))

    @property
    def n_events(self) -> int:
        """Of the blocks."""
        return self.rewards.n

    def add(self, walk: Walk, log: Log, acceptance: float) -> None:
        """Append what was kept of the next block."""
        action = code_labels(log.arms, self.codes)[walk.action]
        before = self.n_events
        self.parts.append(
            replace(walk, event=walk.event + before, action=action, n_seen=walk.n_seen + before)
        )
        self.n_walked += walk.n_events
        self.n_learning += len(walk.take("learning"))
        self.n_clipped += int((log.probability < acceptance).sum())
        self.smallest = min(self.smallest, float(log.probability.min()))
        self.rewards += _moments(log.reward)

    def walk(self) -> Walk:
        """All of it, as one walk."""

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name) for part in self.parts])

        return Walk(
            joined("event"),
            joined("action"),
            joined("reward"),
            joined("deployment"),
            joined("n_seen"),
            self.n_walked,
        )


def _moments(reward: np.ndarray) -> EventSums:
    """Of which the logged rewards' mean and variance can be told."""
    return ips_sums(reward, np.ones(len(reward)))


def _checked(kept: _Kept, plan: Plan, c: float, learns: bool) -> ReplayResult:
    """The result, with warnings of what is wrong with it."""
    clipped = kept.n_clipped / kept.n_events
    terms = Terms(
        arms=label_array(kept.codes),
        n_events=kept.n_events,
        logged_mean=kept.rewards.value,
        logged_variance=kept.rewards.ee / kept.n_events,
        c=c,
        clipped=clipped,
        learns=learns,
        deployment_share=plan.deployment_share,
        shuffle=False,
        subsample=None,
    )
    result = ReplayResult((kept.walk(),), terms)
    check_clipped(c, clipped, kept.smallest)
    check_kept(result, plan.max_accepted)
    if result.n_accepted < FEW:
        said = too_few(result)
        warnings.warn(f"replay_blocks: {said}.", ReplayCoverageWarning, stacklevel=3)
    return result
