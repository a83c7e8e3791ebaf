"""Exploration: rules on arrays, Thompson sampling, SquareCB, and the probabilities of choices."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtr
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbandit.bandit import (
    GLMUCBPolicy,
    OffPolicyClassifier,
    OraclePolicy,
    SharedGLMPolicy,
    SlatePolicy,
    make_policy_pipeline,
    select,
)
from skbandit.bandit.exploration._epsilon_greedy import epsilon_inclusion
from skbandit.bandit.exploration._sets import arm_probabilities, best_inclusion, draw_arms
from skbandit.bandit.exploration._squarecb import (
    inverse_gap,
    inverse_gap_inclusion,
    systematic_sample,
)
from skbandit.bandit.exploration._thompson import draw_probabilities as probabilities
from skbandit.bandit.exploration._thompson import largest_draws_inclusion
from skbandit.evaluation import slate_ips
from tests.tiers import first

# === Exploration rules on arrays, against brute force, simulation and their theorems ============


def test_ties_share_their_places():
    scores = np.array([[3.0, 1.0, 1.0, 1.0, -np.inf]])
    np.testing.assert_allclose(best_inclusion(scores, 2), [[1, 1 / 3, 1 / 3, 1 / 3, 0]])
    np.testing.assert_allclose(
        epsilon_inclusion(scores, 2, 0.1), [[0.95, 0.35, 0.35, 0.35, 0]], atol=1e-12
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
@pytest.mark.parametrize("m", [1, 2, 5])
def test_inclusion_of_the_largest_draws(seed, m):
    """Against 400,000 draws, within 5 standard errors and the stated .002."""
    rng = np.random.default_rng(seed)
    mean, deviation = rng.normal(size=8), rng.choice([0.0, 0.01, 0.3, 1.0, 3.0], size=8)
    found = largest_draws_inclusion((mean[None], deviation[None]), m)[0]
    draws = mean + deviation * rng.normal(size=(400_000, 8))
    counted = np.zeros(8)
    np.add.at(counted, np.argpartition(-draws, m - 1, axis=1)[:, :m].ravel(), 1)
    share = counted / len(draws)
    np.testing.assert_allclose(found, share, atol=0.002 + 5 * 0.5 / np.sqrt(len(draws)))
    assert found.sum() == pytest.approx(m)


def test_unavailable_arms_are_never_included():
    mean = np.array([[0.0, -np.inf, 1.0, 0.5]])
    found = largest_draws_inclusion((mean, np.ones((1, 4))), 2)
    assert found[0, 1] == 0
    only = largest_draws_inclusion((mean[:, [0, 2, 3]], np.ones((1, 3))), 2)
    np.testing.assert_allclose(found[0, [0, 2, 3]], only[0])
    assert largest_draws_inclusion((mean, np.ones((1, 4))), 3).tolist() == [[1, 0, 1, 1]]


@pytest.mark.parametrize("gamma", [0.0, 1e-6, 3.0, 1e4, np.inf])
def test_inverse_gaps_are_inverse_gaps(gamma):
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 9))
    p = inverse_gap_inclusion(y, 3, np.full(50, gamma))
    np.testing.assert_allclose(p.sum(axis=1), 3, atol=1e-9)
    assert (p <= 1).all()
    if gamma == 0:
        np.testing.assert_allclose(p, 1 / 3)
    elif np.isinf(gamma):
        np.testing.assert_allclose(p, best_inclusion(y, 3), atol=1e-9)
    else:  # 1/π + γ y is the same for all arms below 1, and not larger for others
        level = 1 / p + gamma * y
        for row in range(50):
            inner = p[row] < 1 - 1e-9
            np.testing.assert_allclose(level[row, inner], level[row, inner][0], rtol=1e-7)
            assert (level[row, ~inner] >= level[row, inner][0] - 1e-6 * gamma).all()


def test_systematic_samples_have_the_given_inclusion():
    """Each of ten frequencies within 4.9 standard errors: a false alarm in 100,000 runs."""
    rng = np.random.default_rng(0)
    p = inverse_gap_inclusion(rng.normal(size=(1, 10)), 4, np.array([2.0]))
    n = 40_000
    drawn = systematic_sample(np.repeat(p, n, axis=0), 4, rng.random((n, 11)))
    assert drawn.shape == (n, 4)
    assert all(len(set(row)) == 4 for row in drawn[:2000].tolist())
    share = np.bincount(drawn.ravel(), minlength=10) / n
    assert (abs(share - p[0]) <= 4.9 * np.sqrt(p[0] * (1 - p[0]) / n) + 1e-12).all()


@pytest.fixture
def rewards():
    """Rewards with ties, and at least one available arm per row."""
    rng = np.random.default_rng(0)
    available = rng.random((200, 5)) < 0.6
    available[np.arange(200), rng.integers(5, size=200)] = True
    return np.where(available, rng.integers(0, 4, size=(200, 5)) / 4, -np.inf)


def inverse_gap_of_row(rewards, gamma):
    """Algorithm 1 of Foster & Rakhlin, arm by arm; the best share the rest."""
    arms = np.flatnonzero(rewards > -np.inf)
    top = rewards.max()
    p = np.zeros(len(rewards))
    for k in arms:
        if rewards[k] < top:
            p[k] = 1 / (len(arms) + gamma * (top - rewards[k]))
    best = [k for k in arms if rewards[k] == top]
    p[best] = (1 - p.sum()) / len(best)
    return p


@pytest.mark.parametrize("gamma", [0.0, 1.0, 50.0, np.inf])
def test_inverse_gap_weighting_is_the_algorithm(gamma, rewards):
    p = inverse_gap(rewards, np.full(200, gamma))
    np.testing.assert_allclose(p, [inverse_gap_of_row(r, gamma) for r in rewards], atol=1e-15)
    if 0 < gamma < np.inf:  # the expected gap of the choice is below (K - 1)/γ
        there = rewards > -np.inf
        gap = np.where(there, rewards.max(axis=1, keepdims=True) - rewards, 0)
        assert ((p * gap).sum(axis=1) <= (there.sum(axis=1) - 1) / gamma + 1e-12).all()


def test_the_bootstrap_plays_the_winner_of_each_replicate():
    rewards = np.array([[[1.0, 2.0, 3.0]], [[3.0, 2.0, 3.0]], [[0.0, 5.0, 9.0]]])
    masked = np.where([True, True, False], rewards, -np.inf)
    for replicates, expected in [(masked, [1 / 3, 2 / 3, 0]), (rewards, [1 / 6, 0, 5 / 6])]:
        models = SimpleNamespace(replicates=lambda found=replicates: found)
        np.testing.assert_allclose(arm_probabilities("bootstrap", models), [expected])


def test_draws_have_the_probabilities():
    """Inverse distribution function, exact on a grid; columns of probability 0 are never drawn."""
    p = np.tile([0.0, 0.25, 0.0, 0.75, 0.0], (1000, 1))
    u = np.arange(1000) / 1000
    drawn = draw_arms(p, u)
    np.testing.assert_array_equal(np.bincount(drawn, minlength=5), [0, 250, 0, 750, 0])
    assert draw_arms(p[:1] / 3, np.array([np.nextafter(1, 0)]))[0] == 3


# === Probabilities of Thompson sampling against quadrature, and draws of any width ==============


def computed(m, s, alpha=1.0):
    m, s = np.asarray(m, dtype=float), np.asarray(s, dtype=float)
    out = np.zeros(len(m))
    probabilities(np.arange(len(m)), m, s**2, alpha, np.empty((3, len(m))), out)
    return out


def integrated(m, s):
    """∫ F d log Φ_k by the trapezoidal rule on the nodes of all arms together."""
    t = np.unique(m[:, None] + s[:, None] * np.linspace(-9, 9, 4001))
    t = t[(t >= (m - 9 * s).max()) & (t <= (m + 9 * s).max())]
    log_phi = log_ndtr((t[:, None] - m) / s)
    f = np.exp(log_phi.sum(axis=1))
    p = ((f[1:] + f[:-1]) / 2) @ np.diff(log_phi, axis=0)
    return p / p.sum()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", first(4, range(30)))
def test_the_error_is_below_two_thousandths(seed):
    """Few and many arms, of equal and of very different widths, near and apart."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.choice([2, 3, 5, 20, 50]))
    m = rng.normal(size=n_arms) * rng.choice([0.01, 0.3, 1, 3]) + rng.choice([0, 1e4])
    s = np.exp(rng.normal(size=n_arms) * rng.choice([0, 0.5, 2, 4])) * rng.choice([0.03, 0.3, 1])
    got = computed(m, s)
    assert got.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(got, integrated(m, s), atol=0.002)


