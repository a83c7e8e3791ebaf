"""Labels that do not say which class is positive: required where a rate depends on it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold, constraint_report
from skbandit.evaluation import RateScorer
from skbandit.rates import (
    accuracy,
    churn,
    difference,
    error_rate,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
)
from tests.tiers import first
from tests.worlds import refuses, warns

X, Y = make_classification(300, 4, flip_y=0.2, random_state=0)
NAMES = np.array(["churned", "stayed"])  # the one that matters comes first in the alphabet
TABLE = pd.DataFrame({"sex": np.where(X[:, 0] > 0, "F", "M"), "old": NAMES[Y]})
ESTIMATORS = [
    ConstrainedRampClassifier(),
    ConstrainedThreshold(LogisticRegression()),
    ConstrainedReduction(LogisticRegression(), max_iter=2),
]
DEPENDS = [
    (None, recall() >= 0.8),
    (precision(), ()),
    (None, ratio(positive_rate, by="sex") >= 0.1),
    (error_rate() - positive_rate(), ()),
]
SYMMETRIC = [
    (None, ()),
    (accuracy(), difference(error_rate, by="sex") <= 0.3),
    (None, [churn("old") <= 0.4, recall() + true_negative_rate() >= 1]),
]


class Listed(ClassifierMixin, BaseEstimator):
    """A logistic regression that may list its classes, and their columns, in descending order."""

    def __init__(self, step=-1):
        self.step = step

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_, self.n_features_in_ = self.model_.classes_[:: self.step], X.shape[1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, :: self.step]

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))

    def decision_function(self, X):
        return self.step * self.model_.decision_function(X)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("cv", first(1, ["prefit", 3]))
def test_classes_in_another_order(labels, method, cv):
    """Decisions, and what is reported of them, are those of the classifier in the usual order."""
    if len(labels) > 2 and method != "predict_proba":
        return
    codes = Y if len(labels) == 2 else np.digitize(X[:, 0] + Y, [0.0, 1.0])
    y, positive = np.array(labels)[codes], labels[1]
    goals = [recall(of=positive) >= 0.9, positive_rate(of=positive) <= 0.8]
    goals = goals if len(labels) > 2 else [recall() >= 0.9, positive_rate() <= 0.8]
    rules = []
    for inner in (Listed(1), Listed(-1)):
        inner = inner.fit(X[:100], y[:100])
        clf = ConstrainedThreshold(inner, None, goals, cv=cv, response_method=method)
        rules.append(clf.fit(X[100:], y[100:]))
    usual, other = rules
    np.testing.assert_array_equal(other.predict(X), usual.predict(X))
    assert np.mean(other.predict(X[100:])[y[100:] == positive] == positive) > 0.8
    np.testing.assert_array_equal(other.classes_, usual.classes_)
    np.testing.assert_allclose(other.predict_proba(X), usual.predict_proba(X))
    np.testing.assert_allclose(other.predict_log_proba(X), usual.predict_log_proba(X))
    pd.testing.assert_frame_equal(other.constraint_report_, usual.constraint_report_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("objective", "constraints"), DEPENDS)
def test_text_labels_need_pos_label_if_a_rate_depends_on_it(estimator, objective, constraints):
    clf = clone(estimator).set_params(objective=objective, constraints=constraints)
    told = r"depends on which class is positive, .* 'churned' and 'stayed': .* pos_label="
    refuses(told, clf.fit, X, NAMES[Y], attributes=TABLE)
    refuses(r"labels 1 and 2: .* pos_label=", clf.fit, X, Y + 1, attributes=TABLE)


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("objective", "constraints"), first(1, SYMMETRIC[::-1]))
def test_symmetric_rates_need_none_and_name_no_class(estimator, objective, constraints):
    clf = clone(estimator).set_params(objective=objective, constraints=constraints)
    found = clf.fit(X, NAMES[Y], attributes=TABLE).constraint_report_
    for label in NAMES:
        clf.set_params(pos_label=label).fit(X, NAMES[Y], attributes=TABLE)
        report = clf.constraint_report_
        for column in ("value", "unconstrained"):  # ties may fall the other way
            np.testing.assert_allclose(found[column], report[column], atol=0.05)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("labels", first(1, [[-1, 1], [0, 1], [False, True], [0.0, 1.0]]))
def test_labels_that_speak_for_themselves(estimator, labels):
    clf = clone(estimator).set_params(constraints=recall() >= 0.8)
    clf.fit(X, np.array(labels)[Y])
    by_name = clone(clf).set_params(pos_label="stayed").fit(X, NAMES[Y])
    np.testing.assert_array_equal(clf.predict(X) == 1, by_name.predict(X) == "stayed")


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", first(1, ESTIMATORS[1:]))
def test_a_search_with_a_scorer_takes_the_estimators_pos_label(estimator):
    clf = clone(estimator).set_params(constraints=recall() >= 0.8, pos_label="churned")
    pipeline = make_pipeline(StandardScaler(), clf)
    step = pipeline.steps[-1][0]
    scorer = RateScorer(true_negative_rate(), recall() >= 0.7)
    search = GridSearchCV(pipeline, {f"{step}__confidence_level": [None]}, scoring=scorer, cv=2)
    search.fit(X, NAMES[Y])
    assert 0 < search.best_score_ <= 1
    given = RateScorer(true_negative_rate(), recall() >= 0.7, pos_label="churned")
    assert scorer(search, X, NAMES[Y]) == given(search, X, NAMES[Y])
    assert scorer(search.best_estimator_, X, NAMES[Y]) == given(search, X, NAMES[Y])
    other = RateScorer(true_negative_rate(), recall() >= 0.7, pos_label="stayed")
    assert other(search, X, NAMES[Y]) != given(search, X, NAMES[Y])
    report = constraint_report(search, X, NAMES[Y])
    found = recall().value(NAMES[Y], search.predict(X), pos_label="churned")
    assert report["value"].tolist() == [found] and report["on"].tolist() == ["given"]


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [ConstrainedThreshold, ConstrainedReduction])
def test_a_blank_label_is_told(learner):
    """As a missing label of a file that was read without missing values."""
    X = np.random.default_rng(0).normal(size=(120, 1))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    y[:30] = ""
    with pytest.warns(UserWarning, match="y has the label '', which counts as a class: pass None"):
        learner(LogisticRegression()).fit(X, y)
    warns("y has the label '', which counts as a class: pass None", error_rate().value, y, y)
    y[:30] = "yes "
    alike = "y has the labels 'yes.*' and 'yes.*', which"
    with pytest.warns(UserWarning, match=alike):
        learner(LogisticRegression()).fit(X, y)
    warns(alike, error_rate().value, y, y)
