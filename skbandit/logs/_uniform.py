"""Whether actions without propensities can have been uniform: overall, and whatever the context.

A column of contexts, cut into bins, groups the events, and so do pairs of the first columns, and
the sets of available arms. In each group, an arm's number of events has an expectation and a
variance under uniform logging, given contexts and available arms: so arms that are available in
some contexts only raise no alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from skbandit.logs._arms import Pools
from skbandit.logs._log import Log
from skbandit.logs._slates import SlateLog
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import first_few, warn

_ALARMS = 0.005
"""Probability, at most, that contexts raise an alarm about a uniform log: over all groups and
arms, by the union bound. In simulations it is a fifth of this, as Freedman's inequality is not
tight."""

# Contexts are compared on so many events and columns at most, drawn at random and evenly spaced,
# and so many numbers (events by columns by available arms), so that the check costs little.
_MOST_EVENTS, _MOST_COLUMNS, _MOST_NUMBERS = 30_000, 200, 1_000_000

_QUANTILES = (0.01, 0.05, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.95, 0.99)
"""Numbers are cut at these; a value that is a quantile itself is a bin of its own."""

_MOST_LEVELS = 50
"""Levels of a categorical column, or sets of available arms, that are bins of their own, the most
frequent ones."""

# Per group and arm: number of events, expectation and variance.
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]
# Of groups, given as indicators of shape (n_groups, n_events).
Counter = Callable[[csr_array], Counts]

# Groups of events, as indicators of shape (n_groups, n_events), and what describes one by number.
Groups = tuple[csr_array, Callable[[int], str]]


def is_far(counts: Any, expected: Any, variance: Any, square: float = 25.0) -> Any:
    """Tell whether counts are more than about 5 standard deviations from their expectation.

    By Freedman's inequality this has probability at most 2 exp(-square / 2): 2 exp(-12.5) < 8e-6.
    """
    gap = np.abs(counts - expected)
    return gap**2 > square * (variance + gap / 3)


def check_uniform(log: Log | SlateLog, X: Any = None, *, n_checks: int = 1) -> bool:
    """Warn if a log lacks propensities and its actions are clearly not uniform.

    A log of slates is uniform if all available arms are shown equally often.

    Parameters
    ----------
    log : Log or SlateLog
        Log without propensities.
    X : object, default=None
        Contexts in any form, on which the actions must not depend. Of more than 200 columns, 200
        evenly spaced ones are compared. Of a sparse matrix, the 2,000 most frequent ones are by
        where they are not 0.
    n_checks : int, default=1
        Number of checks that share the probability of a false alarm.

    Returns
    -------
    bool
        Whether there was a warning.
    """
    arms = log.arms.tolist()
    everything = csr_array(np.ones((1, len(log))))
    counts, expected, variance = np.broadcast_arrays(*_uniform_counter(log)(everything))
    far = is_far(counts, expected, variance)
    if far.any():
        arm = int(np.argmax(np.where(far, np.abs(counts - expected), -1.0)))
        warn(
            f"the log has no propensities, but its actions were not chosen uniformly: "
            f"{arms[arm]!r} on {counts[0, arm]:,.0f} events, where {expected[0, arm]:,.0f} are "
            "expected. The estimate is biased: pass the propensities, or the arms available to "
            "each event.",
            UserWarning,
        )
        return True

    def counter(rows: np.ndarray) -> Counter:
        pools = None if log.pools is None else log.pools.take(rows)
        return _uniform_counter(replace(log, action=log.action[rows], pools=pools))

    alarm = _find_dependence(log, X, counter, n_checks, log.pools)
    if alarm is None:
        return False
    warn(
        "the log has no propensities, but its actions depend on the context: "
        f"{arms[alarm.arm]!r} on {alarm.count:,.0f} of {alarm.n_events:,} events with "
        f"{alarm.where}, where {alarm.expected:,.0f} are expected. The estimate is biased: pass "
        "the propensities, or estimate them as the FAQ shows.",
        UserWarning,
    )
    return True


def find_dependence_of_pools(log: Log, X: Any) -> str | None:
    """Return the context on which it depends whether an arm is available, if one is seen."""
    pools = log.pools
    if pools is None:
        return None
    n_arms = len(log.arms)
    share = np.bincount(
        pools.arms, np.bincount(pools.of_event, minlength=len(pools.start) - 1)[pools.set_of_arm]
    ) / len(log)

    def counter(rows: np.ndarray) -> Counter:
        mask = pools.take(rows).mask(n_arms).astype(float)

        def count(groups: csr_array) -> Counts:
            expected = groups.sum(axis=1)[:, None] * share
            return (groups @ mask).toarray(), expected, expected * (1 - share)

        return count

    alarm = _find_dependence(log, X, counter)
    if alarm is None:
        return None
    return (
        f"{log.arms.tolist()[alarm.arm]!r} on {alarm.count:,.0f} of {alarm.n_events:,} events with "
        f"{alarm.where}, where {alarm.expected:,.0f} are expected"
    )


@dataclass(frozen=True)
class _Alarm:
    """A group of events in which an arm's number of events is far from its expectation."""

    arm: int
    where: str
    n_events: int
    count: float
    expected: float


