"""Judge what has been trained: scorers for scikit-learn's searches and cross-validation."""

from skbandit.evaluation._off_policy import OffPolicyEstimate, doubly_robust, ips, snips
from skbandit.evaluation._off_policy_blocks import off_policy_blocks
from skbandit.evaluation._rate_scorer import RateScorer
from skbandit.evaluation._replay import replay
from skbandit.evaluation._replay_blocks import replay_blocks
from skbandit.evaluation._replay_result import ReplayResult
from skbandit.evaluation._replay_scorer import ReplayScorer
from skbandit.evaluation._replay_split import ReplaySplit
from skbandit.evaluation._select import select

__all__ = [
    "OffPolicyEstimate",
    "RateScorer",
    "ReplayResult",
    "ReplayScorer",
    "ReplaySplit",
    "doubly_robust",
    "ips",
    "off_policy_blocks",
    "replay",
    "replay_blocks",
    "select",
    "snips",
]
