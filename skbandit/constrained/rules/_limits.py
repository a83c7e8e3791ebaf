"""Confidence limits that predictions must pass, separately or with a shared risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skbandit.constrained._goals import Goals
from skbandit.measure import RATE_TOL, ScoreLimits, reached_quantiles, score_limits
from skbandit.prices._levels import quantile_of

C = TypeVar("C", bound=Any)

SETTLING, SETTLED = 4, 1e-3
"""Times that margins are found anew at the rule that was chosen by the last ones, and by what part
they may be larger there."""


def limits_at(
    goals: Goals,
    level: float | None,
    choices: int | np.ndarray = 0,
    decided: np.ndarray | None = None,
) -> ScoreLimits:
    """Limits of the constraints over the rows that count: promised if there is a level.

    `decided` are codes of all rows' decisions, near those that limits are of: see `score_limits`.
    """
    measured = goals.columns_of(goals.measured.rows)
    limits = score_limits(goals.constraints, goals.data, decided).columns(measured)
    return limits if level is None else limits.at_confidence(level, choices)


def settled(chooser: C, goals: Goals, best: Callable[[C], Any]) -> tuple[C, Any]:
    """Return the best choice by margins as wide as dependent rows make them there.

    Factors of standard errors are found at the decisions of a rule, and the next rule is chosen
    by them, until they stay. From the second time on they only grow, so that this ends.

    Parameters
    ----------
    chooser : Criterion
    goals : Goals
    best : callable
        Returns the best `Choice` by a chooser.

    Returns
    -------
    tuple of Criterion and Choice
        The chooser whose margins stayed, and its choice.
    """
    choice = best(chooser)
    for count in range(SETTLING):
        used = chooser.limits.clustered
        if used is None:
            break
        factors = goals.cluster_factors(choice.rule.decided)
        assert factors is not None
        is_narrower = (factors <= used * (1.0 + SETTLED)).all()
        if is_narrower and (count > 0 or (factors >= used * (1.0 - SETTLED)).all()):
            break
        chooser = chooser.widened(factors if count == 0 else np.maximum(factors, used))
        choice = best(chooser)
    return chooser, choice


@dataclass(frozen=True)
class Limits:
    """A test that predictions pass if the limits of K constraints are inside their bounds.

    It depends on sums over rows, ``rows @ pi`` at positive predictions pi.

    Attributes
    ----------
    limits : ScoreLimits
    level : float
        Probability with which all constraints hold in the population.
    separate : bool
        Whether each constraint has its part of the error 1 - level, as exact limits need it; else
        their approximate risks of being missed may add up to it.
    """

    limits: ScoreLimits
    level: float
    separate: bool = False

    @classmethod
    def promised(cls, limits: ScoreLimits, goals: Goals, level: float, *, prefit: bool) -> Limits:
        """Return limits at a level; one per constraint if that is an exact guarantee."""
        rates = [constraint.rate for constraint in goals.measured.constraints.constraints]
        single = all(len(rate.terms) == 1 and rate.denominator is None for rate in rates)
        if prefit and single and level > 0.5:
            return cls(limits.exact(), level, separate=True)
        return cls(limits, level)

    @property
    def rows(self) -> csr_array:
        """Coefficients of the S sums, of shape (S, n)."""
        return self.limits.rows

    @property
    def quantile(self) -> float:
        """Normal quantile at which limits are evaluated."""
        if self.separate:
            # to 12 digits, as 1 - 0.9 is 0.09999999999999998 in binary and 0.1 is meant
            error = round(1.0 - self.level, 12) or 1.0 - self.level
            return -float(ndtri(error / max(len(self.limits.offset), 1)))
        return quantile_of(self.level)

    def widened(self, clustered: np.ndarray) -> Limits:
        """Exchange the factors of dependent rows."""
        return replace(self, limits=replace(self.limits, clustered=clustered))

    def slack(self, sums: np.ndarray) -> np.ndarray:
        """Slack (C,) at C predictions, from sums of shape (S, C): -RATE_TOL or more passes.

        The smallest distance of a limit from its bound or, of a shared risk, what is left of it.
        """
        if self.separate or self.quantile == 0 or not len(self.limits.offset):
            return self.limits.slack(sums, self.quantile).min(axis=0, initial=np.inf)
        return float(ndtr(-self.quantile)) - self.limits.risk(sums, self.quantile)

    def passed(self, sums: np.ndarray) -> np.ndarray:
        """Return whether predictions pass; see `slack`.

        A shared risk is at least that of each constraint, which excludes most without a logarithm.
        """
        z = self.quantile
        if self.separate or z == 0:
            return self.slack(sums) >= -RATE_TOL
        most = float(ndtr(-z)) + RATE_TOL
        quantiles = reached_quantiles(self.limits.slack(sums, 0.0), self.limits.slack(sums, z), z)
        small = quantiles.min(axis=0, initial=np.inf) >= -ndtri(most)
        small[small] = self.limits.risk_of(quantiles[:, small]) <= most
        return small

    def margins(self, positive: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Distances (K,) of the limits at `factor` times the quantile from the rates."""
        return self.limits.at(positive, 0.0) - self.limits.at(positive, factor * self.quantile)


def limits_at_quantile(limits: ScoreLimits, z: float) -> Limits | None:
    """Return the limits at a normal quantile, of a shared risk; None without one."""
    return Limits(limits, float(ndtr(z))) if z > 0 else None
