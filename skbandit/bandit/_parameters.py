"""A policy's parameters, checked and as the compiled passes take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skbandit.bandit._state import EXPLORATIONS, LINKS, MEANS, UCBS, Prior, Rule


def read_rule(policy: Any, seed: int) -> Rule:
    """How the policy compares arms."""
    greedy = policy.exploration == "greedy"
    return Rule(
        link=LINKS.index(policy.link),
        exploration=EXPLORATIONS.index("epsilon_greedy" if greedy else policy.exploration),
        ucb=UCBS.index(policy.ucb),
        mean=MEANS.index(policy.mean),
        epsilon=0.0 if greedy else float(policy.epsilon),
        seed=seed,
        intercept=bool(policy.fit_intercept),
    )


def read_prior(policy: Any, n_features: int) -> Prior:
    """What the policy believes beforehand."""
    adaptive_mean = _is_adaptive(policy.prior_mean)
    adaptive_variance = _is_adaptive(policy.prior_variance)
    if (adaptive_mean or adaptive_variance) and policy.forgetting < 1:
        raise ValueError(
            f"forgetting={policy.forgetting:g} goes back to a fixed prior: with an adaptive one "
            "take forgetting=1."
        )
    n_weights = n_features + bool(policy.fit_intercept)
    mean = _of_each_weight(policy.prior_mean, 0.0, "prior_mean", n_features, n_weights)
    variance = _of_each_weight(policy.prior_variance, 1.0, "prior_variance", n_features, n_weights)
    if not (variance > 0).all():
        raise ValueError(f"prior_variance must be positive, got {variance[variance <= 0][0]:g}.")
    return Prior(
        mean,
        variance,
        adaptive_mean,
        adaptive_variance,
        float(policy.noise_variance),
        float(policy.forgetting),
    )


def read_alphas(alpha: Any, n_learned: int, n_events: int) -> np.ndarray:
    """The one alpha, or alpha after `n_learned` events and each of `n_events` more."""
    if not callable(alpha):
        return np.array([float(alpha)])
    counts = np.arange(n_learned, n_learned + n_events + 1)
    values = np.asarray(alpha(counts), dtype=np.float64)
    if values.shape not in {(), counts.shape}:
        raise ValueError(
            f"alpha, called on an array of {len(counts)} numbers of events, answered with shape "
            f"{values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("alpha must give nonnegative finite numbers for any number of events.")
    return np.atleast_1d(values)


def read_interval(update_every: Any) -> float | None:
    """Seconds between updates; None is no delay."""
    if update_every is None:
        return None
    if isinstance(update_every, int | float | np.number):
        seconds = float(update_every)
    else:
        seconds = pd.Timedelta(update_every).total_seconds()
    if not seconds > 0:
        raise ValueError(f"update_every must be positive, got {update_every!r}.")
    return seconds


def _is_adaptive(value: Any) -> bool:
    return isinstance(value, str) and value == "adaptive"


def _of_each_weight(
    value: Any, default: float, name: str, n_features: int, n_weights: int
) -> np.ndarray:
    """A number for each weight; with one a feature, the constant feature keeps the default."""
    weights = np.full(n_weights, default)
    if _is_adaptive(value):
        return weights
    given = np.asarray(value, dtype=np.float64)
    if not np.isfinite(given).all():
        raise ValueError(f"{name} must be finite, got {given[~np.isfinite(given)][0]}.")
    if given.ndim == 0:
        weights[:] = given
    elif given.shape in {(n_features,), (n_weights,)}:
        weights[: len(given)] = given
    else:
        constant = (
            f", or {n_weights} with the constant one's last" if n_weights > n_features else ""
        )
        raise ValueError(
            f"{name} has shape {given.shape}, expected a number or one for each of the "
            f"{n_features} features{constant}."
        )
    return weights
