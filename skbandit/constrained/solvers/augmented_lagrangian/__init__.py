"""Augmented Lagrangian on the dual, for many features."""

from skbandit.constrained.solvers.augmented_lagrangian._solver import AugmentedLagrangianSolver

__all__ = ["AugmentedLagrangianSolver"]
