"""Parts shared by policies: locks, a random stream, saved states, and records of choices."""

from __future__ import annotations

import copy
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skbandit.logs import Log, column_names, make_record
from skbandit.utils._fitting import atomic_fit, process_entropy, seed_for
from skbandit.utils._sklearn_compat import rows_of
from skbandit.utils._validation import no_score

if TYPE_CHECKING:
    from typing import Self


_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):  # threads that do not exist in the child may hold locks
    os.register_at_fork(after_in_child=_locks.clear)

STATE_FORMAT = 1
"""Format of saved policies, raised by a change that older versions of skbandit would misread."""


def lock_of(holder: Any) -> AbstractContextManager[Any]:
    """Return the lock of an object, made on first use: the same one to all threads.

    That of a policy lets one thread learn at a time; others read states, which learning replaces as
    a whole. That of a stream is held while choices are counted, so that no two threads get the same
    random numbers.
    """
    return _locks.setdefault(holder, RLock())


class ChoiceStream:
    """Addresses of random numbers: (seed, t) for choice t.

    Copies of a stream without a fixed `random_state`, pickled or not, draw a seed of their own, as
    do forked processes. Other copies continue the stream from its current position, and so repeat
    each other.
    """

    def __init__(self, random_state: Any, seed: int | None = None, n_choices: int = 0) -> None:
        self.random_state, self._seed, self.n_choices = random_state, seed, n_choices
        # drawn on first use without a fixed state, so that copying draws nothing
        if seed is None and random_state is not None:
            self._seed = seed_for("choices", random_state)
        self._process = process_entropy()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        seed = None if self.random_state is None else self._seed
        return ChoiceStream, (self.random_state, seed, self.n_choices)

    def take(self, n: int, random_state: Any) -> tuple[int, int]:
        """Count n further choices; return the seed and the number of the first.

        `random_state` is the policy's current setting: another one than before has another seed.
        """
        with lock_of(self):
            if random_state != self.random_state:
                self.random_state, self._seed = random_state, None
            if random_state is None and self._process != process_entropy():
                self._seed, self._process = None, process_entropy()
            if self._seed is None:
                self._seed = seed_for("choices", random_state)
            t = self.n_choices
            self.n_choices += n
            return self._seed, t


def check_format(state_format: int, writer: str) -> None:
    """Refuse the state of a policy saved in a later format, by this version of skbandit."""
    if state_format > STATE_FORMAT:
        raise ValueError(
            f"this policy was saved by skbandit {writer}, in format {state_format}, and skbandit "
            f"{_version()} reads formats up to {STATE_FORMAT}: install skbandit {writer} or later."
        )


def _version() -> str:
    """Return version of skbandit, without an import of the package from a module of its own."""
    return sys.modules["skbandit"].__version__


def unfilled(cls: Any, state_format: int, writer: str) -> Any:
    """Make a policy for a pickled state to fill, before any of the state is read."""
    check_format(state_format, writer)
    return object.__new__(cls)


class GuardedPolicy(BaseEstimator):
    """Holds a policy's random stream, and requests the columns of a log.

    Learning replaces what it changes, so choices never wait for it.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "available": True,
        "sample_weight": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = __metadata_request__fit
    score = no_score("scoring=ReplayScorer(), which lets each policy learn on a fold's events")

    _shows_slates: ClassVar[bool] = False

    columns: dict[str, Any] | None
    _first_log: bytes | None = None
    _equal: tuple[float, int] | None = (math.nan, 0)  # the only reward so far, and its number
    _stream: ChoiceStream
    _rows: Callable[[Any], Any]  # checks contexts
    _n_learned: Callable[[], int]  # number of events learned
    _begin: Callable[[Any], None]  # starts without experience, from contexts

    def _names_in(self, y: Any) -> Mapping[str, Any] | None:
        """Return names of the columns of a log to learn, which needs no propensities."""
        names = column_names(y)
        if self.columns is None or names is None:
            return None
        absent = {"propensity"} if self.columns.get("propensity") not in names else set()
        return {meaning: name for meaning, name in self.columns.items() if meaning not in absent}

    def _has_learned(self, X: Any, log: Log) -> bool:
        """Return whether this very log, with these contexts, was the first to be learned."""
        if self._first_log is None:
            return False
        return self._first_log == log.fingerprint(self._rows(rows_of(X, log.sample())))

    def __getstate__(self) -> dict[str, Any]:
        """Return state of a copy, whose stream is its own."""
        state = dict(super().__getstate__())
        if "_stream" in state:
            state["_stream"] = copy.copy(state["_stream"])
        state["_format"], state["_writer"] = STATE_FORMAT, _version()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a saved state, which skops passes without `__reduce__`."""
        state = dict(state)
        check_format(state.pop("_format", STATE_FORMAT), state.pop("_writer", ""))
        super().__setstate__(state)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return constructor and state, the format first: a later state may not be readable."""
        state = self.__getstate__()
        return unfilled, (type(self), state["_format"], state["_writer"]), state

    def _begin_with(self, X: Any, available: Any, *, arms_are_named: bool) -> None:
        """Start an unfitted policy without experience, if it knows arms."""
        if not hasattr(self, "_stream"):
            if not arms_are_named and available is None:
                raise NotFittedError(
                    f"This {type(self).__name__} knows no arms: fit it, or pass available= to "
                    "choose by the prior."
                )
            with lock_of(self):
                if not hasattr(self, "_stream"):  # another thread may have begun
                    with atomic_fit(self) as draft:
                        draft._validate_params()
                        draft._begin(X)

    def record(
        self, X_row: Any, arm: Any, propensity: Any, *, available: Any = None
    ) -> dict[str, Any]:
        """Describe a choice by a dict for JSON, to which its reward is joined later.

        Parameters
        ----------
        X_row : {array-like, sparse matrix, DataFrame} of shape (1, n_features), or a row of it
            Context of the choice, which may hold text if transformers encode it.
        arm : label, or array of labels
            What `select` returned for the row: an arm, or a slate.
        propensity : float, array-like or None
            Probability with which `arm` was chosen, or of each arm of a slate to be in it; None if
            it is not known.
        available : array-like, default=None
            Arms that were available, as in `select`, for one row.

        Returns
        -------
        dict
            With id, a random text; time, in seconds since 1970; context, by column names or as a
            list; arm; propensity; available, a list or None; and version, the number of events that
            the policy had learned. `skbandit.logs.join_rewards` turns it into a row of a log, the
            same after ``json.loads(json.dumps(record))``. Missing values are None.
        """
        arms = self.arms_.tolist() if self.__sklearn_is_fitted__() else []
        n, of_slate = self._n_learned(), self._shows_slates
        return make_record(X_row, arm, propensity, available, arms, n, of_slate)

    def _now(self) -> Self:
        """Return the policy in its current state, while other threads may go on learning."""
        now: Self = object.__new__(type(self))
        now.__dict__ = {**self.__dict__}  # CPython 3.13.0 clears shared ones
        return now
