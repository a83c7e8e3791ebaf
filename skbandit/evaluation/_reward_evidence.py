"""What a log says of a mean reward, summarised for intervals with a guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from skbandit.evaluation._guaranteed import (
    WeightedShares,
    betting_limit,
    path_limit,
)
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._validation import check_level, finite

KINDS = ("normal", "sequence")

_ALARM = 0.025
"""Error of each limit, that of an interval at 95 %, at which weights are told to be wrong."""

Range = tuple[float, float]


def check_kind(kind: Any) -> None:
    """Require a kind of interval."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be in {KINDS}, got {kind!r}.")


def read_range(reward_range: Any) -> Range | None:
    """Bounds of the rewards as floats; None if not given."""
    if reward_range is None:
        return None
    pair = isinstance(reward_range, Sequence | np.ndarray) and not isinstance(reward_range, str)
    if not pair or len(reward_range) != 2:
        raise ValueError(
            f"reward_range must be a pair (smallest, largest possible reward), got "
            f"{reward_range!r}."
        )
    low, high = (finite(bound, "reward_range") for bound in reward_range)
    if not low < high:
        raise ValueError(f"reward_range must be ascending, got {reward_range!r}.")
    return low, high


def check_range(reward: np.ndarray, bounds: Range) -> None:
    """Require rewards within bounds."""
    outside = np.flatnonzero((reward < bounds[0]) | (reward > bounds[1]))
    if len(outside):
        raise ValueError(
            f"the reward of row {outside[0]}, {reward[outside[0]]:g}, is outside of "
            f"reward_range={bounds}: correct the range, which is that of all possible rewards."
        )


def known_range(bounds: Range | None) -> Range:
    """Bounds that were given, as a confidence sequence requires."""
    if bounds is None:
        raise ValueError(
            "an interval of kind='sequence' requires the range of all possible rewards, which the "
            "observed ones do not tell: pass reward_range=(smallest, largest) where the log is "
            "read, as in reward_range=(0, 1) for clicks."
        )
    return bounds


def natural_range(reward: np.ndarray) -> Range:
    """[0, 1] if all rewards lie within, else their smallest and largest value."""
    least, greatest = float(reward.min()), float(reward.max())
    return (0.0, 1.0) if least >= 0 and greatest <= 1 else (least, greatest)


def clipped_interval(low: float, high: float, bounds: Range) -> Range:
    """The part of an interval within bounds; the nearest bound if there is none."""
    low, high = np.clip([low, high], *bounds).tolist()
    return low, high


def normal_quantile(confidence_level: float) -> float:
    """Half the width of a normal interval, in standard errors."""
    check_level(confidence_level)
    return float(norm.ppf((1 + confidence_level) / 2))


@dataclass(frozen=True, eq=False)
class RewardEvidence:
    """Weighted rewards of independent events; the evidence of disjoint events adds up.

    Parameters
    ----------
    bounds : (float, float) or None
        Smallest and largest possible reward; None if unknown.
    observed : (float, float)
        Smallest and largest observed reward.
    largest_weight : float
        Largest possible weight.
    shares : WeightedShares
        Rewards as shares of the way from the smallest to the largest; empty without bounds.
    """

    bounds: Range | None
    observed: Range
    largest_weight: float
    shares: WeightedShares

    @classmethod
    def of(
        cls, reward: np.ndarray, weight: np.ndarray, bounds: Range | None, largest_weight: float
    ) -> RewardEvidence:
        """The evidence of events with weights of mean 1, and rewards within the bounds."""
        observed = float(reward.min()), float(reward.max())
        shares = WeightedShares.of(np.empty(0), np.empty(0))
        if bounds is not None:
            low, high = bounds
            shares = WeightedShares.of(weight, np.clip((reward - low) / (high - low), 0.0, 1.0))
        return cls(bounds, observed, max(largest_weight, float(weight.max())), shares)

    def __add__(self, other: RewardEvidence) -> RewardEvidence:
        (a, b), (c, d) = self.observed, other.observed
        return RewardEvidence(
            self.bounds,
            (min(a, c), max(b, d)),
            max(self.largest_weight, other.largest_weight),
            self.shares + other.shares,
        )

    @property
    def clipping(self) -> Range:
        """Bounds of normal intervals."""
        return natural_range(np.array(self.observed)) if self.bounds is None else self.bounds

    def interval(self, confidence_level: float) -> Range:
        """Confidence sequence by a limit from each side, each with half of the error.

        Limits that exclude every mean are a matter of chance at low levels: then the interval is
        the point at which they meet, at a higher level. At 95 % it tells of wrong weights.
        """
        check_level(confidence_level)
        low, high = known_range(self.bounds)
        error = (1 - confidence_level) / 2
        from_below, from_above = self._limits(error)
        if from_below + from_above < 1:
            return low + (high - low) * from_below, high - (high - low) * from_above
        if sum(self._limits(min(error, _ALARM))) >= 1:
            warnings.warn(
                "no mean reward in the range of the rewards is compatible with the weights: the "
                "propensities are wrong, or the policy chooses arms that were never logged. The "
                "interval is the whole range.",
                ReplayCoverageWarning,
                stacklevel=3,
            )
            return low, high
        meeting = brentq(lambda error: sum(self._limits(error)) - 1, _ALARM, 0.5)
        point = low + (high - low) * self._limits(meeting)[0]
        return point, point

    def _limits(self, error: float) -> tuple[float, float]:
        """Lower limits of the mean share, and of the mean of 1 minus the share."""
        return (
            betting_limit(self.shares, self.largest_weight, error),
            betting_limit(self.shares.mirrored(), self.largest_weight, error),
        )


def path_interval(reward: np.ndarray, bounds: Range, confidence_level: float) -> Range:
    """Interval, at all times, of the mean of conditional means of rewards that may be dependent."""
    low, high = bounds
    share = np.clip((reward - low) / (high - low), 0.0, 1.0)
    error = (1 - confidence_level) / 2
    from_below, from_above = path_limit(share, error), path_limit(1 - share, error)
    return low + (high - low) * from_below, high - (high - low) * from_above
