"""Off-policy estimators as ratios of sums over events, so that parts of a log add up.

Each event has a reward r and a weight w = π(a|x)/p: the probability of the logged action under the
evaluated policy, divided by that under the logging policy. The doubly robust estimator also needs
predicted rewards q. Each estimate of the policy's mean reward is Σz/Σd over events:

=====================================================  ==================================  =====
inverse propensity (Horvitz and Thompson 1952)         z = w r                             d = 1
self-normalised (Swaminathan and Joachims 2015)        z = w r                             d = w
doubly robust (Dudík, Langford and Li 2011)            z = Σ_a π(a|x) q(x,a) + w (r − q)   d = 1
=====================================================  ==================================  =====

Its variance is Σe²/(Σd)² with residuals e = z − (Σz/Σd) d (delta method; exact for d = 1).

`skbandit.selection.logged_costs` has the same formulas for another purpose: a cost per row and ad
to train on, without a policy to evaluate, where SNIPS normalises the weights of each ad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

LARGEST_NUMERATOR = 1e145
"""Largest absolute numerator z of an event, in units of the reward; beyond it, sums of squares may
overflow."""


@dataclass(frozen=True)
class EventSums:
    """Sufficient statistics of a set of events; those of disjoint sets add up.

    Second moments are centred, so that a mean much larger than the spread of the rewards costs no
    precision (as in Chan, Golub and LeVeque 1983 for a variance).
    """

    n: int
    value: float  # Σz / Σd, or 0 if Σd = 0
    d: float  # Σd
    dd: float  # Σd²
    ed: float  # Σe d
    ee: float  # Σe²
    weight: float  # Σw
    weight2: float  # Σw²
    reward: float  # Σr

    def __add__(self, other: EventSums) -> EventSums:
        d = self.d + other.d
        value = (self.value * self.d + other.value * other.d) / d if d > 0 else 0.0
        one, two = self._about(value), other._about(value)
        return EventSums(
            n=one.n + two.n,
            value=value,
            d=d,
            dd=one.dd + two.dd,
            ed=one.ed + two.ed,
            ee=one.ee + two.ee,
            weight=one.weight + two.weight,
            weight2=one.weight2 + two.weight2,
            reward=one.reward + two.reward,
        )

    def _about(self, value: float) -> EventSums:
        """The same events, with residuals about another value: e − δd."""
        delta = value - self.value
        ee = self.ee - 2 * delta * self.ed + delta**2 * self.dd
        return replace(self, value=value, ed=self.ed - delta * self.dd, ee=ee)

    @property
    def standard_error(self) -> float:
        """Standard error of `value`; nan for a single event."""
        if self.n < 2 or self.d <= 0:
            return np.nan
        return float(np.sqrt(self.ee * self.n / (self.n - 1)) / self.d)

    @property
    def effective_sample_size(self) -> float:
        """(Σw)²/Σw²: number of equally weighted events with the same information (Kish 1965)."""
        return self.weight**2 / self.weight2 if self.weight2 > 0 else 0.0

    @property
    def mean_weight(self) -> float:
        """Mean weight; its expectation is 1 if propensities and support are right."""
        return self.weight / self.n

    @property
    def mean_weight_error(self) -> float:
        """Standard error of `mean_weight`."""
        variance = max(self.weight2 / self.n - self.mean_weight**2, 0.0)
        return float(np.sqrt(variance / self.n))


@dataclass(frozen=True, eq=False)
class WeightedEvents:
    """What the estimators know of each logged event."""

    reward: np.ndarray  # r, (n_events,)
    weight: np.ndarray  # w = π(a|x)/p, (n_events,)
    q_logged: np.ndarray | None = None  # q(x, a) of the logged action, (n_events,)
    q_policy: np.ndarray | None = None  # Σ_a π(a|x) q(x, a), (n_events,)


@dataclass(frozen=True, eq=False)
class Estimator:
    """An off-policy estimator Σz/Σd, by its numerator z and denominator d per event."""

    z: Callable[[WeightedEvents], np.ndarray]
    d: Callable[[WeightedEvents], np.ndarray]
    needs_predictions: bool = False  # of rewards, by models that have not seen the event

    def sums(self, events: WeightedEvents) -> EventSums:
        """Sums over the events."""
        return _sums(self.z(events), self.d(events), events.reward, events.weight)


def _weighted_reward(events: WeightedEvents) -> np.ndarray:
    return events.weight * events.reward


def _corrected_prediction(events: WeightedEvents) -> np.ndarray:
    assert events.q_logged is not None and events.q_policy is not None  # needs_predictions
    return events.q_policy + events.weight * (events.reward - events.q_logged)


def _one(events: WeightedEvents) -> np.ndarray:
    return np.ones(len(events.reward))


def _weight(events: WeightedEvents) -> np.ndarray:
    return events.weight


IPS = Estimator(z=_weighted_reward, d=_one)
SNIPS = Estimator(z=_weighted_reward, d=_weight)
DOUBLY_ROBUST = Estimator(z=_corrected_prediction, d=_one, needs_predictions=True)

# By the name of the public function; `off_policy_blocks` computes all of them.
ESTIMATORS = {"ips": IPS, "snips": SNIPS, "doubly_robust": DOUBLY_ROBUST}


def _sums(z: np.ndarray, d: np.ndarray, reward: np.ndarray, weight: np.ndarray) -> EventSums:
    """Sums over events with numerators z and denominators d."""
    if np.abs(z).max(initial=0.0) > LARGEST_NUMERATOR:
        row = int(np.abs(z).argmax())
        raise ValueError(
            f"the weighted reward of row {row}, {z[row]:g}, has a square that overflows: rescale "
            f"the rewards; this one is {reward[row]:g}, with the weight {weight[row]:g}."
        )
    total = float(d.sum())
    value = float(z.sum()) / total if total > 0 else 0.0
    e = z - value * d
    return EventSums(
        n=len(reward),
        value=value,
        d=total,
        dd=float(d @ d),
        ed=float(e @ d),
        ee=float(e @ e),
        weight=float(weight.sum()),
        weight2=float(weight @ weight),
        reward=float(reward.sum()),
    )
