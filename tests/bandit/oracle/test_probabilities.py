"""Choice probabilities of the reductions to a reward model."""

import numpy as np
import pytest

from skbandit.bandit.oracle import _probabilities as rules


@pytest.fixture
def rows():
    """Rewards with ties, and masks with at least one arm."""
    rng = np.random.default_rng(0)
    rewards = rng.integers(0, 4, size=(200, 5)) / 4
    available = rng.random((200, 5)) < 0.6
    available[np.arange(200), rng.integers(5, size=200)] = True
    return rewards, available


def inverse_gap_of_row(rewards, available, gamma):
    """Algorithm 1 of Foster & Rakhlin, arm by arm; the best share the rest."""
    arms = np.flatnonzero(available)
    top = max(rewards[k] for k in arms)
    p = np.zeros(len(rewards))
    for k in arms:
        if rewards[k] < top:
            p[k] = 1 / (len(arms) + gamma * (top - rewards[k]))
    best = [k for k in arms if rewards[k] == top]
    p[best] = (1 - p.sum()) / len(best)
    return p


@pytest.mark.parametrize("gamma", [0.0, 1.0, 50.0, np.inf])
def test_inverse_gap_weighting_is_the_algorithm(gamma, rows):
    rewards, available = rows
    p = rules.inverse_gap(rewards, available, np.full(200, gamma))
    expected = [inverse_gap_of_row(r, a, gamma) for r, a in zip(rewards, available, strict=True)]
    np.testing.assert_allclose(p, expected, atol=1e-15)


def test_inverse_gap_weighting_costs_at_most_k_over_gamma(rows):
    """The expected gap of the choice is below (K - 1)/γ."""
    rewards, available = rows
    gamma = 20.0
    p = rules.inverse_gap(rewards, available, np.full(200, gamma))
    top = np.where(available, rewards, -np.inf).max(axis=1, keepdims=True)
    cost = (p * np.where(available, top - rewards, 0)).sum(axis=1)
    assert (cost <= (available.sum(axis=1) - 1) / gamma + 1e-12).all()


def test_probabilities_are_of_available_arms(rows):
    rewards, available = rows
    several = np.stack([rewards, 1 - rewards, rewards])
    for p in (
        rules.greedy(rewards, available),
        rules.epsilon_greedy(rewards, available, 0.3),
        rules.bootstrap(several, available),
        rules.inverse_gap(rewards, available, np.full(200, 7.0)),
    ):
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (p >= 0).all()
        assert (p[~available] == 0).all()


def test_the_bootstrap_plays_the_winner_of_each_replicate():
    rewards = np.array([[[1.0, 2.0, 3.0]], [[3.0, 2.0, 3.0]], [[0.0, 5.0, 9.0]]])
    mask = np.array([[True, True, False]])
    np.testing.assert_allclose(rules.bootstrap(rewards, mask), [[1 / 3, 2 / 3, 0]])
    everything = np.ones((1, 3), dtype=bool)
    np.testing.assert_allclose(rules.bootstrap(rewards, everything), [[1 / 6, 0, 5 / 6]])


def test_draws_have_the_probabilities():
    """Inverse distribution function, exact on a grid; columns of probability 0 are never drawn."""
    p = np.tile([0.0, 0.25, 0.0, 0.75, 0.0], (1000, 1))
    u = np.arange(1000) / 1000
    drawn = rules.draw(p, u)
    np.testing.assert_array_equal(np.bincount(drawn, minlength=5), [0, 250, 0, 750, 0])
    assert rules.draw(p[:1] / 3, np.array([np.nextafter(1, 0)]))[0] == 3
