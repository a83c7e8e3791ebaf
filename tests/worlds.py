"""What tests of several folders share: the shortest form of an expected error, and data."""

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skbandit.evaluation import off_policy_value

ips, snips, doubly_robust = (partial(off_policy_value, method=m) for m in ("ips", "snips", "dr"))


def refuses(message, call, *args, error=ValueError, **options):
    """Assert that the call raises the error, with a message that matches.

    The arguments are evaluated before: only the call itself may raise.
    """
    with pytest.raises(error, match=message):
        call(*args, **options)


def warns(message, call, *args, warning=UserWarning, **options):
    """Assert that the call warns with a message that matches; return its result."""
    with pytest.warns(warning, match=message):
        return call(*args, **options)


# --- logs ----------------------------------------------------------------------------------

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


def make_log(n=300, n_arms=5, seed=0):
    """Contexts, and a log in which the arm does not matter."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "hour", "new"])
    arm = np.array(["a", "b", "c", "d", "e", "f"], dtype=object)[rng.integers(n_arms, size=n)]
    return X, pd.DataFrame(
        {"action": arm, "reward": rng.random(n) < 0.3, "timestamp": np.arange(n) * 7.0}
    )


def cut(frame, *places):
    """Blocks of a table that begin at these rows."""
    edges = [0, *sorted(places), len(frame)]
    return [frame[a:b] for a, b in pairwise(edges)]


# --- finite populations: a decision tree learns them by heart, so optimal answers are known -----
# Rows of a context differ in their costs; what is best is best on average.

LEARNER = DecisionTreeClassifier(random_state=0)
"""On contexts as numbers it answers the weighted majority of each."""


def population(rng, n_contexts, n_ads, each=4):
    """Contexts (n, 1), costs (n, K) of either sign, and their means f* (n_contexts, K)."""
    costs = rng.normal(size=(n_contexts, each, n_ads))
    X = np.repeat(np.arange(n_contexts), each)[:, None].astype(float)
    return X, costs.reshape(-1, n_ads), costs.mean(axis=1)


def lowest(f, allowed, m):
    """The m cheapest ads allowed in each row, best first."""
    return np.argsort(np.where(allowed, f, np.inf), axis=1)[:, :m]


def masks(rng, n_rows, n_ads, at_least):
    """Random masks with so many ads available in each row, or more."""
    order = rng.random((n_rows, n_ads)).argsort(axis=1).argsort(axis=1)
    return order < rng.integers(at_least, n_ads + 1, size=n_rows)[:, None]
