"""The choice among scores: the best exact threshold whose limits are inside, out of fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained._tolerances import MET
from skbandit.constrained.thresholds._candidates import Threshold, cuts_between, head_sums
from skbandit.rates._score_limits import MeasuredShares, ScoreLimits, reached_quantiles, risk_of

KEPT = 2_000_000
"""Numbers of a table of limits at all thresholds, beyond which it is not kept for other bounds."""

COARSE = 256
"""Thresholds at which limits are evaluated first where there are more than twice as many.

The best of them excludes most others.
"""


@dataclass(frozen=True)
class CutSearch:
    """Hard rates at every threshold of a score, by one sort and running sums.

    Parameters
    ----------
    goals : MeasuredGoals
        Objective and constraints over n rows.
    limits : ScoreLimits
        Of the constraints, over the same rows.
    scores : ndarray of shape (n,)
        One score per row.
    cuts : ndarray of shape (C,)
        The thresholds.
    order : ndarray of shape (n,)
        Rows by descending score.
    heads : ndarray of shape (C,)
        Number of rows above each threshold.
    measured : dict of float to MeasuredShares
        Rates and limits at all thresholds by normal quantile, as far as they have been needed;
        one for all bounds.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    scores: np.ndarray
    cuts: np.ndarray
    order: np.ndarray
    heads: np.ndarray
    measured: dict[float, MeasuredShares] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        goals: MeasuredGoals,
        limits: ScoreLimits,
        cuts: np.ndarray | None = None,
    ) -> CutSearch:
        """Sort a score; its thresholds are between all its values unless `cuts` are given."""
        order = np.argsort(-scores, kind="stable")
        descending = scores[order]
        if cuts is None:
            cuts, heads = cuts_between(descending)
        else:
            heads = np.searchsorted(-descending, -cuts, side="left")
        return cls(goals, limits, scores, cuts, order, heads)

    def under(self, goals: MeasuredGoals, limits: ScoreLimits) -> CutSearch:
        """The same thresholds under other constraints over the same rows; nothing is sorted anew.

        The objective must be the same: its values are kept.
        """
        if goals is self.goals and limits is self.limits:
            return self
        same = limits.shares_measured_by(self.limits)
        measured = self.measured if same else {}
        other = replace(self, goals=goals, limits=limits, measured=measured)
        known = vars(other)  # where cached_property looks
        known["objective"] = self.objective
        if limits.rows is self.limits.rows:
            known["_sums"] = self._sums
        return other

    @cached_property
    def objective(self) -> np.ndarray:
        """The objective at every threshold, lower is better; inf where undefined."""
        forms = self.goals.objective
        above = self._sums_of(forms.numerator) + forms.numerator_constant[:, None]
        below = self._sums_of(forms.denominator) + forms.denominator_constant[:, None]
        values = forms.quotients(above, below)[0]
        return np.where(np.isnan(values), np.inf, values)

    @cached_property
    def _sums(self) -> np.ndarray:
        return self._sums_of(self.limits.rows)

    def slacks(self) -> np.ndarray:
        """The slack of every rate at every threshold, shape (K, C)."""
        return self.slacks_at(0.0)

    def slacks_at(
        self,
        z: float,
        at: np.ndarray | None = None,
        limits: ScoreLimits | None = None,
        which: np.ndarray | None = None,
    ) -> np.ndarray:
        """Slacks of limits at a normal quantile, shape (K, C).

        Parameters
        ----------
        z : float
            Normal quantile; 0 is for the rates.
        at : ndarray of int or None
            Numbers of the thresholds; None is for all.
        limits : ScoreLimits or None
            Those of other bounds on the same constraints; None is for `limits`.
        which : ndarray of int or None
            Numbers of the constraints; None is for all.
        """
        limits = self.limits if limits is None else limits
        if z not in self.measured and len(limits.shares) * len(self.cuts) <= KEPT:
            self.measured[z] = limits.measure(self._sums, z)
        if z in self.measured:
            found = self.measured[z] if at is None else self.measured[z].take(at)
        else:
            found = limits.measure(self._sums if at is None else self._sums[:, at], z)
        return limits.slack_of(found, which)

    def quantiles(self, z: float, at: np.ndarray) -> np.ndarray:
        """Normal quantiles at which limits meet their bounds at some thresholds, shape (K, C)."""
        return reached_quantiles(self.slacks_at(0.0, at), self.slacks_at(z, at), z)

    @cached_property
    def slack(self) -> np.ndarray:
        """The smallest slack of a rate at every threshold; inf without constraints."""
        return self.slacks().min(axis=0, initial=np.inf)

    @cached_property
    def lowest(self) -> float:
        """The lowest objective at a threshold whose rates are inside; inf if none is."""
        return float(self.objective[self.slack >= -MET].min(initial=np.inf))

    def best(self, z: float, preferred: float = 0.0, within: np.ndarray | None = None) -> Threshold:
        """The threshold with the lowest objective among those inside.

        Parameters
        ----------
        z : float
            The risk of missing a bound must not exceed the tail of this normal quantile; with
            0, the rates themselves must be inside.
        preferred : float
            Threshold to which ties go.
        within : ndarray of bool, shape (C,), or None
            Thresholds that may be chosen, one at least; None is for all.

        Returns
        -------
        Threshold
            Its `slack` is that of the rates, -inf where these are inside and the risk is too
            large everywhere. Then it is the threshold with the least risk; where no rate is
            inside, the one that misses by least.
        """
        found = self.best_below(np.inf, z, preferred, within)
        if found is not None:
            return found
        kept = np.arange(len(self.cuts)) if within is None else np.flatnonzero(within)
        inside = kept[self.slack[kept] >= -MET]
        if not len(inside):
            least_missed = kept[self.slack[kept] >= self.slack[kept].max() - MET]
            return self._nearest(least_missed, preferred)
        risk = risk_of(self.quantiles(z, inside))
        found = self._nearest(inside[risk <= risk.min() + MET], preferred)
        return Threshold(found.cut, found.objective, -np.inf)

    def best_below(
        self, most: float, z: float, preferred: float = 0.0, within: np.ndarray | None = None
    ) -> Threshold | None:
        """As `best`; None if no threshold is inside with an objective of `most` at most."""
        allowed = (self.slack >= -MET) & (self.objective <= most)
        inside = np.flatnonzero(allowed if within is None else allowed & within)
        if z > 0 and len(self.limits.offset) and len(inside):
            if len(inside) > 2 * COARSE:
                sample = inside[:: len(inside) // COARSE]
                sample = sample[small_risk(self.quantiles(z, sample), z)]
                enough = self.objective[sample].min(initial=np.inf)
                inside = inside[self.objective[inside] <= enough + MET]
            inside = inside[small_risk(self.quantiles(z, inside), z)]
        return self._nearest(inside, preferred) if len(inside) else None

    def positive(self, cut: float) -> np.ndarray:
        """1.0 where the score is above a threshold."""
        return (self.scores > cut).astype(float)

    def _nearest(self, candidates: np.ndarray, preferred: float) -> Threshold:
        """The best of some thresholds, among equals the one nearest to `preferred`."""
        goal = self.objective[candidates]
        candidates = candidates[goal <= goal.min() + MET]
        best = candidates[np.argmin(np.abs(self.cuts[candidates] - preferred))]
        return Threshold(
            float(self.cuts[best]), float(self.objective[best]), float(self.slack[best])
        )

    def _sums_of(self, rows: csr_array) -> np.ndarray:
        return head_sums(rows, self.order, self.heads)


def small_risk(quantiles: np.ndarray, z: float) -> np.ndarray:
    """Whether the risk at C thresholds is at most the tail of z, from their quantiles (K, C).

    It is at least that of each constraint, which excludes most thresholds without a logarithm.
    """
    most = float(ndtr(-z)) + MET
    small = quantiles.min(axis=0, initial=np.inf) >= -ndtri(most)
    small[small] = risk_of(quantiles[:, small]) <= most
    return small


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


# The threshold nearest to the usual one among those that are as good, but for noise.
#
# The best threshold of n out-of-fold scores is the best of many noisy ones: on few rows it is the
# wrong one by more than it gains. Its advantage over another one stems from the rows between the
# two, and so does the standard error of the advantage.


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
    if not np.isfinite(choice.threshold.objective):  # 0/0: there is no noise to compare with
        return choice
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


STEP = 2.0
"""Standard errors of a rate by which its bound is relaxed.

Rates are counts, so their best objective is a step function of the bound; smaller differences
measure its noise.
"""


def prices_out_of_fold(
    searches: Mapping[str, CutSearch], limits: ScoreLimits, choice: Choice
) -> np.ndarray:
    """Gain of the objective per unit by which each bound alone is relaxed, at the chosen risk.

    The best candidate and its best threshold are found anew; candidates are not trained anew.

    Parameters
    ----------
    searches : mapping of str to CutSearch
        The thresholds of all candidates.
    limits : ScoreLimits
        Of the K constraints, over the same rows.
    choice : Choice
        The choice among them.

    Returns
    -------
    ndarray of shape (K,)
        At least 0; 0 where a bound does not bind, nan where no threshold is inside or the rate
        has no standard error.
    """
    z, prices = choice.quantile, np.full(len(limits.offset), np.nan)
    under = [one.under(one.goals, limits) for one in searches.values()]
    lowest = _lowest(under, z)
    if not np.isfinite(lowest):
        return prices
    steps = STEP * (limits.at(choice.positive, 0.0) - limits.at(choice.positive, 1.0))
    better = [_Better.of(one, lowest, z) for one in under]
    for k in np.flatnonzero(np.isfinite(steps) & (steps > 0)):
        relaxed = limits.relaxed(int(k), float(steps[k]))
        prices[k] = (lowest - min(one.lowest(relaxed, int(k), z) for one in better)) / steps[k]
    return prices


@dataclass(frozen=True)
class _Better:
    """Thresholds with a lower objective than the lowest inside: some limit is beyond its bound.

    Attributes
    ----------
    search : CutSearch
    at : ndarray of int
        Their numbers, shape (B,).
    slacks, quantiles : ndarray of shape (K, B)
        Slacks of the rates there, and the quantiles at which limits meet their bounds; without a
        quantile the latter are those of no risk.
    beyond : ndarray of bool, shape (K, B)
        Whether each limit is beyond its bound.
    least : float
        The lowest objective inside, of all candidates.
    """

    search: CutSearch
    at: np.ndarray
    slacks: np.ndarray
    quantiles: np.ndarray
    beyond: np.ndarray
    least: float

    @classmethod
    def of(cls, search: CutSearch, lowest: float, z: float) -> _Better:
        at = np.flatnonzero(search.objective < lowest)
        slacks = search.slacks_at(0.0, at)
        quantiles = search.quantiles(z, at) if z > 0 else np.full_like(slacks, np.inf)
        beyond = (slacks < -MET) | (quantiles < -ndtri(ndtr(-z) + MET))
        return cls(search, at, slacks, quantiles, beyond, lowest)

    def lowest(self, relaxed: ScoreLimits, k: int, z: float) -> float:
        """The lowest objective inside where the bound of constraint k is relaxed."""
        only, number = np.array([k]), self.beyond.sum(axis=0)
        kept = np.flatnonzero((number == 0) | ((number == 1) & self.beyond[k]))
        if not len(kept):
            return self.least
        slacks, quantiles, at = self.slacks[:, kept], self.quantiles[:, kept], self.at[kept]
        slacks[k] = self.search.slacks_at(0.0, at, relaxed, only)[0]
        inside = slacks.min(axis=0) >= -MET
        if z > 0:
            at_limits = self.search.slacks_at(z, at, relaxed, only)
            quantiles[k] = reached_quantiles(slacks[only], at_limits, z)[0]
            inside &= small_risk(quantiles, z)
        return float(self.search.objective[at[inside]].min(initial=self.least))


def _lowest(searches: Iterable[CutSearch], z: float) -> float:
    """The lowest objective of a candidate's threshold that is inside; inf if none is."""
    lowest = np.inf
    for one in sorted(searches, key=lambda search: search.lowest):
        if one.lowest >= lowest:
            break
        best = one.best_below(lowest, z)
        lowest = lowest if best is None else best.objective
    return lowest
