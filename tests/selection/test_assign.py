"""Assignments of ads to rows and of ads to positions."""

from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import clone

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.datasets import make_set_selection
from skbandit.selection import PopularitySetSelector, assign
from skbandit.selection._assign import cheapest_flow
from skbandit.selection._costs import read_position_weights
from tests.tiers import first
from tests.worlds import refuses

# === Allocation under capacities and minima: the optimum of brute force, and what is refused ====


def cheapest(costs, capacity, m, mask):
    """The lowest total cost over all allocations; None if there is none."""
    sets = [[s for s in combinations(range(costs.shape[1]), m) if there[list(s)].all()]
            for there in mask]  # fmt: skip
    best = None
    for allocation in product(*sets):
        count = np.bincount(np.ravel(allocation).astype(int), minlength=costs.shape[1])
        if (count <= capacity).all():
            total = sum(costs[i, list(s)].sum() for i, s in enumerate(allocation))
            best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize("seed", first(6, range(16)))
def test_assign_is_the_optimum_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    n, n_ads = rng.integers(1, 5), rng.integers(2, 5)
    m = rng.integers(1, n_ads)
    costs = rng.integers(-4, 4, size=(n, n_ads)) + 0.5 * rng.integers(2, size=(n, n_ads))
    capacity = rng.integers(0, n + 1, size=n_ads)
    mask = rng.random((n, n_ads)) < 0.9
    expected = cheapest(costs, capacity, m, mask)
    call = partial(assign, costs, capacity, n_select=m, available=mask)
    if expected is None:
        refuses(r"too few places|available ads", call)
        return
    chosen = call()
    assert (np.bincount(chosen.ravel(), minlength=n_ads) <= capacity).all()
    assert all(len(set(row)) == m for row in chosen.tolist())
    assert (np.take_along_axis(mask, chosen, axis=1)).all()
    paid = np.take_along_axis(costs, chosen, axis=1)
    assert (np.diff(paid, axis=1) >= 0).all()
    assert paid.sum() == pytest.approx(expected)


def best_by_highs(costs, capacity, m, minimum=0, full=True):
    """The largest number of places (n * m if full), and the lowest cost of as many; None without.

    By linear programming, which has an integral optimum.
    """
    n, n_ads = costs.shape
    allowed = np.isfinite(costs)
    shown, rows = np.kron(np.ones(n), np.eye(n_ads)), np.kron(np.eye(n), np.ones(n_ads))
    bounds = np.stack([np.zeros(n * n_ads), allowed.ravel()], axis=1)
    limits = np.concatenate(
        [np.minimum(capacity, n) * np.ones(n_ads), -np.broadcast_to(minimum, n_ads)]
    )
    within = [np.concatenate([shown, -shown, rows]), np.append(limits, np.full(n, m))]
    number = n * m
    if not full:
        most = linprog(-np.ones(n * n_ads), *within, bounds=bounds)
        if not most.success:
            return None
        number = round(-most.fun)
    every = np.ones((1, n * n_ads))
    found = linprog(np.where(allowed, costs, 0.0).ravel(), *within, every, number, bounds)
    return (number, found.fun) if found.success else None


