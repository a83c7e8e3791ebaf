"""Costs from logs in which not every ad can be shown in every row."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from skbandit import RegressionSetSelector
from skbandit.selection import logged_costs

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
    X, action, cost, p, mask = volatile_log(40_000, n_slots)
    options = {"X": X, "random_state": 0} if method == "dr" else {}
    found = logged_costs(action, cost, p, method=method, available=mask, ads=ADS, **options)
    np.testing.assert_array_equal(found.notna(), mask)
    shift = (np.nanmin(cost) + np.nanmax(cost)) / 2 if method == "offset" else 0.0
    errors = (found.mean() + shift - MEANS) / (found.std() / np.sqrt(mask.sum(axis=0)))
    # a test of 3 ads at 5 standard errors fails by chance with probability 2e-6
    assert (abs(errors) < 5).all()


def test_snips_divides_by_the_rows_where_an_ad_was_available():
    rng = np.random.default_rng(0)
    n = 200_000
    there = rng.random(n) < 0.2
    shows_b = there & (rng.random(n) < 0.5)
    action = np.where(shows_b, "b", "a")
    p = np.where(there, 0.5, 1.0)
    available = pd.DataFrame({"a": True, "b": there})
    found = logged_costs(
        action, np.where(shows_b, -0.5, -1.0), p, method="snips", available=available
    )
    # without noise in the costs, the self-normalized mean is exact
    assert found.mean().tolist() == pytest.approx([-1.0, -0.5])
    # over all rows, the weights of b have the mean .2, and its costs came out five times too low
    with pytest.warns(UserWarning, match=r"ad 'b' have the mean 0\.2.* \(pass available=\)"):
        blind = logged_costs(action, np.where(shows_b, -0.5, -1.0), p, method="snips")
    assert blind["b"][there].mean() == pytest.approx(-2.5, rel=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_selectors_learn_the_costs_of_volatile_ads(method):
    X, action, cost, p, mask = volatile_log(8000, 1)
    options = {"X": X} if method == "dr" else {}
    y = logged_costs(action, cost, p, method=method, available=mask, ads=ADS, **options)
    learned = RegressionSetSelector().fit(X, y)
    # c is best wherever its mean, -2 + x / 2, is below that of a
    rows = np.array([[-1.0], [0.0], [1.0]])
    assert learned.predict(rows).ravel().tolist() == ["c"] * 3
    assert learned.predict(rows, available=["a", "b"]).ravel().tolist() == ["a"] * 3


def test_forms_of_available():
    _, action, cost, p, mask = volatile_log(300, 1)
    action, cost, p = action[:, 0], cost[:, 0], p[:, 0]
    labels = [tuple(np.array(ADS)[row]) for row in mask]
    expected = logged_costs(action, cost, p, method="snips", available=mask)
    for available in (labels, pd.DataFrame(mask[:, ::-1], columns=ADS[::-1])):
        found = logged_costs(action, cost, p, method="snips", available=available)
        pd.testing.assert_frame_equal(found, expected)
    action = np.random.default_rng(0).choice(ADS, size=300)
    everywhere = logged_costs(action, cost, np.full(300, 1 / 3))
    found = logged_costs(action, cost, np.full(300, 1 / 3), available=ADS)
    pd.testing.assert_frame_equal(found, everywhere)


def test_ads_that_were_never_shown():
    found = logged_costs(["b", "d"], [1.0, 1.0], [0.5, 0.5], available=[("b", "c"), ("d", "a")])
    expected = pd.DataFrame(
        {"a": [np.nan, 0], "b": [2, np.nan], "c": [0, np.nan], "d": [np.nan, 2.0]}
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"available": [("a",), ("a",)]}, "Row 1 shows 'b', which was not available"),
        ({"available": [("a", "z")] * 2, "ads": ["a", "b"]}, "row 0 names unknown ads: 'z'"),
        ({"available": np.ones((2, 3), dtype=bool)}, r"shape \(2, 3\), expected \(2, 2\)"),
        ({"propensity": [0.5, 5e-324]}, r"propensity is 4\.9.*e-324 in row 1, .* Correct"),
        ({"propensity": [0.5, 1e-151]}, r"propensity is 1e-151 in row 1, with the cost -1"),
    ],
)
def test_refused(change, message):
    given = {"action": ["a", "b"], "cost": [-1.0, -1.0], "propensity": [0.5, 0.5], **change}
    with pytest.raises(ValueError, match=message):
        logged_costs(**given)


def test_wrong_propensities_are_told():
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=500)
    logged_costs(action, -1.0 * action, np.full(500, 0.5))  # right, and nothing to say
    with pytest.warns(UserWarning, match=r"have the mean 1\.[678].* or the propensities are wrong"):
        logged_costs(action, -1.0 * action, np.full(500, 0.3), available=[0, 1])


def test_masked_costs_are_refused():
    with pytest.raises(TypeError, match="cost is a masked array"):
        logged_costs(["a"], np.ma.masked_array([1.0], [True]), [0.5])


def test_columns_of_polars_features_have_names():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 4))
    Z = polars.DataFrame({"p": [1.0, 2.0, 3.0, 4.0], "q": [10.0, -3.0, 5.0, 0.0]})
    selector = RegressionSetSelector().fit(X, y, ad_features=Z)
    with pytest.raises(ValueError, match="in a different order than in fit"):
        selector.predict(X, ad_features=Z[["q", "p"]])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_sparse_rows_are_the_dense_ones(missing):
    """Also where columns have means, which only dense rows are freed of."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)) + 5, rng.normal(size=(50, 4))
    y[rng.random(y.shape) < missing] = np.nan
    dense, sparse = (
        RegressionSetSelector().fit(rows, y, ad_features=np.eye(4)).predict_costs(rows)
        for rows in (X, csr_array(X))
    )
    np.testing.assert_allclose(dense, sparse, rtol=1e-8, atol=1e-10)


def test_costs_of_which_none_was_observed_are_refused():
    with pytest.raises(ValueError, match="No cost was observed"):
        RegressionSetSelector().fit(np.eye(4), np.full((4, 3), np.nan), ad_features=np.eye(3))
