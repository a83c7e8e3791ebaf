"""Smoothed Newton alone; see test_solvers for both second-order solvers."""

import numpy as np
import pytest

from skbandit.constrained.paper import _smoothed_newton
from skbandit.constrained.solvers import SmoothedNewtonSolver, SolverError
from tests.constrained.paper.convex_problems import awkward_problem


@pytest.mark.thorough
def test_where_newton_gets_stuck_the_augmented_lagrangian_goes_on():
    """Repeated rows, 60 features, lambda 1e-6, and twenty steps only."""
    problem, hasty = awkward_problem(2316), SmoothedNewtonSolver(max_iter=20)
    stuck = hasty._descend(problem, 2.0, 1e-7, None)
    assert stuck is None or stuck.gap > 1e-3
    assert hasty.solve(problem, 2.0, 1e-7).gap < 1e-4


def test_what_newton_found_stands_where_the_other_method_fails(monkeypatch):
    problem, hasty = awkward_problem(2211), SmoothedNewtonSolver(max_iter=12)
    found = hasty._descend(problem, np.inf, 1e-7, None)
    assert found.gap > 5e-4
    assert found.excess <= 1e-6

    def fails(*_):
        raise SolverError("no")

    monkeypatch.setattr(_smoothed_newton.AugmentedLagrangianSolver, "solve", fails)
    assert hasty.solve(problem, np.inf, 1e-7).primal == found.primal
    with pytest.raises(SolverError, match="no"):  # nothing within the constraints after one step
        SmoothedNewtonSolver(max_iter=1).solve(problem, np.inf, 1e-7)


def test_a_large_gap_within_the_constraints_is_not_the_last_word():
    """The augmented Lagrangian goes on from what Newton found, and its solution is certified."""
    problem, hasty = awkward_problem(2211), SmoothedNewtonSolver(max_iter=12)
    found = hasty._descend(problem, np.inf, 1e-7, None)
    better = hasty.solve(problem, np.inf, 1e-7)
    assert found.gap > 5e-4 and better.gap < 0.1 * found.gap
    assert better.excess <= 1e-6 and better.primal < found.primal
