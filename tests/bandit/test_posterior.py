"""Posteriors: updates, forgetting, new arms, and mixtures of prior scales."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp, ndtr

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit._events import Events
from skbandit.bandit._passes import LearningModel, learn_rows
from skbandit.bandit._posterior import moments, renew_shares, with_arms
from skbandit.bandit._state import LEAST_SHARE, LINKS, ChoiceRule, Prior, no_posterior
from skbandit.bandit.links import _logistic as logistic
from skbandit.bandit.links import log_evidence
from tests.tiers import first

# === Updates of weights by scalar steps, forgetting, and the prior of new arms ==================

D = 4


def prior(forgetting=(1.0,), noise=0.5, mean=None, variance=None):
    mean = np.zeros(D) if mean is None else mean
    variance = np.ones(D) if variance is None else variance
    return Prior(mean, variance[None], None, None, noise, np.array(forgetting))


def arm(full, prior):
    return with_arms(no_posterior(D, full), ["a"], prior)


def learn_all(X, r, link, posterior, prior):
    rule = ChoiceRule(list(LINKS).index(link), 0, 0, 0, 0.0, 0, intercept=False)
    action, weight = np.zeros(len(X), dtype=np.int64), np.ones(len(X))
    events = Events(X, action, np.array(r), weight, np.zeros(len(X)))
    learn_rows(events, LearningModel(posterior, rule, prior))


def covariance(posterior):
    factor = posterior.cov_factor[0, 0]
    return np.diag(factor) if factor.ndim == 1 else factor @ factor.T


@pytest.fixture
def events():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, D))
    return X, (rng.random(60) < 0.4).astype(float)


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


@pytest.mark.parametrize("link", first(1, ["linear", "logistic", "probit"]))
def test_many_updates_leave_it_positive_definite(link):
    """Correlated features of very different scales, and a wide prior."""
    rng = np.random.default_rng(1)
    n, d = 300_000, 8
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


@pytest.mark.parametrize(("full", "gamma"), first(2, [(True, 1.0), (False, 0.9), (True, 0.9)]))
def test_forgetting_discounts_the_evidence_but_not_the_prior(full, gamma, events):
    """Precision and information: Λ₀ + Σ γ^(n-i) times each event's information, linear model."""
    X, r = events
    mean, variance = np.array([0.3, -1.0, 0.0, 2.0]), np.array([0.1, 1.0, 3.0, 0.5])
    given = prior(np.array([gamma]), mean=mean, variance=variance)
    posterior = arm(full, given)
    if not full:  # one feature at a time: then the posterior is diagonal
        X = np.eye(D)[np.arange(len(X)) % D]
    learn_all(X, r, "linear", posterior, given)
    weight = gamma ** np.arange(len(X))[::-1] / given.noise_variance
    precision = np.diag(1 / variance) + (X * weight[:, None]).T @ X
    exact = np.linalg.solve(precision, mean / variance + X.T @ (weight * r))
    np.testing.assert_allclose(posterior.mean[0, 0], exact, atol=1e-12)
    np.testing.assert_allclose(covariance(posterior), np.linalg.inv(precision), atol=1e-12)


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


def test_the_default_forgets_if_rewards_drift_and_only_then():
    """Its factor is .995, and the mean reward within two standard deviations of 200 events."""
    rng = np.random.default_rng(0)
    X, action = rng.normal(size=(4000, 2)), np.zeros(4000)
    for late, weight, estimate in ((0.3, 1.0, 0.3), (0.1, 0.0, 0.1)):
        r = (rng.random(4000) < np.linspace(0.1, late, 4000)).astype(float)
        policy = GLMUCBPolicy().fit(X, action, reward=r)
        assert policy.scale_weights_[-1] == pytest.approx(weight, abs=0.05)
        assert policy.predict_reward([[0.0, 0.0]])[0, 0] == pytest.approx(estimate, abs=0.07)


@pytest.mark.thorough
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


# === Prior scales side by side: Bayesian model averaging by prequential evidence ================

SCALES = (0.3, 2.0, 15.0)


def mixture_events(n=12, n_arms=2, seed=0):
    rng = np.random.default_rng(seed)
    X, action = rng.normal(size=(n, 2)), rng.integers(n_arms, size=n)
    return X, action, X[:, 0] * action + 0.4 * rng.normal(size=n)


def test_it_is_bayesian_model_averaging():
    """Against all three models written out: marginal likelihoods, and mixtures of predictions."""
    X, action, reward = mixture_events()
    noise = 0.2
    policy = GLMUCBPolicy(
        "linear", 1.0, prior_scale=SCALES, standardize=False, covariance="full",
        noise_variance=noise,
    )  # fmt: skip
    policy.fit(X, action, reward=reward)
    with_one, new = np.column_stack([X, np.ones(len(X))]), np.array([0.3, -1.2, 1.0])
    log_likelihood, means, variances = [], [], []
    for scale in SCALES:
        prior = np.diag([scale / 2, scale / 2, np.sqrt(scale)])
        total, m, v = 0.0, [], []
        for arm in policy.arms_:
            x, r = with_one[action == arm], reward[action == arm]
            covariance = x @ prior @ x.T + noise * np.eye(len(x))
            total += stats.multivariate_normal(cov=covariance).logpdf(r)
            gain = np.linalg.solve(covariance, x @ prior).T
            m.append(new @ gain @ r)
            v.append(new @ (prior - gain @ x @ prior) @ new)
        log_likelihood.append(total)
        means.append(m)
        variances.append(v)
    share = np.exp(np.array(log_likelihood) - logsumexp(log_likelihood))
    np.testing.assert_allclose(policy.scale_weights_, share, rtol=1e-9)
    mean = share @ means
    variance = share @ (np.array(variances) + (np.array(means) - mean) ** 2)
    np.testing.assert_allclose(policy.decision_function(new[None, :2])[0], mean, rtol=1e-9)
    np.testing.assert_allclose(
        policy.select_scores(new[None, :2])[0], mean + np.sqrt(variance), rtol=1e-9
    )


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_auto_adds_one_model_that_forgets(link):
    """The last one learns as the middle scale would alone; the others forget nothing."""
    X, action, reward = mixture_events(100)
    reward = np.clip(reward, 0, 1)
    auto = GLMUCBPolicy(link).fit(X, action, reward=reward)
    lasting = GLMUCBPolicy(link, forgetting=1).fit(X, action, reward=reward)
    forgetful = GLMUCBPolicy(link, prior_scale=3, forgetting=0.995).fit(X, action, reward=reward)
    for name in ("mean", "cov_factor"):
        learned = getattr(auto._posterior, name)
        np.testing.assert_array_equal(learned[:-1], getattr(lasting._posterior, name))
        np.testing.assert_array_equal(learned[-1:], getattr(forgetful._posterior, name))


