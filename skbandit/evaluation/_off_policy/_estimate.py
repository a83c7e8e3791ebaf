"""An off-policy estimate: mean reward, standard error and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skbandit.evaluation._difference import (
    EventParts,
    PolicyDifference,
    least_error,
    refuse_difference,
    refuse_other_kind,
    refuse_sequence,
)
from skbandit.evaluation._guaranteed import (
    Range,
    RewardEvidence,
    check_kind,
    check_range,
    clipped_interval,
    quantile_of,
)
from skbandit.evaluation._off_policy._sums import (
    METHODS,
    Estimator,
    EventSums,
    WeightedEvents,
    slope,
)
from skbandit.evaluation._off_policy._target_policy import EvaluatedLog
from skbandit.evaluation._score import Spread


@dataclass(frozen=True, repr=False)
class OffPolicyEstimate:
    """An estimate of a policy's mean reward from another policy's log.

    ``a - b`` is the difference of two policies estimated from one log, with its paired interval:
    a `PolicyDifference`.

    Parameters
    ----------
    estimator : str
        The method of `off_policy_value`, or the name of another function that returned it.
    mean_reward : float
        Estimated mean reward per event; nan if the policy could not have chosen any of the
        logged actions.
    standard_error : float
        Standard error of `mean_reward`, from the spread over events; that of "dr" where "slope"
        chose the setting.
    effective_sample_size : float
        (Σw)²/Σw² of the weights w = π/p: about this many events logged by the policy itself
        would be as informative.
    n_events : int
        Number of events in the log.
    logged_mean : float
        Mean reward of the log.
    setting : float, default=None
        The threshold of "switch_dr", or the shrinkage of "dr_shrinkage", as given or chosen.
    unbiased : (float, float), default=None
        For these two, mean and standard error of the unbiased "dr".
    evidence : object, default=None
        Internal: a summary of rewards and weights, for intervals other than the normal one.
    spread : (object, float), default=None
        Internal: how the variance of the mean reward depends on it, and its root as estimated.
    parts : object, default=None
        Internal: the contribution of each event, for differences; `off_policy_blocks` keeps none.
    freedom : float, default=inf
        Degrees of freedom of the interval: of g groups of dependent events of one size, g - 1.

    See Also
    --------
    off_policy_value : Returns such an estimate, by one of several methods.

    Examples
    --------
    >>> from skbandit.evaluation import OffPolicyEstimate
    >>> estimate = OffPolicyEstimate("snips", 0.06, 0.005, 950.0, 10_000, 0.05)
    >>> estimate
    <snips: mean reward 0.06 ± 0.005, 1.20 x the log's; 10,000 events count as 950>
    >>> print("{:.4f} to {:.4f}".format(*estimate.interval(0.95)))
    0.0502 to 0.0698
    """

    estimator: str
    mean_reward: float
    standard_error: float
    effective_sample_size: float
    n_events: int
    logged_mean: float
    setting: float | None = None
    unbiased: tuple[float, float] | None = None
    evidence: RewardEvidence | None = field(default=None, compare=False)
    spread: tuple[Spread, float] | None = field(default=None, compare=False)
    parts: EventParts | None = field(default=None, compare=False)
    freedom: float = np.inf

    def __sub__(self, other: Any) -> PolicyDifference:
        if not isinstance(other, OffPolicyEstimate):
            refuse_other_kind(other)
            return NotImplemented
        if self.parts is None or other.parts is None:
            refuse_difference(
                "and one of these was made from blocks or by hand, so that what each event "
                "contributed is not known"
            )
        error, sides, freedom = self.parts.less(other.parts)
        gap, error = self.mean_reward - other.mean_reward, least_error(error, sides)
        ours, theirs = (each.unbiased or (each.mean_reward,) for each in (self, other))
        return PolicyDifference(gap, error, self.n_events, ours[0] - theirs[0], freedom, sides)

    @property
    def lift(self) -> float:
        """`mean_reward` divided by `logged_mean`; nan if the latter is not positive."""
        return self.mean_reward / self.logged_mean if self.logged_mean > 0 else np.nan

    def interval(
        self, confidence_level: float = 0.95, *, kind: str = "normal"
    ) -> tuple[float, float]:
        """Confidence interval of the mean reward, within the range of the rewards.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Nominal coverage, in (0, 1).
        kind : {"normal", "sequence"}, default="normal"
            "normal" is a score interval, like Wilson's of a proportion: for many events in effect,
            it is `mean_reward` and its standard error times a normal quantile; it has width and
            covers also if rewards are rare, or none was seen. Of "switch_dr" and "dr_shrinkage",
            whose bias is unknown, it is the interval of "dr", extended to `mean_reward`, which
            "slope" keeps within one standard error of "dr".

            "sequence" covers at its level for any rewards, and after every number of events at
            once: look at it as often as you like, and stop when you like. It is two to three times
            as wide, and requires `reward_range`.

        Returns
        -------
        low, high : float
            Of "normal", nan if there is no estimate, or one group of events only.

        Raises
        ------
        ValueError
            If `kind` is "sequence" and `reward_range` was not given, or events are dependent.

        Notes
        -----
        "sequence" is a confidence sequence by betting (Waudby-Smith & Ramdas, 2024) on weighted
        rewards and on the policy's weights, whose mean is 1, and so is the same for all methods.
        It takes the log's smallest propensity for the smallest possible one.
        """
        check_kind(kind)
        quantile = quantile_of(confidence_level, self.freedom)
        if kind == "normal":
            bounds = (-np.inf, np.inf) if self.evidence is None else self.evidence.clipping
            mean, error = self.unbiased or (self.mean_reward, self.standard_error)
            low, high = mean - quantile * error, mean + quantile * error
            if self.spread is not None:
                spread, error = self.spread
                low, high = spread.limits(mean, error, quantile)
            if self.unbiased:
                low, high = min(low, self.mean_reward), max(high, self.mean_reward)
            return clipped_interval(low, high, bounds)
        if np.isfinite(self.freedom):
            refuse_sequence()
        if self.evidence is None:
            raise ValueError(
                f"an interval of kind={kind!r} needs the log, and this estimate was made by hand "
                "or is one of slates: use the estimator's own, or kind='normal'."
            )
        return self.evidence.interval(confidence_level)

    def __repr__(self) -> str:
        name = self.estimator + ("" if self.setting is None else f"({self.setting:g})")
        lift = "" if np.isnan(self.lift) else f", {self.lift:.2f} x the log's"
        return (
            f"<{name}: mean reward {self.mean_reward:.4g} ± {self.standard_error:.2g}"
            f"{lift}; {self.n_events:,} events count as {self.effective_sample_size:,.0f}>"
        )


def make_estimate(
    name: str,
    candidates: Sequence[EventSums],
    estimator: Estimator,
    evidence: RewardEvidence,
) -> OffPolicyEstimate:
    """Return the estimate given the sums over all events for each setting, one of which is chosen.

    The evidence is about the same events.
    """
    values = np.array([sums.value for sums in candidates])
    errors = np.array([sums.standard_error * np.sqrt(sums.dependence.deff) for sums in candidates])
    first, k = candidates[0], len(candidates) - 1
    freedom = np.inf if first.by_group is None else first.dependence.freedom
    spread = evidence.spread(
        first.effective_sample_size, of_errors=estimator.needs_predictions
    ).widened(first.dependence.deff)
    if estimator.adaptive:  # and no further from the unbiased estimate than its error
        near = np.flatnonzero(np.abs(values - values[0]) <= errors[0])
        k = int(near[near <= slope(values, errors)].max(initial=0))
    sums, setting, size = candidates[k], estimator.settings[k], candidates[k].effective_sample_size
    # a choice among estimates of unknown bias is no surer than the unbiased one
    error = float(errors[0 if estimator.adaptive else k] or spread.error(sums.value))
    return OffPolicyEstimate(
        estimator=name,
        mean_reward=sums.value if size > 0 else np.nan,
        standard_error=error if size > 0 < freedom else np.nan,
        effective_sample_size=size,
        n_events=sums.moments.n,
        logged_mean=float(sums.moments.mean[4]),
        setting=None if estimator.parameter is None else setting,
        unbiased=(float(values[0]), float(errors[0])) if k > 0 else None,
        evidence=evidence,
        spread=(spread, float(errors[0])),
        freedom=freedom,
    )


@dataclass(frozen=True, eq=False)
class LogSums:
    """Sums of a log that estimates need; those of disjoint sets of events add up."""

    estimators: Mapping[str, Estimator]  # by method
    sums: Mapping[str, tuple[EventSums, ...]]  # by method, one per setting
    evidence: RewardEvidence

    @classmethod
    def of(
        cls,
        events: WeightedEvents,
        bounds: Range | None,
        estimators: Mapping[str, Estimator] = METHODS,
        group: Any = None,
    ) -> LogSums:
        """Return sums over events, for the estimators they suffice for; `group` labels events."""
        if bounds is not None:
            check_range(events.reward, bounds)
        sums = {
            name: estimator.sums(events, group)
            for name, estimator in estimators.items()
            if events.q_policy is not None or not estimator.needs_predictions
        }
        evidence = RewardEvidence.of(
            events.reward, events.weight, bounds, events.largest_weight, events.q_logged
        )
        return cls(estimators, sums, evidence)

    def __add__(self, other: LogSums) -> LogSums:
        sums = {
            name: tuple(a + b for a, b in zip(sums, other.sums[name], strict=True))
            for name, sums in self.sums.items()
        }
        return LogSums(self.estimators, sums, self.evidence + other.evidence)

    @property
    def outside(self) -> str:
        """Which doubly robust estimates are outside of the range of rewards; empty if none is."""
        low, high = self.evidence.bounds or self.evidence.observed
        room = 1e-9 * (high - low)
        for name, sums in self.sums.items():
            value = sums[0].value
            if self.estimators[name].needs_predictions and not low - room <= value <= high + room:
                return (
                    f"{name!r} estimates {value:.4g}, where rewards are from {low:.4g} to "
                    f"{high:.4g}: the reward model predicts values far from these, or the weights "
                    "are large. Rely on 'snips'."
                )
        return ""

    @property
    def first(self) -> EventSums:
        """Sums of the first method: all have the same events, weights and groups."""
        return next(iter(self.sums.values()))[0]

    def estimates(self) -> dict[str, OffPolicyEstimate]:
        """Return the estimates by method."""
        return {
            name: make_estimate(name, sums, self.estimators[name], self.evidence)
            for name, sums in self.sums.items()
        }


def check_predictable(X: Any, evaluated: EvaluatedLog) -> None:
    """Require what a reward model and the policy's mean prediction need."""
    if X is None:
        raise ValueError("the reward model needs contexts: pass X, or name columns as features=.")
    if evaluated.of_arms is None:
        raise ValueError(
            "a reward model needs the probabilities of all arms, of shape (n_events, n_arms), got "
            "only those of the logged actions: pass a fitted policy or such a table, or use "
            "method='snips' or 'ips'."
        )
