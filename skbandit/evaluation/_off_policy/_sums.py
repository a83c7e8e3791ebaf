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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from skbandit.evaluation._score import Moments
from skbandit.logs import shrunk_weights
from skbandit.utils._trials import Dependence, design_effect
from skbandit.utils._validation import ROUNDING

LARGEST_NUMERATOR = 1e145
"""Largest absolute numerator z of an event, in units of the reward; beyond it, sums of squares may
overflow."""

SWITCH_THRESHOLDS = (np.inf, *(2.0**k for k in range(10, -1, -1)), 0.0)
"""Thresholds τ among which "switch_dr" chooses, in units of the weight: from infinity, which is
doubly robust, by powers of 2, to 0, which is the mean prediction."""

SHRINKAGES = (np.inf, *(4.0**k for k in range(12, -1, -1)), 0.0)
"""λ among which "dr_shrinkage" chooses, in units of the squared weight, likewise; weights above
√λ are more than halved."""

FEW_EVENTS = 30
"""Effective sample size below which a warning says that the normal approximation is unreliable."""

FAR = 5
"""A mean weight that is more standard errors from 1 raises a warning."""

_FACTOR = np.sqrt(6) - 1

CONFIDENCE_WIDTH = 1.0
"""Confidence width of an estimate, in standard errors. The larger, the more bias passes as noise:
with the paper's 2, estimates that differ by five standard errors may agree, and in simulations the
mean prediction was chosen nearly always."""


@dataclass(frozen=True, eq=False)
class EventSums:
    """Sufficient statistics of a set of events; those of disjoint sets add up."""

    ratio: float  # Σz / Σd, or 0 if Σd = 0
    moments: Moments  # of b, e, d, w and r
    by_group: pd.DataFrame | None = None  # sums of 1, b, z and d, one row per group

    @classmethod
    def of(
        cls, terms: Sequence[np.ndarray], events: WeightedEvents, group: Any = None
    ) -> EventSums:
        """Return sums over events with terms b, z and d; `group` labels dependent ones."""
        b, z, d = terms
        for values in (b, z):
            if np.abs(values).max(initial=0.0) > LARGEST_NUMERATOR:
                row = int(np.abs(values).argmax())
                raise ValueError(
                    f"the weighted reward of row {row}, {values[row]:g}, has a square that "
                    f"overflows: rescale the rewards; this one is {events.reward[row]:g}, with the "
                    f"weight {events.weight[row]:g}."
                )
        ratio = float(z.sum() / d.sum()) if d.any() else 0.0
        moments = Moments.of(b, z - ratio * d, d, events.weight, events.reward)
        if group is None:
            return cls(ratio, moments)
        table = pd.DataFrame({"n": np.ones(len(b)), "b": b, "z": z, "d": d})
        return cls(ratio, moments, table.groupby(np.asarray(group), sort=False).sum())

    def __add__(self, other: EventSums) -> EventSums:
        d = self.moments.n * self.moments.mean[2], other.moments.n * other.moments.mean[2]
        ratio = (self.ratio * d[0] + other.ratio * d[1]) / sum(d) if sum(d) > 0 else 0.0
        table = None
        if self.by_group is not None and other.by_group is not None:
            both = pd.concat([self.by_group, other.by_group])
            table = both.groupby(level=0, sort=False).sum()
        return EventSums(ratio, self._about(ratio) + other._about(ratio), table)

    def _about(self, ratio: float) -> Moments:
        """Return the moments with residuals e of another ratio."""
        shear = np.eye(len(self.moments.mean))
        shear[1, 2] = self.ratio - ratio
        return self.moments.mapped(shear)

    @property
    def value(self) -> float:
        """The estimate, Σb/n + Σz/Σd."""
        return float(self.moments.mean[0]) + self.ratio

    @property
    def squares(self) -> float:
        """Σ(e/d̄ + u)² of the residuals."""
        direction = np.array([1.0, 1.0 / self.moments.mean[2]])
        return float(max(direction @ self.moments.products[:2, :2] @ direction, 0.0))

    @property
    def standard_error(self) -> float:
        """Standard error of `value`; nan for a single event."""
        n = self.moments.n
        if n < 2 or self.moments.mean[2] <= 0:
            return np.nan
        return float(np.sqrt(self.squares / (n - 1) / n))

    @property
    def effective_sample_size(self) -> float:
        """(Σw)²/Σw²: number of equally weighted events with the same information."""
        return self._size(3)

    def _size(self, column: int) -> float:
        """Return the number of equal entries that tell as much as a column (Kish 1965)."""
        mean, n = self.moments.mean[column], self.moments.n
        squares = self.moments.products[column, column] + n * mean**2
        return float((n * mean) ** 2 / squares) if squares > 0 else 0.0

    @property
    def shortcoming(self) -> str:
        """Why the events are insufficient for an estimate; empty if they suffice."""
        size, n, mean = self.effective_sample_size, self.moments.n, self.moments.mean[3]
        if size == 0:
            return "the policy never chooses a logged action, so the log has no information on it."
        if size < FEW_EVENTS:
            return (
                f"the {n:,} events count as {size:.1f} only, as the policy rarely chooses the "
                "logged action or the weights are very unequal: rely neither on the estimate nor "
                "on its standard error."
            )
        error = float(np.sqrt(self.moments.variance[3] / n))
        if abs(mean - 1) > FAR * error:
            return (
                f"the mean weight is {mean:.3f} ± {error:.3f}, expected 1: the propensities are "
                "wrong, or the policy chooses arms that were never logged. (If only a share of the "
                "events was kept, and the propensities are multiplied by it, it is one over that "
                "share: method='snips' is then right.)"
            )
        return ""

    @property
    def dependence(self) -> Dependence:
        """Factor by which dependent events raise the standard error."""
        rows = self._size(2)
        if self.by_group is None or rows == 0:
            return Dependence(rows, rows, 1.0)
        n, b, z, d = self.by_group[["n", "b", "z", "d"]].to_numpy().T
        groups, mean = float(d.sum() ** 2 / (d @ d)), self.moments.mean
        if groups >= rows * (1.0 - ROUNDING):
            return Dependence(rows, rows, 1.0)
        if groups <= 1.0 + ROUNDING:
            return Dependence(rows, 1.0, rows)
        of_group = (((z - self.ratio * d) / mean[2] + b - mean[0] * n) ** 2).sum()
        scale = abs(float(mean[0])) + abs(self.ratio)
        if self.squares <= ROUNDING**2 * self.moments.n * scale**2:
            return Dependence(rows, groups, rows / groups)
        return Dependence(rows, groups, design_effect(of_group, self.squares, groups, rows))