def test_two_arms_are_known_in_closed_form():
    for gap in (0.0, 0.5, 2.0, 7.0):
        expected = ndtr(gap / np.hypot(0.6, 1.3))
        np.testing.assert_allclose(
            computed([gap, 0.0], [0.6, 1.3]), [expected, 1 - expected], atol=0.001
        )


def test_arms_that_are_known_exactly():
    np.testing.assert_array_equal(computed([1.0, 2.0, 2.0], [0.0, 0.0, 0.0]), [0, 0.5, 0.5])
    np.testing.assert_array_equal(computed([1.0, 2.0, 0.0], [5.0, 1.0, 9.0], alpha=0.0), [0, 1, 0])
    # two known arms and one that is above them when its draw is above one deviation
    above = 1 - ndtr(1.0)
    expected = [(1 - above) / 2, above, (1 - above) / 2]
    np.testing.assert_allclose(computed([0.0, -0.1, 0.0], [0.0, 0.1, 0.0]), expected, atol=0.001)
    # what is known to be worse is never chosen
    assert computed([0.0, -0.7], [0.1, 0.1])[1] < 1e-6


def test_no_probability_exceeds_1():
    """As sums of cells, 1 to 4 of 10,000 rows had 1.0000000000000002."""
    rng = np.random.default_rng(0)
    for n_arms in (1, 2, 3):
        for _ in range(5000):
            p = computed(rng.normal(size=n_arms) * [3.0, 1.0, 1.0][:n_arms], rng.random(n_arms))
            assert p.max() <= 1.0
            assert n_arms > 1 or p[0] == 1.0


