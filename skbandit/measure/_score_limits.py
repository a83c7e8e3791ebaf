"""Limits of all constraints at once, at many predictions: Wilson's, joined by MOVER.

For a rule fixed in advance, each row in a rate's denominator is a trial, each row in its
numerator a success. With unequal weights or dependent rows, the number of trials is that of
`_trials`.

The constraint N/D <= t holds if N - tD <= 0, a sum of rates with coefficients, as D > 0. Wilson's
score limit of each rate, at one normal quantile z, lies some distance from its estimate. MOVER
(Zou & Donner, Statistics in Medicine 2008; method 10 of Newcombe 1998 for a difference) adds the
distances as if they were standard errors, with the correlations of rates that share rows, which
are estimated from these rows. The upper limit of N - tD covers at the level of z approximately:
neither always less nor always more. At a confidence level, rates of few trials have Clopper
and Pearson's limit in place of Wilson's.

Everything is a function of a few sums over rows, each linear in the positive predictions. Along
the thresholds of a score they are running sums, so the limits at all n + 1 thresholds cost little
more than those at one. The intervals of reports are two such limits, at given predictions.

Training chooses its rule on the same rows. For thresholds on given scores this costs nothing if
the limit is monotone in the threshold, as for recall or the false positive rate: let t* be
where the population's rate crosses the bound. A chosen threshold beyond t* passes the test only
if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import betaincinv, log_ndtr, ndtr, ndtri

from skbandit.measure._forms import BoundConstraints, Form, stacked
from skbandit.rates._atoms import rows_of_atom
from skbandit.rates._columns import Data
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom, Kind
from skbandit.utils._trials import Dependence, correlation, dependence
from skbandit.utils._validation import RATE_TOL, ROUNDING

MOST_WIDENING = 1e4
"""Factor of standard errors beyond which nothing is known, as of one group; inf times 0 is nan."""

FEW_TRIALS = 10.0
"""Trials below which a limit is exact at a confidence level: Wilson's cover well on average over
all rates, but far too rarely at some (.53 instead of .8 of the times, of two trials).
"""

USUAL_TAIL = 0.1
"""Tail of the limits whose widening by few groups stands for that of other levels."""

LARGEST = 1e12
"""Search for the end of an interval of a ratio stops here; beyond it, the end is infinite."""


def trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[Trials, Dependence]:
    """Return the trials of an atom at given decisions, and their dependence.

    Of merged rows, the same objects each time. Costs by a column are no shares and have no
    interval: a group of them counts as one trial.
    """
    key = "trials", atom.key, id(positive)
    if key in data.counted:
        return data.counted[key][1:]
    trials = trials_of(atom, data, positive)
    success, trial = trials.counted
    total, squares = trial.sum(), trial**2 / data.effective(atom, atom, trials.rows)
    group = None if data.dependent is None else data.dependent[trials.rows]
    share = float((trial * success).sum() / total) if total > 0 else 0.0
    if atom.amount is not None:
        effect = dependence(np.zeros(len(trial)), trial, group, squares=squares)
    else:
        effect = dependence(trial * (success - share), trial, group, share, squares)
    if data.train.merged is not None:
        data.counted[key] = positive, trials, effect  # so that its id remains
    return trials, effect


# --- rows as trials --------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """The rows of an atom as trials, by their codes and by decision.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Those of positive weight.
    weight : ndarray of shape (m,)
    code : ndarray of int, shape (m,)
    success : ndarray of bool, shape (K, D)
        Whether a row is a success, by its code and decision.
    size : ndarray of shape (K, D)
        Its weight as a trial, if it has weight 1.
    """

    rows: np.ndarray
    weight: np.ndarray
    code: np.ndarray
    success: np.ndarray
    size: np.ndarray

    @property
    def counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are successes, and their weights as trials, at the first decision; (m,)."""
        return self.success[self.code, 0], self.weight * self.size[self.code, 0]


