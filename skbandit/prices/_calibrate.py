"""Rules that meet their goals where these are measured, at a confidence level.

The probabilities of strata are estimates, and so are the rates that the dual expects. Its bounds
are moved by what the expected rates miss of the measured ones, and by the margin of the level, in
a few rounds; so goals hold whatever the quality of the probabilities, which cost objective only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

import numpy as np

from skbandit.prices._dual import (
    SMOOTHING,
    Prices,
    Problem,
    at_ceiling,
    best_prices,
    net_prices,
    opposed_goals,
    without_prices,
)
from skbandit.prices._levels import best_quantile, quantile_of

TOLERANCE = 1e-9
"""Rounding error of a rate."""

ROUNDS, PUSHES = 6, 8
"""Rounds in which the moved bounds settle, and rounds more that move only those still missed."""

MOVE_HALVINGS, MUCH_WORSE = 8, 0.01
"""Bisections of how far bounds are moved, and share by which the objective of the rule inside may
be worse than that of the nearest rule outside without them."""

CLOSEST = 0.1
"""Share of the distance of two bounds on one value that moving them inwards leaves."""

DUAL_COSTS, DUAL_ROWS = 100_000, 2000
"""Costs of rows that stand for all in the dual, or rows if these are more: what they miss is
measured on all rows, and moves bounds."""

REPAIRS, PATIENCE, RAISE, FIRST_RAISE = 100, 25, 0.1, 0.02
"""Steps by which multipliers of missed goals rise if nothing else meets the goals, steps in a row
that may bring nothing, the share of themselves by which they rise, and the least rise in units of
the objective's costs; the last two for the goal that is missed by most."""

SHORTER_STEPS = 20
"""Steps at most that shrink where long ones jump over what meets the goals."""

P = TypeVar("P", bound=Problem)


