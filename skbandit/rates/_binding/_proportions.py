"""Confidence limits of proportions, their differences, their ratios and functions of them.

A share x/n of successes among n trials is one binomial proportion p. All functions take shares
and numbers of trials, which may be effective numbers and need not be integers.

- One proportion: Clopper & Pearson (Biometrika 1934), never below its level; Wilson's score
  limits (JASA 1927), near it on average.
- p1 - p2 and p1 / p2 of independent proportions: the score intervals of Miettinen & Nurminen
  (Statistics in Medicine 1985), which invert a test with the variance of the constrained maximum
  likelihood estimates, times N/(N - 1).
- Any other function: MOVER, the method of variance estimates recovery (Zou & Donner, Statistics
  in Medicine 2008; ratios: Donner & Zou 2012; with Wilson's limits and a difference it is method
  10 of Newcombe 1998). The distances of the limits of the parts from their estimates stand in
  for multiples of standard errors, and are added as these are, with correlations.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri

LARGEST = 1e12
"""Search for the end of an interval of a ratio stops here; beyond it, the end is infinite."""


def clopper_pearson(share: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    """Lower confidence limit of a binomial probability (Clopper & Pearson 1934).

    Parameters
    ----------
    share, trials : ndarray
        Share of successes and number of trials, not necessarily an integer.
    tail : float
        Probability, at most, that the limit is above the true probability.

    Returns
    -------
    ndarray
        The upper limit is ``1 - clopper_pearson(1 - share, trials, tail)``.

    Examples
    --------
    >>> float(clopper_pearson(np.array(1.0), np.array(10), 0.025).round(4))
    0.6915
    """
    successes = share * trials
    found = betaincinv(successes, trials - successes + 1.0, tail)
    return np.where(successes > 0, found, 0.0)


def wilson(share: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    """Lower score limit of a binomial probability (Wilson 1927); 0 without trials.

    Parameters
    ----------
    share, trials : ndarray
        Share of successes and number of trials, not necessarily an integer.
    tail : float
        Probability, approximately, that the limit is above the true probability.

    Returns
    -------
    ndarray
        The upper limit is ``1 - wilson(1 - share, trials, tail)``.

    Examples
    --------
    >>> float(wilson(np.array(0.5), np.array(100), 0.025).round(4))
    0.4038
    """
    return wilson_score(share, trials, -float(ndtri(tail)))


def wilson_score(share: np.ndarray, trials: np.ndarray, z: float) -> np.ndarray:
    """`wilson` for a normal quantile z >= 0 instead of a tail probability.

    Examples
    --------
    >>> float(wilson_score(np.array(0.5), np.array(100), 1.96).round(4))
    0.4038
    """
    z2 = z * z
    if z2 == 0:
        return np.asarray(share, dtype=float)
    # sqrt(z2) * sqrt(z2/4) is z2/2: at share 0 the limit is 0
    spread = z * np.sqrt(share * (1.0 - share) * trials + z2 / 4.0)
    return np.maximum((share * trials + z2 / 2.0 - spread) / (trials + z2), 0.0)


def difference_interval(
    p1: float, n1: float, p2: float, n2: float, tail: float
) -> tuple[float, float]:
    """Score interval of p1 - p2 (Miettinen & Nurminen 1985).

    Parameters
    ----------
    p1, p2 : float
        Shares of successes in two independent samples.
    n1, n2 : float
        Numbers of trials.
    tail : float
        Probability on either side.

    Returns
    -------
    tuple of (float, float)

    Examples
    --------
    >>> low, high = difference_interval(56 / 70, 70, 48 / 80, 80, 0.025)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0528 0.3382
    """
    z = -float(ndtri(tail))

    def score(delta: float) -> float:
        q1 = _constrained_difference(p1, n1, p2, n2, delta)
        q2 = min(max(q1 - delta, 0.0), 1.0)
        variance = q1 * (1 - q1) / n1 + q2 * (1 - q2) / n2
        return _standardised(p1 - p2 - delta, variance, n1 + n2)

    low = _root(lambda delta: score(delta) - z, -1.0, p1 - p2)
    high = _root(lambda delta: score(delta) + z, p1 - p2, 1.0)
    return low, high


def _constrained_difference(p1: float, n1: float, p2: float, n2: float, delta: float) -> float:
    """Maximum likelihood estimate of p1 if p1 - p2 = delta: a root of a cubic."""
    theta = n2 / n1
    a = 1.0 + theta
    b = -(1.0 + theta + p1 + theta * p2 + delta * (theta + 2.0))
    c = delta * delta + delta * (2.0 * p1 + theta + 1.0) + p1 + theta * p2
    d = -p1 * delta * (1.0 + delta)
    shift = b / (3.0 * a)
    v = shift**3 - b * c / (6.0 * a * a) + d / (2.0 * a)
    u = math.copysign(math.sqrt(max(shift * shift - c / (3.0 * a), 0.0)), v)
    cosine = v / u**3 if u != 0.0 else 0.0
    angle = (math.pi + math.acos(min(max(cosine, -1.0), 1.0))) / 3.0
    root = 2.0 * u * math.cos(angle) - shift
    return min(max(root, max(0.0, delta)), min(1.0, 1.0 + delta))


def ratio_interval(p1: float, n1: float, p2: float, n2: float, tail: float) -> tuple[float, float]:
    """Score interval of p1 / p2 (Miettinen & Nurminen 1985).

    Parameters
    ----------
    p1, p2 : float
        Shares of successes in two independent samples.
    n1, n2 : float
        Numbers of trials.
    tail : float
        Probability on either side.

    Returns
    -------
    tuple of (float, float)
        From 0 if p1 is 0, to infinity if p2 is 0.

    Examples
    --------
    >>> low, high = ratio_interval(56 / 70, 70, 48 / 80, 80, 0.025)
    >>> print(f"{low:.4f} {high:.4f}")
    1.0790 1.6721
    """
    z = -float(ndtri(tail))

    def score(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        q2 = _constrained_ratio(p1, n1, p2, n2, ratio)
        q1 = min(ratio * q2, 1.0)
        variance = q1 * (1 - q1) / n1 + ratio * ratio * q2 * (1 - q2) / n2
        return _standardised(p1 - ratio * p2, variance, n1 + n2)

    edge = math.log(LARGEST)
    estimate = 0.0 if p1 == p2 else edge if p2 == 0 else -edge if p1 == 0 else math.log(p1 / p2)
    low = 0.0 if p1 == 0 else math.exp(_root(lambda t: score(t) - z, -edge, estimate))
    high = math.inf if p2 == 0 else math.exp(_root(lambda t: score(t) + z, estimate, edge))
    return low, high


def _constrained_ratio(p1: float, n1: float, p2: float, n2: float, ratio: float) -> float:
    """Maximum likelihood estimate of p2 if p1 / p2 = ratio: a root of a quadratic."""
    x1, x2 = p1 * n1, p2 * n2
    a = (n1 + n2) * ratio
    b = n1 * ratio + x1 + n2 + x2 * ratio
    c = x1 + x2
    root = 2.0 * c / (b + math.sqrt(max(b * b - 4.0 * a * c, 0.0)))
    return min(root, 1.0, 1.0 / ratio)


def _standardised(excess: float, variance: float, trials: float) -> float:
    variance *= trials / max(trials - 1.0, 1.0)
    if variance > 0.0:
        return excess / math.sqrt(variance)
    return 0.0 if excess == 0.0 else math.copysign(math.inf, excess)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a decreasing function crosses zero; an end of the range if it does not."""

    def finite(t: float) -> float:
        return min(max(function(t), -LARGEST), LARGEST)

    if finite(low) <= 0:
        return low
    if finite(high) >= 0:
        return high
    return float(brentq(finite, low, high, xtol=1e-12, rtol=1e-12))


