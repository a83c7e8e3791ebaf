"""Choice probabilities that need nothing but predicted rewards.

Rewards are arrays of shape (n_rows, n_arms), `available` a mask of that shape with at least one
arm in each row. Arms of equal reward share their probability.
"""

from __future__ import annotations

import numpy as np


def greedy(rewards: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Probability 1 for the available arm of the largest reward."""
    of_available = np.where(available, rewards, -np.inf)
    best = of_available == of_available.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def epsilon_greedy(rewards: np.ndarray, available: np.ndarray, epsilon: float) -> np.ndarray:
    """ε/K for each of the K available arms, and the remaining 1 - ε for the best."""
    uniform = available / available.sum(axis=1, keepdims=True)
    return (1 - epsilon) * greedy(rewards, available) + epsilon * uniform


def inverse_gap(rewards: np.ndarray, available: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """1/(K + γ gap) for every arm but the best, which takes the rest.

    Foster & Rakhlin (2020), Algorithm 1, there for losses: the gap is that to the reward of the
    best of the K available arms. `gamma` has one number per row; infinity is greedy.
    """
    of_available = np.where(available, rewards, -np.inf)
    top = of_available.max(axis=1, keepdims=True)
    n_arms = available.sum(axis=1, keepdims=True)
    behind = available & (of_available < top)
    gap = np.where(behind, top - rewards, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.where(behind, 1 / (n_arms + np.where(behind, gamma[:, None] * gap, 0.0)), 0.0)
    rest = 1 - p.sum(axis=1, keepdims=True)
    return p + rest * greedy(rewards, available)


def bootstrap(rewards: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Share of the replicates in which an arm is the best.

    `rewards` has the shape (n_replicates, n_rows, n_arms): those of models fitted to resampled
    events. Playing the best arm of a replicate drawn at random approximates Thompson sampling
    (Eckles & Kaptein, 2014; Osband & Van Roy, 2015).
    """
    return np.mean([greedy(of_one, available) for of_one in rewards], axis=0)


def draw(probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Column drawn in each row, by uniform numbers u from [0, 1)."""
    cumulated = np.cumsum(probabilities, axis=1)
    drawn = (cumulated <= (u * cumulated[:, -1])[:, None]).sum(axis=1)
    last = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
    return np.minimum(drawn, last)  # if u times the total rounds up to it