@pytest.mark.parametrize("seed", first(2, range(10)))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_optimum_where_rows_make_room_in_chains(m, seed):
    """Rows see a few neighboring ads, and capacities leave no place free, so paths are long."""
    rng = np.random.default_rng([m, seed])
    n, n_ads = 11, 7
    for k in range(20):
        width = rng.integers(m + 1, m + 3, size=n)
        start = np.minimum(rng.integers(n_ads - 1, size=n), n_ads - width)
        ads = np.arange(n_ads)
        available = (ads >= start[:, None]) & (ads < (start + width)[:, None])
        costs = 3.0 * rng.permutation(n_ads) + rng.integers(-5, 6, size=(n, n_ads))
        shown = [rng.permutation(np.flatnonzero(row))[:m] for row in available]
        capacity = np.bincount(np.concatenate(shown), minlength=n_ads)
        capacity = capacity if k % 4 else rng.permutation(capacity)
        costs[~available] = np.inf
        expected = best_by_highs(costs, capacity, m)
        assert expected is not None or k % 4 == 0
        chosen, crowded = cheapest_flow(costs, m, capacity, np.zeros(n_ads))
        assert (crowded is None) == (expected is not None)
        if expected is not None:
            assert costs[chosen].sum() == pytest.approx(expected[1])
            assert (chosen.sum(axis=1) == m).all() and (chosen.sum(axis=0) <= capacity).all()
            continue
        rows = chosen[:, crowded].any(axis=1)  # which Hall's condition shows to be too many
        elsewhere = (available & ~crowded)[rows].sum(axis=1)
        assert (m - elsewhere).sum() > capacity[crowded].sum()
        refuses("The capacities allow too few places", assign, costs, capacity, n_select=m)


def random_problem(rng):
    """Few rows and ads with ties, absent ads, capacities and minima, in about half feasible."""
    n, n_ads = rng.integers(1, 9), rng.integers(2, 6)
    m = rng.integers(1, n_ads)
    costs = rng.integers(-4, 4, size=(n, n_ads)) + rng.integers(3) * rng.normal(size=(n, n_ads))
    costs[rng.random((n, n_ads)) < rng.choice([0.0, 0.3])] = np.inf
    minimum = rng.integers(0, max(2, n * m // n_ads + 1), size=n_ads)
    minimum[rng.random(n_ads) < 0.5] = 0
    capacity = minimum + rng.integers(0, n // 2 + 2, size=n_ads).astype(float)
    capacity[rng.random(n_ads) < 0.3] = np.inf
    return costs, capacity, m, minimum


@pytest.mark.parametrize("seed", first(3, range(12)))
@pytest.mark.parametrize("fill", [None, "none"])
def test_minimum_and_fill_are_the_optimum_of_highs(fill, seed):
    rng = np.random.default_rng(seed)
    feasible = 0
    for _ in range(15):
        costs, capacity, m, minimum = random_problem(rng)
        expected = best_by_highs(costs, capacity, m, minimum, full=fill is None)
        call = partial(assign, costs, capacity, n_select=m, minimum=minimum, fill=fill)
        if expected is None:
            refuses(r"minimum of|too few places|available ads", call)
            continue
        feasible += 1
        shown = call()
        assert shown.shape == (len(costs), m)
        chosen = (shown[..., None] == np.arange(costs.shape[1])).any(axis=1)
        count = chosen.sum(axis=0)
        assert ((minimum <= count) & (count <= capacity)).all()
        assert (count.sum(), costs[chosen].sum()) == pytest.approx(expected)
        assert (shown == fill).sum() == shown.size - count.sum()
        if fill is not None:  # after the ads
            assert (np.diff((shown == fill).astype(int), axis=1) >= 0).all()
    assert feasible


@pytest.mark.parametrize("seed", first(3, range(12)))
def test_the_attainable_minimum_of_an_ad_is_named_and_can_be_met(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        costs, capacity, m, _ = random_problem(rng)
        capacity[0] = np.inf
        attainable = np.isfinite(costs[:, 0]).sum()
        call = partial(assign, costs, capacity, n_select=m, fill=-1)
        message = f"ad 0 is {attainable + 1}, .* {attainable} times at most"
        refuses(message, call, minimum={0: attainable + 1})
        assert (call(minimum={0: attainable}) == 0).sum() == attainable


HERE = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minimum": 2}, r"ads 'a', 'b', 'c' is 6 in total, .* 4 times at most"),
        (
            {"minimum": {"a": 2, "b": 1}, "available": HERE},
            r"the ads 'a', 'b' is 3 in total, .* 2 times at most",
        ),
        ({"capacity": 2, "minimum": {"b": 3}}, "minimum of ad 'b' is 3, but its capacity is 2"),
    ],
)
def test_minima_that_compete_are_named(options, message):
    costs = pd.DataFrame(np.zeros((4, 3)), columns=list("abc"))
    refuses(message, assign, costs, **options)


def test_fill_keeps_the_types_of_labels():
    """As in `predict`: integers stay integers, and an ad's own label is refused."""
    costs = np.array([[1.0, 2.0], [3.0, np.inf]])
    assert assign(costs, n_select=2, fill=-1).tolist() == [[0, 1], [0, -1]]
    assert assign(costs, n_select=2, fill=-1).dtype.kind == "i"
    shown = assign(pd.DataFrame(costs, columns=["a", "b"]), {"a": 1}, fill="none")
    assert shown.ravel().tolist() == ["b", "a"]  # for a place each, though dearer
    refuses("fill=1 is the label of an ad", assign, costs, fill=1)
    only_gains = assign(costs - 2.5, 1, available=costs < 2.5, fill=-1)
    assert only_gains.ravel().tolist() == [0, -1]


def test_rows_that_compete_for_an_ad_are_named():
    costs = pd.DataFrame(np.zeros((3, 3)), columns=list("abc"))
    available = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1]], dtype=bool)
    message = r"rows 0, 1 need the ads 'a' 2 times, .* shown 1 times"
    refuses(message, assign, costs, 1, available=available)
    two = np.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1]], dtype=bool)
    message = r"rows 0, 1 need the ads 1 2 times, .* shown 1 times"
    refuses(message, assign, np.zeros((3, 5)), [9, 1, 9, 9, 9], n_select=2, available=two)


