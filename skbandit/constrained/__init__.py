"""Classifiers that meet declared constraints on their rates."""

from skbandit.constrained._classifier import ConstrainedRampClassifier
from skbandit.constrained._constrained_threshold import ConstrainedThreshold

__all__ = ["ConstrainedRampClassifier", "ConstrainedThreshold"]
