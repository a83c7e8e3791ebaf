"""Confidence limits of rates: exact ones of a single rate, combined where there are several.

For a rule fixed in advance, each row in a rate's denominator is a trial, each row in its
numerator a success. With unequal weights w, the number of trials is (sum w)^2 / sum w^2 (Kish
1965), an approximation that is too narrow if heavy and light rows have different rates.

A single rate has Clopper and Pearson's limits, which never fall below their level. The intervals
of reports for the difference or the ratio of two rates on different rows are Miettinen and
Nurminen's; those for anything else are MOVER's, with Wilson's limits and the correlation of
the rates, as estimated from the rows that they share (a group is part of the whole). Both cover
at the nominal level approximately: neither always less nor always more.

The limits of training combine Clopper and Pearson's by MOVER, as if rates that share rows went
wrong together (correlation 1), each of A rates at tail / A. MOVER alone would do without this
division for a rule fixed in advance; it is what the choice among many thresholds costs, for
which no theorem is known here. In simulations the limits of two rates then err in 5 to 9 of 100
samples at a tail of 10 %, whereas undivided ones err in 13 to 17.

Training chooses its rule on the same rows. For thresholds on given scores this costs nothing if
the limit is monotone in the threshold, as for recall or the false positive rate: let t* be
where the population's rate crosses the bound. A chosen threshold beyond t* passes the test only
if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import bisect
from scipy.sparse import csr_array, vstack

from skbandit.exceptions import EmptyRateError
from skbandit.rates._binding._bind import atom_counts
from skbandit.rates._binding._data import Data
from skbandit.rates._binding._forms import BoundConstraints
from skbandit.rates._binding._proportions import (
    LARGEST,
    clopper_pearson,
    difference_interval,
    ratio_interval,
    ratio_limits,
    sum_limit,
    wilson,
)
from skbandit.rates._expression import Rate, value_range
from skbandit.rates._kinds import Atom, Kind

Interval = tuple[float, float]
Method = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class SuccessShare:
    """Share q of successes among the trials of one atom, at one or at C predictions.

    Parameters
    ----------
    kind : Kind
        Converts the share to the rate, which is increasing in it.
    share, trials : ndarray of shape () or (C,)
        The share, and the (effective) number of trials behind it.
    """

    kind: Kind
    share: np.ndarray
    trials: np.ndarray

    def lower(self, tail: float, method: Method = clopper_pearson) -> np.ndarray:
        """Lower limit of the rate; 0 without trials."""
        return self.kind.of_share(method(self.share, self.trials, tail))

    def upper(self, tail: float, method: Method = clopper_pearson) -> np.ndarray:
        """Upper limit of the rate; its maximum without trials."""
        return self.kind.of_share(1.0 - method(1.0 - self.share, self.trials, tail))


# --- two-sided, at given predictions ---------------------------------------------------


def interval(rate: Rate, data: Data, positive: np.ndarray, level: float) -> Interval:
    """Interval that covers the population's value with probability `level`.

    Parameters
    ----------
    rate : Rate
        Expression without open group slots.
    data : Data
        The n rows it is measured on.
    positive : ndarray of shape (n,)
        Predictions, 0 and 1.
    level : float
        Confidence level.

    Returns
    -------
    tuple of (float, float)
        Infinite where a divisor may be 0.

    Raises
    ------
    EmptyRateError
        If no prediction falls in the denominator of an atom.
    """
    tail = (1.0 - level) / 2.0
    parts = _Parts.measure(rate, data, positive)
    for method in (_of_one, _by_score):
        if (found := method(parts, tail)) is not None:
            break
    else:
        found = _by_mover(parts, tail, value_range(rate))
    low, high = found
    return low + 0.0, high + 0.0  # -0.0 prints badly


@dataclass(frozen=True)
class _Parts:
    """A ratio N/D of sums of A different measured atoms.

    Attributes
    ----------
    shares : list of SuccessShare
    numerator, denominator : ndarray of shape (A + 1,)
        Coefficients; the last is the constant.
    influence : ndarray of shape (A, n)
        Effect of each row on each share, up to a factor per share; their products are
        covariances.
    trials : ndarray of bool, shape (A, n)
        Whether each row is a trial.
    """

    shares: list[SuccessShare]
    numerator: np.ndarray
    denominator: np.ndarray
    influence: np.ndarray
    trials: np.ndarray

    @classmethod
    def measure(cls, rate: Rate, data: Data, positive: np.ndarray) -> _Parts:
        atoms = {atom.key: atom for atom in rate.atoms}
        place = {key: index for index, key in enumerate(atoms)}
        sides = np.zeros((2, len(atoms) + 1))
        sides[1, -1] = 1.0 if rate.denominator is None else 0.0
        for side, part in zip(sides, (rate, rate.denominator), strict=True):
            for coefficient, atom in () if part is None else part.terms:
                side[place[atom.key]] += coefficient
            side[-1] += 0.0 if part is None else part.constant
        shares, influence = [], np.zeros((len(atoms), len(data)))
        trials = np.zeros((len(atoms), len(data)), dtype=bool)
        for index, atom in enumerate(atoms.values()):
            share, success, trial = _share(atom, data, positive)
            shares.append(share)
            influence[index] = trial * (success - share.share)
            trials[index] = trial > 0
        return cls(shares, sides[0], sides[1], influence, trials)

    @property
    def apart(self) -> bool:
        """Whether no row is a trial of two atoms."""
        return bool((self.trials.sum(axis=0) <= 1).all())

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the shares; 0 with a share of 0 or 1, whose rows do not vary."""
        product = self.influence @ self.influence.T
        spread = np.sqrt(np.diag(product))
        scale = np.outer(spread, spread)
        found = np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
        np.fill_diagonal(found, 1.0)
        return found


