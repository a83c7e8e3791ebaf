"""Declared objective and constraints: checked without data, then bound to rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import UndefinedMetricWarning

from skbandit import measure
from skbandit.constrained.fits._fit_rows import Classes, with_weights
from skbandit.exceptions import EmptyRateError
from skbandit.rates import Constraint, Rate
from skbandit.rates._expression import AbsoluteRate
from skbandit.utils._validation import silenced

C = TypeVar("C", bound=Any)


@dataclass(frozen=True)
class MeasuredGoals:
    """An objective and constraints, without skipped constraints and irrelevant rows.

    Attributes
    ----------
    objective : LinearFractionalForms
        One expression, or one per group of which the largest counts; lower is better.
    constraints : BoundConstraints
        The constraints that were not skipped.
    rows : ndarray of int
        The rows with a coefficient in some expression; all expressions are over these.
    adds : bool
        Whether the objective's expressions are added; else the largest counts.
    """

    objective: measure.LinearFractionalForms
    constraints: measure.BoundConstraints
    rows: np.ndarray
    adds: bool = False

    @cached_property
    def scale(self) -> float:
        """Sum of the objective's absolute costs, on average over groups; 1 for a single rate."""
        numerator = self.objective.numerator
        return round(float(np.abs(numerator.data).sum()) / numerator.shape[0], 12) or 1.0

    def objective_value(self, pi: np.ndarray) -> float:
        """Return the objective at indicators of the rows' decisions, nan if undefined."""
        values = self.objective.values(pi)
        return float(values.sum() if self.adds else values.max())

    @cached_property
    def linear(self) -> tuple[csr_array, np.ndarray]:
        """S and rhs of `weight_rows`: constraint k is ``S[k] @ pi <= rhs[k]``."""
        return measure.weight_rows(
            self.constraints.forms, self.constraints.bound, self.constraints.sign
        )


