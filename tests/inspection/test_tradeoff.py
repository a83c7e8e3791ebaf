"""TradeoffDisplay: what is drawn is what the path measured."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import RampClassifier, constraint_path
from skbandit.inspection import TradeoffDisplay
from skbandit.rates import positive_rate, ratio, recall
from tests.people import ATTRIBUTES, ATTRIBUTES_EXTRA, X_EXTRA, Y_EXTRA, X, Y
from tests.worlds import refuses

RATIO = ratio(positive_rate, by="sex")
BOUNDS = [0.9, 0.5, 0.7]
BY_BOUND = [1, 2, 0]


def classifier(constraints=()):
    return RampClassifier(constraints=constraints, solver="newton")


@pytest.fixture(scope="module")
def path():
    clf = ConstrainedRampClassifier(constraints=RATIO >= 0.5)
    return constraint_path(clf, X, Y, bounds=BOUNDS, attributes=ATTRIBUTES)


@pytest.fixture(scope="module")
def test_rows(path):
    return path.measure(X_EXTRA, Y_EXTRA, attributes=ATTRIBUTES_EXTRA)


@pytest.fixture(scope="module")
def capped():
    """At most 30% answers, so that a recall of .9 and more cannot be."""
    clf = classifier([positive_rate() <= 0.3, recall() >= 0.1])
    return constraint_path(clf, X, Y, bounds=[0.95, 0.3, 0.9, 0.5], constraint=1)


def assert_line(line, x, y):
    np.testing.assert_array_equal(line.get_xdata(), x)
    np.testing.assert_array_equal(line.get_ydata(), y)


def legend_of(display):
    legend = display.ax_.get_legend()
    return None if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("x", ["value", "bound"])
def test_the_curves_are_the_figures_in_the_order_of_the_bounds(path, test_rows, x):
    display = TradeoffDisplay.from_path(path, test_rows, x=x)
    train, test = path.table.iloc[BY_BOUND], test_rows.iloc[BY_BOUND]
    assert_line(display.lines_["train"], train[x], train["objective"])
    assert_line(display.lines_["test"], test[x], test["objective"])
    intervals = display.interval_.get_segments()
    for segment, row in zip(intervals, test.itertuples(), strict=True):
        at = getattr(row, x)
        np.testing.assert_array_equal(segment, [[at, row.objective_low], [at, row.objective_high]])
    assert display.missed_ == {}
    assert legend_of(display) == [
        "training rows", "test rows", "confidence interval on test rows",
    ]  # fmt: skip


@pytest.mark.thorough
def test_one_call_from_data_to_figure(path, test_rows):
    display = TradeoffDisplay.from_estimator(
        ConstrainedRampClassifier(constraints=RATIO >= 0.5), X, Y, bounds=BOUNDS,
        attributes=ATTRIBUTES, X_test=X_EXTRA, y_test=Y_EXTRA, attributes_test=ATTRIBUTES_EXTRA,
    )  # fmt: skip
    pd.testing.assert_frame_equal(display.test, test_rows)
    columns = path.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(display.train[columns], path.table[columns])
    assert display.ax_.get_xlabel() == f"{RATIO}\n(bound, tighter →)"
    assert display.ax_.get_ylabel() == "error_rate()"
    assert display.figure_ is display.ax_.figure


def test_bounds_that_were_missed_are_crosses(capped):
    display = TradeoffDisplay.from_path(capped, capped.measure(X_EXTRA, Y_EXTRA), x="bound")
    assert display.lines_["train"].get_xdata().tolist() == [0.3, 0.5]
    missed = capped.table.iloc[[2, 0]]
    assert_line(display.missed_["train"], missed["bound"], missed["objective"])
    assert display.missed_["test"].get_xdata().tolist() == [0.9, 0.95]
    assert display.missed_["test"].get_marker() == "x"
    assert "training rows, bound missed in training" in legend_of(display)
    assert display.ax_.get_xlabel() == "recall()\n(bound, tighter →)"


def test_where_values_do_not_compare_the_bound_is_drawn():
    path = constraint_path(
        classifier(), X, Y, bounds=[0.7, 0.9], attributes=ATTRIBUTES,
        constraint=lambda kappa: positive_rate({"sex": "F"}) >= kappa * positive_rate({"sex": "M"}),
    )  # fmt: skip
    display = TradeoffDisplay.from_path(path)
    assert_line(display.lines_["train"], [0.7, 0.9], path.table["objective"])
    assert display.ax_.get_xlabel() == "kappa"


def test_another_x_is_refused(path):
    refuses("x='bounds' must be 'bound' or 'value'", TradeoffDisplay.from_path, path, x="bounds")
    assert not plt.get_fignums()


def test_plot_refuses_tables_of_another_path(path, test_rows):
    refuses("test has other bounds than train", TradeoffDisplay(path.table, test_rows[:1]).plot)
    refuses("test has other bounds than train", TradeoffDisplay(path.table, test_rows[::-1]).plot)
    assert not plt.get_fignums()


def test_what_is_no_axes_or_no_path_is_refused(path):
    figure, both = plt.subplots(ncols=2)
    for several in (both, (figure, both[0]), figure):
        with pytest.raises(TypeError, match=r"ax must be matplotlib Axes, got .* pass one"):
            TradeoffDisplay.from_path(path, ax=several)
    with pytest.raises(TypeError, match=r"path must be a ConstraintPath, .* got Data"):
        TradeoffDisplay.from_path(path.table)


@pytest.mark.thorough
def test_values_are_drawn_against_their_bound(path, test_rows):
    display = TradeoffDisplay.from_path(path, test_rows)
    bounds = sorted(BOUNDS)
    assert_line(display.bound_, bounds, bounds)
    figures = {
        "train": path.table["value"],
        "cross_fitted": path.table["cross_fitted"],
        "test": test_rows["value"],
    }
    assert list(display.values_) == list(figures)
    for name, figure in figures.items():
        assert_line(display.values_[name], bounds, figure.iloc[BY_BOUND])
    assert display.value_ax_ in display.figure_.axes and display.value_ax_ is not display.ax_


def test_values_need_a_figure_of_their_own(path):
    _, axes = plt.subplots()
    display = TradeoffDisplay.from_path(path, ax=axes)
    assert display.value_ax_ is None and display.values_ == {} and display.bound_ is None
    assert display.figure_.axes == [axes]
