"""Decisions by tables of costs, for several classes: goals on rates become prices.

A table has a cost of each decision for each label, and with groups one such table per group. The
decision of a row is the one of least cost expected by the classifier's probabilities: see
`skbandit.prices`. Its goals are rates, measured on rows whose labels are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, vstack

from skbandit.constrained._goals import Goals, MeasuredGoals
from skbandit.constrained.rules._choose import Choice
from skbandit.constrained.rules._cutoffs import FEWEST_AT_CUTOFFS, NEVER, best_given, cutoff_rules
from skbandit.constrained.rules._limits import Limits, limits_at
from skbandit.constrained.rules._recalibrate import Recalibration, recalibrate
from skbandit.constrained.rules._table_sums import (
    MeasuredDecisions,
    kinds_of,
    reordered,
    reordered_rows,
    strata_of,
)
from skbandit.measure import ScoreLimits, indicators, numbers_of_goals
from skbandit.prices._calibrate import PricedRule, expected_rules, priced_rule, representative
from skbandit.prices._confident import AIMS, confident_rule
from skbandit.prices._dual import (
    SMOOTHING,
    ShadowPrices,
    at_ceiling,
    best_prices,
    gains_without,
    prices_under,
)
from skbandit.prices._levels import at_best_level, levels_to_try
from skbandit.prices._problem import Prices, Problem, lowest_entries
from skbandit.prices._search import (
    UNDEFINED,
    Candidate,
    Family,
    Outcomes,
    Search,
    best_rule,
    every_table,
    minimizing,
    with_objective,
)
from skbandit.utils._validation import ROUNDING, without_unit

FEWEST, SMALL_SHARE = 30.0, 0.2
"""Rows, or share of those that the plain decisions put there if these are fewer, that stay in the
denominator of a bounded precision: it is highest where next to nothing is in it.
"""

WITHOUT_MARGIN = 0.5
"""Confidence level at which goals are met as measured."""

CHANCE_ERRORS = 0.5
"""Standard errors by which expected rates are believed against worse measured ones at a level: with
2, rare classes of boosted trees keep their floors in 0.6 of fits for 0.9 (docs/benchmarks.md)."""

ERROR_COST = 1e-6
"""Cost of an error in units of the objective's: it decides what the objective leaves open."""

HIGHER_ERROR_COSTS, OPEN_TOLERANCE = (0.1, 0.01), 1e-3
"""The same at a level, where a lower one is lost in the dual's smoothing, and by how much of the
objective's unit the objective may then be worse."""

N_SPREAD, CHEAPER = 6, 0.6
"""Random starts of a search for rules that meet the goals, if others met none, and by what share
of an error a decision is cheaper at the others."""

TIE, CONTENT_DIGITS = 1e-12, 9
"""Tolerance of equal costs, in units of the largest cost, and digits of shares of decisions."""

MOST_ENTRIES = 100
"""Entries of a table of costs up to which each is moved alone, if no prices meet the goals."""

BEHIND, WORTH_ALL = 0.02, 0.005
"""Parts of the objective's unit: all tables are searched if prices end so far behind the dual, and
one of them is taken if it gains so much."""

