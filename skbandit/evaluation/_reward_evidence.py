"""What a log says of a mean reward, summarised for intervals with a guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from skbandit.evaluation._guaranteed import (
    WeightedShares,
    bernstein_limit,
    betting_limit,
    path_limit,
)
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._validation import check_level, finite

KINDS = ("normal", "bernstein", "sequence")

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
    bounds : (float, float)
        Smallest and largest possible reward.
    observed : (float, float)
        Smallest and largest observed reward.
    largest_weight : float
        Largest possible weight.
    shares : WeightedShares
        Rewards as shares of the way from the smallest to the largest; empty if one is out of
        bounds.
    """

    bounds: Range
    observed: Range
    largest_weight: float
    shares: WeightedShares

    @classmethod
    def of(
        cls, reward: np.ndarray, weight: np.ndarray, bounds: Range, largest_weight: float
    ) -> RewardEvidence:
        """The evidence of events with weights of mean 1."""
        low, high = bounds
        observed = float(reward.min()), float(reward.max())
        if low <= observed[0] and observed[1] <= high and low < high:
            share = np.clip((reward - low) / (high - low), 0.0, 1.0)
            shares = WeightedShares.of(weight, share)
        else:
            shares = WeightedShares.of(np.empty(0), np.empty(0))
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
    def within_bounds(self) -> bool:
        """Whether the bounds hold, and leave room for a mean."""
        low, high = self.bounds
        return low <= self.observed[0] and self.observed[1] <= high and low < high

    @property
    def clipping(self) -> Range:
        """Bounds of normal intervals."""
        return self.bounds if self.within_bounds else natural_range(np.array(self.observed))

    def interval(self, confidence_level: float, kind: str) -> Range:
        """Interval of the mean reward by a limit from each side, each with half of the error."""
        check_level(confidence_level)
        low, high = self.bounds
        if not self.within_bounds:
            raise ValueError(
                f"an interval of kind={kind!r} needs the range of the rewards, and those observed "
                f"are from {self.observed[0]:g} to {self.observed[1]:g}: pass reward_range=(low, "
                "high), the smallest and largest possible reward, where the log is read."
            )
        limit = betting_limit if kind == "sequence" else bernstein_limit
        error = (1 - confidence_level) / 2
        from_below = limit(self.shares, self.largest_weight, error)
        from_above = limit(self.shares.mirrored(), self.largest_weight, error)
        if from_below + from_above > 1:
            warnings.warn(
                "no mean reward in the range of the rewards is compatible with the weights: the "
                "propensities are wrong, or the policy chooses arms that were never logged. The "
                "interval is the whole range.",
                ReplayCoverageWarning,
                stacklevel=3,
            )
            return low, high
        return low + (high - low) * from_below, high - (high - low) * from_above


def path_interval(reward: np.ndarray, bounds: Range, confidence_level: float) -> Range:
    """Interval, at all times, of the mean of conditional means of rewards that may be dependent."""
    low, high = bounds
    share = np.clip((reward - low) / (high - low), 0.0, 1.0)
    error = (1 - confidence_level) / 2
    from_below, from_above = path_limit(share, error), path_limit(1 - share, error)
    return low + (high - low) * from_below, high - (high - low) * from_above
