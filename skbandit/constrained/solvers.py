"""Solvers of the convex subproblem behind one small interface, one file per solver."""

from typing import TYPE_CHECKING, Any

from skbandit.constrained.paper._cvxpy import CvxpySolver
from skbandit.constrained.paper._interface import (
    ConvexProblem,
    HingeDuals,
    Solution,
    Solver,
    SolverError,
    certify,
)
from skbandit.constrained.paper._registry import SOLVERS, solver_class

if TYPE_CHECKING:
    from skbandit.constrained.paper._augmented_lagrangian import AugmentedLagrangianSolver
    from skbandit.constrained.paper._cutting_plane import CuttingPlaneSolver

__all__ = [
    "AugmentedLagrangianSolver",
    "ConvexProblem",
    "CuttingPlaneSolver",
    "CvxpySolver",
    "HingeDuals",
    "Solution",
    "Solver",
    "SolverError",
    "certify",
]


def __getattr__(name: str) -> Any:
    """Import a solver class on first use: most of them load numba."""
    for registered, (_, class_name) in SOLVERS.items():
        if name == class_name:
            return solver_class(registered)
    if name == "SmoothedNewtonSolver":
        raise AttributeError(f"{name} is no more: use AugmentedLagrangianSolver, as 'newton' does.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
