"""The priced direction: its metamorphic relations, and bounds that it leads to."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.cross_fitting._directions import fit_logistic, lagrangian_direction

RNG = np.random.default_rng(8)
N = 600
X = RNG.normal(size=(N, 2))
POSITIVE = X[:, 0] + 0.8 * X[:, 1] + 0.3 * RNG.logistic(size=N) > 0
COST = np.where(POSITIVE, -1.0, 1.0) / N  # of the error rate


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


NO_ROWS = csr_array((0, N)), np.zeros(0)


def test_without_constraints_it_is_logistic_regression():
    found = lagrangian_direction(X, COST, *NO_ROWS)
    plain = fit_logistic(X, POSITIVE, np.ones(N))
    assert cosine(found, plain.coef) == pytest.approx(1.0)


def test_a_constraint_that_holds_changes_nothing():
    loose = csr_array(np.full((1, N), 1.0 / N)), np.array([0.95])
    free = lagrangian_direction(X, COST, *NO_ROWS)
    np.testing.assert_allclose(lagrangian_direction(X, COST, *loose), free)


def test_a_gap_between_groups_turns_the_direction_away_from_their_feature():
    """Groups are the sign of the second feature: parity asks for less weight on it."""
    group = X[:, 1] > 0
    gap = np.where(group, 0.5 / group.sum(), -0.5 / (~group).sum())
    found = lagrangian_direction(X, COST, csr_array(gap[None, :]), np.array([0.02]))
    plain = lagrangian_direction(X, COST, *NO_ROWS)
    assert abs(found[1] / found[0]) < 0.6 * abs(plain[1] / plain[0])


def test_where_one_answer_is_cheapest_prices_climb_until_it_is_not():
    """A false positive rate is least without any positive; recall must drive it."""
    cost = np.where(POSITIVE, 0.0, 1.0) / (~POSITIVE).sum()
    recall = csr_array(np.where(POSITIVE, -1.0, 0.0)[None, :] / POSITIVE.sum())
    found = lagrangian_direction(X, cost, recall, np.array([-0.9]))
    plain = fit_logistic(X, POSITIVE, np.ones(N))
    assert cosine(found, plain.coef) > 0.95


def test_no_prices_no_direction():
    assert lagrangian_direction(X, np.ones(N) / N, *NO_ROWS) is None


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_the_costs_does_not_matter(unit):
    gap = csr_array(np.where(X[:, 1] > 0, 1.0, -1.0)[None, :] / N)
    one, other = (
        lagrangian_direction(X, factor * COST, gap, np.array([0.05])) for factor in (1.0, unit)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)
