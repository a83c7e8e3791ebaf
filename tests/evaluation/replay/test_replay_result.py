"""ReplayResult: its figures by hand, its intervals, and what it says of itself."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from skbandit.evaluation import ReplayResult, replay
from skbandit.evaluation._replay._result import LogTotals, ReplayMetadata, Trajectory
from skbandit.exceptions import ReplayCoverageWarning
from tests.policies import Always, EpsilonGreedy


def run(rewards, deployment=None, *, n_events=None):
    """A run that kept every third event."""
    n = len(rewards)
    deployment = np.zeros(n, dtype=bool) if deployment is None else np.array(deployment, dtype=bool)
    event = 3 * np.arange(n)
    return Trajectory(
        event, np.arange(n) % 2, np.array(rewards, float), deployment, event + 1, n_events or 3 * n
    )


def result_of(*runs, logged_mean=0.25, logged_variance=0.2, clipped=0.0, **metadata):
    totals = LogTotals(60, logged_mean, logged_variance, (-np.inf, np.inf), 60 * clipped, 0.2)
    known = {"arms": np.array(["a", "b"], dtype=object), "c": 1 / 3, "learns": True}
    return ReplayResult(runs, ReplayMetadata(totals=totals, **(known | metadata)))


ONE = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1]
TWO = [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]


def test_figures_by_hand():
    result = result_of(run(ONE, n_events=40), run(TWO, n_events=35))
    assert result.mean_reward == pytest.approx((0.5 + 0.7) / 2)  # each run counts the same
    assert result.lift == pytest.approx(0.6 / 0.25)
    assert (result.n_accepted, result.n_events, result.horizon) == (22, 75, 11)
    assert result.efficiency == pytest.approx(22 / 75)
    assert result.expected == pytest.approx(25)
    expected = pd.DataFrame(
        {"n_events": [40, 35], "n_accepted": [12, 10], "mean_reward": [0.5, 0.7]},
        index=pd.RangeIndex(2, name="run"),
    )
    pd.testing.assert_frame_equal(result.runs, expected)


def test_history_by_hand():
    result = result_of(run([0, 1, 1], [0, 1, 0]), run([1, 0]), deployment_share=0.2)
    expected = pd.DataFrame(
        {
            "run": [0, 0, 0, 1, 1],
            "event": [0, 3, 6, 0, 3],
            "bucket": ["learning", "deployment", "learning", "learning", "learning"],
            "step": [1, 1, 2, 1, 2],
            "action": ["a", "b", "a", "a", "b"],
            "reward": [0.0, 1.0, 1.0, 1.0, 0.0],
            "mean_reward": [0.0, 1.0, 0.5, 1.0, 0.5],
        }
    )
    found = result.history
    pd.testing.assert_frame_equal(found.astype({"bucket": str}), expected.astype({"bucket": str}))
    last = found[found["bucket"] == "learning"].groupby("run")["mean_reward"].last()
    assert last.tolist() == result.runs["mean_reward"].tolist()


def test_deployment_bucket_by_hand():
    result = result_of(run([0, 1, 1, 0], [0, 1, 0, 1]), run([1, 1], [0, 1]), deployment_share=0.5)
    assert result.mean_reward == pytest.approx((0.5 + 1) / 2)
    assert result.deployment.mean_reward == pytest.approx((0.5 + 1) / 2)
    assert (result.n_accepted, result.deployment.n_accepted) == (3, 3)
    assert result.expected == result.deployment.expected == pytest.approx(18 / 6)
    assert result.runs["deployment_n_accepted"].tolist() == [2, 1]
    assert result.runs["deployment_mean_reward"].tolist() == [0.5, 1.0]
    assert result_of(run(ONE)).deployment is None


# --- standard errors and intervals ---------------------------------------------------------


def test_one_run():
    result = result_of(run(ONE), learns=False)
    # the sum of squares is 3; the log's variance counts as one more observation
    error = np.sqrt((3 + 0.2) / 12 / 12)
    assert result.standard_error == pytest.approx(error)
    half = t.ppf(0.95, 12) * error
    assert result.interval(0.9) == pytest.approx((0.5 - half, 0.5 + half))


@pytest.mark.parametrize(
    ("terms", "share"),
    [({}, 1), ({"subsample": 0.4}, 0.4), ({"shuffle": True}, 36 / 60), ({"shuffle": True}, 0.6)],
)
def test_several_runs(terms, share):
    runs = run(ONE, n_events=36), run([*TWO, 0, 1], n_events=36)
    result = result_of(*runs, **terms)
    means = np.array([1 / 2, 8 / 12])
    within = (12 / 4 + 12 * (8 / 12) * (4 / 12) + 0.2) / (24 - 2 + 1)
    of_log, of_runs = within * share / 12, means.var(ddof=1) / 2
    assert result.standard_error == pytest.approx(np.sqrt(of_log + of_runs))
    freedom = (of_log + of_runs) ** 2 / (of_log**2 / 23 + of_runs**2 / 1)
    low, high = result.interval()
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, freedom) * result.standard_error)
    assert (high + low) / 2 == pytest.approx(result.mean_reward)


def test_runs_count_as_one_where_they_agree():
    once, thrice = (result_of(*[run(ONE)] * times) for times in (1, 3))
    assert thrice.standard_error == pytest.approx(once.standard_error, rel=0.05)


def test_equal_rewards_are_no_proof_of_no_spread():
    few, many = (result_of(run([0] * n), learns=False) for n in (10, 100))
    assert few.standard_error == pytest.approx(np.sqrt(0.2 / 10 / 10))
    assert 0 < many.standard_error < few.standard_error / 5
    assert result_of(run([0]), learns=False).standard_error == pytest.approx(np.sqrt(0.2))
    assert result_of(run(ONE), run(ONE), logged_variance=0.0).standard_error > 0
    flat = result_of(run([1] * 12), logged_variance=0.0, learns=False)
    assert flat.interval() == (1.0, 1.0)
    assert result_of(run([1] * 12), run([1] * 12), logged_variance=0.0).standard_error == 0


def test_interval_of_a_single_path_is_told():
    with pytest.warns(UserWarning, match="this path only"):
        result_of(run(ONE)).interval()
    result_of(run(ONE), learns=False).interval()
    result_of(run(ONE), run(TWO)).interval()


@pytest.mark.parametrize("level", [0, 1, 95, -0.1])
def test_wrong_level(level):
    with pytest.raises(ValueError, match=f"confidence_level={level} must lie between 0 and 1"):
        result_of(run(ONE)).interval(level)


# --- equal horizons ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"deployment_share": 0.4}, {"shuffle": True}])
def test_at_a_horizon_is_what_algorithm_1_finds(options):
    rng = np.random.default_rng(0)
    y = pd.DataFrame({"action": rng.integers(3, size=900), "reward": rng.random(900)})
    X = np.zeros((900, 1))
    options = options | {"n_repeats": 2, "random_state": 0}
    whole = replay(EpsilonGreedy(), X, y, **options)
    cut, short = whole.at(60), replay(EpsilonGreedy(), X, y, max_accepted=60, **options)
    pd.testing.assert_frame_equal(cut.history, short.history)
    pd.testing.assert_frame_equal(cut.runs, short.runs)
    assert cut.interval() == short.interval()
    assert cut.horizon == 60 < whole.horizon
    steps = whole.history.query("bucket == 'learning' and step == 60")["mean_reward"]
    np.testing.assert_allclose(steps, cut.runs["mean_reward"])
    if whole.deployment:
        assert cut.deployment.n_accepted == short.deployment.n_accepted > 0


@pytest.mark.parametrize("horizon", [0, 11])
def test_horizon_out_of_reach(horizon):
    with pytest.raises(
        ValueError, match=f"from 1 to 10, the length of the shortest run, got {horizon}"
    ):
        result_of(run(ONE), run(TWO)).at(horizon)


# --- nothing, and next to nothing ----------------------------------------------------------


def test_nothing_kept():
    result = result_of(run([], n_events=60))
    figures = [result.mean_reward, result.lift, result.standard_error, *result.interval()]
    assert np.isnan(figures).all()
    assert (result.n_accepted, result.efficiency, result.horizon) == (0, 0.0, 0)
    assert len(result.history) == 0 and result.runs["mean_reward"].isna().all()
    assert "none of 60 events kept, where c = 0.333 keeps 20 on average: there is no" in repr(
        result
    )
    with pytest.raises(ValueError, match="horizon"):
        result.at(1)


def test_a_run_without_events_is_left_out_of_the_mean():
    result = result_of(run(ONE), run([], n_events=60))
    assert result.mean_reward == 0.5
    assert result.runs["mean_reward"].isna().tolist() == [False, True]


def test_lift_over_nothing():
    assert np.isnan(result_of(run(ONE), logged_mean=0.0).lift)
    assert "log's" not in repr(result_of(run(ONE), logged_mean=0.0))


def test_repr():
    assert repr(result_of(run(ONE), learns=False)) == (
        "<ReplayResult: mean reward 0.5 ± 0.15, 2.00 x the log's, at horizon 12; "
        "kept 12 of 36 events, c = 0.333>"
    )
    assert repr(result_of(run(ONE))).endswith("c = 0.333; ± of this path only>")
    assert "2 runs, mean reward 0.6" in repr(result_of(run(ONE), run(TWO)))
    assert "(biased: above 12.5% of the p)" in repr(result_of(run(ONE), clipped=0.125))
    assert "on average" not in repr(result_of(run([1]), clipped=0.125))
    mixed = run(ONE + ONE, [0, 1] * 12)
    assert "deployment bucket, mean" in repr(result_of(mixed, deployment_share=0.5).deployment)
    few = repr(result_of(run([1, 0])))
    assert "2 of 6 events kept" in few and "too few" in few and "off_policy_value" in few


def test_lift_is_over_all_of_the_log():
    y = pd.DataFrame({"action": ["a", "b"] * 50, "reward": [3.0, 1.0] * 50})
    result = replay(Always("a"), np.zeros((100, 1)), y, subsample=0.6, random_state=0)
    assert (result.logged_mean, result.mean_reward, result.lift) == (2.0, 3.0, 1.5)
    with pytest.warns(ReplayCoverageWarning):
        assert replay(Always("a"), np.zeros((4, 1)), y[:4]).lift == 1.5
