"""One Newton step in SQP form on a smoothed problem, with an exact penalty line search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from skbandit.constrained.solvers._box_quadratic import box_quadratic
from skbandit.constrained.solvers._line_search import adapted_damping, line_search
from skbandit.constrained.solvers.smoothed_newton._smoothed_problem import (
    Derivatives,
    SmoothedProblem,
    Smoothing,
)

WIDEN = 0.2
"""Share of eps by which hinges count as curved beyond their curved part after a short step."""

SHORT_LENGTH = 0.1
"""Length of a step below which the next Newton system is damped more."""

LEAST_DAMPING, MOST_DAMPING = 1e-4, 1.0
"""Smallest and largest damping after a short step, in units of `SmoothedProblem.metric`."""


@dataclass(frozen=True)
class Iterate:
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
class Merit:
    """Exact penalty function along a direction: the objective plus penalised violations.

    Parameters
    ----------
    penalties : ndarray of shape (m,)
        Penalty per unit of violation of each constraint.
    regulariser : ndarray of shape (3,)
        Coefficients of alpha/2 |w + t dw|^2 as a polynomial in t.
    """

    penalties: np.ndarray
    regulariser: np.ndarray

    def value(self, rows: np.ndarray, t: float) -> float:
        """Value at t, where the problem's rows are `rows`."""
        violations = np.maximum(rows[1:], 0.0)
        return rows[0] + self.regulariser @ [1, t, t * t] + self.penalties @ violations

    def slope(self, rows: np.ndarray, slopes: np.ndarray, t: float) -> float:
        """Derivative in t, given that of the rows."""
        violated = np.where(rows[1:] > 0, slopes[1:], 0.0)
        return slopes[0] + self.regulariser @ [0, 1, 2 * t] + self.penalties @ violated


def newton_step(
    smoothed: SmoothedProblem,
    derivatives: Derivatives,
    here: Iterate,
    smoothing: Smoothing,
    penalty: float,
) -> tuple[Iterate, Progress]:
    """Take one Newton step with a line search.

    The direction minimises the quadratic model of the Lagrangian under the linearised
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
    v = linearised_multipliers(Y, rows[1:], penalty, here.v)
    half_solved = Y[:, 0] + Y[:, 1:] @ v
    du = -factor.backward(half_solved)
    if not smoothed.problem.fit_intercept:
        du[-1] = 0.0
    dz = smoothed.scores(du)

    penalties = np.minimum(penalty, 1.5 * np.maximum(v, here.v) + 0.02)
    regulariser = np.array([0.5 * u @ (ridge * u), u @ (ridge * du), 0.5 * du @ (ridge * du)])
    merit, rows_at = Merit(penalties, regulariser), {0.0: rows}

    def value_and_slope(t: float) -> tuple[float, float]:
        rows_at[t], slopes = smoothed.rows_along(here.z, dz, t, smoothing)
        return merit.value(rows_at[t], t), merit.slope(rows_at[t], slopes, t)

    value = merit.value(rows, 0.0)
    violated = np.where(rows[1:] > 0, J[:, 1:].T @ du, 0.0)
    t, lower = line_search(value_and_slope, value, gradient @ du + penalties @ violated)

    there = Iterate(
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


def linearised_multipliers(
    Y: np.ndarray, c: np.ndarray, penalty: float, last: np.ndarray
) -> np.ndarray:
    """Multipliers of the linearised constraints, in [0, penalty].

    Y holds L^-1 times the gradients of the problem's rows, c the values of the constraints.
    """
    if not len(c):
        return last
    S = Y[:, 1:].T @ Y[:, 1:]
    proximal = 1e-13 + 1e-10 * S.max()  # opposed constraints: stay near the last multipliers
    S.flat[:: len(c) + 1] += proximal
    return box_quadratic(S, c - Y[:, 1:].T @ Y[:, 0] + proximal * last, penalty, last)