def _of_one(parts: _Parts, tail: float) -> Interval | None:
    """Clopper and Pearson's interval, for functions of one atom."""
    if len(parts.shares) > 1:
        return None
    ends = [float(end) for s in parts.shares for end in (s.lower(tail), s.upper(tail))]
    (n, n0), (d, d0) = (
        (side[0], side[-1]) if len(side) > 1 else (0.0, side[-1])
        for side in (parts.numerator, parts.denominator)
    )
    found = [_divided(n0 + n * end, d0 + d * end) for end in ends or [0.0]]
    return min(found), max(found)


def _divided(numerator: float, divisor: float) -> float:
    if divisor == 0:
        return float(np.copysign(np.inf, numerator))
    return numerator / divisor


def _by_score(parts: _Parts, tail: float) -> Interval | None:
    """Miettinen and Nurminen's interval, for scaled and shifted p1 - p2 and p1 / p2."""
    if len(parts.shares) != 2 or not parts.apart or any(s.kind.curved for s in parts.shares):
        return None
    (n1, n2, n0), (d1, d2, d0) = parts.numerator, parts.denominator
    first, second = parts.shares
    p1, m1, p2, m2 = (float(f) for s in (first, second) for f in (s.share, s.trials))
    if d1 == d2 == 0 and n1 == -n2:
        low, high = difference_interval(p1, m1, p2, m2, tail)
        return _affine(low, high, n1 / d0, n0 / d0)
    if d1 == d0 == n0 == 0:
        low, high = ratio_interval(p1, m1, p2, m2, tail)
        return _affine(low, high, n1 / d2, n2 / d2)
    if d2 == d0 == n0 == 0:
        low, high = ratio_interval(p2, m2, p1, m1, tail)
        return _affine(low, high, n2 / d1, n1 / d1)
    return None


def _affine(low: float, high: float, factor: float, shift: float) -> Interval:
    ends = [factor * end + shift for end in (low, high)]
    return min(ends), max(ends)


