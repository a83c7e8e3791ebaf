"""The rounds of a reduction: multipliers, one weighted fit out of fold, new rules, multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.fits._weighted_fits import Task
from skbandit.constrained.rounds._multipliers import (
    FEW_THRESHOLDS,
    MAX_THRESHOLDS,
    GroupCurves,
    Multipliers,
    NextMultipliers,
    Rules,
    best_multipliers,
    dropped_prices_of_rules,
    highest_multipliers,
    next_multipliers,
    row_costs,
    rules_of_curve,
    shadow_prices,
    with_group_thresholds,
)
from skbandit.constrained.rules._candidates import Rule, ThresholdSearch
from skbandit.constrained.rules._choose import Choice, choose, nearest_to_default
from skbandit.constrained.rules._curve import Curve
from skbandit.constrained.rules._groups import rules_by_group
from skbandit.constrained.rules._limits import Limits, limits_at, limits_at_quantile, settled
from skbandit.measure import Data, ScoreLimits, numbers_of_goals
from skbandit.prices._dual import ShadowPrices, gains_without
from skbandit.prices._levels import at_best_level, best_quantile, levels_to_try
from skbandit.utils._validation import without_unit

SEARCHED = 3
"""Number of means of two rounds, those that may gain most, whose thresholds are searched."""

R = TypeVar("R")
"""A round of any kind of rules."""

_Scores = dict[tuple[int, ...], np.ndarray]

Search = Callable[[Limits | None], Rule]
"""Returns the best rule on scores, with limits inside if they are passed."""


@dataclass(frozen=True)
class Costs:
    """Costs of all rows, tested or not, at any multipliers.

    Attributes
    ----------
    goals : MeasuredGoals
        Objective and constraints over N stacked rows.
    row_weight : ndarray of shape (N,)
    plain : Task
        The rows of X as they are.
    """

    goals: MeasuredGoals
    row_weight: np.ndarray
    plain: Task

    @classmethod
    def of(cls, goals: Goals, data: Data) -> Costs:
        """Bind the goals of the tested rows to all rows."""
        train, added = data.train, np.zeros(len(data) - len(data.train))
        weight = np.append(without_unit(train.weight), added)
        plain = Task.of_labels(np.append(train.label == 1, added > 0), 2, weight)
        return cls(goals.over(data), without_unit(data.weight), plain)

    def task(self, multipliers: Multipliers) -> Task:
        """Return the weighted classification problem at given multipliers."""
        return Task.of_costs(row_costs(self.goals, multipliers), self.row_weight)


@dataclass(frozen=True)
class Round:
    """One fit and the state after it.

    Attributes
    ----------
    task : Task or None
        The fitted task; None for the rows as they are.
    multipliers : Multipliers
        Those behind the task.
    scores : ndarray of shape (n,)
        Scores of the rows that count.
    output : object
        What fitting returned besides these scores.
    proposal : NextMultipliers
        What to try next; the best objective so far, and how much better another rule could be.
    """

    task: Task | None
    multipliers: Multipliers
    scores: np.ndarray
    output: Any
    proposal: NextMultipliers

    def __str__(self) -> str:
        priced = ", ".join(f"{multiplier:.3g}" for multiplier in self.multipliers.constraints)
        if np.isinf(value := self.proposal.value):
            return f"multipliers [{priced}], no threshold meets the constraints so far"
        gain = max(self.proposal.gap, 0.0)
        return f"multipliers [{priced}], best objective {abs(value):.4g}, {gain:.2g} to gain"


@dataclass(frozen=True)
class Criterion:
    """Goals and limits by which rounds are evaluated.

    Attributes
    ----------
    goals : MeasuredGoals
        Objective and constraints over the n rows that count.
    limits : ScoreLimits
        Of the constraints.
    levels : tuple of float
        Probabilities that they hold, the highest first: see `best_quantile`.
    usual : float
        The classifier's own threshold.
    group : ndarray of int, shape (n,), or None
        Group of each row, where each group has a threshold.
    n_groups : int
        Their number.
    promised : Limits or None
        What predictions must pass at the level, if a single one is given.
    thresholds : ndarray or None
        Those that one threshold may be; None is for all.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    levels: tuple[float, ...]
    usual: float
    group: np.ndarray | None = None
    n_groups: int = 1
    promised: Limits | None = None
    thresholds: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        goals: Goals,
        level: float | None,
        usual: float,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        *,
        prefit: bool = False,
        decided: np.ndarray | None = None,
    ) -> Criterion:
        """Bind the limits, which are promised at a level; `group` and `decided` are of all rows.

        None is for the best of several levels. Of a `prefit` classifier, limits may be exact.
        """
        limits, rows = limits_at(goals, level, decided=decided), goals.measured.rows
        return cls(
            goals.measured,
            limits,
            levels_to_try(level),
            usual,
            None if group is None else group[rows],
            n_groups,
            None if level is None else Limits.promised(limits, goals, level, prefit=prefit),
        )

    def widened(self, clustered: np.ndarray) -> Criterion:
        """Replace the limits' factors of dependent rows."""
        promised = None if self.promised is None else self.promised.widened(clustered)
        return replace(self, limits=replace(self.limits, clustered=clustered), promised=promised)

    def attained(self, known_rules: KnownRules) -> tuple[float, float]:
        """Return the best normal quantile of known rules and their value; inf if none is inside."""

        def attempt(z: float) -> tuple[float, float]:
            return known_rules.best_value(z), known_rules.best_value(0.0)

        z = best_quantile(attempt, self.levels, self.goals.scale)
        return z, known_rules.best_value(z)

    def search(self, scores: np.ndarray) -> Search:
        """Return the rules on scores, one threshold per group."""
        if self.group is None:
            search = ThresholdSearch.of(scores, self.goals, self.limits.rows, self.thresholds)
            return partial(search.best, preferred=self.usual)
        return rules_by_group(scores, self.goals, self.usual, self.group, self.n_groups)

    def rule(self, search: Search, z: float) -> Rule:
        """Return the best of them at a normal quantile."""
        return search(limits_at_quantile(self.limits, z))

    def best_rule(self, scores: np.ndarray) -> Choice:
        """Return the best thresholds on scores at the best level."""
        search = self.search(scores)

        def rule_at(z: float) -> Rule:
            if z > 0 and self.promised is not None:
                return search(self.promised)
            return self.rule(search, z)

        def lowest(rule: Rule) -> float:  # the gap spares another long search
            return rule.objective - rule.gap

        by_gap, scale = None if self.group is None else lowest, self.goals.scale
        return Choice(None, *at_best_level(rule_at, self.levels, scale, by_gap))

    def settled(self, scores: np.ndarray, goals: Goals) -> tuple[Criterion, Choice]:
        """Return the best thresholds, by margins as wide as dependent rows make them there."""
        return settled(self, goals, lambda criterion: criterion.best_rule(scores))

    def shadow_prices(self, scores: np.ndarray, chosen: Choice) -> ShadowPrices:
        """Shadow prices of the measured constraints in the best mixture of thresholds."""
        known_rules = self.no_rules()
        known_rules.add(scores)
        return self.shadow_prices_of(known_rules, chosen)

    def shadow_prices_of(self, known_rules: KnownRules, chosen: Choice) -> ShadowPrices:
        """Shadow prices of the measured constraints in the best mixture of known rules."""
        z, rule = chosen.quantile, chosen.rule
        rules = known_rules.at(z, highest_multipliers(self.goals))
        free = float(np.fmin(known_rules.free_value(z), rule.objective))
        if not chosen.feasible:
            unknown = np.full(len(rules.missed), np.nan)
            return ShadowPrices(unknown, unknown, free)
        per_unit = shadow_prices(rules, self.goals, rule.decided)
        dropped = known_rules.dropped_prices(z, per_unit > 0, rule.objective)
        return ShadowPrices(per_unit, dropped, free)

    def next_multipliers(
        self, known_rules: KnownRules, tried: list[Multipliers]
    ) -> NextMultipliers:
        """Multipliers for the next round, at the highest level that some threshold attains."""
        z, value = self.attained(known_rules)
        most = highest_multipliers(self.goals, 0 if np.isfinite(value) else len(tried) - 1)
        return next_multipliers(known_rules.at(z, most), tried, most, value)

    def no_rules(self) -> KnownRules:
        """No rules yet."""
        return KnownRules(self) if self.group is None else KnownGroupRules(self, self.group)


