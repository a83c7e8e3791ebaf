"""SlatePolicy: choices, feedback and copies, against known users and the policy of single arms."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy, make_policy_pipeline
from skbandit.evaluation import replay_slates, slate_ips
from tests.tiers import first
from tests.worlds import refuses, warns

RULES = ["thompson", "squarecb", "ucb", "epsilon_greedy", "greedy"]
N_ARMS, N_FEATURES = 8, 3
TASTE = np.random.default_rng(5).normal(size=(N_FEATURES, N_ARMS))
ARMS = [f"ad {k}" for k in range(N_ARMS)]


def clicks_of(X, slates, rng):
    """Clicks of made users, independent by arm."""
    chance = expit(X @ TASTE - 1)
    number = np.array([[ARMS.index(arm) for arm in slate] for slate in slates])
    return (rng.random(number.shape) < np.take_along_axis(chance, number, axis=1)).astype(float)


def logged(n=150, seed=0, m=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    slates = np.array([rng.permutation(ARMS)[:m] for _ in range(n)])
    return X, slates, clicks_of(X, slates, rng)


def fitted(rule="thompson", m=3, feedback="semi_bandit", **settings):
    models = GLMUCBPolicy(exploration=rule, epsilon=0.2, **settings)
    X, slates, clicks = logged()
    policy = SlatePolicy(models, m, feedback=feedback, random_state=0)
    return policy.fit(X, slates, clicks)


@pytest.mark.parametrize("rule", RULES)
def test_no_arm_is_shown_twice_and_only_available_ones(rule):
    policy, X = fitted(rule), np.random.default_rng(1).normal(size=(60, N_FEATURES))
    pools = [tuple(np.random.default_rng(k).permutation(ARMS)[:4]) for k in range(60)]
    for slates in (policy.select(X, available=pools), policy.predict(X, available=pools)):
        assert slates.shape == (60, 3)
        assert all(
            len(set(s)) == 3 and set(s) <= set(p) for s, p in zip(slates, pools, strict=True)
        )
    proba = policy.select_proba(X, available=pools)
    there = np.array([[arm in pool for arm in policy.arms_] for pool in pools])
    assert (proba[~there] == 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 3)


@pytest.mark.parametrize("rule", RULES)
def test_slates_are_in_the_order_of_the_scores(rule):
    policy, X = fitted(rule), np.random.default_rng(1).normal(size=(40, N_FEATURES))
    number = {arm: k for k, arm in enumerate(policy.arms_)}

    def in_order(slates, scores):
        places = np.array([[number[arm] for arm in slate] for slate in slates])
        return (np.diff(np.take_along_axis(scores, places, axis=1), axis=1) <= 0).all(axis=1)

    rewards = policy.predict_reward(X)
    assert in_order(policy.predict(X), rewards).all()
    slates = policy.select(X)
    if rule == "epsilon_greedy":  # a uniform slate has a uniform order
        explored = (np.sort(slates, axis=1) != np.sort(policy.predict(X), axis=1)).any(axis=1)
        assert in_order(slates[~explored], rewards[~explored]).mean() > 0.8
    elif rule in ("greedy", "squarecb"):
        assert in_order(slates, rewards).all()
    else:  # "ucb" and draws: upper bounds of single arms, in the same order one by one
        first = clone(policy).set_params(n_select=1)
        first = first.fit(*logged())
        np.testing.assert_array_equal(first.select(X).ravel(), slates[:, 0])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shared", first(1, [False, True]))
def test_frequencies_are_the_inclusion_probabilities(rule, shared):
    """Within 4.9 standard errors (a false alarm per arm in a million) and the stated .002."""
    settings = {"exploration": rule, "epsilon": 0.3, "alpha": 0.7}
    models = SharedGLMPolicy(**settings) if shared else GLMUCBPolicy(**settings)
    policy = SlatePolicy(models, 3, random_state=0).fit(*logged(40))
    n = 4000
    x = np.array([[0.3, -0.2, 0.1]])
    slates = policy.select(np.repeat(x, n, axis=0))
    share = np.array([(slates == arm).sum() for arm in policy.arms_]) / n
    p = policy.select_proba(x)[0]
    assert (abs(share - p) <= 0.002 + 4.9 * np.sqrt(p * (1 - p) / n)).all()


@pytest.mark.parametrize("rule", ["thompson", "ucb", "epsilon_greedy", "greedy"])
def test_slates_of_one_have_the_probabilities_of_the_single_policy(rule):
    X, slates, clicks = logged(m=1)
    models = GLMUCBPolicy(exploration=rule, epsilon=0.2, random_state=0)
    policy = SlatePolicy(models, 1).fit(X, slates, clicks)
    single = clone(models).fit(X, slates.ravel(), reward=clicks.ravel())
    np.testing.assert_array_equal(policy.predict(X).ravel(), single.predict(X))
    np.testing.assert_allclose(policy.select_proba(X[:20]), single.select_proba(X[:20]), atol=0.004)


def test_inverse_gaps_are_those_of_the_mean_rewards():
    policy, X = fitted("squarecb", alpha=0.5), np.random.default_rng(1).normal(size=(20, 3))
    p, y = policy.select_proba(X), policy.predict_reward(X)
    gamma = np.sqrt(N_ARMS * 450 / 3) / 0.5**2
    for row in range(20):
        inner = p[row] < 1 - 1e-9
        level = 1 / p[row, inner] + gamma * y[row, inner]
        np.testing.assert_allclose(level, level[0])


def test_unknown_rewards_teach_nothing():
    X, slates, clicks = logged()
    seen = np.random.default_rng(2).random(clicks.shape) < 0.6
    policy = SlatePolicy(GLMUCBPolicy()).fit(X, slates, np.where(seen, clicks, np.nan))
    rows = np.nonzero(seen)[0]
    single = GLMUCBPolicy().fit(X[rows], slates[seen], reward=clicks[seen])
    np.testing.assert_array_equal(policy.arms_, single.arms_)
    np.testing.assert_array_equal(policy.predict_reward(X), single.predict_reward(X))


def test_cascades_end_at_the_first_click():
    X, slates, clicks = logged()
    clicked = clicks.any(axis=1)
    position = np.where(clicked, clicks.argmax(axis=1), np.nan)
    seen = np.arange(3) <= np.where(clicked, clicks.argmax(axis=1), 3)[:, None]
    expected = SlatePolicy(GLMUCBPolicy()).fit(X, slates, np.where(seen, clicks, np.nan))
    for reward in (clicks, position):
        policy = SlatePolicy(GLMUCBPolicy(), feedback="cascade").fit(X, slates, reward)
        np.testing.assert_array_equal(policy.predict_reward(X), expected.predict_reward(X))


@pytest.mark.parametrize(
    "reward",
    [
        pd.array([None, 1, 0], dtype="Int64"),
        [None, 1, 0],
        [pd.NA, 1, 0],
        [None, (0, 1), (1, 0)],
        pd.Series([pd.NA, (0, 1), [1, 0]]),
        np.array([[0.0, 0], [0, 1], [1, 0]]),
    ],
)
def test_cascades_without_a_click_in_every_form(reward):
    X, slates = np.eye(3), [("a", "b"), ("b", "a"), ("a", "b")]
    policy = SlatePolicy(feedback="cascade", random_state=0).fit(X, slates, reward)
    expected = GLMUCBPolicy(exploration="thompson").fit(
        X[[0, 0, 1, 1, 2]], list("abbaa"), reward=[0, 0, 0, 1, 1]
    )
    np.testing.assert_array_equal(policy.predict_reward(X), expected.predict_reward(X))


@pytest.mark.parametrize("feedback", ["semi_bandit", "cascade"])
def test_one_fit_equals_several(feedback):
    X, slates, clicks = logged()
    whole = fitted(feedback=feedback)
    parts = SlatePolicy(whole.policy, feedback=feedback)
    for rows in (slice(0, 50), slice(50, 51), slice(51, 150)):
        parts.partial_fit(X[rows], slates[rows], clicks[rows])
    np.testing.assert_array_equal(parts.predict_reward(X), whole.predict_reward(X))


def test_copies_go_on_alike_and_apart():
    policy, (X, slates, clicks) = fitted(), logged()
    before = policy.predict_reward(X)
    for twin in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
        np.testing.assert_array_equal(twin.select(X), pickle.loads(pickle.dumps(policy)).select(X))
        twin.partial_fit(X[:1], slates[:1], clicks[:1])
        np.testing.assert_array_equal(policy.predict_reward(X), before)


def test_logs_as_tables():
    X, slates, clicks = logged()
    log = pd.DataFrame({"shown": [tuple(s) for s in slates], "clicked": clicks.tolist()})
    log["available"] = [tuple(ARMS)] * len(log)
    columns = {"action": "shown", "reward": "clicked"}
    policy, named = SlatePolicy(GLMUCBPolicy(), columns=columns), pd.DataFrame(X).add_prefix("x")
    policy.fit(named, log)
    expected = SlatePolicy(GLMUCBPolicy()).fit(X, slates, clicks)
    np.testing.assert_array_equal(policy.predict_reward(named), expected.predict_reward(X))
    assert policy.feature_names_in_.tolist() == ["x0", "x1", "x2"]


def test_weights_count_events():
    X, slates, clicks = logged()
    weight = np.tile([0.0, 1.0, 2.0], 50)
    rows = np.repeat(np.arange(150), weight.astype(int))
    models = GLMUCBPolicy("linear", prior_variance=1.0, standardize=False, covariance="full")
    one = SlatePolicy(models).fit(X, slates, clicks, sample_weight=weight)
    two = SlatePolicy(models).fit(X[rows], slates[rows], clicks[rows])
    np.testing.assert_allclose(one.predict_reward(X), two.predict_reward(X), atol=1e-9)


def test_behind_transformers():
    X, slates, clicks = logged()
    log = pd.DataFrame({"action": [tuple(s) for s in slates], "reward": clicks.tolist()})
    policy = make_policy_pipeline(StandardScaler(), SlatePolicy(random_state=0)).fit(X, log)
    assert policy.select(X[:5]).shape == (5, 3)
    policy.partial_fit(X[:5], log[:5])
    np.testing.assert_allclose(policy.select_proba(X[:5]).sum(axis=1), 3)


def test_cold_starts():
    x = np.zeros((1, 2))
    refuses("knows no arms", SlatePolicy().select, x, error=NotFittedError)
    slate = SlatePolicy(random_state=0).select(x, available=["a", "b", "c", "d"])
    assert len(set(slate[0])) == 3
    named = SlatePolicy(GLMUCBPolicy(arms=["a", "b", "c"]))
    assert set(named.select(x)[0]) == {"a", "b", "c"}


def test_errors_name_the_row_and_leave_the_policy_unchanged():
    policy, (X, slates, clicks) = fitted(), logged()
    before = policy.predict_reward(X)
    with pytest.raises(ValueError, match="Row 1 has 2 available arms, but n_select is 3"):
        policy.select(X[:2], available=[ARMS, ARMS[:2]])
    twice = slates.copy()
    twice[4] = ["ad 1", "ad 2", "ad 1"]
    refuses("row 4 shows an arm twice", policy.partial_fit, X, twice, clicks)
    with pytest.raises(ValueError, match="reward of row 0 has 2 entries for a slate of 3"):
        policy.partial_fit(X, slates, clicks[:, :2])
    refuses("150 slates for 149 rows", policy.partial_fit, X[:149], slates, clicks)
    refuses("from 0 to 1", policy.partial_fit, X, slates, clicks + 0.5)
    refuses("not among the available", policy.partial_fit, X, slates, clicks, available=ARMS[:3])
    np.testing.assert_array_equal(policy.predict_reward(X), before)


def test_errors_of_feedback_and_models():
    X, slates, clicks = logged()
    cascade = SlatePolicy(feedback="cascade")
    with pytest.raises(ValueError, match="row 0 is 3, but places are counted from 0 to 2"):
        cascade.fit(X, slates, np.full(150, 3.0))
    refuses("reward is true or false", cascade.fit, X, slates, np.ones(150, dtype=bool))
    refuses("needs clicks, 0 or 1: row 0 has the reward", cascade.fit, X, slates, clicks + 0.5)
    by_slate = SlatePolicy(feedback="slate")
    refuses("one reward per slate is for slate_pseudo_inverse", by_slate.fit, X, slates, clicks)
    with pytest.raises(TypeError, match="must be a GLMUCBPolicy or a SharedGLMPolicy"):
        SlatePolicy(OraclePolicy(DecisionTreeRegressor())).fit(X, slates, clicks)


def test_tables_of_places_are_slates():
    X, slates, clicks = logged()
    table = SlatePolicy(GLMUCBPolicy()).fit(X, pd.DataFrame(slates), clicks)
    expected = SlatePolicy(GLMUCBPolicy()).fit(X, slates, clicks)
    np.testing.assert_array_equal(table.predict_reward(X), expected.predict_reward(X))
    warns("no rewards", SlatePolicy().fit, X, pd.DataFrame(slates))
    named = pd.DataFrame({"shown": slates.tolist(), "reward": clicks.tolist()})
    mapped = SlatePolicy(GLMUCBPolicy(columns={"action": "other"}), columns={"action": "shown"})
    assert slate_ips(mapped.fit(X, named), X, named, rule="predict") == slate_ips(
        mapped, X, slates, reward=clicks, rule="predict"
    )
    replayed = replay_slates(SlatePolicy(columns={"action": "shown"}), X, named, random_state=0)
    assert replayed == replay_slates(SlatePolicy(), X, slates, reward=clicks, random_state=0)


def test_sparse_contexts_give_the_same_policy():
    X, slates, clicks = logged()
    dense = SlatePolicy(GLMUCBPolicy()).fit(X, slates, clicks)
    sparse = SlatePolicy(GLMUCBPolicy()).fit(csr_array(X), slates, clicks)
    np.testing.assert_array_equal(sparse.predict(csr_array(X)), dense.predict(X))
