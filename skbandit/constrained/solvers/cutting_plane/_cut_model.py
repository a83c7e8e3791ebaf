"""Cuts, the model h_t that they make of the dual function, its maximum and its centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from skbandit.constrained.solvers._interface import SolverError
from skbandit.constrained.training._ramp import ConvexProblem

EXCESS = 1e-8
"""Violation of a hard constraint that counts as none."""

CENTRED, STEPS = 0.1, 200
"""Newton decrement at which a point counts as central; Newton steps at most."""


@dataclass(frozen=True)
class Cut:
    """Psi(w, b, v) as a function of v: linear, and nowhere below the dual function.

    At v_t it is u_t and has the gradient g_t, so it is u_t + <g_t, v - v_t>.

    Parameters
    ----------
    coef, intercept : ndarray of shape (d,), float
        w and b.
    offset : float
        Its value at v = 0: the objective at (w, b), with its regulariser.
    g : ndarray of shape (m,)
        Its gradient: by how much (w, b) violates each constraint.
    """

    coef: np.ndarray
    intercept: float
    offset: float
    g: np.ndarray

    @classmethod
    def at(cls, problem: ConvexProblem, coef: np.ndarray, intercept: float, f: np.ndarray) -> Cut:
        """The cut of (w, b), whose scores are f."""
        rows = problem.rows(f)
        objective = float(rows[0] + 0.5 * problem.alpha * coef @ coef)
        return cls(coef, intercept, objective, rows[1:])

    @property
    def excess(self) -> float:
        """Sum of the violations."""
        return float(np.maximum(self.g, 0.0).sum())

    def value(self, price: float) -> float:
        """The largest value over 0 <= v <= price: the objective and the priced violations."""
        if np.isinf(price):
            return np.inf if self.g.max(initial=0.0) > EXCESS else self.offset
        return self.offset + price * self.excess


@dataclass(frozen=True)
class Model:
    """h_t(v), the lowest of all cuts at v: concave, and above the dual function.

    Parameters
    ----------
    offsets : ndarray of shape (t,)
        The cuts' values at v = 0.
    slopes : ndarray of shape (t, m)
        Their gradients.
    """

    offsets: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> Model:
        """The model made of some cuts."""
        return cls(np.array([cut.offset for cut in cuts]), np.array([cut.g for cut in cuts]))

    def __call__(self, v: np.ndarray) -> float:
        """Value at v."""
        return float((self.offsets + self.slopes @ v).min())


@dataclass(frozen=True)
class Maximum:
    """The largest value of a model over a box V = [0, cap]^m.

    Parameters
    ----------
    value : float
        U_t.
    v : ndarray of shape (m,)
        Where the model takes it.
    mixture : ndarray of shape (t,)
        Convex combination of the cuts that is at most U_t all over V: the dual solution.
    """

    value: float
    v: np.ndarray
    mixture: np.ndarray


def maximise(h: Model, cap: float) -> Maximum:
    """Maximise h_t over the box, through its dual: the mixture of cuts with the lowest maximum.

    min over mu, xi >= 0 with sum mu = 1 of <mu, offsets> + cap sum xi, where xi >= mu' slopes.
    """
    T, m = h.slopes.shape
    least = h.offsets.min()  # keeps the costs small beside the solver's tolerances
    result = linprog(
        np.concatenate([h.offsets - least, np.full(m, cap)]),
        A_ub=np.hstack([h.slopes.T, -np.eye(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(T), np.zeros(m))[None],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise SolverError(f"The linear program over {T} cuts failed: {result.message}")
    mixture = np.maximum(result.x[:T], 0.0)
    v = np.clip(-result.ineqlin.marginals, 0.0, cap)
    return Maximum(float(result.fun + least), v, mixture / mixture.sum())


def mean(problem: ConvexProblem, cuts: Sequence[Cut], mixture: np.ndarray) -> Cut:
    """The cut of the mean (w, b): by convexity nowhere above the same mixture of the cuts."""
    coef = sum((mu * cut.coef for mu, cut in zip(mixture, cuts, strict=True) if mu), 0.0)
    b = sum(mu * cut.intercept for mu, cut in zip(mixture, cuts, strict=True))
    return Cut.at(problem, np.asarray(coef), b, problem.X @ coef + b)


def centre(h: Model, lower: float, cap: float, top: Maximum) -> np.ndarray:
    """Where to cut next: in the middle of what the cuts have left of V (CutChooser)."""
    m = len(top.v)
    if m == 0 or cap == 0:
        return top.v  # nothing to choose
    return bisection(h, lower, cap) if m == 1 else analytic_centre(h, lower, cap, top)


def bisection(h: Model, lower: float, cap: float) -> np.ndarray:
    """Halve what is left for the multiplier of one constraint: {v in [0, cap]: h_t(v) >= L_t}.

    A cut through L_t at v_t, as an exact SVM gives where v_t is not the best so far, leaves
    the side to which the sign of its slope points.
    """
    g = h.slopes[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        reaches = (lower - h.offsets) / g  # where the cut is at L_t
    left = np.max(reaches[g > 0], initial=0.0)
    right = np.min(reaches[g < 0], initial=cap)
    return np.clip([(left + right) / 2], 0.0, cap)


def analytic_centre(h: Model, lower: float, cap: float, top: Maximum) -> np.ndarray:
    """The v of the analytic centre of {(v, z): L_t <= z <= h_t(v), v in [0, cap]^m}.

    This maximises sum_s log(h_s(v) - z) + t log(z - L_t) + sum_k log v_k + log(cap - v_k):
    the floor z >= L_t counts as often as there are cuts (Goffin, Haurie & Vial 1992). Far
    from all cuts, so that the next one takes away much, whichever way it points. By Newton's
    method, whose steps 1 / (1 + decrement) never leave the set.
    """
    T, m = h.slopes.shape
    height = top.value - lower  # z is measured in units of it, from L_t
    slopes = h.slopes / height
    rows = np.block([[slopes, -np.ones((T, 1))], [np.eye(m + 1)], [-np.eye(m), np.zeros((m, 1))]])
    offsets = np.concatenate([(h.offsets - lower) / height, np.zeros(m + 1), np.full(m, cap)])
    weights = np.ones(len(offsets))
    weights[T + m] = T

    # from the maximum, where h_t is 1, inwards until it is 1/2 there at worst, or half way
    inwards = cap / 2 - top.v
    v = top.v + min(0.5, 0.5 / max(-(slopes @ inwards).min(), 1.0)) * inwards
    z = ((h.offsets - lower) / height + slopes @ v).min() / 2
    y = np.append(v, z)
    for _ in range(STEPS):
        slack = offsets + rows @ y
        gradient = rows.T @ (weights / slack)
        hessian = (rows.T * (weights / slack**2)) @ rows
        scale = 1 / np.sqrt(np.diag(hessian))
        step = scale * np.linalg.solve(hessian * scale * scale[:, None], scale * gradient)
        decrement = np.sqrt(max(gradient @ step, 0.0))
        moved = y + step / (1 + decrement)
        if decrement <= CENTRED or not (offsets + rows @ moved > 0).all():  # but for rounding
            break
        y = moved
    return np.clip(y[:m], 0.0, cap)
