"""Set selectors inside pipelines, searches and cross-validation."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.fixes import parse_version

from skbandit import RegressionSetSelector
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector

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


def test_search_over_the_learner():
    search = GridSearchCV(
        RegressionSetSelector(Ridge(), 2), {"estimator__alpha": [1e-3, 10.0, 1e5]}, cv=FOLDS
    ).fit(X, Y)
    for alpha, score in zip([1e-3, 10.0, 1e5], search.cv_results_["mean_test_score"], strict=True):
        expected = by_hand(RegressionSetSelector(Ridge(alpha), 2)).mean()
        assert score == pytest.approx(expected)
    assert search.predict(X).shape == (240, 2)
    assert search.best_params_["estimator__alpha"] != 1e5


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


def test_sets_out_of_fold():
    found = cross_val_predict(RegressionSetSelector(n_select=2), X, Y_NAMED, cv=FOLDS)
    train, test = next(FOLDS.split(X))
    first = RegressionSetSelector(n_select=2).fit(X[train], Y_NAMED.iloc[train])
    np.testing.assert_array_equal(found[test], first.predict(X[test]))


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
