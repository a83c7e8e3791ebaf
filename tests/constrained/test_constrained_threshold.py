"""ConstrainedThreshold: the exact constrained threshold for any classifier with scores."""

import copy
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skbandit.constrained import ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    accuracy,
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    ratio,
    recall,
)
from tests.folds import out_of_fold
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.tiers import first
from tests.worlds import refuses

FOREST = RandomForestClassifier(n_estimators=10, max_depth=3, random_state=0)
RATE = LogisticRegression()
WEIGHT = np.random.default_rng(3).integers(0, 4, len(Y)).astype(float)
NAMED_EXTRA = pd.DataFrame(X_EXTRA, columns=list("abcd"))


def fit(constraints=(), estimator=RATE, objective=None, y=Y, rows=X, metadata=None, **parameters):
    parameters = {"confidence_level": 0.5} | parameters  # rates at face value
    clf = ConstrainedThreshold(estimator, objective, constraints, **parameters)
    return clf.fit(rows, y, **({"attributes": ATTRIBUTES} | (metadata or {})))


def best_of_all(scores, positive, objective, goals):
    """The best objective over all thresholds where the rates as plain metrics meet the goals."""
    found = []
    for threshold in [scores.min() - 1, *scores]:
        decided = np.where(scores > threshold, positive, 1 - positive)
        value = partial(_value, decided=decided, positive=positive)
        slack = [(g.bound - value(g.rate)) * {"<=": 1, ">=": -1}[g.sense] for g in goals]
        if min(slack, default=0) >= -1e-9:
            found.append(value(objective))
    return max(found) if objective.greater_is_better else min(found)


def _value(rate, decided, positive):
    return rate.value(Y, decided, attributes=ATTRIBUTES, pos_label=positive)


# --- the theorem ---------------------------------------------------------------------------

DECLARED = {
    "maximize": (recall(), [false_positive_rate() <= 0.1]),
    "fractional": (f1(), [positive_rate() <= 0.4]),
    "groups": (error_rate(), [ratio(positive_rate, by="sex") >= 0.9]),
    "query": (error_rate(), [recall("sex == 'F'") >= 0.9, accuracy("egregious") >= 0.5]),
    "churn": (false_positive_rate(), [churn("deployed") <= 0.35, recall() >= 0.5]),
    "money": (error_rate(), [recall(weight="amount") >= 0.9]),
}


@pytest.mark.filterwarnings("ignore:.*(undefined|no answer)")
@pytest.mark.parametrize(
    ("estimator", "method", "positive"),
    first(
        1,
        [
            (FOREST, "predict_proba", 0),  # many ties
            (LinearSVC(random_state=0), "decision_function", 1),
            (RATE, "decision_function", 0),
        ],
    ),
)
@pytest.mark.parametrize("name", first(1, DECLARED))
def test_equals_brute_force_on_out_of_fold_scores(name, estimator, method, positive):
    objective, goals = DECLARED[name]
    clf = fit(goals, estimator, objective, pos_label=positive, response_method=method)
    scores = out_of_fold(estimator, method, X, Y, positive)
    value = _value(objective, np.where(scores > clf.threshold_, positive, 1 - positive), positive)
    assert value == pytest.approx(best_of_all(scores, positive, objective, goals))
    assert clf.feasible_
    assert clf.constraint_report_["slack"].min() >= -1e-9


@pytest.mark.thorough
def test_prefit_takes_the_estimators_own_scores():
    fitted = clone(FOREST).fit(X_EXTRA, Y_EXTRA)
    before = pickle.dumps(fitted)
    constraints = [recall() >= 0.9, positive_rate("sex == 'F'") <= 0.9]
    clf = fit(constraints, fitted, cv="prefit")
    assert clf.estimator_ is fitted and pickle.dumps(fitted) == before
    scores = fitted.predict_proba(X)[:, 1]
    best = best_of_all(scores, 1, error_rate(), constraints)
    assert np.mean((scores > clf.threshold_) != Y) == pytest.approx(best)
    np.testing.assert_array_equal(clf.predict(X), (scores > clf.threshold_).astype(int))
    again = clf.constraint_report(X, Y, attributes=ATTRIBUTES)  # here the rows of fit are new rows
    own = clf.constraint_report_.drop(columns="margin").assign(on="given")
    pd.testing.assert_frame_equal(again.iloc[:, :-3], own)
    assert (again["ci_low"] <= again["value"]).all() and (again["ci_high"] >= again["value"]).all()