class KnownRules:
    """The rules that thresholds make on the scores of all rounds and on means of two of them."""

    n_thresholds = MAX_THRESHOLDS
    """Thresholds of a score that become rules, at most."""

    def __init__(self, criterion: Criterion) -> None:
        self._judge = criterion
        self._rounds: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._rules: dict[float, list[Rules]] = {}

    def add(self, scores: np.ndarray) -> None:
        """Add the scores of a round, and their means with those of each round before."""
        self._scores += [scores, *(0.5 * (scores + other) for other in self._rounds)]
        self._rounds.append(scores)

    def at(self, z: float, most: np.ndarray) -> Rules:
        """All rules, with limits at a normal quantile; `most` are the highest multipliers."""
        return self.of_thresholds(z)

    def of_thresholds(self, z: float) -> Rules:
        """Return the rules of one threshold for all rows."""
        rules = self._rules.setdefault(z, [])
        criterion = self._judge
        for scores in self._scores[len(rules) :]:
            curve = Curve.of(scores).spread(self.n_thresholds)
            rules.append(rules_of_curve(curve, criterion.goals, criterion.limits, z))
        return Rules.joined(rules)

    def best_value(self, z: float) -> float:
        """Return the lowest objective of a rule that meets the constraints; inf if none does."""
        return self.of_thresholds(z).best_value()

    def free_value(self, z: float) -> float:
        """Return the lowest objective of a rule without any constraint."""
        return self.of_thresholds(z).free_value()

    def dropped_prices(self, z: float, binding: np.ndarray, objective: float) -> np.ndarray:
        """How much better than the chosen objective rules are without each constraint."""
        return dropped_prices_of_rules(self.of_thresholds(z), self._judge.goals, objective)


