"""What decisions of a policy attain, with the standard errors of levels and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr, ndtri

from skbandit.exceptions import EmptyRateError
from skbandit.logged._action_goals import ROUNDING, ActionGoals, amounts_by_arm, as_declared
from skbandit.logged._action_tables import LoggedOutcomes
from skbandit.measure import Report, satisfied
from skbandit.prices._calibrate import representative
from skbandit.prices._dual import SMOOTHING, at_ceiling, best_prices
from skbandit.prices._problem import Prices, Problem, Use, decisions, stacked
from skbandit.rates import Rate
from skbandit.rates._kinds import OUTCOME, Atom
from skbandit.utils._skewed_means import Amounts, skewed_quantile, third_cumulant
from skbandit.utils._trials import Dependence, dependence

LEVEL = 0.95
"""Level of the intervals in fitted reports."""

INDEPENDENT = Dependence(1.0, 1.0, 1.0)
"""Design effect of independent rows."""


@dataclass(frozen=True)
class MeasuredGoal:
    """Values of one goal at given decisions, or of its logged outcomes."""

    excess: float = 0.0
    error: float = 0.0
    n_rows: int = 0
    effective: float = 0.0
    least: float = 0.0  # what one event more may change outcomes by
    cluster: Dependence = INDEPENDENT
    skewness: float = 0.0  # of the value's error
    heavy: tuple[tuple[float, Amounts], ...] = ()  # outcomes of which few are large, and means

    def wide(self, z: float, way: int = 1) -> float:
        """Error times a quantile, or what a rare event may add that none or few rows had.

        Of n independent rows without an event, a rate of -log(tail)/n or more is as improbable as
        the tail: the rule of three. Few groups have the quantiles of Student's t. Of amounts of
        which few are large, see `skbandit.utils._skewed_means`. `way` is 1 upwards, -1 downwards.
        """
        if z <= 0:
            return z * self.error
        few = 1.0 if self.error == 0 else _few(self.cluster, float(ndtr(-z)))
        wide = self.error * few * float(skewed_quantile(z, np.asarray(way * self.skewness)))
        of_tail = [max(way * mean, 0.0) * (of.factor(z) - 1.0) for mean, of in self.heavy]
        return max(wide, sum(of_tail), -float(log_ndtr(-z)) * self.least)


@dataclass(frozen=True)
class MeasuredActions:
    """Measured values of the goals: see `skbandit.prices._calibrate.Measured`."""

    objective: float
    means: dict[Any, float]  # by key of an atom
    goals: list[MeasuredGoal]
    tables: None = None

    def of_goals(self, name: str) -> np.ndarray:
        """Return a figure of each goal."""
        return np.array([getattr(goal, name) for goal in self.goals], dtype=float)

    @cached_property
    def excess(self) -> np.ndarray:
        """Excess of values over bounds."""
        return self.of_goals("excess")

    @cached_property
    def errors(self) -> np.ndarray:
        """Standard errors of values."""
        return self.of_goals("error")

    @cached_property
    def n_rows(self) -> np.ndarray:
        """Numbers of rows that count."""
        return self.of_goals("n_rows").astype(int)

    def margin(self, z: float) -> np.ndarray:
        """Return what values may be larger by, at a normal quantile."""
        return np.array([goal.wide(z) for goal in self.goals], dtype=float)

    def ends(self, z: float, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what values declared with a sign may be lower and higher by; nan without end."""
        wide = [(goal.wide(z, -1), goal.wide(z)) for goal in self.goals]
        lower, higher = np.array(wide, dtype=float).reshape(-1, 2).T
        below, above = np.where(sign > 0, [lower, higher], [higher, lower])
        return np.where(np.isinf(below), np.nan, below), np.where(np.isinf(above), np.nan, above)


@dataclass(frozen=True)
class Correction:
    """Mean difference of logged outcomes from their predictions, for given decisions.

    Attributes
    ----------
    means : list of float
        The outcomes less the predictions, which decisions choose where they are low by luck, by
        atom of the goals; 0 of others than outcomes.
    goals : list of MeasuredGoal
        With the errors of the outcomes.
    """

    means: list[float]
    goals: list[MeasuredGoal]


