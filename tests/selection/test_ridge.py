"""Ridge regression of all ads at once equals scikit-learn's, ad by ad on its own rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from skbandit.selection._costs import CostMatrix, read_cost_matrix
from skbandit.selection._ridge import Linear, NormalEquations, normal_equations_pay


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
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("shape", [(60, 5), (20, 45)], ids=["tall", "wide"])
def test_equals_ridge(shape, form, fit_intercept, weighted):
    X, y, weight = problem(shape)
    weight = weight if weighted else None
    equations = NormalEquations.of(form(X), weight, fit_intercept)
    for given in (y, sp.csr_array(y)):
        found = equations.solve(read_cost_matrix(given), 0.7)
        for j in range(y.shape[1]):
            rows = ~np.isnan(y[:, j])
            ridge = Ridge(0.7, fit_intercept=fit_intercept)
            ridge.fit(X[rows], y[rows, j], None if weight is None else weight[rows])
            np.testing.assert_allclose(found.coef[j], ridge.coef_, atol=1e-9)
            np.testing.assert_allclose(found.intercept[j], ridge.intercept_, atol=1e-9)
            np.testing.assert_allclose(found.costs(form(X))[:, j], ridge.predict(X), atol=1e-9)


def test_where_normal_equations_pay():
    """Always on dense rows that are not too many; on sparse ones, if there are ads enough."""

    def pay(X, n_ads, n_holes=0):
        y = np.zeros((X.shape[0], n_ads))
        y[0, :n_holes] = np.nan
        return normal_equations_pay(X, read_cost_matrix(y))

    dense = np.broadcast_to(np.float64(0), (6000, 2000))
    assert pay(dense, 1, n_holes=1)
    assert not pay(np.broadcast_to(np.float64(0), (6000, 6000)), 1)
    sparse = sp.random_array((6000, 2000), density=0.01, rng=0, format="csr")
    assert pay(sparse, 100)
    assert not pay(sparse, 10)
    assert not pay(sparse, 100, n_holes=100)


def test_one_gram_matrix_serves_many_masks():
    """Masked rounds: each takes one ad a row out."""
    X, _, _ = problem((80, 6))
    rng = np.random.default_rng(1)
    y = rng.normal(size=(80, 5))
    equations = NormalEquations.of(X)
    for _ in range(3):
        y[np.arange(80), rng.integers(0, 5, 80)] = np.nan
        found = equations.solve(CostMatrix(y, None, np.arange(5)), 1.0)
        for j in range(5):
            rows = ~np.isnan(y[:, j])
            np.testing.assert_allclose(found.coef[j], Ridge().fit(X[rows], y[rows, j]).coef_)


def test_sparse_costs_that_are_available_here_and_there():
    X, y, _ = problem((50, 4))
    y = np.nan_to_num(y)
    mask = np.random.default_rng(2).random(y.shape) < 0.5
    sparse = NormalEquations.of(X).solve(read_cost_matrix(sp.csr_array(y), sp.csr_array(mask)), 1.0)
    dense = NormalEquations.of(X).solve(read_cost_matrix(np.where(mask, y, np.nan)), 1.0)
    np.testing.assert_allclose(sparse.weights, dense.weights)


def test_features_in_any_units_and_far_from_zero():
    """The Gram matrix of such features is ill-conditioned only in its units."""
    X, y, _ = problem((60, 5))
    y = y[:, :2]
    scale = np.array([1e-7, 1.0, 1e3, 1e8, 1e12])
    reference = Ridge(0.0).fit(X, y)
    found = NormalEquations.of(X * scale + 3 * scale).solve(read_cost_matrix(y), 0.0)
    np.testing.assert_allclose(found.coef * scale, reference.coef_, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_rows_far_from_zero(dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-4, 4, size=(20, 45)) + 2.0**20).astype(dtype)  # float32 holds them exactly
    y = rng.normal(size=(20, 3))
    reference = Ridge(1.0).fit(X.astype(float), y)
    found = NormalEquations.of(X).solve(read_cost_matrix(y), 1.0)
    np.testing.assert_allclose(found.coef, reference.coef_, atol=1e-8)


def test_singular_without_a_penalty():
    """Twins and a constant column: the answers are those of least squares."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(30, 2))
    X = np.hstack([x, x, np.ones((30, 1))])
    found = NormalEquations.of(X).solve(read_cost_matrix(y), 0.0)
    reference = Ridge(0.0).fit(x, y)
    np.testing.assert_allclose(found.costs(X), reference.predict(x), atol=1e-10)


def test_a_constant_column_stands_for_the_intercept():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(30, 2)) + 4
    equations = NormalEquations.of(np.hstack([x, np.ones((30, 1))]), fit_intercept=False)
    reference = Ridge(0.0).fit(x, y)
    found = equations.solve(read_cost_matrix(y), 0.0)
    np.testing.assert_allclose(found.coef[:, 1], reference.intercept_)


def test_an_ad_never_observed_comes_last():
    y = np.array([[1.0, np.nan], [2.0, np.nan]])
    X = np.eye(2)
    assert (NormalEquations.of(X).solve(read_cost_matrix(y), 1.0).costs(X)[:, 1] == np.inf).all()


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_costs_by_rows(form):
    rng = np.random.default_rng(0)
    X, model = rng.normal(size=(9, 3)), Linear(rng.normal(size=(4, 5)))
    costs_of = model.by_rows(form(X))
    for rows in (slice(0, 4), slice(4, 8), slice(8, 9)):
        np.testing.assert_allclose(costs_of(rows), model.costs(X)[rows])
    assert model.astype(np.float32).by_rows(X.astype(np.float32))(slice(0, 2)).dtype == np.float32
