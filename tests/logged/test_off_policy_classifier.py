"""OffPolicyClassifier: what it learns from logs, in which forms, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from skbandit.bandit import OffPolicyClassifier
from skbandit.datasets import make_bandit_log
from skbandit.logged._off_policy_classifier import gains_of_rewards
from tests.tiers import first
from tests.worlds import ips

LOG = make_bandit_log(3000, n_arms=3, n_features=3, base_rate=0.3, random_state=0)
METHODS = ("dr", "ips", "snips")


def value(policy, log):
    """True mean reward of the policy's choices."""
    chosen = np.asarray(policy.predict(log.X), dtype=int)
    return log.expected_reward[np.arange(len(chosen)), chosen].mean()


# --- what it learns ----------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_better_than_the_log_and_near_full_information(method, seed):
    """On logs of a soft logger: the value of 8,000 events is near that of knowing all rewards."""
    made = make_bandit_log(
        12_000, n_arms=4, n_features=4, base_rate=0.2, logging="softmax", temperature=2.0,
        random_state=seed,
    )  # fmt: skip
    learn, rest = slice(0, 8000), slice(8000, None)
    X, y, truth = made.X[learn], made.y[learn], made.expected_reward
    policy = OffPolicyClassifier(method=method, random_state=0).fit(X, y)
    chosen = policy.predict(made.X[rest])
    earned = truth[rest][np.arange(4000), chosen].mean()
    full = LogisticRegression().fit(X, truth[learn].argmax(axis=1)).predict(made.X[rest])
    best = truth[rest][np.arange(4000), full].mean()
    logged = made.y["reward"].mean()
    # in trials, 94% and more of the way from the log to full information
    assert logged + 0.8 * (best - logged) < earned


