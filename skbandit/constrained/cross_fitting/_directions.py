"""Directions trained without each fold in turn, and the scores of the rows left out.

Each direction is standardised: its scores have mean 0 and deviation 1 over all rows, which takes
no labels. So the scores of different folds' models are on one scale, and one cut suits all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

SMALLEST_DEVIATION = 1e-9
"""Deviation of scores, as a share of their largest size, below which they do not differ."""


@dataclass(frozen=True)
class Mixture:
    """A combination of directions by name: (1 - share) of the plain one, share of another."""

    plain: str
    other: str
    share: float = 1.0

    def __str__(self) -> str:
        if self.share == 1.0:
            return self.other
        return f"{1.0 - self.share:g} {self.plain} + {self.share:g} {self.other}"


@dataclass(frozen=True)
class Directions:
    """J standardised directions for each of K folds.

    Parameters
    ----------
    names : tuple of J str
    coef : ndarray of shape (K, d, J)
        Trained without each fold.
    centre : ndarray of shape (K, J)
        Their mean scores over all rows; 0 without an intercept.
    correlation : ndarray of shape (K, J, J)
        Of their scores over all rows.
    scores : ndarray of shape (n, J)
        Standardised scores of each row by the directions trained without its fold.
    fold : ndarray of int, shape (n,)
    """

    names: tuple[str, ...]
    coef: np.ndarray
    centre: np.ndarray
    correlation: np.ndarray
    scores: np.ndarray
    fold: np.ndarray

    @classmethod
    def standardised(
        cls,
        X: Any,
        weight: np.ndarray,
        fold: np.ndarray,
        found: list[Mapping[str, np.ndarray]],
        *,
        centred: bool,
    ) -> Directions:
        """Standardise what was found without each fold.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n, d)
            All rows.
        weight : ndarray of shape (n,)
            Weights of the rows in means and deviations.
        fold : ndarray of int, shape (n,)
            Fold of each row.
        found : list of mappings of str to ndarray of shape (d,)
            Directions by name, without each fold. The first stands in for those that are
            missing or tell no rows apart.
        centred : bool
            Whether scores have mean 0.
        """
        names = tuple(dict.fromkeys(name for one in found for name in one))
        share = weight / weight.sum()
        coefs, centres, correlations = [], [], []
        scores = np.empty((len(fold), len(names)))
        for k, one in enumerate(found):
            plain = next(iter(one.values()))
            coef = np.column_stack([one.get(name, plain) for name in names])
            raw = np.asarray(X @ coef)
            mean, deviation = _moments(raw, share, centred)
            flat = deviation <= SMALLEST_DEVIATION * np.abs(raw).max(axis=0)
            coef[:, flat], raw[:, flat] = coef[:, [0]], raw[:, [0]]
            mean, deviation = _moments(raw, share, centred)
            deviation[deviation <= SMALLEST_DEVIATION * np.abs(raw).max(axis=0)] = 1.0
            raw = (raw - mean) / deviation
            scores[fold == k] = raw[fold == k]
            coefs.append(coef / deviation)
            centres.append(mean / deviation)
            correlations.append(raw.T @ (raw * share[:, None]))
        return cls(names, np.stack(coefs), np.stack(centres), np.stack(correlations), scores, fold)

    def _parts(self, mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the directions, (J,), and the deviation of their sum by fold, (K,)."""
        part = np.zeros(len(self.names))
        part[self.names.index(mixture.other)] = mixture.share
        part[self.names.index(mixture.plain)] += 1.0 - mixture.share
        deviation = np.sqrt(np.maximum(part @ self.correlation @ part, 0.0))
        deviation[deviation <= SMALLEST_DEVIATION] = 1.0
        return part, deviation

    def out_of_fold(self, mixture: Mixture, rows: np.ndarray | None = None) -> np.ndarray:
        """Standardised scores of a mixture, each by the directions without the row's fold.

        Of all rows or of some.
        """
        part, deviation = self._parts(mixture)
        scores, fold = self.scores, self.fold
        if rows is not None:
            scores, fold = scores[rows], fold[rows]
        return (scores @ part) / deviation[fold]

    def mean_direction(self, mixture: Mixture) -> np.ndarray:
        """Mean over folds of a mixture's standardised directions, shape (d,)."""
        part, deviation = self._parts(mixture)
        return np.mean((self.coef @ part) / deviation[:, None], axis=0)


def _moments(scores: np.ndarray, share: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    mean = share @ scores if centred else np.zeros(scores.shape[1])
    return mean, np.sqrt(share @ (scores - mean) ** 2)


def standardise(
    X: Any, weight: np.ndarray, coef: np.ndarray, *, centred: bool
) -> tuple[np.ndarray, float, np.ndarray]:
    """Scale one direction; return it, its mean score and its standardised scores."""
    scores = np.asarray(X @ coef).ravel()
    mean, deviation = _moments(scores[:, None], weight / weight.sum(), centred)
    size = float(deviation[0])
    if size <= SMALLEST_DEVIATION * np.abs(scores).max(initial=0.0):
        size = 1.0
    return coef / size, float(mean[0]) / size, (scores - mean[0]) / size


def column_scales(X: Any, weight: np.ndarray, *, centred: bool) -> np.ndarray:
    """Unit of each column: its deviation per nonzero entry, so that units do not matter.

    That is sqrt(variance / share of nonzero entries): the deviation itself of a column without
    zeros, and about 1 for a rare indicator, which counts no more for being rare. A column of one
    value is its own unit.
    """
    share = weight / weight.sum()
    if issparse(X):
        square = np.asarray(share @ X.multiply(X)).ravel()
    else:
        square = np.einsum("i,ij,ij->j", share, X, X)
    mean = np.asarray(share @ X).ravel() if centred else np.zeros(X.shape[1])
    nonzero = np.asarray(share @ (X != 0)).ravel()
    variance = np.maximum(square - mean * mean, 0.0)
    varied = variance > SMALLEST_DEVIATION * square
    constant = np.sqrt(np.where(square > 0, square, 1.0))
    return np.where(varied, np.sqrt(variance / np.where(nonzero > 0, nonzero, 1.0)), constant)
