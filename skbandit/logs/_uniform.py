"""Test if actions without propensities can have been uniform: overall, and given the context.

A column of contexts, cut into bins, groups the events, and so do the sets of available arms. In
each group, an arm's number of events has an expectation and a variance under uniform logging, given
contexts and available arms: so arms that are available in some contexts only raise no alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from skbandit.logs._arms import Pools
from skbandit.logs._log import Log
from skbandit.utils._exact import exact_table
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._validation import warn

_ALARMS = 0.005
"""Probability, at most, that contexts raise an alarm about a uniform log: over all groups and
arms, by the union bound. In simulations it is a fifth of this, as Freedman's inequality is not
tight."""

# Contexts are compared on so many events and columns at most, drawn at random and evenly spaced,
# and so many numbers (events by columns by available arms), so that the check costs little.
_MOST_EVENTS, _MOST_COLUMNS, _MOST_NUMBERS = 30_000, 200, 1_000_000

_QUANTILES = (0, 0.01, 0.05, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.95, 0.99, 1)
"""Numbers and times of many values are cut at these."""

_MOST_LEVELS = 50
"""Values of a column, or sets of available arms, that are bins of their own, the most frequent
ones."""

# Groups of events, as indicators of shape (n_groups, n_events), and what describes each.
Groups = tuple[csr_array, list[str]]


def is_far(counts: Any, expected: Any, variance: Any, square: float = 25.0) -> Any:
    """Tell whether counts are more than about 5 standard deviations from their expectation.

    By Freedman's inequality this has probability at most 2 exp(-square / 2): 2 exp(-12.5) < 8e-6.
    """
    gap = np.abs(counts - expected)
    return gap**2 > square * (variance + gap / 3)


class _Events(NamedTuple):
    """Events, their arms, and the probabilities ``rate @ share`` of these."""

    arm: csr_array  # (n_events, n_arms), 1 where the event has the arm
    rate: csr_array  # (n_events, n_sets)
    share: csr_array  # (n_sets, n_arms)

    def worst(self, groups: csr_array, square: float) -> tuple[float, int, int, float, float]:
        """Compare the counts of groups with their expectations.

        Returns how far from it the farthest one is, at most 1 by chance, its group and arm, the
        count, and its expectation.
        """
        counts, expected = (groups @ self.arm).toarray(), groups @ self.rate @ self.share
        variance = expected - groups @ self.rate.power(2) @ self.share.power(2)
        expected, gap = expected.toarray(), np.abs(counts - expected.toarray())
        far = gap**2 / np.maximum(square * (variance.toarray() + gap / 3), 1e-300)
        group, arm = at = np.unravel_index(far.argmax(), far.shape)
        return far[at], int(group), int(arm), counts[at], expected[at]


def check_uniform(log: Log, X: Any = None, *, n_checks: int = 1) -> bool:
    """Warn if a log lacks propensities and its actions are clearly not uniform.

    A log of slates is uniform if all available arms are shown equally often.

    Parameters
    ----------
    log : Log
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
    n, n_arms, action, sets = len(log), len(log.arms), log.action.reshape(len(log), -1), log.sets
    row, place = np.nonzero(action >= 0)
    chosen = csr_array((np.ones(len(row)), (row, action[row, place])), (n, n_arms))
    p = (action >= 0).sum(axis=1) / sets.sizes  # of m of K arms, each has m/K
    rate = csr_array((p, (np.arange(n), sets.of_event)), (n, len(sets.start) - 1))
    events = _Events(chosen, rate, sets.table(n_arms).astype(float))
    far, _, arm, count, expected = events.worst(csr_array(np.ones((1, n))), 25.0)
    if far > 1.0:
        why = (
            f"its actions were not chosen uniformly: {log.arms.tolist()[arm]!r} on {count:,.0f} "
            f"events, where {expected:,.0f} are expected. The estimate is biased: pass the "
            "propensities, or the arms available to each event."
        )
    elif alarm := _find_dependence(log, X, events, n_checks, log.pools):
        why = (
            f"its actions depend on the context: {alarm}. The estimate is biased: pass the "
            "propensities, or estimate them as the FAQ shows."
        )
    else:
        return False
    warn(f"the log has no propensities, but {why}", UserWarning)
    return True


