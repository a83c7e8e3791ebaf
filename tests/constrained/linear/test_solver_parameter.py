"""solver= of the classifier: names, instances, solvers of one's own, and their parameters."""

import numpy as np
import pytest
from sklearn.base import clone

from skbandit.constrained import RampClassifier
from skbandit.constrained.solvers import AugmentedLagrangianSolver, CuttingPlaneSolver, CvxpySolver
from skbandit.rates import recall
from tests.problems import sample
from tests.worlds import refuses

X, y, _ = sample(0, n=60)
GOAL = recall() >= 0.8


def classifier(solver, **options):
    return RampClassifier(constraints=GOAL, solver=solver, **{"alpha": 0.05} | options)


class Borrowed:
    """A solver of one's own: no get_params, no base class, and another one's method."""

    name, rough, exact = "borrowed", 1e-3, 1e-6

    def __init__(self):
        self.n_solved = 0

    def solve(self, problem, penalty, tol, warm=None):
        self.n_solved += 1
        return AugmentedLagrangianSolver().solve(problem, penalty, tol, warm)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("cvxpy", CvxpySolver()),
        ("newton", AugmentedLagrangianSolver()),
        ("cutting_plane", CuttingPlaneSolver()),
    ],
)
def test_a_name_and_an_instance_train_the_same_model(name, instance):
    one, other = classifier(name).fit(X, y), classifier(instance).fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.multipliers_, other.multipliers_)
    assert one.solver_ == other.solver_ == instance.name


def test_parameters_of_an_instance_are_those_of_the_classifier():
    clf = classifier(AugmentedLagrangianSolver())
    assert clf.get_params()["solver__max_iter"] == 100
    assert "solver__max_iter" not in clf.get_params(deep=False)
    clf.set_params(solver__max_iter=7)
    assert clf.solver == AugmentedLagrangianSolver(max_iter=7)
    copied = clone(clf)
    assert copied.solver == clf.solver
    assert copied.solver is not clf.solver


def test_a_solver_of_ones_own():
    clf = classifier(Borrowed())
    expected = classifier("newton").fit(X, y)
    copied = clone(clf).fit(X, y)
    np.testing.assert_allclose(copied.coef_, expected.coef_, atol=0.05)
    assert copied.solver_ == "borrowed"
    assert copied.solver.n_solved > 0
    assert clf.solver.n_solved == 0


@pytest.mark.parametrize("solver", ["nonesuch", 3, None])
def test_anything_else_is_refused(solver):
    refuses(r"'solver' parameter .* implementing 'solve'", classifier(solver).fit, X, y)
