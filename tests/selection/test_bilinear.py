"""The bilinear model equals ridge regression on all products of features, written out."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from skbandit.selection import _ad_features
from skbandit.selection._ad_features import fit_bilinear, read_ad_features
from skbandit.selection._costs import read_cost_matrix
from skbandit.selection._ridge import NormalEquations

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
def test_equals_ridge_on_products(shape, ad_effect, unobserved, form):
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


def test_sparse_rows():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(20, 5)) * (rng.random((20, 5)) < 0.4), rng.normal(size=(4, 2))
    y = rng.normal(size=(20, 4))
    everywhere = np.arange(4)
    dense, sparse = (
        fit_bilinear(NormalEquations.of(rows), read_cost_matrix(y), Z, 1e-6, 1.0)
        .of_ads(read_ad_features(Z), everywhere)
        .costs(X)
        for rows in (X, sp.csr_array(X))
    )
    # sparse rows are not centered, which matters for the penalized constant only
    np.testing.assert_allclose(sparse, dense, atol=1e-4)


def test_an_ad_without_costs_is_known_by_its_features():
    """Truth is bilinear without noise, so that the ad left out is predicted."""
    rng = np.random.default_rng(0)
    X, Z, W = rng.normal(size=(200, 3)), rng.normal(size=(30, 2)), rng.normal(size=(3, 2))
    truth = X @ W @ Z.T
    y = truth.copy()
    y[:, 7] = np.nan
    model = fit_bilinear(NormalEquations.of(X), read_cost_matrix(y), Z, 1e-6, 0.0)
    found = model.of_ads(read_ad_features(Z), np.arange(30)).costs(X)
    np.testing.assert_allclose(found, truth, atol=1e-5)


def test_too_few_steps_are_told(monkeypatch):
    monkeypatch.setattr(_ad_features, "CG_MAX_ITER", 1)
    rng = np.random.default_rng(0)
    y = rng.normal(size=(20, 4))
    y[rng.random(y.shape) < 0.5] = np.nan
    equations = NormalEquations.of(rng.normal(size=(20, 3)))
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        fit_bilinear(equations, read_cost_matrix(y), rng.normal(size=(4, 2)), 1.0, 1.0)


def test_features_are_read_by_label():
    table = pd.DataFrame({"u": [1.0, 2, 3], "v": [4.0, 5, 6]}, index=["c", "a", "b"])
    features = read_ad_features((table,)).of_ads(np.array(["a", "b"]))
    np.testing.assert_array_equal(features.numbers(), [[2, 5], [3, 6]])
    assert features.positions_of(np.array(["b", "z"])).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"u": [1.0, 2.0]}, index=["a", "a"]), "describes ad 'a' more than once"),
        (np.zeros(3), "must be a table with one row per ad, got 1 dimensions"),
    ],
)
def test_features_refused(table, message):
    with pytest.raises(ValueError, match=message):
        read_ad_features(table)
