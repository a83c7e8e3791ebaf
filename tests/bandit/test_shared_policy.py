"""SharedGLMPolicy: direct Bayesian regression, logs, arms that come, and replays."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import PolynomialFeatures

from skbandit import GLMUCBPolicy, ReplayScorer
from skbandit.bandit import SharedGLMPolicy, make_policy_pipeline, select
from skbandit.bandit.shared import _bilinear as bilinear
from skbandit.evaluation import ReplaySplit, off_policy_value, replay, replay_blocks
from tests.tiers import first
from tests.worlds import refuses

# === SharedGLMPolicy: direct Bayesian regression, logs, arms that come, and replays =============


@pytest.fixture(scope="module")
def problem():
    """A uniform log of arms that come and go, and their features."""
    rng = np.random.default_rng(0)
    n, n_arms = 600, 12
    Z = pd.DataFrame(
        rng.normal(size=(n_arms, 2)),
        index=[f"arm{k:02d}" for k in range(n_arms)],
        columns=["p", "q"],
    )
    X = 3 + rng.normal(size=(n, 3)) * [1, 10, 100]
    theta = ((X - 3) / [1, 10, 100]) @ rng.normal(size=(3, 2)) @ Z.to_numpy().T - 1
    available, action = [], []
    for t in range(n):
        live = np.arange(t // 100, t // 100 + 5)
        available.append(tuple(Z.index[live]))
        action.append(int(rng.choice(live)))
    reward = (rng.random(n) < 1 / (1 + np.exp(-theta[np.arange(n), action]))).astype(float)
    y = pd.DataFrame({"action": Z.index[action], "reward": reward, "timestamp": np.arange(n) * 7.0})
    y["available"] = available
    return X, y, Z


def test_windows_wait(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z, update_every=700.0, random_state=0)
    policy.fit(X[:150], y[:150])  # events 0 to 99 are in the first window
    assert policy.n_updates_.sum() == 100
    early = SharedGLMPolicy(Z, random_state=0).fit(X[:100], y[:100])
    np.testing.assert_array_equal(policy.decision_function(X), early.decision_function(X))
    assert policy.advance(1399.0).n_updates_.sum() == 100
    again = pickle.loads(pickle.dumps(policy))
    kept = [arm for arm in Z.index if arm != "arm01"]
    again.drop_arms(["arm01"]).advance()
    assert again.arms_.tolist() == kept
    assert again.n_updates_.sum() < policy.advance(1400.0).n_updates_.sum() == 150
    early.partial_fit(X[100:150], y[100:150])
    np.testing.assert_array_equal(policy.decision_function(X), early.decision_function(X))
    with pytest.raises(ValueError, match="no features"):
        policy.partial_fit(X[150:151], y[150:151].drop(columns="available").assign(action="arm99"))
    with pytest.raises(ValueError, match="no column 'timestamp'"):
        policy.partial_fit(X[:1], {"action": ["arm01"], "reward": [1]})
    refuses("earlier than", policy.partial_fit, X[:1], y[:1])


def test_coefficients_are_for_features_as_given(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z).fit(X, y)
    X1 = np.column_stack([X, np.ones(len(X))])
    Z1 = np.column_stack([policy.arm_features_, np.ones(len(Z))])
    theta = X1 @ (policy.coef_ @ Z1.T + policy.own_coef_.T)
    np.testing.assert_allclose(policy.decision_function(X), theta, rtol=1e-7, atol=1e-9)


def test_units_do_not_matter(problem):
    """Features times a number plus a number: the same decisions."""
    X, y, Z = problem
    one = SharedGLMPolicy(Z, random_state=0).fit(X, y)
    scaled = SharedGLMPolicy(Z * [0.5, 128.0] + 7, random_state=0).fit(X * 2.0**-8 + 1, y)
    np.testing.assert_allclose(
        scaled.decision_function(X * 2.0**-8 + 1), one.decision_function(X), rtol=1e-6, atol=1e-8
    )


def test_arms_with_equal_features_and_no_own_weights_are_one(problem):
    X, y, Z = problem
    double = pd.concat([Z, Z.set_axis([f"{name}'" for name in Z.index])])
    policy = SharedGLMPolicy(double, own_variance=0.0).fit(X, y)
    theta = policy.decision_function(X[:9])
    of_arm = dict(zip(policy.arms_, theta.T, strict=True))
    for name in Z.index:
        np.testing.assert_array_equal(of_arm[name], of_arm[f"{name}'"])


@pytest.mark.parametrize("every", [None, 35.0, 500.0, 5000.0])
def test_blocks_are_the_whole(every, problem):
    """Events that wait for the end of their window wait across blocks."""
    X, y, Z = problem
    y = y.assign(propensity=1 / 5)
    policy = SharedGLMPolicy(Z, update_every=every, exploration="thompson", random_state=3)
    whole = replay(policy, X, y, random_state=1)
    blocks = [(X[k : k + 60], y[k : k + 60]) for k in range(0, 600, 60)]
    parts = replay_blocks(policy, blocks, acceptance=1 / 5, random_state=1)
    assert parts.history.equals(whole.history)


def test_arms_without_features_have_a_table_without_columns(problem):
    X, y, _ = problem
    policy = SharedGLMPolicy(random_state=0).fit(X, y)
    assert policy.arm_features_.shape == (len(policy.arms_), 0)
    assert policy.arm_features_.index.tolist() == policy.arms_.tolist()


def test_a_replay_may_bring_features_of_new_arms(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z[:3], random_state=0)
    told = replay(policy, X, y, arm_features=Z, random_state=1)
    assert len(policy.arm_features) == 3
    whole = replay(SharedGLMPolicy(Z, random_state=0), X, y, random_state=1)
    assert told.history.equals(whole.history)
    refuses("has no features", replay, policy, X, y, random_state=1)
    refuses("takes none", replay, GLMUCBPolicy(), X, y, arm_features=Z, error=TypeError)


def test_new_arms_at_any_time(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z[:6], random_state=0).fit(X[:90], y[:90])
    assert policy.arms_.tolist() == list(Z.index[:6])
    choices = policy.describe_arms(Z[6:8]).select(X[:3], available=["arm06", "arm07"])
    assert set(choices) <= {"arm06", "arm07"}
    assert policy.arms_.tolist() == list(Z.index[:8])
    policy.describe_arms(Z[["q", "p"]]).partial_fit(X[90:300], y[90:300])  # columns by name
    pd.testing.assert_frame_equal(policy.arm_features_, Z, check_index_type=False)
    assert policy.n_updates_.sum() == 300
    refuses("arm 'arm99' has no features", policy.select, X[:1], available=["arm00", "arm99"])
    policy.drop_arms(["arm03"])
    assert "arm03" not in policy.arms_
    policy.describe_arms(Z.loc[["arm03"]])
    assert policy.n_updates_[policy.arms_.tolist().index("arm03")] == 0
    assert policy.arms_.tolist() == sorted(Z.index)


@pytest.mark.parametrize("name", ["fit", "partial_fit", "predict", "select", "select_proba"])
def test_methods_refuse_features_of_arms_and_name_the_new_way(name):
    refuses("call describe_arms", getattr(SharedGLMPolicy(), name), arm_features=1, error=TypeError)


def test_arms_described_later_are_as_if_known_from_the_start():
    """Linear rewards, one prior scale, before contexts count: equal, though units grow a lot."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, 3)), pd.DataFrame(rng.normal(size=(20, 2)), columns=["p", "q"])
    Z.iloc[:5] = Z.iloc[0] + 1e-3 * Z.iloc[:5]
    y = pd.DataFrame({"action": rng.integers(5, size=7), "reward": rng.normal(size=7)})
    options = {"link": "linear", "own_variance": 0.0, "noise_variance": 0.5, "prior_variance": 3.0}
    early = SharedGLMPolicy(Z, **options).fit(X, y)
    late = SharedGLMPolicy(Z[:5], **options).fit(X, y).describe_arms(Z)
    np.testing.assert_allclose(late.select_scores(X), early.select_scores(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(late.decision_function(X), early.decision_function(X), atol=1e-8)
    scales = options | {"prior_variance": "scaled", "prior_scale": (0.3, 3)}
    early = SharedGLMPolicy(Z, **scales).fit(X, y)._posterior
    late = SharedGLMPolicy(Z[:5], **scales).fit(X, y).describe_arms(Z)._posterior
    np.testing.assert_allclose(late.mean, early.mean, atol=1e-8)  # of both scales


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Z: Z.assign(q=Z["q"] + (Z.index == "arm02")), "'q' of arm 'arm02' was .* is now"),
        (lambda Z: Z[["p"]], "lacks 'q'"),
        (lambda Z: Z.assign(r=1.0), "has 'r', too"),
        (lambda Z: Z.assign(q=np.nan), "'q' of arm 'arm00' is nan"),
        (lambda Z: Z.assign(q="red"), "encode"),
        (lambda Z: pd.concat([Z, Z]), "'arm00' twice"),
        (lambda Z: Z[:0], "empty"),
    ],
)
def test_bad_arm_features_change_nothing(change, message, problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z, random_state=0).fit(X[:50], y[:50])
    before = pickle.dumps(policy)
    refuses(message, policy.describe_arms, change(Z))
    assert pickle.dumps(policy) == before


