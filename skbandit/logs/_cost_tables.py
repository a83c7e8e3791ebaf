"""Tables of costs, and costs that may be rewards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from skbandit.logs._log import column_names, columns_of, is_log
from skbandit.utils._validation import dtype_names, first_few, warn, warn_if_wrapped

MAX_COST = 1e150
"""Largest absolute cost; sums of squares of larger ones overflow."""


_FROM_LOG = "estimate costs by skbandit.selection.logged_costs(action, cost, propensity)"

_COSTS_OF_A_LOG = f"costs with one column per ad: if it says which ads were shown, {_FROM_LOG}."


_IF_ABSENT = (
    "Use nan for a cost that was not observed, and available= for an ad that may not be chosen.",
    "Use inf, or available=, for an ad that may not be chosen.",
)


def warn_of_shared_columns(
    X: Any, y: Any, columns: Mapping[str, Any] | None = None, outcomes: Iterable[str] = ()
) -> None:
    """Warn of features that are columns of what is to be learned: new rows will not have them.

    Of a log they are its action, reward and propensity, and the outcomes named; of a table of
    costs, all its columns.
    """
    names = column_names(X) or []
    told = column_names(y) or []
    if is_log(y, columns):
        roles = columns_of(y, columns) or {}
        told = [*(roles.get(role) for role in ("action", "reward", "propensity")), *outcomes]
    shared = [name for name in dict.fromkeys(told) if isinstance(name, str) and name in names]
    if shared:
        warn(
            f"X and y share the columns {first_few(shared)}: models learn from features what they "
            "are to predict, which new rows do not have yet. Leave them out of X.",
            UserWarning,
        )


def warn_if_rewards(costs: Any, name: str, passed: Any) -> None:
    """Warn of costs that are rewards, most likely.

    They are if all are 0 or 1, and fewer than half 1, as clicks; or if what was passed is called a
    reward and none is negative.

    Parameters
    ----------
    costs : ndarray or sparse array
        nan is not observed.
    name : str
        Name of the parameter.
    passed : array-like, DataFrame or sparse matrix
        The costs before they were converted to floats.
    """
    values = costs.data if sp.issparse(costs) else costs
    entries = values[~np.isnan(values)]
    n_known = entries.size + np.prod(costs.shape) - values.size
    if not entries.any() or (entries < 0).any():
        return
    called = getattr(passed, "name", None)
    dtypes = " ".join(dtype_names(passed))
    signed = name
    if not hasattr(passed, "astype"):
        signed = f"np.asarray({name}, dtype=float)"
    elif re.search("uint|bool", dtypes):  # where negatives wrap around, or do not exist
        signed = f"{name}.astype(float)"
    if isinstance(called, str) and "reward" in called.lower():
        why, cure = f"the column is called {called!r}", "rename it"
    elif ((entries == 0) | (entries == 1)).all() and 2 * np.count_nonzero(entries) < n_known:
        n_ones = np.count_nonzero(entries)
        why = f"{n_ones:,} of {n_known:,} are 1 and the others 0, as if for clicks"
        sparse = sp.issparse(passed) or "sparse" in dtypes
        same = f"2 * {name}" if sparse else f"{signed} - 1"
        cure = f"{same} leads to the same choices"
    else:
        return
    warn(
        f"{name} must be costs, lower is better, but {why}: pass -{signed} if they are rewards; if "
        f"they are costs, {cure}, without this warning.",
        UserWarning,
    )


def read_cost_values(
    y: Any, labels: np.ndarray | None, name: str = "y", absent: float = np.nan
) -> Any:
    """Check a table of costs, (n_samples, n_ads): floats, nan where not observed.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix
    labels : ndarray or None
        Names of its columns.
    name : str, default="y"
        Name of the parameter.
    absent : float, default=nan
        The only value, apart from nan, that need not be finite.
    """
    if y is None:
        raise ValueError(
            f"This call requires {name} to be passed, but the target {name} is None: it holds the "
            "costs of all ads, (n_samples, n_ads)."
        )
    names = () if labels is None else labels.tolist()
    if "action" in names and not {"reward", "cost", "propensity"}.isdisjoint(names):
        raise ValueError(
            f"{name} has the columns {first_few(names)} of a log, not {_COSTS_OF_A_LOG}"
        )
    try:
        if times := [dtype for dtype in dtype_names(y) if re.match("date|time|duration", dtype)]:
            raise ValueError(
                f"{name} holds {times[0]}: pass numbers, such as seconds by .dt.total_seconds()."
            )
        table = y
        if not sp.issparse(y) and "object" in dtype_names(y):  # of which some may be pandas.NA
            table = np.asarray(y, dtype=object)
            table = np.where(pd.isna(table), np.nan, table)
        values = check_array(
            table,
            accept_sparse="csc",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_2d=False,
            input_name=name,
        )
    except (TypeError, ValueError) as error:
        if any(part in str(error) for part in ("convert string", "a sequence", "must be a real")):
            raise ValueError(f"{error}: {name} must hold numbers, {_COSTS_OF_A_LOG}") from error
        raise
    if values.ndim != 2:
        raise ValueError(
            f"{name} must have one row of costs per sample and one column per ad, (n_samples, "
            f"n_ads), but its shape is {values.shape}. Reshape it to (-1, 1) if there is a single "
            f"ad; if it names the ad shown in each row, {_FROM_LOG}."
        )
    if sp.issparse(values):
        values = sp.csc_array(values)
        if values.dtype == bool:  # of a DataFrame of sparse columns
            values = values.astype(float)
        if not values.has_canonical_format:
            values = values.copy()
            values.sum_duplicates()
        stored, row_of = values.data, values.indices
    else:
        stored, row_of = values, None
    warn_if_wrapped(y, values, name)
    largest = stored.dtype.type(min(MAX_COST, float(np.finfo(stored.dtype).max)))
    too_large = ((stored > largest) & (stored != absent)) | (stored < -largest)
    if too_large.any():
        place = np.argwhere(too_large)[0]
        row = place[0] if row_of is None else row_of[place[0]]
        raise ValueError(
            f"{name} contains {stored[tuple(place)]} in row {row}: a cost and its square must be "
            f"finite. {_IF_ABSENT[absent == np.inf]}"
        )
    return values