def _uniform_counter(log: Log | SlateLog) -> Counter:
    """Return counts if logging is uniform: an event of m of K arms has each with m/K."""
    n_arms, action = len(log.arms), log.action.reshape(len(log.action), -1)
    n = len(action)
    row, place = np.nonzero(action >= 0)
    chosen = csr_array((np.ones(len(row)), (row, action[row, place])), (n, n_arms))
    m = (action >= 0).sum(axis=1).astype(float)
    if log.pools is None:
        p = m / n_arms
        return lambda groups: (
            (groups @ chosen).toarray(),
            (groups @ p)[:, None],
            (groups @ (p * (1 - p)))[:, None],
        )
    # by sets of arms, of which there are few
    pools, sizes = log.pools, np.diff(log.pools.start)
    sets = csr_array((np.ones(len(pools.arms)), pools.arms, pools.start), (len(sizes), n_arms))
    p = m / sizes[pools.of_event]
    of_sets, squares = (
        csr_array((values, (np.arange(n), pools.of_event)), (n, len(sizes))) for values in (p, p**2)
    )

    def count(groups: csr_array) -> Counts:
        expected = ((groups @ of_sets) @ sets).toarray()
        squared = ((groups @ squares) @ sets).toarray()
        return (groups @ chosen).toarray(), expected, expected - squared

    return count


def _find_dependence(
    log: Log | SlateLog,
    X: Any,
    counter: Callable[[np.ndarray], Counter],
    n_checks: int = 1,
    pools: Pools | None = None,
) -> _Alarm | None:
    """Return the group and arm whose count is the most unlikely one, if it is too unlikely.

    With `pools`, the actions must not depend on the set of available arms either.
    """
    n_events = len(log)
    if X is None or count_rows(X) != n_events:
        X = np.empty((n_events, 0))
    size = 1.0 if log.pools is None else float(log.pools.sizes.mean())
    most = min(_MOST_EVENTS, int(_MOST_NUMBERS / (_entries_per_row(X) * size)))
    rows = np.arange(n_events)
    if n_events > most:  # at random: in a log of arms in turn, every second event has half of them
        rows = np.sort(np.random.default_rng(0).choice(n_events, max(most, 1), replace=False))
    columns = list(_groups_of_columns(rows_of(X, rows)))
    if pools is not None:
        columns.append(_groups_of_pools(pools.take(rows), log.arms))
    n_cells = sum(groups.shape[0] for groups, _ in columns) * len(log.arms)
    square = 2 * np.log(2 * max(n_cells, 1) * n_checks / _ALARMS)
    count, worst, alarm = counter(rows), 1.0, None
    for groups, describe in columns:
        counts, expected, variance = np.broadcast_arrays(*count(groups))
        gap = np.abs(counts - expected)
        far = gap**2 / np.maximum(square * (variance + gap / 3), 1e-300)
        if far.max(initial=0.0) > worst:
            worst = float(far.max())
            group, arm = (int(k) for k in np.unravel_index(far.argmax(), far.shape))
            n_in_group = int(groups.sum(axis=1)[group])
            numbers = float(counts[group, arm]), float(expected[group, arm])
            alarm = _Alarm(arm, describe(group), n_in_group, *numbers)
    return alarm