class Measured(Protocol):
    """What decisions attain on rows whose labels are known, of m goals."""

    @property
    def objective(self) -> float:
        """Lower is better; inf if undefined."""

    @property
    def excess(self) -> np.ndarray:
        """What each value exceeds its bound by, shape (m,); nan where undefined."""

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Tables and constants of an objective that is linear at these decisions only."""

    def margin(self, z: float) -> np.ndarray:
        """What a normal quantile adds to each value, shape (m,)."""


@dataclass(frozen=True)
class PricedRule:
    """The decisions of least cost at some prices.

    Attributes
    ----------
    prices : Prices
    moved : ndarray of shape (m,)
        How far the goals' bounds were moved inwards for these prices.
    costs : ndarray of shape (F, D)
        Cost of each decision by stratum.
    decided : ndarray of int, shape (N,)
        Decisions of the rows measured.
    objective : float
        Lower is better.
    slack : float
        The least slack of a goal; negative if one is missed.
    recalibration : callable or None
        What probabilities pass before the costs apply to them.
    """

    prices: Prices
    moved: np.ndarray
    costs: np.ndarray
    decided: np.ndarray
    objective: float
    slack: float
    recalibration: Callable[..., np.ndarray] | None = None

    @property
    def feasible(self) -> bool:
        """Whether every goal holds, at its level."""
        return self.slack >= -TOLERANCE

    def better_than(self, other: PricedRule | None) -> bool:
        """Whether it meets the goals at a lower objective, or misses them by less."""
        if other is None:
            return True
        if not (self.feasible and other.feasible):
            return self.slack > other.slack
        return self.objective < other.objective


def representative(problem: P) -> P:
    """The problem on the rows that stand for all, of those that count."""
    n_decisions = problem.row_costs(without_prices(problem)).shape[1]
    kept, counted = max(DUAL_COSTS // n_decisions, DUAL_ROWS), np.flatnonzero(problem.weight > 0)
    if len(problem.weight) <= kept:
        return problem
    places = np.linspace(0, len(counted) - 1, min(kept, len(counted))).astype(int)
    return problem.rows(counted[places])


def calibrated(
    problem: P, measure: Callable[[np.ndarray], Measured], start: Prices | None = None
) -> PricedRule:
    """The rule with the best objective found among those that meet the goals as measured.

    Parameters
    ----------
    problem : Problem
    measure : callable
        Measures decisions of shape (N,).
    start : Prices or None
        Prices near the solution, if some are known.

    Returns
    -------
    PricedRule
        Feasible, or the one that misses by least.
    """
    few = representative(problem)
    pairs = opposed_goals(few)
    prices = without_prices(problem) if start is None else start
    smoothing = SMOOTHING if start is None else SMOOTHING[-1:]
    best: PricedRule | None = None
    nearest: PricedRule | None = None
    moved = np.zeros(len(problem.bound))
    for count in range(ROUNDS + PUSHES):
        rule, measured = _measured(problem.tightened(moved), measure, prices, moved)
        missed = _missed(measured)
        best = rule if rule.better_than(best) else best
        if not rule.feasible and rule.better_than(nearest):
            nearest = rule
        settled = count >= ROUNDS - 1 or (measured.tables is None and not prices.goals.any())
        if rule.feasible and settled:
            break
        if measured.tables is not None:
            problem = problem.with_objective(*measured.tables)
            few = few.with_objective(*measured.tables)
        if count < ROUNDS - 1:
            bias = measured.excess - few.excess(few.tightened(moved).decide(prices))
            moved = np.where(np.isnan(bias), moved, bias)
        else:
            missed = np.where(np.isinf(missed), 0.0, missed)
            of_a_row = np.minimum(problem.reach, 1.0) / len(rule.decided)
            movable = np.where(_closest(moved, problem.bound, pairs), -np.inf, missed)
            behind = movable > 0 if (movable > 0).any() else _binding(movable)
            moved = moved + np.where(behind, np.maximum(missed, 0.0) + of_a_row, 0.0)
        moved = move_apart(moved, problem.bound, pairs)
        if at_ceiling(problem, prices):  # nothing met these bounds, and something may meet the next
            prices, smoothing = without_prices(problem), SMOOTHING
        prices = net_prices(best_prices(few.tightened(moved), prices, smoothing)[0], pairs)
        smoothing = SMOOTHING[-1:]
    assert best is not None
    if not best.feasible:
        return _repaired(problem, measure, best, pairs)
    return best if nearest is None else _between(problem, few, measure, best, nearest, pairs)


def move_apart(moved: np.ndarray, bound: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """How far bounds are moved, without moving two bounds on one value past each other."""
    moved = moved.copy()
    for pair in pairs:
        both = [*pair]
        beyond = moved[both].sum() - (1.0 - CLOSEST) * bound[both].sum()
        moved[both] -= 0.5 * max(beyond, 0.0)
    return moved


def _closest(moved: np.ndarray, bound: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Which bounds cannot move, as that on the other side of the value is as close as it may be."""
    closest = np.zeros(len(moved), dtype=bool)
    for pair in pairs:
        both = [*pair]
        closest[both] = moved[both].sum() >= (1.0 - CLOSEST) * bound[both].sum() - TOLERANCE
    return closest


def _between(
    problem: P,
    few: P,
    measure: Callable[[np.ndarray], Measured],
    best: PricedRule,
    nearest: PricedRule,
    pairs: list[tuple[int, int]],
) -> PricedRule:
    """Look between the moved bounds of a rule that meets the goals and of one that nearly does.

    Where bounds are hard to meet by what probabilities expect, the rounds may jump from far inside
    to outside and back.
    """
    inside = best
    for _ in range(MOVE_HALVINGS):
        if best.objective - nearest.objective <= MUCH_WORSE * abs(best.objective):
            break
        moved = 0.5 * (inside.moved + nearest.moved)
        middle, _ = best_prices(few.tightened(moved), nearest.prices, SMOOTHING[-1:])
        prices = net_prices(middle, pairs)
        rule, _ = _measured(problem.tightened(moved), measure, prices, moved)
        if rule.feasible:
            inside, best = rule, rule if rule.better_than(best) else best
        else:
            nearest = rule
    else:  # what probabilities expect jumps; measured step by step, it may not
        repaired = _repaired(problem, measure, nearest, pairs)
        best = repaired if repaired.better_than(best) else best
    return best