def test_features_come_first_or_never(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy().fit(X[:50], y[:50])
    refuses("learned without features", policy.describe_arms, Z)
    refuses("DataFrame", SharedGLMPolicy().describe_arms, Z.to_dict(), error=TypeError)
    refuses("knows no arms", SharedGLMPolicy().select, X, error=NotFittedError)
    with pytest.raises(ValueError, match="reward is 2"):
        SharedGLMPolicy(Z).fit(X[:2], pd.DataFrame({"action": Z.index[:2], "reward": [2, 0]}))


def test_an_unfitted_policy_that_is_told_of_arms_keeps_them_in_clones(problem):
    X, y, Z = problem
    policy = clone(SharedGLMPolicy(Z[:4]).describe_arms(Z))
    pd.testing.assert_frame_equal(policy.arm_features, Z, check_index_type=False)
    assert policy.fit(X, y).n_updates_.sum() == len(X)


def test_searches_and_pipelines(problem):
    X, y, Z = problem
    crosses = make_policy_pipeline(
        PolynomialFeatures(2, interaction_only=True, include_bias=False),
        SharedGLMPolicy(Z, random_state=0),
    )
    crosses.fit(X, y)
    assert crosses.named_steps["sharedglmpolicy"].n_features_in_ == 6
    assert set(select(crosses, X[:5])) <= set(Z.index)
    new = (Z[:2] + 1).set_axis(["new0", "new1"])
    assert crosses.describe_arms(new).select(X[:1], available=["new1"]) == ["new1"]
    crosses.partial_fit(X[:1], {"action": ["new0"], "reward": [1]})
    assert crosses.select_proba(X[:1]).shape == (1, len(Z) + 2)
    search = GridSearchCV(
        SharedGLMPolicy(Z, random_state=0),
        {"alpha": [0.1, 0.5], "arm_features": [Z, Z[["p"]]]},
        scoring=ReplayScorer(min_accepted=5, random_state=0),
        cv=ReplaySplit(2),
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    estimate = off_policy_value(search.best_estimator_, X[:300], y[:300], method="ips")
    assert 0 <= estimate.mean_reward <= 1


def test_sample_weights_are_powers_of_the_likelihood():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(20, 2)), pd.DataFrame(rng.normal(size=(3, 1)))
    y = pd.DataFrame({"action": rng.integers(3, size=20), "reward": rng.normal(size=20)})
    options = {"link": "linear", "standardize": False, "own_variance": 0.0, "prior_variance": 3.0}
    weighted = SharedGLMPolicy(Z, **options).fit(X, y, sample_weight=np.full(20, 3.0))
    thrice = SharedGLMPolicy(Z, **options).fit(
        np.repeat(X, 3, axis=0), y.loc[y.index.repeat(3)].reset_index(drop=True)
    )
    np.testing.assert_allclose(weighted.coef_, thrice.coef_, rtol=1e-9)
    # with the noise estimated: as many events, so as narrow bounds
    np.testing.assert_allclose(weighted.select_scores(X), thrice.select_scores(X), rtol=1e-9)


def test_prior_scales_are_mixed_by_evidence():
    """Far from and near the truth; and one scale alone is the policy with this prior."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame(rng.normal(size=(6, 2)))
    X, action = rng.normal(size=(800, 3)), rng.integers(6, size=800)
    theta = 4 * (X @ rng.normal(size=(3, 2)) * Z.to_numpy()[action]).sum(axis=1)
    y = pd.DataFrame({"action": action, "reward": rng.random(800) < 1 / (1 + np.exp(-theta))})
    policy = SharedGLMPolicy(Z, prior_scale=(0.01, 10), forgetting=1).fit(X, y)
    np.testing.assert_allclose(policy.scale_weights_, [0, 1])
    alone = SharedGLMPolicy(Z, prior_scale=10).fit(X, y)
    np.testing.assert_allclose(policy.decision_function(X), alone.decision_function(X), rtol=1e-9)
    same = SharedGLMPolicy(Z, prior_scale=(10, 10), forgetting=1).fit(X, y)
    np.testing.assert_allclose(same.scale_weights_, 0.5)
    np.testing.assert_allclose(same.decision_function(X), alone.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_auto_adds_one_model_that_forgets(link):
    """The last one learns as the largest scale would alone; the others forget nothing."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 3)), pd.DataFrame(rng.normal(size=(4, 2)))
    y = pd.DataFrame({"action": rng.integers(4, size=300), "reward": rng.integers(2, size=300)})
    auto = SharedGLMPolicy(Z, link).fit(X, y)
    lasting = SharedGLMPolicy(Z, link, forgetting=1).fit(X, y)
    forgetful = SharedGLMPolicy(Z, link, prior_scale=3, forgetting=0.995).fit(X, y)
    for name, axis in (("mean", 1), ("cov_factor", 0), ("own_mean", 1), ("own_variance", 1)):
        learned = np.moveaxis(getattr(auto._posterior, name), axis, 0)
        others, last = (
            np.moveaxis(getattr(one._posterior, name), axis, 0) for one in (lasting, forgetful)
        )
        np.testing.assert_array_equal(learned[:-1], others)
        np.testing.assert_array_equal(learned[-1:], last)


@pytest.mark.parametrize("settings", [
    {"link": "linear"}, {"prior_scale": 2}, {"prior_variance": 1.0}, {"n_features": 70},
], ids=str)  # fmt: skip
def test_auto_forgets_nothing_where_that_misleads_or_is_slow(settings):
    settings = dict(settings)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, settings.pop("n_features", 2)))
    Z = pd.DataFrame(rng.normal(size=(4, 2)))
    y = pd.DataFrame({"action": rng.integers(4, size=50), "reward": rng.integers(2, size=50)})
    auto, lasting = (SharedGLMPolicy(Z, forgetting=g, **settings).fit(X, y) for g in ("auto", 1))
    np.testing.assert_array_equal(auto.scale_weights_, lasting.scale_weights_)
    np.testing.assert_array_equal(auto.decision_function(X), lasting.decision_function(X))


