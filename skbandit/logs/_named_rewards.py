"""Rewards that are columns of a log: one of another name, or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skbandit.logs._columns import column_names
from skbandit.logs._log import read_numbers
from skbandit.utils._messages import first_few
from skbandit.utils._validation import check_squares


def named_rewards(
    y: Any, reward: Any, columns: Mapping[str, Any] | None
) -> tuple[Any, Mapping[str, Any] | None, list[str]]:
    """Resolve ``reward="minutes"`` and ``reward=["click", "minutes"]``.

    Parameters
    ----------
    y : object
        A log.
    reward : str, list of str, array-like or None
        Names of columns of `y`, or rewards.
    columns : dict, default=None
        Names of the columns of `y`, if different.

    Returns
    -------
    reward : object
        Rewards, for `read_log`; None if they are named.
    columns : dict or None
        The mapping, with the first name as the column of rewards.
    names : list of str
        Names of all rewards; empty if they are not named.
    """
    names = [reward] if isinstance(reward, str) else reward
    listed = isinstance(names, Sequence) and len(names) > 0
    if not listed or not all(isinstance(name, str) for name in names):
        return reward, columns, []
    if columns and "reward" in columns:
        raise ValueError(
            f"reward={reward!r} and columns={dict(columns)} both name the rewards: pass only one."
        )
    known = column_names(y)
    if known is None:
        raise ValueError(
            f"reward={reward!r} names columns, and y has none: pass a DataFrame as y, or rewards."
        )
    for k, name in enumerate(names):
        if name not in known:
            raise ValueError(
                f"reward names {name!r}, which is not a column of y: {first_few(known, 20)}."
            )
        if name in names[:k]:
            raise ValueError(f"reward names {name!r} twice.")
    return None, {**(columns or {}), "reward": names[0]}, list(names)


def check_names(reward: Any) -> None:
    """Require the rewards of a log in blocks to be names of columns, or None."""
    names = [reward] if isinstance(reward, str) else reward
    if names is not None and not (
        isinstance(names, Sequence) and names and all(isinstance(name, str) for name in names)
    ):
        raise TypeError(
            "reward must name columns of the blocks, as in reward=['click', 'minutes'], got "
            f"{type(reward).__name__}."
        )


def read_rewards(y: Any, names: Sequence[str], n_rows: int) -> dict[str, np.ndarray]:
    """The named columns of a log as finite numbers."""
    rewards = {name: read_numbers(y[name], n_rows, f"reward {name!r}") for name in names}
    for name, values in rewards.items():
        check_squares(values, f"reward {name!r}")
    return rewards
