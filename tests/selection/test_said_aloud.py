"""What selectors used to do in silence, or to refuse without naming the cure."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector, logged_costs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 8)) + 0.1 * RNG.normal(size=(60, 8))


def test_replacements_do_not_depend_on_the_batch():
    selector = SetSelectClassifier(n_select=4, method="published", random_state=0).fit(X, Y)
    together = selector.predict(X)
    alone = np.vstack([selector.predict(row[None]) for row in X])
    np.testing.assert_array_equal(together, alone)
    assert all(len(set(row)) == 4 for row in together.tolist())


@pytest.mark.parametrize("reduction", ["one_vs_rest", "regression", "weighted_all_pairs"])
def test_rules_that_rank_all_ads_choose_any_number(reduction):
    two = SetSelectClassifier(n_select=2, reduction=reduction).fit(X, Y)
    eight = SetSelectClassifier(n_select=8, reduction=reduction).fit(X, Y)
    for m in (1, 3, 8):
        np.testing.assert_array_equal(two.predict(X, n_select=m), eight.predict(X, n_select=m))
    with pytest.raises(ValueError, match="n_select=9 must be at least 1 and at most 8, the number"):
        two.predict(X, n_select=9)


def test_more_ads_than_rounds_names_the_rounds():
    selector = SetSelectClassifier(n_select=2, reduction="filter_tree", cross_fit=None)
    selector.fit(X, Y)
    with pytest.raises(
        ValueError, match=r"n_select=3 is more than 2, .* of 8: fit it with a larger"
    ):
        selector.predict(X, n_select=3)


def test_a_joint_learner_that_cannot_learn_jointly():
    joint = ExtraTreesRegressor(n_estimators=2, random_state=0)
    holey = Y.copy()
    holey[3, 5] = np.nan
    RegressionSetSelector(joint).fit(X, Y)  # one fit, no warning
    with pytest.warns(UserWarning, match=r"ExtraTreesRegressor .* 1 of 480 costs .* 8 models"):
        RegressionSetSelector(joint).fit(X, holey)
    with pytest.warns(UserWarning, match=r"1 of 480 costs .* 8 models"):
        SetSelectClassifier(joint, reduction="regression").fit(X, holey)
    # a cost of an ad that was not available is not missing
    there = ~np.isnan(holey)
    RegressionSetSelector(joint).fit(X, holey, available=there)
    RegressionSetSelector(MultiOutputRegressor(joint)).fit(X, holey)  # as many models anyway
    # the same predictions and nearly the same time, so nothing to say
    RegressionSetSelector(Ridge()).fit(X, holey)
    RegressionSetSelector(Ridge(solver="lsqr")).fit(X, Y)


@pytest.mark.parametrize("selector", [RegressionSetSelector(), SetSelectClassifier()])
def test_parameters_of_no_estimator(selector):
    with pytest.raises(ValueError, match=r"estimator=None has no parameters: .*\(estimator=\w+"):
        selector.set_params(estimator__alpha=1.0)
    name = type(selector).__name__
    search = GridSearchCV(selector, {"estimator__alpha": [1.0]}, error_score="raise")
    with pytest.raises(ValueError, match=f"{name}.estimator="):
        search.fit(X, Y)
    assert selector.set_params(estimator=Ridge(), estimator__alpha=3.0).estimator.alpha == 3.0
    selector.set_params(estimator=LogisticRegression(), estimator__C=2.0)
    selector.set_params(estimator=None)


def test_a_search_over_partly_observed_costs():
    mask = RNG.random(Y.shape) < 0.7
    mask[:, 0] = True
    costs = np.where(mask, Y, np.nan)
    search = GridSearchCV(
        RegressionSetSelector(Ridge()), {"estimator__alpha": [1.0]}, error_score="raise"
    )
    with pytest.raises(
        ValueError, match=r"only with sklearn.set_config.enable_metadata_routing=Tr"
    ):
        search.fit(X, costs, available=mask)
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, costs, available=mask)
    assert np.isfinite(search.best_score_)


def test_masked_costs():
    with pytest.raises(TypeError, match="y is a masked array"):
        RegressionSetSelector().fit(X, np.ma.masked_greater(Y, 1))
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        RegressionSetSelector().fit(X, Y, sample_weight=np.ma.ones(60))


@pytest.mark.parametrize(
    "joint",
    [
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=30, random_state=0),
        GridSearchCV(ExtraTreesRegressor(n_estimators=2, random_state=0), {"max_depth": [2]}, cv=2),
    ],
    ids=["MLPRegressor", "GridSearchCV"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_joint_learners_that_the_tag_denies(joint):
    """One fit of all ads, as of the learner by itself."""
    selector = RegressionSetSelector(joint).fit(X, Y)
    np.testing.assert_allclose(selector.predict_costs(X), clone(joint).fit(X, Y).predict(X))


# --- the sign of costs ---------------------------------------------------------------------


CLICKS = (np.random.default_rng(0).random((60, 4)) < 0.2).astype(float)
ROWS = np.random.default_rng(1).normal(size=(60, 2))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.astype])
@pytest.mark.parametrize(
    "selector",
    [RegressionSetSelector(), PopularitySetSelector(), SetSelectClassifier()],
    ids=lambda selector: type(selector).__name__,
)
def test_clicks_passed_as_costs(selector, form):
    y = CLICKS.astype(bool) if form is np.ndarray.astype else form(CLICKS)
    with pytest.warns(UserWarning, match=r"y must be costs, .* of 240 are 1 .*pass -y"):
        selector.fit(ROWS, y)


@pytest.mark.parametrize(
    "costs",
    [-CLICKS, CLICKS - 1.0, 1.0 - CLICKS, 2.0 * CLICKS, CLICKS[:, :1], 0.0 * CLICKS],
    ids=["minus clicks", "shifted", "no click", "prices", "a single ad", "zeros"],
)
def test_costs_that_may_be_meant(costs):
    PopularitySetSelector().fit(ROWS, costs)


def test_clicks_where_some_are_missing():
    y = np.where(np.random.default_rng(2).random(CLICKS.shape) < 0.5, np.nan, CLICKS)
    with pytest.warns(UserWarning, match="pass -y if they are rewards"):
        PopularitySetSelector().fit(ROWS, y)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (CLICKS[:, 0], "cost must be costs, .* cost - 1 leads to the same choices"),
        (pd.Series(5.0 * CLICKS[:, 0], name="reward"), "called 'reward': pass -cost .* rename it"),
        (pd.Series(-CLICKS[:, 0], name="reward"), None),
        (pd.Series(5.0 * CLICKS[:, 0], name="price"), None),
    ],
)
def test_rewards_passed_to_logged_costs(cost, message):
    action, propensity = np.arange(60) % 2, np.full(60, 0.5)
    if message is None:
        logged_costs(action, cost, propensity)
        return
    with pytest.warns(UserWarning, match=message):
        logged_costs(action, cost, propensity)


def test_texts_as_features_of_ads():
    features = pd.DataFrame({"color": ["red", "blue", "red", "green"]})
    with pytest.raises(ValueError, match=r"'red'\): encode the others, .*get_dummies"):
        RegressionSetSelector().fit(ROWS, -CLICKS, ad_features=features)