def test_the_number_of_models_is_fixed_while_learning(problem):
    X, y, Z = problem
    policy = SharedGLMPolicy(Z).fit(X[:50], y[:50])
    for changed in ({"prior_scale": 2}, {"link": "linear"}, {"forgetting": 1}):
        with pytest.raises(ValueError, match="models, but the policy has learned with 4: call fit"):
            copy.copy(policy).set_params(**changed).partial_fit(X[50:], y[50:])


# === The bilinear posterior is that of Bayesian regression on products of features ==============


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("gamma", "at_once"), first(2, [(0.97, 22), (0.6, 1), (0.4, 1), (1.0, 1)]))
def test_learning_is_that_of_the_equations(covariance, gamma, at_once):
    """Linear rewards: Bayes' rule for vec B and the arm's own w, but for their covariances.

    Evidence n events old counts gamma^n; that of a full B is discounted by steps of some events.
    """
    rng, full = np.random.default_rng(0), covariance == "full"
    n, nx, nz, n_arms = 60, 3, 2, 70  # more arms than a block holds
    X, Z = rng.normal(size=(n, nx)), rng.normal(size=(n_arms, nz))
    action, reward = rng.integers(7, size=n), rng.normal(size=n)
    policy = SharedGLMPolicy(
        pd.DataFrame(Z), link="linear", own_variance=0.3, noise_variance=0.5, prior_variance=2.0,
        standardize=False, forgetting=gamma, covariance=covariance,
    ).fit(X, action, reward=reward)  # fmt: skip
    X1, Z1 = np.column_stack([X, np.ones(n)]), np.column_stack([Z, np.ones(n_arms)])
    prior = np.diag(np.r_[np.full((nx + 1) * (nz + 1) - 1, 2.0), 1.0])
    S, mean = prior, np.zeros(len(prior))
    own, tau = np.zeros((n_arms, nx + 1)), np.full((n_arms, nx + 1), 0.3)
    every = at_once if full else 1
    for t, (x, k) in enumerate(zip(X1, action, strict=True), start=1):
        before = tau[k].copy()
        tau[k] = 1 / (gamma / before + (1 - gamma) / 0.3)
        own[k] *= gamma * tau[k] / before
        if t % every == 0:
            share = gamma**every
            old = np.linalg.inv(S)
            S = np.linalg.inv(share * old + (1 - share) * np.linalg.inv(prior))
            mean = share * S @ old @ mean
        phi = np.outer(x, Z1[k]).ravel()
        total = phi @ S @ phi + tau[k] @ x**2 + 0.5
        away = (reward[t - 1] - phi @ mean - x @ own[k]) / total
        mean, own[k] = mean + away * S @ phi, own[k] + away * tau[k] * x
        S, tau[k] = S - np.outer(S @ phi, S @ phi) / total, tau[k] - (tau[k] * x) ** 2 / total
        S = S if full else np.diag(np.diag(S))
    np.testing.assert_allclose(policy.coef_.ravel(), mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(policy.own_coef_, own, rtol=1e-6, atol=1e-9)
    phi = np.einsum("ni,aj->naij", X1, Z1).reshape(n, n_arms, -1)
    theta, variance = phi @ mean + X1 @ own.T, (phi @ S * phi).sum(axis=2) + X1**2 @ tau.T
    np.testing.assert_allclose(policy.decision_function(X), theta, rtol=1e-6, atol=1e-9)
    upper = theta + 0.2 * np.sqrt(variance)
    np.testing.assert_allclose(policy.select_scores(X), upper, rtol=1e-6, atol=1e-9)


def test_the_estimate_of_noise_is_unbiased():
    """Prequential residuals of the model itself: within 5 standard errors (false alarms 1e-6)."""
    rng, sigma, n = np.random.default_rng(6), 3.0, 4000
    noise = np.zeros(2)
    assert bilinear.noise_scale(noise) == 1.0
    for v in rng.uniform(0, 5, n):
        r = 7 + rng.normal() * sigma * np.sqrt(v + 1)
        bilinear.add_residual(7.0, v, r, 1.0, noise)
    error = sigma**2 * np.sqrt(2 / n)
    assert abs(bilinear.noise_scale(noise) ** 2 - sigma**2) < 5 * error