def test_extra_rows_are_answered_by_the_final_estimator():
    constraints = [churn("deployed", on="extra") <= 0.3, recall(on="extra") >= 0.7, recall() >= 0.6]
    clf = fit(constraints, metadata=EXTRA)
    there = clf.predict(X_EXTRA)
    report = clf.constraint_report_
    assert report["value"][0] == pytest.approx(np.mean(there != ATTRIBUTES_EXTRA["deployed"]))
    assert report["value"][1] == pytest.approx(there[Y_EXTRA == 1].mean())
    scores = out_of_fold(RATE, "predict_proba", X, Y)
    assert report["cross_fitted"][2] == pytest.approx(np.mean(scores[Y == 1] > clf.threshold_))
    assert list(report["on"]) == ["extra", "extra", "train"] and report["satisfied"].all()
    new = clf.constraint_report(X, Y, attributes=ATTRIBUTES, **EXTRA)
    assert new["value"][0] == report["value"][0]
    unlabeled = fit(constraints[:1], metadata=EXTRA | {"y_extra": None})
    assert unlabeled.feasible_


def test_rows_of_weight_0_move_nothing():
    splits = list(StratifiedKFold(4).split(X, Y))
    kept = np.flatnonzero(WEIGHT)
    places = {row: place for place, row in enumerate(kept)}
    fewer = [
        tuple(np.array([places[row] for row in part if row in places]) for part in split)
        for split in splits
    ]
    constraints = [recall() >= 0.9]
    clf = fit(constraints, cv=splits, metadata={"sample_weight": WEIGHT})
    part = {"sample_weight": WEIGHT[kept], "attributes": ATTRIBUTES.iloc[kept]}
    alone = fit(constraints, rows=X[kept], y=Y[kept], cv=fewer, metadata=part)
    assert clf.threshold_ == pytest.approx(alone.threshold_, abs=1e-4)


def test_equally_good_thresholds_are_decided_by_the_usual_one():
    easy = X + 20 * Y[:, None]
    assert abs(fit(rows=easy).threshold_ - 0.5) < 0.3
    assert fit(rows=easy, estimator=LinearSVC(random_state=0)).threshold_ == pytest.approx(0, abs=1)
    nobody = fit([positive_rate() <= 0.0], rows=easy)
    assert nobody.threshold_ > 1 and not nobody.predict(X).any()


# --- cross-validation ----------------------------------------------------------------------


def test_rows_that_no_fold_tests_do_not_count():
    cv = ShuffleSplit(1, test_size=60, random_state=0)
    (_, test), *_ = cv.split(X)
    clf = fit([recall() >= 0.9, each(positive_rate, by="sex") <= 0.9], cv=cv)
    assert clf.constraint_report_["n_rows"][0] == (Y[test] == 1).sum()
    assert clf.constraint_report_["n_rows"][1:].sum() == 60


def test_groups_stay_together(routing):
    group = np.arange(len(Y)) // 4
    by_hand = fit([recall() >= 0.8], cv=list(GroupKFold(5).split(X, Y, group)))
    routed = fit([recall() >= 0.8], cv=GroupKFold(5), metadata={"groups": group})
    assert routed.threshold_ == by_hand.threshold_


