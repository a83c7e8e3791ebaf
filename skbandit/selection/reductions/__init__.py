"""Reductions of cost-sensitive classification (which of n ads costs least) to simpler learners.

Each accepts any scikit-learn learner that takes sample weights, cost matrices with or without
unobserved entries, and the ads available per row. `skbandit.SetSelectClassifier` chooses sets with
them.
"""

from skbandit.selection.reductions._estimators import (
    FilterTreeClassifier,
    OneVsRestCostClassifier,
    RegressionCostClassifier,
    WeightedAllPairsClassifier,
)

__all__ = [
    "FilterTreeClassifier",
    "OneVsRestCostClassifier",
    "RegressionCostClassifier",
    "WeightedAllPairsClassifier",
]
