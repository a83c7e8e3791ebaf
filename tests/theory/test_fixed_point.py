"""Where Algorithm 1 of Goh et al. (2016) stops, it solves its own Problem 3.

The bounds touch the ramps at the present point, so its convex value is its ramp objective. The
optimum of Problem 3 is lower by at least what a step gains, and by nothing at a fixed point. The
claim is about every fixed seed, not a statistical one.
"""

import numpy as np
import pytest

from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point
from skbandit.constrained.solvers import CvxpySolver
from skbandit.rates import error_rate, false_positive_rate, positive_rate, recall
from tests import problems
from tests.tiers import first

SOLVER = CvxpySolver({"solver": "CLARABEL"})
GOALS = {
    "unconstrained": (error_rate(), []),
    "false positives": (error_rate(), [false_positive_rate() <= 0.1]),
    "coverage": (error_rate(), [positive_rate() <= 0.3, recall() >= 0.5]),
}


def gap(problem, point):
    """How far a point is from the optimum of Problem 3, built at that point."""
    convex = problem.majorize_at(point)
    solution = SOLVER.solve(convex, np.inf, 1e-10)

    def value(at):
        return convex.rows(problem.scores(at))[0] + problem.regularizer(at)

    return value(point) - value(Point(solution.coef, solution.intercept))


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("seed", first(1, range(6)))
def test_the_last_point_solves_its_own_convex_problem(name, seed):
    problem = problems.compiled(*problems.sample(seed, 60, 3), *GOALS[name])
    start = Point(np.zeros(3), 0.0)
    found = majorize_minimize(problem, start, SOLVER, max_iter=60, tol=1e-9)
    assert found.converged
    assert abs(gap(problem, found.point)) <= 1e-7
    assert gap(problem, start) > 1e-3  # which a point that is none does not
