"""The random stream of a policy: a seed, and the number of choices made."""

from __future__ import annotations

import os
from numbers import Integral
from threading import Lock
from typing import Any

from skbandit.utils._fitting import process_entropy, seed_for

# Held while choices are counted, so that threads sharing a policy never share random numbers.
_counting = Lock()


def _renew_lock() -> None:
    global _counting
    _counting = Lock()


if hasattr(os, "register_at_fork"):  # a thread that does not exist in the child may hold it
    os.register_at_fork(after_in_child=_renew_lock)


class ChoiceStream:
    """Addresses of random numbers: (seed, t) for choice t.

    Copies of a stream without a fixed `random_state`, pickled or not, draw a seed of their own, as
    do forked processes. Other copies continue the stream from its current position, and so repeat
    each other.
    """

    def __init__(self, random_state: Any) -> None:
        self.random_state = random_state
        self.n_choices = 0
        # drawn on first use without a fixed state, so that copying draws nothing
        self._seed = None if random_state is None else seed_for("choices", random_state)
        self._process = process_entropy()

    @classmethod
    def at(cls, random_state: Any, seed: int | None, n_choices: int) -> ChoiceStream:
        """Continue a stream."""
        stream = cls(None)
        stream.random_state, stream._seed, stream.n_choices = random_state, seed, n_choices
        return stream

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        seed = None if self.random_state is None else self._seed
        return ChoiceStream.at, (self.random_state, seed, self.n_choices)

    def take(self, n: int, random_state: Any) -> tuple[int, int]:
        """Count n further choices; return the seed and the number of the first.

        `random_state` is the policy's current setting: another one than before has another seed.
        """
        with _counting:
            fixed = random_state is not None
            if not _same(random_state, self.random_state):
                self.random_state, self._seed = random_state, None
            if not fixed and self._process != process_entropy():
                self._seed, self._process = None, process_entropy()
            if self._seed is None:
                self._seed = seed_for("choices", random_state)
            t = self.n_choices
            self.n_choices += n
            return self._seed, t


def _same(one: Any, other: Any) -> bool:
    """Whether two values of `random_state` are the same integer or the same object."""
    if one is other:
        return True
    both = isinstance(one, Integral) and isinstance(other, Integral)
    return both and int(one) == int(other)