def trials_of(atom: Atom, data: Data, decided: np.ndarray | None = None) -> Trials:
    """Return the rows that an atom counts as trials, by decision or at given decisions."""
    counted = rows_of_atom(atom, data)
    (above, below), code = counted.tables, counted.actual
    if counted.amount is not None:  # a negative amount is no success
        code = code + len(above) * (counted.amount[:, 0] <= 0)
        above, below = np.vstack([above, 0 * above]), np.vstack([below, below])
    if decided is not None:
        code = code * above.shape[1] + decided.astype(int)[counted.rows]
        above, below = above.reshape(-1, 1), below.reshape(-1, 1)
    success = above > 0
    size = below / np.where(success, atom.kind.success[1], atom.kind.failure)
    return Trials(counted.rows, counted.weight, code, success, size)


# --- of proportions --------------------------------------------------------------------


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
    limit = betaincinv(successes, trials - successes + 1.0, tail)
    return np.where(successes > 0, limit, 0.0)


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


# --- of sums of proportions -------------------------------------------------------------


@dataclass(frozen=True)
class _Share:
    """Indices of the sums that give the share of successes of one atom among its trials.

    Attributes
    ----------
    kind : Kind
        Converts the share to the rate.
    success, trial : int
        Weights of successes and of trials.
    squared_success, squared_trial : int
        The same for squared weights.
    """

    kind: Kind
    success: int
    trial: int
    squared_success: int
    squared_trial: int


@dataclass(frozen=True)
class _Pair:
    """Indices of the sums over the rows that two atoms share, of products of their weights.

    Attributes
    ----------
    first, second : int
        Indices of the atoms.
    sums : tuple of int
        Rows that are successes of both, of the first, of the second, and all.
    """

    first: int
    second: int
    sums: tuple[int, int, int, int]


@dataclass(frozen=True)
class MeasuredShares:
    """Shares of C predictions that limits need, whatever the bounds.

    Attributes
    ----------
    value : ndarray of shape (A, C)
        The rate of each atom.
    below, above : ndarray of shape (A, C) or None
        Its distances to both Wilson limits; None for the rates themselves.
    correlations : ndarray of shape (number of pairs, C) or None
        Of atoms that share rows.
    """

    value: np.ndarray
    below: np.ndarray | None = None
    above: np.ndarray | None = None
    correlations: np.ndarray | None = None


