"""Thresholds per group, scored with the groups that `predict` needs."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.constrained import ConstrainedThreshold
from skbandit.evaluation import RateScorer
from skbandit.rates import difference, positive_rate
from tests.people import ATTRIBUTES, X, Y

PEOPLE = pd.DataFrame(ATTRIBUTES)
EVEN = difference(positive_rate, by="sex") <= 0.2


def by_sex():
    return ConstrainedThreshold(LogisticRegression(), constraints=EVEN, by="sex")


def test_the_scorer_passes_attributes_on_to_predict():
    clf = by_sex().fit(X, Y, attributes=PEOPLE)
    direct = -np.mean(clf.predict(X, attributes=PEOPLE) != Y)
    assert RateScorer()(clf, X, Y, attributes=PEOPLE) == pytest.approx(direct)


def test_and_to_the_last_step_of_a_pipeline():
    clf = make_pipeline(StandardScaler(), by_sex())
    clf.fit(X, Y, constrainedthreshold__attributes=PEOPLE)
    direct = -np.mean(clf.predict(X, attributes=PEOPLE) != Y)
    assert RateScorer()(clf, X, Y, attributes=PEOPLE) == pytest.approx(direct)


@pytest.mark.thorough
@pytest.mark.parametrize("piped", [False, True])
def test_under_routed_cross_validation(piped):
    with config_context(enable_metadata_routing=True):
        clf = by_sex().set_fit_request(attributes=True).set_predict_request(attributes=True)
        clf = make_pipeline(StandardScaler(), clf) if piped else clf
        scores = cross_val_score(
            clf, X, Y, scoring=RateScorer(), cv=3, params={"attributes": PEOPLE}
        )
    assert np.isfinite(scores).all() and (scores > -0.5).all()


def test_a_classifier_that_takes_none_gets_none():
    clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    direct = -np.mean(clf.predict(X) != Y)
    assert RateScorer()(clf, X, Y, attributes=PEOPLE) == pytest.approx(direct)
