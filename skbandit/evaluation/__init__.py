"""Judge what has been trained: scorers for scikit-learn's searches and cross-validation."""

from skbandit.evaluation._rate_scorer import RateScorer

__all__ = ["RateScorer"]
