"""Random changes of w, each judged by its exactly best threshold on hard rates.

MM ends at a local optimum of the ramp, which on few rows is far from the best linear rule: its
hard objective is a step function of w with thousands of levels. There a search that only ever
looks at hard rates pays, since the best cut of any direction costs one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained._tolerances import (
    ELITE,
    FIRST_CHANGE,
    LAST_CHANGE,
    MET,
    PERTURBATIONS,
    PERTURBED_ROWS,
    ROUNDS,
    SAME_SCORE,
)
from skbandit.rates._binding import BoundConstraints, LinearFractionalForms

MISSED = 1e6
"""Rank of a direction without feasible cut, before its miss is added: behind any feasible one."""

BLOCK = 2**18
"""Running sums held in memory at a time, per form."""


def number_of_perturbations(asked: int | str, n_rows: int) -> int | None:
    """Perturbations to try on so many rows; "auto" is PERTURBATIONS, on few rows only.

    None, for 0, also leaves out the comparison with the unconstrained direction.
    """
    if not isinstance(asked, str):
        return int(asked) or None
    return PERTURBATIONS if n_rows <= PERTURBED_ROWS else 0


@dataclass(frozen=True)
class HardGoals:
    """Objective and constraints over n rows, as dense coefficients for many cuts at once.

    Parameters
    ----------
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    constraints : BoundConstraints
        K constraints over the same rows.
    """

    objective: LinearFractionalForms
    constraints: BoundConstraints

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """Rank S directions by the best cut of each; lower is better.

        Parameters
        ----------
        scores : ndarray of shape (S, n)
            Scores of the rows in each direction.

        Returns
        -------
        ndarray of shape (S,)
            The lowest hard objective among feasible cuts; if there are none, MISSED plus the
            smallest miss (inf if undefined at every cut).
        """
        size = max(1, BLOCK // scores.shape[1])
        parts = [self._ranks(scores[first : first + size]) for first in range(0, len(scores), size)]
        return np.concatenate([np.zeros(0), *parts])

    def _ranks(self, scores: np.ndarray) -> np.ndarray:
        order = np.argsort(-scores, axis=1, kind="stable")
        descending = np.take_along_axis(scores, order, axis=1)
        gap = -np.diff(descending, axis=1)
        same = gap <= SAME_SCORE * np.median(np.abs(scores), axis=1, keepdims=True)
        slack = np.full((len(scores), scores.shape[1] + 1), np.inf)
        bound, sign = self.constraints.bound, self.constraints.sign
        for k in range(len(bound)):
            values = _values(self.constraints.forms, k, order)
            one = sign[k] * (bound[k] - values)
            np.minimum(slack, np.where(np.isnan(one), -np.inf, one), out=slack)
        slack[:, 1:-1][same] = -np.inf  # no cut between equal scores
        cost = _values(self.objective, 0, order)
        cost[np.isnan(cost) | (slack < -MET)] = np.inf
        lowest = cost.min(axis=1)
        return np.where(np.isfinite(lowest), lowest, MISSED - slack.max(axis=1))


def _values(forms: LinearFractionalForms, k: int, order: np.ndarray) -> np.ndarray:
    """Values of expression k with the first 0, 1, ..., n rows in order positive; (S, n + 1)."""
    above = _running(forms.numerator[[k]], order) + forms.numerator_constant[k]
    below = np.full_like(above, forms.denominator_constant[k])
    if forms.denominator[[k]].nnz:
        below += _running(forms.denominator[[k]], order)
    rounding = order.shape[1] * np.finfo(float).eps * forms.denominator_constant[k]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > rounding, above / below, np.nan)


def _running(row: csr_array, order: np.ndarray) -> np.ndarray:
    sums = np.zeros((order.shape[0], order.shape[1] + 1))
    np.cumsum(row.toarray().ravel()[order], axis=1, out=sums[:, 1:])
    return sums


def search_perturbations(
    X: Any,
    goals: HardGoals,
    starts: Sequence[np.ndarray],
    n_perturbations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Search for the direction with the best hard objective at its best cut.

    In each of ROUNDS rounds the ELITE best directions so far are changed at random, by less from
    round to round: FIRST_CHANGE to LAST_CHANGE times their length, where each feature counts in
    units of its standard deviation. The best is never lost, so the result is at least as good
    as every start.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Rows.
    goals : HardGoals
        On the same rows.
    starts : sequence of ndarray of shape (d,)
        One or more directions; on equal ranks the first one stays.
    n_perturbations : int
        Directions tried in all.
    rng : Generator
        Source of the changes.

    Returns
    -------
    ndarray of shape (d,)
        The best start itself, or a changed direction that is better.
    """
    unit = _deviations(X)
    found = np.array([one * unit for one in starts], dtype=float)
    length = np.linalg.norm(found, axis=1)
    given = [np.asarray(one) for one, norm in zip(starts, length, strict=True) if norm > 0]
    found = found[length > 0] / length[length > 0, None]
    if not given:
        given, found = [np.eye(1, len(unit))[0] / unit], np.eye(1, len(unit))
    ranks = goals.ranks(_scores(X, np.array(given)))
    best_given, lowest = given[np.argmin(ranks)], ranks.min()
    sizes = np.geomspace(FIRST_CHANGE, LAST_CHANGE, ROUNDS)
    for size, batch in zip(sizes, np.array_split(np.arange(n_perturbations), ROUNDS), strict=True):
        first = np.argsort(ranks, kind="stable")[:ELITE]
        found, ranks = found[first], ranks[first]
        change = rng.normal(size=(len(batch), len(unit))) * rng.random((len(batch), 1))
        tried = found[rng.integers(len(found), size=len(batch))] + size * change
        tried /= np.maximum(np.linalg.norm(tried, axis=1, keepdims=True), 1e-300)
        found = np.vstack([found, tried])
        ranks = np.append(ranks, goals.ranks(_scores(X, tried / unit)))
    return found[np.argmin(ranks)] / unit if ranks.min() < lowest - MET else best_given


def _scores(X: Any, directions: np.ndarray) -> np.ndarray:
    """Scores of all rows, one row per direction."""
    return np.ascontiguousarray((X @ directions.T).T)


def _deviations(X: Any) -> np.ndarray:
    """Standard deviations of the columns; 1 for constant ones."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if issparse(X) else X * X
    variance = np.asarray(squares.mean(axis=0)).ravel() - mean**2
    rounding = 1e-12 * mean**2
    return np.sqrt(np.where(variance > rounding, variance, 1.0))
