"""Polish: from a nearly optimal solution of Problem 3 to an exact one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._interface import Pull, Solution, certify
from skbandit.constrained.training._ramp import ConvexProblem, hinge

LARGEST = 1000
"""Unknowns at most: the linear system is dense, and solved by singular values."""


def polish(problem: ConvexProblem, rough: Solution, pull: Pull, penalty: float) -> Solution:
    """Solve the optimality conditions on the active set that a rough solution shows.

    A row is on a kink if it is nearer to it than its dual variable is to the ends of its
    box [0, p]: at an optimum one of the two vanishes. A constraint is active by the same
    rule. Given these sets the conditions are linear in (w, b, kinked duals, active
    multipliers). The correction is kept only if it certifies a smaller gap.
    """
    f = problem.X @ rough.coef + rough.intercept
    values = problem.rows(f)
    broken = values[1:] > 0
    active = _undecided(np.abs(values[1:]), rough.multipliers, np.full(len(broken), penalty))
    active |= broken & np.isinf(penalty)
    v = np.append(1.0, np.where(active, rough.multipliers, np.where(broken, penalty, 0.0)))
    p, q = problem.boxes(v[1:])
    on_low = _undecided(np.abs(f + 0.5), pull.up, p)
    on_high = _undecided(np.abs(f - 0.5), pull.down, q)
    kinked, bound = np.flatnonzero(on_low | on_high), np.flatnonzero(active)
    d = len(rough.coef)
    if d + 1 + len(kinked) + len(bound) > LARGEST:
        return rough

    # slopes of row k in (w, b) on the linear pieces that the rows off the kinks are on
    bent_up, bent_down = (f > -0.5) & ~on_low, (f < 0.5) & ~on_high
    turn = csr_array(problem.P * bent_up - problem.Q * bent_down)
    theta = np.where(on_low, pull.up, -pull.down)[kinked]
    edges = np.hstack([_dense(problem.X[kinked]), np.ones((len(kinked), 1))])
    slopes = np.hstack([_dense(turn @ problem.X), turn.sum(axis=1).reshape(-1, 1)])
    ties = np.vstack([edges, slopes[1 + bound]])
    weights = np.concatenate([theta, v[1 + bound]])

    # [alpha I  ties'; ties  0] [change of (w, b); change of weights] = -residual
    others = np.setdiff1d(np.arange(len(v)), 1 + bound)
    ridge = np.append(np.full(d, problem.alpha), 0.0)
    u = np.append(rough.coef, rough.intercept)
    pieces = problem.P @ (bent_up * hinge(f)) + problem.Q @ (bent_down * hinge(-f)) - problem.gamma
    residual = np.concatenate(
        [
            ridge * u + ties.T @ weights + v[others] @ slopes[others],
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
    exact = certify(problem, u[:d], u[d], v[1:], penalty, Pull(up, down))
    excess = problem.rows(problem.X @ exact.coef + exact.intercept)[1:].max(initial=0.0)
    allowed = max(values[1:].max(initial=0.0), 1e-12) if np.isinf(penalty) else np.inf
    rounding = 1e-12 * max(1.0, abs(rough.primal))
    better = abs(exact.gap) <= max(abs(rough.gap), rounding) and excess <= allowed
    return exact if better else rough


def _undecided(distance: np.ndarray, dual: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Where a piecewise linear term is at its kink rather than its dual at an end."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(np.isinf(box), dual, dual / box)
    inside = (box > 0) & (dual > 0) & (dual < box)
    return inside & (distance < np.minimum(share, np.where(np.isinf(box), np.inf, 1 - share)))


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)
