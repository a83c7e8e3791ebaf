"""ConstrainedReduction: goals over any classifier that takes weights."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    recall,
)
from tests.folds import out_of_fold
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.tiers import first
from tests.worlds import refuses

RATE = LogisticRegression()
PARITY = difference(positive_rate, by="sex") <= 0.1


def fit(constraints=(), estimator=RATE, objective=None, y=Y, rows=X, metadata=None, **parameters):
    clf = ConstrainedReduction(estimator, objective, constraints, **parameters)
    return clf.fit(rows, y, **({"attributes": ATTRIBUTES} | (metadata or {})))


def unfair(n, seed):
    """Two features tell the label; the first one tells the sex as well."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], n)})
    rows = rng.normal(size=(n, 2))
    rows[:, 0] += 1.5 * (people["sex"] == "M")
    return rows, (rows.sum(axis=1) + 0.3 * rng.normal(size=n) > 0.8).astype(int), people


# --- what it is for --------------------------------------------------------------------------


FRAME = pd.DataFrame(X, columns=list("abcd"), index=ATTRIBUTES.index)
FRAME_EXTRA = pd.DataFrame(X_EXTRA, columns=list("abcd"), index=ATTRIBUTES_EXTRA.index)


@pytest.fixture(scope="module")
def fair():
    rows, y, people = unfair(1500, 1)
    return ConstrainedReduction(RATE, constraints=PARITY).fit(rows, y, attributes=people)


def test_training_attains_a_goal_at_a_lower_price_than_a_moved_threshold(fair):
    rows, y, people = unfair(1500, 1)
    new, answers, others = unfair(20_000, 2)
    moved = ConstrainedThreshold(RATE, constraints=PARITY).fit(rows, y, attributes=people)
    error = [np.mean(clf.predict(new) != answers) for clf in (fair, moved)]
    assert error[0] < error[1] - 0.1
    report = fair.constraint_report(new, answers, attributes=others)
    assert report["satisfied"].all()
    assert max(fair.best_rounds_) > 0
    assert (
        fair.multipliers_.max() > 0.05 and fair.multipliers_.min() == 0
    )  # one side of the pair binds


def test_the_report_tells_what_new_rows_show(fair):
    rows, y, people = unfair(1500, 1)
    new, answers, others = unfair(20_000, 2)
    report = fair.constraint_report_
    assert fair.feasible_ and report["satisfied"].all()
    assert (report["ci_low"] <= report["cross_fitted"]).all()
    assert (report["cross_fitted"] <= report["ci_high"]).all()
    on_new = fair.constraint_report(new, answers, attributes=others)["value"]
    assert (report["ci_low"] <= on_new).all() and (on_new <= report["ci_high"]).all()
    own = fair.constraint_report(rows, y, attributes=people)["value"]
    np.testing.assert_allclose(report["value"], own)
    slack = report["bound"] - report["cross_fitted"]
    np.testing.assert_allclose(report["slack"], slack)


