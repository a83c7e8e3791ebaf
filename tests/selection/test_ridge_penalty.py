"""The penalty of self-tuning ridge: leave-one-out by formula equals leaving rows out."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from skbandit import RegressionSetSelector
from skbandit.selection import _cost_models, _ridge
from skbandit.selection._costs import read_costs
from skbandit.selection._ridge import (
    Diagonal,
    RidgeFactor,
    diagonalised,
    generalised,
    left_out_factors,
    left_out_weight,
    penalties,
    reduced,
    reflected,
    squared_residuals,
    tuned_penalty,
)
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
    F = X @ rng.normal(size=(shape[1], n_ads)) + 3 * rng.normal(size=(shape[0], n_ads))
    F[rng.random(F.shape) < missing] = np.nan
    return X, F, rng.random(shape[0]) + 0.2


def turned(X, F, s, reduce=diagonalised):
    """M, B, r, s and centred F."""
    X, F = X - s @ X / s.sum(), F - s @ F / s.sum()
    M, turn = reduce(X.T @ (s[:, None] * X))
    return M, turn(X), turn((X.T @ (s[:, None] * F)).T).T, s, F


def errors_left_out(X, F, s, alphas, reduce=diagonalised, some=slice(None)):
    M, B, r, _, centred = turned(X, F, s, reduce)
    factors = left_out_factors(M, B[some], left_out_weight(s)[some], s.sum(), alphas)
    return s[some] @ (factors * squared_residuals(M, B[some], r, centred[some], alphas))


@pytest.mark.parametrize("size", [2, 3, 10, 60])
def test_both_forms_of_a_matrix(size):
    """Q M Q' = G, by solutions, quadratic forms and eigenvalues."""
    rng = np.random.default_rng(size)
    X, R = rng.normal(size=(size + 3, size)), rng.normal(size=(size, 4))
    G, alphas = X.T @ X, np.array([0.1, 30.0])
    for M, turn in (diagonalised(G), reflected(G)):
        np.testing.assert_allclose(M.d, np.linalg.eigvalsh(G))
        Q = turn(np.eye(size))
        np.testing.assert_allclose(Q @ Q.T, np.eye(size), atol=1e-12)
        B, r = turn(X), turn(R.T).T
        forms = np.empty((2, 2))
        for k, alpha in enumerate(alphas):
            inverse = np.linalg.inv(G + alpha * np.eye(size))
            np.testing.assert_allclose(Q @ M.solve(alpha, r), inverse @ R)
            forms[:, k] = np.trace(R.T @ inverse @ R), np.trace(R.T @ inverse @ inverse @ R)
            leverages = np.einsum("ij,jk,ik->i", X, inverse, X)
            np.testing.assert_allclose(M.forms_of_rows(B, alphas)[:, k], leverages)
        np.testing.assert_allclose(M.forms(r, alphas), forms)


def test_large_matrices_are_reflected_for_few_right_hand_sides():
    kinds = {
        (size, n): type(reduced(np.eye(size), n)[0]).__name__
        for size, n in [(199, 1), (200, 50), (200, 51)]
    }
    assert list(kinds.values()) == ["Diagonal", "Tridiagonal", "Diagonal"]


@pytest.mark.parametrize("reduce", [diagonalised, reflected])
@pytest.mark.parametrize("shape", [(15, 4), (8, 12)], ids=["tall", "wide"])
def test_leave_one_out_by_brute_force(shape, reduce):
    X, F, s = problem(shape)
    alphas = np.array([0.01, 1.0, 50.0])
    expected = [sum(left_out(X, f, s, alpha) for f in F.T) for alpha in alphas]
    np.testing.assert_allclose(errors_left_out(X, F, s, alphas, reduce), expected, rtol=1e-6)
    some = np.array([0, 3, 5])  # left out in turn, of all rows
    found = errors_left_out(X, F, s, alphas, reduce, some)
    for k, alpha in enumerate(alphas):
        fits = [Ridge(alpha).fit(*(np.delete(a, i, axis=0) for a in (X, F, s))) for i in some]
        off = [F[i] - fit.predict(X[[i]])[0] for i, fit in zip(some, fits, strict=True)]
        np.testing.assert_allclose(found[k], s[some] @ (np.array(off) ** 2).sum(axis=1), rtol=1e-6)


def test_generalised_is_leave_one_out_of_rows_with_equal_leverages():
    """The rows and columns of a Hadamard matrix: a balanced design."""
    H = np.array([[1.0]])
    for _ in range(4):
        H = np.block([[H, H], [H, -H]])
    X, s = H[:, 1:6], np.ones(16)
    F = np.random.default_rng(0).normal(size=(16, 2))
    alphas = np.array([0.1, 5.0, 100.0])
    for reduce in (diagonalised, reflected):
        M, _, r, _, centred = turned(X, F, s, reduce)
        approximate = generalised(M, r, (centred**2).sum(), 16, alphas)
        np.testing.assert_allclose(approximate, errors_left_out(X, F, s, alphas))


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
def test_the_penalty_chosen_is_the_best_of_brute_force(shape, form, missing):
    X, F, s = problem(shape, missing=missing, seed=3)
    chosen = tuned_penalty(RidgeFactor.unpenalised(form(X), s), read_costs(F))
    largest = turned(X, F, s)[0].d.max()
    alphas = penalties(largest)
    errors = [sum(left_out(X, f, s, alpha) for f in F.T) for alpha in alphas]
    np.testing.assert_allclose(chosen, alphas[np.argmin(errors)], rtol=1e-6)
    selector = RegressionSetSelector().fit(form(X), F, sample_weight=s)
    np.testing.assert_allclose(selector.alpha_, chosen)
    ridge = RegressionSetSelector(Ridge(chosen)).fit(form(X), F, sample_weight=s)
    np.testing.assert_allclose(selector.coef_, ridge.coef_)


