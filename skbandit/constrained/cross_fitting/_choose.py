"""The choice among scores: the best exact threshold whose limits are inside, out of fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from skbandit.constrained._declared import MeasuredGoals
from skbandit.constrained._threshold import Threshold
from skbandit.constrained._tolerances import MET
from skbandit.constrained.cross_fitting._cut_search import CutSearch, small_risk
from skbandit.rates._binding import ScoreLimits

DEFAULT_LEVEL = 0.8
"""Probability, about, with which all bounds shall hold on new rows if no level is asked for."""

HALVINGS = 3
"""Times that the quantile is halved where no candidate's limits are inside; 0 is tried last."""

ENOUGH_GAIN = 0.5
"""Standard errors of the gain, paired, that a candidate must be ahead of the plain one."""

BISECTIONS = 12
"""Steps of the search for the largest quantile that some threshold allows."""


@dataclass(frozen=True)
class Choice:
    """A candidate and its threshold.

    Parameters
    ----------
    name : str
        Of the candidate.
    threshold : Threshold
        Its cut, and out-of-fold objective and slack there. Feasible if the rates are inside
        and, where no relaxation was allowed, their limits too.
    positive : ndarray of shape (n,)
        Its predictions there, 0 and 1.
    quantile : float
        The normal quantile z at which the risk was small enough; 0 if only the rates were
        looked at.
    """

    name: str
    threshold: Threshold
    positive: np.ndarray
    quantile: float

    @property
    def feasible(self) -> bool:
        """Whether the threshold is inside."""
        return self.threshold.feasible

    @property
    def level(self) -> float:
        """The confidence level of `quantile`."""
        return float(ndtr(self.quantile))


def choose(
    candidates: Mapping[str, np.ndarray | CutSearch],
    goals: MeasuredGoals,
    limits: ScoreLimits,
    *,
    level: float = DEFAULT_LEVEL,
    relax: bool = True,
    plain: str | None = None,
    own: Mapping[str, np.ndarray] | None = None,
    cuts: np.ndarray | None = None,
    preferred: float = 0.0,
    dearest: float = np.inf,
    tighter: Choice | None = None,
) -> Choice:
    """Choose the candidate and the threshold with the lowest objective among those inside.

    Parameters
    ----------
    candidates : mapping of str to ndarray of shape (n,) or CutSearch
        Out-of-fold scores by name; or, sorted before, for the same objective and thresholds.
    goals : MeasuredGoals
        Objective and constraints over the n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    level : float
        Probability with which all constraints shall hold in the population.
    relax : bool
        Whether the level may fall, by halves of its quantile and in the end to the rates
        themselves, where no threshold attains it.
    plain : str or None
        The candidate that stays unless another one is better by more than `ENOUGH_GAIN`
        standard errors.
    own : mapping of str to ndarray of shape (n,) or None
        Scores of the same rows by the rules that the cuts are for, which saw them. Where it is
        possible, the rates of the chosen rule itself are inside the bounds as well.
    cuts : ndarray or None
        The thresholds that may be chosen; None is for all.
    preferred : float
        Threshold to which ties go.
    dearest : float
        If the level may fall: how much worse the objective may be than at rates that are just
        inside.
    tighter : Choice or None
        What was chosen among the same candidates under tighter bounds. It stays if it is better
        and inside at the same quantile: so at one level, looser bounds never cost more.

    Returns
    -------
    Choice
        If nothing is inside, the candidate with the least risk, or that misses by least.
    """
    searches = {name: _searched(s, goals, limits, cuts) for name, s in candidates.items()}
    full = max(float(ndtri(level)), 0.0)
    steps = [full / 2**halving for halving in range(HALVINGS + 1)] if relax else [full]
    if relax and full > 0:
        steps.append(0.0)
    just_inside = _best(searches, goals, 0.0, plain, preferred)
    if just_inside is None:
        return _closest(searches, full, preferred)
    most = just_inside.threshold.objective + dearest if relax else np.inf
    for z in steps:
        choice = just_inside if z == 0 else _best(searches, goals, z, plain, preferred)
        if choice is not None and choice.threshold.objective <= most + MET:
            break
    if choice is None:
        return _closest(searches, full, preferred)
    if own is not None:
        rule = CutSearch.of(own[choice.name], goals, limits, np.array([choice.threshold.cut]))
        if rule.slack[0] < -MET:
            both = _inside_themselves(searches, own, goals, limits)
            choice = _best(searches, goals, z, plain, preferred, both) or choice
    return choice if tighter is None else _better_of(choice, tighter, searches)


def _better_of(choice: Choice, tighter: Choice, searches: Mapping[str, CutSearch]) -> Choice:
    """The choice under tighter bounds if it is better, and inside at the same quantile."""
    if tighter.threshold.objective >= choice.threshold.objective - MET or not tighter.feasible:
        return choice
    search, cut = searches[tighter.name], tighter.threshold.cut
    at = np.flatnonzero(search.cuts == cut)
    if choice.quantile > 0 and len(search.limits.offset):
        at = at[small_risk(search.quantiles(choice.quantile, at), choice.quantile)]
    if not len(at) or search.slack[at[0]] < -MET:
        return choice
    now = replace(tighter.threshold, slack=float(search.slack[at[0]]))
    return replace(tighter, threshold=now, quantile=choice.quantile)


