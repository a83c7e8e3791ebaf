"""constraint_report_ and constraint_report: what they say, on training and on new data."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from sklearn.datasets import make_classification
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression

from skbandit import ConstrainedRampClassifier, ConstrainedThreshold, measure
from skbandit.constrained._report import unstable_fit
from skbandit.rates import (
    churn,
    cost,
    difference,
    each,
    error_rate,
    f1,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.worlds import refuses

COLUMNS = [
    "constraint", "on", "n_rows", "effective_n", "bound", "value", "unconstrained", "slack",
    "satisfied", "multiplier", "price",
]  # fmt: skip
_after = COLUMNS.index("value") + 1
FITTED_COLUMNS = [*COLUMNS[:_after], "cross_fitted", "ci_low", "ci_high", *COLUMNS[_after:]]

ALL_X, ALL_Y = make_classification(360, 4, n_informative=3, n_redundant=1, random_state=1)
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], 360),
        "deployed": np.where(RNG.uniform(size=360) < 0.1, 1 - ALL_Y, ALL_Y),
        "amount": RNG.exponential(size=360),
    }
)
TRAIN, NEW, EXTRA = slice(0, 120), slice(120, 240), slice(240, 360)
X, Y, ATTRIBUTES = ALL_X[TRAIN], ALL_Y[TRAIN], FRAME[TRAIN]


def clopper_pearson(successes, trials, level):
    """By the textbook; the number of trials may be a fraction."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, successes, trials - successes + 1)
    return low, beta.ppf(1 - tail, successes + 1, trials - successes)


RATES = [
    recall(),
    positive_rate("sex == 'F'"),
    precision(),
    f1(),
    churn("deployed"),
    recall(weight="amount"),
    recall() - false_positive_rate(),
    positive_rate({"sex": "F"}) / positive_rate({"sex": "M"}),
]
DECLARED = [rate >= -2 for rate in RATES]


@pytest.fixture(scope="module")
def fitted():
    clf = ConstrainedRampClassifier(constraints=[*DECLARED, error_rate(on="extra") <= 0.6])
    return clf.fit(
        X, Y, attributes=ATTRIBUTES, X_extra=ALL_X[EXTRA], y_extra=ALL_Y[EXTRA],
        attributes_extra=FRAME[EXTRA],
    )  # fmt: skip


def report_on(clf, rows, **more):
    given = {"X_extra": ALL_X[EXTRA], "y_extra": ALL_Y[EXTRA], "attributes": FRAME.iloc[rows]}
    return clf.constraint_report(ALL_X[rows], ALL_Y[rows], **(given | more))


# --- what is in it -------------------------------------------------------------------------


def test_a_verdict_takes_the_whole_interval():
    """However far the value is from the bound, three rows decide nothing."""
    clf = ConstrainedRampClassifier(
        constraints=[recall() >= 0.3, false_positive_rate() <= 0.9, recall() <= 0.9999]
    ).fit(X, Y)
    report = clf.constraint_report(ALL_X[NEW], ALL_Y[NEW])
    inside = report["ci_low"][0] >= 0.3, report["ci_high"][1] <= 0.9
    assert all(inside) and report["verdict"].tolist()[:2] == ["met", "met"]
    stricter = clf.constraint_report(ALL_X[NEW], 1 - ALL_Y[NEW])
    assert stricter["verdict"][0] == "violated" and stricter["ci_high"][0] < 0.3
    few = clf.constraint_report(ALL_X[NEW][:3], np.array([1, 0, 1]))
    assert few["verdict"].tolist()[0] == "undecided"


def test_columns_and_types(fitted):
    report = fitted.constraint_report_
    assert list(report.columns) == FITTED_COLUMNS
    assert list(report_on(fitted, NEW).columns) == [*COLUMNS, "ci_low", "ci_high", "verdict"]
    assert report["satisfied"].dtype == "boolean" and report["n_rows"].dtype.kind == "i"
    assert report["constraint"].tolist() == [repr(goal) for goal in fitted.constraints]
    assert report["on"].tolist() == ["train"] * len(RATES) + ["extra"]
    assert report["bound"].tolist() == [-2.0] * len(RATES) + [0.6]
    sign = np.where(report["bound"] < 0, 1, -1)
    np.testing.assert_allclose(report["slack"], sign * (report["cross_fitted"] - report["bound"]))
    inside = report[["ci_low", "cross_fitted", "ci_high"]].to_numpy(float)
    assert (np.diff(inside, axis=1) >= 0).all()