def test_units_of_features_and_costs():
    """Costs in other units leave the penalty alone; features in other units square it."""
    X, F, _ = problem((40, 5), missing=0.2)
    alpha = RegressionSetSelector().fit(X, F).alpha_
    assert RegressionSetSelector().fit(X, 1000 * F + 7).alpha_ == pytest.approx(alpha)
    assert RegressionSetSelector().fit(100 * X - 3, F).alpha_ == pytest.approx(1e4 * alpha)


def test_whole_weights_count_copies():
    X, F, _ = problem((12, 3))
    copies = np.repeat([3, 6], 6)  # as if rows of weight 3 came once and twice
    alphas = np.array([0.3, 30.0])
    twice = np.repeat(np.arange(12), copies // 3)
    expected = errors_left_out(X[twice], F[twice], np.full(18, 3.0), alphas)
    s = copies.astype(float)
    np.testing.assert_allclose(errors_left_out(X, F, s, alphas), expected)


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_the_penalty_is_the_noise_over_the_prior_variance(seed):
    """Bayes: w ~ N(0, tau^2), noise sigma^2; alpha = sigma^2 / tau^2 for any number of rows."""
    rng = np.random.default_rng(seed)
    for n in (300, 1000):
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
    gram_of = RidgeFactor.gram_of
    monkeypatch.setattr(
        RidgeFactor, "gram_of", lambda rows, seen: grams.append(len(seen)) or gram_of(rows, seen)
    )
    selector = RegressionSetSelector(Ridge(2.0)).fit(form(X), F, sample_weight=s)
    assert grams == [21, 15]
    for j, f in enumerate(F.T):
        seen = ~np.isnan(f)
        alone = Ridge(2.0).fit(X[seen], f[seen], s[seen])
        np.testing.assert_allclose(selector.coef_[j], alone.coef_)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(300, 210), (240, 400)], ids=["tall", "wide"])
def test_reflections_choose_as_eigenvectors(shape, missing, monkeypatch):
    X, F, s = problem(shape, missing=missing)
    chosen = RegressionSetSelector().fit(X, F, sample_weight=s).alpha_
    monkeypatch.setattr(_ridge, "TRIDIAGONAL_FROM", 1000)
    found = RegressionSetSelector().fit(X, F, sample_weight=s).alpha_
    np.testing.assert_allclose(found, chosen, rtol=1e-6)


def test_a_sample_of_rows_left_out_tells(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    F = X @ rng.normal(0, 0.2, size=(10, 20)) + rng.normal(size=(1500, 20))
    exact = RegressionSetSelector().fit(X, F).alpha_
    monkeypatch.setattr(_ridge, "RESIDUALS", 2000)
    assert RegressionSetSelector().fit(X, F).alpha_ == exact
    X[::100] *= 8  # unequal leverages
    some = RegressionSetSelector().fit(X, F).alpha_
    monkeypatch.undo()
    assert some / 4 < RegressionSetSelector().fit(X, F).alpha_ < some * 4


def test_what_is_too_dear_is_generalised_or_done_on_a_part(monkeypatch):
    """Few ads, few rows, or equal leverages: the penalty stays within a decade."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 20))
    F = X @ rng.normal(0, 0.1, size=(20, 30)) + rng.normal(size=(600, 30))
    holes = np.where(rng.random(F.shape) < 0.3, np.nan, F)
    exact = RegressionSetSelector().fit(X, F).alpha_
    monkeypatch.setattr(_ridge, "LEAVE_ONE_OUT_WORK", 1)
    monkeypatch.setattr(Diagonal, "cost", 10**9)
    assert exact / 4 < RegressionSetSelector().fit(X, F).alpha_ < exact * 4
    monkeypatch.setattr(_ridge, "TUNING_WORK", 1)
    assert exact / 10 < RegressionSetSelector().fit(X, holes).alpha_ < exact * 10
    monkeypatch.setattr(_cost_models, "normal_equations_pay", lambda X, costs: False)
    monkeypatch.setattr(_cost_models, "ROWS_TO_TUNE_ON", 200)
    large = RegressionSetSelector().fit(sp.csr_array(X), F)
    assert exact / 10 < large.alpha_ < exact * 10
    np.testing.assert_allclose(large.coef_, Ridge(large.alpha_).fit(X, F).coef_, atol=1e-2)
