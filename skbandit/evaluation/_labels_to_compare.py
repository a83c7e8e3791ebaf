"""Number of labels that tell which of two classifiers is better."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom, norm

from skbandit.utils._validation import check_level


def labels_to_compare(
    better: float, worse: float, *, confidence_level: float = 0.95, power: float = 0.8
) -> int:
    """Number of labels to show that a new classifier beats the one it replaces.

    Rows on which both give the same answer say nothing about which is better. So only rows on
    which they disagree are labelled, and an exact sign test (McNemar's) counts the new one's
    wins among them.

    Parameters
    ----------
    better : float
        Share of all rows on which the new classifier is expected to be right and the old one
        wrong.
    worse : float
        Share on which it is the other way round; less than `better`. Their sum is the churn,
        their difference the gain in accuracy.
    confidence_level : float, default=0.95
        1 minus the probability that the test (a two-sided one) finds a difference between
        equally good classifiers; this is at most so large.
    power : float, default=0.8
        Probability that the test finds the new classifier better, if the shares are as given.

    Returns
    -------
    int
        Labelled disagreements needed: with any number from here on, the test has this power.
        About ``n / (better + worse)`` unlabelled rows have to be drawn to find n of them.

    See Also
    --------
    skbandit.rates.churn : Bounds the share of rows that disagree, in training.

    Notes
    -----
    Draw fresh rows for each comparison: a test set that decides twice is no longer independent
    of the classifiers it judges (Goh et al. 2016, section 1).

    References
    ----------
    Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12, 1947.

    Examples
    --------
    From 70 to 75 % of right answers, with as few answers changed as possible, and with many:

    >>> from skbandit.evaluation import labels_to_compare
    >>> labels_to_compare(better=0.05, worse=0.0)
    6
    >>> labels_to_compare(better=0.30, worse=0.25)
    981
    """
    check_level(confidence_level)
    if not 0 < power < 1:
        raise ValueError(f"power={power!r} must be between 0 and 1, such as 0.8.")
    if not (0 <= worse < better and better + worse <= 1):
        raise ValueError(
            f"better={better!r} and worse={worse!r} must be shares of all rows, worse >= 0, "
            "better > worse, and their sum, the churn, at most 1."
        )
    return smallest_sample(better / (better + worse), (1 - confidence_level) / 2, power)


def smallest_sample(q: float, tail: float, power: float) -> int:
    """The n from which on a sign test at level `tail` has this power against P(win) = q > 1/2.

    The power climbs in a saw's teeth, as critical values are integers. About the n of the normal
    approximation, n_0 = ((z_tail + 2 sqrt(q(1 - q)) z_power) / (2q - 1))^2, teeth are a few
    sqrt(n_0) wide; the window searched is widened until it begins below the power and ends above.
    """
    spread = 2 * math.sqrt(q * (1 - q))
    n_0 = max((norm.isf(tail) + spread * norm.ppf(power)) / (2 * q - 1), 1.0) ** 2
    width = 20 + 6 * math.sqrt(n_0)
    while True:
        n = np.arange(max(1, math.floor(n_0 - width)), math.ceil(n_0 + width) + 1)
        enough = sign_test_power(n, q, tail) >= power
        last = len(n) - len(n) // 4
        if enough[last:].all() and (n[0] == 1 or not enough[: len(n) // 4].any()):
            missed = np.flatnonzero(~enough)
            return int(n[missed[-1] + 1]) if len(missed) else 1
        width *= 2


def sign_test_power(n: np.ndarray, q: float, tail: float) -> np.ndarray:
    """P(W >= k) for W ~ Bin(n, q), k the smallest with P(W >= k) <= `tail` under q = 1/2."""
    critical = binom.isf(tail, n, 0.5) + 1
    return np.asarray(binom.sf(critical - 1, n, q))
