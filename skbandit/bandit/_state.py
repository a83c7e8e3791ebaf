"""State and settings of a policy as plain arrays and scalars, the form compiled code takes."""

from __future__ import annotations

from collections import namedtuple
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skbandit.bandit._arm_keys import new_keys


# Names of options. Compiled code sees their positions, which are told apart in one place each:
# `skbandit.bandit.links` and `skbandit.bandit.exploration`.
class Link(NamedTuple):
    """Properties of a link besides its file in `skbandit.bandit.links`."""

    reward_range: tuple[float, float]
    has_noise: bool  # of a variance of its own: rewards have a unit


LINKS = {
    "linear": Link((-np.inf, np.inf), has_noise=True),
    "logistic": Link((0.0, 1.0), has_noise=False),
    "probit": Link((0.0, 1.0), has_noise=False),
}
EXPLORATIONS = {
    "ucb": "moments",
    "epsilon_greedy": "means",
    "thompson": "moments",
    "squarecb": "means",
    "greedy": "means",
    "bootstrap": "replicates",
}
"""Exploration rules, and what they need of a model."""
BY_SPREAD = tuple(need == "moments" for need in EXPLORATIONS.values())
"""True for each rule whose scores depend on standard deviations."""
UCBS = ("U0", "U1", "U2", "U3")
MEANS = ("M0", "M1", "M2", "M3")

# Positions in `Posterior.counters`. Exploring choices are counted there within a replay; elsewhere
# a `ChoiceStream` counts them.
N_EVENTS, N_CHOICES, N_LEARNED_ARMS = 0, 1, 2

# Positions in `Posterior.reward`: origin and rate of the running unit of rewards, whose rate is 0
# until it is known; mean of the learned rewards, and sum of squared deviations from it.
CENTER, RATE, MEAN, SQUARES = range(4)

# Positions in `Posterior.start`, (2, n_scales, n_weights): means and variances of arms without
# events; variances of 0 if these are at their prior.
START_MEAN, START_VARIANCE = range(2)

OF_ARMS = (
    "n_updates", "tie_order", "learned", "rng_key", "check", "Z", "own_mean", "own_variance",
)  # fmt: skip
"""Fields of posteriors whose first axis numbers the arms. If there is a model per arm, the second
one of `mean` and `cov_factor` does, too."""

LEAST_SHARE = 1e-3
"""Weight below which a scale is left out of choices; it goes on learning and may return."""

FORGETTING = 0.995
"""Forgetting factor under "auto": the model remembers about the latest 200 events of an arm."""

BUILT_WITH = ("covariance", "fit_intercept", "link", "standardize")
"""Parameters that decide which numbers a posterior holds, so that they cannot change with it."""


NO_CHECK = np.empty((0, 5))


class Posterior(NamedTuple):
    """Posteriors w ~ N(mean, Σ) of every arm, and all else that learning updates in place.

    Each arm has one posterior per prior scale, of which choices see the mixture
    (`_posterior`). `cov_factor` is the diagonal of Σ, or a matrix L with Σ = L Lᵀ, so
    that Σ stays positive definite. The weights are those of features in running units
    (`skbandit.bandit._units`), whose arrays are empty if features are taken as they are.
    """

    mean: np.ndarray  # (n_scales, n_arms, n_weights): choices read few of the scales
    cov_factor: np.ndarray  # (n_scales, n_arms, n_weights), or with another axis of n_weights
    n_updates: np.ndarray  # (n_arms,), events learned
    tie_order: np.ndarray  # (n_arms,), breaks ties of greedy choices: the smallest wins
    learned: np.ndarray  # (n_arms,), arms with events, in order of their first event
    rng_key: np.ndarray  # (n_arms,), keys of the arms' random streams
    counters: np.ndarray  # (3,): events learned, exploring choices made, arms with events
    evidence: np.ndarray  # (n_scales,), prequential log likelihoods
    share: np.ndarray  # (n_scales,), weights in the mixture, which sum to 1
    center: np.ndarray  # (n_features,), origin of the running units; (0,) if it is 0
    rate: np.ndarray  # (n_features,) or (0,), running units per unit; 0 if unknown
    seen_mean: np.ndarray  # as `center`, mean of the learned contexts
    seen_squares: np.ndarray  # as `rate`, sum of squared deviations from it, or from 0
    seen_weight: np.ndarray  # (1,), sum of the weights of learned events
    start: np.ndarray = np.zeros((2, 1, 1))  # see `START_MEAN`
    reward: np.ndarray = np.empty(0)  # (4,), see `CENTER`; (0,) if rewards are taken as they are
    check: np.ndarray = NO_CHECK  # (n_arms, 5), of rewards against predictions (`_changes`)
    restarts: np.ndarray = np.zeros(2, np.int64)  # their number, and N_EVENTS at the last one

    def copy(self) -> Posterior:
        """Return copy that shares no array."""
        return Posterior(*(array.copy() for array in self))

    def keep_arms(self, arms: np.ndarray) -> Posterior:
        """Return posterior about the arms of these numbers, in this order."""
        number = np.full(len(self.n_updates), -1)
        number[arms] = np.arange(len(arms))
        learned = number[self.learned[: self.counters[N_LEARNED_ARMS]]]
        learned = learned[learned >= 0]
        fewer = with_arms_of(self, arms).copy()
        fewer.learned[: len(learned)] = learned
        fewer.counters[N_LEARNED_ARMS] = len(learned)
        return fewer

    def workspace(self) -> ArmWorkspace:
        """Return buffers of compiled passes."""
        n_weights = self.mean.shape[2]
        x = np.empty(n_weights)
        x[-1:] = 1.0  # sparse rows may have no weight at all
        return ArmWorkspace(x, np.empty((4, n_weights)))