@pytest.mark.parametrize("rows", [TRAIN, NEW], ids=["training", "new"])
def test_values_are_those_of_the_predictions(fitted, rows):
    report = report_on(fitted, rows)
    answers = fitted.predict(ALL_X[rows])
    values = [rate.value(ALL_Y[rows], answers, FRAME[rows]) for rate in RATES]
    values.append(error_rate().value(ALL_Y[EXTRA], fitted.predict(ALL_X[EXTRA])))
    np.testing.assert_allclose(report["value"], values)


def test_n_rows_counts_the_denominator(fitted):
    report = report_on(fitted, NEW)
    y, sex = ALL_Y[NEW], FRAME["sex"][NEW]
    assert report["n_rows"].tolist() == [
        y.sum(), (sex == "F").sum(), 120, 120, 120, y.sum(), 120, 120, 120,
    ]  # fmt: skip


def test_effective_n_is_of_the_rows_in_the_denominator(fitted):
    report = report_on(fitted, NEW)
    y, sex, answers = ALL_Y[NEW], FRAME["sex"][NEW], fitted.predict(ALL_X[NEW])
    amount, hits = FRAME["amount"][NEW][y == 1], answers[y == 1]
    share = amount[hits == 1].sum() / amount.sum()  # weights go with the outcome
    linearized = (amount**2 * (hits - share) ** 2).sum()
    smaller_class, smaller_sex = min(y.sum(), (y == 0).sum()), (sex == "F").value_counts().min()
    expected = [
        y.sum(), (sex == "F").sum(), answers.sum(), ((answers == 1) | (y == 1)).sum(), 120,
        share * (1 - share) * amount.sum() ** 2 / linearized, smaller_class, smaller_sex, 120,
    ]  # fmt: skip
    np.testing.assert_allclose(report["effective_n"], expected)
    assert report["effective_n"].iloc[5] < 0.7 * report["n_rows"].iloc[5]


def test_the_interval_is_that_of_as_many_equal_rows(fitted):
    weighted = report_on(fitted, NEW).iloc[5]
    n = weighted["effective_n"]
    ends = clopper_pearson(weighted["value"] * n, n, 0.95)
    assert (weighted["ci_low"], weighted["ci_high"]) == pytest.approx(ends)
    tripled = report_on(fitted, NEW, sample_weight=np.full(120, 3.0))
    np.testing.assert_allclose(tripled["effective_n"], report_on(fitted, NEW)["effective_n"])


def test_names_and_groups_label_the_rows():
    goals = [
        (recall() >= 0.5).named("enough found"),
        each(positive_rate, by="sex") <= 0.9,
        difference(recall, by="sex") <= 0.5,
        ratio(positive_rate, by="sex") >= 0.3,
        (abs(positive_rate() - 0.5) <= 0.2).named("half"),
    ]
    clf = ConstrainedRampClassifier(constraints=goals).fit(X, Y, attributes=ATTRIBUTES)
    assert clf.constraint_report_["constraint"].tolist() == [
        "enough found",
        "each(positive_rate, by='sex') <= 0.9 [F]",
        "each(positive_rate, by='sex') <= 0.9 [M]",
        "difference(recall, by='sex') <= 0.5 [F - M]",
        "difference(recall, by='sex') <= 0.5 [M - F]",
        "ratio(positive_rate, by='sex') >= 0.3 [F / M]",
        "ratio(positive_rate, by='sex') >= 0.3 [M / F]",
        "half (upper)",
        "half (lower)",
    ]
    assert clf.constraint_report_["satisfied"].all()


# --- intervals -----------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, float("nan")])
def test_confidence_level_is_a_share(fitted, level):
    refuses(r"confidence_level=.* between 0 and 1", report_on, fitted, NEW, confidence_level=level)


# --- what the data cannot measure ----------------------------------------------------------


def assert_not_measured(report, k):
    row = report.iloc[k]
    assert row["n_rows"] == row["effective_n"] == 0 and row["satisfied"] is pd.NA
    assert np.isnan([row[c] for c in ("value", "slack", "ci_low", "ci_high")]).all()


def test_missing_extra(fitted):
    with pytest.warns(UndefinedMetricWarning, match=r"extra'\) <= 0.6 is not measured: .*X_extra"):
        report = report_on(fitted, NEW, X_extra=None, y_extra=None)
    assert_not_measured(report, -1)
    assert report["satisfied"].iloc[:-1].all()


