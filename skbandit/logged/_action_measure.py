"""What decisions of a policy attain, with the standard errors of levels and intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr, ndtri

from skbandit.exceptions import EmptyRateError
from skbandit.logged._action_goals import ROUNDING, ActionGoals, amounts_by_arm, as_declared
from skbandit.logged._action_tables import LoggedOutcomes
from skbandit.measure import parts_of_goals, satisfied
from skbandit.prices._calibrate import representative
from skbandit.prices._dual import SMOOTHING, at_ceiling, best_prices
from skbandit.prices._problem import Prices, Problem, Use
from skbandit.rates import Rate
from skbandit.rates._kinds import OUTCOME, Atom
from skbandit.utils._skewed_means import Amounts, skewed_quantile, third_cumulant
from skbandit.utils._trials import Dependence, dependence

LEVEL = 0.95
"""Level of the intervals in fitted reports."""

INDEPENDENT = Dependence(1.0, 1.0, 1.0)
"""Design effect of independent rows."""


@dataclass(frozen=True)
class MeasuredActions:
    """What decisions attain: see `skbandit.prices._calibrate.Measured`."""

    objective: float
    excess: np.ndarray
    errors: np.ndarray
    means: dict[Any, float]
    n_rows: np.ndarray
    effective: np.ndarray
    least: np.ndarray  # what one event more may change outcomes by
    clusters: list[Dependence]
    skewness: np.ndarray  # of the values' errors
    heavy: list[list[tuple[float, Amounts]]]  # outcomes of which few are large, and their means
    tables: None = None

    def margin(self, z: float) -> np.ndarray:
        """Return what values may be larger by, at a normal quantile."""
        return self._wide(z, 1)

    def ends(self, z: float, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what values declared with a sign may be lower and higher by; nan without end."""
        lower, higher = self._wide(z, -1), self._wide(z, 1)
        below, above = np.where(sign > 0, [lower, higher], [higher, lower])
        return np.where(np.isinf(below), np.nan, below), np.where(np.isinf(above), np.nan, above)

    def _wide(self, z: float, way: int) -> np.ndarray:
        """Errors times a quantile, or what a rare event may add that none or few rows had.

        Of n independent rows without an event, a rate of -log(tail)/n or more is as improbable as
        the tail: the rule of three. Few groups have the quantiles of Student's t. Of amounts of
        which few are large, see `skbandit.utils._skewed_means`. `way` is 1 upwards, -1 downwards.
        """
        if z <= 0:
            return z * self.errors
        tail = float(ndtr(-z))
        few = np.array([_few(of_goal, tail) for of_goal in self.clusters])
        few = np.where(self.errors == 0, 1.0, few)
        wide = self.errors * few * skewed_quantile(z, way * self.skewness)
        of_tail = np.array(
            [
                sum(max(way * mean, 0.0) * (amounts.factor(z) - 1.0) for mean, amounts in terms)
                for terms in self.heavy
            ]
        )
        return np.maximum(np.maximum(wide, of_tail), -float(log_ndtr(-z)) * self.least)


@dataclass(frozen=True)
class Correction:
    """By how much logged outcomes of decisions differ from what was predicted of them.

    Attributes
    ----------
    means : list of lists of float
        The outcomes less the predictions, which decisions choose where they are low by luck; by
        goal and term, 0 of others than outcomes.
    errors, least, skewness : ndarray of shape (m,)
        Of the outcomes, as in `MeasuredActions`; 0 of goals without outcomes.
    """

    means: list[list[float]]
    errors: np.ndarray
    least: np.ndarray
    skewness: np.ndarray


