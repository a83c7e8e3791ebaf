"""Running units of linear rewards: their unit and origin decide nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from skbandit import GLMUCBPolicy
from skbandit.bandit import OraclePolicy, SharedGLMPolicy, SlatePolicy
from skbandit.bandit._state import MEAN, SQUARES
from skbandit.evaluation import replay
from tests.tiers import first

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


SETTINGS = [
    {}, {"prior_mean": "adaptive"}, {"prior_variance": "adaptive"}, {"covariance": "full"},
    {"forgetting": 0.98}, {"standardize": "scale"}, {"alpha": 1.0, "prior_scale": 2.0},
]  # fmt: skip


RULES = ["ucb", "thompson", "squarecb", "epsilon_greedy", "greedy"]


@pytest.mark.parametrize(
    ("exploration", "settings"),
    first(6, [(rule, settings) for settings in SETTINGS for rule in RULES]),
    ids=str,
)
def test_unit_and_origin_of_rewards_decide_no_choice(exploration, settings):
    def policy():
        return GLMUCBPolicy("linear", exploration=exploration, random_state=0, **settings)

    for batch, units in ((1, UNITS[:2]), (17, UNITS)):
        chosen, predicted, coef, covariance = live(policy(), 1.0, 0.0, batch)
        for a, b in units:
            now, reward, weights, variance = live(policy(), a, b, batch)
            assert now == chosen
            np.testing.assert_allclose((reward - b) / a, predicted, atol=1e-7)
            np.testing.assert_allclose(weights / a, coef, atol=1e-7)
            np.testing.assert_allclose(variance / a**2, covariance, rtol=1e-6)


@pytest.mark.parametrize(
    ("exploration", "sparse"),
    first(3, [
        ("ucb", False), ("thompson", False), ("ucb", True), ("thompson", True), ("squarecb", False),
        ("squarecb", True),
    ]),
)  # fmt: skip
def test_nor_in_a_replay(exploration, sparse):
    X, arm, r = log(n=300)
    settings = {"standardize": "scale"} if sparse else {}
    policy = GLMUCBPolicy("linear", exploration=exploration, random_state=0, **settings)
    X = csr_array(np.where(X > 0.5, X, 0)) if sparse else X
    compiled = replay(policy, X, {"action": arm, "reward": r})

    class InPython(GLMUCBPolicy):
        """Replayed event by event."""

        def select(self, X, *, available=None):
            return super().select(X, available=available)

    plain = InPython(**policy.get_params())
    for a, b in UNITS:
        y = {"action": arm, "reward": a * r + b}
        for result in (replay(policy, X, y), replay(plain, X, y)):
            assert result.history["event"].tolist() == compiled.history["event"].tolist()
            assert (result.mean_reward - b) / a == pytest.approx(compiled.mean_reward)


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


def test_workers_merge_into_the_unit_of_all():
    X, arm, r = log(n=2000)
    settings = {"link": "linear", "covariance": "full", "prior_scale": 3.0, "random_state": 0}
    base = GLMUCBPolicy(**settings).fit(X[:256], {"action": arm[:256], "reward": r[:256]})
    workers = [pickle.loads(pickle.dumps(base)) for _ in range(2)]
    for worker, rows in zip(workers, (slice(256, 1000), slice(1000, 2000)), strict=True):
        worker.partial_fit(X[rows], {"action": arm[rows], "reward": r[rows]})
    merged = base.merge(workers, base=base)
    whole = GLMUCBPolicy(**settings).fit(X, {"action": arm, "reward": r})
    np.testing.assert_allclose(merged.predict_reward(X), whole.predict_reward(X), atol=0.01)


def test_the_best_of_five_arms_with_stars_is_found():
    for exploration in ("ucb", "thompson", "squarecb", "epsilon_greedy"):
        total = 0.0
        for seed in range(2):
            rng = np.random.default_rng(seed)
            policy = GLMUCBPolicy(
                "linear", exploration=exploration, arms=range(5), random_state=seed
            )
            for _ in range(100):
                A = policy.select(np.zeros((10, 1)))
                y = pd.DataFrame({"action": A, "reward": STARS[A] + rng.normal(size=10)})
                policy.partial_fit(np.zeros((10, 1)), y)
                total += STARS[A].mean() / 200
        assert total > 3.85, exploration  # a uniform choice earns 3.6


def test_a_slate_of_one_reward_has_no_running_unit():
    """The reward is that of a sum over arms."""
    rng = np.random.default_rng(0)
    slates = [tuple(rng.permutation(4)[:2].tolist()) for _ in range(300)]
    reward = np.array([sum(slate) for slate in slates], dtype=float)
    policy = SlatePolicy(n_select=2, feedback="slate", random_state=0)
    policy.fit(np.zeros((300, 1)), slates, reward)
    assert sorted(policy.predict(np.zeros((1, 1)))[0].tolist()) == [2, 3]
    assert len(policy.policy_._posterior.reward) == 0
