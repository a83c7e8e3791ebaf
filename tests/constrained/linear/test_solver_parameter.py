"""solver= of the classifier: names, instances, solvers of one's own, and their parameters."""

import numpy as np
import pytest
from sklearn.base import clone

from skbandit.constrained import ConstrainedRampClassifier, RampClassifier
from skbandit.constrained.solvers import (
    CuttingPlaneSolver,
    CvxpySolver,
    SmoothedNewtonSolver,
)
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
        return SmoothedNewtonSolver().solve(problem, penalty, tol, warm)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("cvxpy", CvxpySolver()),
        ("newton", SmoothedNewtonSolver()),
        ("smoothed_newton", SmoothedNewtonSolver()),
        ("cutting_plane", CuttingPlaneSolver()),
    ],
)
def test_a_name_and_an_instance_train_the_same_model(name, instance):
    one, other = classifier(name).fit(X, y), classifier(instance).fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.multipliers_, other.multipliers_)
    assert one.solver_ == other.solver_ == instance.name


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["smoothed_newton", "augmented_lagrangian"])
def test_solver_names_the_method(name):
    assert classifier(name).fit(X, y).solver_ == name


def test_newton_on_many_features_is_the_augmented_lagrangian():
    times = 1100 // len(X) + 1  # with fewer rows than features, it is trained in their span
    wide = np.tile(np.hstack([X, np.zeros((len(X), 1000))]), (times, 1))
    assert classifier("newton").fit(wide, np.tile(y, times)).solver_ == "augmented_lagrangian"


@pytest.mark.thorough
def test_rough_fits_to_few_rows_per_feature_solve_no_dense_systems():
    """Newton steps of n x n took fifty times as long, for the same rule."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(80, 120))
    label = (wide[:, 0] + rng.normal(size=80) > 0).astype(int)
    fits = [
        ConstrainedRampClassifier(constraints=recall() >= 0.5, solver=solver).fit(wide, label)
        for solver in ("auto", "smoothed_newton")
    ]
    assert fits[0].solver_ == "augmented_lagrangian"
    np.testing.assert_array_equal(*(one.predict(wide) for one in fits))


def test_parameters_of_an_instance_are_those_of_the_classifier():
    clf = classifier(SmoothedNewtonSolver())
    assert clf.get_params()["solver__max_iter"] == 200
    assert "solver__max_iter" not in clf.get_params(deep=False)
    clf.set_params(solver__max_iter=7)
    assert clf.solver == SmoothedNewtonSolver(max_iter=7)
    copied = clone(clf)
    assert copied.solver == clf.solver
    assert copied.solver is not clf.solver


def test_a_solver_of_ones_own():
    clf = classifier(Borrowed())
    expected = classifier("smoothed_newton").fit(X, y)
    copied = clone(clf).fit(X, y)
    np.testing.assert_allclose(copied.coef_, expected.coef_, atol=0.05)
    assert copied.solver_ == "borrowed"
    assert copied.solver.n_solved > 0
    assert clf.solver.n_solved == 0


@pytest.mark.parametrize("solver", ["nonesuch", 3, None])
def test_anything_else_is_refused(solver):
    refuses(r"'solver' parameter .* implementing 'solve'", classifier(solver).fit, X, y)