@dataclass(frozen=True)
class ActionMeasure:
    """Measures decisions of N rows, of which some are logged events.

    Attributes
    ----------
    goals : ActionGoals
    problem : Problem
    logged : ndarray of int
        The rows that are logged events; outcomes are measured on these, all else by weight.
    weight : ndarray of shape (N,)
        Weights of the logged rows in outcomes.
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
    """

    goals: ActionGoals
    problem: Problem
    logged: np.ndarray
    weight: np.ndarray
    outcomes: dict[str, np.ndarray]
    batch_size: int | None
    fold: np.ndarray | None = None
    group: np.ndarray | None = None
    events: LoggedOutcomes | None = None
    correction: Correction | None = None

    def corrected(self, decided: np.ndarray, predicted: dict[str, np.ndarray]) -> Correction:
        """Return the correction of predictions for logged rows, by models without these."""
        logged = replace(self, batch_size=None)(decided)
        means = replace(self, outcomes=predicted, events=None)(decided).means
        of_outcomes = [any(atom.kind == OUTCOME for _, atom in terms) for terms in self.goals.sums]
        return Correction(
            [
                [
                    logged.means[atom.key] - means[atom.key] if atom.kind == OUTCOME else 0.0
                    for _, atom in terms
                ]
                for terms in self.goals.sums
            ],
            np.where(of_outcomes, logged.errors, 0.0),
            np.where(of_outcomes, logged.least, 0.0),
            np.where(of_outcomes, logged.skewness, 0.0),
        )

    def tightened(self, problem: Problem) -> Problem:
        """Return a problem by predictions, with bounds that their correction leaves."""
        if self.correction is None:
            return problem
        by_goal = zip(self.goals.sums, self.correction.means, strict=True)
        moved = [
            sum(c * mean for (c, _), mean in zip(*of_goal, strict=True)) for of_goal in by_goal
        ]
        return problem.tightened(np.array(moved))

    def __call__(self, decided: np.ndarray) -> MeasuredActions:
        """Values and standard errors of all goals."""
        problem, m = self.problem, len(self.goals.sums)
        value, errors, means = np.zeros(m), np.zeros(m), dict[Any, float]()
        n_rows, effective = np.full(m, np.inf), np.full(m, np.inf)
        certain, least, clusters = self.certain, np.zeros(m), []
        none = [[0.0] * len(terms) for terms in self.goals.sums]
        correction = self.correction or Correction(none, np.zeros(m), np.zeros(m), np.zeros(m))
        skewness, heavy = np.zeros(m), [list[tuple[float, Amounts]]() for _ in range(m)]
        n_known = int((problem.weight > 0).sum())
        for k, (terms, uses) in enumerate(zip(self.goals.sums, problem.uses, strict=True)):
            influence, extra, rare = np.zeros(len(decided)), 0.0, 0.0
            sizes, scale = np.zeros(len(decided)), 0.0
            folds = np.zeros(0 if self.fold is None else int(self.fold.max()) + 1)
            of_terms = zip(terms, uses, correction.means[k], strict=True)
            for (c, atom), (_, use), missed in of_terms:
                unseen = 0.0
                if atom.kind == OUTCOME:
                    weight, used = self.weight * use.rate, np.zeros(len(decided))
                    outcome = self.outcomes[str(atom.amount)]
                    used[self.logged] = (decided[self.logged] * outcome).sum(axis=1)
                    unseen = self._unseen(atom, weight, decided)
                else:
                    weight = problem.weight * use.rate
                    used = use.taken(decided)
                total = weight.sum()
                if total <= 0:
                    raise EmptyRateError(f"{atom!r}: no rows of the log are selected.")
                n_rows[k] = min(n_rows[k], np.count_nonzero(weight))
                effective[k] = min(effective[k], _kish(weight))
                mean = float(weight @ used) / total
                means[atom.key] = mean + missed
                value[k] += c * means[atom.key]
                if atom.kind == OUTCOME and (amounts := self.amounts.get(str(atom.amount))):
                    heavy[k].append((c * means[atom.key], amounts))
                influence += c * weight * (used - mean) / total
                # a share of 0 or 1 is not known without error: one row more differs
                change = c * max(np.ptp(used[weight > 0]), _step(use)) / self._trials(weight)
                step = max(abs(change), abs(c) * unseen)
                extra += step**2
                rare += step**2 if atom.kind == OUTCOME else 0.0
                sizes += abs(c) * weight / total
                scale = max(scale, float(np.abs(used).max()))
                if self.fold is not None:
                    sums = np.bincount(self.fold, weight * used, len(folds))
                    folds += c * sums / np.bincount(self.fold, weight, len(folds))
            of_goal = INDEPENDENT
            if self.group is not None:
                of_goal = dependence(influence / (scale or 1.0), sizes, self.group)
            clusters.append(of_goal)
            least[k] = np.sqrt(rare + correction.least[k] ** 2)
            variance = float((influence**2).sum()) * of_goal.deff + extra
            between = 0.0
            if self.fold is not None:  # the final model is not that of a fold
                between = max(folds.var(ddof=1) - len(folds) * variance, 0.0)
            of_amounts = any(atom.amount is not None for _, atom in terms)
            third = third_cumulant(influence, self.group) if of_amounts else 0.0
            if self.batch_size is not None:
                variance *= 1.0 + n_known / self.batch_size
                third *= 1.0 + (n_known / self.batch_size) ** 2
            errors[k] = np.sqrt(variance + between + correction.errors[k] ** 2)
            third += correction.skewness[k] * correction.errors[k] ** 3
            skewness[k] = third / errors[k] ** 3 if errors[k] > 0 else 0.0
            barred = self.goals.room[k] > 0 and value[k] <= self.goals.bound[k] + ROUNDING
            if certain[k] or barred:
                errors[k] = least[k] = 0.0
                heavy[k].clear()
            if barred:
                value[k] = self.goals.bound[k] - self.goals.room[k]  # as the dual has it
        base = np.where(decided, problem.base, 0.0).sum(axis=1)
        objective = float(problem.weight @ base)
        excess, n_rows = value - self.goals.bound, n_rows.astype(int)
        return MeasuredActions(
            objective, excess, errors, means, n_rows, effective, least, clusters, skewness, heavy
        )

    def sums(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what decisions of some rows, for all, add to each excess, and constants.

        See `skbandit.prices._action_search.MeasuredSums`.
        """
        problem, D = self.problem, self.problem.base.shape[1]
        constant, added = -self.goals.bound, np.zeros((len(self.goals.sums), len(kept), D))
        place = np.full(len(problem.base), -1)
        place[self.logged] = np.arange(len(self.logged))
        is_logged = place[kept] >= 0
        for k, (terms, uses) in enumerate(zip(self.goals.sums, problem.uses, strict=True)):
            for n, ((c, atom), (_, use)) in enumerate(zip(terms, uses, strict=True)):
                use = use.rows(kept)
                if atom.kind == OUTCOME:
                    weight, amount = self.weight[kept] * use.rate, np.zeros((len(kept), D))
                    amount[is_logged] = self.outcomes[str(atom.amount)][place[kept[is_logged]]]
                    use = Use(weight, amount)
                else:
                    weight = problem.weight[kept] * use.rate
                if (total := weight.sum()) > 0:
                    replace(use, rate=weight / total).add_to(added[k], c)
                if self.correction is not None:
                    constant[k] += c * self.correction.means[k][n]
        return added, constant

    def _trials(self, weight: np.ndarray) -> float:
        """Kish's number of rows, or of groups of them."""
        return _kish(weight if self.group is None else np.bincount(self.group, weight))

    def _unseen(self, atom: Atom, weight: np.ndarray, decided: np.ndarray) -> float:
        """Return what one event more may change a mean by, if all that count are equal."""
        if self.events is None:
            return 0.0
        matched = np.zeros(len(weight))
        matched[self.logged] = weight[self.logged] * self.events.matches(decided[self.logged])
        step = self.events.unseen(str(atom.amount), matched[self.logged] > 0)
        return step / (self._trials(matched) if matched.any() else 1.0)

    @cached_property
    def amounts(self) -> dict[str, Amounts]:
        """The logged outcomes of which few are large."""
        values = {} if self.events is None else self.events.values
        heavy = {name: Amounts.heavy(value) for name, value in values.items()}
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
        self, measured: MeasuredActions, plain: MeasuredActions, confidence_level: float = LEVEL
    ) -> pd.DataFrame:
        """One row per constraint; `plain` is of decisions without constraints."""
        (value, divisor), goals = self.values(measured), self.goals.constraints
        below, above = measured.ends(float(ndtri(0.5 + 0.5 * confidence_level)), self.goals.sign)
        slack = self.goals.sign * (self.goals.declared_bound - value)
        table = pd.DataFrame(
            {
                "constraint": [goal.label for goal in goals],
                "n_rows": measured.n_rows,
                "effective_n": measured.effective,
                "bound": self.goals.declared_bound,
                "value": value,
                "ci_low": value - below / divisor,
                "ci_high": value + above / divisor,
                "unconstrained": self.values(plain)[0],
                "slack": slack,
                "satisfied": satisfied(slack, measured.n_rows > 0),
            }
        )
        table.attrs["goals"] = parts_of_goals(goals)
        return table

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
    """What decisions of a log's rows cost, in the unit of the objective.

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


def _step(use: Use) -> float:
    """Return the least amount that one decision may change a row's use by."""
    if use.amount.ndim == 2 or use.has is not None:
        return 0.0
    return min(float(np.abs(use.amount).max()), 1.0)


def _few(of_goal: Dependence, tail: float) -> float:
    """Factor by which few groups widen; inf for one, of whose like nothing is known."""
    return np.inf if of_goal.freedom <= 0 else of_goal.few(tail)


def _kish(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())
