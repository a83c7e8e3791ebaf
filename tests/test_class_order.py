"""A classifier that lists its classes in another order, as some wrappers do, decides alike."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from skbandit import (
    ConstrainedPolicy,
    ConstrainedReduction,
    ConstrainedThreshold,
    OffPolicyClassifier,
    RegressionSetSelector,
    SetSelectClassifier,
)
from skbandit.bandit import OraclePolicy
from skbandit.evaluation import off_policy_value
from skbandit.rates import error_rate, positive_rate, recall


class Listing(ClassifierMixin, BaseEstimator):
    """Logistic regression whose classes are in order, or backwards."""

    def __init__(self, step=1):
        self.step = step

    def fit(self, X, y, sample_weight=None):
        self.model_ = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_[:: self.step]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, :: self.step]

    def decision_function(self, X):
        scores = self.model_.decision_function(X)
        return self.step * scores if scores.ndim == 1 else scores[:, :: self.step]

    def predict(self, X):
        return self.model_.predict(X)


RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3))
Y = np.digitize(X[:, 0] + RNG.normal(size=N), [-0.5, 0.7])
COSTS = pd.DataFrame(RNG.normal(size=(N, 4)) - X[:, [0]] * np.arange(4), columns=list("abcd"))
CLICKS = -1.0 * (COSTS < -1)
ACTION = RNG.integers(3, size=N)
LOG = pd.DataFrame({"action": ACTION, "propensity": 1 / 3})
LOG["reward"] = X[:, 0] * (ACTION - 1) + RNG.normal(size=N)
WON = LOG.assign(reward=(LOG["reward"] > 0) * 1.0)
FEATURES = pd.DataFrame(RNG.normal(size=(4, 2)), index=list("abcd"))


def selected(model, costs=COSTS, **given):
    return SetSelectClassifier(model, 2, random_state=0, **given).fit(X, costs).predict(X)


CALLS = {
    "threshold": lambda model: (
        ConstrainedThreshold(model, error_rate(), recall() >= 0.8).fit(X, Y > 0).predict(X)
    ),
    "threshold, prefit": lambda model: (
        ConstrainedThreshold(model.fit(X, Y > 0), error_rate(), recall() >= 0.8, cv="prefit")
        .fit(X, Y > 0)
        .predict(X)
    ),
    "threshold, scores": lambda model: (
        ConstrainedThreshold(
            model, error_rate(), recall() >= 0.8, response_method="decision_function"
        )
        .fit(X, Y > 0)
        .predict(X)
    ),
    "threshold, probabilities": lambda model: (
        ConstrainedThreshold(model, error_rate(), recall() >= 0.8).fit(X, Y > 0).predict_proba(X)
    ),
    "threshold, 3 classes": lambda model: (
        ConstrainedThreshold(model, error_rate(), recall(of=2) >= 0.8).fit(X, Y).predict(X)
    ),
    "reduction": lambda model: (
        ConstrainedReduction(model, error_rate(), recall() >= 0.8, random_state=0, max_iter=3)
        .fit(X, Y > 0)
        .predict(X)
    ),
    "one vs rest": lambda model: selected(model, reduction="one_vs_rest"),
    "all pairs": lambda model: selected(model, reduction="weighted_all_pairs"),
    "filter tree": lambda model: selected(model, reduction="filter_tree"),
    "pairs of features": lambda model: (
        SetSelectClassifier(model, 2, reduction="weighted_all_pairs", random_state=0)
        .fit(X, COSTS, ad_features=FEATURES)
        .predict(X)
    ),
    "regression": lambda model: RegressionSetSelector(model, 2).fit(X, CLICKS).predict(X),
    "policy": lambda model: (
        ConstrainedPolicy(model, None, positive_rate(of=0) <= 0.3, random_state=0)
        .fit(X, WON)
        .predict(X)
    ),
    "off-policy, rewards": lambda model: (
        OffPolicyClassifier(model, random_state=0).fit(X, LOG).predict(X)
    ),
    "off-policy, clicks": lambda model: (
        OffPolicyClassifier(model, random_state=0).fit(X, WON).predict(X)
    ),
    "value": lambda model: round(
        off_policy_value(
            np.zeros(N, dtype=int), X, WON, method="dr", reward_model=model, random_state=0
        ).mean_reward,
        9,
    ),
    "oracle": lambda model: OraclePolicy(model, random_state=0).fit(X, WON).predict(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_order_of_classes_changes_nothing(name):
    one, other = (CALLS[name](Listing(step)) for step in (1, -1))
    np.testing.assert_array_equal(one, other)
