"""A policy on a problem whose rewards are all known: choose, learn the chosen arm's, go on."""

from __future__ import annotations

import numpy as np

from skbandit.bandit import GLMUCBPolicy
from skbandit.bandit._kernels import Model, choose_rows
from skbandit.bandit._posterior import learn_row
from skbandit.bandit._state import N_EVENTS, Prior, read_rule
from skbandit.logs import Pools
from skbandit.utils._compiled import compiled_exactly


def play(policy: GLMUCBPolicy, X: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Rewards of `select` followed by `partial_fit` on each row, as the policy decides cold."""
    n_arms = reward.shape[1]
    policy.set_params(arms=range(n_arms))._begin(X)
    posterior, prior = policy._posterior, policy._prior()
    seed, _ = policy._stream.take(len(X), policy.random_state)
    rule = read_rule(policy, seed)
    got = np.empty(len(X))
    sets = Pools.of_all(1, n_arms)
    _play(
        X, reward, policy._alphas(len(X)), sets, Model(posterior, rule, posterior.workspace()),
        prior, np.empty(1, dtype=np.int64), got,
    )  # fmt: skip
    return got


@compiled_exactly
def _play(
    X: np.ndarray,
    reward: np.ndarray,
    alphas: np.ndarray,
    sets: Pools,
    model: Model,
    prior: Prior,
    chosen: np.ndarray,
    got: np.ndarray,
) -> None:
    posterior, rule, work = model
    for t in range(len(X)):
        alpha = alphas[min(posterior.counters[N_EVENTS], len(alphas) - 1)]
        row = X[t : t + 1]
        choose_rows(row, sets, t, alpha, posterior.mean, model, chosen)
        k = chosen[0]
        got[t] = reward[t, k]
        learn_row(X, t, k, got[t], 1.0, posterior, prior, rule, work)
