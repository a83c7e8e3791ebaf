"""Score intervals: of proportions, of rewards in any range, and of differences."""

import numpy as np
import pandas as pd
import pytest

from skbandit.evaluation import off_policy_blocks, off_policy_value, replay, slate_ips
from skbandit.evaluation._score import Spread
from skbandit.rates._confidence import wilson_score
from tests.policies import Always

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
