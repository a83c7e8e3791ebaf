"""Limits of all constraints at once, at many predictions: Wilson's, joined by MOVER.

The constraint N/D <= t holds if N - tD <= 0, a sum of rates with coefficients, as D > 0. Wilson's
score limit of each rate, at one normal quantile z, lies some distance from its estimate. MOVER
(Zou & Donner, Statistics in Medicine 2008; method 10 of Newcombe 1998 for a difference) adds the
distances as if they were standard errors, with the correlations of rates that share rows, which
are estimated from these rows. The upper limit of N - tD covers at the level of z approximately:
neither always less nor always more. For a level that is promised, rates of few trials have Clopper
and Pearson's limit in place of Wilson's.

Everything is a function of a few sums over rows, each linear in the positive predictions. Along
the thresholds of a score they are running sums, so the limits at all n + 1 thresholds cost little
more than those at one. The intervals of reports are two such limits, at given predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtr, ndtri

from skbandit.measure._columns import Data
from skbandit.measure._confidence import (
    clopper_pearson,
    dependence_at,
    trials_at,
    trials_if_predicted,
    wilson_score,
)
from skbandit.measure._forms import RATE_TOL, BoundConstraints
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom, Kind
from skbandit.utils._trials import Dependence, correlation

MOST_WIDENING = 1e4
"""Factor of standard errors beyond which nothing is known, as of one group; inf times 0 is nan."""

FEW_TRIALS = 10.0
"""Trials below which a limit is exact if a level is promised: Wilson's cover well on average over
all rates, but far too rarely at some (.53 instead of .8 of the times, of two trials).
"""

USUAL_TAIL = 0.1
"""Tail of the limits whose widening by few groups stands for that of other levels."""

LARGEST = 1e12
"""Search for the end of an interval of a ratio stops here; beyond it, the end is infinite."""


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
    """What limits take from C predictions, whatever the bounds.

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

    def take(self, at: np.ndarray) -> MeasuredShares:
        """Some of the predictions."""
        value = self.value[:, at]
        if self.below is None or self.above is None or self.correlations is None:
            return MeasuredShares(value)
        return MeasuredShares(value, self.below[:, at], self.above[:, at], self.correlations[:, at])


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

    def promised(self, level: float, choices: int | np.ndarray = 0) -> ScoreLimits:
        """The limits for a level that is promised.

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
        """Clopper and Pearson's limits of single rates, whatever the trials: see `_confidence`."""
        return replace(self, exact_below=np.inf, widening=None)

    def columns(self, rows: np.ndarray) -> ScoreLimits:
        """Keep some of the n rows; the others are counted as predicted negative."""
        return replace(self, rows=self.rows[:, rows])

    def with_rows_of(self, other: ScoreLimits) -> ScoreLimits:
        """The same limits with the other's rows, if these are equal, so that one memory serves."""
        same = self.rows.shape == other.rows.shape and all(
            np.array_equal(getattr(self.rows, part), getattr(other.rows, part))
            for part in ("indptr", "indices", "data")
        )
        return replace(self, rows=other.rows) if same else self

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
        """What `slack_of` needs of C predictions; no bound counts, so one will do for many."""
        sums = sums + self.constant[:, None]
        if not len(self.shares):
            return MeasuredShares(np.zeros((0, sums.shape[1])))
        counted = [_share_of(share, sums) for share in self.shares]
        value = np.stack(
            [share.kind.of_share(q) for share, (q, _) in zip(self.shares, counted, strict=True)]
        )
        if z == 0 and all(trials.all() for _, trials in counted):
            return MeasuredShares(value)
        distances = [
            self._to_limits(share, *of_share, rate, z)
            for share, of_share, rate in zip(self.shares, counted, value, strict=True)
        ]
        below, above = (np.stack(parts) for parts in zip(*distances, strict=True))
        correlations = np.zeros((len(self.pairs), sums.shape[1]))
        for row, pair in zip(correlations, self.pairs, strict=True):
            row[:] = self._correlation(pair, sums)
        return MeasuredShares(value, below, above, correlations)

    def slack_of(self, measured: MeasuredShares, which: np.ndarray | None = None) -> np.ndarray:
        """`slack` at predictions that were measured; of all constraints, or of some by number."""
        which = np.arange(len(self.offset)) if which is None else which
        coefficients, value = self.coefficients[which], measured.value
        slack = -(self.offset[which, None] + coefficients @ value)
        if measured.below is not None:
            distances = _distances(coefficients, measured, self.pairs)
            slack -= distances if self.widening is None else self.widening[which, None] * distances
        divisors = self.divisor[which] @ value + self.divisor_offset[which, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(divisors > 0, slack / divisors, -np.inf)

    def can_reuse(self, other: ScoreLimits) -> bool:
        """Whether the other's result of `measure`, for any sums, is this one's, too."""
        return (
            self.rows is other.rows
            and self.exact_below == other.exact_below
            and self.shares == other.shares
            and self.pairs == other.pairs
            and np.array_equal(self.constant, other.constant)
        )

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

    def _to_limits(
        self, share: _Share, q: np.ndarray, trials: np.ndarray, rate: np.ndarray, z: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances from the rate of one atom to both its limits; each of shape (C,)."""
        of_share = share.kind.of_share
        low = high = rate
        if z > 0:
            low = of_share(self._lower(q, trials, z))
            high = of_share(1.0 - self._lower(1.0 - q, trials, z))
        none = trials == 0
        ends = float(of_share(0.0)), float(of_share(1.0))
        low, high = np.where(none, ends[0], low), np.where(none, ends[1], high)
        return np.maximum(rate - low, 0.0), np.maximum(high - rate, 0.0)

    def _lower(self, q: np.ndarray, trials: np.ndarray, z: float) -> np.ndarray:
        """Lower limit of a share."""
        low = wilson_score(q, trials, z)
        few = (trials > 0) & (trials < self.exact_below)
        if few.any():
            low[few] = clopper_pearson(q[few], trials[few], float(ndtr(-z)))
        return low

    def _correlation(self, pair: _Pair, sums: np.ndarray) -> np.ndarray:
        """Correlation of two atoms' shares by the rows they share; shape (C,)."""
        first, second = self.shares[pair.first], self.shares[pair.second]
        (p, _), (q, _) = _share_of(first, sums), _share_of(second, sums)
        both, of_first, of_second, either = (sums[index] for index in pair.sums)
        covariance = both - q * of_first - p * of_second + p * q * either
        spread = np.sqrt(_squares(first, sums, p) * _squares(second, sums, q))
        correlation = np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0)
        return np.clip(correlation, -1.0, 1.0)


def reached_quantiles(at_rates: np.ndarray, at_limits: np.ndarray, z: float) -> np.ndarray:
    """Normal quantile at which each limit meets its bound, from its slacks at 0 and at z > 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = z * at_rates / (at_rates - at_limits)
    exact = np.where(at_rates >= -RATE_TOL, np.inf, -np.inf)  # without width
    return np.where(np.isfinite(quantile), quantile, exact)


def _distances(
    coefficients: np.ndarray, measured: MeasuredShares, pairs: Sequence[_Pair]
) -> np.ndarray:
    """How far upper limits of K sums of rates lie above their estimates, by MOVER; (K, C)."""
    assert measured.below is not None and measured.above is not None
    assert measured.correlations is not None
    below, above = measured.below, measured.above

    def moved(a: int, rows: np.ndarray) -> np.ndarray:
        c = coefficients[rows, a, None]
        return c * np.where(c > 0, above[a], below[a])

    square = np.zeros((len(coefficients), below.shape[1]))
    for a, column in enumerate(coefficients.T):  # most sums have few of the rates
        rows = np.flatnonzero(column)
        square[rows] += moved(a, rows) ** 2
    for pair, r in zip(pairs, measured.correlations, strict=True):
        rows = np.flatnonzero(coefficients[:, pair.first] * coefficients[:, pair.second])
        square[rows] += 2.0 * r * moved(pair.first, rows) * moved(pair.second, rows)
    return np.sqrt(np.maximum(square, 0.0))


def _share_of(share: _Share, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of successes and Kish's number of trials; both 0 without trials."""
    success, trial, squared = sums[share.success], sums[share.trial], sums[share.squared_trial]
    has_trials = trial > 0
    q = np.divide(success, trial, out=np.zeros_like(trial), where=has_trials)
    trials = np.divide(
        trial**2, squared, out=np.zeros_like(trial), where=has_trials & (squared > 0)
    )
    return np.clip(q, 0.0, 1.0), trials


def _squares(share: _Share, sums: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of w^2 (success - q)^2 over the trials."""
    total = (1.0 - 2.0 * q) * sums[share.squared_success] + q * q * sums[share.squared_trial]
    return np.maximum(total, 0.0)


def interval(rate: Rate, data: Data, positive: np.ndarray, level: float) -> tuple[float, float]:
    """Interval that covers the population's value with probability `level`.

    Clopper and Pearson's of a single rate, else MOVER's, of Wilson's limits or, below 10 trials,
    Clopper and Pearson's: its ends are the bounds without slack.

    Parameters
    ----------
    rate : Rate
        Expression without open group slots, defined at these predictions.
    data : Data
        The n rows it is measured on.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1.
    level : float
        Confidence level.

    Returns
    -------
    tuple of (float, float)
        Infinite where a divisor may be 0; nan for costs by a column.
    """
    if any(atom.amount is not None for atom in rate.atoms):  # no shares of trials
        return np.nan, np.nan

    def counted(atom: Atom) -> tuple[np.ndarray, np.ndarray]:
        success, trial = trials_at(atom, data, positive)
        return success[:, None], trial[:, None]  # sums without cancellation

    tail = (1.0 - level) / 2.0
    effects = {
        atom.key: dependence_at(*trials_at(atom, data, positive), atom, data) for atom in rate.atoms
    }
    if any(effect.groups <= 1.0 < effect.rows for effect in effects.values()):
        return np.nan, np.nan  # nothing is known of how much groups differ
    signs, bounds = np.array([1.0, -1.0]), np.zeros(2)
    limits = _limits([rate, rate], signs, bounds, counted, data, len(data), effects, tail)
    limits = limits.exact() if len(limits.shares) == 1 else replace(limits, exact_below=FEW_TRIALS)
    z = -float(ndtri(tail))
    measured = limits.measure(np.zeros((len(limits.constant), 1)), z)
    high, low = (_bound_without_slack(limits, measured, k) for k in range(2))
    return -low + 0.0, high + 0.0  # -0.0 prints badly


def _bound_without_slack(limits: ScoreLimits, measured: MeasuredShares, k: int) -> float:
    """How far the bound of constraint k must move outwards to meet its limit."""

    def slack(by: float, of: MeasuredShares = measured) -> float:
        return float(limits.relaxed(k, by).slack_of(of, np.array([k]))[0, 0])

    estimate = -slack(0.0, MeasuredShares(measured.value))
    if np.isinf(estimate):
        return np.inf
    step = max(-slack(estimate), 0.0)
    if not limits.divisor[k].any() or step == 0:
        return estimate + step
    while slack(estimate + step) < 0:
        step *= 2.0
        if step > LARGEST:
            return np.inf
    return float(brentq(slack, estimate, estimate + step, xtol=1e-12))


def score_limits(
    goals: BoundConstraints,
    data: Data,
    decided: np.ndarray | None = None,
    tail: float = USUAL_TAIL,
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
        and of unequal weights are found; None is for Kish's numbers of rows.
    tail : float
        Of the limits, for the widening by few groups.

    Returns
    -------
    ScoreLimits
    """
    measured = np.flatnonzero(goals.n_rows > 0)
    rates = [goals.constraints[k].rate for k in measured]
    sign, bound = goals.sign[measured], goals.bound[measured]
    counted = partial(trials_if_predicted, data=data)
    effects = None
    if decided is not None:
        atoms = {atom.key: atom for rate in rates for atom in rate.atoms}
        effects = {
            key: dependence_at(*trials_at(atom, data, decided), atom, data)
            for key, atom in atoms.items()
        }
    return _limits(rates, sign, bound, counted, data, data.n_indicators, effects, tail)


def _limits(
    rates: Sequence[Rate],
    signs: np.ndarray,
    bounds: np.ndarray,
    counted: Callable[[Atom], tuple[np.ndarray, np.ndarray]],
    data: Data,
    n: int,
    effects: Mapping[Any, Dependence] | None = None,
    tail: float = 0.5,
) -> ScoreLimits:
    """Limits of constraints ``sign * (rate - bound) <= 0`` over n indicators of decisions.

    `counted` returns successes and trials of an atom, by decision (rows, D) or as they are
    (rows, 1). `effects` are those of dependent rows and unequal weights, by the keys of atoms;
    they leave fewer trials.
    """
    widening = {
        key: min(effect.widening(tail), MOST_WIDENING) for key, effect in (effects or {}).items()
    }
    atoms: dict[tuple[object, ...], Atom] = {}
    for rate in rates:
        atoms |= {atom.key: atom for atom in rate.atoms}
    place = {key: index for index, key in enumerate(atoms)}
    table = _Sums()
    counts = [counted(atom) for atom in atoms.values()]
    shares = []
    for atom, (success, trial) in zip(atoms.values(), counts, strict=True):
        won, squared = trial * success, trial**2 / data.effective(atom, atom)
        squared = squared * widening.get(atom.key, 1.0) ** 2
        numbers = [table.add(part) for part in (won, trial, squared * success, squared)]
        shares.append(_Share(atom.kind, *numbers))
    numbered = list(atoms.values())
    pairs = [
        _pair(
            table,
            a,
            b,
            counts,
            data.effective(numbered[a], numbered[b])
            / (widening.get(numbered[a].key, 1.0) * widening.get(numbered[b].key, 1.0)),
            data.dependent if effects is not None else None,
        )
        for a, b in _together(rates, place)
    ]
    sizes = len(rates), len(atoms)
    coefficients, divisor = np.zeros(sizes), np.zeros(sizes)
    offset, divisor_offset = np.zeros(len(rates)), np.ones(len(rates))
    for k, (rate, sign, bound) in enumerate(zip(rates, signs, bounds, strict=True)):
        _add_terms(rate, sign, coefficients[k], place)
        offset[k] = sign * rate.constant
        if rate.denominator is not None:
            _add_terms(rate.denominator, 1.0, divisor[k], place)
            divisor_offset[k] = rate.denominator.constant
        coefficients[k] -= sign * bound * divisor[k]
        offset[k] -= sign * bound * divisor_offset[k]
    rows, constant = table.stacked(n)
    return ScoreLimits(
        rows,
        constant,
        tuple(shares),
        tuple(pair for pair in pairs if pair is not None),
        coefficients,
        offset,
        divisor,
        divisor_offset,
    )


def _together(rates: Sequence[Rate], place: dict[tuple[object, ...], int]) -> list[tuple[int, int]]:
    """Pairs of different atoms that some expression combines."""
    pairs = set()
    for rate in rates:
        used = sorted({place[atom.key] for atom in rate.atoms})
        pairs |= {(a, b) for i, a in enumerate(used) for b in used[i + 1 :]}
    return sorted(pairs)


def _pair(
    table: _Sums,
    a: int,
    b: int,
    counts: list[tuple[np.ndarray, np.ndarray]],
    effective: np.ndarray,
    group: np.ndarray | None,
) -> _Pair | None:
    """The sums of two atoms' common rows; None without any.

    With groups of dependent rows, at given decisions, sums that have the correlation by groups.
    """
    (won, trial), (other_won, other_trial) = counts[a], counts[b]
    if group is not None and trial.shape[1] == 1:
        return _pair_by_group(table, a, b, counts, effective, group)
    either = trial * other_trial / effective
    if not either.any():
        return None
    parts = (either * (won & other_won), either * won, either * other_won, either)
    both, first, second, all_of_them = (table.add(part) for part in parts)
    return _Pair(a, b, (both, first, second, all_of_them))


def _pair_by_group(
    table: _Sums,
    a: int,
    b: int,
    counts: list[tuple[np.ndarray, np.ndarray]],
    effective: np.ndarray,
    group: np.ndarray,
) -> _Pair | None:
    """Sums of which only the first is not 0: a covariance that gives the correlation by groups."""
    influences, sizes = [], []
    for won, trial in (counts[a], counts[b]):
        share = float((won * trial).sum() / trial.sum()) if trial.any() else 0.0
        influences.append((trial * (won - share))[:, 0])
        sizes.append(float((influences[-1] ** 2).sum()))
    factor = 1.0 / float(np.mean(effective))
    covariance = (
        correlation(influences[0], influences[1], group) * np.sqrt(sizes[0] * sizes[1]) * factor
    )
    if not covariance:
        return None
    none = table.add(np.zeros((1, 1)))
    return _Pair(a, b, (table.add(np.full((1, 1), covariance)), none, none, none))


def _add_terms(
    rate: Rate, factor: float, into: np.ndarray, place: dict[tuple[object, ...], int]
) -> None:
    for coefficient, atom in rate.terms:
        into[place[atom.key]] += factor * coefficient


class _Sums:
    """Sums over rows, each counted once: with weights of 1, squares are the weights themselves."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._known: dict[bytes, int] = {}

    def add(self, contributions: np.ndarray) -> int:
        """Return the index of a sum of contributions, shape (rows, D) or (rows, 1)."""
        exact = np.asarray(contributions, dtype=float)
        number = self._known.setdefault(exact.tobytes(), len(self._parts))
        if number == len(self._parts):
            self._parts.append(exact)
        return number

    def stacked(self, n: int) -> tuple[csr_array, np.ndarray]:
        """Rows and constants such that the sums are ``rows @ pi + constant``."""
        constant = np.array([part[:, 0].sum() for part in self._parts])
        moved = [(part[:, 1:] - part[:, :1]).ravel() for part in self._parts]
        columns = [np.flatnonzero(part) for part in moved]
        data = [part[at] for part, at in zip(moved, columns, strict=True)]
        indptr = np.cumsum([0, *map(len, columns)])
        stored = np.concatenate([np.zeros(0), *data])
        indices = np.concatenate([np.zeros(0, dtype=int), *columns])
        return csr_array((stored, indices, indptr), shape=(len(moved), n)), constant
