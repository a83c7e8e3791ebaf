"""Solvers of the convex subproblem, one a file, behind one small interface."""

from skbandit.constrained.solvers._cvxpy import CvxpySolver
from skbandit.constrained.solvers._interface import Solution, Solver, SolverError

__all__ = ["CvxpySolver", "Solution", "Solver", "SolverError"]
