"""Generators: logs with known values, slates, and sets of ads."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from skbandit.datasets import make_bandit_log, make_set_selection, read_slate_log
from tests.worlds import refuses, warns

# === A log made from a known truth keeps to it ==================================================
# Statistical statements are seeded. Each compares one number with a normal approximation, at 5
# standard deviations: a wrong generator aside, one seed in a million would fail.

CHANCE = 5.0
MEAN = {
    "logistic": lambda eta: 1 / (1 + math.exp(-eta)),
    "probit": lambda eta: math.erfc(-eta / math.sqrt(2)) / 2,
    "linear": lambda eta: eta,
}


def of_action(log):
    """The expected reward of each logged action."""
    return log.expected_reward[np.arange(len(log.y)), log.y["action"]]


@pytest.mark.parametrize("link", MEAN)
def test_expected_reward_follows_the_model(link):
    log = make_bandit_log(40, 7, 3, n_available=3, link=link, random_state=1)
    eta = log.X.to_numpy() @ log.coef.T + log.intercept
    expected = np.vectorize(MEAN[link])(eta)
    there = [[arm in pool for arm in range(7)] for pool in log.available]
    np.testing.assert_allclose(log.expected_reward, np.where(there, expected, np.nan))


def test_base_rate_of_probit_is_exact():
    """The mean of Phi(b + s Z) over normal Z is known: Phi(b / sqrt(1 + s²))."""
    log = make_bandit_log(
        1, 30, 5, link="probit", base_rate=0.03, arm_effect=0.7, context_effect=1.5, random_state=2
    )
    means = ndtr(log.intercept / np.sqrt(1 + (log.coef**2).sum(axis=1)))
    assert means.mean() == pytest.approx(0.03, rel=1e-7)


@pytest.mark.parametrize("link", ["logistic", "linear"])
def test_the_base_rate_is_kept(link):
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


def test_uniform_logging_draws_arms_of_a_pool_alike():
    log = make_bandit_log(60_000, 8, n_available=4, random_state=6)
    assert (log.y["propensity"] == 0.25).all()
    place = [pool.index(arm) for pool, arm in zip(log.available, log.y["action"], strict=True)]
    assert np.abs(np.bincount(place) - 15_000).max() < CHANCE * np.sqrt(60_000 * 0.25 * 0.75)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_softmax_logging_draws_by_its_propensities(temperature):
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


def test_arms_come_and_go_for_good():
    log = make_bandit_log(5_000, 40, n_available=7, random_state=8)
    assert {len(pool) for pool in log.available} == {7}
    distinct = list(dict.fromkeys(log.available))
    assert distinct[0] == tuple(range(7))
    assert distinct[-1][-1] == 39
    for before, after in pairwise(distinct):
        gone, new = set(before) - set(after), set(after) - set(before)
        assert min(new) > max(before)
        assert len(gone) == len(new)
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


def everywhere(X, *, available):
    return np.full((len(X), 6), 1 / 6)


def wrong_in_row_17(X, *, available):
    return np.where(np.arange(len(X))[:, None] == 17, [1.2, -0.2, 0, 0, 0, 0], 1 / 6)


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


def test_logging_by_a_function_follows_its_probabilities():
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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_events": 0}, "n_events must be at least 1, got 0"),
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"n_available": 21}, "n_available must be from 1 to n_arms=20, got 21"),
        ({"n_available": 0}, "n_available must be from 1 to n_arms=20, got 0"),
        ({"link": "log"}, "link must be one of 'logistic', 'probit', 'linear', got 'log'"),
        ({"base_rate": 1.0}, r"base_rate must be in \(0, 1\)"),
        ({"logging": "greedy"}, "logging must be 'uniform', 'softmax' or callable, got 'greedy'"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"logging": lambda X, available: np.ones(3)}, r"array of shape \(3,\), expected"),
        ({"logging": everywhere, "n_arms": 6, "n_available": 4}, "1 over the available .* row 0"),
        ({"logging": wrong_in_row_17, "n_arms": 6, "n_events": 40_000}, "in row 17 arms"),
    ],
)
def test_make_bandit_log_refuses(wrong, message):
    refuses(message, make_bandit_log, **wrong)


# === Long tables of impressions, against the slates that they were made from ====================

NAMES = {"slate": "view", "item": "ad", "position": "rank", "reward": "clicked"}


def slates(n=1500, m=2, n_arms=4, seed=0):
    """Uniform slates, and the long table that holds them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    shown = np.array([rng.permutation(n_arms)[:m] for _ in range(n)])
    clicks = (rng.random((n, m)) < 0.3).astype(float)
    table = pd.DataFrame(
        {
            "view": np.repeat([f"v{k}" for k in range(n)], m),
            "ad": shown.ravel(),
            "rank": np.tile(np.arange(1, m + 1), n),
            "clicked": clicks.ravel(),
            "u": np.repeat(X[:, 0], m),
            "w": np.repeat(X[:, 1], m),
            "p": 0.5,
        }
    )
    return X, shown, clicks, table


@pytest.mark.parametrize("shuffled", [False, True])
def test_slates_are_read_back_from_their_long_table(shuffled):
    X, shown, clicks, table = slates()
    ids = table["view"].unique()
    if shuffled:
        table = table.sample(frac=1, random_state=0)
        ids = table["view"].unique()
    log = read_slate_log(table, **NAMES, features=["u", "w"], propensity="p")
    assert log.X.columns.tolist() == ["u", "w"]
    assert set(log.y["propensity"]) == {(0.5, 0.5)}
    assert log.X.index.tolist() == log.y.index.tolist() == ids.tolist()
    order = [int(one[1:]) for one in ids]
    np.testing.assert_array_equal(log.X[["u", "w"]], X[order])
    assert log.y["action"].tolist() == [tuple(row) for row in shown[order].tolist()]
    assert log.y["reward"].tolist() == [tuple(row) for row in clicks[order].tolist()]


