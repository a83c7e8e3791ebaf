"""What constraints cost: `objective_report_`, and the column price of `constraint_report_`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, RampClassifier
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    accuracy,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    mean,
    positive_rate,
    precision,
    recall,
    worst,
)

RNG = np.random.default_rng(0)
N = 300
PEOPLE = pd.DataFrame({"sex": RNG.choice(["F", "M"], N)})
X = RNG.normal(size=(N, 3))
X[:, 0] += 0.8 * (PEOPLE["sex"] == "M")
Y = (X[:, 0] + 0.6 * X[:, 1] + RNG.normal(size=N) > 0.7).astype(int)
MODEL = LogisticRegression().fit(X, Y)
REPORT = ["objective", "value", "cross_fitted", "ci_low", "ci_high", "unconstrained"]
REPORT += ["best_unconstrained"]


def decisions_by_threshold():
    """What every threshold decides."""
    scores = MODEL.predict_proba(X)[:, 1]
    return [scores > t for t in np.append(scores, -1.0)]


def lowest_error(goals):
    found = [
        error_rate().value(Y, rule)
        for rule in decisions_by_threshold()
        if all(goal(rule) for goal in goals)
    ]
    return min(found)


@pytest.mark.thorough
def test_prices_of_thresholds_by_brute_force():
    def gap_is_small(rule):
        women = (PEOPLE["sex"] == "F").to_numpy()
        return abs(rule[women].mean() - rule[~women].mean()) <= 0.15

    goals = {
        recall() >= 0.9: lambda rule: rule[Y == 1].mean() >= 0.9,
        difference(positive_rate, by="sex") <= 0.15: gap_is_small,
        false_positive_rate() <= 0.9: lambda rule: rule[Y == 0].mean() <= 0.9,
    }
    clf = ConstrainedThreshold(MODEL, None, list(goals), cv="prefit", confidence_level=0.5)
    report = clf.fit(X, Y, attributes=PEOPLE).constraint_report_
    every = lowest_error(list(goals.values()))
    expected = {
        goal: every - lowest_error([goals[other] for other in goals if other is not goal])
        for goal in goals
    }
    prices = list(expected.values())
    assert prices[1] > 0.05 and prices[2] == 0
    np.testing.assert_allclose(report["price"], [prices[0], prices[1], prices[1], prices[2]])
    new = clf.constraint_report(X, Y, attributes=PEOPLE)
    np.testing.assert_array_equal(new["price"], report["price"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "classifier",
    [
        ConstrainedRampClassifier(),
        ConstrainedThreshold(LogisticRegression()),
        ConstrainedReduction(LogisticRegression(), max_iter=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_objective_is_reported_as_a_constraint_on_it_would_be(classifier):
    classifier.set_params(objective=accuracy(), constraints=[recall() >= 0.8, accuracy() >= 0.2])
    clf = classifier.fit(X, Y)
    (row,), of_bound = clf.objective_report_.to_dict("records"), clf.constraint_report_.iloc[1]
    assert list(row) == REPORT and row["objective"] == "accuracy()"
    assert row["value"] == accuracy().value(Y, clf.predict(X))
    for name in REPORT[1:6]:
        assert row[name] == pytest.approx(of_bound[name]), name
    # the best threshold without constraints may be better than the usual one
    assert row["unconstrained"] <= row["best_unconstrained"] < row["unconstrained"] + 0.04
    assert clf.constraint_report_["price"][1] == 0
    gain = row["best_unconstrained"] - row["cross_fitted"]
    assert clf.constraint_report_["price"][0] == pytest.approx(gain, abs=0.03)


@pytest.mark.thorough
def test_without_other_rows():
    clf = RampClassifier(None, recall() >= 0.95, solver="newton").fit(X, Y)
    row = clf.objective_report_.iloc[0]
    assert row["value"] == error_rate().value(Y, clf.predict(X))
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert np.isnan(row["cross_fitted"]) and row["unconstrained"] < row["value"] - 0.05
    assert 0 < clf.constraint_report_["price"][0] < row["value"]
    clf = ConstrainedThreshold(MODEL, None, recall() >= 0.95, cv="prefit").fit(X, Y)
    row = clf.objective_report_.iloc[0]
    assert np.isnan(row["cross_fitted"]) and row["ci_low"] < row["value"] < row["ci_high"]
    plain = error_rate().value(Y, MODEL.predict(X))
    assert row["unconstrained"] == plain >= row["best_unconstrained"] > plain - 0.02
    assert row["best_unconstrained"] == pytest.approx(lowest_error([]))
    with pytest.raises(AttributeError, match="no objective_report_ before it is fitted"):
        _ = ConstrainedThreshold(MODEL).objective_report_


def test_with_thresholds_by_group_it_is_what_another_fit_gains():
    goals = [difference(positive_rate, by="sex") <= 0.05, recall() >= 0.6]
    settings = {"cv": "prefit", "by": "sex", "confidence_level": 0.5}
    clf = ConstrainedThreshold(MODEL, None, goals, **settings).fit(X, Y, attributes=PEOPLE)
    without = ConstrainedThreshold(MODEL, None, goals[1], **settings).fit(X, Y, attributes=PEOPLE)
    gain = clf.objective_report_["value"][0] - without.objective_report_["value"][0]
    price = clf.constraint_report_["price"]
    assert gain > 0.01 and price[0] == price[1] == pytest.approx(gain, abs=0.02)
    assert price[2] == pytest.approx(0, abs=1e-3)


THREE = np.where(Y == 1, "yes", np.where(X[:, 2] > 0.5, "maybe", "no"))


@pytest.mark.thorough
def test_objectives_of_several_rates():
    clf = ConstrainedThreshold(LogisticRegression(), worst(recall, of="classes")).fit(X, THREE)
    predicted, row = clf.predict(X), clf.objective_report_.iloc[0]
    rates = [(predicted == one)[one == THREE].mean() for one in ("yes", "maybe", "no")]
    assert row["value"] == pytest.approx(min(rates))
    clf = ConstrainedThreshold(LogisticRegression(), mean(f1, of="classes")).fit(X, THREE)
    expected = mean(f1, of="classes").value(THREE, clf.predict(X))
    assert clf.objective_report_["value"][0] == pytest.approx(expected)
    goals = each(precision, of="classes") >= 0.3
    clf = ConstrainedThreshold(LogisticRegression(), mean(f1, of="classes"), goals)
    assert np.isfinite(clf.fit(X, THREE).constraint_report_["price"]).all()


@pytest.mark.thorough
def test_of_the_closest_model_prices_are_unknown():
    goals = [recall() >= 0.99, false_positive_rate() <= 0.01]
    for clf in (
        ConstrainedThreshold(LogisticRegression(), None, goals),
        ConstrainedRampClassifier(None, goals),
    ):
        with pytest.raises(InfeasibleConstraintsError) as caught:
            clf.fit(X, Y)
        assert caught.value.closest_.constraint_report_["price"].isna().all()
