"""Smoothed Newton in SQP form, for up to about a thousand features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from skbandit.constrained.paper._augmented_lagrangian import AugmentedLagrangianSolver
from skbandit.constrained.paper._interface import (
    MAX_EXCESS,
    ConvexProblem,
    HingeDuals,
    ParametersMixin,
    Solution,
    SolverError,
    canonical_design,
    certify,
)
from skbandit.constrained.paper._polish import adapted_damping, box_quadratic, line_search, polish
from skbandit.utils._compiled import compiled
from skbandit.utils._fitting import one_blas_thread

__all__ = ["SmoothedNewtonSolver"]


# Compiled loops over the rows of a smoothed convex problem.
#
# Each hinge max(0, u) of u = 1/2 + f or 1/2 - f is replaced by
#
#     h(u; a) = max over 0 <= s <= 1 of s u - eps (s - a)^2,
#
# whose maximizer s = clip(a + u / 2 eps, 0, 1) is its derivative and, at the optimum, the dual
# variable of the hinge as a share of its upper bound. It is at most eps max(a, 1 - a)^2 below the
# hinge, and equal to it where s = a: the proximal point method on the dual moves the centers a to
# s.
#
# All loops run over ``ConvexProblem.by_row``: row j of the data has the entries (k, cost), where
# cost > 0 is that of a positive prediction in row k of the problem, and cost < 0 minus that of a
# negative one.

SMOOTHEST, SHARPEST = 1.0, 1e-3
"""eps of a cold start, and the smallest eps, in units of the score (a ramp has width 1)."""

FINE, PROXIMAL = 0.1, 0.02
"""Largest eps of the fine stage, and of the proximal stage.

A warm start begins with FINE, or with PROXIMAL if an accurate solution is required.
"""

WARM_GAP = 0.1
"""Largest gap of a solution that counts as a warm start, as a share of the objective's scale."""

MODERATE_TOL, ROUGH_TOL = 1e-4, 5e-6
"""Tolerances, as shares of the objective's scale, above which less work will do.

Above MODERATE_TOL a warm start begins with FINE; above ROUGH_TOL centers do not move, as
uncentered hinges majorize the true ones: a point feasible for them is feasible.
"""

GAP_PER_SQUARE = 0.01
"""Cautious estimate of gap / (eps^2 scale), which is about 0.1: do not certify before."""

FIRST_SETTLE_TOL, LAST_SETTLE_TOL = 2e-3, 1e-13
"""Newton decrement, in units of eps, below which steps have settled: at first, and at last."""

WIDEN = 0.2
"""Share of eps by which hinges count as curved beyond their curved part after a short step."""

SHORT_LENGTH = 0.1
"""Length of a step below which the next Newton system is damped more."""

LEAST_DAMPING, MOST_DAMPING = 1e-4, 1.0
"""Smallest and largest damping after a short step, in units of `SmoothedProblem.metric`."""

HARD_FIRST_PENALTY, HARD_LAST_PENALTY = 10.0, 1e4
"""Penalty per unit of violation of hard constraints, at first and at last.

Times 10 while a multiplier is at the penalty; constraints that need more than the last one
are left to the augmented Lagrangian.
"""

POLISH_GAP, POLISH_UNKNOWNS = 1e-5, 200
"""Largest gap (in units of the objective) and number of unknowns at which to try polishing."""

FALLBACK_GAP = 1e-4
"""Gap, as a share of the objective's scale, above which the augmented Lagrangian is tried."""

MAX_STALLED_CERTIFICATES = 8
"""Certificates without progress after which the best solution so far is returned."""


class CostEntries(NamedTuple):
    """The entries of `ConvexProblem.by_row`."""

    indptr: np.ndarray
    k: np.ndarray
    cost: np.ndarray


class Centers(NamedTuple):
    """Slopes in [0, 1] at which the smoothing of each row's two hinges is exact."""

    up: np.ndarray
    down: np.ndarray


@compiled
def _smoothed_hinge(u: float, a: float, eps: float) -> tuple[float, float]:
    """Smoothed hinge h(u; a) and its derivative."""
    s = min(max(a + u / (2 * eps), 0.0), 1.0)
    return s * u - eps * (s - a) * (s - a), s


