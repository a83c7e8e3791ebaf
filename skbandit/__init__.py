"""Estimators in scikit-learn's manner for decisions that must meet real-world goals.

`rates` declares what a classifier must do; `ConstrainedRampClassifier` is trained to do it.
"""

from skbandit import rates
from skbandit.constrained import ConstrainedRampClassifier

__all__ = ["ConstrainedRampClassifier", "rates"]

__version__ = "0.1.0.dev0"
