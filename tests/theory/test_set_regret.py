"""Mineiro (2010), regret of the reduction to regression.

With f* the expected costs, g the regressor's, and sets of m chosen by lowest g,

    regret <= sqrt(2 min(m, n - m)) sqrt(n) sqrt(mean over rows and ads of (g - f*)^2).

The bound holds for every distribution of rows: these tests cannot fail by chance.
"""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from skbandit import RegressionSetSelector
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector
from skbandit.selection._m_lowest import m_lowest
from tests.tiers import first


def regret(expected, chosen, weight=None):
    """How much more the chosen sets cost than the best ones, on average over rows."""
    m = chosen.shape[1]
    paid = np.take_along_axis(expected, chosen, axis=1).sum(axis=1)
    return np.average(paid - np.sort(expected, axis=1)[:, :m].sum(axis=1), weights=weight)


def bound(expected, predicted, m, weight=None):
    n = expected.shape[1]
    error = np.average(((predicted - expected) ** 2).mean(axis=1), weights=weight)
    return np.sqrt(2 * min(m, n - m) * n * error)


@pytest.mark.parametrize("seed", first(1, range(30)))
def test_the_bound_holds_for_random_distributions(seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 8), rng.integers(2, 12)
    weight = rng.dirichlet(np.ones(k))
    expected = rng.standard_t(2, size=(k, n))
    for scale in (0.01, 0.3, 3.0):
        predicted = expected + scale * rng.standard_t(2, size=(k, n))
        for m in range(1, n + 1):
            found = regret(expected, m_lowest(predicted.copy(), m), weight)
            assert found <= bound(expected, predicted, m, weight) + 1e-12


@pytest.mark.parametrize(("n", "m"), [(2, 1), (10, 1), (10, 5), (10, 7), (9, 8), (300, 40)])
def test_the_adversary_attains_the_bound(n, m):
    """Good and bad ads differ by 2 delta, and are all predicted to cost the same, or nearly so.

    As many swap their places as can: min(m, n - m). The others stay where they belong.
    """
    swapped, delta = min(m, n - m), 0.4
    expected = np.full((1, n), 9.0)
    expected[0, :swapped] = delta
    expected[0, swapped : 2 * swapped] = -delta
    expected[0, 2 * swapped : m + swapped] = -9.0
    predicted = expected.copy()
    predicted[0, : 2 * swapped] = 0.0  # ties go to the first, which are the bad ones
    chosen = m_lowest(predicted.copy(), m)
    assert regret(expected, chosen) == pytest.approx(2 * swapped * delta)
    assert bound(expected, predicted, m) == pytest.approx(2 * swapped * delta)


@pytest.mark.parametrize(
    "estimator", [None, ExtraTreesRegressor(5, random_state=0)], ids=["ridge", "trees"]
)
def test_the_bound_holds_for_fitted_selectors(estimator):
    X, y, expected = make_set_selection(1500, n_ads=12, random_state=0)
    train, test = slice(0, 500), slice(500, None)
    for m in (1, 3, 6, 11):
        selector = RegressionSetSelector(estimator, m).fit(X[train], y[train])
        found = regret(expected[test], selector.predict(X[test]))
        assert found <= bound(expected[test], selector.predict_costs(X[test]), m)


def test_regret_falls_with_the_number_of_rows():
    """Linear costs are nearly right here; popularity never learns.

    The seed is fixed. For others, each comparison failed in none of 200 tries.
    """
    X, y, expected = make_set_selection(11_000, n_ads=12, random_state=1)
    test = slice(10_000, None)
    regrets = [
        regret(expected[test], RegressionSetSelector(n_select=3).fit(X[:k], y[:k]).predict(X[test]))
        for k in (100, 1000, 10_000)
    ]
    assert regrets[0] > 2 * regrets[1]
    assert regrets[1] > 1.3 * regrets[2]
    popularity = PopularitySetSelector(3).fit(X[:10_000], y[:10_000])
    assert regret(expected[test], popularity.predict(X[test])) > 5 * regrets[2]
