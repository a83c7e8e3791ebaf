"""Which solver of the convex subproblem a name stands for."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from skbandit.constrained.solvers._cvxpy import CvxpySolver
from skbandit.constrained.solvers._interface import Solver

SMALL_ROWS, SMALL_FEATURES = 500, 500
"""Up to here cvxpy's exact solutions cost no more time than rough ones."""

FEW_FEATURES = 1000
"""Up to here a dense matrix of features by features is formed and factored."""

NAMES = ("auto", "cvxpy", "cutting_plane", "newton")


def choose_solver(name: str, options: dict[str, Any], n_rows: int, n_features: int) -> Solver:
    """The solver for a problem of some size; "auto" as documented in ConstrainedRampClassifier."""
    if name == "auto":
        small = n_rows <= SMALL_ROWS and n_features <= SMALL_FEATURES
        name = "cvxpy" if small else "newton"
    if name == "cvxpy":
        return CvxpySolver(dict(options))
    return _with_options(_own(name, n_features), options, name)


def _own(name: str, n_features: int) -> type:
    """Compiled code, loaded on first use."""
    if name == "cutting_plane":
        from skbandit.constrained.solvers.cutting_plane._solver import CuttingPlaneSolver

        return CuttingPlaneSolver
    if n_features <= FEW_FEATURES:
        from skbandit.constrained.solvers.smoothed_newton._solver import SmoothedNewtonSolver

        return SmoothedNewtonSolver
    from skbandit.constrained.solvers.augmented_lagrangian._solver import AugmentedLagrangianSolver

    return AugmentedLagrangianSolver


def _with_options(solver: type, options: dict[str, Any], name: str) -> Solver:
    known = [field.name for field in fields(solver) if field.name != "name"]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(
            f"solver_options has {unknown[0]!r}, which solver={name!r} does not know; it takes "
            f"{', '.join(map(repr, known)) or 'no options'}."
        )
    return solver(**options)
