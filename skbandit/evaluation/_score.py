"""Score intervals of mean rewards, which have width even if rewards are rare or none was seen.

An estimate v with the standard error s, of rewards in [0, 1], has the interval of the means m with

    (v - m)² <= z² (s² + (m (1 - m) - v (1 - v)) / t),

as the variance of the estimate is s² where m = v, and changes with m as that of a proportion of t
trials. If s² = v (1 - v) / t, this is Wilson's interval (1927), and for large t it is v ± z s. The
effective number of events n counts as t = n / ρ trials, where ρ is the variance of the log's
rewards relative to the largest one of rewards with their mean and range: 1 for 0 and 1. If an
estimator averages the errors of predicted rewards, ρ is by their variance.

Large rewards that are rare may be in the log but not among the events that count, whose s is then
far too small. So s² is moved toward its expectation from the log's variance, by a share that is
large if few such rewards are expected among the events, and vanishes for many events.

The difference of two estimates from one log is a difference of weighted means of rewards over two
disjoint sets of events: those that count more in the one or in the other. The distances to the
limits of these are added as by MOVER (Zou & Donner 2008; method 10 of Newcombe 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

Range = tuple[float, float]

_MANY = 5.0
"""Expected number of rare rewards at which the log's variance counts as much as that of the events.
In simulations, 5 keep the coverage of a nominal 95% above 93%, 2 above 89%."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and centered products of columns; those of disjoint rows add up.

    They are centered, so that a mean much larger than the spread of a column costs no precision
    (Chan, Golub and LeVeque 1983).
    """

    n: int
    mean: np.ndarray  # (n_columns,)
    products: np.ndarray  # (n_columns, n_columns), sums of products of deviations from the means

    @classmethod
    def of(cls, *columns: np.ndarray) -> Moments:
        """Return the moments of columns of at least one row."""
        table = np.array(columns)
        mean = table.mean(axis=1)
        away = table - mean[:, None]
        return cls(table.shape[1], mean, away @ away.T)

    def __add__(self, other: Moments) -> Moments:
        n, gap = self.n + other.n, other.mean - self.mean
        between = self.n * other.n / n * np.outer(gap, gap)
        return Moments(n, self.mean + other.n / n * gap, self.products + other.products + between)

    def mapped(self, matrix: np.ndarray) -> Moments:
        """Return the moments of linear combinations of the columns, one per row of the matrix."""
        return Moments(self.n, matrix @ self.mean, matrix @ self.products @ matrix.T)

    @property
    def variance(self) -> np.ndarray:
        """Variances of the columns."""
        return np.diag(self.products) / self.n


@dataclass(frozen=True)
class Spread:
    """What determines how the variance of an estimated mean reward depends on the mean.

    Parameters
    ----------
    bounds : (float, float)
        Smallest and largest reward.
    trials : float
        Number t of trials; infinite if the variance does not change.
    rarity : float, default=1.0
        Expected number of rare rewards per trial, if the log's variance is all due to these.
    """

    bounds: Range
    trials: float
    rarity: float = 1.0

    @classmethod
    def of(cls, bounds: Range, mean: float, variance: float, effective: float) -> Spread:
        """Return the spread of an estimate from an effective number of events of the log."""
        largest = (mean - bounds[0]) * (bounds[1] - mean)
        if largest <= 0:
            return cls(bounds, effective)
        ratio = min(variance / largest, 1.0)
        if ratio == 0:
            return cls(bounds, np.inf)
        far = max(mean - bounds[0], bounds[1] - mean)
        return cls(bounds, effective / ratio, ratio * variance / far**2)

    def widened(self, deff: float) -> Spread:
        """Return the spread of dependent events, which count as so many times fewer."""
        return replace(self, trials=self.trials / deff)

    def limits(self, value: float, error: float, quantile: float) -> Range:
        """Limits of the mean, given its estimate with a standard error and a normal quantile z."""
        low, high = self.bounds
        width = high - low
        if not (0 < width < np.inf and 0 < self.trials < np.inf):
            return value - quantile * error, value + quantile * error
        v = min(max((value - low) / width, 0.0), 1.0)
        half = quantile**2 / (2 * self.trials)
        squared_error, expected = (error / width) ** 2, v * (1 - v) / self.trials
        share = _MANY / (_MANY + self.rarity * self.trials)
        squared = quantile**2 * (squared_error + share * max(expected - squared_error, 0.0))
        away = np.sqrt((half * (1 - 2 * v)) ** 2 + (1 + 2 * half) * squared)
        ends = (v + half + np.array([-away, away])) / (1 + 2 * half)
        # outside of the range, as an unbiased estimate may be, it is as at the range's end
        return tuple((value + width * (ends - v)).tolist())

    def error(self, value: float) -> float:
        """Return a standard error for equal rewards: the distance of the limits at 1."""
        low, high = self.limits(value, 0.0, 1.0)
        return max(value - low, high - value)


@dataclass(frozen=True)
class Side:
    """The events that count more in one of two estimates, whose rewards have a weighted mean.

    Parameters
    ----------
    spread : Spread
        Of that mean.
    mean : float
        The mean.
    weight : float
        Its factor in the difference, without the sign.
    error : float
        Part of these events in the standard error of the difference.
    """

    spread: Spread
    mean: float
    weight: float
    error: float

    def distances(self, quantile: float) -> np.ndarray:
        """Distances of the difference to its limits if these events alone were random."""
        low, high = self.spread.limits(self.mean, self.error / self.weight, quantile)
        return self.weight * np.array([self.mean - low, high - self.mean])


@dataclass(frozen=True)
class Sides:
    """The events that count more in the first estimate (1), and those that do in the second (-1).

    Parameters
    ----------
    members : dict of int to Side
        Only sides that have events.
    rest : float
        Variance of the difference that is not due to them.
    """

    members: dict[int, Side]
    rest: float

    def widened(self, deff: float) -> Sides:
        """Return those of dependent events, by which variances are so many times larger."""
        members = {
            sign: replace(
                side, spread=side.spread.widened(deff), error=side.error * float(np.sqrt(deff))
            )
            for sign, side in self.members.items()
        }
        return Sides(members, self.rest * deff)

    def of_error(self, error: float) -> Sides:
        """Return the same sides of a difference with a standard error."""
        rest = error**2 - sum(side.error**2 for side in self.members.values())
        return replace(self, rest=max(rest, 0.0))

    def distances(self, quantile: float) -> tuple[float, float]:
        """Distances of the difference to its lower and upper limit."""
        squares = np.full(2, quantile**2 * self.rest)
        for sign, side in self.members.items():
            squares += side.distances(quantile)[::sign] ** 2
        below, above = np.sqrt(squares).tolist()
        return below, above


def sides_of(
    away: np.ndarray,
    reward: np.ndarray,
    squares: np.ndarray,
    bounds: Range,
    mean: float,
    variance: float,
) -> Sides:
    """Return the events of which the difference has more, and those of which it has less.

    Parameters
    ----------
    away : ndarray of shape (n_events,)
        Factor of each event's reward in the difference.
    reward : ndarray of shape (n_events,)
    squares : ndarray of shape (n_events,)
        Part of each event in the variance of the difference.
    bounds, mean, variance : object
        Of the log's rewards, as in `Spread`.

    Returns
    -------
    Sides
    """
    members = {}
    for sign in (1, -1):
        factor = np.maximum(sign * away, 0.0)
        if (weight := float(factor.sum())) > 0:
            spread = Spread.of(bounds, mean, variance, weight**2 / float(factor @ factor))
            error = float(np.sqrt(squares[factor > 0].sum()))
            members[sign] = Side(spread, float(factor @ reward) / weight, weight, error)
    return Sides(members, 0.0).of_error(float(np.sqrt(squares.sum())))


def mean_sides(sides: Sequence[Sides], reuse: float) -> Sides:
    """Sides, without a rest, of a mean of differences that each use a share of one log."""
    members = {}
    for sign in (1, -1):
        measured = [pair.members[sign] for pair in sides if sign in pair.members]
        if measured:
            trials = len(measured) / sum(1 / side.spread.trials for side in measured)
            members[sign] = Side(
                replace(measured[0].spread, trials=trials / reuse),
                float(np.mean([side.mean for side in measured])),
                float(np.mean([side.weight for side in measured])),
                float(np.sqrt(np.mean([side.error**2 for side in measured]) * reuse)),
            )
    return Sides(members, 0.0)
