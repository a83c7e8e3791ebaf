"""Algorithm 2 of Goh et al. (2016): cutting planes on the dual over the multipliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, issparse

from skbandit.constrained.paper._interface import (
    ConvexProblem,
    HingeDuals,
    ParametersMixin,
    Solution,
    SolverError,
    certify,
    hinge,
)
from skbandit.constrained.paper._polish import polish
from skbandit.utils._compiled import compiled

__all__ = ["CuttingPlaneSolver"]

INTERCEPT_PACE = 0.1
"""Square of a constant feature that would move as fast as b, as a share of the mean |x|^2."""

MAX_SWEEPS = 50
"""Maximum sweeps between gap checks, when few rows remain active."""

MARGIN = 0.1
"""Distance from a kink up to which a resting row is active again.

A share of the largest change of a score since the last gap check; rows further away are
skipped.
"""

CUT_MAX_EXCESS = 1e-8
"""Largest violation of a hard constraint by a cut, in units of its row, that counts as met.

Tighter than the `MAX_EXCESS` that solutions are held to: the mean of the cuts satisfies the
constraints up to the tolerance of the linear program, 1e-10. Beyond it the value is infinite.
"""

MAX_DECREMENT, MAX_CENTER_STEPS = 0.1, 200
"""Newton decrement below which a point counts as the analytic center; maximum Newton steps."""

FIRST_UPPER, RAISE_UPPER = 1.0, 4.0
"""Initial upper bound of V = [0, upper]^m, and the factor by which it grows if it is too small.

It starts at twice the largest multiplier of the warm start if that is more.
"""

GAP_ROUNDING = 1e-13
"""Smallest meaningful gap, as a share of the objective's constant; below it is rounding."""


@compiled
def ascend(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    curvature: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    alpha: float,
    pace: float,
    theta: np.ndarray,
    w: np.ndarray,
    b: float,
    rows: np.ndarray,
    n_sweeps: int,
) -> None:
    """Maximize the dual in theta_j for each j of `rows` in turn, in the order given.

    Updates `theta` and w = X' theta / alpha in place; b moves by `pace` per unit of theta.
    As a function of theta_j the dual is min(q_j - theta_j/2, p_j + theta_j/2) minus a parabola;
    its maximizer is a median.
    """
    for _ in range(n_sweeps):
        for j in rows:
            f = b
            for e in range(indptr[j], indptr[j + 1]):
                f += data[e] * w[indices[e]]
            kink = q[j] - p[j]
            rising = theta[j] + (0.5 - f) / curvature[j]  # best where theta_j < kink
            falling = theta[j] - (0.5 + f) / curvature[j]  # best where theta_j > kink
            best = min(max(min(rising, kink), falling, -p[j]), q[j])
            step = best - theta[j]
            if step != 0.0:
                theta[j] = best
                b += pace * step
                for e in range(indptr[j], indptr[j + 1]):
                    w[indices[e]] += step / alpha * data[e]


def sparse_rows(X: Any) -> csr_array:
    """Return X in CSR; a dense one becomes a full array over the same entries, not a copy."""
    if issparse(X):
        return csr_array(X)
    (n, d), entries = X.shape, np.ascontiguousarray(X, dtype=np.float64).ravel()
    ends = np.arange(n + 1, dtype=np.int64) * d
    return csr_array((entries, np.tile(np.arange(d), n), ends), shape=(n, d))


