"""Weighted ridge logistic regression against scikit-learn and its own optimality conditions."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skbandit.constrained.linear import _directions
from skbandit.constrained.linear._directions import fit_logistic
from skbandit.constrained.paper._problem import Point

RNG = np.random.default_rng(4)
X = RNG.normal(size=(150, 4)) * [1.0, 0.3, 2.0, 1.0]
POSITIVE = X[:, 0] + RNG.logistic(size=150) > 0.3
WEIGHT = RNG.exponential(size=150)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("few_columns", [200, 0], ids=["newton", "lbfgs"])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_it_is_the_optimum(fit_intercept, few_columns, make, monkeypatch):
    monkeypatch.setattr(_directions, "FEW_COLUMNS", few_columns)
    found = fit_logistic(make(X), POSITIVE, WEIGHT, fit_intercept=fit_intercept)
    reference = LogisticRegression(tol=1e-10, max_iter=1000, fit_intercept=fit_intercept)
    reference.fit(X, POSITIVE, WEIGHT)
    np.testing.assert_allclose(found.coef, reference.coef_[0], atol=5e-3)
    assert found.intercept == pytest.approx(float(np.ravel(reference.intercept_)[0]), abs=5e-3)
    if few_columns:
        slope = WEIGHT * (expit(X @ found.coef + found.intercept) - POSITIVE)
        np.testing.assert_allclose(X.T @ slope, -found.coef, atol=1e-2)


def test_entries_of_sparse_rows_come_in_any_order_and_twice():
    backwards = np.hstack([X[:, ::-1], X[:, ::-1]]) / 2
    columns = np.tile([3, 2, 1, 0], 2 * len(X))
    rows = csr_array((backwards.ravel(), columns, np.arange(0, 8 * len(X) + 1, 8)), shape=X.shape)
    np.testing.assert_allclose(rows.toarray(), X)
    one, other = (fit_logistic(at, POSITIVE, WEIGHT) for at in (X, rows))
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-9)


def test_the_start_does_not_matter():
    far = Point(np.full(4, 5.0), -7.0)
    one, other = (fit_logistic(X, POSITIVE, WEIGHT, start=start) for start in (None, far))
    np.testing.assert_allclose(one.coef, other.coef, atol=2e-3)


def test_weights_are_repetitions():
    weight = RNG.integers(0, 3, 150)
    rows = np.repeat(np.arange(150), weight)
    one = fit_logistic(X, POSITIVE, weight.astype(float))
    other = fit_logistic(X[rows], POSITIVE[rows], np.ones(len(rows)))
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-6)


def test_separable_rows_have_a_finite_fit():
    found = fit_logistic(X, X[:, 0] > 0, np.ones(150))
    assert np.isfinite(found.coef).all()
    assert ((X @ found.coef + found.intercept > 0) == (X[:, 0] > 0)).mean() > 0.95
