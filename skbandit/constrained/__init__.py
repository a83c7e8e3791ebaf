"""Linear classifiers trained under declared constraints on their rates."""

from skbandit.constrained._classifier import ConstrainedRampClassifier

__all__ = ["ConstrainedRampClassifier"]
