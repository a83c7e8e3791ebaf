"""Several rewards at once: each as if it were the only one, in replays and off-policy estimates."""

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import (
    doubly_robust,
    ips,
    off_policy_blocks,
    replay,
    replay_blocks,
    snips,
)
from tests.evaluation.logs import Softmax, logged

LOG = make_bandit_log(3000, n_arms=3, n_features=3, base_rate=0.3, random_state=0)
TWO = LOG.y.rename(columns={"reward": "click"}).assign(
    minutes=lambda y: y["click"] * (2.0 + y["action"])
)


@pytest.mark.parametrize("estimator", [ips, snips, doubly_robust])
def test_estimates(estimator):
    X, y = logged()
    y = y.assign(minutes=3 * y["reward"] + (y["action"] == "a"))
    policy = Softmax(["a", "b", "c"])
    options = {"reward_range": (0, 4)}
    options |= {"random_state": 0} if estimator is doubly_robust else {}
    found = estimator(policy, X, y, reward=["reward", "minutes"], **options)
    for name in ("reward", "minutes"):
        alone = estimator(policy, X, y.assign(reward=y[name]), **options)
        assert found[name] == alone
        assert found[name].interval(kind="sequence") == alone.interval(kind="sequence")
    assert found == found["reward"]
    assert estimator(policy, X, y, reward="minutes", **options) == found["minutes"]
    assert found["minutes"].interval(0.9999)[1] <= 4


def test_replay_learns_from_the_first_and_counts_both():
    policy = GLMUCBPolicy(random_state=0)
    options = {"n_repeats": 2, "subsample": 0.5, "deployment_share": 0.3, "random_state": 0}
    options["reward_range"] = (0, 4)
    both = replay(policy, LOG.X, TWO, reward=["click", "minutes"], **options)
    alone = replay(policy, LOG.X, LOG.y, **options)
    assert both.history.equals(alone.history)
    assert both["click"].mean_reward == both.mean_reward == alone.mean_reward
    assert both.interval() == alone.interval()
    minutes = both["minutes"]
    events = minutes.history["event"]
    assert (minutes.history["reward"].to_numpy() == TWO["minutes"].to_numpy()[events]).all()
    assert minutes.logged_mean == pytest.approx(TWO["minutes"].mean())
    learning = minutes.history[minutes.history["bucket"] == "learning"]
    assert minutes.mean_reward == pytest.approx(learning.groupby("run")["reward"].mean().mean())
    assert both.deployment["minutes"].mean_reward == minutes.deployment.mean_reward
    assert both.at(50)["minutes"].mean_reward == minutes.at(50).mean_reward
    low, high = minutes.interval(kind="sequence")
    assert 0 <= low < minutes.mean_reward < high <= 4
    swapped = replay(
        GLMUCBPolicy("linear", random_state=0), LOG.X, TWO, reward=["minutes", "click"], **options
    )
    assert swapped["click"].mean_reward != both.mean_reward


def in_blocks(y):
    y = y.assign(propensity=1 / 3)
    return [(LOG.X[k : k + 700], y[k : k + 700]) for k in range(0, len(y), 700)]


def test_replay_of_blocks_counts_both():
    """As the replay of the whole log, for each reward."""
    two = ["click", "minutes"]
    options = {"deployment_share": 0.3, "reward_range": (0, 4), "random_state": 0}
    policy = GLMUCBPolicy(random_state=0)
    whole = replay(policy, LOG.X, TWO, reward=two, **options)
    parts = replay_blocks(
        policy, in_blocks(TWO), acceptance=1 / 3, arms=range(3), reward=two, **options
    )
    assert parts.history.equals(whole.history)
    for name in two:
        assert parts[name].history.equals(whole[name].history)
        assert parts[name].logged_mean == pytest.approx(whole[name].logged_mean)
        assert parts[name].standard_error == pytest.approx(whole[name].standard_error)
        with pytest.warns(UserWarning, match="single run"):
            both = [found[name].interval(kind="sequence") for found in (parts, whole)]
        assert both[0] == both[1]
    assert parts.at(50)["minutes"].mean_reward == whole.at(50)["minutes"].mean_reward
    alone = replay_blocks(
        policy, in_blocks(TWO), acceptance=1 / 3, arms=range(3), reward="click", **options
    )
    assert alone.history.equals(whole.history)


