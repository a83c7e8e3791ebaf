"""Cross-validation folds, and Pipelines taken apart."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from skbandit.utils._exact import exact_table
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._trials import labels_of_groups
from skbandit.utils._validation import warn

# Training and test rows of each fold.
Splits = list[tuple[np.ndarray, np.ndarray]]

FOLDS, FEW_FOLDS = 5, 3
"""Default number of folds, and the number that saves time if there are many rows."""

SEED = 0
"""Seed of the folds of classifiers: the same rows give the same model."""

MANY_COPIES = 0.01
"""Share of rows that repeat an earlier one from which on a fit warns of them; two at least."""

FEW_ROWS, MOST_COPIES = 20, 5
"""Distinct rows below which more rows than so many for each are independent ones.

So many rows with the values of few features are no copies, even if these tell the target for sure.
"""

MIXED_TARGETS = 0.2
"""Share of repeated rows of another target from which on they are no copies, in units of chance.

Copies have the target of their original; independent rows that happen to be equal need not.
"""

ROUNDED_BITS = np.uint64(12)
"""Last bits of a float that are rounded off: a matrix product may differ between equal rows."""


def assign_folds(
    stratum: np.ndarray, n_folds: int, unit: np.ndarray, random_state: Any = SEED
) -> np.ndarray:
    """Assign rows to folds: units stay whole, and each stratum is spread evenly.

    Of `n_folds` consecutive units of the same composition, each fold gets one, in random order. So
    neither the order of the rows nor a period in it matters, and rows that are sorted by site leave
    each fold its share of every site.

    Parameters
    ----------
    stratum : ndarray of int, shape (n_rows,)
        Stratum of each row, such as its label, counted from 0.
    n_folds : int
        Number of folds.
    unit : ndarray of int, shape (n_rows,)
        Index of the unit of each row.
    random_state : int, RandomState or None
        Draws the orders.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Fold of each row.

    Examples
    --------
    >>> fold = assign_folds(np.zeros(6, int), 3, np.array([7, 7, 7, 2, 2, 4]))
    >>> sorted(np.bincount(fold).tolist())
    [1, 2, 3]
    """
    rng = check_random_state(random_state)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    shape = len(first), int(stratum.max(initial=0)) + 1
    composition = csr_array((np.ones(len(unit), int), (unit, stratum)), shape=shape).toarray()
    row = f"S{composition.itemsize * shape[1]}"  # one value, much faster than unique rows
    kind, _ = pd.factorize(composition.view(row).ravel())
    kinds = composition[np.unique(kind, return_index=True)[1]]
    of_kind = [np.flatnonzero(kind == k) for k in range(len(kinds))]
    of_kind = [units[np.argsort(first[units])] for units in of_kind]
    fold_of = np.empty(len(first), dtype=int)
    filled = np.zeros((n_folds, shape[1]), dtype=int)
    # the largest units first, which smaller ones level out; the numbers of strata do not matter
    for k in sorted(range(len(kinds)), key=lambda k: (-kinds[k].sum(), first[of_kind[k][0]])):
        units = of_kind[k]
        blocks, rest = divmod(len(units), n_folds)
        orders = rng.uniform(size=(blocks, n_folds)).argsort(axis=1)
        emptiest = np.lexsort((rng.uniform(size=n_folds), filled.sum(axis=1), filled @ kinds[k]))
        fold_of[units] = np.append(orders, rng.permutation(emptiest[:rest]))
        filled += np.bincount(fold_of[units], minlength=n_folds)[:, None] * kinds[k]
    return fold_of[unit]


def units_of_rows(X: Any, target: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Index of the unit of each row: copies form one.

    Copies, as by an outer join or by oversampling, must not be on both sides of a fold. Equal rows
    are copies unless their targets differ nearly as often as by chance, or there are hardly any
    others: then they are independent rows of few values, such as people of one age, and are units
    of their own, as the final model knows the others, too.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame}
        All rows.
    target : ndarray of n_rows rows
        Labels, costs or rewards of the first rows of X, or of all.
    weight : ndarray of shape (n_rows,) or None
        Targets of rows of weight 0 do not count.

    Returns
    -------
    ndarray of int
        As many as X has rows.

    Examples
    --------
    >>> rows = [[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]]
    >>> units_of_rows(rows, np.array([1, 0, 1])).tolist()
    [0, 1, 0]
    >>> units_of_rows(rows, np.array([1, 0, 0])).tolist()
    [0, 1, 2]
    """
    every = np.arange(count_rows(X))
    try:
        distinct, unit = np.unique(hashes_of_rows(X), return_inverse=True)
    except (TypeError, ValueError):  # rows of other things than numbers and text
        return every
    if len(distinct) < FEW_ROWS and len(unit) > MOST_COPIES * len(distinct):
        return every
    counted = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
    kind, original = hashes_of_rows(target)[counted], _originals(unit[counted])
    repeated = np.flatnonzero(original != np.arange(len(counted)))
    _, of_kind = np.unique(kind, return_counts=True)
    chance = 1.0 - ((of_kind / len(counted)) ** 2).sum()
    differ = kind[repeated] != kind[original[repeated]]
    independent = differ.any() and differ.mean() >= MIXED_TARGETS * chance
    return every if independent else unit