@dataclass(frozen=True)
class Goals:
    """An objective and constraints, bound to the same rows.

    Attributes
    ----------
    declared : Declared
        The same without data.
    objective : LinearFractionalForms
        One expression, as declared, or one per group of which the worst counts.
    maximize : bool
        Whether higher is better.
    constraints : BoundConstraints
        One-sided, with groups filled in; of forms over many pairs of groups, a working set.
    data : Data
        The rows.
    factors : ndarray of shape (n_samples,)
        Factors of the weights of the rows of X in the objective.
    every : tuple of Constraint
        All constraints, of which `constraints` are those numbered `working`.
    working : ndarray of int
    counted : ndarray of bool, shape (n,), or None
        The rows that some of all constraints depend on; None if `constraints` are all of them.
    rates : tuple of Rate
        What `objective` expresses, groups filled in.
    adds : bool
        Whether these are terms of a sum; else the worst counts.
    """

    declared: Declared
    objective: measure.LinearFractionalForms
    maximize: bool
    constraints: measure.BoundConstraints
    data: measure.Data
    factors: np.ndarray
    every: tuple[Constraint, ...] = ()
    working: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    counted: np.ndarray | None = None
    rates: tuple[Rate, ...] = ()
    adds: bool = False

    @property
    def is_measured(self) -> np.ndarray:
        """Mask of the constraints that were not skipped."""
        return self.constraints.n_rows > 0

    @property
    def lower_is_better(self) -> measure.LinearFractionalForms:
        """The objective, negated if higher is better."""
        return self.objective.negated() if self.maximize else self.objective

    @cached_property
    def measured(self) -> MeasuredGoals:
        """The goals on the rows that count in some expression."""
        constraints = self.constraints.subset(self.is_measured)
        coefficients = [self.objective.numerator, self.objective.denominator]
        coefficients += [constraints.forms.numerator, constraints.forms.denominator]
        columns = sum(np.asarray(abs(matrix).sum(axis=0)).ravel() for matrix in coefficients)
        counts = np.reshape(columns, (len(self.data), -1)).max(axis=1)
        rows = np.flatnonzero(counts if self.counted is None else self.counted | (counts > 0))
        columns = self.columns_of(rows)
        return MeasuredGoals(
            self.lower_is_better.columns(columns),
            replace(constraints, forms=constraints.forms.columns(columns)),
            rows,
            self.adds,
        )

    def columns_of(self, rows: np.ndarray) -> np.ndarray:
        """Places of the decisions of some rows among the `indicators` of all."""
        per_row = len(self.data.decisions) - 1
        return (rows[:, None] * per_row + np.arange(per_row)).ravel()

    def measured_indicators(self, decided: np.ndarray) -> np.ndarray:
        """Return `indicators` of decisions of the rows that count."""
        return measure.indicators(decided, len(self.data.decisions))

    def predicted(self, decided: np.ndarray) -> np.ndarray:
        """Decisions of all n rows, the first where only those of the measured ones are known."""
        decisions = np.zeros(len(self.data))
        decisions[self.measured.rows] = decided
        return decisions

    def cluster_factors(self, decided: np.ndarray) -> np.ndarray | None:
        """Factors of standard errors by dependent rows, at decisions of the rows that count."""
        return measure.cluster_factors(self.constraints, self.data, self.predicted(decided))

    def widened(self, positive: np.ndarray) -> Goals | None:
        """Return the goals with the pairs of groups that are worst at predictions of all n rows.

        None if these are in the working set: then predictions that are best under it hold for, and
        so are best under, all pairs.
        """
        if self.counted is None:
            return None
        worst = measure.worst_pairs(self.every, self.data, positive)
        if np.isin(worst, self.working).all():
            return None
        working = np.union1d(self.working, worst)
        with silenced(UndefinedMetricWarning):  # the first binding has warned
            constraints = measure.bind_constraints([self.every[k] for k in working], self.data)
        return replace(self, constraints=constraints, working=working)

    def until_pairs_stay(self, choose: Callable[[Goals], C]) -> tuple[Goals, C]:
        """Choose, again if other pairs of groups are worse at the choice.

        `choose` returns something with a `choice`, whose rule decides the rows that count.
        """
        chosen = choose(self)
        predicted = self.predicted(chosen.choice.rule.decided)
        wider = self.widened(predicted) if chosen.choice.feasible else None
        return (self, chosen) if wider is None else wider.until_pairs_stay(choose)

    def on_rows(self, kept: np.ndarray) -> Goals:
        """Return the goals on some of the n rows; constraints without rows there are skipped."""
        train, extra, n = self.data.train, self.data.extra, len(self.data.train)
        train = replace(train, weight=train.weight * kept[:n])
        if extra is not None:
            extra = replace(extra, weight=extra.weight * kept[n:])
        return self.bound_to(replace(self.data, train=train, extra=extra))

    def bound_to(self, data: measure.Data) -> Goals:
        """Bind the rates and the working set to rows of other weights."""
        with silenced(UndefinedMetricWarning):
            rates, forms, _ = measure.bind_objective(self.rates, with_weights(data, self.factors))
            bound = measure.bind_constraints(self.constraints.constraints, data, allow_empty=True)
        settings = self.declared, forms, self.maximize, bound, data, self.factors
        return Goals(*settings, rates=rates, adds=self.adds)

    def over(self, data: measure.Data) -> MeasuredGoals:
        """Return the goals of the tested rows, without skipped constraints, on all rows of data."""
        whole = self.bound_to(data)
        measured = whole.constraints.subset(self.is_measured)
        return MeasuredGoals(whole.lower_is_better, measured, np.arange(len(data)), whole.adds)

    def sample(self, n_rows: int) -> Goals:
        """Return the goals on a random sample of the relevant rows, with a fixed seed."""
        kept = np.zeros(len(self.data), dtype=bool)
        rows = np.random.default_rng(0).choice(self.measured.rows, n_rows, replace=False)
        kept[rows] = True
        return self.on_rows(kept)


