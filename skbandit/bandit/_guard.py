"""Locks of a policy that several threads share."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakSet

from sklearn.base import BaseEstimator

from skbandit.bandit._stream import ChoiceStream
from skbandit.logs import Log, column_names
from skbandit.utils._sklearn_compat import rows_of

if TYPE_CHECKING:
    from typing import Self


Result = TypeVar("Result")


class Guard:
    """Lets one thread learn at a time, while others read.

    Learning replaces arrays, but a few events are learned in place. A reader that meets such a
    write computes once more, when it has ended.
    """

    def __init__(self) -> None:
        self._renew()
        _guards.add(self)

    def _renew(self) -> None:
        self.learning = RLock()
        self._writing = Lock()
        self._version = 0  # odd during a write

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Announce changes in place."""
        with self._writing:
            self._version += 1
            try:
                yield
            finally:
                self._version += 1

    def read(self, compute: Callable[[], Result]) -> Result:
        """Compute a result from arrays that did not change in the meantime."""
        before = self._version
        if before % 2 == 0:
            try:
                result = compute()
            except Exception:
                if self._version == before:
                    raise
            else:
                if self._version == before:
                    return result
        with self._writing:
            return compute()


_guards: WeakSet[Guard] = WeakSet()


def _renew_all() -> None:
    for guard in list(_guards):
        guard._renew()


if hasattr(os, "register_at_fork"):  # threads that do not exist in the child may hold locks
    os.register_at_fork(after_in_child=_renew_all)


class GuardedPolicy(BaseEstimator):
    """Holds a policy's locks and its random stream, and requests the columns of a log.

    Learning replaces what it changes, so choices never wait for it.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "available": True,
        "sample_weight": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = __metadata_request__fit

    columns: dict[str, Any] | None
    _first_log: bytes | None = None
    _stream: ChoiceStream

    @property
    def _guard(self) -> Guard:
        """Locks, made on first use: `setdefault` gives the same ones to all threads."""
        guard = self.__dict__.get("_guard")
        return self.__dict__.setdefault("_guard", Guard()) if guard is None else guard

    def _names_in(self, y: Any) -> Mapping[str, Any] | None:
        """Names of the columns of a log to learn, which needs no propensities."""
        names = column_names(y)
        if self.columns is None or names is None:
            return None
        absent = {"propensity"} if self.columns.get("propensity") not in names else set()
        return {meaning: name for meaning, name in self.columns.items() if meaning not in absent}

    def _note_log(self, X: Any, log: Log) -> None:
        """Remember the first log of at least 10 events that is learned."""
        if self._first_log is None and len(log) >= 10:
            self._first_log = log.fingerprint(X[log.sample()])

    def _has_learned(self, X: Any, log: Log) -> bool:
        """Whether this very log, with these contexts, was the first to be learned."""
        if self._first_log is None:
            return False
        return self._first_log == log.fingerprint(self._rows(rows_of(X, log.sample())))

    def _rows(self, X: Any) -> Any:
        """Checked contexts."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its stream is its own, its locks are not part of it."""
        state = dict(super().__getstate__())
        state.pop("_guard", None)
        if "_stream" in state:
            state["_stream"] = copy.copy(state["_stream"])
        return state

    def _now(self) -> Self:
        """The policy in its current state, while other threads may go on learning."""
        now: Self = object.__new__(type(self))
        now.__dict__ = self.__dict__  # learning replaces it as a whole
        return now
