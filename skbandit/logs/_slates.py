"""Logs of slates: the arms shown together, and what is known of their rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skbandit.logs._arms import Codes, Pools, code_labels, label_array, read_pools, renumbered
from skbandit.logs._log import (
    column_names,
    columns_of,
    is_log,
    read_numbers,
    read_times,
    warn_of_repeats,
)
from skbandit.utils._validation import check_not_masked, warn_if_reordered, warn_if_wrapped

LARGEST_REWARD = 1e145
"""Largest absolute reward, in its own unit; beyond it, squares may overflow."""


@dataclass(frozen=True)
class SlateLog:
    """Logged slates in order of time; arms are numbers, `arms` holds their labels."""

    arms: np.ndarray  # (n_arms,), labels
    action: np.ndarray  # (n_events, n_places), best place first; -1 in empty places
    reward: Any  # as given
    propensity: Any  # as given; None: not logged
    pools: Pools | None  # None: every arm of the log is available to every event
    timestamp: np.ndarray | None  # (n_events,), seconds

    def __len__(self) -> int:
        return len(self.action)

    @property
    def shown(self) -> np.ndarray:
        """Mask of the places that are not empty, (n_events, n_places)."""
        return self.action >= 0

    @property
    def sizes(self) -> np.ndarray:
        """Number of arms of each slate."""
        return self.shown.sum(axis=1)

    def available_sets(self) -> list[tuple[Any, ...]]:
        """Labels of the arms available to each event."""
        if self.pools is None:
            return [tuple(self.arms.tolist())] * len(self)
        labels = self.pools.labels(self.arms)
        return [labels[k] for k in self.pools.of_event.tolist()]

    def of_arms(self, values: Any, name: str) -> np.ndarray:
        """Numbers given per shown arm, as an array like `action`; nan in empty places.

        Each event has a number per place or, for slates of one arm, a single number.
        """
        check_not_masked(values, name)
        rows = [np.ravel(row) for row in entries_per_slate(values, name)]
        if len(rows) != len(self):
            raise ValueError(f"{name} has {len(rows)} entries for {len(self)} slates.")
        sizes = np.array([len(row) for row in rows])
        wrong = np.flatnonzero((sizes != self.sizes) & (sizes != self.action.shape[1]))
        if len(wrong):
            k = wrong[0]
            raise ValueError(
                f"{name} of row {k} has {sizes[k]} entries for a slate of {self.sizes[k]} arms: "
                "pass one per place."
            )
        out = np.full(self.action.shape, np.nan)
        try:
            numbers = pd.to_numeric(pd.Series(np.concatenate(rows)))
            filled = np.arange(self.action.shape[1]) < sizes[:, None]
            out[filled] = numbers.to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers: {error}.") from error
        out[~self.shown] = np.nan
        of_rows = str(getattr(values, "dtype", "object")) == "object"
        of_rows = of_rows and not hasattr(values, "columns")
        warn_if_wrapped(np.concatenate(rows) if of_rows else values, out, name)
        large = np.argwhere(np.abs(out) > LARGEST_REWARD)
        if len(large):
            k, place = large[0]
            raise ValueError(f"{name} of row {k} is {out[k, place]:g}, too large to be squared.")
        return out

    def of_slates(self, values: Any, name: str) -> np.ndarray:
        """Finite numbers given per slate, (n_events,)."""
        numbers = read_numbers(values, len(self), name)
        warn_if_wrapped(values, numbers, name)
        wrong = np.flatnonzero(np.abs(numbers) > LARGEST_REWARD)
        if len(wrong):
            raise ValueError(
                f"{name} of row {wrong[0]} is {numbers[wrong[0]]:g}, too large to be squared."
            )
        return numbers


def read_slates(
    y: Any,
    n_rows: int | None = None,
    *,
    reward: Any = None,
    propensity: Any = None,
    available: Any = None,
    arms: Iterable[Any] = (),
    columns: Mapping[str, Any] | None = None,
) -> SlateLog:
    """Validate a log of slates, and number its arms.

    Parameters
    ----------
    y : DataFrame, dict or structured array with a column action, or slates
        An entry of action is a tuple, list or array of different labels, best place first; None
        and nan are empty places. A single label is a slate of one arm. Columns reward,
        propensity, available and timestamp are kept if present. Without column names: an array
        of shape (n_events, n_places), or a sequence of slates.
    n_rows : int, default=None
        Required number of events.
    reward, propensity, available : array-like, default=None
        Values that are not columns of `y`.
    arms : iterable of labels, default=()
        Arms known so far; they get the first numbers.
    columns : dict, default=None
        Names of the columns of `y`, if different.

    Returns
    -------
    SlateLog
    """
    warn_if_reordered({"y": y, "reward": reward, "propensity": propensity})
    by_place = column_names(y) is not None and are_slates(y) and not columns
    names = None if by_place else columns_of(y, columns)
    warn_of_repeats(y)
    read = {"action": y} if names is None else {name: y[at] for name, at in names.items()}
    given = {"reward": reward, "propensity": propensity, "available": available}
    for name, values in given.items():
        if values is not None and name in read:
            raise ValueError(f"{name}= and the column {name!r} of y are both given: pass only one.")
        read.setdefault(name, values)
    if read["reward"] is None:
        raise ValueError(
            "the log has no rewards: y must be a DataFrame with columns 'action' and 'reward', or "
            "slates with reward=."
        )
    codes: Codes = {label: k for k, label in enumerate(arms)}
    n_known = len(codes)
    action = code_slates(slate_labels(read["action"], "action"), codes)
    n = len(action)
    if n_rows is not None and n != n_rows:
        raise ValueError(f"y has {n} slates for {n_rows} rows of X.")
    pools = None
    if read["available"] is not None:
        before, per_row = list(codes), available is None
        pools = read_pools(read["available"], n, codes, per_row=per_row, n_known=n_known)
        action = renumbered(action, before, codes)
        check_shown(pools, action, list(codes))
    times = read.get("timestamp")
    return SlateLog(
        label_array(codes),
        action,
        read["reward"],
        read["propensity"],
        pools,
        None if times is None else read_times(times, n),
    )


def are_slates(y: Any) -> bool:
    """Tell whether `y` holds slates, without names or with numbers of places, and not a log."""
    names = column_names(y)
    return names is None or all(isinstance(name, int | np.integer) for name in names)


def entries_per_slate(values: Any, name: str) -> list[Any]:
    """Return a list of what is given for each slate."""
    if values is None or isinstance(values, str | bytes | type):
        raise ValueError(f"{name} must have one entry per slate, got {values!r}.")
    if isinstance(values, pd.DataFrame):
        values = values.to_numpy()
    elif hasattr(values, "to_list"):  # a Series of polars has lists as Series otherwise
        values = values.to_list()
    check_not_masked(values, name)
    if hasattr(values, "__array__") and not isinstance(values, Iterable):
        values = np.asarray(values)
    if getattr(values, "ndim", 1) == 0 or not isinstance(values, Iterable):
        raise ValueError(f"{name} must have one entry per slate, got {values!r}.")
    return values.tolist() if hasattr(values, "tolist") else list(values)


def slate_labels(slates: Any, name: str, n_events: int | None = None) -> list[list[Any]]:
    """Labels of slates, of which there must be `n_events`, without empty places at their ends."""
    rows = entries_per_slate(slates, name)
    if n_events is not None and len(rows) != n_events:
        raise ValueError(f"{name}: there are {len(rows)} slates for {n_events} events.")
    return [_labels(row, k) for k, row in enumerate(rows)]


def code_slates(slates: list[list[Any]], codes: Codes) -> np.ndarray:
    """Return indices of the labels of slates, -1 in empty places; new labels extend `codes`."""
    if not slates:
        raise ValueError("the log is empty: y has no slates.")
    flat = [label for slate in slates for label in slate]
    objects = np.empty(len(flat), dtype=object)
    objects[:] = flat
    of_flat = code_labels(objects, codes)
    sizes = np.array([len(slate) for slate in slates])
    action = np.full((len(slates), sizes.max()), -1, dtype=np.int64)
    action[np.arange(sizes.max()) < sizes[:, None]] = of_flat
    in_order = np.sort(action, axis=1)
    twice = ((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        k = int(np.flatnonzero(twice)[0])
        raise ValueError(f"row {k} shows an arm twice: {slates[k]}.")
    return action


def _labels(row: Any, k: int) -> list[Any]:
    """Labels of a slate, without empty places at its end."""
    many = isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes)
    slate = list(row) if many else [row]
    while slate and (slate[-1] is None or slate[-1] is pd.NA or slate[-1] != slate[-1]):
        slate.pop()
    if not slate:
        raise ValueError(f"row {k} shows no arm: drop it from the log.")
    for label in slate:
        if label is None or label is pd.NA or label != label:
            raise ValueError(
                f"row {k} has an empty place before a filled one: move the arms up, {slate}."
            )
    return slate


def check_shown(pools: Pools, action: np.ndarray, labels: list[Any]) -> None:
    """Require that shown arms, of numbers up to those of the labels, were available."""
    mask = pools.mask(len(labels)).toarray()
    shown = action >= 0
    wrong = shown & ~mask[np.arange(len(action))[:, None], np.where(shown, action, 0)]
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise ValueError(
            f"row {row}: {labels[action[row, place]]!r} is shown, but not among the available arms."
        )


def holds_slates(y: Any, columns: Mapping[str, Any] | None) -> bool:
    """Tell whether y is a log with a reward per arm of a slate; a tuple may be one arm's label."""
    name = (columns_of(y, columns) or {}).get("reward") if is_log(y, columns) else None
    return name is not None and isinstance(next(iter(y[name]), None), tuple | list | np.ndarray)
