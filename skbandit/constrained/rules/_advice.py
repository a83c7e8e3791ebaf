"""Why no rule is good enough, and how far to relax: the one place of it, for thresholds and tables.

What a bound is relaxed to was tried: a threshold on these scores, or a search of tables, meets all
goals with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import ndtr

from skbandit import measure
from skbandit.constrained._goals import Goals
from skbandit.constrained.rules._candidates import slacks
from skbandit.constrained.rules._choose import Choice
from skbandit.constrained.rules._cost_tables import CostCriterion, CostSearch
from skbandit.constrained.rules._curve import Curve
from skbandit.constrained.rules._cutoffs import FEWEST_AT_CUTOFFS
from skbandit.constrained.rules._limits import Limits
from skbandit.constrained.rules._table_sums import kinds_of
from skbandit.measure import RATE_TOL
from skbandit.prices._confident import without_margins
from skbandit.prices._dual import told_apart
from skbandit.prices._levels import costly_level
from skbandit.prices._problem import lowest_entries
from skbandit.prices._search import best_rule, minimizing, prove_conflict
from skbandit.rates import Constraint
from skbandit.rates._expression import value_range
from skbandit.rates._kinds import AnyOf

if TYPE_CHECKING:
    import pandas as pd

    from skbandit.constrained.rounds._rounds import Criterion

MOST_TRIED = 6
"""Constraints whose relaxation is tried, those that the closest rule misses first."""

WITHOUT_MARGIN = 0.5
"""Confidence level at which proposals are tried."""

LARGEST_PART = 0.5
"""Part of what constraints cost from which on it is their level that costs."""

DIGITS = 3
"""Significant digits of a proposed bound, rounded to the side on which it holds."""


# What is missed.


def missed(table: pd.DataFrame, goals: measure.BoundConstraints) -> str:
    """List the constraints that do not hold, with the amounts missed."""
    faults = []
    for k in np.flatnonzero(~table["satisfied"].fillna(True)):
        row = table.iloc[k]
        value = row.get("cross_fitted", row["value"])
        if np.isnan(row["value"]) or np.isnan(value):
            fault = "is undefined, as no prediction falls in its denominator"
        elif "margin" in table and not row["slack"] >= row["margin"] - RATE_TOL:
            needed = row["bound"] - goals.sign[k] * row["margin"]
            low, high = value_range(goals.constraints[k].rate)
            fault = f"is {value:.4g}, missed by {row['margin'] - row['slack']:.2g}"
            rows = f"the margin for {row['effective_n']:.0f} rows that count"
            if not low - RATE_TOL <= needed <= high + RATE_TOL:
                fault += f": {rows} leaves no value inside the bound {row['bound']:.4g}"
            elif text := told_apart(needed, row["bound"], 4):
                fault += f": with {rows}, the bound {row['bound']:.4g} becomes {text}"
        else:
            of = " out of fold" if "cross_fitted" in table else ""
            fault = f"is {value:.4g}{of}, missed by {-row['slack']:.2g}"
        faults.append(f"{row['constraint']}: {fault}")
    return "; ".join(faults)


def level_reached(limits: Limits, decided: np.ndarray) -> str:
    """Return the level that decisions reach, and the rows that the asked one takes, in words.

    `decided` are `indicators`. Widths of limits shrink with the square root of the number of rows.
    """
    sums = (limits.rows @ decided)[:, None]
    if limits.limits.slack(sums, 0.0).min(initial=np.inf) <= 0:
        return f". On these rows the rates leave no room for confidence_level={limits.level:g}"

    def left(z: float) -> float:
        return float(ndtr(-z) - limits.limits.risk(sums, z)[0])

    low, text = 1e-3, ". These rows support a level of {:.2g}, not confidence_level={:g}"
    if left(low) < 0 or left(limits.quantile) >= 0:
        return text.format(0.5, limits.level)
    z = brentq(left, low, limits.quantile)
    times = f", which takes about {(limits.quantile / z) ** 2:.2g} times as many"
    return text.format(float(ndtr(z)), limits.level) + times


def known_rows_advice(table: pd.DataFrame, goals: measure.BoundConstraints) -> str:
    """How to make the final model right on known rows, if that was declared and is missed."""
    for k in np.flatnonzero(~table["satisfied"].fillna(True)):
        row, rate = table.iloc[k], goals.constraints[k].rate
        perfect = row["bound"] <= 0 if goals.sign[k] > 0 else row["bound"] >= 1
        flagged = len(rate.atoms) == 1 and not rate.constant and rate.atoms[0].where is not None
        if perfect and flagged and "cross_fitted" in table:
            return (
                f"{row['constraint']} is meant out of fold, on rows that a model has not seen; on "
                f"its training rows the final model has {row['value']:.4g}. If it is the final "
                "model that must be right on these known rows, drop the constraint and train with "
                "a sample_weight of 20 for them, taken back in the other constraints by weight=: "
                'see "Examples that must be right" in the user guide. '
            )
    return ""


def explain(
    goals: Goals,
    criterion: Criterion | CostCriterion,
    choice: Choice,
    scores: np.ndarray,
    report: pd.DataFrame,
    by: Any,
    of_fits: str,
) -> tuple[str, bool]:
    """Return why no rule on the scores of the rows that count will do, and whether it is proven.

    `choice` misses the goals by least, `report` is of it, and `of_fits` names several fits, if the
    scores are of some of them.
    """
    rule, limits = choice.rule, criterion.promised
    why = missed(report, goals.constraints) or "; ".join(report["constraint"])
    if limits is not None and limits.quantile > 0 and not limits.separate:
        why += level_reached(limits, goals.measured_indicators(rule.decided))
    what, meet, advice = "decisions", "meet", ""
    if isinstance(criterion, CostCriterion):
        advice, proven = why_no_costs(goals, criterion, scores, rule.decided)
        sure = proven
        columns = [
            atom.reference for goal in goals.constraints.constraints for atom in goal.rate.atoms
        ]
        if by is None and (deployed := next(filter(None, columns), None)):
            advice += (
                f" If {deployed!r} is known at prediction too, by={deployed!r} gives each of its "
                "decisions costs of its own."
            )
    else:
        what, meet = ("threshold", "meets") if by is None else (f"thresholds by {by!r}", "meet")
        is_missed = not criterion.search(scores)(None).feasible  # else the level is out of reach
        if is_missed:
            constraints = goals.measured.constraints
            at = criterion.thresholds
            curve = Curve.of(scores) if at is None else Curve.at(scores, at)
            slack = slacks(constraints, curve.values(constraints.forms))
            relaxations = Relaxations.least([slack], families(constraints.constraints))
            where = "On these rows" if by is None else "With one threshold for all groups"
            advice = relaxations.in_words(goals, where)
        sure = by is None or not (of_fits or np.isnan(rule.gap))
        proven = sure and is_missed and not of_fits
    none = f"No {what}{of_fits} {meet}" if sure else f"Found no {what}{of_fits} that {meet}"
    return f"{none} the constraints together: {why}.{advice}", proven


# How far to relax.


def families(constraints: Sequence[Constraint]) -> list[np.ndarray]:
    """Return the places of the constraints that are parts of one declared constraint."""
    numbers = measure.numbers_of_goals(constraints)
    numbers = np.where(numbers < 0, -1 - np.arange(len(numbers)), numbers)
    return [np.flatnonzero(numbers == number) for number in dict.fromkeys(numbers.tolist())]


def moved(constraints: measure.BoundConstraints, members: np.ndarray, by: float) -> str:
    """Return some parts of a declared constraint, and their bound relaxed so far."""
    first, sign = constraints.constraints[members[0]], constraints.sign[members]
    bound, side, label = float(constraints.bound[members[0]]), float(sign[0]), first.label
    if first.part is not None and len(members) > 1:
        label = first.part[1]
        if sign.min() < sign.max():  # the two sides of an absolute value
            bound, side = abs(bound), 1.0
    return f"{label} to {rounded_outwards(bound + side * by, side):g}"


def rounded_outwards(bound: float, sign: float) -> float:
    """Round a bound to few digits, not stricter: above for a sign of 1 (<=), below for -1."""
    if abs(bound) <= RATE_TOL:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(abs(bound))) + 1 - DIGITS)
    return float(sign * np.ceil(np.round(sign * bound / unit, 6)) * unit)


@dataclass(frozen=True)
class Relaxations:
    """Amounts, in the units of the declared bounds, that make thresholds feasible.

    Parameters
    ----------
    alone : ndarray of shape (n_declared,)
        What suffices if only this bound is relaxed; inf if nothing was found.
    together : ndarray of shape (n_declared,)
        What suffices if all these are relaxed: the least found in total.
    """

    alone: np.ndarray
    together: np.ndarray

    @classmethod
    def least(
        cls, by_direction: Iterable[np.ndarray], declared: Sequence[np.ndarray]
    ) -> Relaxations:
        """Return the smallest relaxations over all thresholds on some scores.

        Parameters
        ----------
        by_direction : iterable of ndarray of shape (m, C)
            For each score, the slack of every constraint at each of its thresholds.
        declared : sequence of ndarray of int
            For each declared bound the constraints that share it.
        """
        alone, together = np.full(len(declared), np.inf), np.full(len(declared), np.inf)
        for slack in by_direction:
            needed = np.maximum(-np.array([slack[rows].min(axis=0) for rows in declared]), 0.0)
            needed[needed <= RATE_TOL] = 0.0
            total = needed.sum(axis=0)
            best = int(np.argmin(total))
            if total[best] < together.sum():
                together = needed[:, best]
            for k, amount in enumerate(needed):
                others_hold = (np.delete(needed, k, axis=0) == 0).all(axis=0)
                alone[k] = min(alone[k], amount[others_hold].min(initial=np.inf))
        return cls(alone, together)

    def in_words(self, goals: Goals, where: str = "On these rows") -> str:
        """Return one or two sentences after a blank, or nothing."""
        constraints = goals.constraints.subset(goals.is_measured)
        declared = families(constraints.constraints)
        alone, together = (
            [
                moved(constraints, members, by)
                for members, by in zip(declared, amounts, strict=True)
                if 0 < by < np.inf
            ]
            for amounts in (self.alone, self.together)
        )
        said = f" {where} it is about enough to relax {', or '.join(alone)}." if alone else ""
        if len(together) > 1:
            said += f" Relaxing several, it is about enough to move {' and '.join(together)}."
        return said


# Tables of costs.


def why_no_costs(
    goals: Goals, criterion: CostCriterion, scores: np.ndarray, decided: np.ndarray
) -> tuple[str, bool]:
    """Return which relaxed bounds tables of costs meet, and whether a conflict is proven.

    Parameters
    ----------
    goals : Goals
    criterion : CostCriterion
    scores : ndarray of shape (n, L)
        Probabilities of the rows that count.
    decided : ndarray of int, shape (n,)
        By the rule that misses the goals by least.
    """
    search = CostSearch(criterion, criterion.strata(scores))
    constraints = criterion.goals.constraints
    rows, limit = criterion.goals.linear
    kind, table = kinds_of(csr_array(rows), search.weight, criterion.n_decisions)
    proven = prove_conflict(kind, search.weight, table, limit)
    if never := never_named(goals, search):
        return never, proven
    m, enough = len(limit), list[str]()
    excess = search.measure(decided[:, None] == np.arange(criterion.n_decisions)).excess
    over = np.nan_to_num(excess[:m] / search.searched[2][:m], nan=np.inf)
    declared = sorted(families(constraints.constraints), key=lambda members: -over[members].max())
    relaxed = cache(lambda *members: _relaxed(search, np.array(members)))
    for thorough in (False, True):  # a long search only if short ones say nothing
        for members in [] if enough else declared[:MOST_TRIED]:
            if (np.delete(excess, members) <= RATE_TOL).all():  # all else is met already
                enough.append(moved(constraints, members, float(excess[members].max())))
                continue
            worst = members[np.argsort(-over[members], kind="stable")]
            for tried in [worst] if len(worst) == 1 else [worst[:1], worst]:
                text, bound = relaxed(*tried.tolist())
                if text and _are_met(criterion, scores, bound, thorough):
                    enough.append(text)
                    break
    at = ""
    if criterion.levels[-1] > WITHOUT_MARGIN:
        at = f" at confidence_level={WITHOUT_MARGIN:g}"
    advice = f" On these rows it is enough{at} to relax one of them: {', or '.join(enough)}."
    return advice if enough else "", proven


def cost_of_level(
    goals: Goals,
    criterion: Criterion | CostCriterion,
    scores: np.ndarray,
    choice: Choice,
    plain: np.ndarray,
) -> str:
    """Return a sentence if the margins of a level that was asked for cost much, else "".

    With tables of costs that is a large part of what is earned; with thresholds, most of what the
    objective loses against the decisions `plain` (n,) without constraints.
    """
    if criterion.promised is None or criterion.promised.quantile == 0:
        return ""
    other: Any
    if isinstance(criterion, CostCriterion):
        search = CostSearch(criterion, criterion.strata(scores))
        other = without_margins(search.problem, choice.rule, search.best_rule)
    else:
        other = criterion.search(scores)(None)
        lost = choice.rule.objective - criterion.goals.objective_value(plain)
        if not choice.rule.objective - other.objective > LARGEST_PART * lost:
            return ""
    if other is None:
        return ""
    sign = -1.0 if goals.maximize else 1.0
    return costly_level(choice.level, sign * choice.rule.objective, sign * other.objective)


def _relaxed(search: CostSearch, members: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the bounds of which that of one goal, or all parts of one, is met under the others.

    In words, and as numbers; no words if others are missed, or only a level.
    """
    family, outcomes, unit = search.searched
    constraints = search.criterion.goals.constraints
    size, bound = unit[members].max(), constraints.bound.copy()
    others = minimizing(outcomes, members, unit[members] / size)
    point, _ = best_rule(family, others, search.starts(), 1.0)
    by = max(point.objective, 0.0) * size
    if point.missed > 0 or by <= RATE_TOL:
        return "", bound
    for k, side in zip(members, constraints.sign[members], strict=True):
        bound[k] = rounded_outwards(float(bound[k] + side * by), float(side))
    return moved(constraints, members, by), bound


