"""What every solver of the convex subproblem takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skbandit.constrained.training._ramp import ConvexProblem
from skbandit.exceptions import SolverError

__all__ = ["EXCESS", "Pull", "Solution", "Solver", "SolverError", "certify"]

EXCESS = 1e-6
"""Violation of a hard constraint that counts as none."""


@dataclass(frozen=True)
class Solution:
    """A solution of Problem 3 with its certificate.

    Parameters
    ----------
    coef : ndarray of shape (d,)
        w.
    intercept : float
        b, in f = X w + b.
    multipliers : ndarray of shape (m,)
        v >= 0: by how much the optimal value falls for a unit more of gamma[1:].
    primal : float
        Row 0 + alpha/2 |w|^2 at this solution, and what violations cost: the penalty in elastic
        mode, their multipliers' worth under hard constraints.
    dual : float
        A lower bound on the optimal value.
    excess : float
        The largest violation of a constraint.
    state : object
        What its solver wants back when it starts from this solution; nobody else reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.constrained.solvers import Solution
    >>> Solution(np.array([1.0]), 0.0, np.zeros(0), primal=0.5, dual=0.25).gap
    0.25
    """

    coef: np.ndarray
    intercept: float
    multipliers: np.ndarray
    primal: float
    dual: float
    excess: float = 0.0
    state: Any = None

    @property
    def gap(self) -> float:
        """How far from optimal the solution can be at most."""
        return self.primal - self.dual


@dataclass(frozen=True)
class Pull:
    """Dual variables of the hinges: `up` of max(0, 1/2 + f), `down` of max(0, 1/2 - f)."""

    up: np.ndarray
    down: np.ndarray

    @classmethod
    def of(cls, theta: np.ndarray, p: np.ndarray, q: np.ndarray) -> Pull:
        """The largest in the boxes [0, p] and [0, q] with down - up = theta."""
        up = np.where(theta >= q - p, q - theta, p)
        return cls(up, up + theta)


class Solver(Protocol):
    """What training asks of a solver of Problem 3; any object with these will do.

    Examples
    --------
    >>> from skbandit.constrained.solvers import CvxpySolver, Solver
    >>> solver: Solver = CvxpySolver()
    >>> solver.name
    'cvxpy'
    """

    @property
    def name(self) -> str:
        """What `solver_` says."""
        ...

    @property
    def rough(self) -> float:
        """The loosest gap worth asking for in early MM steps, if the objective's costs sum to 1."""
        ...

    @property
    def exact(self) -> float:
        """The gap to ask for at last."""
        ...

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Solve the problem, or raise SolverError.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3, with m constraints.
        penalty : float
            Price of a unit of constraint violation: infinite for hard constraints, finite
            in elastic mode, where it caps the multipliers.
        tol : float
            The gap aimed at.
        warm : Solution, optional
            Of a neighbouring problem, such as that of the last MM step, to start from.

        Returns
        -------
        Solution
        """
        ...


def certify(
    problem: ConvexProblem,
    coef: np.ndarray,
    intercept: float,
    multipliers: np.ndarray,
    penalty: float,
    pull: Pull,
    f: np.ndarray | None = None,
) -> Solution:
    """Complete a solution by its primal and dual values (those of a weighted SVM).

    The duals of the hinges lie in [0, p] and [0, q] for p = P[0] + v P[1:], q likewise. They
    are clipped and rescaled so that the lower bound is one whatever the solver's accuracy.
    The scores `f` are worked out if not given.
    """
    p, q = problem.boxes(multipliers)
    up, down = np.clip(pull.up, 0.0, p), np.clip(pull.down, 0.0, q)
    if problem.fit_intercept and up.sum() and down.sum():  # b is free: sums must agree
        total = min(up.sum(), down.sum())
        up, down = up * (total / up.sum()), down * (total / down.sum())
    elif problem.fit_intercept:
        up, down = np.zeros_like(up), np.zeros_like(down)
    turned = problem.X.T @ (down - up)
    dual = 0.5 * (up.sum() + down.sum()) - turned @ turned / (2 * problem.alpha)
    dual -= np.append(1.0, multipliers) @ problem.gamma
    rows = problem.rows(problem.X @ coef + intercept if f is None else f)
    violations = np.maximum(rows[1:], 0.0)
    price = penalty if np.isfinite(penalty) else multipliers
    primal = rows[0] + 0.5 * problem.alpha * coef @ coef + np.sum(price * violations)
    excess = float(violations.max(initial=0.0))
    return Solution(coef, float(intercept), multipliers, float(primal), float(dual), excess)
