"""Policies that choose arms by context and learn from the rewards."""

from skbandit.bandit._oracle_policy import OraclePolicy
from skbandit.bandit._pipeline import PolicyPipeline, make_policy_pipeline, select
from skbandit.bandit._policy import GLMUCBPolicy
from skbandit.bandit._shared_policy import SharedGLMPolicy
from skbandit.bandit._slate_policy import SlatePolicy
from skbandit.logged import ConstrainedPolicy, OffPolicyClassifier

__all__ = [
    "ConstrainedPolicy",
    "GLMUCBPolicy",
    "OffPolicyClassifier",
    "OraclePolicy",
    "PolicyPipeline",
    "SharedGLMPolicy",
    "SlatePolicy",
    "make_policy_pipeline",
    "select",
]
