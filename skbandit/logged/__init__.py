"""Policies learned from logs and tables of costs, and unbiased costs from logs.

`skbandit.bandit` and `skbandit.selection` hand these names to users.
"""

from skbandit.logged._constrained_policy import ConstrainedPolicy as ConstrainedPolicy
from skbandit.logged._logged_costs import logged_costs as logged_costs
from skbandit.logged._off_policy_classifier import OffPolicyClassifier as OffPolicyClassifier

__all__: list[str] = []
