"""Estimators in scikit-learn's manner for decisions that must meet real-world goals.

`rates` declares what a classifier must do; `ConstrainedRampClassifier` is trained to do it.
`RegressionSetSelector` and `SetSelectClassifier` choose the best m of n ads for each row.
`GLMUCBPolicy` chooses one arm at a time and learns from what came of it; `ReplayScorer` tells a
search what such a policy would have earned on a log.
"""

from skbandit import rates
from skbandit.bandit import GLMUCBPolicy
from skbandit.constrained import ConstrainedRampClassifier
from skbandit.evaluation import ReplayScorer
from skbandit.selection import RegressionSetSelector, SetSelectClassifier

__all__ = [
    "ConstrainedRampClassifier",
    "GLMUCBPolicy",
    "RegressionSetSelector",
    "ReplayScorer",
    "SetSelectClassifier",
    "rates",
]

__version__ = "0.1.0.dev0"