def find_dependence_of_pools(log: Log, X: Any) -> str | None:
    """Return the context on which it depends whether an arm is available, if one is seen."""
    if log.pools is None:
        return None
    mask = log.pools.table(len(log.arms))[log.pools.of_event].astype(float)
    share = csr_array(mask.sum(axis=0)[None, :] / len(log))
    return _find_dependence(log, X, _Events(mask, csr_array(np.ones((len(log), 1))), share))


def _find_dependence(
    log: Log, X: Any, events: _Events, n_checks: int = 1, pools: Pools | None = None
) -> str | None:
    """Return the arm and the group of the most unlikely count, if it is too unlikely.

    With `pools`, the actions must not depend on the set of available arms either.
    """
    n = len(log)
    X = np.empty((n, 0)) if X is None or count_rows(X) != n else X
    width = (
        X.nnz / n if issparse(X) else min(np.shape(X)[1] if np.ndim(X) > 1 else 1, _MOST_COLUMNS)
    )
    size = 1.0 if log.pools is None else float(log.pools.sizes.mean())
    most = max(min(_MOST_EVENTS, int(_MOST_NUMBERS / (max(width, 1.0) * size))), 1)
    rows = np.arange(n)
    if n > most:  # at random: in a log of arms in turn, every second event has half of them
        rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    sampled = _Events(events.arm[rows], events.rate[rows], events.share)
    columns = list(_groups_of_columns(rows_of(X, rows)))
    if pools is not None:
        labels = pd.Series([str(labels) for labels in pools.labels(log.arms)])
        columns.append(_groups("available", labels.iloc[pools.of_event[rows]]))
    n_cells = sum(groups.shape[0] for groups, _ in columns) * len(log.arms)
    square = 2 * np.log(2 * max(n_cells, 1) * n_checks / _ALARMS)
    alarm, farthest = None, 1.0
    for groups, described in columns:
        far, group, arm, count, expected = sampled.worst(groups, square)
        if far > farthest:
            farthest, n_events = far, groups[[group]].sum()
            alarm = (
                f"{log.arms.tolist()[arm]!r} on {count:,.0f} of {n_events:,.0f} events with "
                f"{described[group]}, where {expected:,.0f} are expected"
            )
    return alarm


def _groups_of_columns(X: Any) -> Iterator[Groups]:
    """Return groups by each column, of too many by evenly spaced ones.

    Columns of a sparse matrix group by where they are not 0.
    """
    if issparse(X):
        indicators = csr_array((csr_array(X) != 0).T.astype(float))
        often = np.argsort(-indicators.sum(axis=1), kind="stable")[: 10 * _MOST_COLUMNS]
        if len(often):
            yield indicators[often], [f"column {column} not 0" for column in often]
        return
    named = hasattr(X, "columns")
    table = pd.DataFrame(exact_table(X) if named else np.asarray(X)).reset_index(drop=True)
    width = table.shape[1]
    for j in np.unique(np.linspace(0, width - 1, min(width, _MOST_COLUMNS)).astype(int)):
        yield _groups(repr(table.columns[j]) if named else f"column {j}", table.iloc[:, j])


def _groups(name: str, values: pd.Series) -> Groups:
    """Group events by values of a column: numbers and times by quantiles, else by level."""
    kind = values.dtype
    is_ordered = pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)
    try:
        often, word = values.value_counts().index, "="
        if is_ordered and len(often) > _MOST_LEVELS:
            bins, word = pd.Categorical(pd.qcut(values, _QUANTILES, duplicates="drop")), "in"
        else:
            levels = often[:_MOST_LEVELS]
            bins = pd.Categorical(values.where(values.isin(levels)), categories=levels)
    except TypeError:  # lists, whose parts are not compared
        bins, word = pd.Categorical(np.zeros(len(values))), "="
    at, shape = (bins.codes + 1, np.arange(len(bins))), (len(bins.categories) + 1, len(bins))
    of_levels = [f"{name} {word} {level}" for level in bins.categories]
    return csr_array((np.ones(len(bins)), at), shape), [f"{name} missing or rarer", *of_levels]
