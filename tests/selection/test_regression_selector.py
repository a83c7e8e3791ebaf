"""RegressionSetSelector: what learns the costs, what is chosen by them, what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor

from skbandit import RegressionSetSelector
from skbandit.datasets import make_set_selection
from skbandit.selection import _regression_selector
from skbandit.selection._ridge import NormalEquations
from tests.worlds import refuses, warns

pl = pytest.importorskip("polars", reason="polars is not installed")

X, Y, EXPECTED, Z = make_set_selection(
    300, 5, 8, n_ad_features=3, return_ad_features=True, random_state=0
)
RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random(Y.shape) < 0.4, np.nan, Y)
AVAILABLE = RNG.random(Y.shape) < 0.7
AVAILABLE[AVAILABLE.sum(axis=1) < 3, :3] = True
WEIGHT = RNG.integers(0, 4, len(X)).astype(float)
NAMES = [f"ad {j}" for j in range(8)]
NAMED = pd.DataFrame(Y, columns=NAMES)


def brute_force(costs, m, available=None):
    """All sets of m available ads: the cheapest, cheapest first."""
    costs = costs if available is None else np.where(available, costs, np.inf)
    return np.argsort(costs, axis=1, kind="stable")[:, :m]


# --- which learner -------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sp.csr_array, pd.DataFrame])
def test_the_default_is_ridge(form):
    costs = sp.csr_array(Y) if form is sp.csr_array else Y
    selector = RegressionSetSelector(n_select=3).fit(form(X), costs)
    ridge = Ridge(selector.alpha_).fit(X, Y)
    np.testing.assert_allclose(selector.coef_, ridge.coef_, atol=1e-10)
    np.testing.assert_allclose(selector.intercept_, ridge.intercept_, atol=1e-10)
    np.testing.assert_allclose(selector.predict_costs(form(X)), ridge.predict(X))
    np.testing.assert_allclose(selector.decision_function(form(X)), -ridge.predict(X))
    np.testing.assert_array_equal(selector.predict(form(X)), brute_force(ridge.predict(X), 3))
    assert not hasattr(selector, "estimator_")


@pytest.mark.parametrize(
    "estimator",
    [Ridge(3.0), Ridge(3.0, fit_intercept=False), Ridge(3.0, solver="lsqr", tol=1e-12)],
    ids=repr,
)
def test_ridge_of_any_settings_is_ridge_ad_by_ad(estimator):
    selector = RegressionSetSelector(estimator).fit(X, HOLES, sample_weight=WEIGHT)
    for j in range(8):
        rows = ~np.isnan(HOLES[:, j])
        one = clone(estimator).fit(X[rows], HOLES[rows, j], WEIGHT[rows])
        np.testing.assert_allclose(selector.predict_costs(X)[:, j], one.predict(X), atol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        ExtraTreesRegressor(3, random_state=0),
        GridSearchCV(DecisionTreeRegressor(random_state=0), {"max_depth": [2]}, cv=2),
        MultiOutputRegressor(DecisionTreeRegressor(max_depth=3, random_state=0)),
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
        LinearRegression(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_multi_output_regressors_are_fitted_once(estimator):
    """Two of them are so, although their tags deny it."""
    selector = RegressionSetSelector(estimator, 2).fit(X, Y)
    alone = clone(estimator).fit(X, Y).predict(X)
    assert type(selector.estimator_) is type(estimator)
    np.testing.assert_allclose(selector.predict_costs(X), alone)
    np.testing.assert_array_equal(selector.predict(X), brute_force(alone, 2))
    assert not hasattr(selector, "coef_")


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVR(random_state=0),
        DecisionTreeRegressor(max_depth=3, random_state=0),
        MultiOutputRegressor(DecisionTreeRegressor(max_depth=3, random_state=0)),
        make_pipeline(StandardScaler(), Ridge()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_each_ad_learns_from_its_own_rows(estimator):
    selector = RegressionSetSelector(estimator, 2).fit(X, HOLES)
    assert len(selector.estimators_) == 8
    for j in range(8):
        rows = ~np.isnan(HOLES[:, j])
        target = HOLES[rows, j]
        two_d = isinstance(estimator, MultiOutputRegressor)
        one = clone(estimator).fit(X[rows], target[:, None] if two_d else target)
        np.testing.assert_allclose(selector.predict_costs(X)[:, j], one.predict(X).ravel())


def test_a_classifier_predicts_the_mean_of_the_costs_it_saw():
    costs = 2.5 * Y - 0.5
    costs[:, 7] = -1.0  # a single one
    costs[:30, 0] = 4.0  # a third one
    selector = RegressionSetSelector(LogisticRegression()).fit(X, costs, sample_weight=WEIGHT + 1)
    found = selector.predict_costs(X)
    for j in range(7):
        values, label = np.unique(costs[:, j], return_inverse=True)
        assert len(values) == (3 if j == 0 else 2)
        one = LogisticRegression().fit(X, label, WEIGHT + 1)
        np.testing.assert_allclose(found[:, j], one.predict_proba(X) @ values)
    np.testing.assert_array_equal(found[:, 7], -1.0)


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (RidgeClassifier(), Y, "Ad 0, observed in 300 rows: RidgeClassifier has no predict_proba"),
        (LogisticRegression(), Y + EXPECTED, "costs take 300 different values"),
    ],
)
def test_classifiers_without_probabilities_or_few_costs_are_refused(estimator, y, message):
    refuses(message, RegressionSetSelector(estimator).fit, X, y)


def test_predictions_that_are_not_finite_are_refused():
    selector = RegressionSetSelector(DummyRegressor()).fit(X, Y)
    selector.estimator_.constant_[:] = np.nan
    refuses(r"DummyRegressor predicts .*nan.* in row 0", selector.predict, X)
    overflow = RegressionSetSelector(n_select=8).fit(X, 1000 * Y)
    with np.errstate(all="ignore"):
        rows = np.vstack([X[:1], np.full((1, 5), 1e308)])
        refuses("row 1 are not finite", overflow.predict, rows)


@pytest.mark.parametrize("y", [Y, HOLES], ids=["whole", "holes"])
def test_rows_too_large_for_a_gram_matrix_are_left_to_ridge(monkeypatch, y):
    ridge = Ridge(2.0)
    expected = RegressionSetSelector(ridge).fit(X, y)
    monkeypatch.setattr("skbandit.selection._ridge.MAX_GRAM", 4)
    monkeypatch.setattr(NormalEquations, "of", None)
    selector = RegressionSetSelector(ridge).fit(X, y)
    np.testing.assert_allclose(selector.coef_, expected.coef_, atol=1e-12)
    np.testing.assert_allclose(selector.intercept_, expected.intercept_, atol=1e-12)


def test_a_bilinear_model_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(_regression_selector, "MAX_GRAM", 4)
    message = r"4 rows or 4 features, but X has shape \(300, 5\)"
    refuses(message, RegressionSetSelector().fit, X, Y, ad_features=Z)


# --- costs, weights, availability ----------------------------------------------------------


@pytest.mark.parametrize("estimator", [None, LinearRegression()], ids=["ridge", "other"])
def test_a_weight_of_two_is_the_row_twice(estimator):
    rows = np.repeat(np.arange(len(X)), WEIGHT.astype(int))
    weighted = RegressionSetSelector(estimator).fit(X, HOLES, sample_weight=WEIGHT)
    repeated = RegressionSetSelector(estimator).fit(X[rows], HOLES[rows])
    np.testing.assert_allclose(weighted.predict_costs(X), repeated.predict_costs(X), atol=1e-9)
    costs = np.nan_to_num(HOLES)
    assert weighted.score(X, costs, sample_weight=WEIGHT) == pytest.approx(
        weighted.score(X[rows], costs[rows])
    )


@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.coo_matrix, np.ndarray.tolist])
def test_only_available_ads_are_chosen(form):
    selector = RegressionSetSelector(n_select=3).fit(X, Y)
    found = selector.predict(X, available=form(AVAILABLE))
    np.testing.assert_array_equal(found, brute_force(selector.predict_costs(X), 3, AVAILABLE))
    costs = np.where(AVAILABLE, Y, np.nan)
    value = np.take_along_axis(Y, found, axis=1).sum(axis=1).mean()
    assert selector.score(X, costs, available=form(AVAILABLE)) == pytest.approx(-value)


def test_rows_with_too_few_ads_are_refused_or_filled():
    selector = RegressionSetSelector(n_select=3).fit(X, NAMED)
    few = np.ones((4, 8), dtype=bool)
    few[1, :6] = False
    few[2] = False
    message = r"Row 1 has 2 available ads, but n_select is 3.*fill="
    refuses(message, selector.predict, X[:4], available=few)
    found = selector.predict(X[:4], available=few, fill="none")
    assert (found == "none").sum(axis=1).tolist() == [0, 1, 3, 0]
    assert sorted(found[1, :2]) == ["ad 6", "ad 7"]
    marked = selector.predict_indicator(X[:4], available=few)
    assert marked.sum(axis=1).tolist() == [3, 2, 0, 3]
    message = "fill='ad 1' is the label of an ad"
    refuses(message, selector.predict, X[:4], available=few, fill="ad 1")


@pytest.mark.parametrize(
    ("fill", "dtype"), [(-1, np.int64), (np.nan, np.float64), ("none", object)]
)
def test_fill_keeps_the_type_of_labels(fill, dtype):
    few = np.eye(8, dtype=bool)[:2]
    found = RegressionSetSelector(n_select=2).fit(X, Y).predict(X[:2], available=few, fill=fill)
    assert found.dtype == dtype
    assert found[:, 0].tolist() == [0, 1]
    np.testing.assert_array_equal(found[:, 1], np.array([fill, fill], dtype))


# --- labels --------------------------------------------------------------------------------


def test_columns_are_labels_of_ads():
    by_name = RegressionSetSelector(n_select=3).fit(X, NAMED)
    by_place = RegressionSetSelector(n_select=3).fit(X, Y)
    assert by_name.ads_.tolist() == NAMES
    np.testing.assert_array_equal(by_name.predict(X), np.array(NAMES)[by_place.predict(X)])
    expected = np.array(NAMES)[by_place.predict(X, available=AVAILABLE)]
    columns = {NAMES[j]: AVAILABLE[:, j] for j in reversed(range(8))}
    for available in (pd.DataFrame(columns), pl.DataFrame(columns), AVAILABLE):
        np.testing.assert_array_equal(by_name.predict(X, available=available), expected)
    assert by_name.score(X, NAMED[NAMES[::-1]]) == by_name.score(X, Y)
    polars = RegressionSetSelector(n_select=3).fit(pl.DataFrame(X), pl.DataFrame(NAMED))
    assert polars.ads_.tolist() == NAMES
    np.testing.assert_array_equal(polars.predict(pl.DataFrame(X)), by_name.predict(X))


# --- ad features ---------------------------------------------------------------------------


PAIRS = ExtraTreesRegressor(20, min_samples_leaf=5, random_state=0)


@pytest.mark.parametrize("estimator", [None, Ridge(5.0), PAIRS], ids=["none", "ridge", "pairs"])
def test_new_ads_are_ranked_by_their_features(estimator):
    """Ads 5, 6 and 7 were never seen. Of ten random sets, none is expected to do as well."""
    catalog = Z.rename(index=dict(enumerate(NAMES)))
    selector = RegressionSetSelector(estimator, 2).fit(X, NAMED[NAMES[:5]], ad_features=catalog)
    assert selector.ads_.tolist() == NAMES[:5]
    new = catalog.iloc[5:]
    found = selector.predict(X, ad_features=new, n_select=1)[:, 0]
    assert set(found) <= set(NAMES[5:])
    value = EXPECTED[np.arange(len(X)), [NAMES.index(ad) for ad in found]].mean()
    rng = np.random.default_rng(1)
    guesses = [EXPECTED[np.arange(len(X)), rng.integers(5, 8, len(X))].mean() for _ in range(10)]
    assert value < min(guesses)

    costs = selector.predict_costs(X, ad_features=catalog)
    np.testing.assert_allclose(costs[NAMES[:5]], selector.predict_costs(X), atol=1e-10)
    np.testing.assert_array_equal(-costs, selector.decision_function(X, ad_features=catalog))
    assert selector.predict_indicator(X, ad_features=new).shape == (300, 3)
    shuffled = selector.predict_costs(X, ad_features=new.iloc[::-1])
    np.testing.assert_allclose(shuffled[NAMES[5:]], costs[NAMES[5:]], atol=1e-12)
    available = pd.DataFrame(AVAILABLE, columns=NAMES)
    chosen = selector.predict(X, ad_features=catalog, available=available)
    expected = brute_force(costs.to_numpy(), 2, AVAILABLE)
    np.testing.assert_array_equal(chosen, np.array(NAMES)[expected])
    score = selector.score(X, NAMED, ad_features=catalog, available=available)
    assert score == pytest.approx(-np.take_along_axis(Y, expected, axis=1).sum(axis=1).mean())
    assert selector.ads_.tolist() == NAMES[:5]  # as before


def test_pairs_are_a_long_table():
    """By hand, with the ads' own effects shrunk: sum of residuals / (their number + 1/2)."""
    rows = pd.DataFrame(X, columns=list("abcde"))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    which, ads = np.nonzero(~np.isnan(HOLES).T)[::-1]
    parts = [table.reset_index(drop=True) for table in (rows.iloc[which], Z.iloc[ads])]
    alone = clone(tree).fit(pd.concat(parts, axis=1), HOLES[which, ads])
    residual = HOLES[which, ads] - alone.predict(pd.concat(parts, axis=1))
    shared = np.stack([alone.predict(rows.assign(**Z.iloc[j])) for j in range(8)], axis=1)
    own = [residual[ads == j].sum() / ((ads == j).sum() + 0.5) for j in range(8)]
    selector = RegressionSetSelector(tree, ad_effect=2.0).fit(rows, HOLES, ad_features=Z)
    np.testing.assert_allclose(selector.predict_costs(rows), shared + own, atol=1e-12)
    assert selector.estimator_.feature_names_in_.tolist() == [*"abcde", "z0", "z1", "z2"]
    without = RegressionSetSelector(tree, ad_effect=0).fit(rows, HOLES, ad_features=Z)
    np.testing.assert_allclose(without.predict_costs(rows), shared)