STARTS = (0.3, 3.0, 30.0)
"""Multipliers of all goals at which searches begin, in units of the objective's costs."""


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
    promised : Limits or None
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
    fold : ndarray of int, shape (n,), or None
        Fold in which each row was scored; None if probabilities are not to be recalibrated.
    clustered : callable or None
        Factors of standard errors by dependent rows, at decisions of the rows that count.
    thorough : bool
        Whether to search on where goals are missed, from rules that know no objective.
    """

    goals: MeasuredGoals
    limits: ScoreLimits
    levels: tuple[float, ...]
    promised: Limits | None
    label: np.ndarray
    weight: np.ndarray
    n_decisions: int
    group: np.ndarray | None = None
    n_groups: int = 1
    knows_group: bool = True
    fold: np.ndarray | None = None
    clustered: Callable[[np.ndarray], np.ndarray | None] | None = None
    thorough: bool = True

    @classmethod
    def of(
        cls,
        goals: Goals,
        level: float | None,
        group: np.ndarray | None,
        n_groups: int,
        *,
        knows_group: bool = True,
        fold: np.ndarray | None = None,
        decided: np.ndarray | None = None,
    ) -> CostCriterion:
        """Bind the limits, which are promised at a level; arrays are of all rows."""
        limits, rows = limits_at(goals, level, decided=decided), goals.measured.rows
        limits = replace(limits, widening=None)  # rules are aimed inside instead
        return cls(
            goals.measured,
            limits,
            levels_to_try(level),
            None if level is None else Limits(limits, level),
            goals.data.label[rows],
            without_unit(goals.data.weight[rows]),
            len(goals.data.decisions),
            None if group is None else group[rows],
            n_groups,
            knows_group,
            None if fold is None else fold[rows],
            None if goals.data.dependent is None else goals.cluster_factors,
        )

    def strata(self, probability: np.ndarray) -> np.ndarray | csr_array:
        """Probability of each stratum, shape (n, F)."""
        if not self.knows_group:
            return probability
        return strata_of(probability, self.group, self.n_groups)

    def settled(self, probability: np.ndarray, goals: Goals) -> tuple[CostCriterion, Choice]:
        """Return the best tables: margins are measured at each rule that is tried."""
        return self, self.best_rule(probability)

    def best_rule(self, probability: np.ndarray, gain: np.ndarray | None = None) -> Choice:
        """Return the best tables at the best level, whatever decisions are called.

        The search is in an order of decisions by their content. Among equal costs the first one in
        this order is the lowest by `TIE`.

        Parameters
        ----------
        probability : ndarray of shape (n, D), or (n, F) if groups are unknown
            From out-of-fold models: of labels or, with `gain`, of decisions.
        gain : ndarray of shape (n, D) or None
            The weights of the decisions that the models were trained for, instead of labels.
        """
        D, (n, F) = self.n_decisions, probability.shape
        labeled = self.label >= 0
        of_label = np.bincount(self.label[labeled], self.weight[labeled], D)
        p = probability.reshape(n, F // D, D).sum(axis=1)
        content = np.stack([of_label, self.weight @ p, self.weight @ p**2]) / self.weight.sum()
        order = np.lexsort(-np.round(content, CONTENT_DIGITS)[::-1])
        columns = (np.arange(0, F, D)[:, None] + order).ravel()
        gain = None if gain is None else gain[:, order]
        choice = self._in_order(order)._best_rule(probability[:, columns], gain)
        rule, place = choice.rule, np.argsort(order)
        costs = rule.costs + TIE * np.abs(rule.costs).max() * np.arange(D)
        strata = (np.arange(0, len(costs), D)[:, None] + place).ravel()
        calibration = rule.recalibration
        if calibration is not None:
            labels = (np.arange(0, calibration.constants.shape[1], D)[:, None] + place).ravel()
            calibration = replace(calibration, constants=calibration.constants[:, labels])
        parts = {"costs": costs[strata][:, place], "decided": order[rule.decided]}
        return replace(choice, rule=replace(rule, recalibration=calibration, **parts))

    def _in_order(self, order: np.ndarray) -> CostCriterion:
        """Return the same goals and limits on decisions in another order."""
        forms = self.goals.constraints.forms
        objective, forms = (reordered(part, order) for part in (self.goals.objective, forms))
        constraints = replace(self.goals.constraints, forms=forms)
        rows, constant = reordered_rows(self.limits.rows, self.limits.constant, order)
        place, clustered = np.argsort(order), self.clustered
        return replace(
            self,
            goals=replace(self.goals, objective=objective, constraints=constraints),
            limits=replace(self.limits, rows=rows, constant=constant),
            label=np.where(self.label < 0, self.label, place[self.label]),
            clustered=None if clustered is None else lambda decided: clustered(order[decided]),
        )

    def _best_rule(self, probability: np.ndarray, gain: np.ndarray | None) -> Choice:
        search = CostSearch(self, self.strata(probability), gain)
        calibration: Recalibration | None = None
        honest = search
        if gain is None and self.fold is not None and max(self.levels) > WITHOUT_MARGIN:
            of_others, calibration = self.recalibrate(probability)
            honest = CostSearch(self, self.strata(of_others))

        def rule_at(z: float) -> PricedRule:
            if z == 0 or not len(search.problem.bound):
                return search.best_rule()
            rule = honest.promised(z)
            decided = rule.decided.argmax(axis=1)
            return replace(rule, decided=decided, recalibration=calibration)

        return Choice(None, *at_best_level(rule_at, self.levels, self.goals.scale))

    def recalibrate(self, probability: np.ndarray) -> tuple[np.ndarray, Recalibration]:
        """Probabilities recalibrated out of fold, and the recalibration by all rows."""
        assert self.fold is not None
        label, group, n_groups = self.label, self.group, self.n_groups
        if not self.knows_group and group is not None:  # columns are groups and labels
            label = np.where(label < 0, label, group * self.n_decisions + label)
            group, n_groups = None, 1
        return recalibrate(probability, label, self.weight, group, n_groups, self.fold)

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
        free = min(free, rule.objective)  # what meets the constraints is free to be chosen
        every = rule.objective if hard else search.measure(problem.decide(prices)).objective
        binding = (prices.goals > 0) & (declared >= 0)
        gains = gains_without(value, declared, binding, every)[:m]
        per_unit = prices.goals[:m] * constraints.forms.fractions(pi)[1]
        # the rule was polished since, and one constraint costs no more than all together
        dropped = np.minimum(gains, rule.objective - free)
        return ShadowPrices(np.full(m, np.nan) if hard else per_unit, dropped, free)


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
    fewest : float
        See `FEWEST`.
    error_cost : float
        See `ERROR_COST`.
    """

    criterion: CostCriterion
    strata: np.ndarray | csr_array
    gain: np.ndarray | None = None
    fewest: float = FEWEST
    error_cost: float = ERROR_COST

    @cached_property
    def weight(self) -> np.ndarray:
        """Weights of sum 1, shape (n,)."""
        weight = self.criterion.weight if self.gain is None else self.gain.sum(axis=1)
        return weight / weight.sum()

    @cached_property
    def unit(self) -> float:
        """The largest cost of a row in the objective, 1 without any."""
        return float(np.abs(self.objective[0]).max(initial=0.0)) or 1.0

    @cached_property
    def errors(self) -> tuple[csr_array, np.ndarray]:
        """Weights of wrong decisions, of those that are classes, and of classes decided.

        Less those of the first decision, shape (3, n (D - 1)), which are in the constants (3,).
        """
        D, label = self.criterion.n_decisions, self.criterion.label
        wrong = np.where(label[:, None] < 0, 0.0, label[:, None] != np.arange(D))
        is_class = np.asarray(self.strata.sum(axis=0)).reshape(-1, D).sum(axis=0) > 0
        answered = np.broadcast_to(is_class, wrong.shape)
        costs = np.stack([wrong, wrong * is_class, answered]) * self.weight[:, None]
        rows = csr_array((costs[:, :, 1:] - costs[:, :, :1]).reshape(len(costs), -1))
        return rows, costs[:, :, 0].sum(axis=1)

    @cached_property
    def problem(self) -> Problem:
        """The goals as tables, and the objective; its ratios are linear at the plain decisions."""
        goals = self.criterion.goals
        S, bound = goals.linear
        forms = goals.constraints.forms
        guarded, fewest = self.guards
        tables = self.linear_objective(indicators(self.plain, self.criterion.n_decisions))
        if tables is None:
            tables = self._settled(self.objective[0]), goals.objective.numerator_constant
        return Problem(
            self.weight,
            self.strata,
            *tables,
            np.concatenate([self._tables(S), -self._tables(guarded)]),
            np.append(bound, -fewest),
            self._tables(vstack([forms.denominator, 0.0 * guarded], format="csr")),
            np.append(forms.denominator_constant, np.ones(len(fewest))),
        )

    def _settled(self, objective: np.ndarray) -> np.ndarray:
        """Tables that leave nothing open: errors decide, at a low cost, where nothing else does.

        Other decisions cost 1 for labels without rows, where no row says what they cost.
        """
        D = self.criterion.n_decisions
        wrong = 1.0 - np.eye(D)
        tables = objective.reshape(len(objective), -1, D, D)
        without = np.asarray(self._members.sum(axis=0)).reshape(-1, D).sum(axis=0) == 0
        if self.gain is None and without.any():
            usual = wrong * np.abs(objective).max(initial=0.0)
            tables = np.where(without[:, None], usual, tables)
        return (tables + self.error_cost * self.unit * wrong).reshape(objective.shape)

    @cached_property
    def objective(self) -> tuple[np.ndarray, np.ndarray]:
        """Tables of the objective's numerators and denominators, each of shape (G, F, D)."""
        forms = self.criterion.goals.objective
        return self._tables(forms.numerator), self._tables(forms.denominator)

    @cached_property
    def by_label(self) -> np.ndarray:
        """Probabilities of labels, of any group, shape (n, D)."""
        D, F = self.criterion.n_decisions, self.strata.shape[1]
        return np.asarray(self.strata @ np.tile(np.eye(D), (F // D, 1)))

    @cached_property
    def plain(self) -> np.ndarray:
        """The most probable label of each row, by code."""
        return self.by_label.argmax(axis=1)

    @cached_property
    def guards(self) -> tuple[csr_array, np.ndarray]:
        """Denominators of bounded ratios, as rows, and what these sums may not fall below."""
        forms = self.criterion.goals.constraints.forms
        ratios = np.flatnonzero(np.diff(forms.denominator.indptr))
        below, constant = forms.denominator[ratios], forms.denominator_constant[ratios]
        usual = below @ indicators(self.plain, self.criterion.n_decisions) + constant
        n = len(self.weight)
        fewest = np.clip(SMALL_SHARE * usual, 1 / n, self.fewest / n)
        return below, fewest - constant

    def measure(self, decided: np.ndarray) -> MeasuredDecisions:
        """Measure what decisions (n, D) attain on the rows."""
        goals, limits = self.criterion.goals, self.criterion.limits
        pi = decided[:, 1:].astype(float).ravel()
        guarded, fewest = self.guards
        clustered = self.criterion.clustered
        value, constraints = goals.objective_value(pi), goals.constraints
        excess = -constraints.slack(constraints.forms.values(pi))
        return MeasuredDecisions(
            np.inf if np.isnan(value) else value,
            np.append(excess, fewest - guarded @ pi),
            self.linear_objective(pi),
            (limits.rows @ pi)[:, None],
            limits,
            None if clustered is None else partial(clustered, decided.argmax(axis=1)),
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
        return self._settled(tables[None]), np.array([(value + constant / below).sum()])

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
        labeled = (criterion.label >= 0).astype(float)
        members = csr_array((labeled, column, np.arange(n + 1)), shape=(n, self.strata.shape[1]))
        if labeled.all():
            return members
        return csr_array(members + csr_array(self.strata).multiply((1.0 - labeled)[:, None]))

    def _tables(self, rows: csr_array) -> np.ndarray:
        """Tables (J, F, D) of linear forms: the mean of a row's coefficients in each stratum.

        A group without rows of a label has the table of all groups for that label.
        """
        D = self.criterion.n_decisions
        members = self._members
        total = members.T @ self.weight
        tables = np.zeros((rows.shape[0], len(total), D))
        for k, table in enumerate(tables):
            table[:, 1:] = members.T @ rows[[k]].toarray().reshape(-1, D - 1)
        by_label = tables.reshape(len(tables), len(total) // D, D, D).sum(axis=1)
        of_label = total.reshape(-1, D).sum(axis=0)
        mean = by_label / np.where(of_label > 0, of_label, 1.0)[:, None]
        mean = np.tile(mean, (1, len(total) // D, 1))
        has_rows = total > 0
        return np.where(has_rows[:, None], tables / np.where(has_rows, total, 1.0)[:, None], mean)

    @cached_property
    def _with_constants(self) -> np.ndarray:
        """Decisions that have a constant cost: not classes without rows."""
        unknown = np.setdiff1d(self.plain, self.criterion.label) if self.gain is None else ()
        return np.setdiff1d(np.arange(self.criterion.n_decisions), unknown)

    @cached_property
    def searched(self) -> tuple[Family, Outcomes, np.ndarray]:
        """The rules of these tables, what they attain on the rows, and units of the m excesses.

        After the objectives and the goals stand the error, by which the rules of other objectives
        belong to the family, and free tables: the divisor of a ratio objective, and a constant cost
        of each decision but of classes without rows, which have nothing to be measured by.
        """
        goals, problem = self.criterion.goals, self.problem
        D, F = self.criterion.n_decisions, self.strata.shape[1]
        each = self._with_constants
        constant = np.zeros((len(each), F, D))
        constant[np.arange(len(each)), :, each] = 1.0
        ratio = self.objective[1] if self.objective[1].any() and not goals.adds else constant[:0]
        errors = np.tile(1.0 - np.eye(D), (F // D, 1))[None]
        goal_tables = self.expected[1].goals
        tables = np.concatenate([problem.objective, goal_tables, errors, ratio, constant])
        m, n_priced = len(problem.bound), len(problem.objective) + len(problem.bound) + 1
        family = Family(self.strata, tables, np.arange(len(tables)) >= n_priced)

        objective, forms, (guarded, fewest) = goals.objective, goals.constraints.forms, self.guards
        G, K = objective.numerator.shape[0], forms.numerator.shape[0]
        parts = [objective.numerator, objective.denominator, forms.numerator, forms.denominator]
        parts += [guarded, self.errors[0]]
        kind, table = kinds_of(vstack(parts, format="csr"), self.weight, D)
        constants = [
            objective.numerator_constant,
            objective.denominator_constant,
            forms.numerator_constant,
            forms.denominator_constant,
            np.zeros(len(fewest)),
            self.errors[1],
        ]
        sign, bound = goals.constraints.sign, goals.constraints.bound
        ends = np.cumsum([G, G, K, K, len(fewest)])
        _, _, above, below, low, _ = np.split(table, ends)
        spread = np.ptp(np.concatenate([above - bound[:, None, None] * below, low]), axis=2)
        unit = spread @ np.bincount(kind, self.weight, table.shape[1])
        unit = np.where(unit > 0, unit, 1.0)
        # np.split takes longer than all else of a judgment
        parts_of_sums = [slice(*part) for part in pairwise([0, *ends, len(table)])]

        def evaluate(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            over, under, above, below, low, wrong = (sums[part] for part in parts_of_sums)
            value = _quotients(over, under)
            rates = sign[:, None] * (_quotients(above, below) - bound[:, None])
            excess = np.concatenate([rates, fewest[:, None] - low]) / unit[:, None]
            value = value.sum(axis=0) if goals.adds else value.max(axis=0)
            value = value + ERROR_COST * self.unit * wrong[0]
            value[np.isnan(value)] = np.inf
            excess[np.isnan(excess)] = UNDEFINED
            return value, excess

        outcomes = Outcomes(kind, table, self.weight, np.concatenate(constants), evaluate)
        return family, outcomes, unit[:m]

    @cached_property
    def expected(self) -> tuple[list[Prices], Problem]:
        """Multipliers by what probabilities expect, and the problem whose bounds they are of last.

        The first are those of the dual; for the next ones bounds are moved by what expected rates
        miss of the measured ones.
        """
        rules, moved = expected_rules(self.problem, self.measure)
        return [rules[0].prices, rules[-1].prices], self.problem.tightened(moved)

    def promised(self, z: float) -> PricedRule:
        """Return the best rule at a normal quantile; errors decide what the objective leaves open.

        It leaves something open if it tells some decisions apart for no label.
        """
        rule = confident_rule(self.problem, self.measure, z, chance_errors=CHANCE_ERRORS)
        if not rule.feasible:
            cutoffs = self.cutoff_tables(AIMS[0] * z)
            return best_given(self.problem, self.measure, cutoffs, z) or rule
        columns = np.concatenate([table.reshape(-1, table.shape[-1]) for table in self.objective])
        if len(np.unique(columns, axis=1).T) == columns.shape[1]:
            return rule
        most = rule.objective + OPEN_TOLERANCE * self.unit
        for error_cost in HIGHER_ERROR_COSTS:
            search = replace(self, error_cost=error_cost)
            other = confident_rule(search.problem, self.measure, z, chance_errors=CHANCE_ERRORS)
            is_as_good = other.feasible and other.objective <= most
            if is_as_good and self._n_errors(other) < self._n_errors(rule):
                return other
        return rule

    def _n_errors(self, rule: PricedRule) -> float:
        """Return the share of wrong decisions."""
        rows, constant = self.errors
        return float((rows @ rule.decided[:, 1:].astype(float).ravel() + constant)[0])

    def best_rule(self) -> PricedRule:
        """Return the best rule found whose rates meet the goals, without a margin."""
        few = replace(self, fewest=FEWEST_AT_CUTOFFS)
        rules = [lowest_entries(np.asarray(self.strata @ t), 1) for t in self.cutoff_tables()]
        if few.are_met_by(rules) and not self.are_met_by(rules):
            return few.best_rule()
        family, outcomes, unit = self.searched
        P, cost = len(family.free), self.problem.unit
        point, multipliers = best_rule(family, outcomes, self.starts(), cost)
        if (
            point.missed > 0 and self.criterion.thorough
        ):  # the goals alone; then the objective, from where they are met
            met = self._nearest(point)
            # of all tables, some meet a precision by naming a class for a few lucky rows
            has_ratio = len(self.guards[1]) > 0
            if met.missed > 0 and not has_ratio and family.size <= MOST_ENTRIES:
                every = every_table(family)
                starts = [met.theta, *self._spread_starts()]
                starts = [np.r_[np.zeros(len(every.free) - P), theta] for theta in starts]
                alone = with_objective(outcomes, lambda sums: np.zeros(sums.shape[1]))
                other, _ = best_rule(every, alone, starts, 1.0)
                if other.missed < met.missed:
                    family, met = every, other
            if met.missed < point.missed:
                point, multipliers = best_rule(family, outcomes, [met.theta], cost)
        is_small = len(family.free) == P and family.size <= MOST_ENTRIES
        if point.missed == 0 and is_small and point.objective > self._lowest + BEHIND * self.unit:
            every = every_table(family)
            start = np.r_[np.zeros(len(every.free) - P), point.theta]
            other, others = best_rule(every, outcomes, [start], cost)
            if other.missed == 0 and other.objective < point.objective - WORTH_ALL * self.unit:
                family, point, multipliers = every, other, others
        return self._rule_of(family.costs(point.theta), point.theta[-P:], multipliers / unit)

    def are_met_by(self, rules: Sequence[np.ndarray]) -> bool:
        """Return whether the goals, and enough rows in denominators, are met by some rule."""
        return any((self.measure(rule).excess <= ROUNDING).all() for rule in rules)

    @property
    def _lowest(self) -> float:
        """Values that the dual expects of randomized rules."""
        prices, tightened = self.expected
        return best_prices(representative(tightened), prices[-1], SMOOTHING[-1:])[1]

    def starts(self) -> list[np.ndarray]:
        """Coefficients to begin at: no prices, the plain rule, the duals', the goals' alone."""
        family, outcomes, unit = self.searched
        G, m, free = len(self.problem.constant), len(unit), int(family.free.sum())
        size = Search(family, outcomes).unit[: G + m]
        prices, _ = self.expected
        none, equal = np.zeros(free), np.full(G, 1.0 / G)
        starts = [np.r_[equal, np.zeros(m), 0.0, none], np.r_[0.0 * equal, np.zeros(m), 1.0, none]]
        starts += [np.r_[p.objectives, p.goals, 0.0, none] for p in prices]
        if m:
            starts.append(np.r_[np.zeros(G), size[G:], 0.0, none])
            starts += [np.r_[equal, x * size[G:] / size[:G].mean(), 0.0, none] for x in STARTS]
        return self._cutoffs() + starts

    def _cutoffs(self) -> list[np.ndarray]:
        """Coefficients of the rules of `_cutoff_rules`, as tightened goals have them."""
        family, starts = self.searched[0], []
        G, m = len(self.problem.constant), len(self.problem.bound)
        for multipliers, costs in self._cutoff_rules(self.expected[1]):
            theta = np.zeros(len(family.free))
            theta[G + m] = 1.0  # errors
            theta[G : G + m] = multipliers
            theta[len(theta) - len(self._with_constants) :] = costs[self._with_constants]
            starts.append(theta)
        return starts

    def _cutoff_rules(
        self, problem: Problem, z: float = 0.0
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Multipliers and constant costs by cutoffs per class, if precisions are bounded."""
        if self.gain is not None:
            return []
        rows = self.by_label, self.criterion.label, self.weight
        goals = self.criterion.goals.constraints
        return cutoff_rules(np.asarray(problem.goals), goals, *rows, z)

    def cutoff_tables(self, z: float = 0.0) -> list[np.ndarray]:
        """Tables of costs by cutoffs per class, at which precisions are higher by z errors."""
        D, problem = self.criterion.n_decisions, self.problem
        wrong = np.tile(1.0 - np.eye(D), (self.strata.shape[1] // D, 1))
        return [
            wrong + np.tensordot(multipliers, np.asarray(problem.goals), 1) + constants
            for multipliers, constants in self._cutoff_rules(problem, z)
        ]

    def _nearest(self, point: Candidate) -> Candidate:
        """Return the rule that misses the goals by least, under no objective.

        Whether goals are found to be met should not depend on the objective. First all goals are
        searched together, then the largest excess of those that are missed, under the others.
        """
        family, outcomes, _ = self.searched
        starts, search = [point.theta, *self._spread_starts()], Search(family, outcomes)
        alone = with_objective(outcomes, lambda sums: np.zeros(sums.shape[1]))
        is_barred = any((costs == NEVER).any() for _, costs in self._cutoff_rules(self.problem))
        for _ in range(1 if is_barred else 3):
            nearest = search.at(best_rule(family, alone, starts, 1.0)[0].theta)
            if nearest.missed < point.missed:
                point = nearest
            if point.missed == 0:
                break
            over = np.flatnonzero(point.excess > ROUNDING)
            alone, starts = minimizing(outcomes, over, np.ones(len(over))), [point.theta, starts[1]]
        return point

    def _spread_starts(self) -> list[np.ndarray]:
        """Spread the plain rule, with decisions a little or much cheaper, and random ones."""
        family, outcomes, _ = self.searched
        random, size = np.random.default_rng(0), Search(family, outcomes).unit
        starts = 10.0 ** random.uniform(-2, 2, (N_SPREAD, len(size))) * size
        starts[:, family.free] = 0.0
        plain = np.zeros(len(size))
        plain[np.flatnonzero(~family.free)[-1]] = 1.0
        n_constants = self.criterion.n_decisions
        others = [plain - CHEAPER * constant for constant in np.eye(len(size))[-n_constants:]]
        return [plain, *others, *starts]

    def _rule_of(self, costs: np.ndarray, theta: np.ndarray, multipliers: np.ndarray) -> PricedRule:
        """Make the rule of a table with coefficients theta; `multipliers` are of the goals."""
        G, chosen = len(self.problem.constant), lowest_entries(np.asarray(self.strata @ costs), 1)
        below = self.criterion.goals.constraints.forms.fractions(
            chosen[:, 1:].ravel().astype(float)
        )[1]
        below = np.append(below, np.ones(len(multipliers) - len(below)))
        objectives, total = theta[:G], theta[:G].sum()
        objectives = objectives / total if total > 0 else np.full(G, 1.0 / G)
        prices = Prices(objectives, np.divide(multipliers, below, where=below > 0, out=0.0 * below))
        rule, _ = priced_rule(self.problem, self.measure, prices, chosen, costs)
        return replace(rule, decided=chosen.argmax(axis=1))


def _quotients(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Ratios of sums, nan where the divisor is 0."""
    return above / np.where(below > ROUNDING, below, np.nan)
