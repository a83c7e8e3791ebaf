"""Policies that several threads share: their locks, and what a copy or a pickle takes along."""

from __future__ import annotations

import copy
from functools import lru_cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from skbandit.bandit._guard import Guard
from skbandit.bandit._stream import ChoiceStream

if TYPE_CHECKING:
    from typing import Self


class GuardedPolicy(BaseEstimator):
    """Holds a policy's locks and its random stream, and requests the columns of a log.

    Learning replaces what it changes, so choices never wait for it.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "reward": True,
        "available": True,
        "columns": True,
        "sample_weight": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = __metadata_request__fit

    _stream: ChoiceStream
    _guard: Guard

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create an object with locks of its own, which copies do not share."""
        policy = super().__new__(cls)
        policy._guard = Guard()
        return policy

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy: its stream is its own, its locks are not part of it."""
        state = dict(super().__getstate__())
        del state["_guard"]
        if "_stream" in state:
            state["_stream"] = copy.copy(state["_stream"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state; parameters that its version did not have take their defaults."""
        super().__setstate__(_defaults(type(self)) | state)  # type: ignore[arg-type]

    def _now(self) -> Self:
        """The policy in its current state, while other threads may go on learning."""
        now: Self = object.__new__(type(self))
        now.__dict__ = self.__dict__  # learning replaces it as a whole
        return now


@lru_cache
def _defaults(policy: type) -> dict[str, Any]:
    """Default values of parameters."""
    parameters = signature(policy.__init__).parameters.values()  # type: ignore[misc]
    return {own.name: own.default for own in parameters if own.default is not Parameter.empty}
