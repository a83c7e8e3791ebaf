"""Declared goals: read from what the user passed, and bound to data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target

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
    expand,
    flatten_constraints,
    read_objective,
)


@dataclass(frozen=True)
class Classes:
    """Two class labels, sorted, one of which is positive.

    Attributes
    ----------
    labels : ndarray of shape (2,)
    positive : label
    """

    labels: np.ndarray
    positive: Any

    @classmethod
    def read(cls, y: np.ndarray, pos_label: Any) -> Classes:
        """Find the classes in y; `pos_label` None makes the second positive."""
        check_classification_targets(y)
        labels = np.unique(y)
        return cls.of(labels, pos_label, type_of_target(y) if len(labels) > 2 else "binary")

    @classmethod
    def of(cls, labels: np.ndarray, pos_label: Any, kind: str = "multiclass") -> Classes:
        """Take the distinct labels of a target of a `kind`; refuse more or fewer than two."""
        if len(labels) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, with {len(labels)} classes."
            )
        if not len(labels):
            raise ValueError("y is empty.")
        if len(labels) < 2:
            raise ValueError(
                f"Two classes are needed, y has one class only: {labels.tolist()[0]!r}."
            )
        if pos_label is not None and pos_label not in labels.tolist():
            raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.")
        return cls(labels, labels.tolist()[1] if pos_label is None else pos_label)

    @property
    def orientation(self) -> float:
        """1 if scores of the positive class are scikit-learn's (for classes_[1]), else -1."""
        return 1.0 if self.labels[1] == self.positive else -1.0


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
        One-sided, groups filled in.
    data : Data
        The rows.
    limits : tuple of ConfidenceLimit
        One for each constraint that was not skipped, if a margin was asked for, else none.
    """

    objective: LinearFractionalForms
    maximise: bool
    constraints: BoundConstraints
    data: Data
    limits: tuple[ConfidenceLimit, ...] = ()


@dataclass(frozen=True)
class Declared:
    """What the user declared, checked as far as it can be without data."""

    objective: Rate
    constraints: Sequence[Constraint]

    @classmethod
    def read(cls, objective: Any, constraints: Any) -> Declared:
        """Check an estimator's parameters `objective` and `constraints`."""
        declared = flatten_constraints(constraints)
        objective = read_objective(objective)
        if isinstance(objective, AbsoluteRate) or objective.grouped_by is not None:
            raise ValueError(
                f"objective={objective} is a matter of several rules at once: bound it instead, "
                "as a constraint."
            )
        return cls(objective, declared)

    def bind(
        self, data: Data, factors: np.ndarray | None = None, margin: float | None = None
    ) -> Goals:
        """Bind to data; `factors` multiply the weights of the rows of X in the objective."""
        weighted = data if factors is None else with_weights(data, factors)
        above, below, _ = bind_rate(self.objective, weighted)
        constraints = bind_constraints(expand(self.constraints, data), data)
        forms = LinearFractionalForms.stack([(above, below)], len(data))
        limits = () if margin is None else confidence_limits(constraints, data, margin)
        maximise = bool(self.objective.greater_is_better)
        return Goals(forms, maximise, constraints, data, limits)

    def bind_part(self, whole: Goals, kept: np.ndarray, factors: np.ndarray) -> Goals:
        """Bind to some of the rows what is bound to all; what they lack is skipped."""
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
