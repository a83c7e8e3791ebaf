"""Costs of all ads from logs: hand-made cases, what is refused, and use in selectors.

That they are unbiased is in tests/theory/test_set_rounds.py.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from skbandit.selection import logged_costs

pl = pytest.importorskip("polars", reason="polars is not installed")

ACTION, COST, PROPENSITY = ["b", "a", "b"], [-1.0, 3.0, 0.0], [0.5, 0.25, 0.2]


def test_ips():
    costs = logged_costs(ACTION, COST, PROPENSITY)
    assert costs.columns.tolist() == ["a", "b"]
    assert costs.to_numpy().tolist() == [[0, -2], [12, 0], [0, 0]]


def test_snips_columns_average_to_weighted_means_of_own_costs():
    costs = logged_costs(ACTION, COST, PROPENSITY, method="snips")
    weighted = [3.0, np.average([-1.0, 0.0], weights=[2, 5])]
    np.testing.assert_allclose(costs.mean(), weighted)
    assert (costs.to_numpy() != 0).tolist() == [[False, True], [True, False], [False, False]]


def test_offset():
    costs = logged_costs(ACTION, COST, PROPENSITY, method="offset")
    np.testing.assert_allclose(costs, [[0, -4], [8, 0], [0, -5]])  # the midrange is 1


def test_dr_corrects_predictions_by_what_was_seen():
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(40, 2)), np.full(40, 0.5)
    action = rng.integers(2, size=40)
    cost = X @ [1.0, -1.0] + 3 * action
    # predictions of linear costs without noise are all but right, so nothing is left to correct
    costs = logged_costs(
        action, cost, p, method="dr", X=X, reward_model=Ridge(alpha=1e-10), random_state=0
    )
    expected = (X @ [1.0, -1.0])[:, None] + [0, 3]
    np.testing.assert_allclose(costs, expected, atol=1e-6)


def test_dr_of_a_model_that_says_nothing_is_ips_of_what_it_misses():
    rng = np.random.default_rng(1)
    action, cost, p = rng.integers(2, size=30), rng.normal(size=30), rng.uniform(0.2, 1, 30)
    X = np.zeros((30, 1))
    half = [(np.arange(15, 30), np.arange(15)), (np.arange(15), np.arange(15, 30))]
    costs = logged_costs(action, cost, p, method="dr", X=X, cv=half).to_numpy()
    for own, other in ((slice(0, 15), slice(15, 30)), (slice(15, 30), slice(0, 15))):
        for a in range(2):
            mean = cost[other][action[other] == a].mean()
            expected = mean + np.where(action[own] == a, (cost[own] - mean) / p[own], 0)
            np.testing.assert_allclose(costs[own, a], expected)


def test_slates_with_empty_slots():
    action = [["a", "b"], ["c", None], [None, None]]
    cost = [[-1, 2], [4, np.nan], [np.nan, np.nan]]
    p = [[0.5, 1.0], [0.4, 9], [9, 9]]
    costs = logged_costs(action, cost, p)
    assert costs.to_numpy().tolist() == [[-2, 2, 0], [0, 0, 10], [0, 0, 0]]


def test_slates_in_the_doubly_robust_way():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    action = rng.permuted(np.tile(np.arange(3), (60, 1)), axis=1)[:, :2]
    f = X @ rng.normal(size=(2, 3))
    cost = np.take_along_axis(f, action, axis=1)
    p = np.full((60, 2), 2 / 3)
    costs = logged_costs(action, cost, p, method="dr", X=X, reward_model=Ridge(alpha=1e-10))
    np.testing.assert_allclose(costs, f, atol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, pl.Series, tuple])
def test_kinds_of_columns(kind):
    costs = logged_costs(kind(ACTION), kind(COST), kind(PROPENSITY))
    pd.testing.assert_frame_equal(costs, logged_costs(ACTION, COST, PROPENSITY), check_dtype=False)


def test_index_labels_and_order():
    log = pd.DataFrame({"ad": [3, 1, 3], "cost": [0.0, 1, 2], "p": [0.5] * 3}, index=[7, 8, 9])
    costs = logged_costs(log["ad"], log["cost"], log["p"])
    assert (costs.index.tolist(), costs.columns.tolist()) == ([7, 8, 9], [1, 3])
    costs = logged_costs(log["ad"], log["cost"], log["p"], ads=[3, 2, 1])
    assert costs.columns.tolist() == [3, 2, 1]
    assert costs.to_numpy().tolist() == [[0, 0, 0], [0, 0, 2], [4, 0, 0]]
    mixed = logged_costs(["x", 1], [1.0, 1.0], [1.0, 1.0])
    assert mixed.columns.tolist() == [1, "x"]  # of two kinds: numbers first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propensity": [0.5, 0.0, 0.2]}, "row 1 has 0"),
        ({"propensity": [0.5, 1.5, 0.2]}, "row 1 has 1.5"),
        ({"propensity": [0.5, np.nan, 0.2]}, "row 1 has nan"),
        ({"propensity": [0.5, 0.2]}, "propensity has 2 entries for 3 slates"),
        ({"cost": [0.5, np.nan, 0.2]}, "cost is nan in row 1"),
        ({"cost": ["x", 1, 2]}, "cost must be numbers"),
        ({"action": []}, "log is empty"),
        ({"action": [None, None, None]}, "log is empty"),
        ({"ads": ["a"]}, "row 0 shows 'b', which is not in ads"),
        ({"method": "mips"}, "method='mips' must be one of"),
        ({"method": "dr"}, "pass X="),
        ({"method": "dr", "X": np.zeros((2, 1))}, "X has 2 rows, action has 3"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    given = {"action": ACTION, "cost": COST, "propensity": PROPENSITY} | change
    with pytest.raises(ValueError, match=message):
        logged_costs(**given)


@pytest.mark.parametrize("slots", [1, 2])
def test_large_integers_beside_empty_slots_are_not_rounded(slots):
    shown = [2**53, 2**53 + 1, None]
    action = shown if slots == 1 else [[7, shown[0]], [7, shown[1]], [7, None]]
    filled = np.array([row is not None for row in shown])
    cost = np.where(filled, -1.0, np.nan)
    if slots == 2:
        cost = np.column_stack([np.zeros(3), cost])
    costs = logged_costs(action, cost, np.where(np.isnan(cost), np.nan, 0.5))
    assert costs.columns.tolist() == [7, 2**53, 2**53 + 1][2 - slots :]
    expected = np.vstack([np.diag([-2.0, -2.0]), np.zeros(2)])
    np.testing.assert_array_equal(costs[[2**53, 2**53 + 1]], expected)


def test_warnings_are_those_of_the_caller():
    clicks = np.arange(200) % 5 == 0
    wrong = np.full(200, 0.01)
    calls = {
        "must be costs, lower is better": (clicks, np.full(200, 0.5)),
        "holds 255 as uint8": (-clicks.astype(np.uint8), np.full(200, 0.5)),
        "or the propensities are wrong": (-1.0 * clicks, wrong),
    }
    for message, (cost, propensity) in calls.items():
        with pytest.warns(UserWarning, match=message) as caught:
            logged_costs(["a", "b"] * 100, cost, propensity)
        assert {warning.filename for warning in caught} == {__file__}