def test_alpha_is_the_width_of_draws():
    """Scores are m + α √v z with the z of α = 1."""
    rng = np.random.default_rng(0)
    X, action = rng.normal(size=(400, 3)), rng.integers(4, size=400)
    policy = GLMUCBPolicy(exploration="thompson", random_state=0)
    policy.fit(X, action, reward=(rng.random(400) < 0.3).astype(float))
    mean = policy.decision_function(X)
    whole = policy.set_params(alpha=1.0).select_scores(X) - mean
    narrow = policy.set_params(alpha=0.2).select_scores(X) - mean
    np.testing.assert_allclose(narrow, 0.2 * whole, atol=1e-12)
    assert whole.std() > 0.1


# === SquareCB: probabilities as published, choices as probabilities, and regret that levels off =


def fitted(link="logistic", alpha=1.0, n=400, **settings):
    rng = np.random.default_rng(0)
    X, action = rng.normal(size=(n, 3)), np.arange(n) % 5
    reward = rng.random(n) < 0.2 + 0.1 * action
    policy = GLMUCBPolicy(link, alpha, exploration="squarecb", random_state=0, **settings)
    return policy.fit(X, action, reward=reward.astype(float)), rng.normal(size=(40, 3))


@pytest.mark.parametrize("settings", first(6, [
    {"link": "linear", "noise_variance": 1.0}, {"link": "probit"}, {"mean": "M1"}, {"mean": "M3"},
    {"alpha": 0.03}, {"alpha": np.log1p}, {"covariance": "full"},
]), ids=str)  # fmt: skip
def test_probabilities_are_the_published_ones(settings):
    policy, X = fitted(**settings)
    alpha = policy.alpha(400) if callable(policy.alpha) else policy.alpha
    got = policy.select_proba(X)
    for p, y in zip(got, policy.predict_reward(X), strict=True):
        expected = inverse_gap_of_row(y, np.sqrt(5 * 400) / alpha**2)
        np.testing.assert_allclose(p, expected, atol=1e-12)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)


