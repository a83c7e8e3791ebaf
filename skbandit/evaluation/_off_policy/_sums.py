"""Off-policy estimators as sums over events, so that parts of a log add up.

Each event has a reward r and a weight w = π(a|x)/p: the probability of the logged action under the
evaluated policy, divided by that under the logging policy. Some estimators also need predicted
rewards q, with Q = Σ_a π(a|x) q(x,a). Each estimate of the policy's mean reward is Σb/n + Σz/Σd:

==============================================  ===  =========================  =====
inverse propensity (Horvitz & Thompson 1952)     0   w r                        1
self-normalized (Swaminathan & Joachims 2015)    0   w r                        w
doubly robust (Dudík, Langford & Li 2011)        Q   w (r − q)                  1
self-normalized doubly robust                    Q   w (r − q)                  w
switch-DR (Wang, Agarwal & Dudík 2017)           Q   w (r − q) 1[w ≤ τ]         1
DR with optimistic shrinkage (Su et al. 2020)    Q   λ w/(w² + λ) (r − q)       1
==============================================  ===  =========================  =====

Its variance is Σ(e/d̄ + u)²/n² with residuals e = z − (Σz/Σd) d and u = b − b̄, where bars are means
(delta method; exact for d = 1).

`skbandit.selection.logged_costs` has the same formulas for another purpose: a cost per row and ad
to train on, without a policy to evaluate, where SNIPS normalizes the weights of each ad.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._guaranteed import RewardEvidence
from skbandit.logs import shrunk_weights
from skbandit.utils._trials import TINY, Dependence, design_effect

LARGEST_NUMERATOR = 1e145
"""Largest absolute numerator z of an event, in units of the reward; beyond it, sums of squares may
overflow."""

SWITCH_THRESHOLDS = (np.inf, *(2.0**k for k in range(10, -1, -1)), 0.0)
"""Thresholds τ among which "switch_dr" chooses, in units of the weight: from infinity, which is
doubly robust, by powers of 2, to 0, which is the mean prediction."""

SHRINKAGES = (np.inf, *(4.0**k for k in range(12, -1, -1)), 0.0)
"""λ among which "dr_shrinkage" chooses, in units of the squared weight, likewise; weights above
√λ are more than halved."""

_FACTOR = np.sqrt(6) - 1

CONFIDENCE_WIDTH = 1.0
"""Confidence width of an estimate, in standard errors. The larger, the more bias passes as noise:
with the paper's 2, estimates that differ by five standard errors may agree, and in simulations the
mean prediction was chosen nearly always."""


@dataclass(frozen=True)
class EventSums:
    """Sufficient statistics of a set of events; those of disjoint sets add up.

    Second moments are centered, so that a mean much larger than the spread of the rewards costs no
    precision (as in Chan, Golub and LeVeque 1983 for a variance).
    """

    n: int
    base: float  # b̄ = Σb / n, or 0 if n = 0
    ratio: float  # Σz / Σd, or 0 if Σd = 0
    d: float  # Σd
    dd: float  # Σd²
    ed: float  # Σe d
    ee: float  # Σe²
    du: float  # Σd u
    eu: float  # Σe u
    uu: float  # Σu²
    weight: float  # Σw
    weight2: float  # Σw²
    reward: float  # Σr

    def __add__(self, other: EventSums) -> EventSums:
        n, d = self.n + other.n, self.d + other.d
        base = (self.base * self.n + other.base * other.n) / n if n > 0 else 0.0
        ratio = (self.ratio * self.d + other.ratio * other.d) / d if d > 0 else 0.0
        mine, theirs = vars(self._about(base, ratio)), vars(other._about(base, ratio))
        sums = EventSums(**{name: mine[name] + theirs[name] for name in mine})
        return replace(sums, base=base, ratio=ratio)

    def _about(self, base: float, ratio: float) -> EventSums:
        """Return the events with residuals u − ε and e − δd about other values."""
        epsilon, delta = base - self.base, ratio - self.ratio
        # residuals about the events' own values add up to zero: Σe = Σu = 0
        return replace(
            self,
            base=base,
            ratio=ratio,
            ed=self.ed - delta * self.dd,
            ee=self.ee - 2 * delta * self.ed + delta**2 * self.dd,
            du=self.du - epsilon * self.d,
            eu=self.eu - delta * self.du + epsilon * delta * self.d,
            uu=self.uu + epsilon**2 * self.n,
        )

    @property
    def value(self) -> float:
        """The estimate, Σb/n + Σz/Σd."""
        return self.base + self.ratio

    @property
    def standard_error(self) -> float:
        """Standard error of `value`; nan for a single event."""
        if self.n < 2 or self.d <= 0:
            return np.nan
        scale = self.n / self.d
        squares = self.ee * scale**2 + 2 * self.eu * scale + self.uu
        return float(np.sqrt(max(squares, 0.0) / (self.n - 1) / self.n))

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
class GroupSums:
    """Sums over groups of dependent events; those of disjoint sets of events add up.

    Attributes
    ----------
    table : DataFrame
        Columns n, b, z and d, one row per group.
    """

    table: pd.DataFrame

    @classmethod
    def of(cls, group: Any, b: np.ndarray, z: np.ndarray, d: np.ndarray) -> GroupSums:
        """Return sums over events of these labels of groups, with terms as in `sum_events`."""
        code, labels = pd.factorize(group)
        columns = {"n": np.ones(len(code)), "b": b, "z": z, "d": d}
        sums = {name: np.bincount(code, terms, len(labels)) for name, terms in columns.items()}
        return cls(pd.DataFrame(sums, index=pd.Index(np.asarray(labels))))

    def __add__(self, other: GroupSums) -> GroupSums:
        both = pd.concat([self.table, other.table])
        return GroupSums(both.groupby(level=0, sort=False).sum())

    def dependence(self, events: EventSums) -> Dependence:
        """Return what the groups do to the standard error of the estimate from all their events."""
        n, b, z, d = (self.table[name].to_numpy() for name in ("n", "b", "z", "d"))
        if events.d <= 0:
            return Dependence(0.0, 0.0, 1.0)
        rows, groups = events.d**2 / events.dd, float(d.sum() ** 2 / (d @ d))
        if groups >= rows * (1.0 - TINY):
            return Dependence(rows, rows, 1.0)
        if groups <= 1.0 + TINY:
            return Dependence(rows, 1.0, rows)
        scale = events.n / events.d
        of_rows = events.ee * scale**2 + 2 * events.eu * scale + events.uu
        of_group = (((z - events.ratio * d) * scale + b - events.base * n) ** 2).sum()
        if of_rows <= TINY**2 * events.n * (abs(events.base) + abs(events.ratio)) ** 2:
            return Dependence(rows, groups, rows / groups)
        return Dependence(rows, groups, design_effect(of_group, of_rows, groups, rows))


@dataclass(frozen=True, eq=False)
class WeightedEvents:
    """Reward, weight and prediction of each logged event."""

    reward: np.ndarray  # r, (n_events,)
    weight: np.ndarray  # w = π(a|x)/p, (n_events,)
    largest_weight: float = 1.0  # that is possible
    q_logged: np.ndarray | None = None  # q(x, a) of the logged action, (n_events,)
    q_policy: np.ndarray | None = None  # Σ_a π(a|x) q(x, a), (n_events,)


def keep_weights(weight: np.ndarray, setting: float) -> np.ndarray:
    """Weights as they are."""
    return weight


def switch_weights(weight: np.ndarray, threshold: float) -> np.ndarray:
    """Weights of at most a threshold τ, and 0 in place of larger ones."""
    return np.where(weight <= threshold, weight, 0.0)


@dataclass(frozen=True, eq=False)
class Estimator:
    """An off-policy estimator Σb/n + Σz/Σd, by the terms of each event.

    Parameters
    ----------
    needs_predictions : bool
        Whether b = Q and z = w (r − q), of rewards predicted by models that have not seen the
        event; else b = 0 and z = w r.
    normalized : bool, default=False
        Whether d = w, not 1.
    parameter : str, default=None
        Name of the parameter of `change_weights`.
    change_weights : callable, default=keep_weights
        Weights in place of w in z, given w and the parameter.
    settings : tuple of float, default=(nan,)
        Values of the parameter, from no bias to the least variance; nan if there is none.
    adaptive : bool, default=False
        Whether one of the settings is chosen by SLOPE; else it is the last one.
    """

    needs_predictions: bool
    normalized: bool = False
    parameter: str | None = None
    change_weights: Callable[[np.ndarray, float], np.ndarray] = keep_weights
    settings: tuple[float, ...] = (np.nan,)
    adaptive: bool = False

    def sums(self, events: WeightedEvents) -> tuple[EventSums, ...]:
        """Return sums over the events, one per setting."""
        sums = []
        for setting in self.settings:
            b, z, d = self._terms(events, setting)
            sums.append(sum_events(b, z, d, events))
        return tuple(sums)

    def group_sums(self, events: WeightedEvents, group: Any) -> tuple[GroupSums, ...]:
        """Return sums over groups of the events, one per setting."""
        return tuple(
            GroupSums.of(group, *self._terms(events, setting)) for setting in self.settings
        )

    def influence(self, events: WeightedEvents) -> np.ndarray:
        """Part e/d̄ + u of each event in the error of the least biased estimate, (n_events,)."""
        b, z, d = self._terms(events, self.settings[0])
        return (z - z.sum() / d.sum() * d) / d.mean() + b - b.mean()

    def factor(self, events: WeightedEvents) -> np.ndarray:
        """Factor of each event's reward in the least biased estimate, (n_events,)."""
        total = events.weight.sum() if self.normalized else len(events.weight)
        return self.change_weights(events.weight, self.settings[0]) / total

    def variance(self, evidence: RewardEvidence) -> float:
        """Variance of what is weighted: rewards, or the errors of their predictions."""
        return evidence.errors[1] if self.needs_predictions else evidence.variance

    def _terms(self, events: WeightedEvents, setting: float) -> tuple[np.ndarray, ...]:
        """Return base terms b, numerators z and denominators d of the events."""
        weight, value = events.weight, events.reward
        b = np.zeros(len(value))
        if self.needs_predictions:
            assert events.q_policy is not None and events.q_logged is not None
            b, value = events.q_policy, value - events.q_logged
        d = weight if self.normalized else np.ones(len(value))
        return b, self.change_weights(weight, setting) * value, d

    def at(self, value: Any) -> Estimator:
        """Return the estimator with a given setting, which follows the unbiased one, or "slope"."""
        if isinstance(value, str) and value == "slope":
            return self
        if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
            raise ValueError(
                f"{self.parameter} must be a number of at least 0 or 'slope', got {value!r}."
            )
        return replace(self, settings=(np.inf, float(value)), adaptive=False)