@dataclass(frozen=True)
class ScoreLimits:
    """Upper limits of sign * (N - bound D) of K constraints, as functions of the predictions.

    Parameters
    ----------
    rows : csr_array of shape (S, n)
    constant : ndarray of shape (S,)
        All sums that are needed: ``rows @ pi + constant`` at positive predictions pi.
    shares : tuple of A _Share
    pairs : tuple of _Pair
        Of atoms that share rows in some constraint.
    coefficients : ndarray of shape (K, A)
    offset : ndarray of shape (K,)
        The expressions whose upper limits may not be positive: coefficients times rates, plus
        this.
    divisor, divisor_offset : ndarray of shape (K, A) and (K,)
        D in the same way.
    exact_below : float
        Numbers of trials below which a rate has Clopper and Pearson's limit instead of Wilson's.
    widening : ndarray of shape (K,), or None
        Factors of the limits' distances from the rates; None is for 1.
    clustered : ndarray of shape (A,), or None
        Factors of the rates' standard errors by dependent rows; None is for 1. What weights do that
        go with the outcome is found at each prediction, from the sums.
    """

    rows: csr_array
    constant: np.ndarray
    shares: tuple[_Share, ...]
    pairs: tuple[_Pair, ...]
    coefficients: np.ndarray
    offset: np.ndarray
    divisor: np.ndarray
    divisor_offset: np.ndarray
    exact_below: float = 0.0
    widening: np.ndarray | None = None
    clustered: np.ndarray | None = None

    def at_confidence(self, level: float, choices: int | np.ndarray = 0) -> ScoreLimits:
        """Return the limits at a confidence level.

        Those of few trials never cover too rarely, and one of A rates has the tail of the level
        divided by A + `choices`. This rule of thumb pays for the choice of the best among many
        rules, whose errors tend to be in its favor: see the derivations.

        Parameters
        ----------
        level : float
            Probability with which the limits hold.
        choices : int or ndarray of shape (K,), default=0
            What these rows choose besides the threshold: 1 if also the direction.
        """
        tail, counts = 1.0 - level, np.count_nonzero(self.coefficients, axis=1) + choices
        widening = ndtri(tail / np.maximum(counts, 1)) / ndtri(tail) if tail < 0.5 else None
        return replace(self, exact_below=FEW_TRIALS, widening=widening)

    def exact(self) -> ScoreLimits:
        """Clopper and Pearson's limits of single rates, whatever the trials: see the module."""
        return replace(self, exact_below=np.inf, widening=None)

    def columns(self, rows: np.ndarray) -> ScoreLimits:
        """Keep some of the n rows; the others are counted as predicted negative."""
        return replace(self, rows=self.rows[:, rows])

    def relaxed(self, k: int, by: float) -> ScoreLimits:
        """Move the bound of one constraint outwards, in the unit of the bound."""
        coefficients, offset = self.coefficients.copy(), self.offset.copy()
        coefficients[k] -= by * self.divisor[k]
        offset[k] -= by * self.divisor_offset[k]
        return replace(self, coefficients=coefficients, offset=offset)

    def at(self, positive: np.ndarray, z: float) -> np.ndarray:
        """`slack` at one prediction pi of shape (n,); shape (K,)."""
        return self.slack((self.rows @ positive)[:, None], z)[:, 0]

    def slack(self, sums: np.ndarray, z: float) -> np.ndarray:
        """Distance of each limit from its bound: negative where it is beyond.

        Parameters
        ----------
        sums : ndarray of shape (S, C)
            ``rows @ pi`` at C predictions.
        z : float
            Normal quantile of the level; 0 is for the rates themselves.

        Returns
        -------
        ndarray of shape (K, C)
            In the unit of the bound. Where a rate has no trials, nothing is known of it: it may
            be anything from 0 to its maximum.
        """
        return self.slack_of(self.measure(sums, z))

    def measure(self, sums: np.ndarray, z: float) -> MeasuredShares:
        """Measure what `slack_of` needs of C predictions; as no bound counts, once for many."""
        sums = sums + self.constant[:, None]
        if not len(self.shares):
            return MeasuredShares(np.zeros((0, sums.shape[1])))
        counted = [_share_of(share, sums) for share in self.shares]
        if self.clustered is not None:
            factors = self.clustered**2
            counted = [(q, m / factor) for (q, m), factor in zip(counted, factors, strict=True)]
        value = np.stack(
            [share.kind.of_share(q) for share, (q, _) in zip(self.shares, counted, strict=True)]
        )
        if z == 0 and all(trials.all() for _, trials in counted):
            return MeasuredShares(value)
        below, above = np.zeros((2, *value.shape))  # distances to both limits, by atom
        for a, (share, (q, trials), rate) in enumerate(
            zip(self.shares, counted, value, strict=True)
        ):
            low = high = rate
            if z > 0:
                low = share.kind.of_share(self._lower(q, trials, z))
                high = share.kind.of_share(1.0 - self._lower(1.0 - q, trials, z))
            low = np.where(trials == 0, float(share.kind.of_share(0.0)), low)
            high = np.where(trials == 0, float(share.kind.of_share(1.0)), high)
            below[a], above[a] = np.maximum(rate - low, 0.0), np.maximum(high - rate, 0.0)
        correlations = np.zeros((len(self.pairs), sums.shape[1]))
        paired = {a for pair in self.pairs for a in (pair.first, pair.second)}
        squares = {a: _squares(self.shares[a], sums, counted[a][0]) for a in paired}
        for row, pair in zip(correlations, self.pairs, strict=True):
            p, q = counted[pair.first][0], counted[pair.second][0]
            both, of_first, of_second, either = (sums[index] for index in pair.sums)
            covariance = both - q * of_first - p * of_second + p * q * either
            spread = np.sqrt(squares[pair.first] * squares[pair.second])
            np.divide(covariance, spread, out=row, where=spread > 0)
        np.clip(correlations, -1.0, 1.0, out=correlations)
        return MeasuredShares(value, below, above, correlations)

    def slack_of(self, measured: MeasuredShares) -> np.ndarray:
        """`slack` at predictions that were measured."""
        slack = -(self.offset[:, None] + self.coefficients @ measured.value)
        if (below := measured.below) is not None:
            # how far upper limits of sums of rates lie above their estimates, by MOVER
            above, correlations = measured.above, measured.correlations
            assert above is not None and correlations is not None

            def moved(a: int, rows: np.ndarray) -> np.ndarray:
                c = self.coefficients[rows, a, None]
                return c * np.where(c > 0, above[a], below[a])

            square = np.zeros_like(slack)
            for a, column in enumerate(self.coefficients.T):  # most sums have few of the rates
                rows = np.flatnonzero(column)
                square[rows] += moved(a, rows) ** 2
            for pair, r in zip(self.pairs, correlations, strict=True):
                first, second = pair.first, pair.second
                rows = np.flatnonzero(self.coefficients[:, first] * self.coefficients[:, second])
                square[rows] += 2.0 * r * moved(first, rows) * moved(second, rows)
            distances = np.sqrt(np.maximum(square, 0.0))
            slack -= distances if self.widening is None else self.widening[:, None] * distances
        divisors = self.divisor @ measured.value + self.divisor_offset[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(divisors > 0, slack / divisors, -np.inf)

    def risk(self, sums: np.ndarray, z: float) -> np.ndarray:
        """Probability, about, that some constraint is missed by the population; shape (C,).

        A constraint is missed with the probability p at whose quantile its limit meets its bound.
        That quantile is found by proportion from the limit at z > 0, so p is exact where it is
        the tail of z: for a single constraint, the risk is at most the tail of z exactly where
        the limit at z is inside. For several, it is 1 - (1 - p)(1 - p') ..., as if they went
        wrong independently: those far from their bounds hardly count.
        """
        return self.risk_of(reached_quantiles(self.slack(sums, 0.0), self.slack(sums, z), z))

    def risk_of(self, quantiles: np.ndarray) -> np.ndarray:
        """Risk that some of K limits is missed, of shape (C,), from `reached_quantiles` (K, C).

        Widened limits count one at a time, as a choice favors the errors of one of them.
        """
        if self.widening is None:
            return -np.expm1(log_ndtr(quantiles).sum(axis=0))
        together = log_ndtr(self.widening[:, None] * quantiles).sum(axis=0)
        return -np.expm1(np.minimum(together, log_ndtr(quantiles).min(axis=0, initial=0.0)))

    def _lower(self, q: np.ndarray, trials: np.ndarray, z: float) -> np.ndarray:
        """Lower limit of a share."""
        low = wilson_score(q, trials, z)
        few = (trials > 0) & (trials < self.exact_below)
        if few.any():
            low[few] = clopper_pearson(q[few], trials[few], float(ndtr(-z)))
        return low


def reached_quantiles(at_rates: np.ndarray, at_limits: np.ndarray, z: float) -> np.ndarray:
    """Interpolate quantiles at which limits meet their bounds, from slacks at 0 and at z > 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = z * at_rates / (at_rates - at_limits)
    exact = np.where(at_rates >= -RATE_TOL, np.inf, -np.inf)  # without width
    return np.where(np.isfinite(quantile), quantile, exact)


def _share_of(share: _Share, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of successes and number of trials of equal weight that vary as much; 0 without trials.

    Where all or none succeed, Kish's number: nothing is known of how weights go with the outcome.
    """
    success, trial, squared = sums[share.success], sums[share.trial], sums[share.squared_trial]
    has_trials = trial > 0
    q = np.divide(success, trial, out=np.zeros_like(trial), where=has_trials)
    trials = np.divide(
        trial**2, squared, out=np.zeros_like(trial), where=has_trials & (squared > 0)
    )
    q = np.clip(q, 0.0, 1.0)
    usual = q * (1.0 - q) * squared
    varies = usual > ROUNDING * squared
    spread = np.divide(_squares(share, sums, q), usual, out=np.ones_like(q), where=varies)
    spread[np.abs(spread - 1.0) < RATE_TOL] = 1.0
    return q, np.divide(trials, spread, out=trials, where=spread > 0)


def _squares(share: _Share, sums: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of w^2 (success - q)^2 over the trials."""
    total = (1.0 - 2.0 * q) * sums[share.squared_success] + q * q * sums[share.squared_trial]
    return np.maximum(total, 0.0)


def intervals(rates: Sequence[Rate], data: Data, decided: np.ndarray, level: float) -> np.ndarray:
    """Intervals, each of which covers the population's value with probability `level`.

    Clopper and Pearson's of a single rate, else MOVER's, of Wilson's limits or, below 10 trials,
    Clopper and Pearson's: its ends are the bounds without slack.

    Parameters
    ----------
    rates : sequence of K Rate
        Expressions without open group slots, defined at these decisions.
    data : Data
        The n rows they are measured on.
    decided : ndarray of shape (n,)
        Codes of decisions.
    level : float
        Confidence level.

    Returns
    -------
    ndarray of shape (K, 2)
        Infinite where a divisor may be 0; nan for costs by a column, which are no shares, and
        where rows of a single group say nothing of how much groups differ.
    """
    if data.train.merged is None and len(rates) > 1:  # the trials of all take much memory
        return np.vstack([intervals([rate], data, decided, level) for rate in rates])
    atoms = {atom.key: atom for rate in rates for atom in rate.atoms if atom.amount is None}
    at = {key: trials_at(atom, data, decided) for key, atom in atoms.items()}
    telling = {key for key, (_, effect) in at.items() if not effect.groups <= 1.0 < effect.rows}
    keys = [{atom.key for atom in rate.atoms} for rate in rates]
    ends, tail = np.full((len(rates), 2), np.nan), (1.0 - level) / 2.0
    for exact_below, of_one in ((np.inf, True), (FEW_TRIALS, False)):
        kept = [k for k, of in enumerate(keys) if of <= telling and (len(of) == 1) == of_one]
        if kept:
            ends[kept] = _ends([rates[k] for k in kept], data, at, exact_below, tail)
    return ends + 0.0  # -0.0 prints badly


def interval(rate: Rate, data: Data, decided: np.ndarray, level: float) -> tuple[float, float]:
    """Return the ends of one of the `intervals`."""
    low, high = intervals([rate], data, decided, level)[0].tolist()
    return low, high


def _ends(
    rates: Sequence[Rate],
    data: Data,
    at: Mapping[Any, tuple[Trials, Dependence]],
    exact_below: float,
    tail: float,
) -> np.ndarray:
    """Return `intervals` of rates from the trials of their atoms, which all tell something."""
    n, trials = len(rates), {key: of_atom for key, (of_atom, _) in at.items()}
    limits = _limits_of(rates, np.ones(n), np.zeros(n), data, trials)
    used = {atom.key: None for rate in rates for atom in rate.atoms}
    clustered = _cluster_factors([at[key][1] for key in used], tail)
    limits = replace(limits, clustered=clustered, exact_below=exact_below)
    measured = limits.measure(np.zeros((len(limits.constant), 1)), -float(ndtri(tail)))
    both = limits, replace(limits, coefficients=-limits.coefficients, offset=-limits.offset)
    ends = [sign * -side.slack_of(measured)[:, 0] for side, sign in zip(both, (1, -1), strict=True)]
    ratios = [k for k, rate in enumerate(rates) if rate.denominator is not None]
    assert measured.correlations is not None
    correlations = measured.correlations[:, 0].tolist() if ratios else []
    related = {(x.first, x.second): r for x, r in zip(limits.pairs, correlations, strict=False)}
    for k in ratios:
        for end, side, sign in zip(ends, both, (1, -1), strict=True):
            end[k] = sign * _bound_without_slack(side, measured, related, k)
    return np.column_stack(ends[::-1])


def _bound_without_slack(
    limits: ScoreLimits,
    measured: MeasuredShares,
    related: Mapping[tuple[int, int], float],
    k: int,
) -> float:
    """How far the bound of constraint k must move outwards to meet its limit.

    A function of one number, evaluated many times: plain numbers are much faster than arrays.
    `related` are the correlations of pairs of atoms.
    """
    assert measured.below is not None and measured.above is not None
    value, divisor = measured.value[:, 0], limits.divisor[k]
    base = float(divisor @ value + limits.divisor_offset[k])
    if not base > 0:
        return np.inf
    estimate = float((limits.coefficients[k] @ value + limits.offset[k]) / base)
    places = np.flatnonzero((limits.coefficients[k] != 0) | (divisor != 0)).tolist()
    columns = limits.coefficients[k], divisor, measured.below[:, 0], measured.above[:, 0]
    numbers = [*zip(places, *(column[places].tolist() for column in columns), strict=True)]
    pairs = [(*pair, related[pair]) for pair in combinations(places, 2) if pair in related]

    def slack(by: float) -> float:
        moved = {}
        for a, coefficient, of_divisor, below, above in numbers:
            by_bound = coefficient - by * of_divisor
            moved[a] = by_bound * (above if by_bound > 0 else below)
        square = sum(part * part for part in moved.values())
        square += sum(2.0 * r * moved[a] * moved[b] for a, b, r in pairs)
        return by - estimate - math.sqrt(max(square, 0.0)) / base

    step = max(-slack(estimate), 0.0)
    if step == 0:
        return estimate
    while slack(estimate + step) < 0:
        step *= 2.0
        if step > LARGEST:
            return np.inf
    return float(brentq(slack, estimate, estimate + step, xtol=1e-12))


def score_limits(
    goals: BoundConstraints, data: Data, decided: np.ndarray | None = None
) -> ScoreLimits:
    """Limits of the constraints that were not skipped, in their order.

    Parameters
    ----------
    goals : BoundConstraints
        Constraints over n rows.
    data : Data
        The rows they are bound to.
    decided : ndarray of shape (n,) or None
        Codes of decisions, near those that limits are of, at which the effects of dependent rows
        are found; None is for independent rows.

    Returns
    -------
    ScoreLimits
    """
    measured = np.flatnonzero(goals.n_rows > 0)
    rates = [goals.constraints[k].rate for k in measured]
    limits = _limits_of(rates, goals.sign[measured], goals.bound[measured], data)
    clustered = None if decided is None else cluster_factors(goals, data, decided)
    return replace(limits, clustered=clustered)


def _limits_of(
    rates: Sequence[Rate],
    sign: np.ndarray,
    bound: np.ndarray,
    data: Data,
    at: Mapping[Any, Trials] | None = None,
) -> ScoreLimits:
    """Limits of sign * (N - bound D) of some rates.

    With the trials of each atom at given decisions, all sums are numbers, and rates are correlated
    by their groups of dependent rows, if there are any.
    """
    atoms = {atom.key: atom for rate in rates for atom in rate.atoms}
    place, numbered = {key: index for index, key in enumerate(atoms)}, list(atoms.values())
    used = (sorted({place[atom.key] for atom in rate.atoms}) for rate in rates)
    together = sorted({pair for numbers in used for pair in combinations(numbers, 2)})
    paired = {number for pair in together for number in pair}
    table, shares, kept = _Sums(data.n_indicators), [], dict[int, Trials]()
    for a, atom in enumerate(numbered):
        trials = trials_of(atom, data) if at is None else at[atom.key]
        size, squared = trials.weight, trials.weight**2 / data.effective(atom, atom, trials.rows)
        won, square = trials.success * trials.size, trials.size**2
        parts = (size, won), (size, trials.size), (squared, trials.success * square)
        sums = [
            table.add(trials.rows, weight, trials.code, by_code)
            for weight, by_code in (*parts, (squared, square))
        ]
        shares.append(_Share(atom.kind, *sums))
        if a in paired:
            kept[a] = trials
    add = _sums_of_both if at is None or data.dependent is None else _sums_by_group
    pairs = []
    for a, b in together:
        of_both = add(table, (kept[a], kept[b]), (numbered[a], numbered[b]), data)
        pairs += [] if of_both is None else [_Pair(a, b, of_both)]
    coefficients, divisor = np.zeros((2, len(rates), len(place)))
    offset, divisor_offset = np.zeros(len(rates)), np.ones(len(rates))
    for k, rate in enumerate(rates):
        for c, atom in rate.terms:
            coefficients[k, place[atom.key]] += sign[k] * c
        offset[k] = sign[k] * rate.constant
        if rate.denominator is not None:
            for c, atom in rate.denominator.terms:
                divisor[k, place[atom.key]] += c
            divisor_offset[k] = rate.denominator.constant
    coefficients -= (sign * bound)[:, None] * divisor
    offset -= sign * bound * divisor_offset
    expressions = coefficients, offset, divisor, divisor_offset
    return ScoreLimits(*table.stacked(), tuple(shares), tuple(pairs), *expressions)


def cluster_factors(goals: BoundConstraints, data: Data, decided: np.ndarray) -> np.ndarray | None:
    """Return `ScoreLimits.clustered` of the limits of goals at given decisions of all rows."""
    if data.dependent is None:
        return None
    measured = np.flatnonzero(goals.n_rows > 0)
    atoms = {atom.key: atom for k in measured for atom in goals.constraints[k].rate.atoms}
    return _cluster_factors([trials_at(atom, data, decided)[1] for atom in atoms.values()])


def _cluster_factors(effects: Sequence[Dependence], tail: float = USUAL_TAIL) -> np.ndarray:
    return np.array([min(effect.cluster_factor(tail), MOST_WIDENING) for effect in effects])


def _sums_of_both(
    table: _Sums, trials: tuple[Trials, Trials], atoms: tuple[Atom, Atom], data: Data
) -> tuple[int, int, int, int] | None:
    """Return sums of products of weights over two atoms' common rows; None without any."""
    first, second = trials
    rows, at, other_at = np.intersect1d(
        first.rows, second.rows, assume_unique=True, return_indices=True
    )
    if not len(rows):
        return None
    weight = first.weight[at] * second.weight[other_at] / data.effective(*atoms, rows)
    pairs, code = np.unique(
        first.code[at] * len(second.size) + second.code[other_at], return_inverse=True
    )
    of_first, of_second = np.divmod(pairs, len(second.size))
    either = first.size[of_first] * second.size[of_second]
    if not either.any():
        return None
    won, other_won = first.success[of_first], second.success[of_second]
    of_each = either * (won & other_won), either * won, either * other_won, either
    a, b, c, d = (table.add(rows, weight, code, by_code) for by_code in of_each)
    return a, b, c, d


def _sums_by_group(
    table: _Sums, trials: tuple[Trials, Trials], atoms: tuple[Atom, Atom], data: Data
) -> tuple[int, int, int, int] | None:
    """Add sums of which only the first is not 0: a covariance by groups."""
    assert data.dependent is not None
    influences, sizes = np.zeros((2, len(data))), []
    for atom, of_atom, influence in zip(atoms, trials, influences, strict=True):
        won, trial = of_atom.counted
        share = float((won * trial).sum() / trial.sum()) if trial.any() else 0.0
        influence[of_atom.rows] = trial * (won - share)
        squares = influence[of_atom.rows] ** 2 / data.effective(atom, atom, of_atom.rows)
        sizes.append(float(squares.sum()))
    related = correlation(influences[0], influences[1], data.dependent)
    covariance = related * np.sqrt(sizes[0] * sizes[1])
    if not covariance:
        return None
    none = table.constant(0.0)
    return table.constant(covariance), none, none, none


class _Sums:
    """Sums over rows, each stored once: with weights of 1, squares are the weights themselves."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.constants: list[float] = []
        self._coefs: list[csr_array | None] = []
        self._known: dict[tuple[float, bytes], int] = {}

    def add(
        self, rows: np.ndarray, weight: np.ndarray, code: np.ndarray, by_code: np.ndarray
    ) -> int:
        """Index of a sum over rows of weights times a table (K, D) by their codes and decision."""
        if by_code.shape[1] == 1:  # at given decisions
            return self.constant(float((weight * by_code[code, 0]).sum()))
        form = Form.of_rows(rows, weight, code, by_code, self._n)
        digest = blake2b(form.coef.indices)
        digest.update(form.coef.data)
        return self._number(form.constant, form.coef, digest.digest())

    def constant(self, value: float) -> int:
        """Index of a sum that is the same for all decisions."""
        return self._number(value, None)

    def _number(self, constant: float, coef: csr_array | None, digest: bytes = b"") -> int:
        number = self._known.setdefault((constant, digest), len(self._coefs))
        if number == len(self._coefs):
            self.constants.append(constant)
            self._coefs.append(coef)
        return number

    def stacked(self) -> tuple[csr_array, np.ndarray]:
        """Rows and constants such that the sums are ``rows @ pi + constant``."""
        return stacked(self._coefs, self._n), np.array(self.constants)
