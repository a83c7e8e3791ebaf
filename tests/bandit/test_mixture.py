"""Prior scales side by side: Bayesian model averaging by prequential evidence."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp, ndtr

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit._posterior import renew_shares
from skbandit.bandit._state import LEAST_SHARE
from skbandit.bandit.links import LINEAR, LOGISTIC, PROBIT, log_evidence
from tests.tiers import first

SCALES = (0.3, 2.0, 15.0)


def events(n=12, n_arms=2, seed=0):
    rng = np.random.default_rng(seed)
    X, action = rng.normal(size=(n, 2)), rng.integers(n_arms, size=n)
    return X, action, X[:, 0] * action + 0.4 * rng.normal(size=n)


def test_it_is_bayesian_model_averaging():
    """Against all three models written out: marginal likelihoods, and mixtures of predictions."""
    X, action, reward = events()
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


@pytest.mark.parametrize("link", ["linear", "logistic", "probit"])
@pytest.mark.parametrize("covariance", first(1, ["diagonal", "full"]))
def test_every_scale_learns_as_if_alone(link, covariance):
    X, action, reward = events(100)
    reward = np.clip(reward, 0, 1)
    settings = {"link": link, "covariance": covariance, "forgetting": 0.98}
    mixed = GLMUCBPolicy(prior_scale=SCALES, **settings).fit(X, action, reward=reward)
    for e, scale in enumerate(SCALES):
        alone = GLMUCBPolicy(prior_scale=scale, **settings).fit(X, action, reward=reward)
        np.testing.assert_array_equal(mixed._posterior.mean[e], alone._posterior.mean[0])
        np.testing.assert_array_equal(
            mixed._posterior.cov_factor[e], alone._posterior.cov_factor[0]
        )


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_auto_adds_one_model_that_forgets(link):
    """The last one learns as the middle scale would alone; the others forget nothing."""
    X, action, reward = events(100)
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
    X, action, reward = events(100)
    reward = np.clip(reward, 0, 1)
    auto, lasting = (
        GLMUCBPolicy(**settings, **forgetting).fit(X, action, reward=reward)
        for forgetting in ({}, {"forgetting": 1})
    )
    np.testing.assert_array_equal(auto.scale_weights_, lasting.scale_weights_)
    np.testing.assert_array_equal(auto.decision_function(X), lasting.decision_function(X))


def test_equal_scales_decide_as_one():
    X, action, reward = events(60)
    three = GLMUCBPolicy("linear", prior_scale=[2, 2, 2]).fit(X, action, reward=reward)
    one = GLMUCBPolicy("linear", prior_scale=2).fit(X, action, reward=reward)
    np.testing.assert_allclose(three.scale_weights_, 1 / 3)
    np.testing.assert_allclose(three.select_scores(X), one.select_scores(X), rtol=1e-12)
    np.testing.assert_allclose(three.covariance_, one.covariance_, rtol=1e-12)


@pytest.mark.parametrize("truth", [0.1, 10.0])
def test_evidence_finds_the_scale(truth):
    """Thirty arms whose weights are drawn from one of the priors."""
    rng = np.random.default_rng(0)
    n, d, n_arms = 6000, 4, 30
    weights = rng.normal(size=(n_arms, d)) * np.sqrt(truth / d)
    X, action = rng.normal(size=(n, d)), rng.integers(n_arms, size=n)
    p = expit(np.einsum("ni,ni->n", X, weights[action]))
    policy = GLMUCBPolicy(prior_scale=[0.1, 1.0, 10.0])
    policy.fit(X, action, reward=(rng.random(n) < p).astype(float))
    assert policy.scale_weights_[[0.1, 1.0, 10.0].index(truth)] > 0.99


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
        (LINEAR, lambda theta: stats.norm.pdf(r, theta, np.sqrt(0.7)), 1e-9),
        (PROBIT, lambda theta: ndtr(theta if r else -theta), 1e-9),
        (LOGISTIC, lambda theta: expit(theta if r else -theta), 0.02),
    ]:
        exact, _ = integrate.quad(
            lambda theta, f=likelihood: f(theta) * posterior.pdf(theta),
            m - 12 * np.sqrt(v), m + 12 * np.sqrt(v), limit=200,
        )  # fmt: skip
        assert np.exp(log_evidence(m, v, r, 1.0, link, 0.7)) == pytest.approx(exact, abs=error)


def test_unlikely_rewards_have_finite_evidence():
    for link in (LINEAR, LOGISTIC, PROBIT):
        assert log_evidence(-700.0, 0.1, 1.0, 1.0, link, 1.0) < -500
        assert np.isfinite(log_evidence(-700.0, 0.1, 1.0, 1.0, link, 1.0))


@pytest.mark.parametrize(
    "wrong", [0.0, -1.0, [1.0, -0.5], [1.0, 0.0], [], [[1.0]], [1.0, np.nan], np.inf]
)
def test_scales_are_positive_numbers(wrong):
    with pytest.raises(ValueError, match="prior_scale"):
        GLMUCBPolicy(prior_scale=wrong).fit([[1.0]], [0], reward=[1])


def test_a_weight_is_a_number_of_events():
    """For linear rewards exactly: the same evidence as of repeated rows, which are all equal."""
    X, action, reward = events()
    weight = np.arange(len(X)) % 4 + 1
    policy = GLMUCBPolicy("linear", prior_scale=SCALES, standardize=False, covariance="full")
    repeated = (np.repeat(part, weight, axis=0) for part in (X, action, reward))
    X_each, action_each, reward_each = repeated
    policy.fit(X, action, reward=reward, sample_weight=weight)
    shares = policy.scale_weights_
    policy.fit(X_each, action_each, reward=reward_each)
    np.testing.assert_allclose(shares, policy.scale_weights_, rtol=1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_a_weight_of_two_is_nearly_the_event_twice(link):
    rng = np.random.default_rng(1)
    X, action = rng.normal(size=(40, 2)), rng.integers(2, size=40)
    reward = (rng.random(40) < expit(2 * X[:, 0])).astype(float)
    policy = GLMUCBPolicy(link, prior_scale=(0.1, 1, 10), standardize=False, forgetting=1)
    policy.fit(X, action, reward=reward, sample_weight=np.full(40, 2))
    shares = policy.scale_weights_
    policy.fit(*(np.repeat(part, 2, axis=0) for part in (X, action)), reward=np.repeat(reward, 2))
    np.testing.assert_allclose(shares, policy.scale_weights_, atol=0.05)


def test_another_number_of_scales_starts_afresh():
    X, action, reward = events()
    policy = GLMUCBPolicy("linear").fit(X, action, reward=reward)
    policy.set_params(prior_scale=[1, 3])
    with pytest.raises(ValueError, match="are 2 models, but the policy has learned with 3: call f"):
        policy.partial_fit(X, action, reward=reward)
    assert len(policy.fit(X, action, reward=reward).scale_weights_) == 2