def test_slates_are_in_order_of_the_earliest_time_of_their_items():
    shown = {"view": [1, 1, 2, 2], "ad": [*"abab"], "rank": [1, 2, 1, 2], "clicked": 0.0}
    log = read_slate_log(shown | {"at": [10, 5, 4, 7], "x": 1.0}, **NAMES, timestamp="at")
    assert log.y["timestamp"].tolist() == [4, 5]
    assert log.X.index.tolist() == log.y.index.tolist() == [2, 1]


def test_slates_may_lack_rewards_and_differ_in_size():
    table = {"view": [1, 1, 2], "ad": ["a", "b", "c"], "rank": [0, 1, 0], "clicked": [1, None, 0]}
    log = read_slate_log(table | {"x": [0.5, 0.5, np.nan]}, **NAMES)
    assert log.y["action"].tolist() == [("a", "b"), ("c",)]
    assert np.isnan(log.y["reward"].iloc[0][1])


def test_read_slate_log_warns_of_unsigned_costs():
    _, _, clicks, table = slates(n=20)
    table["clicked"] = -clicks.ravel().astype("uint8")
    warns(r"reward holds 255 as uint8, .*-y.astype\(float\)", read_slate_log, table, **NAMES)


TABLE = {
    "view": [7, 7, 8, 8],
    "ad": ["a", "b", "a", "b"],
    "rank": [1, 2, 1, 2],
    "clicked": [0, 1, 0, 0],
    "x": [1.0, 1.0, 3.0, 3.0],
}


@pytest.mark.parametrize(
    "table, options, match",
    [
        (TABLE | {"rank": [1, 1, 1, 2]}, {}, "slate 7 has the position 1 where 2 is expected"),
        (TABLE | {"rank": [1, 3, 1, 2]}, {}, "slate 7 has the position 3 where 2 is expected"),
        (TABLE | {"rank": [1, 2, 2, 3]}, {}, "slate 8 has the position 2 where 1 is expected"),
        (TABLE | {"rank": [*"1212"]}, {}, "'rank', the position, must be integers"),
        (TABLE | {"x": [1.0, 2.0, 3.0, 3.0]}, {}, "the feature 'x' varies within slate 7"),
        (TABLE | {"ad": ["a", None, "a", "b"]}, {}, "'ad', the item, is missing on row 1"),
        (TABLE, {"timestamp": "ad"}, "'ad', the timestamp, must be datetimes or numbers"),
        (pd.DataFrame(TABLE).rename(columns={"x": "ad"}), {}, "two columns 'ad': rename one"),
        (TABLE, {"item": "adv"}, "item names the column 'adv', which the table lacks"),
    ],
)
def test_read_slate_log_refuses(table, options, match):
    refuses(match, read_slate_log, table, **NAMES | options)


# === make_set_selection: the truth is as it is told =============================================


def test_make_set_selection_has_its_shapes_and_repeats_a_seed():
    X, y, expected, Z = make_set_selection(
        50, 4, 7, n_ad_features=3, return_ad_features=True, random_state=3
    )
    assert (X.shape, y.shape, expected.shape, Z.shape) == ((50, 4), (50, 7), (50, 7), (7, 3))
    assert Z.index.tolist() == list(range(7))
    again = make_set_selection(50, 4, 7, n_ad_features=3, random_state=3)
    np.testing.assert_array_equal(y, again[1])
    assert (make_set_selection(50, 4, 7, n_ad_features=3, random_state=4)[1] != y).any()


def test_costs_are_clicks_of_the_expected_probability():
    """The z-score of a sum of 10^6 clicks; another seed fails with probability 1e-6."""
    _, y, expected = make_set_selection(20_000, n_ads=50, random_state=0)
    assert set(np.unique(y)) == {-1.0, 0.0}
    assert ((-1 < expected) & (expected < 0)).all()
    p = -expected
    for weight in (np.ones_like(p), p - p.mean()):
        z = (weight * (y - expected)).sum() / np.sqrt((weight**2 * p * (1 - p)).sum())
        assert abs(z) < 4.9


def test_signal_popularity_and_own_effects_are_as_told():
    def logit(**options):
        _, _, expected = make_set_selection(4000, n_ads=40, random_state=1, **options)
        return np.log(-expected / (1 + expected))

    flat = logit(signal=0, popularity=0, own=0, click_rate=0.3)
    np.testing.assert_allclose(flat, np.log(0.3 / 0.7))
    for_everyone = logit(signal=0, own=0, popularity=2.0)
    np.testing.assert_allclose(for_everyone, np.broadcast_to(for_everyone[0], (4000, 40)))
    assert 1 < for_everyone[0].std() < 3
    # linear in as many directions as ads have features, or in all that rows have
    assert np.linalg.matrix_rank(logit(popularity=0, own=0, n_ad_features=2, click_rate=0.5)) == 2
    own = logit(popularity=0, signal=0, own=0.7, n_features=6, click_rate=0.5)
    assert np.linalg.matrix_rank(own) == 6
    assert 0.5 < own.std() < 0.9


@pytest.mark.parametrize("click_rate", [0, 1, -0.2])
def test_make_set_selection_refuses_a_click_rate_that_is_no_probability(click_rate):
    message = f"click_rate={click_rate} must lie between 0 and 1"
    refuses(message, make_set_selection, click_rate=click_rate)