@pytest.mark.parametrize("form", [np.asarray, np.float32, pd.DataFrame, sp.csr_array])
def test_infinite_costs_are_not_available(form):
    costs = form(np.array([[np.inf, 1.0], [-1.0, 0.0], [-2.0, np.inf]]))
    assert assign(costs, 2).ravel().tolist() == [1, 0, 0]
    assert assign(costs, [1, 2]).ravel().tolist() == [1, 1, 0]
    refuses("Row 0 has 1 available ads, but n_select is 2", assign, costs, n_select=2)


@pytest.mark.parametrize("form", [np.asarray, np.float32, pd.DataFrame, sp.csr_array])
@pytest.mark.parametrize(
    ("cost", "message"),
    [(-np.inf, "costs contains -inf in row 0"), (np.nan, "costs: .* in row 0 is nan")],
)
def test_assign_refuses_costs(form, cost, message):
    refuses(message, assign, form(np.array([[1.0, cost]])))


def test_assign_refuses_costs_whose_squares_overflow():
    refuses("costs contains 1e\\+200 in row 0", assign, [[1e200, 0.0]])


def with_mixed_scales(kind, rng):
    """Costs of which some are larger than others by more than the precision of a float."""
    costs = rng.normal(size=(4, 4)) + rng.normal(size=4)
    if kind == "scale per row":
        return costs * 10.0 ** rng.integers(-12, 13, size=(4, 1))
    if kind == "outlier":
        return costs * np.array([[1e12], [1e-12], [1e-12], [1e-12]])
    return np.where(rng.random((4, 4)) < 0.3, 1e9, 1e-9 * costs)  # "forbidden" by a penalty


@pytest.mark.parametrize("seed", first(2, range(10)))
@pytest.mark.parametrize("kind", ["scale per row", "outlier", "penalty"])
def test_the_optimum_where_scales_mix(kind, seed):
    """The total in exact arithmetic, in which small costs count beside large ones."""
    rng = np.random.default_rng(seed)
    costs = with_mixed_scales(kind, rng)
    exact = np.array([[Fraction(cost) for cost in row] for row in costs.tolist()])
    capacity = rng.integers(1, 4, size=4)
    chosen = assign(costs, capacity)
    paid = np.take_along_axis(exact, chosen, axis=1).sum()
    assert paid == cheapest(exact, capacity, 1, np.ones((4, 4), dtype=bool))


