"""RateReportDisplay draws what the report says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbandit.constrained import ConstrainedThreshold
from skbandit.evaluation import rate_report
from skbandit.inspection import RateReportDisplay
from skbandit.rates import cost, difference, error_rate, positive_rate, precision, ratio, recall

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

Y = np.tile([1, 1, 0, 0], 25)
PREDICTED = np.r_[np.tile([1, 0, 0, 0], 15), np.tile([1, 1, 1, 0], 10)]
SEX = {"sex": np.repeat(["F", "M"], [60, 40])}
GOALS = {"found": recall() >= 0.6, "chosen": positive_rate()}


@pytest.fixture
def display():
    return RateReportDisplay.from_predictions(Y, PREDICTED, GOALS, by="sex", attributes=SEX)


def names_of(axes):
    return [label.get_text().replace("\n", " ").strip() for label in axes.get_yticklabels()]


def drawn(lines):
    return {float(y): float(x) for y, x in zip(lines.get_ydata(), lines.get_xdata(), strict=True)}


def test_values_intervals_and_bounds(display):
    report = rate_report(Y, PREDICTED, GOALS, by="sex", attributes=SEX)
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
    assert texts[6:9] == ["50", "30", "20"]
    assert texts[12:] == ["value [interval]", "rows"]
    pd.testing.assert_frame_equal(display.drawn_, report)


def test_verdicts_have_marks_of_different_shapes(display):
    (legend,) = [axes.get_legend() for axes in display.axes_]
    assert [text.get_text() for text in legend.get_texts()] == ["met", "undecided", "no bound"]
    lines = display.met_, display.missed_, display.undecided_, display.unbounded_
    shapes = [(one.get_marker(), one.get_markerfacecolor() == "white") for (one,) in lines]
    assert len(set(shapes)) == 4


def test_rates_alone_have_no_bounds_and_no_legend():
    display = RateReportDisplay.from_predictions(Y, PREDICTED, recall())
    assert display.bounds_ == [None] and display.axes_[0].get_legend() is None


TWICE = np.tile(Y, 2), np.tile(PREDICTED, 2)
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


def test_without_attributes_each_row_is_drawn_as_it_is():
    report = rate_report(*TWICE, PAIRS["80% rule"], attributes=RACE)
    report.attrs.clear()
    assert len(RateReportDisplay.from_report(report).drawn_) == 6


def test_small_rates_end_below_one():
    rare = np.arange(2000) % 100 == 0
    display = RateReportDisplay.from_predictions(None, rare, positive_rate() <= 0.015)
    assert display.axes_[0].get_xlim() == (0.0, 0.02)


def test_groups_are_indented_below_their_goal(display):
    display.figure_.canvas.draw()
    labels = display.axes_[0].get_yticklabels()
    lefts = [label.get_window_extent().x0 for label in labels]
    assert len(set(np.round(lefts))) == 1 and labels[1].get_text().startswith("  ")
    ends = [text.get_window_extent().x1 for text in display.axes_[0].texts]
    assert np.ptp(ends[:6]) < 1 and np.ptp(ends[6:12]) < 1, "two columns of numbers"
    assert min(ends) > display.axes_[0].bbox.x1


def test_reports_of_constraints_are_drawn_too():
    people = np.random.default_rng(0).normal(size=(400, 1))
    sex = {"sex": np.where(people[:, 0] > 0, "F", "M")}
    goals = [recall() >= 0.5, difference(positive_rate, by="sex") <= 0.9]
    clf = ConstrainedThreshold(LogisticRegression(), constraints=goals)
    clf.fit(people, people[:, 0] > 0.5, attributes=sex)
    display = RateReportDisplay.from_report(clf.constraint_report_)
    assert [names_of(axes) for axes in display.axes_] == [
        ["recall() >= 0.5"],
        ["difference(positive_rate, by='sex') <= 0.9", "worst: F - M"],
    ]
    assert display.drawn_["value"][0] == clf.constraint_report_["cross_fitted"][0]


def test_undefined_values_and_open_intervals_are_left_out():
    rare = {"rare": (Y == 1) & (np.arange(100) < 5)}
    with pytest.warns(UserWarning, match="Fewer than"):
        report = rate_report(Y, PREDICTED, [precision() >= 0.5, recall("rare")], attributes=rare)
    report.loc[1, "ci_high"] = np.inf
    display = RateReportDisplay.from_report(report)
    assert sum(len(segment) > 0 for segment in display.intervals_[0].get_segments()) == 1


def test_wrong_reports():
    with pytest.raises(TypeError, match="report must be a DataFrame"):
        RateReportDisplay.from_report({"goal": []})
    report = rate_report(Y, PREDICTED, recall()).drop(columns="ci_low")
    with pytest.raises(ValueError, match="must have one column 'ci_low'"):
        RateReportDisplay.from_report(report)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        RateReportDisplay.from_predictions(Y, PREDICTED, recall(), ax=[])
    with pytest.raises(ValueError, match="pairs='some' must be 'worst' or 'all'"):
        RateReportDisplay.from_predictions(Y, PREDICTED, recall(), pairs="some")
