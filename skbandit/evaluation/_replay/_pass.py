"""One walk through a log: Algorithms 1 and 2 of Li et al. (2012)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs._log import Log
from skbandit.utils._progress import told_along
from skbandit.utils._sklearn_compat import rows_of

# Events that a policy which cannot change is shown at a time.
_BLOCK = 8192


@dataclass(frozen=True)
class Draws:
    """What chance decides before a walk begins, so that it is the same for every policy."""

    rows: np.ndarray  # positions in the log, in the order of the walk
    keep: np.ndarray  # (n_rows,), whether the event is kept if the policy agrees with it
    deployment: np.ndarray  # (n_rows,), whether it belongs to the deployment bucket


@dataclass(frozen=True)
class Chance:
    """Where the random numbers of one run come from."""

    events: np.random.Generator  # order, part, and what is kept
    buckets: np.random.Generator
    seed: int  # of the policy, where it has none that is used

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> Chance:
        """All from one seed, each on its own, so that a log may be walked in parts."""
        events, buckets, policy = (np.random.default_rng(own) for own in (seed, *seed.spawn(2)))
        return cls(events, buckets, int(policy.integers(2**31)))


def draw(
    probability: np.ndarray,
    c: float,
    chance: Chance,
    *,
    deployment_share: float,
    shuffle: bool = False,
    subsample: float | None = None,
) -> Draws:
    """Decide on order, part and buckets of the events, and which matches are kept.

    A choice that was logged with probability p is kept with probability min(1, c/p): for c not
    above any p, a match is then kept with probability c whatever its context and arm.

    Without `shuffle` and `subsample`, a log that is drawn for part by part gets what it would
    get as a whole.
    """
    rng = chance.events
    n_events = len(probability)
    rows = np.arange(n_events)
    if subsample is not None:
        chosen = np.zeros(n_events, dtype=bool)
        size = max(1, round(subsample * n_events))
        chosen[rng.choice(n_events, size, replace=False, shuffle=False)] = True
        rows = np.flatnonzero(chosen)
    if shuffle:
        rows = rng.permutation(rows)
    keep = rng.random(len(rows)) < c / probability[rows]
    return Draws(rows, keep, chance.buckets.random(len(rows)) < deployment_share)


def walk_log(
    policy: Any,
    X: Any,
    log: Log,
    rows: np.ndarray,
    keep: np.ndarray,
    deployment: np.ndarray,
    *,
    rule: str,
    learn: bool,
    max_accepted: int | None,
    tell: Callable[[float], None] = lambda share: None,
) -> tuple[np.ndarray, int]:
    """Show a policy one event after the other, and find those that it would have caused.

    A policy may do this itself, and faster: see `skbandit.logs._replay_request.ReplaysLogs`.

    Parameters
    ----------
    policy : object
        Changed as it learns.
    X : {array, sparse matrix, DataFrame} of shape (n_events, n_features)
        Contexts, in the order of `log`.
    log : Log
        Where it has no `pools`, all of its arms can be chosen.
    rows : ndarray of shape (n_rows,)
        Positions in the log, in the order of the walk.
    keep : ndarray of bool of shape (n_rows,)
        The policy is not shown the others.
    deployment : ndarray of bool of shape (n_rows,)
        Events on which its `predict` is played and nothing is learned.
    rule : {"select", "predict"}
        Which of its choices is played on the others.
    learn : bool
        Whether it learns from those of the others that match.
    max_accepted : int or None
        The walk ends after so many matches outside the deployment bucket (Algorithm 1); None
        is at the end of the log (Algorithm 2).
    tell : callable
        Called now and then with the share of the walk that is done.

    Returns
    -------
    accepted : ndarray of shape (n_accepted,)
        Positions in `rows` of the matches in either bucket, ascending.
    n_seen : int
        How many of `rows` were walked.
    """
    learning = learn and hasattr(policy, "partial_fit")
    timed = log.timestamp is not None and hasattr(policy, "advance")
    block_size = 1 if learning or timed else _BLOCK
    feedback = _feedback(log) if learning else None
    sets, set_of_event = available_sets(log)
    take = X.__getitem__ if isinstance(X, np.ndarray) else partial(rows_of, X)  # the latter is slow
    played = {name: answering(policy, name) for name in {rule, "predict"} if hasattr(policy, name)}

    shown = np.flatnonzero(keep)
    accepted = [np.empty(0, dtype=np.int64)]
    n_seen = len(rows)
    n_earned = n_absent = 0
    first_absent = ""
    for start in told_along(range(0, len(shown), block_size), tell):
        block = shown[start : start + block_size]
        if timed:
            policy.advance(log.timestamp[rows[block[0]]])  # type: ignore[index]
        matched = np.empty(len(block), dtype=bool)
        deployed = deployment[block]
        for name, mine in (("predict", deployed), (rule, ~deployed)):
            if not mine.any():
                continue
            at = rows[block[mine]]
            available = [sets[k] for k in set_of_event[at].tolist()]
            choices = played[name](take(at), available)
            logged = log.arms[log.action[at]].tolist()
            matched[mine] = [one == other for one, other in zip(choices, logged, strict=True)]
            for row, choice, arms in zip(at, choices, available, strict=True):
                if choice not in arms:
                    n_absent += 1
                    first_absent = first_absent or f"{choice!r} on row {row}"
        accepted.append(block[matched])
        earned = block[matched & ~deployed]
        n_earned += len(earned)
        if max_accepted is not None and n_earned >= max_accepted:
            last = earned[len(earned) - 1 - (n_earned - max_accepted)]
            accepted[-1] = accepted[-1][accepted[-1] <= last]
            n_seen = int(last) + 1
            break
        if learning and len(earned):
            at = rows[earned]
            policy.partial_fit(take(at), feedback.iloc[at])  # type: ignore[union-attr]
    if n_absent:
        warnings.warn(
            f"{type(policy).__name__} chose arms that were not available on {n_absent:,} events, "
            f"first {first_absent}. Such events can never be kept, so the estimate is for the "
            "other contexts only: let the policy choose among `available`.",
            UserWarning,
            stacklevel=2,
        )
    return np.concatenate(accepted), n_seen


def _feedback(log: Log) -> pd.DataFrame:
    """What a policy learns from, one row an event."""
    columns = {"action": log.arms[log.action], "reward": log.reward}
    if log.timestamp is not None:
        columns["timestamp"] = log.timestamp
    return pd.DataFrame(columns)


def available_sets(log: Log) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """The sets of arms that could be chosen, by label, and which of them each event had."""
    if log.pools is None:
        return [tuple(log.arms.tolist())], np.zeros(len(log), dtype=np.int8)
    sets = np.split(log.arms[log.pools.arms], log.pools.start[1:-1])
    return [tuple(arms.tolist()) for arms in sets], log.pools.of_event


def answering(policy: Any, name: str) -> Callable[[Any, list[tuple[Any, ...]]], list[Any]]:
    """A method of a policy, with its answer checked; one without `available` is not told it."""
    method = getattr(policy, name)
    parameters = signature(method).parameters
    told = "available" in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )

    def answer(X: Any, available: list[tuple[Any, ...]]) -> list[Any]:
        choices = method(X, available=available) if told else method(X)
        if getattr(choices, "ndim", 1) != 1 or len(choices) != len(available):
            raise ValueError(
                f"{type(policy).__name__}.{name} answered {len(available)} rows with an array of "
                f"shape {np.shape(choices)}: a policy chooses one arm a row."
            )
        return choices.tolist() if hasattr(choices, "tolist") else list(choices)

    return answer