def test_predicted_costs_have_the_labels_that_assign_takes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 2)), index=[f"u{k}" for k in range(50)])
    numbers = np.column_stack([X[0], X[1], -X[0]])
    y = pd.DataFrame(numbers, X.index, ["x", "y", "z"])
    selector = RegressionSetSelector(n_select=2).fit(X, y)
    costs = selector.predict_costs(X)
    assert costs.columns.tolist() == ["x", "y", "z"]
    assert costs.index.equals(X.index)
    np.testing.assert_array_equal(selector.decision_function(X), -costs.to_numpy())
    for capacity in (None, 50, {}, {"y": 50}, pd.Series({"z": 50})):  # none of them binds
        np.testing.assert_array_equal(assign(costs, capacity, n_select=2), selector.predict(X))
    assert assign(costs, 50).shape == (50, 2)  # as the selector
    reordered = pd.DataFrame(True, X.index[::-1], ["x", "y", "z"])
    shown = assign(costs, {"x": 5}, n_select=1, available=reordered)
    assert (shown == "x").sum() == 5
    unnamed = RegressionSetSelector().fit(X, numbers).predict_costs(X)
    assert type(unnamed) is np.ndarray
    np.testing.assert_array_equal(unnamed, costs)


XYZ = pd.DataFrame([[-3.0, -2.0, 0.0], [-3.0, -1.0, 0.5]], columns=["x", "y", "z"])


@pytest.mark.parametrize(
    ("costs", "capacity", "options", "shown"),
    [
        (XYZ, {"x": 1}, {}, ["y", "x"]),
        (XYZ, pd.Series({"x": 0, "z": 1}), {}, ["y", "y"]),
        (XYZ, {"x": 1, "y": None}, {"available": ["x", "z"]}, ["z", "x"]),
        (XYZ + np.array([[0.0], [100.0]]), {"x": 1}, {}, ["y", "x"]),  # a row's level is no matter
        (sp.csr_array(XYZ.to_numpy()), [1, 2, 2], {}, [1, 0]),
        (np.array([[1.0, np.nan]]), None, {"available": [0]}, [0]),
    ],
)
def test_assign_by_hand(costs, capacity, options, shown):
    assert assign(costs, capacity, **options).ravel().tolist() == shown


TABLE = pd.DataFrame({"n": [1, 1, 1]})


@pytest.mark.parametrize(
    ("capacity", "options", "message"),
    [
        (-1, {}, "capacity of ad 0 is -1"),
        ([1, 1.5, 1], {}, "capacity of ad 1 is 1.5"),
        ([1, 1], {}, r"capacity has shape \(2,\), but there are 3 ads: .* Series"),
        ({0: "1"}, {}, "capacity of ad 0 is '1': give a whole number of rows"),
        ({0: [1]}, {}, r"capacity of ad 0 is \[1\]: give a whole number of rows"),
        (None, {"n_select": True}, "n_select must be an integer, got True"),
        ({"q": 1}, {}, "capacity names 'q'"),
        (TABLE, {}, r"capacity has shape \(3, 1\), .* Series"),
        (pd.Series([1, 2], index=[0, 0]), {}, "capacity names an ad twice"),
        (None, {"minimum": TABLE}, r"minimum has shape \(3, 1\), .* Series"),
        (None, {"minimum": -1}, "minimum of ad 0 is -1"),
        (None, {"minimum": [0, np.inf, 0]}, "minimum of ad 1 is inf"),
        (None, {"minimum": {"q": 1}}, "minimum names 'q'"),
        ([1, 0, 0], {}, "shown 1 times at most, 2 are needed"),
        (None, {"n_select": 4}, "n_select=4 must be"),
        (None, {"available": [[0, 1], []]}, "Row 1 has 0 available ads"),
    ],
)
def test_assign_refuses(capacity, options, message):
    error = (ValueError, TypeError)
    refuses(message, assign, np.zeros((2, 3)), capacity, error=error, **options)


