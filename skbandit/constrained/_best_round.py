"""The choice among the rounds of a reduction: one, or the mean of two, and its thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtr

from skbandit.constrained._group_rules import GroupCuts
from skbandit.constrained._prices import best_prices
from skbandit.constrained._reduction_rounds import Judge, KnownGroupRules, KnownRules, Round
from skbandit.constrained._rules import Rule, best_model
from skbandit.constrained.cross_fitting._choose import choose
from skbandit.constrained.cross_fitting._usual_cut import nearest_to_usual

SEARCHED = 3
"""Means of two rounds whose thresholds per group are searched: those that may gain most."""


@dataclass(frozen=True)
class Winner:
    """The rounds whose fits predict, and their thresholds.

    Attributes
    ----------
    numbers : tuple of int
        One round, or two, whose scores are averaged.
    rule : Rule
        The thresholds and what they attain.
    quantile : float
        The normal quantile of the level that they attain; 0 if only rates were looked at.
    candidates : dict
        The scores of all candidates, by name.
    """

    numbers: tuple[int, ...]
    rule: Rule
    quantile: float
    candidates: dict[str, np.ndarray]

    @property
    def level(self) -> float:
        """The confidence level of `quantile`."""
        return float(ndtr(self.quantile))


def best_round(done: Sequence[Round], judge: Judge, known: KnownRules) -> Winner:
    """The round, or the mean of two, and the thresholds with the best objective out of fold.

    The fit to the rows as they are gives way to another one, and one fit to the mean of two,
    only for more than noise. Means matter where the best rule changes much with the prices: there
    one fit follows the objective, the other one the constraints, and none lies between.

    Parameters
    ----------
    done : sequence of Round
        The first fitted the rows as they are.
    judge : Judge
    known : KnownRules
        What the rounds made known.

    Returns
    -------
    Winner
    """
    one = {str(k): each.scores for k, each in enumerate(done)}
    two = {
        f"{i}+{j}": 0.5 * (done[i].scores + done[j].scores)
        for i, j in combinations(range(len(done)), 2)
    }
    if isinstance(known, KnownGroupRules):
        name, rule, z = _per_group(two, judge, known)
    else:
        name, rule, z = _common(one, two, judge)
    return Winner(tuple(map(int, name.split("+"))), rule, z, one | two)


def _common(
    one: dict[str, np.ndarray], two: dict[str, np.ndarray], judge: Judge
) -> tuple[str, Rule, float]:
    """One threshold for all rows."""
    judged = judge.goals, judge.limits
    settings: dict[str, Any] = {
        "level": judge.level,
        "relax": judge.relax,
        "preferred": judge.usual,
        "dearest": judge.dearest,
    }
    choice = choose(one, *judged, plain="0", **settings)
    if two:
        candidates = {choice.name: one[choice.name]} | two
        choice = choose(candidates, *judged, plain=choice.name, **settings)
    if choice.feasible:
        choice = nearest_to_usual(choice, (one | two)[choice.name], *judged, judge.usual)
    at = choice.threshold
    rule = Rule(np.array([at.cut]), at.objective, at.slack, 0.0, choice.positive)
    return choice.name, rule, choice.quantile


def _per_group(
    two: dict[str, np.ndarray], judge: Judge, known: KnownGroupRules
) -> tuple[str, Rule, float]:
    """A threshold for each group."""
    z, _ = judge.attained(known)
    single = [known.best(k, z) for k in range(known.n_rounds)]
    first = best_model(single, judge.goals)
    rules = {str(first): single[first]}
    rules |= {name: judge.rule(two[name], z) for name in _promising(two, judge, known, z)}
    name = list(rules)[best_model(list(rules.values()), judge.goals)]
    return name, rules[name], z


def _promising(
    two: dict[str, np.ndarray], judge: Judge, known: KnownGroupRules, z: float
) -> list[str]:
    """The means of two rounds with the lowest Lagrangian at the prices of the best mixture.

    No thresholds of theirs that meet the constraints have a lower objective than that.
    """
    if len(two) <= SEARCHED:
        return list(two)
    most = judge.problem.highest_prices()
    prices = best_prices(known.at(z, most), most)

    def least(name: str) -> float:
        curves = GroupCuts.of(two[name], known.group, judge.problem, judge.limits)
        return float(curves.cheapest(prices, z).reduced(prices)[0])

    return sorted(two, key=least)[:SEARCHED]
