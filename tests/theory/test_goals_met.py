"""How often goals between groups hold in a known population, at the level asked for.

Rows are normal given their label and group, so the rates of a linear rule are known exactly. All
seeds are fixed. For other seeds each comparison with a binomial count fails an implementation
that keeps its level with probability 1e-3 at most. A level holds approximately (directions and
thresholds are chosen among many); 30 runs tell a level of .9 from one of .65 two times in three.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, RampClassifier
from skbandit.rates import difference, each, false_positive_rate, positive_rate, recall

ALARM = 1e-3
N, D, SHARES = 1000, 10, (0.5, 0.3)
"""Rows, columns, and the share of positives in groups 0 and 1, which are equally large."""

LABEL, GROUP = np.zeros(D), np.zeros(D)
LABEL[:4], GROUP[[0, 4]] = 0.8, -0.5
"""How far the means of positives, and of group 1, are from the others'; deviations are 1."""


def draw(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, N)
    y = (rng.random(N) < np.array(SHARES)[group]).astype(int)
    X = rng.normal(size=(N, D)) + np.outer(y, LABEL) + np.outer(group, GROUP)
    return X, y, pd.DataFrame({"group": group})


def population(coef, intercept):
    """Recall, false positive rate and positive rate of each group under a linear rule."""
    size, group = np.linalg.norm(coef), np.arange(2)
    hits = norm.cdf((intercept + coef @ LABEL + group * (coef @ GROUP)) / size)
    alarms = norm.cdf((intercept + group * (coef @ GROUP)) / size)
    shares = np.array(SHARES)
    return hits, alarms, shares * hits + (1 - shares) * alarms


GOALS = {
    "parity": (
        difference(positive_rate, by="group") <= 0.15,
        lambda hits, alarms, positive: np.ptp(positive) <= 0.15,
    ),
    "two": (
        [
            difference(recall, by="group") <= 0.12,
            each(false_positive_rate, by="group") <= 0.2,
        ],
        lambda hits, alarms, positive: np.ptp(hits) <= 0.12 and alarms.max() <= 0.2,
    ),
}


def linear_rule(clf):
    if isinstance(clf, ConstrainedThreshold):
        inner, threshold = clf.estimator_, clf.threshold_
        return inner.coef_[0], inner.intercept_[0] - np.log(threshold / (1 - threshold))
    return clf.coef_[0], clf.intercept_[0]


def times_met(make, name, times):
    constraints, holds = GOALS[name]
    met = 0
    for seed in range(times):
        X, y, table = draw(seed)
        clf = make(constraints).fit(X, y, attributes=table)
        met += holds(*population(*linear_rule(clf)))
    return met


def ramp(level):
    return lambda goals: ConstrainedRampClassifier(constraints=goals, confidence_level=level)


def threshold(level):
    return lambda goals: ConstrainedThreshold(
        LogisticRegression(), constraints=goals, confidence_level=level
    )


def as_trained(goals):
    return RampClassifier(constraints=goals, alpha=1e-3)


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("make", [ramp, threshold])
def test_goals_hold_as_often_as_the_level_says(make, name):
    assert times_met(make(0.9), name, 30) >= binom.ppf(ALARM, 30, 0.9)


def test_goals_hold_more_often_than_not_by_default():
    """0.8 is asked for, less where it is too dear: .6 at least."""
    assert times_met(ramp(None), "parity", 30) >= binom.ppf(ALARM, 30, 0.6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_goals_met_on_the_rows_fitted_hold_half_the_time_on_new_rows():
    assert times_met(as_trained, "parity", 20) <= binom.isf(ALARM, 20, 0.5)
