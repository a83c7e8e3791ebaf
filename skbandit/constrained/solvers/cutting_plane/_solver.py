"""Algorithm 2 of Goh et al. (2016): cutting planes over the multipliers, one SVM per cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skbandit.constrained.solvers._interface import Solution, SolverError, certify
from skbandit.constrained.solvers._parameters import ParametersMixin
from skbandit.constrained.solvers._polish import polish
from skbandit.constrained.solvers._problem import ConvexProblem
from skbandit.constrained.solvers.cutting_plane._cut_model import Cut, Model, centre, maximise, mean
from skbandit.constrained.solvers.cutting_plane._weighted_svm import (
    Design,
    SVMSolution,
    WeightedSVM,
    solve_svm,
)

FIRST_UPPER, RAISE_UPPER = 1.0, 4.0
"""Initial upper bound of V = [0, upper]^m, and the factor by which it grows if it is too small.

It starts at twice the largest multiplier of the warm start if that is more.
"""

ROUNDING = 1e-13
"""Smallest meaningful gap, as a share of the objective's constant; below it is rounding."""


@dataclass(frozen=True)
class SVMOptimizer:
    """Minimises Psi(w, b, v) over (w, b) for given multipliers v.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    design : Design
        The X of the problem.
    """

    problem: ConvexProblem
    design: Design

    def svm(self, v: np.ndarray) -> WeightedSVM:
        """The SVM at multipliers v: Psi without its constant."""
        p, q = self.problem.dual_upper_bounds(v)
        return WeightedSVM(self.design, p, q, self.problem.alpha, self.problem.fit_intercept)

    def __call__(
        self, v: np.ndarray, h: float, epsilon: float, warm: SVMSolution | None, max_epochs: float
    ) -> tuple[SVMSolution, float]:
        """Solve to a gap of `epsilon`, given that the minimum of Psi is at most `h`.

        Also return l_t, a lower bound on that minimum.
        """
        constant = -float(np.append(1.0, v) @ self.problem.gamma)  # Psi minus the SVM
        ceiling = h - constant
        found = solve_svm(self.svm(v), epsilon, warm, ceiling=ceiling, max_epochs=max_epochs)
        return found, found.dual + constant


