"""Problem 3 with smoothed hinges: values, gradients, Hessian, and hinge duals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from skbandit.constrained.solvers._interface import HingeDuals
from skbandit.constrained.solvers._problem import ConvexProblem
from skbandit.constrained.solvers.smoothed_newton import _kernels as kernels


@dataclass(frozen=True)
class Smoothing:
    """One choice of smoothed hinges; see `_kernels`.

    Parameters
    ----------
    eps : float
        Width of the smoothing.
    centres : Centres
        Slopes at which it is exact.
    lift : float
        Added to every smoothed hinge: with eps/4 and centres 1/2 it majorises the true hinge.
    """

    eps: float
    centres: kernels.Centres
    lift: float


@dataclass(frozen=True)
class SmoothedProblem:
    """Rows of Problem 3 under a smoothing, as functions of u = (w, b).

    Parameters
    ----------
    problem : ConvexProblem
        Problem 3, with X in canonical form.
    """

    problem: ConvexProblem

    @cached_property
    def costs(self) -> kernels.CostEntries:
        """P and Q by the rows of X."""
        by_row = self.problem.by_row
        return kernels.CostEntries(by_row.indptr, by_row.indices, by_row.data)

    @cached_property
    def ridge(self) -> np.ndarray:
        """Diagonal of the regulariser's Hessian, shape (d + 1,)."""
        return np.append(np.full(self.problem.X.shape[1], self.problem.alpha), 0.0)

    @cached_property
    def metric(self) -> np.ndarray:
        """Diagonal of the Gram matrix if every row were curved: the unit of damping."""
        X, costs = self.problem.X, self.problem.P.sum(axis=0) + self.problem.Q.sum(axis=0)
        squares = X.multiply(X) if issparse(X) else X * X
        return np.append(costs @ squares, costs.sum())

    def scores(self, u: np.ndarray) -> np.ndarray:
        """[X 1] u."""
        return np.asarray(self.problem.X @ u[:-1]).ravel() + u[-1]

    def rows_along(
        self, z: np.ndarray, dz: np.ndarray, t: float, smoothing: Smoothing
    ) -> tuple[np.ndarray, np.ndarray]:
        """Smoothed rows at the scores z + t dz, and their slopes in t."""
        values, slopes = np.empty((2, len(self.problem.gamma)))
        eps, centres, lift = smoothing.eps, smoothing.centres, smoothing.lift
        kernels.rows_along(self.costs, centres, z, dz, t, eps, lift, values, slopes)
        return values - self.problem.gamma, slopes

    def shares(self, z: np.ndarray, smoothing: Smoothing) -> kernels.Centres:
        """Slopes of the smoothed hinges at scores z, in [0, 1]."""
        found = kernels.Centres(np.empty_like(z), np.empty_like(z))
        kernels.hinge_shares(smoothing.centres, z, smoothing.eps, found.up, found.down)
        return found

    def hinge_duals(self, z: np.ndarray, v: np.ndarray, smoothing: Smoothing) -> HingeDuals:
        """Duals of the hinges at scores z and multipliers v."""
        share = self.shares(z, smoothing)
        p, q = self.problem.dual_upper_bounds(v)
        return HingeDuals(share.up * p, share.down * q)


class Derivatives:
    """Gradients J of the rows and Hessian H of the Lagrangian, in buffers that steps reuse.

    J has shape (d + 1, 1 + m), with row 0 of the problem first; H has shape (d + 1, d + 1),
    lower half, without the regulariser. For a sparse X, J is updated by the rows of X whose
    slopes changed since the last call, which late steps have few of.
    """

    def __init__(self, smoothed: SmoothedProblem) -> None:
        n, d = smoothed.problem.X.shape
        n_rows, n_entries = len(smoothed.problem.gamma), len(smoothed.costs.cost)
        self._smoothed = smoothed
        self._slopes, self._slopes_in_J = np.zeros(n_entries), np.zeros(n_entries)
        self._curvature = np.zeros(n)
        self.J, self.H = np.zeros((d + 1, n_rows)), np.zeros((d + 1, d + 1))

    def update(self, z: np.ndarray, v: np.ndarray, smoothing: Smoothing, widen: float) -> None:
        """Fill J and H at scores z and multipliers v.

        Hinges count as curved by `widen` beyond the curved part of the smoothing.
        """
        problem, costs = self._smoothed.problem, self._smoothed.costs
        X, J, H = problem.X, self.J, self.H
        slopes, curvature = self._slopes, self._curvature
        weights, eps = np.append(1.0, v), smoothing.eps
        kernels.differentiate(costs, smoothing.centres, z, eps, weights, widen, slopes, curvature)
        H[:] = 0.0
        if issparse(X):
            entries = X.indptr, X.indices, X.data
            kernels.accumulate_sparse(*entries, costs, slopes, self._slopes_in_J, curvature, J, H)
        else:
            by_row = csr_array((slopes, costs.k, costs.indptr), shape=(len(X), J.shape[1])).T
            J[:-1], J[-1] = (by_row @ X).T, by_row.sum(axis=1)
            curved = np.flatnonzero(curvature)
            root = np.sqrt(curvature[curved])
            if len(curved):
                B = X[curved] * root[:, None]
                H[:-1, :-1] = dsyrk(1.0, B.T, lower=1)
                H[-1, :-1], H[-1, -1] = root @ B, root @ root
        if not problem.fit_intercept:
            J[-1], H[-1] = 0.0, 0.0
