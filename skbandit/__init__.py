"""Scikit-learn-compatible estimators for decisions under real-world goals.

`rates` declares goals of a classifier, and `ConstrainedRampClassifier` is trained to meet them.
`RegressionSetSelector` and `SetSelectClassifier` choose the best m of n ads per row.
`GLMUCBPolicy` chooses one arm at a time and learns from its rewards; `ReplayScorer` lets
`GridSearchCV` tune such a policy by the reward that it would have earned on a log.
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

__version__ = "0.1.0"
