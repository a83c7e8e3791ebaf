"""Running units: standardized contexts, rewards without a unit, and arms of the shared model."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skbandit.bandit import GLMUCBPolicy, OraclePolicy, SharedGLMPolicy
from skbandit.bandit._state import MEAN, SQUARES, _in_units, no_posterior
from skbandit.bandit.shared._state import in_new_units
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.tiers import first

# === Running standardization: units by learned contexts, and a posterior that follows them ======

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
    """In a shared model of three features, of √3 standard deviations each."""
    posterior, X = fitted(n)._posterior, events(n)[0][:last]
    units = SharedGLMPolicy().fit(*events(n)[:2], reward=events(n)[2])._posterior.units
    for center, rate in ((posterior.center, posterior.rate), (units.center, units.rate * 3**0.5)):
        np.testing.assert_allclose(center, X.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(rate, 1 / X.std(axis=0), rtol=1e-9)


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


RENEWED = {
    "diagonal": GLMUCBPolicy(prior_scale=1, forgetting=1),
    "full": GLMUCBPolicy(forgetting=1, covariance="full"),
    "no constant": GLMUCBPolicy(forgetting=1, covariance="full", fit_intercept=False),
    "shared": SharedGLMPolicy(forgetting=1, own_variance=0.0),
    "shared diagonal": SharedGLMPolicy(forgetting=1, covariance="diagonal"),
}


@pytest.mark.parametrize("name", first(2, RENEWED))
def test_a_renewal_of_units_keeps_the_function(name):
    """The 64th event, of next to no weight, renews them: means, and variances of a full Σ, stay."""
    X, arm, reward = events(64)
    X[32:] = 2 * X[32:] + [0.0, 7.0, -1e4]  # about the same means
    policy = clone(RENEWED[name]).fit(X[:63], arm[:63], reward=reward[:63])
    old, scores = policy._posterior, (policy.decision_function(X), policy.select_scores(X))
    policy.partial_fit(X[63:], arm[63:], reward=reward[63:], sample_weight=[1e-13])
    new = policy._posterior
    np.testing.assert_allclose(policy.decision_function(X), scores[0], rtol=1e-7, atol=1e-9)
    if policy.covariance == "full":
        np.testing.assert_allclose(policy.select_scores(X), scores[1], rtol=1e-7, atol=1e-9)
    if name == "diagonal":  # what the data told of each slope, with the prior in today's units
        f = np.r_[old.rate / new.rate, 1.0]
        assert (f[:3] > 1.2).all()
        prior = np.r_[3.0, 3.0, 3.0, 1.0]
        told = (1 / old.cov_factor[0] - prior) / f**2
        np.testing.assert_allclose(new.cov_factor[0], 1 / (prior + told), rtol=1e-7)


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


@pytest.mark.filterwarnings("ignore:rewards have changed")
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


# === Running units of linear rewards: their unit and origin decide nothing ======================

STARS = np.array([3.0, 3.3, 3.6, 3.9, 4.2])
UNITS = [(60.0, 0.0), (0.37, -1.7), (1.0, -3.6), (1e-6, 5.0)]
N = 120


def log(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    arm = rng.integers(5, size=n)
    return X, arm, np.rint(STARS[arm] + X[:, 0] * (arm - 2) / 2 + rng.normal(size=n)).clip(1, 5)


def live(policy, a, b, batch, n=N):
    """Choices of a policy that learns the stars a r + b, loses an arm, and meets a new one."""
    rng = np.random.default_rng(1)
    X, noise, chosen = rng.normal(size=(n, 2)), rng.normal(size=(n, 5)), []
    for i in range(0, n, batch):
        rows = slice(i, min(i + batch, n))
        arms = [k for k in range(5) if k != (4 if i < n // 2 else 0)]
        A = np.asarray(policy.select(X[rows], available=arms), dtype=int)
        r = np.rint(STARS[A] + X[rows, 0] * (A - 2) / 2 + noise[rows][np.arange(len(A)), A])
        chosen += [*A.tolist(), *policy.predict(X[rows], available=arms).tolist()]
        weight = 1.0 + (A == 1)
        y = {"action": A, "reward": a * r + b}
        policy.partial_fit(X[rows], y, sample_weight=weight)
        if i < n // 2 <= i + batch and 0 in policy.arms_:
            policy = pickle.loads(pickle.dumps(policy)).drop_arms([0])
    return chosen, policy.predict_reward(X[:9]), policy.coef_, policy.covariance_


SETTINGS_REWARD = [
    {}, {"prior_mean": "adaptive"}, {"prior_variance": "adaptive"}, {"covariance": "full"},
    {"forgetting": 0.98}, {"standardize": "scale"}, {"alpha": 1.0, "prior_scale": 2.0},
]  # fmt: skip


RULES = ["ucb", "thompson", "squarecb", "epsilon_greedy", "greedy"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("exploration", "settings"),
    first(3, [(rule, {}) for rule in RULES] + [*zip(2 * RULES, SETTINGS_REWARD, strict=False)][1:]),
    ids=str,
)
def test_unit_and_origin_of_rewards_decide_no_choice(exploration, settings):
    def policy():
        return GLMUCBPolicy("linear", exploration=exploration, random_state=0, **settings)

    for batch, units in ((1, UNITS[:1]), (17, UNITS)):
        chosen, predicted, coef, covariance = live(policy(), 1.0, 0.0, batch)
        for a, b in units:
            now, reward, weights, variance = live(policy(), a, b, batch)
            assert now == chosen
            np.testing.assert_allclose((reward - b) / a, predicted, atol=1e-7)
            np.testing.assert_allclose(weights / a, coef, atol=1e-7)
            np.testing.assert_allclose(variance / a**2, covariance, rtol=1e-6)


@pytest.mark.parametrize(
    "policy",
    [SharedGLMPolicy(link="linear", random_state=0), OraclePolicy(Ridge(), random_state=0)],
    ids=["shared", "oracle"],
)
def test_nor_in_shared_and_oracle_policies(policy):
    X, arm, r = log(n=300)
    once = None
    for a, b in [(1.0, 0.0), *UNITS[:3]]:
        policy.fit(X[:60], {"action": arm[:60], "reward": a * r[:60] + b})
        policy.partial_fit(X[60:], {"action": arm[60:], "reward": a * r[60:] + b})
        found = policy.select_proba(X), policy.predict(X), (policy.predict_reward(X) - b) / a
        once = found if once is None else once
        for one, other in zip(once, found, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_full_posterior_is_bayes_by_rewards_in_the_last_unit():
    """However often the unit was renewed; the contexts' is fixed here by two values."""
    X = np.tile([[-1.0], [1.0]], (32, 1))
    r = np.random.default_rng(0).normal(size=64) * 40 + 300 + 25 * X[:, 0]
    r[:8] += np.arange(8) ** 4
    policy = GLMUCBPolicy("linear", covariance="full", prior_scale=2.0, random_state=0)
    policy.fit(X, {"action": np.zeros(64), "reward": r})
    known, units = policy._posterior, policy._posterior.reward
    assert units[MEAN] == pytest.approx(r.mean())
    assert units[SQUARES] == pytest.approx(64 * r.var())
    # features count from the 8th event on, when their unit is known
    x = np.column_stack([np.where(np.arange(64) < 8, 0, X[:, 0]), np.ones(64)])
    precision = np.diag(1 / np.array([2.0, np.sqrt(2.0)])) + x.T @ x
    mean = np.linalg.solve(precision, x.T @ ((r - r.mean()) / r.std()))
    np.testing.assert_allclose(known.mean[0, 0], mean, atol=1e-9)
    intercept = r.mean() + r.std() * mean[1]
    assert policy.predict_reward([[1.0]])[0, 0] == pytest.approx(intercept + r.std() * mean[0])
    assert policy.intercept_[0] == pytest.approx(intercept)
    variance = np.linalg.inv(precision) * r.var()
    np.testing.assert_allclose(policy.covariance_[0], variance, atol=1e-6)


