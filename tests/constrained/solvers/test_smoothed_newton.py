"""Smoothed Newton: what is its own. What both second-order solvers promise: test_second_order."""

import numpy as np
import pytest

from skbandit.constrained.solvers import SmoothedNewtonSolver, SolverError
from skbandit.constrained.solvers._line_search import line_search
from skbandit.constrained.solvers.smoothed_newton import _solver
from tests.constrained.solvers.convex_problems import awkward_problem


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

    monkeypatch.setattr(_solver.AugmentedLagrangianSolver, "solve", fails)
    assert hasty.solve(problem, np.inf, 1e-7).primal == found.primal
    with pytest.raises(SolverError, match="no"):  # nothing within the constraints after one step
        SmoothedNewtonSolver(max_iter=1).solve(problem, np.inf, 1e-7)


@pytest.mark.parametrize("bend", [0.0, 1.0, 100.0])
def test_line_search_on_a_parabola_with_a_kink(bend):
    """-t + bend/2 t^2, and a wall from t = .3 on: at most a quarter of the slope is left."""

    def merit(t):
        wall = 50 * max(t - 0.3, 0.0)
        return -t + bend / 2 * t * t + wall, -1 + bend * t + 50 * (t > 0.3)

    t, value = line_search(merit, 0.0, -1.0)
    assert value == merit(t)[0] < 0
    best = min(0.3, 1 / bend) if bend else 0.3
    assert value <= 0.75 * merit(best)[0]


def test_line_search_stays_where_nothing_is_lower():
    assert line_search(lambda t: (t, 1.0), 0.0, -1.0) == (0.0, 0.0)
