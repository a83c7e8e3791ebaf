"""Policies that learn in update windows: events wait until their window has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skbandit.bandit._delayed import Events, join, windows_of
from skbandit.bandit._guarded import GuardedPolicy
from skbandit.bandit._parameters import read_interval
from skbandit.logs import read_times
from skbandit.utils._atomic_fit import atomic_fit

if TYPE_CHECKING:
    from typing import Self


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
