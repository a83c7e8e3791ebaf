"""Sums of rows as tables of costs take them: strata, kinds of rows, orders of decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from skbandit.measure import LinearFractionalForms, ScoreLimits


def strata_of(
    probability: np.ndarray, group: np.ndarray | None, n_groups: int
) -> np.ndarray | csr_array:
    """Probability of each stratum, a label or a group and a label, of rows of known groups.

    Parameters
    ----------
    probability : ndarray of shape (n, D)
        Of labels, and 0 of decisions that are no classes.
    group : ndarray of int, shape (n,), or None
        Code of each row's group, if there are groups.
    n_groups : int

    Returns
    -------
    ndarray or csr_array of shape (n, n_groups * D)
    """
    n, D = probability.shape
    if group is None:
        return probability
    column = (group * D)[:, None] + np.arange(D)
    starts = np.arange(n + 1) * D
    return csr_array((probability.ravel(), column.ravel(), starts), shape=(n, n_groups * D))


@dataclass(frozen=True)
class MeasuredDecisions:
    """Measured values of the goals: see `skbandit.prices._calibrate.Measured`.

    Attributes
    ----------
    objective : float
    excess : ndarray of shape (m,)
        Of the constraints, then of the guarded denominators.
    tables : tuple of two ndarray, or None
        Tables and constants of an objective of ratios, made linear at these decisions.
    sums : ndarray of shape (S, 1)
        What limits are computed from.
    limits : ScoreLimits
    clustered : callable or None
        Returns factors of standard errors by dependent rows at these decisions.
    """

    objective: float
    excess: np.ndarray
    tables: tuple[np.ndarray, np.ndarray] | None
    sums: np.ndarray
    limits: ScoreLimits
    clustered: Callable[[], np.ndarray | None] | None = None

    def margin(self, z: float) -> np.ndarray:
        """Distances of the limits at a normal quantile from the rates; 0 of guards."""
        limits = self.limits
        if self.clustered is not None:
            limits = replace(limits, clustered=self.clustered())
        at_rates, at_limits = (limits.slack(self.sums, quantile)[:, 0] for quantile in (0.0, z))
        with np.errstate(invalid="ignore"):
            margin = np.nan_to_num(at_rates - at_limits, posinf=0.0)
        return np.append(margin, np.zeros(len(self.excess) - len(margin)))


def reordered(forms: LinearFractionalForms, order: np.ndarray) -> LinearFractionalForms:
    """Return the same expressions of decisions in another order."""
    above = reordered_rows(forms.numerator, forms.numerator_constant, order)
    below = reordered_rows(forms.denominator, forms.denominator_constant, order)
    return LinearFractionalForms(*above, *below)


def reordered_rows(
    rows: csr_array, constant: np.ndarray, order: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Return sums over `indicators`, relative to the first decision, in another order of these.

    Coefficients are rounded, so that they are the same in any order before.
    """
    n, decisions = rows.shape[1] // (len(order) - 1), np.eye(len(order))[order]
    change = (decisions[1:] - decisions[0])[:, 1:].T
    constant = constant + rows @ np.tile(decisions[0, 1:], n)
    moved = csr_array(rows @ kron(eye_array(n), csr_array(change), format="csr"))
    size = np.abs(moved.data).max(initial=0.0) or 1.0
    moved.data = np.round(moved.data / size, 13) * size
    moved.eliminate_zeros()
    return moved, constant


def kinds_of(
    rows: csr_array, weight: np.ndarray, n_decisions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Kind of each of n rows, and what a row of each kind adds to S sums.

    Parameters
    ----------
    rows : csr_array of shape (S, n * (D - 1))
        Coefficients of `indicators`.
    weight : ndarray of shape (n,)
    n_decisions : int

    Returns
    -------
    tuple of (ndarray of int of shape (n,), ndarray of shape (S, K, D))
        Rows of one kind add the same per unit of weight; the first decision adds nothing.
    """
    S, per_row, n = rows.shape[0], n_decisions - 1, len(weight)
    entries = rows.tocoo()
    row, place = entries.col // per_row, entries.row * per_row + entries.col % per_row
    share = entries.data / np.where(weight > 0, weight, 1.0)[row]
    by_row = csr_array((share, (row, place)), shape=(n, S * per_row))
    random = np.random.default_rng(0).random((S * per_row, 2))
    marks = np.asarray(by_row @ random)
    size = np.abs(marks).max(axis=0, initial=1.0)
    _, first, kind = np.unique(
        np.round(marks / size, 12), axis=0, return_index=True, return_inverse=True
    )
    table = np.zeros((S, len(first), n_decisions))
    table[:, :, 1:] = by_row[first].toarray().reshape(-1, S, per_row).transpose(1, 0, 2)
    return kind.ravel(), table