@pytest.mark.thorough
def test_a_mean_of_two_fits_lies_between_rules_that_change_abruptly():
    """Labels are nearly certain and the sex nearly is: a little more weight turns all of them."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 3000)})
    rows = rng.normal(size=(3000, 3))
    rows[:, 0] += 1.5 * (people["sex"] == "M")
    y = (rows[:, 0] + 2 * rows[:, 1] * rows[:, 2] > 1).astype(int)
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    train, new = slice(0, 1500), slice(1500, None)
    clf = ConstrainedReduction(trees, constraints=PARITY, max_iter=5)
    clf.fit(rows[train], y[train], attributes=people[train])
    assert len(clf.estimators_) == 2
    moved = ConstrainedThreshold(trees, constraints=PARITY)
    moved.fit(rows[train], y[train], attributes=people[train])
    errors = [np.mean(one.predict(rows[new]) != y[new]) for one in (clf, moved)]
    assert errors[0] < errors[1] - 0.1
    report = clf.constraint_report(rows[new], y[new], attributes=people[new])
    assert report["value"].max() < 0.1 + 0.06


# --- the unweighted fit is always a candidate ------------------------------------------------


def test_without_constraints_it_is_the_classifier_itself():
    clf = fit()
    np.testing.assert_allclose(clf.estimators_[0].coef_, clone(RATE).fit(X, Y).coef_)
    assert (clf.best_rounds_, clf.n_iter_, len(clf.multipliers_)) == ((0,), 1, 0)
    assert clf.threshold_ == pytest.approx(0.5, abs=0.1)


def test_a_goal_that_costs_nothing_changes_nothing():
    clf = fit(error_rate() <= 0.9)
    np.testing.assert_array_equal(clf.predict(X), fit().predict(X))
    np.testing.assert_array_equal(clf.multipliers_, [0.0])


def test_one_round_moves_the_threshold_alone():
    clf = fit(recall() >= 0.9, objective=false_positive_rate(), max_iter=1, confidence_level=0.5)
    scores = out_of_fold(RATE, "predict_proba", X, Y)
    assert clf.best_rounds_ == (0,)
    found = recall().value(Y, scores > clf.threshold_)
    assert found == pytest.approx(clf.constraint_report_["cross_fitted"][0])
    moved = ConstrainedThreshold(RATE, false_positive_rate(), recall() >= 0.9).fit(X, Y)
    best = false_positive_rate().value(Y, scores > moved.threshold_)
    error = np.sqrt(best / (Y == 0).sum())
    assert found >= 0.9
    assert false_positive_rate().value(Y, scores > clf.threshold_) <= best + 0.5 * error


# --- an exact learner reaches a known optimum --------------------------------------------------


class Cells(ClassifierMixin, BaseEstimator):
    """The weighted mean label in each cell: the cell is the only feature."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        cell = np.asarray(X)[:, 0].astype(int)
        total = np.bincount(cell, weights=weight, minlength=8)
        share = np.bincount(cell, weights=weight * (y == self.classes_[1]), minlength=8)
        self.share_ = np.divide(share, total, out=np.full(8, 0.5), where=total > 0)
        return self

    def predict_proba(self, X):
        p = self.share_[np.asarray(X)[:, 0].astype(int)]
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class Stump(ClassifierMixin, BaseEstimator):
    """The threshold on one column, either way round, with the least weighted error."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        cost = np.where(y == self.classes_[1], 1.0, -1.0)
        cost *= 1.0 if sample_weight is None else sample_weight
        rules = [(j, t, s) for j, x in enumerate(X.T) for t in (-np.inf, *x) for s in (-1, 1)]
        self.rule_ = min(rules, key=lambda rule: -cost[self.decide(X, rule) > 0].sum())
        return self

    def decide(self, X, rule):
        column, threshold, sign = rule
        return np.where(X[:, column] > threshold, 1.0, -1.0) * sign

    def decision_function(self, X):
        return self.decide(X, self.rule_)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def on_all(n):
    """Settings by which each row is scored by the model fitted to it, without a margin."""
    rows = np.arange(n)
    return {"cv": [(rows, rows)], "confidence_level": 0.5}


def test_a_first_step_after_which_one_class_is_best_is_followed_by_the_full_one():
    """The rounds ended at the plain fit, of objective .467, where the best stump has .267."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    y = (rows[:, 0] + rng.normal(size=60) > 0.5).astype(int)
    clf = ConstrainedReduction(Stump(), positive_rate(), recall() >= 0.6, **on_all(60))
    clf.fit(rows, y)
    rules = [(rows[:, j] > t) == way for j in (0, 1) for t in rows[:, j] for way in (True, False)]
    best = min(rule.mean() for rule in rules if rule[y == 1].mean() >= 0.6)
    assert clf.predict(rows).mean() == pytest.approx(best) and clf.n_iter_ > 1


@pytest.mark.thorough
@pytest.mark.parametrize("multiplier", first(1, [0.15, 0.4]))
def test_a_learner_of_all_rules_finds_the_best_one(multiplier):
    rng = np.random.default_rng(2)
    n = 3000
    cell, sex = rng.integers(0, 8, n), rng.choice(["F", "M"], n)
    cell = np.where(sex == "M", np.maximum(cell, rng.integers(0, 8, n)), cell)
    y = (rng.random(n) < (cell + 1) / 9 - 0.2 * (cell % 2)).astype(int)
    people = pd.DataFrame({"sex": sex})
    gap = positive_rate({"sex": "M"}) - positive_rate({"sex": "F"})

    def criterion(answers):
        return error_rate().value(y, answers), gap.value(y, answers, people)

    judged = np.array([criterion(np.array(a)[cell]) for a in product([0, 1], repeat=8)])
    bound = judged[np.argmin(judged @ [1, multiplier]), 1]  # where some rule of least cost is exact
    optimum = judged[judged[:, 1] <= bound + 1e-9, 0].min()
    clf = ConstrainedReduction(Cells(), constraints=gap <= bound, max_iter=30, **on_all(n))
    clf.fit(cell[:, None], y, attributes=people)
    error, attained = criterion(clf.predict(cell[:, None]))
    assert attained <= bound + 1e-9
    assert error == pytest.approx(optimum, abs=1e-9)


