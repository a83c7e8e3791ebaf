"""Running standardisation: means and variances of features, renewed at doubling numbers of rows.

A row X becomes x = (X - centre) rate with rate = 1/(sd √d), so that |x|² is about 1 whatever the
units and the number d of features. A feature that has not varied yet counts 0. Moments are those
of Welford (1962); centre and rate follow them at rows 8, 16, 32, ..., and in between stay as they
are, so that what was learned need be carried over to new units (`_bilinear.change_units`) a few
times only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skbandit.utils._compiled import called_exactly

FIRST_RENEWAL = 8
"""Rows before features count: fewer say little about a standard deviation (within a quarter)."""

NEVER = np.iinfo(np.int64).max
"""Renewal due after this many rows: units are fixed."""


class Units(NamedTuple):
    """Units of features, and the moments from which they are renewed; updated in place."""

    centre: np.ndarray  # (d,)
    rate: np.ndarray  # (d,), 0 for features that do not count
    average: np.ndarray  # (d,), running mean
    squares: np.ndarray  # (d,), running sum of squared deviations
    counts: np.ndarray  # (2,): rows seen, and the number at which a renewal is due


def fixed_units(d: int) -> Units:
    """Units in which features are taken as they are."""
    counts = np.array([0, NEVER], dtype=np.int64)
    return Units(np.zeros(d), np.ones(d), np.zeros(d), np.zeros(d), counts)


def running_units(d: int, first_renewal: int = FIRST_RENEWAL) -> Units:
    """Units before the first row."""
    counts = np.array([0, first_renewal], dtype=np.int64)
    return Units(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), counts)


@called_exactly
def count_row(row: np.ndarray, units: Units) -> bool:
    """Add a row to the moments; whether a renewal is due."""
    average, squares, counts = units.average, units.squares, units.counts
    counts[0] += 1
    for i in range(len(average)):
        away = row[i] - average[i]
        average[i] += away / counts[0]
        squares[i] += away * (row[i] - average[i])
    return counts[0] >= counts[1]


@called_exactly
def renew(units: Units, factor: np.ndarray, shift: np.ndarray) -> None:
    """Renew centre and rate; fill in the change, with x = factor x' + shift for the new x'."""
    centre, rate, average, squares, counts = units
    d, n = len(centre), counts[0]
    counts[1] = 2 * n
    for i in range(d):
        variance = squares[i] / n
        # what rounding leaves of a constant is no variance
        varies = variance > (1e-12 * average[i]) ** 2
        new = 1.0 / math.sqrt(variance * d) if varies and variance > 1e-300 else 0.0
        factor[i], shift[i] = 1.0, 0.0
        if rate[i] > 0.0 and new > 0.0:
            factor[i] = rate[i] / new
            shift[i] = (average[i] - centre[i]) * rate[i]
        if new > 0.0:
            centre[i], rate[i] = average[i], new


@called_exactly
def show(x: np.ndarray, row: np.ndarray, units: Units) -> None:
    """Write a row of features in these units into the buffer x, which ends with a constant 1."""
    centre, rate = units.centre, units.rate
    for i in range(len(row)):
        x[i] = (row[i] - centre[i]) * rate[i]
