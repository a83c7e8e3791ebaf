"""Classifiers under goals in pipelines, searches and copies, their metadata routed."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_html_repr

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, RampClassifier
from skbandit.rates import churn, difference, each, error_rate, false_positive_rate, recall
from tests.people import (
    ATTRIBUTES,
    ATTRIBUTES_EXTRA,
    EXTRA,
    PEOPLE,
    PEOPLE_EXTRA,
    Y_EXTRA,
    X,
    Y,
    assert_same,
    fit,
)

# --- pipelines and searches ----------------------------------------------------------------

METADATA = {
    "attributes": ATTRIBUTES,
    "X_extra": PEOPLE_EXTRA,
    "y_extra": Y_EXTRA,
    "attributes_extra": ATTRIBUTES_EXTRA,
}
PEOPLE_GOALS = [
    recall("sex == 'F'") >= 0.75,
    churn("deployed", on="extra") <= 0.35,
    error_rate(on="extra") <= 0.4,
]


def encoder():
    return make_column_transformer(
        (OneHotEncoder(drop="if_binary"), ["sex"]),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )


def pipeline(constraints=PEOPLE_GOALS, transform_input=("X_extra",)):
    clf = ConstrainedRampClassifier(constraints=constraints)
    steps = [("encode", encoder()), ("clf", clf)]
    return Pipeline(steps, transform_input=list(transform_input) or None)


@pytest.mark.thorough
@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("wrap", [lambda part: part, lambda part: (part,)], ids=["bare", "tuple"])
def test_pipeline_routes_attributes_and_transforms_extra(wrap):
    model = pipeline().fit(PEOPLE, Y, **METADATA | {"X_extra": wrap(PEOPLE_EXTRA)})
    encode = encoder().fit(PEOPLE)
    by_hand = fit(
        PEOPLE_GOALS, rows=encode.transform(PEOPLE), X_extra=encode.transform(PEOPLE_EXTRA),
        y_extra=Y_EXTRA, attributes_extra=ATTRIBUTES_EXTRA,
    )  # fmt: skip
    assert_same(model[-1], by_hand)
    assert model[-1].feasible_
    changed = np.mean(model.predict(PEOPLE_EXTRA) != ATTRIBUTES_EXTRA["deployed"])
    assert by_hand.constraint_report_["value"].iloc[1] == pytest.approx(changed)


@pytest.mark.usefixtures("routing")
def test_forgotten_transform_input_is_explained():
    with pytest.raises(ValueError, match=r'transform_input=\["X_extra"\]'):
        pipeline(transform_input=()).fit(PEOPLE, Y, **METADATA)


@pytest.mark.thorough
@pytest.mark.usefixtures("routing")
def test_cross_validate_slices_attributes_and_weights():
    weight = np.random.default_rng(2).integers(1, 3, 120)
    goal = recall("sex == 'F'") >= 0.9
    clf = RampClassifier(constraints=goal, solver="newton")
    result = cross_validate(
        clf, X, Y, cv=3, params={"attributes": ATTRIBUTES, "sample_weight": weight},
        return_estimator=True, return_indices=True, error_score="raise",
    )  # fmt: skip
    for model, rows in zip(result["estimator"], result["indices"]["train"], strict=True):
        alone = clone(clf).fit(
            X[rows], Y[rows], attributes=ATTRIBUTES.iloc[rows], sample_weight=weight[rows]
        )
        np.testing.assert_array_equal(model.coef_, alone.coef_)
    for model, rows, score in zip(
        result["estimator"], result["indices"]["test"], result["test_score"], strict=True
    ):
        assert score == pytest.approx(model.score(X[rows], Y[rows], sample_weight=weight[rows]))


@pytest.mark.usefixtures("routing")
def test_attributes_as_dict_are_refused_in_cross_validation():
    clf = ConstrainedRampClassifier(constraints=recall("sex == 'F'") >= 0.5)
    whole = {"attributes": {"sex": ATTRIBUTES["sex"].to_numpy()}}
    with pytest.raises(ValueError, match="but not a dict: pass a DataFrame"):
        cross_validate(clf, X, Y, cv=2, params=whole, error_score="raise")


# --- copies and pictures -------------------------------------------------------------------

DECLARED = RampClassifier(
    recall() - 2 * false_positive_rate(),
    [(recall("sex == 'F'") >= 0.5).named("women"), [each(recall, by="sex") >= 0.5]],
    class_weight={0: 1, 1: 2},
    solver="newton",
)


@pytest.mark.parametrize("make", [copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])
def test_fitted_copies_predict_and_report(make):
    clf = clone(DECLARED).fit(X, Y, attributes=ATTRIBUTES)
    again = make(clf)
    assert_same(again, clf)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    pd.testing.assert_frame_equal(
        again.constraint_report(X, Y, attributes=ATTRIBUTES),
        clf.constraint_report(X, Y, attributes=ATTRIBUTES),
    )
    fresh = clone(again)
    assert not hasattr(fresh, "coef_") and repr(fresh) == repr(DECLARED)


def test_reprs():
    shown = " ".join(repr(DECLARED).split())
    assert "objective=recall() - 2 * false_positive_rate()" in shown
    assert "recall(\"sex == 'F'\") >= 0.5).named('women')" in shown
    assert repr(ConstrainedRampClassifier()) == "ConstrainedRampClassifier()"
    for model in (DECLARED, make_pipeline(StandardScaler(), DECLARED)):
        html = estimator_html_repr(model)
        assert "RampClassifier" in html and "recall()" in html


# --- around and inside a ConstrainedThreshold ----------------------------------------------

RATE = LogisticRegression()
WEIGHT = np.random.default_rng(3).integers(0, 4, len(Y)).astype(float)


def threshold_fit(constraints, estimator=RATE, *, rows=X, metadata=None, **parameters):
    clf = ConstrainedThreshold(estimator, None, constraints, **parameters)
    return clf.fit(rows, Y, **({"attributes": ATTRIBUTES} | (metadata or {})))


THRESHOLD_GOALS = [recall("sex == 'F'") >= 0.8, churn("deployed", on="extra") <= 0.4]
NAMED = {"X_extra": PEOPLE_EXTRA, "attributes_extra": ATTRIBUTES_EXTRA}


@pytest.mark.thorough
@pytest.mark.parametrize("enabled", [False, True])
def test_pipeline_inside(enabled):
    with sklearn.config_context(enable_metadata_routing=enabled):
        clf = threshold_fit(
            THRESHOLD_GOALS, make_pipeline(encoder(), RATE), rows=PEOPLE, metadata=NAMED
        )
        assert clf.feasible_ and list(clf.feature_names_in_) == list(PEOPLE)
        assert threshold_fit(
            difference(recall, by="sex") <= 0.3, make_pipeline(encoder(), RATE), rows=PEOPLE
        ).feasible_


@pytest.mark.thorough
def test_weights_reach_a_pipeline_inside(routing):
    weighted = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        LogisticRegression().set_fit_request(sample_weight=True),
    )
    routed = threshold_fit([recall() >= 0.9], weighted, metadata={"sample_weight": WEIGHT})
    with sklearn.config_context(enable_metadata_routing=False):
        plain = make_pipeline(StandardScaler(), LogisticRegression())
        by_name = {"sample_weight": WEIGHT, "logisticregression__sample_weight": WEIGHT}
        by_hand = threshold_fit([recall() >= 0.9], plain, metadata=by_name)
        with pytest.warns(UserWarning, match="accepts no sample_weight.*<step>__sample_weight"):
            unweighted = threshold_fit([recall() >= 0.9], plain, metadata={"sample_weight": WEIGHT})
    assert routed.threshold_ == by_hand.threshold_ != unweighted.threshold_
    np.testing.assert_array_equal(routed.predict_proba(X), by_hand.predict_proba(X))


@pytest.mark.thorough
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.filterwarnings("ignore:.*of the probabilities of:UserWarning")
def test_constrained_classifier_inside_gets_its_metadata(enabled):
    """The one estimator whose own fit takes attributes and extra rows, sliced and whole."""
    inner = ConstrainedRampClassifier(constraints=[churn("deployed", on="all") <= 0.4])
    with sklearn.config_context(enable_metadata_routing=enabled):
        clf = threshold_fit([recall("sex == 'F'") >= 0.9], inner, cv=2, metadata=EXTRA)
    assert clf.feasible_ and clf.estimator_.constraint_report_["n_rows"][0] == 200


@pytest.mark.thorough
def test_searches(routing):
    goals = [[recall() >= 0.8], [recall() >= 0.95]]
    grid = {"estimator__C": [0.01, 1.0], "constraints": goals}
    search = GridSearchCV(ConstrainedThreshold(RATE, cv=3), grid, cv=2, scoring="recall")
    search.fit(X, Y, attributes=ATTRIBUTES)
    assert search.best_params_["constraints"] == goals[1]
    inside = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2)
    assert threshold_fit([recall() >= 0.9], inside).n_features_in_ == 4
