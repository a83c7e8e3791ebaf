"""ReplayDisplay: what is drawn is what the replay found, at every horizon."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from skbandit.inspection import ArmSharesDisplay, ReplayDisplay
from skbandit.inspection._style import GRAY, PALETTE
from tests.policies import Always
from tests.worlds import refuses

# === ReplayDisplay: what is drawn is what the replay found, at every horizon ====================

LOG = make_bandit_log(4000, n_arms=4, n_features=2, base_rate=0.2, random_state=0)
TWICE = {"subsample": 0.5, "n_repeats": 2, "random_state": 0}


@pytest.fixture(scope="module")
def result():
    return replay(GLMUCBPolicy(), LOG.X, LOG.y, **TWICE)


@pytest.fixture(scope="module")
def deployed():
    return replay(GLMUCBPolicy(), LOG.X, LOG.y, **TWICE, deployment_share=0.3)


def curve(display, policy="policy", bucket="learning"):
    curves = display.curves
    return curves[(curves["policy"] == policy) & (curves["bucket"] == bucket)]


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_every_point_is_a_running_mean_of_the_history(result):
    drawn = curve(ReplayDisplay.from_result(result)).set_index("horizon")
    history = result.history.pivot(index="step", columns="run", values="mean_reward")
    expected = history.mean(axis=1).loc[drawn.index]
    np.testing.assert_allclose(drawn["mean_reward"], expected)
    assert drawn.index[-1] == result.runs["n_accepted"].min()
    assert drawn.index.is_monotonic_increasing and drawn.index.is_unique and len(drawn) == 60


def test_the_last_point_is_the_result_cut_to_equal_horizons(result):
    display = ReplayDisplay.from_result(result, confidence_level=0.8)
    last = display.curves.iloc[-1]
    cut = result.at(int(last["horizon"]))
    assert last["mean_reward"] == cut.mean_reward
    assert (last["low"], last["high"]) == cut.interval(0.8)
    wider = ReplayDisplay.from_result(result).curves
    # early ones end at 0, the smallest reward
    assert (wider["low"] <= display.curves["low"]).all()
    assert wider["low"].iloc[-1] < display.curves["low"].iloc[-1]


def test_what_is_drawn_is_the_table(deployed):
    display = ReplayDisplay.from_result(deployed)
    assert list(display.lines_) == [("policy", "learning"), ("policy", "deployment")]
    for key, line in display.lines_.items():
        table = curve(display, *key)
        np.testing.assert_array_equal(line.get_xdata(), table["horizon"])
        np.testing.assert_array_equal(line.get_ydata(), table["mean_reward"])
        vertices = display.intervals_[key].get_paths()[0].vertices
        assert vertices[:, 1].min() == table["low"].min()
        assert vertices[:, 1].max() == table["high"].max()
    (logged,) = display.logged_
    assert set(logged.get_ydata()) == {LOG.y["reward"].mean()}
    assert legend_of(display) == ["policy", "policy, deployment", "the log itself"]
    assert display.lines_["policy", "deployment"].get_linestyle() == "--"


def test_the_deployment_bucket_follows_its_own_rewards(deployed):
    last = curve(ReplayDisplay.from_result(deployed), bucket="deployment").iloc[-1]
    assert last["mean_reward"] == deployed.at(int(last["horizon"])).deployment.mean_reward
    alone = ReplayDisplay.from_result(deployed.deployment)
    assert list(alone.lines_) == [("policy", "deployment")]


def test_several_by_name_have_colors_and_markers_of_their_own(result, deployed):
    display = ReplayDisplay.from_result({"first": result, "second": deployed})
    lines = display.lines_
    assert lines["first", "learning"].get_color() == PALETTE[0]
    assert lines["second", "learning"].get_color() == PALETTE[1]
    assert lines["second", "deployment"].get_color() == PALETTE[1]
    markers = {lines[name, "learning"].get_marker() for name in ("first", "second")}
    assert len(markers) == 2
    assert len(display.logged_) == 1
    assert legend_of(display)[-1] == "the log itself"


def test_one_call_from_the_policy(result):
    drawn = ReplayDisplay.from_estimator(GLMUCBPolicy(), LOG.X, LOG.y, n_repeats=2, random_state=0)
    pd.testing.assert_frame_equal(
        drawn.curves, ReplayDisplay.from_result({"GLMUCBPolicy": result}).curves
    )
    options = {"deployment_share": 0.3, "max_accepted": 100, "random_state": 0}
    drawn = ReplayDisplay.from_estimator(GLMUCBPolicy(), LOG.X, LOG.y, name="ours", **options)
    assert list(drawn.lines_) == [("ours", "learning"), ("ours", "deployment")]
    assert drawn.curves["horizon"].max() == 100


def test_a_second_policy_on_the_same_axes_has_another_color(result):
    first = ReplayDisplay.from_result({"first": result})
    second = ReplayDisplay.from_result({"second": result}, ax=first.ax_)
    assert second.ax_ is first.ax_ and len(plt.get_fignums()) == 1
    assert legend_of(second) == ["first", "second", "the log itself"]
    assert second.lines_["second", "learning"].get_color() == PALETTE[1]


def test_a_single_path_has_no_interval_unless_nothing_is_learned():
    learned = ReplayDisplay.from_result(replay(GLMUCBPolicy(), LOG.X, LOG.y, random_state=0))
    assert learned.intervals_ == {} and learned.curves[["low", "high"]].isna().all(axis=None)
    fixed = ReplayDisplay.from_result(replay(Always(1), LOG.X, LOG.y, random_state=0))
    assert list(fixed.intervals_) == [("policy", "learning")]


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_what_cannot_be_drawn_is_explained(result):
    nothing = replay(Always("none"), LOG.X, LOG.y.astype({"action": str}), available=POOLS)
    refuses("'idle' has a run that kept no event", ReplayDisplay.from_result, {"idle": nothing})
    with pytest.raises(TypeError, match=r"must be a ReplayResult, .* or a dict of them, got \["):
        ReplayDisplay.from_result([result])
    with pytest.raises(ValueError, match="confidence_level=95 must lie between 0 and 1"):
        ReplayDisplay.from_result(result, confidence_level=95)
    assert not plt.get_fignums()


# One arm more than was ever played.
POOLS = [("0", "1", "2", "3", "none")] * len(LOG.y)


# === ArmSharesDisplay: what is drawn are the shares of the arms, part by part ===================

LOG_SHARES = make_bandit_log(
    4000, n_arms=12, n_features=2, n_available=6, base_rate=0.2, random_state=0
)


@pytest.fixture(scope="module")
def result_shares():
    return replay(GLMUCBPolicy(), LOG_SHARES.X, LOG_SHARES.y, **TWICE, deployment_share=0.4)


def counts(display, n_events):
    """The events of each arm, from shares of parts of equal numbers, to be rounded."""
    size = n_events / len(display.shares)
    return (display.shares * size).sum()


def size(area):
    """The surface of an area, by the shoelace formula."""
    x, y = area.get_paths()[0].vertices.T
    return abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


def test_shares_of_each_part_are_counted():
    action = np.repeat(["a", "b", "a", "c"], [25, 15, 20, 20])
    display = ArmSharesDisplay.from_log(action)
    assert display.shares.to_dict("list") == {
        "a": [1.0, 0.25, 1.0, 0.0], "b": [0.0, 0.75, 0.0, 0.0], "c": [0.0, 0.0, 0.0, 1.0]
    }  # fmt: skip
    assert display.shares.index.left.tolist() == [1, 21, 41, 61]
    assert display.shares.index.right.tolist() == [21, 41, 61, 80]


def test_areas_are_stacked_shares():
    display = ArmSharesDisplay.from_log(LOG_SHARES.y["action"].to_numpy())
    width = display.shares.index.length.to_numpy()
    others = display.shares.drop(columns=list(display.areas_)).sum(axis=1)
    stack = [(area, display.shares[arm]) for arm, area in display.areas_.items()]
    below = np.zeros(len(width))
    for area, share in [*stack, (display.others_, others)]:
        assert size(area) == pytest.approx((share * width).sum())
        height = area.get_paths()[0].vertices[:, 1]
        assert height.min() == pytest.approx(below.min())
        below = below + share.to_numpy()
        assert height.max() == pytest.approx(below.max())
    np.testing.assert_allclose(below, 1)


def test_the_most_common_arms_have_colors_the_others_are_gray():
    display = ArmSharesDisplay.from_log(LOG_SHARES.y)
    common = LOG_SHARES.y["action"].value_counts().index[:7].tolist()
    assert sorted(display.areas_) == sorted(common)
    assert [to_hex(area.get_facecolor()[0]).upper() for area in display.areas_.values()] == [
        *PALETTE
    ]
    assert to_hex(display.others_.get_facecolor()[0]).upper() == GRAY
    assert legend_of(display)[0] == "5 others"


def test_more_arms_than_colors_are_told_apart_by_patterns():
    assert legend_of(ArmSharesDisplay.from_log(LOG_SHARES.y, arms=[])) == ["12 others"]
    display = ArmSharesDisplay.from_log(LOG_SHARES.y, arms=range(12))
    assert display.others_ is None
    looks = {(to_hex(a.get_facecolor()[0]), a.get_hatch()) for a in display.areas_.values()}
    assert len(looks) == 12


def test_a_replay_is_counted_over_all_runs(result_shares):
    display = ArmSharesDisplay.from_result(result_shares)
    kept = result_shares.history[result_shares.history["bucket"] == "learning"]
    part = np.searchsorted(display.shares.index.left, kept["step"], side="right") - 1
    expected = pd.crosstab(part, kept["action"].to_numpy(), normalize="index")
    np.testing.assert_allclose(display.shares[expected.columns], expected)
    assert display.shares.drop(columns=expected.columns).to_numpy().sum() == 0
    assert display.ax_.get_xlabel() == "event played, T"


def test_events_of_one_day_are_in_one_part():
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.repeat(np.arange(7), 100), unit="D")
    log = pd.DataFrame({"action": np.tile(np.repeat(["a", "b"], 50), 7), "timestamp": day})
    shares = ArmSharesDisplay.from_log(log).shares
    assert len(shares) == 6 and (shares.index.right > shares.index.left).all()
    np.testing.assert_allclose(shares, 0.5)
    at_once = ArmSharesDisplay.from_log(log.assign(timestamp=day[0]))
    assert at_once.ax_.get_xlabel() == "event"


def test_shares_by_one_call_from_the_policy():
    drawn = ArmSharesDisplay.from_estimator(
        GLMUCBPolicy(), LOG_SHARES.X, LOG_SHARES.y, n_repeats=2, random_state=0, max_accepted=60
    )
    result = replay(GLMUCBPolicy(), LOG_SHARES.X, LOG_SHARES.y, **TWICE, max_accepted=60)
    pd.testing.assert_frame_equal(drawn.shares, ArmSharesDisplay.from_result(result).shares)
    assert len(drawn.shares) == 2 * 60 // 20


# --- time ----------------------------------------------------------------------------------


def test_time_is_read_from_the_log_and_put_in_order():
    shuffled = LOG_SHARES.y.sample(frac=1, random_state=0)
    display = ArmSharesDisplay.from_log(shuffled)
    in_order = ArmSharesDisplay.from_log(LOG_SHARES.y).shares
    pd.testing.assert_frame_equal(display.shares[in_order.columns], in_order)
    assert display.ax_.get_xlabel() == "time in seconds"
    assert display.shares.index.left[0] == LOG_SHARES.y["timestamp"].min()


@pytest.mark.parametrize("zone", [None, "Europe/Zurich"])
def test_datetimes_stay_datetimes(zone):
    times = pd.to_datetime(LOG_SHARES.y["timestamp"], unit="s").dt.tz_localize(zone)
    display = ArmSharesDisplay.from_log(LOG_SHARES.y["action"].to_numpy(), timestamp=times)
    assert display.shares.index.left[0] == times.iloc[0]
    assert display.ax_.get_xlabel() == "time"
    display.figure_.canvas.draw()
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert "12:00" in ticks and max(map(len, ticks)) <= 6, "noon of the day in its own zone"


# --- where, and what cannot be drawn -------------------------------------------------------


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_shares_that_cannot_be_drawn_are_explained():
    with pytest.raises(ValueError, match=r"arms contains 'x', which is not one of \['a', 'b'\]"):
        ArmSharesDisplay.from_log(["a", "b"], arms=["a", "x"])
    with pytest.raises(ValueError, match="y has no column 'action'; its columns are"):
        ArmSharesDisplay.from_log(LOG_SHARES.y[["reward"]])
    refuses("y has no events", ArmSharesDisplay.from_log, LOG_SHARES.y[:0])
    with pytest.raises(TypeError, match="arms must be a list of labels, got 'ab'"):
        ArmSharesDisplay.from_log(["a", "b"], arms="ab")
    pools = [("a", "b", "none")] * 20
    log = pd.DataFrame({"action": ["a", "b"] * 10, "reward": 1.0})
    nothing = replay(Always("none"), np.zeros((20, 1)), log, available=pools)
    with pytest.raises(TypeError, match=r"result must be a ReplayResult, .* got {}"):
        ArmSharesDisplay.from_result({})
    refuses("the replay kept no event", ArmSharesDisplay.from_result, nothing)
    assert not plt.get_fignums()