def _originals(unit: np.ndarray) -> np.ndarray:
    """Return the first row of the unit of each row."""
    _, first, inverse = np.unique(unit, return_index=True, return_inverse=True)
    return first[inverse]


def originals_of_extra(unit: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the first of `n_rows` rows in the unit of each extra row after them, or -1."""
    original = _originals(unit)[n_rows:]
    return np.where(original < n_rows, original, -1)


def hashes_of_rows(X: Any) -> np.ndarray:
    """64 bits per row, equal for equal rows."""
    if hasattr(X, "columns"):
        polars = hasattr(X, "iter_columns")
        columns = X.iter_columns() if polars else (column for _, column in X.items())
        hashes = np.column_stack([_hashes_of_entries(pd.Series(column)) for column in columns])
        return (hashes * _multipliers(hashes.shape[1])).sum(axis=1)
    if issparse(X):
        rows = csr_array(X, copy=True)
        rows.sum_duplicates()
        terms = _hashes_of_entries(rows.data) * _multipliers(rows.shape[1])[rows.indices]
        sums = np.append(np.uint64(0), np.cumsum(np.where(rows.data == 0, 0, terms)))
        return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    entries = np.asarray(X)
    entries = entries.reshape(len(entries), -1)
    hashes = _hashes_of_entries(entries.ravel()).reshape(entries.shape)
    return (hashes * _multipliers(entries.shape[1])).sum(axis=1)


def hashes_of_contexts(X: Any) -> np.ndarray:
    """Hash rows whose numbers may come as other types: alone, or next to a missing one."""
    if hasattr(X, "columns"):
        columns = [column for _, column in exact_table(X).items()]
        return hashes_of_rows(
            pd.DataFrame({k: _as_floats(column) for k, column in enumerate(columns)})
        )
    if not issparse(X):
        X = np.asarray(X)
    return hashes_of_rows(X.astype(np.float64) if X.dtype.kind in "biu" else X)


def _as_floats(column: pd.Series) -> Any:
    """Numbers as floats; other values as they are."""
    column = column.infer_objects()
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(object).where(column.notna(), None).array
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _hashes_of_entries(entries: np.ndarray | pd.Series) -> np.ndarray:
    if pd.api.types.is_float_dtype(entries.dtype):
        floats = pd.Series(entries).to_numpy(dtype=np.float64, na_value=np.nan)
        bits = (floats + 0.0).view(np.uint64)  # -0.0 is 0.0
        half = np.uint64(1) << (ROUNDED_BITS - np.uint64(1))
        return pd.util.hash_array((bits + half) >> ROUNDED_BITS)
    return pd.util.hash_pandas_object(pd.Series(entries), index=False).to_numpy()


def _multipliers(n: int) -> np.ndarray:
    """Odd numbers, by which the hashes of the entries of a row add up to one that tells columns."""
    return np.random.default_rng(SEED).integers(2**63, size=n, dtype=np.uint64) * 2 + 1


def read_units(cv: Any, X: Any, y: np.ndarray, weight: np.ndarray, groups: Any) -> np.ndarray:
    """Index of the unit of each row, which stays on one side of every fold.

    Parameters
    ----------
    cv : int, cross-validation generator, iterable or None
        If rows are assigned to folds here (a number or None), copies are warned of.
    X : {array-like, sparse matrix, DataFrame}
        All rows, extra ones last, which are of no group but that of a row they are copies of.
    y : ndarray of shape (n_rows,)
        Labels of the rows that are not extra.
    weight : ndarray of shape (n_rows,)
        Their weights.
    groups : array-like of shape (n_rows,) or None
        The units. None means `units_of_rows`.

    Returns
    -------
    ndarray of int
    """
    n_rows, unit = len(y), units_of_rows(X, y, weight)
    labels = labels_of_groups(groups, n_rows)
    if labels is None and is_number(cv):
        _warn_of_copies(unit, np.flatnonzero(weight > 0))
    if labels is None:
        return unit
    group, _ = pd.factorize(labels)
    original = originals_of_extra(unit, n_rows)
    return np.append(group, np.where(original >= 0, group[original], n_rows + unit[n_rows:]))


def is_number(cv: Any) -> bool:
    """Return whether `cv` leaves it to us which rows are in a fold."""
    return cv is None or isinstance(cv, Integral)


def _warn_of_copies(unit: np.ndarray, counted: np.ndarray) -> None:
    """Warn if many of the rows that count are copies."""
    original = _originals(unit[counted])
    copies = np.flatnonzero(original != np.arange(len(counted)))
    if len(copies) < max(2, MANY_COPIES * len(counted)):
        return
    n_repeated = len(copies) + len(np.unique(original[copies]))
    warn(
        f"{n_repeated} of {len(counted)} rows of X occur more than once, such as rows "
        f"{counted[original[copies[0]]]} and {counted[copies[0]]}. Equal rows share a fold, but "
        "intervals and confidence levels count each as an independent row. If they are copies, "
        "drop them, and resample inside the estimator. If they are different units, pass groups="
        "np.arange(len(X)).",
        UserWarning,
    )


def folds_of_rows(
    X: Any, target: np.ndarray, n_folds: int, random_state: Any, group: np.ndarray | None = None
) -> np.ndarray:
    """Assign rows to folds by `assign_folds`, copies together if there are enough others.

    With the groups of rows, these stay together instead, in fewer folds if they are few.
    """
    n_rows, unit = len(target), units_of_rows(X, target) if group is None else group
    n_units = len(np.unique(unit))
    if group is not None and n_units > 1:
        n_folds = min(n_folds, n_units)
    if n_units < n_folds:
        unit = np.arange(n_rows)
    return assign_folds(np.zeros(n_rows, dtype=int), n_folds, unit, random_state)


def folds_of_classes(
    y: np.ndarray, n_folds: int, unit: np.ndarray, random_state: Any = SEED
) -> np.ndarray:
    """Assign rows to folds by `assign_folds`, stratified by their labels.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Labels.
    n_folds : int
    unit : ndarray of int, shape (n_rows,)
    random_state : int, RandomState or None

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Fold of each row.

    Raises
    ------
    ValueError
        If all rows of a class are one unit, which cannot be left out, or units are fewer than
        folds.
    """
    n_folds = StratifiedKFold(int(n_folds)).n_splits  # checks it
    labels, stratum = np.unique(y, return_inverse=True)
    for k, label in enumerate(labels.tolist()):
        rows = np.flatnonzero(stratum == k)
        if len(rows) == 1:
            raise ValueError(
                f"{label!r} is a class of 1 row, by which nothing can be both trained and tested: "
                "drop the row, or give it the label of another class."
            )
        if (unit[rows] == unit[rows[0]]).all():
            raise ValueError(
                f"All {len(rows)} rows of class {label!r} are equal or of one group, and rows of "
                "each class are left out of training in turn: pass more rows, or groups="
                "np.arange(len(X)) if equal ones are different units."
            )
    n_units = len(np.unique(unit))
    if n_units < n_folds:
        raise ValueError(
            f"cv={n_folds} folds need as many different rows or groups, and there are {n_units}: "
            "choose fewer folds."
        )
    return assign_folds(stratum, n_folds, unit, random_state)


def default_folds(n_folds: int, unit: np.ndarray) -> int:
    """Return the usual number of folds, or one per unit if there are fewer."""
    return max(2, min(n_folds, len(np.unique(unit))))


def splits_of_classes(
    cv: Any,
    X: Any,
    y: np.ndarray,
    unit: np.ndarray,
    params: dict[str, Any],
    random_state: Any = SEED,
) -> Splits:
    """Return splits by the parameter `cv` of a classifier.

    Parameters
    ----------
    cv : int, cross-validation generator or iterable
        A number assigns rows by `folds_of_classes`.
    X : {array-like, sparse matrix, DataFrame} of n_rows rows
    y : ndarray of shape (n_rows,)
        Labels.
    unit : ndarray of int, shape (n_rows,)
        Used if `cv` is a number.
    params : dict
        For the `split` of a generator.
    random_state : int, RandomState or None
        Used if `cv` is a number.

    Returns
    -------
    list of (ndarray, ndarray)
        No fold tests rows of a class that it does not train on: see `_with_all_classes`.
    """
    if is_number(cv):
        return splits_of_folds(folds_of_classes(y, cv, unit, random_state))
    return _with_all_classes(_split(check_cv(cv, y, classifier=True), X, y, **params), X, y)


def _with_all_classes(splits: Splits, X: Any, y: np.ndarray) -> Splits:
    """Keep splits whose models saw the class of every row they test; a warning names others.

    A model gives a class that it never saw the probability 0, so that rows of that class would say
    that its decisions are always wrong. If a class is tested nowhere else, its rows are spread over
    all folds, whatever their groups; otherwise those rows are not tested. Splits that train on one
    class are left alone.
    """
    classes, code = np.unique(y, return_inverse=True)
    unseen, tested = np.full(len(y), -1), np.zeros(len(y), dtype=bool)
    for k, (train, test) in enumerate(splits):
        seen = np.bincount(code[train], minlength=len(classes)) > 0
        rows = np.arange(len(y))[test]
        if seen.sum() > 1:
            unseen[rows[~seen[code[rows]]]] = k
        tested[rows] = True
    for label in np.unique(code[unseen >= 0]):
        rows = np.flatnonzero((unseen >= 0) & (code == label))
        unit = units_of_rows(rows_of(X, rows), y[rows])
        spread = (tested & (code == label)).sum() == len(rows) and unit.max(initial=0) > 0
        fold = assign_folds(0 * unit, len(splits), unit) if spread else unit
        instead = "are spread over all folds" if spread else "are left out of all out-of-fold rates"
        before, splits = splits, []
        for number, (train, test) in enumerate(before):
            test = _without(test, rows)
            if spread:
                train = np.append(_without(train, rows), rows[fold != number])
                test = np.append(test, rows[fold == number])
            splits.append((train, test))
        k = unseen[rows[0]]
        warn(
            f"cv leaves fold {k} no row of class {classes[[label]].tolist()[0]!r} to train on, of "
            f"which it tests {int((unseen[rows] == k).sum())}: the {len(rows)} rows of that class "
            f"in such folds {instead}. Choose a cv that trains on all classes in every fold.",
            UserWarning,
        )
    return [split for split in splits if len(np.arange(len(y))[split[1]])]


def _without(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Row numbers, which may be a mask, less others."""
    numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
    return numbers[~np.isin(numbers, others)]


def splits_of_folds(fold: np.ndarray) -> Splits:
    """Training and test rows of each fold, from the fold of each row."""
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]


