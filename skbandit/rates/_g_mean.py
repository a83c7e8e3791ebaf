"""A floor for the geometric mean of recall and specificity, as linear constraints on both.

sqrt(ab) is concave in rates a and b, and the lower envelope of its tangents: by the inequality of
means, sqrt(ab) <= (a/t + tb)/2 for every t > 0, with equality at t = sqrt(a/b).
"""

from __future__ import annotations

import math
import numbers

import numpy as np

from skbandit.rates._catalogue import recall, true_negative_rate
from skbandit.rates._expression import Constraint
from skbandit.rates._kinds import On, Where


def tangents(bound: float, tolerance: float) -> tuple[np.ndarray, float]:
    """Values of t, and the floor c' of all (a/t + tb)/2, that make sqrt(ab) at least `bound`.

    With c the bound and L = log(1/c), the K values of t lie at the middles of equal cells of
    [-L, L] on the logarithmic axis, no further than d = L/K from any of its points; c' = c cosh(d).
    For rates in [0, 1] the floors imply sqrt(ab) >= c, and sqrt(ab) >= c' implies them. K is the
    least number for which cosh(d) <= 1 + `tolerance`.
    """
    length = -math.log(bound)
    n = max(1, math.ceil(length / math.acosh(1 + tolerance)))
    away = length / n
    middles = away * (2 * np.arange(n) + 1) - length
    return np.exp(middles), bound * math.cosh(away)


def g_mean_at_least(
    bound: float,
    where: Where = None,
    *,
    on: On = "train",
    weight: str | None = None,
    tolerance: float = 0.002,
) -> list[Constraint]:
    """Constraints that hold the geometric mean of recall and specificity above a bound.

    Parameters
    ----------
    bound : float
        Floor of the G-mean, sqrt(TPR x TNR), between 0 and 1, both excluded.
    where : None, str, dict or callable, default=None
        Selection of rows: see `skbandit.rates`.
    on : {"train", "extra", "all"}, default="train"
        Rows of X, of X_extra, or both.
    weight : str, default=None
        Attribute column of nonnegative row weights.
    tolerance : float, default=0.002
        How much more than `bound` is asked, at most, as a share of it. The smaller, the more
        constraints: 2 for a floor of .9, 4 for .8 and 11 for .5.

    Returns
    -------
    list of Constraint
        On means of both rates with different weights. Together they imply the floor; none of
        them is the G-mean itself.

    See Also
    --------
    f1 : The harmonic mean of precision and recall.

    Notes
    -----
    The G-mean is concave in the two rates, so that its floors are floors of its tangents. As an
    objective it is not a rate: minimise `false_positive_rate` or `error_rate` under a floor.

    Examples
    --------
    >>> from skbandit.rates import g_mean_at_least
    >>> for goal in g_mean_at_least(0.9):
    ...     print(goal.label, "|", goal.text)
    G-mean >= 0.9 [1 of 2] | 0.52... * recall() + 0.47... * true_negative_rate() >= 0.9012...
    G-mean >= 0.9 [2 of 2] | 0.47... * recall() + 0.52... * true_negative_rate() >= 0.9012...
    """
    for name, value in (("bound", bound), ("tolerance", tolerance)):
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < 1:
            raise ValueError(f"{name}={value!r} must be a number between 0 and 1, both excluded.")
    found, goals = tangents(float(bound), float(tolerance)), []
    for k, t in enumerate(found[0].tolist(), 1):
        mean = 0.5 / t * recall(where, on=on, weight=weight) + 0.5 * t * true_negative_rate(
            where, on=on, weight=weight
        )
        name = f"G-mean >= {bound:g} [{k} of {len(found[0])}]"
        goals.append((mean >= found[1]).named(name))
    return goals
