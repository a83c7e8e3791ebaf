"""The reference solver: Problem 3 written in cvxpy."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csc_array, hstack

from skbandit.constrained.paper._interface import (
    ConvexProblem,
    HingeDuals,
    ParametersMixin,
    Solution,
    SolverError,
    certify,
)
from skbandit.constrained.paper._polish import polish
from skbandit.utils._validation import warn

ACCURACY_OPTIONS = {
    "PIQP": lambda tol: {
        "eps_abs": tol,
        "eps_rel": tol,
        "eps_duality_gap_abs": tol,
        "eps_duality_gap_rel": tol,
        "max_iter": 500,
    },
    "CLARABEL": lambda tol: {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
}
"""Options per backend that set its accuracy; other backends keep their defaults."""


BACKENDS = ("PIQP", "CLARABEL")
"""Backends used if none is named, in this order."""

FALLBACK_GAP = 2e-7
"""Smallest gap, in units of the objective, asked of "newton" where all backends fail."""


class InfeasibleProblemError(SolverError):
    """A backend reported that the problem is infeasible."""


@dataclass
class CvxpySolver(ParametersMixin):
    """Solve the quadratic program with any solver that cvxpy finds installed.

    Parameters
    ----------
    options : dict
        Arguments of ``cvxpy.Problem.solve``. Without a ``"solver"`` it is PIQP if installed,
        else Clarabel, which comes with cvxpy. Without any options, if one of these fails the
        next takes over, with a warning that names both; the last is the library's own "newton".

    Examples
    --------
    Two rows, one per class; each costs 1/2 if it is classified wrongly:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem, CvxpySolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> CvxpySolver({"solver": "CLARABEL"}).solve(problem, np.inf, 1e-10).coef.round(6)
    array([0.5])
    """

    options: dict[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "cvxpy"
    # MM paths branch at kinks, so a loose solve leads along another path; a tight one hardly
    # takes longer.
    rough: ClassVar[float] = 1e-10
    exact: ClassVar[float] = 1e-10

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Solve the problem and polish the solution.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Penalty per unit of constraint violation; infinite for hard constraints.
        tol : float
            Passed to PIQP and Clarabel as their tolerance; other backends keep their own.
        warm : Solution, optional
            Not used: interior point methods choose their own start.

        Returns
        -------
        Solution

        Raises
        ------
        SolverError
            If hard constraints are infeasible, or a backend that was named fails.
        """
        import cvxpy as cp  # takes most of a second: imported on first use

        backends = [name for name in BACKENDS if name in cp.installed_solvers()]
        if self.options or not backends:  # options are those of one backend
            named = str(self.options.get("solver", [*backends, BACKENDS[-1]][0]))
            return self._solve_by(named, cp, problem, penalty, tol)
        for backend, following in zip(backends, [*backends[1:], "newton"], strict=True):
            try:
                return self._solve_by(backend, cp, problem, penalty, tol)
            except InfeasibleProblemError:
                if math.isinf(penalty):
                    raise
                reason: Exception = SolverError("It calls an elastic problem infeasible.")
            except SolverError as error:
                reason = error
            warn(
                f"{backend} failed, {following} takes over: {reason} To use one backend only, "
                f'name it, as in solver_options={{"solver": "{backends[-1]}"}}.',
                UserWarning,
            )
        from skbandit.constrained.paper._registry import choose_solver  # it registers this one

        newton = choose_solver("newton", {}, *problem.X.shape)
        return newton.solve(problem, penalty, max(tol, FALLBACK_GAP * problem.objective_scale))

    def _solve_by(
        self, backend: str, cp: Any, problem: ConvexProblem, penalty: float, tol: float
    ) -> Solution:
        """Solve by one backend and polish the solution."""
        n, d = problem.X.shape
        m = len(problem.gamma) - 1
        up, down = (
            np.flatnonzero(np.asarray(W.sum(axis=0)).ravel()) for W in (problem.P, problem.Q)
        )
        # One variable for the hinges of both kinds, as either kind may be absent.
        rows, sign = np.concatenate([up, down]), np.repeat([1.0, -1.0], [len(up), len(down)])
        weights = hstack([csc_array(problem.P)[:, up], csc_array(problem.Q)[:, down]], "csr")
        # Scaled to one row's weight: costs of 1/n would drown in a backend's absolute tolerance.
        objective_scale = float(n)

        w = cp.Variable(d)
        b: Any = cp.Variable() if problem.fit_intercept else 0.0
        loss = cp.Variable(len(rows), nonneg=True)  # >= max(0, 1/2 + f) and max(0, 1/2 - f)
        hinges = loss >= 0.5 + cp.multiply(sign, problem.X[rows] @ w + b)
        objective = cp.sum(objective_scale * weights[:1] @ loss)
        objective = objective + (objective_scale * problem.alpha / 2) * cp.sum_squares(w)
        rates = []
        if m:
            violation = objective_scale * weights[1:] @ loss
            violation = violation - objective_scale * problem.gamma[1:]
            slack = cp.Variable(m, nonneg=True) if np.isfinite(penalty) else 0.0
            rates = [violation <= slack]
            if np.isfinite(penalty):
                objective = objective + penalty * cp.sum(slack)
        self._run(backend, cp, cp.Problem(cp.Minimize(objective), [hinges, *rates]), tol)

        multipliers = np.maximum(np.atleast_1d(rates[0].dual_value), 0.0) if m else np.zeros(0)
        duals = HingeDuals(np.zeros(n), np.zeros(n))
        duals.up[up], duals.down[down] = np.split(hinges.dual_value / objective_scale, [len(up)])
        intercept = float(b.value) if problem.fit_intercept else 0.0
        multipliers = np.minimum(multipliers, penalty)
        rough = certify(problem, np.asarray(w.value), intercept, multipliers, penalty, duals)
        return polish(problem, rough, duals, penalty)

    def _run(self, solver: str, cp: Any, program: Any, tol: float) -> None:
        options = {**self.options, "solver": solver}
        installed = cp.installed_solvers()
        name = solver.upper()
        if name not in installed:
            cure = f'pip install "cvxpy[{name}]", or ' if name in cp.settings.SOLVERS else ""
            raise SolverError(
                f"cvxpy finds no solver {solver!r}; installed are {', '.join(installed)}. Try "
                f"{cure}one of these with solver_options={{'solver': ...}}."
            )
        accuracy = ACCURACY_OPTIONS.get(name, lambda tol: {})(tol)
        try:
            with warnings.catch_warnings():
                # "Solution may be inaccurate": the certified gap says how inaccurate.
                warnings.simplefilter("ignore", UserWarning)
                program.solve(**{**accuracy, **options})
        except (
            cp.error.SolverError,
            cp.error.DCPError,
            cp.error.DGPError,
            TypeError,
            ValueError,
        ) as error:
            raise SolverError(f"cvxpy's solver {solver} failed: {error}") from error
        if program.variables()[0].value is None:
            infeasible = program.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE)
            raise (InfeasibleProblemError if infeasible else SolverError)(
                f"cvxpy's solver {solver} ended with status {program.status!r} and no solution."
            )
