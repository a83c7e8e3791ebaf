"""Logs, and policies with known probabilities, of replays and off-policy estimates."""

import numpy as np
import pandas as pd

NOTHING = np.zeros((12, 1))
Y = pd.DataFrame({"action": list("abcabcabcabc"), "reward": [0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0]})


def uniform_log(n, arms=("a", "b", "c"), seed=0, **columns):
    rng = np.random.default_rng(seed)
    y = pd.DataFrame({"action": rng.choice(arms, n), "reward": rng.random(n) < 0.3})
    return rng.normal(size=(n, 2)), y.assign(**columns)


def uneven_log(n, seed=0):
    """Three arms, logged with propensities that depend on the context."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    p = np.where(X[:, :1] > 0, [[0.2, 0.3, 0.5]], [[0.6, 0.2, 0.2]])
    arm = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    reward = (rng.random(n) < 0.2 + 0.2 * arm).astype(int)
    y = {"action": arm, "reward": reward, "propensity": p[np.arange(n), arm]}
    return X, pd.DataFrame(y)


def generic(policy):
    """The same policy without a replay of its own."""

    class Plain(type(policy)):
        def _replay_log(self, request):
            return None

    return Plain(**policy.get_params())


class Softmax:
    """A policy with known probabilities: one column of scores an arm, masked."""

    def __init__(self, arms, scale=1.0):
        self.arms_ = np.array(list(arms))
        self.scale = scale
        self.rng = np.random.default_rng(0)

    def select_proba(self, X, *, available=None):
        self.rng.random()  # choosing may change the state
        self.asked = available
        scores = np.exp(self.scale * np.asarray(X)[:, : len(self.arms_)])
        if available is not None:
            scores *= [[arm in pool for arm in self.arms_] for pool in available]
        return scores / scores.sum(axis=1, keepdims=True)

    def select(self, X, *, available=None):
        raise AssertionError("the probabilities say more than one draw")

    def predict(self, X, *, available=None):
        return self.arms_[self.select_proba(X, available=available).argmax(axis=1)]


class Greedy:
    """A policy without probabilities."""

    def __init__(self, arms):
        self.arms = np.array(list(arms))

    def select(self, X, *, available=None):
        return self.arms[np.asarray(X)[:, : len(self.arms)].argmax(axis=1)]


def logged(n=400, seed=0, arms=("b", "c", "a")):
    """Contexts, and a log with propensities, by a softmax policy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    p = Softmax(arms, 0.5).select_proba(X)
    action = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    y = pd.DataFrame({"action": np.array(arms)[action]})
    y["reward"] = (rng.random(n) < 0.3 + 0.3 * (X[np.arange(n), action] > 0)).astype(int)
    y["propensity"] = p[np.arange(n), action]
    return X, y
