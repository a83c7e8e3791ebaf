"""Displays, in scikit-learn's manner; only they need matplotlib."""

from skbandit.inspection._arm_shares import ArmSharesDisplay
from skbandit.inspection._constraint_report import ConstraintReportDisplay
from skbandit.inspection._replay import ReplayDisplay
from skbandit.inspection._tradeoff import TradeoffDisplay

__all__ = [
    "ArmSharesDisplay",
    "ConstraintReportDisplay",
    "ReplayDisplay",
    "TradeoffDisplay",
]