def arm_axes(posterior: Any) -> dict[str, int]:
    """Return the axis that numbers the arms, of the fields that have one."""
    axes = {name: 0 for name in OF_ARMS if name in posterior._fields}
    return axes if posterior.mean.ndim == 4 else axes | {"mean": 1, "cov_factor": 1}


def with_arms_of(posterior: Any, arms: np.ndarray) -> Any:
    """Return posterior with the rows of arms of these numbers, in this order."""
    ranks = np.argsort(np.argsort(posterior.tie_order[arms], kind="stable"), kind="stable")
    axes = arm_axes(posterior).items()
    kept = {name: getattr(posterior, name).take(arms, axis) for name, axis in axes}
    return posterior._replace(**kept | {"tie_order": ranks})


def with_room(posterior: Any, labels: list[Any]) -> Any:
    """Return posterior with zeros for new arms, which come last in ties of greedy choices."""
    grown = {}
    for name, axis in arm_axes(posterior).items():
        array = getattr(posterior, name)
        shape = (*array.shape[:axis], len(labels), *array.shape[axis + 1 :])
        grown[name] = np.concatenate([array, np.zeros(shape, array.dtype)], axis=axis)
    n_old = len(posterior.tie_order)
    grown["tie_order"][n_old:] = np.arange(n_old, n_old + len(labels))
    # keyed by label, as an arm's number depends on the order of events
    grown["rng_key"][n_old:] = new_keys(labels, posterior.rng_key.tolist() if labels else [])
    return posterior._replace(**grown)


class ArmWorkspace(NamedTuple):
    """Buffers of compiled passes over models of single arms."""

    x: np.ndarray  # (n_weights,), ends with the constant feature, if there is one
    buffer: np.ndarray  # (4, n_weights), of moments and of learning


class Prior(NamedTuple):
    """Priors of a new arm, and the settings of learning.

    None in place of False or 1 leaves what is not needed out of the compiled code.
    """

    mean: np.ndarray  # (n_weights,)
    variance: np.ndarray  # (n_scales, n_weights), followed by the model that forgets
    adaptive_mean: bool | None  # None if neither is adaptive
    adaptive_variance: bool | None
    noise_variance: float
    forgetting: np.ndarray  # (n_scales,), factors of earlier evidence
    averages: bool = False  # whether arms without events are chosen as the average of those known
    renews: bool = True  # whether learning renews units that are due
    checks: bool = False  # whether it starts anew when rewards have changed


class ChoiceRule(NamedTuple):
    """Settings of choices: `link`, `exploration`, `ucb` and `mean` are positions of names.

    Only scalars: compiled code counts a reference whenever it takes an array out of a tuple, and
    this tuple is read for every comparison of two arms.
    """

    link: int
    exploration: int
    ucb: int
    mean: int
    epsilon: float
    seed: int
    intercept: bool


def no_posterior(
    n_weights: int, full: bool, n_scales: int = 1, n_units: int = 0, *, centered: bool = True,
    rewards: bool = False,
) -> Posterior:  # fmt: skip
    """Return posterior of a policy without arms, `n_units` of whose features have running units.

    `rewards` says whether rewards have them, too.
    """
    shape = n_scales, 0, n_weights
    n_centers = n_units if centered else 0
    return Posterior(
        mean=np.empty(shape),
        cov_factor=np.empty((*shape, n_weights) if full else shape),
        n_updates=np.empty(0, dtype=np.int64),
        tie_order=np.empty(0, dtype=np.int64),
        learned=np.empty(0, dtype=np.int64),
        rng_key=np.empty(0, dtype=np.int64),
        counters=np.zeros(3, dtype=np.int64),
        evidence=np.zeros(n_scales),
        share=np.full(n_scales, 1 / n_scales),
        center=np.zeros(n_centers),
        rate=np.zeros(n_units),
        seen_mean=np.zeros(n_centers),
        seen_squares=np.zeros(n_units),
        seen_weight=np.zeros(1),
        start=np.zeros((2, n_scales, n_weights)),
        reward=np.zeros(4 if rewards else 0),
    )