@dataclass
class CuttingPlaneSolver(ParametersMixin):
    """Algorithm 2: cutting planes over the multipliers, one weighted SVM per cut.

    At fixed multipliers v the Lagrangian Psi(w, b, v) is an SVM with two costs per row, which
    dual coordinate ascent solves until its duality gap is epsilon_t. Psi at its solution is
    linear in v: a cut above the dual function min over (w, b) of Psi, however rough the
    solution. The SVM's dual value is a lower bound on the dual function's maximum.

    Parameters
    ----------
    share : float
        epsilon_t, as a share of the remaining gap.
    max_cuts : int
        Maximum number of cuts, hence of SVMs.
    max_epochs : float
        Maximum number of passes over the rows, summed over all SVMs.
    rtol : float
        Smallest gap to aim at, as a share of the objective at w = 0, b = 0: dual ascent is
        slow. If `tol` is smaller, solving the optimality conditions may still attain it.
    largest_multiplier : float
        Hard constraints that would need a larger multiplier count as infeasible.

    Notes
    -----
    Three things are not in the paper. V is a box that grows while it is too small. The first
    cut comes from the warm start. The result is not a (w_s, b_s), which may well violate the
    constraints, but their convex combination by the dual solution of max h_t: by convexity it
    satisfies the constraints, and its objective is at most U_t.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.solvers import ConvexProblem, CuttingPlaneSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = ConvexProblem(X, P, Q, gamma=np.zeros(1), alpha=0.1)
    >>> CuttingPlaneSolver().solve(problem, np.inf, 1e-8).coef.round(6)
    array([0.5])
    """

    share: float = 0.1
    max_cuts: int = 200
    max_epochs: float = 3_000
    rtol: float = 1e-8
    largest_multiplier: float = 1e4

    name: ClassVar[str] = "cutting_plane"
    # Rough solutions, means of cuts, lead MM to other local optima, worse by up to 34 %; exact
    # ones take about as long in all, as fewer steps are needed.
    rough: ClassVar[float] = 1e-6
    exact: ClassVar[float] = 1e-6

    def __post_init__(self) -> None:
        for option, valid, wanted in [
            ("share", 0 < self.share < 1, "between 0 and 1"),
            ("max_cuts", self.max_cuts >= 1, "at least 1"),
            ("max_epochs", self.max_epochs > 0, "positive"),
            ("rtol", 0 < self.rtol < 1, "between 0 and 1"),
            ("largest_multiplier", self.largest_multiplier > 0, "positive"),
        ]:
            if not valid:
                raise ValueError(f"{option} must be {wanted}, got {getattr(self, option)!r}.")

    def solve(
        self, problem: ConvexProblem, penalty: float, tol: float, warm: Solution | None = None
    ) -> Solution:
        """Add cuts until U_t - L_t <= tol or the budget is spent.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Penalty per unit of constraint violation; infinite for hard constraints.
        tol : float
            Duality gap to reach.
        warm : Solution, optional
            Supplies the first multipliers and the first cut. The result is never worse.

        Returns
        -------
        Solution
            With its true gap, larger than `tol` if the budget did not suffice.
        """
        aim, budget = self._aim(problem, tol), self.max_epochs
        limit = penalty if np.isfinite(penalty) else self.largest_multiplier
        svm_optimizer = SVMOptimizer(problem, Design.of(problem.X))

        # Line 1 (numbers are the lines of Algorithm 2): a first cut and a lower bound.
        v, warm_svm, first = _start(problem, warm, limit)
        svm, L = svm_optimizer(v, np.inf, np.inf, warm_svm, budget)
        best, cuts, h = (v, svm), [first], Model.of([first])
        upper = min(limit, max(FIRST_UPPER, 2 * v.max(initial=0.0)))  # V = [0, upper]^m
        epsilon = max(self.share * (svm.primal - svm.dual), aim) if len(v) else aim

        for _ in range(self.max_cuts):
            svm, bound = svm_optimizer(v, h(v), epsilon, svm, budget)  # 9
            budget -= svm.epochs
            cuts.append(Cut.at(problem, svm.coef, svm.intercept, svm.scores))  # 10
            if bound > L:
                L, best = bound, (v, svm)
            h = Model.of(cuts)  # 3
            U = maximise(h, upper)  # 4
            point = mean(problem, cuts, U.mixture)
            gap = point.value(upper) - L
            if point.value(penalty) - L <= aim or budget <= 0:  # 5 to 7
                break
            # If some optimal v had all elements below upper / 2, then
            # gap >= (upper - upper / 2) excess; otherwise V is too small.
            if gap < 0.5 * upper * point.excess or gap <= aim:
                if upper < limit:
                    upper = min(limit, RAISE_UPPER * upper)
                    U = maximise(h, upper)
                elif np.isinf(penalty):
                    raise _infeasible(point, upper)
            v, epsilon = centre(h, L, upper, U), self.share * (U.value - L)  # 8
        return _certified(problem, point, *best, penalty, tol)

    def _aim(self, problem: ConvexProblem, tol: float) -> float:
        """The gap to stop at: `tol`, unless it is out of reach of dual ascent or rounding."""
        objective_scale = 0.5 * float(problem.P[:1].sum() + problem.Q[:1].sum()) or 1.0
        return max(tol, self.rtol * objective_scale, ROUNDING * abs(float(problem.gamma[0])))


def _start(
    problem: ConvexProblem, warm: Solution | None, limit: float
) -> tuple[np.ndarray, SVMSolution | None, Cut]:
    """First multipliers, SVM solution and cut: those of the warm start, or of w = 0, b = 0."""
    (n, d), m = problem.X.shape, len(problem.gamma) - 1
    v, warm_svm = np.zeros(m), None
    if warm is None:
        return v, warm_svm, Cut.at(problem, np.zeros(d), 0.0, np.zeros(n))
    if len(warm.multipliers) == m:
        v = np.minimum(warm.multipliers, limit)
    if isinstance(warm.state, SVMSolution) and len(warm.state.theta) == n:
        warm_svm = warm.state
    b = warm.intercept if problem.fit_intercept else 0.0
    return v, warm_svm, Cut.at(problem, warm.coef, b, problem.X @ warm.coef + b)


def _infeasible(point: Cut, penalty: float) -> SolverError:
    worst = int(np.argmax(point.g))
    return SolverError(
        f"The constraints seem infeasible: even at a penalty of {penalty:g} per unit it is "
        f"cheaper to violate constraint {worst} by {point.g[worst]:.3g} than to meet it. Relax "
        "the constraints."
    )


def _certified(
    problem: ConvexProblem,
    point: Cut,
    v: np.ndarray,
    svm: SVMSolution,
    penalty: float,
    tol: float,
) -> Solution:
    """Certify (w, b) by the lower bound at v, and polish it if its gap exceeds `tol`."""
    if np.isinf(point.value(penalty)):
        raise SolverError(
            f"The budget is spent, and the best point still violates a constraint by "
            f"{point.g.max():.3g}: raise max_cuts or max_epochs, or relax the constraints, which "
            "may be infeasible."
        )
    duals = svm.svm.hinge_duals(svm.theta)
    found = certify(problem, point.coef, point.intercept, v, penalty, duals)
    if found.gap > tol:
        found = polish(problem, found, duals, penalty)
    return replace(found, state=svm)