@pytest.mark.parametrize("missing", [np.nan, pd.NA])
@pytest.mark.parametrize("name", ["capacity", "minimum"])
def test_assign_refuses_a_missing_number_of_rows(name, missing):
    costs = pd.DataFrame({"a": [0.0, 0.0], "b": [1.0, 2.0]})
    for counts in ({"a": 1, "b": missing}, pd.Series([1, missing], index=["a", "b"]), [1, missing]):
        refuses(f"{name} of ad 'b' is .*: give a whole number", assign, costs, **{name: counts})


def test_assign_takes_no_limit_in_every_form():
    """The third row gains the most from the only place of a."""
    costs = pd.DataFrame({"a": [0.0, 0.0, 0.0], "b": [1.0, 2.0, 3.0]})
    limits = pd.Series([1, None], index=["a", "b"], dtype=object)
    forms = limits, {"a": 1, "b": None}, [1, None], {"a": Decimal(1)}, [1, np.inf]
    assert assign(costs, capacity=np.array(3)).ravel().tolist() == ["a"] * 3
    for capacity in forms:
        assert assign(costs, capacity=capacity).ravel().tolist() == ["b", "b", "a"]


# === Positions of unequal weight: the best order, its regret, and what `score` counts ===========

EXAMINED = (1.0, 0.5, 0.33)
X, Y, EXPECTED = make_set_selection(400, 4, 7, random_state=0)
SELECTORS = [
    PopularitySetSelector(3),
    RegressionSetSelector(n_select=3),
    SetSelectClassifier(n_select=3),
]


@pytest.mark.parametrize("form", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_score_counts_costs_by_position(selector, form):
    selector = clone(selector).fit(X, Y)
    chosen = selector.predict(X)
    row_weight = np.arange(len(X), dtype=float)
    paid = np.take_along_axis(Y, chosen, axis=1) @ EXAMINED
    expected = -np.average(paid, weights=row_weight)
    found = selector.score(X, form(Y), sample_weight=row_weight, position_weights=EXAMINED)
    np.testing.assert_allclose(found, expected)
    ones = selector.score(X, Y, position_weights=np.ones(4))
    np.testing.assert_allclose(ones, selector.score(X, Y))


def test_positions_of_no_weight_need_no_costs():
    selector = RegressionSetSelector(n_select=2).fit(X, Y)
    chosen = selector.predict(X)
    seen = Y.copy()
    np.put_along_axis(seen, chosen[:, 1:], np.nan, axis=1)
    alone = -np.take_along_axis(Y, chosen[:, :1], axis=1).mean()
    np.testing.assert_allclose(selector.score(X, seen, position_weights=(1, 0)), alone)
    refuses("cost was not observed", selector.score, X, seen, position_weights=(1, 0.1))


def test_costs_missing_as_in_fit_are_estimated_by_position():
    holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    selector = RegressionSetSelector(n_select=3).fit(X, holes)
    found = selector.score(X, holes, position_weights=EXAMINED)
    truth = selector.score(X, Y, position_weights=EXAMINED)
    assert abs(found - truth) < 0.1
    twice = selector.score(X, holes, position_weights=2 * np.array(EXAMINED))
    np.testing.assert_allclose(twice, 2 * found)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0, 0.5), r"shape \(2,\), but n_select=3 positions"),
        ([[1.0, 0.5, 0.2]], r"shape \(1, 3\)"),
        (["a", "b", "c"], "position_weights must be a list of numbers, got"),
        ((1.0, np.nan, 0.2), r"position_weights\[1\] is nan"),
        ((1.0, 0.5, -0.2), r"position_weights\[2\] is -0.2"),
        ((0.5, 1.0, 0.5), r"position_weights\[1\] is 1, .* descend to 0 .* sort them"),
        ((0.0, 0.0, 0.0), r"position_weights\[0\] is 0, .* positive at first"),
    ],
)
def test_impossible_position_weights_are_refused(weights, message):
    refuses(message, read_position_weights, weights, 3)
    for selector in SELECTORS:
        fitted = clone(selector).fit(X, Y)
        refuses(message, fitted.score, X, Y, position_weights=weights)
