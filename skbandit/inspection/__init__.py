"""scikit-learn-style displays; the only part of the library that needs matplotlib."""

from skbandit.inspection._arm_shares_display import ArmSharesDisplay
from skbandit.inspection._goal_monitor_display import GoalMonitorDisplay
from skbandit.inspection._replay_display import ReplayDisplay
from skbandit.inspection._report_displays import ConstraintReportDisplay, RateReportDisplay
from skbandit.inspection._save_report import save_report
from skbandit.inspection._tradeoff_display import TradeoffDisplay

__all__ = [
    "ArmSharesDisplay",
    "ConstraintReportDisplay",
    "GoalMonitorDisplay",
    "RateReportDisplay",
    "ReplayDisplay",
    "TradeoffDisplay",
    "save_report",
]