@pytest.mark.thorough
@pytest.mark.parametrize("form", [sp.csr_array, np.array])
def test_pairs_of_rows_without_names(form, monkeypatch):
    whole = RegressionSetSelector(PAIRS).fit(X, Y, ad_features=Z).predict_costs(X)
    monkeypatch.setattr("skbandit.selection._ad_features.PREDICTED_PAIRS", 20)  # two rows at a time
    selector = RegressionSetSelector(PAIRS).fit(form(X), Y, ad_features=Z.to_numpy())
    np.testing.assert_allclose(selector.predict_costs(form(X)), whole)


def test_a_classifier_over_pairs_does_better_than_chance():
    selector = RegressionSetSelector(LogisticRegression(), 3).fit(X, Y, ad_features=Z)
    assert selector.score(X, Y) > -3 * Y.mean()


# --- errors leave everything as it was -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": Y[:-1]}, "X has 300 rows, y has 299"),
        ({"y": Y[:, 0]}, "Reshape it"),
        ({"y": np.where(np.arange(8) == 3, np.nan, Y)}, "No cost of ad 3 was observed"),
        ({"available": AVAILABLE[1:]}, r"shape \(299, 8\), expected \(300"),
        ({"sample_weight": -WEIGHT}, "sample_weight must not be negative"),
        ({"ad_features": Z.iloc[:5]}, "ad_features has no row for ad 5, 6, 7: the index"),
        ({"ad_features": Z.assign(z2="red")}, "could not convert"),
        ({"ad_features": Z.assign(z0=np.nan)}, "contains NaN"),
        ({"X": np.full_like(X, np.nan)}, "contains NaN"),
    ],
)
def test_refused_data_leave_the_fit_as_it_was(options, message):
    selector = RegressionSetSelector(n_select=2).fit(X, NAMED)
    before = pickle.dumps(selector)
    refuses(message, selector.fit, **{"X": X, "y": Y} | options)
    assert pickle.dumps(selector) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_select": 9}, "n_select=9 must be at least 1 and at most 8"),
        ({"n_select": 1.5}, "n_select"),
        ({"ad_effect": -1}, "ad_effect"),
        ({"estimator": "ridge"}, "estimator"),
        ({"estimator": Ridge(-1.0)}, "alpha"),
    ],
)
def test_fit_refuses_parameters(parameters, message):
    refuses(message, RegressionSetSelector(**parameters).fit, X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_select": 9}, "n_select=9 must be at least 1 and at most 8"),
        ({"n_select": 0}, "n_select=0"),
        ({"n_select": 2.0}, "n_select must be an integer, got"),
        ({"available": AVAILABLE[:, 1:]}, r", 7\), expected \(.*, 8\)"),
        ({"available": pd.DataFrame(AVAILABLE)}, "available has 0, 1, 2, 3, 4, ..., too"),
        ({"ad_features": Z}, "takes no ad_features, unless its fit had them"),
    ],
)
def test_predict_refuses(options, message):
    selector = RegressionSetSelector(n_select=2).fit(X, NAMED)
    refuses(message, selector.predict, X, error=(ValueError, TypeError), **options)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Z.iloc[:, :2], "ad_features has the 2 columns .* unlike the 3 of fit"),
        (Z.rename(columns={"z1": "w"}), "columns 'z0', 'w', 'z2', unlike"),
        (pl.DataFrame(Z[["z1", "z0", "z2"]]), "columns 'z1', 'z0', 'z2', unlike .* same order"),
    ],
)
@pytest.mark.parametrize("estimator", [None, PAIRS], ids=["ridge", "pairs"])
def test_new_ads_of_other_features_are_refused(estimator, table, message):
    selector = RegressionSetSelector(estimator).fit(X, Y, ad_features=Z)
    refuses(message, selector.predict, X, ad_features=table)


