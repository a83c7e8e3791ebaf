"""Constraints estimated from logged decisions: labels seen with known, unequal probabilities.

Who would click is known only of those to whom an old rule showed the ad. Counted by 1/propensity,
they stand for everyone; the truth is made, and known. Intervals are at level 1 - 1e-4: were they
exact, a seed in 10,000 would raise a false alarm.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import false_positive_rate, recall

LEVEL = 1 - 1e-4
GOALS = {"weighted": recall(weight="weight") >= 0.9, "equal": recall() >= 0.9}


def everyone(n, seed):
    """Clicks follow the first feature, but for those who have the third, where it means little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 2] > 0
    y = rng.random(n) < expit(np.where(X[:, 2] > 0, 0.2, 2.0) * X[:, 0] - 1)
    return X, y.astype(int)


def logged(n, seed):
    """Those whom the old rule showed the ad: few of the ones who have the third feature."""
    X, y = everyone(n, seed)
    propensity = np.where(X[:, 2] > 0, 0.05, 0.6)
    seen = np.random.default_rng(seed + 1000).random(n) < propensity
    return X[seen], y[seen], pd.DataFrame({"weight": 1 / propensity[seen]})


@pytest.fixture(scope="module")
def reports():
    """For each goal: the true recall of what it was trained for, and the report on more of the log.

    One feature only, so that both groups are answered by the same rule.
    """
    X_log, y_log, by = logged(6000, seed=0)
    X_new, y_new, by_new = logged(6000, seed=1)
    X_all, y_all = everyone(200_000, seed=2)
    found = {}
    for name, goal in GOALS.items():
        weight = "weight" if name == "weighted" else None
        clf = ConstrainedRampClassifier(false_positive_rate(weight=weight), goal)
        clf.fit(X_log[:, :1], y_log, attributes=by)
        true = recall().value(y_all, clf.predict(X_all[:, :1]))
        report = clf.constraint_report(
            X_new[:, :1], y_new, attributes=by_new, confidence_level=LEVEL
        )
        found[name] = true, report.iloc[0], clf.predict(X_new[:, :1])[y_new == 1] == 1
    return found


def test_weighted_by_the_log_the_promise_is_about_everyone(reports):
    true, row, _ = reports["weighted"]
    assert row["ci_low"] <= true <= row["ci_high"]
    assert true == pytest.approx(0.9, abs=0.04)


def test_counted_equally_it_is_about_those_who_were_shown_the_ad(reports):
    true, row, _ = reports["equal"]
    assert true < row["ci_low"], "the report promises what does not hold"
    assert row["effective_n"] == row["n_rows"]


@pytest.mark.filterwarnings("ignore:.*of the probabilities of:UserWarning")
def test_the_threshold_alone_can_be_set_on_a_log():
    X_log, y_log, by = logged(6000, seed=0)
    trained = ConstrainedRampClassifier().fit(X_log, y_log)
    clf = ConstrainedThreshold(trained, constraints=GOALS["weighted"], cv="prefit")
    clf.fit(X_log, y_log, attributes=by)
    row = clf.constraint_report_.iloc[0]
    weight = by["weight"].to_numpy() * (y_log == 1)
    assert row["value"] == pytest.approx(weight[clf.predict(X_log) == 1].sum() / weight.sum())
    assert row["satisfied"] and row["effective_n"] < 0.5 * row["n_rows"]
