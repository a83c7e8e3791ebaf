"""The interface of solvers: hinge duals, certified solutions, and the protocol itself."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack

from skbandit.exceptions import SolverError

__all__ = ["MAX_EXCESS", "HingeDuals", "Solution", "Solver", "SolverError", "certify"]

MAX_EXCESS = 1e-6
"""Largest violation of a hard constraint, in units of its row, that still counts as met.

A solution beyond it does not satisfy hard constraints, however small its gap.
"""


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
        v >= 0: decrease of the optimal value per unit increase of gamma[1:].
    primal : float
        Row 0 + alpha/2 |w|^2 at this solution, plus the cost of violations: at the penalty in
        elastic mode, at their multipliers under hard constraints.
    dual : float
        A lower bound on the optimal value.
    excess : float
        The largest violation of a constraint.
    state : object
        Anything the solver needs to restart from this solution; read by that solver only.

    See Also
    --------
    certify : Computes the primal and the dual value.

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
        """Upper bound on the distance of `primal` from the optimal value."""
        return self.primal - self.dual


@dataclass(frozen=True)
class HingeDuals:
    """Dual variables of the two hinges of each row of X.

    Parameters
    ----------
    up : ndarray of shape (n,)
        Duals of max(0, 1/2 + f), in [0, p].
    down : ndarray of shape (n,)
        Duals of max(0, 1/2 - f), in [0, q].

    See Also
    --------
    ConvexProblem.dual_upper_bounds : Computes p and q.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.constrained.solvers import HingeDuals
    >>> p, q = np.array([0.0, 0.5]), np.array([0.5, 0.0])
    >>> HingeDuals.of(np.array([0.2, -0.2]), p, q)
    HingeDuals(up=array([0. , 0.2]), down=array([0.2, 0. ]))
    """

    up: np.ndarray
    down: np.ndarray

    @classmethod
    def of(cls, theta: np.ndarray, p: np.ndarray, q: np.ndarray) -> HingeDuals:
        """Build the largest duals within [0, p] and [0, q] such that down - up = theta.

        Parameters
        ----------
        theta : ndarray of shape (n,)
            Differences, in [-p, q].
        p, q : ndarray of shape (n,)
            Upper bounds of `up` and `down`.

        Returns
        -------
        HingeDuals
        """
        up = np.where(theta >= q - p, q - theta, p)
        return cls(up, up + theta)


class Solver(Protocol):
    """The interface that training requires of a solver of Problem 3.

    Any object with these members is accepted by ``ConstrainedRampClassifier(solver=...)``; it
    need not inherit from this class. One with scikit-learn's ``get_params`` and ``set_params``
    can be tuned, too, as in ``GridSearchCV(clf, {"solver__max_iter": [50, 200]})``.

    See Also
    --------
    certify : Completes a solution by its primal and dual values.

    Examples
    --------
    >>> from skbandit.constrained.solvers import CvxpySolver, Solver
    >>> solver: Solver = CvxpySolver()
    >>> solver.name
    'cvxpy'
    """

    @property
    def name(self) -> str:
        """Name of the method, reported by the classifier's `solver_`."""
        ...

    @property
    def rough(self) -> float:
        """Loosest gap requested in early MM steps, as a share of the objective's costs."""
        ...

    @property
    def exact(self) -> float:
        """Gap requested in the last MM step, as a share of the objective's costs."""
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
            Penalty per unit of constraint violation: infinite for hard constraints, finite
            in elastic mode, where it bounds the multipliers.
        tol : float
            Duality gap to reach.
        warm : Solution, optional
            Solution of a similar problem to start from, such as that of the last MM step.

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
    duals: HingeDuals,
    f: np.ndarray | None = None,
) -> Solution:
    """Compute the primal and the dual value of a solution.

    Hinge duals are clipped to their bounds and, if b is free, rescaled to equal sums, so that
    the dual value is a lower bound on the optimum however inaccurate the solver was.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    coef : ndarray of shape (d,)
        w.
    intercept : float
        b.
    multipliers : ndarray of shape (m,)
        v >= 0.
    penalty : float
        Penalty per unit of constraint violation; infinite for hard constraints.
    duals : HingeDuals
        Duals of the hinges.
    f : ndarray of shape (n,), optional
        Scores X w + b, computed if not given.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem, HingeDuals, certify
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> duals = HingeDuals(up=np.array([0.0, 0.025]), down=np.array([0.025, 0.0]))
    >>> solution = certify(problem, np.array([0.5]), 0.0, np.zeros(0), np.inf, duals)
    >>> round(solution.primal, 6), round(solution.dual, 6)
    (0.0125, 0.0125)
    """
    p, q = problem.dual_upper_bounds(multipliers)
    up, down = np.clip(duals.up, 0.0, p), np.clip(duals.down, 0.0, q)
    if problem.fit_intercept and up.sum() and down.sum():  # b is free: sums must agree
        total = min(up.sum(), down.sum())
        up, down = up * (total / up.sum()), down * (total / down.sum())
    elif problem.fit_intercept:
        up, down = np.zeros_like(up), np.zeros_like(down)
    alpha_w = problem.X.T @ (down - up)  # stationarity in w
    dual = 0.5 * (up.sum() + down.sum()) - alpha_w @ alpha_w / (2 * problem.alpha)
    dual -= np.append(1.0, multipliers) @ problem.gamma
    rows = problem.rows(problem.X @ coef + intercept if f is None else f)
    violations = np.maximum(rows[1:], 0.0)
    penalties = penalty if np.isfinite(penalty) else multipliers
    primal = rows[0] + 0.5 * problem.alpha * coef @ coef + np.sum(penalties * violations)
    excess = float(violations.max(initial=0.0))
    return Solution(coef, float(intercept), multipliers, float(primal), float(dual), excess)


