"""Score intervals: of proportions, of rewards in any range, and of differences."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from skbandit.evaluation import off_policy_blocks, off_policy_value, replay, slate_ips
from skbandit.evaluation._score import Spread
from skbandit.measure._confidence import wilson_score
from tests.policies import Always
from tests.tiers import first

Z = 1.959963984540054


def wilson(share, n):
    low = float(wilson_score(np.array(share), np.array(n), Z))
    return low, 1 - float(wilson_score(1 - np.array(share), np.array(n), Z))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_proportions_have_wilsons_limits(share):
    spread = Spread.of((0.0, 1.0), 0.2, 0.16, 50)
    error = np.sqrt(share * (1 - share) / 50)
    assert spread.limits(share, error, Z) == pytest.approx(wilson(share, 50))
    # in another unit, and counted from the other end
    scaled = Spread.of((-3.0, 7.0), -1.0, 16.0, 50)
    wanted = -3 + 10 * np.array(wilson(share, 50))
    assert scaled.limits(-3 + 10 * share, 10 * error, Z) == pytest.approx(wanted)
    mirrored = 1 - np.array(spread.limits(1 - share, error, Z))[::-1]
    assert mirrored == pytest.approx(wilson(share, 50))


def test_many_events_have_normal_limits():
    spread = Spread.of((0.0, 1.0), 0.3, 0.02, 1e9)
    assert spread.limits(0.3, 0.01, Z) == pytest.approx((0.3 - 0.01 * Z, 0.3 + 0.01 * Z), rel=1e-6)
    # rewards that never differ in the log
    constant = Spread.of((0.0, 1.0), 0.5, 0.0, 10)
    assert constant.limits(0.5, 0.0, Z) == (0.5, 0.5)


def uniform(n=6000, arms=20):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"action": rng.integers(arms, size=n), "reward": 0.0, "propensity": 1 / arms}
    )


@pytest.mark.parametrize("elsewhere", [0.0, 1.0])
def test_no_reward_seen(elsewhere):
    """Zero is not certain: the limits of no success in about 300 trials."""
    log = uniform()
    log.loc[log.index[log["action"] == 3][:60], "reward"] = elsewhere
    n = int((log["action"] == 7).sum())
    for method in ("snips", "ips"):
        estimate = off_policy_value([7] * 6000, None, log, method=method)
        assert estimate.interval() == pytest.approx(wilson(0.0, n))
        assert estimate.standard_error == pytest.approx(1 / (n + 1))
        assert "mean reward 0 ± 0.003" in repr(estimate)
    estimate = off_policy_value([7] * 6000, np.zeros((6000, 1)), log, method="dr", random_state=0)
    assert estimate.interval()[1] > 0.005
    other = off_policy_value([8] * 6000, None, log)
    one = off_policy_value([7] * 6000, None, log)
    m = int((log["action"] == 8).sum())
    low, high = (one - other).interval()
    assert (low, high) == pytest.approx((-wilson(0.0, m)[1], wilson(0.0, n)[1]))
    assert "± 0.003" in repr(one - other)
    assert (one - one).interval() == (0, 0)
    replayed = [replay(Always(arm), np.zeros((6000, 1)), log, random_state=0) for arm in (7, 8)]
    assert replayed[0].interval()[1] == pytest.approx(wilson(0.0, n)[1], rel=0.05)
    assert replayed[0].standard_error == pytest.approx(1 / (n + 1), rel=0.01)
    low, high = (replayed[0] - replayed[1]).interval()
    assert -low == pytest.approx(wilson(0.0, m)[1], rel=0.05)
    assert high == pytest.approx(wilson(0.0, n)[1], rel=0.05)


def test_only_rewards_of_one_seen():
    log = uniform().assign(reward=1.0)
    n = int((log["action"] == 7).sum())
    assert off_policy_value([7] * 6000, None, log).interval() == pytest.approx(wilson(1.0, n))


def test_blocks_and_slates_without_rewards():
    log = uniform()
    blocks = [log[:100].assign(p=1.0), log[100:].assign(p=1.0)]
    found = off_policy_blocks("p", [part.assign(p=1.0 * (part["action"] == 7)) for part in blocks])
    whole = off_policy_value([7] * 6000, None, log)
    assert found["snips"].interval() == pytest.approx(whole.interval())
    slates = pd.DataFrame({"action": log["action"].tolist(), "reward": 0.0})
    estimate = slate_ips([[7]] * 6000, None, slates)
    assert estimate.interval() == pytest.approx(whole.interval())


def test_revenue_scales():
    """Limits are equivariant: in cents or euros, from 0 or from 100."""
    rng = np.random.default_rng(0)
    log = uniform()
    log["reward"] = (rng.random(6000) < 0.02) * rng.lognormal(3, size=6000)
    low, high = off_policy_value([7] * 6000, None, log).interval()
    more = log.assign(reward=100 + 5 * log["reward"])
    scaled = off_policy_value([7] * 6000, None, more).interval()
    assert scaled == pytest.approx((100 + 5 * low, 100 + 5 * high))


def test_rare_rewards_that_were_not_seen():
    """At 0, the middle of the range, the log's variance p counts 5 to the n p expected."""
    n, p = 400, 0.01
    spread = Spread.of((-1.0, 1.0), 0.0, p, n)
    half = Z**2 * p / (2 * n)
    wanted = Z * np.sqrt(5 / (5 + n * p) * p / n / (1 + 2 * half))
    assert spread.limits(0.0, 0.0, Z) == pytest.approx((-wanted, wanted))
    # what is predicted without error has no variance
    assert Spread.of((-1.0, 1.0), 0.0, 0.0, n).limits(0.0, 0.0, Z) == (0.0, 0.0)
    # nor do rare rewards matter that would have been seen
    many = Spread.of((-1.0, 1.0), 0.0, p, 1e9)
    assert many.limits(0.0, 1e-7, Z) == pytest.approx((-1e-7 * Z, 1e-7 * Z), rel=0.01)