@compiled
def rows_along(
    costs: CostEntries,
    centers: Centers,
    z: np.ndarray,
    dz: np.ndarray,
    t: float,
    eps: float,
    lift: float,
    values: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Fill the values of the problem's rows at the scores z + t dz, and their slopes in t.

    `lift` is added to every smoothed hinge.
    """
    values[:] = 0.0
    slopes[:] = 0.0
    for j in range(len(z)):
        first, last = costs.indptr[j], costs.indptr[j + 1]
        if first == last:
            continue
        f = z[j] + t * dz[j]
        h_up, s_up = _smoothed_hinge(0.5 + f, centers.up[j], eps)
        h_down, s_down = _smoothed_hinge(0.5 - f, centers.down[j], eps)
        for e in range(first, last):
            cost, k = costs.cost[e], costs.k[e]
            p, q = max(cost, 0.0), max(-cost, 0.0)  # no branches: labels are unpredictable
            values[k] += p * (h_up + lift) + q * (h_down + lift)
            slopes[k] += (p * s_up - q * s_down) * dz[j]


@compiled
def differentiate(
    costs: CostEntries,
    centers: Centers,
    z: np.ndarray,
    eps: float,
    v: np.ndarray,
    widen: float,
    slopes: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """Fill the slope in the score of each entry, and the curvature of each row of the data.

    Curvatures are of the Lagrangian, in which row k of the problem has weight v[k]. A hinge is
    curved where 0 < s < 1, and by `widen` beyond either end.
    """
    for j in range(len(z)):
        first, last = costs.indptr[j], costs.indptr[j + 1]
        curvature[j] = 0.0
        if first == last:
            continue
        up = centers.up[j] + (0.5 + z[j]) / (2 * eps)
        down = centers.down[j] + (0.5 - z[j]) / (2 * eps)
        up_curved = -widen < up < 1 + widen
        down_curved = -widen < down < 1 + widen
        up, down = min(max(up, 0.0), 1.0), min(max(down, 0.0), 1.0)
        total = 0.0
        for e in range(first, last):
            cost = costs.cost[e]
            if cost > 0:
                slopes[e] = cost * up
                if up_curved:
                    total += v[costs.k[e]] * cost
            else:
                slopes[e] = cost * down
                if down_curved:
                    total -= v[costs.k[e]] * cost
        curvature[j] = total / (2 * eps)


@compiled
def hinge_shares(
    centers: Centers, z: np.ndarray, eps: float, up: np.ndarray, down: np.ndarray
) -> None:
    """Fill the maximizers s of both hinges of each row."""
    for j in range(len(z)):
        up[j] = min(max(centers.up[j] + (0.5 + z[j]) / (2 * eps), 0.0), 1.0)
        down[j] = min(max(centers.down[j] + (0.5 - z[j]) / (2 * eps), 0.0), 1.0)


@compiled
def add_gram(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    curvature: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add [X 1]' diag(curvature) [X 1] to the lower half of H; indices of a row are sorted."""
    d = H.shape[0] - 1
    for j in range(len(curvature)):
        c = curvature[j]
        if c > 0:
            first, last = indptr[j], indptr[j + 1]
            for a in range(first, last):
                row = indices[a]
                cx = c * data[a]
                for b in range(first, a + 1):
                    H[row, indices[b]] += cx * data[b]
                H[d, row] += cx
            H[d, d] += c


@compiled
def accumulate_sparse(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    costs: CostEntries,
    slopes: np.ndarray,
    slopes_in_J: np.ndarray,
    curvature: np.ndarray,
    J: np.ndarray,
    H: np.ndarray,
) -> None:
    """Update J = [X 1]' slopes, and add [X 1]' diag(curvature) [X 1] to the lower half of H.

    `slopes_in_J` are the slopes that J was computed from: only rows with others are visited.
    """
    d = J.shape[0] - 1
    for j in range(len(curvature)):
        first, last = indptr[j], indptr[j + 1]
        changed = False
        for e in range(costs.indptr[j], costs.indptr[j + 1]):
            if slopes[e] != slopes_in_J[e]:
                changed = True
        if changed:
            for e in range(costs.indptr[j], costs.indptr[j + 1]):
                k = costs.k[e]
                step = slopes[e] - slopes_in_J[e]
                slopes_in_J[e] = slopes[e]
                for a in range(first, last):
                    J[indices[a], k] += step * data[a]
                J[d, k] += step
    add_gram(indptr, indices, data, curvature, H)


@dataclass(frozen=True)
class Smoothing:
    """One choice of smoothed hinges; see `_smoothed_hinge`.

    Parameters
    ----------
    eps : float
        Width of the smoothing.
    centers : Centers
        Slopes at which it is exact.
    lift : float
        Added to every smoothed hinge: with eps/4 and centers 1/2 it majorizes the true hinge.
    """

    eps: float
    centers: Centers
    lift: float


@dataclass(frozen=True)
class SmoothedProblem:
    """Rows of Problem 3 under a smoothing, as functions of u = (w, b).

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3, with X in canonical form.
    """

    problem: ConvexProblem

    @cached_property
    def costs(self) -> CostEntries:
        """P and Q by the rows of X."""
        by_row = self.problem.by_row
        return CostEntries(by_row.indptr, by_row.indices, by_row.data)

    @cached_property
    def ridge(self) -> np.ndarray:
        """Diagonal of the regularizer's Hessian, shape (d + 1,)."""
        return np.append(np.full(self.problem.X.shape[1], self.problem.alpha), 0.0)

    @cached_property
    def metric(self) -> np.ndarray:
        """Diagonal of the Gram matrix if every row were curved: the unit of damping."""
        X, costs = self.problem.X, self.problem.P.sum(axis=0) + self.problem.Q.sum(axis=0)
        squares = X.multiply(X) if issparse(X) else X * X
        return np.append(costs @ squares, costs.sum())

    def scores(self, u: np.ndarray) -> np.ndarray:
        """[X 1] u."""
        return np.asarray(self.problem.X @ u[:-1]).ravel() + u[-1]

    def rows_along(
        self, z: np.ndarray, dz: np.ndarray, t: float, smoothing: Smoothing
    ) -> tuple[np.ndarray, np.ndarray]:
        """Smoothed rows at the scores z + t dz, and their slopes in t."""
        values, slopes = np.empty((2, len(self.problem.gamma)))
        eps, centers, lift = smoothing.eps, smoothing.centers, smoothing.lift
        rows_along(self.costs, centers, z, dz, t, eps, lift, values, slopes)
        return values - self.problem.gamma, slopes

    def shares(self, z: np.ndarray, smoothing: Smoothing) -> Centers:
        """Slopes of the smoothed hinges at scores z, in [0, 1]."""
        slopes = Centers(np.empty_like(z), np.empty_like(z))
        hinge_shares(smoothing.centers, z, smoothing.eps, slopes.up, slopes.down)
        return slopes

    def hinge_duals(self, z: np.ndarray, v: np.ndarray, smoothing: Smoothing) -> HingeDuals:
        """Duals of the hinges at scores z and multipliers v."""
        share = self.shares(z, smoothing)
        p, q = self.problem.dual_upper_bounds(v)
        return HingeDuals(share.up * p, share.down * q)


class Derivatives:
    """Gradients J of the rows and Hessian H of the Lagrangian, in buffers that steps reuse.

    J has shape (d + 1, 1 + m), with row 0 of the problem first; H has shape (d + 1, d + 1),
    lower half, without the regularizer. For a sparse X, J is updated by the rows of X whose
    slopes changed since the last call, which late steps have few of.
    """

    def __init__(self, smoothed: SmoothedProblem) -> None:
        n, d = smoothed.problem.X.shape
        n_rows, n_entries = len(smoothed.problem.gamma), len(smoothed.costs.cost)
        self._smoothed = smoothed
        self._slopes, self._slopes_in_J = np.zeros(n_entries), np.zeros(n_entries)
        self._curvature = np.zeros(n)
        at = smoothed.costs.k, smoothed.costs.indptr
        self._slopes_by_row = csr_array((self._slopes, *at), shape=(n, n_rows)).T  # the same buffer
        self.J, self.H = np.zeros((d + 1, n_rows)), np.zeros((d + 1, d + 1))

    def update(self, z: np.ndarray, v: np.ndarray, smoothing: Smoothing, widen: float) -> None:
        """Fill J and H at scores z and multipliers v.

        Hinges count as curved by `widen` beyond the curved part of the smoothing.
        """
        problem, costs = self._smoothed.problem, self._smoothed.costs
        X, J, H = problem.X, self.J, self.H
        slopes, curvature = self._slopes, self._curvature
        weights, eps = np.append(1.0, v), smoothing.eps
        differentiate(costs, smoothing.centers, z, eps, weights, widen, slopes, curvature)
        H[:] = 0.0
        if issparse(X):
            entries = X.indptr, X.indices, X.data
            accumulate_sparse(*entries, costs, slopes, self._slopes_in_J, curvature, J, H)
        else:
            J[:-1], J[-1] = (self._slopes_by_row @ X).T, self._slopes_by_row.sum(axis=1)
            curved = np.flatnonzero(curvature)
            root = np.sqrt(curvature[curved])
            if len(curved):
                B = X[curved] * root[:, None]
                H[:-1, :-1] = dsyrk(1.0, B.T, lower=1)
                H[-1, :-1], H[-1, -1] = root @ B, root @ root
        if not problem.fit_intercept:
            J[-1], H[-1] = 0.0, 0.0


# Schedule of the smoothing: how sharp the hinges are, and when they become sharper.
#
# Three stages, by eps. Coarse: one good step per eps suffices. Fine: steps are taken until they
# settle, and the point is certified once eps is small enough for the gap to be. Proximal: the
# centers of the smoothing move to the hinges' slopes, where it is exact, and the gap goes to 0.


@dataclass(frozen=True)
class SmoothingSchedule:
    """One stage of the schedule; the methods return the next one.

    Parameters
    ----------
    tol : float
        Duality gap to reach.
    objective_scale : float
        Sum of the objective's costs.
    eps : float
        Width of the smoothing.
    lifted : bool
        Whether the hinges are uncentered, and lifted by eps/4 to majorize the true ones.
    settle_tol : float
        Newton decrement, in units of eps, below which steps have settled.
    """

    tol: float
    objective_scale: float
    eps: float = SMOOTHEST
    lifted: bool = True
    settle_tol: float = FIRST_SETTLE_TOL

    @classmethod
    def start(cls, tol: float, objective_scale: float, warm_gap: float | None) -> SmoothingSchedule:
        """The first stage, given the gap of the warm start, if any."""
        eps = SMOOTHEST
        if warm_gap is not None and warm_gap <= WARM_GAP * objective_scale:
            eps = FINE if tol > MODERATE_TOL * objective_scale else PROXIMAL
        return cls(tol, objective_scale, eps)

    @property
    def lift(self) -> float:
        """Height added to every smoothed hinge."""
        return self.eps / 4 if self.lifted else 0.0

    @property
    def is_coarse(self) -> bool:
        """Whether one good step suffices before sharpening, without a certificate."""
        return self.eps > FINE

    @property
    def certifies(self) -> bool:
        """Whether the point is worth certifying once steps have settled."""
        hopeless = GAP_PER_SQUARE * self.eps * self.eps * self.objective_scale > self.tol
        return not self.is_coarse and not (self.eps > SHARPEST and hopeless)

    @property
    def moves_centers(self) -> bool:
        """Whether the centers move when the stage ends."""
        is_rough = self.tol > ROUGH_TOL * self.objective_scale
        spared = is_rough and self.lifted and self.eps > SHARPEST
        return self.eps <= PROXIMAL and not spared

    def is_finished(self, progress: Progress) -> bool:
        """Whether the stage ends after a step."""
        settled = progress.decrement <= self.settle_tol * self.eps and progress.excess <= max(
            1e-3 * self.eps, 1e-9
        )
        if self.is_coarse:
            return settled or progress.length > 0.9 or progress.gain < 1e-12
        return settled or progress.length <= 1e-8

    def stricter(self) -> SmoothingSchedule:
        """Require smaller decrements in the proximal stage, after a certificate."""
        if self.eps > PROXIMAL:
            return self
        return replace(self, settle_tol=max(0.3 * self.settle_tol, LAST_SETTLE_TOL))

    def sharper(self) -> SmoothingSchedule:
        """The next stage; it is for the caller to move the centers if `moves_centers`."""
        if self.is_coarse:
            return replace(self, eps=self.eps / 4)
        if self.moves_centers:
            return replace(self, eps=max(self.eps / 2, SHARPEST), lifted=False)
        return replace(self, eps=max(min(self.eps / 2, PROXIMAL), SHARPEST))


@dataclass(frozen=True)
class NewtonIterate:
    """A point of the descent.

    Parameters
    ----------
    u : ndarray of shape (d + 1,)
        (w, b).
    z : ndarray of shape (n,)
        Scores [X 1] u.
    v : ndarray of shape (m,)
        Multipliers.
    length : float
        Length of the last step.
    damping : float
        Weight of the metric in the next Newton system.
    rows, smoothing : ndarray of shape (1 + m,), Smoothing
        Smoothed rows at z under the smoothing of the last step; None at the start.
    """

    u: np.ndarray
    z: np.ndarray
    v: np.ndarray
    length: float = 1.0
    damping: float = 0.0
    rows: np.ndarray | None = None
    smoothing: Smoothing | None = None

    def rows_under(self, smoothed: SmoothedProblem, smoothing: Smoothing) -> np.ndarray:
        """Smoothed rows at this point; the last step has computed them for its smoothing."""
        if self.rows is not None and self.smoothing is smoothing:
            return self.rows
        return smoothed.rows_along(self.z, np.zeros_like(self.z), 0.0, smoothing)[0]


@dataclass(frozen=True)
class Progress:
    """Outcome of a step: Newton decrement, length, decrease of the merit, violation after it."""

    decrement: float
    length: float
    gain: float
    excess: float


@dataclass(frozen=True)
class CholeskyFactor:
    """Factor L L' of a scaled matrix diag(scale) A diag(scale)."""

    L: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, H: np.ndarray, ridge: np.ndarray) -> CholeskyFactor:
        """Factor A = H + diag(ridge), given H's lower half, with as little jitter as works."""
        size = len(H)
        diagonal = H.diagonal() + ridge
        floor = np.append(np.full(size - 1, 1e-12), 1e-6)
        scale = 1 / np.sqrt(np.maximum(diagonal, floor))
        H = H * scale * scale[:, None]
        jitter = 1e-10
        while True:
            H.flat[:: size + 1] = 1.0 + jitter
            try:
                return cls(cholesky(H, lower=True, check_finite=False), scale)
            except LinAlgError:
                jitter *= 100

    def forward(self, B: np.ndarray) -> np.ndarray:
        """Half of a solve, L^-1 diag(scale) B."""
        return solve_triangular(self.L, B * self.scale[:, None], lower=True, check_finite=False)

    def backward(self, b: np.ndarray) -> np.ndarray:
        """The other half, diag(scale) L^-T b."""
        return self.scale * solve_triangular(self.L, b, lower=True, trans="T", check_finite=False)


