"""Arms that come when others are known, and contexts that would hide all others."""

import copy
import pickle
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
    """In every context, at any time; from its first event on it has the prior's variance."""
    rng = np.random.default_rng(0)
    k = rng.integers(3, size=150)
    policy = GLMUCBPolicy(arms=[0, 1, 2, 3], random_state=0)
    X = rng.normal(size=(150, 2))
    reward = (rng.random(150) < 0.2 + 0.3 * (X[:, 0] > 0) * (k == 1)).astype(float)
    policy.fit(X, k, reward=reward)
    scores = policy.decision_function(DAY[:50])
    np.testing.assert_allclose(scores[:, 3], scores[:, :3].mean(axis=1), rtol=1e-9)
    for rows in (X[:1], csr_array(X[:1])):
        later = copy.deepcopy(policy).partial_fit(rows, [3], reward=[0], sample_weight=[1e-9])
        np.testing.assert_allclose(later.decision_function(DAY[:50]), scores, rtol=2e-3)
        assert (later.covariance_[3, :2] > 2 * policy.covariance_[3, :2]).all()


@pytest.mark.parametrize("link", ["logistic", "probit", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_failure_does_not_raise_an_estimate(link, sparse):
    """Of an arm that comes when others are known, neither expected nor chosen more after it."""
    policy = known(link, exploration="squarecb", standardize="scale" if sparse else True)
    none = csr_array(np.zeros((1, 2))) if sparse else [[0.0, 0.0]]
    before = copy.deepcopy(policy).partial_fit(none, ["f"], reward=[0], sample_weight=[1e-12])
    expected = before.predict_reward([[0, 0]])[0, 5]
    for n in (1, 10, 50):
        for _ in range(n):
            policy.partial_fit(none, ["f"], reward=[0])
        now = policy.predict_reward([[0, 0]])[0]
        assert now[5] < expected
        assert now[5] < now[:5].mean()
        if link != "probit":  # whose mean rewards include the variance, larger in far-off contexts
            assert (policy.predict(DAY) == "f").mean() < 0.01
            assert (policy.select(DAY) == "f").mean() < 0.05
        expected = now[5]


@pytest.mark.parametrize("exploration", ["thompson", "squarecb"])
def test_an_unseen_arm_follows_the_others_as_they_drift(exploration):
    rng, n = np.random.default_rng(0), 4000
    k = rng.integers(5, size=n)
    rate = np.where(np.arange(n) < 2048, 0.2, 0.02) * np.array([0.8, 0.9, 1, 1.1, 1.2])[k]
    policy = GLMUCBPolicy(exploration=exploration, random_state=0)
    policy.fit(rng.normal(size=(n, 2)), np.array(OLD)[k], reward=rng.random(n) < rate)
    assert (policy.predict(DAY, available=ALL) == "f").mean() < 0.01
    assert (policy.select(DAY, available=ALL) == "f").mean() < 1 / 3


@pytest.mark.parametrize("arms", [None, ["a", "z"]])
def test_predict_prefers_the_only_known_arm_to_one_without_events(arms):
    for n in (20, 100, 500):
        rng = np.random.default_rng(n)
        policy = GLMUCBPolicy(arms=arms, random_state=0)
        policy.fit(rng.normal(size=(n, 2)), ["z"] * n, reward=rng.random(n) < 0.3)
        assert (policy.predict(DAY, available=["a", "z"]) == "z").all()
    policy = GLMUCBPolicy(arms=arms, random_state=0)  # nor does it matter that there is no context
    policy.fit(np.empty((100, 0)), ["z"] * 100, reward=rng.random(100) < 0.01)
    assert policy.predict(np.empty((1, 0)), available=["a", "z"]).tolist() == ["z"]


@pytest.mark.parametrize("exploration", ["thompson", "squarecb"])
def test_a_new_arm_of_a_shared_model_is_not_preferred(exploration):
    """Its own weights hold what those of all arms do, such as a low rate."""
    rng, n = np.random.default_rng(0), 20_000
    category = pd.Series([2, 1, 1, 0, 0, 0], index=ALL)  # f is as d and e
    features = pd.get_dummies(category).astype(float)
    policy = SharedGLMPolicy(features, exploration=exploration, random_state=0)
    k = rng.integers(5, size=n)
    reward = rng.random(n) < RATES[k]
    policy.fit(rng.normal(size=(n, 2)), np.array(OLD)[k], reward=reward)
    d, e, f = policy.predict_reward(DAY).mean(axis=0)[3:]
    assert d < f < e
    assert (policy.predict(DAY) == "f").mean() < 0.05
    assert (policy.select(DAY) == "f").mean() < 1 / 4
    policy.partial_fit([[0.0, 0.0]], ["f"], reward=[0])
    assert policy.predict_reward(DAY).mean(axis=0)[5] < f


def test_merge_begins_new_arms_once():
    """Two workers that learn one failure each of a new arm agree with a policy that learns both."""
    base = known()
    none = [[0.0, 0.0]]
    workers = [copy.deepcopy(base).partial_fit(none, ["f"], reward=[0]) for _ in range(2)]
    merged = base.merge(workers, base=base)
    both = copy.deepcopy(base).partial_fit(np.zeros((2, 2)), ["f", "f"], reward=[0, 0])
    np.testing.assert_allclose(
        merged.decision_function(none)[0, 5], both.decision_function(none)[0, 5], rtol=0.02
    )


def test_labels_are_returned_as_they_are_offered():
    """Whatever equal ones this policy, or another one, was offered before."""
    a, b = (
        GLMUCBPolicy(random_state=0).fit(np.zeros((1, 1)), ["x"], reward=[0.0]) for _ in range(2)
    )
    pairs = [(1002.0, 1001.0), (1002, 1001), ((2.0,), (1.0,)), ((2,), (1,))]
    for policy in (a, b):
        for pair in (*pairs, *pairs[::-1]):
            (chosen,) = policy.select(np.zeros((1, 1)), available=[pair])
            plain = chosen.item() if isinstance(chosen, np.generic) else chosen
            assert repr(plain) in map(repr, pair)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_unknown_arms_offered_before_change_no_choice(n_rows):
    """Those that are remembered are chosen among as by a policy that was offered nothing else."""
    rng = np.random.default_rng(0)
    policy = known(exploration="thompson")
    twin = pickle.loads(pickle.dumps(policy))
    for step in range(30):
        pool = (
            *rng.choice(OLD, 2, replace=False).tolist(),
            *(f"n{k}" for k in rng.integers(9, size=4)),
        )
        x = rng.normal(size=(n_rows, 2))
        fresh = pickle.loads(pickle.dumps(twin))
        chosen, chances = policy.select(x, available=[pool] * n_rows, return_proba=True)
        expected, theirs = fresh.select(x, available=[pool] * n_rows, return_proba=True)
        assert chosen.tolist() == expected.tolist()
        np.testing.assert_array_equal(chances, theirs)
        if step % 3 == 0:
            for one in (policy, fresh):
                one.partial_fit(x, chosen, reward=[0.0] * n_rows)
        twin = fresh


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
    assert seconds[1] < 4 * seconds[0]  # 200 times, once


FEW = np.random.default_rng(2).normal(size=(40, 2))


@pytest.mark.parametrize("value", [1e17, -1e30, 1e150])
@pytest.mark.parametrize(
    "policy",
    [
        GLMUCBPolicy(random_state=0),
        GLMUCBPolicy(standardize=False, random_state=0),
        SharedGLMPolicy(random_state=0),
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
        (SharedGLMPolicy(), "link", "probit"),
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