@dataclass(frozen=True)
class WeightedSVM:
    """min over (w, b) of sum_j p_j h(f_j) + q_j h(-f_j) + alpha/2 |w|^2, with f = X w + b.

    h(z) = max(0, 1/2 + z). The dual has one variable per row, theta_j in [-p_j, q_j], which
    pulls the row's score up; w = X' theta / alpha (in the usual SVM dual,
    theta = beta - alpha):

        max  sum_j min(q_j - theta_j/2, p_j + theta_j/2) - |X' theta|^2 / (2 alpha)

    with sum_j theta_j = 0 if b is free; otherwise b = 0.

    Parameters
    ----------
    X : csr_array of shape (n, d)
        The rows.
    p, q : ndarray of shape (n,)
        Nonnegative costs of a positive and of a negative prediction.
    alpha : float
        The paper's lambda.
    fit_intercept : bool
        Whether b, which is never penalized, is free or 0.
    """

    X: csr_array
    p: np.ndarray
    q: np.ndarray
    alpha: float
    fit_intercept: bool = True

    def primal(self, coef: np.ndarray, f: np.ndarray) -> float:
        """Return the objective at w, whose scores are f."""
        costs = self.p @ hinge(f) + self.q @ hinge(-f)
        return float(costs + 0.5 * self.alpha * coef @ coef)

    def dual(self, theta: np.ndarray) -> float:
        """Return the dual objective at a feasible theta."""
        alpha_w = self.X.T @ theta
        gain = np.minimum(self.q - theta / 2, self.p + theta / 2).sum()
        return float(gain - alpha_w @ alpha_w / (2 * self.alpha))

    def feasible(self, theta: np.ndarray) -> np.ndarray:
        """Clip theta to [-p, q] and, if b is free, shrink the heavier side until it sums to 0."""
        theta = np.clip(theta, -self.p, self.q)
        if not self.fit_intercept:
            return theta
        to_positive, to_negative = theta[theta > 0].sum(), -theta[theta < 0].sum()
        less = min(to_positive, to_negative)
        scale = np.where(theta > 0, less / (to_positive or 1.0), less / (to_negative or 1.0))
        return theta * scale

    def scaled(self, theta: np.ndarray, other: WeightedSVM) -> np.ndarray:
        """Rescale theta from the bounds [-p, q] of another SVM to the bounds of this one."""
        up, down = np.maximum(theta, 0.0), np.maximum(-theta, 0.0)
        up = np.divide(up, other.q, out=np.zeros_like(up), where=other.q > 0)
        down = np.divide(down, other.p, out=np.zeros_like(down), where=other.p > 0)
        return up * self.q - down * self.p

    def at_rest(self, theta: np.ndarray, f: np.ndarray, margin: float) -> np.ndarray:
        """Mark rows whose theta_j stays at its corner while f_j moves by at most `margin`."""
        kink = self.q - self.p
        lowest = np.where(theta == self.q, -np.inf, np.where(theta == kink, -0.5, 0.5))
        highest = np.where(theta == -self.p, np.inf, np.where(theta == kink, 0.5, -0.5))
        return (f > lowest + margin) & (f < highest - margin)


@dataclass(frozen=True)
class SVMSolution:
    """A solution of the weighted SVM with its certificate.

    Parameters
    ----------
    svm : WeightedSVM
        The problem solved.
    coef : ndarray of shape (d,)
        w.
    intercept : float
        b.
    scores : ndarray of shape (n,)
        f = X w + b.
    theta : ndarray of shape (n,)
        Feasible dual variables.
    primal, dual : float
        Primal and dual objective: upper and lower bound on the optimal value.
    epochs : float
        Number of row visits, divided by the number of rows that cost something.
    """

    svm: WeightedSVM
    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    theta: np.ndarray
    primal: float
    dual: float
    epochs: float