def test_a_ratio_is_trained_for():
    """Costs of F1 are lower for false alarms; a threshold alone knows only the order of scores."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 2))
    y = (rng.random(600) < np.where(rows[:, 0] > 1, 0.7, 0.1)).astype(int)
    clf = ConstrainedReduction(RATE, f1(), positive_rate() <= 0.5, max_iter=4).fit(rows, y)
    assert clf.n_iter_ > 1
    plain = f1().value(y, clone(RATE).fit(rows, y).predict(rows))
    assert f1().value(y, clf.predict(rows)) > plain


# --- several datasets --------------------------------------------------------------------------


class Counting(LogisticRegression):
    """Keeps how many rows it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.n_fitted_ = len(y)
        return super().fit(X, y, sample_weight)


@pytest.mark.thorough
def test_extra_rows_that_cost_anything_are_fitted_labeled_or_not():
    goal = churn("deployed", on="extra") <= 0.12
    unlabeled = EXTRA | {"y_extra": None}
    clf = fit(goal, Counting(), metadata=unlabeled, cv=3, confidence_level=0.5)
    report = clf.constraint_report_
    assert report["n_rows"].tolist() == [len(X_EXTRA)] and report["satisfied"].all()
    assert max(clf.best_rounds_) > 0
    assert clf.estimators_[0].n_fitted_ == len(X) + len(X_EXTRA)
    without = ConstrainedThreshold(Counting(), constraints=churn("deployed", on="extra") <= 0.9)
    assert without.fit(X, Y, attributes=ATTRIBUTES, **unlabeled).estimator_.n_fitted_ == len(X)
    again = clf.constraint_report(X, Y, attributes=ATTRIBUTES, **unlabeled)
    assert again["value"].tolist() == pytest.approx(report["value"].tolist())


def test_extra_rows_are_judged_by_models_that_have_not_seen_them():
    everywhere = [recall(on="all") >= 0.7, error_rate(on="extra") <= 0.4]
    forest = RandomForestClassifier(n_estimators=10, random_state=0)
    clf = fit(everywhere, forest, metadata=EXTRA, cv=3)
    report = clf.constraint_report_
    assert report["n_rows"].tolist() == [(Y == 1).sum() + (Y_EXTRA == 1).sum(), len(X_EXTRA)]
    assert report["cross_fitted"][1] > 0.05  # memorized rows would be all right
    assert report["satisfied"].all()


@pytest.mark.parametrize(
    ("rows", "extra", "message"),
    [
        (X, X_EXTRA[:, :3], r"it has features of shape \(3,\), and X has \(4,\)"),
        (FRAME, FRAME_EXTRA[list("abc")], "only one of the two has: 'd'"),
        (FRAME, FRAME_EXTRA.assign(e=1), "only one of the two has: 'e'"),
        (FRAME, X_EXTRA, "features with names, which those of X_extra lack"),
    ],
)
def test_extra_rows_that_do_not_fit(rows, extra, message):
    with pytest.raises(ValueError, match=f"X_extra does not fit X: .*{message}"):
        fit([churn("deployed", on="extra") <= 0.3], rows=rows, metadata=EXTRA | {"X_extra": extra})


# --- labels, weights, folds ---------------------------------------------------------------------


def test_labels_come_out_and_either_class_may_be_positive():
    words = np.where(Y == 1, "bad", "good")
    goal = [recall() >= 0.9, PARITY]
    expected = fit(goal, cv=3)
    named = fit(goal, y=words, pos_label="bad", cv=3)
    assert set(named.predict(X)) <= {"bad", "good"}
    np.testing.assert_array_equal(named.predict(X) == "bad", expected.predict(X) == 1)
    assert named.threshold_ == pytest.approx(expected.threshold_)
    np.testing.assert_array_equal(named.decision_function(X) > 0, named.predict(X) == "good")


def test_weights_count_in_rates_and_in_training():
    weight = np.random.default_rng(3).integers(0, 4, len(Y)).astype(float)
    clf = fit(recall() >= 0.9, metadata={"sample_weight": weight}, max_iter=1)
    np.testing.assert_allclose(clf.estimators_[0].coef_, clone(RATE).fit(X, Y, weight).coef_)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    piped = fit(recall() >= 0.9, pipeline, metadata={"sample_weight": weight}, max_iter=1)
    by_hand = clone(pipeline).fit(X, Y, logisticregression__sample_weight=weight)
    np.testing.assert_allclose(piped.estimators_[0][-1].coef_, by_hand[-1].coef_)


