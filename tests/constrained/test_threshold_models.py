"""ConstrainedThreshold over several classifiers, chosen out of fold; limits of the choice."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_html_repr

from skbandit.constrained import ConstrainedThreshold
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    difference,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.people import ATTRIBUTES, X_EXTRA, Y_EXTRA, X, Y

RATE = LogisticRegression()
_rng = np.random.default_rng(0)
RING = _rng.normal(size=(400, 2))
INSIDE = (np.hypot(*RING.T) < 1.1).astype(int)  # no line tells


def test_the_better_model_is_chosen_out_of_fold():
    models = [("line", RATE), ("trees", HistGradientBoostingClassifier(max_iter=20))]
    clf = ConstrainedThreshold(models, None, recall() >= 0.8).fit(RING, INSIDE)
    alone = ConstrainedThreshold(clone(models[1][1]), None, recall() >= 0.8).fit(RING, INSIDE)
    assert clf.chosen_ == "trees" and clf.threshold_ == alone.threshold_
    np.testing.assert_array_equal(clf.predict(RING), alone.predict(RING))
    assert isinstance(clf.estimator_, HistGradientBoostingClassifier)
    assert not hasattr(models[0][1], "classes_")


def test_the_first_stays_unless_another_is_clearly_better():
    """Two models that differ by almost nothing: the order decides, as a coin would."""
    near = [LogisticRegression(C=1.0), LogisticRegression(C=1.02)]
    for models in (near, near[::-1]):
        clf = ConstrainedThreshold(models).fit(X, Y)
        assert clf.chosen_ == "logisticregression-1" and clf.estimator_.C == models[0].C


def test_models_that_cannot_meet_the_goals_are_passed_over():
    models = [("constant", DummyClassifier()), ("line", RATE)]
    goals = [recall() >= 0.6, false_positive_rate() <= 0.4]
    assert ConstrainedThreshold(models, None, goals).fit(X, Y).chosen_ == "line"


def test_responses_of_different_kinds_and_groups():
    models = [("constant", DummyClassifier()), ("svm", LinearSVC(random_state=0))]
    goals = [difference(positive_rate, by="sex") <= 0.05, recall() >= 0.5]
    clf = ConstrainedThreshold(models, None, goals, by="sex").fit(X, Y, attributes=ATTRIBUTES)
    assert clf.chosen_ == "svm" and clf.response_method_ == "decision_function"
    assert not hasattr(clf, "predict_proba")  # that of the chosen one
    clf.predict(X, attributes=ATTRIBUTES)
    again = clf.set_params(estimator=RATE).fit(X, Y, attributes=ATTRIBUTES)
    assert not hasattr(again, "chosen_")


def test_fitted_models():
    fitted = [clone(RATE).fit(X_EXTRA, Y_EXTRA), GaussianNB().fit(X_EXTRA, Y_EXTRA)]
    clf = ConstrainedThreshold(fitted, None, recall() >= 0.8, cv="prefit").fit(X, Y)
    assert any(clf.estimator_ is one for one in fitted)
    other = GaussianNB().fit(X_EXTRA, Y_EXTRA + 1)
    with pytest.raises(ValueError, match=r"'gaussiannb' was fitted on the classes \[1, 2\]"):
        ConstrainedThreshold([fitted[0], other], cv="prefit").fit(X, Y)


def test_parameters_by_name():
    clf = ConstrainedThreshold([("lr", RATE), ("nb", GaussianNB())], cv=2)
    assert clf.get_params()["lr__C"] == 1.0 and clf.get_params()["nb"] is clf.estimator[1][1]
    again = clone(clf).set_params(lr__C=3.0, nb=LinearSVC(), cv=3)
    assert again.estimator[0][1].C == 3.0 and RATE.C == 1.0
    assert isinstance(again.estimator[1][1], LinearSVC) and again.cv == 3
    search = GridSearchCV(clf, {"lr__C": [0.1, 1.0], "nb": [GaussianNB(), LinearSVC()]}, cv=2)
    assert set(search.fit(X, Y).best_params_) == {"lr__C", "nb"}
    plain = ConstrainedThreshold([LogisticRegression()]).set_params(logisticregression__C=2.0)
    assert plain.estimator[0].C == 2.0 and "C=2.0" in repr(plain)
    assert "GaussianNB" in estimator_html_repr(clf)
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        clf.set_params(nothing=1)


def test_metadata_reaches_those_that_ask(routing):
    weight = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    asks = LogisticRegression().set_fit_request(sample_weight=True)
    declines = GaussianNB().set_fit_request(sample_weight=False)
    clf = ConstrainedThreshold([("lr", asks), ("nb", declines)], cv=2)
    fitted = clf.fit(X, Y, sample_weight=weight)
    assert fitted.chosen_ == "lr"
    np.testing.assert_allclose(
        fitted.estimator_.coef_, clone(RATE).fit(X, Y, sample_weight=weight).coef_
    )


@pytest.mark.parametrize(
    ("models", "error", "told"),
    [
        ([], ValueError, "empty list"),
        ([("cv", RATE)], ValueError, "'cv' is that of a parameter"),
        ([("a__b", RATE)], ValueError, "'a__b'"),
        ([("a", RATE), ("a", GaussianNB())], ValueError, "two classifiers of the name 'a'"),
        ([(1, RATE)], TypeError, "the name 1"),
        ([("a", "lr")], TypeError, "'a' must be a classifier"),
    ],
)
def test_bad_lists(models, error, told):
    with pytest.raises(error, match=told):
        ConstrainedThreshold(models).fit(X, Y)


# --- limits --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_models", [1, 2])
def test_the_promise_of_single_rates_on_new_rows_is_exact(n_models):
    """Clopper and Pearson's limit, by hand; each of two models takes half of the error."""
    fitted = [clone(RATE).fit(X_EXTRA, Y_EXTRA), LogisticRegression(C=0.5).fit(X_EXTRA, Y_EXTRA)]
    clf = ConstrainedThreshold(
        fitted[:n_models] if n_models > 1 else fitted[0],
        false_positive_rate(),
        recall() >= 0.7,
        cv="prefit",
        confidence_level=0.9,
    ).fit(X, Y)
    row = clf.constraint_report_.iloc[0]
    hits = round(row["value"] * Y.sum())
    limit = row["value"] - row["margin"]
    assert binom.sf(hits - 1, Y.sum(), limit) == pytest.approx(0.1 / n_models)
    assert row["satisfied"] and row["slack"] >= row["margin"]


