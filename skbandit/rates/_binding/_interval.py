"""Confidence intervals for rates of given predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import beta

from skbandit.rates._binding._bind import EmptyRateError, answer_counts
from skbandit.rates._binding._data import Data
from skbandit.rates._expression import Rate
from skbandit.rates._kinds import Atom

Interval = tuple[float, float]


def clopper_pearson(successes: float, trials: float, level: float) -> Interval:
    """The exact two-sided interval of a binomial share (Clopper & Pearson 1934).

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    tail = (1 - level) / 2
    low = beta.ppf(tail, successes, trials - successes + 1) if successes > 0 else 0.0
    high = beta.ppf(1 - tail, successes + 1, trials - successes) if successes < trials else 1.0
    return float(low), float(high)


def interval(rate: Rate, data: Data, positive: np.ndarray, level: float) -> Interval:
    """An interval that holds the rate of the population with probability >= `level`.

    One atom: Clopper-Pearson on its rows, exact for equal weights; with unequal weights on
    their effective number (sum w)^2 / sum w^2, an approximation that is too narrow where
    heavy rows have other rates than light ones. Several atoms: each at level
    1 - (1 - level)/k (Bonferroni), combined by interval arithmetic: conservative.
    """
    atoms = len(rate.atoms)
    return _combine(rate, data, positive, 1 - (1 - level) / max(atoms, 1))


def _combine(rate: Rate, data: Data, positive: np.ndarray, level: float) -> Interval:
    low = high = rate.constant
    for coefficient, atom in rate.terms:
        ends = sorted(coefficient * end for end in _atom_interval(atom, data, positive, level))
        low, high = low + ends[0], high + ends[1]
    if rate.denominator is None:
        return low, high
    below = _combine(rate.denominator, data, positive, level)
    return _divided(low, below, min), _divided(high, below, max)


def _divided(end: float, below: Interval, choose: Callable[..., float]) -> float:
    """The lower or upper end of a quotient by a nonnegative divisor that may be 0."""
    quotients = [end / divisor if divisor > 0 else end * np.inf for divisor in below if end]
    return float(choose(quotients)) if quotients else 0.0


def effective_rows(rate: Rate, data: Data, positive: np.ndarray) -> float:
    """How many rows of equal weight say as much as those that a rate is counted on (Kish 1965).

    (sum w)^2 / sum w^2 over the rows in the denominator; of several atoms the smallest.
    """
    return min((_effective(_trials(atom, data, positive)[0]) for atom in rate.atoms), default=0.0)


def _atom_interval(atom: Atom, data: Data, positive: np.ndarray, level: float) -> Interval:
    """Trials are the rows in the denominator, successes those in the numerator."""
    trial, won = _trials(atom, data, positive)
    if not trial.any():
        raise EmptyRateError(f"{atom!r}: no answer falls in its denominator.")
    hit, base = _per_hit(atom)
    share = trial[won].sum() / trial.sum()
    effective = _effective(trial)
    ends = clopper_pearson(share * effective, effective, level)
    low, high = (hit * q / (base * q + 1 - q) for q in ends)
    return low, high


def _trials(atom: Atom, data: Data, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight of each row as a trial, 0 outside the denominator, and whether it is a success."""
    won, weight = answer_counts(atom, data, positive.astype(int))
    # F1 counts a hit twice above and below: q hits of all trials are 2q / (2q + 1 - q)
    _, base = _per_hit(atom)
    return np.where(won > 0, weight / base, weight), won > 0


def _effective(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def _per_hit(atom: Atom) -> tuple[float, float]:
    """What a success adds to the numerator and to the denominator of its kind."""
    kind = atom.kind
    pairs = [
        (above, below)
        for line, under in zip(kind.numerator, kind.denominator, strict=True)
        for above, below in zip(line, under, strict=True)
        if above > 0
    ]
    return pairs[0]
