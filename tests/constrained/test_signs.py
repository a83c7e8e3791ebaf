"""Signs of costs: the least cost is best, whatever the signs of the entries of its table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skbandit.constrained import (
    ConstrainedRampClassifier,
    ConstrainedReduction,
    ConstrainedThreshold,
    RampClassifier,
)
from skbandit.evaluation import RateScorer
from skbandit.rates import cost, positive_rate

CENTERS = np.array([[0.0, 0.0, 0.0], [1.8, 0.5, 0.0], [0.0, 1.8, -0.6]])
PROFITS = np.array([[4.0, 1.0, 0.0], [0.0, 6.0, 1.0], [0.0, 2.0, 8.0]])
"""Of labels and decisions; costs are their negatives."""


def people(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return CENTERS[y] + rng.normal(size=(n, 3)), y


def classifiers(n_classes, objective):
    inner = LogisticRegression()
    yield ConstrainedThreshold(inner, objective)
    yield ConstrainedThreshold(inner, objective, positive_rate(of=1) <= 0.3)
    yield ConstrainedReduction(inner, objective)
    grid = {"C": [1e-5, 1.0]}
    yield GridSearchCV(inner, grid, scoring=RateScorer(objective))
    if n_classes == 2:
        yield ConstrainedRampClassifier(objective)
        yield RampClassifier(objective)


@pytest.mark.thorough
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_shift_changes_no_decision(n_classes):
    """Neither does a sign that is changed twice."""
    X, y = people(400, n_classes, 0)
    new, truth = people(2000, n_classes, 1)
    table = -PROFITS[:n_classes, :n_classes]
    probability = LogisticRegression().fit(X, y).predict_proba(new)
    costs = table[truth]
    best, worst = (costs[np.arange(2000), k].mean() for k in _extremes(probability @ table))
    objectives = [cost(pd.DataFrame(table + shift)) for shift in (0.0, 20.0)]
    objectives += [5 - (-objectives[0])]
    decided = [
        [clf.fit(X, y).predict(new) for clf in classifiers(n_classes, objective)]
        for objective in objectives
    ]
    for other in decided[1:]:  # solvers of the linear ones stop within rounding
        assert np.not_equal(other, decided[0]).mean(axis=1).max() < 0.005
    for k, decisions in enumerate(decided[0]):
        if k != 1:  # that has a goal
            assert costs[np.arange(2000), decisions].mean() < best + 0.05 * (worst - best)


def _extremes(costs):
    return costs.argmin(axis=1), costs.argmax(axis=1)
