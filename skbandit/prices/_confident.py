"""Rules for a confidence level: bounds are moved first, and what is measured is only a veto.

A rule that was chosen on the rows which measure it looks better there than it is, the more so the
more there was to choose from. A test of the chosen rule on these rows selects the lucky ones.
Instead, few numbers are chosen: multipliers of the dual, whose probabilities should be calibrated,
for bounds moved inwards by a fixed multiple of each goal's margin at the level,

    moved_k = bias_k + 1.6 margin_k(z).                                                        (1)

The bias is what expected rates miss of the measured ones beyond two standard errors or, where the
measured ones are worse, beyond what the caller believes probabilities by: about a class of few rows
they may be wrong by as much as noise hides. One margin stands for the noise of the labels, the rest
for that of the probabilities, of the final model, which is not that of a fold, and of several goals
at once: 1.6 was chosen by simulation, at a level of .9 (docs/benchmarks.md), not derived.

Where a measured value is outside its bound, the bound is moved further, for some rounds. If it is
still outside, the rule is refused.

Where bounds cannot be moved so far, prices would run to their ceiling. They are moved less there;
if by less than `LEAST_AIM` margins, or if two bounds on one value leave no place between them, each
measured limit must be inside: a test at the level, as if the rule had been given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbandit.prices._calibrate import (
    Measured,
    PricedRule,
    move_apart,
    representative,
)
from skbandit.prices._dual import (
    SMOOTHING,
    at_ceiling,
    best_prices,
    net_prices,
    opposed_goals,
)
from skbandit.prices._problem import Prices, Problem, without_prices
from skbandit.utils._validation import RATE_TOL

AIMS, LEAST_AIM = (1.6, 1.45, 1.3, 1.0, 0.7, 0.4), 1.3
"""Margins that are tried in turn where prices run to their ceiling, and the least that need no
test."""

BIAS_ROUNDS, MARGIN_ROUNDS, SETTLING_ROUNDS = 3, 3, 6
"""Rounds that find the bias, rounds in which the margins of the rule settle, and rounds more: by
half steps for margins that go back and forth, and for measured values outside their bounds."""

PUSHED = 0.1
"""Margins by which a bound is moved in addition to what its measured value is outside by."""

NEARLY = 0.8
"""Part of what a bound should be moved by that is near enough."""

ERRORS = 2.0
"""Standard errors of a measured value that its expectation may be off by chance."""

CEILING = 1e-6
"""Slack of a rule whose prices are at the ceiling."""

LARGE_PART = 0.2
"""Part of what decisions earn without margins: a level that costs more is warned of."""


def confident_rule(
    problem: Problem,
    measure: Callable[[np.ndarray], Measured],
    z: float,
    start: Prices | None = None,
    chance_errors: float = ERRORS,
) -> PricedRule:
    """Return the rule of (1).

    Parameters
    ----------
    problem : Problem
    measure : callable
        Measures decisions of shape (N,).
    z : float
        Normal quantile of the level, positive.
    start : Prices or None
        Prices near the solution.
    chance_errors : float
        Standard errors by which a measured value may be worse than its expectation by chance.

    Returns
    -------
    PricedRule
        Feasible, or the one that misses by least.
    """
    best: PricedRule | None = None
    for aim in AIMS:
        rule, limited = _aimed(problem, measure, z, start, aim, chance_errors)
        best = rule if rule.better_than(best) else best
        if rule.feasible or not limited:
            break
    assert best is not None
    return best


@dataclass(frozen=True)
class _Round:
    """The rule of tightened bounds, measured.

    Attributes
    ----------
    tightened : Problem
    decided : ndarray of bool, shape (N, D)
    measured : Measured
    margin : ndarray of shape (m,)
        At the level.
    gap : ndarray of shape (m,)
        Measured less expected excess.
    missing : ndarray of shape (m,)
        What rows that stand for all miss of all rows, which is no noise however small margins are.
    """

    tightened: Problem
    decided: np.ndarray
    measured: Measured
    margin: np.ndarray
    gap: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(
        cls,
        problems: tuple[Problem, Problem],
        prices: Prices,
        moved: np.ndarray,
        measure: Callable[[np.ndarray], Measured],
        z: float,
    ) -> _Round:
        """Measure the rule of prices; `problems` are of all rows, and of those that stand for all.

        `moved` is by how much bounds are tightened.
        """
        problem, few = problems
        tightened = problem.tightened(moved)
        decided = tightened.decide(prices)
        measured = measure(decided)
        expected = problem.excess(decided)
        missing = np.nan_to_num(expected - few.excess(few.tightened(moved).decide(prices)))
        gap = measured.excess - expected
        return cls(tightened, decided, measured, measured.margin(z), gap, missing)

    def bias(self, chance_errors: float, z: float) -> np.ndarray:
        """Return what expected rates miss of measured ones beyond noise."""
        noise = np.where(self.gap > 0, chance_errors, ERRORS) * self.margin / z
        return np.nan_to_num(np.sign(self.gap) * np.maximum(np.abs(self.gap) - noise, 0.0))

    def settled(self, moved: np.ndarray, aimed: np.ndarray) -> np.ndarray:
        """Go half the way: what is decided less has a smaller margin, and is decided again."""
        excess, halfway = self.measured.excess, 0.5 * (moved + aimed + self.missing)
        return np.where(excess > 0, moved + excess + PUSHED * self.margin, halfway)


def _aimed(
    problem: Problem,
    measure: Callable[[np.ndarray], Measured],
    z: float,
    start: Prices | None,
    aim: float,
    chance_errors: float,
) -> tuple[PricedRule, bool]:
    """Find the rule of bounds moved by `aim` margins, and whether they could only be moved less."""
    few = representative(problem)
    pairs = opposed_goals(few)
    prices = without_prices(problem) if start is None else start
    prices = best_prices(few, prices, SMOOTHING if start is None else SMOOTHING[-1:])[0]
    moved = bias = wanted = np.zeros(len(problem.bound))
    for count in range(BIAS_ROUNDS + MARGIN_ROUNDS + SETTLING_ROUNDS + 1):
        at = _Round.of((problem, few), prices, moved, measure, z)
        aimed = bias + aim * at.margin
        is_near = at.measured.excess > -NEARLY * aimed
        short = (moved - at.missing < NEARLY * aimed) & is_near
        is_open = bool(short.any() or (at.measured.excess > 0).any())
        if count >= BIAS_ROUNDS + MARGIN_ROUNDS + SETTLING_ROUNDS * is_open:
            break
        if at.measured.tables is not None:
            problem = problem.with_objective(*at.measured.tables)
            few = few.with_objective(*at.measured.tables)
        if count < BIAS_ROUNDS:
            bias = at.bias(chance_errors, z)
            wanted = bias + at.margin + at.missing
        elif count < BIAS_ROUNDS + MARGIN_ROUNDS:
            wanted = aimed + at.missing
        else:
            wanted = at.settled(moved, aimed)
        moved = move_apart(wanted, problem.bound, pairs)
        prices = net_prices(best_prices(few.tightened(moved), prices, SMOOTHING[-1:])[0], pairs)
    missed = np.where(np.isnan(at.measured.excess), np.inf, at.measured.excess)
    # two bounds on one value, such as a small gap, may leave no place inside
    limited = bool((wanted - moved > RATE_TOL).any() or short.any())
    if aim < LEAST_AIM or limited:
        missed = missed + at.margin
    slack = -float(missed.max(initial=-np.inf))
    if at_ceiling(problem, prices):  # paid for by whatever it costs: no success
        slack, limited = min(slack, -CEILING), True
    costs = at.tightened.costs(prices)
    return PricedRule(prices, moved, costs, at.decided, at.measured.objective, slack), limited


def without_margins(
    problem: Problem, rule: PricedRule, search: Callable[[], PricedRule]
) -> PricedRule | None:
    """Return the rule without margins, if those of a level take a large part of what it earns.

    What decisions earn is by how much they are better than decisions at random.

    Parameters
    ----------
    problem : Problem
    rule : PricedRule
        At the level.
    search : callable
        Finds the rule without margins. The objective is convex in the bounds, so that moving them
        back gains at most prices @ moved: where that is little, nothing is searched.

    Returns
    -------
    PricedRule or None
    """
    costs = problem.row_costs(without_prices(problem))
    allowed = np.isfinite(costs)
    at_random = np.where(allowed, costs, 0.0).sum(axis=1) / allowed.sum(axis=1)
    earned = float(problem.weight @ at_random) / problem.weight.sum() - rule.objective
    gained = float(rule.prices.goals @ np.maximum(rule.moved, 0.0))
    if not rule.feasible or not gained > LARGE_PART * (earned + gained):
        return None
    other = search()
    gained = rule.objective - other.objective
    if not other.feasible or gained <= RATE_TOL:
        return None
    return other if gained > LARGE_PART * (earned + gained) else None
