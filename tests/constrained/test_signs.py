"""Signs of costs: the least cost is best, whatever the signs of the entries of its table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
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

COSTS = pd.DataFrame([[-4.0, -1.0, 0.0], [0.0, -6.0, -1.0], [0.0, -2.0, -8.0]])
"""Of labels and decisions: the negatives of profits."""

INNER = LogisticRegression()
CLASSIFIERS = [
    ConstrainedThreshold(INNER),
    ConstrainedThreshold(INNER, None, positive_rate(of=1) <= 0.3),
    ConstrainedReduction(INNER),
    ConstrainedRampClassifier(),
    RampClassifier(),
]


def people(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    centers = np.array([[0.0, 0.0, 0.0], [1.8, 0.5, 0.0], [0.0, 1.8, -0.6]])
    return centers[y] + rng.normal(size=(n, 3)), y


def decided(clf, objective, n_classes):
    """Decisions of new rows after a fit, or a search, for an objective."""
    if clf is INNER:
        clf = GridSearchCV(clf, {"C": [1e-5, 1.0]}, scoring=RateScorer(objective))
    else:
        clf = clone(clf).set_params(objective=objective)
    return clf.fit(*people(400, n_classes, 0)).predict(people(2000, n_classes, 1)[0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("clf", "n_classes"),
    [(clf, 2) for clf in [INNER, *CLASSIFIERS]] + [(clf, 3) for clf in [INNER, *CLASSIFIERS[:3]]],
)
def test_a_shift_of_costs_or_a_sign_changed_twice_changes_no_decision(clf, n_classes):
    table = COSTS.iloc[:n_classes, :n_classes]
    expected = decided(clf, cost(table), n_classes)
    for objective in (cost(table + 20), 5 - (-cost(table))):  # solvers stop within rounding
        assert np.mean(decided(clf, objective, n_classes) != expected) < 0.005
