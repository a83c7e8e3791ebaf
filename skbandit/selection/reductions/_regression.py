"""Regression: the ad with the lowest predicted cost.

Each ad learns from the rows where it is allowed and its cost is observed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbandit.selection._costs import Costs
from skbandit.selection._learn_costs import learn_costs
from skbandit.selection.reductions._rule import Lowest


def learn_regression(
    X: Any,
    costs: np.ndarray,
    allowed: np.ndarray,
    weight: np.ndarray,
    *,
    learner: Any,
    n_jobs: int | None = None,
) -> Lowest:
    """Learn costs; an ad that nobody can judge, for want of rows, is taken to cost the mean."""
    known = np.where(allowed, costs, np.nan)
    unseen = np.isnan(known).all(axis=0)
    known[:, unseen] = 0.0 if unseen.all() else np.nanmean(known)
    table = Costs(known, None, np.arange(known.shape[1]))
    weights = None if (weight == 1.0).all() else weight
    return Lowest(learn_costs(learner, X, table, weights, n_jobs))
