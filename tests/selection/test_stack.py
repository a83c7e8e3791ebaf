"""The stack: its parts against references, and what it is for: first, or close, everywhere."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from skbandit import RegressionSetSelector
from skbandit.selection import _stack
from skbandit.selection._costs import ad_means, fill_costs, row_effects
from skbandit.selection._stack import (
    COMPONENTS,
    NEIGHBORS,
    fit_members,
    partial_least_squares,
    stack_weights,
)
from tests.worlds import refuses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
F = X @ RNG.normal(size=(5, 4)) + RNG.normal(size=(60, 4))


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(_stack, "N_TREES", 3)


# --- partial least squares -----------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_pls_of_one_cost_agrees_with_scikit_learn(form):
    rows = form(X + 3.0)
    R, Q = partial_least_squares(rows, F[:, [0]], np.ones(60), 3)
    for k in (1, 2, 3):
        reference = PLSRegression(k, scale=False).fit(X, F[:, 0])
        np.testing.assert_allclose(R[:, :k] @ Q[:, :k].T, reference.coef_.T, atol=1e-8)


# --- costs that are missing ----------------------------------------------------------------


def test_ad_means_are_those_of_observed_costs():
    costs = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    np.testing.assert_allclose(ad_means(costs, np.array([1.0, 3.0])), [2.5, 5.0, 25 / 7])


def test_row_effects_are_nearly_the_best_linear_prediction():
    """Which knows the variances."""
    rng = np.random.default_rng(0)
    e = rng.normal(0, 1.5, size=3000)
    residual = e[:, None] + rng.normal(size=(3000, 8))
    residual[rng.random(residual.shape) < 0.6] = np.nan
    count = (~np.isnan(residual)).sum(axis=1)
    oracle = np.nansum(residual, axis=1) / (count + 1 / 1.5**2)
    error, least = (np.mean((found - e) ** 2) for found in (row_effects(residual), oracle))
    assert error < 1.01 * least


# --- weights and members -------------------------------------------------------------------


def test_weights_solve_the_least_squares_problem():
    """A known mixture is found, without what is negative, on observed costs only."""
    rng = np.random.default_rng(0)
    P = rng.normal(size=(3, 50, 4))
    s = rng.random(50) + 0.1
    target = 0.7 * P[0] + 0.2 * P[2]
    target[rng.random(target.shape) < 0.3] = np.nan
    np.testing.assert_allclose(stack_weights(P, target, s), [0.7, 0.0, 0.2], atol=1e-12)
    np.testing.assert_allclose(stack_weights(-P[:1], target, s), [0.0])
    np.testing.assert_allclose(stack_weights(0 * P, target, s), 0.0)
    twice = stack_weights(P[[0, 0]], 0.7 * P[0], s)
    np.testing.assert_allclose(twice.sum(), 0.7)


def test_sizes_have_the_least_error(monkeypatch):
    """Of predictions opposite to the costs, half of them and nearly equal, the last are best."""

    def known(X):
        return [-X, 0.5 * X, 0.9 * X, 3.0 * X]

    F = np.random.default_rng(0).normal(size=(60, 3))
    monkeypatch.setattr(_stack, "fit_members", lambda *_: [known] * len(_stack.MEMBERS))
    sizes, weights = _stack._weigh(F, F, np.ones(60), None)
    assert set(sizes.values()) == {2}
    assert 0.9 * sum(weights.values()) == pytest.approx(1.0, abs=0.02)


def test_members_agree_with_scikit_learn():
    s = np.ones(60)
    ridge, trees, neighbors, pls = fit_members(X, F, s, None)
    means = F.mean(axis=0)
    alpha = RegressionSetSelector().fit(X, F).alpha_
    np.testing.assert_allclose(ridge(X)[0] + means, Ridge(alpha).fit(X, F).predict(X))
    forest = ExtraTreesRegressor(100, min_samples_leaf=3, random_state=0).fit(X, F)
    np.testing.assert_allclose(trees(X)[0] + means, forest.predict(X))
    for size, found in zip(NEIGHBORS, neighbors(X), strict=True):
        nearest = KNeighborsRegressor(min(size, 60)).fit(X, F).predict(X)
        np.testing.assert_allclose(found + means, nearest)
    assert len(pls(X)) == len(COMPONENTS)
    np.testing.assert_allclose(pls(X)[-1] + means, Ridge(0.0).fit(X, F).predict(X))


def test_pls_predicts_by_more_components_where_there_are_more_features():
    wide = np.random.default_rng(0).normal(size=(60, 30))
    (pls,) = fit_members(wide, F, np.ones(60), None, ("pls",))
    few, *_, many = (((found + F.mean(axis=0) - F) ** 2).sum() for found in pls(wide)[1:])
    assert many < few


def test_a_weight_of_two_is_the_row_twice_for_joint_members():
    s = np.repeat([1.0, 2.0], 30)
    twice = np.repeat(np.arange(60), s.astype(int))
    weighted = fit_members(X, F, s, None, ("pls",))[0](X)
    repeated = fit_members(X[twice], F[twice], np.ones(90), None, ("pls",))[0](X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)
    # a neighborhood of all rows
    weighted = fit_members(X, F, s, None, ("neighbors",))[0](X)[-1]
    np.testing.assert_allclose(weighted, np.zeros_like(F), atol=1e-10)


# --- the selector --------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sp.csr_array, pd.DataFrame])
def test_the_stack_chooses_its_lowest_costs_in_every_form(few_trees, form):
    holes = np.where(RNG.random(F.shape) < 0.3, np.nan, F)
    weight = RNG.random(60)
    selector = RegressionSetSelector("stack", 2).fit(form(X), holes, sample_weight=weight)
    assert set(selector.stack_weights_) == {"ridge", "extra_trees", "neighbors", "pls"}
    assert min(selector.stack_weights_.values()) >= 0.0
    chosen = selector.predict(form(X))
    assert (chosen == np.argsort(selector.predict_costs(form(X)), axis=1)[:, :2]).all()
    refitted = RegressionSetSelector("stack", 2).fit(form(X), holes, sample_weight=weight)
    np.testing.assert_allclose(refitted.predict_costs(form(X)), selector.predict_costs(form(X)))
    assert not hasattr(selector, "coef_")


def test_the_stack_is_refused_where_it_does_not_apply():
    refuses("ads by label only", RegressionSetSelector("stack").fit, X, F, ad_features=np.eye(4))
    refuses("'stack'", RegressionSetSelector("pile").fit, X, F)
    message = "estimator='stack' has no parameters"
    refuses(message, RegressionSetSelector("stack").set_params, estimator__alpha=1.0)


def test_too_few_rows_to_tell_are_left_to_ridge(few_trees):
    selector = RegressionSetSelector("stack").fit(X[:4], F[:4])
    assert selector.stack_weights_ == {"ridge": 1.0, "extra_trees": 0, "neighbors": 0, "pls": 0}
    assert RegressionSetSelector("stack").fit(X[:1], F[:1]).predict(X).shape == (60, 1)


def test_the_stack_predicts_ads_seldom_observed(few_trees):
    """An ad may be missing in all training rows of a fold."""
    rare = F.copy()
    rare[1:, 0] = np.nan
    costs = RegressionSetSelector("stack").fit(X, rare).predict_costs(X)
    assert np.isfinite(costs).all()


def made(kind, rng, n=500, n_ads=12):
    """Expected costs that one member learns best."""
    X = rng.normal(size=(n, 8))
    if kind == "linear":
        return X, X @ rng.normal(0, 0.3, size=(8, n_ads))
    if kind == "steps":
        side = (X[:, :3, None] > rng.normal(0, 0.5, size=(3, n_ads))).astype(float)
        return X, (side * rng.normal(size=(3, n_ads))).sum(axis=1)
    centers, costs = rng.normal(size=(12, 8)) * 3, rng.normal(size=(12, n_ads))
    group = rng.integers(12, size=n)
    return centers[group] + 0.7 * X, costs[group]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Trees predict")
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["linear", "steps", "groups"])
def test_the_stack_is_close_to_the_best_member(kind, missing):
    """Measured by the share of the best possible improvement over popularity, over five seeds."""
    trees = ExtraTreesRegressor(100, min_samples_leaf=3, random_state=0)
    shares = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows, expected = made(kind, rng)
        costs = (expected + rng.normal(size=expected.shape))[:250]
        costs[rng.random(costs.shape) < missing] = np.nan
        whole = fill_costs(costs, ad_means(costs, np.ones(250)))
        best = np.sort(expected[250:], axis=1)[:, :3].sum(axis=1).mean()
        shares.append(
            [
                -RegressionSetSelector(learner, 3)
                .fit(rows[:250], y)
                .score(rows[250:], expected[250:])
                / best
                for learner, y in (("stack", costs), (None, costs), (trees, whole))
            ]
        )
    stack, *members = np.mean(shares, axis=0)
    assert stack > max(members) - 0.01


def test_the_stack_gives_no_weight_to_what_is_learned_by_heart(monkeypatch, few_trees):
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(300, 6))
    monkeypatch.setattr(_stack, "MIN_LEAF", 1)
    weights = RegressionSetSelector("stack").fit(rng.normal(size=(300, 5)), noise).stack_weights_
    assert sum(weights.values()) < 0.5


def curved_costs(n, seed=0):
    """Costs that depend on the size of a linear score, not on its sign: ridge learns nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, -np.abs(X @ rng.normal(size=(5, 4))) + rng.normal(scale=0.3, size=(n, 4))


def test_default_ridge_names_the_stack_if_trees_predict_clearly_better():
    X, costs = curved_costs(400)
    with pytest.warns(UserWarning, match=r"Trees predict .* [3-9]\d% less .*\(\"stack\"\)"):
        RegressionSetSelector().fit(X, costs)


@pytest.mark.parametrize(("n", "slope"), [(199, 0.0), (400, 10.0)], ids=["few rows", "linear"])
def test_default_ridge_is_silent_for_few_rows_or_linear_costs(n, slope):
    X, costs = curved_costs(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RegressionSetSelector().fit(X, costs + slope * X[:, :4])


def test_trees_are_not_compared_within_the_fits_of_other_estimators():
    X, costs = curved_costs(400)
    caller = {"__name__": "skbandit.constrained.fits", "fit": RegressionSetSelector().fit}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("fit(X, costs)", caller, {"X": X, "costs": costs})


def test_stack_reports_each_fold_if_verbose(capsys):
    X, costs = curved_costs(60)
    RegressionSetSelector("stack", verbose=1).fit(X, costs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[RegressionSetSelector] fold 1 of 5: 48 rows"
    assert len(lines) == 5
