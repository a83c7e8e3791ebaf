"""The best rule of a policy, searched where its goals are measured.

Decisions are those of the lowest predicted costs with prices for what they use: with the costs B_0
and uses B_k of each row in the place of tables by stratum, that is the family of rules of
`skbandit.prices._search`, each row its own stratum and kind. Searches begin at the dual's prices,
for bounds as they are and moved by what predictions miss of the measured sums, and without prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol

import numpy as np
from scipy.sparse import eye_array

from skbandit.prices._calibrate import Measured, PricedRule, expected_rules, priced_rule
from skbandit.prices._dual import HIGHEST_MULTIPLIER, net_prices, opposed_goals
from skbandit.prices._problem import Prices, Problem, without_prices
from skbandit.prices._search import Family, Outcomes, best_rule, stacked_tables
from skbandit.utils._validation import RATE_TOL

PUSHES = 8
"""Rounds more that tighten bounds still missed."""

SEARCHED_COSTS, SEARCHED_ROWS = 100_000, 2000
"""Costs of rows that stand for all while coefficients are searched, or rows if these are more."""

SMALL_GAP = 1e-3
"""Possible gain, in units of the objective's costs, below which no better rule is sought."""

BARRED = 1e3
"""Cost of a decision that a row may not get, in units of the objective's costs."""

ALIKE, N_RANDOM = (0.1, 1.0, 10.0), 4
"""Prices of all goals alike at which searches begin, in units of the objective's costs, and number
of random ones."""


class MeasuredSums(Protocol):
    """Measures decisions, which its goals are sums over."""

    def __call__(self, decided: np.ndarray) -> Measured:
        """Measure what decisions (N, D) attain."""

    @property
    def constant(self) -> np.ndarray:
        """Excess of each goal without what decisions add, shape (m,)."""

    def added(self, kept: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what decisions of some rows add to the excess of each goal, shape (n, D)."""


def searched(problem: Problem, measure: MeasuredSums) -> PricedRule:
    """Return the rule with the best objective found among those that meet the goals as measured.

    Of many rows, some stand for all while coefficients are searched. What they miss of all rows is
    added to their sums, at the best rule before; rules are compared as measured on all rows.

    Parameters
    ----------
    problem : Problem
    measure : MeasuredSums

    Returns
    -------
    PricedRule
        Feasible, or the one that misses by least.
    """
    rules, _ = expected_rules(problem, measure, PUSHES)
    free = without_prices(problem)
    rules.append(priced_rule(problem, measure, free, problem.decide(free))[0])
    best = rules[0]
    for rule in rules:
        best = rule if rule.better_than(best) else best
    (N, D), m = problem.base.shape, len(problem.bound)
    # shares and spends are as predicted: the dual bounds what any rule may gain
    certain = all(np.abs(rule.moved).max(initial=0.0) <= RATE_TOL for rule in rules)
    gap = float(best.prices.goals @ np.maximum(problem.bound - problem.used(best.decided), 0.0))
    if not m or (certain and best.feasible and gap <= SMALL_GAP * problem.unit):
        return best
    most = max(SEARCHED_COSTS // D, SEARCHED_ROWS)
    kept = np.linspace(0, N - 1, most).astype(int) if N > most else np.arange(N)
    few = problem.rows(kept)
    family, outcomes = _family(few), _outcomes(few, measure.added(kept), measure.constant)
    if N > most:
        of_few = outcomes.sums(family.decide(family.row_costs(np.append(1.0, best.prices.goals))))
        missed = np.append(0.0, measure(best.decided).excess - of_few[1:])
        outcomes = replace(outcomes, constant=outcomes.constant + missed)
    point, _ = best_rule(family, outcomes, _starts(few, family, rules), few.unit)
    prices = Prices(np.ones(1), point.theta[1:] / max(point.theta[0], 1.0 / HIGHEST_MULTIPLIER))
    for of_goals in (prices, net_prices(prices, opposed_goals(few))):
        rule, _ = priced_rule(problem, measure, of_goals, problem.decide(of_goals))
        best = rule if rule.better_than(best) else best
    return best


def _starts(problem: Problem, family: Family, rules: Sequence[PricedRule]) -> list[np.ndarray]:
    """Prices of the first and last of some rules, of all goals alike, at random, of goals alone."""
    size = family.spread() @ problem.weight
    unit = np.divide(size[0], size[1:], out=np.zeros(len(size) - 1), where=size[1:] > 0)
    random = np.random.default_rng(0)
    at_random = 10.0 ** random.uniform(-2, 1, (N_RANDOM, len(unit)))
    at_random *= random.random(at_random.shape) < 0.7
    prices = [rules[0].prices.goals, rules[-2].prices.goals]
    prices += [x * unit for x in (*ALIKE, *at_random)]
    return [*(np.append(1.0, x) for x in prices), np.append(0.0, unit)]


def _family(problem: Problem) -> Family:
    """Rules by multipliers of what each row's decisions use."""
    costs = problem.decision_costs(without_prices(problem))
    allowed = np.isfinite(costs)

    def filled(table: np.ndarray) -> np.ndarray:
        """Let what a row may not get cost more than all else, at all prices."""
        most = np.where(allowed, table, -np.inf).max(axis=1, keepdims=True)
        return np.where(allowed, table, most)

    barred = np.where(allowed, 0.0, BARRED * max(problem.unit, RATE_TOL))
    uses = (filled(problem.table(k)) for k in range(len(problem.bound)))
    tables = stacked_tables(chain([filled(costs) + barred], uses))
    none_free = np.zeros(1 + len(problem.bound), dtype=bool)
    return Family(eye_array(len(costs), format="csr"), tables, none_free, problem.n_select)


def _outcomes(problem: Problem, added: Iterator[np.ndarray], constant: np.ndarray) -> Outcomes:
    """Return what decisions add to the objective and the excesses, each row of its own kind."""
    base = np.where(np.isfinite(problem.base), problem.base, 0.0) * problem.weight[:, None]

    def evaluate(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return sums[0], sums[1:]

    allowed = np.isfinite(problem.base)
    table = stacked_tables(chain([base], (np.where(allowed, of_goal, 0.0) for of_goal in added)))
    every = np.arange(len(base))
    return Outcomes(every, table, np.ones(len(base)), np.append(0.0, constant), evaluate)
