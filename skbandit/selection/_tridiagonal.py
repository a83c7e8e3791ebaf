"""Symmetric matrices G = Q M Q' with M diagonal or tridiagonal, and solutions of (M + alpha) z = r.

Eigenvectors make M diagonal, and every penalty cheap. Householder's reflections make it tridiagonal
in a fifth of the time (Golub & Van Loan 2013, section 8.3); a solution then takes a few operations
per entry of r, as is known from smoothing splines (Gu, Bates, Chen & Wahba 1989).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg.lapack import dormqr, dpttrf, dpttrs, dsterf, dsytrd

TRIDIAGONAL_FROM = 200
"""Size p of matrices from which reflections are faster than eigenvectors, for up to p / 4
right-hand sides, each solved for some twenty penalties."""

BLOCK = 64
"""Reflections that LAPACK applies at a time."""


class Middle(Protocol):
    """The matrix M, with its eigenvalues d, ascending, and the cost of a solution.

    The cost is in multiplications of a matrix product, per entry of the right-hand side.
    """

    @property
    def d(self) -> np.ndarray: ...

    @property
    def cost(self) -> int: ...

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R, for R of shape (p, K)."""
        ...

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over columns r of R of r'(M + alpha)^-1 r and r'(M + alpha)^-2 r, each (L,)."""
        ...

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """b'(M + alpha)^-1 b for the rows b of B (n, p), shape (n, L)."""
        ...


@dataclass(frozen=True)
class Diagonal:
    """M = diag(d), d ascending and not negative."""

    d: np.ndarray
    cost: ClassVar[int] = 2

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R."""
        return right / (self.d + alpha)[:, None]

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of quadratic forms."""
        power = np.einsum("ij,ij->i", right, right)
        inverse = 1.0 / (self.d + alphas[:, None])
        return inverse @ power, inverse**2 @ power

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Quadratic forms of each row."""
        return B**2 @ (1.0 / (self.d[:, None] + alphas))


@dataclass(frozen=True)
class Tridiagonal:
    """M with a diagonal (p,), and what is beside it (p - 1,); positive semidefinite."""

    diagonal: np.ndarray
    beside: np.ndarray
    d: np.ndarray
    cost: ClassVar[int] = 300

    def solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """(M + alpha)^-1 R."""
        pivots, below, failed = dpttrf(self.diagonal + alpha, self.beside)
        if failed:  # alpha is within the rounding errors of M
            raise np.linalg.LinAlgError("M + alpha is not positive definite")
        return dpttrs(pivots, below, right)[0]

    def forms(self, right: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of quadratic forms."""
        right = np.asfortranarray(right)
        found = np.empty((2, len(alphas)))
        for k, alpha in enumerate(alphas):
            z = self.solve(alpha, right)
            found[:, k] = np.vdot(right, z), np.vdot(z, z)
        return found[0], found[1]

    def forms_of_rows(self, B: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Quadratic forms of each row."""
        columns = np.asfortranarray(B.T)
        forms = [np.einsum("ij,ij->j", columns, self.solve(alpha, columns)) for alpha in alphas]
        return np.stack(forms, axis=1)


Turn = Callable[[np.ndarray], np.ndarray]
"""Maps rows X of shape (n, p) to X Q."""


def reduced(G: np.ndarray, n_right: int) -> tuple[Middle, Turn]:
    """M and the map X -> X Q of a positive semidefinite G, for that many right-hand sides."""
    if len(G) >= TRIDIAGONAL_FROM and 4 * n_right <= len(G):
        return reflected(G)
    return diagonalised(G)


def diagonalised(G: np.ndarray) -> tuple[Diagonal, Turn]:
    """M of eigenvalues."""
    d, V = np.linalg.eigh(G)
    return Diagonal(np.maximum(d, 0.0)), lambda X: X @ V


def reflected(G: np.ndarray) -> tuple[Tridiagonal, Turn]:
    """M by Householder's reflections; p is at least 2."""
    lower, diagonal, beside, tau, _ = dsytrd(G, lower=1, lwork=BLOCK * len(G))
    reflections = np.asfortranarray(lower[1:, :-1])  # of the columns but the first

    def turn(X: np.ndarray) -> np.ndarray:
        rest = np.ascontiguousarray(X[:, 1:], dtype=float)
        turned = np.empty(X.shape)
        turned[:, 0] = X[:, 0]
        n_work = BLOCK * max(1, len(X))
        turned[:, 1:] = dormqr("L", "T", reflections, tau, rest.T, n_work, overwrite_c=1)[0].T
        return turned

    d = np.maximum(dsterf(diagonal, beside)[0], 0.0)
    return Tridiagonal(diagonal, beside, d), turn
