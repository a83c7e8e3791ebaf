"""Rewards that are all equal: nothing can be learned from them, and clicks alone look like that."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy, make_policy_pipeline

X = np.random.default_rng(0).normal(size=(100, 2))
ARMS = ["a", "b"] * 50
MESSAGE = r"all of 1\d\d rewards are 1, .*they must report 0, too, or join_rewards\(missing=0"


def log(reward, n=100):
    return {"action": ARMS[:n], "reward": [reward] * n}


@pytest.mark.parametrize(
    "policy",
    [
        GLMUCBPolicy(),
        SharedGLMPolicy(),
        OraclePolicy(DecisionTreeClassifier()),
        make_policy_pipeline(StandardScaler(), GLMUCBPolicy()),
        SlatePolicy(n_select=1),
        SlatePolicy(n_select=1, feedback="slate"),
    ],
    ids=["glm", "shared", "oracle", "pipeline", "slate", "slate reward"],
)
def test_said_once(policy):
    with pytest.warns(UserWarning, match=MESSAGE):
        policy.fit(X, log(1))
    policy.partial_fit(X, log(1))  # not again
    with pytest.warns(UserWarning, match=MESSAGE):
        policy.fit(X, log(1))  # a new beginning
    policy.fit(X, {"action": ARMS, "reward": [0] + [1] * 99}).partial_fit(X, log(1))
    policy.fit(X, log(0)).partial_fit(X, log(0))  # rewards may be rare


def test_counted_over_calls_and_copies():
    policy = GLMUCBPolicy("linear", arms=["a", "b"])
    for k in range(98):
        policy.partial_fit(X[k : k + 1], {"action": ["a"], "reward": [5.0]})
    policy = pickle.loads(pickle.dumps(policy))
    one_event = {"action": ["a", "a"], "reward": [5.0, 4.0]}
    policy.partial_fit(X[:2], one_event, sample_weight=[1.0, 0.0])
    saved = pickle.dumps(policy)
    with pytest.warns(UserWarning, match="all of 100 rewards are 5, so that no arm is better"):
        policy.partial_fit(X[:1], {"action": ["b"], "reward": [5.0]})
    other = pickle.loads(saved).partial_fit(X[:1], {"action": ["a"], "reward": [4.0]})
    other.partial_fit(X, log(4.0))
    with warnings.catch_warnings(), pytest.raises(UserWarning):  # as an error, it changes nothing
        warnings.simplefilter("error")
        pickle.loads(saved).partial_fit(X, log(5.0))


def test_only_zeros_are_told_after_many():
    policy = GLMUCBPolicy("linear", prior_scale=1)
    zeros = {"action": np.zeros(9_999, dtype=int), "reward": np.zeros(9_999)}
    policy.fit(np.zeros((9_999, 1)), zeros)
    with pytest.warns(UserWarning, match="all of 10000 rewards are 0, .* check that ids and times"):
        policy.partial_fit([[0.0]], {"action": [0], "reward": [0.0]})