# --- MOVER -----------------------------------------------------------------------------


def sum_limit(
    coefficients: np.ndarray,
    values: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    correlation: np.ndarray,
) -> float:
    """Lower limit of a sum of estimates (MOVER).

    Parameters
    ----------
    coefficients, values : ndarray of shape (A,)
        The sum is ``coefficients @ values``.
    below, above : ndarray of shape (A,)
        Distances of the lower and the upper limit of each value from it.
    correlation : ndarray of shape (A, A)
        Correlations of the estimates.

    Returns
    -------
    float

    Examples
    --------
    >>> low = wilson(np.array([0.8, 0.4]), np.array([70, 80]), 0.025)  # of p1 and 1 - p2
    >>> values, below = np.array([0.8, 0.6]), np.array([0.8, 0.4]) - low
    >>> limit = sum_limit(np.array([1, -1]), values, below, below, np.eye(2))
    >>> round(limit, 4)
    0.0524
    """
    moved = coefficients * np.where(coefficients > 0, below, above)
    return float(coefficients @ values - math.sqrt(max(moved @ correlation @ moved, 0.0)))


def ratio_limits(
    numerator: np.ndarray,
    down: np.ndarray,
    divisor: np.ndarray,
    divisor_down: np.ndarray,
    divisor_up: np.ndarray,
    crossed: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Lower limits of C ratios N/D of estimates (MOVER), in closed form.

    The limit t is where the lower limit of N - tD, ``N - tD - sqrt(a^2 + t^2 b^2 + 2 |t| ab
    r)``, is 0; a is `down`, b is `divisor_up` if t > 0 and `divisor_down` if t < 0, and ab r is
    the respective one of `crossed`.

    Parameters
    ----------
    numerator, divisor : ndarray of shape (C,)
        N, and D >= 0.
    down, divisor_down, divisor_up : ndarray of shape (C,)
        Distances of the lower limit of N, and of both limits of D, from these.
    crossed : pair of ndarray of shape (C,)
        Cross terms for t < 0 and for t > 0.

    Returns
    -------
    ndarray of shape (C,)
        -inf where every lower limit is possible because the divisor may be 0.
    """
    N, a, D = numerator, down, divisor
    c = (N - a) * (N + a)
    with np.errstate(invalid="ignore", divide="ignore"):
        # t >= 0: the smaller root of (D^2 - b^2) t^2 - 2 (N D + abr) t + c
        half = N * D + crossed[1]
        lead = (D - divisor_up) * (D + divisor_up)
        positive = c / (half + np.sqrt(np.maximum(half**2 - lead * c, 0.0)))
        # t < 0, s = -t: the larger root of (D^2 - b^2) s^2 + 2 (N D - abr) s + c
        half = N * D - crossed[0]
        lead = (D - divisor_down) * (D + divisor_down)
        negative = (half - np.sqrt(np.maximum(half**2 - lead * c, 0.0))) / lead
        negative = np.where(lead > 0, negative, -np.inf)
    return np.where(N - a >= 0, np.where(c > 0, positive, 0.0), negative)
