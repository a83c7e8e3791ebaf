"""Cross-fitted reward models, against models fitted one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit

from skbandit.logs import cross_fitted_rewards
from skbandit.utils._folds import folds_of_rows


def events(n=60, n_arms=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    action = rng.integers(n_arms, size=n)
    return X, action, X[:, 0] * action + rng.normal(size=n)


def ridge(X, y, x, alpha=1.0):
    """Ridge regression with a free intercept, by its normal equations."""
    center = X.mean(axis=0)
    Z = X - center
    w = np.linalg.solve(Z.T @ Z + alpha * np.eye(X.shape[1]), Z.T @ (y - y.mean()))
    return y.mean() + (x - center) @ w


def test_every_prediction_is_that_of_a_ridge_fitted_without_the_row():
    X, action, reward = events(n=40)
    predicted = cross_fitted_rewards(None, X, action, reward, 3, cv=LeaveOneOut())
    for row in range(40):
        for arm in range(3):
            own = (action == arm) & (np.arange(40) != row)
            assert predicted[row, arm] == pytest.approx(ridge(X[own], reward[own], X[row]))


def test_a_row_does_not_see_its_own_reward():
    X, action, reward = events()
    before = cross_fitted_rewards(None, X, action, reward, 3, random_state=0)
    reward = reward.copy()
    reward[7] += 100
    after = cross_fitted_rewards(None, X, action, reward, 3, random_state=0)
    np.testing.assert_array_equal(after[7], before[7])
    others = (after != before)[:, action[7]]
    assert others.sum() >= 40  # those that are tested in other folds
    assert (after == before)[:, np.arange(3) != action[7]].all()


def test_a_number_of_folds_assigns_rows_and_keeps_copies_together():
    X, action, reward = events()
    X[30:40], reward[30:40] = X[:10], reward[:10]
    one = cross_fitted_rewards(None, X, action, reward, 3, cv=4, random_state=3)
    fold = folds_of_rows(X, reward, 4, 3)
    np.testing.assert_array_equal(fold[30:40], fold[:10])
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    np.testing.assert_array_equal(one, cross_fitted_rewards(None, X, action, reward, 3, cv=splits))
    folds = KFold(4, shuffle=True, random_state=3)
    splits = list(folds.split(X))
    other = cross_fitted_rewards(None, X, action, reward, 3, cv=splits)
    np.testing.assert_array_equal(other, cross_fitted_rewards(None, X, action, reward, 3, cv=folds))


def test_arms_without_events_get_the_mean_of_the_training_part():
    X, action, reward = events()
    weight = np.random.default_rng(1).uniform(size=60)
    folds = KFold(5)
    predicted = cross_fitted_rewards(None, X, action, reward, 5, cv=folds, sample_weight=weight)
    for train, test in folds.split(X):
        mean = weight[train] @ reward[train] / weight[train].sum()
        np.testing.assert_allclose(predicted[test, 3:], mean)


@pytest.mark.parametrize("kind", [pd.DataFrame, csr_matrix], ids=["DataFrame", "sparse"])
def test_contexts_of_any_kind(kind):
    X, action, reward = events()
    if kind is pd.DataFrame:
        given = pd.DataFrame(X, columns=["a", "b"], index=np.arange(60)[::-1])
    else:
        given = kind(X)
    expected = cross_fitted_rewards(LinearRegression(), X, action, reward, 3, random_state=0)
    found = cross_fitted_rewards(LinearRegression(), given, action, reward, 3, random_state=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


# --- classifiers ---------------------------------------------------------------------------


def test_a_classifier_predicts_its_expected_class():
    X, action, _ = events(n=200)
    reward = np.where(np.random.default_rng(1).random(200) < 0.4, 3.0, -1.0)
    folds = KFold(3)
    predicted = cross_fitted_rewards(
        LogisticRegression(solver="newton-cholesky"), X, action, reward, 3, cv=folds
    )
    train, test = next(folds.split(X))
    own = train[action[train] == 1]
    share = (
        LogisticRegression(solver="newton-cholesky")
        .fit(X[own], reward[own] > 0)
        .predict_proba(X[test])[:, 1]
    )
    np.testing.assert_allclose(predicted[test, 1], 4 * share - 1)


# --- weights, slates -----------------------------------------------------------------------


def test_weights():
    X, action, reward = events()
    folds = KFold(3)
    weight = np.random.default_rng(1).integers(3, size=60).astype(float)
    weighted = cross_fitted_rewards(Ridge(), X, action, reward, 3, cv=folds, sample_weight=weight)
    row = np.repeat(np.arange(60), weight.astype(int))
    repeated = cross_fitted_rewards(Ridge(), X, action[row], reward[row], 3, row=row, cv=folds)
    np.testing.assert_allclose(weighted, repeated)
    ones = cross_fitted_rewards(Ridge(), X, action, reward, 3, cv=folds, sample_weight=np.ones(60))
    np.testing.assert_allclose(ones, cross_fitted_rewards(Ridge(), X, action, reward, 3, cv=folds))


# --- what cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(3), "cv tests row 0 0 times"),
        (ShuffleSplit(3, random_state=0), r"cv tests row \d+ \d times"),
        ([(np.arange(60), np.arange(60))], "cv trains on row 0 in the fold that tests it"),
        ([(np.arange(1, 3), np.arange(60))], "cv trains on row 1"),
        (61, "cv=61 folds need as many rows, and there are 60"),
        (1, "n_splits=1"),
        ("five", "as an integer"),
    ],
)
def test_folds_that_do_not_do(cv, message):
    X, action, reward = events()
    with pytest.raises(ValueError, match=message):
        cross_fitted_rewards(None, X, action, reward, 3, cv=cv)


def test_a_training_part_without_events():
    X = np.zeros((4, 1))
    row = action = np.zeros(1, dtype=int)
    with pytest.raises(ValueError, match="a fold without events to train on: choose fewer folds"):
        cross_fitted_rewards(None, X, action, np.ones(1), 1, row=row, cv=2, random_state=0)
