"""A small quadratic program over a box, by its active set."""

from __future__ import annotations

import numpy as np


def box_quadratic(S: np.ndarray, r: np.ndarray, cap: float, start: np.ndarray) -> np.ndarray:
    """Minimise v'Sv/2 - r'v over 0 <= v <= cap.

    Primal active set method: solve on the free variables, stop at the first bound in the way,
    and set free what the gradient pulls off its bound. Finite, as the value falls every time.

    Parameters
    ----------
    S : ndarray of shape (m, m)
        Positive definite; nearly singular is no harm.
    r : ndarray of shape (m,)
        Linear term.
    cap : float
        Upper bound of every variable.
    start : ndarray of shape (m,)
        Where to start from; the nearer, the fewer systems to solve.

    Returns
    -------
    ndarray of shape (m,)
    """
    v = np.clip(start, 0.0, cap)
    free = (v > 0) & (v < cap)
    for _ in range(100 + 10 * len(r)):
        if free.any():
            rest = r[free] - S[np.ix_(free, ~free)] @ v[~free]
            target = np.linalg.solve(S[np.ix_(free, free)], rest)
            move = target - v[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(move < 0, -v[free] / move, (cap - v[free]) / move)
            share = min(1.0, np.where(move == 0, np.inf, room).min())
            v[free] = np.clip(v[free] + share * move, 0.0, cap)
            if share < 1:
                blocked = np.flatnonzero(free)[np.where(move == 0, np.inf, room) <= share]
                v[blocked] = np.where(v[blocked] > cap / 2, cap, 0.0)
                free[blocked] = False
                continue
        pull = r - S @ v
        pull = np.where(free, 0.0, np.where(v > 0, -pull, pull))
        worst = int(np.argmax(pull))
        if pull[worst] <= 1e-13 * (1.0 + np.abs(r).max()):
            break
        free[worst] = True
    return v
