"""The learning half of a policy: posteriors of arms, updated by ordered events."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._events import EncodedLog, Events
from skbandit.bandit._sequential import PosteriorPolicy
from skbandit.bandit._state import (
    N_CHOICES,
    Beliefs,
    Prior,
    Rule,
    copied,
    no_beliefs,
    only_arms,
    read_prior,
    read_rule,
)
from skbandit.logs import Codes, ReplayRequest

# Weights of arms in the units of the contexts, averaged over prior scales.
#
# With x = (X - c) r (`skbandit.bandit._units`), θ = Σ_i w_i (X_i - c_i) r_i + w_0: the weight of
# X_i is r_i w_i, and the constant is w_0 - Σ_i c_i r_i w_i. Means and covariances over prior
# scales are those of the mixture (`skbandit.bandit._mixture`).


def mean_weights(beliefs: Beliefs) -> np.ndarray:
    """Posterior means, (n_arms, n_weights), the constant's last."""
    return _in_units(beliefs, np.einsum("e,kei->ki", beliefs.share, beliefs.mean))


def weight_covariance(beliefs: Beliefs) -> np.ndarray:
    """Posterior variances, (n_arms, n_weights), or covariances, with another axis of n_weights."""
    share, factor = beliefs.share, beliefs.cov_factor
    away = beliefs.mean - np.einsum("e,kei->ki", share, beliefs.mean)[:, None]
    if factor.ndim == 3:
        of_weights = np.einsum("e,kei->ki", share, factor + away**2)
        return _diagonal_in_units(beliefs, of_weights)
    covariance = factor @ factor.transpose(0, 1, 3, 2) + away[..., None] * away[..., None, :]
    mixed = np.einsum("e,keij->kij", share, covariance)
    once = _in_units(beliefs, mixed)
    both = _in_units(beliefs, once.transpose(0, 2, 1))
    return both if not len(beliefs.rate) else (both + both.transpose(0, 2, 1)) / 2


def _in_units(beliefs: Beliefs, weights: np.ndarray) -> np.ndarray:
    """Map the last axis of weights of features in running units to those of the contexts."""
    n_features = len(beliefs.rate)
    if not n_features:
        return weights
    mapped = weights.copy()
    mapped[..., :n_features] *= beliefs.rate
    if len(beliefs.centre):
        mapped[..., -1] -= mapped[..., :n_features] @ beliefs.centre
    return mapped


def _diagonal_in_units(beliefs: Beliefs, variance: np.ndarray) -> np.ndarray:
    """Map variances of uncorrelated weights likewise."""
    n_features = len(beliefs.rate)
    if not n_features:
        return variance
    mapped = variance.copy()
    mapped[:, :n_features] *= beliefs.rate**2
    if len(beliefs.centre):
        mapped[:, -1] += mapped[:, :n_features] @ beliefs.centre**2
    return mapped


class ArmLearner(PosteriorPolicy):
    """Learns one model per arm from ordered events; how they are used is up to the policy."""

    covariance: str
    fit_intercept: bool
    prior_scale: Any
    prior_variance: Any
    standardize: bool | str
    _beliefs: Beliefs

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its arrays are its own, too."""
        state = super().__getstate__()
        if "_beliefs" in state:
            arrays = state["_beliefs"]
            state["_beliefs"] = self._guard.read(lambda: copied(arrays))
        return state

    @property
    def coef_(self) -> np.ndarray:
        """Posterior means of the features' weights, of shape (n_arms, n_features)."""
        check_is_fitted(self)
        return mean_weights(self._beliefs)[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior means of the constant feature's weight, of shape (n_arms,)."""
        check_is_fitted(self)
        weights = mean_weights(self._beliefs)
        if weights.shape[1] == self.n_features_in_:
            return np.zeros(len(weights))
        return weights[:, -1].copy()

    @property
    def covariance_(self) -> np.ndarray:
        """Posterior covariance of each arm's weights, or its diagonal; the constant's last."""
        check_is_fitted(self)
        return weight_covariance(self._beliefs)

    @property
    def scale_weights_(self) -> np.ndarray:
        """Weight of each prior scale by its evidence, of shape (n_scales,)."""
        check_is_fitted(self)
        return self._beliefs.share.copy()

    def _start(self) -> None:
        prior = read_prior(self, self.n_features_in_)
        self._beliefs = no_beliefs(
            self.n_features_in_ + bool(self.fit_intercept),
            self.covariance == "full",
            len(prior.variance),
            self.n_features_in_ if self.standardize else 0,
            centred=bool(self.fit_intercept) and self.standardize != "scale",
        )

    def _keep_arms(self, kept: np.ndarray) -> None:
        self._beliefs = only_arms(self._beliefs, kept)

    def _beliefs_about(self, codes: Codes) -> Beliefs:
        if len(codes) == len(self._codes):
            return self._beliefs
        from skbandit.bandit._posterior import with_arms

        return with_arms(self._beliefs, list(codes)[len(self._codes) :], self._prior())

    def _prior(self) -> Prior:
        prior = read_prior(self, self.n_features_in_)
        n_scales = len(self._beliefs.share)
        if len(prior.variance) != n_scales:
            raise ValueError(
                f"prior_scale={self.prior_scale!r} and prior_variance={self.prior_variance!r} are "
                f"{len(prior.variance)} priors, but the policy has learned with {n_scales}: call "
                "fit to start afresh."
            )
        return prior

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        from skbandit.bandit._passes import learn_rows

        if len(events):
            action = self._number(events.arms)
            prior, rule = self._prior(), read_rule(self)
            self._alphas(len(events))  # raise errors now, not in the next choice
            # Learning works in place, and an interrupt may follow it. Copy where that costs less
            # than learning; delayed events always, as they would be learned twice, and sparse
            # ones, which are learned in several calls.
            apart = bool(self._waiting) or len(events) >= len(self._codes) or issparse(events.X)
            if apart:
                self._beliefs = copied(self._beliefs)
            with nullcontext() if apart else self._guard.writing():
                learn_rows(
                    events.X, action, events.reward, events.weight, self._beliefs, prior, rule,
                    at_once=not apart,
                )  # fmt: skip

    def _replay(
        self, request: ReplayRequest, log: EncodedLog, codes: Codes, rule: Rule, n_choices: int
    ) -> tuple[np.ndarray, int]:
        from skbandit.bandit._passes import replay_present_features

        beliefs = self._beliefs._replace(counters=self._beliefs.counters.copy())
        beliefs.counters[N_CHOICES] = n_choices
        alphas = self._alphas(len(request.rows))
        accepted, n_seen, codes, beliefs = replay_present_features(
            request, log, len(self._codes), codes, alphas, beliefs, self._prior(), rule
        )
        self._beliefs = beliefs
        self._know(codes)
        return accepted, n_seen
