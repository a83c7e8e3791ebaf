"""A threshold per group keeps its promise in a known population: by simulation."""

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin

from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import difference, each, false_positive_rate, positive_rate, recall

SHIFT = np.array([0.0, 0.7, -0.4])
"""Mean score of the negatives of each group; positives are 1.5 higher, with unit variance."""


class Identity(ClassifierMixin, BaseEstimator):
    """The column is the score."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return X[:, 0]


def drawn(rng, n):
    group, y = rng.integers(0, 3, n), rng.integers(0, 2, n)
    scores = rng.normal(SHIFT[group] + 1.5 * y)
    return scores[:, None], y, pd.DataFrame({"g": group})


def population_recall(thresholds):
    return 1 - ndtr(thresholds - SHIFT - 1.5)


def allowed(n_runs, error, false_alarm=1e-3):
    """Failures that a promise with this error has in n_runs, but with this probability."""
    return binom.ppf(1 - false_alarm, n_runs, error)


def test_recall_of_every_group_by_exact_limits():
    """Three limits, each at 1 - .1/3, monotone in the threshold of its own group."""
    n, runs, failures = 300, 40, 0
    rng = np.random.default_rng(n)
    goals = each(recall, by="g") >= 0.7
    for _ in range(runs):
        X, y, table = drawn(rng, n)
        clf = ConstrainedThreshold(
            Identity().fit(X, y), false_positive_rate(), goals, cv="prefit", by="g",
            confidence_level=0.9,
        ).fit(X, y, attributes=table)  # fmt: skip
        failures += (population_recall(clf.thresholds_.to_numpy()) < 0.7).any()
    assert failures <= allowed(runs, 0.1)
    assert failures > 0.02 * runs  # not by being far too careful


def test_parity_by_score_limits_is_near_its_level():
    """Pairs that nearly bind share the error; the choice of thresholds costs a little."""
    rng, runs, failures = np.random.default_rng(0), 25, 0
    goals = difference(positive_rate, by="g") <= 0.1
    for _ in range(runs):
        X, y, table = drawn(rng, 1500)
        clf = ConstrainedThreshold(
            Identity().fit(X, y), None, goals, cv="prefit", by="g", confidence_level=0.9
        ).fit(X, y, attributes=table)
        thresholds = clf.thresholds_.to_numpy()
        shares = 1 - 0.5 * (ndtr(thresholds - SHIFT) + ndtr(thresholds - SHIFT - 1.5))
        failures += np.ptp(shares) > 0.1
    assert failures <= allowed(runs, 0.15)


def test_many_rows_find_the_best_thresholds_of_the_population():
    """Without limits: recall .7 in every group, at the quantile of its positives."""
    X, y, table = drawn(np.random.default_rng(1), 60_000)
    clf = ConstrainedThreshold(
        Identity().fit(X, y), false_positive_rate(), each(recall, by="g") >= 0.7,
        cv="prefit", by="g", confidence_level=0.5,
    ).fit(X, y, attributes=table)  # fmt: skip
    np.testing.assert_allclose(clf.thresholds_, SHIFT + 1.5 + ndtri(0.3), atol=0.05)
    assert clf.duality_gap_ <= 1e-3
