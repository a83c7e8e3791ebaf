"""Columns of many groups, and rows without one, in all three classifiers."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, RampClassifier
from skbandit.constrained._goals import Declared
from skbandit.measure import Columns, Data, Rows
from skbandit.rates import (
    difference,
    each,
    error_rate,
    false_positive_rate,
    positive_rate,
    ratio,
    recall,
)
from tests.folds import out_of_fold
from tests.tiers import first
from tests.worlds import refuses

LINEAR = LogisticRegression()
CLASSIFIERS = {
    "ramp": ConstrainedRampClassifier(alpha=0.1),
    "train": RampClassifier(alpha=0.1),
    "reduction": ConstrainedReduction(LINEAR, max_iter=2),
    "threshold": ConstrainedThreshold(LINEAR),
}


def made(n_groups, n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    group = np.arange(n_rows) % n_groups
    X = rng.normal(size=(n_rows, 3))
    X[:, 0] += rng.normal(size=n_groups)[group] / 3
    y = (X[:, 0] + X[:, 1] / 2 + rng.normal(size=n_rows) > 0).astype(int)
    return X, y, pd.DataFrame({"g": [f"g{k:02d}" for k in group]})


def data_of(n_groups):
    _, y, attributes = made(n_groups)
    rows = Rows(Columns.read(attributes, None, len(y)), y.astype(np.int8), np.ones(len(y)))
    return Data(rows, None, 1, [0, 1])


# --- of many pairs, the worst decide --------------------------------------------------------

FORMS = {
    "difference": difference(positive_rate, by="g") <= 0.35,
    "ratio": ratio(positive_rate, by="g") >= 0.4,
    "recalls": difference(recall, by="g") <= 0.35,
}


@pytest.mark.thorough
@pytest.mark.parametrize(("form", "n_groups"), [("difference", 7), ("ratio", 12), ("recalls", 7)])
def test_the_threshold_is_that_of_brute_force_over_all_pairs(form, n_groups):
    X, y, attributes = made(n_groups, seed=n_groups)
    goal, scores = FORMS[form], out_of_fold(LINEAR, "predict_proba", X, y)
    counted = (y == 1) | (form != "recalls")
    member = pd.get_dummies(attributes["g"], dtype=float).to_numpy().T * counted

    def evaluate(thresholds):
        positive = scores > np.reshape(thresholds, (-1, 1))
        of_groups = positive @ member.T / member.sum(axis=1)
        with np.errstate(invalid="ignore"):
            low, high = of_groups.min(axis=1), of_groups.max(axis=1)
            value = low / high if form == "ratio" else high - low
        slack = value - goal.bound if form == "ratio" else goal.bound - value
        feasible = slack >= -1e-9
        feasible &= positive[:, y == 1].mean(axis=1) >= 0.3
        # the rows of the objective decide about no recall
        return positive[:, y == 0].mean(axis=1), feasible, value

    ordered = np.unique(scores)
    cost, feasible, _ = evaluate([0.0, *(ordered[1:] + ordered[:-1]) / 2, 1.0])
    best = cost[feasible].min()
    goals = [goal, recall() >= 0.3]
    clf = ConstrainedThreshold(LINEAR, false_positive_rate(), goals, confidence_level=0.5)
    clf.fit(X, y, attributes=attributes)
    cost, feasible, value = evaluate([clf.threshold_])
    assert feasible.all() and cost == pytest.approx(best)
    report = clf.constraint_report_[:-1]["cross_fitted"]
    assert len(report) < n_groups * (n_groups - 1)
    worst = report.min() if form == "ratio" else report.max()
    assert worst == pytest.approx(value[0])


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_worst_pair_is_in_the_working_set_and_in_every_report(name):
    X, y, attributes = made(9, 360)
    X_new, y_new, attributes_new = made(9, 300, seed=1)
    goal = difference(positive_rate, by="g") <= 0.45
    clf = clone(CLASSIFIERS[name]).set_params(objective=error_rate(), constraints=goal)
    clf.fit(X, y, attributes=attributes)
    assert clf.constraint_report_["satisfied"].all()
    assert 30 <= len(clf.constraint_report_) < 72
    if name in ("ramp", "train"):
        of_pairs = clf.constraint_report_.set_index("constraint")["multiplier"]
        np.testing.assert_array_equal(of_pairs, clf.multipliers_)
        again = pickle.loads(pickle.dumps(clf)).constraint_report(X, y, attributes=attributes)
        again = again.set_index("constraint")["multiplier"]
        np.testing.assert_array_equal(again, of_pairs.reindex(again.index, fill_value=0.0))
    report = clf.constraint_report(X_new, y_new, attributes=attributes_new)
    of_groups = pd.Series(clf.predict(X_new)).groupby(attributes_new["g"]).mean()
    assert len(report) == 30
    assert report["value"].max() == pytest.approx(np.ptp(of_groups))
    if name == "train":  # judged on its own rows, by the rule itself
        of_groups = pd.Series(clf.predict(X)).groupby(attributes["g"]).mean()
        assert clf.constraint_report_["value"].max() == pytest.approx(np.ptp(of_groups))


@pytest.mark.parametrize("n_groups", [2, 6, 7, 20, 40])
def test_bound_rows_grow_with_the_groups_not_with_their_pairs(n_groups):
    declared = Declared.read(error_rate(), difference(positive_rate, by="g") <= 0.1)
    goals = declared.bind(data_of(n_groups))
    pairs = n_groups * (n_groups - 1)
    assert goals.constraints.forms.numerator.shape[0] == min(pairs, 30)
    assert len(goals.every) == pairs
    assert (goals.widened(np.zeros(600)) is None) == (n_groups <= 6)
    assert len(goals.measured.rows) == 600


@pytest.mark.thorough
def test_groups_that_cannot_be_measured_are_told_of_once_each():
    X, y, attributes = made(9)
    y[attributes["g"] == "g04"] = 0
    y[attributes["g"] == "g06"] = 0
    clf = clone(CLASSIFIERS["threshold"]).set_params(
        objective=error_rate(), constraints=difference(recall, by="g") <= 0.5
    )
    with pytest.warns(UserWarning, match=r"\[g00 - g04\] is not measured.*\[g00 - g06\]") as caught:
        clf.fit(X, y, attributes=attributes)
    assert len(caught) == 1
    assert (clf.constraint_report_["n_rows"] == 0).sum() == 2


# --- too many groups ------------------------------------------------------------------------


def test_a_float_column_is_refused_at_once():
    X, y, _ = made(2)
    age = {"age": np.linspace(20, 80, 600)}
    told = r"column 'age' holds 600 different numbers.*pandas\.cut.*'age > 50'"
    for goal in (difference(positive_rate, by="age") <= 0.1, each(recall, by="age") >= 0.1):
        for clf in CLASSIFIERS.values():
            with pytest.raises(ValueError, match=told):
                clf.set_params(objective=error_rate(), constraints=goal).fit(X, y, attributes=age)
        refuses(told, goal.rate.value, y, y, age)
    clf = ConstrainedThreshold(LINEAR, by="age")
    refuses(told, clf.fit, X, y, attributes=age)
    # few numbers are groups, whatever their type
    few = {"age": np.repeat([20.5, 30.5, 40.5], 200)}
    assert difference(positive_rate, by="age").value(y, y, few) >= 0
    with pytest.raises(ValueError, match="column 'age' holds 600"):
        each(recall, by=["sex", "age"]).value(y, y, {"sex": ["f", "m"] * 300} | age)


@pytest.mark.thorough
def test_many_groups_warn_and_very_many_pairs_are_refused():
    X, y, attributes = made(60)
    goal = difference(positive_rate, by="g") <= 0.9
    clf = ConstrainedThreshold(LINEAR, error_rate(), goal, confidence_level=0.5)
    with pytest.warns(UserWarning, match="'g' make 60 groups, of 10 rows on average.*rare") as told:
        clf.fit(X, y, attributes=attributes)
    assert len(told) == 1 and clf.feasible_
    X, y, attributes = made(120)
    refused = r"compares each two of 120 groups, and 100 are the most.*abs\(each\(recall, by='g'\)"
    refuses(refused, clf.fit, X, y, attributes=attributes)
    crossed = pd.DataFrame({"g": np.arange(600) % 11, "h": np.arange(600) % 13})
    refuses(r"each two of 143 groups", difference(recall, by=["g", "h"]).value, y, y, crossed)


@pytest.mark.thorough
def test_columns_of_any_type_make_groups():
    X, y, attributes = made(8, 320)
    goal = ratio(positive_rate, by="g") >= 0.1
    clf = ConstrainedThreshold(LINEAR, error_rate(), goal)
    group = attributes["g"].to_numpy()
    expected = clf.fit(X, y, attributes=attributes).threshold_
    unused = pd.Categorical(group, categories=[*np.unique(group), "unused", "neither"])
    number = np.unique(group, return_inverse=True)[1]
    mixed = np.array([f"g{k}" if k % 2 else k for k in number.tolist()], dtype=object)
    crossed = pd.DataFrame({"g": number % 4, "h": number // 4})
    for column in (unused, number.astype(float), mixed):
        clf.fit(X, y, attributes=pd.DataFrame({"g": column}))
        assert clf.threshold_ == expected and len(clf._every) == 56
    clf.set_params(constraints=ratio(positive_rate, by=["g", "h"]) >= 0.1)
    assert clf.fit(X, y, attributes=crossed).threshold_ == expected
    with pytest.raises(TypeError, match="must be hashable"):
        clf.fit(X, y, attributes={"g": [[k] for k in number], "h": number})


# --- rows without a group -------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", first(2, CLASSIFIERS))
def test_rows_without_a_group_are_told_of_once_and_count_in_no_constraint_by_group(name):
    X, y, attributes = made(3)
    attributes.loc[::4, "g"] = None
    goals = [difference(positive_rate, by="g") <= 0.3, each(recall, by="g") >= 0.4]
    clf = clone(CLASSIFIERS[name]).set_params(objective=error_rate(), constraints=goals)
    with pytest.warns(UserWarning, match="150 of 600 rows have no group, as 'g'.*fillna") as caught:
        clf.fit(X, y, attributes=attributes)
    assert len(caught) == 1 and "share a threshold" not in str(caught[0].message)
    assert clf.constraint_report_["n_rows"][:6].tolist() == [300] * 6
    assert clf.constraint_report(X, y, attributes=attributes)["n_rows"][:6].tolist() == [300] * 6
    named = attributes.fillna("missing")
    clf.fit(X, y, attributes=named)
    assert len(clf.constraint_report_) == 12 + 4


@pytest.mark.thorough
@pytest.mark.parametrize("name", first(1, ["threshold", "reduction"]))
def test_rows_without_a_group_share_a_threshold(name):
    X, y, attributes = made(3)
    attributes.loc[::4, "g"] = None
    clf = clone(CLASSIFIERS[name]).set_params(by="g")
    clf.set_params(objective=error_rate(), constraints=recall() >= 0.8)
    with pytest.warns(UserWarning, match="150 of 600 .* and share a threshold") as caught:
        clf.fit(X, y, attributes=attributes)
    assert len(caught) == 1
    thresholds = clf.thresholds_
    predicted = clf.predict(X, attributes=attributes)
    named = attributes.fillna("missing")
    clf.fit(X, y, attributes=named)
    assert thresholds.index.isna().tolist() == [False] * 3 + [True]
    np.testing.assert_array_equal(thresholds, clf.thresholds_)
    np.testing.assert_array_equal(clf.predict(X, attributes=named), predicted)
    refuses("'g' is missing in 150 rows, row 0 first", clf.predict, X, attributes=attributes)


@pytest.mark.thorough
def test_goals_of_one_name_have_multipliers_of_their_own():
    rng = np.random.default_rng(0)
    n, groups = 700, rng.integers(0, 7, 700)
    X = np.column_stack([rng.normal(size=(n, 2)), groups])
    y = (X[:, 0] + 0.1 * (groups - 3) + 0.7 * rng.normal(size=n) > 0.3).astype(int)
    parity = difference(positive_rate, by="h") <= 0.15
    alarms = difference(false_positive_rate, by="h") <= 0.9
    clf = RampClassifier(constraints=[parity.named("fair"), alarms.named("fair")], solver="newton")
    clf.fit(X, y, attributes={"h": groups})
    highest = clf.multipliers_.max()
    assert highest > 0 and clf.constraint_report_["multiplier"].max() == highest
