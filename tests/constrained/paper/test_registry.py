"""Names of solvers, the rule behind "auto", options, and solvers as parameter holders."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skbandit.constrained import solvers
from skbandit.constrained.paper._registry import NAMES, SOLVERS, choose_solver, solver_class
from skbandit.constrained.solvers import AugmentedLagrangianSolver, CuttingPlaneSolver, CvxpySolver
from tests.constrained.paper.convex_problems import random_problem


@pytest.mark.parametrize(
    ("n_rows", "n_features", "name"),
    [(500, 500, "cvxpy"), (501, 10, "augmented_lagrangian"), (500, 501, "augmented_lagrangian")],
)
def test_auto_goes_by_size(n_rows, n_features, name):
    assert choose_solver("auto", {}, n_rows, n_features).name == name


def test_newton_is_the_augmented_lagrangian():
    assert choose_solver("newton", {}, 10, 3).name == "augmented_lagrangian"


@pytest.mark.parametrize("name", sorted(SOLVERS))
@pytest.mark.parametrize("n_features", [3, 3000])
def test_a_name_is_kept_at_any_size(name, n_features):
    solver = choose_solver(name, {}, 10, n_features)
    assert solver.name == name
    assert 0 < solver.exact <= solver.rough


def test_options_reach_the_solver():
    assert choose_solver("newton", {"max_iter": 7}, 10, 3).max_iter == 7
    assert choose_solver("cvxpy", {"solver": "CLARABEL"}, 10, 3).options == {"solver": "CLARABEL"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("newton", "AugmentedLagrangianSolver"), ("cutting_plane", "CuttingPlaneSolver")],
)
def test_unknown_options_are_named_with_those_that_exist(name, kind):
    with pytest.raises(ValueError, match=f"'nonesuch', which {kind} does not accept.*'max_"):
        choose_solver(name, {"nonesuch": 1}, 10, 3)


def test_every_registered_solver_is_public():
    for name in SOLVERS:
        assert solver_class(name).__name__ in solvers.__all__
        assert getattr(solvers, solver_class(name).__name__) is solver_class(name)
        assert name in NAMES
    assert set(solvers.__all__) <= set(dir(solvers))
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = solvers.nonesuch
    with pytest.raises(AttributeError, match="use AugmentedLagrangianSolver"):
        _ = solvers.SmoothedNewtonSolver


def test_an_instance_is_returned_as_it_is():
    solver = solvers.AugmentedLagrangianSolver(max_iter=3)
    assert choose_solver(solver, {}, 10, 3000) is solver


def test_options_beside_an_instance_are_refused_with_their_cure():
    with pytest.raises(ValueError, match=r"'max_iter': 3.*AugmentedLagrangianSolver\(\.\.\.\)"):
        choose_solver(solvers.AugmentedLagrangianSolver(), {"max_iter": 3}, 10, 3)


def test_a_class_is_not_a_solver():
    with pytest.raises(TypeError, match=r"is a class: pass CvxpySolver\(\.\.\.\)"):
        choose_solver(solvers.CvxpySolver, {}, 10, 3)


def test_what_an_object_lacks_is_named():
    class Half:
        name = "half"

        def solve(self, problem, penalty, tol, warm=None): ...

    with pytest.raises(TypeError, match=r"lacks rough, exact: a solver needs"):
        choose_solver(Half(), {}, 10, 3)


INSTANCES = [
    CvxpySolver({"solver": "CLARABEL"}),
    AugmentedLagrangianSolver(max_iter=50),
    CuttingPlaneSolver(max_cuts=100),
]


@pytest.fixture(params=INSTANCES, ids=lambda solver: solver.name)
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
