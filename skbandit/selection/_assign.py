"""The best allocation of ads to rows when each ad can be shown only so often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from skbandit.logs import read_mask
from skbandit.selection._costs import check_n_select, count_available, dense_rows, read_costs
from skbandit.selection._m_lowest import lowest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_SHOWN = 2**53
"""Largest capacity: larger whole numbers are not exact as floats. None stands for no limit."""


def cheapest_flow(costs: np.ndarray, capacity: np.ndarray, n_select: int) -> np.ndarray | None:
    """Choose n_select entries per row and at most capacity_a per column at the lowest total cost.

    This is a minimum-cost flow from rows to ads. Its constraint matrix is totally unimodular, so
    that a vertex of the linear program, as the dual simplex method returns it, is a whole solution.

    Parameters
    ----------
    costs : ndarray of shape (n, K)
        inf where an entry may not be chosen.
    capacity : ndarray of shape (K,)
        Whole numbers, or inf.
    n_select : int
        Entries per row.

    Returns
    -------
    ndarray of bool, shape (n, K), or None
        The chosen entries; None if no choice is possible.
    """
    n, n_ads = costs.shape
    row, ad = np.nonzero(np.isfinite(costs))
    entry = np.arange(len(row))
    one = np.ones(len(row))
    limited = np.flatnonzero(np.isfinite(capacity))
    position = np.full(n_ads, -1)
    position[limited] = np.arange(len(limited))
    counted = position[ad] >= 0
    if not len(row):
        return None
    result = linprog(
        costs[row, ad],
        A_ub=sp.csr_array(
            (one[counted], (position[ad[counted]], entry[counted])), (len(limited), len(row))
        ),
        b_ub=capacity[limited],
        A_eq=sp.csr_array((one, (row, entry)), (n, len(row))),
        b_eq=np.full(n, float(n_select)),
        bounds=(0.0, 1.0),
        method="highs-ds",
    )
    if result.status == 2:
        return None
    if not result.success:
        raise RuntimeError(f"The allocation was not found: {result.message}")
    chosen = np.zeros(costs.shape, dtype=bool)
    chosen[row, ad] = result.x > 0.5
    return chosen


def assign(
    costs: ArrayLike,
    capacity: Any = None,
    *,
    n_select: int = 1,
    available: Any = None,
) -> np.ndarray:
    """Allocate ads to rows at the lowest total cost, with a capacity per ad.

    Parameters
    ----------
    costs : array-like or DataFrame of shape (n_samples, n_ads)
        Cost of each ad in each row, as from `predict_costs`; lower is better. The columns of a
        DataFrame name the ads; otherwise they are 0, 1, ...
    capacity : int, array-like of shape (n_ads,), dict or Series of label to int, default=None
        Number of rows that may show each ad. One number holds for each ad; ads that a dict or
        Series does not name have no limit, nor have those with None, nan or inf.
    n_select : int, default=1
        Number of different ads per row.
    available : array-like, table or collection of labels, default=None
        Which ads may be shown: a boolean table, dense or sparse, with columns in the order of
        `costs` or, for a DataFrame, matched by label; a collection of labels per row; or one for
        all rows. None means all.

    Returns
    -------
    ndarray of shape (n_samples, n_select)
        Labels of ads, cheapest first, without duplicates in a row.

    Raises
    ------
    ValueError
        If the capacities do not suffice, a row has too few available ads, or a cost is nan.

    See Also
    --------
    skbandit.RegressionSetSelector : Predicts costs; its `predict` chooses without capacities.

    Notes
    -----
    The allocation is exact: a minimum-cost flow, solved by the simplex method of HiGHS. Rows are
    chosen one by one where that already keeps to the capacities. Otherwise, 1,000 rows of 100 ads
    take about half a second, and 5,000 rows of 50 ads two; allocate more in batches, with
    capacities in proportion.

    Costs of one request at a time need prices instead: this is for rows known together, such as the
    mails of a day.

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
    """
    table = read_costs(costs)
    values = np.array(table.dense(), dtype=float)
    n, n_ads = values.shape
    check_n_select(n_select, n_ads)
    allowed = read_mask(available, table.ads, n)
    mask = np.ones(values.shape, dtype=bool) if allowed is None else dense_rows(allowed, slice(n))
    unknown = np.argwhere(np.isnan(values) & mask)
    if len(unknown):
        row, ad = unknown[0]
        raise ValueError(
            f"The cost of ad {table.ads.tolist()[ad]!r} in row {row} is nan: predict it, or take "
            "the ad out by available=."
        )
    short = np.flatnonzero(count_available(mask) < n_select)
    if len(short):
        raise ValueError(
            f"Row {short[0]} has {count_available(mask)[short[0]]} available ads, but n_select is "
            f"{n_select}: make more available, or choose fewer."
        )
    limits = _read_capacity(capacity, table.ads)
    values[~mask] = np.inf
    freely = lowest(values.copy(), n_select)
    if (np.bincount(freely.ravel(), minlength=n_ads) <= limits).all():
        return table.ads[freely]
    places = np.minimum(limits, mask.sum(axis=0)).sum()
    chosen = None if places < n * n_select else cheapest_flow(values, limits, n_select)
    if chosen is None:
        raise ValueError(
            f"The capacities allow too few places for {n} rows of {n_select} ads: ads could be "
            f"shown {int(places):,} times at most, {n * n_select:,} are needed, each ad once a row "
            "and where it is available. Raise capacity, or choose fewer ads."
        )
    return table.ads[lowest(np.where(chosen, values, np.inf), n_select)]


def _read_capacity(capacity: Any, ads: np.ndarray) -> np.ndarray:
    """Capacities in the order of `ads`, inf for no limit."""
    if capacity is None:
        return np.full(len(ads), np.inf)
    if hasattr(capacity, "items"):
        by_label = dict(capacity.items())
        unknown = [label for label in by_label if label not in set(ads.tolist())]
        if unknown:
            raise ValueError(f"capacity names {unknown[0]!r}, which costs has no column for.")
        capacity = [by_label.get(label) for label in ads.tolist()]
    if np.ndim(capacity) == 0:
        capacity = [capacity] * len(ads)
    limits = np.array([np.inf if limit is None else limit for limit in capacity], dtype=float)
    limits[np.isnan(limits)] = np.inf
    if limits.shape != (len(ads),):
        raise ValueError(f"capacity has shape {limits.shape}, but there are {len(ads)} ads.")
    finite = np.isfinite(limits)
    wrong = (limits < 0) | (finite & ((limits != np.floor(limits)) | (limits > MAX_SHOWN)))
    if wrong.any():
        ad = np.flatnonzero(wrong)[0]
        raise ValueError(
            f"capacity of ad {ads.tolist()[ad]!r} is {limits[ad]:g}: it must be a whole number "
            "from 0 on, or None for no limit."
        )
    return limits
