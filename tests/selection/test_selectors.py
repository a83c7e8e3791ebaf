"""What all selectors share: metadata, the m lowest costs, the baseline of popularity."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.fixes import parse_version

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector, _m_lowest, _mixin
from skbandit.selection._m_lowest import m_lowest
from tests.worlds import lowest

# === Set selectors inside pipelines, searches and cross-validation ==============================

X, Y, _, Z = make_set_selection(240, 4, 6, return_ad_features=True, random_state=0)
NAMES = list("uvwxyz")
Y_NAMED = pd.DataFrame(Y, columns=NAMES)
MASK = np.random.default_rng(0).random(Y.shape) < 0.7
MASK[MASK.sum(axis=1) < 2] = True
AVAILABLE = pd.DataFrame(MASK[:, ::-1], columns=NAMES[::-1])
WEIGHT = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
FOLDS = KFold(3)

routed_to_pipelines = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"),
    reason="scikit-learn 1.6 routes no metadata to the score of a Pipeline's last step",
)


def by_hand(selector, y=Y, available=None, weight=None, **metadata):
    """The scores of three folds."""
    scores = []
    for train, test in FOLDS.split(X):
        parts = [
            {
                "available": None if available is None else available[rows],
                "sample_weight": None if weight is None else weight[rows],
            }
            for rows in (train, test)
        ]
        fitted = sklearn.clone(selector).fit(X[train], y[train], **parts[0], **metadata)
        scores.append(fitted.score(X[test], y[test], **parts[1]))
    return np.array(scores)


@pytest.mark.parametrize(
    ("pipeline", "n_jobs"),
    [
        (False, None),
        pytest.param(True, None, marks=routed_to_pipelines),
        pytest.param(True, 2, marks=[routed_to_pipelines, pytest.mark.thorough]),
    ],
)
def test_availability_and_weights_are_sliced_by_fold(routing, pipeline, n_jobs):
    """No request has to be set."""
    selector = RegressionSetSelector(n_select=2)
    estimator = make_pipeline(PolynomialFeatures(1), selector) if pipeline else selector
    found = cross_validate(
        estimator,
        X,
        np.where(MASK, Y, np.nan),
        params={"available": MASK, "sample_weight": WEIGHT},
        cv=FOLDS,
        n_jobs=n_jobs,
        error_score="raise",
    )
    expected = by_hand(selector, np.where(MASK, Y, np.nan), MASK, WEIGHT)
    np.testing.assert_allclose(found["test_score"], expected)


@routed_to_pipelines
def test_searches_match_columns_of_availability_by_label(routing):
    rows = pd.DataFrame(X, columns=list("abcd")).assign(place=np.tile(["home", "away"], 120))
    columns = make_column_transformer((OneHotEncoder(), ["place"]), remainder=StandardScaler())
    model = make_pipeline(columns, RegressionSetSelector(Ridge(), 2))
    grid = {"regressionsetselector__estimator__alpha": [1.0, 100.0]}
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise")
    search.fit(rows, Y_NAMED.where(MASK), available=AVAILABLE)
    chosen = search.best_estimator_.predict(rows, available=AVAILABLE)
    assert set(chosen.ravel()) == set(NAMES)
    places = np.array([[NAMES.index(ad) for ad in row] for row in chosen])
    assert np.take_along_axis(MASK, places, axis=1).all()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_ad_features_pass_through_cross_validation_whole(routing):
    """In a tuple also where there are as many ads as rows, which would be sliced by fold."""
    selector = RegressionSetSelector(n_select=2)
    folds = {"cv": FOLDS, "error_score": "raise"}
    found = cross_validate(selector, X, Y, params={"ad_features": Z}, **folds)
    np.testing.assert_allclose(found["test_score"], by_hand(selector, ad_features=Z))

    class Fitted(RegressionSetSelector):
        def score(self, X, y, *, available=None, ad_features=None, sample_weight=None):
            assert len(ad_features[0]) == 240
            return super().score(X, y)

    catalog = pd.DataFrame(np.tile(Z, (40, 1)), columns=Z.columns)  # 240 rows, as X has
    again = cross_validate(Fitted(n_select=2), X, Y, params={"ad_features": (catalog,)}, **folds)
    np.testing.assert_allclose(again["test_score"], found["test_score"])
    with pytest.raises(ValueError, match=r"no row for ad .*pass \(ad_features,\), a tuple"):
        cross_validate(selector, X, Y, params={"ad_features": catalog}, **folds)


def test_weights_reach_the_learner_inside_a_search():
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10]})
    weighted = RegressionSetSelector(search).fit(X, Y, sample_weight=WEIGHT)
    unweighted = RegressionSetSelector(search).fit(X, Y)
    assert (weighted.predict_costs(X) != unweighted.predict_costs(X)).any()


# === PopularitySetSelector: mean costs, in the same interface as the others =====================

RNG = np.random.default_rng(0)
X_POPULARITY = RNG.normal(size=(50, 2))
Y_POPULARITY = RNG.integers(-3, 1, size=(50, 6)).astype(float)
HOLES = np.where(RNG.random(Y_POPULARITY.shape) < 0.3, np.nan, Y_POPULARITY)
STOCK = RNG.random(Y_POPULARITY.shape) < 0.6
STOCK[STOCK.sum(axis=1) < 3] = True


@pytest.mark.parametrize("stock", [None, STOCK], ids=["all there", "some there"])
def test_popularity_chooses_by_mean_costs(stock):
    selector = PopularitySetSelector(3).fit(X_POPULARITY, HOLES, available=stock)
    seen = np.ones_like(STOCK) if stock is None else stock
    means = np.nanmean(np.where(seen, HOLES, np.nan), axis=0)
    np.testing.assert_allclose(selector.mean_costs_, means)
    expected = lowest(np.tile(means, (50, 1)), seen, 3)
    np.testing.assert_array_equal(selector.predict(X_POPULARITY, available=stock), expected)
    np.testing.assert_allclose(selector.predict_costs(X_POPULARITY), np.tile(means, (50, 1)))
    np.testing.assert_allclose(selector.decision_function(X_POPULARITY), -np.tile(means, (50, 1)))
    paid = np.take_along_axis(Y_POPULARITY, expected, axis=1).sum(axis=1).mean()
    score = selector.score(X_POPULARITY, Y_POPULARITY, available=stock)
    assert score == pytest.approx(-paid)


def test_popularity_weighs_rows_of_sparse_costs():
    weight = RNG.integers(0, 3, 50).astype(float)
    found = PopularitySetSelector().fit(
        X_POPULARITY, sp.csr_array(Y_POPULARITY), sample_weight=weight
    )
    np.testing.assert_allclose(found.mean_costs_, np.average(Y_POPULARITY, axis=0, weights=weight))


def test_popularity_breaks_ties_by_the_first_ad_and_needs_no_numbers_in_rows():
    texts = ["to be", "or not"] * 25
    found = PopularitySetSelector(2).fit(texts, np.zeros((50, 4))).predict(texts)
    np.testing.assert_array_equal(found, np.tile([0, 1], (50, 1)))


# === The m lowest costs: brute force, ties, what may not be taken ===============================


def sorted_columns(costs, m, allowed):
    """The same by sorting everything."""
    usable = costs < np.inf if allowed is None else (costs < np.inf) & allowed
    order = np.argsort(np.where(usable, costs, np.inf), axis=1, kind="stable")[:, :m]
    return np.where(np.take_along_axis(usable, order, axis=1), order, -1)


@pytest.mark.thorough
@pytest.mark.parametrize("fewest", [0, 1000], ids=["scan", "partition"])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    m=st.integers(1, 30),
    n_distinct=st.integers(2, 200),
    dtype=st.sampled_from([np.float32, np.float64]),
    finite=st.booleans(),
    masked=st.booleans(),
)
def test_the_m_lowest_are_those_of_sorted_costs(
    fewest, seed, n, m, n_distinct, dtype, finite, masked
):
    """Blocks of the scan that are full or not, ties, costs that are not finite."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, n_distinct, size=(5, n)).astype(dtype)
    if not finite:
        costs[rng.random(costs.shape) < 0.1] = np.inf
        costs[rng.random(costs.shape) < 0.1] = np.nan
    allowed = rng.random(costs.shape) < rng.random() if masked else None
    m = min(n, m)
    with mock.patch.object(_m_lowest, "SCAN_MIN_ADS", fewest):
        found = m_lowest(costs.copy(), m, allowed)
    np.testing.assert_array_equal(found, sorted_columns(costs, m, allowed))


@pytest.mark.parametrize(("n", "m"), [(255, 3), (256, 100), (256, 101), (256, 256), (1, 1)])
def test_m_lowest_sorts_on_both_sides_of_its_choice_of_a_way(n, m):
    costs = np.random.default_rng(0).normal(size=(3, n))
    np.testing.assert_array_equal(m_lowest(costs.copy(), m), sorted_columns(costs, m, None))


@pytest.mark.parametrize("form", [None, np.array, sp.csr_array])
@pytest.mark.parametrize("block_bytes", [1, 500])
def test_blocks_of_rows_change_nothing(monkeypatch, form, block_bytes):
    available = None if form is None else form(MASK)
    for selector in (RegressionSetSelector(n_select=2), SetSelectClassifier(n_select=2)):
        selector.fit(X, Y)
        expected = sorted_columns(selector.predict_costs(X), 2, form and MASK)
        with monkeypatch.context() as patch:
            patch.setattr(_mixin, "BLOCK_BYTES", block_bytes)
            np.testing.assert_array_equal(selector.predict(X, available=available), expected)