def _entries_per_row(X: Any) -> float:
    """Return the number of entries per row that are looked at, at least 1."""
    if issparse(X):
        return max(X.nnz / X.shape[0], 1.0)
    columns = X.shape[1:] if hasattr(X, "shape") else np.shape(X)[1:]
    return float(np.clip(np.prod(columns), 1, _MOST_COLUMNS))


def _groups_of_columns(X: Any) -> Iterator[Groups]:
    """Return groups by each column; of a sparse matrix, also by where columns are not 0."""
    if issparse(X):
        indicators = csr_array((csr_array(X) != 0).T.astype(float))
        often = np.argsort(-indicators.sum(axis=1), kind="stable")[: 10 * _MOST_COLUMNS]
        yield indicators[often], lambda group: f"column {often[group]} not 0"
    for name, values in _sampled_columns(X):
        yield _groups(_bins(values), name, values)


def _groups(codes: np.ndarray, name: str, values: pd.Series) -> Groups:
    """Return the groups of these numbers, described by the values of a column."""
    at = codes, np.arange(len(codes))
    groups = csr_array((np.ones(len(codes)), at), (int(codes.max()) + 1, len(codes)))
    return groups, lambda group: f"{name} {_description(values[codes == group])}"


def _groups_of_pools(pools: Pools, arms: np.ndarray) -> Groups:
    """Return groups by set of available arms."""
    of_event = pd.Series(pools.of_event, dtype="category")
    codes = _bins(of_event)
    labels = pools.labels(arms)

    def describe(group: int) -> str:
        sets = of_event[codes == group].unique()
        return f"available = {labels[sets[0]]}" if len(sets) == 1 else "other sets available"

    return _groups(codes, "", of_event)[0], describe


def _sampled_columns(X: Any) -> Iterator[tuple[str, pd.Series]]:
    """Names and values of columns; of too many, evenly spaced ones."""
    if issparse(X):
        return
    names = list(X.columns) if hasattr(X, "columns") else None
    table = X if names is not None else np.asarray(X)
    if names is None:
        table = table[:, None] if table.ndim == 1 else table
    width = table.shape[1]
    for j in np.unique(np.linspace(0, width - 1, min(width, _MOST_COLUMNS)).astype(int)):
        if names is None:
            yield f"column {j}", pd.Series(table[:, j])
        elif hasattr(table, "iloc"):
            yield repr(names[j]), table.iloc[:, j].reset_index(drop=True)
        else:
            yield repr(names[j]), pd.Series(np.asarray(table[names[j]]))


def _bins(values: pd.Series) -> np.ndarray:
    """Index of the bin of each value: by quantiles for numbers and times, else by level."""
    try:
        numbers = _as_numbers(values)
    except (TypeError, ValueError):
        try:
            codes, _ = values.factorize()
        except TypeError:  # lists, whose parts are not compared
            return np.zeros(len(values), dtype=int)
        codes = codes + 1  # 0 is missing
        often = np.argsort(-np.bincount(codes), kind="stable")
        rank = np.argsort(often)
        return np.minimum(rank, _MOST_LEVELS)[codes]
    is_finite = np.isfinite(numbers)
    if not is_finite.any():
        return np.zeros(len(values), dtype=int)
    cuts = np.unique(np.quantile(numbers[is_finite], _QUANTILES, method="lower"))
    cuts = np.unique([cuts, np.nextafter(cuts, np.inf)])
    return np.where(is_finite, np.searchsorted(cuts, numbers, "right"), len(cuts) + 1)


def _as_numbers(values: pd.Series) -> np.ndarray:
    """Numbers, booleans or times as float64, with nan for what is missing."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values.astype("int64").where(values.notna()).to_numpy(np.float64)
    if isinstance(values.dtype, pd.CategoricalDtype):
        raise TypeError("levels")
    return pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan)


def _description(values: pd.Series) -> str:
    """Return what a group's values of a column are."""
    entries = values.dropna()
    if not len(entries):
        return "missing"
    if entries.nunique() == 1:
        return f"= {first_few(entries.iloc[:1])}"
    if pd.api.types.is_numeric_dtype(entries.dtype):
        return f"from {entries.min():.4g} to {entries.max():.4g}"
    if pd.api.types.is_datetime64_any_dtype(entries.dtype):
        return f"from {entries.min()} to {entries.max()}"
    return f"in {first_few(entries.unique(), 3)}"