def test_equal_rewards_are_the_prediction_and_the_unit_comes_with_the_first_other():
    policy = GLMUCBPolicy("linear", arms=["a", "b"], random_state=0)
    for _ in range(20):
        policy.partial_fit([[1.0]], {"action": ["a"], "reward": [7.0]})
    assert policy.predict_reward([[1.0]]).tolist() == [[7.0, 7.0]]
    policy.partial_fit([[1.0]] * 400, {"action": ["b"] * 400, "reward": [9.0] * 400})
    assert policy.predict_reward([[1.0]])[0] == pytest.approx([7.0, 9.0], abs=0.2)
    assert policy.predict([[1.0]]) == ["b"]


def test_without_an_intercept_only_the_scale_decides_nothing():
    X, arm, r = log()
    policy = GLMUCBPolicy("linear", fit_intercept=False, exploration="squarecb", random_state=0)
    found = [policy.fit(X, {"action": arm, "reward": a * r}).select_proba(X) for a in (1.0, 60.0)]
    np.testing.assert_allclose(*found, atol=1e-9)
    np.testing.assert_allclose(
        policy.predict_reward(X), 60 * policy.fit(X, {"action": arm, "reward": r}).predict_reward(X)
    )


@pytest.mark.parametrize(
    ("name", "number", "otherwise"),
    [
        ("noise_variance", 1.0, "auto"),
        ("prior_mean", 0.0, "auto"),
        ("prior_variance", 1.0, "adaptive"),
    ],
)
def test_a_number_of_the_prior_or_noise_is_in_the_unit_of_the_reward(name, number, otherwise):
    """Rewards are then taken as they are."""
    X, arm, r = log()
    policy = GLMUCBPolicy("linear", random_state=0, **{name: number})
    policy.fit(X, {"action": arm, "reward": r})
    assert len(policy._posterior.reward) == 0
    with pytest.raises(ValueError, match="cannot change after learning"):
        policy.set_params(**{name: otherwise}).partial_fit(X[:1], arm[:1], reward=[1])


