"""Regression: the ad of lowest predicted cost.

Each ad is learned from the rows where it is allowed and its cost is observed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.selection._cost_models import learn_costs
from skbandit.selection._costs import CostMatrix
from skbandit.selection.reductions._rule import LowestCost


def learn_regression(
    X: Any,
    costs: np.ndarray,
    allowed: np.ndarray,
    weight: np.ndarray,
    *,
    learner: Any,
    n_jobs: int | None = None,
) -> LowestCost:
    """Learn costs; an ad without rows to learn from is predicted to cost the mean over all ads."""
    known = np.where(allowed, costs, np.nan)
    unseen = np.isnan(known).all(axis=0)
    known[:, unseen] = 0.0 if unseen.all() else np.nanmean(known)
    matrix = CostMatrix(known, None, np.arange(known.shape[1]))
    weights = None if (weight == 1.0).all() else weight
    return LowestCost(learn_costs(learner, X, matrix, weights, n_jobs))
