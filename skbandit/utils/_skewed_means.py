"""Limits of means to which few large values contribute most, such as losses, claims or revenue.

A sample that lacks its largest values has a low mean and a small standard error at once, so that
limits by standard errors are kept too rarely. Two corrections, of which the first needs no model:

With k, the third cumulant of a mean over the cube of its standard error, a limit is exact up to
order 1/n at the quantile (Hall 1992, On the removal of skewness by transformation, inverted)

    z(k) = 3 (1 - (1 - k (z + k / 6))^(1/3)) / k.                                              (1)

Where one event has a tenth of all amounts, the large ones may be missing altogether, and only the
middle tells of them: with mean m and variance s^2 of the logarithms of n lognormal amounts, which
come by chance (Poisson), their mean is at most (Cox, in Land 1972)

    exp(m + s^2 / 2 + z (1 / n + s^2 / n + s^4 / (2 (n - 1)))^(1/2)).                          (2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SLIGHT = 1e-6
"""Skewness of a mean that changes no quantile."""

HEAVY_PART = 0.1
"""Part of all amounts in one event from which on its like may be missing."""


def skewed_quantile(z: float, skewness: np.ndarray) -> np.ndarray:
    """Return the quantile of (1), and at least that of the normal distribution.

    Parameters
    ----------
    z : float
        Normal quantile of a limit above the mean, positive.
    skewness : ndarray
        k, positive if the large values are above the mean.

    Examples
    --------
    >>> skewed_quantile(1.645, np.array([-0.5, 0.0, 0.2, 0.5])).round(3)
    array([1.645, 1.645, 1.912, 2.916])
    """
    k = np.clip(skewness, SLIGHT, 1.0)
    wider = 3.0 * (1.0 - np.cbrt(1.0 - k * (z + k / 6.0))) / k
    return np.where(skewness > SLIGHT, np.maximum(wider, z), z)


def third_cumulant(influence: np.ndarray, group: np.ndarray | None) -> float:
    """Third cumulant of a mean, from the influences of its rows, or of groups of them."""
    of_trial = influence if group is None else np.bincount(group, influence)
    return float((of_trial**2 * of_trial).sum())  # a power of 3 takes 20 times as long


@dataclass(frozen=True)
class Amounts:
    """Amounts of one sign, of which few are large.

    Attributes
    ----------
    count : int
        n, events whose amount is not 0.
    largest : float
        Part of all amounts that one event has.
    mean : float
        Of absolute amounts.
    log_mean, log_variance : float
        m and s^2.
    """

    count: int
    largest: float
    mean: float
    log_mean: float
    log_variance: float

    @classmethod
    def heavy(cls, value: np.ndarray) -> Amounts | None:
        """Summarize values that are 0 or of one sign; None unless one event has a large part.

        Examples
        --------
        >>> round(Amounts.heavy(np.array([0.0, 0.0, 1.0, 2.0, 30.0])).largest, 2)
        0.91
        >>> Amounts.heavy(np.array([0.0, 1.0, 1.0, -1.0])) is None
        True
        """
        amount = np.abs(value[value != 0])
        if len(amount) < 2 or (value.min() < 0 < value.max()) or np.ptp(amount) == 0:
            return None
        largest = float(amount.max() / amount.sum())
        if largest < HEAVY_PART:
            return None
        logs = np.log(amount)
        return cls(len(amount), largest, amount.mean(), logs.mean(), logs.var(ddof=1))

    def factor(self, z: float) -> float:
        """(2) over the mean of the sample, and at least 1."""
        s2, n = self.log_variance, self.count
        error = np.sqrt((1.0 + s2) / n + s2**2 / (2.0 * (n - 1.0)))
        limit = self.log_mean + 0.5 * s2 + z * error
        return max(float(np.exp(limit) / self.mean), 1.0)
