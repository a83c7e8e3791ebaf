"""A log made from a known truth keeps to it.

Statistical statements are seeded. Each compares one number with a normal approximation, at 5
standard deviations: a wrong generator aside, one seed in a million would fail.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr

from skbandit.datasets import make_bandit_log
from skbandit.logs import read_log

CHANCE = 5.0
MEAN = {
    "logistic": lambda eta: 1 / (1 + math.exp(-eta)),
    "probit": lambda eta: math.erfc(-eta / math.sqrt(2)) / 2,
    "linear": lambda eta: eta,
}


def of_action(log):
    """The expected reward of each logged action."""
    return log.expected_reward[np.arange(len(log.y)), log.y["action"]]


def test_columns_without_and_with_pools():
    log = make_bandit_log(50, 4, 3, random_state=0)
    assert list(log.X.columns) == ["x0", "x1", "x2"]
    assert list(log.y.columns) == ["action", "reward", "propensity", "timestamp"]
    assert log.available is None
    assert log.expected_reward.shape == (50, 4)
    log = make_bandit_log(50, 4, 3, n_available=2, random_state=0)
    assert list(log.y.columns) == ["action", "reward", "propensity", "timestamp", "available"]
    pd.testing.assert_series_equal(log.available, log.y["available"])


@pytest.mark.parametrize("link", MEAN)
def test_expected_reward_follows_the_model(link):
    log = make_bandit_log(40, 7, 3, n_available=3, link=link, random_state=1)
    for i, (x, pool) in enumerate(zip(log.X.to_numpy(), log.available, strict=True)):
        for arm in range(7):
            found = log.expected_reward[i, arm]
            if arm not in pool:
                assert np.isnan(found)
                continue
            eta = log.intercept[arm] + sum(
                w * v for w, v in zip(log.coef[arm], x.tolist(), strict=True)
            )
            assert found == pytest.approx(MEAN[link](eta), rel=1e-12)


def test_base_rate_of_probit_is_exact():
    """The mean of Phi(b + s Z) over normal Z is known: Phi(b / sqrt(1 + s²))."""
    log = make_bandit_log(
        1, 30, 5, link="probit", base_rate=0.03, arm_effect=0.7, context_effect=1.5, random_state=2
    )
    means = ndtr(log.intercept / np.sqrt(1 + (log.coef**2).sum(axis=1)))
    assert means.mean() == pytest.approx(0.03, rel=1e-7)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_base_rate(link):
    log = make_bandit_log(40_000, 10, link=link, base_rate=0.04, random_state=3)
    means = log.expected_reward.mean(axis=1)  # independent from event to event
    assert abs(means.mean() - 0.04) < CHANCE * means.std() / 200
    rewards = log.y["reward"]
    assert abs(rewards.mean() - 0.04) < CHANCE * rewards.std() / 200


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("logging", ["uniform", "softmax"])
def test_rewards_are_drawn_from_the_truth(link, logging):
    """Residuals are uncorrelated with every feature: the score of the likelihood vanishes."""
    log = make_bandit_log(
        30_000, 12, n_available=5, link=link, logging=logging, base_rate=0.2, random_state=4
    )
    truth = of_action(log)
    assert set(log.y["reward"]) == {0, 1}
    X = np.column_stack([np.ones(len(truth)), log.X])
    score = X.T @ (log.y["reward"] - truth)
    sd = np.sqrt((X**2).T @ (truth * (1 - truth)))
    assert np.abs(score / sd).max() < CHANCE


def test_linear_rewards_have_the_noise_asked_for():
    log = make_bandit_log(50_000, link="linear", noise=0.3, random_state=5)
    residual = log.y["reward"] - of_action(log)
    assert abs(residual.mean()) < CHANCE * 0.3 / np.sqrt(50_000)
    assert residual.std() == pytest.approx(0.3, rel=CHANCE / np.sqrt(2 * 50_000))


def test_uniform_logging():
    log = make_bandit_log(60_000, 8, n_available=4, random_state=6)
    assert (log.y["propensity"] == 0.25).all()
    for _, stage in log.y.groupby("available"):
        counts = stage["action"].value_counts()
        z = (counts - len(stage) / 4) / np.sqrt(len(stage) * 0.25 * 0.75)
        assert len(counts) == 4
        assert z.abs().max() < CHANCE


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_softmax_logging(temperature):
    log = make_bandit_log(
        50_000, 6, n_available=4, logging="softmax", temperature=temperature, random_state=7
    )
    eta = log.X.to_numpy() @ log.coef.T + log.intercept
    eta[np.isnan(log.expected_reward)] = -np.inf
    odds = np.exp(eta / temperature)
    probability = odds / odds.sum(axis=1, keepdims=True)
    row = np.arange(len(log.y))
    np.testing.assert_allclose(log.y["propensity"], probability[row, log.y["action"]], rtol=1e-9)
    # drawn with these probabilities
    chosen = np.zeros_like(probability)
    chosen[row, log.y["action"]] = 1
    z = (chosen - probability).sum(axis=0) / np.sqrt((probability * (1 - probability)).sum(axis=0))
    assert np.abs(z).max() < CHANCE
    # inverse propensities recover the mean of uniform choice, plain means do not
    weighted = log.y["reward"] / log.y["propensity"] / 4
    truth = np.nanmean(log.expected_reward)
    se = weighted.std() / np.sqrt(len(weighted))
    assert abs(weighted.mean() - truth) < CHANCE * se
    plain = log.y["reward"]
    assert plain.mean() - truth > CHANCE * plain.std() / np.sqrt(len(plain))


@pytest.mark.parametrize("lifetime", ["equal", "random"])
def test_arms_come_and_go_for_good(lifetime):
    log = make_bandit_log(5_000, 40, n_available=7, lifetime=lifetime, random_state=8)
    assert {len(pool) for pool in log.available} == {7}
    distinct = list(dict.fromkeys(log.available))
    assert distinct[0] == tuple(range(7))
    assert distinct[-1][-1] == 39
    for before, after in pairwise(distinct):
        gone, new = set(before) - set(after), set(after) - set(before)
        assert min(new) > max(before)
        assert len(gone) == len(new)
        if lifetime == "equal":
            assert max(gone) < min(after)
    presence = ~np.isnan(log.expected_reward)
    assert (np.abs(np.diff(presence.astype(int), axis=0, prepend=0, append=0)).sum(0) == 2).all()
    assert presence[np.arange(5_000), log.y["action"]].all()


def test_equal_lifetimes_are_equal():
    log = make_bandit_log(20_000, 24, n_available=5, duration=2_000.0, random_state=9)
    times = log.y["timestamp"]
    arms = range(5, 24 - 5)  # arrived after the start and retired before the end
    stayed = [np.ptp(times[[arm in pool for pool in log.available]]) for arm in arms]
    np.testing.assert_allclose(stayed, 5 * 2_000 / (24 - 5 + 1), rtol=0.01)
    assert len(set(log.available)) == 24 - 5 + 1


def test_random_lifetimes_vary():
    log = make_bandit_log(20_000, 200, n_available=10, lifetime="random", random_state=10)
    events = (~np.isnan(log.expected_reward)).sum(axis=0)[:150]
    assert events.std() > 0.5 * events.mean()  # 1 for exponential lifetimes, 0 for equal ones


def test_events_with_equal_pools_share_a_tuple():
    log = make_bandit_log(1_000, 9, n_available=6, random_state=11)
    assert len({id(pool) for pool in log.y["available"]}) == len(set(log.available)) == 4
    assert type(log.available[0][0]) is int


def test_events_are_in_order_of_time():
    times = make_bandit_log(1_000, duration=50.0, random_state=12).y["timestamp"]
    assert times.is_monotonic_increasing
    assert 0 <= times.min() < 1
    assert 49 < times.max() <= 50


def test_the_same_seed_gives_the_same_log_and_the_same_truth_for_any_logging():
    one, same, other = (
        make_bandit_log(200, n_available=5, logging=logging, random_state=13)
        for logging in ("uniform", "uniform", "softmax")
    )
    pd.testing.assert_frame_equal(one.y, same.y)
    for name in ("X", "coef", "intercept", "expected_reward"):
        np.testing.assert_array_equal(one[name], same[name])
        np.testing.assert_array_equal(one[name], other[name])
    assert (one.y["action"] != other.y["action"]).any()


def test_logging_by_a_function():
    """It sees what is returned; an arm to which it gives no probability is never chosen."""
    seen = {}

    def logging(X, *, available):
        seen.update(X=X.copy(), available=available.copy())
        probability = np.zeros((len(X), 6))
        for i, pool in enumerate(available):
            probability[i, list(pool)] = [0.0, 0.7, 0.3, 0.0]
        return probability

    log = make_bandit_log(4_000, 6, n_available=4, logging=logging, random_state=14)
    pd.testing.assert_frame_equal(seen["X"], log.X)
    pd.testing.assert_series_equal(seen["available"], log.available)
    rank = np.array([p.index(a) for p, a in zip(log.available, log.y["action"], strict=True)])
    assert set(rank) == {1, 2}
    np.testing.assert_array_equal(log.y["propensity"], np.where(rank == 1, 0.7, 0.3))
    assert abs((rank == 1).mean() - 0.7) < CHANCE * np.sqrt(0.7 * 0.3 / 4_000)


def test_logging_by_a_function_that_ignores_what_is_available():
    def everything(X, *, available):
        return np.full((len(X), 6), 1 / 6)

    with pytest.raises(ValueError, match=r"sum to 1 over the available arms: in row 0 arms"):
        make_bandit_log(100, 6, n_available=4, logging=everything, random_state=0)
    everywhere = make_bandit_log(100, 6, logging=everything, random_state=0)
    assert everywhere.y["propensity"].unique() == pytest.approx([1 / 6])


def test_the_row_of_a_wrong_probability_is_named():
    def wrong(X, *, available):
        probability = np.full((len(X), 3), 1 / 3)
        probability[17] = [1.2, -0.2, 0.0]
        return probability

    with pytest.raises(ValueError, match="in row 17 arms"):
        make_bandit_log(40_000, 3, logging=wrong)


def test_a_log_is_read_back():
    log = make_bandit_log(2_000, 15, n_available=5, logging="softmax", random_state=15)
    read = read_log(log.y, len(log.X), arms=log.arms)
    np.testing.assert_array_equal(read.action, log.y["action"])
    np.testing.assert_array_equal(read.probability, log.y["propensity"])
    np.testing.assert_array_equal(read.pools.sizes, 5)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 5, 2), (3, 50, 1)], ids=["one of all", "one event", "few events"]
)
def test_small_logs(shape):
    n_events, n_arms, n_features = shape
    log = make_bandit_log(n_events, n_arms, n_features, n_available=1, random_state=0)
    assert log.y["propensity"].eq(1.0).all()
    assert [(a,) for a in log.y["action"]] == list(log.available)


def test_extreme_effects_keep_the_base_rate():
    log = make_bandit_log(
        20_000, 5, base_rate=0.001, arm_effect=5.0, context_effect=0.0, random_state=16
    )
    assert expit(log.intercept).mean() == pytest.approx(0.001, rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_events": 0}, "n_events must be at least 1, got 0"),
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"n_available": 21}, "n_available must be from 1 to n_arms=20, got 21"),
        ({"n_available": 0}, "n_available must be from 1 to n_arms=20, got 0"),
        ({"lifetime": 5}, "lifetime must be 'equal' or 'random', got 5"),
        ({"link": "log"}, "link must be one of 'logistic', 'probit', 'linear', got 'log'"),
        ({"base_rate": 1.0}, r"base_rate must be in \(0, 1\)"),
        ({"logging": "greedy"}, "logging must be 'uniform', 'softmax' or callable, got 'greedy'"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"logging": lambda X, available: np.ones(3)}, r"array of shape \(3,\), expected"),
    ],
)
def test_wrong_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_bandit_log(**wrong)
