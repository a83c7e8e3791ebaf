"""Sums over a log for one or all estimators, the evidence for intervals, and the estimates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from skbandit.evaluation._off_policy._estimate import OffPolicyEstimate, estimate_of, shortcoming
from skbandit.evaluation._off_policy._sums import (
    ESTIMATORS,
    Estimator,
    EventSums,
    WeightedEvents,
)
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog
from skbandit.evaluation._reward_evidence import (
    Range,
    RewardEvidence,
    check_range,
    read_range,
)
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import cross_fitted_rewards


@dataclass(frozen=True, eq=False)
class LogSums:
    """What estimates need of a log; those of disjoint sets of events add up."""

    estimators: Mapping[str, tuple[EventSums, ...]]  # by name, one per setting
    evidence: RewardEvidence

    @classmethod
    def of(
        cls,
        events: WeightedEvents,
        bounds: Range | None,
        estimators: Mapping[str, Estimator] = ESTIMATORS,
    ) -> LogSums:
        """Sums over events, for the estimators that they suffice for."""
        found = {
            name: estimator.sums(events)
            for name, estimator in estimators.items()
            if events.q_policy is not None or not estimator.needs_predictions
        }
        evidence = RewardEvidence.of(events.reward, events.weight, bounds, events.largest_weight)
        return cls(found, evidence)

    def __add__(self, other: LogSums) -> LogSums:
        return LogSums(
            {
                name: tuple(a + b for a, b in zip(sums, other.estimators[name], strict=True))
                for name, sums in self.estimators.items()
            },
            self.evidence + other.evidence,
        )

    def estimates(
        self, estimators: Mapping[str, Estimator] = ESTIMATORS
    ) -> dict[str, OffPolicyEstimate]:
        """The estimates by name."""
        return {
            name: estimate_of(name, estimators[name], sums, self.evidence)
            for name, sums in self.estimators.items()
        }

    @property
    def shortcoming(self) -> str:
        """Why the events are insufficient for an estimate; empty if they suffice."""
        return shortcoming(next(iter(self.estimators.values()))[0])


@dataclass(frozen=True, eq=False)
class RewardModels:
    """How rewards are predicted, by models fitted without the event."""

    model: Any
    X: Any
    cv: Any
    random_state: Any

    def predictions(self, name: str, evaluated: EvaluatedLog) -> np.ndarray:
        """Predicted rewards, of shape (n_events, n_arms)."""
        if self.X is None:
            raise ValueError("X is None: the reward model needs contexts.")
        if evaluated.of_arms is None:
            raise ValueError(
                f"{name} needs the probabilities of all arms, of shape (n_events, n_arms), got "
                "only those of the logged actions: use ips or snips."
            )
        log = evaluated.log
        return cross_fitted_rewards(
            self.model,
            self.X,
            log.action,
            log.reward,
            evaluated.of_arms.shape[1],
            cv=self.cv,
            random_state=self.random_state,
        )


def read_setting(value: Any, name: str) -> tuple[float, ...] | None:
    """Settings of which the last is used, after the unbiased one; None to choose by SLOPE."""
    if isinstance(value, str) and value == "slope":
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(f"{name} must be a number of at least 0 or 'slope', got {value!r}.")
    return np.inf, float(value)


def estimates(
    name: str,
    evaluated: EvaluatedLog,
    reward_range: Any,
    models: RewardModels | None = None,
    settings: tuple[float, ...] | None = None,
) -> OffPolicyEstimate:
    """The estimate of each reward, in that of the first, after a warning if events are few."""
    estimator = ESTIMATORS[name]
    if settings is not None:
        estimator = replace(estimator, settings=settings, adaptive=False)
    chosen = {name: estimator}
    bounds = read_range(reward_range)
    parts = {}
    for label, part in evaluated.by_reward().items():
        if bounds is not None:
            check_range(part.log.reward, bounds)
        q = None if models is None else models.predictions(name, part)
        parts[label] = LogSums.of(part.events(q), bounds, chosen)
    first, *_ = parts.values()
    if first.shortcoming:
        warnings.warn(f"{name}: {first.shortcoming}", ReplayCoverageWarning, stacklevel=3)
    found = {label: sums.estimates(chosen)[name] for label, sums in parts.items()}
    named = {label: estimate for label, estimate in found.items() if label is not None}
    return replace(next(iter(found.values())), others=named or None)
