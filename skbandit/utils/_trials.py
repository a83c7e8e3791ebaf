"""Effective trials: how many independent rows of equal weight tell as much of a mean as some rows.

Rows of one person, site or day are dependent, and weights may go with the outcome. For the mean q
of x over rows of weights w, in groups of dependent rows, let r_i = w_i (x_i - q) be its influences,
R_c their sum and D_c the sum of w in group c. With Kish's numbers of rows and of groups,

    m = (sum w)^2 / sum w^2,      g = (sum w)^2 / sum D_c^2,                                   (1)

the variance of q, linearized and clustered, is larger than that of independent rows by

    deff = max(1, [sum R_c^2 / (1 - 1/g)] / [sum r_i^2 / (1 - 1/m)]),                          (2)

and few groups widen intervals by Student's t of g - 1 degrees of freedom in place of m - 1 (Korn &
Graubard 1998). Without variation, a group is one trial. If each group is one row, nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from skbandit.utils._sklearn_compat import count_rows
from skbandit.utils._validation import RATE_TOL, ROUNDING, warn, warn_if_reordered

FEW_GROUPS = 20
"""Groups below which a warning says how little they tell."""


@dataclass(frozen=True)
class Dependence:
    """Effect of dependent rows and unequal weights on a mean.

    Attributes
    ----------
    rows, groups : float
        m and g of (1).
    deff : float
        (2), or the part of a single group.
    spread : float
        sum r_i^2, relative to what independent weights of the same size would give a share;
        1 for equal weights.
    """

    rows: float
    groups: float
    deff: float
    spread: float = 1.0

    def widening(self, tail: float) -> float:
        """Factor of standard errors, from quantiles of the normal distribution's tail.

        inf for a single group, of which nothing is known.
        """
        return float(np.sqrt(self.spread) * self.cluster_factor(tail))

    def cluster_factor(self, tail: float) -> float:
        """Factor of standard errors by dependent rows alone: see `widening`."""
        if self.groups <= 1.0 + ROUNDING < self.rows:
            return np.inf
        return float(np.sqrt(self.deff) * self.few(tail))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of intervals: inf if each group is a row, 0 of a single group."""
        if self.groups >= self.rows * (1.0 - ROUNDING):
            return np.inf
        return 0.0 if self.groups <= 1.0 + ROUNDING else max(self.groups - 1.0, 0.5)

    def few(self, tail: float) -> float:
        """Factor by which fewer groups than rows widen; 1 if each group is a row."""
        if self.groups >= self.rows * (1.0 - ROUNDING):
            return 1.0
        groups, rows = (max(n - 1.0, 0.5) for n in (self.groups, self.rows))
        return float(stdtrit(groups, 1.0 - tail) / stdtrit(rows, 1.0 - tail))

    def trials(self, tail: float) -> float:
        """Return the number of independent trials that tell as much."""
        return self.rows / self.widening(tail) ** 2


def dependence(
    influence: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray | None,
    share: float | None = None,
    squares: np.ndarray | None = None,
) -> Dependence:
    """Dependence of the rows behind one mean.

    Parameters
    ----------
    influence : ndarray of shape (n,)
        r: of sum about 0.
    weight : ndarray of shape (n,)
        Nonnegative sizes of the rows, such as w.
    group : ndarray of int, shape (n,), or None
        Code of each row's group; None if each row is one.
    share : float or None
        q, if x is 0 or 1: then weights that go with the outcome count.
    squares : ndarray of shape (n,) or None
        Sums of squared weights, of rows that stand for several equal ones; None is for their own.

    Examples
    --------
    >>> x = np.array([1.0, 1.0, 0.0, 0.0])
    >>> dependence(x - 0.5, np.ones(4), np.array([0, 0, 1, 1])).deff
    3.0
    """
    total = weight.sum()
    if not total > 0:
        return Dependence(0.0, 0.0, 1.0)
    square = weight**2 if squares is None else squares
    size = float(square.sum())
    part = np.divide(square, weight**2, out=np.ones(len(weight)), where=weight > 0)
    rows = float(total**2 / size)
    of_rows = float((influence**2 * part).sum())
    varies = of_rows > ROUNDING * size
    spread = 1.0
    if share is not None and varies:
        spread = of_rows / (share * (1.0 - share) * size)
        spread = 1.0 if abs(spread - 1.0) < RATE_TOL else spread
    if group is None:
        return Dependence(rows, rows, 1.0, spread)
    groups = float(total**2 / (np.bincount(group, weight) ** 2).sum())
    if groups >= rows * (1.0 - ROUNDING):
        return Dependence(rows, rows, 1.0, spread)
    if groups <= 1.0 + ROUNDING:
        return Dependence(rows, 1.0, rows, spread)
    of_group = (np.bincount(group, influence) ** 2).sum()
    deff = design_effect(of_group, of_rows, groups, rows) if varies else rows / groups
    return Dependence(rows, groups, deff, spread)


def design_effect(of_group: float, of_rows: float, groups: float, rows: float) -> float:
    """(2), from the sums of squares of groups and of rows, and Kish's numbers of both."""
    deff = of_group / of_rows * (1.0 - 1.0 / rows) / (1.0 - 1.0 / groups)
    return max(float(deff), 1.0)


