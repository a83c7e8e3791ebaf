"""Decisions by tables of costs, for several classes: goals on rates become prices.

A table has a cost of each decision for each label, and with groups one such table per group. The
decision of a row is the one of least cost expected by the classifier's probabilities: see
`skbandit.prices`. Its goals are rates, measured on rows whose labels are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, vstack

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.rules._candidates import ThresholdSearch
from skbandit.constrained.rules._choose import (
    Choice,
    nearest_to_default,
    objective_scale,
)
from skbandit.constrained.rules._groups import Rule
from skbandit.constrained.rules._limits import SharedRisk, limits_at
from skbandit.measure import LinearFractionalForms, ScoreLimits, indicators, numbers_of_goals
from skbandit.prices._calibrate import PricedRule, at_best_level, calibrated, representative
from skbandit.prices._dual import (
    DecisionProblem,
    Prices,
    ShadowPrices,
    at_ceiling,
    conflicting,
    enough_to_relax,
    gains_without,
    prices_under,
)
from skbandit.prices._levels import VIOLATION_COST, levels_to_try

FEWEST, SMALL_SHARE = 30.0, 0.2
"""Rows, or share of those that the plain decisions put there if these are fewer, that stay in the
denominator of a bounded precision: it is highest where next to nothing is in it.
"""


def strata_of(
    probability: np.ndarray, group: np.ndarray | None, n_groups: int
) -> np.ndarray | csr_array:
    """Probability of each stratum, a label or a group and a label, of rows of known groups.

    Parameters
    ----------
    probability : ndarray of shape (n, D)
        Of labels, and 0 of decisions that are no classes.
    group : ndarray of int, shape (n,), or None
        Code of each row's group, if there are groups.
    n_groups : int

    Returns
    -------
    ndarray or csr_array of shape (n, n_groups * D)
    """
    n, D = probability.shape
    if group is None:
        return probability
    column = (group * D)[:, None] + np.arange(D)
    starts = np.arange(n + 1) * D
    return csr_array((probability.ravel(), column.ravel(), starts), shape=(n, n_groups * D))


@dataclass(frozen=True)
class MeasuredDecisions:
    """What decisions attain: see `skbandit.prices._calibrate.Measured`.

    Attributes
    ----------
    objective : float
    excess : ndarray of shape (m,)
        Of the constraints, then of the guarded denominators.
    tables : tuple of two ndarray, or None
        Tables and constants of an objective of ratios, made linear at these decisions.
    sums : ndarray of shape (S, 1)
        What limits are computed from.
    limits : ScoreLimits
    """

    objective: float
    excess: np.ndarray
    tables: tuple[np.ndarray, np.ndarray] | None
    sums: np.ndarray
    limits: ScoreLimits

    def margin(self, z: float) -> np.ndarray:
        """Distances of the limits at a normal quantile from the rates; 0 of guards."""
        at_rates, at_limits = (self.limits.slack(self.sums, one)[:, 0] for one in (0.0, z))
        with np.errstate(invalid="ignore"):
            margin = np.nan_to_num(at_rates - at_limits, posinf=0.0)
        return np.append(margin, np.zeros(len(self.excess) - len(margin)))

    def risk(self, z: float) -> float:
        """Probability, about, that a goal is missed on new rows."""
        return float(self.limits.risk(self.sums, z)[0])


@dataclass(frozen=True)
class CostCriterion:
    """Goals and limits by which tables of costs are chosen: the `Criterion` of several classes.

    Attributes
    ----------
    goals : MeasuredGoals
        Objective and constraints over the n rows that count.
    limits : ScoreLimits
        Of the constraints.
    levels : tuple of float
        Probabilities that they hold, the highest first: see `best_quantile`.
    promised : SharedRisk or None
        What decisions must pass at the level, if a single one is given.
    label : ndarray of int, shape (n,)
        Codes of the labels, negative where there is none.
    weight : ndarray of shape (n,)
    n_decisions : int
    group : ndarray of int, shape (n,), or None
        Group of each row, where each group has a table.
    n_groups : int
    knows_group : bool
        Whether groups are known at prediction: else probabilities are those of the strata.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    levels: tuple[float, ...]
    promised: SharedRisk | None
    label: np.ndarray
    weight: np.ndarray
    n_decisions: int
    group: np.ndarray | None = None
    n_groups: int = 1
    knows_group: bool = True

    @classmethod
    def of(
        cls,
        goals: Goals,
        level: float | None,
        group: np.ndarray | None,
        n_groups: int,
        *,
        knows_group: bool = True,
    ) -> CostCriterion:
        """Bind the limits, which are promised at a level; `group` is of all rows."""
        # the denominators of ratios are chosen, too
        ratios = np.diff(goals.measured.constraints.forms.denominator.indptr) > 0
        limits, rows = limits_at(goals, level, ratios), goals.measured.rows
        return cls(
            goals.measured,
            limits,
            levels_to_try(level),
            None if level is None else SharedRisk(limits, level),
            goals.data.label[rows],
            goals.data.weight[rows],
            len(goals.data.decisions),
            None if group is None else group[rows],
            n_groups,
            knows_group,
        )

    def strata(self, probability: np.ndarray) -> np.ndarray | csr_array:
        """Probability of each stratum, shape (n, F)."""
        if not self.knows_group:
            return probability
        return strata_of(probability, self.group, self.n_groups)

    def best_rule(self, probability: np.ndarray, gain: np.ndarray | None = None) -> Choice:
        """The best tables at the best level.

        Parameters
        ----------
        probability : ndarray of shape (n, D), or (n, F) if groups are unknown
            From out-of-fold models: of labels or, with `gain`, of decisions.
        gain : ndarray of shape (n, D) or None
            The weights of the decisions that the models were trained for, instead of labels.
        """
        search = CostSearch(self, self.strata(probability), gain)

        def rule_at(z: float, start: Prices | None) -> PricedRule:
            return search.polished(calibrated(search.problem, search.measure, z, start), z)

        return Choice(None, *at_best_level(rule_at, self.levels, objective_scale(self.goals)))

    def loss(self, choice: Choice) -> float:
        """The objective and, where the level is free, the expected cost of violations.

        Lower is better; inf if the constraints do not hold.
        """
        if not choice.feasible:
            return np.inf
        risk = 1.0 - choice.level if len(self.levels) > 1 else 0.0
        return float(choice.rule.objective + VIOLATION_COST * objective_scale(self.goals) * risk)

    def shadow_prices(
        self, probability: np.ndarray, choice: Choice, gain: np.ndarray | None = None
    ) -> ShadowPrices:
        """Shadow prices of the measured constraints; parameters as of `best_rule`.

        What a constraint costs is measured, at the multipliers of the others that the probabilities
        tell.
        """
        search, rule = CostSearch(self, self.strata(probability), gain), choice.rule
        constraints, pi = self.goals.constraints, indicators(rule.decided, self.n_decisions)
        m, prices = len(constraints.bound), rule.prices
        problem, linear = search.problem.tightened(rule.moved), search.linear_objective(pi)
        problem = problem if linear is None else problem.with_objective(*linear)
        few, hard = representative(problem), at_ceiling(problem, prices)

        def value(kept: np.ndarray) -> float:
            part, others, _ = prices_under(few, prices, kept)
            if at_ceiling(part, others):  # probabilities tell nothing near these bounds
                return np.nan
            return search.measure(problem.with_goals(kept).decide(others)).objective

        # the guards that follow are no constraints, and stay
        declared = np.full(len(rule.moved), -1)
        declared[:m] = numbers_of_goals(constraints.constraints)
        free = value(declared < 0)
        if not choice.feasible:
            return ShadowPrices(np.full(m, np.nan), np.full(m, np.nan), free)
        every = rule.objective if hard else search.measure(problem.decide(prices)).objective
        binding = (prices.goals > 0) & (declared >= 0)
        gains = gains_without(value, declared, binding, every)[:m]
        per_unit = prices.goals[:m] * constraints.forms.fractions(pi)[1]
        # the rule was polished since, and one constraint costs no more than all together
        dropped = np.minimum(gains, max(rule.objective - free, 0.0))
        return ShadowPrices(np.full(m, np.nan) if hard else per_unit, dropped, free)

    def conflict(self, probability: np.ndarray) -> str:
        """A sentence on the constraints that no decisions meet together, as probabilities tell."""
        problem = CostSearch(self, self.strata(probability)).problem
        goals = self.goals.constraints
        every = np.arange(len(problem.bound)) < len(goals.bound)
        problem = problem.with_goals(every)
        found = conflicting(problem)
        if len(found) < 2:  # a single one is measured better than the probabilities tell it
            return ""
        labels = [one.label for one in goals.constraints]
        enough = enough_to_relax(problem, found, labels, goals.bound, goals.sign)
        named = "; ".join(labels[k] for k in found)
        return f" By the probabilities, these conflict: {named}.{enough}"


