"""Locks of a policy that several threads share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import TypeVar
from weakref import WeakSet

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
