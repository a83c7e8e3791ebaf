"""The threshold nearest to the usual one among those that are as good, but for noise.

The best threshold of n out-of-fold scores is the best of many noisy ones: on few rows it is the
wrong one by more than it gains. Its advantage over another one stems from the rows between the
two, and so does the standard error of the advantage.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from skbandit.constrained._declared import MeasuredGoals
from skbandit.constrained._threshold import Threshold
from skbandit.constrained._tolerances import MET
from skbandit.constrained.cross_fitting._choose import ENOUGH_GAIN, Choice
from skbandit.constrained.cross_fitting._cut_search import CutSearch
from skbandit.rates._binding import ScoreLimits

AT_ONCE = 256
"""Thresholds whose risk is evaluated together, the nearest first."""


def nearest_to_usual(
    choice: Choice,
    scores: np.ndarray,
    goals: MeasuredGoals,
    limits: ScoreLimits,
    usual: float,
) -> Choice:
    """Move a chosen threshold towards the usual one as far as noise explains its advantage.

    Parameters
    ----------
    choice : Choice
        A feasible choice.
    scores : ndarray of shape (n,)
        Out-of-fold scores of its candidate.
    goals : MeasuredGoals
        Objective and constraints over the n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    usual : float
        The threshold that the classifier itself uses.

    Returns
    -------
    Choice
        With a threshold that is inside at the same quantile, and whose objective is worse by at
        most `ENOUGH_GAIN` paired standard errors.
    """
    search = CutSearch.of(scores, goals, limits)
    cuts = np.append(search.cuts, usual)  # the usual one itself, not only its neighbours
    search = CutSearch.of(scores, goals, limits, cuts)
    error = _standard_errors(search, choice)
    near = search.objective <= choice.threshold.objective + ENOUGH_GAIN * error + MET
    near &= (search.slack >= -MET) & np.isfinite(search.objective)
    near &= np.abs(cuts - usual) <= abs(choice.threshold.cut - usual)
    candidates = np.flatnonzero(near)
    candidates = candidates[np.argsort(np.abs(cuts[candidates] - usual), kind="stable")]
    for first in range(0, len(candidates), AT_ONCE):
        some = candidates[first : first + AT_ONCE]
        if choice.quantile > 0 and len(limits.offset):
            sums = limits.rows @ (scores[:, None] > cuts[some]).astype(float)
            some = some[limits.risk(sums, choice.quantile) <= ndtr(-choice.quantile) + MET]
        if len(some):
            k = some[0]
            found = Threshold(float(cuts[k]), float(search.objective[k]), float(search.slack[k]))
            return replace(choice, threshold=found, positive=search.positive(found.cut))
    return choice


def _standard_errors(search: CutSearch, choice: Choice) -> np.ndarray:
    """Standard error, at every cut, of its difference in objective from the chosen one."""
    forms = search.goals.objective
    costs = forms.numerator[[0]].toarray().ravel()
    rho, below = float(forms.values(choice.positive)[0]), forms.fractions(choice.positive)[1][0]
    costs = costs - rho * forms.denominator[[0]].toarray().ravel()
    squares = np.append(0.0, np.cumsum(costs[search.order] ** 2))
    chosen = int(choice.positive.sum())
    return np.sqrt(np.abs(squares[search.heads] - squares[chosen])) / below
