"""Estimators in scikit-learn's manner for decisions that must meet real-world goals.

`rates` declares what a classifier must do; `ConstrainedRampClassifier` is trained to do it.
`GLMUCBPolicy` chooses one of several arms by context and learns from what came of it.
"""

from skbandit import rates
from skbandit.bandit import GLMUCBPolicy
from skbandit.constrained import ConstrainedRampClassifier
from skbandit.evaluation import ReplayScorer

__all__ = ["ConstrainedRampClassifier", "GLMUCBPolicy", "ReplayScorer", "rates"]

__version__ = "0.1.0.dev0"
