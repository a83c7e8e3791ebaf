"""Thresholds on a score, and sums over the rows above each: one sort and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from skbandit.measure import LinearFractionalForms

SAME_SCORE = 1e-13
"""Scores closer than this, relative to them and to the median, may differ by rounding only."""


@dataclass(frozen=True)
class Curve:
    """The thresholds between all distinct scores of some rows, and the rows above each.

    Rates change only at the scores, so that the sums at these thresholds are those at any.

    Attributes
    ----------
    order : ndarray of int, shape (m,)
        The rows by descending score.
    thresholds : ndarray of shape (C,)
        Midway between neighboring scores, 1/2 beyond the outermost.
    n_positive : ndarray of int, shape (C,)
        Number of rows above each threshold.
    """

    order: np.ndarray
    thresholds: np.ndarray
    n_positive: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, order: np.ndarray | None = None) -> Curve:
        """Sort a score, unless the `order` of some rows is given."""
        if order is None:
            order = np.argsort(-scores)  # the order of equal scores does not matter
        descending = scores[order]
        upper, lower = descending[:-1], descending[1:]
        size = np.maximum(np.abs(upper), np.abs(lower))
        size = np.maximum(size, np.median(np.abs(descending)))
        inner = np.flatnonzero(upper - lower > SAME_SCORE * np.maximum(size, 1e-300)) + 1
        middles = 0.5 * (descending[inner - 1] + descending[inner])
        thresholds = np.concatenate([[descending[0] + 0.5], middles, [descending[-1] - 0.5]])
        return cls(order, thresholds, np.concatenate([[0], inner, [len(descending)]]))

    @classmethod
    def at(cls, scores: np.ndarray, thresholds: np.ndarray) -> Curve:
        """Only these thresholds."""
        order = np.argsort(-scores)
        n_positive = np.searchsorted(-scores[order], -thresholds, side="left")
        return cls(order, thresholds, n_positive)

    def spread(self, most: int) -> Curve:
        """At most so many of the thresholds, evenly spaced, besides the outermost two."""
        kept = evenly(len(self.n_positive), most + 2)
        return replace(self, thresholds=self.thresholds[kept], n_positive=self.n_positive[kept])

    def sums(self, rows: csr_array) -> np.ndarray:
        """Return sums of J forms' coefficients over the rows above each threshold, shape (J, C)."""
        return sums_by_curve(rows, [self])[0]

    def values(self, forms: LinearFractionalForms) -> np.ndarray:
        """Values of K expressions at each threshold, nan where undefined; shape (K, C)."""
        above = self.sums(forms.numerator) + forms.numerator_constant[:, None]
        below = self.sums(forms.denominator) + forms.denominator_constant[:, None]
        return forms.quotients(above, below)


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n places, evenly spaced, the first and the last among them."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(int))


def curves_of_groups(scores: np.ndarray, group: np.ndarray) -> tuple[Curve, ...]:
    """Return a curve for the rows of each group, 0 to G - 1, that has rows.

    A sum over all rows is the total of the curves' sums, each at a threshold of its own.
    """
    by_group = np.lexsort((-scores, group))
    starts = np.searchsorted(group[by_group], np.arange(group.max() + 2))
    return tuple(Curve.of(scores, by_group[i:j]) for i, j in pairwise(starts) if i < j)


def sums_by_curve(rows: csr_array, curves: Sequence[Curve]) -> list[np.ndarray]:
    """`Curve.sums` of each curve."""
    sums = [np.zeros((rows.shape[0], len(curve.n_positive))) for curve in curves]
    # One row at a time: K dense rows may not fit in cache. Those without coefficients stay 0.
    for k in np.flatnonzero(np.diff(rows.indptr)):
        entries = slice(rows.indptr[k], rows.indptr[k + 1])
        dense = np.bincount(rows.indices[entries], rows.data[entries], rows.shape[1])
        for curve, of_curve in zip(curves, sums, strict=True):
            running = np.cumsum(dense[curve.order])
            of_curve[k] = np.append(0.0, running)[curve.n_positive]
    return sums