class KnownGroupRules(KnownRules):
    """Rules with one threshold per group, by column generation."""

    n_thresholds = FEW_THRESHOLDS  # common ones; those of groups follow

    def __init__(self, criterion: Criterion, group: np.ndarray) -> None:
        super().__init__(criterion)
        self.group = group
        self._curves: list[GroupCurves] = []
        self._searches: list[Search] = []
        self._best: dict[tuple[int, float], Rule] = {}

    def add(self, scores: np.ndarray) -> None:
        """Add the scores of a round."""
        super().add(scores)
        self._searches.append(self._judge.search(scores))

    def at(self, z: float, most: np.ndarray) -> Rules:
        """Return rules of common thresholds, and the combinations that the best mixture needs."""
        criterion = self._judge
        for scores in self._scores[len(self._curves) :]:
            self._curves.append(
                GroupCurves.of(scores, self.group, criterion.goals, criterion.limits)
            )
        return with_group_thresholds(self.of_thresholds(z), self._curves, most, z)

    def free_value(self, z: float) -> float:
        """Return the lowest objective of thresholds per group without any constraint."""
        nothing = np.zeros(len(highest_multipliers(self._judge.goals)))
        return float(best_multipliers(self.at(z, nothing), nothing).value)

    def dropped_prices(self, z: float, binding: np.ndarray, objective: float) -> np.ndarray:
        """Return what dropping each constraint gains, for mixtures of the rules."""
        goals = self._judge.goals
        highest = highest_multipliers(goals)

        def value(kept: np.ndarray) -> float:
            most = np.where(kept, highest, 0.0)  # what costs nothing does not bind
            return best_multipliers(self.at(z, most), most).value

        declared = numbers_of_goals(goals.constraints.constraints)
        every = value(np.ones(len(declared), dtype=bool)) if binding.any() else objective
        return gains_without(value, declared, binding, every)

    def best_value(self, z: float) -> float:
        """Return the lowest objective of thresholds on the scores of one round."""
        rules = [self.best(k, z) for k in range(len(self._rounds))]
        return min((rule.objective for rule in rules if rule.feasible), default=np.inf)

    def best(self, k: int, z: float) -> Rule:
        """Return the best thresholds on the scores of round k."""
        if (k, z) not in self._best:
            self._best[k, z] = self._judge.rule(self._searches[k], z)
        return self._best[k, z]


def rounds(
    evaluate: Callable[[Task | None], R],
    next_task: Callable[[R], Task | None],
    plain: Task,
    first: Task | None = None,
    *,
    max_iter: int,
) -> Iterator[R]:
    """Fit a task, evaluate the rules that it gives, and fit the task at their prices.

    Parameters
    ----------
    evaluate : callable
        Fits a task, or None for the rows as they are; returns the round.
    next_task : callable
        Returns the task after a round; None ends the rounds.
    plain : Task
        The rows as they are, which are not fitted again.
    first : Task or None
        The first task.
    max_iter : int
        Number of rounds at most.

    Yields
    ------
    R
        One round after the other; none of them is of nearly the same task as another.
    """
    task, fitted = first, [plain]
    for _ in range(max_iter):
        evaluated = evaluate(task)
        yield evaluated
        task = next_task(evaluated)
        if task is None or any(task.is_near(previous) for previous in fitted):
            return
        fitted.append(task)


