"""How far inside its bound a rate must be on the training rows to hold on new ones.

Clopper & Pearson (Biometrika 1934): for a rule fixed in advance, x successes in n trials leave
the population's rate below ``betaincinv(x, n - x + 1, tail)`` with probability `tail` at most.
The rules here are chosen on the same rows. For the thresholds of given scores that costs
nothing where the limit moves one way with the threshold, as for recall or false positives: let
t* be where the population's rate crosses the bound. A chosen threshold beyond t* passes the
test only if t* passes too, and t* is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import betaincinv

from skbandit.rates._binding._bind import BoundConstraints, atom_counts
from skbandit.rates._binding._data import Data
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom


@dataclass(frozen=True)
class Shares:
    """Shares of successes, each in so many trials; of one atom, at C vectors of answers.

    Parameters
    ----------
    share, trials : ndarray of shape (C,)
    hit : float
        What a success counts above and below: the rate is hit q / (hit q + 1 - q), which is
        the share q but for F1, where a hit counts twice.
    """

    share: np.ndarray
    trials: np.ndarray
    hit: float

    def lower(self, tail: float) -> np.ndarray:
        """Clopper and Pearson's lower limit of the rate; 0 without trials."""
        return self._rate(_lower_share(self.share, self.trials, tail))

    def upper(self, tail: float) -> np.ndarray:
        """Clopper and Pearson's upper limit of the rate; 1 without trials."""
        return self._rate(1.0 - _lower_share(1.0 - self.share, self.trials, tail))

    def _rate(self, share: np.ndarray) -> np.ndarray:
        return self.hit * share / (self.hit * share + 1.0 - share)


@dataclass(frozen=True)
class Limit:
    """The one-sided confidence limit of one constrained expression, as a function of answers.

    Each atom's successes, trials and squared trials are sums over rows, linear in the positive
    answers pi: ``rows @ pi + constant``. The limits of A atoms, each at tail/A, are combined
    by interval arithmetic: conservative (Bonferroni).

    Parameters
    ----------
    rate : Rate
        What is bounded.
    sign : float
        1 for an upper limit (of what is bounded from above), -1 for a lower one.
    tail : float
        Probability, at most, that the population's rate is beyond the limit.
    rows : csr_array of shape (3 A, n)
    constant : ndarray of shape (3 A,)
    """

    rate: Rate
    sign: float
    tail: float
    rows: csr_array
    constant: np.ndarray

    def columns(self, rows: np.ndarray) -> Limit:
        """Keep some of the n rows; the others' answers cancel out, and count as negative."""
        return replace(self, rows=self.rows[:, rows])

    def at(self, positive: np.ndarray) -> float:
        """The limit at answers pi of shape (n,)."""
        return float(self.of_sums((self.rows @ positive)[:, None])[0])

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Limits of shape (C,) at C vectors of answers; sums are ``rows @ pi``, (3 A, C)."""
        counted = sums + self.constant[:, None]
        won, tried, squared = counted[0::3], counted[1::3], counted[2::3]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(tried > 0, np.clip(won / tried, 0.0, 1.0), 0.0)
            trials = np.where(tried > 0, tried**2 / squared, 0.0)
            atoms = [
                Shares(share[a], trials[a], _hit(atom)) for a, atom in enumerate(self.rate.atoms)
            ]
            return -self.sign * _lower(self.rate, -self.sign, atoms, self.tail / max(len(atoms), 1))


def confidence_limits(goals: BoundConstraints, data: Data, margin: float) -> tuple[Limit, ...]:
    """One limit for each constraint that is measured; together wrong with probability `margin`.

    Parameters
    ----------
    goals : BoundConstraints
        Constraints over n rows.
    data : Data
        What they are bound to.
    margin : float
        Probability, at most, that for any of them the population is beyond its limit.

    Returns
    -------
    tuple of Limit
        In the order of the constraints that were not skipped.
    """
    measured = np.flatnonzero(goals.n_rows > 0)
    return tuple(
        _bind_limit(goals.constraints[k].rate, goals.sign[k], margin / len(measured), data)
        for k in measured
    )


def margins(limits: Iterable[Limit], goals: BoundConstraints, positive: np.ndarray) -> np.ndarray:
    """How far each limit is beyond the value at answers pi; shape (K,), nan if undefined."""
    at = np.array([limit.at(positive) for limit in limits])
    return goals.sign * (at - goals.values(positive))


def _bind_limit(rate: Rate, sign: float, tail: float, data: Data) -> Limit:
    tables = [table for atom in rate.atoms for table in _trials(atom, data)]
    rows = vstack([csr_array((table[:, 1] - table[:, 0])[None, :]) for table in tables])
    constant = np.array([table[:, 0].sum() for table in tables])
    return Limit(rate, float(sign), tail, csr_array(rows), constant)


def _trials(atom: Atom, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Successes, trials and squared trials of each row if answered 0 or 1, each (n, 2).

    Rows count by their weight, and n equal weights are n trials, whatever their size. Unequal
    weights are (sum w)^2 / sum w^2 trials: Kish's effective number.
    """
    above, below, _ = atom_counts(atom, data)
    won = above > 0
    trial = np.where(won, below / _hit(atom), below)
    return trial * won, trial, trial**2


def _hit(atom: Atom) -> float:
    return float(np.max(atom.kind.numerator))


def _lower(rate: Rate, factor: float, atoms: list[Shares], tail: float) -> np.ndarray:
    """A lower limit of `factor` times an expression, each atom's at a tail."""
    low = np.asarray(factor * rate.constant)
    for (coefficient, _), atom in zip(rate.terms, atoms, strict=False):  # its divisor's: below
        c = factor * coefficient
        low = low + (c * atom.lower(tail) if c > 0 else c * atom.upper(tail))
    if rate.denominator is None:
        return low
    of_divisor = atoms[len(rate.terms) :]
    largest = -_lower(rate.denominator, -1.0, of_divisor, tail)
    smallest = _lower(rate.denominator, 1.0, of_divisor, tail)
    return np.where(low >= 0, low / largest, low / smallest)


def _lower_share(share: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    successes = share * trials
    found = betaincinv(successes, trials - successes + 1.0, tail)
    return np.where(successes > 0, found, 0.0)
