"""What a cost-sensitive reduction learns: a rule that picks one of the ads that may be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

NOBODY = -1
"""Stands where no ad may be chosen."""


class Rule(Protocol):
    """A learned reduction.

    What its learners answer does not depend on which ads may be chosen, so that the costly
    part, `respond`, is done once for as many choices as are asked for on the same rows.
    """

    def respond(self, X: Any) -> np.ndarray:
        """What the learners answer, one row each row of X."""
        ...

    def choose(self, answers: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """An ad for each row, by its answers, among those allowed (n, K); NOBODY if none is."""
        ...


class Reduction(Protocol):
    """Learns a rule from costs c (n, K), lower is better, nan where not observed."""

    def __call__(self, X: Any, costs: np.ndarray, allowed: np.ndarray, weight: np.ndarray) -> Rule:
        """Learn from the ads allowed in each row, bool (n, K), with row weights (n,)."""
        ...


@dataclass(frozen=True)
class Lowest:
    """The ad with the lowest predicted cost; ties go to the first.

    Parameters
    ----------
    model : object with costs
        ``costs(X)`` has shape (n, K).
    """

    model: Any

    def respond(self, X: Any) -> np.ndarray:
        """Predicted costs."""
        return self.model.costs(X)

    def choose(self, answers: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """The lowest of the costs allowed."""
        lowest = np.where(allowed, answers, np.inf).argmin(axis=1)
        return np.where(allowed.any(axis=1), lowest, NOBODY)
