"""Registry of solvers: names, classes, and the rule behind "auto" and "newton"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from types import MappingProxyType
from typing import Any

from skbandit.constrained.paper._interface import Solver

SOLVERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cvxpy": ("_cvxpy", "CvxpySolver"),
        "augmented_lagrangian": ("_augmented_lagrangian", "AugmentedLagrangianSolver"),
        "cutting_plane": ("_cutting_plane", "CuttingPlaneSolver"),
    }
)
"""Module and class per name: modules are imported on first use, since most load numba."""

NAMES = ("auto", "newton", *SOLVERS)
"""Strings that ``solver=`` accepts."""

SMALL_ROWS, SMALL_FEATURES = 500, 500
"""Largest numbers of rows and features at which "auto" means cvxpy.

Up to here its exact solutions take no longer than rough ones; beyond, "auto" means "newton".
"""


def solver_class(name: str) -> type:
    """Import the solver class registered under a name."""
    module, class_name = SOLVERS[name]
    return getattr(import_module(f"skbandit.constrained.paper.{module}"), class_name)


def choose_solver(
    solver: str | Solver,
    options: dict[str, Any],
    n_rows: int,
    n_features: int,
) -> Solver:
    """Return the solver for a problem of some size; "auto" as in RampClassifier."""
    if not isinstance(solver, str):
        return _checked(solver, options)
    name = solver
    if name == "auto":
        small = n_rows <= SMALL_ROWS and n_features <= SMALL_FEATURES
        name = "cvxpy" if small else "newton"
    name = "augmented_lagrangian" if name == "newton" else name
    kind = solver_class(name)
    if name == "cvxpy":  # its options belong to cvxpy
        return kind(dict(options))
    names = [field.name for field in fields(kind)]
    unknown = [option for option in options if option not in names]
    if unknown:
        raise ValueError(
            f"solver_options has {unknown[0]!r}, which {kind.__name__} does not accept; it accepts "
            f"{', '.join(map(repr, names))}."
        )
    return kind(**options)


def _checked(solver: Any, options: dict[str, Any]) -> Solver:
    """Return an instance that follows the protocol; refuse anything else."""
    if isinstance(solver, type):
        raise TypeError(f"solver={solver.__name__} is a class: pass {solver.__name__}(...).")
    missing = [part for part in ("name", "rough", "exact", "solve") if not hasattr(solver, part)]
    if missing:
        raise TypeError(
            f"solver={solver!r} lacks {', '.join(missing)}: a solver needs name, rough, exact and "
            "solve(problem, penalty, tol, warm); see skbandit.constrained.solvers.Solver."
        )
    if options:
        raise ValueError(
            f"solver_options={options!r} cannot be combined with an instance: set them on the "
            f"solver itself, solver={type(solver).__name__}(...)."
        )
    return solver