def test_k_counts_the_available_arms():
    policy, X = fitted()
    got = policy.select_proba(X, available=[(4, 0, 2)] * len(X))
    assert (got[:, [1, 3]] == 0.0).all()
    for p, y in zip(got[:, [0, 2, 4]], policy.predict_reward(X)[:, [0, 2, 4]], strict=True):
        np.testing.assert_allclose(p, inverse_gap_of_row(y, np.sqrt(3 * 400)), atol=1e-12)


def test_between_uniform_and_greedy():
    policy, X = fitted()
    choices = policy.predict(X)
    assert (policy.set_params(alpha=0.0).select(X) == choices).all()
    np.testing.assert_array_equal(policy.select_proba(X).argmax(axis=1), choices)
    np.testing.assert_array_equal(policy.select_proba(X).max(axis=1), 1.0)
    policy.set_params(alpha=1e-6)
    np.testing.assert_allclose(policy.select_proba(X).max(axis=1), 1.0, atol=1e-9)
    policy.set_params(alpha=1e6)
    np.testing.assert_allclose(policy.select_proba(X), 0.2, atol=1e-9)


def test_the_first_choice_is_uniform():
    """Without events γ is 0, however unlike the arms' priors are."""
    policy = GLMUCBPolicy(exploration="squarecb", arms=range(4), random_state=0)
    np.testing.assert_allclose(policy.select_proba([[1.0, 2.0]]), 0.25)


def test_ties_share_the_rest():
    """Two arms without events are equal, and above those that earned nothing."""
    X = np.ones((50, 1))
    policy = GLMUCBPolicy(alpha=1.0, exploration="squarecb", arms=["a", "b", "c"], random_state=0)
    policy.fit(X, ["a"] * 50, reward=np.zeros(50))
    y = policy.predict_reward(X[:1])[0]
    p = policy.select_proba(X[:1])[0]
    assert p[0] == pytest.approx(1 / (3 + np.sqrt(3 * 50) * (y[1] - y[0])))
    np.testing.assert_allclose(p[1:], (1 - p[0]) / 2)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_rewards_that_overflow_are_greedy(alpha):
    """M3 is exp of the index, which may be infinite for several arms at once."""
    policy = GLMUCBPolicy(
        alpha=alpha, exploration="squarecb", mean="M3", prior_variance=1e5, random_state=0
    )
    X = np.eye(3)
    policy.fit(X, [0, 1, 2], reward=[1.0, 1.0, 0.0])
    far = 100 * X
    p = policy.select_proba(far)
    assert (policy.decision_function(far) > 710).any()
    assert set(np.unique(p)) <= {0.0, 1 / 3, 0.5, 1.0}
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p[np.arange(3), policy.select(far)] > 0).all()


# === `select(return_proba=True)`: the same choices, and their probabilities =====================

RULES = ("ucb", "greedy", "epsilon_greedy", "squarecb", "thompson")
POLICIES = {rule: GLMUCBPolicy(exploration=rule, alpha=1, random_state=0) for rule in RULES}
POLICIES["shared"] = SharedGLMPolicy(exploration="squarecb", alpha=1, random_state=0)
POLICIES["bootstrap"] = OraclePolicy(Ridge(), exploration="bootstrap", random_state=0)
POLICIES["pipeline"] = make_policy_pipeline(StandardScaler(), POLICIES["squarecb"])
POLICIES["full"] = GLMUCBPolicy(exploration="thompson", covariance="full", random_state=0)
SLATES = {rule: SlatePolicy(POLICIES[rule], 2, random_state=0) for rule in RULES}


