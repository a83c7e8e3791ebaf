"""rate_report: each figure against its own computation, for every kind of goal and group."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from skbandit import ConstrainedRampClassifier, rates
from skbandit.constrained import ConstrainedThreshold, RampClassifier
from skbandit.evaluation import rate_report, to_model_card
from skbandit.evaluation._rate_report import read_verdicts
from skbandit.rates import (
    churn,
    difference,
    each,
    error_rate,
    f1,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    positive_rate,
    precision,
    ratio,
    recall,
    true_negative_rate,
)
from skbandit.rates._kinds import KINDS
from tests.tiers import first
from tests.worlds import refuses, warns

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
    bounded = ["bound", "slack", "satisfied", "verdict"]
    assert report(recall() >= 0.1, by="sex").columns.tolist() == ["goal", "sex", *figures, *bounded]


def test_a_row_per_group_overall_first():
    found = report({"caught": recall(), "right": precision()}, by=["sex", "race"])
    assert len(found) == 2 * (1 + 6)
    assert found["goal"].tolist() == ["caught"] * 7 + ["right"] * 7
    assert found[["sex", "race"]].iloc[0].tolist() == ["all", "all"]
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


def test_rows_without_a_group_have_a_row_of_their_own():
    """The label "all" is for all rows, whatever is missing; the groups partition these."""
    table = TABLE.assign(
        age=np.where(TABLE["sex"] == "F", np.nan, 3.0), race=TABLE["race"].replace("c", None)
    )
    found = rate_report(Y, P, recall(), by=["age", "race"], attributes=table)
    assert found[["age", "race"]].to_numpy().tolist() == [
        ["all", "all"], [3.0, "a"], [3.0, "b"],
        [3.0, "(missing)"], ["(missing)", "a"], ["(missing)", "b"], ["(missing)", "(missing)"],
    ]  # fmt: skip
    assert found["n_rows"].iloc[0] == found["n_rows"].iloc[1:].sum() == Y.sum()
    women_of_c = inside(sex="F", race="c") & (Y == 1)
    assert found["value"].iloc[-1] == pytest.approx(P[women_of_c].mean())


def test_a_goal_of_groups_is_not_split_by_the_same_groups():
    goals = [each(recall, by="sex"), difference(recall, by=["race", "sex"]) <= 0.1, recall()]
    found = report(goals, by="sex")
    assert found["value"].notna().all()
    assert found["sex"].tolist() == ["all"] * (2 + 6 * 5) + ["all", "F", "M"]


def test_groups_may_be_given_as_values():
    expected = report([recall(), difference(recall, by="sex")], by="sex")
    for by in (TABLE["sex"], TABLE[["sex"]]):
        found = report([recall(), difference(recall, by="sex")], by=by)
        pd.testing.assert_frame_equal(found, expected)
    by_array = report(recall(), by=TABLE["sex"].to_numpy())
    assert by_array["group"].tolist() == ["all", "F", "M"]
    with pytest.warns(UserWarning, match="by and y_true have the same row labels in different"):
        rate_report(pd.Series(Y), P, recall(), by=TABLE["sex"][::-1])


def test_scores_are_not_labels():
    scores = RNG.random(N)
    for y_pred in (scores, scores.astype(np.float32), np.column_stack([1 - scores, scores])):
        with pytest.raises(ValueError, match=r"y_pred holds scores .*: pass labels, as of predict"):
            rate_report(Y, y_pred, recall())
        with pytest.raises(ValueError, match="y_pred holds scores"):
            recall().value(Y, y_pred)


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
    """The same figures as of the pair written by hand."""
    women, men = recall({"sex": "F"}), recall({"sex": "M"})
    found = report([difference(recall, by="sex"), ratio(recall, by="sex") >= 0.8])
    assert [goal[-7:] for goal in found["goal"]] == ["[F - M]", "[M - F]", "[F / M]", "[M / F]"]
    by_hand = report([women - men, men - women, women / men, men / women])
    figures = ["effective_n", "value", "ci_low", "ci_high"]
    pd.testing.assert_frame_equal(found[figures], by_hand[figures])
    assert found["bound"].isna().tolist() == [True, True, False, False]
    assert found["satisfied"].isna().tolist() == [True, True, False, False]


WORSE = 5 * false_negative_rate() + false_positive_rate()
CATALOG = [
    *(getattr(rates, name) for name in rates.__all__ if name in KINDS and name != "churn"),
    churn("deployed"),
    recall(weight="amount"),
    0.5 * recall() + 0.5 * true_negative_rate(),
    WORSE,
]
FORMS = [form(rate, by="g") for form in (each, difference, ratio) for rate in CATALOG]
FORMS.append(difference(recall() - false_positive_rate(), by="g"))


@pytest.mark.filterwarnings(
    "ignore:Fewer than 20 rows", "ignore::sklearn.exceptions.UndefinedMetricWarning"
)
@pytest.mark.parametrize("seed", first(1, [1, 0, *range(2, 30)]))
def test_every_value_is_in_its_interval(seed):
    """All rates, differences and ratios of all pairs of groups, of small tables."""
    rng = np.random.default_rng(seed)
    n, groups = rng.integers(12, 80), rng.integers(2, 4)
    y, predicted = rng.random((2, n)) < rng.uniform(0.1, 0.9, (2, 1))
    y[:2] = [True, False]
    table = {
        "g": np.append(["a", "b"], rng.choice(["a", "b", "c"][:groups], n - 2)),
        "deployed": rng.integers(0, 2, n),
        "amount": rng.exponential(size=n),
    }
    weight = rng.exponential(size=n) if seed % 2 else None
    level = rng.uniform(0.1, 0.999)
    found = rate_report(
        y, predicted, FORMS, attributes=table, sample_weight=weight, confidence_level=level
    )
    known = found[found["value"].notna()]
    assert len(known) > len(FORMS)
    assert (known["ci_low"] <= known["value"]).all() and (known["value"] <= known["ci_high"]).all()
    assert (known["ci_low"] < known["ci_high"]).all()


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


def test_it_agrees_with_the_report_of_a_classifier():
    X = RNG.normal(size=(N, 3)) + Y[:, None]
    goals = [recall() >= 0.5, each(positive_rate, by="sex") <= 0.9, precision() >= 0.3]
    goals += [ratio(false_positive_rate, by="sex") >= 0.5, difference(WORSE, by="sex") <= 0.9]
    clf = ConstrainedRampClassifier(constraints=goals, solver="newton").fit(X, Y, attributes=TABLE)
    kept = clf.constraint_report_
    assert (kept["ci_low"] < kept["cross_fitted"]).all()
    assert (kept["cross_fitted"] < kept["ci_high"]).all()
    expected = clf.constraint_report(X, Y, attributes=TABLE)
    assert (expected["ci_low"] < expected["value"]).all()
    assert (expected["value"] < expected["ci_high"]).all()
    found = rate_report(Y, clf.predict(X), goals, attributes=TABLE)
    assert found["goal"].tolist() == expected["constraint"].tolist()
    same = ["n_rows", "effective_n", "value", "ci_low", "ci_high", "bound", "slack", "satisfied"]
    pd.testing.assert_frame_equal(found[same], expected[same])


def test_groups_without_rows_are_reported_as_such():
    y = np.where((TABLE["race"] == "c") & (Y == 1), 0, Y)
    with pytest.warns(UndefinedMetricWarning, match=r"recall\(\) >= 0.5 in c is not measured"):
        found = rate_report(y, P, recall() >= 0.5, by="race", attributes=TABLE)
    last = found.iloc[-1]
    assert (last["race"], last["n_rows"]) == ("c", 0)
    assert np.isnan(last["value"]) and pd.isna(last["satisfied"])
    refuses(r"selects no rows; 'sex' holds '[FM]', '[FM]'", report, recall("sex == 'Femal'"))


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


@pytest.mark.parametrize(
    ("goals", "options", "error", "message"),
    [
        (recall, {}, TypeError, "is not a rate or a constraint: pass one .* with parentheses"),
        ("recall", {}, TypeError, "'recall' is not a rate"),
        ({"a": 0.5}, {}, TypeError, r"goals\['a'\] = 0.5 is not a rate"),
        (recall(), {"by": 3}, TypeError, "by must be the name of .*, got int"),
        (recall(), {"by": [3]}, TypeError, "by must list names of attribute columns"),
        (recall(), {"by": TABLE["sex"][1:]}, ValueError, r"by\['sex'\] has 799 rows for 800 rows"),
        (recall(), {"by": TABLE[["sex"]].replace("F", "all")}, ValueError, "a group is 'all', the"),
        (recall(), {"by": TABLE[["sex"]].replace("F", "(missing)")}, ValueError,
         r"a group is '\(missing\)', the label of rows without one"),
        (recall(), {"by": "sx"}, ValueError, "unknown column 'sx'; known columns are 'sex'"),
        (recall(), {"by": ["sex", "sex"]}, ValueError, "would be two columns"),
        (recall(), {"by": TABLE["sex"].rename("value")}, ValueError, "'value' would be two"),
        (recall(), {"confidence_level": 95}, ValueError, "confidence_level=95 must lie between"),
    ],
)  # fmt: skip
def test_wrong_input(goals, options, error, message):
    refuses(message, report, goals, **options, error=error)


@pytest.mark.parametrize("given", ["y_pred", "attributes", "sample_weight"])
def test_groups_in_another_order_are_told(given):
    rows = {"y_pred": pd.Series([1, 0] * 20), "y_true": None}
    rows |= {} if given == "y_pred" else {"y_pred": [1, 0] * 20, given: pd.Series([1.0] * 40)}
    rows["attributes"] = None if given != "attributes" else pd.DataFrame({"old": [True] * 40})
    by = pd.Series(["F", "M"] * 20).sort_values()
    warns("same row labels in different orders", rate_report, goals=positive_rate(), by=by, **rows)


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
    assert "**Violated**: caught &#124; all." in lines
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 1 + len(found)
    assert rows[1].startswith("| caught &#124; all | all | ") and rows[1].endswith(
        "| 0.990 | **violated** |"
    )
    assert rows[2].startswith("| caught &#124; all | F | ")
    assert f"| {found['value'].iloc[0]:.3f} |" in rows[1]
    assert card.count("Not stated.") == 1 and "Not for children." in card
    assert len({line.count("|") for line in rows}) == 1


def summary(found):
    lines = to_model_card(found).splitlines()
    return lines[lines.index("## Quantitative analysis") + 2]


def test_the_summary_counts_goals_as_declared():
    goals = [recall() >= 0.1, recall() >= 0.99, recall() >= 0.2]
    assert summary(report(goals)) == "Of 3 goals, 2 are met. **Violated**: recall() >= 0.99."
    assert summary(report(goals[::2])) == "All 2 goals are met."
    assert summary(report(recall() >= 0.1)) == "The goal is met."
    assert summary(report(recall() >= 0.99)) == "**Violated**: recall() >= 0.99."
    assert summary(report({"close": recall() >= 0.68})) == "Undecided: close."
    assert summary(report(f1())) == "No goals were measured."
    found = report([recall() >= 0.1] * 6)
    found.loc[[1, 4], ["n_rows", "satisfied"]] = [0, pd.NA]
    assert summary(found).startswith("Of 6 goals, 4 are met. Not measured: recall() >= 0.1;")


def test_the_summary_never_signs_off_what_is_undecided():
    """Five groups, of which one has six rows: its pairs are undecided, whatever their values."""
    sizes = {"A": 400, "B": 400, "C": 400, "D": 400, "E": 6}
    group = np.repeat(list(sizes), list(sizes.values()))
    chosen = np.concatenate([np.arange(size) % 2 for size in sizes.values()])
    goals = {"rule": ratio(positive_rate, by="g") >= 0.8, "chosen": positive_rate() >= 0.3}
    with pytest.warns(UserWarning, match="Fewer than 20"):
        found = rate_report(chosen, chosen, goals, attributes={"g": group})
    assert found["satisfied"].all() and (found["verdict"] == "undecided").sum() == 8
    expected = "Of 2 goals, 1 is met. Undecided: rule in 8 of 20 groups or pairs (6 rows of A / E)."
    assert summary(found) == expected
    of_part = rate_report(chosen[:1600], chosen[:1600], goals, attributes={"g": group[:1600]})
    assert summary(of_part) == "All 2 goals are met."


def test_goals_are_counted_as_declared_whatever_their_texts():
    gap = abs(recall("sex == 'F'") - recall("sex == 'M'")) <= 0.9
    assert summary(report([gap, recall() >= 0.1])) == "All 2 goals are met."
    assert summary(report(gap)) == "The goal is met."
    each_near = abs(each(recall, by="race") - recall()) <= 0.5
    assert summary(report(each_near)) == "The goal is met."
    n_groups = len(report(each_near)) // 2
    assert n_groups == 3 and report(each_near)["satisfied"].all()
    none_near = abs(each(recall, by="race") - recall()) <= 0.0001
    expected = f"Undecided: x in {n_groups} of {n_groups} groups or pairs ("
    assert summary(report({"x": none_near})).startswith(expected)
    near = abs(recall("sex == 'F'") - recall("sex == 'M'")) <= 0.1
    assert summary(report({"x": near, "y": recall() >= 0.1})) == (
        "Of 2 goals, 1 is met. Undecided: x."
    )


@pytest.mark.parametrize("name", ["r", "b [x]"])
def test_goals_of_one_name_are_two(name):
    goals = [(recall() >= 0.1).named(name), (recall() >= 0.99).named(name)]
    assert summary(report(goals)) == f"Of 2 goals, 1 is met. **Violated**: {name}."
    goals = {"b [x]": recall() >= 0.1, "b [y]": recall() >= 0.99}
    assert summary(report(goals)) == "Of 2 goals, 1 is met. **Violated**: b [y]."


def test_goals_are_counted_after_rows_were_chosen_and_in_a_file(tmp_path):
    goals = {"gap": abs(recall("sex == 'F'") - recall("sex == 'M'")) <= 0.9, "low": recall() >= 0.1}
    found = report(goals, by="race")
    assert summary(found.iloc[::-1]) == summary(found) == "All 2 goals are met."
    assert summary(found[found["goal"] != "low"]) == "The goal is met."
    moved = found[found["goal"] != "gap (upper)"].reset_index(drop=True)
    assert summary(moved) == "All 2 rows are met."
    found.to_csv(tmp_path / "report.csv", index=False)
    assert summary(pd.read_csv(tmp_path / "report.csv")) == "All 3 rows are met."


HOSTILE = [
    "a|b", r"a\|b", "a\\", "<script>alert(1)</script>", "[x](javascript:alert(1))", "![](http://a.b/c)",
    "`", "```", "*x*", "_x_", "__x__", "~~x~~", "&lt;", "&#124;", "<http://a.b>", "http://a.b",
    "www.a.b", "me@a.b", "two\nlines", "[F - M] <= 0.1", "5 < 6 & 7",
]  # fmt: skip


def test_a_model_card_shows_any_value_as_it_is():
    markdown_it = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    table = {"interval": np.resize(HOSTILE, 50 * len(HOSTILE))}
    y = np.arange(len(table["interval"])) % 2
    found = rate_report(y, y, {"rows | all": recall() >= 0.5}, by="interval", attributes=table)
    tokens = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(to_model_card(found))
    cells = [token for token in tokens if token.type == "inline" and token.level == 4]
    assert all(
        child.type == "text" or child.content in ("", "violated")
        for token in cells
        for child in token.children
        if child.type not in ("strong_open", "strong_close")
    )
    shown = ["".join(child.content for child in token.children) for token in cells]
    shown = [shown[row : row + 8] for row in range(0, len(shown), 8)]
    assert shown[0][:2] == ["goal", "interval"] and shown[0][5] == "interval"
    assert [row[:2] for row in shown[1:]] == [
        ["rows | all", " ".join(value.split())] for value in found["interval"]
    ]


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
    found = clf.constraint_report_.assign(value=0.111)
    card = to_model_card(found)
    assert "| recall() >= 0.5 |" in card
    assert f"| {found['cross_fitted'][0]:.3f} |" in card, "which its interval is of"
    assert "0.111" not in card
    found["ci_low"] = 0.4
    assert "Undecided: recall() >= 0.5." in to_model_card(found)
    refuses("returned by rate_report or constraint_report", to_model_card, [1], error=TypeError)


@pytest.mark.thorough
def test_a_report_without_intervals_never_says_met():
    """Training rows meet a bound that was imposed on them, just so."""
    X = RNG.normal(size=(N, 2)) + Y[:, None]
    prefit = LogisticRegression().fit(X[:300], Y[:300])
    options = {"constraints": recall() >= 0.8, "objective": false_positive_rate()}
    fits = [
        RampClassifier(**options).fit(X[300:], Y[300:]),
        ConstrainedThreshold(prefit, cv="prefit", **options).fit(X[300:], Y[300:]),
    ]
    for clf in fits:
        found = clf.constraint_report_
        assert found["satisfied"].all() and "ci_low" not in found
        assert summary(found).startswith("Undecided: recall() >= 0.8. The report has no intervals")
        assert "undecided |" in to_model_card(found) and "met |" not in to_model_card(found)
        found["satisfied"] = False
        assert summary(found).startswith("**Violated**: recall() >= 0.8.")


def test_a_card_says_what_goals_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + rng.normal(size=600) > 0.5).astype(int)
    goals = [(recall() >= 0.9).named("find them"), positive_rate() <= 0.99]
    model = ConstrainedThreshold(LogisticRegression(), None, goals).fit(X, y)
    price = model.constraint_report_["price"]
    sentence = f"each goal alone costs: find them {price[0]:.3f}; others nothing."
    assert price[0] > 0.01
    assert sentence in to_model_card(model.constraint_report_)
    assert sentence in to_model_card(model.constraint_report(X, y))
    assert "costs" not in to_model_card(rate_report(y, model.predict(X), recall() >= 0.9))


# --- intervals of sizes ----------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "straddles"), [(0, True), (4, True), (40, False), (-40, False)])
def test_the_interval_of_a_size_includes_0_where_its_sign_is_open(shift, straddles):
    """|d| of two shares: the ends of d, folded at 0."""
    group = np.repeat(["a", "b"], 200)
    predicted = np.concatenate([np.arange(200) < 80 + shift, np.arange(200) < 80]).astype(int)
    signed = positive_rate("g == 'a'") - positive_rate("g == 'b'")
    given = {"attributes": pd.DataFrame({"g": group})}
    (row,) = rate_report(predicted, predicted, signed, **given).to_dict("records")
    (size,) = rate_report(predicted, predicted, abs(signed), **given).to_dict("records")
    low, high = sorted([abs(row["ci_low"]), abs(row["ci_high"])])
    assert (row["ci_low"] < 0 < row["ci_high"]) == straddles
    assert size["value"] == pytest.approx(abs(row["value"]))
    assert (size["ci_low"], size["ci_high"]) == pytest.approx((0.0 if straddles else low, high))


@pytest.mark.filterwarnings("ignore:.*always holds")
def test_a_value_at_its_bound_is_judged_by_the_side_that_is_bounded():
    """The interval ends at the bound: all of it meets a cap, and not a floor."""
    y = np.ones(50, dtype=int)
    goals = [(recall() <= 1).named("cap"), (recall() >= 1).named("floor")]
    report = rate_report(y, y, goals).drop(columns="verdict")
    assert read_verdicts(report) == ["met", "undecided"]
    lost = pd.DataFrame(report.to_dict("list"))  # as in a CSV file
    assert read_verdicts(lost) == ["undecided", "undecided"]
