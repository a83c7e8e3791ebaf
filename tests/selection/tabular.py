"""Finite populations: a decision tree learns them by heart, so that optimal answers are known.

Rows of a context differ in their costs; what is best is best on average.
"""

import numpy as np
from sklearn.tree import DecisionTreeClassifier

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