@dataclass(frozen=True)
class _Term:
    """A term of a goal: the mean of what decisions use, times c."""

    c: float
    atom: Atom
    mean: float
    weight: np.ndarray  # (N,)
    influence: np.ndarray  # (N,), on the goal
    largest: float
    step: float  # what one event more may change the goal by
    folds: np.ndarray  # parts of the goal by fold, if any


@dataclass(frozen=True)
class ActionMeasure:
    """Measures decisions of N rows, of which the last may be logged events.

    Attributes
    ----------
    goals : ActionGoals
    problem : Problem
    outcomes : dict of str to ndarray of shape (n, D)
        Outcomes of all actions of the logged rows.
    batch_size : int or None
        Number of rows for which goals must hold; None is the long run.
    fold : ndarray of int, shape (N,), or None
        Of the models that predicted the costs, if these are out of fold.
    group : ndarray of int, shape (N,), or None
        Groups of dependent rows.
    events : LoggedOutcomes or None
        The logged rows as they were, which tell how many saw a rare outcome.
    correction : Correction or None
        Of outcomes that are predicted; None of logged ones.
    logged_weight : ndarray of shape (n,), or None
        Weights of the last rows, which are logged events: outcomes are measured on these, all else
        on others. None if all rows are both.
    """

    goals: ActionGoals
    problem: Problem
    outcomes: dict[str, np.ndarray]
    batch_size: int | None
    fold: np.ndarray | None = None
    group: np.ndarray | None = None
    events: LoggedOutcomes | None = None
    correction: Correction | None = None
    logged_weight: np.ndarray | None = None

    def above(self, logged: Problem, group: np.ndarray | None) -> ActionMeasure:
        """Measure outcomes on logged events below these rows."""
        both = None
        if group is not None and self.group is not None:
            both = np.append(self.group, group)
        problem = stacked(self.problem, logged)
        return replace(self, problem=problem, group=both, logged_weight=logged.weight)

    @cached_property
    def first(self) -> int:
        """Number of the first logged row."""
        return 0 if self.logged_weight is None else len(self.problem.base) - len(self.logged_weight)

    @cached_property
    def weight(self) -> np.ndarray:
        """Weights of the rows in outcomes."""
        if self.logged_weight is None:
            return self.problem.weight
        return np.append(np.zeros(self.first), self.logged_weight)

    def corrected(self, decided: np.ndarray, predicted: dict[str, np.ndarray]) -> Correction:
        """Return the correction of predictions for logged rows, by models without these."""
        logged = replace(self, batch_size=None)(decided)
        means = replace(self, outcomes=predicted, events=None)(decided).means
        goals = [
            goal if any(atom.kind == OUTCOME for _, atom in terms) else MeasuredGoal()
            for goal, terms in zip(logged.goals, self.goals.sums, strict=True)
        ]
        missed = [
            logged.means[atom.key] - means[atom.key] if atom.kind == OUTCOME else 0.0
            for atom in self.goals.bounded
        ]
        return Correction(missed, goals)

    @cached_property
    def missed(self) -> dict[Any, float]:
        """Excess of the atoms' outcomes over their predictions."""
        atoms = self.goals.bounded
        means = [0.0] * len(atoms) if self.correction is None else self.correction.means
        return {atom.key: mean for atom, mean in zip(atoms, means, strict=True)}

    def tightened(self, problem: Problem) -> Problem:
        """Return a problem by predictions, with bounds that their correction leaves."""
        if self.correction is None:
            return problem
        sums = self.goals.sums
        moved = [sum(c * self.missed[atom.key] for c, atom in terms) for terms in sums]
        return problem.tightened(np.array(moved))

    def __call__(self, decided: np.ndarray) -> MeasuredActions:
        """Values and standard errors of all goals."""
        parts, taken = [self._part(terms) for terms in self.goals.sums], decisions(decided)
        of_goals = [
            [
                self._term(c, atom, use, taken, part)
                for (c, atom), (_, use) in zip(terms, uses, strict=True)
            ]
            for terms, uses, part in zip(self.goals.sums, self.problem.uses, parts, strict=True)
        ]
        means = {term.atom.key: term.mean for terms in of_goals for term in terms}
        row, decision = taken
        objective = self.problem.weight[row] @ self.problem.base[row, decision]
        goals = [self._goal(k, *goal) for k, goal in enumerate(zip(of_goals, parts, strict=True))]
        return MeasuredActions(float(objective), means, goals)

    def _part(self, terms: Sequence[tuple[float, Atom]]) -> slice:
        """Rows with weight in a goal: outcomes have logged events, all else has the others."""
        of_events = {atom.kind == OUTCOME for _, atom in terms}
        if self.logged_weight is None or len(of_events) != 1:
            return slice(None)
        return slice(self.first, None) if of_events == {True} else slice(self.first)

    def _term(
        self, c: float, atom: Atom, use: Use, taken: tuple[np.ndarray, np.ndarray], part: slice
    ) -> _Term:
        """Measure a term of a goal on some rows, by decisions of all."""
        (row, decision), (first, last, _) = taken, part.indices(len(self.problem.weight))
        begin, end = np.searchsorted(row, [first, last])
        row, decision, use = row[begin:end] - first, decision[begin:end], use.rows(part)
        if atom.kind == OUTCOME:
            begin = np.searchsorted(row, self.first - first)
            row, decision, n = row[begin:], decision[begin:], last - self.first
            weight, event = self.weight[part] * use.rate, row - (self.first - first)
            outcomes = self.outcomes[str(atom.amount)][event, decision]
            unseen = self._unseen(atom, weight[-n:], event, decision)
        else:
            weight, unseen = self.problem.weight[part] * use.rate, 0.0
            outcomes = use.of(row, decision)
        used = np.bincount(row, outcomes, last - first)
        total = weight.sum()
        if total <= 0:
            raise EmptyRateError(f"{atom!r}: no rows of the log are selected.")
        mean = float(weight @ used) / total
        influence = c * weight * (used - mean) / total
        # a share of 0 or 1 is not known without error: one row more differs
        of_row = use.amount.ndim == 2 or use.has is not None
        least = 0.0 if of_row else min(float(np.abs(use.amount).max()), 1.0)
        change = c * max(np.ptp(used[weight > 0]), least) / self._trials(weight, part)
        step, folds = max(abs(change), abs(c) * unseen), np.zeros(0)
        if self.fold is not None:
            sums = np.bincount(self.fold, weight * used)
            folds = c * sums / np.bincount(self.fold, weight, len(sums))
        largest, mean = float(np.abs(used).max()), mean + self.missed[atom.key]
        return _Term(c, atom, mean, weight, influence, largest, step, folds)

    def _goal(self, k: int, terms: list[_Term], part: slice) -> MeasuredGoal:
        """Measure a goal by its terms."""
        luck = MeasuredGoal() if self.correction is None else self.correction.goals[k]
        influence = np.asarray(sum(term.influence for term in terms))
        cluster, group = INDEPENDENT, None if self.group is None else self.group[part]
        if group is not None:
            sizes = sum(abs(term.c) * term.weight / term.weight.sum() for term in terms)
            scale = max((term.largest for term in terms), default=0.0) or 1.0
            cluster = dependence(influence / scale, np.asarray(sizes), group)
        rare = sum(term.step**2 for term in terms if term.atom.kind == OUTCOME)
        variance = float((influence**2).sum()) * cluster.deff + sum(term.step**2 for term in terms)
        between, third = 0.0, 0.0
        if self.fold is not None:  # the final model is not that of a fold
            folds = np.asarray(sum(term.folds for term in terms))
            between = max(folds.var(ddof=1) - len(folds) * variance, 0.0)
        if any(term.atom.amount is not None for term in terms):
            third = third_cumulant(influence, group)
        if self.batch_size is not None:
            more = int((self.problem.weight > 0).sum()) / self.batch_size
            variance, third = variance * (1.0 + more), third * (1.0 + more**2)
        error = float(np.sqrt(variance + between + luck.error**2))
        third += luck.skewness * luck.error**3
        bound, value = self.goals.bound[k], sum(term.c * term.mean for term in terms)
        amounts = [(term, self.amounts.get(str(term.atom.amount))) for term in terms]
        goal = MeasuredGoal(
            value - bound,
            error,
            min(int(np.count_nonzero(term.weight)) for term in terms),
            min(_kish(term.weight) for term in terms),
            float(np.sqrt(rare + luck.least**2)),
            cluster,
            third / error**3 if error > 0 else 0.0,
            tuple((t.c * t.mean, of) for t, of in amounts if of and t.atom.kind == OUTCOME),
        )
        is_barred = self.goals.room[k] > 0 and value <= bound + ROUNDING
        if self.certain[k] or is_barred:
            goal = replace(goal, error=0.0, least=0.0, heavy=())
        # as the dual has it
        return replace(goal, excess=-self.goals.room[k]) if is_barred else goal

    @cached_property
    def constant(self) -> np.ndarray:
        """See `skbandit.prices._action_search.MeasuredSums`."""
        missed = [sum(c * self.missed[atom.key] for c, atom in terms) for terms in self.goals.sums]
        return np.array(missed) - self.goals.bound

    def added(self, kept: np.ndarray) -> Iterator[np.ndarray]:
        """See `skbandit.prices._action_search.MeasuredSums`."""
        problem, is_logged = self.problem, kept >= self.first
        for terms, uses in zip(self.goals.sums, problem.uses, strict=True):
            added = np.zeros((len(kept), problem.base.shape[1]))
            for (c, atom), (_, use) in zip(terms, uses, strict=True):
                use, weight = use.rows(kept), problem.weight[kept]
                if atom.kind == OUTCOME:
                    weight, amount = self.weight[kept], np.zeros(added.shape)
                    amount[is_logged] = self.outcomes[str(atom.amount)][
                        kept[is_logged] - self.first
                    ]
                    use = Use(use.rate, amount)
                if (total := (weight * use.rate).sum()) > 0:
                    replace(use, rate=weight * use.rate / total).add_to(added, c)
            yield added

    def _trials(self, weight: np.ndarray, part: slice) -> float:
        """Kish's number of rows, or of groups of them."""
        return _kish(weight if self.group is None else np.bincount(self.group[part], weight))

    def _unseen(
        self, atom: Atom, weight: np.ndarray, event: np.ndarray, decision: np.ndarray
    ) -> float:
        """Return what one event more may change a mean by, if all that count are equal."""
        if self.events is None:
            return 0.0
        matched = weight * self.events.matches(event, decision)
        step = self.events.unseen(str(atom.amount), matched > 0)
        return step / (self._trials(matched, slice(self.first, None)) if matched.any() else 1.0)

    @cached_property
    def amounts(self) -> dict[str, Amounts]:
        """The logged outcomes of which few are large."""
        bounded = () if self.events is None else self.goals.bounded_outcomes
        heavy = {name: Amounts.heavy(self.events.values[name]) for name in bounded if self.events}
        return {name: amounts for name, amounts in heavy.items() if amounts is not None}

    @cached_property
    def endless(self) -> bool:
        """True if some goal is on one group only, so that its margin has no end."""
        if self.group is None:
            return False
        return bool(np.isinf(self(self.problem.unconstrained()).margin(1.0)).any())

    @cached_property
    def certain(self) -> np.ndarray:
        """Which goals hold whatever is decided, as a share of at most 1."""
        certain = []
        for terms, bound in zip(self.goals.sums, self.goals.bound, strict=True):
            fixed = all(atom.amount is None for _, atom in terms) and self.problem.n_select == 1
            ends = [(c, amounts_by_arm(atom, self.goals.arms)) for c, atom in terms]
            most = sum(max(c * by_arm.min(), c * by_arm.max()) for c, by_arm in ends)
            certain.append(fixed and most <= bound)
        return np.array(certain, dtype=bool)

    def report(
        self, measured: MeasuredActions, confidence_level: float = LEVEL, z: float | None = None
    ) -> pd.DataFrame:
        """One row per constraint, with margins at a normal quantile."""
        (value, divisor), goals = self.values(measured), self.goals.constraints
        below, above = measured.ends(float(ndtri(0.5 + 0.5 * confidence_level)), self.goals.sign)
        slack = self.goals.sign * (self.goals.declared_bound - value)
        table = pd.DataFrame(
            {
                "constraint": [goal.label for goal in goals],
                "n_rows": measured.n_rows,
                "effective_n": measured.of_goals("effective"),
                "bound": self.goals.declared_bound,
                "value": value,
                "ci_low": value - below / divisor,
                "ci_high": value + above / divisor,
                "unconstrained": self.values(self(self.problem.unconstrained()))[0],
                "slack": slack,
                **({} if z is None else {"margin": measured.margin(z)}),
                "satisfied": satisfied(slack, measured.n_rows > 0),
            }
        )
        return Report.of(goals).attached(table)

    def values(self, measured: MeasuredActions) -> tuple[np.ndarray, np.ndarray]:
        """Values of the constraints as declared, ratios too, and the divisors of the latter."""

        def mean_of(rate: Rate) -> float:
            terms = sum(c * measured.means[atom.key] for c, atom in rate.terms)
            return float(rate.constant + terms)

        values, divisors = np.zeros(len(measured.excess)), np.ones(len(measured.excess))
        for k, goal in enumerate(self.goals.constraints):
            values[k] = mean_of(goal.rate)
            if goal.rate.denominator is not None:
                below = mean_of(goal.rate.denominator)
                values[k] = values[k] / below if below > 0 else np.nan
                divisors[k] = below if below > 0 else np.nan
        return values, divisors


