"""Rules that meet goals where these are measured, whatever the probabilities expect."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skbandit.prices._confident import AIMS, confident_rule
from skbandit.prices._problem import Problem


@dataclass(frozen=True)
class Measured:
    """Error rate and recalls by true labels, with binomial standard errors."""

    objective: float
    excess: np.ndarray
    errors: np.ndarray
    tables: None = None

    def margin(self, z):
        return z * self.errors


def classified(seed, power, n=3000):
    """Three classes whose probabilities are right for a power of 1, else too high or too low."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1.2, 0.6, 0.4], n)
    label = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = P**power / (P**power).sum(axis=1, keepdims=True)
    return P, label


def with_floors(P, label, floors):
    n, K = P.shape
    rows = [np.bincount(label, minlength=K) / n, np.eye(K)]
    goals = np.array([-np.outer(one, one) / share for share, one in zip(*rows, strict=True)])
    problem = Problem(
        np.full(n, 1 / n), P, (1 - np.eye(K))[None], np.zeros(1), goals, -np.array(floors)
    )

    def measure(decided):
        decided = decided.argmax(axis=1)
        recalls = np.array([np.mean(decided[label == k] == k) for k in range(K)])
        n_of = np.bincount(label, minlength=K)
        errors = np.sqrt(np.maximum(recalls * (1 - recalls), 1e-3) / n_of)
        return Measured(float(np.mean(decided != label)), np.array(floors) - recalls, errors)

    return problem, measure


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_goals_hold_as_measured_whatever_the_probabilities(power):
    """Poor probabilities cost objective only: here by monotone maps, little."""
    P, label = classified(0, power)
    problem, measure = with_floors(P, label, [0.6, 0.6, 0.55])
    rule = confident_rule(problem, measure, 1.28)
    measured = measure(rule.decided)
    assert rule.feasible
    assert (measured.excess <= 0).all()
    right = confident_rule(*with_floors(*classified(0, 1.0), [0.6, 0.6, 0.55]), 1.28)
    assert rule.objective <= right.objective + 0.03


def test_bounds_that_bind_are_moved_by_the_margins_of_the_rule():
    """Of right probabilities, to the noise of the labels that the expectation passes over."""
    P, label = classified(0, 1.0)
    problem, measure = with_floors(P, label, [0.6, 0.6, 0.55])
    rule = confident_rule(problem, measure, 1.28)
    binding, margin = rule.prices.goals > 0, measure(rule.decided).margin(1.28)
    assert binding.any()
    inside = rule.moved[binding] - AIMS[0] * margin[binding]
    assert (np.abs(inside) <= 3 * margin[binding] / 1.28).all()
    assert (measure(rule.decided).excess[binding] <= 0).all()


def test_what_is_measured_outside_by_chance_is_moved_further():
    """Worse than expected by 1.8 standard errors, which are no bias, where margins are 1.3."""
    problem, measure = with_floors(*classified(0, 1.0), [0.6, 0.6, 0.55])

    def unlucky(decided):
        measured = measure(decided)
        shift = 1.8 * measured.errors * [0.0, 0.0, 1.0]
        expected = np.minimum(problem.excess(decided), measured.excess)
        return replace(measured, excess=np.maximum(measured.excess, expected + shift))

    rule = confident_rule(problem, unlucky, 0.8)
    assert rule.prices.goals[2] > 0
    assert (unlucky(rule.decided).excess <= 0).all() and rule.feasible


def test_a_higher_quantile_costs_more():
    P, label = classified(0, 1.0)
    problem, measure = with_floors(P, label, [0.6, 0.6, 0.55])
    objectives = [confident_rule(problem, measure, z).objective for z in (0.5, 0.84, 1.28)]
    assert objectives[0] < objectives[1] < objectives[2]


def test_no_goal_binds():
    P, label = classified(2, 1.0)
    problem, measure = with_floors(P, label, [0.1, 0.1, 0.1])
    rule = confident_rule(problem, measure, 1.28)
    np.testing.assert_array_equal(rule.decided.argmax(axis=1), P.argmax(axis=1))
    assert not rule.prices.goals.any()


def test_bounds_that_cannot_be_moved_so_far_are_tested():
    """With few labels, 1.6 margins are out of reach, and a floor near the most is no promise."""
    P, label = classified(3, 1.0, n=300)
    problem, measure = with_floors(P, label, [0.95, 0.95, 0.05])
    rule = confident_rule(problem, measure, 1.28)
    excess, margin = (lambda m: (m.excess, m.margin(1.28)))(measure(rule.decided))
    assert not rule.feasible or (excess + margin <= 1e-9).all()
    assert -rule.slack >= excess.max()
