"""Algorithm 2 of Goh et al. (2016): cutting planes over the multipliers, SVMs inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skbandit.constrained.solvers._interface import Solution, SolverError, certify
from skbandit.constrained.solvers._polish import polish
from skbandit.constrained.solvers.cutting_plane._cut_model import Cut, Model, centre, maximise, mean
from skbandit.constrained.solvers.cutting_plane._weighted_svm import (
    Design,
    SVMSolution,
    WeightedSVM,
    solve_svm,
)
from skbandit.constrained.training._ramp import ConvexProblem

FIRST_CAP, RAISE_CAP = 1.0, 4.0
"""V = [0, cap]^m at first, or twice the multipliers of the warm start; times 4 if too small."""

ROUNDING = 1e-13
"""Gaps below this share of the objective are not told from rounding."""


@dataclass(frozen=True)
class SVMOptimizer:
    """Minimise Psi(w, b, v) over (w, b), for any multipliers v.

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3.
    design : Design
        Its X.
    """

    problem: ConvexProblem
    design: Design

    def svm(self, v: np.ndarray) -> WeightedSVM:
        """The SVM that is left: Psi without its constant."""
        p, q = self.problem.boxes(v)
        return WeightedSVM(self.design, p, q, self.problem.alpha, self.problem.fit_intercept)

    def __call__(
        self, v: np.ndarray, h: float, epsilon: float, near: SVMSolution | None, max_epochs: float
    ) -> tuple[SVMSolution, float]:
        """Solve to the accuracy `epsilon`, given that the minimum of Psi is at most `h`.

        Also returns l_t, a lower bound on that minimum.
        """
        constant = -float(np.append(1.0, v) @ self.problem.gamma)  # of Psi beside the SVM
        ceiling = h - constant
        found = solve_svm(self.svm(v), epsilon, near, ceiling=ceiling, max_epochs=max_epochs)
        return found, found.dual + constant


@dataclass(frozen=True)
class CuttingPlaneSolver:
    """Algorithm 2: cutting planes over the multipliers, and an SVM for each choice of them.

    At fixed multipliers v the Lagrangian Psi(w, b, v) is an SVM with two costs a row, which
    dual coordinate ascent solves until its duality gap is epsilon_t. Psi at its solution is
    linear in v: a cut above the dual function min over (w, b) of Psi, however rough the
    solution. The SVM's dual value is a lower bound on the dual function's maximum.

    Parameters
    ----------
    share : float
        epsilon_t, as a share of the gap that is left.
    max_cuts : int
        SVMs solved at most.
    max_epochs : float
        Visits of every row at most, in all SVMs together.
    rtol : float
        Smallest gap tried for, as a share of the objective at w = 0, b = 0: dual ascent is
        slow. If less is asked for, solving the optimality conditions may still attain it.
    largest_multiplier : float
        Hard constraints that would need a larger one count as infeasible.
    name : str
        What `solver_` says.

    Notes
    -----
    Three things are not in the paper. V is a box that grows while it is too small. The first
    cut comes from the warm start. And what is returned is not a (w_s, b_s), which may well
    violate the constraints, but their convex combination by the dual solution of max h_t: by
    convexity it holds the constraints, and its objective is at most U_t.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from skbandit.constrained.training._ramp import majorise
    >>> from skbandit.constrained.solvers.cutting_plane._solver import CuttingPlaneSolver
    >>> X = np.array([[1.0], [-1.0]])
    >>> P, Q = csr_array([[0.0, 0.5]]), csr_array([[0.5, 0.0]])
    >>> problem = majorise(X, P, Q, gamma=np.zeros(1), alpha=0.1, f=np.zeros(2))
    >>> CuttingPlaneSolver().solve(problem, np.inf, 1e-8).coef.round(6)
    array([0.5])
    """

    share: float = 0.1
    max_cuts: int = 200
    max_epochs: float = 3_000
    rtol: float = 1e-8
    largest_multiplier: float = 1e4
    name: str = "cutting_plane"
    rough: ClassVar[float] = 1e-3
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
        """Add cuts until U_t - L_t <= tol, or the budget is spent.

        Parameters
        ----------
        problem : ConvexProblem
            Problem 3.
        penalty : float
            Price of a unit of constraint violation; infinite for hard constraints.
        tol : float
            The gap aimed at.
        warm : Solution, optional
            Its multipliers come first. The result is never worse than it is.

        Returns
        -------
        Solution
            With its true gap, which is larger than `tol` if the budget did not suffice.
        """
        aim, budget = self._aim(problem, tol), self.max_epochs
        limit = penalty if np.isfinite(penalty) else self.largest_multiplier
        svm_optimizer = SVMOptimizer(problem, Design.of(problem.X))

        # Line 1 (numbers are the lines of Algorithm 2): a cut and a bound known beforehand.
        v, near, first = _start(problem, warm, limit)
        svm, L = svm_optimizer(v, np.inf, np.inf, near, budget)
        best, cuts, h = (v, svm), [first], Model.of([first])
        cap = min(limit, max(FIRST_CAP, 2 * v.max(initial=0.0)))  # V = [0, cap]^m
        epsilon = max(self.share * (svm.primal - svm.dual), aim) if len(v) else aim

        for _ in range(self.max_cuts):
            svm, bound = svm_optimizer(v, h(v), epsilon, svm, budget)  # 9
            budget -= svm.epochs
            cuts.append(Cut.at(problem, svm.coef, svm.intercept, svm.scores))  # 10
            if bound > L:
                L, best = bound, (v, svm)
            h = Model.of(cuts)  # 3
            U = maximise(h, cap)  # 4
            point = mean(problem, cuts, U.mixture)
            gap = point.value(cap) - L
            if point.value(penalty) - L <= aim or budget <= 0:  # 5 to 7
                break
            # Some optimal v with all its elements below cap / 2 would mean
            # gap >= (cap - cap / 2) excess: without, V is too small.
            if gap < 0.5 * cap * point.excess or gap <= aim:
                if cap < limit:
                    cap = min(limit, RAISE_CAP * cap)
                    U = maximise(h, cap)
                elif np.isinf(penalty):
                    raise _infeasible(point, cap)
            v, epsilon = centre(h, L, cap, U), self.share * (U.value - L)  # 8
        return _certified(problem, point, *best, penalty, tol)

    def _aim(self, problem: ConvexProblem, tol: float) -> float:
        """The gap to stop at: not one that is beyond dual ascent, or rounding."""
        unit = 0.5 * float(problem.P[:1].sum() + problem.Q[:1].sum()) or 1.0
        return max(tol, self.rtol * unit, ROUNDING * abs(float(problem.gamma[0])))


def _start(
    problem: ConvexProblem, warm: Solution | None, limit: float
) -> tuple[np.ndarray, SVMSolution | None, Cut]:
    """Multipliers, an SVM's solution and a cut to begin with: of the warm start, or zero."""
    (n, d), m = problem.X.shape, len(problem.gamma) - 1
    v, near = np.zeros(m), None
    if warm is None:
        return v, near, Cut.at(problem, np.zeros(d), 0.0, np.zeros(n))
    if len(warm.multipliers) == m:
        v = np.minimum(warm.multipliers, limit)
    if isinstance(warm.state, SVMSolution) and len(warm.state.theta) == n:
        near = warm.state
    b = warm.intercept if problem.fit_intercept else 0.0
    return v, near, Cut.at(problem, warm.coef, b, problem.X @ warm.coef + b)


def _infeasible(point: Cut, price: float) -> SolverError:
    worst = int(np.argmax(point.g))
    return SolverError(
        f"The constraints seem infeasible: at a price of {price:g} for a unit, constraint "
        f"{worst} is missed by {point.g[worst]:.3g}, and paying is cheaper than meeting it."
    )


def _certified(
    problem: ConvexProblem,
    point: Cut,
    v: np.ndarray,
    svm: SVMSolution,
    penalty: float,
    tol: float,
) -> Solution:
    """The solution at (w, b), with the lower bound at v; polished if `tol` is not met."""
    if np.isinf(point.value(penalty)):
        raise SolverError(
            f"The budget is spent, and the best point found still misses a constraint by "
            f"{point.g.max():.3g}: they may be infeasible; else raise max_cuts or max_epochs."
        )
    pull = svm.svm.pull(svm.theta)
    found = certify(problem, point.coef, point.intercept, v, penalty, pull)
    if found.gap > tol:
        found = polish(problem, found, pull, penalty)
    return replace(found, state=svm)
