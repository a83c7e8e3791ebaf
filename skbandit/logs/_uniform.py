"""Whether actions of a log without propensities were chosen uniformly."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skbandit.logs._log import Log


def is_far(found: Any, expected: Any, variance: Any) -> Any:
    """Whether counts are more than about 5 standard deviations from their expectation.

    By Freedman's inequality this has probability at most 2 exp(-12.5) < 8e-6.
    """
    gap = np.abs(found - expected)
    return gap**2 > 25 * (variance + gap / 3)


def check_uniform(log: Log, stacklevel: int = 4) -> None:
    """Warn if a log lacks propensities and its actions are clearly not uniform."""
    n_arms = len(log.arms)
    if log.pools is None:
        times, sizes, arms = np.array([len(log)]), np.array([n_arms]), np.arange(n_arms)
    else:
        sizes, arms = np.diff(log.pools.start), log.pools.arms
        times = np.bincount(log.pools.of_event, minlength=len(sizes))
    share = np.repeat(1 / sizes, sizes)
    seen = np.repeat(times, sizes)
    expected = np.bincount(arms, weights=seen * share, minlength=n_arms)
    variance = np.bincount(arms, weights=seen * share * (1 - share), minlength=n_arms)
    found = np.bincount(log.action, minlength=n_arms)
    far = np.flatnonzero(is_far(found, expected, variance))
    if len(far):
        arm = far[np.argmax(np.abs(found - expected)[far])]
        warnings.warn(
            "the log has no propensities, but its actions were not chosen uniformly: "
            f"{log.arms.tolist()[arm]!r} on {found[arm]:,} events, where {expected[arm]:,.0f} are "
            "expected. The estimate is biased: pass the propensities, or the arms available to "
            "each event.",
            UserWarning,
            stacklevel=stacklevel,
        )
