"""OraclePolicy: what its models are fitted to, when, and how they are used."""

import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skbandit.bandit import OraclePolicy
from tests.worlds import refuses


@pytest.fixture(scope="module")
def log():
    """A uniform log of three arms; which is best depends on a product of features."""
    rng = np.random.default_rng(0)
    X, action = rng.uniform(-1, 1, size=(600, 2)), rng.integers(3, size=600)
    p = np.column_stack([X.prod(axis=1) > 0, X.prod(axis=1) < 0, np.full(600, 0.4)])
    reward = (rng.random(600) < 0.1 + 0.8 * p[np.arange(600), action]).astype(int)
    return X, pd.DataFrame({"action": np.array(["a", "b", "c"])[action], "reward": reward})


class CountingMean(RegressorMixin, BaseEstimator):
    """Predicts the mean, and knows how many rows it was fitted to."""

    def fit(self, X, y):
        self.n_rows_, self.mean_ = len(X), float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_models_are_those_of_the_estimator(log):
    """Linear regression per arm, averaged with one event of the mean reward."""
    X, y = log
    policy = OraclePolicy(LinearRegression()).fit(X, y)
    for k, arm in enumerate(policy.arms_):
        own = (y["action"] == arm).to_numpy()
        expected = LinearRegression().fit(X[own], y["reward"][own]).predict(X)
        mixed = (own.sum() * expected + y["reward"].mean()) / (own.sum() + 1)
        np.testing.assert_allclose(policy.predict_reward(X)[:, k], mixed, rtol=1e-10)


def test_models_are_refitted_as_events_grow():
    rng = np.random.default_rng(0)
    policy, sizes = OraclePolicy(CountingMean()), []
    for reward in rng.random(100):
        policy.partial_fit([[0.0]], {"action": ["a"], "reward": [reward]})
        if policy.estimators_:
            sizes.append(policy.estimators_["a"][0].n_rows_)
    fits = sorted(set(sizes))
    assert fits[0] == 10
    assert all(later == np.ceil(1.25 * n) for n, later in pairwise(fits))
    policy.set_params(refit=1).partial_fit([[0.0]], {"action": ["a"], "reward": [0.5]})
    assert policy.estimators_["a"][0].n_rows_ == 101


def test_fit_ends_with_models_of_all_events(log):
    X, y = log
    policy = OraclePolicy(CountingMean()).fit(X, y)
    assert [m[0].n_rows_ for m in policy.estimators_.values()] == policy.n_updates_.tolist()


@pytest.mark.parametrize(
    "estimator", [SGDRegressor(shuffle=False), SGDClassifier("log_loss", shuffle=False)], ids=repr
)
def test_partial_fit_of_the_estimator(estimator, log):
    """Each arm's model sees the arm's events, in order, and nothing is kept."""
    X, y = log
    policy = OraclePolicy(estimator, refit="partial_fit")
    own = {arm: clone(estimator) for arm in "abc"}
    for start in range(0, 600, 50):
        rows = np.arange(start, start + 50)
        policy.partial_fit(X[rows], y.iloc[rows])
        for arm, model in own.items():
            of_arm = rows[y["action"].to_numpy()[rows] == arm]
            classes = {"classes": [0, 1]} if hasattr(model, "predict_proba") else {}
            model.partial_fit(X[of_arm], y["reward"].to_numpy()[of_arm], **classes)
    for arm, model in own.items():
        np.testing.assert_array_equal(policy.estimators_[arm][0].coef_, model.coef_)
    assert policy._parts == []


def test_a_new_arm_is_explored_and_an_arm_with_one_failure_not_given_up(log):
    X, y = log
    policy = OraclePolicy(LinearRegression(), arms=["a", "b", "c", "d"]).fit(X, y)
    np.testing.assert_allclose(policy.predict_reward(X)[:, 3], y["reward"].mean())
    assert (policy.select_proba(X)[:, 3] > 0).all()
    policy.partial_fit(X[:1], {"action": ["d"], "reward": [0]})
    half = float(policy._prior_rewards("d")[0]) / 2
    np.testing.assert_allclose(policy.predict_reward(X)[:, 3], half)


def test_the_bootstrap_explores_an_arm_without_events(log):
    X, y = log
    policy = OraclePolicy(
        LinearRegression(), exploration="bootstrap", n_replicates=20, random_state=0
    ).fit(X, y)
    p = policy.select_proba(X, available=["a", "b", "c", "d"])
    assert (p.sum(axis=1) < 1).any()  # the rest is the new arm's
    assert len(policy.estimators_["a"]) == 20
    with pytest.raises(ValueError, match="20 replicates"):
        policy.set_params(n_replicates=5).predict(X)