def confounded(n=4000, seed=0):
    """Arm 1 is better, but the log chose it where rewards are low."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    p = np.where(x[:, 0] > 0, 0.05, 0.95)  # of arm 1
    action = (rng.random(n) < p).astype(int)
    mean = np.where(x[:, 0] > 0, 0.6, 0.1) + 0.1 * action
    reward = (rng.random(n) < mean).astype(float)
    y = pd.DataFrame({"action": action, "reward": reward})
    return y.assign(propensity=np.where(action == 1, p, 1 - p))


@pytest.mark.parametrize("method", METHODS)
def test_propensities_correct_what_contexts_do_not_show(method):
    y = confounded()
    unseen = np.zeros((len(y), 1))
    options = {"shrinkage": np.inf} if method == "dr" else {}
    policy = OffPolicyClassifier(method=method, random_state=0, **options).fit(unseen, y)
    assert policy.predict([[0.0]])[0] == 1


def test_missing_propensities_of_a_log_that_is_not_uniform():
    y = confounded()
    y = y[y["action"].eq(0) | (np.arange(len(y)) % 2 == 0)].drop(columns="propensity")
    with pytest.warns(UserWarning, match="no propensities, but its actions were not chosen unif"):
        OffPolicyClassifier(method="ips").fit(np.zeros((len(y), 1)), y)


def test_ips_is_classification_of_weighted_events():
    y = LOG.y.assign(reward=LOG.y["reward"] * 2.0)
    inner = LogisticRegression()
    policy = OffPolicyClassifier(inner, "ips").fit(LOG.X, y)
    won = (y["reward"] > 0).to_numpy()
    weight = 1 / y["propensity"][won]
    wanted = inner.fit(LOG.X[won], y["action"][won], sample_weight=weight * 3000 / weight.sum())
    assert policy.estimator_.coef_ == pytest.approx(wanted.coef_)
    assert policy.predict_proba(LOG.X) == pytest.approx(wanted.predict_proba(LOG.X))


def test_dr_of_constant_predictions_is_shifted_ips():
    shifted = LOG.y.assign(reward=LOG.y["reward"] - 0.25)
    constant = DummyRegressor(strategy="constant", constant=0.25)
    options = {"reward_model": constant, "shrinkage": np.inf}
    one = OffPolicyClassifier(method="dr", **options).fit(LOG.X, LOG.y)
    other = OffPolicyClassifier(method="ips").fit(LOG.X, shifted)
    assert one.predict_proba(LOG.X) == pytest.approx(other.predict_proba(LOG.X), abs=1e-6)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1e3, 1e-3, 1e6])
def test_weights_have_no_unit(unit, method, binary):
    """Penalties, shrinkage and rewards predicted are those of weights that are 1 on average."""
    weight = np.random.default_rng(1).uniform(0.5, 2, 3000)
    weight[::7] = 0.0
    log = LOG.y if binary else LOG.y.assign(reward=LOG.y["reward"] + LOG.X.iloc[:, 0].abs())
    classifier = LogisticRegression(C=0.01)
    one, other = (
        OffPolicyClassifier(classifier, method, random_state=0).fit(LOG.X, log, sample_weight=w)
        for w in (weight, weight * unit)
    )
    assert one.predict_proba(LOG.X) == pytest.approx(other.predict_proba(LOG.X), rel=1e-6)


def test_whole_numbers_are_numbers_of_events():
    """Rows that are repeated and rows that count so often are the same, also in tens."""
    weight = np.random.default_rng(2).integers(1, 4, 3000)
    repeated = np.repeat(np.arange(3000), weight)
    classifier = OffPolicyClassifier(LogisticRegression(C=0.01), "ips", random_state=0)
    counted = classifier.fit(LOG.X, LOG.y, sample_weight=weight).predict_proba(LOG.X)
    X, y = LOG.X.iloc[repeated], LOG.y.iloc[repeated]
    assert classifier.fit(X, y).predict_proba(LOG.X) == pytest.approx(counted, rel=1e-4)
    tens = classifier.fit(LOG.X, LOG.y, sample_weight=10 * weight).predict_proba(LOG.X)
    assert tens == pytest.approx(counted, rel=1e-6)


# --- forms -------------------------------------------------------------------------------


def test_labels_rows_and_columns():
    names = np.array(["no", "maybe", "yes"])
    y = pd.DataFrame(
        {"shown": names[LOG.y["action"]], "clicked": LOG.y["reward"], "p": LOG.y["propensity"]}
    )
    columns = {"action": "shown", "reward": "clicked", "propensity": "p"}
    policy = OffPolicyClassifier(method="ips", columns=columns).fit(LOG.X, y)
    assert policy.arms_.tolist() == policy.classes_.tolist() == ["maybe", "no", "yes"]
    other = OffPolicyClassifier(method="ips").fit(LOG.X, LOG.y)
    assert (policy.predict(LOG.X) == names[other.predict(LOG.X)]).all()
    assert policy.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    loose = OffPolicyClassifier(method="ips").fit(
        LOG.X, LOG.y["action"].to_numpy(), reward=LOG.y["reward"], propensity=LOG.y["propensity"]
    )
    assert (loose.predict(LOG.X) == other.predict(LOG.X)).all()


@pytest.mark.thorough
def test_available_arms():
    log = make_bandit_log(4000, n_arms=6, n_available=3, base_rate=0.3, random_state=0)
    policy = OffPolicyClassifier(random_state=0).fit(log.X, log.y)
    chosen = policy.predict(log.X, available=log.available)
    assert all(arm in pool for arm, pool in zip(chosen, log.available, strict=True))
    p = policy.predict_proba(log.X, available=log.available)
    assert p.sum(axis=1) == pytest.approx(np.ones(4000))
    assert (p[np.isnan(log.expected_reward)] == 0).all()
    assert (policy.arms_[p.argmax(axis=1)] == chosen).all()
    earned = log.expected_reward[np.arange(4000), chosen].mean()
    assert earned > np.nanmean(log.expected_reward) + 0.05
    with pytest.warns(UserWarning, match="fitted to this very log"):
        assert ips(policy, log.X, log.y).mean_reward == pytest.approx(earned, abs=0.06)
    new = policy.predict(log.X[:2], available=[(5, 17), (17, 18)])
    assert new.tolist() == [5, 17]
    assert (policy.predict_proba(log.X[:1], available=[(17,)]) == 0).all()


def pooled(pools, reward, seed=0):
    """A log that chose uniformly from pools of arms a, b and c."""
    rng = np.random.default_rng(seed)
    action = np.array([pool[rng.integers(len(pool))] for pool in pools])
    earned = pd.Series(action).map(reward) + 0.3 * rng.normal(size=len(pools))
    return pd.DataFrame({"action": action, "reward": earned, "available": pools}).assign(
        propensity=[1 / len(pool) for pool in pools]
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_pools_of_different_quality(method, unit):
    """Where a (5) and b (4) meet, b is not better as it also met c (0)."""
    rng = np.random.default_rng(1)
    pools = [("a", "b") if u < 0.5 else ("b", "c") for u in rng.random(3000)]
    y = pooled(pools, {"a": 5 * unit, "b": 4 * unit, "c": 0.0})
    X = rng.normal(size=(3000, 1))
    policy = OffPolicyClassifier(method=method, random_state=0).fit(X, y)
    assert (policy.predict(X, available=[("a", "b")] * 3000) == "a").mean() > 0.9
    assert (policy.predict(X, available=[("b", "c")] * 3000) == "b").mean() > 0.99
    assert (policy.predict(X, available=["a", "b", "c"]) == "a").mean() > 0.9


def test_pools_that_depend_on_the_context():
    rng = np.random.default_rng(0)
    shop = rng.integers(2, size=3000)
    has_a = rng.random(3000) < np.where(shop, 0.9, 0.15)
    pools = [("a", "b", "c") if has else ("b", "c") for has in has_a]
    X, y = shop[:, None].astype(float), pooled(pools, {"a": 5.0, "b": 4.0, "c": 0.0}, seed=1)
    policy = OffPolicyClassifier(random_state=0).fit(X, y)
    assert (policy.predict(X, available=["a", "b", "c"]) == "a").all()
    for method in ("ips", "snips"):
        told = pytest.warns(UserWarning, match=r"'a' on .* column 0 = 0\.0.*Use method='dr'")
        with told as caught:
            OffPolicyClassifier(method=method).fit(X, y)
        assert caught[0].filename == __file__


def test_a_single_arm_worth_choosing():
    y = LOG.y.assign(reward=LOG.y["reward"] * (LOG.y["action"] == 1))
    policy = OffPolicyClassifier(method="ips").fit(LOG.X, y)
    assert policy.estimator_ is None
    assert (policy.predict(LOG.X) == 1).all()
    assert policy.predict_proba(LOG.X[:1]).tolist() == [[0.0, 1.0, 0.0]]
    assert policy.predict_proba(LOG.X[:1], available=[(0, 2)]).tolist() == [[0.5, 0.0, 0.5]]


# --- what it refuses ---------------------------------------------------------------------


def test_wrong_input_leaves_the_policy_as_it_was():
    policy = OffPolicyClassifier(method="ips").fit(LOG.X, LOG.y)
    before = policy.predict_proba(LOG.X)
    wrong = [
        ({"y": LOG.y[:10]}, "10 events for 3000 rows"),
        ({"y": LOG.y.assign(propensity=0.0)}, r"propensity must be in \(0, 1\]"),
        ({"y": LOG.y.assign(reward=np.nan)}, "reward is missing on row 0"),
        ({"y": LOG.y.assign(reward=0)}, "nothing to learn: all rewards are equal, or 0"),
        ({"sample_weight": np.ones(7)}, "7"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            policy.fit(**({"X": LOG.X, "y": LOG.y} | options))
        assert (policy.predict_proba(LOG.X) == before).all()


def test_wrong_parameters():
    with pytest.raises(ValueError, match="The 'method' parameter of OffPolicyClassifier must be"):
        OffPolicyClassifier(method="dm").fit(LOG.X, LOG.y)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit accepts no sample_weight"):
        OffPolicyClassifier(KNeighborsClassifier()).fit(LOG.X, LOG.y)
    equal = LOG.y.assign(reward=1.0)
    with pytest.raises(ValueError, match=r"all rewards are equal\.$"):
        OffPolicyClassifier(reward_model=Ridge(alpha=1e-3)).fit(LOG.X * 0, equal)
    with pytest.warns(UserWarning, match="each action counts as reward 1"):
        policy = OffPolicyClassifier().fit(LOG.X, LOG.y["action"].to_numpy())
    assert policy.arms_.tolist() == [0, 1, 2]


# Weighted examples: a calibrated classifier's most probable arm is the best one.


def shares(rewards, allowed, weight):
    """What a calibrated classifier would learn where all contexts are equal."""
    return gains_of_rewards(rewards, allowed, weight).sum(axis=0)


def test_weighted_examples_by_hand():
    rewards = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0], [-1.0, -4.0, 9.0]])
    allowed = np.array([[True, True, True], [True, True, True], [True, True, False]])
    gain = gains_of_rewards(rewards, allowed, np.array([1.0, 1.0, 2.0]))
    # arm 2 is available in half of the weight
    expected = np.array([[2.0, 0.0, 2.0], [0.0, 0.0, 0.0], [6.0, 0.0, 0.0]]) * 4 / 10
    assert gain == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(2))
def test_the_best_arm_has_the_largest_share_whatever_the_unit(seed):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(200, 6)) + rng.normal(size=6)
    everywhere = np.ones((200, 6), dtype=bool)
    weight = rng.exponential(size=200)
    found = shares(rewards, everywhere, weight)
    assert found.argmax() == (weight @ rewards).argmax()
    # shares differ as mean rewards do
    ratio = np.diff(found) / np.diff(weight @ rewards)
    assert ratio == pytest.approx(np.full(5, ratio[0]))
    other = shares(7 * rewards - 3, everywhere, weight)
    assert other == pytest.approx(found)
    assert found.sum() == pytest.approx(weight.sum())


def test_no_weighted_examples():
    gain = gains_of_rewards(np.ones((4, 2)), np.ones((4, 2), dtype=bool), np.ones(4))
    assert not gain.any()


def test_an_arm_without_examples_is_chosen_where_no_other_is_available():
    X, action = np.arange(30.0)[:, None] % 7, np.arange(30) % 3
    reward = (action < 2).astype(float)  # so that arm 2 has no example
    policy = OffPolicyClassifier(RidgeClassifier(), method="ips")
    policy.fit(X, action, reward=reward, propensity=np.full(30, 1 / 3))
    assert policy.predict(X[:3], available=[2]).tolist() == [2, 2, 2]
    assert policy.predict(X[:1], available=["new"]).tolist() == ["new"]


@pytest.mark.parametrize("method", METHODS)
def test_propensities_that_contradict_the_log(method):
    """A half for actions of .8, .1 and .1: the weights of the rare ones have the mean .2."""
    rng = np.random.default_rng(0)
    probability = np.array([0.8, 0.1, 0.1])
    action = rng.choice(3, 3000, p=probability)
    y = pd.DataFrame({"action": action, "reward": rng.random(3000) < 0.3})
    policy = OffPolicyClassifier(method=method, random_state=0)
    contexts = rng.normal(size=(3000, 1))
    wanted = r"weights 1/propensity of arm 2 have the mean 0\.19\d* over 3,000 rows, where 1 is"
    with pytest.warns(UserWarning, match=wanted) as caught:
        policy.fit(contexts, y.assign(propensity=0.5))
    assert caught[0].filename == __file__
    policy.fit(contexts, y.assign(propensity=probability[action]))
    # over the events to which an arm was available
    pools = [(0, 1, 2) if k or a == 2 else (0, 1) for k, a in zip(action % 2, action, strict=True)]
    there = np.array([2 in pool for pool in pools])
    drawn = np.where(there, rng.integers(3, size=3000), rng.integers(2, size=3000))
    y = y.assign(action=drawn, propensity=np.where(there, 1 / 3, 1 / 2), available=pools)
    policy.fit(contexts, y)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["dr", "ips"])
def test_units_and_origins_of_features_do_not_matter(method):
    """A column may be a Unix time."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(2000, 3)), 2000
    mean = X @ rng.normal(size=(3, 3))
    action = rng.integers(3, size=n)
    reward = mean[np.arange(n), action] + rng.normal(size=n)
    log = pd.DataFrame({"action": action, "reward": reward, "propensity": 1 / 3})
    chosen = [
        OffPolicyClassifier(method=method, random_state=0).fit(Z, log).predict(Z)
        for Z in (X, X * [1e7, 1, 1] + [1.7e9, 0, 0])
    ]
    assert np.mean(chosen[0] == chosen[1]) > 0.99
    earned = mean[np.arange(n), chosen[1]].mean()
    assert earned > mean.max(axis=1).mean() - 0.1