def _searched(
    candidate: np.ndarray | CutSearch,
    goals: MeasuredGoals,
    limits: ScoreLimits,
    cuts: np.ndarray | None = None,
) -> CutSearch:
    """The thresholds of a candidate, sorted unless they are already."""
    if isinstance(candidate, CutSearch):
        return candidate.under(goals, limits)
    return CutSearch.of(candidate, goals, limits, cuts)


def _inside_themselves(
    searches: Mapping[str, CutSearch],
    own: Mapping[str, np.ndarray],
    goals: MeasuredGoals,
    limits: ScoreLimits,
) -> dict[str, np.ndarray]:
    """Masks of the thresholds at which the rules themselves are inside, where there are some."""
    both = {
        name: CutSearch.of(own[name], goals, limits, search.cuts).slack >= -MET
        for name, search in searches.items()
    }
    return {name: mask for name, mask in both.items() if mask.any()}


def attainable_quantile(
    candidates: Mapping[str, np.ndarray | CutSearch],
    goals: MeasuredGoals,
    limits: ScoreLimits,
    z: float,
) -> float:
    """The largest normal quantile below z at which some threshold is inside; 0 if none is.

    Widths of limits shrink with the square root of the rows: a level of quantile z takes
    about (z / this)^2 times as many.
    """
    searches = [_searched(one, goals, limits) for one in candidates.values()]

    def attained(quantile: float) -> bool:
        return any(one.best(quantile).feasible for one in searches)

    if not attained(0.0):
        return 0.0
    low, high = 0.0, z
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if attained(middle) else (low, middle)
    return low


def _best(
    searches: Mapping[str, CutSearch],
    goals: MeasuredGoals,
    z: float,
    plain: str | None,
    preferred: float,
    within: Mapping[str, np.ndarray] | None = None,
) -> Choice | None:
    """The best candidate at one quantile, of those in `within`; None if none is inside.

    No threshold has a lower objective than the lowest with rates inside, so that a candidate
    whose lowest is above what has been found need not be searched.
    """
    names = list(searches if within is None else within)
    found: dict[str, Threshold] = {}
    least = np.inf
    for name in sorted(names, key=lambda one: (one != plain, searches[one].lowest)):
        if searches[name].lowest > least:
            continue
        only = None if within is None else within[name]
        threshold = searches[name].best_below(least, z, preferred, only)
        if threshold is not None:
            found[name] = threshold
            least = min(least, threshold.objective)
    if not found:
        return None
    best = min((name for name in names if name in found), key=lambda name: found[name].objective)
    chosen = Choice(best, found[best], searches[best].positive(found[best].cut), z)
    if plain is None or plain not in found or best == plain:
        return chosen
    usual = Choice(plain, found[plain], searches[plain].positive(found[plain].cut), z)
    error = standard_error_of_gain(goals, usual.positive, chosen.positive)
    gain = usual.threshold.objective - chosen.threshold.objective
    return chosen if gain > ENOUGH_GAIN * error else usual


def standard_error_of_gain(goals: MeasuredGoals, one: np.ndarray, other: np.ndarray) -> float:
    """Standard error of the difference of the objective between two predictions, paired.

    A ratio N/D is linearised at the first prediction's value rho: (N - rho D)/D.
    """
    forms = goals.objective
    costs = forms.numerator[[0]].toarray().ravel()
    below = 1.0
    if forms.denominator.nnz:
        rho = float(forms.values(one)[0])
        costs = costs - rho * forms.denominator[[0]].toarray().ravel()
        below = float(forms.fractions(one)[1][0])
    moved = costs * (other - one)
    return float(np.sqrt(max((moved**2).sum() - moved.sum() ** 2 / len(moved), 0.0)) / below)


def _closest(searches: Mapping[str, CutSearch], z: float, preferred: float) -> Choice:
    """The candidate that misses by least: in its rates, else in its risk."""
    thresholds = {name: one.best(z, preferred) for name, one in searches.items()}
    rates = {name: one.best(0.0, preferred) for name, one in searches.items()}
    inside = [name for name in searches if rates[name].feasible]
    if inside:  # the rates are inside somewhere, the limits nowhere
        risks = {name: _least_risk(searches[name], thresholds[name].cut, z) for name in inside}
        name = min(inside, key=lambda one: risks[one])
        at = thresholds[name]
    else:
        name = max(searches, key=lambda one: rates[one].slack)
        at = rates[name]
    return Choice(name, at, searches[name].positive(at.cut), z)


def _least_risk(search: CutSearch, cut: float, z: float) -> float:
    sums = search.limits.rows @ search.positive(cut)
    return float(search.limits.risk(sums[:, None], z)[0])
