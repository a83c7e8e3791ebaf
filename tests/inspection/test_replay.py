"""ReplayDisplay: what is drawn is what the replay found, at every horizon."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import ReplaySplit, replay
from skbandit.inspection import ReplayDisplay
from skbandit.inspection._style import PALETTE
from tests.policies import Always

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


def test_more_policies_than_colors_are_drawn(result):
    display = ReplayDisplay.from_result({str(k): result for k in range(9)})
    assert len(display.lines_) == 9
    assert len({line.get_color() for line in display.lines_.values()}) == 6


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


@pytest.mark.filterwarnings("ignore:the policy has learned an event")
@pytest.mark.filterwarnings("ignore:the policy was fitted to this very log:UserWarning")
def test_pipelines_and_searches_are_named_by_their_policy():
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy()).fit(LOG.X, LOG.y)
    search = GridSearchCV(
        GLMUCBPolicy(), {"alpha": [0.1, 1.0]}, scoring=ReplayScorer(random_state=0),
        cv=ReplaySplit(2),
    ).fit(LOG.X, LOG.y)  # fmt: skip
    for policy in (pipeline, search):
        drawn = ReplayDisplay.from_estimator(policy, LOG.X, LOG.y, n_repeats=2, random_state=0)
        assert list(drawn.lines_) == [("GLMUCBPolicy", "learning")]


def test_a_single_path_has_no_interval_unless_nothing_is_learned():
    learned = ReplayDisplay.from_result(replay(GLMUCBPolicy(), LOG.X, LOG.y, random_state=0))
    assert learned.intervals_ == {} and learned.curves[["low", "high"]].isna().all(axis=None)
    fixed = ReplayDisplay.from_result(replay(Always(1), LOG.X, LOG.y, random_state=0))
    assert list(fixed.intervals_) == [("policy", "learning")]


def test_line_options_are_passed_on(result):
    display = ReplayDisplay.from_result(result).plot(line_kw={"linewidth": 5, "color": "black"})
    (line,) = display.lines_.values()
    assert line.get_linewidth() == 5 and line.get_color() == "black"


def test_names_are_taken_literally(result):
    display = ReplayDisplay.from_result({"$5 a click, $9 a sale": result})
    assert legend_of(display)[0] == r"\$5 a click, \$9 a sale"
    display.figure_.canvas.draw()


@pytest.mark.filterwarnings("ignore::skbandit.exceptions.ReplayCoverageWarning")
def test_what_cannot_be_drawn_is_explained(result):
    nothing = replay(Always("none"), LOG.X, LOG.y.astype({"action": str}), available=POOLS)
    with pytest.raises(ValueError, match="'idle' has a run that kept no event"):
        ReplayDisplay.from_result({"idle": nothing})
    with pytest.raises(TypeError, match=r"must be a ReplayResult, .* or a dict of them, got \["):
        ReplayDisplay.from_result([result])
    with pytest.raises(ValueError, match="result is empty"):
        ReplayDisplay.from_result({})
    with pytest.raises(ValueError, match="confidence_level=95 must lie between 0 and 1"):
        ReplayDisplay.from_result(result, confidence_level=95)
    assert not plt.get_fignums()


# One arm more than was ever played.
POOLS = [("0", "1", "2", "3", "none")] * len(LOG.y)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"horizon": "late"}, "curves: column 'horizon' must be numbers: could not convert"),
        ({"low": pd.Timestamp(0)}, "curves: column 'low' must be numbers: found datetime64"),
        ({"bucket": "other"}, "'bucket' must be 'learning' or 'deployment', found 'other'"),
    ],
)
def test_curves_that_are_none_are_refused_before_anything_is_drawn(result, changed, message):
    curves = ReplayDisplay.from_result(result).curves
    plt.close("all")
    with pytest.raises(ValueError, match=message):
        ReplayDisplay(curves.assign(**changed)).plot()
    with pytest.raises(ValueError, match="curves must have one column 'high', got"):
        ReplayDisplay(curves.drop(columns="high")).plot()
    with pytest.raises(TypeError, match="curves must be a DataFrame, got ndarray"):
        ReplayDisplay(curves.to_numpy()).plot()
    with pytest.raises(ValueError, match=r"line_kw=\{'hue': 'red'\} is not valid for Axes.plot"):
        ReplayDisplay(curves).plot(line_kw={"hue": "red"})
    with pytest.raises(ValueError, match="confidence_level='95%' must lie between 0 and 1"):
        ReplayDisplay.from_result(result, confidence_level="95%")
    assert not plt.get_fignums()


def test_missing_names_and_numbers_are_drawn(result):
    """No curve is left out because its name is missing."""
    curves = ReplayDisplay.from_result(result).curves
    half = np.arange(len(curves)) < len(curves) // 2
    curves["policy"] = np.where(half, "own", None)
    curves["low"] = pd.array(np.where(half, 0.0, np.nan), dtype="Float64")
    display = ReplayDisplay(curves).plot()
    assert {name for name, _ in display.lines_} == {"own", str(curves["policy"].iloc[-1])}
    assert {name for name, _ in display.intervals_} == {"own"}
