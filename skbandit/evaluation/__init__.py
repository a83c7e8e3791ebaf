"""Evaluate classifiers and policies: rate reports, scorers, replay, off-policy estimates."""

from skbandit.evaluation._off_policy._blocks import off_policy_blocks
from skbandit.evaluation._off_policy._estimators import OffPolicyEstimate, doubly_robust, ips, snips
from skbandit.evaluation._rate_report import rate_report, to_model_card
from skbandit.evaluation._rate_scorer import RateScorer
from skbandit.evaluation._replay._blocks import replay_blocks
from skbandit.evaluation._replay._engine import replay
from skbandit.evaluation._replay._result import ReplayResult
from skbandit.evaluation._replay._scorer import ReplayScorer
from skbandit.evaluation._replay._split import ReplaySplit

__all__ = [
    "OffPolicyEstimate",
    "RateScorer",
    "ReplayResult",
    "ReplayScorer",
    "ReplaySplit",
    "doubly_robust",
    "ips",
    "off_policy_blocks",
    "rate_report",
    "replay",
    "replay_blocks",
    "snips",
    "to_model_card",
]
