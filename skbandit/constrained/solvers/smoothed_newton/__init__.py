"""Smoothed Newton in SQP form, for up to about a thousand features."""

from skbandit.constrained.solvers.smoothed_newton._solver import SmoothedNewtonSolver

__all__ = ["SmoothedNewtonSolver"]
