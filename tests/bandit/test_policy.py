"""The policy as users call it, and its defaults against the best of a grid."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy
from tests.policies import PAPER
from tests.tiers import first
from tests.worlds import make_log, refuses

# === The policy as users call it ================================================================

SETTINGS = {
    "default": {},
    "full": {"covariance": "full"},
    "linear": {"link": "linear", "noise_variance": 0.3},
    "probit": {"link": "probit", "prior_mean": [0.1, 0.2, 0.3]},
    "thompson": {"exploration": "thompson"},
    "squarecb": {"exploration": "squarecb"},
    "epsilon": {"exploration": "epsilon_greedy", "epsilon": 0.3},
    "adaptive": {"prior_mean": "adaptive", "prior_variance": "adaptive"},
    "growing": {"alpha": np.log1p, "ucb": "U2"},
    "forgetting": {"forgetting": 0.95},
    "waiting": {"update_every": 60},
    "paper": PAPER,
    "no constant": {"fit_intercept": False},
    "one prior": {"prior_scale": 2.5},
}


POLICIES = {name: GLMUCBPolicy(random_state=0, **settings) for name, settings in SETTINGS.items()}
POLICIES["shared"] = SharedGLMPolicy(random_state=0)

COMPILED_ANEW = {  # for seconds, and for these only
    "forgetting full": GLMUCBPolicy(forgetting=0.95, covariance="full", random_state=0),
    "fresh from others": GLMUCBPolicy(prior_mean="adaptive", covariance="full", random_state=0),
    "shared diagonal": SharedGLMPolicy(covariance="diagonal", random_state=0),
}
QUICK = len(POLICIES)
POLICIES |= COMPILED_ANEW


@pytest.fixture(params=first(QUICK, POLICIES))
def policy(request):
    return clone(POLICIES[request.param])


def test_learning_in_parts_is_learning_at_once(policy):
    X, y = make_log()
    whole = clone(policy).fit(X, y)
    parts = clone(policy).fit(X[:100], y[:100])
    for start, end in [(100, 101), (101, 250), (250, 300)]:
        parts = pickle.loads(pickle.dumps(parts)).partial_fit(X[start:end], y[start:end])
    np.testing.assert_array_equal(whole.arms_, parts.arms_)
    np.testing.assert_array_equal(whole.n_updates_, parts.n_updates_)
    for mine, other in zip(whole._posterior, parts._posterior, strict=True):
        np.testing.assert_equal(mine, other)
    np.testing.assert_array_equal(whole.select(X), parts.select(X))
    # and once more, from the start
    np.testing.assert_array_equal(whole.fit(X, y).coef_, parts.coef_)


def test_choosing_and_scores_agree(policy):
    X, y = make_log()
    policy.fit(X, y)
    scores = policy.decision_function(X)
    np.testing.assert_array_equal(policy.predict(X), policy.arms_[scores.argmax(axis=1)])
    if policy.exploration not in ("epsilon_greedy", "squarecb"):
        expected = policy.arms_[policy.select_scores(X).argmax(axis=1)]
        np.testing.assert_array_equal(policy.select(X), expected)
    reward = policy.predict_reward(X)
    assert (np.argsort(reward, axis=1) == np.argsort(scores, axis=1)).all()
    likely = policy.select_proba(X)
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 2], [0.5, 1.5, 2.5], ["x", "y", "z"], [True, False], [("a", 1), ("b", 2)],
        [np.int64(1), "one"], [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02")],
    ],
)  # fmt: skip
def test_labels_of_any_kind(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    which = rng.integers(len(labels), size=60)
    action = [labels[k] for k in which]
    y = pd.DataFrame({"action": pd.Series(action), "reward": rng.random(60) < 0.5})
    policy = GLMUCBPolicy(random_state=0).fit(X, y)
    ordered = list(dict.fromkeys(action)) if "one" in labels else sorted(labels)
    types = {type(label.item() if isinstance(label, np.generic) else label) for label in labels}
    assert policy.arms_.tolist() == ordered
    assert set(policy.select(X).tolist()) <= set(labels)
    one = policy.select(X[:1], available=[(labels[1],)])
    assert one.tolist() == [labels[1]]
    if not isinstance(labels[0], tuple | pd.Timestamp):  # as JSON, in this type
        assert set(map(type, json.loads(json.dumps(policy.select(X).tolist())))) <= types
        assert json.loads(json.dumps(policy.arms_.tolist())) == ordered
    if not isinstance(labels[0], tuple):
        again = GLMUCBPolicy(random_state=0).fit(X, pd.Series(action), reward=y["reward"])
        np.testing.assert_array_equal(again.coef_, policy.coef_)


@pytest.mark.parametrize("dtype", [bool, "int8", "float32", "Int64", "boolean", "Float32", object])
def test_rewards_of_any_kind(dtype):
    X, y = make_log()
    expected = GLMUCBPolicy(prior_mean=0).fit(X, y).coef_
    got = GLMUCBPolicy(prior_mean=0)
    got.fit(X, y.assign(reward=y["reward"].astype(dtype)))
    np.testing.assert_array_equal(got.coef_, expected)
    structured = y[["action", "reward"]].to_records(index=False)
    np.testing.assert_array_equal(GLMUCBPolicy().fit(X, structured).coef_, expected)


def test_actions_alone_count_as_successes():
    X, y = make_log()
    with pytest.warns(UserWarning, match="each action counts as reward 1"):
        learned = GLMUCBPolicy().fit(X, y["action"])
    with pytest.warns(UserWarning, match="all of 300 rewards are 1"):
        expected = GLMUCBPolicy().fit(X, y["action"], reward=np.ones(len(y)))
    np.testing.assert_array_equal(learned.coef_, expected.coef_)


def test_an_unfitted_policy_acts_by_its_prior():
    X, _ = make_log()
    refuses("knows no arms", GLMUCBPolicy().select, X, error=NotFittedError)
    choices = GLMUCBPolicy(arms=["a", "b"], random_state=0).select(X)
    assert 90 < (choices == "a").sum() < 210  # by chance, and seeded
    later = GLMUCBPolicy(random_state=0).select(X, available=[("a", "b")] * len(X))
    np.testing.assert_array_equal(later, choices)


def test_learning_waits_for_the_window_to_end():
    policy = GLMUCBPolicy(update_every="5min", arms=["a", "b"], random_state=0)
    x = [[1.0]]

    def event(seconds):
        time = pd.Timestamp("2026-01-01") + pd.Timedelta(seconds=seconds)
        return pd.DataFrame({"action": ["a"], "reward": [1], "timestamp": [time]})

    for seconds in (10, 200, 299):
        policy.partial_fit(x, event(seconds))
    assert policy.n_updates_.tolist() == [0, 0]
    policy.advance(pd.Timestamp("2026-01-01 00:04:59.5"))
    assert policy.n_updates_.tolist() == [0, 0]
    policy.advance(pd.Timestamp("2026-01-01 00:05:00"))
    assert policy.n_updates_.tolist() == [3, 0]
    policy.partial_fit(x, event(301))
    policy.partial_fit(x, event(900))
    assert policy.n_updates_.tolist() == [4, 0]
    waiting = pickle.loads(pickle.dumps(policy))
    assert waiting.advance().n_updates_.tolist() == [5, 0]
    refuses("earlier than that of an event learned before", policy.partial_fit, x, event(301))


def test_parameters_can_change_between_choices():
    X, y = make_log()
    policy = GLMUCBPolicy(random_state=0).fit(X, y)
    explored = policy.select_scores(X)
    policy.set_params(exploration="greedy")
    np.testing.assert_array_equal(policy.select_scores(X), policy.decision_function(X))
    assert (explored > policy.decision_function(X)).all()


def linucb(X, actions, rewards, alpha):
    """Textbook LinUCB with disjoint models (Li et al., 2010, Algorithm 1)."""
    d = X.shape[1]
    A = {a: np.eye(d) for a in np.unique(actions)}
    b = {a: np.zeros(d) for a in A}
    choices, bounds = [], []
    for x, a, r in zip(X, actions, rewards, strict=True):
        upper = {
            k: np.linalg.solve(A[k], b[k]) @ x + alpha * np.sqrt(x @ np.linalg.solve(A[k], x))
            for k in A
        }
        choices.append(max(upper, key=upper.get))
        bounds.append(upper)
        A[a] += np.outer(x, x)
        b[a] += r * x
    return choices, bounds, {a: np.linalg.solve(A[a], b[a]) for a in A}, A


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_it_decides_like_textbook_linucb(seed):
    """Identical decisions and posteriors, except for ties among the first few."""
    rng = np.random.default_rng(seed)
    n, d, arms = 400, 4, 6
    X, actions = rng.normal(size=(n, d)), rng.integers(arms, size=n)
    rewards = rng.normal(size=n) + X[:, 0] * actions
    choices, bounds, theta, A = linucb(X, actions, rewards, alpha=0.7)
    policy = GLMUCBPolicy(
        "linear",
        covariance="full",
        fit_intercept=False,
        arms=range(arms),
        random_state=0,
        **PAPER | {"alpha": 0.7},
    )
    for t in range(n):
        best_two = sorted(bounds[t].values())[-2:]
        scores = policy.select_scores(X[t : t + 1]) if t else None
        mine = policy.select(X[t : t + 1])[0]
        if best_two[1] - best_two[0] > 1e-9:
            assert mine == choices[t]
        if t:
            np.testing.assert_allclose(scores[0], list(bounds[t].values()), atol=1e-9)
        policy.partial_fit(X[t : t + 1], actions[t : t + 1], reward=rewards[t : t + 1])
    np.testing.assert_allclose(policy.coef_, list(theta.values()), atol=1e-10)
    np.testing.assert_allclose(policy.covariance_, [np.linalg.inv(A[a]) for a in A], atol=1e-12)


EPSILON = {
    "arms": GLMUCBPolicy,
    "shared": SharedGLMPolicy,
    "oracle": lambda **settings: OraclePolicy(Ridge(), **settings),
    "slates": lambda **settings: SlatePolicy(GLMUCBPolicy(**settings), n_select=1),
}


@pytest.mark.parametrize("kind", EPSILON)
def test_epsilon_greedy_explores(kind):
    X, y = make_log()
    y = y.drop(columns="timestamp")
    make = EPSILON[kind]

    def probabilities(**settings):
        policy = make(**settings).fit(X, y[["action"]], reward=y["reward"])
        return policy.select_proba(X[:20])

    K = y["action"].nunique()
    explored, greedy = (
        probabilities(exploration="epsilon_greedy"),
        probabilities(exploration="greedy"),
    )
    np.testing.assert_allclose(explored, 0.9 * greedy + 0.1 / K, atol=1e-12)
    exploit = probabilities(exploration="epsilon_greedy", epsilon=0.0)
    np.testing.assert_array_equal(exploit, greedy)
    for rule in ("squarecb", "greedy"):  # whatever epsilon is
        np.testing.assert_array_equal(
            probabilities(exploration=rule, epsilon=0.7), probabilities(exploration=rule)
        )


@pytest.mark.parametrize("variance", [0.1, np.full(2, 0.1)])
def test_a_prior_changed_in_place_holds_for_the_next_arm(variance):
    policy = GLMUCBPolicy(prior_variance=1.0, standardize=False, fit_intercept=False)
    policy.partial_fit(np.eye(2), [0, 0], reward=[1, 0])
    policy.set_params(prior_variance=variance).partial_fit(np.zeros((1, 2)), [1], reward=[1])
    np.testing.assert_array_equal(policy.covariance_[1], 0.1)
    if np.ndim(variance):
        variance *= 2
        policy.partial_fit(np.zeros((1, 2)), [2], reward=[1])
        np.testing.assert_array_equal(policy.covariance_[2], 0.2)
