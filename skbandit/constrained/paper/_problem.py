"""The compiled problem: objective and constraints as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from skbandit.constrained._goals import MeasuredGoals
from skbandit.constrained.paper._interface import ConvexProblem, canonical_design
from skbandit.constrained.paper._tolerances import FEASIBLE, NO_DIRECTION
from skbandit.constrained.rounds._multipliers import multipliers_per_bound
from skbandit.measure import BoundConstraints, LinearFractionalForms, nonnegative_rows

KINK = 1e-6
"""Distance from a kink of the ramp within which a row counts as on it.

Optima put many rows exactly at f = 1/2 or -1/2. There both bounds are tight and the hinge is
the one that can still move, so rounding must not push such a row onto the flat one.
"""

MAX_ROWS = 2000
"""Largest number of rows: their inner products are decomposed, a dense matrix of this order.

Beyond it, training sees the features themselves.
"""

SMALLEST_SHARE = 1e-10
"""Smallest squared singular value that is kept, as a share of the largest.

Inner products are exact to about 1e-16 of the largest: far below, they say nothing.
"""

NULL = 1e-10
"""Largest |X'v|, as a share of the largest singular value, of a direction that counts as empty."""


def ramp(z: np.ndarray) -> np.ndarray:
    """Probability of a positive prediction, sigma(z) = min(1, max(0, 1/2 + z)) (eq. 2)."""
    return np.clip(0.5 + z, 0.0, 1.0)


def majorize(
    X: Any,
    P: csr_array,
    Q: csr_array,
    gamma: np.ndarray,
    alpha: float,
    f: np.ndarray,
    fit_intercept: bool = True,
) -> ConvexProblem:
    """Build Problem 3 at the scores f' = `f` (eq. 4 and 5).

    sigma(f) is bounded by its hinge where f' <= 1/2 and by 1 elsewhere, sigma(-f) by its
    hinge where f' >= -1/2 and by 1 elsewhere: above the ramp everywhere, equal at f'.
    """
    bent_up = f <= 0.5 + KINK
    bent_down = f >= -0.5 - KINK
    flat = P @ (~bent_up).astype(float) + Q @ (~bent_down).astype(float)
    return ConvexProblem(
        X, _keep(P, bent_up), _keep(Q, bent_down), gamma - flat, alpha, fit_intercept
    )


def _keep(weights: csr_array, columns: np.ndarray) -> csr_array:
    kept = columns[weights.indices]
    indptr = np.append(0, np.cumsum(kept))[weights.indptr].astype(weights.indptr.dtype)
    return csr_array((weights.data[kept], weights.indices[kept], indptr), shape=weights.shape)


# Wide data: with more features than rows, training takes place in the span of the rows.
#
# The problem sees w through X w and |w|^2 only. A part of w orthogonal to all rows adds to |w|^2
# and not to X w, so the optimum lies in the span of the rows (the representer theorem). In an
# orthonormal basis Q of the span, w = Q u gives X w = (X Q) u and |w| = |u|: the same problem,
# with at most as many features as rows. Every w of the span has such a u, so constraints, starting
# points and optima correspond one to one, whether there is an intercept or not.


