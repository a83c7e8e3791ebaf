"""Names of solvers, the rule behind "auto", and options."""

import pytest

from skbandit.constrained.solvers._registry import NAMES, choose_solver


@pytest.mark.parametrize(
    ("n_rows", "n_features", "kind"),
    [
        (500, 500, "CvxpySolver"),
        (501, 10, "SmoothedNewtonSolver"),
        (500, 501, "SmoothedNewtonSolver"),
        (10**6, 1000, "SmoothedNewtonSolver"),
        (10**6, 1001, "AugmentedLagrangianSolver"),
        (20, 1001, "AugmentedLagrangianSolver"),
    ],
)
def test_auto_goes_by_size(n_rows, n_features, kind):
    solver = choose_solver("auto", {}, n_rows, n_features)
    assert type(solver).__name__ == kind
    assert solver.name == ("cvxpy" if kind == "CvxpySolver" else "newton")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"auto"}))
@pytest.mark.parametrize("n_features", [3, 3000])
def test_a_name_is_kept_at_any_size(name, n_features):
    solver = choose_solver(name, {}, 10, n_features)
    assert solver.name == name
    assert 0 < solver.exact <= solver.rough


def test_options_reach_the_solver():
    assert choose_solver("newton", {"max_iter": 7}, 10, 3).max_iter == 7
    assert choose_solver("cvxpy", {"solver": "CLARABEL"}, 10, 3).options == {"solver": "CLARABEL"}


@pytest.mark.parametrize("name", ["newton", "cutting_plane"])
def test_unknown_options_are_named_with_those_there_are(name):
    with pytest.raises(ValueError, match=f"'nonesuch', which solver='{name}' does not know.*'max"):
        choose_solver(name, {"nonesuch": 1}, 10, 3)
