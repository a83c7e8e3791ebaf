"""Ridge by normal equations, its penalty, and the bilinear model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from skbandit import RegressionSetSelector
from skbandit.selection import _ad_features, _cost_models, _ridge
from skbandit.selection._ad_features import fit_bilinear, read_ad_features
from skbandit.selection._costs import read_cost_matrix
from skbandit.selection._ridge import NormalEquations
from tests.tiers import first
from tests.worlds import refuses, warns

# === Ridge regression of all ads at once equals scikit-learn's, ad by ad on its own rows ========


def problem(shape, seed=0):
    """Costs of 6 ads: all observed, few, most, and some of the rest; far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.5)
    y = rng.normal(size=(shape[0], 6)) + 50
    y[rng.random(y.shape) < 0.2] = np.nan
    y[:, :2] = rng.normal(size=(shape[0], 2))
    y[rng.random(shape[0]) < 0.7, 2] = np.nan
    return X, y, rng.random(shape[0]) + 0.1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("shape", [(60, 5), (20, 45)], ids=["tall", "wide"])
def test_normal_equations_agree_with_ridge_ad_by_ad(shape, form, weighted):
    X, y, weight = problem(shape)
    weight = weight if weighted else None
    equations = NormalEquations.of(form(X), weight)
    for given in (y, sp.csr_array(y)):
        found = equations.solve(read_cost_matrix(given), 0.7)
        for j in range(y.shape[1]):
            rows = ~np.isnan(y[:, j])
            ridge = Ridge(0.7)
            ridge.fit(X[rows], y[rows, j], None if weight is None else weight[rows])
            np.testing.assert_allclose(found.coef[j], ridge.coef_, atol=1e-9)
            np.testing.assert_allclose(found.intercept[j], ridge.intercept_, atol=1e-9)
            np.testing.assert_allclose(found.costs(form(X))[:, j], ridge.predict(X), atol=1e-9)


def test_normal_equations_take_features_in_any_units_and_far_from_zero():
    """The Gram matrix of such features is ill-conditioned only in its units."""
    X, y, _ = problem((60, 5))
    y = y[:, :2]
    scale = np.array([1e-7, 1.0, 1e3, 1e8, 1e12])
    reference = Ridge(0.0).fit(X, y)
    found = NormalEquations.of(X * scale + 3 * scale).solve(read_cost_matrix(y), 0.0)
    np.testing.assert_allclose(found.coef * scale, reference.coef_, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_equations_take_wide_rows_far_from_zero(dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-4, 4, size=(20, 45)) + 2.0**20).astype(dtype)  # float32 holds them exactly
    y = rng.normal(size=(20, 3))
    reference = Ridge(1.0).fit(X.astype(float), y)
    found = NormalEquations.of(X).solve(read_cost_matrix(y), 1.0)
    np.testing.assert_allclose(found.coef, reference.coef_, atol=1e-8)


