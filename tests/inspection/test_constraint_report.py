"""ConstraintReportDisplay: what is drawn is what the report says."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.evaluation import rate_report
from skbandit.inspection import ConstraintReportDisplay, RateReportDisplay
from skbandit.inspection._style import BLUE, DARK, VERMILLION
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

# === ConstraintReportDisplay: what is drawn is what the report says =============================

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


COLORS = {"met": BLUE, "violated": VERMILLION, "undecided": DARK}


def folded(report):
    """Without the ratio that is the inverse of the worse one."""
    pair = report[report["constraint"].str.contains(r"\[", regex=True)]
    ranks = pair.get("verdict", pair["satisfied"].astype(str)).map(RANKS)
    best = pair.assign(rank=ranks).sort_values(["rank", "slack"]).index[-1]
    return report.drop(best).reset_index(drop=True)


RANKS = {"violated": 0, "undecided": 1, "met": 2, "False": 0, "True": 1}


def places(display):
    """Where rows are drawn: not at the headings of the absolute value and the ratio."""
    ticks = display.ax_.get_yticks()
    assert len(ticks) == 7
    return ticks[[0, 1, 3, 4, 6]]


def numbers(display):
    """Values and bounds, as text."""
    found = texts(display)[:-2]
    return found[: len(found) // 2], found[len(found) // 2 :]


def draw_rates(report, ax):
    rates = report.rename(columns={"constraint": "goal"}).drop(columns="on")
    return RateReportDisplay.from_report(rates, ax=ax)


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def test_the_slacks_and_their_intervals(report):
    display = ConstraintReportDisplay.from_report(report)
    report, place = folded(report), places(display)
    pd.testing.assert_frame_equal(display.drawn_, report)
    edge = display.ax_.get_xlim()[1]
    for line, verdict in (
        (display.met_, "met"), (display.missed_, "violated"), (display.undecided_, "undecided"),
    ):  # fmt: skip
        rows = np.flatnonzero(report["verdict"] == verdict)
        assert len(rows)
        drawn = dict(zip(line.get_ydata(), line.get_xdata(), strict=True))
        assert set(drawn) == set(place[rows])
        for row in rows:
            slack = report["slack"][row]
            assert drawn[place[row]] == slack or drawn[place[row]] < edge < slack
    upper = report["constraint"].str.contains("<=|upper")
    segments = display.intervals_.get_segments()
    colors = map(to_hex, display.intervals_.get_colors())
    for segment, color, is_upper, row in zip(
        segments, colors, upper, report.itertuples(), strict=True
    ):
        ends = np.array([row.ci_low, row.ci_high]) - row.bound
        ends = np.sort(-ends if is_upper else ends).clip(max=edge)
        np.testing.assert_allclose(segment[:, 0], ends)
        assert (segment[:, 1] == place[row.Index]).all()
        assert color.upper() == COLORS[row.verdict]
    assert set(display.bound_.get_xdata()) == {0.0}


def test_the_first_constraint_is_on_top_and_named(report):
    display = ConstraintReportDisplay.from_report(report)
    report = folded(report)
    names = [label.get_text().replace("\n", " ") for label in display.ax_.get_yticklabels()]
    assert [name.strip() for name in names[:2]] == report["constraint"].tolist()[:2]
    assert [name.strip() for name in names[2:]] == [
        "balance", "upper", "lower", "ratio(positive_rate, by='sex') >= 0.8",
        "worst: " + report["constraint"].iloc[-1].split("[")[1].strip("]"),
    ]  # fmt: skip
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    for text, bound, row in zip(*numbers(display), report.itertuples(), strict=True):
        assert text == f"{row.value:.3f} [{row.ci_low:.3f}, {row.ci_high:.3f}]"
        assert bound == f"{row.bound:g}"


def test_one_call_from_the_classifier(fitted, report):
    data = {"X": X_EXTRA, "y": 1 - Y_EXTRA, "attributes": ATTRIBUTES_EXTRA}
    display = ConstraintReportDisplay.from_estimator(fitted, **data)
    pd.testing.assert_frame_equal(display.report, report)
    half = ConstraintReportDisplay.from_estimator(fitted, **data, confidence_level=0.5)
    assert (half.report["ci_low"] >= report["ci_low"]).all()


def test_any_classifier_with_such_a_report(report):
    clf = ConstrainedThreshold(
        RidgeClassifier(), constraints=recall() >= 0.9, confidence_level=0.5
    ).fit(X, Y)
    display = ConstraintReportDisplay.from_estimator(clf, X_EXTRA, Y_EXTRA)
    lines = display.met_, display.missed_, display.undecided_
    drawn = [x for line in lines for x in line.get_xdata()]
    assert drawn == clf.constraint_report(X_EXTRA, Y_EXTRA)["slack"].tolist()


def test_the_training_report_shows_what_was_left_out(fitted):
    report = fitted.constraint_report_
    display = ConstraintReportDisplay.from_report(report)
    row = report.iloc[0]
    interval = f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
    assert texts(display)[0] == f"{row['cross_fitted']:.3f} {interval}"
    assert display.undecided_.get_ydata()[0] == display.ax_.get_yticks()[0]
    without = report.drop(columns=["ci_low", "ci_high"])
    display = ConstraintReportDisplay.from_report(without)
    assert display.intervals_ is None and not len(display.met_.get_xdata())
    assert len(display.undecided_.get_xdata()) == len(folded(report))


def test_a_margin_is_a_stroke_and_a_figure(fitted):
    asked = fitted.constraint_report_.assign(margin=[0.01, 0.02, 0.03, 0.03, 0.05, 0.05])
    display = ConstraintReportDisplay.from_report(asked)
    strokes = display.margins_.get_segments()
    assert [stroke[0, 0] for stroke in strokes] == [0.01, 0.02, 0.03, 0.03, 0.05]
    assert numbers(display)[1][1] == "0.4"
    assert ConstraintReportDisplay.from_report(fitted.constraint_report_).margins_ is None


def table(*rows):
    columns = ["constraint", "n_rows", "bound", "value", "slack", "satisfied", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).astype({"satisfied": "boolean"})


def test_a_value_on_its_bound_takes_its_side_from_the_text():
    display = ConstraintReportDisplay.from_report(
        table(
            ("recall() >= 0.5", 9, 0.5, 0.5, 0.0, True, 0.4, 0.7),
            ("churn('old') <= 0.5", 9, 0.5, 0.5, 0.0, True, 0.4, 0.7),
            ("my rule", 9, 0.5, 0.5, 0.0, True, 0.4, 0.7),
        )
    )
    at_least, at_most, unknown = display.intervals_.get_segments()
    np.testing.assert_allclose(at_least[:, 0], [-0.1, 0.2])
    np.testing.assert_allclose(at_most[:, 0], [-0.2, 0.1])
    assert not unknown.size, "which way it points is not known: only the figures tell"


def test_what_is_met_by_far_does_not_dwarf_the_rest():
    close = [("a >= 0.5", 9, 0.5, 0.52, 0.02, True, 0.51, 0.54)] * 3
    display = ConstraintReportDisplay.from_report(
        table(*close, ("b >= 0.5", 9, 0.5, 9.5, 9.0, True, 9.0, 10.0))
    )
    edge = display.ax_.get_xlim()[1]
    assert 0.04 < edge < 1
    place = display.ax_.get_yticks().tolist()
    assert display.beyond_.get_ydata().tolist() == place[3:]
    assert display.beyond_.get_xdata().tolist() == [edge]
    assert display.met_.get_ydata().tolist() == place
    assert display.met_.get_xdata()[:3].tolist() == [0.02] * 3
    assert 0.8 * edge < display.met_.get_xdata()[3] < edge
    assert texts(display)[3] == "9.500 [9.000, 10]"


def test_what_is_missed_by_far_is_in_the_picture():
    close = [("a >= 0.5", 9, 0.5, 0.52, 0.02, True, 0.49, 0.54)] * 3
    display = ConstraintReportDisplay.from_report(
        table(*close, ("b <= 0.5", 9, 0.5, 9.5, -9.0, False, 9.0, 10.0))
    )
    assert display.ax_.get_xlim()[0] < -9.5
    assert display.missed_.get_xdata().tolist() == [-9.0]
    assert not len(display.beyond_.get_xdata())


def test_groups_that_are_absent_are_said_to_be_not_measured(fitted):
    women = ATTRIBUTES_EXTRA.assign(sex="F")
    with pytest.warns(UndefinedMetricWarning, match="not measured"):
        display = ConstraintReportDisplay.from_estimator(fitted, X_EXTRA, Y_EXTRA, attributes=women)
    values, _ = numbers(display)
    assert values[-1] == "not measured" and "not measured" not in values[:-1]
    display.figure_.canvas.draw()


def test_what_is_undefined_or_never_measured_is_said(fitted):
    nan = np.nan
    display = ConstraintReportDisplay.from_report(
        table(
            ("precision() >= 0.5", 9, 0.5, nan, nan, False, nan, nan),
            ("recall() >= 0.5", 0, 0.5, nan, nan, pd.NA, nan, nan),
        )
    )
    assert numbers(display)[0] == ["undefined", "not measured"]
    display.figure_.canvas.draw()


@pytest.mark.thorough
def test_without_constraints_it_is_an_empty_picture():
    clf = ConstrainedRampClassifier().fit(X, Y)
    for report in (clf.constraint_report_, clf.constraint_report(X, Y)):
        display = ConstraintReportDisplay.from_report(report)
        assert display.ax_.get_yticklabels() == [] and numbers(display) == ([], [])
        display.figure_.canvas.draw()


def test_a_precision_reads_like_the_rest():
    clf = ConstrainedRampClassifier(constraints=precision() >= 0.7).fit(X, Y)
    display = ConstraintReportDisplay.from_estimator(clf, X_EXTRA, Y_EXTRA)
    assert len(numbers(display)[0]) == 1


@pytest.mark.thorough
def test_a_pipeline_is_measured_by_its_last_step():
    pipeline = make_pipeline(StandardScaler(), ConstrainedRampClassifier(constraints=GOALS))
    pipeline.fit(X, Y, constrainedrampclassifier__attributes=ATTRIBUTES)
    drawn = ConstraintReportDisplay.from_estimator(pipeline, X, Y, attributes=ATTRIBUTES)
    fitted, scaled = pipeline[-1], pipeline[:-1].transform(X)
    expected = fitted.constraint_report(scaled, Y, attributes=ATTRIBUTES)
    pd.testing.assert_frame_equal(drawn.report, expected)


def test_what_has_no_report_is_named():
    with pytest.raises(TypeError, match="RidgeClassifier has no declared constraints"):
        ConstraintReportDisplay.from_estimator(RidgeClassifier(), X, Y)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"slack": "much"}, "report: column 'slack' must be numbers: could not convert"),
        ({"bound": [[1]] * 2}, "report: column 'bound' must be numbers"),
        ({"satisfied": 2}, "report: column 'satisfied' must be true or false, found 2"),
    ],
)
def test_what_is_no_report_is_refused_before_anything_is_drawn(changed, message):
    report = pd.DataFrame(
        {"constraint": ["recall() >= 0.5", None], "n_rows": 9, "bound": 0.5, "value": 0.6,
         "slack": 0.1, "satisfied": True, "ci_low": 0.4, "ci_high": 0.8}
    )  # fmt: skip
    refuses(message, ConstraintReportDisplay.from_report, report.assign(**changed))
    with pytest.raises(ValueError, match="report must have one column 'ci_high', got"):
        ConstraintReportDisplay.from_report(report.drop(columns="ci_high"))
    with pytest.raises(TypeError, match="report must be a DataFrame, got dict"):
        ConstraintReportDisplay.from_report(report.to_dict())
    assert not plt.get_fignums()
    display = ConstraintReportDisplay.from_report(report)
    assert display.undecided_.get_ydata().tolist() == display.ax_.get_yticks().tolist()


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
        [text, "f1" in text, goals["f1" in text], text[-6:-1], True, "difference"]
        for text in report["constraint"]
    ]
    display = ConstraintReportDisplay.from_report(report)
    assert [name[-6:] for name in display.drawn_["constraint"]] == ["b - a]", "a - b]"]
    assert len(ConstraintReportDisplay.from_report(report, pairs="all").drawn_) == 4
    refuses("pairs='both' must be", ConstraintReportDisplay.from_report, report, pairs="both")


def test_groups_whose_names_look_like_pairs_are_all_drawn():
    rows = table(
        ("each(recall, by='route') >= 0.5 [NY - LA]", 9, 0.5, 0.8, 0.3, True, 0.6, 0.9),
        ("each(recall, by='route') >= 0.5 [LA - NY]", 9, 0.5, 0.7, 0.2, True, 0.5, 0.8),
    )
    assert len(ConstraintReportDisplay.from_report(rows).drawn_) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("draw", [ConstraintReportDisplay.from_report, draw_rates])
def test_nothing_is_drawn_over_a_neighbor(draw, report):
    figure, pair = plt.subplots(1, 2, figsize=(14, 4), layout="constrained")
    for ax in pair:
        draw(report, ax=ax)
    figure.canvas.draw()
    left, right = (ax.get_tightbbox() for ax in pair)
    assert left.x1 <= right.x0
    for ax in pair:
        assert ax.bbox.width > figure.bbox.width / 6, "labels leave room for the figure"
        for panel in ax.child_axes or [ax]:
            for text in panel.texts:
                assert panel.bbox.x1 < text.get_window_extent().x0


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
    display = RateReportDisplay.from_predictions(Y_RATE, PREDICTED, recall())
    assert display.bounds_ == [None] and display.axes_[0].get_legend() is None


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


@pytest.mark.thorough
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
    rare = {"rare": (Y_RATE == 1) & (np.arange(100) < 5)}
    with pytest.warns(UserWarning, match="Fewer than"):
        report = rate_report(
            Y_RATE, PREDICTED, [precision() >= 0.5, recall("rare")], attributes=rare
        )
    report.loc[1, "ci_high"] = np.inf
    display = RateReportDisplay.from_report(report)
    assert sum(len(segment) > 0 for segment in display.intervals_[0].get_segments()) == 1


def test_wrong_reports():
    with pytest.raises(TypeError, match="report must be a DataFrame"):
        RateReportDisplay.from_report({"goal": []})
    report = rate_report(Y_RATE, PREDICTED, recall()).drop(columns="ci_low")
    refuses("must have one column 'ci_low'", RateReportDisplay.from_report, report)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        RateReportDisplay.from_predictions(Y_RATE, PREDICTED, recall(), ax=[])
    with pytest.raises(ValueError, match="pairs='some' must be 'worst' or 'all'"):
        RateReportDisplay.from_predictions(Y_RATE, PREDICTED, recall(), pairs="some")
