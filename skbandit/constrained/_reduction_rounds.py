"""The rounds of a reduction: prices, one weighted fit out of fold, new rules, prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from skbandit.constrained._declared import Declared, Goals, MeasuredGoals
from skbandit.constrained._prices import (
    LinearProblem,
    NextPrices,
    Prices,
    Rules,
    next_prices,
    rules_of_cuts,
)
from skbandit.constrained._weighted_fits import WeightedTask
from skbandit.constrained.cross_fitting._choose import HALVINGS, Choice, choose
from skbandit.constrained.cross_fitting._usual_cut import nearest_to_usual
from skbandit.rates._binding import Data, ScoreLimits


@dataclass(frozen=True)
class Costs:
    """What all rows cost, tested or not, at any prices.

    Attributes
    ----------
    problem : LinearProblem
        Objective and constraints over N stacked rows.
    row_weight : ndarray of shape (N,)
    plain : WeightedTask
        The rows of X as they are.
    """

    problem: LinearProblem
    row_weight: np.ndarray
    plain: WeightedTask

    @classmethod
    def of(cls, declared: Declared, goals: Goals, data: Data) -> Costs:
        """Bind to all rows of the data what was bound to those that are tested."""
        n, train, extra = len(data), data.train, data.extra
        whole = declared.bind_part(replace(goals, data=data), np.ones(n), np.ones(len(train)))
        objective = whole.objective.negated() if whole.maximise else whole.objective
        problem = LinearProblem.of(objective, whole.constraints.subset(goals.is_measured))
        row_weight, positive = np.zeros(n), np.zeros(n, dtype=bool)
        row_weight[: len(train)], positive[: len(train)] = train.weight, train.label == 1
        plain = WeightedTask(positive, row_weight.copy())
        if extra is not None:
            row_weight[len(train) :] = extra.weight
        return cls(problem, row_weight, plain)

    def task(self, prices: Prices) -> WeightedTask:
        """The weighted classification problem at given prices."""
        return WeightedTask.of_costs(self.problem.costs(prices), self.row_weight)


@dataclass(frozen=True)
class Round:
    """One fit and what was known after it.

    Attributes
    ----------
    task : WeightedTask or None
        What was fitted; None for the rows as they are.
    prices : ndarray of shape (K,)
        The prices behind the task.
    scores : ndarray of shape (n,)
        Scores of the rows that count.
    value : float
        The best objective so far, lower is better, by limits; inf if no rule meets these.
    gap : float
        How much better another rule could be: see `NextPrices`.
    """

    task: WeightedTask | None
    prices: np.ndarray
    scores: np.ndarray
    value: float
    gap: float

    def __str__(self) -> str:
        priced = ", ".join(f"{price:.3g}" for price in self.prices)
        if np.isinf(self.value):
            return f"prices [{priced}], no threshold meets the constraints so far"
        gain = max(self.gap, 0.0)
        return f"prices [{priced}], best objective {abs(self.value):.4g}, {gain:.2g} to gain"


@dataclass(frozen=True)
class Judge:
    """What rounds are judged by.

    Attributes
    ----------
    goals : MeasuredGoals
        Objective and constraints over the n rows that count.
    limits : ScoreLimits
        Of the constraints.
    level : float
        Probability with which they shall hold; 0.5 is for the rates themselves.
    relax : bool
        Whether the level may fall where no threshold attains it.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    level: float
    relax: bool

    @cached_property
    def problem(self) -> LinearProblem:
        """The goals as a linear problem."""
        return LinearProblem.of(self.goals.objective, self.goals.constraints)

    def next_prices(self, known: KnownRules, tried: list[np.ndarray]) -> NextPrices:
        """Prices for the next round, at the highest level that some threshold attains."""
        full = max(float(ndtri(self.level)), 0.0)
        steps = [full / 2**halving for halving in range(HALVINGS + 1)] if self.relax else [full]
        for z in [*steps, 0.0] if self.relax else steps:
            rules = known.at(z)
            if np.isfinite(rules.best_value()):
                break
        raised = 0 if np.isfinite(rules.best_value()) else len(tried) - 1
        return next_prices(rules, tried, self.problem.highest_prices(raised))


