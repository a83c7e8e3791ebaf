"""Default policies earn what the best of a grid earns, on synthetic problems of several kinds.

Means of fixed seeds, in share of what the best cell of the grid earns. The cell is the best on
these same seeds, so it is flattered, and a tenth of it is more than two standard errors.
"""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks.bandit_defaults import DEFAULTS, Problem, digits, earned, made
from tests.policies import PAPER
from tests.tiers import first

GRID = [{"prior_scale": scale, "alpha": alpha} for scale in (1, 10) for alpha in (0.1, 0.5)]

PROBLEMS = {
    "digits": (digits, 1797),
    "clicks of 5%": (
        lambda: made(3, n_arms=10, n_features=6, base=0.05, arm_effect=0.5, context_effect=1.0),
        6000,
    ),
    "clicks of 1%": (
        lambda: made(
            4, 20_000, n_arms=10, n_features=6, base=0.01, arm_effect=0.5, context_effect=1.0
        ),
        20_000,
    ),
    "any units": (
        lambda: made(
            5, n_arms=5, n_features=20, base=0.3, arm_effect=0.5, context_effect=1.0, kind="units"
        ),
        6000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", first(2, PROBLEMS))
def test_defaults_are_near_the_best_of_a_grid(name):
    make, n_rows = PROBLEMS[name]
    problem = make()
    best = max(earned(problem, cell, range(4), n_rows).mean() for cell in GRID)
    mean = earned(problem, {}, range(4), n_rows).mean()
    assert mean > 0.9 * best
    assert mean > earned(problem, PAPER, range(4), n_rows).mean()
    assert mean > problem.reward.mean(axis=0).max()  # the best arm for all


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["thompson", "squarecb", "epsilon .05", "full"])
@pytest.mark.parametrize("name", ["clicks of 5%", "any units"])
def test_every_rule_explores_mildly(rule, name):
    make, n_rows = PROBLEMS[name]
    problem = make()
    best = max(earned(problem, cell, range(4), n_rows).mean() for cell in GRID)
    assert earned(problem, DEFAULTS[rule], range(4), n_rows).mean() > 0.88 * best


def test_doubling_the_features_by_copies_changes_little():
    """Prior variances follow the number of features, so that θ has the same prior."""
    X, y = load_digits(return_X_y=True)
    once = Problem(X, np.eye(10)[y])
    twice = Problem(np.column_stack([X, X]), np.eye(10)[y])
    gap = earned(twice, {}, range(3), 1797) - earned(once, {}, range(3), 1797)
    assert abs(gap.mean()) < 0.05