def _by_mover(parts: _Parts, tail: float, reach: Interval) -> Interval:
    """MOVER with Wilson's limits and the correlations of the atoms, within the range `reach`."""
    values = np.array([float(share.kind.of_share(share.share)) for share in parts.shares])
    below = values - [float(share.lower(tail, wilson)) for share in parts.shares]
    above = [float(share.upper(tail, wilson)) for share in parts.shares] - values
    correlation = parts.correlation
    (*n, n0), (*d, d0) = parts.numerator, parts.denominator
    above_line, below_line = np.array(n), np.array(d)

    def lower(sign: float, t: float) -> float:
        """Lower limit of sign * (N - tD)."""
        coefficients = sign * (above_line - t * below_line)
        constant = sign * (n0 - t * d0)
        return constant + sum_limit(coefficients, values, below, above, correlation)

    if not below_line.any():
        ends = lower(1.0, 0.0) / d0, -lower(-1.0, 0.0) / d0
    else:
        divisor = below_line @ values + d0
        estimate = float((above_line @ values + n0) / divisor) if divisor > 0 else np.inf
        ends = _end(partial(lower, 1.0), estimate, -1.0), _end(partial(lower, -1.0), estimate, 1.0)
    return max(ends[0], reach[0]), min(ends[1], reach[1])


def _end(limit: Callable[[float], float], estimate: float, sign: float) -> float:
    """The t nearest to the estimate, above or below, at which a limit is no longer negative."""
    if np.isinf(estimate):
        if sign > 0:
            return np.inf
        estimate = LARGEST
    step = 1e-3 * max(1.0, abs(estimate))
    inside = estimate
    while limit(outside := inside + sign * step) < 0:
        inside, step = outside, 2.0 * step
        if abs(inside) > LARGEST:
            return sign * np.inf
    return float(bisect(limit, inside, outside, xtol=1e-12)) if limit(inside) < 0 else inside