# Weights of arms in the units of contexts and rewards, averaged over prior scales.
#
# With x = (X - c) r (`skbandit.bandit._units`), θ = Σ_i w_i (X_i - c_i) r_i + w_0: the weight of
# X_i is r_i w_i, and the constant is w_0 - Σ_i c_i r_i w_i; all of them times the unit of rewards,
# to whose origin the constant is relative. Means and covariances over prior scales are those of
# the mixture (`_posterior`).


def unit_of_rewards(posterior: Any) -> tuple[float, float]:
    """Return origin and spread with which θ times spread plus origin is in the user's unit."""
    units = posterior.reward
    origin = float(units[CENTER]) if len(units) and units[CENTER] == units[CENTER] else 0.0
    return origin, float(1 / units[RATE]) if len(units) > 1 and units[RATE] > 0 else 1.0


def mean_weights(posterior: Posterior) -> np.ndarray:
    """Return posterior means, (n_arms, n_weights), the constant's last."""
    origin, spread = unit_of_rewards(posterior)
    mean = _in_units(posterior, np.einsum("e,eki->ki", posterior.share, posterior.mean) * spread)
    if origin:
        mean[:, -1] += origin
    return mean


def weight_covariance(posterior: Posterior) -> np.ndarray:
    """Posterior variances, (n_arms, n_weights), or covariances, with another axis of n_weights."""
    share, factor, unit = posterior.share, posterior.cov_factor, unit_of_rewards(posterior)[1]
    away = posterior.mean - np.einsum("e,eki->ki", share, posterior.mean)
    if factor.ndim == 3:
        of_weights = np.einsum("e,eki->ki", share, factor + away**2)
        return _in_units(posterior, of_weights, power=2) * unit**2
    covariance = factor @ factor.transpose(0, 1, 3, 2) + away[..., None] * away[..., None, :]
    once = _in_units(posterior, np.einsum("e,ekij->kij", share, covariance))
    both = _in_units(posterior, once.transpose(0, 2, 1))
    return (both + both.transpose(0, 2, 1)) / 2 * unit**2


def _in_units(posterior: Posterior, weights: np.ndarray, power: int = 1) -> np.ndarray:
    """Map the last axis of weights of features in running units to those of the contexts.

    Variances of uncorrelated weights are mapped likewise, by a power of 2.
    """
    mapped, n_features = weights.copy(), len(posterior.rate)
    mapped[..., :n_features] *= posterior.rate**power
    if len(posterior.center):
        mapped[..., -1] += mapped[..., :n_features] @ (-posterior.center) ** power
    return mapped


def explorations_by(*given: str) -> set[str]:
    """Return names of the rules that need no more than this of a model."""
    return {name for name, need in EXPLORATIONS.items() if need in given}


def built_with(policy: Any) -> dict[str, Any]:
    """Return the values of those parameters that the policy has."""
    return {name: getattr(policy, name) for name in BUILT_WITH if hasattr(policy, name)}


def read_rule(policy: Any, seed: int = 0) -> ChoiceRule:
    """Return settings of the policy's choices; only exploring ones use the seed."""
    built = policy._built_with
    if built != (now := built_with(policy)):
        for name, value in built.items():
            if now[name] != value:
                raise ValueError(
                    f"{name}={now[name]!r}, but the policy has learned with {name}={value!r}: "
                    "call fit to start afresh."
                )
    return _rule(
        policy.link, policy.exploration, policy.ucb, policy.mean, policy.epsilon,
        policy.fit_intercept, seed,
    )  # fmt: skip


@lru_cache
def _rule(
    link: str, exploration: str, ucb: str, mean: str, epsilon: float, intercept: bool, seed: int
) -> ChoiceRule:
    return ChoiceRule(
        link=list(LINKS).index(link),
        exploration=list(EXPLORATIONS).index(exploration),
        ucb=UCBS.index(ucb),
        mean=MEANS.index(mean),
        epsilon=float(epsilon),
        seed=seed,
        intercept=bool(intercept),
    )


PriorSettings = namedtuple(
    "PriorSettings",
    "prior_mean prior_variance prior_scale noise_variance forgetting fit_intercept covariance "
    "standardize link",
)
"""Parameters of a policy that a prior is read from."""


def read_prior(policy: Any, n_features: int) -> Prior:
    """Return prior of the policy's arms, and its settings of learning."""
    settings = PriorSettings(*(getattr(policy, name) for name in PriorSettings._fields))
    try:
        return _prior(settings, n_features)
    except TypeError:  # arrays have no hash
        return _prior.__wrapped__(settings, n_features)