@dataclass
class ThresholdRounds:
    """Rounds of weighted fits whose rules are thresholds, at multipliers from all rules so far.

    Attributes
    ----------
    criterion : Criterion
    known_rules : KnownRules
        To which those of each round are added.
    costs : Costs
    score : callable
        Fits a task, or None for the rows as they are, and returns the scores of the rows that
        count, and what `Round.output` will be.
    supports : callable
        Whether each fold has rows of both labels in a task.
    tol : float
        The rounds end when no rule is better than the best known by more than this.
    """

    criterion: Criterion
    known_rules: KnownRules
    costs: Costs
    score: Callable[[Task | None], tuple[np.ndarray, Any]]
    supports: Callable[[Task], bool]
    tol: float

    def __post_init__(self) -> None:
        self._tried = [Multipliers.nothing(self.criterion.goals)]

    def evaluate(self, task: Task | None) -> Round:
        """Fit a task and add its thresholds to the rules."""
        scores, output = self.score(task)
        self.known_rules.add(scores)
        proposal = self.criterion.next_multipliers(self.known_rules, self._tried)
        return Round(task, self._tried[-1], scores, output, proposal)

    def next_task(self, after: Round) -> Task | None:
        """Return the task at the proposed multipliers; None if no rule could be better."""
        proposal = after.proposal
        if proposal.gap <= self.tol and self._is_settled(after):
            return None
        multipliers = proposal.multipliers
        task = self._task_of(multipliers)
        if task is None:  # a step too short to leave both classes
            multipliers = proposal.of_mixture
            task = self._task_of(multipliers)
        self._tried.append(multipliers)
        return task

    def _is_settled(self, after: Round) -> bool:
        """Return whether the task at the proposed multipliers is of one kind with the last."""
        is_first = len(self._tried) == 1
        if self.criterion.goals.objective.denominator.nnz:  # a ratio's costs depend on its value
            moved = after.proposal.multipliers.value - after.multipliers.value
            return not is_first and abs(moved) <= self.tol
        free = self._task_of(after.multipliers) if is_first else None
        return not is_first or (free is not None and free.is_near(self.costs.plain))

    def _task_of(self, multipliers: Multipliers) -> Task | None:
        """Return the task at multipliers; None if one class is best for all rows of a fold."""
        task = self.costs.task(multipliers)
        return task if self.supports(task) else None


def best_round(done: Sequence[Round], criterion: Criterion, known_rules: KnownRules) -> Choice:
    """Choose the round, or mean of two, and the thresholds that are best out of fold.

    Means matter where the best rule changes much with the multipliers: there
    one fit follows the objective, the other one the constraints, and none lies between.

    Parameters
    ----------
    done : sequence of Round
        The first fitted the rows as they are.
    criterion : Criterion
    known_rules : KnownRules
        The rules of these rounds.

    Returns
    -------
    Choice
        Its name is the round, or the two rounds, whose fits predict: a tuple of int.
    """
    singles: _Scores = {(k,): each.scores for k, each in enumerate(done)}
    pairs: _Scores = {
        (i, j): 0.5 * (done[i].scores + done[j].scores)
        for i, j in combinations(range(len(done)), 2)
    }
    if isinstance(known_rules, KnownGroupRules):
        return _per_group(len(done), pairs, criterion, known_rules)
    judged = criterion.goals, criterion.limits
    choice = choose(singles | pairs, *judged, levels=criterion.levels, preferred=criterion.usual)
    if choice.feasible:
        choice = nearest_to_default(
            choice, (singles | pairs)[choice.name], *judged, criterion.usual
        )
    return choice


def _per_group(
    n_rounds: int, pairs: _Scores, criterion: Criterion, known_rules: KnownGroupRules
) -> Choice:
    """Choose a threshold for each group."""
    z, _ = criterion.attained(known_rules)
    single = {(k,): known_rules.best(k, z) for k in range(n_rounds)}
    first = min(single, key=lambda name: single[name].rank)
    rules: dict[tuple[int, ...], Rule] = {first: single[first]}
    rules |= {
        name: criterion.rule(criterion.search(pairs[name]), z)
        for name in _promising(pairs, criterion, known_rules, z)
    }
    name = min(rules, key=lambda name: rules[name].rank)
    return Choice(name, rules[name], z)


def _promising(
    pairs: _Scores, criterion: Criterion, known_rules: KnownGroupRules, z: float
) -> list[tuple[int, ...]]:
    """Return the means of two rounds of the lowest Lagrangian at the best mixture's prices.

    No thresholds of theirs that meet the constraints have a lower objective than that.
    """
    if len(pairs) <= SEARCHED:
        return list(pairs)
    most = highest_multipliers(criterion.goals)
    multipliers = best_multipliers(known_rules.at(z, most), most)

    def least(name: tuple[int, ...]) -> float:
        curves = GroupCurves.of(pairs[name], known_rules.group, criterion.goals, criterion.limits)
        return float(curves.cheapest(multipliers, z).reduced(multipliers)[0])

    return sorted(pairs, key=least)[:SEARCHED]