@dataclass(frozen=True)
class StepMerit:
    """Exact penalty function along a direction: the objective plus penalized violations.

    Parameters
    ----------
    penalties : ndarray of shape (m,)
        Penalty per unit of violation of each constraint.
    regularizer : ndarray of shape (3,)
        Coefficients of alpha/2 |w + t dw|^2 as a polynomial in t.
    """

    penalties: np.ndarray
    regularizer: np.ndarray

    def value(self, rows: np.ndarray, t: float) -> float:
        """Value at t, where the problem's rows are `rows`."""
        violations = np.maximum(rows[1:], 0.0)
        return rows[0] + self.regularizer @ [1, t, t * t] + self.penalties @ violations

    def slope(self, rows: np.ndarray, slopes: np.ndarray, t: float) -> float:
        """Derivative in t, given that of the rows."""
        violated = np.where(rows[1:] > 0, slopes[1:], 0.0)
        return slopes[0] + self.regularizer @ [0, 1, 2 * t] + self.penalties @ violated


def newton_step(
    smoothed: SmoothedProblem,
    derivatives: Derivatives,
    here: NewtonIterate,
    smoothing: Smoothing,
    penalty: float,
) -> tuple[NewtonIterate, Progress]:
    """Take one Newton step with a line search.

    The direction minimizes the quadratic model of the Lagrangian under the linearized
    constraints, whose multipliers lie in [0, penalty]: the bound is the elastic mode.
    """
    u, ridge = here.u, smoothed.ridge
    rows = here.rows_under(smoothed, smoothing)
    derivatives.update(here.z, here.v, smoothing, WIDEN if here.length < 0.5 else 0.0)
    J = derivatives.J
    damped = ridge + here.damping * smoothed.metric if here.damping else ridge
    factor = CholeskyFactor.of(derivatives.H, damped)
    gradient = J[:, 0] + ridge * u
    Y = factor.forward(np.column_stack([gradient, J[:, 1:]]))
    v = linearized_multipliers(Y, rows[1:], penalty, here.v)
    half_solved = Y[:, 0] + Y[:, 1:] @ v
    du = -factor.backward(half_solved)
    if not smoothed.problem.fit_intercept:
        du[-1] = 0.0
    dz = smoothed.scores(du)

    penalties = np.minimum(penalty, 1.5 * np.maximum(v, here.v) + 0.02)
    regularizer = np.array([0.5 * u @ (ridge * u), u @ (ridge * du), 0.5 * du @ (ridge * du)])
    merit, rows_at = StepMerit(penalties, regularizer), {0.0: rows}

    def value_and_slope(t: float) -> tuple[float, float]:
        rows_at[t], slopes = smoothed.rows_along(here.z, dz, t, smoothing)
        return merit.value(rows_at[t], t), merit.slope(rows_at[t], slopes, t)

    value = merit.value(rows, 0.0)
    violated = np.where(rows[1:] > 0, J[:, 1:].T @ du, 0.0)
    t, lower = line_search(value_and_slope, value, gradient @ du + penalties @ violated)

    there = NewtonIterate(
        u + t * du,
        here.z + t * dz,
        v,
        length=t,
        damping=adapted_damping(
            here.damping, t, short=SHORT_LENGTH, least=LEAST_DAMPING, most=MOST_DAMPING
        ),
        rows=rows_at[t],
        smoothing=smoothing,
    )
    excess = np.where(v < penalty * (1 - 1e-9), rows_at[t][1:], 0.0).max(initial=0.0)
    return there, Progress(float(half_solved @ half_solved), t, value - lower, excess)


