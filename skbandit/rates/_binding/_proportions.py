"""Confidence limits of proportions and of their ratios.

A share x/n of successes among n trials is one binomial proportion p. All functions take shares
and numbers of trials, which may be effective numbers and need not be integers.

- One proportion: Clopper & Pearson (Biometrika 1934), never below its level; Wilson's score
  limits (JASA 1927), near it on average.
- Sums and ratios: MOVER, the method of variance estimates recovery (Zou & Donner, Statistics in
  Medicine 2008; ratios: Donner & Zou 2012; with Wilson's limits and a difference it is method 10
  of Newcombe 1998). The distances of the limits of the parts from their estimates stand in for
  multiples of standard errors, and are added as these are, with correlations.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv


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


def wilson_score(share: np.ndarray, trials: np.ndarray, z: float) -> np.ndarray:
    """Lower score limit of a binomial probability (Wilson 1927); 0 without trials.

    Parameters
    ----------
    share, trials : ndarray
        Share of successes and number of trials, not necessarily an integer.
    z : float
        Normal quantile of the level, at least 0.

    Returns
    -------
    ndarray
        The upper limit is ``1 - wilson_score(1 - share, trials, z)``.

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
