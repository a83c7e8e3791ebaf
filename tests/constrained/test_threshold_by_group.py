"""by=: a threshold per group, attributes at prediction and in scorers."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.constrained import ConstrainedReduction, ConstrainedThreshold
from skbandit.evaluation import RateScorer
from skbandit.exceptions import InfeasibleConstraintsError
from skbandit.rates import (
    difference,
    each,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    recall,
)
from tests.folds import out_of_fold
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.worlds import refuses

RATE = LogisticRegression()
PARITY = difference(positive_rate, by="sex") <= 0.05
AGED = ATTRIBUTES.assign(old=ATTRIBUTES["age"] > 45)
NAMED = pd.DataFrame(X, columns=list("abcd"), index=ATTRIBUTES.index)


def fit(constraints=PARITY, by="sex", attributes=ATTRIBUTES, rows=X, estimator=RATE, **parameters):
    metadata = parameters.pop("metadata", {})
    clf = ConstrainedThreshold(estimator, None, constraints, by=by, **parameters)
    return clf.fit(rows, Y, attributes=attributes, **metadata)


def scores_out_of_fold(positive=1):
    return out_of_fold(RATE, "predict_proba", X, Y, positive)


# --- the theorem ---------------------------------------------------------------------------


@pytest.mark.thorough
def test_equals_brute_force_on_out_of_fold_scores():
    scores, sex = scores_out_of_fold(), ATTRIBUTES["sex"].to_numpy()
    clf = fit()
    best = np.inf
    sides = []
    for group in "FM":
        own = np.unique(scores[sex == group])
        sides.append([-1.0, *(own[1:] + own[:-1]) / 2, 2.0])
    for f, m in itertools.product(*sides):
        answers = (scores > np.where(sex == "F", f, m)).astype(int)
        gap = abs(answers[sex == "F"].mean() - answers[sex == "M"].mean())
        if gap <= 0.05 + 1e-9:
            best = min(best, np.mean(answers != Y))
    thresholds = clf.thresholds_
    answers = (scores > thresholds[sex].to_numpy()).astype(int)
    assert np.mean(answers != Y) == pytest.approx(best)
    assert clf.duality_gap_ == 0.0 and clf.feasible_
    report = clf.constraint_report_
    assert report["satisfied"].all()
    shares = [answers[sex == group].mean() for group in "FM"]
    assert report["cross_fitted"][0] == pytest.approx(shares[0] - shares[1])


# --- prediction ----------------------------------------------------------------------------


def test_unseen_set_after_fit_does_not_decide_groups_without_a_rule():
    clf = fit(recall() >= 0.5, by="sex").set_params(unseen="overall")
    with pytest.raises(ValueError, match=r"has no threshold: .*before fit"):
        clf.predict(X[:1], attributes={"sex": ["other"]})


@pytest.mark.thorough
def test_a_group_unseen_in_fit_has_the_common_threshold_if_wanted():
    one, each_group = fit(by=None), fit(unseen="overall")
    assert each_group.threshold_ == one.threshold_
    strangers = ATTRIBUTES_EXTRA.assign(sex="X")
    strangers.loc[strangers.index[0], "sex"] = "F"
    answers = each_group.predict(X_EXTRA, attributes=strangers)
    np.testing.assert_array_equal(answers[1:], one.predict(X_EXTRA)[1:])
    nobody = strangers.assign(sex=strangers["sex"].replace("X", None))
    np.testing.assert_array_equal(each_group.predict(X_EXTRA, attributes=nobody), answers)
    known = each_group.predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA)
    np.testing.assert_array_equal(known, fit().predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA))
    with pytest.raises(ValueError, match=r"group sex='X'.* or set unseen='overall'"):
        fit().predict(X_EXTRA, attributes=strangers)


@pytest.mark.thorough
def test_codes_of_another_type_are_told_although_unseen_groups_are_allowed():
    coded = ATTRIBUTES.assign(sex=(ATTRIBUTES["sex"] == "M").astype(int))
    clf = fit(unseen="overall", attributes=coded)
    as_text = ATTRIBUTES_EXTRA.assign(sex=np.where(ATTRIBUTES_EXTRA["sex"] == "M", "1", "0"))
    with pytest.warns(UserWarning, match="no row is of a group .* sex='.', and fit saw 0, 1"):
        answers = clf.predict(X_EXTRA, attributes=as_text)
    one = fit(by=None, attributes=coded)
    np.testing.assert_array_equal(answers, one.predict(X_EXTRA))


@pytest.mark.parametrize("pos_label", [0, 1])
def test_training_rows_of_a_group_without_a_threshold_are_not_in_its_rates(pos_label):
    """As `predict` refuses them: their group is in no fold that tests."""
    known = np.arange(len(Y)) >= len(Y) // 5
    sex = ATTRIBUTES.assign(sex=np.where(known, ATTRIBUTES["sex"], "X"))
    clf = fit(positive_rate() <= 0.95, pos_label=pos_label, cv=TimeSeriesSplit(4), attributes=sex)
    answers = clf.predict(X[known], attributes=sex[known])
    assert clf.constraint_report_["value"][0] == pytest.approx((answers == pos_label).mean())


def test_the_common_threshold_of_other_groups_has_the_exact_limits_of_a_fitted_classifier():
    settings = {"cv": "prefit", "confidence_level": 0.9, "estimator": clone(RATE).fit(X, Y)}
    bounds = [recall() >= 0.7, positive_rate() <= 0.6]
    one = fit(bounds, by=None, **settings)
    each_group = fit(bounds, unseen="overall", **settings)
    assert each_group.threshold_ == one.threshold_
    assert each_group.confidence_level_ == one.confidence_level_ == pytest.approx(0.9)


@pytest.mark.thorough
@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize(
    "clf",
    [ConstrainedThreshold(RATE, cv=3), ConstrainedReduction(RATE, cv=3, max_iter=3)],
    ids=lambda clf: type(clf).__name__,
)
def test_each_row_is_judged_by_the_threshold_of_its_group(clf, pos_label):
    clf = clone(clf).set_params(constraints=PARITY, by="sex", pos_label=pos_label)
    clf.fit(X, Y, attributes=ATTRIBUTES, **EXTRA)
    assert not hasattr(clf, "threshold_")
    assert list(clf.thresholds_.index) == ["F", "M"]
    thresholds = clf.thresholds_[ATTRIBUTES_EXTRA["sex"]].to_numpy()
    models = getattr(clf, "estimators_", None) or [clf.estimator_]
    scores = np.mean([model.predict_proba(X_EXTRA)[:, pos_label] for model in models], axis=0)
    answers = clf.predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA)
    np.testing.assert_array_equal(answers == pos_label, scores > thresholds)
    decided = clf.decision_function(X_EXTRA, attributes=ATTRIBUTES_EXTRA)
    np.testing.assert_array_equal(decided > 0, answers == 1)
    right = np.mean(answers == Y_EXTRA)
    assert clf.score(X_EXTRA, Y_EXTRA, attributes=ATTRIBUTES_EXTRA) == pytest.approx(right)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X_EXTRA, attributes=ATTRIBUTES_EXTRA), answers)
    assert not hasattr(clone(clf), "thresholds_")
    own = clf.constraint_report(X, Y, attributes=ATTRIBUTES, **EXTRA)["value"]
    np.testing.assert_allclose(clf.constraint_report_["value"], own)


# --- what may go wrong ---------------------------------------------------------------------


def test_probabilities_take_the_attributes_that_predict_takes():
    clf = fit()
    found = clf.predict_proba(X, attributes=ATTRIBUTES)
    np.testing.assert_array_equal(found, clf.predict_proba(X))
    logs = clf.predict_log_proba(X, attributes=ATTRIBUTES)
    np.testing.assert_allclose(np.exp(logs), found)


def test_errors_name_the_group_and_the_cure():
    clf = fit()
    before = pickle.dumps(clf)
    refuses(r"by='sex': unknown column 'sex'.*pass attributes=", clf.predict, X)
    strange = ATTRIBUTES.copy()
    strange.iloc[4, strange.columns.get_loc("sex")] = "X"
    with pytest.raises(ValueError, match=r"row 4 is of group sex='X'.*'F', 'M'\. Fit with rows"):
        clf.predict(X, attributes=strange)
    strange.iloc[4, strange.columns.get_loc("sex")] = None
    missing = r"'sex' is missing in 1 rows, row 4 first.*such as 'unknown'"
    refuses(missing, clf.decision_function, X, attributes=strange)
    refuses("attributes has 10 rows", clf.predict, X, attributes=ATTRIBUTES[:10])
    assert pickle.dumps(clf) == before


@pytest.mark.parametrize(
    ("by", "error", "told"),
    [
        ([], TypeError, r"by=\[\] must be the name"),
        ([1], TypeError, "must be the name of an attribute column"),
        (["sex", "sex"], ValueError, "twice"),
        ("sux", ValueError, "unknown column 'sux'"),
    ],
)
def test_bad_columns(by, error, told):
    refuses(told, fit, by=by, error=error)


def test_infeasible_names_the_groups():
    with pytest.raises(InfeasibleConstraintsError, match="No thresholds by 'sex' meet") as caught:
        fit([recall() >= 0.99, positive_rate() <= 0.6])
    closest = caught.value.closest_
    assert not closest.feasible_
    assert closest.predict(X, attributes=ATTRIBUTES).shape == Y.shape


def test_groups_of_rows_that_do_not_count_have_no_threshold():
    weight = (ATTRIBUTES["sex"] == "F").to_numpy().astype(float)
    clf = fit(recall() >= 0.8, metadata={"sample_weight": weight})
    assert list(clf.thresholds_.index) == ["F"]
    refuses("group sex='M', which has no threshold", clf.predict, X, attributes=ATTRIBUTES)
    # rows that no fold tests count as little, but those of tested groups are predicted
    half = fit(recall() >= 0.8, cv=ShuffleSplit(1, test_size=60, random_state=0))
    assert len(half.thresholds_) == 2


# --- confidence ----------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [5, "prefit"])
def test_limits_are_inside_in_every_group(cv):
    fitted = clone(RATE).fit(X_EXTRA, Y_EXTRA)
    goals = each(recall, by="sex") >= 0.6
    clf = fit(goals, estimator=fitted if cv == "prefit" else RATE, cv=cv, confidence_level=0.9)
    report = clf.constraint_report_
    assert report["satisfied"].all() and (report["slack"] >= report["margin"] - 1e-9).all()
    plain = fit(goals, estimator=clf.estimator, cv=cv)
    column = "value" if cv == "prefit" else "cross_fitted"
    assert (plain.constraint_report_[column] <= report[column] + 1e-9).all()
    answers = clf.predict(X, attributes=ATTRIBUTES)
    assert error_rate().value(Y, answers) < 0.5


# --- trained by costs, then a threshold per group -------------------------------------------


def test_one_round_of_a_reduction_is_a_threshold_per_group():
    settings = {"constraints": PARITY, "by": "sex", "cv": 3, "confidence_level": 0.5}
    trained = ConstrainedReduction(RATE, max_iter=1, **settings).fit(X, Y, attributes=ATTRIBUTES)
    moved = ConstrainedThreshold(RATE, **settings).fit(X, Y, attributes=ATTRIBUTES)
    pd.testing.assert_series_equal(trained.thresholds_, moved.thresholds_)


@pytest.mark.thorough
def test_training_still_pays_where_thresholds_cannot_attain_a_goal():
    """Costs of precision change the order of scores, which thresholds per group do not."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1500, 3))
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 1500)})
    y = (rows[:, 0] + 2 * (rows[:, 1] > 1) - (rows[:, 2] > 1) > 1).astype(int)
    goals = [precision() >= 0.9, difference(recall, by="sex") <= 0.1]
    options = {"objective": recall(), "constraints": goals, "by": "sex"}
    options |= {"confidence_level": 0.8}
    clf = ConstrainedReduction(RATE, max_iter=3, **options).fit(rows, y, attributes=people)
    moved = ConstrainedThreshold(RATE, **options)
    moved.fit(rows, y, attributes=people)
    found = [recall().value(y, one.predict(rows, attributes=people)) for one in (clf, moved)]
    assert max(clf.best_rounds_) > 0
    assert found[0] > found[1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("goals", "level", "told"),
    [
        ((0.99, 0.01), None, r"Found no thresholds by 'sex'.*missed by"),
        ((0.9, 0.22), 0.999, r"These rows support a level of .*, not confidence_level=0.999"),
    ],
)
def test_goals_that_no_thresholds_of_a_reduction_meet_are_named(goals, level, told):
    goals = [recall() >= goals[0], false_positive_rate() <= goals[1]]
    settings = {"by": "sex", "max_iter": 2, "cv": 3, "confidence_level": level}
    clf = ConstrainedReduction(RATE, None, goals, **settings)
    refuses(told, clf.fit, X, Y, attributes=ATTRIBUTES, error=InfeasibleConstraintsError)