def test_missing_groups_and_unknown_ones():
    goals = [each(recall, by="sex") >= 0.5, recall("sex == 'F'") >= 0.5]
    clf = ConstrainedRampClassifier(constraints=goals).fit(X, Y, attributes=ATTRIBUTES)
    sex = np.where(np.arange(120) < 60, "M", "other")
    with pytest.warns(UndefinedMetricWarning) as caught:
        report = clf.constraint_report(ALL_X[NEW], ALL_Y[NEW], attributes={"sex": sex})
    assert len(caught) == 1
    known = clf.constraint_report_["constraint"].tolist()
    assert report["constraint"].tolist() == [*known, "each(recall, by='sex') >= 0.5 [other]"]
    assert_not_measured(report, 0)
    assert_not_measured(report, 2)
    assert report["n_rows"].iloc[1] == ALL_Y[NEW][:60].sum()
    assert report["satisfied"].isna().tolist() == [True, False, True, False]
    np.testing.assert_array_equal(report["multiplier"], [*clf.multipliers_, np.nan])
    # a group that fit had not is measured, too
    predicted, of_other = clf.predict(ALL_X[NEW]) == 1, (sex == "other") & (ALL_Y[NEW] == 1)
    assert report["value"].iloc[3] == predicted[of_other].mean()
    price = clf.constraint_report_["price"]
    np.testing.assert_array_equal(report["price"], [*price, price[0]])


def test_unlabeled_rows_are_left_out_of_what_needs_labels():
    goals = [recall() >= 0.5, positive_rate() <= 0.9]
    clf = ConstrainedRampClassifier(constraints=goals).fit(X, Y)
    y = np.where(np.arange(120) < 50, ALL_Y[NEW], np.nan)
    report = clf.constraint_report(ALL_X[NEW], y)
    half = clf.constraint_report(ALL_X[NEW][:50], ALL_Y[NEW][:50])
    assert report["n_rows"].tolist() == [ALL_Y[NEW][:50].sum(), 120]
    assert report["value"].iloc[0] == half["value"].iloc[0]
    assert report["value"].iloc[1] == pytest.approx(np.mean(clf.predict(ALL_X[NEW])))


@pytest.mark.parametrize("y", [None, np.full(120, np.nan), [None] * 120], ids=type)
def test_what_needs_labels_is_not_measured_without_any(y):
    clf = ConstrainedRampClassifier(constraints=[recall() >= 0.5, positive_rate() <= 0.9])
    clf.fit(X, Y)
    with pytest.warns(UndefinedMetricWarning, match=r"recall\(\) >= 0.5 is not measured"):
        report = clf.constraint_report(ALL_X[NEW], y)
    assert_not_measured(report, 0)
    assert report["n_rows"].iloc[1] == 120


