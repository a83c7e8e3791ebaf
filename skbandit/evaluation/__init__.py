"""Evaluate classifiers and policies: rate reports, scorers, replay, off-policy estimates."""

from skbandit.evaluation._difference import PolicyDifference
from skbandit.evaluation._model_selection import OffPolicyScorer, ReplayScorer, ReplaySplit
from skbandit.evaluation._monitor._goal_monitor import GoalMonitor
from skbandit.evaluation._off_policy._estimate import OffPolicyEstimate
from skbandit.evaluation._off_policy._off_policy_value import off_policy_blocks, off_policy_value
from skbandit.evaluation._off_policy._slates import replay_slates, slate_ips, slate_pseudo_inverse
from skbandit.evaluation._rate_report import rate_report, to_model_card
from skbandit.evaluation._rate_report_blocks import rate_report_blocks
from skbandit.evaluation._rate_scorer import RateScorer
from skbandit.evaluation._replay._blocks import replay_blocks
from skbandit.evaluation._replay._engine import replay
from skbandit.evaluation._replay._result import ReplayResult

__all__ = [
    "GoalMonitor",
    "OffPolicyEstimate",
    "OffPolicyScorer",
    "PolicyDifference",
    "RateScorer",
    "ReplayResult",
    "ReplayScorer",
    "ReplaySplit",
    "off_policy_blocks",
    "off_policy_value",
    "rate_report",
    "rate_report_blocks",
    "replay",
    "replay_blocks",
    "replay_slates",
    "slate_ips",
    "slate_pseudo_inverse",
    "to_model_card",
]
