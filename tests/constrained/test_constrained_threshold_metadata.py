"""ConstrainedThreshold around and inside pipelines and searches; copies."""

import numpy as np
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import churn, difference, recall
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, PEOPLE, PEOPLE_EXTRA, X, Y

RATE = LogisticRegression()
WEIGHT = np.random.default_rng(3).integers(0, 4, len(Y)).astype(float)


def fit(constraints=(), estimator=RATE, objective=None, y=Y, rows=X, metadata=None, **parameters):
    clf = ConstrainedThreshold(estimator, objective, constraints, **parameters)
    return clf.fit(rows, y, **({"attributes": ATTRIBUTES} | (metadata or {})))


# --- pipelines, searches, copies -----------------------------------------------------------


def encoded(last):
    steps = make_column_transformer(
        (OneHotEncoder(drop="if_binary"), ["sex"]), (StandardScaler(), list("abcd"))
    )
    return make_pipeline(steps, last)


PEOPLE_GOALS = [recall("sex == 'F'") >= 0.8, churn("deployed", on="extra") <= 0.4]
NAMED = {"X_extra": PEOPLE_EXTRA, "attributes_extra": ATTRIBUTES_EXTRA}


@pytest.mark.thorough
@pytest.mark.parametrize("enabled", [False, True])
def test_pipeline_inside(enabled):
    with sklearn.config_context(enable_metadata_routing=enabled):
        clf = fit(PEOPLE_GOALS, encoded(RATE), rows=PEOPLE, metadata=NAMED)
        assert clf.feasible_ and list(clf.feature_names_in_) == list(PEOPLE)
        assert fit(difference(recall, by="sex") <= 0.3, encoded(RATE), rows=PEOPLE).feasible_


@pytest.mark.thorough
def test_weights_reach_a_pipeline_inside(routing):
    weighted = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        LogisticRegression().set_fit_request(sample_weight=True),
    )
    routed = fit([recall() >= 0.9], weighted, metadata={"sample_weight": WEIGHT})
    with sklearn.config_context(enable_metadata_routing=False):
        plain = make_pipeline(StandardScaler(), LogisticRegression())
        by_name = {"sample_weight": WEIGHT, "logisticregression__sample_weight": WEIGHT}
        by_hand = fit([recall() >= 0.9], plain, metadata=by_name)
        with pytest.warns(UserWarning, match="accepts no sample_weight.*<step>__sample_weight"):
            unweighted = fit([recall() >= 0.9], plain, metadata={"sample_weight": WEIGHT})
    assert routed.threshold_ == by_hand.threshold_ != unweighted.threshold_
    np.testing.assert_array_equal(routed.predict_proba(X), by_hand.predict_proba(X))


@pytest.mark.thorough
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.filterwarnings("ignore:.*of the probabilities of:UserWarning")
def test_constrained_classifier_inside_gets_its_metadata(enabled):
    """The one estimator whose own fit takes attributes and extra rows, sliced and whole."""
    inner = ConstrainedRampClassifier(constraints=[churn("deployed", on="all") <= 0.4])
    with sklearn.config_context(enable_metadata_routing=enabled):
        clf = fit([recall("sex == 'F'") >= 0.9], inner, cv=2, metadata=EXTRA)
    assert clf.feasible_ and clf.estimator_.constraint_report_["n_rows"][0] == 200


@pytest.mark.thorough
def test_searches(routing):
    goals = [[recall() >= 0.8], [recall() >= 0.95]]
    grid = {"estimator__C": [0.01, 1.0], "constraints": goals}
    search = GridSearchCV(ConstrainedThreshold(RATE, cv=3), grid, cv=2, scoring="recall")
    search.fit(X, Y, attributes=ATTRIBUTES)
    assert search.best_params_["constraints"] == goals[1]
    inside = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2)
    assert fit([recall() >= 0.9], inside).n_features_in_ == 4