class KnownRules:
    """The rules that thresholds make on the scores of all rounds and on means of two of them."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._rounds: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._rules: dict[float, list[Rules]] = {}

    def add(self, scores: np.ndarray) -> None:
        """Add the scores of a round, and their means with those of each round before."""
        self._scores += [scores, *(0.5 * (scores + other) for other in self._rounds)]
        self._rounds.append(scores)

    def at(self, z: float) -> Rules:
        """All rules, judged by limits at a normal quantile."""
        found = self._rules.setdefault(z, [])
        judge = self._judge
        for scores in self._scores[len(found) :]:
            found.append(rules_of_cuts(scores, judge.problem, judge.limits, z))
        return Rules.joined(found)


@dataclass(frozen=True)
class Winner:
    """The rounds whose fits predict, and their threshold.

    Attributes
    ----------
    numbers : tuple of int
        One round, or two, whose scores are averaged.
    choice : Choice
        The threshold and what it attains.
    candidates : dict
        The scores of all candidates, by name.
    """

    numbers: tuple[int, ...]
    choice: Choice
    candidates: dict[str, np.ndarray]


def best_round(done: Sequence[Round], judge: Judge, usual: float) -> Winner:
    """The round, or the mean of two, and the threshold with the best objective out of fold.

    The fit to the rows as they are gives way to another one, and one fit to the mean of two,
    only for more than noise. Means matter where the best rule changes much with the prices: there
    one fit follows the objective, the other one the constraints, and none lies between.

    Parameters
    ----------
    done : sequence of Round
        The first fitted the rows as they are.
    judge : Judge
    usual : float
        The classifier's own threshold.

    Returns
    -------
    Winner
    """
    options: dict[str, Any] = {
        "level": judge.level,
        "relax": judge.relax,
        "preferred": usual,
    }
    one = {str(k): each.scores for k, each in enumerate(done)}
    two = {
        f"{i}+{j}": 0.5 * (done[i].scores + done[j].scores)
        for i, j in combinations(range(len(done)), 2)
    }
    choice = choose(one, judge.goals, judge.limits, plain="0", **options)
    if two:
        candidates = {choice.name: one[choice.name]} | two
        choice = choose(candidates, judge.goals, judge.limits, plain=choice.name, **options)
    if choice.feasible:
        scores = (one | two)[choice.name]
        choice = nearest_to_usual(choice, scores, judge.goals, judge.limits, usual)
    return Winner(tuple(map(int, choice.name.split("+"))), choice, one | two)


def rounds(
    judge: Judge,
    plain: WeightedTask,
    score: Callable[[WeightedTask | None], np.ndarray],
    task_of: Callable[[Prices], WeightedTask | None],
    *,
    max_iter: int,
    tol: float,
) -> Iterator[Round]:
    """Fit the rows as they are, then at prices that follow what the rules so far attain.

    Parameters
    ----------
    judge : Judge
    plain : WeightedTask
        The rows as they are.
    score : callable
        Fits a task, or None for the rows as they are, and returns the scores of the rows that
        count.
    task_of : callable
        The task at given prices; None if there is nothing to fit, because all rows that cost
        anything are to be answered alike.
    max_iter : int
        Number of rounds at most.
    tol : float
        The rounds end when no rule is better than the best known by more than this.

    Yields
    ------
    Round
    """
    n_constraints = len(judge.goals.constraints.bound)
    is_ratio = judge.goals.objective.denominator.nnz > 0
    task, prices, value = None, np.zeros(n_constraints), np.nan
    free = task_of(Prices(0.0, prices))  # no constraint costs anything
    settled = not is_ratio and free is not None and free.is_near(plain)
    fitted, tried, known = [plain], [], KnownRules(judge)
    for _ in range(max_iter):
        scores = score(task)
        known.add(scores)
        tried.append(prices)
        found = judge.next_prices(known, tried)
        yield Round(task, prices, scores, found.value, found.gap)
        prices = found.prices.constraints
        if is_ratio:
            settled = abs(found.prices.value - value) <= tol
            value = found.prices.value
        if settled and found.gap <= tol:
            return
        task = task_of(found.prices)
        if task is None or any(task.is_near(one) for one in fitted):
            return
        fitted.append(task)
        settled = settled or not is_ratio