def test_rows_that_no_fold_tests_count_in_no_rate_and_are_fitted():
    cv = ShuffleSplit(1, test_size=0.5, random_state=0)
    clf = fit(PARITY, Counting(), cv=cv)
    assert clf.constraint_report_["n_rows"].max() <= 60
    assert clf.estimators_[0].n_fitted_ == len(X)
    refuses("cv tests row", fit, PARITY, cv=ShuffleSplit(5, test_size=0.5, random_state=0))


# --- errors -------------------------------------------------------------------------------------


def test_impossible_goals_are_named_and_the_closest_model_is_there():
    goals = [recall() >= 0.99, false_positive_rate() <= 0.01]
    clf = ConstrainedReduction(RATE, constraints=goals, cv=3)
    with pytest.raises(InfeasibleConstraintsError, match="missed by") as caught:
        clf.fit(X, Y)
    assert not hasattr(clf, "estimators_")
    closest = caught.value.closest_
    assert not closest.feasible_ and closest.predict(X).shape == Y.shape
    assert not closest.constraint_report_["satisfied"].all()
    assert np.isnan(closest.confidence_level_)


def test_a_level_that_the_rows_cannot_support_says_what_it_takes():
    with pytest.raises(
        InfeasibleConstraintsError,
        match=r"(?s)recall\(\) >= 0.9: is .* not confidence_level=0.999, which takes about",
    ):
        fit([recall() >= 0.9, false_positive_rate() <= 0.22], cv=3, confidence_level=0.999)


@pytest.mark.thorough
def test_the_default_level_falls_where_only_rules_that_tell_nothing_apart_attain_it():
    close = difference(positive_rate, by="sex") <= 0.05
    default, asked = (fit(close, cv=3, max_iter=3, confidence_level=one) for one in (None, 0.8))
    errors = [np.mean(clf.predict(X) != Y) for clf in (default, asked)]
    assert default.confidence_level_ < asked.confidence_level_ == pytest.approx(0.8)
    assert errors[0] < 0.1 < 0.4 < errors[1]
    assert default.feasible_


def test_a_failed_fit_leaves_the_model_as_it_was():
    clf = fit(PARITY, cv=3)
    before = pickle.dumps(clf)
    refuses("Two classes are needed", clf.fit, X, np.zeros(len(X)))
    refuses("unknown column", clf.fit, X, Y, attributes=ATTRIBUTES.drop(columns="sex"))
    assert pickle.dumps(clf) == before


# --- as part of scikit-learn ----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:groups has 6 group")
def test_search_and_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        clf = ConstrainedReduction(inner, constraints=PARITY, cv=GroupKFold(3))
        search = GridSearchCV(clf, {"estimator__C": [0.1, 1.0]}, cv=StratifiedKFold(2))
        groups, weight = np.arange(len(Y)) % 6, np.ones(len(Y))
        search.fit(X, Y, attributes=ATTRIBUTES, groups=groups, sample_weight=weight)
    assert search.best_estimator_.feasible_
    pipeline = make_pipeline(StandardScaler(), ConstrainedReduction(RATE, constraints=PARITY, cv=3))
    pipeline.fit(X, Y, constrainedreduction__attributes=ATTRIBUTES)
    assert pipeline[-1].constraint_report_["satisfied"].all()


def test_verbose_reports_every_round(capsys):
    clf = fit(PARITY, cv=3, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == clf.n_iter_
    assert lines[0].startswith("[ConstrainedReduction] round 0: multipliers [0, 0], ")


@pytest.mark.filterwarnings("ignore:.*is not measured")
def test_a_group_without_rows_is_skipped():
    table = ATTRIBUTES.assign(sex=np.where(np.arange(len(Y)) < 3, "X", ATTRIBUTES["sex"]))
    table.loc[table["sex"] == "X", "sex"] = np.where(Y[:3] == 1, "F", "X")
    clf = fit(each(recall, by="sex") >= 0.5, metadata={"attributes": table}, cv=3)
    report = clf.constraint_report_
    skipped = report["n_rows"] == 0
    assert skipped.sum() == 1
    np.testing.assert_array_equal(np.isnan(clf.multipliers_), skipped)
