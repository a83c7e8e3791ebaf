"""Classifiers that meet declared constraints on their rates."""

from skbandit.constrained._classifier import ConstrainedRampClassifier
from skbandit.constrained._constrained_threshold import ConstrainedThreshold
from skbandit.constrained._fit_rows import ExtraData
from skbandit.constrained._path import ConstraintPath, constraint_path
from skbandit.constrained._reduction import ConstrainedReduction
from skbandit.constrained._report import constraint_report

__all__ = [
    "ConstrainedRampClassifier",
    "ConstrainedReduction",
    "ConstrainedThreshold",
    "ConstraintPath",
    "ExtraData",
    "constraint_path",
    "constraint_report",
]