def made_log(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    action = np.array(["a", "b", "c", "d"], dtype=object)[rng.integers(4, size=n)]
    return X, pd.DataFrame({"action": action, "reward": rng.random(n) < 0.3})


@pytest.mark.parametrize("name", first(len(POLICIES) - 1, POLICIES))
@pytest.mark.parametrize("available", [None, [("a", "c", "d"), ("b", "d")] * 100])
def test_choices_are_those_of_select_and_probabilities_those_of_select_proba(name, available):
    X, y = made_log()
    policy = clone(POLICIES[name]).fit(X, y)
    other = pickle.loads(pickle.dumps(policy))
    arms, p = policy.select(X, available=available, return_proba=True)
    np.testing.assert_array_equal(arms, other.select(X, available=available))
    column = pd.Index(policy.arms_).get_indexer(arms)
    table = policy.select_proba(X, available=available)
    np.testing.assert_array_equal(p, table[np.arange(len(X)), column])
    # and the stream of random numbers goes on alike
    np.testing.assert_array_equal(policy.select(X), other.select(X))


def test_arms_unseen_and_sparse_contexts_have_probabilities_too():
    X, y = made_log()
    policy = GLMUCBPolicy(exploration="squarecb", standardize="scale", random_state=0).fit(X, y)
    new = [("new", "newer", "newest")] * len(X)
    arms, p = policy.select(X, available=new, return_proba=True)
    assert len(set(arms)) == 3
    np.testing.assert_allclose(p, 1 / 3)
    dense, sparse = pickle.loads(pickle.dumps(policy)), policy
    for mine, its in zip(
        dense.select(X, return_proba=True),
        sparse.select(csr_array(X), return_proba=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)


# z-tests of at most 24 frequencies: some one fails falsely in one of 10,000 runs with other seeds
LIMIT = stats.norm.isf(1e-4 / 48)


@pytest.mark.parametrize("name", ["epsilon_greedy", "squarecb", "thompson", "shared", "bootstrap"])
def test_frequencies(name):
    X, y = made_log()
    policy = clone(POLICIES[name]).fit(X, y)
    arms, p = policy.select(np.repeat(X[:1], 4000, axis=0), return_proba=True)
    for arm in np.unique(arms):
        (expected,) = np.unique(p[arms == arm])
        error = np.sqrt(expected * (1 - expected) / len(arms))
        assert abs((arms == arm).mean() - expected) < LIMIT * error + 0.002


@pytest.mark.parametrize("rule", RULES)
def test_slates_have_inclusion_probabilities(rule):
    X, y = made_log()
    slates = np.column_stack([y["action"], np.roll(y["action"], 1)])
    slates = [tuple(dict.fromkeys(row)) for row in slates]
    reward = [
        tuple(np.full(len(slate), float(r))) for slate, r in zip(slates, y.reward, strict=True)
    ]
    policy = clone(SLATES[rule]).fit(X, slates, reward)
    other = pickle.loads(pickle.dumps(policy))
    chosen, p = policy.select(X, return_proba=True)
    np.testing.assert_array_equal(chosen, other.select(X))
    column = pd.Index(policy.arms_).get_indexer(chosen.ravel()).reshape(chosen.shape)
    np.testing.assert_array_equal(p, np.take_along_axis(policy.select_proba(X), column, axis=1))
    log = pd.DataFrame(
        {
            "action": list(map(tuple, chosen)),
            "reward": [(1.0, 0.0)] * len(X),
            "propensity": list(map(tuple, p)),
        }
    )
    # the log is the policy's own, so all weights are 1
    assert slate_ips(policy, X, log).mean_reward == pytest.approx(1.0)


def test_behind_plain_pipelines_and_of_policies_that_do_not_explore():
    X, y = made_log()
    pipeline = make_pipeline(StandardScaler(), GLMUCBPolicy(exploration="squarecb", random_state=0))
    arms, p = select(pipeline.fit(X, y), X, return_proba=True)
    assert arms.shape == p.shape and (p < 1).any()
    classifier = OffPolicyClassifier(method="ips").fit(X, y)
    arms, p = classifier.select(X, return_proba=True)
    np.testing.assert_array_equal(arms, classifier.predict(X))
    np.testing.assert_array_equal(p, 1.0)