@dataclass(frozen=True)
class MeasuredCosts:
    """Costs of the decisions of a log's rows, in the unit of the objective.

    Attributes
    ----------
    objective : Rate or None
        As declared; None is the mean cost.
    costs : ndarray of shape (n, D)
        As measured, lower is better: doubly robust, or given.
    final : Problem
        The problem of these rows by the final models.
    out_of_fold : Problem or None
        The same by out-of-fold models.
    group : ndarray of int, shape (n,), or None
        Groups of dependent rows.
    """

    objective: Rate | None
    costs: np.ndarray
    final: Problem
    out_of_fold: Problem | None
    group: np.ndarray | None = None

    def row(self, prices: Prices, moved: np.ndarray) -> dict[str, Any]:
        """Return the row of `objective_report_`, at multipliers for bounds that were moved."""
        final, (held_out, error) = self._mean(self.final.decide(prices)), (np.nan, np.nan)
        if self.out_of_fold is None:
            plain, _ = self._mean(self.final.unconstrained())
            middle, error = final
        else:
            # the folds' models keep the same moved bounds, at multipliers of their own
            bounded = self.out_of_fold.tightened(moved)
            at_fold, _ = best_prices(representative(bounded), prices, SMOOTHING[-1:])
            at_fold = prices if at_ceiling(bounded, at_fold) else at_fold
            held_out, error = self._mean(bounded.decide(at_fold))
            plain, _ = self._mean(bounded.unconstrained())
            middle = held_out
        wide = float(ndtri(0.5 + 0.5 * LEVEL)) * error  # nan without an interval
        return {
            "objective": "mean cost" if self.objective is None else repr(self.objective),
            "value": final[0],
            "cross_fitted": held_out,
            "ci_low": middle - wide,
            "ci_high": middle + wide,
            "unconstrained": plain,
        }

    def _mean(self, decided: np.ndarray) -> tuple[float, float]:
        """Mean and standard error, times what few groups widen its interval by."""
        finite = np.where(np.isfinite(self.costs), self.costs, 0.0)
        value = (finite * decided).sum(axis=1)
        value = as_declared(self.objective, value)
        weight = self.final.weight
        mean = float(weight @ value)
        influence = weight * (value - mean)
        error = float(np.sqrt((influence**2).sum()))
        scale = float(np.abs(value).max()) or 1.0
        of_all = dependence(influence / scale, weight, self.group)
        wide = error * float(np.sqrt(of_all.deff)) * _few(of_all, 0.5 - 0.5 * LEVEL)
        return mean, wide if np.isfinite(wide) else np.nan


def _few(of_goal: Dependence, tail: float) -> float:
    """Factor by which few groups widen; inf for one, of whose like nothing is known."""
    return np.inf if of_goal.freedom <= 0 else of_goal.few(tail)


def _kish(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())
