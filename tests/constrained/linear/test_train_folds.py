"""What is trained without each fold: at multipliers that all folds share."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from skbandit import ConstrainedRampClassifier
from skbandit.constrained.linear._folds import train_folds
from skbandit.constrained.paper._mm import majorize_minimize
from skbandit.constrained.paper._problem import Point, ramp_of_costs
from skbandit.constrained.paper._registry import choose_solver
from skbandit.rates import difference, positive_rate, recall
from tests.tiers import first

RNG = np.random.default_rng(8)
N = 900
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.8 * X[:, 1] + 0.3 * RNG.logistic(size=N) > 0).astype(int)
GROUPS = pd.DataFrame({"group": np.where(X[:, 1] > 0, "a", "b")})
PARITY = difference(positive_rate, by="group") <= 0.05


def bound(constraints, **settings):
    clf = ConstrainedRampClassifier(constraints=constraints, **settings)
    design, goals, _ = clf._read_training(X, Y, {"attributes": GROUPS})
    return design, goals, clf._options(design, goals, None, lambda _: None)


def trained(constraints):
    return train_folds(*bound(constraints))


def test_without_constraints_there_is_no_multiplier():
    assert set(trained(()).directions.names) == {"logistic", "ramp"}


def test_constraints_that_hold_anyway_change_no_fit():
    free, bounded = (trained(one).directions for one in ((), positive_rate() <= 0.95))
    assert bounded.names == free.names
    np.testing.assert_array_equal(bounded.coef, free.coef)


def test_folds_turn_away_from_the_feature_that_tells_the_groups_apart():
    directions = trained(PARITY).directions
    names = ("logistic", "cost-sensitive 3", "ramp")
    plain, last, ramp = (directions.names.index(name) for name in names)
    share = np.abs(directions.coef[1]) / np.abs(directions.coef[0])
    assert share[last] < 0.6 * share[plain]
    assert share[ramp] < 0.6 * share[plain]


@pytest.mark.thorough
@pytest.mark.parametrize("goal", first(1, [recall() >= 0.9, PARITY]))
def test_the_ramp_is_the_same_by_cvxpy_and_by_newton(goal):
    """Both to a gap of a hundredth of the costs: the scores that they give are nearly the same."""
    fits = [train_folds(*bound(goal, solver=solver)).directions for solver in ("cvxpy", "newton")]
    assert fits[0].names == fits[1].names
    one, other = (fit.scores[:, fit.names.index("ramp")] for fit in fits)
    assert np.corrcoef(one, other)[0, 1] > 0.995


@pytest.mark.parametrize("solver", ["cvxpy", "newton", "cutting_plane"])
def test_majorization_minimization_lowers_the_ramp_of_the_costs(solver):
    costs = np.where(Y == 1, -1.0, 0.7) / N
    problem = ramp_of_costs(X, costs, 0.1, fit_intercept=True)
    start = Point(np.array([1.0, 0.0, 0.0]), 0.0)
    mm = majorize_minimize(problem, start, choose_solver(solver, {}, N, 3), max_iter=30, tol=1e-6)

    def loss(theta):
        return costs @ np.clip(0.5 + X @ theta[:3] + theta[3], 0, 1) + 0.05 * theta[:3] @ theta[:3]

    found = np.append(mm.point.coef, mm.point.intercept)
    assert loss(found) < loss(np.array([1.0, 0.0, 0.0, 0.0])) - 0.01
    assert mm.path[-1] == pytest.approx(loss(found), abs=1e-9)
    near = minimize(loss, found, method="Powell", options={"ftol": 1e-10})
    assert loss(found) <= near.fun + 1e-3
