"""Declared goals: checked without data, then bound to rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skbandit.constrained._classes import Classes
from skbandit.constrained._extra_rows import with_weights
from skbandit.rates import Constraint, Rate
from skbandit.rates._binding import (
    AbsoluteRate,
    BoundConstraints,
    ConfidenceLimit,
    Data,
    LinearFractionalForms,
    bind_constraints,
    bind_rate,
    confidence_limits,
    distinct,
    expand,
    flatten_constraints,
    positive_is_known,
    read_objective,
)


def allowed_error(confidence_level: float | None) -> float | None:
    """The error probability 1 - level, None for None.

    Rounded to 12 digits, as 1 - 0.9 is 0.09999999999999998 in binary and 0.1 is meant; a level
    closer to 1 than that is left as it is.
    """
    if confidence_level is None:
        return None
    return round(1.0 - confidence_level, 12) or 1.0 - confidence_level


@dataclass(frozen=True)
class MeasuredGoals:
    """Goals restricted to the constraints that were measured and the rows that count.

    Attributes
    ----------
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    constraints : BoundConstraints
        The constraints that were not skipped.
    rows : ndarray of int
        The rows with a coefficient in some expression; all expressions are over these.
    limits : tuple of ConfidenceLimit
        One per constraint if a confidence level was asked for, else empty.
    """

    objective: LinearFractionalForms
    constraints: BoundConstraints
    rows: np.ndarray
    limits: tuple[ConfidenceLimit, ...] = ()


@dataclass(frozen=True)
class Goals:
    """An objective and constraints, bound to the same rows.

    Attributes
    ----------
    objective : LinearFractionalForms
        One expression, as declared.
    maximise : bool
        Whether higher is better.
    constraints : BoundConstraints
        One-sided, with groups filled in.
    data : Data
        The rows.
    limits : tuple of ConfidenceLimit
        One per constraint that was not skipped if a confidence level was asked for, else
        empty.
    """

    objective: LinearFractionalForms
    maximise: bool
    constraints: BoundConstraints
    data: Data
    limits: tuple[ConfidenceLimit, ...] = ()

    @property
    def is_measured(self) -> np.ndarray:
        """Mask of the constraints that were not skipped."""
        return self.constraints.n_rows > 0

    @cached_property
    def measured(self) -> MeasuredGoals:
        """The goals on the rows that count in some expression."""
        constraints = self.constraints.subset(self.is_measured)
        coefficients = [self.objective.numerator, self.objective.denominator]
        coefficients += [constraints.forms.numerator, constraints.forms.denominator]
        counts = sum(np.asarray(abs(some).sum(axis=0)).ravel() for some in coefficients)
        rows = np.flatnonzero(counts)
        objective = self.objective.negated() if self.maximise else self.objective
        return MeasuredGoals(
            objective.columns(rows),
            replace(constraints, forms=constraints.forms.columns(rows)),
            rows,
            tuple(limit.columns(rows) for limit in self.limits),
        )


def _has_other_labels(rate: Rate, data: Data) -> bool:
    """Whether a rate compares with stored predictions other than labels, such as 0 and 1."""
    stored = [
        distinct(rows.columns.get(atom.reference, repr(atom)), atom.reference)
        for atom in rate.atoms
        if atom.reference is not None
        for rows, _ in data.parts(atom.on)
    ]
    return any(not set(found) <= set(data.labels) for found in stored)


@dataclass(frozen=True)
class Declared:
    """The goals that the user declared, checked as far as possible without data."""

    objective: Rate
    constraints: Sequence[Constraint]

    @classmethod
    def read(cls, objective: Any, constraints: Any) -> Declared:
        """Check an estimator's parameters `objective` and `constraints`."""
        declared = flatten_constraints(constraints)
        objective = read_objective(objective)
        if isinstance(objective, AbsoluteRate) or objective.grouped_by is not None:
            raise ValueError(
                f"objective={objective} combines several rates into a worst case and cannot be "
                "optimised: bound it instead, as a constraint."
            )
        return cls(objective, declared)

    def require_pos_label(self, classes: Classes, pos_label: Any, data: Data) -> None:
        """Raise an error if a rate depends on which class is positive, and nothing tells which."""
        labels = classes.labels.tolist()
        if pos_label is not None or positive_is_known(labels):
            return
        rates = {repr(self.objective): self.objective}
        rates |= {constraint.text: constraint.rate for constraint in self.constraints}
        for text, rate in rates.items():
            if not rate.symmetric or _has_other_labels(rate, data):
                raise ValueError(
                    f"{text} depends on which class is positive, and y has the labels "
                    f"{labels[0]!r} and {labels[1]!r}: choose one with pos_label=."
                )

    def bind(
        self, data: Data, factors: np.ndarray | None = None, error: float | None = None
    ) -> Goals:
        """Bind to data.

        Parameters
        ----------
        data : Data
            The rows.
        factors : ndarray or None
            Factors of the weights of the rows of X in the objective.
        error : float or None
            Probability with which any confidence limit may be wrong; None makes no limits.
        """
        weighted = data if factors is None else with_weights(data, factors)
        above, below, _ = bind_rate(self.objective, weighted)
        constraints = bind_constraints(expand(self.constraints, data), data)
        forms = LinearFractionalForms.stack([(above, below)], len(data))
        limits = () if error is None else confidence_limits(constraints, data, error)
        maximise = bool(self.objective.greater_is_better)
        return Goals(forms, maximise, constraints, data, limits)

    def bind_part(self, whole: Goals, kept: np.ndarray, factors: np.ndarray) -> Goals:
        """Bind the goals of all rows to the rows `kept`; skip those with no rows there."""
        train, extra, n = whole.data.train, whole.data.extra, len(whole.data.train)
        train = replace(train, weight=train.weight * kept[:n])
        if extra is not None:
            extra = replace(extra, weight=extra.weight * kept[n:])
        data = replace(whole.data, train=train, extra=extra)
        above, below, _ = bind_rate(self.objective, with_weights(data, factors))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            bound = bind_constraints(whole.constraints.constraints, data, allow_empty=True)
        return Goals(
            LinearFractionalForms.stack([(above, below)], len(data)), whole.maximise, bound, data
        )
