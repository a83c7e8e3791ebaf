"""The cutting-plane model h_t of the dual function: cuts, maximiser and centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from skbandit.constrained.solvers._interface import SolverError
from skbandit.constrained.solvers._problem import ConvexProblem

CUT_MAX_EXCESS = 1e-8
"""Largest violation of a hard constraint by a cut, in units of its row, that counts as met.

Tighter than the `MAX_EXCESS` that solutions are held to: the mean of the cuts satisfies the
constraints up to the tolerance of the linear program, 1e-10. Beyond it the value is infinite.
"""

MAX_DECREMENT, MAX_STEPS = 0.1, 200
"""Newton decrement below which a point counts as the analytic centre; maximum Newton steps."""


@dataclass(frozen=True)
class Cut:
    """A cut, Psi(w, b, v) as a function of v: linear, and nowhere below the dual function.

    With value u_t and gradient g_t at v_t, it is u_t + <g_t, v - v_t>.

    Parameters
    ----------
    coef, intercept : ndarray of shape (d,), float
        w and b.
    offset : float
        Value at v = 0: the regularised objective at (w, b).
    g : ndarray of shape (m,)
        Gradient: the violation of each constraint by (w, b).
    """

    coef: np.ndarray
    intercept: float
    offset: float
    g: np.ndarray

    @classmethod
    def at(cls, problem: ConvexProblem, coef: np.ndarray, intercept: float, f: np.ndarray) -> Cut:
        """Make the cut of (w, b), whose scores are f."""
        rows = problem.rows(f)
        objective = float(rows[0] + 0.5 * problem.alpha * coef @ coef)
        return cls(coef, intercept, objective, rows[1:])

    @property
    def excess(self) -> float:
        """Sum of the violations."""
        return float(np.maximum(self.g, 0.0).sum())

    def value(self, penalty: float) -> float:
        """The largest value over 0 <= v <= penalty: the objective and penalised violations."""
        if np.isinf(penalty):
            return np.inf if self.g.max(initial=0.0) > CUT_MAX_EXCESS else self.offset
        return self.offset + penalty * self.excess


@dataclass(frozen=True)
class Model:
    """The model h_t(v), the lowest cut at v: concave, and above the dual function.

    Parameters
    ----------
    offsets : ndarray of shape (t,)
        Values of the cuts at v = 0.
    slopes : ndarray of shape (t, m)
        Gradients of the cuts.
    """

    offsets: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> Model:
        """Build the model from its cuts."""
        return cls(np.array([cut.offset for cut in cuts]), np.array([cut.g for cut in cuts]))

    def __call__(self, v: np.ndarray) -> float:
        """Value at v."""
        return float((self.offsets + self.slopes @ v).min())


@dataclass(frozen=True)
class Maximum:
    """The largest value of a model over the box V = [0, upper]^m.

    Parameters
    ----------
    value : float
        U_t.
    v : ndarray of shape (m,)
        The maximiser.
    mixture : ndarray of shape (t,)
        Convex combination of the cuts that is at most U_t on all of V: the dual solution.
    """

    value: float
    v: np.ndarray
    mixture: np.ndarray


def maximise(h: Model, upper: float) -> Maximum:
    """Maximise h_t over the box, through its dual: the mixture of cuts with the lowest maximum.

    min over mu, xi >= 0 with sum mu = 1 of <mu, offsets> + upper sum xi, where xi >= mu' slopes.
    """
    T, m = h.slopes.shape
    least = h.offsets.min()  # subtracted: costs must be small beside the solver's tolerances
    result = linprog(
        np.concatenate([h.offsets - least, np.full(m, upper)]),
        A_ub=np.hstack([h.slopes.T, -np.eye(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(T), np.zeros(m))[None],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise SolverError(f"The linear program over {T} cuts failed: {result.message}")
    mixture = np.maximum(result.x[:T], 0.0)
    v = np.clip(-result.ineqlin.marginals, 0.0, upper)
    return Maximum(float(result.fun + least), v, mixture / mixture.sum())


def mean(problem: ConvexProblem, cuts: Sequence[Cut], mixture: np.ndarray) -> Cut:
    """Make the cut of the mean (w, b): by convexity nowhere above the mixture of the cuts."""
    coef = sum((mu * cut.coef for mu, cut in zip(mixture, cuts, strict=True) if mu), 0.0)
    b = sum(mu * cut.intercept for mu, cut in zip(mixture, cuts, strict=True))
    return Cut.at(problem, np.asarray(coef), b, problem.X @ coef + b)


def centre(h: Model, lower: float, upper: float, top: Maximum) -> np.ndarray:
    """Choose the next v: a centre of the part of V that the cuts have left (CutChooser)."""
    m = len(top.v)
    if m == 0 or upper == 0:
        return top.v  # nothing to choose
    return bisection(h, lower, upper) if m == 1 else analytic_centre(h, lower, upper, top)


def bisection(h: Model, lower: float, upper: float) -> np.ndarray:
    """Halve the remaining interval of a single multiplier: {v in [0, upper]: h_t(v) >= L_t}.

    A cut through L_t at v_t, which an exact SVM gives unless v_t is the best so far, keeps
    the side that its slope points to.
    """
    g = h.slopes[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        reaches = (lower - h.offsets) / g  # v at which the cut equals L_t
    left = np.max(reaches[g > 0], initial=0.0)
    right = np.min(reaches[g < 0], initial=upper)
    return np.clip([(left + right) / 2], 0.0, upper)


def analytic_centre(h: Model, lower: float, upper: float, top: Maximum) -> np.ndarray:
    """The v of the analytic centre of {(v, z): L_t <= z <= h_t(v), v in [0, upper]^m}.

    It maximises sum_s log(h_s(v) - z) + t log(z - L_t) + sum_k log v_k + log(upper - v_k),
    where the floor z >= L_t counts once per cut (Goffin, Haurie & Vial 1992). The centre is
    far from all cuts, so the next one removes a large part whichever way it points. Found by
    Newton's method, whose steps of length 1 / (1 + decrement) never leave the set.
    """
    T, m = h.slopes.shape
    height = top.value - lower  # z is measured from L_t in units of the height
    slopes = h.slopes / height
    rows = np.block([[slopes, -np.ones((T, 1))], [np.eye(m + 1)], [-np.eye(m), np.zeros((m, 1))]])
    offsets = np.concatenate([(h.offsets - lower) / height, np.zeros(m + 1), np.full(m, upper)])
    weights = np.ones(len(offsets))
    weights[T + m] = T

    # start: from the maximum, where h_t is 1, inwards until h_t may be 1/2, at most half way
    inwards = upper / 2 - top.v
    v = top.v + min(0.5, 0.5 / max(-(slopes @ inwards).min(), 1.0)) * inwards
    z = ((h.offsets - lower) / height + slopes @ v).min() / 2
    y = np.append(v, z)
    for _ in range(MAX_STEPS):
        slack = offsets + rows @ y
        gradient = rows.T @ (weights / slack)
        hessian = (rows.T * (weights / slack**2)) @ rows
        scale = 1 / np.sqrt(np.diag(hessian))
        step = scale * np.linalg.solve(hessian * scale * scale[:, None], scale * gradient)
        decrement = np.sqrt(max(gradient @ step, 0.0))
        moved = y + step / (1 + decrement)
        inside = (offsets + rows @ moved > 0).all()  # unless rounding interferes
        if decrement <= MAX_DECREMENT or not inside:
            break
        y = moved
    return np.clip(y[:m], 0.0, upper)
