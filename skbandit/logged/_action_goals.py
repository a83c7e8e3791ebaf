"""Goals of a policy as sums of what decisions use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skbandit import measure
from skbandit.exceptions import EmptyRateError
from skbandit.logged._action_tables import REWARD
from skbandit.logged._unknown_groups import Contexts, EstimatedRows, units
from skbandit.prices._problem import Problem, Use
from skbandit.rates import Constraint, Rate
from skbandit.rates._kinds import KINDS, OUTCOME, SPENT, AnyOf, Atom, Member
from skbandit.utils._validation import warn

ROOM, ROUNDING = 1e-3, 1e-12
"""What the dual lets decisions use, as a share of what one may, where a goal bars those that use
any: its prices would have no end otherwise. And the rounding error of a bound."""

MANY_TIMES = 10.0
"""A bound of so many times the largest use is probably in another unit."""


def amounts_by_arm(atom: Atom, arms: Sequence[Any]) -> np.ndarray:
    """Return what each arm counts in an atom, shape (D,)."""
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
    counted = np.array([float(arm in chosen) for arm in arms])
    return counted if atom.kind.name == "positive_rate" else 1.0 - counted


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
    scales : tuple of float
        Total weight over the weight that counts, one per atom.
    room : ndarray of shape (m,)
        By how much the dual relaxes bounds that are exact if decisions are barred; 0 for others.
    """

    constraints: tuple[Constraint, ...]
    sums: tuple[tuple[tuple[float, Atom], ...], ...]
    bound: np.ndarray
    declared: Rate | None
    objective: tuple[tuple[float, Atom], ...]
    arms: tuple[Any, ...]
    scales: tuple[float, ...]
    room: np.ndarray

    @classmethod
    def bind(
        cls,
        objective: Rate | None,
        constraints: Sequence[Constraint],
        rows: measure.Rows,
        arms: Any,
    ) -> ActionGoals:
        """Fill in groups and decisions found in the rows."""
        data = measure.Data(rows, others=tuple(arms))  # without classes: the arms are decisions
        rates = [goal.rate for goal in constraints] + ([] if objective is None else [objective])
        measure.check_classes([atom for rate in rates for atom in rate.atoms], data)
        every = measure.expand(constraints, data)
        sums: list[tuple[tuple[float, Atom], ...]] = []
        bounds: list[float] = []
        for goal in every:
            sign, rate, bound = (1.0 if goal.sense == "<=" else -1.0), goal.rate, goal.bound
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
        goals = cls(every, tuple(sums), *ends, (), np.zeros(len(sums))).scaled(rows)
        return replace(goals, room=np.array([goals._room(k, rows) for k in range(len(sums))]))

    def _room(self, k: int, rows: measure.Rows) -> float:
        """Return the room of a goal, exact if its bound is the least of what can be used."""
        least = spread = 0.0
        for c, atom in self.sums[k]:
            by_arm = c * amounts_by_arm(atom, self.arms)
            if atom.kind == OUTCOME:
                return 0.0
            if atom.amount is not None:
                amounts = measure.atom_amounts(atom, rows, units(atom, rows))
                if c < 0 or (amounts < 0).any():
                    return 0.0
                by_arm = by_arm * float(amounts.mean())
            least += by_arm.min()
            spread += np.ptp(by_arm)
        return ROOM * spread if abs(self.bound[k] - least) <= ROUNDING * spread else 0.0

    def scaled(self, rows: measure.Rows) -> ActionGoals:
        """Return the goals of other rows: what counts as a share is a share of these."""
        scales = []
        for atom in self.atoms:
            amounts_by_arm(atom, self.arms)
            total = measure.atom_weights(atom, rows).sum()
            if total <= 0:
                raise EmptyRateError(f"{atom!r}: no rows are selected.")
            scales.append(float(rows.weight.sum() / total))
        return replace(self, scales=tuple(scales))

    def scale(self, atom: Atom) -> float:
        """Return the total weight over the weight that counts in an atom."""
        return self.scales[[other.key for other in self.atoms].index(atom.key)]

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

    @property
    def declared_bound(self) -> np.ndarray:
        """Bounds as declared, shape (m,); `bound` are those of the sums."""
        return np.array([goal.bound for goal in self.constraints])

    @property
    def sign(self) -> np.ndarray:
        """1 for <= and -1 for >=, shape (m,)."""
        return np.array([1.0 if goal.sense == "<=" else -1.0 for goal in self.constraints])

    def without_sums(self) -> ActionGoals:
        """Only the objective."""
        alone = replace(self, constraints=(), sums=(), bound=np.zeros(0), room=np.zeros(0))
        return replace(alone, scales=tuple(map(self.scale, alone.atoms)))

    @property
    def atoms(self) -> list[Atom]:
        """All atoms, once each."""
        terms = [term for terms in (*self.sums, self.objective) for term in terms]
        return list({atom.key: atom for _, atom in terms}.values())

    @property
    def bounded(self) -> list[Atom]:
        """The atoms of constraints."""
        return [atom for terms in self.sums for _, atom in terms]

    @property
    def outcomes(self) -> list[str]:
        """Columns of the log that goals or the objective are made of."""
        return _outcomes_of(self.atoms)

    @property
    def value_breaks_ties(self) -> bool:
        """True if the objective is of shares and spends alone, and leaves open what is earned."""
        return bool(self.objective) and not _outcomes_of([atom for _, atom in self.objective])

    @property
    def modeled(self) -> list[str]:
        """Columns of the log that models predict."""
        return list(dict.fromkeys([*self.outcomes, *[REWARD] * self.value_breaks_ties]))

    @property
    def members(self) -> dict[tuple[str, ...], list[Member]]:
        """Groups of rows that constraints are on, by their columns."""
        members: dict[tuple[str, ...], list[Member]] = {}
        for atom in self.atoms:
            if isinstance(atom.group, Member):
                members.setdefault(atom.group.columns, []).append(atom.group)
        return members

    def examples_of(self, columns: measure.Columns) -> dict[str, list[Any]]:
        """Return columns of attributes that goals name, and some of their values."""
        named = measure.columns_of_selections(self.atoms, columns)
        amounts = {name for atom in self.atoms for name in (atom.amount, atom.weight)}
        return {
            str(name): values.dropna().drop_duplicates().head(20).tolist()
            for name, values in columns.attributes.items()
            if named is None or name in named or name in amounts
        }

    @property
    def bounded_outcomes(self) -> list[str]:
        """Columns of the log that constraints are made of."""
        return _outcomes_of(self.bounded)

    def use(self, atom: Atom, rows: Any, predicted: Mapping[str, np.ndarray]) -> Use:
        """Return what decisions use in each row, or are expected to."""
        weight = units(atom, rows)
        by_arm, amounts = amounts_by_arm(atom, self.arms), None
        if atom.kind == OUTCOME:
            assert atom.amount is not None
            by_arm = predicted[atom.amount]
        elif atom.amount is not None:
            of_rows = rows.rows if isinstance(rows, EstimatedRows) else rows
            amounts = measure.atom_amounts(atom, of_rows, weight)
            if (amounts < 0).any():
                row = int(np.flatnonzero(amounts < 0)[0])
                warn(
                    f"{atom.amount!r} is {amounts[row]:g} in row {row}: a negative amount pays for "
                    "others.",
                    UserWarning,
                )
        return Use(weight * self.scale(atom), by_arm, amounts)

    def problem(
        self,
        contexts: Contexts,
        predicted: Mapping[str, np.ndarray],
        costs: np.ndarray | None,
        n_select: int,
    ) -> Problem:
        """Return the dual's problem; `costs` (N, D) take the place of an objective."""
        rows, base = contexts.rows, np.zeros(contexts.mask.shape)
        for c, atom in self.objective if costs is None else ():
            self.use(atom, rows, predicted).add_to(base, c)
        base = np.where(contexts.mask, base if costs is None else costs, np.inf)
        sums = tuple(
            tuple((c, self.use(atom, rows, predicted)) for c, atom in terms) for terms in self.sums
        )
        bound, exact = self.bound + self.room, self.room > 0
        return Problem.of_uses(base, rows.weight / rows.weight.sum(), sums, bound, n_select, exact)

    def warn_of_units(self, problem: Problem) -> None:
        """Warn of bounds that are far beyond anything decisions can use."""
        for k, (goal, bound) in enumerate(zip(self.constraints, self.bound, strict=True)):
            means = problem.weight @ np.abs(problem.table(k))
            most = float(means.max(initial=0.0)) * problem.n_select
            if bound > MANY_TIMES * most > 0:
                warn(
                    f"{goal.label}: the bound is {bound / most:.3g} times what the costliest "
                    f"decision takes on average, {most:.3g}, so that it never binds. Are both "
                    "in one unit, as means per row?",
                    UserWarning,
                )