@dataclass(frozen=True, eq=False)
class WeightedEvents:
    """Reward, weight and prediction of each logged event."""

    reward: np.ndarray  # r, (n_events,)
    weight: np.ndarray  # w = π(a|x)/p, (n_events,)
    largest_weight: float = 1.0  # that is possible
    q_logged: np.ndarray | None = None  # q(x, a) of the logged action, (n_events,)
    q_policy: np.ndarray | None = None  # Σ_a π(a|x) q(x, a), (n_events,)


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
    change_weights : callable, default=shrunk_weights
        Weights in place of w in z, given w and the parameter.
    settings : tuple of float, default=(inf,)
        Values of the parameter, from no bias, of weights as they are, to the least variance.
    adaptive : bool, default=False
        Whether one of the settings is chosen by SLOPE; else it is the last one.
    """

    needs_predictions: bool
    normalized: bool = False
    parameter: str | None = None
    change_weights: Callable[[np.ndarray, float], np.ndarray] = shrunk_weights
    settings: tuple[float, ...] = (np.inf,)
    adaptive: bool = False

    def sums(self, events: WeightedEvents, group: Any = None) -> tuple[EventSums, ...]:
        """Return sums over the events, one per setting; `group` labels dependent ones."""
        return tuple(
            EventSums.of(self._terms(events, setting), events, group) for setting in self.settings
        )

    def influence(self, events: WeightedEvents) -> np.ndarray:
        """Part e/d̄ + u of each event in the error of the least biased estimate, (n_events,)."""
        b, z, d = self._terms(events, self.settings[0])
        return (z - z.sum() / d.sum() * d) / d.mean() + b - b.mean()

    def factor(self, events: WeightedEvents) -> np.ndarray:
        """Factor of each event's reward in the least biased estimate, (n_events,)."""
        total = events.weight.sum() if self.normalized else len(events.weight)
        return self.change_weights(events.weight, self.settings[0]) / total

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
        settings=SHRINKAGES,
        adaptive=True,
    ),
}
"""Estimators by the name of `method`; `off_policy_blocks` computes all of them."""


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
