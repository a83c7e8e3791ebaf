"""The difference of two policies on one log, and its paired interval."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    PolicyDifference,
    off_policy_blocks,
    off_policy_value,
    replay,
    slate_ips,
    slate_pseudo_inverse,
)
from skbandit.inspection import RateReportDisplay
from tests.tiers import first

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


@pytest.mark.parametrize("method", first(1, METHODS))
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