def _outcomes_of(atoms: Sequence[Atom]) -> list[str]:
    """Columns of the log that atoms are of, once each."""
    return list(dict.fromkeys(str(atom.amount) for atom in atoms if atom.kind == OUTCOME))


def as_declared(objective: Rate | None, value: Any) -> Any:
    """Return the objective as users declared it, from the sum of which lower is better."""
    if objective is None:
        return value
    sign = -1.0 if objective.greater_is_better else 1.0
    return sign * value + objective.constant


def prices_by_selection(goals: ActionGoals, multipliers: np.ndarray) -> pd.DataFrame:
    """Return the price of each arm, by the rows it is for; those of amounts by row are per unit."""
    columns: dict[str, np.ndarray] = {}
    for price, terms in zip(multipliers, goals.sums, strict=True):
        for c, atom in terms:
            parts = [] if atom.where is None else [f"where={atom.where!r}"]
            parts += [atom.group.described] if isinstance(atom.group, Member) else []
            parts += [f"per {column!r}" for column in (atom.weight, atom.amount) if column]
            name = ", ".join(parts) or "all"
            added = price * c * goals.scale(atom) * amounts_by_arm(atom, goals.arms)
            columns[name] = columns.get(name, np.zeros(len(goals.arms))) + added
    return pd.DataFrame(columns, index=pd.Index(goals.arms, name="arm"))
