"""Cutoffs per class: rules that keep bounded precisions, at which searches of tables begin.

Naming class k where it is the most probable one and p_k > c_k, and passing the rest on, keeps a
precision t_k at the lowest cutoff c_k above which the most probable class k is right so often. It
is found by one sort. The rule is one of prices: if another decision costs 1, an error, naming k
should cost (1 - p_k) / (1 - c_k). The goal's table adds b to a wrong name and b - 1 to a right one,
for a (moved) bound b, so that this is the error with the multiplier theta = 1 / (1 - c_k) - 1 of
the goal and the constant cost theta (1 - b) of naming k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skbandit.measure import BoundConstraints
from skbandit.prices._calibrate import Measured, PricedRule, priced_rule
from skbandit.prices._confident import LEAST_AIM
from skbandit.prices._problem import Problem, lowest_entries, without_prices
from skbandit.utils._validation import ROUNDING

PARTS = (1.0, 0.6)
"""Parts of the most rows that a class may be named for at the precision that it should have."""

FEWEST_AT_CUTOFFS = 10.0
"""Rows that a class is named for, at least: fewer than else, if no rule keeps as many."""

NEVER = 2.0
"""Constant cost of a class that nowhere keeps its precision, in units of an error's."""


@dataclass(frozen=True)
class BoundedPrecision:
    """A lower bound on the precision of one decision.

    Attributes
    ----------
    goal, decision : int
        Number of the goal, and code of the decision.
    least : float
        The bound.
    moved : float
        b: the bound of the goal's table.
    scale : float
        Unit of that table.
    """

    goal: int
    decision: int
    least: float
    moved: float
    scale: float


