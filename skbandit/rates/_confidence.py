"""Confidence limits of rates that never fall below their level, combined if there are several.

For a rule fixed in advance, each row in a rate's denominator is a trial, each row in its
numerator a success. With unequal weights w, the number of trials is (sum w)^2 / sum w^2 (Kish
1965), an approximation that is too narrow if heavy and light rows have different rates.

A single rate has the limits of Clopper & Pearson (Biometrika 1934). The limits of training combine
them by MOVER, the method of variance estimates recovery (Zou & Donner, Statistics in Medicine 2008;
ratios: Donner & Zou 2012): the distances of the limits of the parts from their estimates stand in
for multiples of standard errors, and are added as these are, with correlations. Here it is as if
rates that share rows went wrong together (correlation 1), each of A rates at tail / A. MOVER
alone would do without this division for a rule fixed in advance; it is what the choice among many
thresholds costs, for which no theorem is known here. In simulations the limits of two rates then
err in 5 to 9 of 100 samples at a tail of 10%, whereas undivided ones err in 13 to 17. The
intervals of reports, near their level, are those of `_score_limits`.

Training chooses its rule on the same rows. For thresholds on given scores this costs nothing if
the limit is monotone in the threshold, as for recall or the false positive rate: let t* be
where the population's rate crosses the bound. A chosen threshold beyond t* passes the test only
if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import betaincinv

from skbandit.rates._atoms import atom_counts
from skbandit.rates._columns import Data
from skbandit.rates._expression import Rate
from skbandit.rates._forms import BoundConstraints
from skbandit.rates._kinds import Atom, Kind


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

    def lower(self, tail: float) -> np.ndarray:
        """Lower limit of the rate; 0 without trials."""
        return self.kind.of_share(clopper_pearson(self.share, self.trials, tail))

    def upper(self, tail: float) -> np.ndarray:
        """Upper limit of the rate; its maximum without trials."""
        return self.kind.of_share(1.0 - clopper_pearson(1.0 - self.share, self.trials, tail))


def effective_rows(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2 over the rows in the denominator.

    The smallest number if the expression has several atoms.
    """
    return min((_kish(trials_at(atom, data, positive)[1]) for atom in rate.atoms), default=0.0)


def trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
