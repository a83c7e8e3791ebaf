"""GoalMonitorDisplay: what is drawn is the history of the monitor."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from skbandit.evaluation import GoalMonitor
from skbandit.inspection import GoalMonitorDisplay
from skbandit.rates import each, positive_rate


@pytest.mark.thorough
def test_the_goal_that_is_chosen_is_drawn():
    day = np.repeat(np.arange(30), 40)
    table = pd.DataFrame({"site": np.tile(["n", "s"], 600)})
    decided = (np.arange(1200) % 10 < np.where((table["site"] == "s") & (day > 9), 7, 2)).astype(
        int
    )
    monitor = GoalMonitor(each(positive_rate, by="site") <= 0.4)
    time = pd.Timestamp("2026-03-01") + pd.Timedelta("1D") * day
    monitor.update(decided, attributes=table, time=time)
    calm, alarmed = (GoalMonitorDisplay.from_monitor(monitor, on=on) for on in ("n", "s"))
    history = monitor.history(on="s")
    np.testing.assert_array_equal(alarmed.line_.get_ydata(), history["value"])
    assert calm.alarm_ is None and calm.since_ is None
    since, seen = monitor.report().set_index("on").loc["s", ["since", "seen_in_30_days"]]
    assert alarmed.seen_.get_ydata()[0] == seen and 0.4 < seen < 0.6
    assert alarmed.since_.get_x() == alarmed.ax_.convert_xunits(since)
    assert alarmed.alarm_.get_xdata()[0] == history["time"][history["alarm"]].iloc[0]
    assert alarmed.bound_.get_ydata()[0] == 0.4
    assert alarmed.ax_.get_ylabel().endswith("s")
    with pytest.raises(ValueError, match="no row counts in"):
        GoalMonitorDisplay.from_monitor(monitor, on="elsewhere")


def test_one_period_is_seen():
    monitor = GoalMonitor(positive_rate() <= 0.4)
    monitor.update([0, 1, 0], time="2026-03-01")
    display = GoalMonitorDisplay.from_monitor(monitor)
    assert display.line_.get_marker() == "o" and display.interval_.get_linewidth()[0] > 0
