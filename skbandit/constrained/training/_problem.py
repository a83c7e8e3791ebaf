"""The compiled problem: all that training knows of what was declared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from skbandit.constrained.solvers import ConvexProblem
from skbandit.constrained.solvers._problem import canonical
from skbandit.constrained.training._ramp import majorise, ramp
from skbandit.rates._binding._bind import BoundConstraints, Forms, nonnegative_rows, weight_rows

FEASIBLE = 1e-6
"""Violations of a normalised ramp constraint up to this count as none."""


@dataclass(frozen=True)
class Point:
    """A linear classifier f = X w + b, with b = `intercept` (the paper's -b)."""

    coef: np.ndarray
    intercept: float


@dataclass(frozen=True)
class RampProblem:
    """Problem 2: minimise a rate expression of the ramp under bounds on others.

    Only rows that count somewhere are kept: a row of weight 0 is as good as absent.
    Constraint rows are normalised to coefficients that sum to 1 in absolute value.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix, extra rows below.
    objective : Forms
        One expression, signed so that lower is better.
    goals : BoundConstraints
        The constraints that were not skipped, as declared.
    rows : csr_array of shape (m, n)
        Their normalised signed rows S: S pi <= rhs.
    rhs : ndarray of shape (m,)
        Their normalised right-hand sides.
    scale : ndarray of shape (m,)
        What the rows were divided by.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b is free or 0.
    """

    X: Any
    objective: Forms
    goals: BoundConstraints
    rows: csr_array
    rhs: np.ndarray
    scale: np.ndarray
    alpha: float
    fit_intercept: bool

    @cached_property
    def unit(self) -> float:
        """The sum of the objective's costs: what gaps are measured in."""
        return float(np.abs(self.objective.numerator.data).sum()) or 1.0

    @property
    def fractional(self) -> bool:
        """Whether the objective is a ratio, to be linearised in every step."""
        return self.objective.denominator.nnz > 0

    def scores(self, point: Point) -> np.ndarray:
        """Scores f of all rows, shape (n,)."""
        return np.asarray(self.X @ point.coef).ravel() + point.intercept

    def regulariser(self, point: Point) -> float:
        """The value of alpha/2 |w|^2."""
        return float(0.5 * self.alpha * point.coef @ point.coef)

    def objective_value(self, positive: np.ndarray, regulariser: float = 0.0) -> float:
        """The objective at answers pi; a ratio N/D is regularised as (N + alpha/2 |w|^2)/D.

        Infinite where the ratio is undefined.
        """
        above, below = self.objective.fractions(positive)
        value = self.objective.quotients(above[:, None] + regulariser, below[:, None])[0, 0]
        return np.inf if np.isnan(value) else float(value)

    def violation(self, positive: np.ndarray) -> np.ndarray:
        """Normalised violations of the constraints at answers pi; negative inside."""
        return self.rows @ positive - self.rhs

    def majorise_at(self, point: Point, *, constrained: bool = True) -> ConvexProblem:
        """Problem 3, tight at a point.

        A ratio as objective is first linearised at its present value rho, N - rho D: what
        lowers that below 0 lowers the ratio (Dinkelbach 1967).
        """
        f = self.scores(point)
        if self.fractional:
            P, Q, gamma = self._costs(self.objective_value(ramp(f), self.regulariser(point)))
        else:
            P, Q, gamma = self._linear_costs
        if not constrained:
            P, Q, gamma = P[[0]], Q[[0]], gamma[:1]
        return majorise(self.X, P, Q, gamma, self.alpha, f, self.fit_intercept)

    @cached_property
    def _linear_costs(self) -> tuple[csr_array, csr_array, np.ndarray]:
        return self._costs(0.0)

    def _costs(self, rho: float) -> tuple[csr_array, csr_array, np.ndarray]:
        """P, Q and gamma of N - rho D, or of the objective itself, and of the constraints."""
        goal, constant = self.objective.numerator, self.objective.numerator_constant
        if self.fractional:
            goal = goal - rho * self.objective.denominator
            constant = constant - rho * self.objective.denominator_constant
        return nonnegative_rows(
            csr_array(vstack([goal, self.rows])), np.append(-constant, self.rhs)
        )

    def shadow_prices(self, multipliers: np.ndarray, positive: np.ndarray) -> np.ndarray:
        """Multipliers per unit of the bounds as the user wrote them.

        For a linear-fractional constraint N/D <= t: per unit of the linearised N - tD.
        """
        _, below = self.objective.fractions(positive)
        return multipliers / self.scale / below[0]

    def tightened(self, by: np.ndarray) -> RampProblem:
        """Return the problem with every normalised bound moved inwards by `by`."""
        return replace(self, rhs=self.rhs - by)

    def with_margins(self, by: np.ndarray) -> RampProblem:
        """Return the problem with every bound, as declared, moved inwards by `by`."""
        sign = self.goals.sign
        rows, rhs = weight_rows(self.goals.forms, self.goals.bound - sign * by, sign)
        rows = csr_array(rows.multiply(1 / self.scale[:, None]))
        return replace(self, rows=rows, rhs=rhs / self.scale)


def compile_problem(
    X: Any,
    objective: Forms,
    maximise: bool,
    goals: BoundConstraints,
    alpha: float,
    fit_intercept: bool,
) -> RampProblem:
    """Make Problem 2 of bound expressions over the rows of X."""
    objective, measured, used = what_counts(objective, maximise, goals)
    X = canonical(X) if len(used) == X.shape[0] else canonical(X)[used]
    rows, rhs = weight_rows(measured.forms, measured.bound, measured.sign)
    scale = np.asarray(abs(rows).sum(axis=1)).ravel()
    scale[scale == 0] = 1.0
    return RampProblem(
        X,
        objective,
        measured,
        csr_array(rows.multiply(1 / scale[:, None])),
        rhs / scale,
        scale,
        alpha,
        fit_intercept,
    )


def what_counts(
    objective: Forms, maximise: bool, goals: BoundConstraints
) -> tuple[Forms, BoundConstraints, np.ndarray]:
    """Keep the constraints that were not skipped and the rows that count somewhere.

    Returns the objective, signed so that lower is better, and the constraints over these
    rows, and their indices.
    """
    measured = goals.subset(goals.n_rows > 0)
    counts = [objective.numerator, objective.denominator]
    counts += [measured.forms.numerator, measured.forms.denominator]
    used = np.flatnonzero(sum(np.asarray(abs(c).sum(axis=0)).ravel() for c in counts))
    if maximise:
        objective = objective.negated()
    measured = replace(measured, forms=measured.forms.columns(used))
    return objective.columns(used), measured, used
