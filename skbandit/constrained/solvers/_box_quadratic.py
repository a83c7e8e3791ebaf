"""Small quadratic programs over a box: an exact active set method, and a start for it."""

from __future__ import annotations

import numpy as np


def box_quadratic(S: np.ndarray, r: np.ndarray, upper: float, start: np.ndarray) -> np.ndarray:
    """Minimise v'Sv/2 - r'v over 0 <= v <= upper.

    Primal active set method: solve on the free variables, stop at the first bound in the way,
    and free the variable that the gradient pulls off its bound most. Finite, as the value
    decreases at every change of the set.

    Parameters
    ----------
    S : ndarray of shape (m, m)
        Positive definite; may be nearly singular.
    r : ndarray of shape (m,)
        Linear term.
    upper : float
        Upper bound of every variable.
    start : ndarray of shape (m,)
        Initial guess; the nearer, the fewer systems to solve.

    Returns
    -------
    ndarray of shape (m,)
    """
    v = np.clip(start, 0.0, upper)
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


def clamped_newton(S: np.ndarray, r: np.ndarray, upper: float) -> np.ndarray:
    """Approximately minimise v'Sv/2 - r'v over 0 <= v <= upper: a start for `box_quadratic`.

    Every coordinate that leaves the box is clamped for good to the bound it crossed, all of
    them at once. So it takes few systems where the exact method, which frees and blocks one
    variable at a time, would take hundreds; but a clamped coordinate that should come back
    does not.
    """
    v, inside = np.zeros_like(r), np.ones(len(r), dtype=bool)
    while inside.any():
        rest = r[inside] - S[np.ix_(inside, ~inside)] @ v[~inside]
        v[inside] = np.linalg.solve(S[np.ix_(inside, inside)], rest)
        leaves = inside & ((v < 0) | (v > upper))
        if not leaves.any():
            break
        v[leaves] = np.clip(v[leaves], 0.0, upper)
        inside &= ~leaves
    return v
