"""The rule of a policy at a level, and warnings and errors about it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from skbandit.logged._action_goals import ActionGoals, as_declared
from skbandit.logged._action_measure import ActionMeasure
from skbandit.prices._action_search import SEARCHED_COSTS, SEARCHED_ROWS, searched
from skbandit.prices._calibrate import PricedRule, priced_rule
from skbandit.prices._confident import confident_rule, without_margins
from skbandit.prices._dual import conflicting, enough_to_relax
from skbandit.prices._levels import at_best_level, costly_level, level_of, levels_to_try, weak_level
from skbandit.prices._problem import Prices, Problem, without_prices
from skbandit.utils._fitting import report_progress
from skbandit.utils._validation import RATE_TOL, warn

MANY_TIES = 0.05
"""Share of the rows from which on `fit` warns that noise decides, or that rows are equal."""

# A plain grid of prices for one or two goals, whose measured values are far from predicted ones:
# bounds on outcomes that few rows had are measured with noise that no solver of the dual knows, and
# moved by that noise, a bound may end far inside. A grid moves no bound: of all prices on it, the
# rule with the best objective is taken of those that are inside by their margins as measured. The
# prices are the same at all levels, and a higher level allows fewer of them: the objective is
# monotone in it.

GRID_GOALS = 2
"""Goals up to which all prices of a grid are tried."""

STEPS = np.append(0.0, np.geomspace(0.02, 20.0, 26))
"""Prices in units of the objective's costs."""

NEARBY = np.array([1.01, 1.02, 1.04, 1.08, 1.16])
"""Multiples of the prices of a rule that is outside by its margins: steps of the grid are wide."""

MEASURED_ROWS, FEWEST = 3_000_000, 35
"""Rows of rules measured in all, and rules measured at least, those of the best objective first."""


def rule_at_level(
    problem: Problem, measure: ActionMeasure, level: float | None, verbose: int = 0
) -> tuple[PricedRule, float]:
    """Return the rule at a level, or at the best of several, and the normal quantile of that."""

    @cache
    def rule_at(z: float) -> PricedRule:
        several = level is None and z > 0
        rule = _rule_at(problem, measure, z, rule_at(0.0).prices if several else None)
        if verbose:
            objective = as_declared(measure.goals.declared, rule.objective)
            kept = "the goals hold" if rule.feasible else f"goals are missed by {-rule.slack:.3g}"
            report_progress(
                f"[ConstrainedPolicy] level {level_of(z):.2g}: objective {objective:.4g}, {kept}"
            )
        return rule

    return at_best_level(rule_at, levels_to_try(level), problem.unit)


def _rule_at(
    problem: Problem, measure: ActionMeasure, z: float, start: Prices | None
) -> PricedRule:
    """Return the rule at a normal quantile."""
    if z > 0 and measure.endless:
        return replace(searched(problem, measure), slack=-np.inf)
    if z == 0:
        return searched(problem, measure)
    rule = confident_rule(problem, measure, z, start)
    if measure.goals.bounded_outcomes and len(problem.bound) <= GRID_GOALS:
        other, measured = of_grid(problem, measure, z, rule.prices), measure(rule.decided)
        is_outside = (measured.excess + measured.margin(z) > RATE_TOL).any()
        if other is not None and (is_outside or other.better_than(rule)):
            rule = other
    # no price tells decisions apart in outcomes predicted to be the same
    equal, measured = problem.reach == 0, measure(rule.decided)
    missed = float((measured.excess + measured.margin(z))[equal].max(initial=-np.inf))
    return rule if missed <= RATE_TOL else replace(rule, slack=min(rule.slack, -missed))


