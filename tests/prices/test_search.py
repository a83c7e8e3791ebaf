"""The search as measured, against brute force, a linear program, and what must not change it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from skbandit.prices._search import (
    Family,
    Outcomes,
    Search,
    best_rule,
    every_table,
    prove_conflict,
    representatives,
)
from tests.tiers import examples, first


def random_problem(seed, n=60, n_classes=3, n_goals=2, bounds=None):
    """Labels, sharp probabilities, and floors on shares of classes decided rightly."""
    rng = np.random.default_rng(seed)
    D = n_classes
    label = np.append(np.arange(D), rng.integers(0, D, n - D))
    phi = rng.dirichlet(np.ones(D), n) + 0.7 * np.eye(D)[label]
    phi = phi**2 / (phi**2).sum(axis=1, keepdims=True)
    errors = 1.0 - np.eye(D)
    floors = np.zeros((n_goals, D, D))
    floors[np.arange(n_goals), np.arange(n_goals), np.arange(n_goals)] = 1.0
    share = np.bincount(label, minlength=D) / n
    bounds = np.full(n_goals, 0.8) if bounds is None else bounds

    def evaluate(sums):
        excess = bounds[:, None] - sums[1:] / share[:n_goals, None]
        return sums[0], excess

    tables = np.concatenate([[errors], floors])
    weight = np.full(n, 1.0 / n)
    outcomes = Outcomes(label, tables, weight, np.zeros(1 + n_goals), evaluate)
    constants = np.zeros((D, D, D))
    constants[np.arange(D), :, np.arange(D)] = 1.0
    B = np.concatenate([[errors], -floors, constants])
    return Family(phi, B, np.arange(len(B)) > n_goals), outcomes


def starts_of(family, outcomes):
    size = Search(family, outcomes).unit
    plain = np.zeros(len(size))
    plain[0] = 1.0
    return [plain, np.where(family.free, 0.0, size), plain + 3.0 * np.where(family.free, 0.0, size)]


@given(st.integers(0, 10_000))
@examples(20)
def test_a_line_is_searched_exactly(seed):
    """Between breakpoints nothing changes: rules at a fine grid of steps are not better."""
    rng = np.random.default_rng(seed)
    family, outcomes = random_problem(seed, n=25)
    search = Search(family, outcomes)
    theta = np.where(family.free, rng.normal(size=len(family.free)), rng.random(len(family.free)))
    for delta in (rng.normal(size=len(theta)), np.eye(len(theta))[-1], np.eye(len(theta))[1]):
        search.best = None
        found = search.line(theta, delta, family.row_costs(theta))
        free = Search(family, outcomes)
        steps = np.concatenate([-np.geomspace(1e-3, 30, 300), np.geomspace(1e-3, 30, 300)])
        for step in steps:
            moved = theta + step * delta
            if (moved[~family.free] >= 0).all():
                free.at(moved)
        if found is None:
            assert free.best.objective == pytest.approx(free.at(theta).objective)
            continue
        again = Search(family, outcomes).at(found.theta)  # what it reports is what it attains
        assert again.objective == pytest.approx(found.objective, abs=1e-12)
        np.testing.assert_allclose(again.excess, found.excess, atol=1e-12)
        start = free.at(theta)
        best = start if not found.better_than(start) else found
        assert not free.best.better_than(best)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_of_many_points_those_beside_the_best_are_judged(k, monkeypatch):
    """What a line reports is what it attains, and little is lost."""
    family, outcomes = random_problem(k, n=3000, n_classes=5, n_goals=4)
    theta = np.where(family.free, 0.0, Search(family, outcomes).unit)
    delta, cost = np.eye(len(theta))[k] - 0.3 * (k == 0), family.row_costs(theta)
    exact = Search(family, outcomes).line(theta, delta, cost)
    monkeypatch.setattr("skbandit.prices._search.MOST_EVALUATED", 1000)
    near = Search(family, outcomes).line(theta, delta, cost)
    again = Search(family, outcomes).at(near.theta)
    assert again.objective == pytest.approx(near.objective, abs=1e-12)
    np.testing.assert_allclose(again.excess, near.excess, atol=1e-12)
    assert not near.better_than(exact)
    assert near.missed == pytest.approx(exact.missed, abs=0.002)
    assert near.objective == pytest.approx(exact.objective, abs=0.01 if exact.missed else 0.002)


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_no_simple_rule_is_better(seed):
    """Nor 2,000 random ones, the starts, and each constant decision."""
    family, outcomes = random_problem(seed, n=400, n_classes=4)
    starts = starts_of(family, outcomes)
    point, multipliers = best_rule(family, outcomes, starts, 1.0)
    assert (multipliers >= 0).all()
    others = Search(family, outcomes)
    rng = np.random.default_rng(seed)
    D = family.tables.shape[2]
    rules = [*starts, *(-100.0 * np.eye(len(family.free))[-D:])]
    for _ in range(2000):
        theta = 10.0 ** rng.uniform(-2, 1.5, len(family.free)) * others.unit
        rules.append(np.where(family.free, 0.3 * rng.normal() * others.unit, theta))
    for theta in rules:
        others.at(theta)
    assert point.missed <= others.best.missed + 1e-9
    if point.missed == 0:
        assert point.objective <= others.best.objective + 1e-9


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_it_is_near_the_linear_program_if_labels_are_known(seed):
    """Without uncertainty a rule splits no stratum: the optimum is a linear program's."""
    _, outcomes = random_problem(seed, n=300, n_classes=3, bounds=np.array([0.3, 0.95]))
    label, D = outcomes.kind, 3
    rng = np.random.default_rng(seed)
    known = np.eye(D)[label] * 0.98 + 0.02 * rng.dirichlet(np.ones(D), len(label))
    family, _ = random_problem(seed, n=300)
    point, _ = best_rule(Family(known, family.tables, family.free), outcomes,
                         starts_of(family, outcomes), 1.0)  # fmt: skip
    share = np.bincount(label, minlength=D) / len(label)
    costs = (share[:, None] * (1.0 - np.eye(D))).ravel()
    floors = np.zeros((2, D, D))
    floors[[0, 1], [0, 1], [0, 1]] = -1.0
    bound = linprog(costs, floors.reshape(2, -1), [-0.3, -0.95],
                    np.kron(np.eye(D), np.ones(D)), np.ones(D)).fun  # fmt: skip
    assert point.missed == 0
    assert bound - 1e-9 <= point.objective <= bound + 2 / len(label)