def _are_met(
    criterion: CostCriterion, probability: np.ndarray, bound: np.ndarray, thorough: bool
) -> bool:
    """Return whether a search meets other bounds on the same rows, without margins."""
    goals = criterion.goals
    goals = replace(goals, constraints=replace(goals.constraints, bound=bound))
    criterion = replace(criterion, goals=goals, levels=(WITHOUT_MARGIN,), thorough=thorough)
    return criterion.best_rule(probability).feasible


def never_named(goals: Goals, search: CostSearch) -> str:
    """Return a sentence if barring classes whose precisions are bounded is enough; maybe empty.

    Where cutoffs per class name one for too few rows, its precision is met nowhere else.
    """
    few, names = replace(search, fewest=FEWEST_AT_CUTOFFS), goals.data.decisions
    constraints = few.criterion.goals.constraints
    of_class = [_class_of_precision(constraint) for constraint in constraints.constraints]
    ratios = np.diff(constraints.forms.denominator.indptr) > 0
    for costs in few.cutoff_tables():
        chosen = lowest_entries(np.asarray(few.strata @ costs), 1)
        never = [names[d] for d in np.flatnonzero(~chosen.any(axis=0))]
        barred = [label is not None and label in never for label in of_class]
        excess = few.measure(chosen).excess[~np.append(barred, np.array(barred)[ratios])]
        if any(barred) and (excess <= RATE_TOL).all():
            place = barred.index(True)
            label, goal = of_class[place], constraints.constraints[place].label
            return (
                f" {label!r} is named so well on fewer than {FEWEST_AT_CUTOFFS:.0f} rows only, if "
                f"at all. The others hold if it never is: in place of {goal} pass "
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