@dataclass(frozen=True)
class RowSpan:
    """The rows in coordinates of their own span.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        The rows.
    rows : ndarray or csr_array of shape (n, r)
        X Q, for a basis Q with r columns; X itself if `combinations` is None.
    combinations : ndarray of shape (n, r) or None
        C such that Q = X' C. None means that Q is the identity.
    """

    X: Any
    rows: Any
    combinations: np.ndarray | None = None

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return w = Q u."""
        if self.combinations is None:
            return coordinates
        return np.asarray(self.X.T @ (self.combinations @ coordinates)).ravel()


def row_span(X: Any) -> RowSpan:
    """Express rows in a basis of their span if that has fewer dimensions than there are features.

    By the eigenvectors of the inner products X X' = V S V', Q = X' V S^(-1/2) and X Q = V S^(1/2).
    Directions of tiny eigenvalues are dropped if they are empty. If they are not, as among columns
    of very different scales, a dense X is decomposed itself, and a sparse one left as it is.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix.

    Returns
    -------
    RowSpan
    """
    n, d = X.shape
    if not n < d or n > MAX_ROWS:
        return RowSpan(X, X)
    inner = X @ X.T
    squares, V = np.linalg.eigh(inner.toarray() if issparse(inner) else inner)
    largest = squares[-1]
    if not 0 < largest < np.inf:
        return RowSpan(X, X)
    kept = squares > SMALLEST_SHARE * largest
    probe = V[:, ~kept] @ np.cos(np.arange((~kept).sum()))  # no direction has weight 0
    if np.linalg.norm(X.T @ probe) > NULL * np.sqrt(largest):
        if issparse(X):
            return RowSpan(X, X)
        V, sizes, _ = np.linalg.svd(X, full_matrices=False)  # over more orders of magnitude, slower
        kept = sizes > NULL * sizes[0]
        return RowSpan(X, V[:, kept] * sizes[kept], V[:, kept] / sizes[kept])
    sizes = np.sqrt(squares[kept])
    return RowSpan(X, V[:, kept] * sizes, V[:, kept] / sizes)


@dataclass(frozen=True)
class Point:
    """A linear classifier f = X w + b, with b = `intercept` (the paper's -b)."""

    coef: np.ndarray
    intercept: float


@dataclass(frozen=True)
class Iterate:
    """A point with its ramp objective and violations.

    Parameters
    ----------
    point : Point
        The classifier.
    objective : float
        The regularized ramp objective; inf where a ratio is undefined.
    violations : ndarray of shape (m,)
        Normalized violations of the ramp constraints; negative inside.
    """

    point: Point
    objective: float
    violations: np.ndarray

    @property
    def worst(self) -> float:
        """The largest violation, -inf without constraints."""
        return float(self.violations.max(initial=-math.inf))

    @property
    def feasible(self) -> bool:
        """True if every ramp constraint holds."""
        return self.worst <= FEASIBLE

    def penalized(self, penalty: float) -> float:
        """Return the objective, plus a finite `penalty` per unit of violation."""
        weight = penalty if math.isfinite(penalty) else 0.0
        return self.objective + weight * float(np.maximum(self.violations, 0.0).sum())


@dataclass(frozen=True)
class RampProblem:
    """Problem 2: minimize a rate expression of the ramp under bounds on others.

    Only rows that count in some expression are kept; a row of weight 0 is dropped.
    Constraint rows are normalized to coefficients that sum to 1 in absolute value.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix, extra rows below.
    objective : LinearFractionalForms
        One expression, signed so that lower is better.
    goals : BoundConstraints
        The measured constraints, as declared.
    rows : csr_array of shape (m, n)
        Their normalized signed rows S: S pi <= rhs.
    rhs : ndarray of shape (m,)
        Their normalized right-hand sides.
    scale : ndarray of shape (m,)
        Divisors of the rows.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b is free or 0.
    """

    X: Any
    objective: LinearFractionalForms
    goals: BoundConstraints
    rows: csr_array
    rhs: np.ndarray
    scale: np.ndarray
    alpha: float
    fit_intercept: bool

    @cached_property
    def objective_scale(self) -> float:
        """The sum of the objective's absolute costs: the unit of duality gaps."""
        return float(np.abs(self.objective.numerator.data).sum()) or 1.0

    @property
    def fractional(self) -> bool:
        """True if the objective is a ratio, linearized anew in every step."""
        return self.objective.denominator.nnz > 0

    def scores(self, point: Point) -> np.ndarray:
        """Return scores f of all rows, shape (n,)."""
        return np.asarray(self.X @ point.coef).ravel() + point.intercept

    @cached_property
    def largest_score(self) -> float:
        """About the largest <w, x> that lambda permits: costs times the largest |x|^2 / lambda."""
        squares = self.X.multiply(self.X) if issparse(self.X) else self.X * self.X
        return float(squares.sum(axis=1).max() * self.objective_scale / self.alpha)

    def without_noise(self, point: Point) -> Point:
        """Set w to exactly 0 if it separates no rows but by rounding and the solver's tolerance."""
        z = self.X @ point.coef
        if np.ptp(z) > NO_DIRECTION * min(1.0, self.largest_score):
            return point
        return Point(np.zeros_like(point.coef), point.intercept + float(z.mean()))

    def regularizer(self, point: Point) -> float:
        """Return the value of alpha/2 |w|^2."""
        return float(0.5 * self.alpha * point.coef @ point.coef)

    def objective_value(self, positive: np.ndarray, regularizer: float = 0.0) -> float:
        """Return the objective at predictions; N/D is regularized as (N + alpha/2 |w|^2)/D.

        Infinite where the ratio is undefined.
        """
        above, below = self.objective.fractions(positive)
        value = self.objective.quotients(above[:, None] + regularizer, below[:, None])[0, 0]
        return np.inf if np.isnan(value) else float(value)

    def violation(self, positive: np.ndarray) -> np.ndarray:
        """Return normalized violations of the constraints at predictions pi; negative inside."""
        return self.rows @ positive - self.rhs

    def evaluate(self, point: Point) -> Iterate:
        """Evaluate the regularized ramp objective and the normalized violations at a point."""
        positive = ramp(self.scores(point))
        value = self.objective_value(positive, self.regularizer(point))
        return Iterate(point, value, self.violation(positive))

    def majorize_at(self, point: Point, *, constrained: bool = True) -> ConvexProblem:
        """Build Problem 3, tight at a point.

        A ratio as objective is first linearized at its present value rho, N - rho D: whatever
        lowers that below 0 lowers the ratio (Dinkelbach 1967). Where it is 0/0, rho is the ratio
        of a fair coin, which is defined.
        """
        f = self.scores(point)
        if self.fractional:
            rho = self.objective_value(ramp(f), self.regularizer(point))
            if np.isinf(rho):
                rho = self.objective_value(np.full(len(f), 0.5))
            P, Q, gamma = self._costs(rho)
        else:
            P, Q, gamma = self._linear_costs
        if not constrained:
            P, Q, gamma = P[[0]], Q[[0]], gamma[:1]
        return majorize(self.X, P, Q, gamma, self.alpha, f, self.fit_intercept)

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
        """Multipliers per unit of the bounds as written: see `multipliers_per_bound`."""
        scaled = multipliers / self.scale
        return multipliers_per_bound(scaled, self.objective, self.goals.forms, positive)


def compile_problem(X: Any, goals: MeasuredGoals, alpha: float, fit_intercept: bool) -> RampProblem:
    """Compile bound goals over the rows of X into Problem 2."""
    X = canonical_design(X) if len(goals.rows) == X.shape[0] else canonical_design(X)[goals.rows]
    measured = goals.constraints
    rows, rhs = goals.linear
    scale = np.asarray(abs(rows).sum(axis=1)).ravel()
    scale[scale == 0] = 1.0
    return RampProblem(
        X,
        goals.objective,
        measured,
        csr_array(rows.multiply(1 / scale[:, None])),
        rhs / scale,
        scale,
        alpha,
        fit_intercept,
    )


def ramp_of_costs(X: Any, costs: np.ndarray, alpha: float, fit_intercept: bool) -> RampProblem:
    """Return the sum of costs of positive predictions over the rows of X, without constraints."""
    n, none = len(costs), np.zeros(0)
    empty = LinearFractionalForms(csr_array((0, n)), none, csr_array((0, n)), none)
    objective = LinearFractionalForms(
        csr_array(costs[None, :]), np.zeros(1), csr_array((1, n)), np.ones(1)
    )
    free = BoundConstraints((), empty, none, none, none.astype(int))
    return compile_problem(X, MeasuredGoals(objective, free, np.arange(n)), alpha, fit_intercept)
