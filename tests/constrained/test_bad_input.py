"""Bad input and impossible demands: a clear error, and nothing that was fitted is lost."""

import copy
import functools
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold, RampClassifier
from skbandit.exceptions import InfeasibleConstraintsError, SolverError
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    negative_rate,
    positive_rate,
    precision,
    recall,
    worst,
)
from tests.tiers import first
from tests.worlds import refuses

X, Y = make_classification(80, 4, n_informative=3, n_redundant=1, random_state=0)
NAMED = pd.DataFrame(X, columns=list("abcd"))
WITH_NAN, WITH_INF = X.copy(), X.copy()
WITH_NAN[3, 1], WITH_INF[3, 1] = np.nan, np.inf
ATTRIBUTES = pd.DataFrame(
    {
        "sex": np.where(np.arange(80) % 2, "F", "M"),
        "deployed": np.where(np.arange(80) % 5, Y, 1 - Y),
        "unknown": np.full(80, np.nan),
        "debt": np.arange(80) - 5.0,
    }
)


def nobody(frame):
    return frame["debt"] > 99


def state(estimator):
    """Everything an estimator holds, by identity and by content."""
    return dict(vars(estimator)), pickle.dumps(copy.deepcopy(vars(estimator)))


def assert_untouched(estimator, before):
    held, content = before
    now = dict(vars(estimator))
    assert list(now) == list(held)
    assert all(now[name] is held[name] for name in held)
    assert pickle.dumps(copy.deepcopy(now)) == content


@functools.cache
def fitted():
    return ConstrainedRampClassifier(constraints=positive_rate() <= 0.8).fit(X, Y)


def refused(error, message, *, given=None, **parameters):
    """Take something fitted, then fail on something bad, and compare before with after."""
    clf = copy.deepcopy(fitted())
    answers = clf.predict(X)
    clf.set_params(**parameters)
    before = state(clf)
    with pytest.raises(error, match=message) as caught:
        clf.fit(**({"X": X, "y": Y, "attributes": ATTRIBUTES} | (given or {})))
    assert_untouched(clf, before)
    np.testing.assert_array_equal(clf.predict(X), answers)
    fresh = ConstrainedRampClassifier(**parameters)
    with pytest.raises(error, match=message):
        fresh.fit(**({"X": X, "y": Y, "attributes": ATTRIBUTES} | (given or {})))
    assert not hasattr(fresh, "classes_") and not hasattr(fresh, "n_features_in_")
    return caught.value


@pytest.mark.parametrize("missing", [np.nan, None])
def test_rows_without_a_label_belong_into_extra(missing):
    y = Y.astype(object)
    y[[7, 11]] = missing
    refused(ValueError, r"no label in 2 rows, row 7 .* as X_extra", given={"y": y})
    refuses("as X_extra", ConstrainedThreshold(LogisticRegression()).fit, X, y)


# --- declarations that the data do not carry -----------------------------------------------