# --- scored with the groups that predict needs ----------------------------------------------


@pytest.mark.parametrize("piped", [False, True])
def test_a_scorer_passes_attributes_on_to_predict(piped):
    clf = ConstrainedThreshold(RATE, constraints=PARITY, by="sex")
    told = {"attributes": ATTRIBUTES}
    if piped:
        clf, told = make_pipeline(clf), {"constrainedthreshold__attributes": ATTRIBUTES}
    clf.fit(X, Y, **told)
    direct = -np.mean(clf.predict(X, attributes=ATTRIBUTES) != Y)
    assert RateScorer()(clf, X, Y, attributes=ATTRIBUTES) == pytest.approx(direct)


@pytest.mark.thorough
@pytest.mark.parametrize("piped", [False, True])
def test_a_scorer_of_groups_under_routed_cross_validation(piped, routing):
    clf = ConstrainedThreshold(RATE, constraints=PARITY, by="sex")
    clf.set_fit_request(attributes=True).set_predict_request(attributes=True)
    clf = make_pipeline(StandardScaler(), clf) if piped else clf
    told = {"attributes": pd.DataFrame(ATTRIBUTES)}
    scores = cross_val_score(clf, X, Y, scoring=RateScorer(), cv=3, params=told)
    assert (scores > -0.5).all()


def test_a_scorer_passes_no_attributes_to_a_classifier_that_takes_none():
    clf = make_pipeline(StandardScaler(), RATE).fit(X, Y)
    direct = -np.mean(clf.predict(X) != Y)
    assert RateScorer()(clf, X, Y, attributes=ATTRIBUTES) == pytest.approx(direct)
