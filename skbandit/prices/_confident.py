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

from skbandit.prices._calibrate import Measured, PricedRule, move_apart, representative
from skbandit.prices._dual import SMOOTHING, at_ceiling, best_prices, net_prices, opposed_goals
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
    few = representative(problem)
    pairs, none = opposed_goals(few), np.zeros(len(problem.bound))

    def at(problem: Problem, few: Problem, prices: Prices, wanted: np.ndarray) -> _Round:
        """Measure the rule of prices."""
        moved = move_apart(wanted, problem.bound, pairs)
        tightened = problem.tightened(moved)
        decided = tightened.decide(prices)
        measured, expected = measure(decided), problem.excess(decided)
        missing = np.nan_to_num(expected - few.excess(few.tightened(moved).decide(prices)))
        parts = measured.margin(z), measured.excess - expected, missing
        return _Round(problem, few, prices, wanted, moved, tightened, decided, measured, *parts)

    def after(last: _Round, wanted: np.ndarray) -> _Round:
        """Measure the rule of bounds that were moved."""
        problems = last.problem, last.few
        if (tables := last.measured.tables) is not None:
            problems = problems[0].with_objective(*tables), problems[1].with_objective(*tables)
        tightened = problems[1].tightened(move_apart(wanted, problem.bound, pairs))
        prices = best_prices(tightened, last.prices, SMOOTHING[-1:])[0]
        return at(*problems, net_prices(prices, pairs), wanted)

    begin = (without_prices(problem), SMOOTHING) if start is None else (start, SMOOTHING[-1:])
    first, bias = at(problem, few, best_prices(few, *begin)[0], none), none
    for _ in range(BIAS_ROUNDS):
        bias = first.bias(chance_errors, z)
        first = after(first, bias + first.margin + first.missing)
    best: PricedRule | None = None
    for aim in AIMS:
        rule, limited = _aimed(first, bias, aim, after)
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
    problem, few : Problem
        Of all rows, and of those that stand for all.
    prices : Prices
    wanted, moved : ndarray of shape (m,)
        By how much bounds should be tightened, and by how much they were.
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

    problem: Problem
    few: Problem
    prices: Prices
    wanted: np.ndarray
    moved: np.ndarray
    tightened: Problem
    decided: np.ndarray
    measured: Measured
    margin: np.ndarray
    gap: np.ndarray
    missing: np.ndarray

    def bias(self, chance_errors: float, z: float) -> np.ndarray:
        """Return what expected rates miss of measured ones beyond noise."""
        noise = np.where(self.gap > 0, chance_errors, ERRORS) * self.margin / z
        return np.nan_to_num(np.sign(self.gap) * np.maximum(np.abs(self.gap) - noise, 0.0))

    def settled(self, aimed: np.ndarray) -> np.ndarray:
        """Go half the way: what is decided less has a smaller margin, and is decided again."""
        excess, halfway = self.measured.excess, 0.5 * (self.moved + aimed + self.missing)
        return np.where(excess > 0, self.moved + excess + PUSHED * self.margin, halfway)


def _aimed(
    at: _Round, bias: np.ndarray, aim: float, after: Callable[[_Round, np.ndarray], _Round]
) -> tuple[PricedRule, bool]:
    """Find the rule of bounds moved by `aim` margins, and whether they could only be moved less."""
    for count in range(MARGIN_ROUNDS + SETTLING_ROUNDS + 1):
        aimed = bias + aim * at.margin
        is_near = at.measured.excess > -NEARLY * aimed
        short = (at.moved - at.missing < NEARLY * aimed) & is_near
        is_open = bool(short.any() or (at.measured.excess > 0).any())
        if count >= MARGIN_ROUNDS + SETTLING_ROUNDS * is_open:
            break
        at = after(at, aimed + at.missing if count < MARGIN_ROUNDS else at.settled(aimed))
    missed = np.where(np.isnan(at.measured.excess), np.inf, at.measured.excess)
    # two bounds on one value, such as a small gap, may leave no place inside
    limited = bool((at.wanted - at.moved > RATE_TOL).any() or short.any())
    if aim < LEAST_AIM or limited:
        missed = missed + at.margin
    slack = -float(missed.max(initial=-np.inf))
    if at_ceiling(at.problem, at.prices):  # paid for by whatever it costs: no success
        slack, limited = min(slack, -CEILING), True
    costs, objective = at.tightened.costs(at.prices), at.measured.objective
    return PricedRule(at.prices, at.moved, costs, at.decided, objective, slack), limited


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
