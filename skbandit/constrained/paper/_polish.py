"""Polish: from a nearly optimal solution of Problem 3 to an exact one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained.paper._interface import (
    ConvexProblem,
    HingeDuals,
    Solution,
    certify,
    hinge,
)

MAX_UNKNOWNS = 1000
"""Largest linear system attempted: it is dense, and solved by singular values.

Beyond it the solution is returned as it is.
"""


def polish(
    problem: ConvexProblem,
    rough: Solution,
    duals: HingeDuals,
    penalty: float,
    max_unknowns: int = MAX_UNKNOWNS,
) -> Solution:
    """Solve the optimality conditions on the active set that a rough solution suggests.

    A row is on a kink if it is nearer to it than its dual variable is to the ends of its
    interval [0, p]: at an optimum one of the two distances vanishes. A constraint is active by
    the same rule. Given these sets the conditions are linear in (w, b, duals of kinked rows,
    active multipliers). The correction is kept only if it certifies a smaller gap.
    """
    f = problem.X @ rough.coef + rough.intercept
    values = problem.rows(f)
    violated = values[1:] > 0
    active = _at_kink(np.abs(values[1:]), rough.multipliers, np.full(len(violated), penalty))
    active |= violated & np.isinf(penalty)
    v = np.append(1.0, np.where(active, rough.multipliers, np.where(violated, penalty, 0.0)))
    p, q = problem.dual_upper_bounds(v[1:])
    on_low = _at_kink(np.abs(f + 0.5), duals.up, p)
    on_high = _at_kink(np.abs(f - 0.5), duals.down, q)
    kinked, bound = np.flatnonzero(on_low | on_high), np.flatnonzero(active)
    d = len(rough.coef)
    if d + 1 + len(kinked) + len(bound) > max_unknowns:
        return rough

    # gradients in (w, b) of the problem's rows, on the linear pieces that unkinked rows are on
    bent_up, bent_down = (f > -0.5) & ~on_low, (f < 0.5) & ~on_high
    slopes = csr_array(problem.P * bent_up - problem.Q * bent_down)
    theta = np.where(on_low, duals.up, -duals.down)[kinked]
    edges = np.hstack([_dense(problem.X[kinked]), np.ones((len(kinked), 1))])
    gradients = np.hstack([_dense(slopes @ problem.X), slopes.sum(axis=1).reshape(-1, 1)])
    ties = np.vstack([edges, gradients[1 + bound]])
    weights = np.concatenate([theta, v[1 + bound]])

    # [alpha I  ties'; ties  0] [change of (w, b); change of weights] = -residual
    others = np.setdiff1d(np.arange(len(v)), 1 + bound)
    ridge = np.append(np.full(d, problem.alpha), 0.0)
    u = np.append(rough.coef, rough.intercept)
    pieces = problem.P @ (bent_up * hinge(f)) + problem.Q @ (bent_down * hinge(-f)) - problem.gamma
    residual = np.concatenate(
        [
            ridge * u + ties.T @ weights + v[others] @ gradients[others],
            f[kinked] - np.where(on_low, -0.5, 0.5)[kinked],
            pieces[1 + bound],
        ]
    )
    system = np.block([[np.diag(ridge), ties.T], [ties, np.zeros((len(ties), len(ties)))]])
    if not problem.fit_intercept:
        system, residual = np.delete(system, d, axis=0), np.delete(residual, d)
        system[:, d] = 0.0
    change = np.linalg.lstsq(system, -residual, rcond=1e-13)[0]
    if not problem.fit_intercept:
        change[d] = 0.0  # not 1e-27

    u = u + change[: d + 1]
    weights = weights + change[d + 1 :]
    v[1 + bound] = np.clip(weights[len(kinked) :], 0.0, penalty)
    up, down = (v @ problem.P) * bent_up, (v @ problem.Q) * bent_down
    up[kinked] += np.where(on_low[kinked], weights[: len(kinked)], 0.0)
    down[kinked] -= np.where(on_low[kinked], 0.0, weights[: len(kinked)])
    exact = certify(problem, u[:d], u[d], v[1:], penalty, HingeDuals(up, down))
    excess = problem.rows(problem.X @ exact.coef + exact.intercept)[1:].max(initial=0.0)
    allowed = max(values[1:].max(initial=0.0), 1e-12) if np.isinf(penalty) else np.inf
    rounding = 1e-12 * max(1.0, abs(rough.primal))
    better = abs(exact.gap) <= max(abs(rough.gap), rounding) and excess <= allowed
    return exact if better else rough


def _at_kink(distance: np.ndarray, dual: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Mark the piecewise linear terms at their kink, with duals strictly in [0, upper]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(np.isinf(upper), dual, dual / upper)
    inside = (upper > 0) & (dual > 0) & (dual < upper)
    return inside & (distance < np.minimum(share, np.where(np.isinf(upper), np.inf, 1 - share)))


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)


def box_quadratic(S: np.ndarray, r: np.ndarray, upper: float) -> np.ndarray:
    """Minimize v'Sv/2 - r'v over 0 <= v <= upper.

    Primal active set method: solve on the free variables, stop at the first bound in the way,
    and free the variable that the gradient pulls off its bound most. Finite, as the value
    decreases at every change of the set. It starts where the free minimum is clipped.

    Parameters
    ----------
    S : ndarray of shape (m, m)
        Positive definite; may be nearly singular.
    r : ndarray of shape (m,)
        Linear term.
    upper : float
        Upper bound of every variable.

    Returns
    -------
    ndarray of shape (m,)
    """
    v = np.clip(np.linalg.solve(S, r), 0.0, upper)
    free = (v > 0) & (v < upper)
    for _ in range(100 + 10 * len(r)):
        if free.any():
            rest = r[free] - S[np.ix_(free, ~free)] @ v[~free]
            target = np.linalg.solve(S[np.ix_(free, free)], rest)
            move = target - v[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(move < 0, -v[free] / move, (upper - v[free]) / move)
            share = min(1.0, np.where(move == 0, np.inf, room).min())
            v[free] = np.clip(v[free] + share * move, 0.0, upper)
            if share < 1:
                blocked = np.flatnonzero(free)[np.where(move == 0, np.inf, room) <= share]
                v[blocked] = np.where(v[blocked] > upper / 2, upper, 0.0)
                free[blocked] = False
                continue
        ascent = r - S @ v
        inward = np.where(free, 0.0, np.where(v > 0, -ascent, ascent))
        steepest = int(np.argmax(inward))
        if inward[steepest] <= 1e-13 * (1.0 + np.abs(r).max()):
            break
        free[steepest] = True
    return v
