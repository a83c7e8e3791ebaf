"""What all selectors share: metadata, the m lowest costs, the baseline of popularity."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.fixes import parse_version

from skbandit import RegressionSetSelector
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector
from skbandit.selection._costs import read_cost_matrix
from skbandit.selection._m_lowest import (
    _by_partition,
    _by_scan,
    choose_in_blocks,
    m_lowest,
    set_costs,
)

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
def test_availability_and_weights_are_routed(routing, pipeline, n_jobs):
    """And sliced by fold; no request has to be set."""
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
def test_search_with_frames(routing):
    """Columns of availability in another order than those of y."""
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


def test_ad_features_pass_through_cross_validation(routing):
    """Also where there are as many ads as rows, in a tuple."""
    catalog = pd.DataFrame(np.tile(Z, (40, 1)), columns=Z.columns)  # 240 rows, as X has
    selector = RegressionSetSelector(n_select=2)
    expected = by_hand(selector, ad_features=Z)
    found = cross_validate(selector, X, Y, params={"ad_features": Z}, cv=FOLDS, error_score="raise")
    np.testing.assert_allclose(found["test_score"], expected)

    class Fitted(RegressionSetSelector):
        def score(self, X, y, *, available=None, ad_features=None, sample_weight=None):
            assert len(ad_features[0]) == 240
            return super().score(X, y)

    found = cross_validate(
        Fitted(n_select=2), X, Y, params={"ad_features": (catalog,)}, cv=FOLDS, error_score="raise"
    )
    np.testing.assert_allclose(found["test_score"], expected)
    with pytest.raises(ValueError, match=r"no row for ad .*pass \(ad_features,\), a tuple"):
        cross_validate(
            selector, X, Y, params={"ad_features": catalog}, cv=FOLDS, error_score="raise"
        )


def test_predictions_in_a_pipeline():
    model = make_pipeline(PolynomialFeatures(), RegressionSetSelector(n_select=2)).fit(X, Y_NAMED)
    found = model.predict(X, available=AVAILABLE, n_select=1)
    assert found.shape == (240, 1)
    assert model.score(X, Y_NAMED) > PopularitySetSelector(2).fit(X, Y).score(X, Y)
    assert "RegressionSetSelector" in estimator_html_repr(model)


@pytest.mark.parametrize(
    "inner", [make_pipeline(StandardScaler(), Ridge()), GridSearchCV(Ridge(), {"alpha": [0.1, 10]})]
)
def test_weights_reach_learners_inside_others(inner):
    rows = np.repeat(np.arange(240), WEIGHT.astype(int))
    weighted = RegressionSetSelector(inner).fit(X, Y, sample_weight=WEIGHT)
    unweighted = RegressionSetSelector(inner).fit(X, Y)
    assert (weighted.predict_costs(X) != unweighted.predict_costs(X)).any()
    if not isinstance(inner, GridSearchCV):  # whose folds are others
        scaler = StandardScaler().fit(X[WEIGHT > 0])
        ridge = Ridge().fit(scaler.transform(X)[rows], Y[rows])
        expected = ridge.predict(scaler.transform(X))
        np.testing.assert_allclose(weighted.predict_costs(X), expected)


# === PopularitySetSelector: mean costs, in the same interface as the others =====================

RNG = np.random.default_rng(0)
X_POPULARITY = RNG.normal(size=(50, 2))
Y_POPULARITY = RNG.integers(-3, 1, size=(50, 6)).astype(float)
HOLES = np.where(RNG.random(Y_POPULARITY.shape) < 0.3, np.nan, Y_POPULARITY)


def test_mean_costs():
    selector = PopularitySetSelector(3).fit(X_POPULARITY, HOLES)
    means = np.nanmean(HOLES, axis=0)
    np.testing.assert_allclose(selector.mean_costs_, means)
    np.testing.assert_array_equal(
        selector.predict(X_POPULARITY), np.tile(np.argsort(means)[:3], (50, 1))
    )
    np.testing.assert_allclose(selector.predict_costs(X_POPULARITY), np.tile(means, (50, 1)))
    np.testing.assert_allclose(selector.decision_function(X_POPULARITY), -np.tile(means, (50, 1)))
    chosen = np.argsort(means)[:3]
    assert selector.score(X_POPULARITY, Y_POPULARITY) == pytest.approx(
        -Y_POPULARITY[:, chosen].sum(axis=1).mean()
    )


def test_weights_and_sparse_costs():
    weight = RNG.integers(0, 3, 50).astype(float)
    found = PopularitySetSelector().fit(
        X_POPULARITY, sp.csr_array(Y_POPULARITY), sample_weight=weight
    )
    np.testing.assert_allclose(found.mean_costs_, np.average(Y_POPULARITY, axis=0, weights=weight))


def test_availability():
    mask = RNG.random(Y_POPULARITY.shape) < 0.6
    mask[mask.sum(axis=1) < 2] = True
    selector = PopularitySetSelector(2).fit(X_POPULARITY, Y_POPULARITY, available=mask)
    means = np.nanmean(np.where(mask, Y_POPULARITY, np.nan), axis=0)
    np.testing.assert_allclose(selector.mean_costs_, means)
    costs = np.where(mask, means, np.inf)
    expected = np.argsort(costs, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(selector.predict(X_POPULARITY, available=mask), expected)


def test_ties_go_to_the_first():
    found = PopularitySetSelector(2).fit(X_POPULARITY, np.zeros((50, 4))).predict(X_POPULARITY)
    np.testing.assert_array_equal(found, np.tile([0, 1], (50, 1)))


def test_rows_of_any_kind():
    names = pd.DataFrame(Y_POPULARITY, columns=list("abcdef"))
    texts = ["to be", "or not"] * 25
    found = PopularitySetSelector(2).fit(texts, names).predict(texts)
    assert found.shape == (50, 2)
    assert (
        make_pipeline(StandardScaler(), PopularitySetSelector())
        .fit(X_POPULARITY, names)
        .score(X_POPULARITY, names)
    )


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (Y_POPULARITY[1:], {}, "X has 50 rows, y has 49"),
        (np.where(np.arange(6) == 2, np.nan, Y_POPULARITY), {}, "No cost of ad 2"),
        (Y_POPULARITY, {"n_select": 7}, "n_select=7"),
    ],
)
def test_bad_input(y, options, message):
    with pytest.raises(ValueError, match=message):
        PopularitySetSelector(**options).fit(X_POPULARITY, y)


def test_ad_features_are_refused():
    selector = PopularitySetSelector().fit(X_POPULARITY, Y_POPULARITY)
    with pytest.raises(ValueError, match="PopularitySetSelector takes no ad_features"):
        selector.predict(X_POPULARITY, ad_features=np.zeros((6, 1)))


# === The m lowest costs: brute force, ties, what may not be taken ===============================


WAYS = {"scan": _by_scan, "partition": _by_partition}


def sorted_columns(costs, m, allowed):
    """The same by sorting everything."""
    usable = costs < np.inf if allowed is None else (costs < np.inf) & allowed
    order = np.argsort(np.where(usable, costs, np.inf), axis=1, kind="stable")[:, :m]
    return np.where(np.take_along_axis(usable, order, axis=1), order, -1)


@st.composite
def problems(draw):
    """Few ads, costs with ties, any availability."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    costs = draw(arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    allowed = draw(arrays(bool, shape))
    return costs, allowed, draw(st.integers(1, shape[1]))


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@given(problem=problems())
def test_no_set_is_cheaper(way, problem):
    costs, allowed, m = problem
    chosen = WAYS[way](costs.copy(), m, allowed)
    for row, may, taken in zip(costs, allowed, chosen, strict=True):
        ads = taken[taken >= 0]
        assert len(ads) == min(m, may.sum())
        assert len(set(ads)) == len(ads)  # never twice
        assert may[ads].all()  # never unavailable
        assert (np.diff(row[ads]) >= 0).all()  # best first
        sets = combinations(np.flatnonzero(may), len(ads))
        assert row[ads].sum() == min(row[list(some)].sum() for some in sets)
    np.testing.assert_array_equal(chosen, WAYS[way](costs.copy(), m, allowed))


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    m=st.integers(1, 30),
    n_distinct=st.integers(2, 200),
    dtype=st.sampled_from([np.float32, np.float64]),
    finite=st.booleans(),
    masked=st.booleans(),
)
def test_as_if_everything_were_sorted(way, seed, n, m, n_distinct, dtype, finite, masked):
    """Blocks of the scan that are full or not, ties, costs that are not finite."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, n_distinct, size=(5, n)).astype(dtype)
    if not finite:
        costs[rng.random(costs.shape) < 0.1] = np.inf
        costs[rng.random(costs.shape) < 0.1] = np.nan
    allowed = rng.random(costs.shape) < rng.random() if masked else None
    m = min(n, m)
    found = WAYS[way](costs.copy(), m, allowed)
    np.testing.assert_array_equal(found, sorted_columns(costs, m, allowed))


@pytest.mark.parametrize(("n", "m"), [(255, 3), (256, 100), (256, 101), (256, 256), (1, 1)])
def test_both_sides_of_the_rule(n, m):
    costs = np.random.default_rng(0).normal(size=(3, n))
    np.testing.assert_array_equal(m_lowest(costs.copy(), m), sorted_columns(costs, m, None))


@pytest.mark.parametrize("form", [None, np.array, sp.csr_array])
@pytest.mark.parametrize("block_bytes", [1, 500, 2**22])
def test_blocks_of_rows_change_nothing(form, block_bytes):
    rng = np.random.default_rng(0)
    costs, mask = rng.normal(size=(23, 7)), rng.random((23, 7)) < 0.8
    available = None if form is None else form(mask)
    room = np.empty_like(costs)

    def costs_of(rows):  # memory that is used again, as `choose` allows
        np.copyto(room[: len(costs[rows])], costs[rows])
        return room[: len(costs[rows])]

    found = choose_in_blocks(costs_of, costs.shape, 3, available, block_bytes)
    np.testing.assert_array_equal(found, sorted_columns(costs, 3, form and mask))


@pytest.mark.parametrize("form", [np.array, sp.csc_array])
def test_set_costs(form):
    y = np.array([[1.0, 0.0, -2.0], [np.nan, 3.0, 0.5]])
    found = set_costs(read_cost_matrix(form(y)), np.array([[2, 1], [1, 0]]))
    np.testing.assert_array_equal(found, [-2.0, np.nan])
