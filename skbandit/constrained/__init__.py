"""Classifiers that meet declared constraints on their rates."""

from skbandit.constrained._constrained_threshold import ConstrainedThreshold
from skbandit.constrained._reduction import ConstrainedReduction
from skbandit.constrained._report import constraint_report
from skbandit.constrained.linear._path import ConstraintPath, constraint_path
from skbandit.constrained.linear._ramp_cv import ConstrainedRampClassifier
from skbandit.constrained.paper._ramp_classifier import RampClassifier

__all__ = [
    "ConstrainedRampClassifier",
    "ConstrainedReduction",
    "ConstrainedThreshold",
    "ConstraintPath",
    "RampClassifier",
    "constraint_path",
    "constraint_report",
]
