"""Sanity checks (warnings) on a log and on the events that a replay kept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skbandit.evaluation._policy_protocol import check_not_learned
from skbandit.evaluation._replay._result import ReplayResult
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import Log, is_far


def check_past(policy: Any, X: Any, log: Log, learns: bool) -> None:
    """Warn if the policy has learned this log, or if it `learns` and knows its future."""
    if check_not_learned(policy, X, log) or not learns:
        return
    latest = getattr(policy, "last_timestamp_", None)
    if log.timestamp is None or latest is None:
        return
    if latest > log.timestamp[0]:
        warnings.warn(
            f"the policy has learned an event at {latest:.15g} s, later than the log's first, at "
            f"{log.timestamp[0]:.15g} s: it knows the future of the events it is judged on. Use "
            "folds in order of time, cv=ReplaySplit(...), or a policy that is not fitted.",
            UserWarning,
            stacklevel=3,
        )


def check_clipped(c: float, share: float, smallest: float) -> None:
    """Warn if c exceeds the propensity of some events, so that they are kept too rarely."""
    if share:
        warnings.warn(
            f"acceptance={c:g} is above the propensity of {share:.2%} of the events (smallest: "
            f"{smallest:.3g}): they are kept too rarely, which biases the estimate.",
            UserWarning,
            stacklevel=4,
        )


def check_kept(result: ReplayResult, max_accepted: int | None) -> None:
    """Warn of an improbable number of kept events, a short run, or identical runs."""
    c = result.acceptance
    for run, trajectory in enumerate(result.trajectories):
        expected = c * trajectory.n_events
        if not result.metadata.clipped and is_far(
            len(trajectory.event), expected, (1 - c) * expected
        ):
            warnings.warn(
                f"run {run} kept {len(trajectory.event):,} of {trajectory.n_events:,} events, "
                f"where c = {c:.3g} keeps {expected:,.0f} ± {np.sqrt((1 - c) * expected):,.0f} for "
                "any policy. Either the propensities are wrong (or missing, and the log was not "
                "uniform), the policy chooses arms that were not available, or it draws the same "
                "random numbers as the policy that wrote the log: give it a seed of its own. The "
                "estimate is biased.",
                ReplayCoverageWarning,
                stacklevel=4,
            )
            break
    shortest = min(len(run.take("learning")) for run in result.trajectories)
    if max_accepted is not None and 0 < shortest < max_accepted:
        warnings.warn(
            f"the log ended when a run had kept {shortest:,} events, before max_accepted="
            f"{max_accepted:,}: the result is for this shorter horizon.",
            ReplayCoverageWarning,
            stacklevel=4,
        )
    first, *others = result.trajectories
    if others and all(np.array_equal(first.event, other.event) for other in others):
        warnings.warn(
            f"the {len(result.trajectories)} runs are identical, as nothing is drawn at random: "
            "pass shuffle=True or subsample=0.5.",
            UserWarning,
            stacklevel=4,
        )
