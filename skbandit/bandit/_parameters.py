"""Parameters of a policy, checked and converted for the compiled passes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skbandit.bandit._state import EXPLORATIONS, LINKS, MEANS, UCBS, Prior, Rule

CONSTANTS_ODDS = 1e-3
"""Prior odds of the scale 0 to each of the others: at first it has no part in choices."""

CONSTANTS_COUNT = 0.5
"""Number of events that the weights under the scale 0 count an event for."""


def read_rule(policy: Any, seed: int = 0) -> Rule:
    """Settings of the policy's choices; only exploring ones use the seed."""
    return _rule(
        policy.link, policy.exploration, policy.ucb, policy.mean, policy.epsilon,
        policy.fit_intercept, seed,
    )  # fmt: skip


@lru_cache
def _rule(
    link: str, exploration: str, ucb: str, mean: str, epsilon: float, intercept: bool, seed: int
) -> Rule:
    greedy = exploration == "greedy"
    return Rule(
        link=LINKS.index(link),
        exploration=EXPLORATIONS.index("epsilon_greedy" if greedy else exploration),
        ucb=UCBS.index(ucb),
        mean=MEANS.index(mean),
        epsilon=0.0 if greedy else float(epsilon),
        seed=seed,
        intercept=bool(intercept),
    )


class _PriorSettings(NamedTuple):
    """The parameters of a policy that a prior is read from."""

    prior_mean: Any
    prior_variance: Any
    prior_scale: Any
    noise_variance: float
    forgetting: float
    fit_intercept: bool


def read_prior(policy: Any, n_features: int) -> Prior:
    """Prior of the policy's arms, and its settings of learning."""
    settings = _PriorSettings(*(getattr(policy, name) for name in _PriorSettings._fields))
    try:
        return _prior(settings, n_features)
    except TypeError:  # arrays have no hash
        return _prior.__wrapped__(settings, n_features)


@lru_cache
def _prior(policy: _PriorSettings, n_features: int) -> Prior:
    adaptive_mean = _is_adaptive(policy.prior_mean)
    adaptive_variance = _is_adaptive(policy.prior_variance)
    if (adaptive_mean or adaptive_variance) and policy.forgetting < 1:
        raise ValueError(
            f"forgetting={policy.forgetting:g} requires a fixed prior: with an adaptive prior, use "
            "forgetting=1."
        )
    n_weights = n_features + bool(policy.fit_intercept)
    mean = _per_weight(policy.prior_mean, 0.0, "prior_mean", n_features, n_weights)
    variance = _variances(policy, n_features, n_weights)
    adaptive = adaptive_mean or adaptive_variance
    return Prior(
        mean,
        variance,
        np.where(_beside_models_of_features(variance, n_features), CONSTANTS_COUNT, 1.0),
        adaptive_mean if adaptive else None,
        adaptive_variance if adaptive else None,
        float(policy.noise_variance),
        float(policy.forgetting) if policy.forgetting < 1 else None,
    )


def prior_evidence(prior: Prior, n_features: int) -> np.ndarray:
    """Logarithms of the prior odds of the prior scales."""
    constants = _beside_models_of_features(prior.variance, n_features)
    return np.where(constants, np.log(CONSTANTS_ODDS), 0.0)


def _beside_models_of_features(variance: np.ndarray, n_features: int) -> np.ndarray:
    """Whether each prior scale has constants only, among others that have features, too."""
    without = (variance[:, :n_features] == 0).all(axis=1)
    return without & ~without.all()


def _variances(policy: Any, n_features: int, n_weights: int) -> np.ndarray:
    """Prior variances of the weights under each prior scale.

    Scaled: s/n_features for features and √s for the constant. A constant of variance 1 is too
    narrow for rare rewards, whose θ is near -4, and with a variance of s = 10 an arm's first
    failure would rule it out. A scale of 0 has constants only, of variance 1.
    """
    if isinstance(policy.prior_variance, str) and policy.prior_variance == "scaled":
        scales = np.atleast_1d(np.asarray(policy.prior_scale, dtype=np.float64))
        wrong = scales[~(np.isfinite(scales) & (scales >= 0))]
        if scales.ndim > 1 or not scales.size or wrong.size:
            raise ValueError(
                "prior_scale must be a number, at least 0, or a list of them, got "
                f"{wrong[0] if wrong.size else policy.prior_scale!r}."
            )
        if n_weights == n_features and not scales.all():
            raise ValueError(
                f"prior_scale={policy.prior_scale!r} leaves out the features, and "
                "fit_intercept=False the constant: leave out the scale 0."
            )
        variance = np.empty((len(scales), n_weights))
        variance[:, :n_features] = scales[:, None] / n_features
        variance[:, n_features:] = np.where(scales > 0, np.sqrt(scales), 1.0)[:, None]
        return variance
    one = _per_weight(policy.prior_variance, 1.0, "prior_variance", n_features, n_weights)
    if not (one > 0).all():
        raise ValueError(f"prior_variance must be positive, got {one[one <= 0][0]:g}.")
    return one[None]


def read_alphas(alpha: Any, n_learned: int, n_events: int) -> np.ndarray:
    """Alpha as an array: one value, or the values after n_learned, n_learned + 1, ... events."""
    if not callable(alpha):
        return np.array([float(alpha)])
    counts = np.arange(n_learned, n_learned + n_events + 1)
    values = np.asarray(alpha(counts), dtype=np.float64)
    if values.shape not in {(), counts.shape}:
        raise ValueError(
            f"alpha, called with an array of {len(counts)} event counts, returned an array of "
            f"shape {values.shape}: it must return one number per count."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("alpha must return nonnegative finite numbers for any number of events.")
    return np.atleast_1d(values)


def read_interval(update_every: Any) -> float | None:
    """Length of update windows in seconds; None learns at once."""
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


def _per_weight(
    value: Any, default: float, name: str, n_features: int, n_weights: int
) -> np.ndarray:
    """One number per weight; the constant's keeps the default if only features are given."""
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
        constant = f", or {n_weights} with the constant's last" if n_weights > n_features else ""
        raise ValueError(
            f"{name} has shape {given.shape}, expected a number or one for each of the "
            f"{n_features} features{constant}."
        )
    return weights
