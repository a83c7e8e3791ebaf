"""PopularitySetSelector: mean costs, in the same interface as the others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.selection import PopularitySetSelector

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 2))
Y = RNG.integers(-3, 1, size=(50, 6)).astype(float)
HOLES = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)


def test_mean_costs():
    selector = PopularitySetSelector(3).fit(X, HOLES)
    means = np.nanmean(HOLES, axis=0)
    np.testing.assert_allclose(selector.mean_costs_, means)
    np.testing.assert_array_equal(selector.predict(X), np.tile(np.argsort(means)[:3], (50, 1)))
    np.testing.assert_allclose(selector.predict_costs(X), np.tile(means, (50, 1)))
    np.testing.assert_allclose(selector.decision_function(X), -np.tile(means, (50, 1)))
    chosen = np.argsort(means)[:3]
    assert selector.score(X, Y) == pytest.approx(-Y[:, chosen].sum(axis=1).mean())


def test_weights_and_sparse_costs():
    weight = RNG.integers(0, 3, 50).astype(float)
    found = PopularitySetSelector().fit(X, sp.csr_array(Y), sample_weight=weight)
    np.testing.assert_allclose(found.mean_costs_, np.average(Y, axis=0, weights=weight))


def test_availability():
    mask = RNG.random(Y.shape) < 0.6
    mask[mask.sum(axis=1) < 2] = True
    selector = PopularitySetSelector(2).fit(X, Y, available=mask)
    means = np.nanmean(np.where(mask, Y, np.nan), axis=0)
    np.testing.assert_allclose(selector.mean_costs_, means)
    costs = np.where(mask, means, np.inf)
    expected = np.argsort(costs, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(selector.predict(X, available=mask), expected)


def test_ties_go_to_the_first():
    found = PopularitySetSelector(2).fit(X, np.zeros((50, 4))).predict(X)
    np.testing.assert_array_equal(found, np.tile([0, 1], (50, 1)))


def test_rows_of_any_kind():
    names = pd.DataFrame(Y, columns=list("abcdef"))
    texts = ["to be", "or not"] * 25
    found = PopularitySetSelector(2).fit(texts, names).predict(texts)
    assert found.shape == (50, 2)
    assert make_pipeline(StandardScaler(), PopularitySetSelector()).fit(X, names).score(X, names)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (Y[1:], {}, "X has 50 rows, y has 49"),
        (np.where(np.arange(6) == 2, np.nan, Y), {}, "No cost of ad 2"),
        (Y, {"n_select": 7}, "n_select=7"),
    ],
)
def test_bad_input(y, options, message):
    with pytest.raises(ValueError, match=message):
        PopularitySetSelector(**options).fit(X, y)


def test_ad_features_are_refused():
    selector = PopularitySetSelector().fit(X, Y)
    with pytest.raises(ValueError, match="PopularitySetSelector takes no ad_features"):
        selector.predict(X, ad_features=np.zeros((6, 1)))
