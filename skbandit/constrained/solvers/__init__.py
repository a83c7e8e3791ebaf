"""Solvers of the convex subproblem, one a file, behind one small interface."""

from skbandit.constrained.solvers._base import Solution, Solver, SolverError
from skbandit.constrained.solvers._cvxpy import CvxpySolver

__all__ = ["CvxpySolver", "Solution", "Solver", "SolverError"]
