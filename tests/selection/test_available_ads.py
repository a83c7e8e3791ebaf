"""Available ads: at fit, at prediction, and ads that come and go."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector, assign, logged_costs
from tests.worlds import refuses, warns

# === Availability of selectors: labels as for policies; catalogs that change ====================

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
def test_labels_per_row_mean_the_same_as_a_table(selector):
    expected = selector.fit(X, Y, available=MASK).predict(X, available=MASK)
    found = selector.fit(X, Y, available=LABELS).predict(X, available=LABELS)
    np.testing.assert_array_equal(found, expected)
    assert selector.score(X, Y, available=LABELS) == selector.score(X, Y, available=MASK)


def test_integer_ads_in_tuples_are_labels_and_not_booleans():
    selector = PopularitySetSelector(n_select=2).fit(X, [[0.0, 1.0, -1.0]] * N)
    assert selector.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0, 1]] * 4
    assert selector.predict(X[:1], available=[(2, 1)]).tolist() == [[2, 1]]
    # two ads: as booleans, only 1 would be available
    two = PopularitySetSelector().fit(X, [[-1.0, 0.0]] * N)
    assert two.predict(X[:4], available=[(0, 1)] * 4).tolist() == [[0]] * 4


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_ads_unknown_to_the_selector_are_refused_or_ignored(selector):
    today = [("hat", "scarf")] * N  # scarf is new; shoe, coat and sock were retired
    message = r"unknown ads: 'scarf'.*unknown_ads=\"ignore\""
    refuses(message, selector.fit(X, Y).predict, X, available=today)
    lenient = clone(selector).set_params(unknown_ads="ignore").fit(X, Y)
    for available in (today, pd.DataFrame({"hat": [True] * N, "scarf": True})):
        assert (np.ravel(lenient.predict(X, available=available)) == "hat").all()
    refuses("Row 0 has 0 available ads", lenient.predict, X, available=["scarf"])
    expected = lenient.fit(X, Y, available=LABELS).predict(X)
    lenient.fit(X, Y, available=[(*row, "scarf") for row in LABELS])
    np.testing.assert_array_equal(lenient.predict(X), expected)


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
    refuses("is the label of an ad", selector.predict, rows, fill=slots[0])
    assert selector.score(rows, costs[slots[::-1]]) == selector.score(rows, costs)
    for capacity in ({slots[3]: 3}, pd.Series([3], index=slots[3:])):
        assert (assign(selector.predict_costs(rows), capacity) == slots[3]).sum() == 3
    features = pd.DataFrame(np.eye(4), index=slots)
    shared = RegressionSetSelector().fit(rows, costs, ad_features=features[::-1])
    chosen = shared.predict(rows, ad_features=features, available=list(slots[:2]))
    assert set(chosen.ravel()) <= set(slots[:2])
    shown = slots[np.arange(30) % 4]
    estimated = logged_costs(shown, np.full(30, -2.0), np.full(30, 0.25), ads=list(slots))
    assert estimated.columns.tolist() == list(slots)


def test_columns_of_arrow_tables_are_labels():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    costs = pa.table({"b": [0.0, -1.0, -2.0], "a": [-3.0, 0.0, 0.0]})
    selector = PopularitySetSelector().fit(np.zeros((3, 1)), costs)
    assert selector.ads_.tolist() == ["b", "a"]
    assert assign(costs).ravel().tolist() == ["a", "b", "b"]


# === Costs from logs in which not every ad can be shown in every row ============================

ADS = ["a", "b", "c"]
MEANS = np.array([-1.0, -0.5, -2.0])
SHARES = np.array([1.0, 0.2, 0.6])  # of the rows in which an ad is available
METHODS = ["ips", "snips", "dr", "offset"]


def volatile_log(n, n_slots, seed=0):
    """Ads drawn uniformly among those available, their costs, inclusion probabilities and mask."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    mask = rng.random((n, 3)) < SHARES
    order = np.where(mask, rng.random((n, 3)), np.inf).argsort(axis=1)[:, :n_slots]
    shown = np.take_along_axis(mask, order, axis=1)
    p = np.minimum(n_slots / mask.sum(axis=1), 1.0)[:, None]
    cost = MEANS[order] + 0.5 * x[:, None] * (order == 2) + 0.3 * rng.normal(size=order.shape)
    action = np.where(shown, np.array(ADS, dtype=object)[order], None)
    return x[:, None], action, np.where(shown, cost, np.nan), np.where(shown, p, np.nan), mask


