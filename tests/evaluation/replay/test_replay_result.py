"""Results of replays: intervals, and differences of two policies."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import t

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    PolicyDifference,
    ReplayResult,
    off_policy_blocks,
    off_policy_value,
    replay,
    slate_ips,
    slate_pseudo_inverse,
)
from skbandit.evaluation._replay._result import LogTotals, ReplayMetadata, ReplayOptions, Trajectory
from skbandit.evaluation._score import Moments
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.inspection import RateReportDisplay
from tests.policies import Always, EpsilonGreedy

# === ReplayResult: its figures by hand, its intervals, and what it says of itself ===============


def run(rewards, deployment=None, *, n_events=None):
    """A run that kept every third event."""
    n = len(rewards)
    deployment = np.zeros(n, dtype=bool) if deployment is None else np.array(deployment, dtype=bool)
    event = 3 * np.arange(n)
    return Trajectory(
        event, np.arange(n) % 2, np.array(rewards, float), deployment, event + 1, n_events or 3 * n
    )


OPTIONS = "deployment_share", "shuffle", "subsample"


def result_of(*runs, logged_mean=0.25, logged_variance=0.2, clipped=0.0, **metadata):
    rewards = Moments(60, np.array([logged_mean]), np.array([[60 * logged_variance]]))
    totals = LogTotals(rewards, (-np.inf, np.inf), 60 * clipped, 0.2)
    known = {"arms": np.array(["a", "b"], dtype=object), "c": 1 / 3, "learns": True}
    chosen = {name: metadata.pop(name) for name in OPTIONS if name in metadata}
    options = ReplayOptions(**chosen)
    return ReplayResult(runs, ReplayMetadata(totals=totals, options=options, **known | metadata))


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


def test_interval_refuses_other_kinds_and_names_the_new_way():
    with pytest.raises(ValueError, match="off_policy_value"):
        result_of(run(ONE), run(TWO)).interval(kind="sequence")


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


# === The difference of two policies on one log, and its paired interval =========================

METHODS = ("snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage")
NEW, OLD = np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.2, 0.6])
# of a binomial number of intervals that cover, which falls below it in one of 10,000 simulations
LEVEL, N_LOGS = 1e-4, 120


def value(p, log, method="snips", **options):
    return off_policy_value(
        np.tile(p, (len(log), 1)), np.zeros((len(log), 1)), log, method=method, **options
    )


def draw(rng, n):
    """Events of a uniform log, whose arms yield 0, 1 and 2 less a common effect of the event."""
    log = pd.DataFrame({"action": rng.integers(3, size=n)})
    return log.assign(reward=log["action"] + rng.normal(size=n))


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_off_policy_intervals_cover(method):
    rng, truth, covered, narrower = np.random.default_rng(0), (NEW - OLD) @ np.arange(3), [], []
    for _ in range(N_LOGS):
        log = draw(rng, 400)
        a, b = (value(p, log, method, random_state=0) for p in (NEW, OLD))
        low, high = (a - b).interval(0.9)
        covered.append(low <= truth <= high)
        narrower.append((a - b).standard_error / np.hypot(a.standard_error, b.standard_error))
    # up to a 1% shortfall of the normal approximation
    assert stats.binom.cdf(sum(covered), N_LOGS, 0.89) > LEVEL
    if method not in ("switch_dr", "dr_shrinkage"):  # whose intervals are those of "dr", extended
        assert stats.binom.sf(sum(covered), N_LOGS, 0.92) > LEVEL
        assert np.mean(narrower) < 0.5


def test_estimates_of_a_policy_and_itself_do_not_differ():
    log = draw(np.random.default_rng(0), 100)
    same = value(NEW, log) - value(NEW, log)
    assert (same.mean_reward, same.standard_error) == (0, 0)
    a, b = value(NEW, log), value(OLD, log, "ips")
    assert (a - b).mean_reward == pytest.approx(a.mean_reward - b.mean_reward)
    assert (a - b).standard_error == pytest.approx((b - a).standard_error)


def test_off_policy_estimates_of_different_logs_are_refused():
    rng = np.random.default_rng(0)
    log = draw(rng, 100)
    one = value(NEW, log)
    for other, what in [
        (value(NEW, log[:80]), "100 and 80 events"),
        (value(NEW, log.assign(reward=log["reward"][::-1].to_numpy())), "rewards"),
        (value(NEW[[2, 0, 1]], log.assign(action=(log["action"] + 1) % 3)), "actions"),
        (value(NEW, log.assign(propensity=0.34)), "propensities"),
        (off_policy_blocks("p", [log.assign(p=1 / 3, propensity=1 / 3)])["snips"], "from blocks"),
    ]:
        with pytest.raises(ValueError, match=what):
            one - other
    with pytest.raises(TypeError):
        one - 0.5


def test_differences_of_slates():
    rng = np.random.default_rng(0)
    slates = [tuple(rng.permutation(list("abc"))[:2].tolist()) for _ in range(200)]
    by_arm = pd.DataFrame({"action": slates, "reward": [tuple(rng.random(2)) for _ in slates]})
    log = by_arm.assign(reward=[sum(reward) for reward in by_arm["reward"]], propensity=-1.0)
    for estimate, y in ((slate_ips, by_arm), (slate_pseudo_inverse, log)):
        a, b = (estimate([slate] * 200, None, y) for slate in (["a", "b"], ["a", "c"]))
        assert (a - b).mean_reward == pytest.approx(a.mean_reward - b.mean_reward)
        assert 0 < (a - b).standard_error < np.hypot(a.standard_error, b.standard_error) * 1.5
        assert (a - a).standard_error == 0
        earned = a.parts.influence - b.parts.influence
        assert (a - b).standard_error == pytest.approx(earned.std(ddof=1) / 200**0.5)
        other = y.assign(reward=y["reward"].to_numpy()[::-1])
        with pytest.raises(ValueError, match="rewards"):
            a - estimate([["a", "b"]] * 200, None, other)


class Fixed:
    """A policy that plays one arm if the context is above a threshold, else another one."""

    def __init__(self, threshold):
        self.threshold = threshold

    def select(self, X):
        return np.where(np.asarray(X)[:, 0] > self.threshold, 2, 0)


@pytest.mark.thorough
def test_replay_intervals_cover_and_are_narrower():
    rng, covered, ratio = np.random.default_rng(0), [], []
    truth = 2 * (stats.norm.sf(0.0) - stats.norm.sf(0.3))
    for k in range(150):
        log, X = draw(rng, 600), rng.normal(size=(600, 1))
        a, b = (replay(Fixed(z), X, log, random_state=k) for z in (0.0, 0.3))
        low, high = (a - b).interval(0.9)
        covered.append(low <= truth <= high)
        ratio.append((a - b).standard_error / np.hypot(a.standard_error, b.standard_error))
    assert stats.binom.cdf(sum(covered), 150, 0.89) > LEVEL
    assert np.mean(ratio) < 0.8


def test_replays_of_a_policy_that_learns():
    log = make_bandit_log(4000, n_arms=3, random_state=0)
    options = {"subsample": 0.5, "n_repeats": 5, "random_state": 0}
    one = replay(GLMUCBPolicy(), log.X, log.y, **options)
    other = replay(GLMUCBPolicy(alpha=2.0), log.X, log.y, **options)
    difference = one - other
    assert isinstance(difference, PolicyDifference)
    assert difference.mean_reward == pytest.approx(one.mean_reward - other.mean_reward)
    assert 0 < difference.standard_error < np.hypot(one.standard_error, other.standard_error)
    low, high = difference.interval()
    assert low < difference.mean_reward < high
    assert (one - one).standard_error == 0
    for wrong, what in [
        (replay(GLMUCBPolicy(), log.X[:3000], log.y[:3000], **options), "4,000 events"),
        (replay(GLMUCBPolicy(), log.X, log.y, **options | {"n_repeats": 4}), "n_repeats=5 and 4"),
        (other.at(300), r"at\(1000\)"),
    ]:
        with pytest.raises(ValueError, match=what):
            one - wrong
    # the same actions and rewards in another order
    order = np.random.default_rng(0).permutation(4000)
    swapped = log.y[["action", "reward", "propensity"]].iloc[order].reset_index(drop=True)
    with pytest.raises(ValueError, match="log"):
        one - replay(GLMUCBPolicy(), log.X.iloc[order].reset_index(drop=True), swapped, **options)


def test_a_display_of_several_policies():
    log = draw(np.random.default_rng(0), 200)
    estimates = {"new": value(NEW, log), "old": value(OLD, log)}
    estimates["new - old"] = estimates["new"] - estimates["old"]
    display = RateReportDisplay.from_estimates(estimates, confidence_level=0.9)
    names = [label.get_text().strip() for label in display.axes_[0].get_yticklabels()]
    assert names == ["mean reward", *estimates]
    for segment, estimate in zip(
        display.intervals_[0].get_segments(), estimates.values(), strict=True
    ):
        np.testing.assert_allclose(segment[:, 0], estimate.interval(0.9))
