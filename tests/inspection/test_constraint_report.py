"""ConstraintReportDisplay: what is drawn is what the report says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from skbandit import ConstrainedRampClassifier
from skbandit.evaluation import rate_report
from skbandit.inspection import ConstraintReportDisplay, RateReportDisplay
from skbandit.rates import (
    cost,
    difference,
    error_rate,
    false_positive_rate,
    positive_rate,
    precision,
    ratio,
    recall,
)
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.worlds import refuses

# === ConstraintReportDisplay: the constraints of a fitted model =================================

GOALS = [
    recall() >= 0.9,
    false_positive_rate() <= 0.4,
    (abs(positive_rate() - 0.5) <= 0.2).named("balance"),
    ratio(positive_rate, by="sex") >= 0.8,
]


@pytest.fixture(scope="module")
def fitted():
    return ConstrainedRampClassifier(constraints=GOALS).fit(X, Y, attributes=ATTRIBUTES)


@pytest.fixture(scope="module")
def report(fitted):
    """With labels the wrong way round, what depends on them is missed."""
    return fitted.constraint_report(X_EXTRA, 1 - Y_EXTRA, attributes=ATTRIBUTES_EXTRA)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def column(display, k):
    """The texts of a column at the right, of all panels; each has a text per row."""
    n_heads = 3
    columns = [texts(axes) for axes in display.axes_]
    columns[0] = columns[0][:-n_heads]
    return [text for panel in columns for text in np.array_split(panel, n_heads)[k].tolist()]


def test_each_constraint_is_named_above_its_sides_and_pairs(report):
    display = ConstraintReportDisplay.from_report(report)
    worst = display.drawn_["constraint"].iloc[-1].split("[")[1].strip("]")
    assert [names_of(axes) for axes in display.axes_] == [
        ["recall() >= 0.9", "false_positive_rate() <= 0.4"],
        ["balance", "upper", "lower"],
        ["ratio(positive_rate, by='sex') >= 0.8", f"worst: {worst}"],
    ]


def test_one_call_from_the_classifier(fitted, report):
    data = {"X": X_EXTRA, "y": 1 - Y_EXTRA, "attributes": ATTRIBUTES_EXTRA}
    display = ConstraintReportDisplay.from_estimator(fitted, **data)
    assert type(display) is ConstraintReportDisplay
    pd.testing.assert_frame_equal(display.report, report)
    half = ConstraintReportDisplay.from_estimator(fitted, **data, confidence_level=0.5)
    assert (half.report["ci_low"] >= report["ci_low"]).all()


def test_the_report_of_a_fit_shows_values_out_of_fold(fitted):
    report = fitted.constraint_report_
    display = ConstraintReportDisplay.from_report(report)
    row = report.iloc[0]
    interval = f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
    assert column(display, 0)[0] == f"{row['cross_fitted']:.3f} {interval}"


def test_without_intervals_what_is_satisfied_is_undecided(fitted):
    report = fitted.constraint_report_.drop(columns=["ci_low", "ci_high"])
    display = ConstraintReportDisplay.from_report(report)
    assert display.intervals_ == [None] * 3
    assert not any(len(line.get_xdata()) for line in display.met_)


def test_a_margin_is_a_stroke_beyond_the_bound(fitted):
    report = fitted.constraint_report_.assign(margin=[0.01, 0.02, 0.0, 0.0, 0.0, 0.0])
    display = ConstraintReportDisplay.from_report(report)
    strokes = [stroke[0, 0] for stroke in display.margins_[0].get_segments()]
    assert strokes == pytest.approx([0.9 + 0.01, 0.4 - 0.02])
    assert display.margins_[1:] == [None, None]


def table(*rows):
    columns = ["constraint", "n_rows", "bound", "value", "slack", "satisfied", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).astype({"satisfied": "boolean"})


def test_groups_that_are_absent_are_said_to_be_not_measured(fitted):
    women = ATTRIBUTES_EXTRA.assign(sex="F")
    with pytest.warns(UndefinedMetricWarning, match="not measured"):
        display = ConstraintReportDisplay.from_estimator(fitted, X_EXTRA, Y_EXTRA, attributes=women)
    assert [text == "not measured" for text in column(display, 0)] == [False] * 4 + [True]
    display.figure_.canvas.draw()


def test_shares_of_decisions_are_said_beside_those_without_constraints(fitted):
    report = fitted.constraint_report_
    (label, share, plain) = report.attrs["decisions"][1]
    assert label == "1"
    assert 0 < share < 1
    display = ConstraintReportDisplay.from_report(report)
    assert f"1 {share:.1%} (without constraints {plain:.1%})" in " ".join(
        texts(display.ax_)
    ).replace("\n", " ")
    data = {"X": X_EXTRA, "y": Y_EXTRA, "attributes": ATTRIBUTES_EXTRA}
    new = ConstraintReportDisplay.from_estimator(fitted, **data)
    assert f"1 {fitted.predict(X_EXTRA).mean():.1%} (" in " ".join(texts(new.ax_)).replace(
        "\n", " "
    )


def test_an_undefined_value_is_said():
    nan = np.nan
    rows = table(("precision() >= 0.5", 9, 0.5, nan, nan, False, nan, nan))
    display = ConstraintReportDisplay.from_report(rows)
    assert "undefined" in texts(display.axes_[0])
    display.figure_.canvas.draw()


@pytest.mark.thorough
def test_of_all_pairs_of_groups_the_worst_is_drawn():
    report = table(
        ("difference(recall, by='g') <= 0.1 [a - b]", 9, 0.1, -0.3, 0.4, True, -0.4, -0.2),
        ("difference(recall, by='g') <= 0.1 [a - c]", 9, 0.1, 0.0, 0.1, True, -0.1, 0.1),
        ("difference(recall, by='g') <= 0.1 [b - a]", 9, 0.1, 0.3, -0.2, False, 0.2, 0.4),
        ("difference(f1, by='g') <= 0.1 [a - b]", 9, 0.1, 0.0, 0.1, True, -0.1, 0.1),
    )
    every = ConstraintReportDisplay.from_report(report)
    assert len(every.drawn_) == 4, "nothing tells that rows belong together"
    goals = "difference(recall, by='g') <= 0.1", "difference(f1, by='g') <= 0.1"
    report.attrs["goals"] = [
        [text, "f1" in text, goals["f1" in text], text[-6:-1], True, "difference", "<="]
        for text in report["constraint"]
    ]
    display = ConstraintReportDisplay.from_report(report)
    assert [name[-6:] for name in display.drawn_["constraint"]] == ["b - a]", "a - b]"]
    assert len(ConstraintReportDisplay.from_report(report, pairs="all").drawn_) == 4
    refuses("pairs='both' must be", ConstraintReportDisplay.from_report, report, pairs="both")


# === RateReportDisplay draws what the report says ===============================================

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

Y_RATE = np.tile([1, 1, 0, 0], 25)
PREDICTED = np.r_[np.tile([1, 0, 0, 0], 15), np.tile([1, 1, 1, 0], 10)]
SEX = {"sex": np.repeat(["F", "M"], [60, 40])}
GOALS_RATE = {"found": recall() >= 0.6, "chosen": positive_rate()}


@pytest.fixture
def display():
    return RateReportDisplay.from_predictions(
        Y_RATE, PREDICTED, GOALS_RATE, by="sex", attributes=SEX
    )


def names_of(axes):
    return [label.get_text().replace("\n", " ").strip() for label in axes.get_yticklabels()]


def drawn(lines):
    return {float(y): float(x) for y, x in zip(lines.get_ydata(), lines.get_xdata(), strict=True)}


def test_values_intervals_and_bounds(display):
    report = rate_report(Y_RATE, PREDICTED, GOALS_RATE, by="sex", attributes=SEX)
    (axes,) = display.axes_
    assert names_of(axes) == ["found", "F", "M", "chosen", "F", "M"]
    assert report["verdict"].tolist()[:3] == ["undecided", "undecided", "met"]
    place = axes.get_yticks()
    assert (np.diff(place) > 0).all() and axes.get_ylim()[0] > axes.get_ylim()[1]
    kinds = display.undecided_, display.met_, display.unbounded_
    for (lines,), rows in zip(kinds, ([0, 1], [2], [3, 4, 5]), strict=True):
        expected = {place[row]: report["value"][row] for row in rows}
        assert drawn(lines) == pytest.approx(expected)
    assert not len(display.missed_[0].get_xdata())
    ends = np.array([s[:, 0] for s in display.intervals_[0].get_segments()])
    np.testing.assert_allclose(ends, report[["ci_low", "ci_high"]])
    assert [s[0, 0] for s in display.bounds_[0].get_segments()] == [0.6, 0.6, 0.6]
    assert axes.get_xlim() == (0.0, 1.0)
    texts = [text.get_text() for text in axes.texts]
    assert texts[1:3] == ["0.500 [0.313, 0.687]", "1.000 [0.832, 1.000]"]
    assert texts[6:9] == ["0.6"] * 3
    assert texts[12:15] == ["50", "30", "20"]
    assert texts[18:] == ["value [interval]", "bound", "rows"]
    pd.testing.assert_frame_equal(display.drawn_, report)


def test_verdicts_have_marks_of_different_shapes(display):
    (legend,) = [axes.get_legend() for axes in display.axes_]
    assert [text.get_text() for text in legend.get_texts()] == ["met", "undecided", "no bound"]
    lines = display.met_, display.missed_, display.undecided_, display.unbounded_
    shapes = [(one.get_marker(), one.get_markerfacecolor() == "white") for (one,) in lines]
    assert len(set(shapes)) == 4


TWICE = np.tile(Y_RATE, 2), np.tile(PREDICTED, 2)
RACE = {"race": np.tile(np.repeat(["A", "B", "C"], [40, 20, 40]), 2)}
PAIRS = {
    "80% rule": ratio(positive_rate, by="race") >= 0.8,
    "gap": difference(recall, by="race") <= 0.1,
    "error": error_rate(),
    "cost": cost({1: 5.0, 0: 0}) <= 3,
}


def test_each_scale_has_a_panel_and_only_the_worst_pair_is_drawn():
    display = RateReportDisplay.from_predictions(*TWICE, PAIRS, by="race", attributes=RACE)
    assert [names_of(axes) for axes in display.axes_] == [
        ["80% rule", "worst: A / C"],
        ["gap", "worst: C - A"],
        ["error", "A", "B", "C"],
        ["cost", "A", "B", "C"],
    ]
    # 1 of 4 is chosen in A and B and 3 of 4 in C; 1 of 2 positive rows, and all
    assert [*drawn(display.missed_[0]).values()] == pytest.approx([1 / 3])
    assert [*drawn(display.missed_[1]).values()] == pytest.approx([0.5])
    assert display.axes_[0].get_xlim()[0] == 0 and display.axes_[2].get_xlim() == (0, 1)
    assert [axes.get_xlabel() for axes in display.axes_] == ["ratio", "difference", "rate", ""]


def test_all_pairs_are_cut_with_arrows_where_they_leave_the_panel():
    report = rate_report(*TWICE, PAIRS["80% rule"], attributes=RACE)
    display = RateReportDisplay.from_report(report, pairs="all")
    (axes,) = display.axes_
    assert len(display.drawn_) == 6 and axes.get_xlim() == (0.0, 2.0)
    beyond = (report["value"] > 2).sum(), (report["ci_high"] > 2).sum()
    assert beyond == (2, 2)
    ends = np.array([s[:, 0] for s in display.intervals_[0].get_segments()])
    np.testing.assert_allclose(ends, report[["ci_low", "ci_high"]].clip(upper=2.0))
    x = np.array(display.met_[0].get_xdata())
    assert (x < 2).all() and (x > 1.9).sum() == 2
    assert [len(line.get_xdata()) for line in axes.lines if line.get_marker() == ">"] == [2]
    assert "3.000" in " ".join(text.get_text() for text in axes.texts)


def test_a_violated_pair_is_worse_than_an_undecided_one_with_less_slack():
    report = rate_report(*TWICE, PAIRS["80% rule"], attributes=RACE)
    report.loc[0, "verdict"] = "violated"
    report.loc[1:, "verdict"] = "undecided"
    display = RateReportDisplay.from_report(report)
    assert names_of(display.axes_[0])[1] == "worst: A / B"
    assert report["slack"].idxmin() == 1


def test_undefined_values_and_open_intervals_are_left_out():
    rare = {"rare": (Y_RATE == 1) & (np.arange(100) < 5)}
    with pytest.warns(UserWarning, match="Fewer than"):
        report = rate_report(
            Y_RATE, PREDICTED, [precision() >= 0.5, recall("rare")], attributes=rare
        )
    report.loc[1, "ci_high"] = np.inf
    display = RateReportDisplay.from_report(report)
    assert sum(len(segment) > 0 for segment in display.intervals_[0].get_segments()) == 1


def test_small_rates_end_below_one():
    rare = np.arange(2000) % 100 == 0
    display = RateReportDisplay.from_predictions(None, rare, positive_rate() <= 0.015)
    assert display.axes_[0].get_xlim() == (0.0, 0.02)