@pytest.mark.parametrize("settings", [
    {"link": "linear"}, {"prior_scale": 2}, {"covariance": "full"}, {"standardize": False},
    {"standardize": "scale"}, {"prior_variance": 1.0}, {"prior_variance": "adaptive"},
    {"prior_mean": "adaptive"},
], ids=str)  # fmt: skip
def test_auto_forgets_nothing_where_that_would_be_slow_or_misled(settings):
    X, action, reward = mixture_events(100)
    reward = np.clip(reward, 0, 1)
    auto, lasting = (
        GLMUCBPolicy(**settings, **forgetting).fit(X, action, reward=reward)
        for forgetting in ({}, {"forgetting": 1})
    )
    np.testing.assert_array_equal(auto.scale_weights_, lasting.scale_weights_)
    np.testing.assert_array_equal(auto.decision_function(X), lasting.decision_function(X))


@pytest.mark.parametrize("evidence", [
    [0.0, 0.0], [-1e6, -1e6 + 2, -1e6 - 3], [5.0, -2.0, -1.9], [0.0], [-700.0, 800.0],
], ids=str)  # fmt: skip
def test_shares_are_a_softmax_without_the_least(evidence):
    share = np.empty(len(evidence))
    renew_shares(np.array(evidence), share)
    softmax = np.exp(evidence - logsumexp(evidence))
    expected = np.where(softmax < LEAST_SHARE, 0.0, softmax)
    np.testing.assert_allclose(share, expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("m, v", [(0.3, 0.5), (-2.0, 4.0), (4.0, 0.01)])
@pytest.mark.parametrize("r", [0.0, 1.0])
def test_predictive_likelihoods_are_integrals(m, v, r):
    """Exact, but for the logistic link's approximation of the mean reward by M1."""
    posterior = stats.norm(m, np.sqrt(v))
    for link, likelihood, error in [
        (0, lambda theta: stats.norm.pdf(r, theta, np.sqrt(0.7)), 1e-9),
        (2, lambda theta: ndtr(theta if r else -theta), 1e-9),
        (1, lambda theta: expit(theta if r else -theta), 0.02),
    ]:
        exact, _ = integrate.quad(
            lambda theta, f=likelihood: f(theta) * posterior.pdf(theta),
            m - 12 * np.sqrt(v), m + 12 * np.sqrt(v), limit=200,
        )  # fmt: skip
        assert np.exp(log_evidence(link, m, v, r, 1.0, 0.7)) == pytest.approx(exact, abs=error)


def test_unlikely_rewards_have_finite_evidence():
    for link in range(len(LINKS)):
        assert log_evidence(link, -700.0, 0.1, 1.0, 1.0, 1.0) < -500
        assert np.isfinite(log_evidence(link, -700.0, 0.1, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    "wrong", [0.0, -1.0, [1.0, -0.5], [1.0, 0.0], [], [[1.0]], [1.0, np.nan], np.inf]
)
def test_scales_are_positive_numbers(wrong):
    with pytest.raises(ValueError, match="prior_scale"):
        GLMUCBPolicy(prior_scale=wrong).fit([[1.0]], [0], reward=[1])


def test_a_weight_is_a_number_of_events():
    """For linear rewards exactly: as repeated rows, which are all equal."""
    X, action, reward = mixture_events()
    weight = np.arange(len(X)) % 4 + 1
    policy = GLMUCBPolicy("linear", prior_scale=SCALES, standardize=False, covariance="full")
    repeated = (np.repeat(part, weight, axis=0) for part in (X, action, reward))
    X_each, action_each, reward_each = repeated
    policy.fit(X, action, reward=reward, sample_weight=weight)
    learned = policy.scale_weights_, policy.coef_, policy.covariance_
    policy.fit(X_each, action_each, reward=reward_each)
    np.testing.assert_allclose(learned[0], policy.scale_weights_, rtol=1e-9)
    np.testing.assert_allclose(learned[1], policy.coef_, atol=1e-9)
    np.testing.assert_allclose(learned[2], policy.covariance_, atol=1e-9)


def test_another_number_of_scales_starts_afresh():
    X, action, reward = mixture_events()
    policy = GLMUCBPolicy("linear").fit(X, action, reward=reward)
    policy.set_params(prior_scale=[1, 3])
    with pytest.raises(ValueError, match="are 2 models, but the policy has learned with 3: call f"):
        policy.partial_fit(X, action, reward=reward)
    assert len(policy.fit(X, action, reward=reward).scale_weights_) == 2