def by_trees(family, seed):
    """Probabilities as shares of 20 trees."""
    rng, flat = np.random.default_rng(seed), family.strata**0.6
    trees = [rng.multinomial(20, np.clip(p / p.sum(), 0, 1)) for p in flat]
    return replace(family, strata=np.array(trees) / 20)


@pytest.mark.parametrize(
    ("seed", "floor", "least"), [(2, 0.93, 0.12), (3, 0.93, 0.12), (0, 0.8, 0.092)]
)
def test_coarse_probabilities_do_not_end_the_search(seed, floor, least):
    """Shares of 20 trees: where single moves gain nothing, random changes of several do."""
    family, outcomes = random_problem(seed, n=300, n_classes=5, n_goals=3, bounds=np.full(3, floor))
    coarse = by_trees(family, seed)
    point, _ = best_rule(coarse, outcomes, starts_of(coarse, outcomes), 1.0)
    assert point.missed == 0
    assert point.objective <= least + 1e-9


@pytest.mark.parametrize(("seed", "least"), [(1, 0.0584), (2, 0.0332)])
def test_the_search_goes_on_while_it_gains(seed, least):
    """Goals are missed by no more than after several times as many random changes."""
    family, outcomes = random_problem(seed, n=150, n_classes=4, n_goals=4, bounds=np.full(4, 0.9))
    coarse = by_trees(family, seed)
    point, _ = best_rule(coarse, outcomes, starts_of(coarse, outcomes), 1.0)
    assert point.missed <= least


@pytest.mark.parametrize("seed", range(3))
def test_any_table_where_probabilities_of_classes_are_exchanged(seed):
    family, outcomes = random_problem(seed, 80)
    exchanged = replace(family, strata=family.strata[:, [1, 0, 2]])
    families = {"right": family, "prices": exchanged, "tables": every_table(exchanged)}
    found = {
        name: best_rule(rules, outcomes, [np.zeros(len(rules.tables))], 1.0)[0]
        for name, rules in families.items()
    }
    assert found["right"].missed == 0 < found["prices"].missed
    assert found["tables"].missed == 0
    assert found["tables"].objective <= found["right"].objective + 0.03


def test_copies_of_rows_are_weights():
    family, outcomes = random_problem(3, n=200)
    double = np.repeat(np.arange(200), 2)
    twice = outcomes.rows(double, np.full(400, 1 / 400))
    starts = starts_of(family, outcomes)
    point, _ = best_rule(family, outcomes, starts, 1.0)
    copied, _ = best_rule(family.rows(double), twice, starts, 1.0)
    assert copied.objective == pytest.approx(point.objective, abs=1e-9)
    np.testing.assert_allclose(copied.theta, point.theta, rtol=1e-6, atol=1e-9)


def test_representatives_keep_rare_kinds_and_weights():
    kind = np.repeat([0, 1, 2], [5, 300, 695])
    weight = np.random.default_rng(0).random(1000)
    kept, weights = representatives(kind, weight, 105)
    assert np.bincount(kind[kept]).tolist() == [5, 50, 50]
    np.testing.assert_allclose(
        np.bincount(kind[kept], weights), np.bincount(kind, weight), rtol=1e-12
    )


@given(st.integers(0, 10_000))
@examples(30)
def test_a_proof_is_never_wrong(seed):
    """Exhaustive: where decisions exist that meet all goals, nothing is proven."""
    rng = np.random.default_rng(seed)
    n, D, m = 6, 2, 2
    kind, weight = rng.integers(0, 3, n), rng.random(n)
    table = rng.normal(size=(m, 3, D)).round(1)
    limit = rng.normal(size=m).round(2) - 0.5
    sums = np.array([
        [(weight * table[k, kind, list(decided)]).sum() for k in range(m)]
        for decided in product(range(D), repeat=n)
    ])  # fmt: skip
    exists = (sums <= limit).all(axis=1).any()
    proven = prove_conflict(kind, weight, table, limit)
    assert not (proven and exists)
    low = sums.min(axis=0)
    if (low > limit + 1e-6).any():  # one goal alone is out of reach
        assert proven
