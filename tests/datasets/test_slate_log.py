"""Long tables of impressions, against the slates that they were made from."""

import numpy as np
import pandas as pd
import pytest

from skbandit.bandit import SlatePolicy
from skbandit.datasets import read_slate_log
from skbandit.evaluation import replay_slates, slate_ips, slate_pseudo_inverse

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
            "at": np.repeat(1000.0 - np.arange(n), m),
            "p": 0.5,
        }
    )
    return X, shown, clicks, table


@pytest.mark.parametrize("shuffled", [False, True])
def test_slates_come_back(shuffled):
    X, shown, clicks, table = slates()
    ids = table["view"].unique()
    if shuffled:
        table = table.sample(frac=1, random_state=0)
        ids = table["view"].unique()
    log = read_slate_log(table.drop(columns=["at", "p"]), **NAMES)
    assert log.X.index.tolist() == log.y.index.tolist() == ids.tolist()
    order = [int(one[1:]) for one in ids]
    np.testing.assert_array_equal(log.X[["u", "w"]], X[order])
    assert log.y["action"].tolist() == [tuple(row) for row in shown[order].tolist()]
    assert log.y["reward"].tolist() == [tuple(row) for row in clicks[order].tolist()]


def test_policies_and_estimators_take_them():
    X, shown, clicks, table = slates()
    log = read_slate_log(table, **NAMES, features=["u", "w"], timestamp="at", propensity="p")
    assert log.X.index[0] == "v1499"  # in order of time
    assert log.y["timestamp"].is_monotonic_increasing
    policy = SlatePolicy(n_select=2, random_state=0)
    plain = {"action": shown[::-1].tolist(), "reward": clicks[::-1].tolist()}
    expected = SlatePolicy(n_select=2, random_state=0).fit(X[::-1], plain)
    policy.fit(log.X[:200], log.y[:200])
    assert slate_ips(policy, log.X[200:], log.y[200:]).mean_reward > 0
    few = log.X[:400], log.y[:400]
    assert replay_slates(SlatePolicy(n_select=2), *few, random_state=0).mean_reward > 0
    sums = log.y.assign(reward=log.y["reward"].map(sum)).drop(columns="propensity")
    assert np.isfinite(slate_pseudo_inverse(policy, log.X[200:], sums[200:]).mean_reward)
    whole = SlatePolicy(n_select=2, random_state=0).fit(log.X, log.y)
    np.testing.assert_array_equal(
        whole.predict_reward(log.X), expected.predict_reward(log.X.to_numpy())
    )


def test_a_slate_has_the_earliest_time_of_its_items():
    shown = {"view": [1, 1, 2, 2], "ad": [*"abab"], "rank": [1, 2, 1, 2], "clicked": 0.0}
    log = read_slate_log(shown | {"at": [10, 5, 7, 7], "x": 1.0}, **NAMES, timestamp="at")
    assert log.y["timestamp"].to_dict() == {1: 5, 2: 7}


def test_rewards_may_be_unknown_and_slates_of_any_size():
    table = {"view": [1, 1, 2], "ad": ["a", "b", "c"], "rank": [0, 1, 0], "clicked": [1, None, 0]}
    log = read_slate_log(table | {"x": [0.5, 0.5, np.nan]}, **NAMES)
    assert log.y["action"].tolist() == [("a", "b"), ("c",)]
    assert np.isnan(log.y["reward"].iloc[0][1])


def test_unsigned_costs_as_rewards():
    _, _, clicks, table = slates(n=20)
    table["clicked"] = -clicks.ravel().astype("uint8")
    with pytest.warns(UserWarning, match=r"reward holds 255 as uint8, .*-y.astype\(float\)"):
        read_slate_log(table, **NAMES)


@pytest.mark.parametrize(
    "change, match",
    [
        ({"rank": [1, 1, 1, 2]}, "slate 7 has the position 1 where 2 is expected"),
        ({"rank": [1, 3, 1, 2]}, "slate 7 has the position 3 where 2 is expected"),
        ({"rank": [1, 2, 2, 3]}, "slate 8 has the position 2 where 1 is expected"),
        ({"x": [1.0, 2.0, 3.0, 3.0]}, "the feature 'x' varies within slate 7"),
        ({"ad": ["a", None, "a", "b"]}, "'ad', the item, is missing on row 1"),
        ({"rank": [*"1212"]}, "'rank', the position, must be integers"),
    ],
)
def test_tables_that_are_no_slates(change, match):
    table = {
        "view": [7, 7, 8, 8],
        "ad": ["a", "b", "a", "b"],
        "rank": [1, 2, 1, 2],
        "clicked": [0, 1, 0, 0],
        "x": [1.0, 1.0, 3.0, 3.0],
    }
    with pytest.raises(ValueError, match=match):
        read_slate_log(table | change, **NAMES)
    with pytest.raises(ValueError, match="'at', the timestamp, must be datetimes or numbers"):
        read_slate_log(table | {"at": [*"9911"]}, **NAMES, timestamp="at")
    twice = pd.DataFrame(table).rename(columns={"x": "ad"})
    with pytest.raises(ValueError, match="two columns 'ad': rename one"):
        read_slate_log(twice, **NAMES)
    with pytest.raises(ValueError, match="item names the column 'adv', which the table lacks"):
        read_slate_log(table, **NAMES | {"item": "adv"})
