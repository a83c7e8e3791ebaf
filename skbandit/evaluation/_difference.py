"""The difference of two policies' mean rewards on one log, whose estimates are dependent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from skbandit.evaluation._guaranteed import quantile_of
from skbandit.evaluation._score import Range, Sides, sides_of
from skbandit.logs import Log
from skbandit.utils._trials import dependence


@dataclass(frozen=True, repr=False)
class PolicyDifference:
    """The difference of two policies' mean rewards, estimated on one log.

    The result of ``a - b`` for two `OffPolicyEstimate` or two `ReplayResult`. Both estimates use
    the same events, so the interval of their difference is often much narrower than their own
    intervals suggest.

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
        Degrees of freedom of the interval; 0, for one group of dependent events, is no interval.
    sides : object, default=None
        Internal: the events that count more in the one or in the other estimate.

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
    sides: Sides | None = field(default=None, compare=False)

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the difference.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Nominal coverage, in (0, 1).

        Returns
        -------
        low, high : float
            By score limits and the quantiles of the normal or Student's distribution, which have
            width and cover even if rewards are rare.
        """
        quantile = quantile_of(confidence_level, self.freedom)
        if np.isnan(quantile):
            return np.nan, np.nan
        below = above = quantile * self.standard_error
        if self.sides is not None:
            below, above = self.sides.distances(quantile)
        center = self.mean_reward if self.center is None else self.center
        return min(center - below, self.mean_reward), max(center + above, self.mean_reward)

    def __repr__(self) -> str:
        return (
            f"<difference of mean rewards: {self.mean_reward:.4g} ± {self.standard_error:.2g}, "
            f"from {self.n_events:,} events>"
        )


def least_error(error: float, sides: Sides) -> float:
    """Return the error of a difference; of equal rewards, that of the limits at 1 at least."""
    varies = any(side.error for side in sides.members.values())
    return error if varies else max(error, *sides.distances(1.0))


@dataclass(frozen=True, eq=False)
class EventParts:
    """What each event contributed to an estimate, and copies of what tells logs apart."""

    influence: np.ndarray  # (n_events,), of sum 0
    factor: np.ndarray  # (n_events,), of its reward in the estimate
    bounds: Range  # of rewards
    variance: float  # of rewards, or of the errors of their predictions
    logged: dict[str, Any]  # see `of_log`

    @staticmethod
    def of_log(
        log: Log, rewards: np.ndarray, propensity: Any, group: np.ndarray | None
    ) -> dict[str, Any]:
        """Return what tells logs apart, as the user may change the arrays later."""
        return {
            "actions": np.append(log.arms, np.array([None]))[log.action],  # -1 is none
            "rewards": rewards.copy(),
            "propensities": None if propensity is None else propensity.copy(),
            "groups": group,
        }

    def less(self, other: EventParts) -> tuple[float, Sides, float]:
        """Return error, sides and freedom of the difference of two estimates from one log."""
        n, others = len(self.influence), len(other.influence)
        if n != others:
            refuse_difference(f"but these are of {n:,} and {others:,} events")
        for name, values in self.logged.items():
            if not np.array_equal(values, other.logged[name]):
                refuse_difference(f"but the {name} of these differ")
        away, group = self.influence - other.influence, self.logged["groups"]
        with np.errstate(invalid="ignore"):  # nan from a single event
            squares = away**2 / np.float64((n - 1) * n)
        reward = np.reshape(self.logged["rewards"], (n, -1)).sum(axis=1)  # of slates
        moments = self.bounds, float(reward.mean()), max(self.variance, other.variance)
        sides = sides_of(self.factor - other.factor, reward, squares, *moments)
        error = float(np.sqrt(squares.sum()))
        if group is None:
            return error, sides, np.inf
        scale = float(np.abs(reward).max(initial=0.0)) or 1.0
        clusters = dependence(away / scale, np.ones(n), group)
        error = error * float(np.sqrt(clusters.deff)) if clusters.freedom > 0 else np.nan
        return error, sides.widened(clusters.deff), clusters.freedom


def refuse_other_kind(other: Any) -> None:
    """Raise if the one of two estimates is from `replay`, and the other from `off_policy_value`."""
    if hasattr(other, "logged_mean"):
        raise TypeError(
            "a replay and an off-policy estimate have no difference, as they use the events in "
            "different ways: replay both policies with the same options. For a rule that does not "
            "learn, replay its choices: replay(policy, X, y, random_state=0) - "
            "replay(actions, X, y, random_state=0), where actions has one label per event."
        )


def refuse_sequence() -> NoReturn:
    """Raise the error of dependent events, which a confidence sequence has no place for."""
    raise ValueError(
        "an interval of kind='sequence' is for independent events, and groups= says which are "
        "dependent: use kind='normal', or one event per group."
    )


def refuse_difference(reason: str) -> NoReturn:
    """Raise the error of two estimates that have no difference."""
    raise ValueError(
        f"the difference of two estimates needs one log, {reason}: estimate both policies from "
        "the same events."
    )