def test_rows_and_ads_with_a_column_of_one_name_are_refused():
    rows = pd.DataFrame(X, columns=["z0", *"abcd"])
    message = "X and ad_features both have a column 'z0'"
    refuses(message, RegressionSetSelector(PAIRS).fit, rows, Y, ad_features=Z)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (HOLES, r"for row \d+, \['ad .*skbandit.selection.logged_costs"),
        (Y[:, :5], r"y has shape \(300, 5\)"),
        (NAMED[NAMES[:7]], "y lacks 'ad 7'"),
    ],
)
def test_score_refuses_costs_that_lack_a_chosen_ad(y, message):
    refuses(message, RegressionSetSelector(n_select=3).fit(X, NAMED).score, X, y)


def test_rows_of_another_number_are_refused_where_the_learner_checks_nothing():
    selector = RegressionSetSelector(DummyRegressor()).fit(X, Y)
    refuses("4 features, but RegressionSetSelector is expecting 5", selector.predict, X[:, :4])


def test_rows_and_costs_of_other_indexes_are_warned_of():
    rows = pd.DataFrame(X)
    warns("index", RegressionSetSelector().fit, rows, NAMED.sample(frac=1, random_state=0))


def test_a_second_fit_forgets_the_first():
    rows = pd.DataFrame(X, columns=list("abcde"))
    selector = RegressionSetSelector(PAIRS).fit(X, Y, ad_features=Z)
    selector.set_params(estimator=None).fit(rows, NAMED)
    assert vars(selector).keys() == vars(RegressionSetSelector().fit(rows, NAMED)).keys()
    refuses("takes no ad_features, unless its fit had them", selector.predict, X, ad_features=Z)


