"""A plain grid of prices for one or two goals, whose measured values are far from predicted ones.

Bounds on outcomes that few rows had are measured with noise that no solver of the dual knows: moved
by that noise, a bound may end far inside. A grid moves no bound: of all prices on it, the rule with
the best objective is taken of those that are inside by their margins as measured. The prices are
the same at all levels, and a higher level allows fewer of them: the objective is monotone in it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from skbandit.prices._action_search import SEARCHED_COSTS, SEARCHED_ROWS, MeasuredSums
from skbandit.prices._calibrate import PricedRule, priced_rule
from skbandit.prices._problem import Prices, Problem, without_prices

GRID_GOALS = 2
"""Goals up to which all prices of a grid are tried."""

STEPS = np.append(0.0, np.geomspace(0.02, 20.0, 26))
"""Prices in units of the objective's costs."""

MEASURED_ROWS, FEWEST = 3_000_000, 30
"""Rows of rules measured in all, and rules measured at least, those of the best objective first."""


def best_of_grid(problem: Problem, measure: MeasuredSums, z: float) -> PricedRule | None:
    """Return the best rule of a grid whose goals hold by margins at a normal quantile, if any."""
    N, D = problem.base.shape
    kept = np.linspace(0, N - 1, min(N, max(SEARCHED_COSTS // D, SEARCHED_ROWS))).astype(int)
    few, (added, constant) = problem.rows(kept), measure.sums(kept)
    costs = few.decision_costs(without_prices(few))
    costs = np.where(np.isfinite(costs), costs, np.nan)
    sizes = [np.ptp(few.table(k), axis=1) @ few.weight for k in range(len(constant))]
    unit = (np.nanmax(costs, axis=1) - np.nanmin(costs, axis=1)) @ few.weight
    grid = np.array(list(product(STEPS, repeat=len(sizes)))) * unit / np.maximum(sizes, 1e-12)
    objective, excess = np.empty(len(grid)), np.empty((len(grid), len(sizes)))
    for k, goals in enumerate(grid):
        decided = few.decide(Prices(np.ones(1), goals))
        objective[k] = np.where(decided, few.base, 0.0).sum(axis=1) @ few.weight
        excess[k] = constant + (added * decided).sum(axis=(1, 2))
    near = (excess <= 0).all(axis=1) | (N > len(kept))  # as some rows have it
    best_first = np.flatnonzero(near)[np.argsort(objective[near], kind="stable")]
    for k in best_first[: max(MEASURED_ROWS // N, FEWEST)]:
        prices = Prices(np.ones(1), grid[k])
        rule, measured = priced_rule(problem, measure, prices, problem.decide(prices))
        slack = -float((measured.excess + measured.margin(z)).max())
        if slack >= 0:
            return replace(rule, slack=slack)
    return None