# --- answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [RATE, FOREST, LinearSVC(random_state=0)])
@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_methods_agree(estimator, pos_label):
    names = np.array(["no", "yes"], dtype=object)
    clf = fit([recall() >= 0.9], estimator, y=names[Y], pos_label=pos_label)
    assert clf.classes_.tolist() == ["no", "yes"] and clf.n_features_in_ == 4
    scores, answers = clf.decision_function(X_EXTRA), clf.predict(X_EXTRA)
    np.testing.assert_array_equal(answers == "yes", scores > 0)
    assert hasattr(clf, "predict_proba") == hasattr(estimator, "predict_proba")
    if hasattr(estimator, "predict_proba"):
        proba = clf.predict_proba(X_EXTRA)
        np.testing.assert_array_equal(proba, clf.estimator_.predict_proba(X_EXTRA))
        np.testing.assert_allclose(np.exp(clf.predict_log_proba(X_EXTRA)), proba)
        column = 0 if pos_label == "no" else 1
        np.testing.assert_array_equal(proba[:, column] > clf.threshold_, answers == pos_label)
    new = clf.constraint_report(X_EXTRA, names[Y_EXTRA])
    rows = names[Y_EXTRA] == pos_label
    assert new["value"][0] == pytest.approx(np.mean(answers[rows] == pos_label))


def test_report_columns():
    columns = ["constraint", "on", "n_rows", "effective_n", "bound", "value", "unconstrained"]
    columns += ["slack", "margin", "satisfied", "multiplier", "price"]
    judged = [*columns[:6], "cross_fitted", "ci_low", "ci_high", *columns[6:]]
    clf = fit([recall() >= 0.9])
    assert list(clf.constraint_report_) == judged
    row = clf.constraint_report_.iloc[0]
    assert row["value"] == recall().value(Y, clf.predict(X))
    assert row["slack"] == pytest.approx(row["cross_fitted"] - 0.9) and row["slack"] >= 0
    assert row["ci_low"] < row["cross_fitted"] < row["ci_high"]
    fitted = clone(RATE).fit(X_EXTRA, Y_EXTRA)
    assert list(fit([recall() >= 0.9], fitted, cv="prefit").constraint_report_) == columns
    columns.remove("margin")
    assert list(clf.constraint_report(X, Y)) == [*columns, "ci_low", "ci_high", "verdict"]


# --- errors --------------------------------------------------------------------------------

IMPOSSIBLE = [recall() >= 0.99, false_positive_rate() <= 0.01]


@pytest.fixture(scope="module")
def fitted():
    return fit([recall() >= 0.9])