def of_grid(problem: Problem, measure: ActionMeasure, z: float, start: Prices) -> PricedRule | None:
    """Return the best rule of a grid, or near `start`, whose goals hold by margins, if any."""
    N, D = problem.base.shape
    kept = np.linspace(0, N - 1, min(N, max(SEARCHED_COSTS // D, SEARCHED_ROWS))).astype(int)
    few, added, constant = problem.rows(kept), np.array([*measure.added(kept)]), measure.constant
    costs = few.decision_costs(without_prices(few))
    costs = np.where(np.isfinite(costs), costs, np.nan)
    sizes = [np.ptp(few.table(k), axis=1) @ few.weight for k in range(len(constant))]
    unit = (np.nanmax(costs, axis=1) - np.nanmin(costs, axis=1)) @ few.weight
    grid = np.array(list(product(STEPS, repeat=len(sizes)))) * unit / np.maximum(sizes, 1e-12)
    grid = np.vstack([grid, np.outer(NEARBY, start.goals)])
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


def warn_of_rule(
    problem: Problem,
    measure: ActionMeasure,
    rule: PricedRule,
    spread: float,
    z: float,
    is_default: bool,
) -> None:
    """Warn if noise decides, of a weak level, of amounts that one event has, or of dear margins.

    Parameters
    ----------
    problem : Problem
    measure : ActionMeasure
    rule : PricedRule
    spread : float
        Of the noise that breaks ties.
    z : float
        Normal quantile of the level.
    is_default : bool
        Whether nobody asked for it.
    """
    if spread and rule.prices.goals.any():
        cost, n_select = np.sort(problem.row_costs(rule.prices), axis=1), problem.n_select
        near = cost[:, n_select] - cost[:, n_select - 1] < spread
        if (share := float(problem.weight @ near)) > MANY_TIES:
            warn(
                f"For {share:.0%} of the rows, several actions cost nearly the same, and a hash of "
                "the context decides: the models tell contexts apart too little, as a tree with "
                "few leaves does, or actions are alike, as those without rewards.",
                UserWarning,
            )
    if is_default:
        level = level_of(z) if rule.feasible else np.nan
        if weak := weak_level(level, "more rows or X_extra"):
            warn(weak, UserWarning)
        return
    if z == 0:
        return
    for name, amounts in measure.amounts.items():
        warn(
            f"One event has {amounts.largest:.0%} of all {name!r}, so that its like may be missing "
            "from the log: margins take amounts as lognormal, by which their mean may be up to "
            f"{amounts.factor(z):.2g} times as large. Cap the amounts, or bound how often they "
            "occur, for goals that so many rows can tell.",
            UserWarning,
        )
    other = without_margins(problem, rule, lambda: _rule_at(problem, measure, 0.0, rule.prices))
    if other is not None:
        objective = measure.goals.declared
        figures = (as_declared(objective, of_rule.objective) for of_rule in (rule, other))
        warn(costly_level(level_of(z), *figures), UserWarning)


def warn_of_exploration(
    problem: Problem, measure: ActionMeasure, decided: np.ndarray, share: float
) -> None:
    """Warn of goals that decisions keep, and that they miss with a share of uniform choices."""
    allowed = np.isfinite(problem.base)
    uniform = problem.n_select * allowed / allowed.sum(axis=1, keepdims=True)
    chosen = (1 - share) * decided + share * uniform
    added = [(table * chosen).sum() for table in measure.added(np.arange(len(allowed)))]
    excess = measure.constant + np.array(added)
    goals = measure.goals.constraints
    if missed := [goals[k].label for k in np.flatnonzero(excess > RATE_TOL)]:
        warn(
            f"With exploration={share:g}, what select chooses misses {'; '.join(missed)}, as "
            "uniform choices keep no goals: explore less, or declare bounds that leave room.",
            UserWarning,
        )


def why_infeasible(
    problem: Problem, report: pd.DataFrame, goals: ActionGoals, level: float | None
) -> str:
    """Return which constraints conflict and what is attainable of each, or which are missed.

    `report` is of the closest policy, and `level` as declared.
    """
    labels = report["constraint"].tolist()
    conflict = conflicting(problem)
    if len(conflict):
        enough = enough_to_relax(problem, conflict, labels, report["bound"].to_numpy(), goals.sign)
        named = "; ".join(labels[k] for k in conflict)
        return f"These constraints cannot hold together: {named}.{enough}"
    missed = report[~report["satisfied"]]
    if not len(missed):  # each alone is met, and all together are too uncertain
        room = (report["slack"] / report["margin"]).fillna(np.inf)
        missed = report[room <= room.min() + 1.0]
    faults = [
        f"{row.constraint} is {row.value:.4g}"
        + (f", with a margin of {row.margin:.2g}" if "margin" in report else "")
        for row in missed.itertuples(index=False)
    ]
    cure = "(lower it, pass more rows or X_extra, or relax the bounds)"
    at_level = "" if level is None else f" at confidence_level={level:g} {cure}"
    alike = np.unique(problem.base, axis=0, return_inverse=True)[1].ravel()
    most = float(np.bincount(alike, problem.weight).max())
    lumps = ""
    if most > MANY_TIES:
        lumps = (
            f" Rows with equal features get equal actions, and {most:.1%} of the rows are "
            "equal: relax the bounds, or add features, or a column that tells rows apart (such "
            "as a customer's number) and that the models drop."
        )
    return (
        f"No multipliers were found that meet the constraints{at_level}: {'; '.join(faults)}."
        f"{lumps}"
    )
