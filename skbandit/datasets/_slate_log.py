"""Read slates from a long table, with a row per shown item."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbandit.utils._validation import as_labels, first_few, warn_if_wrapped


def read_slate_log(
    table: Any,
    *,
    slate: Hashable,
    item: Hashable,
    position: Hashable,
    reward: Hashable,
    features: Iterable[Hashable] | None = None,
    propensity: Hashable | None = None,
    timestamp: Hashable | None = None,
) -> Bunch:
    """Turn a long table of impressions into contexts and a log of slates.

    Parameters
    ----------
    table : DataFrame, or dict of columns
        One row per item shown, in any order.
    slate : label
        Column of the slate's id, such as that of a page view.
    item : label
        Column of the item shown: the arm.
    position : label
        Column of its position in the slate, the best one first: integers without a gap from the
        smallest of the table, 0 or 1 as a rule.
    reward : label
        Column of the item's reward, such as a click; nan is unknown.
    features : iterable of labels, default=None
        Columns of the context, which are constant within a slate. None is all other columns.
    propensity : label, default=None
        Column of the probability that the slate includes the item, or shows it at its position, as
        `slate_ips` or `slate_pseudo_inverse` take it.
    timestamp : label, default=None
        Column of the slate's time, the earliest of its items', by which slates are ordered; None
        keeps the order in which they first appear.

    Returns
    -------
    Bunch
        With ``X``, a DataFrame of the contexts, and ``y``, one of action, reward and, if named,
        propensity, each a tuple with an entry per position, and timestamp. The index of both is the
        slate's id. `SlatePolicy`, `replay_slates`, `slate_ips` and `slate_pseudo_inverse` take
        them; for one reward per slate, sum ``y["reward"]``.

    Raises
    ------
    ValueError
        If a column or an entry is missing, positions of a slate repeat or have gaps, or a feature
        varies within a slate.

    Examples
    --------
    >>> import pandas as pd
    >>> from skbandit.bandit import SlatePolicy
    >>> from skbandit.datasets import read_slate_log
    >>> shown = pd.DataFrame(
    ...     {
    ...         "view": [7, 7, 8, 8],
    ...         "ad": ["b", "a", "c", "a"],
    ...         "rank": [2, 1, 1, 2],
    ...         "clicked": [0, 1, 0, 0],
    ...         "age": [31, 31, 44, 44],
    ...     }
    ... )
    >>> log = read_slate_log(shown, slate="view", item="ad", position="rank", reward="clicked")
    >>> log.y
          action      reward
    view
    7     (a, b)  (1.0, 0.0)
    8     (c, a)  (0.0, 0.0)
    >>> policy = SlatePolicy(n_select=2, random_state=0).fit(log.X, log.y)
    """
    table = pd.DataFrame(table)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()].tolist()
        raise ValueError(f"the table has two columns {first_few(twice)}: rename one.")
    per_item = {"item": item, "reward": reward, "propensity": propensity}
    named = {"slate": slate, "position": position, "timestamp": timestamp} | per_item
    named = {meaning: name for meaning, name in named.items() if name is not None}
    if features is None:
        features = [name for name in table if name not in named.values()]
    features = as_labels(features, "features")
    for meaning, name in [*named.items(), *(("features", name) for name in features)]:
        if name not in table:
            raise ValueError(
                f"{meaning} names the column {name!r}, which the table lacks: it has "
                f"{first_few(table, 20)}."
            )
        empty = table[name].isna() & (meaning not in ("reward", "features"))
        if empty.any():
            raise ValueError(f"{name!r}, the {meaning}, is missing on row {np.argmax(empty)}.")
    if not len(table):
        raise ValueError("the table is empty: it has a row for each item shown.")
    if not pd.api.types.is_numeric_dtype(table[position]):
        raise ValueError(f"{position!r}, the position, must be integers: see pandas.to_numeric.")
    code, ids = pd.factorize(table[slate])
    if timestamp is not None:
        kind = table[timestamp].dtype
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)):
            raise ValueError(
                f"{timestamp!r}, the timestamp, must be datetimes or numbers of seconds: see "
                "pandas.to_datetime."
            )
        start = table.groupby(code)[timestamp].min()
        rank = np.empty(len(ids), dtype=np.int64)
        rank[np.argsort(start.to_numpy(), kind="stable")] = np.arange(len(ids))
        ids, code = ids[np.argsort(rank)], rank[code]
    order = np.lexsort((table[position].to_numpy(), code))
    table, code = table.iloc[order], code[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    place = np.arange(len(code)) - np.repeat(first, np.diff([*first, len(code)]))
    at = table[position].to_numpy()
    wrong = np.flatnonzero(at != place + at.min())
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"slate {first_few([ids[code[row]]])} has the position {at[row]} where "
            f"{place[row] + at.min()} is expected: positions count up from the smallest, each "
            "once. Number them anew, or drop the slate."
        )
    for name in features:
        varies = table.groupby(code)[name].nunique(dropna=False) > 1
        if varies.any():
            raise ValueError(
                f"the feature {name!r} varies within slate {first_few([ids[np.argmax(varies)]])}: "
                "name the columns of the context by features=[...]."
            )
    index = pd.Index(ids, name=slate)
    y = {}
    for meaning, name in per_item.items():
        if name is not None:
            values = table[name].to_numpy(None if meaning == "item" else np.float64)
            if meaning == "reward":
                warn_if_wrapped(table[name], values, "reward")
            values = values.tolist()
            rows = zip(first, [*first[1:], len(code)], strict=True)
            y["action" if meaning == "item" else meaning] = [tuple(values[a:b]) for a, b in rows]
    if timestamp is not None:
        y["timestamp"] = start.sort_values(kind="stable").to_numpy()
    X = table[features].iloc[first].set_axis(index)
    return Bunch(X=X, y=pd.DataFrame(y, index=index))
