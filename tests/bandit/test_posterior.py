"""Updates of weights by scalar steps, forgetting, and the prior of new arms."""

import numpy as np
import pytest

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit._passes import learn_rows
from skbandit.bandit._posterior import _forget, moments, with_arms
from skbandit.bandit._state import LINKS, ChoiceRule, Prior, no_posterior, workspace_for
from skbandit.bandit.links import logistic
from tests.tiers import first

D = 4


def prior(forgetting=(1.0,), noise=0.5, mean=None, variance=None):
    mean = np.zeros(D) if mean is None else mean
    variance = np.ones(D) if variance is None else variance
    return Prior(mean, variance[None], None, None, noise, np.array(forgetting))


def arm(full, prior):
    return with_arms(no_posterior(D, full), ["a"], prior)


def learn_all(X, r, link, posterior, prior, weight=1.0):
    rule = ChoiceRule(LINKS.index(link), 0, 0, 0, 0.0, 0, intercept=False)
    action, weight = np.zeros(len(X), dtype=np.int64), np.full(len(X), weight)
    learn_rows(X, action, np.array(r), weight, posterior, prior, rule)


def covariance(posterior):
    factor = posterior.cov_factor[0, 0]
    return np.diag(factor) if factor.ndim == 1 else factor @ factor.T


@pytest.fixture
def events():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, D))
    return X, (rng.random(60) < 0.4).astype(float)


def test_full_linear_is_bayesian_linear_regression(events):
    X, r = events
    given = prior(mean=np.array([0.3, -1.0, 0.0, 2.0]), variance=np.array([0.1, 1.0, 3.0, 0.5]))
    posterior = arm(True, given)
    learn_all(X, r, "linear", posterior, given)
    precision = np.diag(1 / given.variance[0]) + X.T @ X / given.noise_variance
    exact = np.linalg.solve(
        precision, given.mean / given.variance[0] + X.T @ r / given.noise_variance
    )
    np.testing.assert_allclose(posterior.mean[0, 0], exact, atol=1e-12)
    np.testing.assert_allclose(covariance(posterior), np.linalg.inv(precision), atol=1e-13)


@pytest.mark.parametrize("full", [False, True])
def test_a_step_is_equations_8_and_9(full, events):
    X, r = events
    given = prior()
    posterior = arm(full, given)
    learn_all(X[:20], r[:20], "logistic", posterior, given)
    mean, sigma = posterior.mean[0, 0].copy(), covariance(posterior).copy()
    x = X[20]
    m, v = moments(x, posterior.mean, posterior.cov_factor, 0, 0, np.empty(D))
    assert m == pytest.approx(mean @ x)
    assert v == pytest.approx(x @ sigma @ x)
    g, h = logistic.step(m, v, 1.0)
    learn_all(X[20:21], [1.0], "logistic", posterior, given)
    np.testing.assert_allclose(posterior.mean[0, 0], mean + sigma @ x * g, atol=1e-14)
    expected = sigma - h * np.outer(sigma @ x, sigma @ x)
    if not full:
        expected = np.diag(np.diag(expected))
    np.testing.assert_allclose(covariance(posterior), expected, atol=1e-14)
    if full:  # then θ itself has the moments of the step
        after = moments(x, posterior.mean, posterior.cov_factor, 0, 0, np.empty(D))
        assert after == pytest.approx((m + v * g, v - v * v * h))


def test_a_weight_is_a_power_of_the_likelihood(events):
    X, r = events
    given = prior()
    twice, weighted = arm(True, given), arm(True, given)
    learn_all(np.repeat(X, 2, axis=0), np.repeat(r, 2), "linear", twice, given)
    learn_all(X, r, "linear", weighted, given, weight=2.0)
    np.testing.assert_allclose(weighted.mean, twice.mean, atol=1e-13)
    np.testing.assert_allclose(covariance(weighted), covariance(twice), atol=1e-14)


@pytest.mark.parametrize("link", first(1, ["linear", "logistic", "probit"]))
def test_a_million_updates_leave_it_positive_definite(link):
    """Correlated features of very different scales, and a wide prior."""
    rng = np.random.default_rng(1)
    n, d = 1_000_000, 8
    X = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * np.logspace(-3, 3, d))
    r = (rng.random(n) < 0.05).astype(float)
    policy = GLMUCBPolicy(
        link, covariance="full", prior_variance=1e6, standardize=False, fit_intercept=False
    )
    policy.fit(X, np.zeros(n, dtype=int), reward=r)
    sigma = policy.covariance_[0]
    assert (sigma == sigma.T).all()
    scale = np.sqrt(np.diag(sigma))
    assert (scale > 0).all()
    assert np.linalg.eigvalsh(sigma / np.outer(scale, scale)).min() > 1e-10
    if link == "linear":
        exact = np.linalg.inv(X.T @ X + np.eye(d) / 1e6)
        np.testing.assert_allclose(
            sigma / np.outer(scale, scale), exact / np.outer(scale, scale), atol=1e-6
        )