def three_classes():
    return LogisticRegression().fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize(
    ("parameters", "given", "error", "message"),
    [
        ({"constraints": recall({"gender": "F"}) >= 0.5}, {}, ValueError, "unknown column"),
        ({"constraints": recall(on="extra") >= 0.5}, {}, ValueError, "pass X_extra"),
        ({"constraints": [recall()]}, {}, TypeError, "is a rate, not a constraint"),
        ({"objective": difference(recall, by="sex")}, {}, ValueError, "bound it instead"),
        ({"constraints": IMPOSSIBLE}, {}, InfeasibleConstraintsError, "No threshold meets"),
        ({"pos_label": 2}, {}, ValueError, "pos_label=2 is not among the classes"),
        ({"estimator": LinearRegression()}, {}, ValueError, "'estimator' parameter"),
        ({"response_method": "decision_function", "estimator": FOREST}, {}, ValueError,
         "RandomForestClassifier has no decision_function"),
        ({"cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=2)}, {}, ValueError,
         "tests row .* 2 times"),
        ({"cv": [(np.flatnonzero(Y), np.flatnonzero(Y == 0))], "constraints": []}, {}, ValueError,
         "training rows of one class only"),
        ({"cv": "prefit"}, {}, NotFittedError, "requires a fitted estimator"),
        ({"cv": "prefit", "estimator": three_classes()}, {}, ValueError,
         r"recall\(\) is the rate of one class, and there are 3"),
        ({"cv": "prefit", "estimator": clone(RATE).fit(X, Y)}, {"y": Y + 1}, ValueError,
         r"y contains \[2\], which estimator was not fitted on"),
        ({"cv": "prefit", "estimator": clone(RATE).fit(X, Y)}, {"sample_wait": WEIGHT}, ValueError,
         "sample_wait: parameters for the fit"),
        ({}, {"y": np.ones(len(X))}, ValueError, "one class only"),
        ({}, {"y": np.arange(len(X)) % 3}, ValueError,
         r"recall\(\) is the rate of one class, and there are 3"),
        ({}, {"sample_weight": (Y == 1).astype(float)}, ValueError, "one class have weight 0"),
        ({}, {"attributes": ATTRIBUTES[:50]}, ValueError, "attributes has 50 rows for 120"),
        ({}, {"y_extra": Y_EXTRA}, ValueError, "passed without X_extra"),
        ({}, {"X_extra": X_EXTRA[:, :2]}, ValueError, "X_extra does not fit X"),
        ({}, {"X_extra": NAMED_EXTRA}, ValueError, "X_extra has column names and X has none"),
    ],
)  # fmt: skip
def test_bad_input_leaves_what_was_fitted(fitted, parameters, given, error, message):
    clf = copy.deepcopy(fitted)
    answers = clf.predict(X)
    clf.set_params(**parameters)
    before = dict(vars(clf))
    refuses(message, clf.fit, error=error, **{"X": X, "y": Y, "attributes": ATTRIBUTES} | given)
    assert vars(clf) == before and all(vars(clf)[name] is before[name] for name in before)
    np.testing.assert_array_equal(clf.predict(X), answers)


def test_scores_must_be_finite():
    class Broken(LogisticRegression):
        def predict_proba(self, X):
            return np.where(np.arange(len(X))[:, None] == 3, np.nan, super().predict_proba(X))

    refuses(r"Broken\.predict_proba returns nan for row 3", fit, estimator=Broken())


@pytest.mark.parametrize("by", [None, "site"])
@pytest.mark.parametrize(("level", "bounds"), [(0.95, (0.85, 0.15)), (0.5, (0.95, 0.05))])
def test_a_level_out_of_reach_is_no_proof(level, bounds, by):
    """What rates meet as measured is possible: only a level is missed."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 100])
    X = rng.normal(size=(300, 2)) + 1.5 * y[:, None]
    people = {"site": np.where(np.arange(300) % 2, "a", "b")}
    goals = [recall() >= bounds[0], false_positive_rate() <= bounds[1]]
    clf = ConstrainedThreshold(GaussianNB(), error_rate(), goals, confidence_level=level, by=by)
    with pytest.raises(InfeasibleConstraintsError) as error:
        clf.fit(X, y, attributes=people)
    possible = level > 0.5
    assert error.value.proven is not possible
    if possible:
        clf.set_params(confidence_level=0.5).fit(X, y, attributes=people)


def scored(n=400):
    """Labels and probabilities of the second."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return y, 1 / (1 + np.exp(-(y + rng.normal(size=n))))


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        lambda p: p[:, None],
        lambda p: pd.DataFrame({"score": p}),
        lambda p: pd.DataFrame({1: p, 0: 1 - p}),
    ],
    ids=["array", "column", "frame", "frame by class"],
)
def test_given_scores_are_those_of_a_prefit_classifier(form):
    y, p = scored()
    clf = ConstrainedThreshold(constraints=recall() >= 0.9, confidence_level=0.9).fit(form(p), y)
    model = LogisticRegression().fit(p[:, None], y)
    p_of_model = model.predict_proba(p[:, None])[:, 1]
    fitted = ConstrainedThreshold(model, None, recall() >= 0.9, cv="prefit", confidence_level=0.9)
    np.testing.assert_array_equal(
        clf.predict(form(p)), fitted.fit(p[:, None], y).predict(p[:, None])
    )
    assert np.corrcoef(p, p_of_model)[0, 1] > 0.99
    assert clf.predict_proba(form(p))[:, 1] == pytest.approx(p)


@pytest.mark.parametrize("margins", [False, True])
def test_one_column_of_scores_favors_the_positive_class(margins):
    y, p = scored()
    labels = np.array(["good", "bad"])[y]
    X = np.log(p / (1 - p)) if margins else p
    clf = ConstrainedThreshold(None, None, recall() >= 0.9, pos_label="bad").fit(X, labels)
    assert clf.response_method_ == ("decision_function" if margins else "predict_proba")
    np.testing.assert_array_equal(clf.predict(X) == "bad", clf.threshold_ < X)


