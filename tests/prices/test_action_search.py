"""Policies searched as measured, against random prices, a linear program and tighter bounds."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

from skbandit.prices._action_search import searched
from skbandit.prices._problem import Prices, Problem, Use
from tests.tiers import first


@dataclass(frozen=True)
class Attained:
    """What decisions attain of sums over the rows."""

    objective: float
    excess: np.ndarray
    tables: None = None

    def margin(self, z):
        return np.zeros(len(self.excess))


@dataclass(frozen=True)
class Measure:
    """Goals by measured amounts of each row and decision, (m, N, D), of equal weight."""

    problem: Problem
    amounts: np.ndarray

    def __call__(self, decided):
        used = np.einsum("knj,nj->k", self.amounts, decided) / len(decided)
        base = np.where(decided, self.problem.base, 0.0)
        return Attained(float(base.sum(axis=1).mean()), used - self.problem.bound)

    @property
    def constant(self):
        return -self.problem.bound

    def added(self, kept):
        yield from self.amounts[:, kept] / len(kept)


def posed(seed, n=300, D=4, n_select=1, noise=1.0, bounds=None):
    """A share, a spend and an outcome that is measured with noise; some decisions unavailable."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, D)) - 0.5 * np.arange(D)
    base[rng.random((n, D)) < 0.1] = np.inf
    base[:, :n_select] = np.where(np.isfinite(base[:, :n_select]), base[:, :n_select], 0.0)
    harm = rng.random((n, D)) * np.arange(D) / D
    amounts = np.zeros((3, n, D))
    amounts[0, :, -1] = 1.0
    amounts[1] = np.arange(D)
    amounts[2] = harm + noise * rng.normal(size=(n, D))
    uses = [Use(np.ones(n), amounts[0, 0]), Use(np.ones(n), amounts[1, 0]), Use(np.ones(n), harm)]
    goals = tuple(((1.0, use),) for use in uses)
    if bounds is None:
        bounds = np.array([0.2, 0.3 * D, 0.2]) * n_select
    problem = Problem.of_uses(base, np.full(n, 1.0 / n), goals, np.asarray(bounds), n_select)
    return problem, Measure(problem, amounts)


def attained_at(problem, measure, prices):
    attained = measure(problem.decide(Prices(np.ones(1), np.asarray(prices))))
    return max(float(attained.excess.max()), 0.0), attained.objective


@pytest.mark.thorough
@pytest.mark.parametrize("n_select", [1, 2])
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_no_random_prices_are_better(seed, n_select):
    """Of 500, and without prices; the rule reports what it attains."""
    problem, measure = posed(seed, n_select=n_select)
    rule = searched(problem, measure)
    np.testing.assert_array_equal(rule.decided, problem.decide(rule.prices))
    attained = measure(rule.decided)
    assert rule.slack == pytest.approx(-attained.excess.max())
    assert rule.objective == attained.objective
    assert np.isfinite(problem.base[rule.decided]).all()
    rng = np.random.default_rng(seed)
    prices = 10.0 ** rng.uniform(-2, 1, (500, 3)) * (rng.random((500, 3)) < 0.7)
    for missed, objective in (attained_at(problem, measure, x) for x in prices):
        assert max(-rule.slack, 0.0) <= missed + 1e-9
        if missed == 0:
            assert rule.objective <= objective + 0.003


@pytest.mark.parametrize("n_select", [1, 2])
def test_tables_without_zeros_lead_to_the_same_rule(n_select, monkeypatch):
    problem, measure = posed(2, n=60, n_select=n_select)
    rule = searched(problem, measure)
    monkeypatch.setattr("skbandit.prices._search.DENSE", 0)
    monkeypatch.setattr("skbandit.prices._search.LEAST_ZEROS", 0.0)
    sparse = searched(problem, measure)
    np.testing.assert_array_equal(sparse.decided, rule.decided)


@pytest.mark.parametrize("n_select", [1, 2])
def test_it_is_near_the_linear_program_if_outcomes_are_known(n_select):
    """A vertex splits at most three rows, of 300."""
    problem, measure = posed(3, n_select=n_select, noise=0.0)
    rule = searched(problem, measure)
    n, D = problem.base.shape
    allowed = np.isfinite(problem.base)
    result = linprog(
        np.where(allowed, problem.base, 0.0).ravel() / n,
        measure.amounts.reshape(3, -1) / n,
        problem.bound,
        np.kron(np.eye(n), np.ones(D)),
        np.full(n, n_select),
        bounds=np.column_stack([np.zeros(n * D), allowed.ravel()]),
    )
    assert rule.feasible
    spread = np.ptp(problem.base[allowed])
    assert result.fun - 1e-9 <= rule.objective <= result.fun + 3 * spread / n


@pytest.mark.thorough
def test_the_closest_of_goals_that_cannot_be_met():
    problem, measure = posed(0, bounds=[0.0, 0.0, -9.0])
    rule = searched(problem, measure)
    assert not rule.feasible
    assert -rule.slack == pytest.approx(measure(rule.decided).excess.max())
    assert -rule.slack < measure(problem.unconstrained()).excess.max()


@pytest.mark.thorough
def test_rows_that_stand_for_all():
    """Of 60,000 rows, a quarter are searched; goals hold on all."""
    problem, measure = posed(1, n=60_000, n_select=1)
    rule = searched(problem, measure)
    assert rule.feasible
    assert rule.slack < 0.003
    rng = np.random.default_rng(0)
    for x in 10.0 ** rng.uniform(-2, 1, (30, 3)):
        missed, objective = attained_at(problem, measure, x)
        assert missed > 0 or rule.objective <= objective + 0.003