@pytest.mark.parametrize("n_slots", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_costs_are_unbiased_where_an_ad_is_available(method, n_slots):
    X, action, cost, p, mask = volatile_log(10_000, n_slots)
    options = {"X": X, "random_state": 0} if method == "dr" else {}
    found = logged_costs(action, cost, p, method=method, available=mask, ads=ADS, **options)
    np.testing.assert_array_equal(found.notna(), mask)
    shift = (np.nanmin(cost) + np.nanmax(cost)) / 2 if method == "offset" else 0.0
    errors = (found.mean() + shift - MEANS) / (found.std() / np.sqrt(mask.sum(axis=0)))
    # a test of 3 ads at 5 standard errors fails by chance with probability 2e-6
    assert (abs(errors) < 5).all()


def test_snips_divides_by_the_rows_where_an_ad_was_available():
    """Exact without noise in the costs; over all rows, the weights of b have the mean .2."""
    rng = np.random.default_rng(0)
    there = rng.random(200_000) < 0.2
    shows_b = there & (rng.random(200_000) < 0.5)
    log = np.where(shows_b, "b", "a"), np.where(shows_b, -0.5, -1.0), np.where(there, 0.5, 1.0)
    available = pd.DataFrame({"a": True, "b": there})
    found = logged_costs(*log, method="snips", available=available)
    assert found.mean().tolist() == pytest.approx([-1.0, -0.5])
    message = r"ad 'b' have the mean 0\.2.* \(pass available=\)"
    blind = warns(message, logged_costs, *log, method="snips")
    assert blind["b"][there].mean() == pytest.approx(-2.5, rel=0.02)


def test_ads_never_shown_cost_nothing_where_they_were_available():
    found = logged_costs(["b", "d"], [1.0, 1.0], [0.5, 0.5], available=[("b", "c"), ("d", "a")])
    expected = pd.DataFrame(
        {"a": [np.nan, 0], "b": [2, np.nan], "c": [0, np.nan], "d": [np.nan, 2.0]}
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"available": [("a",), ("a",)]}, "row 1: the action 'b' is not among the available arms"),
        ({"available": [("a", "z")] * 2, "ads": ["a", "b"]}, "row 0 names unknown ads: 'z'"),
        ({"available": np.ones((2, 3), dtype=bool)}, r"shape \(2, 3\), expected \(2, 2\)"),
        ({"propensity": [0.5, 5e-324]}, r"propensity is 4\.9.*e-324 in row 1, .* Correct"),
        ({"propensity": [0.5, 1e-151]}, r"propensity is 1e-151 in row 1, with the cost -1"),
    ],
)
def test_logged_costs_refuse(change, message):
    given = {"action": ["a", "b"], "cost": [-1.0, -1.0], "propensity": [0.5, 0.5], **change}
    refuses(message, logged_costs, **given)


def test_logged_costs_warn_of_propensities_that_are_too_small():
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=500)
    logged_costs(action, -1.0 * action, np.full(500, 0.5))  # right, and nothing to say
    with pytest.warns(UserWarning, match=r"have the mean 1\.[678].* or the propensities are wrong"):
        logged_costs(action, -1.0 * action, np.full(500, 0.3), available=[0, 1])


def test_costs_that_are_masked_or_all_missing_are_refused():
    masked = np.ma.masked_array([1.0], [True])
    refuses("cost is a masked array", logged_costs, ["a"], masked, [0.5], error=TypeError)
    selector, nothing = RegressionSetSelector(), np.full((4, 3), np.nan)
    refuses("No cost was observed", selector.fit, np.eye(4), nothing, ad_features=np.eye(3))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_sparse_rows_predict_as_dense_ones(missing):
    """Also where columns have means, which only dense rows are freed of."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)) + 5, rng.normal(size=(50, 4))
    y[rng.random(y.shape) < missing] = np.nan
    dense, sparse = (
        RegressionSetSelector().fit(rows, y, ad_features=np.eye(4)).predict_costs(rows)
        for rows in (X, csr_array(X))
    )
    np.testing.assert_allclose(dense, sparse, rtol=1e-8, atol=1e-10)