@lru_cache
def _prior(policy: PriorSettings, n_features: int) -> Prior:
    adaptive_mean, adaptive_variance = (
        isinstance(value, str) and value == "adaptive"
        for value in (policy.prior_mean, policy.prior_variance)
    )
    noise_variance = 1.0 if isinstance(policy.noise_variance, str) else policy.noise_variance
    n_weights = n_features + bool(policy.fit_intercept)
    mean = _per_weight(policy.prior_mean, 0.0, "prior_mean", n_features, n_weights)
    variance = _variances(policy, n_features, n_weights)
    adaptive = adaptive_mean or adaptive_variance
    forgetting = np.ones(len(variance))
    if policy.forgetting != "auto" and policy.forgetting < 1:
        if adaptive:
            raise ValueError(
                f"forgetting={policy.forgetting:g} requires a fixed prior: with an adaptive prior, "
                "use forgetting=1."
            )
        forgetting[:] = policy.forgetting
    elif policy.forgetting == "auto" and not adaptive:
        # A model that forgets must be weighted by evidence, and take little time. With linear
        # rewards, evidence depends on `noise_variance`: if that is too small, the model with the
        # widest predictions wins, which is the one that forgets. A policy with one scale is meant
        # to be fast, and a full covariance is slow. Contexts that are not centered may be sparse,
        # and learned in time that grows with what is present; forgetting changes every weight.
        cheap = len(variance) > 1 and policy.covariance == "diagonal" and policy.standardize is True
        if cheap and not LINKS[policy.link].has_noise:
            forgetting = np.append(forgetting, FORGETTING)
            variance = np.vstack([variance, variance[len(variance) // 2]])
    return Prior(
        mean,
        variance,
        adaptive_mean if adaptive else None,
        adaptive_variance if adaptive else None,
        float(noise_variance),
        forgetting,
        isinstance(policy.prior_mean, str) and not adaptive and bool(policy.standardize),
        checks=policy.forgetting == "auto" and not adaptive,
    )


def standardizes_rewards(policy: Any) -> bool:
    """Return whether rewards have running units: numbers of prior and noise are in raw ones."""
    named = (policy.prior_mean, policy.prior_variance, policy.noise_variance)
    running = LINKS[policy.link].has_noise and bool(policy.standardize)
    return running and all(isinstance(value, str) for value in named)


def _variances(policy: Any, n_features: int, n_weights: int) -> np.ndarray:
    """Return prior variances of the weights under each prior scale.

    Scaled: s/n_features for features and √s for the constant. A constant of variance 1 is too
    narrow for rare rewards, whose θ is near -4, and with a variance of s = 10 an arm's first
    failure would rule it out.
    """
    if isinstance(policy.prior_variance, str) and policy.prior_variance == "scaled":
        scales = read_scales(policy.prior_scale)
        variance = np.empty((len(scales), n_weights))
        variance[:, :n_features] = scales[:, None] / max(n_features, 1)
        variance[:, n_features:] = np.sqrt(scales)[:, None]
        return variance
    variance = _per_weight(policy.prior_variance, 1.0, "prior_variance", n_features, n_weights)
    if not (variance > 0).all():
        raise ValueError(f"prior_variance must be positive, got {variance[variance <= 0][0]:g}.")
    return variance[None]


def read_scales(prior_scale: Any) -> np.ndarray:
    """Return prior scales as an array."""
    scales = np.atleast_1d(np.asarray(prior_scale, dtype=np.float64))
    wrong = scales[~(np.isfinite(scales) & (scales > 0))]
    if scales.ndim > 1 or not scales.size or wrong.size:
        raise ValueError(
            "prior_scale must be a positive number or a list of them, got "
            f"{wrong[0] if wrong.size else prior_scale!r}."
        )
    return scales


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
    """Return length of update windows in seconds; None learns at once."""
    if update_every is None:
        return None
    is_duration = isinstance(update_every, bool | np.bool_ | str | timedelta | np.timedelta64)
    if not is_duration:
        seconds, least = float(update_every), 0.0
    else:  # without a unit, it would be of nanoseconds
        try:
            seconds, least = pd.Timedelta(update_every).total_seconds(), 1.0
        except ValueError as error:
            message = f"update_every={update_every!r} is no length of time: {error}."
            raise ValueError(message) from error
    if not (seconds >= least and seconds > 0):
        raise ValueError(
            f"update_every={update_every!r} is {seconds:g} seconds, perhaps for want of a unit: "
            "write a positive number of seconds, as in 86400, or a length of one second or more "
            "with its unit, as in '86400s'."
        )
    return seconds


def _per_weight(
    value: Any, default: float, name: str, n_features: int, n_weights: int
) -> np.ndarray:
    """Return one number per weight; the constant's keeps the default if only features are given."""
    weights = np.full(n_weights, default)
    if isinstance(value, str):
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