def _measured(
    problem: P,
    measure: Callable[[np.ndarray], Measured],
    prices: Prices,
    moved: np.ndarray,
) -> tuple[PricedRule, Measured]:
    """The rule of some prices, for bounds moved so far, and what it attains."""
    decided = problem.decide(prices)
    measured = measure(decided)
    slack = -float(_missed(measured).max(initial=-np.inf))
    costs = problem.costs(prices)
    return PricedRule(prices, moved, costs, decided, measured.objective, slack), measured


def _missed(measured: Measured) -> np.ndarray:
    """By how much goals are missed, inf where they are undefined."""
    return np.where(np.isnan(measured.excess), np.inf, measured.excess)


def _repaired(
    problem: P,
    measure: Callable[[np.ndarray], Measured],
    best: PricedRule,
    pairs: list[tuple[int, int]],
) -> PricedRule:
    """Raise the multipliers of missed goals step by step, as measured, from the closest rule.

    The dual does so by what probabilities expect, which may never meet bounds that rates do meet.
    The first steps follow one another, also through worse rules; if they meet nothing, each of the
    others begins at the best rule, and is half as long after one that brought nothing.
    """
    current, m = problem.tightened(best.moved), len(best.prices.goals)
    unit = np.where(problem.reach > 0, problem.unit / np.maximum(problem.reach, 1e-300), 0.0)

    def measured(lam: np.ndarray) -> tuple[PricedRule, np.ndarray]:
        prices = Prices(best.prices.objectives, lam)
        rule, measured = _measured(current, measure, prices, best.moved)
        return rule, _missed(measured)

    def raised(lam: np.ndarray, missed: np.ndarray, size: float) -> np.ndarray:
        most = missed[np.isfinite(missed)].max(initial=0.0)
        behind = _binding(missed).astype(float)
        part = size * (np.clip(missed / most, 0.0, 1.0) if most > 0 else behind)
        longer = (1.0 + RAISE * part) * lam + FIRST_RAISE * part * unit
        return net_prices(Prices(best.prices.objectives, longer), pairs).goals

    lam = np.zeros(m) if at_ceiling(problem, best.prices) else best.prices.goals
    since = 0
    for _ in range(REPAIRS if m else 0):
        rule, attained = measured(lam)
        since = 0 if rule.better_than(best) else since + 1
        best = best if since else rule
        if rule.feasible or since > PATIENCE:
            break
        lam = raised(lam, attained, 1.0)
    if best.feasible or not m:
        return best
    size, (_, attained) = 1.0, measured(best.prices.goals)
    for _ in range(SHORTER_STEPS):
        size *= 0.5
        rule, missed = measured(raised(best.prices.goals, attained, size))
        if rule.better_than(best):
            best, attained, size = rule, missed, 2.0 * size
        if best.feasible:
            break
    return best


def _binding(excess: np.ndarray) -> np.ndarray:
    """The goals that are nearest to their bounds."""
    return np.asarray(excess >= excess.max(initial=-np.inf) - TOLERANCE)


def at_best_level(
    rule_at: Callable[[float, Prices | None], PricedRule], levels: Sequence[float], scale: float
) -> tuple[PricedRule, float]:
    """The rule at the best of some levels, and the normal quantile of that.

    Parameters
    ----------
    rule_at : callable
        Takes a quantile, and prices to start from.
    levels : sequence of float
        See `best_quantile`.
    scale : float
        Unit of the cost of a violation.

    Returns
    -------
    tuple of (PricedRule, float)
        Where goals cannot be met even without a margin, the closest rule, and the quantile of the
        first level.
    """
    if len(levels) == 1 and (z := quantile_of(levels[0])) > 0:
        rule = rule_at(z, None)
        without_margin = rule if rule.feasible else rule_at(0.0, None)
        return (rule if without_margin.feasible else without_margin), z

    @cache
    def at(z: float) -> PricedRule:
        return rule_at(z, at(0.0).prices if z > 0 else None)

    def attempt(z: float) -> tuple[float, float]:
        rule = at(z)
        return (rule.objective if rule.feasible else np.inf), at(0.0).objective

    if not at(0.0).feasible:
        return at(0.0), quantile_of(levels[0])
    z = best_quantile(attempt, levels, scale)
    return at(z), z
