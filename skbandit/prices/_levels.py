"""Confidence levels of goals, and the default that weighs a level against its price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from skbandit.utils._validation import RATE_TOL

LEVELS = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Levels among which the default chooses; 0.5 leaves no margin."""

WEAK_LEVEL = 0.6
"""`fit` warns if the default chooses a lower level."""

VIOLATION_COST = 0.12
"""Cost of a violated constraint to the default, in units of the objective's absolute costs' sum.

The default minimizes the objective plus this times 1 - level. What a higher level costs differs
between problems, so that one level for all costs more, at the same share of kept constraints.
"""


def quantile_of(confidence_level: float) -> float:
    """Return the normal quantile of a level; 0 for levels below 0.5."""
    return max(float(ndtri(confidence_level)), 0.0)


def level_of(quantile: float) -> float:
    """Return the level of a normal quantile, rounded to 12 digits: never to 1."""
    level = float(ndtr(quantile))
    rounded = round(level, 12)
    return rounded if rounded < 1.0 else level


def levels_to_try(level: float | None) -> tuple[float, ...]:
    """Return the given level, or those among which the default chooses."""
    return LEVELS if level is None else (level,)


def best_quantile(
    attempt: Callable[[float], tuple[float, float]],
    levels: Sequence[float],
    scale: float,
) -> float:
    """Return the normal quantile with the lowest objective plus expected cost of a violation.

    Parameters
    ----------
    attempt : callable
        Takes a quantile; returns the lowest objective of rules inside at it, inf if there is none,
        and a number that the objective is not below at any lower quantile (nan if unknown).
    levels : sequence of float
        Confidence levels to try, the highest first.
    scale : float
        Unit of the cost of a violation.

    Returns
    -------
    float
        That of the last level if no rule is inside at any; of the only one without any attempt.
    """
    if len(levels) == 1:
        return quantile_of(levels[0])
    violation_cost = VIOLATION_COST * scale
    best, least, lowest = quantile_of(levels[-1]), np.inf, -np.inf
    for level in levels:
        if least <= lowest + violation_cost * (1.0 - level) + RATE_TOL:
            break
        z = quantile_of(level)
        objective, lowest = attempt(z)
        cost = objective + violation_cost * (1.0 - level)
        if cost < least:
            best, least = z, cost
    return best


class LeveledRule(Protocol):
    """A rule with an objective, lower is better, that meets goals or not."""

    @property
    def feasible(self) -> bool:
        """True if every goal holds."""

    @property
    def objective(self) -> float:
        """Lower is better."""


R = TypeVar("R", bound=LeveledRule)


def at_best_level(
    rule_at: Callable[[float], R],
    levels: Sequence[float],
    scale: float,
    lowest: Callable[[R], float] | None = None,
) -> tuple[R, float]:
    """Return the rule at the best of some levels, and the normal quantile of that.

    Parameters
    ----------
    rule_at : callable
        Takes a quantile, returns the best rule, or the closest one.
    levels : sequence of float
        See `best_quantile`.
    scale : float
        Unit of the cost of a violation.
    lowest : callable or None
        From a feasible rule to what the objective is not below at any lower level; None is for the
        objective without a margin.

    Returns
    -------
    tuple of (rule, float)
        Where goals cannot be met even without a margin, the closest rule, and the quantile of the
        first level.
    """
    at, first = cache(rule_at), quantile_of(levels[0])
    if len(levels) == 1 and first > 0:
        return at(first if at(first).feasible or at(0.0).feasible else 0.0), first
    if not at(0.0).feasible:
        return at(0.0), first

    def attempt(z: float) -> tuple[float, float]:
        rule = at(z)
        if not rule.feasible:
            return np.inf, at(0.0).objective
        return rule.objective, at(0.0).objective if lowest is None else lowest(rule)

    z = best_quantile(attempt, levels, scale)
    return at(z), z


def costly_level(level: float, value: float, without: float) -> str:
    """Tell what a level costs: values of the objective at it, and without margins."""
    return (
        f"The objective is {value:.4g} at confidence_level={level:g}, and {without:.4g} at 0.5, "
        "without margins: more rows, looser bounds or a lower level cost less."
    )


def weak_level(level: float, rows: str = "more rows") -> str:
    """Tell if the default chose a level below `WEAK_LEVEL`; `rows` are what may help."""
    if not level < WEAK_LEVEL:
        return ""
    return (
        f"confidence_level_ is {level:.2g}. A higher one is out of reach or too costly on "
        f"these rows: pass {rows}, relax the bounds, or set confidence_level."
    )
