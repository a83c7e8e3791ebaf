"""Availability of selectors: labels as for policies; catalogs that change."""

import numpy as np
import pandas as pd
import pytest

from skbandit import GLMUCBPolicy, RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector, assign, logged_costs

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["shoe", "hat", "coat", "sock"])
MASK = RNG.random((N, 4)) < 0.6
MASK[:, :2] |= ~MASK.any(axis=1)[:, None]
LABELS = [tuple(Y.columns[row]) for row in MASK]

SELECTORS = [
    RegressionSetSelector(),
    PopularitySetSelector(),
    SetSelectClassifier(cross_fit=None),
    SetSelectClassifier(reduction="filter_tree", random_state=0),
]


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_labels_per_row_mean_the_table(selector):
    expected = selector.fit(X, Y, available=MASK).predict(X, available=MASK)
    found = selector.fit(X, Y, available=LABELS).predict(X, available=LABELS)
    np.testing.assert_array_equal(found, expected)
    assert selector.score(X, Y, available=LABELS) == selector.score(X, Y, available=MASK)


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_one_list_for_all_rows(selector):
    selector.fit(X, Y)
    only = pd.DataFrame({name: [name in ("hat", "sock")] * N for name in Y})
    expected = selector.predict(X, available=only)
    np.testing.assert_array_equal(selector.predict(X, available=["sock", "hat"]), expected)


def test_integer_ads_in_tuples_are_not_booleans():
    selector = PopularitySetSelector(n_select=2).fit(X, [[0.0, 1.0, -1.0]] * N)
    assert selector.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0, 1]] * 4
    assert selector.predict(X[:1], available=[(2, 1)]).tolist() == [[2, 1]]
    # two ads: as booleans, only 1 would be available
    two = PopularitySetSelector().fit(X, [[-1.0, 0.0]] * N)
    assert two.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0]] * 4


def test_what_one_selector_chose_is_available_to_another():
    first = PopularitySetSelector(n_select=3).fit(X, Y).predict(X)
    second = RegressionSetSelector().fit(X, Y).predict(X, available=first)
    assert all(chosen in row for chosen, row in zip(second[:, 0], first, strict=True))


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_a_catalog_that_changed(selector):
    selector.fit(X, Y)
    today = [("hat", "scarf")] * N  # scarf is new; shoe, coat and sock were retired
    with pytest.raises(ValueError, match=r"unknown ads: 'scarf'.*unknown_ads=\"ignore\""):
        selector.predict(X, available=today)
    selector.set_params(unknown_ads="ignore")
    try:
        assert (np.ravel(selector.predict(X, available=today)) == "hat").all()
        table = pd.DataFrame({"hat": [True] * N, "scarf": True})
        assert (np.ravel(selector.predict(X, available=table)) == "hat").all()
        with pytest.raises(ValueError, match="Row 0 has 0 available ads"):
            selector.predict(X, available=["scarf"])
        # in training, too
        both = [(*row, "scarf") for row in LABELS]
        expected = selector.fit(X, Y, available=LABELS).predict(X)
        np.testing.assert_array_equal(selector.fit(X, Y, available=both).predict(X), expected)
    finally:
        selector.set_params(unknown_ads="error")


@pytest.mark.parametrize(
    "available", [["hat", "sock"], [("hat", "sock")] * N, [{"hat", "sock"}] * N]
)
def test_a_policy_reads_the_same_forms(available):
    policy = GLMUCBPolicy(arms=list(Y), random_state=0).fit(
        X, pd.DataFrame({"action": RNG.choice(list(Y), N), "reward": RNG.integers(2, size=N)})
    )
    table = pd.DataFrame({name: [name in ("hat", "sock")] * N for name in Y})
    expected = policy.predict(X, available=table)
    np.testing.assert_array_equal(policy.predict(X, available=available), expected)


# --- times as ads ----------------------------------------------------------------------------

SLOTS = pd.date_range("2024-01-01 09:00", periods=4, freq="h")
TIMES = {
    "ns": SLOTS.as_unit("ns"),
    "us": SLOTS.as_unit("us"),
    "s": SLOTS.as_unit("s"),
    "with a zone": SLOTS.as_unit("ns").tz_localize("Europe/Zurich"),
    "durations": pd.to_timedelta([1, 2, 3, 4], unit="h").as_unit("ns"),
    "categories": pd.CategoricalIndex(SLOTS.as_unit("ns")),
    "periods": pd.period_range("2024-01", periods=4, freq="M"),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_are_found_by_their_labels(kind):
    """Among them nanoseconds, the default of pandas 2, which NumPy turns into integers."""
    slots = TIMES[kind]
    rows = np.random.default_rng(0).normal(size=(30, 4))
    costs = pd.DataFrame(rows - [0, 2, 4, 6], columns=slots)  # the last is the cheapest
    selector = RegressionSetSelector().fit(rows, costs, available=list(slots))
    assert set(selector.predict(rows, available=list(slots[:2])).ravel()) <= set(slots[:2])
    masked = pd.DataFrame(np.ones((30, 4), dtype=bool), columns=slots[::-1])
    np.testing.assert_array_equal(selector.predict(rows, available=masked), selector.predict(rows))
    filled = selector.predict(rows[:2], available=[(slots[0],), ()], fill="none")
    assert filled.tolist() == [[slots[0]], ["none"]]
    with pytest.raises(ValueError, match="is the label of an ad"):
        selector.predict(rows, fill=slots[0])
    assert selector.score(rows, costs[slots[::-1]]) == selector.score(rows, costs)
    for table in (costs, selector.predict_costs(rows)):
        for capacity in ({slots[3]: 3}, pd.Series([3], index=slots[3:])):
            assert (assign(table, capacity) == slots[3]).sum() == 3
    features = pd.DataFrame(np.eye(4), index=slots)
    shared = RegressionSetSelector().fit(rows, costs, ad_features=features[::-1])
    chosen = shared.predict(rows, ad_features=features, available=list(slots[:2]))
    assert set(chosen.ravel()) <= set(slots[:2])
    shown = slots[np.arange(30) % 4]
    estimated = logged_costs(shown, np.full(30, -2.0), np.full(30, 0.25), ads=list(slots))
    assert estimated.columns.tolist() == list(slots)


def test_times_of_numpy():
    slots = SLOTS.as_unit("us").to_numpy()
    costs = pd.DataFrame(np.tile([0.0, -1, -2, -3], (30, 1)), columns=slots)
    selector = PopularitySetSelector().fit(costs, costs)
    assert set(selector.predict(costs, available=slots[:2]).ravel()) == {SLOTS[1]}
    assert (assign(costs, {slots[3]: 3}) == SLOTS[3]).sum() == 3
    estimated = logged_costs(slots[np.arange(30) % 4], np.full(30, -2.0), [0.25] * 30, ads=slots)
    assert estimated.columns.tolist() == list(SLOTS)


def test_columns_of_arrow():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    costs = pa.table({"b": [0.0, -1.0, -2.0], "a": [-3.0, 0.0, 0.0]})
    selector = PopularitySetSelector().fit(np.zeros((3, 1)), costs)
    assert selector.ads_.tolist() == ["b", "a"]
    assert assign(costs).ravel().tolist() == ["a", "b", "b"]