def folds_of_extra(
    fold: np.ndarray, n_folds: int, stratum: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """Assign extra rows to the folds of others; those that are copies of them to their fold.

    Parameters
    ----------
    fold : ndarray of int, shape (n_rows,)
        Fold of each of the other rows; -1 if none tests it.
    n_folds : int
    stratum : ndarray of int, shape (n_extra,)
    unit : ndarray of int, shape (n_rows + n_extra,)
        Index of the unit of each row, the extra ones last.

    Returns
    -------
    ndarray of int, shape (n_extra,)
    """
    n = len(fold)
    new_folds = assign_folds(stratum, n_folds, unit[n:])
    original = originals_of_extra(unit, n)
    of_original = np.where(original >= 0, fold[original], -1)
    return np.where(of_original >= 0, of_original, new_folds)


def rows_tested(splits: Splits, n_rows: int) -> np.ndarray:
    """Mask of the rows that some fold tests; a row tested by several folds is an error."""
    times = np.zeros(n_rows, dtype=int)
    for _, test in splits:  # row numbers or masks
        times[test] += 1
    if (times > 1).any():
        row = int(np.flatnonzero(times > 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, but a row has one score: choose a cv that "
            "tests each row at most once, such as StratifiedKFold(shuffle=True)."
        )
    return times > 0


def splits_of_all_rows(
    cv: Any, X: Any, target: np.ndarray, random_state: Any, group: np.ndarray | None = None
) -> Splits:
    """Return splits that test each row exactly once and never train on a row they test.

    Parameters
    ----------
    cv : int, cross-validation generator or iterable of splits
        An integer assigns rows by `folds_of_rows`.
    X : object
        Rows, passed to ``cv.split``.
    target : ndarray of n_rows rows
        Costs or rewards, by which `units_of_rows` tells copies.
    random_state : int, RandomState or None
        Of `folds_of_rows`.
    group : ndarray of int, shape (n_rows,), or None
        Groups that stay together, passed to ``cv.split``, too.

    Returns
    -------
    list of (ndarray, ndarray)
        Row numbers.
    """
    n_rows = len(target)
    rows = np.arange(n_rows)
    if isinstance(cv, Integral):
        n_folds = KFold(int(cv)).n_splits  # checks it
        if n_rows < n_folds:
            raise ValueError(f"cv={n_folds} folds need as many rows, and there are {n_rows}.")
        return splits_of_folds(folds_of_rows(X, target, n_folds, random_state, group))
    params = {} if group is None else {"groups": group}
    splits = [
        (rows[train], rows[test]) for train, test in _split(check_cv(cv), X, target, **params)
    ]
    if not (tested := rows_tested(splits, n_rows)).all():
        raise ValueError(
            f"cv tests row {int(tested.argmin())} 0 times, but each row needs one prediction by "
            "models fitted without it: choose a cv that tests each row once, such as KFold."
        )
    for train, test in splits:
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(f"cv trains on row {both[0]} in the fold that tests it.")
    return splits


def _split(cv: Any, X: Any, y: np.ndarray, **params: Any) -> Splits:
    """Return the splits of a generator; raise a clear error if it requires groups."""
    try:
        return list(cv.split(X, y, **params))
    except (TypeError, ValueError) as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"{type(cv).__name__} needs groups ({error}): pass groups=... to fit."
        ) from error


def split_pipeline(estimator: Any) -> tuple[Pipeline | None, Any]:
    """Split an estimator into transformers (None if there are none) and final estimator."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    transformers = estimator[:-1] if len(estimator.steps) > 1 else None
    return transformers, estimator.steps[-1][1]


def transformed(transformers: Pipeline | None, rows: Any) -> Any:
    """Transform rows for the last step; the items of a tuple are transformed one by one."""
    if transformers is None or rows is None:
        return rows
    if isinstance(rows, tuple):
        return tuple(transformers.transform(part) for part in rows)
    return transformers.transform(rows)


def behind_transformers(policy: Any, X: Any) -> tuple[Any, Any]:
    """Return the policy within a Pipeline or a fitted search, and the rows transformed for it."""
    if hasattr(policy, "best_estimator_"):
        return behind_transformers(policy.best_estimator_, X)
    transformers, last = split_pipeline(policy)
    if last is policy:
        return policy, X
    return behind_transformers(last, transformed(transformers, X))