@pytest.mark.parametrize("full", first(1, [False, True]))
def test_forgetting_discounts_the_evidence_but_not_the_prior(full, events):
    """Precision and information: Λ₀ + Σ γ^(n-i) times each event's information, linear model."""
    X, r = events
    gamma = 0.9
    given = prior(np.array([gamma]), mean=np.array([0.3, -1.0, 0.0, 2.0]))
    posterior = arm(full, given)
    if not full:  # one feature at a time: then the posterior is diagonal
        X = np.eye(D)[np.arange(len(X)) % D]
    learn_all(X, r, "linear", posterior, given)
    weight = gamma ** np.arange(len(X))[::-1] / given.noise_variance
    precision = np.eye(D) + (X * weight[:, None]).T @ X
    exact = np.linalg.solve(precision, given.mean + X.T @ (weight * r))
    np.testing.assert_allclose(posterior.mean[0, 0], exact, atol=1e-12)
    np.testing.assert_allclose(covariance(posterior), np.linalg.inv(precision), atol=1e-12)


def test_forgetting_of_a_diagonal_is_that_of_the_full_covariance_it_is():
    """In closed form or by an observation of each weight's prior mean."""
    rng = np.random.default_rng(0)
    given = prior(np.array([0.9]), mean=rng.normal(size=D), variance=rng.uniform(0.1, 3, D))
    diagonal, full = arm(False, given), arm(True, given)
    diagonal.mean[0, 0] = full.mean[0, 0] = rng.normal(size=D)
    diagonal.cov_factor[0, 0] = rng.uniform(0.01, 2, D)
    full.cov_factor[0, 0] = np.diag(np.sqrt(diagonal.cov_factor[0, 0]))
    for posterior in (diagonal, full):
        _forget(0, 0, posterior.mean, posterior.cov_factor, given, workspace_for(D))
    np.testing.assert_allclose(diagonal.mean, full.mean, rtol=1e-13)
    np.testing.assert_allclose(covariance(diagonal), covariance(full), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("d", [1, 3, 4, 7, 12, 13, 20])
def test_moments_of_a_full_covariance_are_its_quadratic_form(d):
    """For few weights, by fours and one by one, and for many."""
    rng = np.random.default_rng(d)
    x, mean, L = rng.normal(size=d), rng.normal(size=(1, 1, d)), rng.normal(size=(d, d))
    a = np.empty(d)
    m, v = moments(x, mean, L[None, None], 0, 0, a)
    assert m == pytest.approx(x @ mean[0, 0], rel=1e-12)
    assert v == pytest.approx(x @ L @ L.T @ x, rel=1e-12)
    np.testing.assert_allclose(a, L.T @ x, rtol=1e-12)


def test_forgetting_follows_drift():
    rng = np.random.default_rng(0)
    X = np.ones((4000, 1))
    r = (rng.random(4000) < np.repeat([0.1, 0.6], 2000)).astype(float)
    parameters = {"prior_variance": 10.0, "standardize": False, "fit_intercept": False}
    fixed = GLMUCBPolicy(**parameters).fit(X, np.zeros(4000), reward=r)
    drifting = GLMUCBPolicy(forgetting=0.98, **parameters).fit(X, np.zeros(4000), reward=r)
    assert drifting.predict_reward([[1.0]])[0, 0] == pytest.approx(0.6, abs=0.12)
    assert fixed.predict_reward([[1.0]])[0, 0] < 0.5


def test_the_default_forgets_if_rewards_drift_and_only_then():
    """Its weight is from .995, and the mean reward within two standard deviations of 200 events."""
    rng = np.random.default_rng(0)
    X, action = rng.normal(size=(4000, 2)), np.zeros(4000)
    for late, weight, estimate in ((0.6, 1.0, 0.6), (0.1, 0.0, 0.1)):
        r = (rng.random(4000) < np.repeat([0.1, late], 2000)).astype(float)
        policy = GLMUCBPolicy().fit(X, action, reward=r)
        assert policy.scale_weights_[-1] == pytest.approx(weight, abs=0.05)
        assert policy.predict_reward([[0.0, 0.0]])[0, 0] == pytest.approx(estimate, abs=0.07)


@pytest.mark.parametrize("covariance_kind", first(1, ["diagonal", "full"]))
def test_adaptive_priors_start_new_arms_from_the_learned_ones(covariance_kind):
    rng = np.random.default_rng(0)
    n, d, arms = 3000, 2, 5
    X = rng.normal(size=(n, d))
    action = rng.integers(arms, size=n)
    reward = X @ [1.0, -2.0] + 0.5 * action + rng.normal(size=n)
    policy = GLMUCBPolicy(
        "linear",
        prior_mean="adaptive",
        prior_variance="adaptive",
        standardize=False,
        covariance=covariance_kind,
        arms=[*range(arms), "new"],
    )
    policy.fit(X, action, reward=reward)
    mean = np.column_stack([policy.coef_, policy.intercept_])
    away = mean[:arms] - mean[:arms].mean(axis=0)
    expected = (np.eye(d + 1) + away.T @ away) / arms
    np.testing.assert_allclose(mean[arms], mean[:arms].mean(axis=0), atol=1e-12)
    got = policy.covariance_[arms]
    np.testing.assert_allclose(
        got, np.diag(expected) if covariance_kind == "diagonal" else expected, atol=1e-12
    )
    # an unknown arm has the same prior
    assert policy.n_updates_[arms] == 0
    np.testing.assert_array_equal(
        policy.select_proba(X[:5], available=[("new", "newer")] * 5)[:, arms], 0.5
    )


def test_an_adaptive_prior_needs_two_arms():
    policy = GLMUCBPolicy(
        prior_mean="adaptive", prior_variance="adaptive", standardize=False, arms=["a", "b"]
    )
    policy.fit([[1.0], [2.0]], ["a", "a"], reward=[1, 1])
    assert policy.coef_[1] == 0.0
    assert (policy.covariance_[1] == 1.0).all()
