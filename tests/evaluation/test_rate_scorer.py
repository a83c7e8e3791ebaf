"""RateScorer: what its numbers mean, and that scikit-learn's model selection can use it."""

import re

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.evaluation import RateScorer
from skbandit.rates import (
    accuracy,
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.worlds import refuses

Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])


class Answers(ClassifierMixin, BaseEstimator):
    """A classifier that answers with a column of X."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.asarray(X)[:, self.column]


def score(scorer, answers, y=Y, **metadata):
    return scorer(Answers(), np.reshape(answers, (-1, 1)), y, **metadata)


# --- the numbers ---------------------------------------------------------------------------


def test_default_is_minus_the_error_rate():
    assert score(RateScorer(), [0, 0, 0, 1, 1, 1, 1, 1]) == -0.125
    assert score(RateScorer(), Y) == 0


ONE_MISS = [0, 0, 1, 1, 1, 1, 1, 0]  # recall .75, false positive rate .5, precision .6


@pytest.mark.parametrize(
    ("objective", "constraints", "expected"),
    [
        (recall(), [], 0.75),
        (None, recall() >= 0.75, -0.375),
        (None, recall() >= 0.75 + 1e-10, -0.375),  # within the tolerance
        (None, recall() >= 0.9, -1.15),
        (accuracy(), recall() >= 0.9, -0.15),
        (accuracy(), [recall() >= 0.9, [false_positive_rate() <= 0.1]], -0.55),
        (accuracy(), [recall() >= 0.9, false_positive_rate() <= 0.6], -0.15),
        (accuracy(), abs(precision() - 0.7) <= 0.05, -0.05),
        (f1(), abs(precision() - 0.5) <= 0.05, -0.05),
        # worst is -3: the sum of both costs
        (2 * false_negative_rate() + false_positive_rate(), [], -1.0),
        (2 * false_negative_rate() + false_positive_rate(), recall() >= 0.9, -3 - 3 * 0.15),
        (recall() - false_positive_rate(), recall() >= 0.9, -1.15),
        (abs(positive_rate() - 0.25), [], -0.375),
        (abs(positive_rate() - 0.25), recall() >= 0.9, -0.9),
        (recall(on="extra"), false_positive_rate(on="all") <= 0.5, 0.75),
    ],
    ids=repr,
)
def test_by_hand(objective, constraints, expected):
    assert score(RateScorer(objective, constraints), ONE_MISS) == pytest.approx(expected)


def test_row_weights():
    weight = np.array([1, 1, 1, 1, 1, 1, 1, 5.0])
    scorer = RateScorer(recall(), recall() >= 0.3)
    assert score(scorer, ONE_MISS, sample_weight=weight) == pytest.approx(3 / 8)
    scorer = RateScorer(recall(weight="amount"), [])
    assert score(scorer, ONE_MISS, attributes={"amount": weight}) == pytest.approx(3 / 8)


def test_labels_of_any_kind():
    names = np.array(["bad", "good"])
    answers = names[ONE_MISS]
    assert score(RateScorer(recall(), pos_label="good"), answers, names[Y]) == 0.75
    assert score(RateScorer(recall(), pos_label="bad"), answers, names[Y]) == 0.5
    assert score(RateScorer(), answers, names[Y]) == score(RateScorer(), ONE_MISS)
    refuses("pos_label", score, RateScorer(recall()), answers, names[Y])
    with pytest.raises(ValueError, match="pos_label"):  # 1 may be good or bad
        score(RateScorer(churn("g")), answers, names[Y], attributes={"g": Y})


G = {"g": ["a", "a", "b", "b", "a", "a", "b", "b"]}


@pytest.mark.parametrize(
    ("objective", "sign"),
    [
        (each(recall, by="g"), 1),
        (each(error_rate, by="g"), -1),
        (ratio(positive_rate, by="g"), 1),
        (2 * ratio(error_rate, by="g"), 1),
        (difference(recall, by="g"), -1),
        (-difference(recall, by="g"), 1),
        (abs(recall({"g": "a"}) - recall({"g": "b"})), -1),
        (abs(each(recall, by="g") - recall()), -1),
    ],
    ids=repr,
)
def test_group_forms_are_scored_by_the_worst(objective, sign):
    answers = [0, 1, 1, 1, 1, 1, 1, 0]
    value = objective.value(Y, answers, G)
    assert score(RateScorer(objective), answers, attributes=G) == pytest.approx(sign * value)


# --- undefined, missing --------------------------------------------------------------------

NEVER = np.zeros(8, dtype=int)


def test_undefined_constraint_is_missed_by_most():
    scorer = RateScorer(None, precision() >= 0.4)
    assert score(scorer, NEVER) == -1.4
    assert score(scorer, 1 - Y) == -1.4
    assert score(scorer, [0, 0, 1, 1, 1, 0, 0, 0]) == pytest.approx(-1 - (0.4 - 1 / 3))
    scorer = RateScorer(None, positive_rate({"g": "a"}) / positive_rate({"g": "b"}) <= 1.25)
    undefined = score(scorer, NEVER, attributes=G)
    assert np.isfinite(undefined)
    assert undefined < score(scorer, [1, 1, 0, 0, 1, 1, 0, 1], attributes=G) < -1


def test_barely_missed_is_still_worse_than_the_worst():
    # the worst score is -1e9, and 2e-9 would be lost in its last digit
    cost = 1e9 * error_rate()
    constraint = recall() >= 2e-9
    assert score(RateScorer(cost, constraint), 1 - Y) < score(RateScorer(cost), 1 - Y) == -1e9


def test_undefined_objective_counts_as_its_worst():
    with pytest.warns(UndefinedMetricWarning, match="no prediction falls"):
        assert score(RateScorer(precision()), NEVER) == 0
    with pytest.warns(UndefinedMetricWarning, match="no prediction falls"):
        assert score(RateScorer(ratio(positive_rate, by="g")), NEVER, attributes=G) == 0
    assert score(RateScorer(precision(), recall() >= 0.1), NEVER) == -0.1


def test_group_without_rows_is_left_out():
    y = np.array([0, 0, 0, 0, 0, 0, 1, 1])  # no positives in group a
    answers = [0, 0, 0, 1, 0, 0, 1, 1]
    scorer = RateScorer(None, each(recall, by="g") >= 0.9)
    with pytest.warns(UndefinedMetricWarning, match=r"\[a\] is not measured"):
        assert score(scorer, answers, y, attributes=G) == -0.125
    with pytest.warns(UndefinedMetricWarning, match=r"\[a\] is not measured"):
        assert score(RateScorer(each(recall, by="g")), answers, y, attributes=G) == 1


@pytest.mark.parametrize("infeasible", [False, True])
def test_rows_that_are_named_must_be_there(infeasible):
    more = [recall() >= 1.0] if infeasible else []
    with pytest.raises(ValueError, match="selects no rows"):
        score(RateScorer(None, [recall({"g": "c"}) >= 0.5, *more]), NEVER, attributes=G)
    refuses("selects no rows", score, RateScorer(recall({"g": "c"}), more), NEVER, attributes=G)


def test_objective_over_groups_of_which_none_is_left():
    no_positives = np.zeros(8, dtype=int)
    with pytest.raises(ValueError, match="hold no positives"):
        score(RateScorer(each(recall, by="g")), Y, no_positives, attributes=G)
    with pytest.raises(ValueError, match="1 group"):
        score(RateScorer(difference(recall, by="g")), Y, attributes={"g": ["a"] * 8})


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"objective": "recall"}, TypeError, "is not a rate"),
        ({"objective": recall}, TypeError, "with parentheses"),
        ({"objective": recall() >= 0.9}, TypeError, "is not a rate"),
        ({"objective": recall() + error_rate()}, ValueError, "no direction"),
        ({"objective": positive_rate() / recall()}, ValueError, "arbitrarily bad"),
        ({"constraints": recall()}, TypeError, "compare it with a bound"),
        ({"constraints": [recall() == 0.9]}, TypeError, "Found False"),
        ({"constraints": churn("old") <= 0.1}, ValueError, "unknown column 'old'"),
    ],
)
def test_wrong_arguments(arguments, error, match):
    refuses(match, score, RateScorer(**arguments), Y, error=error)


def test_the_constraint_is_named_whose_column_is_missing():
    frame = pd.DataFrame({"a": ONE_MISS})
    for goal in (difference(recall, by="g") <= 0.1, (recall({"g": "a"}) >= 0.1).named("women")):
        with pytest.raises(ValueError, match=f"{re.escape(goal.label)}: .*'g'.*attributes=.*rout"):
            RateScorer(None, goal)(Answers(), frame, Y)


def test_not_a_classifier():
    X = np.arange(8.0)[:, None] ** 2
    with pytest.raises(ValueError, match=r"LinearRegression\.predict returns numbers such as"):
        RateScorer()(LinearRegression().fit(X, Y), X, Y)
    refuses("encode both alike", score, RateScorer(), [0, 1, 2, 0, 1, 2, 0, 1])


# --- an estimator-like object --------------------------------------------------------------


# --- in scikit-learn's model selection -----------------------------------------------------


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(240, n_features=4, flip_y=0.15, random_state=0)
    X = pd.DataFrame(X, columns=list("pqrs"))
    group = pd.DataFrame({"sex": np.where(np.random.default_rng(1).random(240) < 0.5, "F", "M")})
    return X, y, group


CONSTRAINTS = [each(recall, by="sex") >= 0.3, positive_rate("sex == 'F'") <= 0.9]
FOLDS = KFold(3)


def classifiers():
    drop = make_column_transformer((StandardScaler(), list("pqrs")), remainder="drop")
    return [
        pytest.param(LogisticRegression(), id="plain"),
        pytest.param(make_pipeline(drop, LogisticRegression()), id="pipeline"),
    ]


def expected_scores(model, X, y, weight=None):
    """Minus the error rate of every fold, computed without the scorer."""
    scores = []
    for train, test in FOLDS.split(X):
        answers = clone(model).fit(X.iloc[train], y[train]).predict(X.iloc[test])
        scores.append(
            -np.average(answers != y[test], weights=None if weight is None else weight[test])
        )
    return scores


@pytest.mark.thorough
def test_columns_of_X(data):
    X, y, group = data
    X = pd.concat([X, group], axis=1)
    model = classifiers()[1].values[0]
    scorer = RateScorer(None, CONSTRAINTS)
    expected = expected_scores(model, X, y)
    np.testing.assert_allclose(cross_val_score(model, X, y, scoring=scorer, cv=FOLDS), expected)
    many = {"goal": scorer, "accuracy": "accuracy"}
    with joblib.parallel_config("threading"):
        found = cross_validate(model, X, y, scoring=many, cv=FOLDS, n_jobs=2)
    np.testing.assert_allclose(found["test_goal"], expected)
    np.testing.assert_allclose(found["test_accuracy"], 1 + np.array(expected))
    search = GridSearchCV(
        model, {"logisticregression__C": [1.0, 1e-6]}, scoring=scorer, cv=FOLDS
    ).fit(X, y)
    assert search.best_score_ == pytest.approx(np.mean(expected))
    assert search.score(X, y) == scorer(search, X, y) == scorer(search.best_estimator_, X, y)
    search = GridSearchCV(model, {}, scoring=many, refit="goal", cv=FOLDS).fit(X, y)
    assert search.best_score_ == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("model", classifiers())
@pytest.mark.parametrize("alone", [True, False])
def test_routed_weights(model, alone, data):
    X, y, group = data
    weight = np.random.default_rng(2).uniform(0.2, 3, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = RateScorer(None, CONSTRAINTS)
        other = make_scorer(recall_score).set_score_request(sample_weight=True)
        scoring = scorer if alone else {"goal": scorer, "recall": other}
        unweighted = clone(model)
        for step in unweighted[-1:] if hasattr(unweighted, "steps") else [unweighted]:
            step.set_fit_request(sample_weight=False)
        if hasattr(unweighted, "steps"):
            scaler = unweighted[0].transformers[0][1]
            scaler.set_fit_request(sample_weight=False)
        metadata = {"attributes": group, "sample_weight": weight}
        found = cross_validate(
            unweighted, X, y, scoring=scoring, cv=FOLDS, params=metadata, error_score="raise"
        )
        search = GridSearchCV(unweighted, {}, scoring=scoring, refit=alone or "goal", cv=FOLDS)
        search.fit(X, y, **metadata)
    expected = expected_scores(model, X, y, weight)
    np.testing.assert_allclose(found["test_score" if alone else "test_goal"], expected)
    assert search.best_score_ == pytest.approx(np.mean(expected))
    assert not np.isclose(np.mean(expected), np.mean(expected_scores(model, X, y)))


@pytest.mark.parametrize("alone", [True, False])
def test_weights_without_routing(alone, data):
    X, y, _ = data
    scorer = RateScorer()
    scoring = scorer if alone else {"goal": scorer, "accuracy": "accuracy"}
    weight = np.ones(len(y))
    search = GridSearchCV(
        LogisticRegression(), {}, scoring=scoring, refit=alone or "goal", cv=FOLDS
    ).fit(X, y, sample_weight=weight)
    expected = expected_scores(LogisticRegression(), X, y)
    assert search.best_score_ == pytest.approx(np.mean(expected))


# --- thresholds ----------------------------------------------------------------------------


def noisy(n=600):
    rng = np.random.default_rng(8)
    y = (rng.random(n) < 0.4).astype(int)
    return rng.normal(size=(n, 2)) + 0.9 * y[:, None], y, rng.choice(["F", "M"], n)


@pytest.mark.thorough
def test_tuned_thresholds_of_named_classes_with_routed_attributes():
    X, y, sex = noisy()
    names = np.where(y == 1, "yes", "no")
    scorer = RateScorer(error_rate(), recall({"sex": "F"}) >= 0.95, pos_label="yes")
    with sklearn.config_context(enable_metadata_routing=True):
        tuned = TunedThresholdClassifierCV(
            LogisticRegression(),
            scoring=scorer,
            cv=3,
            thresholds=50,
            response_method="predict_proba",
        ).fit(X, names, attributes=pd.DataFrame({"sex": sex}))
    women = recall({"sex": "F"}).value(names, tuned.predict(X), {"sex": sex}, pos_label="yes")
    assert women >= 0.9 and tuned.best_threshold_ < 0.4
