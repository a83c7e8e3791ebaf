"""One option from each of G sets: the smallest ratio of sums under K bounds on sums.

Minimise N(c)/D(c) over choices c = (c_1, ..., c_G), one option of each set, subject to
A_k(c) <= b_k for k = 1, ..., K, where N, D and the A_k are constants plus sums over the sets of
what the chosen options contribute. With D = 1 this is the multiple-choice knapsack problem with
several constraints (Kellerer, Pferschy and Pisinger 2004, chapter 11).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-12
"""Excess of a sum over its bound, in its units, that is rounding."""


@dataclass(frozen=True)
class Options:
    """What the m options of one set contribute.

    Attributes
    ----------
    numerator, denominator : ndarray of shape (m,)
    rows : ndarray of int, shape (r,)
        The constraints that the set contributes to.
    uses : ndarray of shape (r, m)
        Contributions to these.
    """

    numerator: np.ndarray
    denominator: np.ndarray
    rows: np.ndarray
    uses: np.ndarray

    def __len__(self) -> int:
        return len(self.numerator)

    def subset(self, kept: np.ndarray) -> Options:
        """Keep some of the options."""
        return Options(self.numerator[kept], self.denominator[kept], self.rows, self.uses[:, kept])


@dataclass(frozen=True)
class MultipleChoice:
    """The problem: G sets, the constants n_0 and d_0, and the bounds b of shape (K,)."""

    sets: tuple[Options, ...]
    numerator: float
    denominator: float
    bound: np.ndarray

    def used(self, choice: np.ndarray) -> np.ndarray:
        """Sums A(c) of shape (K,)."""
        total = np.zeros(len(self.bound))
        for options, j in zip(self.sets, choice, strict=True):
            total[options.rows] += options.uses[:, j]
        return total

    def excess(self, choice: np.ndarray) -> float:
        """Largest excess over a bound, negative if there is room; -inf without constraints."""
        return float((self.used(choice) - self.bound).max(initial=-np.inf))

    def value(self, choice: np.ndarray) -> float:
        """The ratio N/D; inf if D is not positive."""
        pairs = list(zip(self.sets, choice, strict=True))
        above = self.numerator + sum(float(one.numerator[j]) for one, j in pairs)
        below = self.denominator + sum(float(one.denominator[j]) for one, j in pairs)
        return above / below if below > ROUNDING else math.inf


@dataclass(frozen=True)
class Choice:
    """One option of each set.

    Attributes
    ----------
    options : ndarray of int, shape (G,)
    value : float
        Its ratio.
    excess : float
        Its largest excess over a bound; positive only if no feasible choice was found.
    lowest : float
        No feasible choice has a smaller value: `value` minus MET if it is optimal, inf if none
        is feasible.
    """

    options: np.ndarray
    value: float
    excess: float
    lowest: float
