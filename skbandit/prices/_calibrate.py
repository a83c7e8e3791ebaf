"""Rules by prices, what they attain where goals are measured, and the choice of one at a level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skbandit.prices._dual import SMOOTHING, at_ceiling, best_prices, net_prices, opposed_goals
from skbandit.prices._problem import Prices, Problem, without_prices
from skbandit.utils._validation import RATE_TOL

CLOSEST = 0.1
"""Share of the distance of two bounds on one value that moving them inwards leaves."""

MOVED_ROUNDS = 6
"""Rounds in which bounds are tightened by what predictions miss of the measured sums."""

DUAL_COSTS, DUAL_ROWS = 100_000, 2000
"""Costs of rows that stand for all in the dual, or rows if these are more: what they miss is
measured on all rows, and moves bounds."""


class Measured(Protocol):
    """Values of m goals at given decisions, on rows whose labels are known."""

    @property
    def objective(self) -> float:
        """Lower is better; inf if undefined."""

    @property
    def excess(self) -> np.ndarray:
        """Excess of each value over its bound, shape (m,); nan where undefined."""

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Tables and constants of an objective that is linear at these decisions only."""

    def margin(self, z: float) -> np.ndarray:
        """Return what a normal quantile adds to each value, shape (m,)."""


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
    decided : ndarray of bool, shape (N, D)
        Decisions of the rows measured; of classes, their numbers, of shape (N,), in the end.
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
        """True if every goal holds, at its level."""
        return self.slack >= -RATE_TOL

    def better_than(self, other: PricedRule | None) -> bool:
        """Return whether it meets the goals at a lower objective, or misses them by less."""
        if other is None:
            return True
        if not (self.feasible and other.feasible):
            return self.slack > other.slack
        return self.objective < other.objective


def representative(problem: Problem) -> Problem:
    """Return the problem on the rows that stand for all, of those that count."""
    n_decisions = problem.row_costs(without_prices(problem)).shape[1]
    kept, counted = max(DUAL_COSTS // n_decisions, DUAL_ROWS), np.flatnonzero(problem.weight > 0)
    if len(problem.weight) <= kept:
        return problem
    places = np.linspace(0, len(counted) - 1, min(kept, len(counted))).astype(int)
    return problem.rows(counted[places])


def move_apart(moved: np.ndarray, bound: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return the moves of bounds such that two bounds on one value do not cross."""
    moved = moved.copy()
    for pair in pairs:
        both = [*pair]
        beyond = moved[both].sum() - (1.0 - CLOSEST) * bound[both].sum()
        moved[both] -= 0.5 * max(beyond, 0.0)
    return moved


def priced_rule(
    problem: Problem,
    measure: Callable[[np.ndarray], Measured],
    prices: Prices,
    decided: np.ndarray,
    costs: np.ndarray | None = None,
) -> tuple[PricedRule, Measured]:
    """Return the rule that decides so, and its measured sums.

    `costs` are those of `problem` at `prices` unless given. The rule's bounds count as tightened by
    what predictions miss of the sums.
    """
    measured = measure(decided)
    missed = np.where(np.isnan(measured.excess), np.inf, measured.excess)
    moved = np.nan_to_num(measured.excess - problem.excess(decided))
    slack = -float(missed.max(initial=-np.inf))
    costs = problem.costs(prices) if costs is None else costs
    return PricedRule(prices, moved, costs, decided, measured.objective, slack), measured


def expected_rules(
    problem: Problem, measure: Callable[[np.ndarray], Measured], pushes: int = 0
) -> tuple[list[PricedRule], np.ndarray]:
    """Return rules of the dual, and how far bounds were tightened for the last of them.

    The first is for bounds as declared. For the next ones they are tightened by what predictions
    miss of measured sums, and in up to `pushes` rounds more by what is still missed.
    """
    few = representative(problem)
    pairs, of_a_row = opposed_goals(few), np.minimum(problem.reach, 1.0) / len(problem.weight)
    moved = last = np.zeros(len(problem.bound))
    prices, rules = without_prices(problem), list[PricedRule]()
    smoothing: tuple[float, ...] = SMOOTHING
    for count in range(MOVED_ROUNDS + pushes):
        prices = net_prices(best_prices(few.tightened(moved), prices, smoothing)[0], pairs)
        decided = problem.tightened(moved).decide(prices)
        rule, measured = priced_rule(problem, measure, prices, decided)
        rules.append(rule)
        last, smoothing = moved, SMOOTHING[-1:]
        if not prices.goals.any() or (rule.feasible and count >= MOVED_ROUNDS):
            break
        excess = np.nan_to_num(measured.excess)
        if count < MOVED_ROUNDS:
            missed = excess - few.excess(few.tightened(moved).decide(prices))
            moved = np.where(np.isnan(missed), moved, missed)
        else:
            moved = moved + np.where(excess > 0, excess + of_a_row, 0.0)
        moved = move_apart(moved, problem.bound, pairs)
        if measured.tables is not None:
            few = few.with_objective(*measured.tables)
        if at_ceiling(problem, prices):  # nothing met these bounds, and something may meet the next
            prices, smoothing = without_prices(problem), SMOOTHING
    return rules, last