def bounded_precisions(
    tables: np.ndarray, is_ratio: np.ndarray, bound: np.ndarray, has_rows: np.ndarray
) -> list[BoundedPrecision]:
    """Return the goals that bound the precision of one decision from below.

    Parameters
    ----------
    tables : ndarray of shape (m, F, D)
        What decisions (columns) add to each goal, by label, or by group and label.
    is_ratio : ndarray of bool, shape (m,)
        Whether a goal is a lower bound of a ratio.
    bound : ndarray of shape (m,)
    has_rows : ndarray of bool, shape (D,)
        Whether rows have the label.
    """
    tables = tables - np.median(tables, axis=2, keepdims=True)  # the first decision adds nothing
    m, F, D = tables.shape
    by_group = tables.reshape(m, F // D, D, D)
    tables = by_group.mean(axis=1)
    is_of_all = np.abs(by_group - tables[:, None]).max(axis=(1, 2, 3), initial=0.0) <= 1e-5
    precisions = []
    for k in np.flatnonzero(is_ratio & is_of_all):
        used = np.flatnonzero(np.abs(tables[k]).max(axis=0) > ROUNDING)
        if len(used) != 1:
            continue
        d = int(used[0])
        wrong, right = tables[k][has_rows & (np.arange(len(has_rows)) != d), d], tables[k][d, d]
        scale = float(wrong.max(initial=0.0) - right)
        if scale > 0 and np.ptp(wrong) <= ROUNDING + 1e-5 * scale:
            moved = float(wrong.max(initial=0.0)) / scale
            precisions.append(BoundedPrecision(int(k), d, float(bound[k]), moved, scale))
    return precisions


def lowest_cutoff(
    probability: np.ndarray,
    is_right: np.ndarray,
    weight: np.ndarray,
    least: float,
    part: float,
    fewest: float = 0.0,
    z: float = 0.0,
) -> float | None:
    """Return the lowest cutoff above which a share of rows is right; None if there is none.

    Parameters
    ----------
    probability : ndarray of shape (n,)
    is_right : ndarray of bool, shape (n,)
    weight : ndarray of shape (n,)
    least : float
        The share.
    part : float
        Of the most rows above such a cutoff, so many are to be above it, about.
    fewest : float, default=0.0
        Weight above the cutoff, at least.
    z : float, default=0.0
        Standard errors by which the share of right rows is to be higher.

    Examples
    --------
    >>> probability = np.array([0.9, 0.8, 0.7, 0.6])
    >>> lowest_cutoff(probability, np.array([1, 1, 0, 1]) > 0, np.ones(4), 0.7, 1.0)
    0.59
    """
    order = np.argsort(-probability, kind="stable")
    p, named = probability[order], np.cumsum(weight[order])
    right = np.cumsum(weight[order] * is_right[order])
    is_last = np.append(p[1:] < p[:-1], True)[: len(p)]
    noise = np.sqrt(max(least * (1.0 - least), 0.0) * np.cumsum(weight[order] ** 2))
    is_good = right >= (least - ROUNDING) * named + z * noise
    good = np.flatnonzero(is_last & is_good & (named >= fewest))
    if not len(good):
        return None
    fewer = good[good <= part * good[-1]]
    at = fewer[-1] if len(fewer) else good[-1]
    below = p[at + 1] if at + 1 < len(p) else p[at] - 0.02
    return float(np.clip(0.5 * (p[at] + below), 0.0, 1.0 - 1e-9))


def cutoff_rules(
    tables: np.ndarray,
    goals: BoundConstraints,
    probability: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    z: float,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return multipliers of m goals and constant costs of D decisions, of one rule per `PARTS`.

    None where each decision has a bounded precision, so that nothing is left for the other rows.

    Parameters
    ----------
    tables : ndarray of shape (m, F, D)
        See `bounded_precisions`; the K constraints first.
    goals : BoundConstraints
    probability : ndarray of shape (n, D)
    label : ndarray of int, shape (n,)
    weight : ndarray of shape (n,)
    z : float
        Standard errors by which precisions are to be higher on these rows.
    """
    D, top, rules = probability.shape[1], probability.argmax(axis=1), []
    is_floor = np.diff(goals.forms.denominator.indptr).astype(bool) & (goals.sign < 0)
    of_goals, has_rows = tables[: len(is_floor)], np.isin(np.arange(D), label)
    precisions = bounded_precisions(of_goals, is_floor, goals.bound, has_rows)
    fewest = FEWEST_AT_CUTOFFS / len(weight)
    if not precisions or len({precision.decision for precision in precisions}) == D:
        return []
    for part in PARTS:
        multipliers, constants = np.zeros(len(tables)), np.zeros(D)
        for precision in precisions:
            d, rows = precision.decision, top == precision.decision
            of_rows = probability[rows, d], label[rows] == d, weight[rows]
            cutoff = lowest_cutoff(*of_rows, precision.least, part, fewest, z)
            if cutoff is None:
                constants[d] = NEVER
                continue
            price = 1.0 / (1.0 - cutoff) - 1.0
            multipliers[precision.goal] = price / precision.scale
            constants[d] = price * (1.0 - precision.moved)
        rules.append((multipliers, constants))
    return rules


def best_given(
    problem: Problem,
    measure: Callable[[np.ndarray], Measured],
    cutoffs: Sequence[np.ndarray],
    z: float,
) -> PricedRule | None:
    """Return the best of a few rules that no goal's price decides; None if none is inside.

    Constant decisions and the plain one are given before, so that their limits must be inside.
    Tables of cutoffs were chosen on these rows, and must be as far inside as those of prices.
    """
    _, F, D = np.shape(problem.goals)
    tables = [(np.tile(1.0 - row, (F, 1)), 1.0) for row in np.eye(D)]
    tables.append((np.tile(1.0 - np.eye(D), (F // D, 1)), 1.0))
    prices, best = without_prices(problem), None
    for costs, margins in [*tables, *((costs, LEAST_AIM) for costs in cutoffs)]:
        chosen = lowest_entries(np.asarray(problem.strata @ costs), 1)
        rule, measured = priced_rule(problem, measure, prices, chosen, costs)
        missed = measured.excess + margins * measured.margin(z)  # or nan
        if bool((missed <= ROUNDING).all()) and rule.better_than(best):
            best = rule
    return best