def linearized_multipliers(
    Y: np.ndarray, c: np.ndarray, penalty: float, last: np.ndarray
) -> np.ndarray:
    """Multipliers of the linearized constraints, in [0, penalty].

    Y holds L^-1 times the gradients of the problem's rows, c the values of the constraints.
    """
    if not len(c):
        return last
    S = Y[:, 1:].T @ Y[:, 1:]
    proximal = 1e-13 + 1e-10 * S.max()  # opposed constraints: stay near the last multipliers
    S.flat[:: len(c) + 1] += proximal
    return box_quadratic(S, c - Y[:, 1:].T @ Y[:, 0] + proximal * last, penalty, last)


# Smoothed Newton in SQP form: a convex problem at the cost of a few linear systems.
#
# The hinges are smoothed (`Smoothing`), more and more sharply (`SmoothingSchedule`). Each step
# (`newton_step`) solves the quadratic model of the Lagrangian under the linearized constraints: its
# Hessian is the Gram matrix of the few rows on the curved part of a hinge, and its dual is a
# small quadratic program over 0 <= v <= penalty, whose upper bound *is* the elastic mode. Once the
# hinges are sharp, the centers of the smoothing move instead (proximal point method), and the gap
# goes to 0.


@dataclass
class SmoothedNewtonSolver(ParametersMixin):
    """Newton steps on smoothed hinges, for up to about a thousand features.

    If they get stuck, which takes nearly separable rows and a tiny lambda, the augmented
    Lagrangian takes over.

    Parameters
    ----------
    max_iter : int
        Maximum number of Newton steps per convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem, SmoothedNewtonSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> SmoothedNewtonSolver().solve(problem, np.inf, 1e-8).coef.round(6)
    array([0.5])
    """

    max_iter: int = 200

    name: ClassVar[str] = "smoothed_newton"
    rough: ClassVar[float] = 3e-3
    exact: ClassVar[float] = 2e-7

    def __post_init__(self) -> None:
        if not self.max_iter >= 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Take Newton steps on sharper and sharper hinges until the certified gap is small.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Penalty per unit of constraint violation; infinite for hard constraints.
        tol : float
            Duality gap to reach; the solution reports the gap reached.
        warm : Solution, optional
            Solution to start from, with its multipliers.

        Returns
        -------
        Solution

        Raises
        ------
        SolverError
            If hard constraints are not met.
        """
        problem = replace(problem, X=canonical_design(problem.X))
        with one_blas_thread():
            solution = self._descend(problem, penalty, tol, warm)
            enough = max(tol, FALLBACK_GAP * problem.objective_scale)
            if solution is not None and abs(solution.gap) <= enough:
                return solution
            try:
                second = AugmentedLagrangianSolver().solve(problem, penalty, tol, solution)
            except SolverError:
                if solution is None:
                    raise
                return solution  # less exact than requested, but within the constraints
            return second if solution is None or second.gap < solution.gap else solution

    def _descend(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None
    ) -> Solution | None:
        """Return the best point found within hard constraints, None if there is none."""
        hard = math.isinf(penalty)
        step_penalty = HARD_FIRST_PENALTY if hard else penalty
        smoothed = SmoothedProblem(problem)
        derivatives, here = Derivatives(smoothed), _first_iterate(smoothed, step_penalty, warm)
        warm_gap = None if warm is None else warm.gap
        schedule = SmoothingSchedule.start(tol, problem.objective_scale, warm_gap)
        uncentered = Centers(np.full(len(here.z), 0.5), np.full(len(here.z), 0.5))
        smoothing = Smoothing(schedule.eps, uncentered, schedule.lift)

        best, least_error, n_stalled, polish_below = None, math.inf, 0, POLISH_GAP
        for _ in range(self.max_iter):
            here, progress = newton_step(smoothed, derivatives, here, smoothing, step_penalty)
            if not schedule.is_finished(progress):
                continue
            if schedule.certifies:
                duals = smoothed.hinge_duals(here.z, here.v, smoothing)
                w, b, v = here.u[:-1].copy(), here.u[-1], here.v.copy()
                solution = certify(problem, w, b, v, penalty, duals, here.z)
                error = _error(solution, hard)
                n_stalled = 0 if error < 0.9 * least_error else n_stalled + 1
                stalled = n_stalled > MAX_STALLED_CERTIFICATES
                promising = error < polish_below and _is_small(problem, here, duals)
                if error > tol and (promising or stalled):
                    polish_below = error / 10
                    solution = polish(problem, solution, duals, penalty)
                    error = _error(solution, hard)
                if error < least_error:
                    best, least_error = solution, error
                if least_error <= tol or stalled:
                    break
                if hard and not schedule.lifted and _is_too_low(step_penalty, here.v):
                    step_penalty *= 10
                schedule = schedule.stricter()
            centers = smoothing.centers
            if schedule.moves_centers:
                centers = smoothed.shares(here.z, smoothing)
            schedule = schedule.sharper()
            smoothing = Smoothing(schedule.eps, centers, schedule.lift)
        return best


def _first_iterate(
    smoothed: SmoothedProblem, penalty: float, warm: Solution | None
) -> NewtonIterate:
    """Start from a solution, or from zero."""
    u = np.zeros(smoothed.problem.X.shape[1] + 1)
    v = np.zeros(len(smoothed.problem.gamma) - 1)
    if warm is not None:
        u, v = np.append(warm.coef, warm.intercept), np.minimum(warm.multipliers, penalty)
    return NewtonIterate(u, smoothed.scores(u), v)


def _is_too_low(penalty: float, v: np.ndarray) -> bool:
    """Whether a penalty holds multipliers down and may still rise."""
    return penalty < HARD_LAST_PENALTY and bool((v >= 0.99 * penalty).any())


def _is_small(problem: ConvexProblem, here: NewtonIterate, duals: HingeDuals) -> bool:
    """Whether the active set gives a linear system of few unknowns."""
    p, q = problem.dual_upper_bounds(here.v)
    kinked = (duals.up > 0) & (duals.up < p)
    kinked |= (duals.down > 0) & (duals.down < q)
    return len(here.u) + len(here.v) + int(kinked.sum()) <= POLISH_UNKNOWNS


def _error(solution: Solution, hard: bool) -> float:
    """The gap; infinite if hard constraints are missed."""
    return math.inf if hard and solution.excess > MAX_EXCESS else abs(solution.gap)