def test_singular_equations_without_a_penalty_have_the_answers_of_least_squares():
    """Of twins and a constant column."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(30, 2))
    X = np.hstack([x, x, np.ones((30, 1))])
    found = NormalEquations.of(X).solve(read_cost_matrix(y), 0.0)
    reference = Ridge(0.0).fit(x, y)
    np.testing.assert_allclose(found.costs(X), reference.predict(x), atol=1e-10)


# === The penalty of self-tuning ridge: leave-one-out by formula equals leaving rows out =========


def left_out(X, f, s, alpha):
    """The weighted sum of squared errors of one ad, with a fit for each row left out."""
    seen = np.flatnonzero(~np.isnan(f))
    total = 0.0
    for i in seen:
        others = seen[seen != i]
        fit = Ridge(alpha).fit(X[others], f[others], s[others])
        total += s[i] * (f[i] - fit.predict(X[[i]])[0]) ** 2
    return total


def penalty_problem(shape, n_ads=3, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) + 2.0
    F = X @ rng.normal(size=(shape[1], n_ads)) + 2 * rng.normal(size=(shape[0], n_ads))
    F[rng.random(F.shape) < missing] = np.nan
    return X, F, rng.random(shape[0]) + 0.2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shape", "form", "missing"),
    first(
        1,
        [
            ((10, 15), sp.csr_array, 0.0),
            ((20, 4), np.array, 0.3),
            ((20, 4), sp.csr_array, 0.3),
            ((10, 15), np.array, 0.3),
            ((10, 15), sp.csr_array, 0.3),
        ],
    ),
)
def test_the_penalty_is_the_best_of_leave_one_out(shape, form, missing):
    X, F, s = penalty_problem(shape, missing=missing, seed=1)
    selector = RegressionSetSelector().fit(form(X), F, sample_weight=s)
    alphas = selector.alpha_ * np.sqrt(10) ** np.arange(-6, 7)
    errors = [sum(left_out(X, f, s, alpha) for f in F.T) for alpha in alphas]
    assert np.argmin(errors) == 6
    ridge = RegressionSetSelector(Ridge(selector.alpha_)).fit(form(X), F, sample_weight=s)
    np.testing.assert_allclose(selector.coef_, ridge.coef_)


@pytest.fixture(params=[True, False], ids=["leave-one-out", "generalized"])
def _criterion(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 0)


@pytest.mark.usefixtures("_criterion")
def test_the_penalty_follows_the_units_of_features_only():
    """Features in other units square it."""
    X, F, _ = penalty_problem((40, 5), missing=0.2)
    alpha = RegressionSetSelector().fit(X, F).alpha_
    assert RegressionSetSelector().fit(X, 1000 * F + 7).alpha_ == pytest.approx(alpha)
    assert RegressionSetSelector().fit(100 * X - 3, F).alpha_ == pytest.approx(1e4 * alpha)


@pytest.mark.usefixtures("_criterion")
def test_the_penalty_takes_whole_weights_as_copies():
    X, F, _ = penalty_problem((30, 6), missing=0.1, seed=1)
    s = np.random.default_rng(0).integers(1, 4, 30)
    weighted = RegressionSetSelector().fit(X, F, sample_weight=3 * s)
    repeated = RegressionSetSelector().fit(np.repeat(X, s, axis=0), np.repeat(F, s, axis=0))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_)


@pytest.mark.parametrize("seed", first(1, range(2)))
@pytest.mark.parametrize("n", [300, 1000])
def test_the_penalty_is_the_noise_over_the_prior_variance(n, seed):
    """Bayes: w ~ N(0, tau^2), noise sigma^2; alpha = sigma^2 / tau^2 for any number of rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    F = X @ rng.normal(0, 0.2, size=(30, 20)) + rng.normal(0, 2.0, size=(n, 20))
    alpha = RegressionSetSelector().fit(X, F).alpha_
    assert 100 / 4 < alpha < 100 * 4


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.eye(3)[:1]], ids=["constant", "one row"])
def test_the_penalty_is_one_where_data_cannot_tell(X):
    assert RegressionSetSelector().fit(X, np.arange(2.0 * len(X)).reshape(-1, 2)).alpha_ == 1.0


@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_ads_missing_in_the_same_rows_are_learned_together(form, monkeypatch):
    """One Gram matrix per set of rows, and the same as ad by ad."""
    X, F, s = penalty_problem((30, 4), n_ads=6)
    F[:9, [0, 2]], F[5:20, [1, 3, 4]] = np.nan, np.nan
    n_rows, gram_of = [], NormalEquations.gram_of

    def count(self, rows):
        n_rows.append(len(rows))
        return gram_of(self, rows)

    monkeypatch.setattr(NormalEquations, "gram_of", count)
    selector = RegressionSetSelector(Ridge(2.0)).fit(form(X), F, sample_weight=s)
    assert n_rows == [30, 21, 15]
    for j, f in enumerate(F.T):
        seen = ~np.isnan(f)
        alone = Ridge(2.0).fit(X[seen], f[seen], s[seen] / s.mean())  # weights have no unit
        np.testing.assert_allclose(selector.coef_[j], alone.coef_)