def with_rare(kind, rng, n):
    rare = rng.random(n) < 0.004
    if kind == "minutes":
        return rng.gamma(3, 5 / 3, size=n) + 300 * rare
    return np.where(rare, -100.0, rng.random(n) < 0.1 / 0.996)


@pytest.mark.parametrize("kind, mean", first(1, [("minutes", 6.2), ("refund", -0.3)]))
def test_coverage_of_rare_rewards(kind, mean):
    """300 of 3,000 events match; the nominal level is 95%."""
    hits = replays = snips = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = pd.DataFrame(
            {"action": rng.integers(10, size=3000), "reward": with_rare(kind, rng, 3000)}
        )
        low, high = off_policy_value([1] * 3000, None, y).interval()
        snips += low <= mean <= high
        if seed < 10:
            low, high = replay(Always(1), np.zeros((3000, 1)), y, random_state=0).interval()
            replays += low <= mean <= high
        # of an arm with rare rewards and one without
        other = (y["action"] == 2) & (y["reward"].abs() > 50)
        y.loc[other, "reward"] -= 300 if kind == "minutes" else -100
        less = mean - (1.2 if kind == "minutes" else -0.4)
        one, two = (off_policy_value([arm] * 3000, None, y) for arm in (1, 2))
        low, high = (one - two).interval()
        hits += low <= mean - less <= high
    assert snips >= 37
    assert replays >= 9
    assert hits >= 37


def test_predicted_rewards_need_no_allowance_for_rare_ones():
    """The limits of dr are by the errors of predictions, so that their gain remains."""
    rng = np.random.default_rng(0)
    X, action = (rng.random((3000, 1)) < 0.02).astype(float), rng.integers(10, size=3000)
    y = pd.DataFrame({"action": action, "reward": np.where(action == 9, 300 * X[:, 0], X[:, 0])})
    y["reward"] += 0.01 * rng.normal(size=3000)
    options = {"method": "dr", "reward_model": LinearRegression(), "random_state": 0}
    one, two = (off_policy_value([arm] * 3000, X, y, **options) for arm in (1, 2))
    for estimate in (one, one - two):
        low, high = estimate.interval()
        assert high - low == pytest.approx(2 * Z * estimate.standard_error, rel=0.05)