def correlation(first: np.ndarray, second: np.ndarray, group: np.ndarray) -> float:
    """Correlation of two means over dependent rows, from their influences; 0 without variation."""
    of_first, of_second = np.bincount(group, first), np.bincount(group, second)
    size = np.sqrt((of_first**2).sum() * (of_second**2).sum())
    return float(np.clip((of_first @ of_second) / size, -1.0, 1.0)) if size > 0 else 0.0


def read_groups(groups: Any, n_rows: int, *tables: Any, name: str = "groups") -> np.ndarray | None:
    """Codes of the groups of dependent rows, in order of appearance; warn if they are few.

    The parameters are those of `labels_of_groups`.

    Examples
    --------
    >>> read_groups(list("bbabacdefghijklmnopqrstuvw"), 26).tolist()[:5]
    [0, 0, 1, 0, 1]
    """
    labels = labels_of_groups(groups, n_rows, *tables, name=name)
    if labels is None:
        return None
    codes, distinct = pd.factorize(labels)
    warn_of_few_groups(len(distinct), name)
    return codes


def labels_of_groups(
    groups: Any, n_rows: int, *tables: Any, name: str = "groups"
) -> pd.Series | None:
    """Read which rows are dependent.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        Rows of one value are dependent.
    n_rows : int
    *tables : object
        The rows as passed by the user: a Series with the labels of the first pandas object among
        them is put in its order, with a warning if that is another one.
    name : str
        Name of the parameter.

    Returns
    -------
    Series of n_rows rows, or None
    """
    if groups is None:
        return None
    if isinstance(groups, str) or getattr(groups, "ndim", 1) != 1 or not hasattr(groups, "__len__"):
        raise ValueError(f"{name} must have one value per row, got {groups!r:.60}.")
    if len(groups) != n_rows:
        raise ValueError(f"{name} has {len(groups)} entries for {n_rows} rows.")
    framed = [table for table in tables if isinstance(table, pd.DataFrame | pd.Series)]
    if isinstance(groups, pd.Series) and framed and not groups.index.equals(framed[0].index):
        index, wanted = groups.index, framed[0].index
        if index.is_unique and wanted.is_unique and (rows := index.get_indexer(wanted)).min() >= 0:
            moved = int(np.flatnonzero(rows != np.arange(n_rows))[0])
            warn(
                f"{name} has the row labels of the other tables in a different order (row {moved} "
                f"is labeled {index[moved]} and {wanted[moved]}), and was put in theirs. If the "
                f"labels do not identify the rows, pass {name}.to_numpy().",
                UserWarning,
            )
            groups = groups.iloc[rows]
        else:
            warn_if_reordered({"X": framed[0], name: groups})
    labels = groups if isinstance(groups, pd.Series) else pd.Series(groups)
    missing = labels.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{name} is missing in row {int(np.argmax(missing))}: give each row a group, one of "
            "its own if it belongs to none."
        )
    return labels


def groups_of_both(
    groups: Any, tables: tuple[Any, ...], groups_extra: Any, X_extra: Any, counted: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Codes of the groups of rows and of extra rows; warn if they are few.

    Parameters
    ----------
    groups, tables : object
        As in `read_groups`, of the rows.
    groups_extra, X_extra : object
        The same of extra rows, which are of no group but their own if only `groups` are given.
    counted : ndarray of bool, shape (n_rows,)
        Rows of positive weight.

    Returns
    -------
    tuple of two ndarray of int, or None
        None if neither is given; the second also without extra rows.
    """
    n = len(counted)
    n_extra = 0 if X_extra is None else count_rows(X_extra)
    if groups_extra is not None and X_extra is None:
        raise ValueError("groups_extra is of the rows of X_extra, which is missing.")
    if groups is None and groups_extra is None:
        return None, None
    parts = []
    for name, given, size, sources, counts in (
        ("groups", groups, n, tables, counted),
        ("groups_extra", groups_extra, n_extra, (X_extra,), np.ones(n_extra, dtype=bool)),
    ):
        labels = labels_of_groups(given, size, *sources, name=name)
        if labels is not None:
            warn_of_few_groups(labels[counts].nunique(), name)
        parts.append(pd.Series(np.full(size, np.nan)) if labels is None else labels)
    code = pd.factorize(pd.concat([part.astype(object) for part in parts]))[0]
    alone = code < 0
    code[alone] = code.max() + 1 + np.arange(alone.sum())
    return code[:n], (None if X_extra is None else code[n:])


def of_several_rows(group: np.ndarray | None) -> np.ndarray | None:
    """Return the groups, or None if each is one row, so that rows are independent."""
    if group is None or np.bincount(group).max(initial=0) <= 1:
        return None
    return group


def warn_of_few_groups(n_groups: int, name: str = "groups") -> None:
    """Warn of groups that are too few to tell how much they differ."""
    if n_groups >= FEW_GROUPS:
        return
    so = (
        "intervals are wide and may still be too narrow" if n_groups > 1 else "there is no interval"
    )
    warn(
        f"{name} has {n_groups} group(s) of dependent rows: fewer than {FEW_GROUPS} tell little of "
        f"how much groups differ, so that {so}.",
        UserWarning,
    )
