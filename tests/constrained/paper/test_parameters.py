"""Solvers as parameter holders: compared, shown, cloned, and set from outside."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skbandit.constrained.solvers import (
    AugmentedLagrangianSolver,
    CuttingPlaneSolver,
    CvxpySolver,
)
from tests.constrained.paper.convex_problems import random_problem

SOLVERS = [
    CvxpySolver({"solver": "CLARABEL"}),
    AugmentedLagrangianSolver(max_iter=50),
    CuttingPlaneSolver(max_cuts=100),
]


@pytest.fixture(params=SOLVERS, ids=lambda solver: solver.name)
def solver(request):
    return request.param


def test_clones_and_pickles_are_equal_and_independent(solver):
    for copy in (clone(solver), pickle.loads(pickle.dumps(solver))):
        assert copy == solver
        assert copy is not solver
    assert solver != type(solver)()


def test_the_repr_is_the_call(solver):
    assert eval(repr(solver)) == solver


def test_get_params_and_set_params_are_inverse(solver):
    other = type(solver)()
    assert other.set_params(**solver.get_params()) is other
    assert other == solver


def test_solving_changes_nothing(solver):
    before = clone(solver)
    solver.solve(random_problem(0), np.inf, 1e-4)
    assert solver == before


def test_an_unknown_parameter_is_named_with_those_that_exist():
    with pytest.raises(
        ValueError, match=r"AugmentedLagrangianSolver has no parameter 'nonesuch'.*'max"
    ):
        AugmentedLagrangianSolver().set_params(nonesuch=3)


def test_an_invalid_value_leaves_every_parameter_as_it_was():
    solver = CuttingPlaneSolver()
    with pytest.raises(ValueError, match="max_cuts must be at least 1, got 0"):
        solver.set_params(share=0.5, max_cuts=0)
    assert solver == CuttingPlaneSolver()