@dataclass(frozen=True)
class Declared:
    """The objective and constraints as declared, checked as far as possible without data."""

    objective: Rate
    constraints: Sequence[Constraint]
    by: tuple[str, ...] | None = None

    @property
    def has_worst_group(self) -> bool:
        """True if the objective is the rate of the worst group."""
        return self.objective.is_form

    @classmethod
    def read(cls, objective: Any, constraints: Any, by: Any = None) -> Declared:
        """Check an estimator's parameters `objective`, `constraints` and `by`."""
        declared = measure.flatten_constraints(constraints)
        objective = measure.read_objective(objective)
        if isinstance(objective, AbsoluteRate) or objective.over_pairs:
            raise ValueError(
                f"objective={objective} compares rates and cannot be optimized: bound it instead, "
                "as a constraint."
            )
        for rate in (objective, *(constraint.rate for constraint in declared)):
            for atom in rate.atoms:
                if atom.amount is not None:
                    raise ValueError(
                        f"{rate} is measured by the column {atom.amount!r}, not by labels: it is "
                        "a goal of skbandit.bandit.ConstrainedPolicy."
                    )
        read = cls(objective, declared, None if by is None else measure.read_by(by))
        if read.has_worst_group and objective.fractional:
            raise ValueError(
                f"objective={objective} is the worst of several ratios and cannot be optimized: "
                "bound it instead, as a constraint, or optimize recalls or error rates."
            )
        if read.has_worst_group and by is not None:
            raise ValueError(
                f"objective={objective} is for one threshold on all rows: pass by=None, or an "
                "objective without groups."
            )
        return read

    def require_one_rate(self, what: str) -> None:
        """Raise an error if the objective is the rate of the worst group."""
        if self.has_worst_group:
            raise ValueError(
                f"{what} optimizes one rate, but objective={self.objective} is one per group: use "
                "ConstrainedRampClassifier, ConstrainedReduction or ConstrainedThreshold."
            )

    def require_pos_label(self, classes: Classes, pos_label: Any, data: measure.Data) -> None:
        """Raise an error if a rate lacks its class, or is of a decision that is no class."""
        for rate in (self.objective, *(constraint.rate for constraint in self.constraints)):
            for atom in rate.atoms:
                compared = atom.kind.compares_with == "label" and atom.cells is None
                if compared and atom.decided is None and atom.of in classes.others:
                    raise ValueError(
                        f"{rate}: {atom.of!r} is no class, so that it is never right. Its share is "
                        f"positive_rate(of={atom.of!r})."
                    )
        labels = classes.labels.tolist()
        if pos_label is not None or measure.positive_is_known(labels) or not data.of_two:
            return  # of several classes, each rate tells
        rates = {repr(self.objective): self.objective}
        rates |= {constraint.text: constraint.rate for constraint in self.constraints}
        for text, rate in rates.items():
            stored = [  # predictions, which may be other than labels, such as 0 and 1
                measure.distinct(rows.columns.get(atom.reference, repr(atom)), atom.reference)
                for atom in rate.atoms
                if atom.reference is not None
                for rows, _ in data.parts(atom.on)
            ]
            if not rate.symmetric or any(set(names) - set(data.labels) for names in stored):
                raise ValueError(
                    f"{text} depends on which class is positive, and y has the labels "
                    f"{labels[0]!r} and {labels[1]!r}: choose one with pos_label=."
                )

    def columns_of_selections(self, data: measure.Data) -> tuple[str, ...] | None:
        """Columns that tell which rows each rate counts; None where a function does."""
        rates = self.objective, *(constraint.rate for constraint in self.constraints)
        atoms = [atom for rate in rates for atom in rate.atoms]
        return measure.columns_of_selections(atoms, data.train.columns)

    def bind(self, data: measure.Data, factors: np.ndarray | None = None) -> Goals:
        """Bind to data.

        Parameters
        ----------
        data : Data
            The rows.
        factors : ndarray or None
            Factors of the weights of the rows of X in the objective.
        """
        factors = np.ones(len(data.train)) if factors is None else factors
        weighted = with_weights(data, factors)
        declared = measure.objective_rates(self.objective, data)
        adds = not data.of_two and not all(rate.linear_fractional for rate in declared)
        if adds:  # ratios of several denominators
            declared = [term for rate in declared for term in measure.terms_of(rate)]
        rates, forms, n_rows = measure.bind_objective(declared, weighted)
        if self.has_worst_group:
            measure.warn_of_few(list(map(repr, rates)), n_rows)
        every = measure.expand(self.constraints, data)
        measure.warn_of_groups(
            [measure.as_constraint(self.objective), *self.constraints], self.by, data
        )
        # before there is a model, pairs are those that a perfect one has the most trouble with
        working = measure.worst_pairs(every, data, np.maximum(data.label, 0))
        constraints = measure.bind_constraints([every[k] for k in working], data)
        maximize = bool(self.objective.greater_is_better)
        counted = None
        if len(working) < len(every):  # the rows that some constraint depends on
            counted = np.zeros(len(data), dtype=bool)
            atoms = [atom for constraint in every for atom in constraint.rate.atoms]
            for atom in {atom.key: atom for atom in atoms}.values():
                with suppress(EmptyRateError):
                    counted |= measure.bind_atom(atom, data)[2]
        return Goals(
            self, forms, maximize, constraints, data, factors, every, working, counted, rates, adds
        )
