"""The penalty of self-tuning ridge: leave-one-out by formula equals leaving rows out."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from skbandit import RegressionSetSelector
from skbandit.selection import _cost_models, _ridge
from skbandit.selection._ridge import NormalEquations
from tests.tiers import first


def left_out(X, f, s, alpha):
    """The weighted sum of squared errors of one ad, with a fit for each row left out."""
    seen = np.flatnonzero(~np.isnan(f))
    total = 0.0
    for i in seen:
        others = seen[seen != i]
        fit = Ridge(alpha).fit(X[others], f[others], s[others])
        total += s[i] * (f[i] - fit.predict(X[[i]])[0]) ** 2
    return total


def problem(shape, n_ads=3, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) + 2.0
    F = X @ rng.normal(size=(shape[1], n_ads)) + 2 * rng.normal(size=(shape[0], n_ads))
    F[rng.random(F.shape) < missing] = np.nan
    return X, F, rng.random(shape[0]) + 0.2


@pytest.mark.parametrize(
    ("shape", "form", "missing"),
    first(
        2,
        [
            ((10, 15), sp.csr_array, 0.0),
            ((20, 4), np.array, 0.3),
            ((20, 4), np.array, 0.0),
            ((20, 4), sp.csr_array, 0.0),
            ((20, 4), sp.csr_array, 0.3),
            ((10, 15), np.array, 0.0),
            ((10, 15), np.array, 0.3),
            ((10, 15), sp.csr_array, 0.3),
        ],
    ),
)
def test_the_penalty_is_the_best_of_leave_one_out(shape, form, missing):
    X, F, s = problem(shape, missing=missing, seed=1)
    selector = RegressionSetSelector().fit(form(X), F, sample_weight=s)
    alphas = selector.alpha_ * np.sqrt(10) ** np.arange(-6, 7)
    errors = [sum(left_out(X, f, s, alpha) for f in F.T) for alpha in alphas]
    assert np.argmin(errors) == 6
    ridge = RegressionSetSelector(Ridge(selector.alpha_)).fit(form(X), F, sample_weight=s)
    np.testing.assert_allclose(selector.coef_, ridge.coef_)


@pytest.mark.parametrize("exact", [True, False])
def test_units_of_features_and_costs(exact, monkeypatch):
    """Costs in other units leave the penalty alone; features in other units square it."""
    if not exact:
        monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 0)
    X, F, _ = problem((40, 5), missing=0.2)
    alpha = RegressionSetSelector().fit(X, F).alpha_
    assert RegressionSetSelector().fit(X, 1000 * F + 7).alpha_ == pytest.approx(alpha)
    assert RegressionSetSelector().fit(100 * X - 3, F).alpha_ == pytest.approx(1e4 * alpha)


@pytest.mark.parametrize("exact", [True, False])
def test_whole_weights_count_copies(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 0)
    X, F, _ = problem((30, 6), missing=0.1, seed=1)
    s = np.random.default_rng(0).integers(1, 4, 30)
    weighted = RegressionSetSelector().fit(X, F, sample_weight=3 * s)
    repeated = RegressionSetSelector().fit(np.repeat(X, s, axis=0), np.repeat(F, s, axis=0))
    assert weighted.alpha_ == pytest.approx(3 * repeated.alpha_)


def test_generalized_is_leave_one_out_of_rows_with_equal_leverages(monkeypatch):
    """The rows and columns of a Hadamard matrix: a balanced design."""
    H = np.array([[1.0]])
    for _ in range(4):
        H = np.block([[H, H], [H, -H]])
    X, rng = H[:, 1:6], np.random.default_rng(0)
    F = X @ rng.normal(size=(5, 2)) + rng.normal(size=(16, 2))
    exact = RegressionSetSelector().fit(X, F).alpha_
    monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 0)
    assert RegressionSetSelector().fit(X, F).alpha_ == exact


@pytest.mark.parametrize("seed", first(1, range(4)))
@pytest.mark.parametrize("n", [300, 1000])
def test_the_penalty_is_the_noise_over_the_prior_variance(n, seed):
    """Bayes: w ~ N(0, tau^2), noise sigma^2; alpha = sigma^2 / tau^2 for any number of rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    F = X @ rng.normal(0, 0.2, size=(30, 20)) + rng.normal(0, 2.0, size=(n, 20))
    alpha = RegressionSetSelector().fit(X, F).alpha_
    assert 100 / 4 < alpha < 100 * 4


def test_without_signal_costs_are_those_of_popularity():
    rng = np.random.default_rng(0)
    X, F = rng.normal(size=(200, 40)), rng.normal(size=(200, 6)) + np.arange(6)
    selector = RegressionSetSelector(n_select=2).fit(X, F)
    assert (selector.predict(X) == [0, 1]).all()


@pytest.mark.parametrize(
    ("X", "y"),
    [(np.ones((5, 2)), np.arange(10.0).reshape(5, 2)), (np.eye(3)[:1], [[1.0, 2.0]])],
    ids=["constant", "one row"],
)
def test_data_that_cannot_tell(X, y):
    assert RegressionSetSelector().fit(X, y).alpha_ == 1.0


@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_ads_missing_in_the_same_rows_are_learned_together(form, monkeypatch):
    """One Gram matrix per set of rows, and the same as ad by ad."""
    X, F, s = problem((30, 4), n_ads=6)
    F[:9, [0, 2]], F[5:20, [1, 3, 4]] = np.nan, np.nan
    grams = []
    gram_of = NormalEquations.gram_of
    monkeypatch.setattr(
        NormalEquations,
        "gram_of",
        lambda self, rows: grams.append(len(rows)) or gram_of(self, rows),
    )
    selector = RegressionSetSelector(Ridge(2.0)).fit(form(X), F, sample_weight=s)
    assert grams == [30, 21, 15]
    for j, f in enumerate(F.T):
        seen = ~np.isnan(f)
        alone = Ridge(2.0).fit(X[seen], f[seen], s[seen])
        np.testing.assert_allclose(selector.coef_[j], alone.coef_)


def test_too_much_work_is_done_on_a_part(monkeypatch):
    """Equal leverages, few ads or few rows: the penalty stays within a decade."""
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
