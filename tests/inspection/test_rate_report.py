"""RateReportDisplay draws what the report says."""

import numpy as np
import pytest

from skbandit.evaluation import rate_report
from skbandit.inspection import RateReportDisplay
from skbandit.rates import positive_rate, precision, recall

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

Y = np.tile([1, 1, 0, 0], 25)
PREDICTED = np.r_[np.tile([1, 0, 0, 0], 15), np.tile([1, 1, 1, 0], 10)]
SEX = {"sex": np.repeat(["F", "M"], [60, 40])}
GOALS = {"found": recall() >= 0.6, "chosen": positive_rate()}


@pytest.fixture
def display():
    return RateReportDisplay.from_predictions(Y, PREDICTED, GOALS, by="sex", attributes=SEX)


def test_values_intervals_and_bounds(display):
    report = rate_report(Y, PREDICTED, GOALS, by="sex", attributes=SEX)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["found", "F", "M", "chosen", "F", "M"]
    assert report["verdict"].tolist()[:3] == ["undecided", "undecided", "met"]
    assert display.undecided_.get_ydata().tolist() == [0, 1]
    assert not len(display.missed_.get_xdata())
    np.testing.assert_allclose(display.met_.get_xdata(), report["value"].drop([0, 1]))
    ends = np.array([s[:, 0] for s in display.intervals_.get_segments()])
    np.testing.assert_allclose(ends, report[["ci_low", "ci_high"]])
    bounds = [s[0, 0] for s in display.bounds_.get_segments()]
    assert bounds == [0.6, 0.6, 0.6]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[1:3] == ["0.500 (n = 30), undecided", "1.000 (n = 20)"]


def test_no_text_covers_the_mark_of_its_row(display):
    values = rate_report(Y, PREDICTED, GOALS, by="sex", attributes=SEX)["value"]
    display.figure_.canvas.draw()
    for value, text in zip(values, display.ax_.texts, strict=True):
        mark, _ = display.ax_.transData.transform((value, 0.0))
        covered = text.get_window_extent()
        assert not covered.x0 <= mark <= covered.x1


def test_rates_alone_have_no_bounds():
    assert RateReportDisplay.from_predictions(Y, PREDICTED, recall()).bounds_ is None


def test_undefined_values_and_open_intervals_are_left_out():
    rare = {"rare": (Y == 1) & (np.arange(100) < 5)}
    with pytest.warns(UserWarning, match="Fewer than"):
        report = rate_report(Y, PREDICTED, [precision() >= 0.5, recall("rare")], attributes=rare)
    report.loc[1, "ci_high"] = np.inf
    display = RateReportDisplay.from_report(report)
    assert sum(len(segment) > 0 for segment in display.intervals_.get_segments()) == 1


def test_wrong_reports():
    with pytest.raises(TypeError, match="report must be a DataFrame"):
        RateReportDisplay.from_report({"goal": []})
    report = rate_report(Y, PREDICTED, recall()).drop(columns="ci_low")
    with pytest.raises(ValueError, match="must have one column 'ci_low'"):
        RateReportDisplay.from_report(report)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        RateReportDisplay.from_predictions(Y, PREDICTED, recall(), ax=[])
