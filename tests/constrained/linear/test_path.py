"""constraint_path: a whole trade-off curve, and what it may claim about single fits."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier, ConstrainedReduction, ConstrainedThreshold
from skbandit.constrained import ConstraintPath, RampClassifier, constraint_path
from skbandit.constrained.linear._path import with_bound
from skbandit.rates import (
    accuracy,
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
    worst,
)
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.tiers import first
from tests.worlds import refuses

WOMEN, MEN = {"sex": "F"}, {"sex": "M"}
RECALLS = [0.85, 0.98, 0.9, 0.95]
TABLE = [
    "bound", "feasible", "objective", "expected_objective", "value", "slack", "multiplier",
    "seconds",
]  # fmt: skip


def classifier(constraints=(), objective=None, **settings):
    return RampClassifier(objective, constraints, **{"solver": "newton"} | settings)


def path_over(constraints, bounds, constraint=None, objective=None, **settings):
    clf = classifier(constraints, objective, **settings)
    return constraint_path(clf, X, Y, bounds=bounds, constraint=constraint, attributes=ATTRIBUTES)


def noisy(n=600):
    return make_classification(
        n, 8, n_informative=6, flip_y=0.1, class_sep=0.7, random_state=0
    )  # fmt: skip


@pytest.fixture(scope="module")
def recalls():
    return path_over(recall() >= 0.5, RECALLS)


def assert_same_models(one, other, **tolerance):
    for mine, yours in zip(one.estimators, other.estimators, strict=True):
        np.testing.assert_allclose(mine.coef_, yours.coef_, **tolerance)
        np.testing.assert_allclose(mine.intercept_, yours.intercept_, **tolerance)


# --- what comes back -----------------------------------------------------------------------


def test_one_row_and_one_model_a_bound_in_the_order_given(recalls):
    assert isinstance(recalls, ConstraintPath)
    assert recalls.table.columns.tolist() == TABLE
    assert recalls.table["bound"].tolist() == RECALLS
    assert recalls.table["feasible"].dtype == bool and recalls.table["feasible"].all()
    for row, model in zip(recalls.table.itertuples(), recalls.estimators, strict=True):
        assert repr(model.constraints) == f"[recall() >= {row.bound}]"
        assert model.constraint_report_["bound"].tolist() == [row.bound]
        answers = model.predict(X)
        assert row.value == pytest.approx(recall().value(Y, answers))
        assert row.slack == pytest.approx(row.value - row.bound) and row.slack >= -1e-9
        assert row.objective == pytest.approx(np.mean(answers != Y))
        assert row.multiplier == model.multipliers_[0]
        assert row.seconds > 0
    assert (recalls.label, recalls.sense) == ("recall()", ">=")
    assert repr(recalls.objective) == "error_rate()"


@pytest.mark.thorough
def test_expected_objective_is_that_of_the_randomized_rule(recalls):
    draws = [
        np.mean([model.sample_predict(X, random_state=k) != Y for k in range(200)])
        for model in recalls.estimators
    ]
    np.testing.assert_allclose(recalls.table["expected_objective"], draws, atol=0.01)


def test_it_can_be_pickled(recalls):
    again = pickle.loads(pickle.dumps(recalls))
    pd.testing.assert_frame_equal(again.table, recalls.table)
    assert repr(clone(again.estimators[0])) == repr(recalls.estimators[0])


@pytest.mark.parametrize("fitted", [False, True])
def test_the_estimator_is_left_as_it_was(fitted):
    clf = classifier(recall() >= 0.9)
    if fitted:
        clf.fit(X, Y)
    before = copy.deepcopy(vars(clf))
    path = constraint_path(clf, X, Y, bounds=[0.8, 0.95])
    assert repr(vars(clf)) == repr(before)
    assert clf not in path.estimators


# --- against single fits -------------------------------------------------------------------


def test_a_path_of_one_bound_is_a_single_fit():
    path = path_over(recall() >= 0.5, [0.95])
    single = classifier(recall() >= 0.95).fit(X, Y)
    np.testing.assert_array_equal(path.estimators[0].coef_, single.coef_)
    np.testing.assert_array_equal(path.estimators[0].intercept_, single.intercept_)


def test_where_the_problem_is_convex_it_is_independent_fits():
    """With every score in (-1/2, 1/2) the ramp is linear, so every optimum is the optimum."""
    bounds, settings = [0.62, 0.58, 0.6], {"alpha": 24.0, "fit_intercept": False}
    path = path_over(recall() >= 0.5, bounds, **settings)
    for bound, model in zip(bounds, path.estimators, strict=True):
        single = classifier(recall() >= bound, **settings).fit(X, Y)
        assert np.abs(model.decision_function(X)).max() < 0.5
        assert model.constraint_report_["expected"][0] == pytest.approx(bound, abs=1e-6)
        assert model.objective_path_[-1] == pytest.approx(single.objective_path_[-1], abs=1e-8)
        np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-6)


# --- which constraint varies ---------------------------------------------------------------

SEVERAL = [false_positive_rate() <= 0.5, (recall() >= 0.5).named("floor"), precision() >= 0.1]


@pytest.mark.parametrize("which", first(2, ["floor", -2, np.int64(1), "recall() >= 0.5"]))
def test_one_of_several_is_chosen_by_place_name_or_text(which):
    path = path_over(SEVERAL, [0.9, 0.8], which)
    assert [one.bound for one in path.estimators[0].constraints] == [0.5, 0.9, 0.1]
    assert [one.bound for one in path.estimators[1].constraints] == [0.5, 0.8, 0.1]
    assert path.label == "floor"
    np.testing.assert_allclose(
        path.table["value"], [recall().value(Y, model.predict(X)) for model in path.estimators]
    )


def test_the_last_in_a_nested_list():
    path = path_over([SEVERAL[0], [SEVERAL[2]]], [0.6], 1)
    assert repr(path.estimators[0].constraints[1]) == "precision() >= 0.6"


@pytest.mark.parametrize(
    ("constraints", "which", "error"),
    [
        ((), None, "declares no constraint"),
        (SEVERAL, None, "0: false_positive_rate.* 1: floor; 2: precision"),
        (SEVERAL, 3, "constraint=3 does not match .* 0: false_positive_rate"),
        (SEVERAL, "recall", "constraint='recall' does not match .* 1: floor"),
        ([recall() >= 0.5, recall() >= 0.5], "recall() >= 0.5", r"does not match exactly one of"),
        ((), lambda bound: [], "returns no constraint for 0.9"),
        (SEVERAL, 0.5, "constraint=0.5 does not match .* 0: false_positive_rate"),
        (SEVERAL, [1], r"constraint=\[1\] does not match .* 0: false_positive_rate"),
        (SEVERAL, dict, "constraint=<class 'dict'> does not match .* 0: false_positive_rate"),
    ],
)
def test_what_is_not_clear_is_an_error(constraints, which, error):
    refuses(error, path_over, constraints, [0.9], which)


@pytest.mark.parametrize("bounds", [[], [0.9, np.nan], [np.inf], [[0.9]], ["much"]])
def test_bounds_are_a_list_of_numbers(bounds):
    refuses("bounds", path_over, recall() >= 0.5, bounds)


@pytest.mark.parametrize("level", [95, None, "95%", np.nan])
def test_a_confidence_level_is_checked(recalls, level):
    with pytest.raises(ValueError, match=r"confidence_level=.* must lie between 0 and 1"):
        recalls.measure(X, Y, confidence_level=level)


def test_other_estimators_are_refused():
    with pytest.raises(TypeError, match=r"got LogisticRegression\."):
        constraint_path(LogisticRegression(), X, Y, bounds=[0.9])
    with pytest.raises(ValueError, match="compares rates and cannot be optimized"):
        path_over(recall() >= 0.5, [0.9], objective=difference(recall, by="sex"))
    with pytest.raises(ValueError, match="constraint_path optimizes one rate"):
        path_over(recall() >= 0.5, [0.9], objective=worst(recall, by="sex"))


# --- made by a function --------------------------------------------------------------------


def test_a_function_of_the_bound_is_the_same_path(recalls):
    made = path_over((), RECALLS, lambda bound: recall() >= bound)
    assert_same_models(made, recalls, rtol=0)
    assert (made.label, made.sense) == ("recall()", ">=")
    pd.testing.assert_frame_equal(made.table.drop(columns="seconds"), recalls.table[TABLE[:-1]])


def test_a_function_adds_to_the_declared_constraints():
    path = path_over(false_positive_rate() <= 0.4, [0.9], lambda bound: recall() >= bound)
    assert repr(path.estimators[0].constraints) == "[false_positive_rate() <= 0.4, recall() >= 0.9]"


@pytest.mark.thorough
def test_a_function_may_make_several():
    def odds(gap):
        return [
            difference(recall, by="sex") <= gap,
            difference(false_positive_rate, by="sex") <= gap,
        ]

    path = path_over((), [0.02, 0.1], odds)
    assert path.sense == "<=" and path.table["feasible"].all()
    assert (
        path.label == "difference(recall, by='sex') and difference(false_positive_rate, by='sex')"
    )
    for row, model in zip(path.table.itertuples(), path.estimators, strict=True):
        answers = model.predict(X)
        gaps = [goal.rate.value(Y, answers, ATTRIBUTES) for goal in odds(0)]
        assert row.value == pytest.approx(max(gaps))


def test_a_bound_within_the_expression():
    """What kappa stands beside is no bound, so values do not compare with it."""
    shares = [0.7, 1.0]
    path = path_over((), shares, lambda kappa: positive_rate(WOMEN) >= kappa * positive_rate(MEN))
    assert (path.label, path.sense) == ("kappa", None)
    assert path.table["value"].isna().all() and (path.table["slack"] >= -1e-9).all()
    for share, model in zip(shares, path.estimators, strict=True):
        women, men = (
            positive_rate(who).value(Y, model.predict(X), ATTRIBUTES) for who in (WOMEN, MEN)
        )
        assert women >= share * men - 1e-9
    alone = classifier(positive_rate(WOMEN) >= 0.7 * positive_rate(MEN))
    alone.fit(X, Y, attributes=ATTRIBUTES)
    np.testing.assert_array_equal(path.estimators[0].coef_, alone.coef_)


# --- any form of constraint ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "bounds"),
    first(
        3,
        [
            (abs(positive_rate() - 0.4) <= 0.3, [0.01, 0.1]),
            (difference(recall, by="sex") <= 0.3, [0.01, 0.1]),
            (1 - recall() <= 0.5, [0.02, 0.1]),
            (abs(recall(WOMEN) - recall(MEN)) <= 0.3, [0.01, 0.1]),
            (ratio(positive_rate, by="sex") >= 0.3, [0.9, 0.6]),
            (each(recall, by="sex") >= 0.3, [0.95, 0.9]),
            (positive_rate(WOMEN) / positive_rate(MEN) >= 0.5, [1.0, 0.8]),
            (precision() >= 0.2, [0.95, 0.9]),
            (recall(weight="amount") >= 0.2, [0.95, 0.9]),
        ],
    ),
    ids=repr,
)
def test_the_value_is_that_of_what_was_written(constraint, bounds):
    path = path_over(constraint, bounds)
    written = abs(constraint.lhs) if constraint.absolute else constraint.lhs
    values = [written.value(Y, model.predict(X), ATTRIBUTES) for model in path.estimators]
    np.testing.assert_allclose(path.table["value"], values, atol=1e-12)
    assert path.label == repr(written) and path.sense == constraint.sense
    assert path.table["feasible"].all()


@pytest.mark.thorough
def test_the_multiplier_is_the_price_of_the_bound_on_all_sides():
    path = path_over(abs(positive_rate(WOMEN) - positive_rate(MEN)) <= 0.3, [0.01])
    (model,) = path.estimators
    assert model.multipliers_.shape == (2,)
    assert path.table["multiplier"][0] == model.multipliers_.sum() > 0


def test_a_bound_out_of_reach_has_no_multiplier():
    """Neither has its classifier; 0 would say that it does not bind."""
    rows, y = noisy(200)
    clf = ConstrainedRampClassifier(constraints=[recall() >= 0.5, positive_rate() <= 0.01])
    path = constraint_path(clf, rows, y, bounds=[0.95], constraint=0)
    assert not path.table["feasible"].any() and path.table["multiplier"].isna().all()


@pytest.mark.parametrize(
    ("constraint", "bound", "text"),
    [
        (recall() >= 0.9, 0.5, "recall() >= 0.5"),
        (recall() >= recall(WOMEN), 0.1, "recall() >= recall({'sex': 'F'}) + 0.1"),
        (recall() >= recall(WOMEN), -0.25, "recall() >= recall({'sex': 'F'}) - 0.25"),
        (
            each(recall, by="sex") >= recall() - 0.5,
            -0.25,
            "each(recall, by='sex') >= recall() - 0.5 + 0.25",
        ),
        ((abs(recall() - 0.5) <= 0.1).named("x"), 0.2, "(abs(recall() - 0.5) <= 0.2).named('x')"),
    ],
)
def test_another_bound_reads_as_python(constraint, bound, text):
    moved = with_bound(constraint, bound)
    assert repr(moved) == text
    assert moved.rhs.constant == bound
    assert moved.bound - bound == pytest.approx(constraint.bound - constraint.rhs.constant)
    assert [atom for _, atom in moved.rate.terms] == [atom for _, atom in constraint.rate.terms]


# --- what cannot be met --------------------------------------------------------------------


@pytest.mark.thorough
def test_bounds_that_cannot_be_met_are_recorded(capsys):
    """Recall r needs answers for r of the positives, so positive_rate >= r * mean(y)."""
    cap = 0.3
    possible = cap / Y.mean()
    bounds = [0.4, 0.99, 0.5, possible + 0.05]
    clf = classifier([positive_rate() <= cap, recall() >= 0.1])
    path = constraint_path(clf, X, Y, bounds=bounds, constraint=1, verbose=1)
    assert path.table["feasible"].tolist() == [True, False, True, False]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[constraint_path] 1 of 4, bound 0.99: not met, ")
    assert lines[3].startswith("[constraint_path] 4 of 4, bound 0.4: met, ")
    for row, model in zip(path.table.itertuples(), path.estimators, strict=True):
        assert model.feasible_ == row.feasible
        assert row.value == pytest.approx(recall().value(Y, model.predict(X)))
        assert repr(model.constraints[1]) == f"recall() >= {row.bound}"
        assert model.constraint_report_["satisfied"].all() == row.feasible


# --- on other data -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective", first(2, [None, f1(), accuracy(), false_positive_rate(MEN)]), ids=repr
)
def test_measuring_is_reporting_on_every_model(objective):
    path = path_over([recall() >= 0.5, error_rate() <= 0.5], [0.9, 0.7], 0, objective)
    measured = path.measure(X_EXTRA, Y_EXTRA, attributes=ATTRIBUTES_EXTRA)
    for row, model in zip(measured.itertuples(), path.estimators, strict=True):
        answers = model.predict(X_EXTRA)
        report = model.constraint_report(X_EXTRA, Y_EXTRA, attributes=ATTRIBUTES_EXTRA)
        assert row.bound == report["bound"][0]
        assert row.value == pytest.approx(report["value"][0])
        assert row.slack == pytest.approx(report["slack"][0])
        assert row.satisfied == report["satisfied"].all()
        direct = path.objective.value(Y_EXTRA, answers, ATTRIBUTES_EXTRA)
        assert row.objective == pytest.approx(direct)
        assert row.objective_low < direct < row.objective_high


def test_measured_on_the_training_rows_it_is_the_table(recalls):
    same = ["bound", "objective", "expected_objective", "value", "slack"]
    pd.testing.assert_frame_equal(recalls.measure(X, Y)[same], recalls.table[same])


def test_a_higher_confidence_level_is_a_wider_interval(recalls):
    narrow, wide = (
        recalls.measure(X_EXTRA, Y_EXTRA, confidence_level=level) for level in (0.5, 0.99)
    )
    assert (wide["objective_low"] < narrow["objective_low"]).all()
    assert (wide["objective_high"] > narrow["objective_high"]).all()


def test_extra_rows_and_weights_count_as_in_fit():
    constraint = churn("deployed", on="extra") <= 0.5
    weight = np.linspace(0.1, 2, len(Y))
    path = constraint_path(
        classifier(constraint), X, Y, bounds=[0.05], sample_weight=weight, **EXTRA
    )
    single = classifier(churn("deployed", on="extra") <= 0.05)
    single.fit(X, Y, sample_weight=weight, **EXTRA)
    np.testing.assert_array_equal(path.estimators[0].coef_, single.coef_)
    answers = single.predict(X_EXTRA)
    assert path.table["value"][0] == np.mean(answers != ATTRIBUTES_EXTRA["deployed"])
    error = np.average(single.predict(X) != Y, weights=weight)
    assert path.table["objective"][0] == pytest.approx(error)
    measured = path.measure(X, Y, sample_weight=weight, **EXTRA)
    assert measured["value"][0] == path.table["value"][0]


# --- pipelines -----------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: (rows,)], ids=["bare", "tuple"])
def test_a_pipeline_is_its_classifier_on_transformed_rows(wrap):
    constraint = [recall(on="extra") >= 0.5]
    scaler = StandardScaler().fit(X)
    plain = constraint_path(
        classifier(constraint), scaler.transform(X), Y, bounds=[0.9, 0.95],
        X_extra=scaler.transform(X_EXTRA), y_extra=Y_EXTRA,
    )  # fmt: skip
    pipeline = make_pipeline(StandardScaler(), classifier(constraint))
    extra = {"X_extra": wrap(X_EXTRA), "y_extra": wrap(Y_EXTRA)}
    path = constraint_path(pipeline, X, Y, bounds=[0.9, 0.95], **extra)
    pd.testing.assert_frame_equal(path.table[TABLE[:-1]], plain.table[TABLE[:-1]])
    for whole, model in zip(path.estimators, plain.estimators, strict=True):
        np.testing.assert_array_equal(whole.predict(X), model.predict(scaler.transform(X)))
    assert not hasattr(pipeline[0], "mean_") and not hasattr(pipeline[-1], "coef_")
    measured = path.measure(X_EXTRA, Y_EXTRA, **extra)
    expected = plain.measure(
        scaler.transform(X_EXTRA), Y_EXTRA, X_extra=scaler.transform(X_EXTRA), y_extra=Y_EXTRA
    )
    pd.testing.assert_frame_equal(measured, expected)


def test_repr_is_one_line():
    path = path_over(recall() >= 0.5, [0.5, 0.9])
    assert repr(path) == ("<ConstraintPath: error_rate() under recall() >= 0.5 to 0.9, 2 models>")


# --- cross-fitted --------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_cross_fitted_path_of_one_bound_is_a_single_fit():
    rows, y = noisy()
    clf = ConstrainedRampClassifier(constraints=recall() >= 0.5)
    (model,) = constraint_path(clf, rows, y, bounds=[0.9]).estimators
    single = clf.set_params(constraints=recall() >= 0.9).fit(rows, y)
    np.testing.assert_array_equal(model.coef_, single.coef_)
    pd.testing.assert_frame_equal(model.constraint_report_, single.constraint_report_)


# --- any classifier with constraints -------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [ConstrainedThreshold, ConstrainedReduction])
def test_a_path_is_a_fit_per_bound(kind):
    clf = kind(LogisticRegression(), false_positive_rate(), recall() >= 0.9)
    persons = np.arange(len(Y)) // 2
    path = constraint_path(
        make_pipeline(StandardScaler(), clf), X, Y, bounds=[0.95, 0.85], groups=persons
    )
    scaled = StandardScaler().fit(X).transform(X)
    for bound, model, row in zip(
        [0.95, 0.85], path.estimators, path.table.itertuples(), strict=True
    ):
        alone = clone(clf).set_params(constraints=recall() >= bound).fit(scaled, Y, groups=persons)
        np.testing.assert_array_equal(model.predict(X), alone.predict(scaled))
        predicted, report = alone.predict(scaled), alone.constraint_report_
        assert row.objective == false_positive_rate().value(Y, predicted)
        assert row.value == pytest.approx(recall().value(Y, predicted))
        assert row.cross_fitted == pytest.approx(report["cross_fitted"][0])
        assert row.multiplier == pytest.approx(alone.multipliers_[0])
    measured = path.measure(X, Y)
    assert measured["objective"].tolist() == path.table["objective"].tolist()


@pytest.mark.thorough
def test_a_path_of_several_classes():
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(600, 2)), rng.choice(["a", "b", "c"], 600)
    features[:, 0] += 2 * (y == "a") - 2 * (y == "b")
    goals = [error_rate(without="person") <= 0.2, positive_rate(of="person") <= 0.6]
    clf = ConstrainedThreshold(LogisticRegression(), None, goals, other_decisions=["person"])
    path = constraint_path(clf, features, y, bounds=[0.2, 0.3], constraint=0)
    assert path.table["feasible"].all()
    for model, objective in zip(path.estimators, path.table["objective"], strict=True):
        assert objective == pytest.approx(np.mean(model.predict(features) != y))
    assert path.table["objective"][0] >= path.table["objective"][1] - 0.003
    assert path.measure(features, y)["bound"].tolist() == [0.2, 0.3]


def loosened(seed):
    """A classifier on random rows, and bounds from the tightest to the loosest."""
    rng, kind = np.random.default_rng(seed), seed % 5
    several = kind in (2, 4)
    n, shares = int(rng.integers(150, 300)), [0.5, 0.3, 0.2] if several else [0.6, 0.4]
    code = rng.choice(len(shares), n, p=shares)
    rows = 1.2 * rng.normal(size=(len(shares), 3))[code] + rng.normal(size=(n, 3))
    objective, learner, gap = error_rate(), LogisticRegression(), difference(recall, by="s") <= 1
    floors = [recall(of="c") >= 0, positive_rate(of="a") <= 0.6]
    clf, bounds = (
        (ConstrainedThreshold(learner, objective, gap, by="s"), [0.02, 0.05, 0.1, 0.2, 0.3]),
        (ConstrainedReduction(learner, objective, gap, max_iter=3), [0.02, 0.05, 0.1, 0.2]),
        (ConstrainedThreshold(learner, objective, floors), [0.8, 0.7, 0.6, 0.5, 0.4, 0.3]),
        (ConstrainedRampClassifier(objective, false_positive_rate() <= 1), [0.05, 0.1, 0.2]),
        (ConstrainedReduction(learner, objective, floors, max_iter=2), [0.7, 0.5, 0.3]),
    )[kind]
    pos_label = None if several else "b"
    clf.set_params(confidence_level=[0.5, 0.9][seed // 5 % 2], pos_label=pos_label)
    given = {"attributes": {"s": rng.choice(["u", "v"], n)}, "constraint": 0}
    return clf, rows, np.array(list("abc"))[code], bounds, given


@pytest.mark.parametrize("seed", first(1, range(30)))
def test_the_objective_out_of_fold_never_rises_as_a_bound_is_loosened(seed):
    clf, rows, labels, bounds, given = loosened(seed)
    path = constraint_path(clf, rows, labels, bounds=bounds[::-1], **given)
    values = [model.objective_report_["cross_fitted"][0] for model in path.estimators[::-1]]
    values = np.where(path.table["feasible"][::-1], values, 1.0)
    assert np.diff(values).max() <= 1e-9


class Restless(LogisticRegression):
    """Fits differently each time: nothing seeds it."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Restless.n_fits += 1
        rng = np.random.default_rng(Restless.n_fits)
        return super().fit(X + rng.normal(size=X.shape), y, sample_weight)


def of_two_features(n):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 4))
    return rows, (rows[:, 0] + 0.5 * rows[:, 1] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.filterwarnings("ignore")
def test_a_rule_is_not_carried_over_to_other_scores():
    clf = ConstrainedThreshold(Restless(), false_positive_rate(), recall() >= 0.8)
    path = constraint_path(clf, *of_two_features(120), bounds=np.linspace(0.5, 0.95, 12))
    met = [model.constraint_report_["satisfied"].all() for model in path.estimators]
    assert path.table["feasible"].tolist() == met


@pytest.mark.filterwarnings("ignore")
def test_bounds_of_two_rates_of_one_name_are_two_families():
    def named(bound):
        return ((recall() if bound < 0.6 else precision()) >= bound).named("goal")

    clf = ConstrainedThreshold(LogisticRegression(), false_positive_rate())
    bounds = [0.3, 0.5, 0.7, 0.9]
    path = constraint_path(clf, *of_two_features(300), bounds=bounds, constraint=named)
    assert (path.table["slack"] >= 0).all()
