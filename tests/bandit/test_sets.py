"""Exploration rules on arrays, against brute force, simulation and their theorems."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skbandit.bandit.exploration._greedy import best, best_inclusion, epsilon_inclusion
from skbandit.bandit.exploration._sets import arm_probabilities, draw_arms
from skbandit.bandit.exploration._squarecb import (
    inverse_gap,
    inverse_gap_inclusion,
    systematic_sample,
)
from skbandit.bandit.exploration._thompson import largest_draws_inclusion
from tests.tiers import first


def test_the_best_are_those_of_a_sort():
    rng = np.random.default_rng(0)
    scores = rng.integers(4, size=(200, 7)).astype(float)
    u = rng.random(scores.shape)
    chosen = best(scores, 3, u)
    for row, places in enumerate(chosen):
        key = sorted(range(7), key=lambda k: (-scores[row, k], -u[row, k]))
        assert places.tolist() == key[:3]
    assert (best(np.zeros((1, 5)), 2, None) == [[0, 1]]).all()


def test_ties_share_their_places():
    scores = np.array([[3.0, 1.0, 1.0, 1.0, -np.inf]])
    np.testing.assert_allclose(best_inclusion(scores, 2), [[1, 1 / 3, 1 / 3, 1 / 3, 0]])
    np.testing.assert_allclose(
        epsilon_inclusion(scores, 2, 0.1), [[0.95, 0.35, 0.35, 0.35, 0]], atol=1e-12
    )


@pytest.mark.parametrize("seed", first(1, range(5)))
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


def test_two_draws_have_a_closed_form():
    found = largest_draws_inclusion((np.array([[0.4, 0.0]]), np.array([[0.3, 1.1]])), 1)
    assert found[0, 0] == pytest.approx(stats.norm.cdf(0.4 / np.hypot(0.3, 1.1)), abs=5e-4)


def test_equal_arms_are_included_equally():
    found = largest_draws_inclusion((np.zeros((1, 200)), np.ones((1, 200))), 10)
    np.testing.assert_allclose(found, 0.05, rtol=1e-9)


def test_unavailable_arms_are_never_included():
    mean = np.array([[0.0, -np.inf, 1.0, 0.5]])
    found = largest_draws_inclusion((mean, np.ones((1, 4))), 2)
    assert found[0, 1] == 0
    only = largest_draws_inclusion((mean[:, [0, 2, 3]], np.ones((1, 3))), 2)
    np.testing.assert_allclose(found[0, [0, 2, 3]], only[0])
    assert largest_draws_inclusion((mean, np.ones((1, 4))), 3).tolist() == [[1, 0, 1, 1]]


def test_known_arms_are_certain():
    found = largest_draws_inclusion((np.array([[3.0, 1.0, 2.0]]), np.zeros((1, 3))), 2)
    assert found.tolist() == [[1, 0, 1]]


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


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_regret_of_inverse_gaps(seed):
    """The theorem of the file, for any predictions and any truth."""
    rng = np.random.default_rng(seed)
    for _ in range(300):
        n_arms = rng.integers(2, 9)
        m = rng.integers(1, n_arms + 1)
        y, f = rng.random(n_arms), rng.random(n_arms)
        gamma = 10 ** rng.uniform(-2, 4)
        p = inverse_gap_inclusion(y[None], m, np.array([gamma]))[0]
        largest = max(f[list(slate)].sum() for slate in combinations(range(n_arms), m))
        bound = (n_arms + m) / gamma + gamma / 2 * p @ (f - y) ** 2
        assert largest - p @ f <= bound + 1e-9


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


def test_certain_arms_are_drawn_exactly_once():
    p = np.array([[1.0, 1.0, 1.0, 0.0, 0.0]])
    u = np.random.default_rng(0).random((500, 6))
    drawn = systematic_sample(np.repeat(p, 500, axis=0), 3, u)
    assert (np.sort(drawn, axis=1) == [0, 1, 2]).all()


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


@pytest.mark.parametrize("rule", ["greedy", "epsilon_greedy", "bootstrap", "squarecb"])
def test_probabilities_are_of_available_arms(rule, rewards):
    p = arm_probabilities(rule, SimpleNamespace(
        available=rewards > -np.inf, n_events=20, alpha=0.7, epsilon=0.3,
        rewards=lambda: rewards, scores=lambda seed, t: rewards,
        replicates=lambda: [rewards, np.where(rewards > -np.inf, 1 - rewards, -np.inf), rewards],
    ))  # fmt: skip
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    assert (p[rewards == -np.inf] == 0).all()


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
