"""Rules that decide new rows: a threshold or a table of costs, one for all or one per group.

A rule decides rows by scores and codes of groups: -1 for none that was fitted, None without any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbandit.constrained.rules._recalibrate import Recalibration


@dataclass(frozen=True)
class Thresholds:
    """A threshold on the response for the positive class.

    Attributes
    ----------
    thresholds : ndarray of shape (G + 1,)
        Of each group, or of all rows, and of rows of no group: nan if there is none.
    orientation : float
        See `Classes.orientation`.
    """

    thresholds: np.ndarray
    orientation: float

    def signed(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return scores less the threshold; positive for ``classes_[1]``."""
        return scores - self.orientation * self.thresholds[0 if codes is None else codes]

    def decide(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return 1 for the positive class, else 0."""
        signed = self.signed(scores, codes)
        return np.where(np.isnan(signed), np.nan, (signed > 0) == (self.orientation > 0))

    def tables(self) -> np.ndarray:
        """Return costs at which a positive prediction is the cheaper one above a threshold."""
        costs = np.zeros((len(self.thresholds), 2, 2))  # negative first
        costs[:, 0, 1], costs[:, 1, 0] = self.thresholds, 1.0 - self.thresholds
        return costs if self.orientation > 0 else costs[:, ::-1, ::-1]

    def expected(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return expected costs by probabilities of the positive class."""
        positive = self.orientation * scores
        pair = np.column_stack([1 - positive, positive])
        return _expected(pair if self.orientation > 0 else pair[:, ::-1], self.tables(), codes)


@dataclass(frozen=True)
class CostTables:
    """A table of costs by label, or by group and label if groups are not known.

    Attributes
    ----------
    costs : ndarray of shape (G + 1, D, D)
        Of each group, and of rows of no group: nan if there are none.
    recalibration : Recalibration or None
        What probabilities pass before.
    """

    costs: np.ndarray
    recalibration: Recalibration | None

    def signed(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return negated expected costs."""
        return -self.expected(scores, codes)

    def decide(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return the decision of least expected cost."""
        costs = self.expected(scores, codes)
        return np.where(np.isnan(costs).any(axis=1), np.nan, costs.argmin(axis=1))

    def tables(self) -> np.ndarray:
        """Return the tables."""
        return self.costs

    def expected(self, scores: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return expected costs by probabilities."""
        if self.recalibration is not None:
            scores = self.recalibration(scores, codes)
        return _expected(scores, self.costs, codes)


DecisionRule = Thresholds | CostTables
"""A rule that decides: it has `signed`, `decide`, `tables` and `expected`."""


def _expected(probability: np.ndarray, tables: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    if codes is None:
        return probability @ tables[:-1].reshape(-1, tables.shape[2])
    costs = np.empty((len(codes), tables.shape[2]))
    for code in np.unique(codes):
        costs[codes == code] = probability[codes == code] @ tables[code]
    return costs


def scaled_costs(costs: np.ndarray) -> np.ndarray:
    """Costs (groups, D, D) of which the least of each label is 0 and the largest of all 1.

    Neither changes which decision has the least expected cost.
    """
    costs = costs - costs.min(axis=2, keepdims=True)
    largest = costs.max(initial=0.0)
    return costs / largest if largest > 0 else costs
