"""OffPolicyScorer: what it scores, and that searches find what is good on other events."""

import pickle
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy
from skbandit.bandit import OffPolicyClassifier
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import OffPolicyScorer, off_policy_value
from tests.tiers import first

snips = partial(off_policy_value, method="snips")

LOG = make_bandit_log(2400, n_arms=3, n_features=3, base_rate=0.3, random_state=0)
X, Y = LOG.X[1200:], LOG.y[1200:]
POLICY = OffPolicyClassifier(LogisticRegression(), random_state=0).fit(LOG.X[:1200], LOG.y[:1200])


@pytest.mark.parametrize("method", ["snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"])
def test_scores_are_estimates(method):
    options = {"method": method, "reward_range": (0, 1), "random_state": 0}
    estimate = off_policy_value(POLICY, X, Y, rule="predict", **options)
    scorer = OffPolicyScorer(**options)
    assert scorer(POLICY, X, Y) == estimate.mean_reward
    for kind in ("normal", "sequence"):
        low = clone(scorer, safe=False).set_params(confidence_level=0.8, kind=kind)
        assert low(POLICY, X, Y) == estimate.interval(0.8, kind=kind)[0]
    assert clone(scorer).get_params() == pickle.loads(pickle.dumps(scorer)).get_params()


def test_rules():
    policy = GLMUCBPolicy(exploration="epsilon_greedy", epsilon=0.5, random_state=0)
    policy = policy.fit(LOG.X[:1200], LOG.y[:1200])
    assert OffPolicyScorer(rule="select")(policy, X, Y) == snips(policy, X, Y).mean_reward
    assert OffPolicyScorer()(policy, X, Y) == snips(policy, X, Y, rule="predict").mean_reward


class SpyingRegression(LinearRegression):
    """Reports the rows it learns from, and those it predicts."""

    seen: ClassVar = []

    def fit(self, X, y, sample_weight=None):
        self.own_ = {tuple(row) for row in np.asarray(X)}
        return super().fit(X, y)

    def predict(self, X):
        rows = {tuple(row) for row in np.asarray(X)}
        self.seen.append((len(rows), len(self.own_ & rows)))
        return super().predict(X)


def test_no_model_predicts_a_reward_that_it_has_seen():
    SpyingRegression.seen.clear()
    OffPolicyScorer("dr", reward_model=SpyingRegression())(POLICY, X, Y)
    assert sum(n for n, _ in SpyingRegression.seen) == 1200 * 3  # every event, for every arm
    assert not any(both for _, both in SpyingRegression.seen)


class Recalls(BaseEstimator):
    """Knows by heart which actions were rewarded; what it has not seen is arm 0."""

    def __init__(self, by_heart=True):
        self.by_heart = by_heart

    def fit(self, X, y):
        good = y["reward"] > 0
        rows = map(tuple, np.asarray(X)[good])
        self.known_ = dict(zip(rows, y["action"][good], strict=True)) if self.by_heart else {}
        return self

    def predict(self, X):
        return np.array([self.known_.get(tuple(row), 0) for row in np.asarray(X)])


# on the training folds the weights tell: their mean is far from 1
@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
@pytest.mark.parametrize("method", ["snips", "dr"])
def test_what_is_learned_by_heart_wins_nothing(method):
    search = GridSearchCV(
        Recalls(), {"by_heart": [True, False]}, scoring=OffPolicyScorer(method, random_state=0),
        cv=3, return_train_score=True,
    ).fit(LOG.X, LOG.y)  # fmt: skip
    train, test = (search.cv_results_[f"mean_{name}_score"] for name in ("train", "test"))
    assert train[0] > train[1] + 0.2
    assert test[0] == test[1]


@pytest.mark.parametrize("method", first(1, ["snips", "dr"]))
def test_a_search_finds_the_better_policy(method):
    policy = make_pipeline(StandardScaler(), OffPolicyClassifier(LogisticRegression()))
    search = GridSearchCV(
        policy,
        {"offpolicyclassifier__estimator__C": [1e-6, 1.0]},
        scoring=OffPolicyScorer(method, random_state=0),
        cv=KFold(3),
    ).fit(LOG.X[:1200], LOG.y[:1200])
    assert search.best_params_ == {"offpolicyclassifier__estimator__C": 1.0}
    assert search.score(X, Y) == OffPolicyScorer(method, random_state=0)(search, X, Y)


def test_several_scorers_and_routed_columns():
    found = cross_validate(
        OffPolicyClassifier(method="ips"),
        LOG.X,
        LOG.y,
        scoring={"snips": OffPolicyScorer(), "low": OffPolicyScorer(confidence_level=0.9)},
        cv=2,
    )
    assert (found["test_low"] < found["test_snips"]).all()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(
            OffPolicyClassifier(method="ips"),
            LOG.X,
            LOG.y["action"],
            params={"reward": LOG.y["reward"], "propensity": LOG.y["propensity"]},
            scoring=OffPolicyScorer(),
            cv=2,
        )
    assert routed["test_score"] == pytest.approx(found["test_snips"])


def test_an_unknown_method():
    with pytest.raises(ValueError, match=r"method must be in \('snips', 'ips', 'dr'.*got 'dm'"):
        OffPolicyScorer("dm")(POLICY, X, Y)
