"""Lower confidence limits of a weighted mean, from a summary of the events that adds up.

Shares s in [0, 1] have weights w of mean 1 and of at most W; the limits are for E[w s]. (Rewards
are scaled to shares, and the upper limit of rewards follows from the shares 1 - s.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import t as student

from skbandit.evaluation._score import Moments, Range, Spread
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._validation import check_level, finite, warn

# Bins of weights: quarters of octaves from 2**-40 to 2**60, the outermost ones open. Bins of
# shares: of width 1/32, and 1 itself.
_PER_OCTAVE, _LOWEST, _HIGHEST = 4, -40, 60
_N_WEIGHTS = _PER_OCTAVE * (_HIGHEST - _LOWEST) + 2
_N_SHARES = 33

BETS = np.concatenate([2.0 ** -np.arange(1, 31), 1 - 2.0 ** -np.arange(2, 13)])
"""λ of `betting_limit`: fractions of the capital at stake. They cover, up to a factor of 2, those
that are best for 1 to 10**18 events; their number costs its logarithm in the exponent."""


# Limits are rounded down by this much, relative or absolute; below exp(-_DEEPEST) times the mean
# they are 0.
_PRECISION, _DEEPEST = 1e-9, 500.0

# Values, and numbers of events; both (n_points,).
Points = tuple[np.ndarray, np.ndarray]

INTERVAL_KINDS = ("normal", "sequence")

_ALARM = 0.025
"""Error of each limit at 95%, the level at which a warning reports wrong weights."""


@dataclass(frozen=True, eq=False)
class WeightedShares:
    """Summary of events by cells of similar weight and share; disjoint events add up.

    Cells are so narrow, and keep so much, that limits are as good as from the events themselves.
    """

    cell: np.ndarray  # (n_cells,), index of the cell, ascending
    totals: np.ndarray  # (3, n_cells): number of events, Σw, Σw s
    least: np.ndarray  # (2, n_cells): w, s
    greatest: np.ndarray

    @classmethod
    def of(cls, weight: np.ndarray, share: np.ndarray) -> WeightedShares:
        """Summarize events."""
        with np.errstate(divide="ignore"):
            octave = np.floor(_PER_OCTAVE * np.log2(weight))
        of_weight = np.clip(octave - _PER_OCTAVE * _LOWEST + 1, 0, _N_WEIGHTS - 1)
        cell = (of_weight * _N_SHARES + np.floor(share * (_N_SHARES - 1))).astype(
            np.int16  # sorted in linear time
        )
        totals = np.array([np.ones(len(cell)), weight, weight * share])
        each = np.array([weight, share])
        return _group_cells(cell, totals, each, each)

    def __add__(self, other: WeightedShares) -> WeightedShares:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _group_cells(*(np.concatenate(pair, axis=-1) for pair in pairs))

    @property
    def n(self) -> float:
        """Number of events."""
        return float(self.totals[0].sum())

    def mirrored(self) -> WeightedShares:
        """Return the events with shares 1 - s."""
        count, w, ws = self.totals
        (w_least, s_least), (w_greatest, s_greatest) = self.least, self.greatest
        return WeightedShares(
            self.cell,  # as a name only
            np.array([count, w, w - ws]),
            np.array([w_least, 1 - s_greatest]),
            np.array([w_greatest, 1 - s_least]),
        )

    def weighted(self) -> Points:
        """Weighted shares w s of the events."""
        count, _, ws = self.totals
        return _extreme_points(count, ws, self.least.prod(axis=0), self.greatest.prod(axis=0))

    def weighted_gaps(self, m: float) -> Points:
        """Weighted gaps w (s - m) of the events."""
        (w_least, s_least), (w_greatest, s_greatest) = self.least, self.greatest
        low, high = s_least - m, s_greatest - m
        least = np.minimum(w_least * low, w_greatest * low)
        greatest = np.maximum(w_least * high, w_greatest * high)
        count, w, ws = self.totals
        return _extreme_points(count, ws - m * w, least, greatest)


def _extreme_points(
    count: np.ndarray, total: np.ndarray, least: np.ndarray, greatest: np.ndarray
) -> Points:
    """Values and numbers of events after moving each cell's events to its two extremes.

    The totals stay the same. Of all events with such totals and extremes, these have the smallest
    sum of every concave function, and the largest of every convex one. They are the events
    themselves if each cell has one value.
    """
    width = greatest - least
    share = (total / count - least) / np.where(width > 0, width, 1.0)
    upper = count * np.clip(share, 0.0, 1.0)
    values, counts = np.concatenate([least, greatest]), np.concatenate([count - upper, upper])
    return values[counts > 0], counts[counts > 0]


def _group_cells(
    cell: np.ndarray, totals: np.ndarray, least: np.ndarray, greatest: np.ndarray
) -> WeightedShares:
    """Join the parts of each cell."""
    if not len(cell):
        return WeightedShares(cell, totals, least, greatest)
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    start = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return WeightedShares(
        ordered[start],
        np.add.reduceat(totals.take(order, axis=1), start, axis=1),
        np.minimum.reduceat(least.take(order, axis=1), start, axis=1),
        np.maximum.reduceat(greatest.take(order, axis=1), start, axis=1),
    )


def betting_limit(events: WeightedShares, largest_weight: float, error: float) -> float:
    """Lower limit of E[w s], valid at any time.

    Suppose that E[w s] = m. A gambler who stakes a fraction λ of the capital on each event being
    larger, Π(1 + λ (w s/m - 1)), has expected capital 1 after every event, and so has one who bets
    on the gap, Π(1 + λ w (s - m)/(W m)), as E[w] = 1; so have averages over gamblers and their λ.
    By Ville's inequality the average capital ever exceeds 1/error with probability at most `error`.
    The limit is the smallest m for which it does not.

    The first gambler does not mind large weights, the second not their variation. With fixed λ, the
    order of events does not matter (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random
    variables by betting"; Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2022, "Anytime-valid
    off-policy inference for contextual bandits").

    Parameters
    ----------
    events : WeightedShares
        Of conditional means E[w s] and E[w] = 1 given the events before.
    largest_weight : float
        W, which no weight can exceed.
    error : float
        Probability that the limit ever exceeds E[w s], however often it is computed.

    Returns
    -------
    float
        In [0, 1].
    """
    _, total_w, total_ws = events.totals.sum(axis=1)
    if total_ws <= 0:
        return 0.0
    values, counts = events.weighted()
    needed = np.log(2 * len(BETS) / error)

    def excess(log_m: float) -> float:
        m = np.exp(log_m)
        gaps, numbers = events.weighted_gaps(m)
        capital = np.append(
            _log_capital(values / m - 1, counts), _log_capital(gaps / (largest_weight * m), numbers)
        )
        return float(logsumexp(capital)) - needed

    # beyond both of these means, neither gambler has gained
    top = float(np.log(min(max(total_ws / events.n, total_ws / total_w), 1.0)))
    if excess(top) >= 0:
        return float(np.exp(top))
    depth = 1.0
    while excess(top - depth) < 0:
        depth *= 2
        if depth > _DEEPEST:
            return 0.0
    root = brentq(excess, top - depth, top, xtol=_PRECISION)
    return float(np.exp(root - _PRECISION))


def _log_capital(gains: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return logarithms of the final capital for each of `BETS`, (n_bets,)."""
    return np.log1p(BETS[:, None] * np.maximum(gains, -1.0)) @ counts


def check_kind(kind: Any) -> None:
    """Require a kind of interval."""
    if not isinstance(kind, str) or kind not in INTERVAL_KINDS:
        raise ValueError(f"kind must be in {INTERVAL_KINDS}, got {kind!r}.")


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
    """Return the part of an interval within bounds; the nearest bound if there is none."""
    low, high = np.clip([low, high], *bounds).tolist()
    return low, high


def quantile_of(confidence_level: float, freedom: float = np.inf) -> float:
    """Return half the width of an interval in standard errors, nan without any freedom."""
    check_level(confidence_level)
    return float(student.ppf((1 + confidence_level) / 2, freedom)) if freedom > 0 else np.nan


@dataclass(frozen=True, eq=False)
class RewardEvidence:
    """Weighted rewards of independent events; the evidence of disjoint events adds up.

    Parameters
    ----------
    bounds : (float, float) or None
        Smallest and largest possible reward; None if unknown.
    observed : (float, float)
        Smallest and largest observed reward.
    moments : Moments
        Of the rewards, and of the rewards less the predicted ones, if there are any.
    largest_weight : float
        Largest possible weight.
    shares : WeightedShares
        Rewards as shares of the way from the smallest to the largest; empty without bounds.
    """

    bounds: Range | None
    observed: Range
    moments: Moments
    largest_weight: float
    shares: WeightedShares

    @classmethod
    def of(
        cls,
        reward: np.ndarray,
        weight: np.ndarray,
        bounds: Range | None,
        largest_weight: float,
        predicted: np.ndarray | None = None,
    ) -> RewardEvidence:
        """Return the evidence of events with weights of mean 1, and rewards within the bounds."""
        observed = float(reward.min()), float(reward.max())
        shares = WeightedShares.of(np.empty(0), np.empty(0))
        if bounds is not None:
            low, high = bounds
            shares = WeightedShares.of(weight, np.clip((reward - low) / (high - low), 0.0, 1.0))
        error = reward if predicted is None else reward - predicted
        largest_weight = max(largest_weight, float(weight.max()))
        return cls(bounds, observed, Moments.of(reward, error), largest_weight, shares)

    def __add__(self, other: RewardEvidence) -> RewardEvidence:
        (a, b), (c, d) = self.observed, other.observed
        return RewardEvidence(
            self.bounds,
            (min(a, c), max(b, d)),
            self.moments + other.moments,
            max(self.largest_weight, other.largest_weight),
            self.shares + other.shares,
        )

    @property
    def clipping(self) -> Range:
        """Bounds of normal intervals."""
        return natural_range(np.array(self.observed)) if self.bounds is None else self.bounds

    def variance(self, *, of_errors: bool) -> float:
        """Return the variance of the rewards, or of the errors of their predictions."""
        return float(self.moments.variance[int(of_errors)])

    def spread(self, effective: float, *, of_errors: bool) -> Spread:
        """Return how the variance of a mean, of an effective number of events, depends on it."""
        mean, variance = float(self.moments.mean[0]), self.variance(of_errors=of_errors)
        return Spread.of(self.clipping, mean, variance, effective)

    def interval(self, confidence_level: float) -> Range:
        """Confidence sequence by a limit from each side, each with half of the error.

        Limits that exclude every mean are a matter of chance at low levels: then the interval is
        the point at which they meet, at a higher level. At 95% this is due to wrong weights.
        """
        check_level(confidence_level)
        if self.bounds is None:
            raise ValueError(
                "an interval of kind='sequence' requires the range of all possible rewards, which "
                "the observed ones do not show: pass reward_range=(smallest, largest) where the "
                "log is read, as in reward_range=(0, 1) for clicks."
            )
        low, high = self.bounds
        error = (1 - confidence_level) / 2
        from_below, from_above = self._limits(error)
        if from_below + from_above < 1:
            return low + (high - low) * from_below, high - (high - low) * from_above
        if sum(self._limits(min(error, _ALARM))) >= 1:
            warn(
                "no mean reward in the range of the rewards is compatible with the weights: the "
                "propensities are wrong, or the policy chooses arms that were never logged. The "
                "interval is the whole range.",
                ReplayCoverageWarning,
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