def test_estimates_of_blocks():
    """As those of each reward alone; the reward model is that of the first."""
    policy = GLMUCBPolicy(columns={"reward": "click"}, random_state=0).fit(LOG.X, TWO)
    options = {"arms": range(3), "rule": "predict"}
    found = off_policy_blocks(
        policy, in_blocks(TWO), reward=["click", "minutes"], reward_model=policy, **options
    )
    for name in ("click", "minutes"):
        alone = off_policy_blocks(policy, in_blocks(TWO), columns={"reward": name}, **options)
        for estimator in ("ips", "snips"):
            assert found[estimator][name] == alone[estimator]
    assert found["ips"] == found["ips"]["click"]
    assert found["doubly_robust"]["click"] == found["doubly_robust"]
    with pytest.raises(KeyError, match="no reward 'minutes'"):
        found["doubly_robust"]["minutes"]
    by_name = off_policy_blocks(policy, in_blocks(TWO), reward="minutes", **options)
    assert by_name["snips"] == found["snips"]["minutes"]


def test_names_refused_in_blocks():
    policy = GLMUCBPolicy(arms=[0, 1, 2])
    judges = {off_policy_blocks: {}, replay_blocks: {"acceptance": 1 / 3}}
    for judge, options in judges.items():
        with pytest.raises(
            ValueError, match="reward names 'hours', which is not a column"
        ) as found:
            judge(policy, in_blocks(TWO), arms=range(3), reward="hours", **options)
        assert "In block 0" in found.value.__notes__[0]
        with pytest.raises(TypeError, match="reward must name columns"):
            judge(policy, in_blocks(TWO), arms=range(3), reward=[1.0, 0.0], **options)


def test_one_reward_by_name_beside_a_column_reward():
    y = LOG.y.assign(minutes=TWO["minutes"])
    result = replay(GLMUCBPolicy("linear", random_state=0), LOG.X, y, reward="minutes")
    assert result.logged_mean == pytest.approx(y["minutes"].mean())
    assert set(result.history["reward"]) <= set(y["minutes"])


def test_rewards_may_still_be_arrays():
    X, y = logged()
    policy = Softmax(["a", "b", "c"])
    wanted = ips(policy, X, y)
    bare = y.drop(columns="reward")
    for form in (list, tuple, np.asarray, pd.Series):
        assert ips(policy, X, bare, reward=form(y["reward"])) == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": ["click", "hours"]}, "reward names 'hours', which is not a column of y"),
        ({"reward": ["click", "click"]}, "reward names 'click' twice"),
        ({"reward": "click", "columns": {"reward": "minutes"}}, "both name the rewards"),
        ({"reward": ["click", "action"], "y": TWO.assign(action="a")}, "must be numbers"),
    ],
)
def test_names_refused(options, message):
    for judge in (replay, ips):
        with pytest.raises(ValueError, match=message):
            judge(GLMUCBPolicy(arms=[0, 1, 2]), **({"X": LOG.X, "y": TWO} | options))
    with pytest.raises(ValueError, match="names columns, and y has none"):
        ips(np.ones(3000), None, TWO["action"].to_numpy(), reward="click")


def test_rewards_that_are_not_there():
    result = replay(GLMUCBPolicy(random_state=0), LOG.X, TWO, reward=["click", "minutes"])
    with pytest.raises(KeyError, match=r"no reward 'hours'.*\['click', 'minutes'\]"):
        result["hours"]
    with pytest.raises(KeyError, match="one reward without a name"):
        snips(np.full((3000, 3), 1 / 3), None, LOG.y)["click"]
    with pytest.raises(ValueError, match=r"outside of reward_range=\(0\.0, 1\.0\)"):
        replay(
            GLMUCBPolicy(random_state=0), LOG.X, TWO, reward=["click", "minutes"],
            reward_range=(0, 1),
        )  # fmt: skip