def test_float32_stays():
    selector = RegressionSetSelector(n_select=2).fit(X.astype(np.float32), Y)
    assert selector.predict_costs(X.astype(np.float32)).dtype == np.float32
    double = RegressionSetSelector(n_select=2).fit(X, Y)
    np.testing.assert_allclose(selector.coef_, double.coef_, atol=1e-5)


# --- rows and masks ------------------------------------------------------------------------


def test_rows_of_numbers_mean_the_same_in_every_form():
    selector = RegressionSetSelector(n_select=3).fit(X, Y)
    expected = selector.predict(X)[:4]
    for rows in (X[:4].tolist(), X[:4], np.asfortranarray(X[:4]), sp.csr_array(X[:4])):
        np.testing.assert_array_equal(selector.predict(rows), expected)
    np.testing.assert_array_equal(selector.predict(X[[0]]), expected[:1])
    named = RegressionSetSelector(n_select=3).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    warns("does not have valid feature names", named.predict, X[:4])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.full((1, 5), np.nan), "NaN"),
        (np.full((1, 5), np.inf), "infinity"),
        (X[:1, :4], "4 features, but RegressionSetSelector is expecting 5"),
        (X[0], "Expected 2D array"),
        (X[:0], "0 sample"),
    ],
)
def test_predict_refuses_rows(rows, message):
    refuses(message, RegressionSetSelector(n_select=3).fit(X, Y).predict, rows)


def test_predict_leaves_masks_as_they_are():
    selector, before = RegressionSetSelector().fit(X, NAMED), AVAILABLE.copy()
    selector.predict(X, available=AVAILABLE, n_select=8, fill="none")
    np.testing.assert_array_equal(AVAILABLE, before)
    refuses("Row 0 has 0", selector.predict, X, available=np.zeros_like(AVAILABLE))


def test_large_integers_beside_nan_are_not_rounded():
    ads = [2**53 + 1, 2**53 + 3]
    selector = RegressionSetSelector(n_select=2).fit(X, pd.DataFrame(Y[:, :2], columns=ads))
    assert selector.predict(X[:1], available=[(ads[0],)], fill=np.nan)[0, 0] == ads[0]


def test_rows_of_no_weight_are_absent():
    hidden, weight = Y.copy(), np.ones(len(Y))
    hidden[0], weight[0] = np.nan, 0.0
    selector = RegressionSetSelector(n_select=3).fit(X, Y)
    assert selector.score(X, hidden, sample_weight=weight) == selector.score(X[1:], Y[1:])
    selector.fit(X, hidden, sample_weight=weight)
    refuses("was not observed", selector.score, X, hidden)
