"""Confidence limits of rates: Clopper-Pearson per atom, Bonferroni over atoms and constraints.

For a rule fixed in advance, x successes in n trials put the limit ``betaincinv(x, n - x + 1,
tail)`` above the population's rate with probability at most `tail` (Clopper & Pearson,
Biometrika 1934). Each row in a rate's denominator is a trial, each row in its numerator a
success. With unequal weights w, the number of trials is (sum w)^2 / sum w^2 (Kish 1965), an
approximation that is too narrow if heavy and light rows have different rates.

Training chooses its rule on the same rows. For thresholds on given scores this costs nothing if
the limit is monotone in the threshold, as for recall or the false positive rate: let t* be
where the population's rate crosses the bound. A chosen threshold beyond t* passes the test only
if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import betaincinv

from skbandit.exceptions import EmptyRateError
from skbandit.rates._binding._bind import atom_counts
from skbandit.rates._binding._data import Data
from skbandit.rates._binding._forms import BoundConstraints
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom, Kind

Interval = tuple[float, float]


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
        """Clopper and Pearson's lower limit of the rate; 0 without trials."""
        return self.kind.of_share(clopper_pearson(self.share, self.trials, tail))

    def upper(self, tail: float) -> np.ndarray:
        """Clopper and Pearson's upper limit of the rate; its maximum without trials."""
        return self.kind.of_share(1.0 - clopper_pearson(1.0 - self.share, self.trials, tail))


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


# --- two-sided, at given predictions ---------------------------------------------------


def interval(rate: Rate, data: Data, positive: np.ndarray, level: float) -> Interval:
    """Interval that covers the population's value with probability at least `level`.

    With k atoms, each has an interval at level 1 - (1 - level)/k; they are combined by
    interval arithmetic, which is conservative (Bonferroni).

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
    shares = [_share(atom, data, positive) for atom in rate.atoms]
    level_per_atom = 1 - (1 - level) / max(len(shares), 1)
    tail = (1 - level_per_atom) / 2
    low, high = (float(_limit(rate, sign, shares, tail)) for sign in (-1.0, 1.0))
    return low + 0.0, high + 0.0  # -0.0 prints badly


def effective_rows(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2 over the rows in the denominator.

    The smallest number if the expression has several atoms.
    """
    return min((_kish(_trials_at(atom, data, positive)[1]) for atom in rate.atoms), default=0.0)


def _share(atom: Atom, data: Data, positive: np.ndarray) -> SuccessShare:
    success, trial = _trials_at(atom, data, positive)
    if not trial.any():
        raise EmptyRateError(f"{atom!r}: no prediction falls in its denominator.")
    share = trial[success].sum() / trial.sum()
    return SuccessShare(atom.kind, np.asarray(share), np.asarray(_kish(trial)))


def _trials_at(atom: Atom, data: Data, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are successes, and the weight of each as a trial; shape (n,)."""
    success, trial = _trials(atom, data)
    rows, predicted = np.arange(len(positive)), positive.astype(int)
    return success[rows, predicted], trial[rows, predicted]


def _kish(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


# --- one-sided, as functions of the predictions ----------------------------------------


@dataclass(frozen=True)
class ConfidenceLimit:
    """One-sided confidence limit of a constrained expression, as a function of predictions.

    The weights of successes, of trials and of squared trials are sums over rows, each
    linear in the positive predictions pi: ``rows @ pi + constant``. The limits of the A
    atoms, each at tail/A, are combined by interval arithmetic.

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
    """

    rate: Rate
    sign: float
    tail: float
    rows: csr_array
    constant: np.ndarray

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
        return _limit(self.rate, self.sign, shares, self.tail / max(len(shares), 1))


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


def margins(
    limits: Iterable[ConfidenceLimit], goals: BoundConstraints, positive: np.ndarray
) -> np.ndarray:
    """Distance of each limit beyond the value at predictions pi; shape (K,), nan if undefined."""
    at = np.array([limit.at(positive) for limit in limits])
    return goals.sign * (at - goals.values(positive))


def _bind_limit(rate: Rate, sign: float, tail: float, data: Data) -> ConfidenceLimit:
    tables = []
    for atom in rate.atoms:
        success, trial = _trials(atom, data)
        tables += [trial * success, trial, trial**2]
    rows = vstack([csr_array((table[:, 1] - table[:, 0])[None, :]) for table in tables])
    constant = np.array([table[:, 0].sum() for table in tables])
    return ConfidenceLimit(rate, float(sign), tail, csr_array(rows), constant)


# --- both ------------------------------------------------------------------------------


def _trials(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a success, and its weight as a trial, if predicted 0 or 1; (n, 2)."""
    numerator, denominator, _ = atom_counts(atom, data)
    success = numerator > 0
    kind = atom.kind
    per_trial = np.where(success, kind.success[1], kind.failure)
    return success, denominator / per_trial


def _limit(rate: Rate, sign: float, shares: Sequence[SuccessShare], tail: float) -> np.ndarray:
    """Upper (sign = 1) or lower (sign = -1) limit of an expression, each atom's at `tail`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -sign * _lower(rate, -sign, shares, tail)


def _lower(rate: Rate, factor: float, shares: Sequence[SuccessShare], tail: float) -> np.ndarray:
    """Lower limit of `factor` times an expression, each atom's at `tail`."""
    low = np.asarray(factor * rate.constant)
    # The atoms of the denominator come after those of the terms.
    for (coefficient, _), share in zip(rate.terms, shares, strict=False):
        c = factor * coefficient
        low = low + (c * share.lower(tail) if c > 0 else c * share.upper(tail))
    if rate.denominator is None:
        return low
    of_divisor = shares[len(rate.terms) :]
    largest = -_lower(rate.denominator, -1.0, of_divisor, tail)
    smallest = _lower(rate.denominator, 1.0, of_divisor, tail)
    return np.where(low >= 0, low / largest, low / smallest)