def test_undefined_precision_is_not_satisfied():
    clf = ConstrainedRampClassifier(constraints=precision() >= 0.5).fit(X, Y)
    negatives = ALL_X[NEW][clf.predict(ALL_X[NEW]) == 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = clf.constraint_report(negatives, np.zeros(len(negatives), dtype=int))
    row = report.iloc[0]
    assert np.isnan(row["value"]) and np.isnan(row["ci_low"]) and row["n_rows"] == len(negatives)
    assert row["effective_n"] == 0
    assert not row["satisfied"] and row["satisfied"] is not pd.NA


# --- wrong input ---------------------------------------------------------------------------


def test_the_constraint_is_named_whose_column_is_missing():
    goal = difference(recall, by="sex") <= 0.9
    clf = ConstrainedRampClassifier(constraints=goal).fit(X, Y, attributes=ATTRIBUTES)
    refuses(r"difference\(.* \[F - M\]: .*'sex'; no .* attributes=", clf.constraint_report, X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": Y[:7]}, "y has 7 entries for 120 rows"),
        ({"y": Y + 5}, r"y has \[6, 5\]|y has \[5, 6\]"),
        ({"attributes": None}, "no columns are known"),
        ({"attributes": ATTRIBUTES[["amount"]]}, "known columns are 'amount'"),
        ({"attributes": ATTRIBUTES[:7]}, "attributes has 7 rows for 120 rows"),
        ({"X": X[:, :3]}, "X has 3 features"),
        ({"X": X * np.nan}, "contains NaN"),
        ({"X_extra": X[:, :3]}, "X_extra does not fit X: X has 3 features"),
        ({"X_extra": None}, "y_extra was passed without X_extra"),
        ({"sample_weight": -np.ones(120)}, "sample_weight must not be negative"),
        ({"sample_weight_extra": np.ones(3)}, "sample_weight_extra has 3 entries for 120"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_wrong_input_is_explained(fitted, change, message):
    given = {
        "X": X, "y": Y, "attributes": ATTRIBUTES, "X_extra": ALL_X[EXTRA], "y_extra": ALL_Y[EXTRA],
    }  # fmt: skip
    refuses(message, fitted.constraint_report, **given | change)


@pytest.mark.thorough
@pytest.mark.parametrize(("weights", "groups"), [(False, False), (True, True)])
def test_a_report_on_merged_rows_is_that_on_each_row(monkeypatch, weights, groups):
    """Equal rows are one: the same numbers, counted on a tenth of the rows or fewer."""
    rng = np.random.default_rng(3)
    X, y = make_classification(300, 4, n_informative=3, n_redundant=1, random_state=3)
    table = pd.DataFrame(
        {
            "g": rng.integers(0, 4, 300),
            "old": np.where(rng.random(300) < 0.9, y, 1 - y),
            "size": rng.integers(1, 4, 300).astype(float),
            "age": rng.normal(size=300),
        }
    )
    goals = [
        ratio(recall, by="g") >= 0.2,
        each(positive_rate, by="g") - positive_rate() <= 0.6,
        precision("age > 0", weight="size") >= 0.2,
        churn("old") <= 0.8,
        cost({0: {0: 0, 1: 2}, 1: {0: 1, 1: 0}}) <= 3,
        f1() >= 0.2,
    ]
    options = {"attributes": table}
    if weights:
        options["sample_weight"] = rng.integers(1, 3, 300).astype(float)
    if groups:
        options["groups"] = rng.integers(0, 20, 300)

    def reports():
        clf = ConstrainedThreshold(LogisticRegression(), error_rate(), goals).fit(X, y, **options)
        return clf.constraint_report_, clf.objective_report_, clf.constraint_report(X, y, **options)

    merged = reports()
    monkeypatch.setattr(measure, "merge_equal", lambda rates, *given: given)
    for ours, one_by_one in zip(merged, reports(), strict=True):
        pd.testing.assert_frame_equal(ours, one_by_one, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:groups has 2 group")
def test_the_number_of_groups_stands_after_the_effective_number_of_rows():
    clf = ConstrainedThreshold(LogisticRegression(), error_rate(), recall() >= 0.5)
    report = clf.fit(X, Y, groups=np.arange(120) % 2).constraint_report_
    assert report.columns[2:5].tolist() == ["n_rows", "effective_n", "n_groups"]
    assert report["n_groups"].tolist() == [2]


def test_a_constant_stays_on_the_side_where_it_was_declared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0.8).astype(int)
    goals = [
        1 - negative_predictive_value() <= 0.2,
        recall() - 0.05 >= 0.4,
        recall("x0 > 0") - 0.1 >= recall("x0 <= 0") - 0.9,
    ]
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    clf = ConstrainedThreshold(LogisticRegression(), None, goals, cv=3, confidence_level=0.5)
    report = clf.fit(frame, y).constraint_report_
    d = clf.predict(frame)
    by_part = [d[(y == 1) & part].mean() for part in (X[:, 0] > 0, X[:, 0] <= 0)]
    assert report["bound"].tolist() == [0.2, 0.4, -0.9]
    values = [y[d == 0].mean(), d[y == 1].mean() - 0.05, by_part[0] - by_part[1] - 0.1]
    assert report["value"].tolist() == pytest.approx(values)
    np.testing.assert_array_less(report["ci_low"], report["cross_fitted"])
    np.testing.assert_array_less(report["cross_fitted"], report["ci_high"])


@pytest.mark.parametrize(
    ("value", "crossed", "told"),
    [(0.7, 0.85, True), (0.79, 0.81, False), (0.82, 0.9, False), (0.9, 0.7, False)],
)
def test_a_final_fit_far_worse_than_out_of_fold_is_unstable(value, crossed, told):
    """Outside its bound of .8, and lower by more than .654 of half an interval of .05."""
    ends = {"ci_low": [crossed - 0.05], "ci_high": [crossed + 0.05]}
    rates = {"value": [value], "cross_fitted": [crossed], "bound": [0.8]}
    table = pd.DataFrame(rates | ends)
    goals = SimpleNamespace(sign=np.array([-1.0]), constraints=[recall() >= 0.8])
    assert ("unstable" in unstable_fit(table, goals)) is told


def test_saturated_probabilities_name_the_other_response():
    X, y = make_classification(200, random_state=0)
    sure = LogisticRegression(C=1e6, max_iter=5000).fit(X, y)
    sure.coef_ *= 1e4
    with pytest.warns(UserWarning, match="response_method='decision_function'"):
        ConstrainedThreshold(sure, None, recall() >= 0.5, cv="prefit").fit(X, y)
