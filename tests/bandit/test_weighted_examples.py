"""Weighted examples: a calibrated classifier's most probable arm is the best one."""

import numpy as np
import pytest

from skbandit.bandit._off_policy_classifier import weighted_examples


def shares(examples, n_arms):
    """What a calibrated classifier would learn where all contexts are equal."""
    _, arm, weight = examples
    return np.bincount(arm, weight, minlength=n_arms)


def test_by_hand():
    rewards = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0], [-1.0, -4.0, 9.0]])
    allowed = np.array([[True, True, True], [True, True, True], [True, True, False]])
    row, arm, weight = weighted_examples(rewards, allowed, np.array([1.0, 1.0, 2.0]))
    # arm 2 is available in half of the weight
    assert row.tolist() == [0, 0, 2]
    assert arm.tolist() == [0, 2, 0]
    assert weight == pytest.approx(np.array([2.0, 2.0, 6.0]) * 4 / 10)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_arm_has_the_largest_share_whatever_the_unit(seed):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(200, 6)) + rng.normal(size=6)
    everywhere = np.ones((200, 6), dtype=bool)
    weight = rng.exponential(size=200)
    found = shares(weighted_examples(rewards, everywhere, weight), 6)
    assert found.argmax() == (weight @ rewards).argmax()
    # shares differ as mean rewards do
    ratio = np.diff(found) / np.diff(weight @ rewards)
    assert ratio == pytest.approx(np.full(5, ratio[0]))
    other = shares(weighted_examples(7 * rewards - 3, everywhere, weight), 6)
    assert other == pytest.approx(found)
    assert found.sum() == pytest.approx(weight.sum())


def test_arms_that_are_rarely_available_lose_nothing():
    rng = np.random.default_rng(0)
    allowed = np.ones((5000, 3), dtype=bool)
    allowed[:, 2] = rng.random(5000) < 0.2
    rewards = np.where(allowed, [[1.0, 0.0, 1.5]], np.nan)
    found = shares(weighted_examples(rewards, allowed, np.ones(5000)), 3)
    assert found[2] / found[0] == pytest.approx(1.5)


def test_nothing_to_learn():
    row, _, weight = weighted_examples(np.ones((4, 2)), np.ones((4, 2), dtype=bool), np.ones(4))
    assert len(row) == len(weight) == 0