def effective_rows(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2 over the rows in the denominator.

    The smallest number if the expression has several atoms.
    """
    return min((_kish(_trials_at(atom, data, positive)[1]) for atom in rate.atoms), default=0.0)


def _share(
    atom: Atom, data: Data, positive: np.ndarray
) -> tuple[SuccessShare, np.ndarray, np.ndarray]:
    """Share of one atom at given predictions, with `_trials_at`."""
    success, trial = _trials_at(atom, data, positive)
    if not trial.any():
        raise EmptyRateError(f"{atom!r}: no prediction falls in its denominator.")
    share = trial[success].sum() / trial.sum()
    return SuccessShare(atom.kind, np.asarray(share), np.asarray(_kish(trial))), success, trial


def _trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are successes, and the weight of each as a trial; shape (n,)."""
    success, trial = trials_if_predicted(atom, data)
    rows, predicted = np.arange(len(positive)), positive.astype(int)
    return success[rows, predicted], trial[rows, predicted]


def _kish(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


# --- one-sided, as functions of the predictions ----------------------------------------


@dataclass(frozen=True)
class ConfidenceLimit:
    """One-sided confidence limit of a constrained expression, as a function of predictions.

    The weights of successes, of trials and of squared trials are sums over rows, each
    linear in the positive predictions pi: ``rows @ pi + constant``. Clopper and Pearson's
    limits of the A atoms, each at tail/A, are combined by MOVER.

    Parameters
    ----------
    rate : Rate
        The bounded expression.
    sign : float
        1 for an upper limit (of an expression bounded from above), -1 for a lower one.
    tail : float
        Probability, at most, that the population's value is beyond the limit.
    rows : csr_array of shape (3 A, n)
    constant : ndarray of shape (3 A,)
    shared : ndarray of shape (A, A)
        1 for atoms that share rows (and for each with itself), else 0.
    """

    rate: Rate
    sign: float
    tail: float
    rows: csr_array
    constant: np.ndarray
    shared: np.ndarray

    def columns(self, rows: np.ndarray) -> ConfidenceLimit:
        """Keep some of the n rows; the others are counted as predicted negative."""
        return replace(self, rows=self.rows[:, rows])

    def at(self, positive: np.ndarray) -> float:
        """The limit at predictions pi of shape (n,)."""
        return float(self.of_sums((self.rows @ positive)[:, None])[0])

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Limits of shape (C,) from the sums ``rows @ pi`` at C predictions, shape (3 A, C)."""
        counted = sums + self.constant[:, None]
        success, trial, squared = counted[0::3], counted[1::3], counted[2::3]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(trial > 0, np.clip(success / trial, 0.0, 1.0), 0.0)
            trials = np.where(trial > 0, trial**2 / squared, 0.0)
        shares = [
            SuccessShare(atom.kind, share[a], trials[a]) for a, atom in enumerate(self.rate.atoms)
        ]
        return _limit(self.rate, self.sign, shares, self.shared, self.tail / max(len(shares), 1))


def confidence_limits(
    goals: BoundConstraints, data: Data, margin: float
) -> tuple[ConfidenceLimit, ...]:
    """One limit per measured constraint; the probability that any is wrong is at most `margin`.

    Parameters
    ----------
    goals : BoundConstraints
        Constraints over n rows.
    data : Data
        The rows they are bound to.
    margin : float
        Probability, at most, that the population's value is beyond the limit of any
        constraint.

    Returns
    -------
    tuple of ConfidenceLimit
        In the order of the constraints that were not skipped.
    """
    measured = np.flatnonzero(goals.n_rows > 0)
    return tuple(
        _bind_limit(goals.constraints[k].rate, goals.sign[k], margin / len(measured), data)
        for k in measured
    )


def _bind_limit(rate: Rate, sign: float, tail: float, data: Data) -> ConfidenceLimit:
    tables, counted = [], []
    for atom in rate.atoms:
        success, trial = trials_if_predicted(atom, data)
        counted.append((trial > 0).any(axis=1))
        tables += [trial * success, trial, trial**2]
    rows = vstack([csr_array((table[:, 1] - table[:, 0])[None, :]) for table in tables])
    constant = np.array([table[:, 0].sum() for table in tables])
    at = np.array(counted, dtype=float).reshape(len(counted), -1)
    shared = (at @ at.T > 0).astype(float)
    return ConfidenceLimit(rate, float(sign), tail, csr_array(rows), constant, shared)


# --- both ------------------------------------------------------------------------------


def trials_if_predicted(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a success, and its weight as a trial, if predicted 0 or 1; (n, 2)."""
    numerator, denominator, _ = atom_counts(atom, data)
    success = numerator > 0
    kind = atom.kind
    per_trial = np.where(success, kind.success[1], kind.failure)
    return success, denominator / per_trial


def _limit(
    rate: Rate, sign: float, shares: Sequence[SuccessShare], shared: np.ndarray, tail: float
) -> np.ndarray:
    """Upper (sign = 1) or lower (sign = -1) limit of an expression, each atom's at `tail`."""
    n = len(rate.terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(shares) == 1 and n:
            ((coefficient, _),) = rate.terms
            factor = -sign * coefficient
            end = shares[0].lower(tail) if factor > 0 else shares[0].upper(tail)
            return -sign * (-sign * rate.constant + factor * end)
        value, moved = _distances(rate, -sign, shares[:n], tail)
        down = np.sqrt(_crossed(moved, moved, shared[:n, :n]))
        if rate.denominator is None:
            return -sign * (value - down)
        divisor, low = _distances(rate.denominator, 1.0, shares[n:], tail)
        _, high = _distances(rate.denominator, -1.0, shares[n:], tail)
        below, above = (np.sqrt(_crossed(part, part, shared[n:, n:])) for part in (low, high))
        crossed_below, crossed_above = (
            _crossed(moved, part, shared[:n, n:]) for part in (low, high)
        )
        crossed = crossed_below, crossed_above
        return -sign * ratio_limits(value, down, divisor, below, above, crossed)


def _distances(
    rate: Rate, factor: float, shares: Sequence[SuccessShare], tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """Value of `factor` times a sum, and how far each of its A terms may fall, (A, ...)."""
    value, moved = np.asarray(factor * rate.constant), []
    for (coefficient, _), share in zip(rate.terms, shares, strict=True):
        c = factor * coefficient
        at = share.kind.of_share(share.share)
        end = share.lower(tail) if c > 0 else share.upper(tail)
        value = value + c * at
        moved.append(abs(c) * np.abs(at - end))
    return value, np.array(moved).reshape(len(moved), *value.shape)


def _crossed(one: np.ndarray, other: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Sum over pairs of atoms that share rows of the products of their distances."""
    return np.einsum("i...,ij,j...->...", one, shared, other)