def solve_svm(
    svm: WeightedSVM,
    tol: float,
    warm: SVMSolution | None = None,
    *,
    ceiling: float = np.inf,
    max_epochs: float = 10_000,
) -> SVMSolution:
    """Solve by dual coordinate ascent until the duality gap is at most `tol`.

    A free b breaks coordinate ascent, as sum_j theta_j = 0 holds every theta_j where it is.
    So b is found by proximal-point steps: adding mu/2 (b - b')^2 to the objective removes the
    constraint, b = b' + sum_j theta_j / mu, and b' is moved to b at every gap check.
    Convergence is slow if alpha is tiny and many more rows than features are on kinks.

    Parameters
    ----------
    svm : WeightedSVM
        The problem.
    tol : float
        Duality gap to reach.
    warm : SVMSolution, optional
        Solution of an SVM with other costs, to start from. Its theta is rescaled with the
        bounds, not clipped: most rows are at a bound and stay there.
    ceiling : float
        Known upper bound on the optimum: a dual value within `tol` of it suffices.
    max_epochs : float
        Number of epochs after which to stop with the gap reached.

    Returns
    -------
    SVMSolution
        The best primal and the best dual point found.

    Examples
    --------
    Two rows, one per class: max(0, 1/2 - w) + alpha/2 w^2 is lowest at w = 1/2.

    >>> import numpy as np
    >>> from skbandit.constrained.paper._cutting_plane import WeightedSVM, solve_svm, sparse_rows
    >>> X, p, q = np.array([[1.0], [-1.0]]), np.array([0.0, 0.5]), np.array([0.5, 0.0])
    >>> solution = solve_svm(WeightedSVM(sparse_rows(X), p, q, alpha=0.1), tol=1e-10)
    >>> solution.coef.round(6), round(solution.primal, 6), round(solution.dual, 6)
    (array([0.5]), 0.0125, 0.0125)
    """
    X, alpha = svm.X, svm.alpha
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    costly = np.flatnonzero(svm.p + svm.q > 0)
    # the movement of b per unit of theta, 1 / mu
    pace = INTERCEPT_PACE / alpha * (float(squares.mean()) or 1.0) if svm.fit_intercept else 0.0
    curvature = np.maximum(squares / alpha + pace, np.finfo(float).tiny)
    rng = np.random.default_rng(0)

    theta, b = np.zeros(len(svm.p)), 0.0
    if warm is not None:
        theta, b = svm.feasible(svm.scaled(warm.theta, warm.svm)), warm.intercept
    w, b = X.T @ theta / alpha, b if svm.fit_intercept else 0.0
    f = X @ w + b
    best = SVMSolution(svm, w, b, f, theta, svm.primal(w, f), svm.dual(theta), epochs=0.0)
    resting = svm.at_rest(theta, f, 0.0)
    while min(best.primal, ceiling) - best.dual > tol and best.epochs < max_epochs:
        rows = costly[~resting[costly]]
        rows = rows if len(rows) else costly
        n_sweeps = min(len(costly) // len(rows), MAX_SWEEPS)
        theta = theta.copy()
        data = (X.indptr, X.indices, X.data, curvature, svm.p, svm.q, alpha, pace)
        order = rng.permutation(rows)  # converges far faster than any fixed order
        ascend(*data, theta, w.copy(), b + pace * theta.sum(), order, n_sweeps)
        # Recomputed from theta, free of the rounding errors accumulated in the sweeps.
        w, b = X.T @ theta / alpha, b + pace * theta.sum()
        before, f = f, X @ w + b
        resting = svm.at_rest(theta, f, MARGIN * np.abs(f - before).max())
        best = _better_points(best, w, b, f, theta)
        best = replace(best, epochs=best.epochs + n_sweeps * len(rows) / len(costly))
    return best


def _better_points(
    best: SVMSolution, w: np.ndarray, b: float, f: np.ndarray, theta: np.ndarray
) -> SVMSolution:
    """Keep the better primal and the better dual point; they need not belong together."""
    primal = best.svm.primal(w, f)
    if primal < best.primal:
        best = replace(best, coef=w, intercept=b, scores=f, primal=primal)
    theta = best.svm.feasible(theta)
    dual = best.svm.dual(theta)
    return replace(best, theta=theta, dual=dual) if dual > best.dual else best


@dataclass(frozen=True)
class Cut:
    """A cut, Psi(w, b, v) as a function of v: linear, and nowhere below the dual function.

    With value u_t and gradient g_t at v_t, it is u_t + <g_t, v - v_t>.

    Parameters
    ----------
    coef, intercept : ndarray of shape (d,), float
        w and b.
    offset : float
        Value at v = 0: the regularized objective at (w, b).
    g : ndarray of shape (m,)
        Gradient: the violation of each constraint by (w, b).
    """

    coef: np.ndarray
    intercept: float
    offset: float
    g: np.ndarray

    @classmethod
    def at(cls, problem: ConvexProblem, coef: np.ndarray, intercept: float, f: np.ndarray) -> Cut:
        """Make the cut of (w, b), whose scores are f."""
        rows = problem.rows(f)
        objective = float(rows[0] + 0.5 * problem.alpha * coef @ coef)
        return cls(coef, intercept, objective, rows[1:])

    @property
    def excess(self) -> float:
        """Sum of the violations."""
        return float(np.maximum(self.g, 0.0).sum())

    def value(self, penalty: float) -> float:
        """Return the objective plus penalized violations: the largest value over the box of v."""
        if np.isinf(penalty):
            return np.inf if self.g.max(initial=0.0) > CUT_MAX_EXCESS else self.offset
        return self.offset + penalty * self.excess


@dataclass(frozen=True)
class CutModel:
    """The model h_t(v), the lowest cut at v: concave, and above the dual function.

    Parameters
    ----------
    offsets : ndarray of shape (t,)
        Values of the cuts at v = 0.
    slopes : ndarray of shape (t, m)
        Gradients of the cuts.
    """

    offsets: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> CutModel:
        """Build the model from its cuts."""
        return cls(np.array([cut.offset for cut in cuts]), np.array([cut.g for cut in cuts]))

    def __call__(self, v: np.ndarray) -> float:
        """Return the value at v."""
        return float((self.offsets + self.slopes @ v).min())


@dataclass(frozen=True)
class Maximum:
    """The largest value of a model over the box V = [0, upper]^m.

    Parameters
    ----------
    value : float
        U_t.
    v : ndarray of shape (m,)
        The maximizer.
    mixture : ndarray of shape (t,)
        Convex combination of the cuts that is at most U_t on all of V: the dual solution.
    """

    value: float
    v: np.ndarray
    mixture: np.ndarray


def maximize(h: CutModel, upper: float) -> Maximum:
    """Maximize h_t over the box, through its dual: the mixture of cuts with the lowest maximum.

    min over mu, xi >= 0 with sum mu = 1 of <mu, offsets> + upper sum xi, where xi >= mu' slopes.
    """
    T, m = h.slopes.shape
    least = h.offsets.min()  # subtracted: costs must be small beside the solver's tolerances
    result = linprog(
        np.concatenate([h.offsets - least, np.full(m, upper)]),
        A_ub=np.hstack([h.slopes.T, -np.eye(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(T), np.zeros(m))[None],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise SolverError(f"The linear program over {T} cuts failed: {result.message}")
    mixture = np.maximum(result.x[:T], 0.0)
    v = np.clip(-result.ineqlin.marginals, 0.0, upper)
    return Maximum(float(result.fun + least), v, mixture / mixture.sum())


def mean_cut(problem: ConvexProblem, cuts: Sequence[Cut], mixture: np.ndarray) -> Cut:
    """Make the cut of the mean (w, b): by convexity nowhere above the mixture of the cuts."""
    coef = sum((mu * cut.coef for mu, cut in zip(mixture, cuts, strict=True) if mu), 0.0)
    b = sum(mu * cut.intercept for mu, cut in zip(mixture, cuts, strict=True))
    return Cut.at(problem, np.asarray(coef), b, problem.X @ coef + b)


def analytic_center(h: CutModel, lower: float, upper: float, top: Maximum) -> np.ndarray:
    """Choose the next v (CutChooser): the center of the part of V that the cuts have left.

    The analytic center of {(v, z): L_t <= z <= h_t(v), v in [0, upper]^m} maximizes
    sum_s log(h_s(v) - z) + t log(z - L_t) + sum_k log v_k + log(upper - v_k),
    where the floor z >= L_t counts once per cut (Goffin, Haurie & Vial 1992). The center is
    far from all cuts, so the next one removes a large part whichever way it points. Found by
    Newton's method, whose steps of length 1 / (1 + decrement) never leave the set.
    """
    T, m = h.slopes.shape
    if m == 0 or upper == 0:
        return top.v  # nothing to choose
    height = top.value - lower  # z is measured from L_t in units of the height
    slopes = h.slopes / height
    rows = np.block([[slopes, -np.ones((T, 1))], [np.eye(m + 1)], [-np.eye(m), np.zeros((m, 1))]])
    offsets = np.concatenate([(h.offsets - lower) / height, np.zeros(m + 1), np.full(m, upper)])
    weights = np.ones(len(offsets))
    weights[T + m] = T

    # start: from the maximum, where h_t is 1, inwards until h_t may be 1/2, at most half way
    inwards = upper / 2 - top.v
    v = top.v + min(0.5, 0.5 / max(-(slopes @ inwards).min(), 1.0)) * inwards
    z = ((h.offsets - lower) / height + slopes @ v).min() / 2
    y = np.append(v, z)
    for _ in range(MAX_CENTER_STEPS):
        slack = offsets + rows @ y
        gradient = rows.T @ (weights / slack)
        hessian = (rows.T * (weights / slack**2)) @ rows
        scale = 1 / np.sqrt(np.diag(hessian))
        step = scale * np.linalg.solve(hessian * scale * scale[:, None], scale * gradient)
        decrement = np.sqrt(max(gradient @ step, 0.0))
        moved = y + step / (1 + decrement)
        inside = (offsets + rows @ moved > 0).all()  # unless rounding interferes
        if decrement <= MAX_DECREMENT or not inside:
            break
        y = moved
    return np.clip(y[:m], 0.0, upper)


def solve_at(
    problem: ConvexProblem,
    X: csr_array,
    v: np.ndarray,
    h: float,
    epsilon: float,
    warm: SVMSolution | None,
    max_epochs: float,
) -> tuple[SVMSolution, float]:
    """Minimize Psi(w, b, v) over (w, b) to a gap of `epsilon`, given that it is at most `h`.

    Also return l_t, a lower bound on that minimum.
    """
    p, q = problem.dual_upper_bounds(v)
    svm = WeightedSVM(X, p, q, problem.alpha, problem.fit_intercept)
    constant = -float(np.append(1.0, v) @ problem.gamma)  # Psi minus the SVM
    solution = solve_svm(svm, epsilon, warm, ceiling=h - constant, max_epochs=max_epochs)
    return solution, solution.dual + constant


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
    # Rough solutions, means of cuts, lead MM to other local optima, worse by up to 34%; exact
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
        # tol, unless dual ascent or rounding cannot reach it
        scale = 0.5 * problem.objective_scale or 1.0
        aim = max(tol, self.rtol * scale, GAP_ROUNDING * abs(float(problem.gamma[0])))
        budget = self.max_epochs
        limit = penalty if np.isfinite(penalty) else self.largest_multiplier
        psi = problem, sparse_rows(problem.X)

        # Line 1 (numbers are the lines of Algorithm 2): a first cut and a lower bound.
        v, warm_svm, first = _first_cut(problem, warm, limit)
        svm, L = solve_at(*psi, v, np.inf, np.inf, warm_svm, budget)
        best, cuts, h = (v, svm), [first], CutModel.of([first])
        upper = min(limit, max(FIRST_UPPER, 2 * v.max(initial=0.0)))  # V = [0, upper]^m
        epsilon = max(self.share * (svm.primal - svm.dual), aim) if len(v) else aim

        for _ in range(self.max_cuts):
            svm, bound = solve_at(*psi, v, h(v), epsilon, svm, budget)  # 9
            budget -= svm.epochs
            cuts.append(Cut.at(problem, svm.coef, svm.intercept, svm.scores))  # 10
            if bound > L:
                L, best = bound, (v, svm)
            h = CutModel.of(cuts)  # 3
            U = maximize(h, upper)  # 4
            point = mean_cut(problem, cuts, U.mixture)
            gap = point.value(upper) - L
            if point.value(penalty) - L <= aim or budget <= 0:  # 5 to 7
                break
            # If some optimal v had all elements below upper / 2, then
            # gap >= (upper - upper / 2) excess; otherwise V is too small.
            if gap < 0.5 * upper * point.excess or gap <= aim:
                if upper < limit:
                    upper = min(limit, RAISE_UPPER * upper)
                    U = maximize(h, upper)
                elif np.isinf(penalty):
                    worst = int(np.argmax(point.g))
                    raise SolverError(
                        f"The constraints seem infeasible: even at a penalty of {upper:g} per unit "
                        f"it is cheaper to violate constraint {worst} by {point.g[worst]:.3g} than "
                        "to meet it. Relax the constraints."
                    )
            v, epsilon = analytic_center(h, L, upper, U), self.share * (U.value - L)  # 8
        return _certified_point(problem, point, *best, penalty, tol)


def _first_cut(
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


def _certified_point(
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
    duals = HingeDuals.of(svm.theta, svm.svm.p, svm.svm.q)
    solution = certify(problem, point.coef, point.intercept, v, penalty, duals)
    if solution.gap > tol:
        solution = polish(problem, solution, duals, penalty)
    return replace(solution, state=svm)
