"""The difference of two policies' mean rewards on one log, whose estimates are dependent."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NoReturn

import numpy as np
from scipy.stats import t as student

from skbandit.logs import Log
from skbandit.utils._validation import check_level


@dataclass(frozen=True, repr=False)
class PolicyDifference:
    """The difference of two policies' mean rewards, estimated on one log.

    The result of ``a - b`` for two `OffPolicyEstimate` or two `ReplayResult`. As both estimates
    share the luck of the log, the interval of their difference is often much narrower than a
    comparison of their own intervals suggests.

    Parameters
    ----------
    mean_reward : float
        The first policy's mean reward less the second's.
    standard_error : float
        Standard error of the difference, from the spread of its parts over events (and runs).
    n_events : int
        Number of events in the log; of a replay, those replayed in all runs.
    center : float, default=None
        Middle of the interval, if not `mean_reward`: for "switch_dr" and "dr_shrinkage", whose
        bias is unknown, the difference of "dr".
    freedom : float, default=inf
        Degrees of freedom of the interval.

    See Also
    --------
    off_policy_value : Returns an estimate of a fixed policy.
    replay : Returns that of a policy that learns.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_value
    >>> log = make_bandit_log(10_000, n_arms=3, random_state=0)
    >>> new = off_policy_value(np.tile([0.1, 0.1, 0.8], (10_000, 1)), None, log.y)
    >>> old = off_policy_value(np.tile([0.1, 0.2, 0.7], (10_000, 1)), None, log.y)
    >>> new.standard_error, old.standard_error
    (0.0018..., 0.0017...)
    >>> new - old
    <difference of mean rewards: -0.001922 ± 0.00038, from 10,000 events>
    """

    mean_reward: float
    standard_error: float
    n_events: int
    center: float | None = None
    freedom: float = np.inf

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the difference.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Nominal coverage, in (0, 1).

        Returns
        -------
        low, high : float
            By the normal or Student's distribution: right for many events in effect.
        """
        check_level(confidence_level)
        half = float(student.ppf((1 + confidence_level) / 2, self.freedom)) * self.standard_error
        center = self.mean_reward if self.center is None else self.center
        return min(center - half, self.mean_reward), max(center + half, self.mean_reward)

    def __repr__(self) -> str:
        return (
            f"<difference of mean rewards: {self.mean_reward:.4g} ± {self.standard_error:.2g}, "
            f"from {self.n_events:,} events>"
        )


def log_digests(log: Log) -> dict[str, bytes]:
    """Digests of what makes a log, by name."""
    used = np.unique(log.action).tolist()
    order = sorted(used, key=lambda k: repr(log.arms[k]))
    number = np.zeros(len(log.arms), dtype=np.int64)
    number[order] = np.arange(len(order))
    parts = {"actions": number[log.action], "rewards": log.reward}
    if log.propensity is not None:
        parts["propensities"] = log.propensity
    labels = repr([log.arms[k] for k in order]).encode("utf-8", "surrogatepass")
    found = {name: blake2b(digest_size=16) for name in parts}
    found["actions"].update(labels)
    for name, part in parts.items():
        found[name].update(np.ascontiguousarray(part).tobytes())
    return {name: digest.digest() for name, digest in found.items()}


def refuse_difference(reason: str) -> NoReturn:
    """Raise the error of two estimates that have no difference."""
    raise ValueError(
        f"the difference of two estimates needs one log, {reason}: estimate both policies from "
        "the same events."
    )