def test_missing_values_if_the_estimator_takes_them(log):
    X, y = log
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    policy = OraclePolicy(HistGradientBoostingClassifier(max_iter=5), random_state=0)
    assert policy.fit(holes, y).select(holes[:5]).shape == (5,)
    refuses("NaN", OraclePolicy(LinearRegression()).fit, holes, y)


def test_copies_and_dropped_arms_have_events_of_their_own(log):
    X, y = log
    policy = OraclePolicy(CountingMean(), refit=1, random_state=0).fit(X[:300], y[:300])
    before = policy.predict_reward(X)
    other = copy.copy(policy)
    other.partial_fit(X[300:], y[300:])
    policy.partial_fit(X[:1], {"action": ["a"], "reward": [1]})
    other.drop_arms(["a"])
    assert set(other.arms_) == {"b", "c"}
    other.partial_fit(X[:200], y[:200])
    assert other.n_updates_.sum() == sum(len(part[1]) for part in other._parts)
    models, labels = other.estimators_, other.arms_.tolist()
    assert [models[arm][0].n_rows_ for arm in labels] == other.n_updates_.tolist()
    both = ["b", "c"]
    old = [policy.arms_.tolist().index(arm) for arm in both]
    # the mean of all arms, to which arms are shrunk, has one more event
    np.testing.assert_allclose(policy.predict_reward(X)[:, old], before[:, old], atol=1e-3)


@pytest.mark.parametrize("exploration", ["squarecb", "greedy", "epsilon_greedy"])
def test_no_event_is_left_when_its_arms_are_dropped(exploration):
    X, y = np.ones((20, 1)), {"action": [0] * 20, "reward": [1.0] * 20}
    policy = OraclePolicy(CountingMean(), arms=[0, 1], exploration=exploration, random_state=0)
    policy.fit(X, y).drop_arms([0])
    assert policy.predict_reward(X[:1]).tolist() == [[0.0]]
    assert policy.select_proba(X[:1], available=[1, 2]).tolist() == [[0.5]]


def test_errors_leave_the_policy_unchanged(log):
    X, y = log
    policy = OraclePolicy(KNeighborsRegressor(20), min_events=5)
    with pytest.raises(ValueError, match="n_neighbors") as caught:
        policy.fit(X[:40], y[:40]).predict(X)
    policy = OraclePolicy(DecisionTreeClassifier(), random_state=0).fit(X, y)
    before = policy.predict_reward(X)
    with pytest.raises(ValueError, match=r"reward is 0\.5 on row 0"):
        policy.partial_fit(X[:1], {"action": ["a"], "reward": [0.5]})
    np.testing.assert_array_equal(policy.predict_reward(X), before)
    for estimator, refit, message in (
        (LinearSVC(), "geometric", "without predict_proba"),
        (LinearRegression(), "partial_fit", "has no partial_fit"),
    ):
        refuses(message, OraclePolicy(estimator, refit=refit).fit, X, y, error=TypeError)
    refuses("twice", OraclePolicy(LinearRegression(), arms=["a", "a"]).fit, X, y)
    assert caught is not None


class Broken(CountingMean):
    """Fails in one of its methods."""

    def __init__(self, where="fit"):
        self.where = where

    def fit(self, X, y):
        if self.where == "fit":
            raise ArithmeticError("singular")
        return super().fit(X, y)

    def predict(self, X):
        return np.full(len(X), np.nan)


def test_errors_of_reward_models_name_the_arm(log):
    X, y = log
    with pytest.raises(ArithmeticError) as caught:
        OraclePolicy(Broken()).fit(X, y)
    assert "reward model of arm" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match=r"arm '[abc]', Broken, predicted"):
        OraclePolicy(Broken("predict")).fit(X, y).predict(X)


def test_weights_reach_the_estimator_or_are_refused(log):
    X, y = log
    weight = np.random.default_rng(0).integers(1, 4, size=len(X)).astype(float)
    policy = OraclePolicy(LinearRegression()).fit(X, y, sample_weight=weight)
    own = (y["action"] == "b").to_numpy()
    expected = LinearRegression().fit(X[own], y["reward"][own], weight[own])
    np.testing.assert_allclose(policy.estimators_["b"][0].coef_, expected.coef_)
    refuses("does not take it", OraclePolicy(KNeighborsRegressor()).fit, X, y, sample_weight=weight)


def test_seeds_are_set_where_they_are_not(log):
    X, y = log
    tree = DecisionTreeClassifier(max_features=1, splitter="random")
    nested = make_pipeline(StandardScaler(), tree)
    one, two = (OraclePolicy(nested, random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_reward(X), two.predict_reward(X))
    assert nested.get_params()["decisiontreeclassifier__random_state"] is None
    assert clone(one).get_params()["estimator"].get_params()["steps"]
    assert OraclePolicy(LogisticRegression()).fit(X, y).predict(X).shape == (600,)
