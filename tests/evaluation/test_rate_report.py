"""rate_report: each figure against its own computation, for every kind of goal and group."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.evaluation import rate_report, to_model_card
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    negative_predictive_value,
    positive_rate,
    precision,
    ratio,
    recall,
)
from skbandit.rates._binding._proportions import difference_interval, ratio_interval

RNG = np.random.default_rng(4)
N = 800
TABLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], N),
        "race": RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]),
        "deployed": RNG.integers(0, 2, N),
        "amount": RNG.uniform(1, 3, N),
    }
)
Y = (RNG.random(N) < 0.5).astype(int)
P = (RNG.random(N) < np.where(Y == 1, 0.75, 0.3) - 0.1 * (TABLE["sex"] == "F")).astype(int)


def report(goals, **options):
    return rate_report(Y, P, goals, attributes=TABLE, **options)


def inside(**values):
    return np.logical_and.reduce([TABLE[column] == value for column, value in values.items()])


def test_columns():
    figures = ["n_rows", "effective_n", "value", "ci_low", "ci_high"]
    assert report(recall()).columns.tolist() == ["goal", *figures]
    assert report([recall()], by=["race", "sex"]).columns.tolist() == [
        "goal", "race", "sex", *figures
    ]  # fmt: skip
    bounded = ["bound", "slack", "satisfied"]
    assert report(recall() >= 0.1, by="sex").columns.tolist() == ["goal", "sex", *figures, *bounded]


def test_a_row_per_group_overall_first():
    found = report({"caught": recall(), "right": precision()}, by=["sex", "race"])
    assert len(found) == 2 * (1 + 6)
    assert found["goal"].tolist() == ["caught"] * 7 + ["right"] * 7
    assert found[["sex", "race"]].iloc[0].isna().all()
    assert found[["sex", "race"]].iloc[1:4].to_numpy().tolist() == [
        ["F", "a"],
        ["F", "b"],
        ["F", "c"],
    ]
    for name, score in (("caught", recall_score), ("right", precision_score)):
        part = found[found["goal"] == name]
        assert part["value"].iloc[0] == pytest.approx(score(Y, P))
        for _, row in part.iloc[1:].iterrows():
            here = inside(sex=row["sex"], race=row["race"])
            assert row["value"] == pytest.approx(score(Y[here], P[here]))


def test_only_combinations_that_occur():
    few = TABLE.assign(race=np.where(TABLE["sex"] == "F", "a", TABLE["race"]))
    found = rate_report(Y, P, recall(), by=["sex", "race"], attributes=few)
    assert found[["sex", "race"]].iloc[1:].to_numpy().tolist() == [
        ["F", "a"], ["M", "a"], ["M", "b"], ["M", "c"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rate", "rows", "hits", "trials"),
    [
        (recall(), Y == 1, P[Y == 1], Y == 1),
        (precision(), np.full(N, True), Y[P == 1], P == 1),
        (negative_predictive_value(), np.full(N, True), Y[P == 0] == 0, P == 0),
        (error_rate({"sex": "F"}), inside(sex="F"), (Y != P)[inside(sex="F")], inside(sex="F")),
        (churn("deployed"), np.full(N, True), P != TABLE["deployed"], np.full(N, True)),
    ],
)
def test_rows_denominators_and_intervals(rate, rows, hits, trials):
    """effective_n is the denominator at these predictions; n_rows what it could be."""
    (row,) = report(rate, confidence_level=0.9).to_dict("records")
    assert (row["n_rows"], row["effective_n"]) == (rows.sum(), trials.sum())
    test = binomtest(int(hits.sum()), int(trials.sum()))
    expected = tuple(test.proportion_ci(0.9, method="exact"))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected)


def test_differences_and_ratios_by_pair():
    found = report([difference(recall, by="sex"), ratio(recall, by="sex") >= 0.8])
    assert [goal[-7:] for goal in found["goal"]] == ["[F - M]", "[M - F]", "[F / M]", "[M / F]"]
    shares = []
    for sex in "FM":
        here = inside(sex=sex) & (Y == 1)
        shares += [P[here].mean(), here.sum()]
    low, high = difference_interval(*shares, 0.025)
    rows = found[["value", "ci_low", "ci_high"]].to_numpy()
    assert rows[0] == pytest.approx([shares[0] - shares[2], low, high])
    assert rows[1] == pytest.approx([shares[2] - shares[0], -high, -low])
    low, high = ratio_interval(*shares, 0.025)
    assert rows[2] == pytest.approx([shares[0] / shares[2], low, high])
    assert found["bound"].isna().tolist() == [True, True, False, False]
    assert found["satisfied"].isna().tolist() == [True, True, False, False]


def test_precision_by_group_with_its_gap():
    found = report(difference(precision, by="sex"), by="race")
    for race, value in zip(found["race"][2:], found["value"][2:], strict=True):
        first, second = (
            precision_score(Y[here], P[here])
            for here in (inside(race=race, sex="F"), inside(race=race, sex="M"))
        )
        assert abs(value) == pytest.approx(abs(first - second))
    assert (found["ci_low"] < found["value"]).all() and (found["value"] < found["ci_high"]).all()


def test_constraints():
    goals = [recall() >= 0.9, error_rate().__le__(0.9), abs(recall() - 0.7) <= 0.5]
    found = report(goals)
    assert found["goal"].iloc[:2].tolist() == ["recall() >= 0.9", "error_rate() <= 0.9"]
    assert len(found) == 4  # abs is two constraints
    value = recall_score(Y, P)
    assert found["slack"].iloc[0] == pytest.approx(value - 0.9)
    assert found["slack"].iloc[1] == pytest.approx(0.9 - (Y != P).mean())
    assert found["satisfied"].tolist() == [False, True, True, True]
    with_groups = report(each(recall, by="sex") >= 0.1, by="race")
    assert len(with_groups) == 4 * 2


def test_absolute_rates():
    gap = difference_gap = recall({"sex": "F"}) - recall({"sex": "M"})
    plain, absolute = (report(goal).iloc[0] for goal in (gap, abs(difference_gap)))
    assert absolute["value"] == abs(plain["value"])
    ends = sorted([abs(plain["ci_low"]), abs(plain["ci_high"])])
    low = 0 if plain["ci_low"] <= 0 <= plain["ci_high"] else ends[0]
    assert (absolute["ci_low"], absolute["ci_high"]) == (low, ends[1])


def test_it_agrees_with_the_report_of_a_classifier():
    X = RNG.normal(size=(N, 3)) + Y[:, None]
    goals = [recall() >= 0.5, each(positive_rate, by="sex") <= 0.9, precision() >= 0.3]
    clf = ConstrainedRampClassifier(constraints=goals, solver="newton").fit(X, Y, attributes=TABLE)
    expected = clf.constraint_report(X, Y, attributes=TABLE)
    found = rate_report(Y, clf.predict(X), goals, attributes=TABLE)
    assert found["goal"].tolist() == expected["constraint"].tolist()
    same = ["n_rows", "effective_n", "value", "ci_low", "ci_high", "bound", "slack", "satisfied"]
    pd.testing.assert_frame_equal(found[same], expected[same])


def test_any_labels_pipelines_and_weights():
    X = RNG.normal(size=(N, 2)) + Y[:, None]
    names = np.where(Y == 1, "yes", "no")
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, names)
    weight = TABLE["amount"].to_numpy()
    (row,) = rate_report(
        names, pipe.predict(X), recall(), sample_weight=weight, pos_label="yes"
    ).to_dict("records")
    positives = Y == 1
    expected = weight[positives & (pipe.predict(X) == "yes")].sum() / weight[positives].sum()
    assert row["value"] == pytest.approx(expected)
    kish = weight[positives].sum() ** 2 / (weight[positives] ** 2).sum()
    assert row["n_rows"] == positives.sum() and row["effective_n"] == pytest.approx(kish)


def test_groups_without_rows_are_reported_as_such():
    y = np.where((TABLE["race"] == "c") & (Y == 1), 0, Y)
    with pytest.warns(UndefinedMetricWarning, match=r"recall\(\) >= 0.5 in c is not measured"):
        found = rate_report(y, P, recall() >= 0.5, by="race", attributes=TABLE)
    last = found.iloc[-1]
    assert (last["race"], last["n_rows"]) == ("c", 0)
    assert np.isnan(last["value"]) and pd.isna(last["satisfied"])
    with pytest.raises(ValueError, match=r"selects no rows; 'sex' holds '[FM]', '[FM]'"):
        report(recall("sex == 'Femal'"))


def test_nothing_predicted_is_undefined_and_not_satisfied():
    found = rate_report(Y, np.zeros(N), precision() >= 0.5)
    assert np.isnan(found["value"]).all() and found["satisfied"].tolist() == [False]
    assert found["effective_n"].tolist() == [0]


def test_small_denominators_are_named():
    predicted = np.where(np.arange(N) < 7, 1, 0)
    with pytest.warns(UserWarning, match=r"Fewer than 20 rows .* precision\(\) \(7\)") as caught:
        found = rate_report(Y, predicted, [recall(), precision()])
    assert len(caught) == 1
    assert found["n_rows"].tolist() == [(Y == 1).sum(), N]
    assert found["effective_n"].tolist() == [(Y == 1).sum(), 7]


def test_a_classifier_whose_precision_rests_on_few_rows_warns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (rng.random(400) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    clf = ConstrainedRampClassifier(error_rate(), precision() >= 0.1).fit(X, y)
    clf.intercept_ -= np.sort(clf.decision_function(X))[-6] + 1e-9
    assert clf.predict(X).sum() == 5
    with pytest.warns(UserWarning, match=r"denominator of precision\(\) >= 0.1 \(5\)"):
        clf.constraint_report(X, y)


@pytest.mark.parametrize(
    ("goals", "options", "error", "message"),
    [
        (recall, {}, TypeError, "is not a rate or a constraint: pass one .* with parentheses"),
        ("recall", {}, TypeError, "'recall' is not a rate"),
        ({"a": 0.5}, {}, TypeError, r"goals\['a'\] = 0.5 is not a rate"),
        (recall(), {"by": 3}, TypeError, "by=3 must be the name"),
        (recall(), {"by": "sx"}, ValueError, "unknown column 'sx'; known columns are 'sex'"),
        (recall(), {"by": ["sex", "sex"]}, ValueError, "would be two columns"),
        (recall(), {"by": "value"}, ValueError, "would be two columns of the report; rename"),
        (recall(), {"confidence_level": 95}, ValueError, "confidence_level=95 must lie between"),
    ],
)
def test_wrong_input(goals, options, error, message):
    with pytest.raises(error, match=message):
        report(goals, **options)


# --- model cards ---------------------------------------------------------------------------


def test_a_model_card_says_what_the_report_says():
    found = report({"caught | all": recall() >= 0.99, "right": precision()}, by="sex")
    card = to_model_card(found, title="Loans", data="2024.", limits="Not for children.")
    lines = card.splitlines()
    assert lines[0] == "# Loans"
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == [
        "## Intended use", "## Evaluation data", "## Quantitative analysis",
        "## Caveats and recommendations",
    ]  # fmt: skip
    assert "3 of 3 constraints are **not** satisfied." in lines
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 1 + len(found)
    assert rows[1].startswith(r"| caught \| all | all | ") and rows[1].endswith(
        "| 0.990 | **no** |"
    )
    assert rows[2].startswith(r"| caught \| all | F | ")
    assert f"| {found['value'].iloc[0]:.3f} |" in rows[1]
    assert card.count("Not stated.") == 1 and "Not for children." in card
    columns = {line.replace(r"\|", "").count("|") for line in rows}
    assert len(columns) == 1


def test_a_model_card_writes_numbers_of_rows_for_people():
    y = np.arange(25_000) % 2
    weights = np.where(np.arange(25_000) < 3, 1.0, 1e-9)
    card = to_model_card(rate_report(y, y, recall()))
    assert "| 12,500 | 12,500 | 1.000 |" in card
    with pytest.warns(UserWarning, match="Fewer than 20"):
        few = rate_report(y, y, error_rate(), sample_weight=weights)
    assert "| 25,000 | 3 | 0.000 |" in to_model_card(few)


def test_a_model_card_of_a_classifiers_report():
    X = RNG.normal(size=(N, 2)) + Y[:, None]
    clf = ConstrainedRampClassifier(constraints=recall() >= 0.5, solver="newton").fit(X, Y)
    assert "| recall() >= 0.5 |" in to_model_card(clf.constraint_report_)
    assert "No constraints were measured." in to_model_card(report(f1()))
    with pytest.raises(TypeError, match="returned by rate_report or constraint_report"):
        to_model_card([1])
