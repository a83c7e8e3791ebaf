"""The five loops that decide how long a user waits.

`setup` makes data of `n` rows and runs the loop once, on few rows, so that numba has compiled it.
"""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge

from skbandit import ConstrainedRampClassifier, GLMUCBPolicy, RegressionSetSelector
from skbandit.constrained import ConstrainedThreshold
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from skbandit.rates import false_positive_rate, recall

FEW = 200


class TrainRamp:
    """Majorization-minimization with the Newton solver, on sparse rows like a9a's."""

    n = 10_000

    def setup(self):
        rng = np.random.default_rng(0)
        n_features, n_ones = 123, 14
        columns = rng.integers(n_features, size=(self.n, n_ones))
        rows = np.arange(self.n).repeat(n_ones)
        X = csr_matrix((np.ones(rows.size), (rows, columns.ravel())), (self.n, n_features))
        scores = X @ rng.normal(size=n_features) + rng.normal(size=self.n)
        self.X, self.y = X, (scores > np.quantile(scores, 0.76)).astype(int)
        self.clf = ConstrainedRampClassifier(
            false_positive_rate(), recall() >= 0.9, solver="newton"
        )
        self.clf.fit(self.X[:FEW], self.y[:FEW])

    def time_fit(self):
        self.clf.fit(self.X, self.y)


class FirstColumn(ClassifierMixin, BaseEstimator):
    """A classifier whose score is the first column of X."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


class SearchThreshold:
    """Exact threshold search over scores that are all different."""

    n = 500_000

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(self.n, 1))
        self.y = (self.X[:, 0] + rng.normal(size=self.n) > 0).astype(int)
        self.clf = ConstrainedThreshold(
            FirstColumn().fit(self.X, self.y),
            false_positive_rate(),
            recall() >= 0.9,
            cv="prefit",
            confidence_level=0.5,
        )
        self.clf.fit(self.X[:FEW], self.y[:FEW])

    def time_fit(self):
        self.clf.fit(self.X, self.y)


class ReplayDiagonal:
    """Compiled replay of a logistic policy with independent weights."""

    n = 100_000
    covariance = "diagonal"

    def setup(self):
        log = make_bandit_log(self.n, n_arms=10, n_features=20, random_state=0)
        self.X, self.y = log.X.to_numpy(), log.y
        self.policy = GLMUCBPolicy(covariance=self.covariance, random_state=0)
        replay(self.policy, self.X[:FEW], self.y[:FEW])

    def time_replay(self):
        replay(self.policy, self.X, self.y)


class ReplayFull(ReplayDiagonal):
    """Compiled replay of a logistic policy with a covariance matrix per arm."""

    n = 50_000
    covariance = "full"


class PredictMasked:
    """The m cheapest available ads per row."""

    n = 20_000

    def setup(self):
        rng = np.random.default_rng(0)
        n_ads = 100
        self.X = rng.normal(size=(self.n, 10))
        self.available = rng.random((self.n, n_ads)) < 0.5
        self.available[:, :10] = True
        costs = self.X[:FEW] @ rng.normal(size=(10, n_ads))
        self.selector = RegressionSetSelector(Ridge(), n_select=10).fit(self.X[:FEW], costs)
        self.selector.predict(self.X[:FEW], available=self.available[:FEW])

    def time_predict(self):
        self.selector.predict(self.X, available=self.available)
