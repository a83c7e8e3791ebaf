"""Arms that come when others are known, and contexts that would hide all others."""

import copy
import time

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy

RATES = np.array([0.010, 0.0125, 0.015, 0.0175, 0.020])
OLD, ALL = list("abcde"), list("abcdef")


def known(link="logistic", **settings):
    """A policy that knows five arms of 1 to 2 % by 20,000 events."""
    rng = np.random.default_rng(0)
    k = rng.integers(5, size=20_000)
    policy = GLMUCBPolicy(link, random_state=0, **settings)
    reward = rng.random(20_000) < RATES[k]
    return policy.fit(rng.normal(size=(20_000, 2)), np.array(OLD)[k], reward=reward)


DAY = np.random.default_rng(1).normal(size=(4000, 2))


@pytest.mark.parametrize("link", ["logistic", "probit", "linear"])
@pytest.mark.parametrize("exploration", ["ucb", "thompson", "squarecb"])
def test_a_new_arm_is_explored_but_not_preferred(link, exploration):
    policy = known(link, exploration=exploration)
    assert (policy.predict(DAY, available=ALL) == "f").mean() < 0.01
    share = (policy.select(DAY, available=ALL) == "f").mean()
    assert 0 < share and (share < 1 / 3 or exploration == "ucb")


def test_its_mean_is_the_average_of_the_others():
    """At a renewal of units, in every context; with its first event it begins from the prior."""
    rng = np.random.default_rng(0)
    k = rng.integers(3, size=128)
    policy = GLMUCBPolicy(arms=[0, 1, 2, 3], random_state=0)
    X = rng.normal(size=(128, 2))
    reward = (rng.random(128) < 0.2 + 0.3 * (X[:, 0] > 0) * (k == 1)).astype(float)
    policy.fit(X, k, reward=reward)
    scores = policy.decision_function(DAY[:50])
    np.testing.assert_allclose(scores[:, 3], scores[:, :3].mean(axis=1), rtol=1e-9)
    fixed = GLMUCBPolicy(arms=[0, 1, 2, 3], prior_mean=0.0, random_state=0)
    fixed.fit(X, k, reward=reward).partial_fit(X[:1], [3], reward=[0])
    for rows in (X[:1], csr_array(X[:1])):
        later = copy.deepcopy(policy).partial_fit(rows, [3], reward=[0])
        np.testing.assert_array_equal(later.coef_, fixed.coef_)


def test_the_first_arms_start_from_the_prior():
    policy = GLMUCBPolicy(arms=list(range(9)), random_state=0)
    for _ in range(64):
        arm = policy.select([[1.0]])
        policy.partial_fit([[1.0]], {"action": arm, "reward": [0]})
    assert (policy.n_updates_ > 0).all()  # optimistic for rare rewards


def test_a_better_new_arm_is_found():
    for exploration in ("ucb", "thompson", "squarecb"):
        policy, rng = known(exploration=exploration), np.random.default_rng(0)
        for _ in range(15):
            A = policy.select(DAY[:400], available=ALL)
            rate = np.r_[RATES, 0.2][[ALL.index(arm) for arm in A]]
            policy.partial_fit(DAY[:400], A, reward=(rng.random(400) < rate).astype(float))
        assert (A == "f").mean() > 0.8, exploration


def test_many_unknown_arms_are_chosen_among_fast():
    arms = [f"item{k}" for k in range(500)]
    log = {"action": arms[:5] * 20, "reward": np.arange(100) % 2}
    seconds = []
    for named in (arms, None):
        policy = GLMUCBPolicy(arms=named, random_state=0).fit(np.ones((100, 2)), log)
        best = np.inf
        for _ in range(30):
            began = time.perf_counter()
            policy.select([[1.0, 0.0]], available=[tuple(arms)])
            best = min(best, time.perf_counter() - began)
        seconds.append(best)
    assert seconds[1] < 20 * seconds[0]  # 200 times, once


FEW = np.random.default_rng(2).normal(size=(40, 2))


@pytest.mark.parametrize("value", [1e17, -1e30, 1e150])
@pytest.mark.parametrize(
    "policy",
    [
        GLMUCBPolicy(random_state=0),
        GLMUCBPolicy(standardize=False, random_state=0),
        SharedGLMPolicy(covariance="diagonal", random_state=0),
        OraclePolicy(Ridge(), random_state=0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_context_that_would_hide_all_others_is_refused(policy, value):
    arms, reward = ["a", "b"] * 20, [0.0, 1.0] * 20
    wrong = FEW.copy()
    wrong[7, 1] = value
    frame = pd.DataFrame(wrong, columns=["age", "height"])
    with pytest.raises(ValueError, match=r"in column 'height' of row 7: contexts beyond 1e\+16"):
        policy.fit(frame, arms, reward=reward)
    with pytest.raises(ValueError, match="in column 1 of row 0"):
        policy.fit(wrong[7:8], ["a"], reward=[1])
    policy.fit(FEW, arms, reward=reward)
    before = policy.predict_reward(FEW)
    calls = [lambda: policy.partial_fit(wrong, arms, reward=reward), lambda: policy.select(wrong)]
    if not isinstance(policy, OraclePolicy):
        calls.append(lambda: policy.predict(csr_array(wrong)))
    for call in calls:
        with pytest.raises(ValueError, match="in column 1 of row 7"):
            call()
    np.testing.assert_array_equal(policy.predict_reward(FEW), before)


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        (OraclePolicy(GaussianNB(), refit="partial_fit"), "refit", 5),
        (OraclePolicy(GaussianNB(), refit=5), "refit", "partial_fit"),
        (GLMUCBPolicy(), "link", "probit"),
        (SharedGLMPolicy(covariance="diagonal"), "link", "probit"),
    ],
)
def test_settings_of_the_models_cannot_change_after_learning(policy, name, value):
    arms, reward = ["a", "b", "a", "b"] * 10, [0, 1, 1, 0] * 10
    policy.set_params(random_state=0).fit(FEW, arms, reward=reward).set_params(**{name: value})
    for call in (
        lambda: policy.partial_fit(FEW[:4], arms[:4], reward=reward[:4]),
        lambda: policy.predict(FEW),
    ):
        with pytest.raises(ValueError, match=f"{name}=.*, but the policy has learned"):
            call()
    policy.fit(FEW, arms, reward=reward).predict(FEW)