METHODS = {
    "snips": Estimator(needs_predictions=False, normalized=True),
    "ips": Estimator(needs_predictions=False),
    "dr": Estimator(needs_predictions=True),
    "sndr": Estimator(needs_predictions=True, normalized=True),
    "switch_dr": Estimator(
        needs_predictions=True,
        parameter="threshold",
        change_weights=switch_weights,
        settings=SWITCH_THRESHOLDS,
        adaptive=True,
    ),
    "dr_shrinkage": Estimator(
        needs_predictions=True,
        parameter="shrinkage",
        change_weights=shrunk_weights,
        settings=SHRINKAGES,
        adaptive=True,
    ),
}
"""By the name of `method`; `off_policy_blocks` computes all of them."""


def sum_events(b: np.ndarray, z: np.ndarray, d: np.ndarray, events: WeightedEvents) -> EventSums:
    """Return sums over events with base terms b, numerators z and denominators d."""
    reward, weight = events.reward, events.weight
    for terms in (b, z):
        if np.abs(terms).max(initial=0.0) > LARGEST_NUMERATOR:
            row = int(np.abs(terms).argmax())
            raise ValueError(
                f"the weighted reward of row {row}, {terms[row]:g}, has a square that overflows: "
                f"rescale the rewards; this one is {reward[row]:g}, with the weight "
                f"{weight[row]:g}."
            )
    total = float(d.sum())
    base = float(b.mean()) if len(b) else 0.0
    ratio = float(z.sum()) / total if total > 0 else 0.0
    u, e = b - base, z - ratio * d
    return EventSums(
        n=len(reward),
        base=base,
        ratio=ratio,
        d=total,
        dd=float(d @ d),
        ed=float(e @ d),
        ee=float(e @ e),
        du=float(u @ d),
        eu=float(u @ e),
        uu=float(u @ u),
        weight=float(weight.sum()),
        weight2=float(weight @ weight),
        reward=float(reward.sum()),
    )


# SLOPE: the choice among estimates of one quantity that trade bias for variance.
#
# Su, Srinath & Krishnamurthy (2020), "Adaptive estimator selection for off-policy evaluation". The
# estimates θ_1, θ_2, ... are in order of increasing bias and decreasing confidence width c. An
# estimate is admissible if it agrees with all less biased ones up to their widths, |θ_k - θ_j| ≤
# c_k + (√6 - 1) c_j for j < k. The last estimate before the first inadmissible one is chosen. Its
# error is then at most a constant times the smallest sum of bias and width, without any knowledge
# of the bias.


def slope(values: np.ndarray, errors: np.ndarray) -> int:
    """Index of the chosen estimate, given values and standard errors of shape (n_estimates,).

    The first estimate is the least biased one. Errors are made nonincreasing, as the order of the
    estimates guarantees.
    """
    width = CONFIDENCE_WIDTH * np.minimum.accumulate(errors)
    for k in range(1, len(values)):
        if (np.abs(values[k] - values[:k]) > width[k] + _FACTOR * width[:k]).any():
            return k - 1
    return len(values) - 1
