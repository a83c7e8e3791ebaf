"""Replay of a diagonal logistic policy and nothing else: what replay is measured against.

The published algorithm (U0, M0, prior of mean 0 and variance 1) in one compiled loop over arrays:
no validation, no labels of arms, no standardization, ties to the first arm.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit
def laplace(mean, variance, reward):
    """Mode and variance of a linear predictor after a reward of 0 or 1, by safeguarded Newton."""
    low, high = mean - variance * (1 - reward), mean + variance * reward
    eta = mean
    for _ in range(100):
        p = 1 / (1 + math.exp(-eta))
        residual = eta - mean - variance * (reward - p)
        if residual < 0:
            low = eta
        else:
            high = eta
        closer = eta - residual / (1 + variance * p * (1 - p))
        if not low <= closer <= high:
            closer = (low + high) / 2
        step, eta = abs(closer - eta), closer
        if step <= 1e-12 * (1 + abs(eta)):
            break
    p = 1 / (1 + math.exp(-eta))
    return eta, variance / (1 + variance * p * (1 - p))


@njit(inline="always")
def predicted(x, means, variances):
    """Mean and variance of an arm's linear predictor."""
    mean = variance = 0.0
    for j in range(len(x)):
        mean += x[j] * means[j]
        variance += x[j] ** 2 * variances[j]
    return mean, variance


@njit
def bare_replay(X, actions, rewards, n_arms, alpha):
    """Number of accepted events, sum of their rewards, posterior means and variances by arm."""
    n_features = X.shape[1]
    means, variances = np.zeros((n_arms, n_features)), np.ones((n_arms, n_features))
    n_accepted, earned = 0, 0.0
    for t in range(len(X)):
        best, chosen = -np.inf, -1
        for k in range(n_arms):
            mean, variance = predicted(X[t], means[k], variances[k])
            upper = mean + alpha * math.sqrt(variance)
            if upper > best:
                best, chosen = upper, k
        if chosen != actions[t]:
            continue
        mean, variance = predicted(X[t], means[chosen], variances[chosen])
        n_accepted += 1
        earned += rewards[t]
        eta, learned = laplace(mean, variance, rewards[t])
        for j in range(n_features):
            covariance = variances[chosen, j] * X[t, j]
            means[chosen, j] += covariance * (eta - mean) / variance
            variances[chosen, j] += covariance * covariance * (learned - variance) / variance**2
    return n_accepted, earned, means, variances