def unaddressed(value):
    """How it is written, without addresses: tests that run in parallel are told by their names."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (recall({"gender": "F"}) >= 0.5, r"recall\({'gender': 'F'}\): unknown column 'gender'"),
        (recall({"gender": "F"}) >= 0.5, "known columns are 'sex', 'deployed', 'unknown', 'debt'"),
        (recall("gender == 'F'") >= 0.5, "'gender' is not defined; known columns are 'sex'"),
        (churn("live") <= 0.5, r"churn\('live'\): unknown column 'live'; known columns"),
        (recall(weight="amount") >= 0.5, "unknown column 'amount'; known columns"),
        (each(recall, by="gender") >= 0.5, "unknown column 'gender'; known columns"),
        (recall({"sex": "female"}) >= 0.5, "selects no rows; 'sex' holds 'M', 'F'"),
        (recall("sex == 'female'") >= 0.5, "where=\"sex == 'female'\" selects no rows"),
        (recall(nobody) >= 0.5, "selects no rows"),
        (recall("sex == @sex") >= 0.5, "cannot refer to Python variables with @"),
        (recall("sex ==") >= 0.5, "cannot evaluate the query 'sex =='"),
        (recall("sex") >= 0.5, "column 'sex' must be boolean.*write {'sex': value}"),
        (recall("debt + 1") >= 0.5, "arithmetic is refused"),
        (recall(weight="debt") >= 0.5, "weights must be finite and not negative, 'debt' has -"),
        (recall(weight="sex") >= 0.5, "column 'sex' is not numeric"),
        (churn("unknown") <= 0.5, "'unknown' is missing"),
        (churn("debt") <= 0.5, "not among the labels"),
        (recall(on="extra") >= 0.5, r"recall\(on='extra'\) .* pass X_extra"),
        (each(recall, by="unknown") >= 0.5, "group"),
    ],
    ids=lambda value: unaddressed(value) if not isinstance(value, str) else "",
)
def test_constraint_that_the_data_do_not_carry(constraint, message):
    refused(ValueError, message, constraints=[positive_rate() <= 0.8, constraint])


def test_difference_needs_two_groups():
    refused(
        ValueError, "'sex' holds 1 group", constraints=difference(recall, by="sex") <= 0.5,
        given={"attributes": ATTRIBUTES.assign(sex="F")},
    )  # fmt: skip


@pytest.mark.parametrize("rate", [recall(on="extra"), error_rate(on="extra")], ids=repr)
@pytest.mark.parametrize("y_extra", [None, np.full(80, np.nan)], ids=["none", "nan"])
def test_labels_are_needed(rate, y_extra):
    given = {"X_extra": X, "y_extra": y_extra}
    refused(ValueError, "needs labels.*pass y_extra", constraints=rate <= 0.9, given=given)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (recall, "is not a rate: pass one such as skbandit.rates.recall.., with paren"),
        ("recall", "objective='recall' is not a rate"),
        (recall() >= 0.5, "objective=recall.. >= 0.5 is not a rate"),
        (abs(recall() - 0.5), "compares rates and cannot be optimized"),
        (difference(recall, by="sex"), "compares rates and cannot be optimized"),
        (worst(precision, by="sex"), "worst of several ratios and cannot be optimized"),
        (recall() + error_rate(), "no direction as an objective"),
        (recall("nobody"), "'nobody' is not defined"),
    ],
    ids=unaddressed,
)
def test_objective(objective, message):
    refused((TypeError, ValueError), message, objective=objective)


# --- what is no constraint -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (True, "Found True among the constraints.*write abs"),
        ([recall() >= 0.5, recall() == 0.5], "Found False among the constraints.*write abs"),
        ([recall()], r"recall\(\) is a rate, not a constraint"),
        ([[abs(recall() - 0.5)]], "is a rate, not a constraint"),
        ("recall() >= 0.9", "is not a constraint: compare a rate"),
        ([recall], "recall without parentheses is not a constraint"),
        ({"min recall": recall() >= 0.5}, "is not a constraint"),
        (0.9, "0.9 is not a constraint"),
    ],
    ids=unaddressed,
)
def test_what_is_no_constraint(constraints, message):
    refused(TypeError, message, constraints=constraints)


# --- rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": np.zeros(80, dtype=int)}, "one class only: 0"),
        (
            {"y": np.arange(80) % 3},
            "Only binary class.*3 classes.*use ConstrainedThreshold",
        ),
        ({"y": np.arange(80) / 7}, "Unknown label type"),
        ({"y": np.column_stack([Y, Y])}, "1d array"),
        ({"y": None}, "y cannot be None|requires y"),
        ({"y": np.where(np.arange(80) == 4, np.nan, Y)}, "y has no label in 1 rows"),
        ({"y": Y[:7]}, "inconsistent numbers of samples"),
        ({"X": WITH_NAN}, "X contains NaN"),
        ({"X": WITH_INF}, "X contains infinity"),
        ({"X": X.astype(str)[:, 0]}, "Expected 2D array"),
        ({"X": NAMED.assign(a="text")}, "X has strings in the column 'a', such as 'text'"),
        ({"attributes": ATTRIBUTES[:7]}, "attributes has 7 rows for 80 rows"),
        ({"attributes": {"sex": ATTRIBUTES["sex"][:7]}}, r"attributes\['sex'\] has 7 .*DataFrame"),
        ({"sample_weight": np.ones(7)}, "sample_weight has 7 entries for 80 rows"),
        ({"sample_weight": np.ones((80, 2))}, "sample_weight must be 1D"),
        ({"sample_weight": -np.ones(80)}, "sample_weight must not be negative"),
        ({"sample_weight": np.zeros(80)}, "sample_weight must not be zero for every row"),
        ({"sample_weight": np.full(80, np.nan)}, "sample_weight contains NaN"),
        ({"X_extra": X, "y_extra": Y[:7]}, "y_extra has 7 entries for 80 rows"),
        ({"X_extra": X, "y_extra": Y + 3}, "y_extra has .* not among the labels"),
        ({"X_extra": X, "attributes_extra": ATTRIBUTES[:7]}, "attributes_extra has 7 rows"),
        ({"X_extra": X, "sample_weight_extra": [1.0]}, "sample_weight_extra has 1 entries"),
        ({"y_extra": Y}, "y_extra was passed without X_extra"),
        ({"attributes_extra": ATTRIBUTES}, "attributes_extra was passed without X_extra"),
        ({"sample_weight_extra": Y}, "sample_weight_extra was passed without X_extra"),
        ({"X_extra": X[:, :3]}, "X_extra does not fit X: X has 3 features.*expecting 4"),
        ({"X_extra": WITH_NAN}, "X_extra: X contains NaN"),
        ({"X_extra": NAMED}, "X_extra has column names and X has none.*transform_input"),
        ({"X": NAMED, "X_extra": NAMED[["a", "b", "d", "c"]]}, "(?s)same order.*transform_input"),
        ({"X": NAMED, "X_extra": NAMED.assign(e=1)}, "(?s)unseen at fit.*- e.*transform_input"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else value[:30],
)
def test_rows(given, message):
    refused(ValueError, message, given=given, constraints=positive_rate() <= 0.8)


@pytest.mark.parametrize(
    "attributes", [ATTRIBUTES["sex"].rename(None), ATTRIBUTES.to_numpy(), [1, 2]], ids=type
)
def test_attributes_are_named_columns(attributes):
    refused(TypeError, "attributes must be a DataFrame", given={"attributes": attributes})


# --- parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"solver": "liblinear"}, "'solver' parameter"),
        ({"solver_options": "CLARABEL"}, "'solver_options' parameter"),
        ({"cv": 1.5}, "'cv' parameter"),
        ({"confidence_level": 0.4}, "'confidence_level' parameter"),
        ({"class_weight": "even"}, "'class_weight' parameter"),
        ({"class_weight": {0: -1.0}}, "class_weight must not be negative"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "class_weight must not be zero for every row"),
        ({"pos_label": "yes"}, r"pos_label='yes' is not among the classes \[0, 1\]"),
        ({"pos_label": np.nan}, "pos_label=nan is not among the classes"),
    ],
    ids=str,
)
def test_parameters(parameters, message):
    refused(ValueError, message, **parameters)


# --- solvers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    first(
        3,
        [
            ({"solver": "GUROBI"}, r"cvxpy finds no solver 'GUROBI'.*installed"),
            ({"solver": "NOPE"}, "cvxpy finds no solver 'NOPE'"),
            ({"solver": "CLARABEL", "nope": 1}, "solver CLARABEL failed: .*nope"),
            ({"solver": "SCS", "nope": 1}, "solver SCS failed: .*nope"),
            ({"solver": "OSQP", "nope": 1}, "solver OSQP failed: .*nope"),
            ({"solver": "CLARABEL", "max_iter": "many"}, "solver CLARABEL failed"),
        ],
    ),
    ids=str,
)
def test_solver_that_is_missing_or_fails(options, message):
    import cvxpy

    if options["solver"] in cvxpy.installed_solvers() and options["solver"] == "GUROBI":
        pytest.skip("this solver is installed here: what is said in its absence cannot be seen")
    refused(SolverError, message, solver_options=options)


# --- demands that cannot be met ------------------------------------------------------------

IMPOSSIBLE = [positive_rate() >= 0.7, (negative_rate() >= 0.7).named("mostly no"), recall() >= 0]
QUICK = RampClassifier(solver="newton", alpha=0.05, init="zeros")


def test_impossible_demands_name_what_is_missed_and_keep_the_closest_model():
    with pytest.raises(InfeasibleConstraintsError, match="No threshold on any") as caught:
        ConstrainedRampClassifier(constraints=IMPOSSIBLE, alpha=0.1).fit(X, Y)
    error = caught.value
    assert isinstance(error, ValueError)
    closest = error.closest_
    report = closest.constraint_report_
    missed = report[~report["satisfied"]]
    assert 0 < len(missed) < 3 and not closest.feasible_ and np.isnan(closest.confidence_level_)
    for row in missed.itertuples():
        assert f"{row.constraint}: is {row.cross_fitted:.4g} out of fold" in str(error)
        assert f"missed by {-row.slack:.2g}" in str(error)
    assert "recall() >= 0" not in str(error)
    share = np.mean(closest.predict(X))
    assert report["value"].tolist()[:2] == pytest.approx([share, 1 - share])
    assert closest.constraint_report(X, Y)["value"].tolist() == report["value"].tolist()
    assert closest.get_params()["constraints"] is IMPOSSIBLE
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InfeasibleConstraintsError and str(again) == str(error)
    np.testing.assert_array_equal(again.closest_.predict(X), closest.predict(X))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "clf",
    [ConstrainedRampClassifier(), RampClassifier(), RampClassifier(threshold=False)],
    ids=["cross-fitted", "threshold", "no threshold"],
)
def test_precision_of_no_answers_is_not_met(clf):
    """The ramp constraint TP - tPP >= 0 holds where nothing is answered positive.

    The rows that it is about hold no positives, so no other rule meets it.
    """
    noise = np.random.default_rng(0).integers(0, 2, 80)
    goal = (precision("negative") >= 0.5).named("goal")
    clf = clone(clf).set_params(constraints=goal)
    told = (
        r"is \d.*, missed by"
        if getattr(clf, "threshold", True)
        else "is undefined, as no prediction falls in its"
    )
    with pytest.raises(InfeasibleConstraintsError, match=f"goal: {told}"):
        clf.fit(X, noise, attributes={"negative": noise == 0})


@pytest.mark.thorough
def test_search_goes_on_past_impossible_demands():
    grid = {"constraints": [[recall() >= 0.5], IMPOSSIBLE]}
    clf = clone(QUICK)
    search = GridSearchCV(clf, grid, cv=2, error_score=np.nan)
    with pytest.warns() as caught:  # FitFailedWarning, and UserWarning for nan among the scores
        search.fit(X, Y)
    assert any("InfeasibleConstraintsError" in str(warning.message) for warning in caught)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]
    assert search.best_params_["constraints"] is grid["constraints"][0]


@pytest.mark.thorough
def test_no_threshold_meets_what_the_randomized_rule_does():
    """One binary feature: thresholds answer 0%, 50% or 100%, the ramp anything between."""
    column, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.arange(40) % 4 % 3 % 2
    goals = [positive_rate() >= 0.2, positive_rate() <= 0.3]
    clf = RampClassifier(constraints=goals, alpha=1e-3)
    with pytest.warns(UserWarning, match=r"no single threshold does: positive_rate\(\)") as caught:
        assert clf.fit(column, y) is clf
    assert caught[0].filename == __file__
    report = clf.constraint_report_
    assert not clf.feasible_ and not report["satisfied"].all()
    assert report["expected"].between(0.2 - 1e-6, 0.3 + 1e-6).all()
    assert report["value"].iloc[0] in (0, 0.5, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who keeps the ramp's b asked for no threshold
        kept = clf.set_params(threshold=False).fit(column, y)
    assert kept.constraint_report_["expected"].between(0.2 - 1e-6, 0.3 + 1e-6).all()
