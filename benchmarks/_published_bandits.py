"""The figures of Li et al. (2012), section 5, with its delay of five minutes and 21 features.

Their log of Yahoo!'s front page cannot be shipped. In its place is a made one of the same kind: 20
arms, of which 10 are there at a time, and 20 features and a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from skbandit import GLMUCBPolicy
from skbandit.datasets import make_bandit_log
from skbandit.evaluation import replay
from tests.policies import PAPER

EPSILONS = (0.0, 0.02, 0.05, 0.1)
ALPHAS = (0.1, 0.5, 1.0, 2.0)
SMALL_ALPHAS = (0.01, 0.05)
"""For U3, which adds standard deviations of the linear predictor to a probability."""

LINKS = ("linear", "logistic", "probit")
N_FEATURES = 20
LONG, SHORT, QUICK = 2_000_000, 500_000, 100_000
"""Events of the logs. Of the long one some 70,000 are kept and learned: N(.5, .01) is worth 100 of
them to each arm, and the short log ends before that is forgotten. Figure 3 has no such prior."""
DELAY = 100
"""Kept events between updates: about five minutes of the paper's 20 events a second, one in
twenty of which is kept in a half of them. What is learned takes effect then."""

OPTIMISTIC = {
    "prior_mean": [0.0] * N_FEATURES + [0.5],
    "prior_variance": [1.0] * N_FEATURES + [0.01],
}
"""N(.5, .01) for the constant feature, which comes last."""


@cache
def log(n_events: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Contexts of length one, or so, and the log."""
    found = make_bandit_log(
        n_events, 20, N_FEATURES, n_available=10, arm_effect=1.5, random_state=0
    )
    return found.X.to_numpy() / np.sqrt(N_FEATURES), found.y


def nctr(
    rule: str, asked: float, runs: int, n_events: int, **parameters: Any
) -> Iterator[dict[str, Any]]:
    """Click rate over the log's in both buckets, a row per replay of a random half."""
    settings = tuple((name, _hashable(value)) for name, value in sorted(parameters.items()))
    for run, (learning, deployment) in enumerate(replayed(runs, n_events, settings)):
        yield {
            "rule": rule, "asked": asked, "run": run,
            "learning": learning, "deployment": deployment,
        }  # fmt: skip


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def replayed(runs: int, n_events: int, settings: tuple[tuple[str, Any], ...]) -> np.ndarray:
    """Relative click rates of a policy, (runs, 2); figures share some of them."""
    X, y = log(n_events)
    policy = GLMUCBPolicy(update_every=DELAY, random_state=0, **PAPER | dict(settings))
    found = replay(
        policy, X, y, deployment_share=0.3, subsample=0.5, n_repeats=max(runs, 2), random_state=0
    )
    kept = found.runs[["mean_reward", "deployment_mean_reward"]].to_numpy()
    return np.asarray(kept / found.logged_mean)


def explored(name: str, runs: int, n_events: int, **parameters: Any) -> Iterator[dict[str, Any]]:
    """ε-greedy, of which ε = 0 is the greedy policy, and UCB."""
    by_chance = {"exploration": "epsilon_greedy"}
    for epsilon in EPSILONS:
        rule = f"{name}, ε"
        yield from nctr(rule, epsilon, runs, n_events, epsilon=epsilon, **by_chance, **parameters)
    for alpha in ALPHAS:
        yield from nctr(f"{name}, α", alpha, runs, n_events, alpha=alpha, **parameters)


def rewards(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 1: reward models, with the prior N(0, I)."""
    for link in LINKS:
        yield from explored(link, runs, QUICK if quick else LONG, link=link)


def optimism(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 2: an optimistic start, which N(0, I) is for the logistic and the probit model."""
    for link in LINKS:
        prior = OPTIMISTIC if link == "linear" else {}
        yield from explored(link, runs, QUICK if quick else LONG, link=link, **prior)


def approximations(runs: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Figure 3: upper bounds, and means under U0, of the logistic model."""
    n_events = QUICK if quick else SHORT
    for ucb in ("U0", "U1", "U2", "U3"):
        for alpha in (*SMALL_ALPHAS, *ALPHAS):
            yield from nctr(f"{ucb}, α", alpha, runs, n_events, ucb=ucb, alpha=alpha)
    for mean in ("M0", "M1", "M2", "M3"):
        for alpha in ALPHAS:
            yield from nctr(f"{mean}, α", alpha, runs, n_events, mean=mean, alpha=alpha)
