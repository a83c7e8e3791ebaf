"""The best allocation of ads to rows if each ad must be shown so often, and may be no oftener."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from skbandit.logs import align_rows, plain_labels, read_mask
from skbandit.selection._costs import (
    check_enough_available,
    check_n_select,
    labeled_ads,
    read_cost_matrix,
    to_dense,
)
from skbandit.selection._m_lowest import m_lowest
from skbandit.utils._validation import first_few, refuse_lazy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_SHOWN = 2**53
"""Largest capacity: larger whole numbers are not exact as floats. None stands for no limit."""


MOST_UNITS = 1e6
"""Largest price, in spreads of a row's costs: larger ones would round the costs."""


def cheapest_flow(
    costs: np.ndarray,
    n_select: int,
    capacity: np.ndarray,
    minimum: np.ndarray,
    may_be_empty: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Choose n_select entries per row, and each column as often as it may be, at the lowest cost.

    This is a minimum-cost flow from rows to ads, found by successive shortest paths. Each row
    starts with the entries that are cheapest at approximate prices. Then, ads above what they may
    carry give up one row after the other, and ads below it gain one, each time by the cheapest
    chain of moves between ads. All ads lead to one more node, the sink, by arcs that carry from
    `minimum` to `capacity`: chains through the sink take a row from an ad that can spare it. Only
    differences of costs within a row are compared, so that no tolerance depends on their scale.

    Places stay empty only if nothing else helps, so as few as possible do: when all other chains
    are exhausted, each chain has one row that gives up an ad for none. No shortest chain fills such
    a place again.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        inf where an entry may not be chosen. Rows with fewer than n_select finite ones get all.
    n_select : int
        Entries per row.
    capacity, minimum : ndarray of shape (K,)
        Whole numbers; capacities may be inf.
    may_be_empty : bool, default=False
        Whether rows may have fewer entries.

    Returns
    -------
    chosen : ndarray of bool, shape (n, K)
        The chosen entries.
    conflict : ndarray of bool, shape (K,), or None
        If no choice is possible: columns that `chosen` has more often than their capacities
        allow, while the rows that hold one of them have all their other entries, too; or columns
        that it has less often than their minimum, while each row has as many of them as it can.
    """
    n, n_ads = costs.shape
    chosen, count = _cheapest(costs, n_select)
    if ((minimum <= count) & (count <= capacity)).all():
        return chosen, None
    prices = _prices(costs, n_select, capacity, minimum)
    chosen, count = _cheapest(costs + prices, n_select)
    carried = np.where(prices > 0, capacity, np.where(prices < 0, minimum, count))
    carried = np.append(carried.clip(minimum, capacity), 0.0)
    if may_be_empty:  # by moves to a column that no row ever holds
        costs = np.column_stack([costs, np.zeros(n)])
        chosen = np.column_stack([chosen, np.zeros(n, dtype=bool)])
    moves = _Moves(costs, chosen, n_ads)
    excess = np.append(count - carried[:-1], (carried[:-1] - count).sum())
    graph = np.full((n_ads + 1, n_ads + 1), np.inf)  # the last node is the sink
    exhausted = False
    while excess.any():
        graph[:-1, :-1] = moves.cost[:n_ads, :n_ads]
        graph[:-1, -1] = np.where(carried[:-1] < capacity, 0.0, np.inf)
        graph[-1, :-1] = np.where(carried[:-1] > minimum, 0.0, np.inf)
        if exhausted:
            path = _path_that_empties(graph, moves.cost[:n_ads, n_ads], excess)
        else:
            path = _shortest_path(graph, excess > 0, excess < 0)
        if path is not None:
            into_sink, out_of_sink = moves.make(path)
            carried[into_sink] += 1
            carried[out_of_sink] -= 1
            excess[path[0] % (n_ads + 1)] -= 1
            excess[path[-1] % (n_ads + 1)] += 1
        elif may_be_empty and not exhausted:
            exhausted = True
        else:
            graph[:-1, -1] = np.where(exhausted, 0.0, graph[:-1, -1])
            edges = graph < np.inf
            # ads that cannot give up a row, or else those that cannot gain one
            conflict = _reachable(edges.T, int(excess.argmin()))
            for crowded in np.flatnonzero(excess[:-1] > 0)[::-1]:
                reached = _reachable(edges, int(crowded))
                conflict = conflict if reached[-1] else reached
            return chosen[:, :n_ads], conflict[:-1]
    return chosen[:, :n_ads], None


def _cheapest(costs: np.ndarray, n_select: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose the n_select lowest entries per row, as a mask, and count them per column."""
    best = m_lowest(costs.copy(), n_select)
    chosen = np.zeros(costs.shape, dtype=bool)
    chosen[np.nonzero(best >= 0)[0], best[best >= 0]] = True
    return chosen, chosen.sum(axis=0)


def _prices(
    costs: np.ndarray, n_select: int, capacity: np.ndarray, minimum: np.ndarray
) -> np.ndarray:
    """Approximate the prices per ad at which cheapest choices keep to the bounds, (K,).

    They maximize the concave dual: the sum of the n_select lowest of costs + prices per row, less
    capacities times positive prices, plus minima times the others. Whatever they are, the cheapest
    choices at these prices are a flow without a cycle of negative cost; close to the optimum, few
    rows are left to move.
    """
    n_ads = len(capacity)
    is_open = costs < np.inf
    spread = np.where(is_open, costs, -np.inf).max(axis=1) - costs.min(axis=1)
    unit = np.median(spread[spread > 0]) if (spread > 0).any() else 1.0
    upper = np.concatenate([capacity < np.inf, minimum > 0])
    bounds = np.concatenate([-np.where(capacity < np.inf, capacity, 0.0), minimum])

    def negative_dual(x: np.ndarray) -> tuple[float, np.ndarray]:
        priced = costs + (x[:n_ads] - x[n_ads:]) * unit
        chosen, count = _cheapest(priced, n_select)
        value = priced[chosen].sum() / unit + bounds @ x
        return -value, -np.concatenate([count, -count]) - bounds

    limits = [(0.0, MOST_UNITS if is_bounded else 0.0) for is_bounded in upper]
    options = {"maxiter": 100, "maxfun": 150}
    x = minimize(negative_dual, np.zeros(2 * n_ads), jac=True, bounds=limits, options=options).x
    return (x[:n_ads] - x[n_ads:]) * unit


def _path_that_empties(
    graph: np.ndarray, giving_up: np.ndarray, excess: np.ndarray
) -> list[int] | None:
    """Return the shortest path on which one row gives up an ad, which leads to the sink.

    Its nodes are those of a copy of the graph before the row, and of another one after it. In a
    single graph, cycles with such an arc would shorten the path, though they empty a place more.
    """
    blank = np.full_like(graph, np.inf)
    between = blank.copy()
    between[:-1, -1] = giving_up
    none = np.zeros(len(graph), dtype=bool)
    return _shortest_path(
        np.block([[graph, between], [blank, graph]]),
        np.concatenate([excess > 0, none]),
        np.concatenate([none, excess < 0]),
    )


class _Moves:
    """The cheapest move of a row from each ad to each other one.

    A queue per pair of ads holds the rows that may move by cost: an array, sorted once, and a heap
    of rows that came later. Rows that may no longer move are skipped when their turn comes, so that
    n moves take n log n time.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        inf where an entry may not be chosen.
    chosen : ndarray of bool, shape (n, K)
        The current choice, which `make` changes.
    n_held : int
        Number of columns that rows hold. Who moves to one of the others holds an entry less.
    """

    def __init__(self, costs: np.ndarray, chosen: np.ndarray, n_held: int) -> None:
        self.costs, self.chosen, self._n_held = costs, chosen, n_held
        n_ads = costs.shape[1]
        self.cost = np.full((n_ads, n_ads), np.inf)
        self.row = np.full((n_ads, n_ads), -1)
        # costs of moving from each ad to each other one, ascending, and the rows that move, (r, K)
        self._first: list[tuple[np.ndarray, np.ndarray]] = []
        for ad in range(n_ads):
            rows = np.flatnonzero(chosen[:, ad])
            cost = np.where(chosen[rows], np.inf, costs[rows] - costs[rows, ad, None])
            order = cost.argsort(axis=0, kind="stable")
            self._first.append((np.take_along_axis(cost, order, axis=0), rows[order]))
        self._next = [[0] * n_ads for _ in range(n_ads)]
        self._later: list[list[list[tuple[float, int]]]] = [
            [[] for _ in range(n_ads)] for _ in range(n_ads)
        ]
        for ad in range(n_ads):
            for other in range(n_ads):
                self._renew(ad, other)

    def make(self, path: list[int]) -> tuple[list[int], list[int]]:
        """Move a row along each edge of a path that joins two ads.

        The sink is node `n_held`. Nodes from `n_held` + 1 on are those of the second copy; the edge
        to its sink from the first copy is a move to the column of that number. Returned are the ads
        before and after the sink, where the path goes through it.
        """
        sink, n_nodes = self._n_held, self._n_held + 1
        edges, into_sink, out_of_sink = [], [], []
        for start, end in pairwise(path):
            ad, other = start % n_nodes, end % n_nodes
            if ad == sink:
                out_of_sink.append(other)
            elif other == sink and start // n_nodes == end // n_nodes:
                into_sink.append(ad)
            else:
                edges.append((ad, other))
        if not edges:
            return into_sink, out_of_sink
        ads, others = np.array(edges).T
        rows = self.row[ads, others]
        self.chosen[rows, ads] = False
        self.chosen[rows, others] = True
        self.chosen[rows, self._n_held :] = False
        stale = np.argwhere((self.row[..., None] == rows).any(axis=2)).tolist()
        for row, (left, gained) in zip(rows.tolist(), edges, strict=True):
            held = self.chosen[row]
            for ad in np.flatnonzero(held).tolist():
                others = np.flatnonzero(~held) if ad == gained else np.array([left])
                cost = self.costs[row, others] - self.costs[row, ad]
                for other, change in zip(others.tolist(), cost.tolist(), strict=True):
                    heappush(self._later[ad][other], (change, row))
                first = cost < self.cost[ad, others]
                self.cost[ad, others[first]], self.row[ad, others[first]] = cost[first], row
        for ad, other in stale:
            self._renew(ad, other)
        return into_sink, out_of_sink

    def _renew(self, ad: int, other: int) -> None:
        """Find the cheapest move from an ad to another one."""
        held, holds_other = self.chosen[:, ad], self.chosen[:, other]
        (cost, row), at, later = self._first[ad], self._next[ad][other], self._later[ad][other]
        while at < len(row) and (not held[row[at, other]] or holds_other[row[at, other]]):
            at += 1
        self._next[ad][other] = at
        while later and (not held[later[0][1]] or holds_other[later[0][1]]):
            heappop(later)
        best = (cost[at, other], row[at, other]) if at < len(row) else (np.inf, -1)
        self.cost[ad, other], self.row[ad, other] = min(best, later[0]) if later else best


def _shortest_path(cost: np.ndarray, start: np.ndarray, end: np.ndarray) -> list[int] | None:
    """Positions on the shortest path from any start to any end (Bellman-Ford), None without one."""
    every = np.arange(len(cost))
    length = np.where(start, 0.0, np.inf)
    before: list[np.ndarray] = []
    while len(before) < len(cost):
        through = length[:, None] + cost
        best = through.argmin(axis=0)
        shorter = through[best, every]
        better = shorter < length
        if not better.any():
            break
        length = np.where(better, shorter, length)
        before.append(np.where(better, best, every))
    ends = np.where(end, length, np.inf)
    path = [int(ends.argmin())]
    if ends[path[0]] == np.inf:
        return None
    for previous in reversed(before):
        ad = int(previous[path[-1]])
        if ad in path:  # waiting, or a cycle whose length of 0 was rounded below it
            del path[path.index(ad) + 1 :]
        else:
            path.append(ad)
    return path[::-1]


def _reachable(edges: np.ndarray, start: int) -> np.ndarray:
    """Mask of the positions that edges, bool (K, K), lead to from a start, which is one of them."""
    nodes = breadth_first_order(csr_array(edges), start, return_predecessors=False)
    return np.isin(np.arange(len(edges)), nodes)


def assign(
    costs: ArrayLike,
    capacity: Any = None,
    *,
    n_select: int | None = None,
    available: Any = None,
    minimum: Any = None,
    fill: Any = None,
) -> np.ndarray:
    """Allocate ads to rows at the lowest total cost, with a capacity and a minimum per ad.

    Parameters
    ----------
    costs : array-like or DataFrame of shape (n_samples, n_ads)
        Cost of each ad in each row, as from `predict_costs`; lower is better, and inf is not
        available. The columns of a DataFrame name the ads; otherwise they are 0, 1, ...
    capacity : int, array-like of shape (n_ads,), dict or Series of label to int, default=None
        Number of rows that may show each ad. One number holds for each ad; ads that a dict or
        Series does not name have no limit, nor have those with None or inf.
    n_select : int, default=None
        Number of different ads per row. If None, the `n_select` of the selector whose
        `predict_costs` returned the DataFrame `costs`, as ``costs.attrs["n_select"]``; otherwise 1.
    available : array-like, table or collection of labels, default=None
        Which ads may be shown: a boolean table, dense or sparse, with columns in the order of
        `costs` or, for a DataFrame, matched by label; a collection of labels per row; or one for
        all rows. None means all.
    minimum : int, array-like of shape (n_ads,), dict or Series of label to int, default=None
        Number of rows that must show each ad. One number holds for each ad; ads that a dict or
        Series does not name have no minimum, nor have those with None or 0.
    fill : label, default=None
        Marker for places without an ad, where capacities or available ads do not suffice. As few
        places as possible stay empty, and then the total cost is the lowest. With None, too few
        ads are an error.

    Returns
    -------
    ndarray of shape (n_samples, n_select)
        Labels of ads, cheapest first, without duplicates in a row; then `fill`.

    Raises
    ------
    ValueError
        If a minimum cannot be met, a capacity is nan, a cost is nan or -inf, or, with `fill` None,
        the capacities do not suffice or a row has too few available ads.

    See Also
    --------
    skbandit.RegressionSetSelector : Predicts costs; its `predict` chooses without capacities.

    Notes
    -----
    The allocation is exact at every scale of costs, up to the rounding of sums of a row's
    differences: a minimum-cost flow, found by successive shortest paths. A row of much larger costs
    does not blur the choice among the others. Rows are chosen one by one if that already keeps to
    capacities and minima. Otherwise, 3,000 rows of 50 ads take about half a second, and 50,000
    rows of 20 ads two.

    With `fill`, an ad is shown even if its cost is positive. To leave such places empty, make these
    ads unavailable: ``assign(costs, capacity, available=costs < 0, fill="none")``.

    All rows must be known at once, such as the emails of a day. Requests that arrive one at a time
    need an online method instead.

    Examples
    --------
    >>> import numpy as np
    >>> from skbandit.selection import assign
    >>> costs = np.array([[-5.0, -4.0], [-5.0, -1.0], [-3.0, 0.0]])
    >>> assign(costs)
    array([[0],
           [0],
           [0]])
    >>> assign(costs, capacity=2)  # the first row gives way: it loses least
    array([[1],
           [0],
           [0]])
    >>> assign(costs, capacity={0: 1})
    array([[1],
           [0],
           [1]])
    >>> assign(costs, minimum={1: 2})
    array([[1],
           [0],
           [1]])
    >>> assign(costs, capacity=1, fill=-1)  # the second row would gain least
    array([[...],
           [...],
           [...]])
    """
    refuse_lazy({"costs": costs, "available": available}, ". All rows must be known at once")
    table = read_cost_matrix(costs, name="costs", absent=np.inf)
    values = np.array(table.dense(), dtype=float)
    n, n_ads = values.shape
    if n_select is None:
        n_select = int(getattr(costs, "attrs", {}).get("n_select", 1))
    check_n_select(n_select, n_ads)
    allowed = read_mask(align_rows(available, costs), table.ads, n)
    mask = np.ones(values.shape, dtype=bool) if allowed is None else to_dense(allowed[slice(n)])
    mask = mask & (values != np.inf)
    unknown = np.argwhere(np.isnan(values) & mask)
    if len(unknown):
        row, ad = unknown[0]
        raise ValueError(
            f"costs: the cost of ad {table.ads.tolist()[ad]!r} in row {row} is nan: predict it, or "
            "take the ad out by available=, or by the cost inf."
        )
    if fill is None:
        check_enough_available(mask, n_select)
    limits = _read_counts(capacity, table.ads, "capacity", np.inf)
    wanted = _read_counts(minimum, table.ads, "minimum", 0.0)
    labels = table.ads.tolist()
    for ad in np.flatnonzero(wanted > limits):
        raise ValueError(
            f"minimum of ad {labels[ad]!r} is {wanted[ad]:,.0f}, but its capacity is "
            f"{limits[ad]:,.0f}: lower the minimum, or raise the capacity."
        )
    values[~mask] = np.inf
    places, needed = np.minimum(limits, mask.sum(axis=0)).sum(), n * n_select
    if fill is None and places < needed:
        raise ValueError(
            f"The capacities allow too few places for {n} rows of {n_select} ads: ads could be "
            f"shown {int(places):,} times at most, {needed:,} are needed, each ad once a row and "
            "where it is available. Raise capacity, choose fewer ads, or mark the missing ones "
            "(fill=)."
        )
    chosen, conflict = cheapest_flow(
        values, n_select, limits, wanted, may_be_empty=fill is not None
    )
    if conflict is not None:
        raise ValueError(_conflict_message(chosen, conflict, limits, wanted, table.ads))
    return labeled_ads(m_lowest(np.where(chosen, values, np.inf), n_select), table.ads, fill)


def _conflict_message(
    chosen: np.ndarray,
    conflict: np.ndarray,
    capacity: np.ndarray,
    minimum: np.ndarray,
    ads: np.ndarray,
) -> str:
    """Say how often the ads that `cheapest_flow` found in conflict can be shown."""
    held = chosen[:, conflict]
    if (held.sum(axis=0) > capacity[conflict]).any():
        return (
            f"The capacities allow too few places: rows {first_few(np.flatnonzero(held.any(1)))} "
            f"need the ads {first_few(ads[conflict])} {held.sum():,} times, since no others are "
            f"available to them, but these may be shown {int(capacity[conflict].sum()):,} times. "
            "Raise their capacity, make other ads available to these rows, choose fewer ads, or "
            "mark the missing ones (fill=)."
        )
    wanted, names = int(minimum[conflict].sum()), first_few(ads[conflict])
    which = f"the ads {names} is {wanted:,} in total, but they"
    if conflict.sum() == 1:
        which = f"ad {names} is {wanted:,}, but it"
    return (
        f"minimum of {which} can be shown {held.sum():,} times at most, each ad once a row and "
        "where it is available. Lower the minimum, or make more ads available to more rows."
    )


def _read_counts(counts: Any, ads: np.ndarray, name: str, absent: float) -> np.ndarray:
    """Numbers of rows in the order of `ads`, `absent` where there is no bound."""
    labels = ads.tolist()
    if hasattr(counts, "items") and getattr(counts, "ndim", 1) == 1:
        by_label = {plain_labels([label])[0]: number for label, number in counts.items()}
        if len(by_label) < len(counts):
            raise ValueError(f"{name} names an ad twice: give each label one {name}.")
        unknown = [label for label in by_label if label not in set(labels)]
        if unknown:
            raise ValueError(f"{name} names {unknown[0]!r}, which costs has no column for.")
        counts = [by_label.get(label) for label in labels]
    elif np.ndim(counts) == 0:
        counts = [np.asarray(counts, dtype=object).item()] * len(ads)
    elif np.shape(counts) != (len(ads),):
        raise ValueError(
            f"{name} has shape {np.shape(counts)}, but there are {len(ads)} ads: pass one number "
            "per ad, such as a Series with the labels of the ads, or a dict."
        )
    numbers = np.full(len(ads), absent)
    for k, number in enumerate(counts):
        is_number = isinstance(number, Number) and not isinstance(number, complex)
        if number is None or (is_number and number == absent):
            continue
        if not (is_number and 0 <= number <= MAX_SHOWN and number % 1 == 0):
            raise ValueError(
                f"{name} of ad {labels[k]!r} is {first_few([number])}: give a whole number of "
                f"rows, or {absent:g} or None for no {name}."
            )
        numbers[k] = float(number)
    return numbers
