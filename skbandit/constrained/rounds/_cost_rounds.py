"""The rounds of a reduction with several decisions: prices, one cost-sensitive fit, new prices.

At given prices, objective and goals add up to a cost of each decision for each row. A fit to these
costs knows what probabilities of labels do not, such as which rows are likely of a group. Its
shares of the decisions take the place of probabilities, and a table of costs on them meets the
goals as measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbandit.constrained._goals import Goals
from skbandit.constrained.fits._weighted_fits import Task
from skbandit.constrained.rounds._rounds import Costs
from skbandit.constrained.rules._choose import Choice, loss
from skbandit.constrained.rules._cost_tables import CostCriterion
from skbandit.measure import Data, indicators
from skbandit.prices._calibrate import PricedRule
from skbandit.prices._dual import ShadowPrices
from skbandit.utils._validation import without_unit


def costs_of_decisions(goals: Goals, data: Data) -> Costs:
    """Bind the goals of the tested rows to all rows; plain gains are 1 for the label of a row."""
    weight = without_unit(data.weight)
    return Costs(goals.over(data), weight, Task.of_labels(data.label, len(data.decisions), weight))


def task_at(costs: Costs, rule: PricedRule, decided: np.ndarray) -> Task:
    """Return the task at a rule's prices; ratios are linear at its decisions of all rows."""
    prices, forms = rule.prices, costs.goals.objective
    above, below = forms.fractions(indicators(decided, costs.plain.gain.shape[1]))
    below = np.where(below > 0, below, 1.0)
    mu = prices.objectives if len(prices.objectives) == len(above) else np.ones(len(above))
    of_row = forms.numerator.T @ (mu / below)
    of_row = of_row - forms.denominator.T @ (mu * above / below**2)
    S, _ = costs.goals.linear
    lam, moved = (part[: S.shape[0]] for part in (prices.goals, rule.moved))
    divisors = costs.goals.constraints.forms.denominator
    of_row = of_row + S.T @ lam + divisors.T @ (lam * moved)
    of_row = of_row.reshape(len(decided), -1)
    return Task.of_costs(np.insert(of_row, 0, 0.0, axis=1), costs.row_weight)


@dataclass(frozen=True)
class CostRound:
    """One fit, and the best tables of costs on its shares.

    Attributes
    ----------
    task : Task or None
        The fitted task; None for the labels as they are.
    output : tuple
        Out-of-fold shares of all rows, (N, D), and the fit to all rows, if there is one already.
    criterion : CostCriterion
    choice : Choice
    """

    task: Task | None
    output: tuple[np.ndarray, Any]
    criterion: CostCriterion
    choice: Choice

    @classmethod
    def of(
        cls,
        criterion: CostCriterion,
        rows: np.ndarray,
        task: Task | None,
        output: tuple[np.ndarray, Any],
    ) -> CostRound:
        """Choose tables of costs on the shares of a fit; `rows` are those that count."""
        gain = None if task is None else task.gain[rows]
        return cls(task, output, criterion, criterion.best_rule(output[0][rows], gain))

    def shadow_prices(self, rows: np.ndarray, choice: Choice) -> ShadowPrices:
        """See `CostCriterion.shadow_prices`."""
        gain = None if self.task is None else self.task.gain[rows]
        return self.criterion.shadow_prices(self.output[0][rows], choice, gain)

    @property
    def loss(self) -> float:
        """Its choice's `loss`."""
        return loss(self.criterion, self.choice)

    def better_than(self, other: CostRound) -> bool:
        """Return whether its loss is lower or, if both miss constraints, it misses them by less."""
        if np.isinf(self.loss) and np.isinf(other.loss):
            return self.choice.rule.slack > other.choice.rule.slack
        return self.loss < other.loss

    def __str__(self) -> str:
        rule = self.choice.rule
        held = "" if rule.feasible else ", constraints missed"
        priced = ", ".join(f"{price:.3g}" for price in rule.prices.goals)
        return f"prices [{priced}], objective {abs(rule.objective):.4g}{held}"


@dataclass
class TableRounds:
    """Rounds of fits to costs, at the prices of the best table so far.

    Attributes
    ----------
    criterion : CostCriterion
    costs : Costs
    rows : ndarray of int, shape (n,)
        The rows that count.
    score : callable
        Fits a task; returns the shares of all rows, and a fit: see `CostRound.output`.
    supports : callable
        Whether each fold has examples of two decisions.
    tol : float
        The rounds end when one is not better than the best by this.
    best : CostRound or None
        The best round so far.
    """

    criterion: CostCriterion
    costs: Costs
    rows: np.ndarray
    score: Callable[[Task | None], tuple[np.ndarray, Any]]
    supports: Callable[[Task], bool]
    tol: float
    best: CostRound | None = None

    def evaluate(self, task: Task | None) -> CostRound:
        """Fit a task and choose tables of costs on its shares."""
        criterion = self.criterion
        if self.best is not None and not criterion.knows_group:  # fits to costs learn the group
            criterion = replace(criterion, group=None, n_groups=1, knows_group=True)
        return CostRound.of(criterion, self.rows, task, self.score(task))

    def next_task(self, after: CostRound) -> Task | None:
        """Return the task at the prices of the best round; None if the last gained too little."""
        best = self.best
        if best is not None and not after.better_than(best):
            return None
        self.best = after
        if best is not None and best.loss - after.loss <= self.tol:
            return None
        decided = np.zeros(len(after.output[0]))
        decided[self.rows] = after.choice.rule.decided
        task = task_at(self.costs, after.choice.rule, decided)
        return task if self.supports(task) else None
