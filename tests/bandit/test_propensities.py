"""`select(return_proba=True)`: the same choices, and their probabilities."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.bandit import (
    OffPolicyClassifier,
    OraclePolicy,
    SharedGLMPolicy,
    SlatePolicy,
    make_policy_pipeline,
    select,
)
from skbandit.evaluation import off_policy_value, slate_ips
from tests.tiers import first

RULES = ("ucb", "greedy", "epsilon_greedy", "squarecb", "thompson")
POLICIES = {rule: GLMUCBPolicy(exploration=rule, alpha=1, random_state=0) for rule in RULES}
POLICIES["shared"] = SharedGLMPolicy(exploration="squarecb", alpha=1, random_state=0)
POLICIES["bootstrap"] = OraclePolicy(Ridge(), exploration="bootstrap", random_state=0)
POLICIES["pipeline"] = make_policy_pipeline(StandardScaler(), POLICIES["squarecb"])
POLICIES["full"] = GLMUCBPolicy(exploration="thompson", covariance="full", random_state=0)
SLATES = {rule: SlatePolicy(POLICIES[rule], 2, random_state=0) for rule in RULES}


def made_log(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    action = np.array(["a", "b", "c", "d"], dtype=object)[rng.integers(4, size=n)]
    return X, pd.DataFrame({"action": action, "reward": rng.random(n) < 0.3})


@pytest.mark.parametrize("name", first(len(POLICIES) - 1, POLICIES))
@pytest.mark.parametrize("available", [None, [("a", "c", "d"), ("b", "d")] * 100])
def test_choices_are_those_of_select_and_probabilities_those_of_select_proba(name, available):
    X, y = made_log()
    policy = clone(POLICIES[name]).fit(X, y)
    other = pickle.loads(pickle.dumps(policy))
    arms, p = policy.select(X, available=available, return_proba=True)
    np.testing.assert_array_equal(arms, other.select(X, available=available))
    column = pd.Index(policy.arms_).get_indexer(arms)
    table = policy.select_proba(X, available=available)
    np.testing.assert_array_equal(p, table[np.arange(len(X)), column])
    # and the stream of random numbers goes on alike
    np.testing.assert_array_equal(policy.select(X), other.select(X))


def test_arms_unseen_and_sparse_contexts_have_probabilities_too():
    X, y = made_log()
    policy = GLMUCBPolicy(exploration="squarecb", standardize="scale", random_state=0).fit(X, y)
    new = [("new", "newer", "newest")] * len(X)
    arms, p = policy.select(X, available=new, return_proba=True)
    assert len(set(arms)) == 3
    np.testing.assert_allclose(p, 1 / 3)
    from scipy.sparse import csr_array

    dense, sparse = pickle.loads(pickle.dumps(policy)), policy
    for mine, its in zip(
        dense.select(X, return_proba=True),
        sparse.select(csr_array(X), return_proba=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)


# z-tests of at most 24 frequencies: some one fails falsely in one of 10,000 runs with other seeds
LIMIT = stats.norm.isf(1e-4 / 48)


@pytest.mark.parametrize("name", ["epsilon_greedy", "squarecb", "thompson", "shared", "bootstrap"])
def test_frequencies(name):
    X, y = made_log()
    policy = clone(POLICIES[name]).fit(X, y)
    arms, p = policy.select(np.repeat(X[:1], 4000, axis=0), return_proba=True)
    for arm in np.unique(arms):
        (expected,) = np.unique(p[arms == arm])
        error = np.sqrt(expected * (1 - expected) / len(arms))
        assert abs((arms == arm).mean() - expected) < LIMIT * error + 0.002


@pytest.mark.parametrize("rule", RULES)
def test_slates_have_inclusion_probabilities(rule):
    X, y = made_log()
    slates = np.column_stack([y["action"], np.roll(y["action"], 1)])
    slates = [tuple(dict.fromkeys(row)) for row in slates]
    reward = [
        tuple(np.full(len(slate), float(r))) for slate, r in zip(slates, y.reward, strict=True)
    ]
    policy = clone(SLATES[rule]).fit(X, slates, reward)
    other = pickle.loads(pickle.dumps(policy))
    chosen, p = policy.select(X, return_proba=True)
    np.testing.assert_array_equal(chosen, other.select(X))
    column = pd.Index(policy.arms_).get_indexer(chosen.ravel()).reshape(chosen.shape)
    np.testing.assert_array_equal(p, np.take_along_axis(policy.select_proba(X), column, axis=1))
    log = pd.DataFrame(
        {
            "action": list(map(tuple, chosen)),
            "reward": [(1.0, 0.0)] * len(X),
            "propensity": list(map(tuple, p)),
        }
    )
    # the log is the policy's own, so all weights are 1
    assert slate_ips(policy, X, log).mean_reward == pytest.approx(1.0)


def test_a_log_written_so_is_ready_for_off_policy_estimates():
    X, y = made_log(400)
    policy = GLMUCBPolicy(exploration="thompson", random_state=0).fit(X[:200], y[:200])
    arms, p = policy.select(X[200:], return_proba=True)
    own = pd.DataFrame({"action": arms, "reward": y["reward"][200:].to_numpy(), "propensity": p})
    estimate = off_policy_value(policy, X[200:], own, method="ips")
    assert estimate.mean_reward == pytest.approx(own["reward"].mean())
    assert estimate.effective_sample_size == pytest.approx(200)


def test_behind_plain_pipelines_and_of_policies_that_do_not_explore():
    X, y = made_log()
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy(exploration="squarecb", random_state=0))
    arms, p = select(pipeline.fit(X, y), X, return_proba=True)
    assert arms.shape == p.shape and (p < 1).any()
    classifier = OffPolicyClassifier(method="ips").fit(X, y)
    arms, p = classifier.select(X, return_proba=True)
    np.testing.assert_array_equal(arms, classifier.predict(X))
    np.testing.assert_array_equal(p, 1.0)
