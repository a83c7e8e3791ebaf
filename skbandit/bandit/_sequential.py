"""Contexts, logs, arms and copies of policies that learn events in order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from skbandit.bandit._arm_keys import twin
from skbandit.bandit._guard import GuardedPolicy
from skbandit.bandit._state import ArmSets, all_arms, read_interval
from skbandit.bandit._stream import ChoiceStream
from skbandit.logs import (
    Codes,
    ReplayRequest,
    align_rows,
    as_actions,
    check_in_order,
    column_names,
    in_label_order,
    label_array,
    read_log,
    read_pools,
    read_times,
)
from skbandit.utils._fitting import atomic_fit
from skbandit.utils._validation import (
    check_not_masked,
    check_row_weights,
    check_squares,
    explained_strings,
    warn_if_reordered,
)

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True)
class Events:
    """Events for a policy to learn, in order."""

    X: Any  # (n_events, n_features), array or CSR
    arms: np.ndarray  # (n_events,), labels
    reward: np.ndarray  # (n_events,)
    weight: np.ndarray  # (n_events,)
    window: np.ndarray  # (n_events,), number of the update window

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: np.ndarray) -> Events:
        """Select events by a mask or by position."""
        return Events(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def join(parts: Sequence[Events]) -> Events:
    """Concatenate events."""
    return Events(
        *(
            (joined if name == "X" else np.concatenate)([getattr(part, name) for part in parts])
            for name in Events.__dataclass_fields__
        )
    )


def joined(parts: list[Any]) -> Any:
    """Concatenate contexts; one sparse part makes all sparse."""
    if any(issparse(part) for part in parts):
        return vstack(parts, format="csr")
    return np.concatenate(parts)


def windows_of(timestamp: np.ndarray | None, every: float) -> np.ndarray:
    """Number of the window of `every` seconds that holds each of the ordered times."""
    if timestamp is None:
        raise ValueError(
            "update_every requires event times, but the log has no column 'timestamp'."
        )
    check_in_order(timestamp, "update_every")
    return np.floor(timestamp / every).astype(np.int64)


def still_waiting(
    request: ReplayRequest, window: np.ndarray, n_before: int, accepted: np.ndarray, n_seen: int
) -> np.ndarray:
    """Rows accepted by a replay, or waiting before it, whose window had not ended at its end.

    Parameters
    ----------
    request : ReplayRequest
        The replay.
    window : ndarray of shape (n_events + n_before,)
        Number of each event's window, followed by those of the events that waited before.
    n_before : int
        Number of these.
    accepted : ndarray
        Positions of accepted events in the rows of the request.
    n_seen : int
        Number of rows that were consumed.
    """
    before = np.arange(len(window) - n_before, len(window))
    learned = accepted[~request.deployment[accepted]] if request.learn else accepted[:0]
    waiting = np.concatenate([before, request.rows[learned]])
    # showing an event first learns those of earlier windows
    shown = np.flatnonzero(request.keep[:n_seen])
    if len(shown):
        waiting = waiting[window[waiting] == window[request.rows[shown[-1]]]]
    return waiting


def check_time(
    timestamp: np.ndarray, latest: float | None, *, every: float | None, forgetting: float
) -> None:
    """Check that time runs forward, within events and from those learned before.

    Update windows and forgetting need it, so events out of order are an error. Otherwise they are
    learned in the order given, with a warning.

    Parameters
    ----------
    timestamp : ndarray of shape (n_events,)
        Seconds.
    latest : float or None
        Time of the latest event of earlier calls.
    every : float or None
        Length of update windows in seconds; an event may be late within its window.
    forgetting : float
        Discount of earlier evidence; below 1, the order of events matters.
    """
    first = float(timestamp[0])
    if every is None:
        late = latest is not None and first < latest
    else:
        windows_of(timestamp, every)
        late = latest is not None and np.floor(first / every) < np.floor(latest / every)
    needs = "update_every" if every is not None else f"forgetting={forgetting:g}"
    strict = every is not None or forgetting < 1
    if late:
        problem = (
            f"timestamp of row 0, {first:.15g} s, is earlier than that of an event learned before, "
            f"{latest:.15g} s"
        )
        if strict:
            raise ValueError(f"{problem}: {needs} needs events in order of time.")
    elif strict:
        check_in_order(timestamp, needs)
        return
    else:
        back = np.flatnonzero(np.diff(timestamp) < 0)
        if not len(back):
            return
        problem = f"timestamp goes back on row {back[0] + 1}"
    warnings.warn(
        f"{problem}: events are learned in the given order, and another order leads to another "
        "state. Sort the log by time.",
        UserWarning,
        stacklevel=7,
    )


class WindowedPolicy(GuardedPolicy):
    """Holds the events that wait for their window to end, and learns them then."""

    update_every: Any
    _waiting: Sequence[Events] = ()  # all of one window

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn the events of `update_every` windows that have ended.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            Current time, in seconds if a number; None learns all delayed events.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning:
            if self.__sklearn_is_fitted__() and self._waiting:
                every = read_interval(self.update_every)
                if timestamp is None or every is None:
                    passed = True
                else:
                    now = windows_of(read_times([timestamp], 1), every)[0]
                    passed = now > self._waiting[0].window[0]
                if passed:
                    with atomic_fit(self) as draft:
                        draft._learn_waiting()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError

    def _absorb(self, events: Events) -> None:
        """Learn events now."""
        raise NotImplementedError

    def _take(self, events: Events) -> None:
        """Learn events at once, or those whose window has ended."""
        if self.update_every is None:
            self._absorb(events)
        elif len(events):
            passed = events.window < events.window[-1]
            if self._waiting and self._waiting[0].window[0] < events.window[-1]:
                self._learn_waiting()
            self._absorb(events.take(passed))
            self._waiting = [*self._waiting, events.take(~passed)]

    def _learn_waiting(self) -> None:
        """Learn all delayed events."""
        self._absorb(join(self._waiting))
        self._waiting = []

    def _waiting_arms(self) -> list[Any]:
        """Labels of the arms of delayed events, in order, possibly repeated."""
        return [label for part in self._waiting for label in part.arms.tolist()]

    def _drop_waiting(self, dropped: set[Any]) -> None:
        """Forget the delayed events of arms."""
        remaining = [
            part.take(np.array([arm not in dropped for arm in part.arms.tolist()], dtype=bool))
            for part in self._waiting
        ]
        self._waiting = [part for part in remaining if len(part)]


class SequentialPolicy(GuardedPolicy):
    """Reads contexts and logs for a policy, and holds its arms and its clock."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"available": True}

    random_state: Any
    n_features_in_: int
    _codes: Codes
    _labels: np.ndarray
    _latest: float | None = None  # time of the latest event, in seconds

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def arms_(self) -> np.ndarray:
        """Labels of the arms, in the order in which they were named or first learned."""
        check_is_fitted(self)
        return self._labels.copy()

    @property
    def last_timestamp_(self) -> float:
        """Time of the latest event, in seconds; nan if no event had a timestamp."""
        check_is_fitted(self)
        return np.nan if self._latest is None else self._latest

    def _begin(self, X: Any) -> None:
        """Start without arms and without events."""
        self._checked(X, reset=True)
        self._stream = ChoiceStream(self.random_state)
        self._codes = {}
        self._labels = label_array([])
        self._latest = self._first_log = None

    def _know(self, codes: Codes) -> None:
        """Extend the known arms."""
        self._codes, self._labels = codes, label_array(codes)

    def _knows_arms(self) -> bool:
        """Whether the parameters of an unfitted policy name arms."""
        raise NotImplementedError

    def _rows(self, X: Any) -> np.ndarray:
        """Check contexts; plain arrays skip the full validation."""
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub"
        if plain and X.shape[1] == self.n_features_in_ and len(X):
            if not hasattr(self, "feature_names_in_"):
                rows = np.ascontiguousarray(X, dtype=np.float64)
                if np.isfinite(np.vdot(rows, rows)):
                    return rows
        return self._checked(X, reset=False)

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        """Contexts as an array, fully validated."""
        tags = self.__sklearn_tags__().input_tags
        check_not_masked(X, "X")
        with explained_strings(X, "the policy"):
            X = validate_data(
                self,
                X,
                dtype=np.float64,
                order="C",
                accept_sparse="csr" if tags.sparse else False,
                ensure_all_finite="allow-nan" if tags.allow_nan else True,
                reset=reset,
            )
        X = X.toarray() if issparse(X) else X
        check_squares(np.nan_to_num(X) if tags.allow_nan else X)
        return X

    def _read_events(
        self,
        X: Any,
        y: Any,
        reward: Any,
        available: Any,
        sample_weight: Any,
        *,
        every: float | None = None,
        forgetting: float = 1.0,
    ) -> Events:
        """Check events, and note their times; `every` and `forgetting` as in `check_time`."""
        warn_if_reordered({"X": X, "y": y, "sample_weight": sample_weight})
        available = align_rows(available, X)
        X = self._rows(X)
        n_rows = len(X)
        if reward is None and column_names(y) is None:
            y = as_actions(y)
            warnings.warn(
                "y has actions but no rewards, so each action counts as reward 1: pass a "
                "DataFrame with columns 'action' and 'reward', or reward=.",
                UserWarning,
                stacklevel=4,
            )
            reward = np.ones(len(y))
        # only sets of available arms may refer to arms that are not played
        names = self._names_in(y)
        found = {*(column_names(y) or ()), *(names or ())}
        arms = self._codes if available is not None or "available" in found else ()
        log = read_log(y, n_rows, reward=reward, available=available, arms=arms, columns=names)
        self._note_log(X, log)
        weight = check_row_weights(sample_weight, n_rows, "sample_weight")
        window = np.zeros(n_rows, dtype=np.int64)
        if every is not None:
            window = windows_of(log.timestamp, every)
        if log.timestamp is not None:
            check_time(log.timestamp, self._latest, every=every, forgetting=forgetting)
            self._note_times(log.timestamp[weight > 0])
        events = Events(X, log.arms[log.action], log.reward, weight, window)
        return events.take(weight > 0)

    def _note_times(self, timestamp: np.ndarray) -> None:
        """Remember the latest time of events."""
        if len(timestamp):
            latest = -np.inf if self._latest is None else self._latest
            self._latest = max(latest, float(timestamp.max()))

    def _check_ready(self, available: Any) -> None:
        """Require a policy that knows arms, fitted or not."""
        if not self.__sklearn_is_fitted__() and not self._knows_arms() and available is None:
            raise NotFittedError(
                f"This {type(self).__name__} knows no arms: fit it, or pass available= to act "
                "without experience."
            )

    def _available(self, n_rows: int, available: Any) -> tuple[ArmSets, Codes]:
        """Sets of available arms per row, and numbers of the known arms and then the new ones."""
        if available is None:
            return all_arms(n_rows, len(self._codes)), self._codes
        codes = dict(self._codes)
        pools = read_pools(available, n_rows, codes)
        codes, pools = in_label_order(codes, pools, len(self._codes))
        sets = ArmSets(
            pools.of_event.astype(np.int32),
            pools.start.astype(np.int64),
            pools.arms.astype(np.int64),
        )
        return sets, codes

    def _warn_of_twins(self, new: list[Any]) -> None:
        """Warn of a new arm that is written like a known one, but of another type."""
        for label in new:
            known = twin(label, {**self._codes, **dict.fromkeys(new)})
            if known is not None:
                warnings.warn(
                    f"arm {label!r}, of type {type(label).__name__}, is new, beside the arm "
                    f"{known!r} of type {type(known).__name__}: labels of different types are "
                    "different arms. Convert the labels to one type.",
                    UserWarning,
                    stacklevel=2,
                )
                return