DX, DZ = 3, 4


def test_a_diagonal_posterior_keeps_its_function_and_the_prior_where_nothing_was_learned():
    rng = np.random.default_rng(1)
    mean, prior = rng.normal(size=(DX, DZ)), rng.uniform(1, 3, size=(DX, DZ))
    factor, shift = rng.uniform(0.5, 9, size=DZ - 1), rng.normal(size=DZ - 1)
    new, variance = in_new_units(factor, shift, mean, prior.copy(), prior)
    new_z = np.append(rng.normal(size=DZ - 1), 1.0)
    np.testing.assert_allclose(new @ new_z, mean @ np.append(factor * new_z[:-1] + shift, 1.0))
    np.testing.assert_allclose(variance, prior)


# === A feature that begins to vary late has a unit of its own events ============================


def launched(n_before, n, seed=0):
    """Events of a flag that is 0 at first, and then decides which of two arms is better."""
    rng = np.random.default_rng(seed)
    flag = np.r_[np.zeros(n_before), rng.integers(2, size=n)]
    arm, best = rng.integers(2, size=n_before + n), np.where(flag == 1, 0, 1)
    reward = (rng.random(len(flag)) < np.where(arm == best, 0.8, 0.2)).astype(float)
    return np.column_stack([rng.normal(size=len(flag)), flag]), arm, reward, best


LATE = {
    "glm": GLMUCBPolicy(),
    "scale": GLMUCBPolicy(standardize="scale"),
    "linear": GLMUCBPolicy("linear"),
    "probit": GLMUCBPolicy("probit", covariance="full"),
    "shared": SharedGLMPolicy(),
    "shared diagonal": SharedGLMPolicy(link="linear", covariance="diagonal"),
}


@pytest.mark.parametrize("name", first(3, LATE))
@pytest.mark.parametrize("unit", [1.0, 1e-5])
def test_partial_fit_heeds_a_column_that_varies_late(name, unit):
    X, arm, reward, best = launched(1100, 140)
    X[:, 1] *= unit
    policy = clone(LATE[name]).fit(X[:1200], arm[:1200], reward=reward[:1200])
    policy = pickle.loads(pickle.dumps(policy))
    assert np.mean(policy.predict(X[1200:]) == best[1200:]) > 0.9


def test_describe_arms_heeds_a_feature_of_arms_that_varies_late():
    plain = pd.DataFrame({"size": np.arange(40.0) % 7, "new": 0.0})
    policy = SharedGLMPolicy(plain).fit(np.ones((80, 1)), np.arange(80) % 40, reward=[0, 1] * 40)
    late = pd.DataFrame({"size": 1.0, "new": [0.0, 1.0] * 3}, index=range(50, 56))
    rewards = np.tile([0.0, 1.0], 90)
    policy.describe_arms(late)
    policy.partial_fit(np.ones((180, 1)), np.tile(np.arange(50, 56), 30), reward=rewards)
    newer = pd.DataFrame({"size": 1.0, "new": [0.0, 1.0]}, index=["old kind", "new kind"])
    assert policy.describe_arms(newer).predict([[1.0]], available=newer.index)[0] == "new kind"


def test_variances_of_weights_by_hand():
    """x' = 2 (x - 3) has a weight of variance 5: x has one of 20, the constant 9 times 20 more."""
    posterior = no_posterior(2, full=False)._replace(rate=np.array([2.0]), center=np.array([3.0]))
    assert _in_units(posterior, np.array([[5.0, 7.0]]), 2).tolist() == [[20.0, 187.0]]
    uncentered = posterior._replace(center=np.empty(0))
    assert _in_units(uncentered, np.array([[5.0, 7.0]]), 2).tolist() == [[20.0, 7.0]]
