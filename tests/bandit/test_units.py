"""Running standardization: units by learned contexts, and a posterior that follows them."""

import numpy as np
import pandas as pd
import pytest

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit._posterior import moments, with_arms
from skbandit.bandit._state import Prior, no_posterior
from skbandit.bandit._units import carry_over, renew
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.tiers import first

N_FEATURES = 3


def events(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES)) * [1e-3, 1.0, 500.0] + [0.0, -7.0, 1e4]
    action = rng.integers(3, size=n)
    reward = (rng.random(n) < 0.2 + 0.2 * action * (X[:, 1] > -7)).astype(float)
    return X, action, reward


def fitted(n, **settings):
    X, action, reward = events(n)
    policy = GLMUCBPolicy(random_state=0, **settings)
    return policy.fit(X, action, reward=reward)


@pytest.mark.parametrize("n, last", [(8, 8), (15, 8), (16, 16), (63, 32), (100, 64)])
def test_units_are_those_of_the_contexts_at_the_last_renewal(n, last):
    posterior = fitted(n)._posterior
    X = events(n)[0][:last]
    np.testing.assert_allclose(posterior.center, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(posterior.rate, 1 / X.std(axis=0), rtol=1e-10)


def test_without_a_constant_features_are_only_scaled():
    posterior = fitted(40, fit_intercept=False)._posterior
    X = events(40)[0][:32]
    assert len(posterior.center) == 0
    np.testing.assert_allclose(posterior.rate, 1 / np.sqrt((X**2).mean(axis=0)), rtol=1e-10)


def test_before_the_first_renewal_arms_are_constants():
    policy = fitted(7)
    assert (policy.coef_ == 0).all()
    assert len(np.unique(policy.decision_function(events()[0]), axis=0)) == 1


def test_a_weighted_context_counts_as_often():
    X, action, reward = events(64)
    policy = GLMUCBPolicy().fit(X, action, reward=reward, sample_weight=np.r_[3.0, np.ones(63)])
    repeated = np.r_[X[:1], X[:1], X]
    np.testing.assert_allclose(policy._posterior.center, repeated.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(policy._posterior.rate, 1 / repeated.std(axis=0), rtol=1e-10)


def standardized(X, posterior):
    x = (X - posterior.center) * posterior.rate
    return np.column_stack([x, np.ones(len(X))])


@pytest.mark.parametrize("full", [False, True])
def test_means_stay_the_same_functions_and_full_variances_too(full):
    """Two renewals in a row: with random posterior, between two sets of contexts."""
    rng = np.random.default_rng(0)
    d = N_FEATURES + 1
    prior = Prior(np.zeros(d), np.ones((1, d)), None, None, 1.0, np.ones(1))
    posterior = with_arms(no_posterior(d, full, n_units=N_FEATURES), ["a"], prior)
    posterior.n_updates[:] = 1
    posterior.seen_weight[0] = 10.0
    factor, shift = np.empty(d), np.empty(d)
    X, scratch = rng.normal(size=(20, N_FEATURES)) * 50, np.empty(d)

    def of_rows():
        return np.array([
            moments(x, posterior.mean, posterior.cov_factor, 0, 0, scratch)
            for x in standardized(X, posterior)
        ])  # fmt: skip

    def change():
        posterior.seen_mean[:] = rng.normal(size=N_FEATURES) * 100
        posterior.seen_squares[:] = rng.uniform(1, 1e4, size=N_FEATURES)
        renew(
            posterior.center, posterior.rate, posterior.seen_mean, posterior.seen_squares,
            posterior.seen_weight[0], 1.0, factor, shift,
        )  # fmt: skip
        carry_over(
            0, 0, posterior.mean, posterior.cov_factor, prior, factor, shift, N_FEATURES, True
        )

    change()
    assert (factor[:N_FEATURES] == 1).all()  # the first units have no earlier ones
    posterior.mean[:] = rng.normal(size=posterior.mean.shape)
    posterior.cov_factor[:] = (
        rng.normal(size=(d, d)) if full else rng.uniform(0.01, 1, size=posterior.cov_factor.shape)
    )
    before, of_data = of_rows(), 1 / posterior.cov_factor - 1
    change()
    assert (factor[:N_FEATURES] != 1).all()
    after = of_rows()
    np.testing.assert_allclose(after[:, 0], before[:, 0], rtol=1e-9)
    if full:
        np.testing.assert_allclose(after[:, 1], before[:, 1], rtol=1e-9)
    else:  # what the data told of each slope, with today's prior; the constant's is unchanged
        told = of_data[0, 0, :N_FEATURES] / factor[:N_FEATURES] ** 2
        expected = np.append(1 / (1 + told), 1 / (1 + of_data[0, 0, -1]))
        np.testing.assert_allclose(posterior.cov_factor[0, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_weights_are_told_in_the_units_of_the_contexts(covariance):
    policy, X = fitted(100, covariance=covariance), events(20, seed=1)[0]
    expected = X @ policy.coef_.T + policy.intercept_
    np.testing.assert_allclose(policy.decision_function(X), expected, atol=1e-10)
    if covariance == "full":
        with_one = np.column_stack([X, np.ones(len(X))])
        variance = np.einsum("ni,kij,nj->nk", with_one, policy.covariance_, with_one)
        bound = policy.set_params(alpha=1.0).select_scores(X)
        np.testing.assert_allclose((bound - expected) ** 2, variance, rtol=1e-6)


SETTINGS = [
    {}, {"link": "linear"}, {"covariance": "full"}, {"forgetting": 0.97}, {"update_every": 60},
    {"prior_mean": "adaptive", "prior_variance": "adaptive"}, {"exploration": "thompson"},
]  # fmt: skip


def history(X, y, **settings):
    policy = GLMUCBPolicy(random_state=0, **settings)
    return replay(policy, X, y, random_state=0).history


@pytest.mark.parametrize("settings", first(2, SETTINGS), ids=str)
def test_decisions_do_not_depend_on_units(settings):
    """Any positive factors and shifts; by powers of two, to the bit."""
    log = make_bandit_log(3000, n_arms=4, n_features=3, base_rate=0.3, random_state=0)
    X = np.asarray(log.X)
    plain = history(X, log.y, **settings)
    pd.testing.assert_frame_equal(history(X * [0.25, 8.0, 1024.0], log.y, **settings), plain)
    moved = history(X * [0.3, 7.0, 1e5] + [3.0, -1e3, 1e6], log.y, **settings)
    pd.testing.assert_frame_equal(moved, plain)


def test_constant_columns_count_for_nothing():
    """Whatever their values; 0.1 is one whose mean may be rounded."""
    X, action, reward = events()
    wider = np.column_stack([X, np.full(len(X), 0.1), np.zeros(len(X)), np.full(len(X), -1e12)])
    with_constants = GLMUCBPolicy(prior_variance=0.5).fit(wider, action, reward=reward)
    without = GLMUCBPolicy(prior_variance=0.5).fit(X, action, reward=reward)
    assert (with_constants.coef_[:, N_FEATURES:] == 0).all()
    np.testing.assert_array_equal(with_constants.coef_[:, :N_FEATURES], without.coef_)
    far = np.column_stack([X, 1e6 * np.ones((len(X), 3))])
    np.testing.assert_array_equal(
        with_constants.decision_function(far), without.decision_function(X)
    )


def test_a_column_may_begin_to_vary():
    """A feature that is 0 during 100 events, and then decides."""
    rng = np.random.default_rng(0)
    n = 3000
    x = np.where(np.arange(n) < 100, 0.0, rng.integers(2, size=n) * 5.0)
    action = rng.integers(2, size=n)
    reward = (rng.random(n) < np.where(x == 5.0, action, 1 - action) * 0.5 + 0.1).astype(float)
    policy = GLMUCBPolicy().fit(x[:, None], action, reward=reward)
    assert policy.predict([[0.0], [5.0]]).tolist() == [0, 1]


def test_units_that_jump_are_followed():
    """Seconds become milliseconds: predictions stay finite, and right again after renewals."""
    rng = np.random.default_rng(0)
    n = 8192
    x = rng.normal(size=n)
    action = rng.integers(2, size=n)
    reward = (rng.random(n) < np.where(x > 0, action, 1 - action) * 0.6 + 0.1).astype(float)
    X = np.where(np.arange(n) < 500, x, 1000 * x)[:, None]
    policy = GLMUCBPolicy().fit(X, action, reward=reward)
    assert np.isfinite(policy.coef_).all()
    assert policy.predict([[-700.0], [700.0]]).tolist() == [0, 1]


def test_fresh_arms_start_from_the_prior_of_today():
    """An arm known from the start without events is as one that comes later: an average."""
    X, action, reward = events(64)
    known = GLMUCBPolicy(arms=[0, 1, 2, "new"], random_state=0).fit(X, action, reward=reward)
    later = GLMUCBPolicy(random_state=0).fit(X, action, reward=reward)
    pool = [(2, "new", "other")] * len(X)
    np.testing.assert_array_equal(known.select(X, available=pool), later.select(X, available=pool))
    of_arms = known.decision_function(X)
    np.testing.assert_allclose(of_arms[:, 3], of_arms[:, :3].mean(axis=1), rtol=1e-9)