def test_the_penalty_of_a_part_is_within_a_decade_of_the_exact_one(monkeypatch):
    """By equal leverages, few ads or few rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 20))
    F = X @ rng.normal(0, 0.1, size=(20, 30)) + rng.normal(size=(600, 30))
    holes = np.where(rng.random(F.shape) < 0.3, np.nan, F)
    exact = RegressionSetSelector().fit(X, F).alpha_
    monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 0)
    assert exact / 4 < RegressionSetSelector().fit(X, F).alpha_ < exact * 4
    monkeypatch.setattr(_ridge, "EIGEN_WORK", 0)
    assert exact / 10 < RegressionSetSelector().fit(X, holes).alpha_ < exact * 10
    monkeypatch.setattr(_ridge, "MAX_TUNED", 15)
    assert exact / 10 < RegressionSetSelector().fit(X, F).alpha_ < exact * 10
    monkeypatch.setattr(_cost_models, "normal_equations_pay", lambda X, costs: False)
    large = RegressionSetSelector().fit(sp.csr_array(X), F)
    assert exact / 10 < large.alpha_ < exact * 10
    np.testing.assert_allclose(large.coef_, Ridge(large.alpha_).fit(X, F).coef_, atol=1e-2)


# === The bilinear model equals ridge regression on all products of features, written out ========

ALPHA = 0.7


def written_out(X, y, Z, ad_effect, weight):
    """A function of rows and ads: one Ridge on the products of [x, 1] and [1, z, the ad's own]."""
    center, middle = Z.mean(axis=0), np.average(X, axis=0, weights=weight)
    rows, ads = np.nonzero(~np.isnan(y))
    mean = np.average(y[rows, ads], weights=weight[rows])

    def products(X, Z, own):
        x = np.column_stack([X - middle, np.ones(len(X))])
        z = np.column_stack([np.ones(len(Z)), Z - center, np.sqrt(ad_effect) * own])
        return (x[:, :, None] * z[:, None, :]).reshape(len(x), -1)

    ridge = Ridge(ALPHA, fit_intercept=False)
    ridge.fit(products(X[rows], Z[ads], np.eye(len(Z))[ads]), y[rows, ads] - mean, weight[rows])

    def costs(X, Z, own):
        k, n = len(X), len(Z)
        pairs = products(np.repeat(X, n, axis=0), np.tile(Z, (k, 1)), np.tile(own, (k, 1)))
        return mean + ridge.predict(pairs).reshape(k, n)

    return costs


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("unobserved", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("ad_effect", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(15, 4), (6, 9)], ids=["tall", "wide"])
def test_the_bilinear_model_agrees_with_ridge_on_products(shape, ad_effect, unobserved, form):
    rng = np.random.default_rng(0)
    n_ads = 6
    X, Z = rng.normal(size=shape) + 1, rng.normal(size=(n_ads, 2))
    y = rng.normal(size=(shape[0], n_ads)) + 3
    y[rng.random(y.shape) < unobserved] = np.nan
    weight = rng.random(shape[0]) + 0.2
    reference = written_out(X, y, Z, ad_effect, weight)

    equations = NormalEquations.of(X, weight)
    model = fit_bilinear(equations, read_cost_matrix(form(y)), Z, ALPHA, ad_effect)
    seen = model.of_ads(read_ad_features(Z), np.arange(n_ads))
    own = np.eye(n_ads)
    np.testing.assert_allclose(seen.costs(X), reference(X, Z, own), atol=1e-6)

    # new ads, an old one with its features changed, and an old one as it was
    Z_new = np.vstack([rng.normal(size=(3, 2)), Z[4]])
    which = np.array([-1, -1, 2, 4])
    own = np.vstack([np.zeros((2, n_ads)), np.eye(n_ads)[[2, 4]]])
    new = model.of_ads(read_ad_features(Z_new), which)
    np.testing.assert_allclose(new.costs(X), reference(X, Z_new, own), atol=1e-6)


def test_the_bilinear_model_warns_of_too_few_steps(monkeypatch):
    monkeypatch.setattr(_ad_features, "CG_MAX_ITER", 1)
    rng = np.random.default_rng(0)
    y = read_cost_matrix(np.where(rng.random((20, 4)) < 0.5, np.nan, rng.normal(size=(20, 4))))
    problem = NormalEquations.of(rng.normal(size=(20, 3))), y, rng.normal(size=(4, 2)), 1.0, 1.0
    message = "did not converge in 1 steps"
    warns(message, fit_bilinear, *problem, warning=ConvergenceWarning)


def test_features_are_read_by_label():
    table = pd.DataFrame({"u": [1.0, 2, 3], "v": [4.0, 5, 6]}, index=["c", "a", "b"])
    features = read_ad_features((table,)).of_ads(np.array(["a", "b"]))
    np.testing.assert_array_equal(features.numbers(), [[2, 5], [3, 6]])
    assert features.positions_of(np.array(["b", "z"])).tolist() == [1, -1]
    twice = table.rename(index={"c": "a"})
    refuses("describes ad 'a' more than once", read_ad_features, twice)
    refuses(
        "has the column 'k' more than once",
        read_ad_features,
        pd.DataFrame([[1, 2]], columns=["k", "k"]),
    )
    message = "must be a table with one row per ad, got 1 dimensions"
    refuses(message, read_ad_features, np.zeros(3))
