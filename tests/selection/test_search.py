"""Searches over costs that are complete, observed in part, or estimated from logs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector, logged_costs
from skbandit.selection._costs import estimated_costs
from tests.tiers import first

X, COSTS, EXPECTED = make_set_selection(400, 5, 6, random_state=0)
RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random(COSTS.shape) < 0.4, np.nan, COSTS)
SHOWN = RNG.integers(6, size=400)
PAID = COSTS[np.arange(400), SHOWN]
KINDS = {
    "complete": COSTS,
    "observed in part": HOLES,
    "labeled": pd.DataFrame(HOLES, columns=list("abcdef")),
    "logged": logged_costs(SHOWN, PAID, np.full(400, 1 / 6), ads=range(6)),
    "one a row": np.where(np.arange(6) == SHOWN[:, None], PAID[:, None], np.nan),
}


@pytest.mark.parametrize("kind", KINDS)
def test_searches_need_no_configuration(kind):
    y = KINDS[kind]
    learners = [None, Ridge(1e7)]
    search = GridSearchCV(RegressionSetSelector(n_select=2), {"estimator": learners}, cv=3)
    search.set_params(error_score="raise").fit(X, y)
    assert search.best_params_["estimator"] is None or kind == "one a row"
    grid = [
        {"reduction": ["one_vs_rest"], "estimator": [LogisticRegression()],
         "estimator__C": [0.01, 1.0]},
        {"reduction": ["weighted_all_pairs", "regression"]},
    ]  # fmt: skip
    rounds = GridSearchCV(SetSelectClassifier(n_select=2), grid, cv=3, error_score="raise")
    rounds.fit(X, y)
    assert np.isfinite(rounds.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_the_score_is_unbiased(seed):
    """Ads missing in different shares: 400 draws of what is observed, within 4.5 deviations."""
    rng = np.random.default_rng(seed)
    selector = RegressionSetSelector(n_select=2).fit(X, HOLES)
    truth = selector.score(X, COSTS)
    share = np.linspace(0.3, 0.9, 6)
    scores = []
    for _ in range(400):
        scores.append(selector.score(X, np.where(rng.random(COSTS.shape) < share, COSTS, np.nan)))
    assert abs(np.mean(scores) - truth) < 4.5 * np.std(scores) / 20


def test_what_is_unknown_earns_nothing():
    """An ad hardly ever observed is as good as its mean, not free."""
    y = np.tile([-1.0, 0.0], (50, 1))
    y[1:, 1] = np.nan
    chooses_unknown = PopularitySetSelector().fit(X[:50], y + np.array([0.0, -5.0]))
    assert (chooses_unknown.predict(X[:50]) == 1).all()
    assert chooses_unknown.score(X[:50], y) == pytest.approx(0.0, abs=1e-12)
    assert PopularitySetSelector().fit(X[:50], y).score(X[:50], y) == 1.0


def test_estimates_are_the_costs_where_all_were_observed():
    np.testing.assert_allclose(estimated_costs(COSTS, RNG.random(400)), COSTS, atol=1e-12)
    assert np.isnan(estimated_costs(np.array([[1.0, np.nan]]), np.ones(1))[0, 1])


def test_what_cannot_be_estimated():
    hidden = HOLES.copy()
    hidden[:, 2] = np.nan
    selector = RegressionSetSelector(n_select=6).fit(X, HOLES)
    with pytest.raises(ValueError, match=r"not observed .*logged_costs"):
        selector.score(X, hidden)
    assert np.isfinite(selector.score(X, HOLES))
    surprised = RegressionSetSelector(n_select=6).fit(X, COSTS)  # nothing was missing then
    with pytest.raises(ValueError, match=r"not observed .*logged_costs"):
        surprised.score(X, HOLES)


def test_unavailable_ads_are_no_missing_costs():
    mask = RNG.random(COSTS.shape) < 0.7
    mask[:, :2] = True
    y = np.where(mask, COSTS, np.nan)
    selector = RegressionSetSelector(n_select=2).fit(X, y, available=mask)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        selector.score(X, y)
    assert selector.score(X, y, available=mask) == pytest.approx(
        RegressionSetSelector(n_select=2).fit(X, y, available=mask)
        .set_params(n_select=2).score(X, np.where(mask, y, 1e6), available=mask)
    )  # fmt: skip
    partly = np.where(RNG.random(y.shape) < 0.8, y, np.nan)
    selector.fit(X, partly, available=mask)
    assert np.isfinite(selector.score(X, partly, available=mask))
    assert np.isfinite(cross_val_score(RegressionSetSelector(n_select=2), X, HOLES)).all()


SELECTORS = [RegressionSetSelector(), SetSelectClassifier(), PopularitySetSelector()]
STOCK = RNG.random(COSTS.shape) < 0.7
STOCK[:, :2] = True
FORGOTTEN = r"score was not, .*available=list\(selector.ads_\).*enable_metadata_routing=True"


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
def test_score_is_not_told_what_was_available(selector):
    selector = clone(selector).fit(X, COSTS, available=STOCK)
    with pytest.warns(UserWarning, match=FORGOTTEN):
        unrestricted = selector.score(X, COSTS)
    assert unrestricted == selector.score(X, COSTS, available=list(selector.ads_))
    assert selector.score(X, COSTS, available=STOCK) < unrestricted
    pipeline = make_pipeline(StandardScaler(), selector)
    name = pipeline.steps[-1][0]
    pipeline.fit(X, COSTS, **{f"{name}__available": STOCK})
    with pytest.warns(UserWarning, match=FORGOTTEN):
        pipeline.score(X, COSTS, available=STOCK)  # which scikit-learn ignores without routing
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, COSTS, available=STOCK).score(X, COSTS, available=STOCK)


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
def test_score_without_anything_unavailable(selector):
    for available in (None, np.ones_like(STOCK), sp.csr_array(np.ones_like(STOCK))):
        clone(selector).fit(X, COSTS, available=available).score(X, COSTS)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["alone", "in a Pipeline"])
def test_a_search_needs_routing_to_know_what_was_available(steps):
    """Two best sellers are seldom in stock; the intercept tells them apart from the others."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 6))
    chance = 1 / (1 + np.exp(1.5 - rows @ rng.normal(size=(6, 8))))
    chance[:, :2] = 0.9
    stock = np.ones(chance.shape, dtype=bool)
    stock[:, :2] = rng.random((600, 2)) < 0.2
    costs = -((rng.random(chance.shape) < chance) & stock).astype(float)
    pipeline = make_pipeline(*steps, RegressionSetSelector(Ridge(), n_select=2))
    grid = {"regressionsetselector__estimator__fit_intercept": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3)
    with pytest.warns(UserWarning, match=FORGOTTEN):
        search.fit(rows, costs, regressionsetselector__available=stock)
    assert not search.best_params_.popitem()[1]
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(rows, costs, available=stock)
    assert search.best_params_.popitem()[1]