@pytest.mark.parametrize(
    ("change", "method", "message"),
    [
        (lambda p: 0 * p, "auto", "X is constant"),
        (lambda p: np.where(p < 0.2, np.nan, p), "auto", "missing or no numbers: drop them"),
        (lambda p: 2 * p, "predict_proba", "probabilities are from 0 to 1"),
        (lambda p: np.column_stack([p, p, p]), "auto", "X has 3 columns"),
        (lambda p: pd.DataFrame({0: 1 - p, 1: p / 2}), "auto", "add up to .*, not 1"),
    ],
)
def test_what_is_no_score_is_refused(change, method, message):
    y, p = scored()
    clf = ConstrainedThreshold(constraints=recall() >= 0.9, response_method=method)
    with pytest.raises(ValueError, match=message):
        clf.fit(change(p), y)


def test_scores_that_are_low_for_the_positive_class_warn():
    y, p = scored()
    with pytest.warns(UserWarning, match="lower for 1 than for others"):
        ConstrainedThreshold(constraints=recall() >= 0.9).fit(1 - p, y)


def test_scores_of_another_column_are_refused():
    y, p = scored()
    clf = ConstrainedThreshold(constraints=recall() >= 0.9).fit(pd.DataFrame({"vendor": p}), y)
    with pytest.raises(ValueError, match=r"columns \['other'\], and the fit had \['vendor'\]"):
        clf.predict(pd.DataFrame({"other": p}))


def test_random_state_deals_other_folds_and_none_the_same():
    X, y = make_classification(200, random_state=0)
    clf = ConstrainedThreshold(LogisticRegression())
    same = [clf.fit(X, y).threshold_, clone(clf).fit(X, y).threshold_]
    assert same[0] == same[1]
    assert clone(clf).set_params(random_state=3).fit(X, y).threshold_ != same[0]


def test_verbose_reports_the_search(capsys):
    y, p = scored()
    ConstrainedThreshold(constraints=recall() >= 0.9, verbose=1).fit(p, y)
    said = r"\[ConstrainedThreshold\] 400 rows scored in \d\.\d s, searched in \d\.\d s: "
    assert re.match(said, capsys.readouterr().out)


# --- searches and rows that do not fit ------------------------------------------------------


def test_a_search_without_scoring_is_told_once_of_the_scorer():
    rows, labels = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    clf = ConstrainedThreshold(LogisticRegression(), constraints=recall() >= 0.517)
    search = GridSearchCV(clf, {"estimator__C": [0.1, 1.0]}, cv=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search.fit(rows, labels)
    told = [str(w.message) for w in caught if "RateScorer" in str(w.message)]
    assert len(told) == 1
    assert "scoring=RateScorer(None, recall() >= 0.517)" in told[0]


def test_predict_refuses_a_table_that_a_vectorizer_takes_for_one_text():
    texts, labels = ["good fine", "bad poor"] * 30, [1, 0] * 30
    inner = make_pipeline(CountVectorizer(), LogisticRegression())
    clf = ConstrainedThreshold(inner, constraints=recall() >= 0.5).fit(texts, labels)
    table = pd.DataFrame({"text": texts})
    refuses("predict_proba returns 1 for 60 rows: .*pass the column", clf.predict, table)


def test_repr_says_the_share_of_each_decision_once_fitted():
    clf = ConstrainedThreshold(GaussianNB(), constraints=recall() >= 0.9)
    assert "decided" not in repr(clf)
    clf.fit(X, Y)
    _, share, plain = clf.constraint_report_.attrs["decisions"][1]
    assert repr(clf).endswith(f"1 {share:.1%} (without constraints {plain:.1%})")


def test_marks_without_constraints_are_positive_for_as_many_rows_as_labels():
    marks, good = np.array([[1.0], [2], [3], [4], [5]]), np.array([0, 1, 0, 1, 0])
    judge = ConstrainedThreshold(None, error_rate(), confidence_level=0.5).fit(marks, good)
    assert judge.objective_report_["unconstrained"].tolist() == [0.4]  # 4 and 5 are positive
