"""Two textbook policies, in plain NumPy and scikit-learn, on problems whose rewards are all known.

Both get features standardized in hindsight, over all rows: an advantage that nobody has who
starts with the first event.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler


def lin_ucb(X: np.ndarray, reward: np.ndarray, seed: int, alpha: float) -> np.ndarray:
    """Rewards earned by LinUCB with disjoint models (Li et al. 2010): a ridge regression an arm.

    The arm of the highest x'A^-1 b + alpha sqrt(x'A^-1 x) is played, with A = I + sum xx'.
    """
    Z, rng = _with_constant(X), np.random.default_rng(seed)
    n_arms, d = reward.shape[1], Z.shape[1]
    inverse, b = np.tile(np.eye(d), (n_arms, 1, 1)), np.zeros((n_arms, d))
    got = np.empty(len(Z))
    for t, x in enumerate(Z):
        spread = inverse @ x
        score = np.einsum("kd,kd->k", b, spread) + alpha * np.sqrt(spread @ x)
        k = rng.choice(np.flatnonzero(score >= score.max() - 1e-12))
        got[t] = reward[t, k]
        inverse[k] -= np.outer(spread[k], spread[k]) / (1.0 + spread[k] @ x)
        b[k] += got[t] * x
    return got


def greedy_sgd(X: np.ndarray, reward: np.ndarray, seed: int, epsilon: float) -> np.ndarray:
    """Rewards, 0 or 1, earned by ε-greedy over an online logistic regression an arm."""
    Z, rng = _with_constant(X)[:, :-1], np.random.default_rng(seed)
    n_arms = reward.shape[1]
    models = [SGDClassifier(loss="log_loss", random_state=seed) for _ in range(n_arms)]
    coef, intercept = np.zeros((n_arms, Z.shape[1])), np.zeros(n_arms)
    got = np.empty(len(Z))
    for t, x in enumerate(Z):
        score = coef @ x + intercept
        if rng.random() < epsilon:
            k = rng.integers(n_arms)
        else:
            k = rng.choice(np.flatnonzero(score >= score.max() - 1e-12))
        got[t] = reward[t, k]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models[k].partial_fit(x[None], [int(got[t])], classes=[0, 1])
        coef[k], intercept[k] = models[k].coef_[0], models[k].intercept_[0]
    return got


RIVALS = {
    "LinUCB, alpha = 1": partial(lin_ucb, alpha=1.0),
    "LinUCB, alpha = .2": partial(lin_ucb, alpha=0.2),
    "ε-greedy, SGDClassifier per arm": partial(greedy_sgd, epsilon=0.05),
}


def _with_constant(X: np.ndarray) -> np.ndarray:
    """Standardized columns, and a last one of ones."""
    return np.column_stack([StandardScaler().fit_transform(X), np.ones(len(X))])