def hinge(z: np.ndarray) -> np.ndarray:
    """Return the convex bound max(0, 1/2 + z), equal to the ramp for z <= 1/2."""
    return np.maximum(0.5 + z, 0.0)


def canonical_design(X: Any) -> Any:
    """Return X as a C-ordered array, or in CSR with sorted indices and no duplicate entries."""
    if not issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    if not isinstance(X, csr_array) or X.dtype != np.float64:
        X = csr_array(X, dtype=np.float64)
    if not X.has_canonical_format:  # scipy caches the answer on X
        X = X.copy()
        X.sum_duplicates()
    return X


@dataclass(frozen=True)
class ConvexProblem:
    """Problem 3: minimize a convex upper bound on Problem 2, tight where it was made.

    Row 0 is the objective, rows 1..m the constraints; with f = X w + b, row k is

        sum_j P[k, j] max(0, 1/2 + f_j) + Q[k, j] max(0, 1/2 - f_j) - gamma[k]

    and the problem is: minimize row 0 + alpha/2 |w|^2 subject to rows 1..m <= 0. Rows of X on
    a flat bound have zero weight here; their cost is in gamma.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Design matrix.
    P, Q : csr_array of shape (1 + m, n)
        Nonnegative costs of a positive and of a negative prediction.
    gamma : ndarray of shape (1 + m,)
        Bounds; gamma[0] is a constant of the objective.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b, which is never penalized, is free or 0.

    Examples
    --------
    Two rows, one per class; each costs 1/2 if it is classified wrongly:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> problem.rows(np.zeros(2))
    array([0.5])
    """

    X: Any
    P: csr_array
    Q: csr_array
    gamma: np.ndarray
    alpha: float
    fit_intercept: bool = True

    def rows(self, f: np.ndarray) -> np.ndarray:
        """Return the values of rows 0..m at the scores f, without the regularizer.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Scores X w + b.

        Returns
        -------
        ndarray of shape (1 + m,)
            The objective, then the violations of the constraints (negative inside).
        """
        return self.P @ hinge(f) + self.Q @ hinge(-f) - self.gamma

    def dual_upper_bounds(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the upper bounds p = P[0] + v P[1:] and q = Q[0] + v Q[1:] on the hinge duals.

        They are the costs per row of X in the Lagrangian, a weighted SVM, whose hinge duals
        lie in [0, p] and [0, q].

        Parameters
        ----------
        multipliers : ndarray of shape (m,)
            v >= 0.

        Returns
        -------
        p, q : ndarray of shape (n,)
            For the hinges max(0, 1/2 + f) and max(0, 1/2 - f).
        """
        v = np.append(1.0, multipliers)
        return v @ self.P, v @ self.Q

    @cached_property
    def objective_scale(self) -> float:
        """Sum of the objective's costs, the unit of duality gaps."""
        return float(sum(W.data[: W.indptr[1]].sum() for W in (self.P, self.Q)))

    @cached_property
    def by_row(self) -> csr_array:
        """P and Q as one array of shape (n, 1 + m), for loops over the rows of X.

        A positive entry s in column k is the cost P[k, j] = s of a positive prediction, a
        negative one the cost Q[k, j] = -s of a negative prediction; a row of X with both has
        two entries.
        """
        stacked = csc_array(vstack([self.P, -self.Q]))
        K = len(self.gamma)
        return csr_array(
            (stacked.data, stacked.indices % K, stacked.indptr), shape=(stacked.shape[1], K)
        )


@dataclass
class ParametersMixin:
    """Give a dataclass scikit-learn's `get_params` and `set_params`.

    So `clone` copies a solver by its parameters, and ``solver__max_iter`` reaches it through
    its classifier. Parameters change by `set_params` only: solving leaves a solver as it was.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Ignored: there are no nested parameters.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, all of them or, if one is invalid, none.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is unknown or its value invalid.
        """
        parameters = self.get_params()
        unknown = [name for name in params if name not in parameters]
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it takes "
                f"{', '.join(map(repr, parameters))}."
            )
        checked = replace(self, **params)  # __post_init__ refuses invalid values
        vars(self).update(vars(checked))
        return self