def test_score_limits_ask_for_less_than_exact_ones():
    """Precision minus nothing conservative: with cross-validation, or rates that combine."""
    goals = difference(recall, by="sex") <= 0.35
    clf = ConstrainedThreshold(RATE, None, goals, confidence_level=0.8)
    report = clf.fit(X, Y, attributes=ATTRIBUTES).constraint_report_
    assert report["satisfied"].all() and clf.feasible_
    assert (report["slack"] >= report["margin"] - 1e-9).all()
    assert report.columns.tolist().index("margin") == report.columns.tolist().index("slack") + 1


@pytest.mark.filterwarnings("ignore:Fewer than 20 rows")
@pytest.mark.parametrize("by", [None, "sex"])
def test_too_few_rows_for_a_level(by):
    rows = np.sort(np.append(np.flatnonzero(Y == 1)[:20], np.flatnonzero(Y == 0)))
    clf = ConstrainedThreshold(RATE, None, precision() >= 0.85, confidence_level=0.999, by=by)
    told = (
        r"precision\(\) >= 0.85: is .*missed by.*support a level of 0\.\d+, not "
        r"confidence_level=0.999, which takes about \d.* times as many"
    )
    part = ATTRIBUTES.iloc[rows]
    with pytest.raises(InfeasibleConstraintsError, match=told) as caught:
        clf.fit(X[rows], Y[rows], attributes=part)
    row = caught.value.closest_.constraint_report_.iloc[0]
    assert not row["satisfied"] and row["slack"] < row["margin"]
    assert not hasattr(clf, "estimator_")
    clf.set_params(confidence_level=0.6).fit(X[rows], Y[rows], attributes=part)
    assert clf.feasible_


def test_level_one_half_is_the_rates_themselves():
    goals = [recall() >= 0.9, difference(recall, by="sex") <= 0.3]
    plain = ConstrainedThreshold(RATE, None, goals).fit(X, Y, attributes=ATTRIBUTES)
    half = ConstrainedThreshold(RATE, None, goals, confidence_level=0.5)
    assert half.fit(X, Y, attributes=ATTRIBUTES).threshold_ == plain.threshold_
    pd.testing.assert_frame_equal(
        half.constraint_report_.drop(columns="margin"), plain.constraint_report_
    )
