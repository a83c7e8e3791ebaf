"""The m lowest costs: brute force, ties, what may not be taken."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skbandit.selection._costs import read_cost_matrix
from skbandit.selection._m_lowest import (
    _by_partition,
    _by_scan,
    choose_in_blocks,
    m_lowest,
    set_costs,
)

WAYS = {"scan": _by_scan, "partition": _by_partition}


def sorted_columns(costs, m, allowed):
    """The same by sorting everything."""
    usable = costs < np.inf if allowed is None else (costs < np.inf) & allowed
    order = np.argsort(np.where(usable, costs, np.inf), axis=1, kind="stable")[:, :m]
    return np.where(np.take_along_axis(usable, order, axis=1), order, -1)


@st.composite
def problems(draw):
    """Few ads, costs with ties, any availability."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    costs = draw(arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    allowed = draw(arrays(bool, shape))
    return costs, allowed, draw(st.integers(1, shape[1]))


@pytest.mark.parametrize("way", WAYS)
@given(problem=problems())
def test_no_set_is_cheaper(way, problem):
    costs, allowed, m = problem
    chosen = WAYS[way](costs.copy(), m, allowed)
    for row, may, taken in zip(costs, allowed, chosen, strict=True):
        ads = taken[taken >= 0]
        assert len(ads) == min(m, may.sum())
        assert len(set(ads)) == len(ads)  # never twice
        assert may[ads].all()  # never unavailable
        assert (np.diff(row[ads]) >= 0).all()  # best first
        sets = combinations(np.flatnonzero(may), len(ads))
        assert row[ads].sum() == min(row[list(some)].sum() for some in sets)
    np.testing.assert_array_equal(chosen, WAYS[way](costs.copy(), m, allowed))


@pytest.mark.parametrize("way", WAYS)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    m=st.integers(1, 30),
    n_distinct=st.integers(2, 200),
    dtype=st.sampled_from([np.float32, np.float64]),
    finite=st.booleans(),
    masked=st.booleans(),
)
def test_as_if_everything_were_sorted(way, seed, n, m, n_distinct, dtype, finite, masked):
    """Blocks of the scan that are full or not, ties, costs that are not finite."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, n_distinct, size=(5, n)).astype(dtype)
    if not finite:
        costs[rng.random(costs.shape) < 0.1] = np.inf
        costs[rng.random(costs.shape) < 0.1] = np.nan
    allowed = rng.random(costs.shape) < rng.random() if masked else None
    m = min(n, m)
    found = WAYS[way](costs.copy(), m, allowed)
    np.testing.assert_array_equal(found, sorted_columns(costs, m, allowed))


@pytest.mark.parametrize(("n", "m"), [(255, 3), (256, 100), (256, 101), (256, 256), (1, 1)])
def test_both_sides_of_the_rule(n, m):
    costs = np.random.default_rng(0).normal(size=(3, n))
    np.testing.assert_array_equal(m_lowest(costs.copy(), m), sorted_columns(costs, m, None))


@pytest.mark.parametrize("form", [None, np.array, sp.csr_array])
@pytest.mark.parametrize("block_bytes", [1, 500, 2**22])
def test_blocks_of_rows_change_nothing(form, block_bytes):
    rng = np.random.default_rng(0)
    costs, mask = rng.normal(size=(23, 7)), rng.random((23, 7)) < 0.8
    available = None if form is None else form(mask)
    room = np.empty_like(costs)

    def costs_of(rows):  # memory that is used again, as `choose` allows
        np.copyto(room[: len(costs[rows])], costs[rows])
        return room[: len(costs[rows])]

    found = choose_in_blocks(costs_of, costs.shape, 3, available, block_bytes)
    np.testing.assert_array_equal(found, sorted_columns(costs, 3, form and mask))


@pytest.mark.parametrize("form", [np.array, sp.csc_array])
def test_set_costs(form):
    y = np.array([[1.0, 0.0, -2.0], [np.nan, 3.0, 0.5]])
    found = set_costs(read_cost_matrix(form(y)), np.array([[2, 1], [1, 0]]))
    np.testing.assert_array_equal(found, [-2.0, np.nan])
