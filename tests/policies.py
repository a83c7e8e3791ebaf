"""Textbook policies without contexts, for tests of what evaluates policies."""

import numpy as np
from sklearn.base import BaseEstimator

PAPER = {"prior_variance": 1.0, "standardize": False, "alpha": 1.0}
"""Settings of a `GLMUCBPolicy` that is the published algorithm: one prior, N(0, 1) for every
weight, on features as they are, and bounds of one standard deviation."""


class Always(BaseEstimator):
    """Chooses one arm, or another where this is not available; cannot learn."""

    def __init__(self, arm=0, instead=None):
        self.arm = arm
        self.instead = instead

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def select(self, X, *, available=None):
        arms = [self.arm if self.arm in pool else self.instead for pool in available]
        chosen = np.empty(len(arms), dtype=object)
        chosen[:] = arms
        return chosen

    predict = select


class EpsilonGreedy(BaseEstimator):
    """The arm of the best mean reward so far, or with probability epsilon a random one.

    Each arm begins with one reward, `optimism`; of equals the first is chosen.
    """

    def __init__(self, epsilon=0.1, random_state=0, optimism=1.0):
        self.epsilon = epsilon
        self.random_state = random_state
        self.optimism = optimism

    def _begin(self):
        if not hasattr(self, "total_"):
            self.total_, self.times_ = {}, {}
            self.rng_ = np.random.default_rng(self.random_state)

    def fit(self, X, y):
        vars(self).pop("total_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        self._begin()
        for arm, reward in zip(y["action"], y["reward"], strict=True):
            self.total_[arm] = self.total_.get(arm, 0.0) + reward
            self.times_[arm] = self.times_.get(arm, 0) + 1
        return self

    def _mean(self, arm):
        return (self.total_.get(arm, 0.0) + self.optimism) / (self.times_.get(arm, 0) + 1.0)

    def predict(self, X, *, available=None):
        self._begin()
        return np.array([max(pool, key=self._mean) for pool in self._pools(X, available)])

    def select(self, X, *, available=None):
        self._begin()
        return np.array([self._one(pool) for pool in self._pools(X, available)])

    def _one(self, pool):
        if self.epsilon and self.rng_.random() < self.epsilon:
            return pool[self.rng_.integers(len(pool))]
        return max(pool, key=self._mean)

    def _pools(self, X, available):
        return [tuple(self.times_)] * np.shape(X)[0] if available is None else available


class QuickEpsilonGreedy(EpsilonGreedy):
    """The same, replaying logs of one set of arms by itself."""

    def _replay_log(self, request):
        self._begin()
        log, rows, keep, deployment = request.log, request.rows, request.keep, request.deployment
        pool = tuple(log.arms.tolist())
        actions, rewards = log.arms[log.action[rows]].tolist(), log.reward[rows].tolist()
        accepted, n_played = [], 0
        for at, (arm, reward) in enumerate(zip(actions, rewards, strict=True)):
            if not keep[at]:
                continue
            greedy = deployment[at] or request.rule == "predict"
            if (max(pool, key=self._mean) if greedy else self._one(pool)) != arm:
                continue
            accepted.append(at)
            if deployment[at]:
                continue
            n_played += 1
            if n_played == request.max_accepted:
                return np.array(accepted), at + 1
            if request.learn:
                self.total_[arm] = self.total_.get(arm, 0.0) + reward
                self.times_[arm] = self.times_.get(arm, 0) + 1
        return np.array(accepted, dtype=int), len(rows)


class Recorder(EpsilonGreedy):
    """Keeps a record of all that it is shown, outside of itself, so that copies share it."""

    def __init__(self, epsilon=0.1, random_state=0, diary=None):
        super().__init__(epsilon, random_state)
        self.diary = diary

    def __deepcopy__(self, memo):
        return Recorder(self.epsilon, self.random_state, self.diary)

    def select(self, X, *, available=None):
        self.diary.append(("select", X, available))
        return super().select(X, available=available)

    def predict(self, X, *, available=None):
        self.diary.append(("predict", X, available))
        return super().predict(X, available=available)

    def partial_fit(self, X, y):
        self.diary.append(("partial_fit", X, y))
        return super().partial_fit(X, y)