@dataclass(frozen=True)
class CostSearch:
    """A criterion on given probabilities: the problem of prices, and how its rules are measured.

    Attributes
    ----------
    criterion : CostCriterion
    strata : ndarray or csr_array of shape (n, F)
        Probability of each stratum.
    gain : ndarray of shape (n, D) or None
        If given, decisions take the place of labels, and these weights the place of rows'.
    """

    criterion: CostCriterion
    strata: np.ndarray | csr_array
    gain: np.ndarray | None = None

    @cached_property
    def weight(self) -> np.ndarray:
        """Weights of sum 1, shape (n,)."""
        weight = self.criterion.weight if self.gain is None else self.gain.sum(axis=1)
        return weight / weight.sum()

    @cached_property
    def problem(self) -> DecisionProblem:
        """The goals as tables, and the objective; its ratios are linear at the plain decisions."""
        goals = self.criterion.goals
        S, bound = goals.linear
        forms = goals.constraints.forms
        guarded, fewest = self.guards
        tables = self.linear_objective(indicators(self.plain, self.criterion.n_decisions))
        if tables is None:
            tables = self.objective[0], goals.objective.numerator_constant
        tables = self._with_labels_without_rows(tables[0]), tables[1]
        return DecisionProblem(
            self.strata,
            self.weight,
            *tables,
            np.concatenate([self._tables(S), -self._tables(guarded)]),
            np.append(bound, -fewest),
            self._tables(vstack([forms.denominator, 0.0 * guarded], format="csr")),
            np.append(forms.denominator_constant, np.ones(len(fewest))),
        )

    def _with_labels_without_rows(self, objective: np.ndarray) -> np.ndarray:
        """Costs of 1 for other decisions, where no row says what they cost."""
        D = self.criterion.n_decisions
        without = np.asarray(self._members.sum(axis=0)).reshape(-1, D).sum(axis=0) == 0
        if self.gain is not None or not without.any():
            return objective
        usual = (1.0 - np.eye(D)) * np.abs(objective).max(initial=0.0)
        tables = objective.reshape(len(objective), -1, D, D)
        filled = np.where(without[:, None], usual, tables)
        return filled.reshape(objective.shape)

    @cached_property
    def objective(self) -> tuple[np.ndarray, np.ndarray]:
        """Tables of the objective's numerators and denominators, each of shape (G, F, D)."""
        forms = self.criterion.goals.objective
        return self._tables(forms.numerator), self._tables(forms.denominator)

    @cached_property
    def plain(self) -> np.ndarray:
        """The most probable label of each row, by code."""
        D, F = self.criterion.n_decisions, self.strata.shape[1]
        return np.asarray(self.strata @ np.tile(np.eye(D), (F // D, 1))).argmax(axis=1)

    @cached_property
    def guards(self) -> tuple[csr_array, np.ndarray]:
        """Denominators of bounded ratios, as rows, and what these sums may not fall below."""
        forms = self.criterion.goals.constraints.forms
        ratios = np.flatnonzero(np.diff(forms.denominator.indptr))
        below, constant = forms.denominator[ratios], forms.denominator_constant[ratios]
        usual = below @ indicators(self.plain, self.criterion.n_decisions) + constant
        n = len(self.weight)
        fewest = np.clip(SMALL_SHARE * usual, 1 / n, FEWEST / n)
        return below, fewest - constant

    def measure(self, decided: np.ndarray) -> MeasuredDecisions:
        """What decisions attain on the rows."""
        goals, limits = self.criterion.goals, self.criterion.limits
        pi = indicators(decided, self.criterion.n_decisions)
        guarded, fewest = self.guards
        value, constraints = goals.objective_value(pi), goals.constraints
        excess = -constraints.slack(constraints.forms.values(pi))
        return MeasuredDecisions(
            np.inf if np.isnan(value) else value,
            np.append(excess, fewest - guarded @ pi),
            self.linear_objective(pi),
            (limits.rows @ pi)[:, None],
            limits,
        )

    def linear_objective(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Tables and constants of a sum of ratios, linear at given indicators; None without ratios.

        N/D is v + (N - v D)/d for the value v and the denominator d there, up to terms of second
        order: for a single ratio, Dinkelbach's method (1967).
        """
        goals = self.criterion.goals
        forms = goals.objective
        if not forms.denominator.nnz and not goals.adds:
            return None
        above, below = forms.fractions(pi)
        below = np.where(below > 0, below, 1.0 / len(self.weight))
        value = above / below
        linear = self.objective[0] - value[:, None, None] * self.objective[1]
        tables = (linear / below[:, None, None]).sum(axis=0)
        constant = forms.numerator_constant - value * forms.denominator_constant
        return tables[None], np.array([(value + constant / below).sum()])

    @cached_property
    def _members(self) -> csr_array:
        """Stratum of each labeled row, and the probabilities of the others', shape (n, F)."""
        criterion = self.criterion
        n, D = len(criterion.label), criterion.n_decisions
        if self.gain is not None:
            total = self.gain.sum(axis=1, keepdims=True)
            share = np.divide(self.gain, total, out=np.zeros_like(self.gain), where=total > 0)
            return csr_array(strata_of(share, criterion.group, criterion.n_groups))
        group = np.zeros(n, dtype=int) if criterion.group is None else criterion.group
        column = group * D + np.maximum(criterion.label, 0)
        known = (criterion.label >= 0).astype(float)
        own = csr_array((known, column, np.arange(n + 1)), shape=(n, self.strata.shape[1]))
        if known.all():
            return own
        return csr_array(own + csr_array(self.strata).multiply((1.0 - known)[:, None]))

    def _tables(self, rows: csr_array) -> np.ndarray:
        """Tables (J, F, D) of linear forms: the mean of a row's coefficients in each stratum.

        A group without rows of a label has the table of all groups for that label.
        """
        D = self.criterion.n_decisions
        members = self._members
        total = members.T @ self.weight
        found = np.zeros((rows.shape[0], len(total), D))
        for table, k in zip(found, range(len(found)), strict=True):
            table[:, 1:] = members.T @ rows[[k]].toarray().reshape(-1, D - 1)
        by_label = found.reshape(len(found), len(total) // D, D, D).sum(axis=1)
        of_label = total.reshape(-1, D).sum(axis=0)
        mean = by_label / np.where(of_label > 0, of_label, 1.0)[:, None]
        mean = np.tile(mean, (1, len(total) // D, 1))
        some = total > 0
        return np.where(some[:, None], found / np.where(some, total, 1.0)[:, None], mean)

    def polished(self, rule: PricedRule, z: float) -> PricedRule:
        """Move the cost of one decision after the other to where the objective is best as measured.

        Probabilities may be too high or too low for some decision: prices do not see it. A rise of
        one cost, the same in all strata, is a threshold on how much the decision is better than the
        best of the others, and the best threshold is found exactly; it moves only as far as noise
        does not explain what it gains.
        """
        criterion, best = self.criterion, rule
        if criterion.goals.adds or not rule.feasible:
            return rule
        taken = np.bincount(rule.decided, criterion.weight, criterion.n_decisions)
        # a class without rows has nothing to be measured by
        unknown = np.setdiff1d(self.plain, criterion.label) if self.gain is None else ()
        for j in np.argsort(-taken.round(9), kind="stable"):
            if j in unknown:
                continue
            cost = np.asarray(self.strata @ best.costs)
            others = np.where(np.arange(criterion.n_decisions) == j, np.inf, cost)
            other = others.argmin(axis=1)
            score = others[np.arange(len(cost)), other] - cost[:, j]
            against = self._decision_against(j, other)
            search = ThresholdSearch.of(score, *against)
            found = search.best(z, 0.0)
            if not found.feasible:
                continue
            choice = Choice(None, Rule.of(found, score), z)
            choice = nearest_to_default(choice, score, *against, 0.0, criterion.weight)
            threshold = choice.rule.thresholds[0]
            if threshold == 0 or not choice.rule.objective < best.objective:
                continue
            costs = best.costs.copy()
            costs[:, j] += threshold
            decided = np.where(choice.rule.decided > 0, j, other)
            best = replace(
                best, costs=costs, decided=decided, objective=float(choice.rule.objective)
            )
        return best

    def _decision_against(self, j: int, other: np.ndarray) -> tuple[MeasuredGoals, ScoreLimits]:
        """Goals and limits of one decision against each row's best other, as of two classes."""
        criterion = self.criterion
        goals, n, D = criterion.goals, len(other), criterion.n_decisions
        pi = indicators(other, D)
        own = _places(np.full(n, j), D)
        swap = csr_array(own - _places(other, D))

        def moved(forms: LinearFractionalForms) -> LinearFractionalForms:
            return LinearFractionalForms(
                csr_array(forms.numerator @ swap),
                forms.numerator_constant + forms.numerator @ pi,
                csr_array(forms.denominator @ swap),
                forms.denominator_constant + forms.denominator @ pi,
            )

        limits = criterion.limits
        limits = replace(
            limits, rows=csr_array(limits.rows @ swap), constant=limits.constant + limits.rows @ pi
        )
        constraints = replace(goals.constraints, forms=moved(goals.constraints.forms))
        return MeasuredGoals(moved(goals.objective), constraints, np.arange(n)), limits


def _places(decided: np.ndarray, n_decisions: int) -> csr_array:
    """Which of the `indicators` of n rows their decisions are, shape (n * (D - 1), n)."""
    some = np.flatnonzero(decided)
    place = some * (n_decisions - 1) + decided[some] - 1
    shape = len(decided) * (n_decisions - 1), len(decided)
    return csr_array((np.ones(len(some)), (place, some)), shape=shape)
