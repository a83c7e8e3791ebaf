"""Why no table of costs meets the goals, and what would be enough: each proposal was tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skbandit.constrained._goals import Goals
from skbandit.constrained.rules._choose import Choice
from skbandit.constrained.rules._cost_tables import (
    FEWEST_AT_CUTOFFS,
    CostCriterion,
    CostSearch,
    kinds_of,
)
from skbandit.exceptions import ConstrainedFitWarning
from skbandit.measure import RATE_TOL, numbers_of_goals
from skbandit.prices._levels import costly_level
from skbandit.prices._promised import without_margins
from skbandit.prices._search import best_rule, minimizing, prove_conflict
from skbandit.rates import Constraint, positive_rate
from skbandit.rates._kinds import AnyOf
from skbandit.utils._validation import warn

MOST_TRIED = 6
"""Constraints whose relaxation is tried, those that the closest rule misses first."""

MOST_BARRED = 2
"""Classes that are tried to be named never."""

WITHOUT_MARGIN = 0.5
"""Confidence level at which proposals are tried."""

DIGITS = 3
"""Significant digits of a proposed bound, rounded to the side on which it holds."""


def why_no_costs(
    goals: Goals,
    criterion: CostCriterion,
    scores: np.ndarray,
    decided: np.ndarray,
    missed: str,
    knows_deployed: bool,
    of_fits: str = "",
) -> tuple[str, bool]:
    """Why no table of costs is good enough, and whether that is proven.

    Parameters
    ----------
    goals : Goals
    criterion : CostCriterion
    scores : ndarray of shape (n, L)
        Probabilities of the rows that count.
    decided : ndarray of int, shape (n,)
        By the rule that misses the goals by least.
    missed : str
        What it misses.
    knows_deployed : bool
        Whether the groups, such as deployed decisions, are known at prediction.
    of_fits : str
        Whose decisions they are, if of several fits.
    """
    search = CostSearch(criterion, criterion.strata(scores))
    proven = is_proven(search)
    advice = enough_to_relax(goals, search, scores, decided)
    if not knows_deployed:
        advice += known_deployed(goals.constraints.constraints)
    advice += never_named(goals, criterion, scores, search, decided)
    none = f"No decisions{of_fits} meet" if proven else f"Found no decisions{of_fits} that meet"
    return f"{none} the constraints together: {missed}.{advice}", proven


def warn_of_costly_level(
    goals: Goals, criterion: CostCriterion, scores: np.ndarray, choice: Choice
) -> None:
    """Warn if the margins of a level that was asked for take a large part of what is earned."""
    if criterion.promised is None or criterion.promised.quantile == 0:
        return
    search = CostSearch(criterion, criterion.strata(scores))
    other = without_margins(search.problem, choice.rule, search.best_rule)
    if other is not None:
        sign = -1.0 if goals.maximize else 1.0
        value, without = sign * choice.rule.objective, sign * other.objective
        warn(costly_level(choice.level, value, without), ConstrainedFitWarning)


def is_proven(search: CostSearch) -> bool:
    """Return whether no decisions whatever meet the constraints, even if all labels were known."""
    rows, limit = search.criterion.goals.linear
    kind, table = kinds_of(csr_array(rows), search.weight, search.criterion.n_decisions)
    return prove_conflict(kind, search.weight, table, limit)


def enough_to_relax(
    goals: Goals, search: CostSearch, probability: np.ndarray, decided: np.ndarray
) -> str:
    """Advise on the bounds of which one is enough to relax, each as measured; maybe empty.

    Of a goal of several groups or classes, the one that is missed by most is tried alone, and then
    all together. A fit under the relaxed bound has met it.

    Parameters
    ----------
    goals : Goals
    search : CostSearch
    probability : ndarray of shape (n, L)
    decided : ndarray of int, shape (n,)
        By the rule that misses the goals by least.
    """
    constraints = search.criterion.goals.constraints
    order = np.argsort(-_missed(search, decided), kind="stable")
    number = numbers_of_goals(constraints.constraints)
    enough = []
    for k in list(dict.fromkeys(number[order].tolist()))[:MOST_TRIED]:
        members = order[number[order] == k]
        for tried in [members] if len(members) == 1 else [members[:1], members]:
            text, others = _relaxed(search, tried)
            if text and _are_met(goals, search.criterion, probability, others, WITHOUT_MARGIN):
                enough.append(text)
                break
    if not enough:
        return ""
    level = search.criterion.levels[-1]
    at = f" at confidence_level={WITHOUT_MARGIN:g}" if level > WITHOUT_MARGIN else ""
    return f" On these rows it is enough{at} to relax one of them: {', or '.join(enough)}."


def _missed(search: CostSearch, decided: np.ndarray) -> np.ndarray:
    """By how much decisions miss each constraint, in units that compare; inf where undefined."""
    m = len(search.criterion.goals.constraints.bound)
    decided = decided[:, None] == np.arange(search.criterion.n_decisions)
    return np.nan_to_num(search.measure(decided).excess[:m] / search.searched[2][:m], nan=np.inf)


def _relaxed(search: CostSearch, members: np.ndarray) -> tuple[str, list[Constraint]]:
    """One goal, or all parts of one, with the bound that is met under the other goals; or empty.

    Also all constraints with that bound.
    """
    family, outcomes, unit = search.searched
    constraints = search.criterion.goals.constraints
    size = unit[members].max()
    others = minimizing(outcomes, members, unit[members] / size)
    point, _ = best_rule(family, others, search.starts(), 1.0)
    by = max(point.objective, 0.0) * size
    if point.missed > 0 or by <= RATE_TOL:  # others are missed, or only a level
        return "", []
    relaxed = list(constraints.constraints)
    for k in members:
        side = float(constraints.sign[k])
        bound = rounded_outwards(float(constraints.bound[k] + side * by), side)
        rate = constraints.constraints[k].rate
        relaxed[k] = rate <= bound if side > 0 else rate >= bound
    constraint, sign = constraints.constraints[members[0]], constraints.sign[members]
    label, bound = constraint.label, float(constraints.bound[members[0]])
    if constraint.part is not None and len(members) > 1:
        label = constraint.part[1]
        if sign.min() < sign.max():  # the two sides of an absolute value
            sign, bound = np.ones(1), abs(bound)
    bound = rounded_outwards(float(bound + sign[0] * by), float(sign[0]))
    return f"{label} to {bound:g}", relaxed


def rounded_outwards(bound: float, sign: float) -> float:
    """Round a bound to few digits, not stricter: above for a sign of 1 (<=), below for -1."""
    if abs(bound) <= RATE_TOL:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(abs(bound))) + 1 - DIGITS)
    return float(sign * np.ceil(np.round(sign * bound / unit, 6)) * unit)


def _are_met(
    goals: Goals,
    criterion: CostCriterion,
    probability: np.ndarray,
    constraints: list[Constraint],
    level: float,
) -> bool:
    """Return whether a search meets other constraints on the same rows."""
    others = replace(goals.declared, constraints=constraints).bind(goals.data, goals.factors)
    rows, counted = goals.measured.rows, others.measured.rows
    if not np.isin(counted, rows).all():
        return False
    kept = np.searchsorted(rows, counted)
    part = CostCriterion.of(others, level, None, criterion.n_groups)
    group, fold = (
        None if codes is None else codes[kept] for codes in (criterion.group, criterion.fold)
    )
    part = replace(part, group=group, fold=fold, knows_group=criterion.knows_group)
    return part.best_rule(probability[kept]).feasible


def never_named(
    goals: Goals,
    criterion: CostCriterion,
    probability: np.ndarray,
    search: CostSearch,
    decided: np.ndarray,
) -> str:
    """Return a sentence if barring a class, whose precision is bounded, is enough; maybe empty.

    `goals` are those of the criterion, `probability` is that of their rows. Of several precisions,
    those that the closest rule misses by most are tried.
    """
    constraints = goals.constraints.constraints
    bounded = [k for k, goal in enumerate(constraints) if _class_of_precision(goal) is not None]
    missed = _missed(search, decided)
    for k in sorted(bounded, key=lambda k: -missed[k])[:MOST_BARRED]:
        constraint = constraints[k]
        label = _class_of_precision(constraint)
        barred = [*constraints[:k], *constraints[k + 1 :], positive_rate(of=label) <= 0]
        if _are_met(goals, criterion, probability, barred, criterion.levels[-1]):
            return (
                f" {label!r} is named so well on fewer than {FEWEST_AT_CUTOFFS:.0f} rows only, if "
                f"at all. The others hold if it never is: in place of {constraint.label} pass "
                f"positive_rate(of={label!r}) <= 0."
            )
    return ""


def _class_of_precision(constraint: Constraint) -> Any:
    """Return the class whose precision a constraint bounds from below; None if it does not."""
    atoms = constraint.rate.atoms
    if len(atoms) != 1 or constraint.sense != ">=" or atoms[0].kind.name != "precision":
        return None
    label = atoms[0].of
    return None if label is None or isinstance(label, AnyOf) else label


def known_deployed(constraints: Iterable[Constraint]) -> str:
    """Advise if decisions that are stored in a column are bounded, and could be known."""
    for constraint in constraints:
        for atom in constraint.rate.atoms:
            if atom.reference is not None:
                return (
                    f" If {atom.reference!r} is known at prediction too, by={atom.reference!r} "
                    "gives each of its decisions costs of its own."
                )
    return ""
