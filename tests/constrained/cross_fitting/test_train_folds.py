"""What is trained without each fold: under bounds, under tighter ones, at shared multipliers."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from skbandit import ConstrainedRampClassifier
from skbandit.constrained._fit_rows import Extra
from skbandit.constrained.cross_fitting._folds import _tightening, train_folds
from skbandit.rates import difference, positive_rate, recall
from skbandit.rates._confidence import wilson_score
from skbandit.rates._score_limits import score_limits

RNG = np.random.default_rng(8)
N = 900
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.8 * X[:, 1] + 0.3 * RNG.logistic(size=N) > 0).astype(int)
GROUPS = pd.DataFrame({"group": np.where(X[:, 1] > 0, "a", "b")})
PARITY = difference(positive_rate, by="group") <= 0.05


def bound(constraints):
    clf = ConstrainedRampClassifier(constraints=constraints)
    design, goals = clf._read_training(X, Y, None, GROUPS, Extra.read())
    return design, goals, clf._options(design, goals.goals, None, lambda _: None)


def trained(constraints):
    return train_folds(*bound(constraints))


def test_without_constraints_there_is_nothing_to_tighten_and_no_multiplier():
    assert set(trained(()).directions.names) == {"logistic", "ramp"}


def test_constraints_that_hold_anyway_change_no_fit():
    names = trained(positive_rate() <= 0.95).directions.names
    assert set(names) == {"logistic", "ramp", "tightened ramp"}


def test_all_folds_turn_away_from_the_feature_that_tells_the_groups_apart():
    """In every fold, as their multipliers are the same."""
    directions = trained(PARITY).directions
    plain, last = (directions.names.index(name) for name in ("logistic", "cost-sensitive 3"))
    share = np.abs(directions.coef[:, 1]) / np.abs(directions.coef[:, 0])
    assert (share[:, last] < 0.6 * share[:, plain]).all()


def test_both_ramps_meet_their_bounds_in_every_fold():
    ramps = trained(PARITY).ramps
    assert set(ramps) == {"ramp", "tightened ramp"}
    assert all(one.feasible for folds in ramps.values() for one in folds)


def tightening(constraints, positive):
    goals = bound(constraints)[1].goals
    measured = goals.measured
    limits = score_limits(goals.constraints, goals.data).columns(measured.rows)
    return _tightening(measured.constraints, limits, positive[measured.rows])


def test_a_single_rate_is_tightened_by_its_wilson_margin():
    positive = (X[:, 0] > 0).astype(float)
    rate = positive[Y == 1].mean()
    low = wilson_score(rate, float((Y == 1).sum()), float(ndtri(0.8)))
    assert tightening(recall() >= 0.5, positive) == pytest.approx(rate - low)


@pytest.mark.parametrize("width", [0.001, 0.05, 0.3])
def test_both_sides_of_a_difference_stay_compatible(width):
    """However narrow: by nine tenths of the bound at most, so that both can hold."""
    goal = difference(positive_rate, by="group") <= width
    margins = tightening(goal, (X[:, 0] > 0).astype(float))
    assert len(margins) == 2 and (margins > 0).all() and margins.sum() < 2 * width
