"""Labels that do not say which class is positive: required where a rate depends on it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
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
