"""Positions of unequal weight: the best order, its regret, and what `score` counts."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector
from skbandit.selection._costs import read_position_weights
from skbandit.selection._m_lowest import m_lowest
from skbandit.selection._rounds import MASKED, run_rounds
from tests.tiers import first

EXAMINED = (1.0, 0.5, 0.33)
X, Y, EXPECTED = make_set_selection(400, 4, 7, random_state=0)
SELECTORS = [
    PopularitySetSelector(3),
    RegressionSetSelector(n_select=3),
    SetSelectClassifier(n_select=3),
]


def falling(rng, m):
    """Random weights that do not rise, some equal, some 0."""
    return np.sort(rng.choice([0.0, 0.2, 0.5, 0.5, 1.0, rng.random() + 0.01], m))[::-1]


# --- theory --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", first(5, range(50)))
def test_the_cheapest_first_are_best_of_all_ordered_choices(seed):
    rng = np.random.default_rng(seed)
    n_ads = int(rng.integers(1, 6))
    m = int(rng.integers(1, n_ads + 1))
    f, w = rng.normal(size=n_ads), falling(rng, m)
    brute = min(w @ f[list(order)] for order in permutations(range(n_ads), m))
    np.testing.assert_allclose(w @ f[m_lowest(f[None].copy(), m)[0]], brute)


@pytest.mark.parametrize("seed", first(5, range(50)))
def test_regret_is_that_of_the_first_k_as_sets(seed):
    """And so has the bound of regression, by weights w_k - w_{k+1}."""
    rng = np.random.default_rng(seed)
    n, n_ads = 30, int(rng.integers(2, 8))
    m = int(rng.integers(1, n_ads + 1))
    w = falling(rng, m)
    f = rng.normal(size=(n, n_ads))
    g = f + rng.normal(0, rng.random(), size=f.shape)
    paid = np.take_along_axis(f, m_lowest(g.copy(), m), axis=1)
    best = np.sort(f, axis=1)[:, :m]
    regret = ((paid - best) @ w).mean()
    steps = w - np.append(w[1:], 0.0)
    np.testing.assert_allclose(regret, (np.cumsum(paid - best, axis=1) @ steps).mean())
    k = np.arange(1, m + 1)
    size = np.sqrt(2 * np.minimum(k, n_ads - k) * n_ads * ((g - f) ** 2).mean())
    assert regret <= steps @ size + 1e-12


class Arbitrary:
    """A classifier that ranks the ads of each row by fixed scores."""

    def __init__(self, scores):
        self.scores = scores

    def respond(self, X):
        return self.scores

    def choose(self, answers, allowed):
        return np.where(allowed, answers, np.inf).argmin(axis=1)


@pytest.mark.parametrize("seed", first(5, range(50)))
def test_rounds_pay_their_regret_by_weight(seed):
    """sum_k w_k q_k, whatever the classifiers predict."""
    rng = np.random.default_rng(seed)
    n, n_ads = 20, int(rng.integers(2, 7))
    m = int(rng.integers(1, n_ads + 1))
    w, f = falling(rng, m), rng.normal(size=(n, n_ads))
    rules = tuple(Arbitrary(rng.normal(size=f.shape)) for _ in range(m))
    everything = np.ones(f.shape, dtype=bool)
    picks = run_rounds(rules, np.zeros((n, 1)), everything, MASKED, mask_features_from=None)
    rows, chosen, bound = np.arange(n), np.zeros_like(everything), 0.0
    for k in range(m):
        c = np.where(chosen, np.inf, f)
        bound += w[k] * (c[rows, picks[:, k]] - c.min(axis=1))
        chosen[rows, picks[:, k]] = True
    paid = np.take_along_axis(f, picks, axis=1) @ w
    assert (paid - np.sort(f, axis=1)[:, :m] @ w <= bound + 1e-12).all()


# --- score ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_score_counts_costs_by_position(selector, form):
    selector = clone(selector).fit(X, Y)
    chosen = selector.predict(X)
    row_weight = np.arange(len(X), dtype=float)
    paid = np.take_along_axis(Y, chosen, axis=1) @ EXAMINED
    expected = -np.average(paid, weights=row_weight)
    found = selector.score(X, form(Y), sample_weight=row_weight, position_weights=EXAMINED)
    np.testing.assert_allclose(found, expected)
    ones = selector.score(X, Y, position_weights=np.ones(4))
    np.testing.assert_allclose(ones, selector.score(X, Y))


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_the_order_of_predict_is_best_first(selector):
    selector = clone(selector).fit(X, Y)
    by_position = np.take_along_axis(EXPECTED, selector.predict(X), axis=1).mean(axis=0)
    assert (np.diff(by_position) > 0).all()
    if hasattr(selector, "predict_costs"):
        costs = np.take_along_axis(selector.predict_costs(X), selector.predict(X), axis=1)
        assert (np.diff(costs, axis=1) >= 0).all()


def test_positions_of_no_weight_need_no_costs():
    selector = RegressionSetSelector(n_select=2).fit(X, Y)
    chosen = selector.predict(X)
    seen = Y.copy()
    np.put_along_axis(seen, chosen[:, 1:], np.nan, axis=1)
    alone = -np.take_along_axis(Y, chosen[:, :1], axis=1).mean()
    np.testing.assert_allclose(selector.score(X, seen, position_weights=(1, 0)), alone)
    with pytest.raises(ValueError, match="cost was not observed"):
        selector.score(X, seen, position_weights=(1, 0.1))


def test_costs_missing_as_in_fit_are_estimated_by_position():
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    selector = RegressionSetSelector(n_select=3).fit(X, holes)
    found = selector.score(X, holes, position_weights=EXAMINED)
    truth = selector.score(X, Y, position_weights=EXAMINED)
    assert abs(found - truth) < 0.1
    twice = selector.score(X, holes, position_weights=2 * np.array(EXAMINED))
    np.testing.assert_allclose(twice, 2 * found)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0, 0.5), r"shape \(2,\), but n_select=3 positions"),
        ([[1.0, 0.5, 0.2]], r"shape \(1, 3\)"),
        ((1.0, np.nan, 0.2), r"position_weights\[1\] is nan"),
        ((1.0, 0.5, -0.2), r"position_weights\[2\] is -0.2"),
        ((0.5, 1.0, 0.5), r"rise from 0.5 to 1 \(positions 0 and 1\).*descending order"),
        ((0.0, 0.0, 0.0), "all 0"),
    ],
)
def test_impossible_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        read_position_weights(weights, 3)
    for selector in SELECTORS:
        fitted = clone(selector).fit(X, Y)
        with pytest.raises(ValueError, match=message):
            fitted.score(X, Y, position_weights=weights)
