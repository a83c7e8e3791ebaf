"""Goals of a policy: what decisions use, by rows and by what a log says of outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr, ndtri

from skbandit.exceptions import EmptyRateError
from skbandit.logged._action_tables import LoggedOutcomes
from skbandit.logged._unknown_groups import EstimatedRows, units
from skbandit.measure import (
    Data,
    Rows,
    atom_amounts,
    atom_weights,
    check_classes,
    expand,
    parts_of_goals,
    satisfied,
)
from skbandit.prices._actions import ActionProblem, Sum, Use, Uses
from skbandit.prices._calibrate import representative
from skbandit.prices._dual import SMOOTHING, Prices, at_ceiling, best_prices
from skbandit.rates import Constraint, Rate
from skbandit.rates._kinds import KINDS, OUTCOME, SPENT, AnyOf, Atom, Member
from skbandit.utils._trials import Dependence, dependence
from skbandit.utils._validation import warn

LEVEL = 0.95
"""Level of the intervals in fitted reports."""

ROOM, ROUNDING = 1e-3, 1e-12
"""What the dual lets decisions use, as a share of what one may, where a goal bars those that use
any: its prices would have no end otherwise. And the rounding error of a bound."""

INDEPENDENT = Dependence(1.0, 1.0, 1.0)
"""Of rows without groups."""

MANY_TIMES = 10.0
"""A bound of so many times the largest use is probably in another unit."""


def amounts_by_arm(atom: Atom, arms: Sequence[Any]) -> np.ndarray:
    """What each arm counts in an atom, shape (D,)."""
    if atom.without is not None or atom.kind not in (*KINDS.values(), SPENT, OUTCOME):
        raise ValueError(f"{atom!r} cannot be a goal of a policy.")
    if atom.kind == OUTCOME:
        return np.ones(len(arms))
    if atom.cells is not None and atom.kind == SPENT:
        return np.array([float((None, arm) in atom.cells.pairs) for arm in arms])
    if atom.kind.name not in ("positive_rate", "negative_rate"):
        raise ValueError(
            f"{atom!r} compares decisions with labels or other decisions, which a policy has not: "
            "its goals are made of positive_rate(of=...), cost({...}) and outcome('...')."
        )
    if atom.of is None:
        name, first = atom.kind.name, arms[0]
        raise ValueError(f"{name}() is the share of one decision: write {name}(of={first!r}).")
    chosen = atom.of.labels if isinstance(atom.of, AnyOf) else (atom.of,)
    found = np.array([float(arm in chosen) for arm in arms])
    return found if atom.kind.name == "positive_rate" else 1.0 - found


@dataclass(frozen=True)
class ActionGoals:
    """Constraints as sums of uses, and the objective.

    Attributes
    ----------
    constraints : tuple of Constraint
        One-sided, groups and decisions filled in.
    sums : tuple of tuple of (float, Atom)
        Each is at most its bound.
    bound : ndarray of shape (m,)
    declared : Rate or None
        The objective as declared; None is the mean cost.
    objective : tuple of (float, Atom)
        The same as a sum, of which lower is better; empty for a table of costs.
    arms : tuple of labels
    scale : dict
        Total weight over the weight that counts, by key of an atom.
    room : ndarray of shape (m,)
        By how much the dual relaxes bounds that are exact if decisions are barred; 0 for others.
    """

    constraints: tuple[Constraint, ...]
    sums: tuple[tuple[tuple[float, Atom], ...], ...]
    bound: np.ndarray
    declared: Rate | None
    objective: tuple[tuple[float, Atom], ...]
    arms: tuple[Any, ...]
    scale: dict[Any, float]
    room: np.ndarray

    @classmethod
    def bind(
        cls, objective: Rate | None, constraints: Sequence[Constraint], rows: Rows, arms: Any
    ) -> ActionGoals:
        """Fill in groups and decisions found in the rows."""
        data = Data(rows, others=tuple(arms))  # without classes: the arms are decisions
        rates = [one.rate for one in constraints] + ([] if objective is None else [objective])
        check_classes([atom for rate in rates for atom in rate.atoms], data)
        every = expand(constraints, data)
        sums: list[tuple[tuple[float, Atom], ...]] = []
        bounds: list[float] = []
        for one in every:
            sign, rate, bound = (1.0 if one.sense == "<=" else -1.0), one.rate, one.bound
            terms = [(sign * c, atom) for c, atom in rate.terms]
            limit = sign * (bound - rate.constant)
            if rate.denominator is not None:  # N/D <= t is N - tD <= 0
                terms += [(-sign * bound * c, atom) for c, atom in rate.denominator.terms]
                limit = sign * (bound * rate.denominator.constant - rate.constant)
            sums.append(tuple(terms))
            bounds.append(limit)
        lower: tuple[tuple[float, Atom], ...] = ()
        if objective is not None:
            if objective.is_form or objective.denominator is not None:
                raise ValueError(f"objective={objective} is not a sum of means.")
            sign = -1.0 if objective.greater_is_better else 1.0
            lower = tuple((sign * c, atom) for c, atom in objective.terms)
        ends = np.array(bounds), objective, lower, tuple(arms)
        goals = cls(every, tuple(sums), *ends, {}, np.zeros(len(sums))).scaled(rows)
        return replace(goals, room=np.array([goals._room(k, rows) for k in range(len(sums))]))

    def _room(self, k: int, rows: Rows) -> float:
        """The room of a goal, which is exact if its bound is the least of what can be used."""
        least = spread = 0.0
        for c, atom in self.sums[k]:
            by_arm = c * amounts_by_arm(atom, self.arms)
            if atom.kind == OUTCOME:
                return 0.0
            if atom.amount is not None:
                amounts = atom_amounts(atom, rows, units(atom, rows))
                if c < 0 or (amounts < 0).any():
                    return 0.0
                by_arm = by_arm * float(amounts.mean())
            least += by_arm.min()
            spread += np.ptp(by_arm)
        return ROOM * spread if abs(self.bound[k] - least) <= ROUNDING * spread else 0.0

    def scaled(self, rows: Rows) -> ActionGoals:
        """The same for other rows: what counts as a share is a share of these."""
        scale = {}
        for atom in self.atoms:
            amounts_by_arm(atom, self.arms)
            total = atom_weights(atom, rows).sum()
            if total <= 0:
                raise EmptyRateError(f"{atom!r}: no rows are selected.")
            scale[atom.key] = float(rows.weight.sum() / total)
        return replace(self, scale=scale)

    def check_sums(self) -> None:
        """Refuse rates that do not add up over several decisions of a row."""
        for atom in self.atoms:
            if atom.kind.name == "negative_rate":
                raise ValueError(
                    f"{atom!r} with n_select above 1: bound positive_rate(of={atom.of!r}) instead, "
                    "the share of rows with that decision."
                )
            if isinstance(atom.of, AnyOf):
                raise ValueError(
                    f"{atom!r} with n_select above 1: a row may have several of these decisions. "
                    "Bound the sum of their rates instead."
                )

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy, with scales in the order of `atoms`: skops takes no tuples as keys."""
        return {**vars(self), "scale": [self.scale.get(atom.key, np.nan) for atom in self.atoms]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state."""
        vars(self).update(state)
        keys = [atom.key for atom in self.atoms]
        vars(self)["scale"] = dict(zip(keys, state["scale"], strict=True))

    @property
    def declared_bound(self) -> np.ndarray:
        """Bounds as declared, shape (m,); `bound` are those of the sums."""
        return np.array([one.bound for one in self.constraints])

    @property
    def sign(self) -> np.ndarray:
        """1 for <= and -1 for >=, shape (m,)."""
        return np.array([1.0 if one.sense == "<=" else -1.0 for one in self.constraints])

    def without_sums(self) -> ActionGoals:
        """Only the objective."""
        return replace(self, constraints=(), sums=(), bound=np.zeros(0), room=np.zeros(0))

    @property
    def atoms(self) -> list[Atom]:
        """All atoms, once each."""
        terms = [term for one in (*self.sums, self.objective) for term in one]
        return list({atom.key: atom for _, atom in terms}.values())

    @property
    def bounded(self) -> list[Atom]:
        """The atoms of constraints."""
        return [atom for one in self.sums for _, atom in one]

    @property
    def outcomes(self) -> list[str]:
        """Columns of the log that goals or the objective are made of."""
        return _outcomes_of(self.atoms)

    @property
    def members(self) -> dict[tuple[str, ...], list[Member]]:
        """Groups of rows that constraints are on, by their columns."""
        found: dict[tuple[str, ...], list[Member]] = {}
        for atom in self.atoms:
            if isinstance(atom.group, Member):
                found.setdefault(atom.group.columns, []).append(atom.group)
        return found

    @property
    def bounded_outcomes(self) -> list[str]:
        """Columns of the log that constraints are made of."""
        return _outcomes_of(self.bounded)

    def use(
        self, atom: Atom, rows: Rows | EstimatedRows, predicted: Mapping[str, np.ndarray]
    ) -> Use:
        """What decisions use in each row, or are expected to."""
        if isinstance(rows, EstimatedRows):
            weight, rows = rows.units(atom), rows.rows
        else:
            weight = units(atom, rows)
        by_arm = amounts_by_arm(atom, self.arms)
        if atom.kind == OUTCOME:
            assert atom.amount is not None
            by_arm = predicted[atom.amount]
        elif atom.amount is not None:
            amounts = atom_amounts(atom, rows, weight)
            if (amounts < 0).any():
                row = int(np.flatnonzero(amounts < 0)[0])
                warn(
                    f"{atom.amount!r} is {amounts[row]:g} in row {row}: a negative amount pays for "
                    "others.",
                    UserWarning,
                )
            by_arm = amounts[:, None] * by_arm
        return Use(weight * self.scale[atom.key], by_arm)

    def sum_of(
        self,
        terms: Sequence[tuple[float, Atom]],
        rows: Rows | EstimatedRows,
        predicted: Mapping[str, np.ndarray],
    ) -> Sum:
        """A sum of uses in each row."""
        return tuple((c, self.use(atom, rows, predicted)) for c, atom in terms)

    def problem(
        self,
        rows: Rows | EstimatedRows,
        predicted: Mapping[str, np.ndarray],
        costs: np.ndarray | None,
        allowed: np.ndarray,
        n_select: int,
    ) -> ActionProblem:
        """The dual's problem on rows; `costs` (N, D) take the place of an objective."""
        shape = len(rows), len(self.arms)
        base = np.zeros(shape) if costs is None else costs.copy()
        if costs is None:
            for c, use in self.sum_of(self.objective, rows, predicted):
                base += c * use.table()
        base[~allowed] = np.inf
        sums = tuple(self.sum_of(one, rows, predicted) for one in self.sums)
        given = rows.rows.weight if isinstance(rows, EstimatedRows) else rows.weight
        weight = given / given.sum()
        bound, exact = self.bound + self.room, self.room > 0
        return ActionProblem(base, weight, Uses(sums, base.shape), bound, n_select, exact)

    def warn_of_units(self, problem: ActionProblem) -> None:
        """Warn of bounds that are far beyond anything decisions can use."""
        for one, goal, bound in zip(self.constraints, problem.goals, self.bound, strict=True):
            most = float(np.abs(problem.mean_uses(goal)).max(initial=0.0)) * problem.n_select
            if bound > MANY_TIMES * most > 0:
                warn(
                    f"{one.label}: the bound is {bound / most:.3g} times what the costliest "
                    f"decision takes on average, {most:.3g}, so that it never binds. Are both "
                    "in one unit, as means per row?",
                    UserWarning,
                )


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
    tables: None = None

    def margin(self, z: float) -> np.ndarray:
        """So many standard errors, and no less than the rule of three: see `_wide`."""
        return self._wide(z, self.errors, self.least)

    def wide(self, z: float, divisor: np.ndarray) -> np.ndarray:
        """The same of values that are divided; nan without an end."""
        wide = self._wide(z, self.errors / divisor, self.least / divisor)
        return np.where(np.isinf(wide), np.nan, wide)

    def _wide(self, z: float, errors: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Errors times a quantile, or what a rare event may add that none or few rows had.

        Of n independent rows without an event, a rate of -log(tail)/n or more is as improbable as
        the tail: the rule of three. Few groups have the quantiles of Student's t.
        """
        if z <= 0:
            return z * errors
        tail = float(ndtr(-z))
        few = np.array([_few(of_goal, tail) for of_goal in self.clusters])
        few = np.where(errors == 0, 1.0, few)
        return np.maximum(z * errors * few, -float(log_ndtr(-z)) * least)


@dataclass(frozen=True)
class ActionMeasure:
    """Measures decisions of N rows, of which some are logged events.

    Attributes
    ----------
    goals : ActionGoals
    problem : ActionProblem
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
    """

    goals: ActionGoals
    problem: ActionProblem
    logged: np.ndarray
    weight: np.ndarray
    outcomes: dict[str, np.ndarray]
    batch_size: int | None
    fold: np.ndarray | None
    group: np.ndarray | None = None
    events: LoggedOutcomes | None = None

    def __call__(self, decided: np.ndarray) -> MeasuredActions:
        """Values and standard errors of all goals."""
        problem, m = self.problem, len(self.goals.sums)
        value, errors, means = np.zeros(m), np.zeros(m), dict[Any, float]()
        n_rows, effective = np.full(m, np.inf), np.full(m, np.inf)
        certain, least, clusters = self.certain, np.zeros(m), []
        n_known = int((problem.weight > 0).sum())
        for k, (terms, uses) in enumerate(zip(self.goals.sums, problem.goals, strict=True)):
            influence, own, rare = np.zeros(len(decided)), 0.0, 0.0
            sizes, scale = np.zeros(len(decided)), 0.0
            folds = np.zeros(0 if self.fold is None else int(self.fold.max()) + 1)
            for (c, atom), (_, use) in zip(terms, uses, strict=True):
                unseen = 0.0
                if atom.kind == OUTCOME:
                    weight, used = self.weight * use.rate, np.zeros(len(decided))
                    outcome = self.outcomes[str(atom.amount)]
                    used[self.logged] = (decided[self.logged] * outcome).sum(axis=1)
                    unseen = self._unseen(atom, weight, decided)
                else:
                    weight = problem.weight * use.rate
                    used = (use.amount * decided).sum(axis=1)
                total = weight.sum()
                if total <= 0:
                    raise EmptyRateError(f"{atom!r}: no rows of the log are selected.")
                n_rows[k] = min(n_rows[k], np.count_nonzero(weight))
                effective[k] = min(effective[k], _kish(weight))
                mean = means[atom.key] = float(weight @ used) / total
                value[k] += c * mean
                influence += c * weight * (used - mean) / total
                # a share of 0 or 1 is not known without error: one row more differs
                change = c * max(np.ptp(used[weight > 0]), _step(use)) / self._trials(weight)
                step = max(abs(change), abs(c) * unseen)
                own += step**2
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
            least[k] = np.sqrt(rare)
            variance = float((influence**2).sum()) * of_goal.deff + own
            between = 0.0
            if self.fold is not None:  # the final model is not that of a fold
                between = max(folds.var(ddof=1) - len(folds) * variance, 0.0)
            if self.batch_size is not None:
                variance *= 1.0 + n_known / self.batch_size
            errors[k] = np.sqrt(variance + between)
            barred = self.goals.room[k] > 0 and value[k] <= self.goals.bound[k] + ROUNDING
            if certain[k] or barred:
                errors[k] = least[k] = 0.0
            if barred:
                value[k] = self.goals.bound[k] - self.goals.room[k]  # as the dual has it
        base = np.where(decided, problem.base, 0.0).sum(axis=1)
        objective = float(problem.weight @ base)
        excess, n_rows = value - self.goals.bound, n_rows.astype(int)
        return MeasuredActions(objective, excess, errors, means, n_rows, effective, least, clusters)

    def _trials(self, weight: np.ndarray) -> float:
        """Kish's number of rows, or of groups of them."""
        return _kish(weight if self.group is None else np.bincount(self.group, weight))

    def _unseen(self, atom: Atom, weight: np.ndarray, decided: np.ndarray) -> float:
        """What one event more may change the mean of an outcome by, if all that count are equal."""
        if self.events is None:
            return 0.0
        matched = np.zeros(len(weight))
        matched[self.logged] = weight[self.logged] * self.events.matches(decided[self.logged])
        step = self.events.unseen(str(atom.amount), matched[self.logged] > 0)
        return step / (self._trials(matched) if matched.any() else 1.0)

    @cached_property
    def endless(self) -> bool:
        """Whether some goal is on one group only, so that its margin has no end."""
        if self.group is None:
            return False
        return bool(np.isinf(self(self.problem.unconstrained()).margin(1.0)).any())

    @cached_property
    def certain(self) -> np.ndarray:
        """Which goals hold whatever is decided, as a share of at most 1."""
        found = []
        for terms, bound in zip(self.goals.sums, self.goals.bound, strict=True):
            fixed = all(atom.amount is None for _, atom in terms) and self.problem.n_select == 1
            ends = [(c, amounts_by_arm(atom, self.goals.arms)) for c, atom in terms]
            most = sum(max(c * one.min(), c * one.max()) for c, one in ends)
            found.append(fixed and most <= bound)
        return np.array(found, dtype=bool)

    def report(
        self, found: MeasuredActions, plain: MeasuredActions, confidence_level: float = LEVEL
    ) -> pd.DataFrame:
        """One row per constraint; `plain` is of decisions without constraints."""
        (value, divisor), goals = self.values(found), self.goals.constraints
        wide = found.wide(float(ndtri(0.5 + 0.5 * confidence_level)), divisor)
        slack = self.goals.sign * (self.goals.declared_bound - value)
        table = pd.DataFrame(
            {
                "constraint": [one.label for one in goals],
                "n_rows": found.n_rows,
                "effective_n": found.effective,
                "bound": self.goals.declared_bound,
                "value": value,
                "ci_low": value - wide,
                "ci_high": value + wide,
                "unconstrained": self.values(plain)[0],
                "slack": slack,
                "satisfied": satisfied(slack, found.n_rows > 0),
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
        for k, one in enumerate(self.goals.constraints):
            values[k] = mean_of(one.rate)
            if one.rate.denominator is not None:
                below = mean_of(one.rate.denominator)
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
    final : ActionProblem
        The problem of these rows by the final models.
    out_of_fold : ActionProblem or None
        The same by out-of-fold models.
    group : ndarray of int, shape (n,), or None
        Groups of dependent rows.
    """

    objective: Rate | None
    costs: np.ndarray
    final: ActionProblem
    out_of_fold: ActionProblem | None
    group: np.ndarray | None = None

    def row(self, prices: Prices, moved: np.ndarray) -> dict[str, Any]:
        """The row of `objective_report_`, at multipliers for bounds that were moved."""
        own, (held_out, error) = self._mean(self.final.decide(prices)), (np.nan, np.nan)
        if self.out_of_fold is None:
            plain, _ = self._mean(self.final.unconstrained())
            middle, error = own
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
            "value": own[0],
            "cross_fitted": held_out,
            "ci_low": middle - wide,
            "ci_high": middle + wide,
            "unconstrained": plain,
        }

    def _mean(self, decided: np.ndarray) -> tuple[float, float]:
        """Mean and standard error, times what few groups widen its interval by."""
        known = np.where(np.isfinite(self.costs), self.costs, 0.0)
        value = (known * decided).sum(axis=1)
        if self.objective is not None:
            sign = -1.0 if self.objective.greater_is_better else 1.0
            value = sign * value + self.objective.constant
        weight = self.final.weight
        mean = float(weight @ value)
        influence = weight * (value - mean)
        error = float(np.sqrt((influence**2).sum()))
        scale = float(np.abs(value).max()) or 1.0
        of_all = dependence(influence / scale, weight, self.group)
        wide = error * float(np.sqrt(of_all.deff)) * _few(of_all, 0.5 - 0.5 * LEVEL)
        return mean, wide if np.isfinite(wide) else np.nan


def _outcomes_of(atoms: Sequence[Atom]) -> list[str]:
    """Columns of the log that atoms are of, once each."""
    return list(dict.fromkeys(str(atom.amount) for atom in atoms if atom.kind == OUTCOME))


def _step(use: Use) -> float:
    """The least amount that one decision may change a row's use by."""
    return min(float(np.abs(use.amount).max()), 1.0) if use.amount.ndim == 1 else 0.0


def _few(of_goal: Dependence, tail: float) -> float:
    """Factor by which few groups widen; inf for one, of whose like nothing is known."""
    return np.inf if of_goal.freedom <= 0 else of_goal.few(tail)


def _kish(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())


def prices_by_selection(goals: ActionGoals, multipliers: np.ndarray) -> pd.DataFrame:
    """The price of each arm, by the rows it is for; those of amounts by row are per unit."""
    columns: dict[str, np.ndarray] = {}
    for price, terms in zip(multipliers, goals.sums, strict=True):
        for c, atom in terms:
            parts = [] if atom.where is None else [f"where={atom.where!r}"]
            parts += [atom.group.described] if isinstance(atom.group, Member) else []
            parts += [f"per {column!r}" for column in (atom.weight, atom.amount) if column]
            name = ", ".join(parts) or "all"
            added = price * c * goals.scale[atom.key] * amounts_by_arm(atom, goals.arms)
            columns[name] = columns.get(name, np.zeros(len(goals.arms))) + added
    return pd.DataFrame(columns, index=pd.Index(goals.arms, name="arm"))
