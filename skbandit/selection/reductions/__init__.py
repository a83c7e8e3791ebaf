"""Cost-sensitive classification by simpler learners: which of n ads costs least.

Each takes any learner of scikit-learn that takes sample weights, full cost matrices with or without
holes, and which ads are available in a row. `skbandit.SetSelectClassifier` chooses sets by them.
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
