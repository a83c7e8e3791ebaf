"""Off-policy estimates as quotients of sums over events, so that parts of a log add up.

Of each event are known the reward r, the weight w = π(a|x)/p, the probability of the logged action
under the policy that is judged over that under the policy that logged it, and for the doubly robust
estimate predictions q of rewards. Each estimate of the policy's mean reward is Σz/Σd over events:

=====================  ==================================  ===
inverse propensity     z = w r                             d = 1
self-normalised        z = w r                             d = w
doubly robust          z = Σ_a π(a|x) q(x,a) + w (r − q)   d = 1
=====================  ==================================  ===

Its variance is that of the residuals e = z − (Σz/Σd) d over (Σd)² (delta method; exact for d = 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class EventSums:
    """What has to be known of some events; sums of disjoint events add up to those of all.

    Second moments are those of residuals, so that a mean much larger than the spread of the
    rewards costs no digits (as Chan, Golub and LeVeque 1983 do for a variance).
    """

    n: int
    value: float  # Σz / Σd, or 0 where Σd = 0
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
        """The same events, with residuals from another value: e − δd."""
        delta = value - self.value
        ee = self.ee - 2 * delta * self.ed + delta**2 * self.dd
        return replace(self, value=value, ed=self.ed - delta * self.dd, ee=ee)

    @property
    def standard_error(self) -> float:
        """Of `value`; nan for a single event."""
        if self.n < 2 or self.d <= 0:
            return np.nan
        return float(np.sqrt(self.ee * self.n / (self.n - 1)) / self.d)

    @property
    def effective_sample_size(self) -> float:
        """(Σw)²/Σw²: as many events of equal weights say as much (Kish 1965)."""
        return self.weight**2 / self.weight2 if self.weight2 > 0 else 0.0

    @property
    def mean_weight(self) -> float:
        """An estimate of 1, if propensities are right and every choice of the policy was logged."""
        return self.weight / self.n

    @property
    def mean_weight_error(self) -> float:
        """The standard error of `mean_weight`."""
        variance = max(self.weight2 / self.n - self.mean_weight**2, 0.0)
        return float(np.sqrt(variance / self.n))


def ips_sums(reward: np.ndarray, weight: np.ndarray) -> EventSums:
    """Inverse propensity scores (Horvitz and Thompson 1952)."""
    return _sums(weight * reward, np.ones(len(reward)), reward, weight)


def snips_sums(reward: np.ndarray, weight: np.ndarray) -> EventSums:
    """Self-normalised inverse propensity scores (Swaminathan and Joachims 2015)."""
    return _sums(weight * reward, weight, reward, weight)


def doubly_robust_sums(
    reward: np.ndarray, weight: np.ndarray, q_logged: np.ndarray, q_policy: np.ndarray
) -> EventSums:
    """The doubly robust estimate (Dudík, Langford and Li 2011).

    `q_logged` are predictions for the logged actions, `q_policy` the means of predictions over
    the policy's choices; neither may have seen the event's reward.
    """
    z = q_policy + weight * (reward - q_logged)
    return _sums(z, np.ones(len(reward)), reward, weight)


def _sums(z: np.ndarray, d: np.ndarray, reward: np.ndarray, weight: np.ndarray) -> EventSums:
    """Sums over events of numerators z and denominators d."""
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
